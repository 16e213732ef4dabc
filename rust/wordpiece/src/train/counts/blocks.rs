//! Text in blocks: a megabyte or so at a time, each ending where a word cannot go on.

use std::io::{ErrorKind, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, Result, TrainingError};
use crate::files::{TextSource, unreadable_file};

/// Bytes of a block; one with a long line in it is longer.
const BLOCK: usize = 1 << 20;

/// Bytes that may stand between two white spaces. What is found in a block is numbered with 32 bits, and normalizing may
/// make text three times as long.
const LONGEST_RUN: usize = 1 << 30;

/// A piece of text and where it comes from.
#[derive(Debug, Clone, Default)]
pub struct Block {
    /// The text, as it was read.
    pub bytes: Vec<u8>,
    /// What messages call the place it comes from.
    pub name: Arc<str>,
    /// The byte of the file with which it begins.
    pub offset: u64,
    /// The lines of the file that end before it.
    pub line: u64,
    /// The texts in it.
    pub texts: u64,
    /// The bytes that were read for it: what is told as done.
    pub size: u64,
    /// The file begins with the byte order mark of UTF-16.
    pub utf16: bool,
}

/// Where blocks come from: files, or texts that a program has.
pub trait Blocks {
    /// Fills `block` with the next piece; false when there is none.
    ///
    /// A block ends at a line feed or where there is no more, unless `lines_may_break`: then any white space of ASCII
    /// may end it. Where a wait for more is interrupted by a signal, `interrupted` is called, and says whether to go on.
    fn next(
        &mut self,
        block: &mut Block,
        lines_may_break: bool,
        interrupted: &mut dyn FnMut() -> Result<()>,
    ) -> Result<bool>;

    /// The bytes that have been read and those that will be in all, where that is known.
    fn progress(&self) -> Option<(u64, u64)> {
        None
    }
}

/// Blocks out of files, one after the other. A byte order mark at the start of one is no part of it.
pub struct Files {
    sources: std::vec::IntoIter<TextSource>,
    /// The bytes on the disk, in all and read so far.
    total: Option<u64>,
    read: Arc<AtomicU64>,
    open: Option<Open>,
}

struct Open {
    name: Arc<str>,
    reader: Box<dyn Read + Send>,
    /// Read, but not yet given out: what stands behind the end of the last block.
    rest: Vec<u8>,
    offset: u64,
    line: u64,
    utf16: bool,
    ended: bool,
}

impl Files {
    /// Reads these files, which take `total` bytes on the disk together.
    pub fn new(sources: Vec<TextSource>, total: Option<u64>) -> Files {
        Files { sources: sources.into_iter(), total, read: Arc::default(), open: None }
    }
}

impl Blocks for Files {
    fn next(
        &mut self,
        block: &mut Block,
        lines_may_break: bool,
        interrupted: &mut dyn FnMut() -> Result<()>,
    ) -> Result<bool> {
        loop {
            if let Some(open) = &mut self.open
                && open.next(block, lines_may_break, interrupted)?
            {
                return Ok(true);
            }
            let Some(source) = self.sources.next() else { return Ok(false) };
            let name: Arc<str> = Arc::from(source.name.as_str());
            let reader = source.open(&self.read).map_err(|error| unreadable_file(&name, &error))?;
            self.open = Some(Open { name, reader, rest: Vec::new(), offset: 0, line: 0, utf16: false, ended: false });
        }
    }

    fn progress(&self) -> Option<(u64, u64)> {
        self.total.map(|total| (self.read.load(Ordering::Relaxed), total))
    }
}

impl Open {
    /// Reads so many bytes, or what there is.
    fn read(&mut self, wanted: usize, bytes: &mut Vec<u8>, interrupted: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        let mut at = bytes.len();
        bytes.resize(at + wanted, 0);
        while at < bytes.len() {
            match self.reader.read(&mut bytes[at..]) {
                Ok(0) => {
                    self.ended = true;
                    break;
                }
                Ok(n) => at += n,
                Err(error) if error.kind() == ErrorKind::Interrupted => interrupted()?,
                Err(error) => return Err(unreadable_file(&self.name, &error)),
            }
        }
        bytes.truncate(at);
        Ok(())
    }

