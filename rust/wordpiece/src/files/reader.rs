//! Divides files into texts and collects them into blocks.
//!
//! The reader alternates two steps until the block is full: [`TextReader::read_more`] reads bytes into the buffer, and
//! [`TextReader::move_texts`] finds the complete texts in it and appends them to the block. What remains in the buffer
//! is the beginning of a text whose end has not been read yet.

use std::borrow::Cow;
use std::io::Read;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use memchr::memmem::Finder;

use super::field_path::FieldPath;
use super::options::{OnError, ReadOptions, TextLayout};
use super::read_buffer::ReadBuffer;
use super::source::{TextSource, unreadable_file};
use super::table::{Header, RecordSearch, line_ends};
use super::text_block::{TextBlock, TextStart};
use super::utf16;
use crate::error::{Error, Result, TextProblem};

/// Reads texts from files, block by block. A byte order mark at the start of a file is not part of its first text.
#[derive(Debug)]
pub struct TextReader {
    options: ReadOptions,
    /// Searches for the separator; none where a file is one text, or a table.
    finder: Option<Finder<'static>>,
    /// The sources that have not been opened yet.
    sources: std::iter::Enumerate<std::vec::IntoIter<TextSource>>,
    /// The names of all sources.
    file_names: Arc<[String]>,
    /// The bytes read from all sources, before decompression.
    bytes_read: Arc<AtomicU64>,
    /// The bytes of the sources before the open one, before decompression.
    bytes_before: u64,
    open: Option<OpenFile>,
    buffer: ReadBuffer,
    /// The complete texts found in the buffer, as ranges of it. A field only to keep its memory.
    found: Vec<Range<usize>>,
}

/// The file that is being read.
struct OpenFile {
    bytes: Box<dyn Read + Send>,
    /// The index of the file in the list of names.
    index: u32,
    /// The line at which the buffer begins, counted from 1.
    line: u64,
    /// No separator begins in this many bytes at the start of the buffer: they are not searched again.
    searched: usize,
    /// The end of the file has been read.
    ended: bool,
    /// In a table: the search for the end of the record at the start of the buffer, and the header once it was read.
    record: RecordSearch,
    header: Option<Header>,
    /// The position in the file of the byte by which it is UTF-16.
    utf16: Option<usize>,
}

impl std::fmt::Debug for OpenFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenFile").field("index", &self.index).field("line", &self.line).finish_non_exhaustive()
    }
}

impl TextReader {
    /// Creates a reader. No source is opened yet.
    ///
    /// # Errors
    ///
    /// [`Error::EmptySeparator`].
    pub fn new(sources: Vec<TextSource>, options: ReadOptions) -> Result<TextReader> {
        let separator = match &options.layout {
            TextLayout::Separator(separator) if separator.is_empty() => return Err(Error::EmptySeparator),
            TextLayout::Separator(separator) => Some(separator.as_str()),
            TextLayout::JsonLines(..) => Some("\n"),
            TextLayout::WholeFile | TextLayout::Table(..) => None,
        };
        Ok(TextReader {
            finder: separator.map(|separator| Finder::new(separator).into_owned()),
            file_names: sources.iter().map(|source| source.name.clone()).collect(),
            sources: sources.into_iter().enumerate(),
            bytes_read: Arc::default(),
            bytes_before: 0,
            open: None,
            buffer: ReadBuffer::default(),
            found: Vec::new(),
            options,
        })
    }

    /// Replaces the content of `block` by the next texts; returns false when there are no more.
    ///
    /// # Errors
    ///
    /// [`Error::FileUnreadable`] if a file cannot be opened or read; [`Error::BadText`] for a text that
    /// [`ReadOptions::on_error`] does not accept or that is longer than [`ReadOptions::longest_text`]; [`Error::NoColumn`]
    /// if a table lacks a column. The rest of that file is skipped, and the next call continues with the next file.
    pub fn next_block(&mut self, block: &mut TextBlock) -> Result<bool> {
        block.clear();
        block.file_names = Arc::clone(&self.file_names);
        block.unit = if self.options.layout == TextLayout::WholeFile { "" } else { "line" };
        // The text that fills the block usually overshoots the limit; an eighth more avoids reallocating for it.
        block.text.reserve(self.options.block_bytes + self.options.block_bytes / 8);
        while self.has_capacity(block) {
            if self.open.is_none() && !self.open_next()? {
                break;
            }
            let file_done = match self.move_texts(block) {
                Ok(false) if self.has_capacity(block) => self.read_more().map(|()| false),
                done => done,
            };
            if !matches!(file_done, Ok(false)) {
                self.open = None;
                self.buffer.clear();
                self.bytes_before = self.bytes_read.load(Ordering::Relaxed);
                file_done?;
            }
        }
        block.bytes_read = self.position().max(block.bytes_read);
        Ok(!block.is_empty() || block.skipped_count > 0)
    }

