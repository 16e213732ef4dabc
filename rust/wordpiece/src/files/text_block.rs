//! A few megabytes of complete texts, and the file and line each comes from.

use std::ops::Range;
use std::sync::Arc;

use super::options::OnError;
use crate::error::{Error, Result, TextProblem};
use crate::tokenizer::Input;

/// A column of strings in Arrow's layout: the bytes of all strings, the end of each string in them, and optionally
/// whether each string is valid (not null).
///
/// String `i` is `bytes[ends[i - 1]..ends[i]]`, the first one begins at 0. The ends are not trusted: a string out of
/// bounds is [`TextProblem::BadOffsets`]. Nor need they be UTF-8: each string is copied, and the copy is checked.
pub type ArrowColumn<'a> = (&'a [u8], &'a [i64], Option<&'a [bool]>);

/// Texts, or pairs of texts, that were read together.
///
/// A block that is passed to [`TextReader::next_block`](super::TextReader::next_block) again keeps its memory.
#[derive(Debug, Clone, Default)]
pub struct TextBlock {
    /// The texts, with or without their separators; `spans` has the bytes of each text.
    pub(super) text: String,
    /// The byte range of each text in `text`, on character boundaries.
    pub(super) spans: Vec<Range<usize>>,
    /// The byte ranges of the texts beside the first, row by row: none, one for each pair, or more for each row of a
    /// table.
    pub(super) other_spans: Vec<Range<usize>>,
    /// Where each text begins; as long as `spans`.
    pub(super) starts: Vec<TextStart>,
    /// The names of all files; `starts` has indices into it.
    pub(super) file_names: Arc<[String]>,
    /// What `TextStart::number` counts (`"line"` or `"row"`); empty where a file is one text.
    pub(super) unit: &'static str,
    /// Descriptions of skipped texts, at most [`MOST_DESCRIBED`].
    pub(super) skipped: Vec<String>,
    /// The number of skipped texts.
    pub(super) skipped_count: usize,
    /// The files with skipped texts, ascending, and their number in each.
    pub(super) skipped_by_file: Vec<(u32, u64)>,
    pub(super) bytes_read: u64,
}

/// Where a text begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TextStart {
    /// The index of the file in the list of names.
    pub file: u32,
    /// The line or row, counted from 1.
    pub number: u64,
}

/// How many skipped texts a block describes; the others are only counted.
const MOST_DESCRIBED: usize = 20;

impl TextBlock {
    /// Creates a block from the strings of one Arrow column, or from two columns of equal length as pairs.
    ///
    /// `name` and `first_row`, the number of rows before, are used in messages and locations. The strings are copied.
    ///
    /// # Errors
    ///
    /// [`Error::BadRow`] for a string that is null, out of bounds or not UTF-8, unless `on_error` says otherwise.
    pub fn from_arrow(name: &str, first_row: u64, columns: &[ArrowColumn<'_>], on_error: OnError) -> Result<TextBlock> {
        let mut block = TextBlock { file_names: Arc::from([name.to_owned()]), unit: "row", ..TextBlock::default() };
        let rows = columns.first().map_or(0, |(_, ends, _)| ends.len());
        let mut copy = Vec::new();
        for i in 0..rows {
            let row = first_row + i as u64 + 1;
            let begin = block.text.len();
            let mut spans = [0..0, 0..0];
            let copied = columns.iter().zip(&mut spans).try_for_each(|(column, span)| {
                let from = block.text.len();
                push_arrow_string(&mut block.text, column, i, on_error, &mut copy)?;
                *span = from..block.text.len();
                Ok(())
            });
            match copied {
                Ok(()) => {
                    let [first, second] = spans;
                    block.spans.push(first);
                    block.other_spans.extend((columns.len() > 1).then_some(second));
                    block.starts.push(TextStart { file: 0, number: row });
                }
                Err(problem) => {
                    block.text.truncate(begin);
                    let error = Error::BadRow { file: name.to_owned(), row, problem };
                    if on_error != OnError::Skip {
                        return Err(error);
                    }
                    block.skip(0, || error.to_string());
                }
            }
        }
        Ok(block)
    }

    /// Returns the number of texts; a pair counts once.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Returns whether there are no texts.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Returns the number of bytes of all texts, without separators.
    pub fn bytes(&self) -> usize {
        self.spans.iter().chain(&self.other_spans).map(ExactSizeIterator::len).sum()
    }

    /// Returns the texts; of pairs and of rows of a table, the first texts.
    pub fn texts(&self) -> impl ExactSizeIterator<Item = &str> {
        self.spans.iter().map(|span| &self.text[span.clone()])
    }

    /// Returns the second texts of pairs; empty where texts are not pairs.
    pub fn second_texts(&self) -> impl ExactSizeIterator<Item = &str> {
        self.other_spans.iter().step_by(self.others().max(1)).map(|span| &self.text[span.clone()])
    }

    /// Returns the texts of row `i` beside the first: none, the second text of a pair, or the texts of the other
    /// columns of a table.
    ///
    /// # Panics
    ///
    /// Panics if `i` is not less than [`len`](TextBlock::len).
    pub fn other_texts(&self, i: usize) -> impl ExactSizeIterator<Item = &str> {
        let n = self.others();
        self.other_spans[i * n..(i + 1) * n].iter().map(|span| &self.text[span.clone()])
    }

    /// Returns the number of texts of a row beside the first.
    fn others(&self) -> usize {
        self.other_spans.len() / self.len().max(1)
    }

    /// Returns the first text of each row, with the second if there is one, as inputs for
    /// [`Tokenizer::encode_batch`](crate::Tokenizer::encode_batch).
    pub fn inputs(&self) -> Vec<Input<'_>> {
        if self.other_spans.is_empty() {
            self.texts().map(Input::single).collect()
        } else {
            self.texts().zip(self.second_texts()).map(|(first, second)| Input::pair(first, second)).collect()
        }
    }

