//! Some megabytes of whole texts, and where each comes from.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use super::reader::OnError;
use crate::error::{Error, Result, TextProblem};
use crate::tokenizer::Input;

/// A column of strings as Arrow has it: their bytes one after the other, where each ends, and whether each is there.
pub type Column<'a> = (&'a [u8], &'a [i64], Option<&'a [bool]>);

/// Texts that were read together. One kept from call to call keeps its memory.
#[derive(Debug, Clone, Default)]
pub struct Block {
    pub(super) text: String,
    /// Where the texts stand in `text`.
    pub(super) spans: Vec<Range<usize>>,
    /// Where their second texts stand; empty unless texts are pairs.
    pub(super) seconds: Vec<Range<usize>>,
    pub(super) starts: Vec<Start>,
    pub(super) names: Arc<[String]>,
    /// What the numbers of `starts` count; nothing where a file is one text.
    pub(super) unit: &'static str,
    pub(super) skipped: Vec<String>,
    pub(super) skipped_count: usize,
    pub(super) bytes_read: u64,
}

/// Where a text begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Start {
    pub file: u32,
    /// A line, counted from 1, or a row, counted from 0.
    pub number: u64,
}

/// Texts left out that a block describes; the rest it counts.
const SKIPPED_TOLD: usize = 20;

impl Block {
    /// Takes the strings of an Arrow column, or of two for pairs.
    ///
    /// A column is its text, the ends of the strings in it, and which of them are not null (`None`: all).
    pub fn from_arrow(name: &str, first_row: u64, columns: &[Column<'_>], on_error: OnError) -> Result<Block> {
        let mut block = Block { names: Arc::from([name.to_owned()]), unit: "row", ..Block::default() };
        let rows = columns.first().map_or(0, |(_, ends, _)| ends.len());
        for i in 0..rows {
            let row = first_row + i as u64;
            let begin = block.text.len();
            let mut spans = [0..0, 0..0];
            let taken = columns.iter().zip(&mut spans).try_for_each(|(column, span)| {
                let from = block.text.len();
                block.text.push_str(&string(column, i, on_error)?);
                *span = from..block.text.len();
                Ok(())
            });
            match taken {
                Ok(()) => {
                    let [first, second] = spans;
                    block.spans.push(first);
                    block.seconds.extend((columns.len() > 1).then_some(second));
                    block.starts.push(Start { file: 0, number: row });
                }
                Err(problem) => {
                    block.text.truncate(begin);
                    let error = Error::BadRow { file: name.to_owned(), row, problem };
                    if on_error != OnError::Skip {
                        return Err(error);
                    }
                    block.skip(|| error.to_string());
                }
            }
        }
        Ok(block)
    }

    /// The number of texts; a pair counts once.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The number of bytes of text.
    pub fn bytes(&self) -> usize {
        self.spans.iter().chain(&self.seconds).map(ExactSizeIterator::len).sum()
    }

    /// The texts; of pairs the first ones.
    pub fn texts(&self) -> impl ExactSizeIterator<Item = &str> {
        self.spans.iter().map(|span| &self.text[span.clone()])
    }

    /// The second texts; none unless texts are pairs.
    pub fn second_texts(&self) -> impl ExactSizeIterator<Item = &str> {
        self.seconds.iter().map(|span| &self.text[span.clone()])
    }

    /// What [`Tokenizer::encode_batch`](crate::Tokenizer::encode_batch) takes.
    pub fn inputs(&self) -> Vec<Input<'_>> {
        if self.seconds.is_empty() {
            self.texts().map(Input::single).collect()
        } else {
            self.texts().zip(self.second_texts()).map(|(first, second)| Input::pair(first, second)).collect()
        }
    }

    /// Where text `i` comes from, in words: `a.txt line 3`; the name alone where a file is one text.
    pub fn place(&self, i: usize) -> String {
        let Start { file, number } = self.starts[i];
        let name = &self.names[file as usize];
        if self.unit.is_empty() { name.clone() } else { format!("{name} {} {number}", self.unit) }
    }

    /// How many texts were left out on the way to this block.
    pub fn skipped_count(&self) -> usize {
        self.skipped_count
    }

    /// What was wrong with them and where; of many only the first.
    pub fn skipped(&self) -> &[String] {
        &self.skipped
    }

    /// Bytes of the files read when the block was made, all files together; of compressed files what is on the disk.
    pub fn bytes_read(&self) -> u64 {
        self.bytes_read
    }

    pub(super) fn clear(&mut self) {
        self.text.clear();
        self.spans.clear();
        self.seconds.clear();
        self.starts.clear();
        self.skipped.clear();
        self.skipped_count = 0;
    }

    pub(super) fn push(&mut self, text: &str, start: Start) {
        let at = self.text.len();
        self.text.push_str(text);
        self.spans.push(at..self.text.len());
        self.starts.push(start);
    }

    pub(super) fn skip(&mut self, what: impl FnOnce() -> String) {
        self.skipped_count += 1;
        if self.skipped.len() < SKIPPED_TOLD {
            self.skipped.push(what());
        }
    }
}

/// String `i` of a column.
fn string<'a>(column: &Column<'a>, i: usize, on_error: OnError) -> std::result::Result<Cow<'a, str>, TextProblem> {
    let (bytes, ends, valid) = *column;
    if valid.is_some_and(|valid| valid.get(i) != Some(&true)) {
        return Err(TextProblem::Null);
    }
    let start = if i == 0 { 0 } else { ends[i - 1] };
    let range = usize::try_from(start).ok().zip(ends.get(i).and_then(|&end| usize::try_from(end).ok()));
    let bytes = range.and_then(|(start, end)| bytes.get(start..end)).ok_or(TextProblem::BadOffsets)?;
    match str::from_utf8(bytes) {
        Ok(text) => Ok(Cow::Borrowed(text)),
        Err(_) if on_error == OnError::Replace => Ok(String::from_utf8_lossy(bytes)),
        Err(error) => Err(TextProblem::NotUtf8 { byte: bytes[error.valid_up_to()], utf16: false }),
    }
}
