//! The normalized text of a chunk, where its words begin and end, and where its bytes come from.
//!
//! Invariants:
//! - `ends` is as long as `starts`, or one shorter if a word is open (has begun and not ended);
//! - words are not empty, do not overlap, and are in the order of the text;
//! - if `aligned`, `origin_starts` and `origin_ends` are as long as `text`; else they are empty;
//! - positions are `u32`: whoever appends ensures that the text stays below [`MAX_LEN`], which
//!   [`FastNormalizer`](super::normalizer::FastNormalizer) does for all.
//!
//! The text is valid UTF-8: complete characters are copied from a `str` or encoded from a `char`.
//!
//! # Example
//!
//! From `Héé, x!` with accents stripped come the text `hee, x!`, words at 0..3, 3..4, 5..6 and 6..7, and origins in
//! bytes of the original: 0..1, 1..3, 3..5, 5..6, 6..7, 7..8 and 8..9. Spaces stay in the text, between words.

use crate::offsets::Span;

/// A normalized text and the bounds of its words: the output of normalizing and the input of matching.
///
/// Everything is a flat list with spare capacity after its end, so that a scan can write complete blocks without
/// checks.
#[derive(Debug, Default)]
pub(super) struct NormalizedBuffer {
    /// Normalized bytes.
    text: Vec<u8>,
    /// Where words begin, in bytes of `text`.
    starts: Vec<u32>,
    /// Where words end, in bytes of `text`.
    ends: Vec<u32>,
    /// For each byte of `text`, the first byte of the original that it comes from.
    origin_starts: Vec<u32>,
    /// For each byte of `text`, the end of the original bytes that it comes from.
    origin_ends: Vec<u32>,
    /// Whether a word has begun and not ended.
    pub open: bool,
    /// Whether origins are recorded.
    pub aligned: bool,
    /// The byte of the original text that comes next.
    pub origin: u32,
}

/// Where words begin and end, in bytes of a normalized text. Both lists are equally long, unless a last word is open.
///
/// Unsafe code relies on words that are not empty, do not overlap, and are in order.
#[derive(Debug, Default)]
pub(super) struct WordBounds {
    pub starts: Vec<u32>,
    pub ends: Vec<u32>,
}

impl WordBounds {
    /// Appends `N` zeros to both lists.
    #[inline]
    pub fn pad<const N: usize>(&mut self) {
        self.starts.extend_from_slice(&[0; N]);
        self.ends.extend_from_slice(&[0; N]);
    }

    /// Removes all but the first `n` of both lists.
    pub fn truncate(&mut self, n: usize) {
        self.starts.truncate(n);
        self.ends.truncate(n);
    }

    /// Removes all words.
    pub fn clear(&mut self) {
        self.truncate(0);
    }

    /// Returns the size of the memory that the lists hold, in bytes.
    pub fn capacity_bytes(&self) -> usize {
        4 * (self.starts.capacity() + self.ends.capacity())
    }
}

/// The spare capacity that the next blocks are written to: a pointer to the end of each list.
pub(super) struct SpareCapacity {
    /// For normalized bytes.
    pub text: *mut u8,
    /// For starts of words.
    pub starts: *mut u32,
    /// For ends of words.
    pub ends: *mut u32,
    /// For first bytes of origins; only valid if the buffer is aligned.
    pub origin_starts: *mut u32,
    /// For ends of origins; only valid if the buffer is aligned.
    pub origin_ends: *mut u32,
    /// Length of the text so far, in bytes.
    pub base: u32,
}

/// Number of bytes that can be read past the end of the text (a word is read as a key of 16 bytes, whatever its
/// length), and of elements of each list that can be written past the requested capacity.
pub(super) const SLACK: usize = 64;

/// The longest text in bytes whose positions fit into `u32`.
pub(super) const MAX_LEN: usize = u32::MAX as usize - SLACK;

impl NormalizedBuffer {
    /// Empties the buffer; `origin` is the position in the original of the byte that comes next.
    pub fn reset(&mut self, aligned: bool, origin: u32) {
        self.text.clear();
        self.starts.clear();
        self.ends.clear();
        self.origin_starts.clear();
        self.origin_ends.clear();
        self.open = false;
        self.aligned = aligned;
        self.origin = origin;
    }

    /// Returns the size of the memory that the lists hold, in bytes.
    pub fn capacity_bytes(&self) -> usize {
        let NormalizedBuffer { text, starts, ends, origin_starts, origin_ends, .. } = self;
        let numbers = starts.capacity() + ends.capacity() + origin_starts.capacity() + origin_ends.capacity();
        text.capacity() + 4 * numbers
    }