    /// Returns the location of text `i` for messages: `a.txt line 3`, or the file name where a file is one text.
    ///
    /// # Panics
    ///
    /// Panics if `i` is not less than [`len`](TextBlock::len).
    pub fn location(&self, i: usize) -> String {
        let TextStart { file, number } = self.starts[i];
        let name = &self.file_names[file as usize];
        if self.unit.is_empty() { name.clone() } else { format!("{name} {} {number}", self.unit) }
    }

    /// Returns how many texts were skipped between the previous block and the end of this one.
    pub fn skipped_count(&self) -> usize {
        self.skipped_count
    }

    /// Returns a message for each skipped text that says where it is and what is wrong with it; at most the first 20.
    pub fn skipped(&self) -> &[String] {
        &self.skipped
    }

    /// Returns the index of the file that text `i` is from, in the list of files.
    ///
    /// # Panics
    ///
    /// Panics if `i` is not less than [`len`](TextBlock::len).
    pub(crate) fn file(&self, i: usize) -> usize {
        self.starts[i].file as usize
    }

    /// Returns the files with skipped texts, ascending, and their number in each.
    pub(crate) fn skipped_by_file(&self) -> &[(u32, u64)] {
        &self.skipped_by_file
    }

    /// Returns the id that was read with text `i`, with its kind: `n` and the digits of a number, or `s` and a text.
    pub(crate) fn id(&self, i: usize) -> Option<&str> {
        self.other_spans.get(i * self.others()).map(|span| &self.text[span.clone()])
    }

    /// Returns how many bytes of all files the texts up to the end of this block have taken.
    ///
    /// For compressed files these are the compressed bytes, estimated and comparable with the sizes of the files.
    pub fn bytes_read(&self) -> u64 {
        self.bytes_read
    }

    /// Removes all texts; keeps the memory.
    pub(super) fn clear(&mut self) {
        self.text.clear();
        self.spans.clear();
        self.other_spans.clear();
        self.starts.clear();
        self.skipped.clear();
        self.skipped_by_file.clear();
        self.skipped_count = 0;
    }

    /// Appends a text.
    pub(super) fn push(&mut self, text: &str, start: TextStart) {
        let at = self.text.len();
        self.text.push_str(text);
        self.spans.push(at..self.text.len());
        self.starts.push(start);
    }

    /// Counts a skipped text; `describe` is called only for the first ones.
    pub(super) fn skip(&mut self, file: u32, describe: impl FnOnce() -> String) {
        self.skipped_count += 1;
        match self.skipped_by_file.last_mut() {
            Some((last, count)) if *last == file => *count += 1,
            _ => self.skipped_by_file.push((file, 1)),
        }
        if self.skipped.len() < MOST_DESCRIBED {
            self.skipped.push(describe());
        }
    }
}

/// Appends string `i` of a column. `copy` is a scratch buffer.
fn push_arrow_string(
    text: &mut String,
    column: &ArrowColumn<'_>,
    i: usize,
    on_error: OnError,
    copy: &mut Vec<u8>,
) -> std::result::Result<(), TextProblem> {
    let (bytes, ends, valid) = *column;
    if valid.is_some_and(|valid| valid.get(i) != Some(&true)) {
        return Err(TextProblem::Null);
    }
    // Columns of a pair may differ in length, so neither end need exist.
    let end_of = |i: usize| ends.get(i).and_then(|&end| usize::try_from(end).ok());
    let start = if i == 0 { Some(0) } else { end_of(i - 1) };
    let range = start.zip(end_of(i));
    let bytes = range.and_then(|(start, end)| bytes.get(start..end)).ok_or(TextProblem::BadOffsets)?;
    // First copied, then checked: the memory is another library's, which may write to it.
    copy.clear();
    copy.extend_from_slice(bytes);
    match str::from_utf8(copy) {
        Ok(copied) => text.push_str(copied),
        Err(_) if on_error == OnError::Replace => text.push_str(&String::from_utf8_lossy(copy)),
        Err(error) => return Err(TextProblem::NotUtf8 { byte: copy[error.valid_up_to()], utf16: false }),
    }
    Ok(())
}
