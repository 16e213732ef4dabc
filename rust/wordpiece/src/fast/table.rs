//! Word → ids, in one look.
//!
//! A word of up to 16 bytes is two numbers, its key. A slot of 32 bytes holds the key and up to three ids, and two slots
//! fill a cache line: a look-up reads one line, compares two keys and has the ids. Every whole word of the vocabulary is
//! there from the start, so the first pass over a text is already warm; words of several pieces come in as they are met.
//! The table doubles while half of it is taken, up to a limit; from then on words leave when others want their slots.

/// The longest word that has a key.
pub(super) const KEY_BYTES: usize = 16;

/// A word of up to 16 bytes, filled up with zeros. No word holds a zero byte: cleaning has removed them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Key {
    low: u64,
    high: u64,
}

/// For each length, the bytes of a key that belong to the word.
///
/// Of a longer word none do, which makes it the key of no word.
const KEPT: [Key; KEY_BYTES + 2] = {
    let mut kept = [Key { low: 0, high: 0 }; KEY_BYTES + 2];
    let mut n = 1;
    while n <= KEY_BYTES {
        kept[n].low = if n >= 8 { u64::MAX } else { (1 << (8 * n)) - 1 };
        kept[n].high = if n <= 8 { 0 } else { u64::MAX >> (64 - 8 * (n - 8)) };
        n += 1;
    }
    kept
};

impl Key {
    /// The key of the word of `n` bytes at `from`; that of no word when `n` is more than 16.
    ///
    /// # Safety
    ///
    /// 16 bytes can be read at `from`.
    #[inline(always)]
    pub unsafe fn read(from: *const u8, n: usize) -> Key {
        // SAFETY: 16 bytes can be read, at any alignment; the list has an entry for every number up to 17.
        unsafe {
            let kept = KEPT.get_unchecked(n.min(KEY_BYTES + 1));
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

/// Words whose keys are read before the first is compared.
const GROUP: usize = 16;

/// Asks the memory for a line that will be read soon.
#[inline(always)]
fn prefetch(_line: *const Line) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint; no address can do harm.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(_line.cast());
    }
}

/// Ids that fit into a slot.
const INLINE: usize = 3;

/// A word and its ids. Four numbers are copied out at once, of which `count` are ids.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(32))]
struct Slot {
    key: Key,
    ids: [u32; INLINE],
    /// How many ids; 0: the slot is free; more than three: `ids` says where in `long` they stand.
    count: u32,
}

/// No word has the key of a free slot: a word that is there has bytes from the first on.
const FREE: Slot = Slot { key: Key { low: 0, high: 1 }, ids: [0; INLINE], count: 0 };

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
    /// Slots that are taken.
    taken: usize,
    /// The ids of words of more than three pieces.
    long: Vec<u32>,
}

/// The most lines: 32 MiB of them.
const MOST_LINES: usize = 1 << 19;

/// Where `long` starts anew, in numbers: 16 MiB of them.
const MOST_LONG: usize = 1 << 22;

/// The bytes that a table never takes more than.
pub(super) const MOST_BYTES: usize = MOST_LINES * size_of::<Line>() + MOST_LONG * size_of::<u32>();

impl Table {
    /// A table for a vocabulary of `n` words: two slots for each or more, at least 4,096 lines.
    pub fn new(n: usize) -> Table {
        Table::of_lines(n.next_power_of_two().clamp(1 << 12, MOST_LINES))
    }

    fn of_lines(lines: usize) -> Table {
        Table { lines: vec![Line([FREE; 2]); lines], shift: 64 - lines.trailing_zeros(), taken: 0, long: Vec::new() }
    }

    #[inline(always)]
    fn line(&self, key: Key) -> usize {
        (key.hash() >> self.shift) as usize
    }

