//! Tables with separators, CSV and TSV: where records end, and which of their fields are texts.
//!
//! The rules are the same as in Python's `csv` module in its strict mode. A record ends at `\n`, `\r\n` or `\r`; an
//! empty line is not a record. In CSV, a field that begins with a quotation mark ends at the next one that is not
//! doubled, and may hold separators and line breaks; elsewhere a quotation mark is an ordinary character, and in TSV it
//! is one everywhere.

use std::iter;
use std::ops::Range;

use memchr::{memchr, memchr2, memchr3};

use super::options::{TableFormat, TextLayout};
use super::text_block::TextBlock;
use crate::error::{Error, Result, TextProblem};

/// The search for the end of a record, which continues when more of the file has been read.
#[derive(Debug, Default)]
pub(super) struct RecordSearch {
    /// So many bytes of the record have been searched.
    searched: usize,
    /// A quoted field is open there.
    quoted: bool,
}

impl RecordSearch {
    /// Returns the end of the record that `bytes` begins with, and the start of the next one; `None` if `bytes` has no
    /// complete record. `ended`: no more bytes will follow.
    pub fn next(&mut self, format: TableFormat, bytes: &[u8], ended: bool) -> Option<(usize, usize)> {
        loop {
            let rest = &bytes[self.searched..];
            let found = match (self.quoted, format) {
                (true, _) => memchr(b'"', rest),
                (false, TableFormat::Csv) => memchr3(b'\n', b'\r', b'"', rest),
                (false, TableFormat::Tsv) => memchr2(b'\n', b'\r', rest),
            };
            let Some(found) = found else {
                self.searched = bytes.len();
                return None;
            };
            let at = self.searched + found;
            let next = bytes.get(at + 1).copied();
            // What a quotation mark or `\r` means depends on the byte after it.
            if next.is_none() && !ended && (self.quoted || bytes[at] == b'\r') {
                self.searched = at;
                return None;
            }
            match bytes[at] {
                b'"' if self.quoted && next == Some(b'"') => self.searched = at + 2,
                b'"' if self.quoted => (self.searched, self.quoted) = (at + 1, false),
                b'"' => (self.searched, self.quoted) = (at + 1, at == 0 || bytes[at - 1] == format.separator()),
                end => {
                    *self = RecordSearch::default();
                    return Some((at, at + 1 + usize::from(end == b'\r' && next == Some(b'\n'))));
                }
            }
        }
    }
}

/// Returns the number of line ends in a part of a table.
pub(super) fn line_ends(bytes: &[u8]) -> u64 {
    memchr::memchr2_iter(b'\n', b'\r', bytes)
        .filter(|&at| bytes[at] == b'\n' || bytes.get(at + 1) != Some(&b'\n'))
        .count() as u64
}

/// A field of a record: what is between its quotation marks, if it has any.
#[derive(Debug, Clone, Copy)]
struct Field<'a> {
    text: &'a str,
    /// Quotation marks in it are doubled.
    doubled: bool,
}

impl Field<'_> {
    fn append(self, out: &mut String) {
        if self.doubled {
            out.extend(
                self.text.split("\"\"").enumerate().flat_map(|(i, part)| [if i == 0 { "" } else { "\"" }, part]),
            );
        } else {
            out.push_str(self.text);
        }
    }
}

/// The fields of a record.
struct Fields<'a> {
    format: TableFormat,
    rest: Option<&'a str>,
}

impl<'a> Iterator for Fields<'a> {
    type Item = std::result::Result<Field<'a>, TextProblem>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.rest?;
        if self.format == TableFormat::Csv && rest.starts_with('"') {
            return Some(self.quoted(&rest[1..]));
        }
        let (text, rest) = match memchr(self.format.separator(), rest.as_bytes()) {
            Some(at) => (&rest[..at], Some(&rest[at + 1..])),
            None => (rest, None),
        };
        self.rest = rest;
        Some(Ok(Field { text, doubled: false }))
    }
}

