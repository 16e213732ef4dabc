//! Words as lists of symbols (ids of tokens), and the one thing that is done to them: joining two neighbours.

use std::ops::Range;

use super::{Watch, WordCounts};
use crate::error::{Error, Result, TrainingError};
use crate::memory::prefetch;

/// Two neighbouring symbols as one number, in the order of the first, then the second.
pub(super) type Pair = u64;

pub(super) fn pair(a: u32, b: u32) -> Pair {
    u64::from(a) << 32 | u64::from(b)
}

pub(super) fn parts(pair: Pair) -> (u32, u32) {
    ((pair >> 32) as u32, pair as u32)
}

/// Numbers before the symbols of a word: how many symbols it has, and its count in two halves.
const HEAD: usize = 3;

/// The numbers in a line of the cache, less one.
const LINE: usize = 15;

/// Places between asking for a word and reading it.
const AHEAD: usize = 8;

/// All words in one list: for each the number of its symbols, its count, its symbols. A word shrinks where it stands.
///
/// A word is named by where it begins, so that all there is to know about it comes with one line of the cache or two.
#[derive(Debug, Default)]
pub(super) struct Words {
    list: Vec<u32>,
}

impl Words {
    /// Room for these words.
    pub fn with_room(words: &WordCounts) -> Words {
        Words { list: Vec::with_capacity(words.text_len() + HEAD * words.len()) }
    }

    /// Appends a word.
    ///
    /// # Errors
    ///
    /// There are more symbols than can be numbered.
    pub fn push(&mut self, symbols: impl IntoIterator<Item = u32>, count: u64) -> Result<()> {
        let word = self.list.len();
        self.list.extend([0, count as u32, (count >> 32) as u32]);
        self.list.extend(symbols);
        if u32::try_from(self.list.len()).is_err() {
            return Err(Error::Training(TrainingError::TooManySymbols));
        }
        self.list[word] = (self.list.len() - word - HEAD) as u32;
        Ok(())
    }

    /// All words, as long as none has shrunk.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        let mut next = 0;
        std::iter::from_fn(move || {
            let word = next;
            next += HEAD + *self.list.get(word)? as usize;
            Some(word as u32)
        })
    }

    /// How often a word occurs.
    #[inline]
    pub fn count(&self, word: u32) -> u64 {
        u64::from(self.list[word as usize + 1]) | u64::from(self.list[word as usize + 2]) << 32
    }

    /// The symbols of a word.
    #[inline]
    pub fn symbols(&self, word: u32) -> &[u32] {
        let start = word as usize + HEAD;
        &self.list[start..start + self.list[word as usize] as usize]
    }

    /// Asks for a word that will be read soon, where there is one.
    #[inline(always)]
    pub fn ask_for(&self, word: Option<&u32>) {
        if let Some(&word) = word {
            // A word seldom ends in the line it begins in.
            let place = self.list.as_ptr().wrapping_add(word as usize);
            prefetch(place);
            prefetch(place.wrapping_add(LINE));
        }
    }

    /// Joins `a` and `b` to `ab` wherever they stand side by side in a word, from left to right without overlap, and tells
    /// for each joint the neighbours: the left one as it is then (perhaps just joined), the right one as it was.
    /// Returns the number of joints.
    #[inline]
    pub fn join(
        &mut self,
        word: u32,
        (a, b): (u32, u32),
        ab: u32,
        mut joint: impl FnMut(Option<u32>, Option<u32>),
    ) -> u64 {
        let start = word as usize + HEAD;
        let len = self.list[word as usize] as usize;
        let symbols = &mut self.list[start..start + len];
        let (mut from, mut to) = (0, 0);
        while from < len {
            if symbols[from] == a && from + 1 < len && symbols[from + 1] == b {
                let left = if to > 0 { Some(symbols[to - 1]) } else { None };
                joint(left, symbols.get(from + 2).copied());
                symbols[to] = ab;
                from += 2;
            } else {
                symbols[to] = symbols[from];
                from += 1;
            }
            to += 1;
        }
        self.list[word as usize] = to as u32;
        (len - to) as u64
    }
}

/// What joining a pair everywhere does to its neighbours.
///
/// A joint between L and R takes n from (L, a) and gives it to (L, ab), and takes n from (b, R) and gives it to (ab, R).
/// So one sum for each L and one for each R says it all, and a plain list indexed by symbol holds them: no pair is looked
/// up before the sums are complete.
#[derive(Debug, Default)]
pub(super) struct Neighbours {
    left: Side,
    right: Side,
}

/// The neighbours on one side.
#[derive(Debug, Default)]
pub(super) struct Side {
    /// For each symbol its index in `sums`, plus 1; 0 where it was not met.
    index: Vec<u32>,
    sums: Vec<Sum>,
    /// Each joint: the index of the neighbour, and the word.
    joints: Vec<(u32, u32)>,
}

/// The joints beside one neighbour.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sum {
    /// The neighbour.
    pub symbol: u32,
    /// The counts of the words, each joint once.
    pub weight: u64,
    /// How many joints; once the words are dealt out, where those of the next neighbour begin.
    end: usize,
}