    /// Returns the normalized text so far.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// Returns the normalized text so far, as a text.
    pub fn text_str(&self) -> &str {
        // SAFETY: the buffer holds complete characters, copied from a `str` or encoded from a `char`: see the invariants.
        unsafe { std::str::from_utf8_unchecked(&self.text) }
    }

    /// Returns the text and [`SLACK`] bytes after it, whose values are arbitrary.
    pub fn text_with_slack(&mut self) -> &[u8] {
        let n = self.text.len();
        self.text.resize(n + SLACK, 0);
        self.text.truncate(n);
        // SAFETY: `resize` has initialised the bytes after the end, and `truncate` keeps them and the capacity.
        unsafe { std::slice::from_raw_parts(self.text.as_ptr(), n + SLACK) }
    }

    /// Returns where words begin.
    pub fn starts(&self) -> &[u32] {
        &self.starts
    }

    /// Returns where words end; an open word has no end yet.
    pub fn ends(&self) -> &[u32] {
        &self.ends
    }

    /// Moves the lists of words out, so that they can be changed while the text is borrowed.
    pub fn take_words(&mut self) -> WordBounds {
        WordBounds { starts: std::mem::take(&mut self.starts), ends: std::mem::take(&mut self.ends) }
    }

    /// Puts the lists of words back.
    pub fn put_words_back(&mut self, words: WordBounds) {
        (self.starts, self.ends) = (words.starts, words.ends);
    }

    /// Returns the lengths of the lists, for [`NormalizedBuffer::restore`].
    pub fn lengths(&self) -> [usize; 4] {
        [self.text.len(), self.starts.len(), self.ends.len(), self.origin_starts.len()]
    }

    /// Removes what was appended after [`NormalizedBuffer::lengths`] was called; no word is open then.
    pub fn restore(&mut self, [text, starts, ends, origins]: [usize; 4]) {
        self.text.truncate(text);
        self.starts.truncate(starts);
        self.ends.truncate(ends);
        self.origin_starts.truncate(origins);
        self.origin_ends.truncate(origins);
        self.open = false;
    }

    /// Returns the bytes of the original that `text[start..end]` comes from; 0 and 0 if origins are not recorded.
    #[inline]
    pub fn span(&self, start: usize, end: usize) -> Span {
        match self.aligned {
            true => Span { start: self.origin_starts[start], end: self.origin_ends[end - 1] },
            false => Span { start: 0, end: 0 },
        }
    }

    /// Returns the same as [`NormalizedBuffer::span`] of a buffer that records origins, without bounds checks.
    ///
    /// # Safety
    ///
    /// The buffer must be aligned, and `start < end <= text.len()`.
    #[inline(always)]
    pub unsafe fn span_unchecked(&self, start: usize, end: usize) -> Span {
        debug_assert!(self.aligned && start < end && end <= self.text.len());
        // SAFETY: by the contract both indices are less than the length of the text, and both lists are as long.
        unsafe {
            Span { start: *self.origin_starts.get_unchecked(start), end: *self.origin_ends.get_unchecked(end - 1) }
        }
    }

    /// Reserves capacity for `n` more elements of each list and [`SLACK`] after them.
    #[inline]
    pub fn spare_capacity(&mut self, n: usize) -> SpareCapacity {
        self.text.reserve(n + SLACK);
        self.starts.reserve(n + SLACK);
        self.ends.reserve(n + SLACK);
        if self.aligned {
            self.origin_starts.reserve(n + SLACK);
            self.origin_ends.reserve(n + SLACK);
        }
        let at = self.text.len();
        // SAFETY: the length of a list is at most its capacity, so each pointer is inside its allocation or at its end.
        unsafe {
            SpareCapacity {
                text: self.text.as_mut_ptr().add(at),
                starts: self.starts.as_mut_ptr().add(self.starts.len()),
                ends: self.ends.as_mut_ptr().add(self.ends.len()),
                origin_starts: self.origin_starts.as_mut_ptr().add(self.origin_starts.len()),
                origin_ends: self.origin_ends.as_mut_ptr().add(self.origin_ends.len()),
                base: at as u32,
            }
        }
    }

