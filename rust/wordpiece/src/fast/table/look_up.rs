//! The loop that looks up the words of a text.
//!
//! Words are handled in groups of 16. While the values of one group are copied out, the keys of the next have been read
//! and its lines requested from memory, so that the latency of a cache miss overlaps with work. A value is copied as 16
//! bytes whatever the number of its ids, without a branch on that number.
//!
//! The loop is generic over [`Primitives`] and always inlined: `dispatch` compiles it for each instruction set.

use super::store::WordTable;
use crate::fast::key::{GROUP, KeyGroup, WordKey};
use crate::fast::line::{INLINE_IDS, LineValue, STORED};
use crate::fast::primitives::Primitives;
use wordpiece_parallel::prefetch;

/// The words of a text, by where they begin and end.
#[derive(Debug, Clone, Copy)]
pub(in crate::fast) struct WordRanges<'a> {
    text: &'a [u8],
    /// Start of each word in `text` in bytes, then [`GROUP`] zeros.
    starts: &'a [u32],
    /// End of each word in `text` in bytes, then [`GROUP`] zeros.
    ends: &'a [u32],
    /// Number of words.
    len: usize,
}

/// Number of bytes that `text` must have after its last word: keys are read 16 bytes at a time.
const SLACK: usize = 16;

impl<'a> WordRanges<'a> {
    /// Wraps the words `text[starts[i]..ends[i]]`. Both lists must end with [`GROUP`] zeros, which are not words: they
    /// let the loop read complete groups.
    ///
    /// # Panics
    ///
    /// If the lists differ in length, or are too short to end with a group of zeros.
    ///
    /// # Safety
    ///
    /// Words must not be empty, must not overlap and must be in the order of the text, and `text` must have 16 more
    /// bytes after the last one (and 16 in all, if there is none).
    pub unsafe fn new(text: &'a [u8], starts: &'a [u32], ends: &'a [u32]) -> WordRanges<'a> {
        assert!(starts.len() == ends.len() && starts.len() >= GROUP && text.len() >= SLACK);
        let len = starts.len() - GROUP;
        debug_assert!(starts[..len].iter().zip(ends).all(|(start, end)| start < end));
        debug_assert!(starts[..len].iter().skip(1).zip(ends).all(|(start, end)| start >= end));
        debug_assert!(ends[..len].last().is_none_or(|&end| end as usize + SLACK <= text.len()));
        debug_assert!(starts[len..].iter().chain(&ends[len..]).all(|&zero| zero == 0));
        WordRanges { text, starts, ends, len }
    }

    fn word(&self, i: usize) -> &'a [u8] {
        &self.text[self.starts[i] as usize..self.ends[i] as usize]
    }

    /// Returns the numbers of a group of words, the first of which is word `from`.
    #[inline(always)]
    fn group(list: &[u32], from: usize) -> &[u32; GROUP] {
        list[from..from + GROUP].try_into().expect("zeros follow the last word")
    }
}

/// The outputs of a lookup.
#[derive(Debug)]
pub(in crate::fast) struct LookupOutput<'a> {
    /// The ids of all words are appended here.
    pub ids: &'a mut Vec<u32>,
    /// Replaced by the number of ids of each word, if `count`.
    pub counts: &'a mut Vec<u32>,
    /// Whether `counts` is written.
    pub count: bool,
}

/// Appends the ids of a word that its own line of the table does not hold, and may add it to the table.
pub(in crate::fast) type MissHandler<'a> = dyn FnMut(&mut WordTable, &[u8], WordKey, &mut Vec<u32>) + 'a;

/// Looks up all words, in order.
///
/// # Safety
///
/// The CPU must have the instructions of `P`.
#[inline(always)]
pub(in crate::fast) unsafe fn look_up_with<P: Primitives>(
    primitives: P,
    table: &mut WordTable,
    words: WordRanges<'_>,
    output: LookupOutput<'_>,
    miss: &mut MissHandler<'_>,
) {
    // SAFETY: the CPU has the instructions of `P`, by the contract.
    unsafe {
        match output.count {
            true => look_up::<P, true>(primitives, table, words, output, miss),
            false => look_up::<P, false>(primitives, table, words, output, miss),
        }
    }
}

/// Reads the keys of the group of words that begins with word `from`, and prefetches their lines.
///
/// # Safety
///
/// The CPU must have the instructions of `P`.
#[inline(always)]
unsafe fn read_group<P: Primitives>(
    primitives: P,
    words: WordRanges<'_>,
    from: usize,
    table: &WordTable,
    group: &mut KeyGroup,
) {
    let (starts, ends) = (WordRanges::group(words.starts, from), WordRanges::group(words.ends, from));
    // SAFETY: the CPU has the instructions of `P`, by the contract. By the contract of `WordRanges::new`, the text has
    // 16 bytes after its last word, hence 16 from the start of each word, and 16 from byte 0, where the zeros point.
    let long = unsafe { primitives.keys(words.text.as_ptr(), starts, ends, table.hash, group) };
    if long != 0 {
        group.read_long(long, words.text, starts, ends, table.hash);
    }
    let lines = table.lines.as_ptr();
    for &offset in &group.line_offsets {
        prefetch(lines.wrapping_byte_add(offset as usize));
    }
}

