//! Text in blocks: a megabyte or so at a time, each ending where a word cannot go on.

use std::io::Read;
use std::sync::Arc;

use super::super::TrainingError;
use crate::error::{Error, Result};

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
    /// may end it.
    fn next(&mut self, block: &mut Block, lines_may_break: bool) -> Result<bool>;

    /// The bytes that will come in all, where that is known.
    fn total(&self) -> Option<u64> {
        None
    }
}

/// A file to be read: its name for messages, and how to open it.
pub struct Source<'a> {
    /// What messages call it.
    pub name: String,
    /// Opens it.
    pub open: Box<dyn FnOnce() -> std::io::Result<Box<dyn Read + 'a>> + 'a>,
}

impl<'a> Source<'a> {
    /// The file at a path.
    pub fn path(name: String) -> Source<'a> {
        let path = name.clone();
        Source { name, open: Box::new(move || Ok(Box::new(std::fs::File::open(path)?))) }
    }
}

/// Blocks out of files, one after the other. A byte order mark at the start of one is no part of it.
pub struct Files<'a> {
    sources: std::vec::IntoIter<Source<'a>>,
    total: Option<u64>,
    open: Option<Open<'a>>,
}

struct Open<'a> {
    name: Arc<str>,
    reader: Box<dyn Read + 'a>,
    /// Read, but not yet given out: what stands behind the end of the last block.
    rest: Vec<u8>,
    offset: u64,
    line: u64,
    utf16: bool,
    ended: bool,
}

impl<'a> Files<'a> {
    /// Reads these files, which have `total` bytes together.
    pub fn new(sources: Vec<Source<'a>>, total: Option<u64>) -> Files<'a> {
        Files { sources: sources.into_iter(), total, open: None }
    }
}

impl Blocks for Files<'_> {
    fn next(&mut self, block: &mut Block, lines_may_break: bool) -> Result<bool> {
        loop {
            if let Some(open) = &mut self.open
                && open.next(block, lines_may_break)?
            {
                return Ok(true);
            }
            let Some(source) = self.sources.next() else { return Ok(false) };
            let reader = (source.open)().map_err(|error| refused(&source.name, &error))?;
            let name = Arc::from(source.name);
            self.open = Some(Open { name, reader, rest: Vec::new(), offset: 0, line: 0, utf16: false, ended: false });
        }
    }

    fn total(&self) -> Option<u64> {
        self.total
    }
}

fn refused(name: &str, error: &std::io::Error) -> Error {
    let (file, code, message) = (name.to_owned(), error.raw_os_error(), error.to_string());
    Error::Training(TrainingError::Read { file, code, message })
}

impl Open<'_> {
    fn next(&mut self, block: &mut Block, lines_may_break: bool) -> Result<bool> {
        let bytes = &mut block.bytes;
        bytes.clear();
        bytes.append(&mut self.rest);
        let mut looked_at = 0;
        let end = loop {
            if !self.ended {
                let wanted = (BLOCK.max(2 * bytes.len()) - bytes.len()) as u64;
                let read = self.reader.by_ref().take(wanted).read_to_end(bytes);
                self.ended = (read.map_err(|error| refused(&self.name, &error))? as u64) < wanted;
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

    fn read(text: &[u8], lines_may_break: bool) -> Vec<Block> {
        let source = Source { name: "f".to_owned(), open: Box::new(|| Ok(Box::new(text))) };
        let mut files = Files::new(vec![source], None);
        let mut blocks = Vec::new();
        let mut block = Block::default();
        while files.next(&mut block, lines_may_break).unwrap() {
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