    /// Returns how many bytes of the sources the texts so far have taken.
    ///
    /// What is in the buffer has been read, but is not in a block yet: it may be most of a file. Of a compressed file the
    /// share of its decompressed bytes counts.
    fn position(&self) -> u64 {
        let read = self.bytes_read.load(Ordering::Relaxed) - self.bytes_before;
        let (taken, waiting) = (u128::from(self.buffer.offset()), self.buffer.bytes().len() as u128);
        let share = u128::from(read) * taken / (taken + waiting).max(1);
        self.bytes_before + u64::try_from(share).expect("no more than what was read")
    }

    /// Returns whether the block can hold another text.
    fn has_capacity(&self, block: &TextBlock) -> bool {
        block.text.len() < self.options.block_bytes && block.len() < self.options.block_texts
    }

    /// Opens the next source and consumes its byte order mark; returns false if there are no more sources.
    fn open_next(&mut self) -> Result<bool> {
        let Some((index, source)) = self.sources.next() else { return Ok(false) };
        self.buffer.clear(); // a source that could not be opened may have left bytes
        let unreadable = |error| unreadable_file(&self.file_names[index], &error);
        let mut bytes = source.open(&self.bytes_read).map_err(unreadable)?;
        let mut ended = false;
        while !ended && self.buffer.bytes().len() < utf16::SAMPLE_BYTES {
            ended = self.buffer.fill(&mut bytes).map_err(unreadable)? == 0;
        }
        let first = self.buffer.bytes();
        let separated_by_nul = self.finder.as_ref().is_some_and(|finder| finder.needle().contains(&0));
        let marked = first.starts_with(utf16::UTF8_MARK);
        // JSON begins with an ASCII character (RFC 4627, section 3); a line with NULs further on is one that is not JSON.
        let last = if matches!(self.options.layout, TextLayout::JsonLines(..)) { 1 } else { usize::MAX };
        let utf16 = utf16::position(first).filter(|at| !separated_by_nul && *at <= last);
        if marked {
            self.buffer.consume(utf16::UTF8_MARK.len());
        }
        let index = u32::try_from(index).map_err(|_| Error::TooLarge { what: "the number of files", size: index })?;
        self.open = Some(OpenFile {
            bytes,
            index,
            line: 1,
            searched: 0,
            ended,
            record: RecordSearch::default(),
            header: None,
            utf16,
        });
        Ok(true)
    }

    /// Reads more of the open file, or marks it as ended, so that the remaining bytes become its last text.
    fn read_more(&mut self) -> Result<()> {
        let file = self.open.as_mut().expect("next_block opens a file before it reads");
        let name = &self.file_names[file.index as usize];
        if self.buffer.bytes().len() > self.options.longest_text {
            let problem = TextProblem::TooLong { limit: self.options.longest_text };
            return Err(Error::BadText { file: name.clone(), line: file.line, offset: self.buffer.offset(), problem });
        }
        let n = self.buffer.fill(&mut file.bytes).map_err(|error| unreadable_file(name, &error))?;
        file.ended = n == 0;
        Ok(())
    }