    fn next(
        &mut self,
        block: &mut Block,
        lines_may_break: bool,
        interrupted: &mut dyn FnMut() -> Result<()>,
    ) -> Result<bool> {
        let bytes = &mut block.bytes;
        bytes.clear();
        bytes.append(&mut self.rest);
        let mut looked_at = 0;
        let end = loop {
            if !self.ended {
                self.read(BLOCK.max(2 * bytes.len()) - bytes.len(), bytes, interrupted)?;
            }
            if self.ended {
                break bytes.len();
            }
            let fresh = &bytes[looked_at..];
            if let Some(at) = fresh.iter().rposition(|&byte| byte == b'\n') {
                break looked_at + at + 1;
            }
            if lines_may_break && let Some(at) = fresh.iter().rposition(|byte| matches!(byte, b' ' | b'\t' | b'\r')) {
                break looked_at + at + 1;
            }
            looked_at = bytes.len();
            if looked_at > LONGEST_RUN {
                let (file, line, offset) = (self.name.to_string(), self.line + 1, self.offset);
                return Err(Error::Training(TrainingError::EndlessWord { file, line, offset, limit: LONGEST_RUN }));
            }
        };
        if end == 0 {
            return Ok(false);
        }
        self.rest.extend_from_slice(&bytes[end..]);
        bytes.truncate(end);
        let lines = bytes.iter().filter(|&&byte| byte == b'\n').count() as u64;
        (block.offset, block.line, block.size) = (self.offset, self.line, end as u64);
        block.name = Arc::clone(&self.name);
        // A last line need not be ended.
        block.texts = lines + u64::from(self.ended && self.rest.is_empty() && bytes.last() != Some(&b'\n'));
        self.offset += end as u64;
        self.line += lines;
        if block.offset == 0 {
            self.utf16 = bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff");
            if bytes.starts_with("\u{feff}".as_bytes()) {
                bytes.drain(..3);
                block.offset = 3;
            }
        }
        block.utf16 = self.utf16;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn read(text: &[u8], lines_may_break: bool) -> Vec<Block> {
        let source = TextSource::reader("f", Cursor::new(text.to_vec()));
        let mut files = Files::new(vec![source], None);
        let mut blocks = Vec::new();
        let mut block = Block::default();
        while files.next(&mut block, lines_may_break, &mut || Ok(())).unwrap() {
            blocks.push(block.clone());
        }
        blocks
    }

    #[test]
    fn blocks_end_at_lines_and_know_where_they_stand() {
        let line = "word ".repeat(1 << 16) + "\n";
        let text = format!("\u{feff}{}last", line.repeat(20));
        for lines_may_break in [false, true] {
            let blocks = read(text.as_bytes(), lines_may_break);
            assert!(blocks.len() > 4);
            let together: Vec<u8> = blocks.iter().flat_map(|block| block.bytes.clone()).collect();
            assert_eq!(together, text.as_bytes()[3..]);
            let (mut offset, mut line) = (3, 0);
            for block in &blocks {
                assert_eq!((block.offset, block.line), (offset, line));
                offset += block.bytes.len() as u64;
                line += block.bytes.iter().filter(|&&byte| byte == b'\n').count() as u64;
            }
            assert_eq!(blocks.iter().map(|block| block.texts).sum::<u64>(), 21);
        }
    }

    #[test]
    fn a_long_line_is_one_block_unless_it_may_break() {
        let text = "word ".repeat(1 << 20);
        assert_eq!(read(text.as_bytes(), false).len(), 1);
        let broken = read(text.as_bytes(), true);
        assert!(broken.len() > 3);
        assert_eq!(broken.iter().map(|block| block.texts).sum::<u64>(), 1);
        assert_eq!(read(b"", true).len(), 0);
    }
}