    /// Looks up the words `text[starts[i]..ends[i]]` in order, up to the first that is not there. Writes the ids to `out`
    /// and the number of each word's ids to `counts`; returns how many words, and how many ids.
    ///
    /// # Safety
    ///
    /// Words lie in `text`, behind which 16 bytes can be read; `starts`, `ends` and `counts` have one length;
    /// [`KEY_BYTES`] numbers for each word, and four more, can be written at `out`.
    pub unsafe fn look_up(
        &self,
        text: *const u8,
        starts: &[u32],
        ends: &[u32],
        counts: &mut [u32],
        out: *mut u32,
    ) -> (usize, usize) {
        let mut keys = [Key { low: 0, high: 0 }; GROUP];
        let mut lines = [std::ptr::null::<Line>(); GROUP];
        let (mut done, mut written) = (0, 0);
        while done < starts.len() {
            let n = (starts.len() - done).min(GROUP);
            // SAFETY: all indices are below the common length; the caller allows to read and to write.
            unsafe {
                // First all keys of a group, so that the memory brings their lines while the next keys are read.
                for i in 0..n {
                    let start = *starts.get_unchecked(done + i);
                    let len = ends.get_unchecked(done + i).wrapping_sub(start);
                    let key = Key::read(text.add(start as usize), len as usize);
                    let line = self.lines.as_ptr().add(self.line(key));
                    prefetch(line);
                    keys[i] = key;
                    lines[i] = line;
                }
                for i in 0..n {
                    let Line(slots) = &*lines[i];
                    // Which of the two slots it is cannot be guessed: chosen by arithmetic.
                    let is_first = slots[0].key.is(keys[i]);
                    let slot = slots.get_unchecked(usize::from(!is_first));
                    let there = is_first | slots[1].key.is(keys[i]);
                    if !there {
                        return (done + i, written);
                    }
                    if slot.count as usize <= INLINE {
                        // Three numbers, of which `count` are ids: no branch on how many.
                        out.add(written).cast::<[u32; INLINE]>().write_unaligned(slot.ids);
                    } else {
                        let ids = self.long_ids(slot);
                        out.add(written).copy_from_nonoverlapping(ids.as_ptr(), ids.len());
                    }
                    *counts.get_unchecked_mut(done + i) = slot.count;
                    written += slot.count as usize;
                }
            }
            done += n;
        }
        (done, written)
    }

    /// The ids of a slot whose word has more than three.
    #[inline]
    fn long_ids(&self, slot: &Slot) -> &[u32] {
        let start = slot.ids[0] as usize;
        &self.long[start..start + slot.count as usize]
    }

    /// Puts a word of the vocabulary in; the first to come has the slot. Words come in the order of their ids, which in
    /// vocabularies that were learned is that of their frequency.
    pub fn fill(&mut self, key: Key, id: u32) {
        let line = self.line(key);
        if let Some(free) = self.lines[line].0.iter_mut().find(|slot| slot.count == 0) {
            *free = Slot { key, ids: [id, 0, 0], count: 1 };
            self.taken += 1;
        }
    }

    /// Remembers the ids of a word that is not there.
    pub fn remember(&mut self, key: Key, ids: &[u32]) {
        if self.taken > self.lines.len() && self.lines.len() < MOST_LINES {
            self.grow();
        }
        let mut slot = Slot { key, ids: [0; INLINE], count: ids.len() as u32 };
        if ids.len() <= INLINE {
            slot.ids[..ids.len()].copy_from_slice(ids);
        } else {
            if self.long.len() + ids.len() > MOST_LONG {
                self.forget_long();
            }
            slot.ids[0] = self.long.len() as u32;
            self.long.extend_from_slice(ids);
        }
        self.put(slot);
    }

    /// Puts a slot into its line. Where both are taken the second gives way: what is forgotten is worked out again.
    fn put(&mut self, slot: Slot) {
        let line = self.line(slot.key);
        let Line([first, second]) = &mut self.lines[line];
        self.taken += usize::from(first.count == 0 || second.count == 0);
        *(if first.count == 0 { first } else { second }) = slot;
    }

    /// Doubles the lines.
    fn grow(&mut self) {
        let mut grown = Table::of_lines(2 * self.lines.len());
        grown.long = std::mem::take(&mut self.long);
        for line in &self.lines {
            line.0.iter().filter(|slot| slot.count > 0).for_each(|slot| grown.put(*slot));
        }
        *self = grown;
    }

    /// Frees the slots of all words of more than three pieces.
    fn forget_long(&mut self) {
        for slot in self.lines.iter_mut().flat_map(|line| &mut line.0) {
            if slot.count as usize > INLINE {
                *slot = FREE;
                self.taken -= 1;
            }
        }
        self.long.clear();
    }
}