    /// Moves complete texts from the buffer to the block until either is exhausted; returns true if the last text of
    /// the file was among them.
    fn move_texts(&mut self, block: &mut TextBlock) -> Result<bool> {
        let file = self.open.as_mut().expect("next_block opens a file before it moves texts");
        let bytes = self.buffer.bytes();
        if let Some(at) = file.utf16.take_if(|_| self.options.on_error != OnError::Replace) {
            let problem = TextProblem::NotUtf8 { byte: bytes[at], utf16: true };
            let line = 1 + memchr::memchr_iter(b'\n', &bytes[..at]).count() as u64;
            let file_name = self.file_names[file.index as usize].clone();
            let error = Error::BadText { file: file_name, line, offset: at as u64, problem };
            if self.options.on_error == OnError::Skip {
                block.skip(file.index, || error.to_string());
                return Ok(true);
            }
            return Err(error);
        }
        let free_texts = self.options.block_texts - block.len();
        let free_bytes = self.options.block_bytes - block.text.len();
        self.found.clear();
        let mut consumed = 0;
        let mut full = false;
        if let Some(finder) = &self.finder {
            let length = finder.needle().len();
            for at in finder.find_iter(&bytes[file.searched..]) {
                let at = at + file.searched;
                self.found.push(consumed..at);
                consumed = at + length;
                full = self.found.len() >= free_texts || consumed >= free_bytes;
                if full {
                    break;
                }
            }
            // The remaining bytes have been searched, except that a separator may begin in the last `length - 1` of
            // them.
            file.searched = if full { 0 } else { (bytes.len() - consumed).saturating_sub(length - 1) };
        }
        let table = matches!(self.options.layout, TextLayout::Table(..));
        if let TextLayout::Table(format, ..) = self.options.layout {
            while !full && let Some((end, next)) = file.record.next(format, &bytes[consumed..], file.ended) {
                self.found.push(consumed..consumed + end);
                consumed += next;
                full = self.found.len() >= free_texts || consumed >= free_bytes;
            }
        }
        let done = file.ended && !full;
        if done && (consumed < bytes.len() || (self.finder.is_none() && !table)) {
            self.found.push(consumed..bytes.len());
            consumed = bytes.len();
        }
        let found = FoundTexts {
            options: &self.options,
            bytes: &bytes[..consumed],
            texts: &self.found,
            file_name: &self.file_names[file.index as usize],
            offset: self.buffer.offset(),
            file: file.index,
            line: file.line,
        };
        file.line = match &self.options.layout {
            TextLayout::Table(..) => found.append_records(&mut file.header, block)?,
            _ => found.append_to(block)?,
        };
        self.buffer.consume(consumed);
        Ok(done)
    }
}

/// Texts found in the buffer that are about to be appended to a block.
struct FoundTexts<'a> {
    options: &'a ReadOptions,
    /// The texts and everything between them.
    bytes: &'a [u8],
    /// The texts as ranges of `bytes`, ascending.
    texts: &'a [Range<usize>],
    file_name: &'a str,
    /// The byte offset of `bytes` in the file.
    offset: u64,
    /// The index of the file in the list of names.
    file: u32,
    /// The line at which `bytes` begins, counted from 1.
    line: u64,
}

