//! The part of a file that is in memory: read but not yet taken.

use std::io::{self, Read};

/// Bytes asked for at a time, and the memory that a reader keeps between texts.
const READ_BYTES: usize = 1 << 20;

/// Bytes of a file between what was taken and what was not read yet.
#[derive(Debug, Default)]
pub(super) struct Window {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Where `start` stands in the file.
    offset: u64,
}

impl Window {
    /// What was read and not taken.
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Where these bytes begin in the file.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Marks the first `n` bytes as taken.
    pub fn take(&mut self, n: usize) {
        self.start += n;
        self.offset += n as u64;
    }

    /// Forgets everything, for the next file.
    pub fn clear(&mut self) {
        (self.start, self.end, self.offset) = (0, 0, 0);
    }

    /// Reads more; returns the number of bytes, 0 at the end of the file.
    pub fn fill(&mut self, file: &mut dyn Read) -> io::Result<usize> {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        if self.end == self.buffer.len() {
            // A text longer than the window: it grows by half, so that a long one is not copied again and again.
            let size = (self.end + self.end / 2).max(READ_BYTES);
            self.buffer.resize(size, 0);
        } else if self.buffer.len() > 4 * READ_BYTES && self.end < READ_BYTES {
            // The long text is gone, and with it the reason for so much memory.
            self.buffer.truncate(READ_BYTES);
            self.buffer.shrink_to_fit();
        }
        let room = (self.end + READ_BYTES).min(self.buffer.len());
        loop {
            match file.read(&mut self.buffer[self.end..room]) {
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