    /// Appends what was written into the spare capacity: `bytes` bytes (and their origins, if the buffer is aligned),
    /// for which `consumed` bytes of the original were read, and starts and ends of words.
    ///
    /// # Safety
    ///
    /// These elements must have been initialised after the end of each list, inside the capacity reserved by
    /// [`NormalizedBuffer::spare_capacity`].
    #[inline]
    pub unsafe fn advance(&mut self, bytes: usize, consumed: u32, starts: usize, ends: usize) {
        // SAFETY: by the contract the new lengths are inside the capacity, and the new elements initialised.
        unsafe {
            self.text.set_len(self.text.len() + bytes);
            self.starts.set_len(self.starts.len() + starts);
            self.ends.set_len(self.ends.len() + ends);
            if self.aligned {
                self.origin_starts.set_len(self.origin_starts.len() + bytes);
                self.origin_ends.set_len(self.origin_ends.len() + bytes);
            }
        }
        self.origin = self.origin.wrapping_add(consumed);
    }

    /// Ends the open word, if there is one.
    #[inline]
    pub fn close(&mut self) {
        if self.open {
            self.end_word();
            self.open = false;
        }
    }

    /// Records that a word ends here.
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

    /// Appends bytes of a word, which come from the next `consumed` bytes of the original. They begin a word if none is
    /// open; no bytes begin none.
    #[cfg(test)]
    pub fn push_in_word(&mut self, bytes: &[u8], consumed: u32) {
        if !bytes.is_empty() {
            self.begin_word();
            self.push(bytes, consumed);
        }
        self.origin += consumed;
    }

    /// Adds the first `len` of a few bytes to the current word, or to a new one, in one store; `consumed` bytes of the text
    /// are behind them.
    #[inline(always)]
    pub fn push_short_in_word<const N: usize>(&mut self, bytes: [u8; N], len: usize, consumed: u32) {
        if len > 0 {
            self.begin_word();
            self.push_short(bytes, len, consumed);
        }
        self.origin += consumed;
    }

    /// Appends the first `len` of eight bytes as a complete word.
    #[inline(always)]
    pub fn push_word(&mut self, bytes: [u8; 8], len: usize, consumed: u32) {
        self.close();
        self.starts.push(self.text.len() as u32);
        self.push_short(bytes, len, consumed);
        self.end_word();
        self.origin += consumed;
    }

    /// Appends a space, which ends the open word and comes from the next `consumed` bytes of the original. Does not
    /// advance `origin`: several normalized characters may come from the same bytes.
    #[inline(always)]
    pub fn push_space(&mut self, consumed: u32) {
        self.close();
        self.push(b" ", consumed);
    }

    #[inline(always)]
    fn push_short<const N: usize>(&mut self, bytes: [u8; N], len: usize, consumed: u32) {
        assert!(len <= N);
        let at = self.text.len();
        if self.text.capacity() - at < N {
            self.text.reserve(1024.max(N));
        }
        // SAFETY: the check above leaves room for all bytes; the first `len ≤ N` of them have been written.
        unsafe {
            self.text.as_mut_ptr().add(at).cast::<[u8; N]>().write_unaligned(bytes);
            self.text.set_len(at + len);
        }
        self.record_origin(consumed);
    }

    #[inline(always)]
    fn push(&mut self, bytes: &[u8], consumed: u32) {
        self.text.extend_from_slice(bytes);
        self.record_origin(consumed);
    }

    /// Records where the bytes appended last come from, if origins are recorded.
    #[inline(always)]
    fn record_origin(&mut self, consumed: u32) {
        if self.aligned {
            self.origin_starts.resize(self.text.len(), self.origin);
            self.origin_ends.resize(self.text.len(), self.origin + consumed);
        }
    }

    /// Removes all closed words and their text; an open word stays and becomes the first.
    pub fn keep_open_word(&mut self) {
        let start = if self.open { self.starts[self.starts.len() - 1] as usize } else { self.text.len() };
        self.text.drain(..start);
        if self.aligned {
            self.origin_starts.drain(..start);
            self.origin_ends.drain(..start);
        }
        self.starts.clear();
        self.ends.clear();
        if self.open {
            self.starts.push(0);
        }
    }
}

#[cfg(test)]
impl PartialEq for NormalizedBuffer {
    fn eq(&self, other: &NormalizedBuffer) -> bool {
        let lists = |it: &NormalizedBuffer| {
            let origins = (it.origin_starts.clone(), it.origin_ends.clone());
            (it.text.clone(), it.starts.clone(), it.ends.clone(), origins)
        };
        lists(self) == lists(other) && (self.open, self.origin) == (other.open, other.origin)
    }
}