impl Side {
    #[inline]
    fn note(&mut self, symbol: u32, word: u32, weight: u64) {
        if self.index.len() <= symbol as usize {
            self.index.resize(symbol as usize + 1024, 0);
        }
        let index = &mut self.index[symbol as usize];
        if *index == 0 {
            self.sums.push(Sum { symbol, weight: 0, end: 0 });
            *index = self.sums.len() as u32;
        }
        let sum = &mut self.sums[*index as usize - 1];
        sum.weight += weight;
        sum.end += 1;
        self.joints.push((*index - 1, word));
    }

    /// Appends the words beside each neighbour to `places`, ascending, and hands out each neighbour with their range there.
    fn deal_out(&mut self, places: &mut Vec<u32>, mut each: impl FnMut(Sum, Range<usize>)) {
        let base = places.len();
        let mut next = base;
        for sum in &mut self.sums {
            next += std::mem::replace(&mut sum.end, next);
        }
        places.resize(next, 0);
        for &(index, word) in &self.joints {
            let sum = &mut self.sums[index as usize];
            places[sum.end] = word;
            sum.end += 1;
        }
        let mut start = base;
        for &sum in &self.sums {
            each(sum, start..sum.end);
            start = sum.end;
            self.index[sum.symbol as usize] = 0;
        }
        self.sums.clear();
        self.joints.clear();
    }
}

impl Neighbours {
    /// Joins a pair in one word.
    #[inline]
    fn join(&mut self, words: &mut Words, word: u32, ends: (u32, u32), ab: u32) -> u64 {
        let n = words.count(word);
        words.join(word, ends, ab, |left, right| {
            if let Some(left) = left {
                self.left.note(left, word, n);
            }
            if let Some(right) = right {
                self.right.note(right, word, n);
            }
        })
    }

    /// Joins a pair in all these words, each once however often it stands there (in a row), and returns the number of
    /// joints, each as often as its word occurs.
    pub fn join_all(
        &mut self,
        words: &mut Words,
        met: &[u32],
        ends: (u32, u32),
        ab: u32,
        watch: &mut Watch<'_>,
    ) -> Result<u64> {
        let (mut joined, mut last) = (0, None);
        for (i, &word) in met.iter().enumerate() {
            words.ask_for(met.get(i + AHEAD));
            // A word of a million characters has the same pair ten thousand times, and is read to its end each time.
            if last.replace(word) != Some(word) {
                watch.steps(words.symbols(word).len())?;
                joined += self.join(words, word, ends, ab) * words.count(word);
            }
        }
        Ok(joined)
    }

    /// Hands out what changed, for the left neighbours and then the right ones, with the words where it did: a range of
    /// what is appended to `places`.
    pub fn deal_out(&mut self, places: &mut Vec<u32>, mut each: impl FnMut(bool, Sum, Range<usize>)) {
        self.left.deal_out(places, |sum, range| each(true, sum, range));
        self.right.deal_out(places, |sum, range| each(false, sum, range));
    }
}

/// A hasher for keys that are numbers: one multiplication, folded.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct NumberHasher(u64);

impl std::hash::Hasher for NumberHasher {
    fn write(&mut self, _: &[u8]) {
        unreachable!("keys are numbers of 64 bits")
    }

    #[inline]
    fn write_u64(&mut self, key: u64) {
        // Pairs are two small numbers side by side. The constant has no short period; folding brings the high half down.
        let product = u128::from(key ^ 0x9E37_79B9_7F4A_7C15) * 0xD6E8_FEB8_6659_FD93;
        self.0 = product as u64 ^ (product >> 64) as u64;
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

/// A map from pairs.
pub(super) type PairMap<V> = hashbrown::HashMap<Pair, V, std::hash::BuildHasherDefault<NumberHasher>>;

/// A pair, how often it occurs (each place once), and the words it was met in, as a range of a list of places.
#[derive(Debug, Clone)]
pub(super) struct Met {
    pub pair: Pair,
    pub weight: u64,
    pub places: Range<usize>,
}

/// All adjacent pairs of all words, in the order in which they are first met, and the list of places.
pub(super) fn all_pairs(words: &Words, watch: &mut Watch<'_>) -> Result<(Vec<Met>, Vec<u32>)> {
    let mut index: PairMap<u32> = PairMap::default();
    let mut pairs: Vec<Met> = Vec::new();
    // Which pair each place has, in the order of the places, so that none is looked up twice.
    let mut found: Vec<u32> = Vec::new();
    for word in words.iter() {
        for window in words.symbols(word).windows(2) {
            let pair = pair(window[0], window[1]);
            let i = *index.entry(pair).or_insert_with(|| {
                pairs.push(Met { pair, weight: 0, places: 0..0 });
                pairs.len() as u32 - 1
            });
            pairs[i as usize].weight += words.count(word);
            pairs[i as usize].places.end += 1;
            found.push(i);
        }
        watch.step()?;
    }
    let mut next = 0;
    for Met { places, .. } in &mut pairs {
        let size = places.end;
        *places = next..next;
        next += size;
    }
    let mut list = vec![0; next];
    // Joining appends two places at most for each that is there. Room that is not used costs nothing; growing would need
    // room for both lists.
    let _ = list.try_reserve_exact(2 * next);
    let mut found = found.into_iter();
    for word in words.iter() {
        for i in found.by_ref().take(words.symbols(word).len().saturating_sub(1)) {
            let places = &mut pairs[i as usize].places;
            list[places.end] = word;
            places.end += 1;
        }
        watch.step()?;
    }
    Ok((pairs, list))
}