impl<'a> Fields<'a> {
    /// Returns the field whose opening quotation mark is before `rest`.
    fn quoted(&mut self, rest: &'a str) -> std::result::Result<Field<'a>, TextProblem> {
        let bytes = rest.as_bytes();
        let (mut end, mut doubled) = (0, false);
        loop {
            end += memchr(b'"', &bytes[end..]).ok_or(TextProblem::OpenQuote)?;
            if bytes.get(end + 1) != Some(&b'"') {
                break;
            }
            (end, doubled) = (end + 2, true);
        }
        self.rest = match bytes.get(end + 1) {
            None => None,
            Some(b',') => Some(&rest[end + 2..]),
            Some(_) => return Err(TextProblem::AfterQuote),
        };
        Ok(Field { text: &rest[..end], doubled })
    }
}

/// What the first record of a table says about the others.
#[derive(Debug)]
pub(super) struct Header {
    format: TableFormat,
    /// The number of fields.
    width: usize,
    /// The positions of the fields that are texts, ascending, each with its place among the requested columns.
    texts: Vec<(usize, usize)>,
}

impl Header {
    /// Reads the first record of a table with the given layout.
    ///
    /// # Errors
    ///
    /// A problem with the record itself, or [`Error::NoColumn`].
    ///
    /// # Panics
    ///
    /// Panics if the layout is not a table's.
    pub fn new(layout: &TextLayout, record: &str, file_name: &str) -> std::result::Result<Result<Header>, TextProblem> {
        let TextLayout::Table(format, first, others) = layout else { panic!("the layout of a table is needed") };
        let format = *format;
        let mut names = Vec::new();
        for field in (Fields { format, rest: Some(record) }) {
            let mut name = String::new();
            field?.append(&mut name);
            names.push(name);
        }
        let mut texts = Vec::new();
        for (place, column) in iter::once(first).chain(others).enumerate() {
            let mut found = (0..names.len()).filter(|&i| names[i] == *column);
            let (Some(position), None) = (found.next(), found.next()) else {
                let (file, column) = (file_name.to_owned(), column.clone());
                return Ok(Err(Error::NoColumn { file, column, columns: names }));
            };
            texts.push((position, place));
        }
        texts.sort_unstable();
        Ok(Ok(Header { format, width: names.len(), texts }))
    }

    /// Appends the texts of a record to a block, whose spans it extends by one row; appends nothing on an error.
    ///
    /// `second_is_id`: see [`ReadOptions::second_is_id`](super::ReadOptions::second_is_id).
    pub fn append(
        &self,
        record: &str,
        second_is_id: bool,
        block: &mut TextBlock,
    ) -> std::result::Result<(), TextProblem> {
        let before = (block.text.len(), block.spans.len(), block.other_spans.len());
        block.spans.push(0..0);
        block.other_spans.resize(before.2 + self.texts.len() - 1, 0..0);
        let appended = self.append_fields(record, second_is_id, before.2, block);
        if appended.is_err() {
            block.text.truncate(before.0);
            block.spans.truncate(before.1);
            block.other_spans.truncate(before.2);
        }
        appended
    }

    fn append_fields(
        &self,
        record: &str,
        second_is_id: bool,
        others: usize,
        block: &mut TextBlock,
    ) -> std::result::Result<(), TextProblem> {
        let mut wanted = self.texts.iter().peekable();
        let mut count = 0;
        for (i, field) in (Fields { format: self.format, rest: Some(record) }).enumerate() {
            let field = field?;
            count = i + 1;
            while let Some(&(_, place)) = wanted.next_if(|(position, _)| *position == i) {
                let from = block.text.len();
                if second_is_id && place == 1 {
                    append_id(&field, &mut block.text);
                } else {
                    field.append(&mut block.text);
                }
                let span: Range<usize> = from..block.text.len();
                match place {
                    0 => *block.spans.last_mut().expect("pushed by the caller") = span,
                    _ => block.other_spans[others + place - 1] = span,
                }
            }
        }
        // A record may lack fields at its end, but not one that is read; one field more is a separator in a text.
        if count > self.width || wanted.peek().is_some() {
            return Err(TextProblem::FieldCount { fields: count, columns: self.width });
        }
        Ok(())
    }
}

/// Appends `n` and the digits of a whole number of 64 bits, of a negative one in two's complement, or `s` and the text.
fn append_id(field: &Field<'_>, out: &mut String) {
    let number = field.text.parse::<i128>().ok().filter(|number| number.to_string() == field.text);
    match number.filter(|number| (i64::MIN.into()..=u64::MAX.into()).contains(number)) {
        Some(number) => out.push_str(&format!("n{}", number as u64)),
        None => {
            out.push('s');
            field.append(out);
        }
    }
}
