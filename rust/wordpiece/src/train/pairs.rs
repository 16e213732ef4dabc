//! Adjacent pairs of symbols: a compact key, maps from it, and the initial count of all pairs.

use std::ops::Range;

use super::progress::Monitor;
use super::symbols::SymbolWords;
use crate::error::Result;

/// Two adjacent symbols as one number, ordered by the first symbol, then the second.
pub(super) type Pair = u64;

/// Returns the key of two symbols.
pub(super) fn pair(a: u32, b: u32) -> Pair {
    u64::from(a) << 32 | u64::from(b)
}

/// Returns the two symbols of a pair.
pub(super) fn parts(pair: Pair) -> (u32, u32) {
    ((pair >> 32) as u32, pair as u32)
}

/// A hasher for keys that are one `u64`: one multiplication, folded.
///
/// It is not keyed. A text that makes it slow would have to be built from knowledge of token ids, which follow from all
/// words together; speed matters more here.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct NumberHasher(u64);

impl std::hash::Hasher for NumberHasher {
    fn write(&mut self, _: &[u8]) {
        unreachable!("keys are numbers of 64 bits")
    }

    #[inline]
    fn write_u64(&mut self, key: u64) {
        // A pair is two small numbers, so most of its bits are zero. The multiplication spreads them upwards, folding
        // brings the upper half down to the bits that index the table.
        let product = u128::from(key ^ 0x9E37_79B9_7F4A_7C15) * 0xD6E8_FEB8_6659_FD93;
        self.0 = product as u64 ^ (product >> 64) as u64;
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

/// A map whose keys are pairs.
pub(super) type PairMap<V> = hashbrown::HashMap<Pair, V, std::hash::BuildHasherDefault<NumberHasher>>;

/// A pair, its count, and the words in which it occurs.
#[derive(Debug, Clone)]
pub(super) struct PairOccurrences {
    pub pair: Pair,
    /// The sum of the counts of the words, once for each position of the pair in a word.
    pub weight: u64,
    /// The range of the list of occurrences that has the words, ascending, each once.
    pub occurrences: Range<usize>,
}

/// Returns all adjacent pairs of all words in the order of their first occurrence, and the list of occurrences:
/// positions of words, grouped by pair.
///
/// Cost: one lookup for each position of a pair; memory 8 bytes for each pair of a word during the call, 4 after it.
pub(super) fn all_pairs(words: &SymbolWords, monitor: &mut Monitor<'_>) -> Result<(Vec<PairOccurrences>, Vec<u32>)> {
    let mut index: PairMap<u32> = PairMap::default();
    let mut pairs: Vec<PairOccurrences> = Vec::new();
    // The word in which each pair was seen last.
    let mut last_words: Vec<u32> = Vec::new();
    // The distinct pairs of each word, and their number, so that the second pass looks up nothing.
    let mut pairs_of_words: Vec<u32> = Vec::new();
    let mut sizes: Vec<u32> = Vec::new();
    for word in words.iter() {
        let count = words.count(word);
        let before = pairs_of_words.len();
        for window in words.symbols(word).windows(2) {
            let pair = pair(window[0], window[1]);
            let i = *index.entry(pair).or_insert_with(|| {
                pairs.push(PairOccurrences { pair, weight: 0, occurrences: 0..0 });
                // No word is there: positions are less than this.
                last_words.push(u32::MAX);
                pairs.len() as u32 - 1
            });
            pairs[i as usize].weight += count;
            if last_words[i as usize] != word {
                last_words[i as usize] = word;
                pairs[i as usize].occurrences.end += 1;
                pairs_of_words.push(i);
            }
        }
        sizes.push((pairs_of_words.len() - before) as u32);
        monitor.step()?;
    }
    drop((index, last_words));
    // A counting sort: the sizes become empty ranges at the right offsets, which the second pass fills.
    let mut next = 0;
    for PairOccurrences { occurrences, .. } in &mut pairs {
        let size = occurrences.end;
        *occurrences = next..next;
        next += size;
    }
    let mut list = vec![0; next];
    // Merging appends at most two entries for each existing one. Reserved memory that is never touched costs nothing,
    // while growing later would need memory for both the old and the new list.
    let _ = list.try_reserve_exact(2 * next);
    let mut pairs_of_words = pairs_of_words.into_iter();
    for (word, size) in words.iter().zip(sizes) {
        for i in pairs_of_words.by_ref().take(size as usize) {
            let occurrences = &mut pairs[i as usize].occurrences;
            list[occurrences.end] = word;
            occurrences.end += 1;
        }
        monitor.step()?;
    }
    Ok((pairs, list))
}