impl FoundTexts<'_> {
    /// Appends the texts; returns the line at which the next text begins.
    fn append_to(&self, block: &mut TextBlock) -> Result<u64> {
        let lines = matches!(&self.options.layout, TextLayout::Separator(separator) if separator == "\n");
        let json = matches!(self.options.layout, TextLayout::JsonLines(..));
        let valid = str::from_utf8(self.bytes).ok();
        let mut line = self.line;
        let at = block.text.len();
        if let Some(text) = valid.filter(|_| !json) {
            // The usual case: one copy for all texts and separators; below, each text only adds its range.
            block.text.push_str(text);
        }
        for (i, span) in self.texts.iter().enumerate() {
            let has_separator = span.end < self.bytes.len();
            let mut text = span.clone();
            if lines && has_separator && self.bytes[text.clone()].last() == Some(&b'\r') {
                text.end -= 1;
            }
            let start = TextStart { file: self.file, number: line };
            match valid {
                Some(_) if !json => {
                    block.spans.push(at + text.start..at + text.end);
                    block.starts.push(start);
                }
                Some(all) => self.append_text(&all[text.clone()], text.start, start, block)?,
                None => self.append_bytes(text, start, block)?,
            }
            line += if lines || json {
                u64::from(has_separator)
            } else {
                let next = self.texts.get(i + 1).map_or(self.bytes.len(), |next| next.start);
                memchr::memchr_iter(b'\n', &self.bytes[span.start..next]).count() as u64
            };
        }
        Ok(line)
    }

    /// Appends the rows of a table; returns the line at which the next record begins. The first record of a file is its
    /// `header`, which no option skips.
    fn append_records(&self, header: &mut Option<Header>, block: &mut TextBlock) -> Result<u64> {
        let valid = str::from_utf8(self.bytes).ok();
        let mut line = self.line;
        for (i, span) in self.texts.iter().enumerate() {
            let record = match valid {
                Some(all) => Ok(Cow::Borrowed(&all[span.clone()])),
                None => self.decoded(span.clone(), line),
            };
            match (&header, record) {
                _ if span.is_empty() => {}
                (Some(header), Ok(record)) => match header.append(&record, self.options.second_is_id, block) {
                    Ok(()) => block.starts.push(TextStart { file: self.file, number: line }),
                    Err(problem) => self.reject(problem, span.start, line, block)?,
                },
                (Some(_), Err((problem, at, line))) => self.reject(problem, at, line, block)?,
                (None, Ok(record)) => {
                    let read = Header::new(&self.options.layout, &record, self.file_name);
                    *header = Some(read.map_err(|problem| self.error(problem, span.start, line))??);
                }
                (None, Err((problem, at, line))) => return Err(self.error(problem, at, line)),
            }
            let next = self.texts.get(i + 1).map_or(self.bytes.len(), |next| next.start);
            line += line_ends(&self.bytes[span.start..next]);
        }
        Ok(line)
    }

    /// Appends a text that may not be valid UTF-8.
    fn append_bytes(&self, span: Range<usize>, start: TextStart, block: &mut TextBlock) -> Result<()> {
        match self.decoded(span.clone(), start.number) {
            Ok(text) => self.append_text(&text, span.start, start, block),
            Err((problem, at, line)) => self.reject(problem, at, line, block),
        }
    }

    /// Decodes UTF-8, or returns the problem with its position in `bytes` and its line. `line` is the line of the
    /// start.
    fn decoded(&self, span: Range<usize>, line: u64) -> std::result::Result<Cow<'_, str>, (TextProblem, usize, u64)> {
        let raw = &self.bytes[span.clone()];
        match str::from_utf8(raw) {
            Ok(text) => Ok(Cow::Borrowed(text)),
            Err(_) if self.options.on_error == OnError::Replace => Ok(String::from_utf8_lossy(raw)),
            Err(error) => {
                let at = error.valid_up_to();
                let line = line + memchr::memchr_iter(b'\n', &raw[..at]).count() as u64;
                Err((TextProblem::NotUtf8 { byte: raw[at], utf16: false }, span.start + at, line))
            }
        }
    }

    /// Appends a text, or the fields of a JSON line. `at` is its position in `bytes`.
    fn append_text(&self, text: &str, at: usize, start: TextStart, block: &mut TextBlock) -> Result<()> {
        let TextLayout::JsonLines(first, second) = &self.options.layout else {
            block.push(text, start);
            return Ok(());
        };
        if text.trim_ascii().is_empty() {
            return Ok(());
        }
        let replace = self.options.on_error == OnError::Replace;
        let begin = block.text.len();
        let mut append = |field: &FieldPath, is_id: bool| {
            let from = block.text.len();
            let appended = match is_id {
                true => field.append_id(text, &mut block.text),
                false => field.append(text, replace, &mut block.text),
            };
            appended.map(|()| from..block.text.len())
        };
        let spans = append(first, false).and_then(|span| {
            let second = second.as_ref().map(|field| append(field, self.options.second_is_id));
            Ok((span, second.transpose()?))
        });
        match spans {
            Ok((first, second)) => {
                block.spans.push(first);
                block.other_spans.extend(second);
                block.starts.push(start);
                Ok(())
            }
            Err(problem) => {
                block.text.truncate(begin);
                self.reject(problem, at, start.number, block)
            }
        }
    }

    /// Returns the error, or records the text as skipped where the options say so.
    fn reject(&self, problem: TextProblem, at: usize, line: u64, block: &mut TextBlock) -> Result<()> {
        let error = self.error(problem, at, line);
        if self.options.on_error == OnError::Skip {
            block.skip(self.file, || error.to_string());
            return Ok(());
        }
        Err(error)
    }

    /// Returns the error for a problem at a position in `bytes`.
    fn error(&self, problem: TextProblem, at: usize, line: u64) -> Error {
        Error::BadText { file: self.file_name.to_owned(), line, offset: self.offset + at as u64, problem }
    }
}
