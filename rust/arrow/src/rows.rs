//! Rows in the producer's memory, and copies of their texts, which are UTF-8.

use std::cell::Cell;
use std::ops::Range;

use wordpiece::{BatchItem, Error, Input, Text};

use crate::foreign::Items;
use crate::problem::{Problem, ReadError, RowPosition};

/// A row of a column: where its text, or its two texts, are in the producer's memory. Whether they are UTF-8 is found out when
/// they are copied, which [`BatchItem::with_inputs`] does for a few at a time.
#[derive(Clone)]
pub struct Row<'a> {
    pub(crate) first: RowText<'a>,
    pub(crate) second: Option<RowText<'a>>,
}

/// A text of a row.
#[derive(Clone)]
pub(crate) enum RowText<'a> {
    Raw(Items<'a, 1>),
    Words(Vec<Items<'a, 1>>),
}

impl RowText<'_> {
    fn len(&self) -> usize {
        match self {
            RowText::Raw(text) => text.len(),
            RowText::Words(words) => words.iter().map(|word| word.len()).sum(),
        }
    }

    fn append_to(&self, buffer: &mut Vec<u8>) {
        match self {
            RowText::Raw(text) => text.append_to(buffer),
            RowText::Words(words) => words.iter().for_each(|word| word.append_to(buffer)),
        }
    }
}

/// A string that is not UTF-8.
pub(crate) struct NotUtf8 {
    /// The number of the row among those that were copied.
    row: usize,
    is_second: bool,
    word: Option<usize>,
    valid_up_to: usize,
}

impl NotUtf8 {
    /// Returns the error for the column, of which row `first_row` was the first to be copied.
    pub(crate) fn at(self, first_row: usize) -> ReadError {
        let position = RowPosition { row: first_row + self.row, is_second: self.is_second, word: self.word };
        ReadError { position: Some(position), problem: Problem::NotUtf8 { valid_up_to: self.valid_up_to } }
    }
}

/// Copies the texts of rows into an empty buffer and returns them from there.
///
/// The copy is checked as a whole, which is faster than string by string: if it is UTF-8, then so is each string that begins
/// and ends between characters.
pub(crate) fn copied<'b>(rows: &[Row<'_>], buffer: &'b mut Vec<u8>) -> Result<Vec<Input<'b>>, NotUtf8> {
    debug_assert!(buffer.is_empty());
    for row in rows {
        row.first.append_to(buffer);
        row.second.iter().for_each(|text| text.append_to(buffer));
    }
    let buffer: &'b [u8] = buffer;
    let all = simdutf8::basic::from_utf8(buffer).ok();
    let mut copies = Copies { buffer, all, at: 0 };
    let input = |(row, texts): (usize, &Row<'_>)| {
        let first = copies.text(&texts.first, row, false)?;
        let second = texts.second.as_ref().map(|text| copies.text(text, row, true)).transpose()?;
        Ok(Input { first, second })
    };
    rows.iter().enumerate().map(input).collect()
}

/// The texts that were copied one after the other.
struct Copies<'b> {
    buffer: &'b [u8],
    /// The same, if all of it is UTF-8.
    all: Option<&'b str>,
    /// Where the next text begins.
    at: usize,
}

impl<'b> Copies<'b> {
    fn text(&mut self, text: &RowText<'_>, row: usize, is_second: bool) -> Result<Text<'b>, NotUtf8> {
        let mut string =
            |word, len| self.string(len).map_err(|valid_up_to| NotUtf8 { row, is_second, word, valid_up_to });
        Ok(match text {
            RowText::Raw(text) => Text::Raw(string(None, text.len())?),
            RowText::Words(words) => {
                let words = words.iter().enumerate().map(|(i, word)| string(Some(i), word.len()));
                Text::Words(words.collect::<Result<_, _>>()?)
            }
        })
    }

    /// Returns the next string; or the number of its bytes that are UTF-8.
    fn string(&mut self, len: usize) -> Result<&'b str, usize> {
        let range: Range<usize> = self.at..self.at + len;
        self.at = range.end;
        if let Some(string) = self.all.and_then(|all| all.get(range.clone())) {
            return Ok(string);
        }
        // Something is not UTF-8, perhaps of another string.
        str::from_utf8(&self.buffer[range]).map_err(|error| error.valid_up_to())
    }
}

impl Row<'_> {
    /// Appends a copy of its first text to a buffer; of words, one after the other.
    ///
    /// # Errors
    ///
    /// [`Problem::NotUtf8`]; the buffer is then as it was.
    pub fn append_first(&self, buffer: &mut Vec<u8>) -> Result<(), Problem> {
        let start = buffer.len();
        self.first.append_to(buffer);
        if simdutf8::basic::from_utf8(&buffer[start..]).is_ok() {
            return Ok(());
        }
        let valid_up_to = str::from_utf8(&buffer[start..]).map_or_else(|error| error.valid_up_to(), str::len);
        buffer.truncate(start);
        Err(Problem::NotUtf8 { valid_up_to })
    }
}

/// A buffer of more bytes is freed after its use.
const MAX_KEPT_BYTES: usize = 1 << 18;

thread_local! {
    /// The memory for the copies of this thread, which is used again: fresh memory costs more than copying to it.
    static BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

impl BatchItem for Row<'_> {
    const COPIES: bool = true;

    fn bytes(&self) -> usize {
        self.first.len() + self.second.as_ref().map_or(0, RowText::len)
    }

    fn with_inputs<T>(
        items: &[Self],
        first: usize,
        f: impl FnOnce(&[Input<'_>]) -> wordpiece::Result<T>,
    ) -> wordpiece::Result<T> {
        let bytes = items.iter().map(BatchItem::bytes).fold(0, usize::saturating_add);
        let mut buffer = BUFFER.take();
        buffer.clear();
        let rows = items.len();
        buffer.try_reserve(bytes).map_err(|_| Error::OutOfMemory { rows, length: 0, bytes })?;
        let inputs = copied(items, &mut buffer).map_err(|NotUtf8 { row, is_second, word, valid_up_to }| {
            Error::InputNotUtf8 { is_second, word, valid_up_to }.at_index(first + row)
        })?;
        let result = f(&inputs);
        drop(inputs);
        if buffer.capacity() <= MAX_KEPT_BYTES {
            BUFFER.set(buffer);
        }
        result
    }
}
