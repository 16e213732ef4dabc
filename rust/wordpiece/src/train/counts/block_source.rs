//! Text to count, in blocks of about a megabyte, each ending where no word can continue.

use std::io::{ErrorKind, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, Result, TrainingError};
use crate::files::{TextSource, unreadable_file, utf16};

/// The size of a block in bytes. A block that has a longer line is longer.
const BLOCK_BYTES: usize = 1 << 20;

/// The most bytes between two boundaries, where a block may end. Positions of words in a block have 32 bits, and
/// normalization can triple the length of a text.
const LONGEST_RUN: usize = 1 << 30;

/// A block of text that has not been decoded yet, and where it comes from.
///
/// The default is an empty block; a block that is filled again keeps its memory.
#[derive(Debug, Clone, Default)]
pub struct ByteBlock {
    /// The bytes, as they were read.
    pub bytes: Vec<u8>,
    /// The name of the file, for messages.
    pub name: Arc<str>,
    /// The byte offset of the block in the file.
    pub offset: u64,
    /// The number of lines of the file that end before the block.
    pub line: u64,
    /// The number of texts in the block: lines, or items of an iterable.
    pub texts: u64,
    /// The number of bytes that were read for the block; the unit of progress.
    pub size: u64,
    /// Whether the file looks like UTF-16, by a byte order mark or by the places of its control characters.
    pub utf16: bool,
}

/// A source of blocks: files, or texts that a program holds.
pub trait BlockSource {
    /// Replaces the content of `block` by the next block; returns false when there are no more.
    ///
    /// A block ends after a line feed or at the end of a file. With `lines_may_break` it may also end after any other
    /// ASCII white space. When waiting for data is interrupted by a signal, `interrupted` is called and decides whether
    /// to continue.
    fn next_block(
        &mut self,
        block: &mut ByteBlock,
        lines_may_break: bool,
        interrupted: &mut dyn FnMut() -> Result<()>,
    ) -> Result<bool>;

    /// Returns how many bytes have been read and how many there are in all, if that is known.
    fn progress(&self) -> Option<(u64, u64)> {
        None
    }
}

/// The blocks of files, one file after the other. A byte order mark at the start of a file is skipped.
pub struct FileBlocks {
    /// The files that have not been opened yet.
    sources: std::vec::IntoIter<TextSource>,
    /// The size of all files, compressed, if known.
    total: Option<u64>,
    /// The number of compressed bytes read so far.
    bytes_read: Arc<AtomicU64>,
    open: Option<OpenBlockFile>,
}

/// The file that is being read.
struct OpenBlockFile {
    name: Arc<str>,
    reader: Box<dyn Read + Send>,
    /// What was read after the end of the last block.
    rest: Vec<u8>,
    /// The byte offset of `rest` in the file.
    offset: u64,
    /// The number of line feeds before `rest`.
    line: u64,
    utf16: bool,
    /// The end of the file has been read.
    ended: bool,
}

impl FileBlocks {
    /// Creates a source for these files. `total` is their size on the disk, if it is known.
    pub fn new(sources: Vec<TextSource>, total: Option<u64>) -> FileBlocks {
        FileBlocks { sources: sources.into_iter(), total, bytes_read: Arc::default(), open: None }
    }
}

impl BlockSource for FileBlocks {
    fn next_block(
        &mut self,
        block: &mut ByteBlock,
        lines_may_break: bool,
        interrupted: &mut dyn FnMut() -> Result<()>,
    ) -> Result<bool> {
        loop {
            if let Some(open) = &mut self.open
                && open.next_block(block, lines_may_break, interrupted)?
            {
                return Ok(true);
            }
            let Some(source) = self.sources.next() else { return Ok(false) };
            let name: Arc<str> = Arc::from(source.name.as_str());
            let reader = source.open(&self.bytes_read).map_err(|error| unreadable_file(&name, &error))?;
            self.open =
                Some(OpenBlockFile { name, reader, rest: Vec::new(), offset: 0, line: 0, utf16: false, ended: false });
        }
    }

    fn progress(&self) -> Option<(u64, u64)> {
        self.total.map(|total| (self.bytes_read.load(Ordering::Relaxed), total))
    }
}

impl OpenBlockFile {
    /// Appends `size` bytes to `bytes`, or fewer at the end of the file.
    fn read(&mut self, size: usize, bytes: &mut Vec<u8>, interrupted: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        let mut at = bytes.len();
        bytes.resize(at + size, 0);
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

    /// See [`BlockSource::next_block`].
    fn next_block(
        &mut self,
        block: &mut ByteBlock,
        lines_may_break: bool,
        interrupted: &mut dyn FnMut() -> Result<()>,
    ) -> Result<bool> {
        block.bytes.clear();
        block.bytes.append(&mut self.rest);
        let end = self.read_to_boundary(&mut block.bytes, lines_may_break, interrupted)?;
        if end == 0 {
            return Ok(false);
        }
        let bytes = &mut block.bytes;
        self.rest.extend_from_slice(&bytes[end..]);
        bytes.truncate(end);
        let lines = bytes.iter().filter(|&&byte| byte == b'\n').count() as u64;
        (block.offset, block.line, block.size) = (self.offset, self.line, end as u64);
        block.name = Arc::clone(&self.name);
        // The last line of a file may omit its line feed.
        block.texts = lines + u64::from(self.ended && self.rest.is_empty() && bytes.last() != Some(&b'\n'));
        self.offset += end as u64;
        self.line += lines;
        if block.offset == 0 {
            self.utf16 = utf16::position(bytes).is_some();
            if bytes.starts_with(utf16::UTF8_MARK) {
                bytes.drain(..utf16::UTF8_MARK.len());
                block.offset = utf16::UTF8_MARK.len() as u64;
            }
        }
        block.utf16 = self.utf16;
        Ok(true)
    }

    /// Reads until `bytes` has a boundary, where a block may end; returns the position of the last one.
    fn read_to_boundary(
        &mut self,
        bytes: &mut Vec<u8>,
        lines_may_break: bool,
        interrupted: &mut dyn FnMut() -> Result<()>,
    ) -> Result<usize> {
        let mut searched = 0;
        loop {
            if !self.ended {
                self.read(BLOCK_BYTES.max(2 * bytes.len()) - bytes.len(), bytes, interrupted)?;
            }
            if self.ended {
                return Ok(bytes.len());
            }
            let fresh = &bytes[searched..];
            if let Some(at) = fresh.iter().rposition(|&byte| byte == b'\n') {
                return Ok(searched + at + 1);
            }
            if lines_may_break && let Some(at) = fresh.iter().rposition(|byte| matches!(byte, b' ' | b'\t' | b'\r')) {
                return Ok(searched + at + 1);
            }
            searched = bytes.len();
            if searched > LONGEST_RUN {
                let (file, line, offset) = (self.name.to_string(), self.line + 1, self.offset);
                return Err(Error::Training(TrainingError::EndlessWord { file, line, offset, limit: LONGEST_RUN }));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn read(text: &[u8], lines_may_break: bool) -> Vec<ByteBlock> {
        let source = TextSource::reader("f", Cursor::new(text.to_vec()));
        let mut files = FileBlocks::new(vec![source], None);
        let mut blocks = Vec::new();
        let mut block = ByteBlock::default();
        while files.next_block(&mut block, lines_may_break, &mut || Ok(())).unwrap() {
            blocks.push(block.clone());
        }
        blocks
    }

    #[test]
    fn blocks_end_at_lines_and_have_their_offset_and_line() {
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