/// Appends the ids of a word that cannot be copied out of its line: they are in the store, or the word is not there.
///
/// A function by itself, because such words are few and the loop should stay small.
#[cold]
#[inline(never)]
fn append_uncommon(
    value: Option<LineValue>,
    word: &[u8],
    key: WordKey,
    table: &mut WordTable,
    ids: &mut Vec<u32>,
    miss: &mut MissHandler<'_>,
) {
    match value.filter(|value| value.count == STORED).and_then(|value| table.stored(&value, word)) {
        Some(stored) => ids.extend_from_slice(stored),
        None => miss(table, word, key, ids),
    }
}

/// # Safety
///
/// The CPU must have the instructions of `P`.
#[inline(always)]
unsafe fn look_up<P: Primitives, const COUNT: bool>(
    primitives: P,
    table: &mut WordTable,
    words: WordRanges<'_>,
    LookupOutput { ids, counts, .. }: LookupOutput<'_>,
    miss: &mut MissHandler<'_>,
) {
    // A value has no more ids than its word has bytes, and words do not overlap. Four more, as values are copied whole.
    ids.reserve(words.text.len() + 4);
    if COUNT {
        counts.clear();
        counts.reserve(words.len);
    }
    let mut hash = table.hash;
    let mut groups = [KeyGroup::EMPTY; 2];
    // SAFETY: the CPU has the instructions of `P`, by the contract.
    unsafe { read_group(primitives, words, 0, table, &mut groups[0]) };
    let (mut from, mut current) = (0, 0);
    while from < words.len {
        if from + GROUP < words.len {
            // SAFETY: the CPU has the instructions of `P`, by the contract.
            unsafe { read_group(primitives, words, from + GROUP, table, &mut groups[1 - current]) };
        }
        let n = GROUP.min(words.len - from);
        let mut i = 0;
        while i < n {
            // SAFETY: the CPU has the instructions of `P`, by the contract; `hash` numbered the lines of the group, and
            // is the hash of the table. `ids` has room for an id for each byte of the words to come, and four more: it
            // was reserved above, and again below where the handler may have used more. `counts` has room for all
            // words, of which this group has `n` from `from` on.
            let stopped = unsafe {
                let counts = COUNT.then(|| counts.as_mut_ptr().add(from));
                copy_values(primitives, table, &groups[current], i..n, ids, counts)
            };
            let Some((at, value)) = stopped else { break };
            let before = ids.len();
            append_uncommon(value, words.word(from + at), groups[current].keys[at], table, ids, miss);
            // Whatever the handler appended: room for the words after this one.
            ids.reserve(words.text.len() - words.ends[from + at] as usize + 4);
            if COUNT {
                // SAFETY: `from + at < words.len`, and `counts` has room for as many numbers.
                unsafe { counts.as_mut_ptr().add(from + at).write((ids.len() - before) as u32) };
            }
            if table.hash != hash {
                hash = table.hash;
                groups.iter_mut().for_each(|group| group.rehash(hash));
            }
            i = at + 1;
        }
        current = 1 - current;
        from += GROUP;
    }
    if COUNT {
        // SAFETY: the loop above wrote the count of each of the `words.len` words, in `copy_values` or after it
        // stopped.
        unsafe { counts.set_len(words.len) };
    }
}

/// Copies out the ids of the words `range` of a group. Stops at the first word that its line does not hold with all its
/// ids; returns its number in the group, and its value if there is one.
///
/// # Safety
///
/// The CPU must have the instructions of `P`. The line offsets of the group must be offsets of this table. `ids` must
/// have room for all ids of the words, and three more; `counts`, if given, for a number for each word of the group.
#[inline(always)]
unsafe fn copy_values<P: Primitives>(
    primitives: P,
    table: &WordTable,
    group: &KeyGroup,
    range: std::ops::Range<usize>,
    ids: &mut Vec<u32>,
    counts: Option<*mut u32>,
) -> Option<(usize, Option<LineValue>)> {
    debug_assert!(range.end <= GROUP);
    let lines = table.lines.as_ptr();
    // SAFETY: `i` is less than 16, the length of the arrays of a group. A line offset of this table points to one of
    // its lines, and `find` returns the offset of a value in it (or 0, which is in the line as well: what is read there
    // is not used). The first `count` of the four numbers copied to `out` are ids, for which there is room, and three
    // more.
    unsafe {
        let start = ids.as_mut_ptr();
        let mut out = start.add(ids.len());
        let mut stopped = None;
        for i in range {
            let line = lines.byte_add(*group.line_offsets.get_unchecked(i) as usize);
            let at = primitives.find(&(*line).keys, group.keys.get_unchecked(i));
            let value = line.byte_add(at).cast::<LineValue>();
            let count = (*value).count;
            if at == 0 || count > INLINE_IDS as u8 {
                stopped = Some((i, (at != 0).then(|| *value)));
                break;
            }
            out.cast::<[u32; 4]>().write_unaligned(value.cast::<[u32; 4]>().read());
            if let Some(counts) = counts {
                counts.add(i).write(count.into());
            }
            out = out.add(count as usize);
        }
        ids.set_len(out.offset_from_unsigned(start));
        debug_assert!(ids.len() < ids.capacity(), "no more ids than bytes");
        stopped
    }
}
