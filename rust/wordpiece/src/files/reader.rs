//! Files → blocks of texts.

use std::io::{self, Read};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use memchr::memmem::Finder;

use super::block::{Block, Start};
use super::field::FieldPath;

use super::source::Source;
use super::window::Window;
use crate::error::{Error, Result, TextProblem};

/// What stands between texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Split {
    /// Texts end at this; the last need not be ended. Of `"\n"` a `\r` before it goes with it, of no other separator.
    Separator(String),
    /// Nothing: a file is one text, as it is.
    Whole,
    /// Each line is JSON and holds the text in a field; two fields make pairs. Lines of white space alone hold nothing.
    JsonLines(FieldPath, Option<FieldPath>),
}

/// What to do about a text that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnError {
    /// An error.
    #[default]
    Strict,
    /// Bytes that are not UTF-8, and lone surrogates in JSON, become U+FFFD, as in Python; all else is an error.
    Replace,
    /// The text is left out, counted and told.
    Skip,
}

/// How files are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadOptions {
    /// What stands between texts.
    pub split: Split,
    /// What to do about a text that cannot be read.
    pub on_error: OnError,
    /// A block is full from so many bytes on, with the text that fills it.
    pub block_bytes: usize,
    /// A block has at most so many texts: short ones take more memory than their bytes.
    pub block_texts: usize,
    /// A larger text is an error: it bounds the memory where a separator never comes.
    pub longest_text: usize,
}

impl Default for ReadOptions {
    /// Lines, strictly; blocks of 4 MiB and at most 131,072 texts; texts of up to 1 GiB.
    fn default() -> Self {
        ReadOptions {
            split: Split::Separator("\n".to_owned()),
            on_error: OnError::Strict,
            block_bytes: 4 << 20,
            block_texts: 1 << 17,
            longest_text: 1 << 30,
        }
    }
}

/// Reads texts out of files, block by block. A byte order mark at the start of a file is left out.
#[derive(Debug)]
pub struct TextReader {
    options: ReadOptions,
    finder: Option<Finder<'static>>,
    sources: std::iter::Enumerate<std::vec::IntoIter<Source>>,
    names: Arc<[String]>,
    bytes_read: Arc<AtomicU64>,
    open: Option<OpenFile>,
    window: Window,
    /// Texts found in the window, before they are looked at.
    found: Vec<Range<usize>>,
}

struct OpenFile {
    bytes: Box<dyn Read + Send>,
    index: u32,
    /// The line at which the window begins, counted from 1.
    line: u64,
    /// Bytes at the start of the window in which no separator begins.
    searched: usize,
    ended: bool,
    utf16: bool,
}

impl std::fmt::Debug for OpenFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenFile").field("index", &self.index).field("line", &self.line).finish_non_exhaustive()
    }
}

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();
const UTF16_MARKS: [&[u8]; 2] = [&[0xff, 0xfe], &[0xfe, 0xff]];

impl TextReader {
    /// Makes a reader; nothing is opened yet.
    pub fn new(sources: Vec<Source>, options: ReadOptions) -> Result<TextReader> {
        let separator = match &options.split {
            Split::Separator(separator) if separator.is_empty() => return Err(Error::EmptySeparator),
            Split::Separator(separator) => Some(separator.as_str()),
            Split::JsonLines(..) => Some("\n"),
            Split::Whole => None,
        };
        Ok(TextReader {
            finder: separator.map(|separator| Finder::new(separator).into_owned()),
            names: sources.iter().map(|source| source.name.clone()).collect(),
            sources: sources.into_iter().enumerate(),
            bytes_read: Arc::default(),
            open: None,
            window: Window::default(),
            found: Vec::new(),
            options,
        })
    }

