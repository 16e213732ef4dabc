//! The normalized text of a chunk, where its words stand, and where its bytes come from.

use crate::offsets::Span;

/// What a scan writes and the matcher reads.
///
/// Everything is a flat list with room kept free behind it, so that a scan can write a whole block without asking.
#[derive(Debug, Default)]
pub(super) struct Buffer {
    text: Vec<u8>,
    starts: Vec<u32>,
    ends: Vec<u32>,
    from: Vec<u32>,
    to: Vec<u32>,
    /// A word has begun and not ended.
    pub open: bool,
    /// Whether `from` and `to` are kept: for each byte of `text`, the units of the original that it stands for.
    pub aligned: bool,
    /// The unit of the original that comes next.
    pub unit: u32,
}

/// Where the next block may be written.
pub(super) struct Room {
    pub text: *mut u8,
    pub starts: *mut u32,
    pub ends: *mut u32,
    pub from: *mut u32,
    pub to: *mut u32,
    /// The length of the text so far.
    pub base: u32,
}

/// Bytes that may be read behind the end of the text: a word is read as a key of 16 bytes, whatever its length.
pub(super) const SLACK: usize = 64;

impl Buffer {
    /// Empties it; `unit` is that of the next byte.
    pub fn reset(&mut self, aligned: bool, unit: u32) {
        self.text.clear();
        self.starts.clear();
        self.ends.clear();
        self.from.clear();
        self.to.clear();
        self.open = false;
        self.aligned = aligned;
        self.unit = unit;
    }

    /// The memory that the lists hold.
    pub fn capacity_bytes(&self) -> usize {
        let numbers = self.starts.capacity() + self.ends.capacity() + self.from.capacity() + self.to.capacity();
        self.text.capacity() + 4 * numbers
    }

    /// The normalized text so far.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// The text and some bytes behind it, whatever they are: words are read 16 bytes at a time.
    pub fn text_with_slack(&mut self) -> &[u8] {
        let n = self.text.len();
        self.text.resize(n + SLACK, 0);
        self.text.truncate(n);
        // SAFETY: the bytes behind the end have just been written.
        unsafe { std::slice::from_raw_parts(self.text.as_ptr(), n + SLACK) }
    }

    /// Where words begin.
    pub fn starts(&self) -> &[u32] {
        &self.starts
    }

    /// Where they end; a last word that is open has no end yet.
    pub fn ends(&self) -> &[u32] {
        &self.ends
    }

    /// Takes the lists of words out, so that the text can be read beside them.
    pub fn take_words(&mut self) -> (Vec<u32>, Vec<u32>) {
        (std::mem::take(&mut self.starts), std::mem::take(&mut self.ends))
    }

    /// How long the lists are.
    pub fn lengths(&self) -> [usize; 4] {
        [self.text.len(), self.starts.len(), self.ends.len(), self.from.len()]
    }

    /// Takes back what came after; no word is open then.
    pub fn restore(&mut self, [text, starts, ends, units]: [usize; 4]) {
        self.text.truncate(text);
        self.starts.truncate(starts);
        self.ends.truncate(ends);
        self.from.truncate(units);
        self.to.truncate(units);
        self.open = false;
    }

    /// Puts them back.
    pub fn give_words_back(&mut self, starts: Vec<u32>, ends: Vec<u32>) {
        (self.starts, self.ends) = (starts, ends);
    }

    /// The units of the original that `text[start..end]` stands for.
    #[inline]
    pub fn span(&self, start: usize, end: usize) -> (u32, u32) {
        if self.aligned { (self.from[start], self.to[end - 1]) } else { (0, 0) }
    }

    /// As [`Buffer::span`], of a buffer that keeps them.
    ///
    /// # Safety
    ///
    /// It does; and `start < end <= text.len()`.
    #[inline(always)]
    pub unsafe fn span_unchecked(&self, start: usize, end: usize) -> Span {
        debug_assert!(self.aligned && start < end && end <= self.text.len());
        // SAFETY: the caller's; both lists are as long as the text.
        unsafe { Span { start: *self.from.get_unchecked(start), end: *self.to.get_unchecked(end - 1) } }
    }

    /// Makes room for `n` more of everything, and the slack behind.
    #[inline]
    pub fn room(&mut self, n: usize) -> Room {
        self.text.reserve(n + SLACK);
        self.starts.reserve(n + SLACK);
        self.ends.reserve(n + SLACK);
        if self.aligned {
            self.from.reserve(n + SLACK);
            self.to.reserve(n + SLACK);
        }
        let at = self.text.len();
        // SAFETY: each pointer is to the end of a list, inside its capacity.
        unsafe {
            Room {
                text: self.text.as_mut_ptr().add(at),
                starts: self.starts.as_mut_ptr().add(self.starts.len()),
                ends: self.ends.as_mut_ptr().add(self.ends.len()),
                from: self.from.as_mut_ptr().add(self.from.len()),
                to: self.to.as_mut_ptr().add(self.to.len()),
                base: at as u32,
            }
        }
    }

