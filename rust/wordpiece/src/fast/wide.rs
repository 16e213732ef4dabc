//! Word → ids for words of 17 to 40 bytes, which keys of 16 bytes cannot hold: long words, and those of scripts whose
//! characters take two or three bytes each.
//!
//! A slot is a cache line with the word itself in it, filled up with zeros, and up to four ids; a word of more pieces
//! has them elsewhere. Each word has two places; the second is taken when the first is not free.

/// The longest word that has a slot.
pub(super) const WIDE_BYTES: usize = 40;

const WORDS: usize = WIDE_BYTES / 8;

/// Ids that fit into a slot.
const INLINE: usize = 4;

#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
struct Slot {
    word: [u64; WORDS],
    ids: [u32; INLINE],
    /// How many ids; 0: the slot is free; more than four: `ids` says where in `long` they stand.
    count: u32,
}

const FREE: Slot = Slot { word: [0; WORDS], ids: [0; INLINE], count: 0 };

/// Slots: a mebibyte of them.
const SLOTS: usize = 1 << 14;

/// Where `long` starts anew, in numbers.
const LONG_LIMIT: usize = 1 << 18;

/// The bytes that a table never takes more than.
pub(super) const MOST_BYTES: usize = SLOTS * size_of::<Slot>() + LONG_LIMIT * size_of::<u32>();

/// The table of one thread.
#[derive(Debug, Clone)]
pub(super) struct WideTable {
    slots: Vec<Slot>,
    long: Vec<u32>,
}

impl WideTable {
    /// An empty table.
    pub fn new() -> WideTable {
        WideTable { slots: vec![FREE; SLOTS], long: Vec::new() }
    }

    /// The ids of a word of at most 40 bytes.
    pub fn get(&self, word: &[u8]) -> Option<&[u32]> {
        let word = padded(word);
        let place = place(&word);
        let slot = [place, place ^ 1].into_iter().map(|i| &self.slots[i]).find(|slot| slot.word == word)?;
        let n = slot.count as usize;
        if n <= INLINE {
            return Some(&slot.ids[..n]);
        }
        let start = slot.ids[0] as usize;
        Some(&self.long[start..start + n])
    }

    /// Remembers the ids of a word.
    pub fn remember(&mut self, word: &[u8], ids: &[u32]) {
        let word = padded(word);
        let mut slot = Slot { word, ids: [0; INLINE], count: ids.len() as u32 };
        if ids.len() <= INLINE {
            slot.ids[..ids.len()].copy_from_slice(ids);
        } else {
            if self.long.len() + ids.len() > LONG_LIMIT {
                self.slots.iter_mut().filter(|slot| slot.count as usize > INLINE).for_each(|slot| *slot = FREE);
                self.long.clear();
            }
            slot.ids[0] = self.long.len() as u32;
            self.long.extend_from_slice(ids);
        }
        let place = place(&word);
        let to = if self.slots[place].count == 0 { place } else { place ^ 1 };
        self.slots[to] = slot;
    }
}

/// A word filled up with zeros, which no word holds.
fn padded(word: &[u8]) -> [u64; WORDS] {
    let mut bytes = [0; WIDE_BYTES];
    bytes[..word.len()].copy_from_slice(word);
    let mut words = [0; WORDS];
    for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
        *word = u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
    }
    words
}

fn place(word: &[u64; WORDS]) -> usize {
    let fold = |hash: u64, part: &u64| (hash ^ part).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
    (word.iter().fold(0, fold).wrapping_mul(0xADF8_5458_A2BB_4A9B) >> (64 - SLOTS.trailing_zeros())) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_remembered_is_right_or_forgotten() {
        let mut table = WideTable::new();
        let word = |i: usize| format!("a-word-of-more-bytes-{i:0>8}").into_bytes();
        let ids = |i: usize| (0..1 + i % 9).map(|k| (i * 10 + k) as u32).collect::<Vec<_>>();
        for i in 0..100_000 {
            table.remember(&word(i), &ids(i));
            assert_eq!(table.get(&word(i)), Some(&ids(i)[..]));
        }
        let kept = (0..100_000).filter(|&i| table.get(&word(i)).is_some_and(|found| found == ids(i))).count();
        let wrong = (0..100_000).filter(|&i| table.get(&word(i)).is_some_and(|found| found != ids(i))).count();
        assert!(kept > 1_000 && wrong == 0, "{kept} kept, {wrong} wrong");
    }
}