    /// Fills a block with the next texts; false where there are no more. What was in it is gone.
    ///
    /// After an error the rest of that file is not read; the next call goes on with the next one.
    pub fn next_block(&mut self, block: &mut Block) -> Result<bool> {
        block.clear();
        block.names = Arc::clone(&self.names);
        block.unit = if self.options.split == Split::Whole { "" } else { "line" };
        // The text that fills it is in it whole.
        block.text.reserve(self.options.block_bytes + self.options.block_bytes / 8);
        while self.has_room(block) {
            if self.open.is_none() && !self.open_next()? {
                break;
            }
            let done = match self.take_texts(block) {
                Ok(false) if self.has_room(block) => self.read_on().map(|()| false),
                done => done,
            };
            if !matches!(done, Ok(false)) {
                self.open = None;
                self.window.clear();
                done?;
            }
        }
        block.bytes_read = self.bytes_read.load(Ordering::Relaxed);
        Ok(!block.is_empty() || block.skipped_count > 0)
    }

    fn has_room(&self, block: &Block) -> bool {
        block.text.len() < self.options.block_bytes && block.len() < self.options.block_texts
    }

    fn open_next(&mut self) -> Result<bool> {
        let Some((index, source)) = self.sources.next() else { return Ok(false) };
        self.window.clear(); // of one that could not be opened before
        let unreadable = |error| unreadable(&self.names[index], &error);
        let mut bytes = source.open(&self.bytes_read).map_err(unreadable)?;
        let mut ended = false;
        while !ended && self.window.bytes().len() < BYTE_ORDER_MARK.len() {
            ended = self.window.fill(&mut bytes).map_err(unreadable)? == 0;
        }
        let first = self.window.bytes();
        let utf16 = UTF16_MARKS.iter().any(|mark| first.starts_with(mark));
        if first.starts_with(BYTE_ORDER_MARK) {
            self.window.take(BYTE_ORDER_MARK.len());
        }
        let index = u32::try_from(index).map_err(|_| Error::TooLarge { what: "the number of files", size: index })?;
        self.open = Some(OpenFile { bytes, index, line: 1, searched: 0, ended, utf16 });
        Ok(true)
    }

    /// Reads more of the open file; its end is marked, so that what is left becomes its last text.
    fn read_on(&mut self) -> Result<()> {
        let file = self.open.as_mut().expect("called with an open file");
        if self.window.bytes().len() > self.options.longest_text {
            let problem = TextProblem::TooLong { limit: self.options.longest_text };
            let file_name = self.names[file.index as usize].clone();
            return Err(Error::BadText { file: file_name, line: file.line, offset: self.window.offset(), problem });
        }
        let n = self.window.fill(&mut file.bytes).map_err(|error| unreadable(&self.names[file.index as usize], &error));
        file.ended = n? == 0;
        Ok(())
    }

    /// Moves whole texts from the window to the block, as many as there are and as it has room for; true where that was
    /// the last of the file.
    fn take_texts(&mut self, block: &mut Block) -> Result<bool> {
        let file = self.open.as_mut().expect("called with an open file");
        let bytes = self.window.bytes();
        let room_texts = self.options.block_texts - block.len();
        let room_bytes = self.options.block_bytes - block.text.len();
        self.found.clear();
        let mut taken = 0;
        let mut full = false;
        if let Some(finder) = &self.finder {
            let length = finder.needle().len();
            for at in finder.find_iter(&bytes[file.searched..]) {
                let at = at + file.searched;
                self.found.push(taken..at);
                taken = at + length;
                full = self.found.len() >= room_texts || taken >= room_bytes;
                if full {
                    break;
                }
            }
            // What is left was searched, but for a separator of which only the beginning is there.
            file.searched = if full { 0 } else { (bytes.len() - taken).saturating_sub(length - 1) };
        }
        let done = file.ended && !full;
        if done && (taken < bytes.len() || self.finder.is_none()) {
            self.found.push(taken..bytes.len());
            taken = bytes.len();
        }
        let taking = Taking {
            options: &self.options,
            bytes: &bytes[..taken],
            texts: &self.found,
            name: &self.names[file.index as usize],
            offset: self.window.offset(),
            utf16: file.utf16,
            index: file.index,
            line: file.line,
        };
        file.line = taking.append_to(block)?;
        self.window.take(taken);
        Ok(done)
    }
}

pub(crate) fn unreadable(name: &str, error: &io::Error) -> Error {
    let message = error.to_string();
    // The number goes with the message where it is one of the operating system.
    let message = message.split_once(" (os error").map_or(message.as_str(), |(said, _)| said).to_owned();
    Error::FileUnreadable { file: name.to_owned(), code: error.raw_os_error(), message }
}

