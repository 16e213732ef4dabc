//! Word → ids, in one look.
//!
//! A word of up to 16 bytes is two numbers, its key. A slot of 32 bytes holds the key and up to three ids, and two slots
//! fill a cache line: a look-up reads one line, compares two keys and has the ids. Every whole word of the vocabulary is
//! there from the start, so the first pass over a text is already warm; words of several pieces come in as they are met,
//! and leave when others want their slots. So the table never grows, whatever the text.

/// The longest word that has a key.
pub(super) const KEY_BYTES: usize = 16;

/// A word of up to 16 bytes, filled up with zeros. No word holds a zero byte: cleaning has removed them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Key {
    low: u64,
    high: u64,
}

impl Key {
    /// The key of no word.
    pub const NONE: Key = Key { low: 0, high: 0 };
}

/// For each length, the bytes of a key that belong to the word.
const KEPT: [Key; KEY_BYTES + 1] = {
    let mut kept = [Key { low: 0, high: 0 }; KEY_BYTES + 1];
    let mut n = 1;
    while n <= KEY_BYTES {
        kept[n].low = if n >= 8 { u64::MAX } else { (1 << (8 * n)) - 1 };
        kept[n].high = if n <= 8 { 0 } else { u64::MAX >> (64 - 8 * (n - 8)) };
        n += 1;
    }
    kept
};

impl Key {
    /// The key of the word of `n ≤ 16` bytes at `from`.
    ///
    /// # Safety
    ///
    /// 16 bytes can be read at `from`.
    #[inline(always)]
    pub unsafe fn read(from: *const u8, n: usize) -> Key {
        debug_assert!(n <= KEY_BYTES);
        // SAFETY: 16 bytes can be read, at any alignment; `n` is a length of the list.
        unsafe {
            let kept = KEPT.get_unchecked(n);
            let low = u64::from_le(from.cast::<u64>().read_unaligned());
            let high = u64::from_le(from.add(8).cast::<u64>().read_unaligned());
            Key { low: low & kept.low, high: high & kept.high }
        }
    }

    /// The key of a word.
    pub fn of(word: &[u8]) -> Key {
        let mut bytes = [0; KEY_BYTES];
        bytes[..word.len()].copy_from_slice(word);
        // SAFETY: `bytes` are 16.
        unsafe { Key::read(bytes.as_ptr(), word.len()) }
    }

    /// Equal, without a branch between the halves.
    #[inline(always)]
    fn is(self, other: Key) -> bool {
        (self.low ^ other.low) | (self.high ^ other.high) == 0
    }

    #[inline(always)]
    fn hash(self) -> u64 {
        // Two multiplications by odd numbers (those of the golden ratio and of e), high bits taken.
        (self.low ^ self.high.wrapping_mul(0xADF8_5458_A2BB_4A9B).rotate_left(32)).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }
}

/// Ids that fit into a slot.
pub(super) const INLINE: usize = 3;

/// A word and its ids. Four numbers are copied out at once, of which `count` are ids.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(32))]
pub(super) struct Slot {
    key: Key,
    pub ids: [u32; INLINE],
    /// How many ids; 0: the slot is free; more than three: `ids` says where in `long` they stand.
    pub count: u32,
}

const FREE: Slot = Slot { key: Key { low: 0, high: 0 }, ids: [0; INLINE], count: 0 };

/// Two slots that share a cache line.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
struct Line([Slot; 2]);

/// The table of one thread.
#[derive(Debug, Clone)]
pub(super) struct Table {
    lines: Vec<Line>,
    /// How far a hash is shifted down to number a line.
    shift: u32,
    /// The ids of words of more than three pieces.
    long: Vec<u32>,
}

/// Where `long` starts anew, in numbers. With it the table's memory has a bound.
const LONG_LIMIT: usize = 1 << 18;

impl Table {
    /// A table for a vocabulary of `n` whole words: two slots for each word or more, at least 4,096 lines.
    pub fn new(n: usize) -> Table {
        let lines = (4 * n).next_power_of_two().max(1 << 12);
        Table { lines: vec![Line([FREE; 2]); lines], shift: 64 - lines.trailing_zeros(), long: Vec::new() }
    }

    /// The bytes it takes, and never more than that.
    pub fn bytes(&self) -> usize {
        self.lines.len() * size_of::<Line>() + LONG_LIMIT * size_of::<u32>()
    }

    /// The line that a word belongs to; asks the memory for it.
    #[inline(always)]
    pub fn line(&self, key: Key) -> usize {
        let line = (key.hash() >> self.shift) as usize;
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a hint about an address inside the list; any address would do.
        unsafe {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            _mm_prefetch::<_MM_HINT_T0>(self.lines.as_ptr().add(line).cast());
        }
        line
    }

    /// The slot of a word in its line; the second slot where the line does not have it.
    #[inline(always)]
    pub fn slot(&self, line: usize, key: Key) -> (&Slot, bool) {
        // SAFETY: a shifted hash has as many bits as the number of lines.
        let Line(slots) = unsafe { self.lines.get_unchecked(line) };
        // Chosen by arithmetic: which of the two it is cannot be guessed.
        let is_first = slots[0].key.is(key);
        let slot = &slots[usize::from(!is_first)];
        (slot, is_first | slots[1].key.is(key))
    }

    /// The ids of a slot whose word has more than three.
    #[cold]
    pub fn long_ids(&self, slot: &Slot) -> &[u32] {
        let start = slot.ids[0] as usize;
        &self.long[start..start + slot.count as usize]
    }

    /// Puts a word of the vocabulary in; the first to come has the slot. Words come in the order of their ids, which in
    /// vocabularies that were learned is that of their frequency.
    pub fn fill(&mut self, key: Key, id: u32) {
        let line = self.line(key);
        if let Some(free) = self.lines[line].0.iter_mut().find(|slot| slot.count == 0) {
            *free = Slot { key, ids: [id, 0, 0], count: 1 };
        }
    }

    /// Remembers the ids of a word. Where both slots are taken the second gives way, and becomes the first when it is
    /// wanted again more than once: never mind which; what was forgotten is worked out again.
    pub fn remember(&mut self, key: Key, ids: &[u32]) {
        let mut slot = Slot { key, ids: [0; INLINE], count: ids.len() as u32 };
        if ids.len() <= INLINE {
            slot.ids[..ids.len()].copy_from_slice(ids);
        } else {
            if self.long.len() + ids.len() > LONG_LIMIT {
                self.forget_long();
            }
            slot.ids[0] = self.long.len() as u32;
            self.long.extend_from_slice(ids);
        }
        let line = self.line(key);
        let Line([first, second]) = &mut self.lines[line];
        if first.count == 0 {
            *first = slot;
        } else {
            *second = slot;
        }
    }

    /// Frees the slots of all words of more than three pieces.
    fn forget_long(&mut self) {
        for slot in self.lines.iter_mut().flat_map(|line| &mut line.0) {
            if slot.count as usize > INLINE {
                *slot = FREE;
            }
        }
        self.long.clear();
    }
}