    /// Takes over what was written into the room: bytes, what units of the original they take, starts and ends of words.
    ///
    /// # Safety
    ///
    /// So many were written, and the room was for as many.
    #[inline]
    pub unsafe fn advance(&mut self, bytes: usize, units: u32, starts: usize, ends: usize) {
        // SAFETY: the caller's.
        unsafe {
            self.text.set_len(self.text.len() + bytes);
            self.starts.set_len(self.starts.len() + starts);
            self.ends.set_len(self.ends.len() + ends);
            if self.aligned {
                self.from.set_len(self.from.len() + bytes);
                self.to.set_len(self.to.len() + bytes);
            }
        }
        self.unit = self.unit.wrapping_add(units);
    }

    /// Ends the open word, if there is one.
    #[inline]
    pub fn close(&mut self) {
        if self.open {
            self.end_word();
            self.open = false;
        }
    }

    /// Notes that a word ends here.
    #[inline]
    pub fn end_word(&mut self) {
        self.ends.push(self.text.len() as u32);
    }

    /// Begins a word, unless one is open.
    #[inline(always)]
    fn begin_word(&mut self) {
        if !self.open {
            self.starts.push(self.text.len() as u32);
            self.open = true;
        }
    }

    /// Appends bytes of a word, which stand for the next `units` of the original; they begin one if none is open.
    #[inline(always)]
    pub fn push_in_word(&mut self, bytes: &[u8], units: u32) {
        if !bytes.is_empty() {
            self.begin_word();
            self.push(bytes, units);
        }
        self.unit += units;
    }

    /// As [`Buffer::push_in_word`], of the first `len` of eight bytes: one store, whatever the number.
    #[inline(always)]
    pub fn push_short_in_word(&mut self, bytes: [u8; 8], len: usize, units: u32) {
        if len > 0 {
            self.begin_word();
            self.push_short(bytes, len, units);
        }
        self.unit += units;
    }

    /// Appends the first `len` of eight bytes as a word of its own.
    #[inline(always)]
    pub fn push_word(&mut self, bytes: [u8; 8], len: usize, units: u32) {
        self.close();
        self.starts.push(self.text.len() as u32);
        self.push_short(bytes, len, units);
        self.end_word();
        self.unit += units;
    }

    /// Appends a space, which ends the open word and stands for the next `units` of the original; whoever put it there
    /// moves on.
    #[inline(always)]
    pub fn push_space(&mut self, units: u32) {
        self.close();
        self.push(b" ", units);
    }

    #[inline(always)]
    fn push_short(&mut self, bytes: [u8; 8], len: usize, units: u32) {
        debug_assert!(len <= 8);
        let at = self.text.len();
        if self.text.capacity() - at < 8 {
            self.text.reserve(1024);
        }
        // SAFETY: there is room for eight bytes, of which `len` are taken over.
        unsafe {
            self.text.as_mut_ptr().add(at).cast::<[u8; 8]>().write_unaligned(bytes);
            self.text.set_len(at + len);
        }
        self.align(units);
    }

    #[inline(always)]
    fn push(&mut self, bytes: &[u8], units: u32) {
        self.text.extend_from_slice(bytes);
        self.align(units);
    }

    /// Notes what the bytes appended last stand for.
    #[inline(always)]
    fn align(&mut self, units: u32) {
        if self.aligned {
            self.from.resize(self.text.len(), self.unit);
            self.to.resize(self.text.len(), self.unit + units);
        }
    }

    /// Forgets all closed words; an open one stays, and becomes the first.
    pub fn keep_open_word(&mut self) {
        let start = if self.open { self.starts[self.starts.len() - 1] as usize } else { self.text.len() };
        self.text.drain(..start);
        if self.aligned {
            self.from.drain(..start);
            self.to.drain(..start);
        }
        self.starts.clear();
        self.ends.clear();
        if self.open {
            self.starts.push(0);
        }
    }
}

impl PartialEq for Buffer {
    fn eq(&self, other: &Buffer) -> bool {
        let lists = |it: &Buffer| (it.text.clone(), it.starts.clone(), it.ends.clone(), it.from.clone(), it.to.clone());
        lists(self) == lists(other) && (self.open, self.unit) == (other.open, other.unit)
    }
}
