//! The bytes of a file that have been read but not yet been consumed.

use std::io::{self, Read};

/// Bytes requested from the file at a time, and the capacity that is kept between texts.
const READ_BYTES: usize = 1 << 20;

/// A sliding range of a file: filled at its end, consumed at its start.
///
/// Capacity follows the longest unconsumed text: it grows by half when the buffer is full, and returns to
/// [`READ_BYTES`] once a long text has been consumed. Filling moves the unconsumed bytes to the front, so each byte is
/// moved at most once per fill; growing by half keeps the total linear in the length of a text.
#[derive(Debug, Default)]
pub(super) struct ReadBuffer {
    buffer: Vec<u8>,
    /// The unconsumed bytes are `buffer[start..end]`.
    start: usize,
    end: usize,
    /// The position of `start` in the (decompressed) file.
    offset: u64,
}

impl ReadBuffer {
    /// Returns the bytes that have been read but not consumed.
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Returns the byte offset of [`bytes`](ReadBuffer::bytes) in the file.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Consumes the first `n` bytes.
    pub fn consume(&mut self, n: usize) {
        self.start += n;
        self.offset += n as u64;
    }

    /// Discards all bytes and sets the offset to 0, ready for the next file.
    pub fn clear(&mut self) {
        (self.start, self.end, self.offset) = (0, 0, 0);
    }

    /// Reads once from `file`; returns the number of bytes, 0 at the end of the file. Interrupted reads are repeated.
    pub fn fill(&mut self, file: &mut dyn Read) -> io::Result<usize> {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        if self.end == self.buffer.len() {
            // A text is longer than the buffer. Growing by half avoids copying a long one again and again.
            let size = (self.end + self.end / 2).max(READ_BYTES);
            self.buffer.resize(size, 0);
        } else if self.buffer.len() > 4 * READ_BYTES && self.end < READ_BYTES {
            // The long text has been consumed: release its memory.
            self.buffer.truncate(READ_BYTES);
            self.buffer.shrink_to_fit();
        }
        let limit = (self.end + READ_BYTES).min(self.buffer.len());
        loop {
            match file.read(&mut self.buffer[self.end..limit]) {
                Ok(n) => {
                    self.end += n;
                    return Ok(n);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}
