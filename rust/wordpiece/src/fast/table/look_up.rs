//! The loop over words.

use super::{GROUP, Group, INLINE, Key, STORED, Table, Value};
use crate::fast::arch::Isa;
use crate::memory::prefetch;

/// Words of a text, by where they begin and end.
#[derive(Debug, Clone, Copy)]
pub(in crate::fast) struct Words<'a> {
    text: &'a [u8],
    starts: &'a [u32],
    ends: &'a [u32],
    len: usize,
}

/// Bytes behind the last word that a text for look-ups must have: keys are read 16 bytes at a time.
const SLACK: usize = 16;

impl<'a> Words<'a> {
    /// Takes all words but the last 16: both lists end with so many zeros, so that whole groups can be read.
    ///
    /// # Safety
    ///
    /// Words lie in the text, in order, and behind the last one the text has 16 bytes more.
    pub unsafe fn new(text: &'a [u8], starts: &'a [u32], ends: &'a [u32]) -> Words<'a> {
        assert!(starts.len() == ends.len() && starts.len() >= GROUP);
        let len = starts.len() - GROUP;
        debug_assert!(starts[..len].iter().zip(ends).all(|(start, end)| start <= end));
        debug_assert!(ends[..len].iter().all(|&end| end as usize + SLACK <= text.len()));
        Words { text, starts, ends, len }
    }

    fn word(&self, i: usize) -> &'a [u8] {
        &self.text[self.starts[i] as usize..self.ends[i] as usize]
    }

    /// Sixteen numbers of a list, from a word of the text on.
    #[inline(always)]
    fn sixteen(list: &[u32], from: usize) -> &[u32; GROUP] {
        list[from..from + GROUP].try_into().expect("zeros follow the last word")
    }
}

/// Where the ids of words go, and, if `count`, the number of each word's ids.
#[derive(Debug)]
pub(in crate::fast) struct Found<'a> {
    pub ids: &'a mut Vec<u32>,
    pub counts: &'a mut Vec<u32>,
    pub count: bool,
}

/// Appends the ids of a word that is not in its line.
pub(in crate::fast) type Miss<'a> = dyn FnMut(&mut Table, &[u8], Key, &mut Vec<u32>) + 'a;

/// Looks all words up. Inlined into a function of each instruction set, so that its intrinsics are.
///
/// # Safety
///
/// The CPU is that of `isa`.
#[inline(always)]
pub(in crate::fast) unsafe fn look_up_with<I: Isa>(
    isa: I,
    table: &mut Table,
    words: Words<'_>,
    found: Found<'_>,
    miss: &mut Miss<'_>,
) {
    // SAFETY: the caller's.
    unsafe {
        match found.count {
            true => look_up::<I, true>(isa, table, words, found, miss),
            false => look_up::<I, false>(isa, table, words, found, miss),
        }
    }
}

/// Reads the keys of sixteen words, and asks for their lines.
///
/// # Safety
///
/// As for [`look_up_with`].
#[inline(always)]
unsafe fn read<I: Isa>(isa: I, words: Words<'_>, from: usize, table: &Table, group: &mut Group) {
    let (starts, ends) = (Words::sixteen(words.starts, from), Words::sixteen(words.ends, from));
    // SAFETY: the caller has the CPU; words lie in the text with 16 bytes behind the last.
    unsafe { group.read(isa, words.text, starts, ends, table.place) };
    let lines = table.lines.as_ptr();
    for &at in &group.lines {
        prefetch(lines.wrapping_byte_add(at as usize));
    }
}

/// Appends the ids of a word that its line does not tell.
///
/// A function of its own, because words that are new or long are few, and the loop is to stay small.
#[cold]
#[inline(never)]
fn look_further(
    value: Option<Value>,
    word: &[u8],
    key: Key,
    table: &mut Table,
    ids: &mut Vec<u32>,
    miss: &mut Miss<'_>,
) {
    match value.filter(|value| value.count == STORED).and_then(|value| table.stored(&value, word)) {
        Some(stored) => ids.extend_from_slice(stored),
        None => miss(table, word, key, ids),
    }
}

/// # Safety
///
/// As for [`look_up_with`].
#[inline(always)]
unsafe fn look_up<I: Isa, const COUNT: bool>(
    isa: I,
    table: &mut Table,
    words: Words<'_>,
    Found { ids, counts, .. }: Found<'_>,
    miss: &mut Miss<'_>,
) {
    // A piece takes a byte of the text or more, so there are no more ids than bytes; a value is copied out whole.
    ids.reserve(words.text.len() + 4);
    if COUNT {
        counts.clear();
        counts.reserve(words.len);
    }
    let mut place = table.place;
    let mut groups = [Group::EMPTY; 2];
    // SAFETY: the caller's.
    unsafe { read(isa, words, 0, table, &mut groups[0]) };
    let (mut from, mut current) = (0, 0);
    while from < words.len {
        // The memory brings the lines of the next group while those of this one are read.
        if from + GROUP < words.len {
            // SAFETY: the caller's.
            unsafe { read(isa, words, from + GROUP, table, &mut groups[1 - current]) };
        }
        let n = GROUP.min(words.len - from);
        let mut i = 0;
        while i < n {
            // SAFETY: the groups hold the places of lines of this table; there is room for the ids of all words and for
            // what is copied beyond, and for a count for each word.
            let stopped = unsafe {
                let counts = COUNT.then(|| counts.as_mut_ptr().add(from));
                copy_out(isa, table, &groups[current], i, n, ids, counts)
            };
            let Some((at, value)) = stopped else { break };
            let before = ids.len();
            look_further(value, words.word(from + at), groups[current].keys[at], table, ids, miss);
            if COUNT {
                // SAFETY: as above.
                unsafe { counts.as_mut_ptr().add(from + at).write((ids.len() - before) as u32) };
            }
            if table.place != place {
                place = table.place;
                groups.iter_mut().for_each(|group| group.place_again(place));
            }
            i = at + 1;
        }
        current = 1 - current;
        from += GROUP;
    }
    if COUNT {
        // SAFETY: so many were written.
        unsafe { counts.set_len(words.len) };
    }
}

/// Copies out the ids of the words `i..n` of a group, up to one whose line does not tell them: its number, and the value
/// that stands for it, if there is one.
///
/// # Safety
///
/// The CPU is that of `isa`; the lines of the group are of this table; `ids` has room for all ids, and three more; `counts`,
/// where given, for a number for each word of the group.
#[inline(always)]
unsafe fn copy_out<I: Isa>(
    isa: I,
    table: &Table,
    group: &Group,
    i: usize,
    n: usize,
    ids: &mut Vec<u32>,
    counts: Option<*mut u32>,
) -> Option<(usize, Option<Value>)> {
    let lines = table.lines.as_ptr();
    // SAFETY: the caller's; `find` says where in a line a value stands.
    unsafe {
        let start = ids.as_mut_ptr();
        let mut out = start.add(ids.len());
        let mut stopped = None;
        for i in i..n {
            let line = lines.byte_add(*group.lines.get_unchecked(i) as usize);
            let at = isa.find(&(*line).keys, group.keys.get_unchecked(i));
            let value = line.byte_add(at).cast::<Value>();
            let count = (*value).count;
            if at == 0 || count > INLINE as u8 {
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