/// Texts found in a window, on their way to a block.
struct Taking<'a> {
    options: &'a ReadOptions,
    /// The texts with all that is between them.
    bytes: &'a [u8],
    texts: &'a [Range<usize>],
    name: &'a str,
    offset: u64,
    utf16: bool,
    index: u32,
    line: u64,
}

impl Taking<'_> {
    /// Appends the texts; returns the line at which the next one begins.
    fn append_to(&self, block: &mut Block) -> Result<u64> {
        let lines = matches!(&self.options.split, Split::Separator(separator) if separator == "\n");
        let json = matches!(self.options.split, Split::JsonLines(..));
        let valid = str::from_utf8(self.bytes).ok();
        let mut line = self.line;
        let at = block.text.len();
        if let Some(text) = valid.filter(|_| !json) {
            // The usual case: all at once, separators too, and no text is touched alone.
            block.text.push_str(text);
        }
        for (i, span) in self.texts.iter().enumerate() {
            let ended = span.end < self.bytes.len();
            let mut text = span.clone();
            if lines && ended && self.bytes[text.clone()].last() == Some(&b'\r') {
                text.end -= 1;
            }
            let start = Start { file: self.index, number: line };
            match valid {
                Some(_) if !json => {
                    block.spans.push(at + text.start..at + text.end);
                    block.starts.push(start);
                }
                Some(all) => self.append_one(&all[text.clone()], text.start, start, block)?,
                None => self.append_doubtful(text, start, block)?,
            }
            line += if lines || json {
                u64::from(ended)
            } else {
                let next = self.texts.get(i + 1).map_or(self.bytes.len(), |next| next.start);
                memchr::memchr_iter(b'\n', &self.bytes[span.start..next]).count() as u64
            };
        }
        Ok(line)
    }

    /// Appends a text that may not be UTF-8.
    fn append_doubtful(&self, span: Range<usize>, start: Start, block: &mut Block) -> Result<()> {
        let raw = &self.bytes[span.clone()];
        match str::from_utf8(raw) {
            Ok(text) => self.append_one(text, span.start, start, block),
            Err(_) if self.options.on_error == OnError::Replace => {
                self.append_one(&String::from_utf8_lossy(raw), span.start, start, block)
            }
            Err(error) => {
                let at = error.valid_up_to();
                let line = start.number + memchr::memchr_iter(b'\n', &raw[..at]).count() as u64;
                let problem = TextProblem::NotUtf8 { byte: raw[at], utf16: self.utf16 };
                self.refuse(problem, span.start + at, line, block)
            }
        }
    }

    /// Appends a text, out of its JSON where it is in JSON.
    fn append_one(&self, text: &str, at: usize, start: Start, block: &mut Block) -> Result<()> {
        let Split::JsonLines(first, second) = &self.options.split else {
            block.push(text, start);
            return Ok(());
        };
        if text.trim_ascii().is_empty() {
            return Ok(());
        }
        let replace = self.options.on_error == OnError::Replace;
        let begin = block.text.len();
        let mut append = |field: &FieldPath| {
            let from = block.text.len();
            field.append(text, replace, &mut block.text).map(|()| from..block.text.len())
        };
        let spans = append(first).and_then(|span| Ok((span, second.as_ref().map(append).transpose()?)));
        match spans {
            Ok((first, second)) => {
                block.spans.push(first);
                block.seconds.extend(second);
                block.starts.push(start);
                Ok(())
            }
            Err(problem) => {
                block.text.truncate(begin);
                self.refuse(problem, at, start.number, block)
            }
        }
    }

    /// Tells what is wrong, or leaves the text out and remembers it.
    fn refuse(&self, problem: TextProblem, at: usize, line: u64, block: &mut Block) -> Result<()> {
        let offset = self.offset + at as u64;
        let error = Error::BadText { file: self.name.to_owned(), line, offset, problem };
        if self.options.on_error == OnError::Skip {
            block.skip(|| error.to_string());
            return Ok(());
        }
        Err(error)
    }
}
