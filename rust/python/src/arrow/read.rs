//! The buffers of Arrow → strings and lists, read where they stand.
//!
//! The C interface has pointers without lengths, so that a producer is believed where a buffer ends. All else is checked:
//! that numbers are not negative, ends do not decrease, indices exist, and strings are UTF-8. Numbers are read byte by
//! byte, for the specification recommends that buffers are aligned and does not ask for it.

use std::ops::Range;

use pyo3::PyErr;
use wordpiece::Text;

use crate::arrow::abi::{self, Array};
use crate::arrow::kind::{IndexKind, ListKind, TextKind};
use crate::error;
use crate::location::Location;

/// Why a column, or an item of it, cannot be read.
#[derive(Debug)]
pub enum Fault {
    Null,
    /// From this byte on.
    NotUtf8(usize),
    /// A list that should be a pair has so many texts.
    NoPair(usize),
    /// Against the specification.
    Malformed(String),
    /// A stream failed, for a reason of its own.
    Failed(String),
}

impl Fault {
    /// The exception.
    pub fn at(self, place: impl std::fmt::Display) -> PyErr {
        error::input(match self {
            Fault::Null => format!("{place} is null: fill nulls first (fill_null, fillna), or drop them"),
            Fault::NotUtf8(byte) => format!("{place} is not valid UTF-8 from byte {byte} on: repair the column"),
            Fault::NoPair(n) => format!(
                "{place} is a list of {n} texts; a pair has two texts; for a list of words: is_split_into_words=True"
            ),
            Fault::Failed(what) => format!("{place} cannot be read: {what}"),
            Fault::Malformed(what) => format!(
                "{place} is malformed Arrow data: {what}; that is a mistake of the library that made them, a list of str \
                 works instead"
            ),
        })
    }
}

fn malformed(what: &str) -> Fault {
    Fault::Malformed(what.to_owned())
}

/// Rows of an array: `len` from `start` on, counted from where its buffers begin.
#[derive(Clone, Copy)]
pub struct Node<'a> {
    array: &'a Array,
    start: usize,
    pub len: usize,
}

impl<'a> Node<'a> {
    /// All rows of an array.
    pub fn whole(array: &'a Array) -> Result<Node<'a>, Fault> {
        // So that sums of two, in bytes, are numbers still: the widest item has 16.
        const MOST: usize = isize::MAX as usize / 64;
        let number = |name, value: i64| {
            let number = usize::try_from(value).ok().filter(|&number| number <= MOST);
            number.ok_or_else(|| Fault::Malformed(format!("an array has the {name} {value}")))
        };
        Ok(Node { array, start: number("offset", array.offset)?, len: number("length", array.length)? })
    }

    /// Some of the rows of a child, all if they are not said.
    pub fn child(self, index: usize, rows: Option<Range<usize>>) -> Result<Node<'a>, Fault> {
        // SAFETY: an array that is not released has the children that it says it has.
        let child = unsafe { abi::child(self.array.children, self.array.n_children, index) };
        let child = Node::whole(child.ok_or_else(|| Fault::Malformed(format!("an array has no child {index}")))?)?;
        match rows {
            None => Ok(child),
            Some(rows) if rows.end <= child.len => {
                Ok(Node { start: child.start + rows.start, len: rows.len(), ..child })
            }
            Some(rows) => {
                Err(Fault::Malformed(format!("column {index} has {} rows, but {} are needed", child.len, rows.end)))
            }
        }
    }

    /// The rows of a table's column that are rows of the table here.
    pub fn column(self, index: usize) -> Result<Node<'a>, Fault> {
        self.child(index, Some(self.start..self.start + self.len))
    }

    fn dictionary(self) -> Result<Node<'a>, Fault> {
        // SAFETY: an array that is not released has a dictionary or none.
        let values = unsafe { self.array.dictionary.as_ref() };
        Node::whole(values.ok_or_else(|| malformed("a dictionary has no values"))?)
    }

    /// Items of a buffer, of `N` bytes each.
    fn items<const N: usize>(self, buffer: usize, range: Range<usize>) -> Result<&'a [[u8; N]], Fault> {
        if range.is_empty() {
            return Ok(&[]);
        }
        if range.end > isize::MAX as usize / N {
            return Err(Fault::Malformed(format!("buffer {buffer} would have {} items", range.end)));
        }
        let there = !self.array.buffers.is_null() && usize::try_from(self.array.n_buffers).is_ok_and(|n| buffer < n);
        // SAFETY: an array that is not released has the buffers that it says it has.
        let pointer = if there { unsafe { self.array.buffers.add(buffer).read_unaligned() } } else { std::ptr::null() };
        if pointer.is_null() {
            return Err(Fault::Malformed(format!("an array of {} rows has no buffer {buffer}", self.len)));
        }
        // SAFETY: how long the buffer is follows from the array's type, offset and length, as the caller knows them; it
        // lives as long as the array, and arrays of bytes are aligned anywhere.
        Ok(unsafe { std::slice::from_raw_parts(pointer.cast::<[u8; N]>().add(range.start), range.len()) })
    }

    /// The numbers where lists or strings end, and before them where the first begins.
    fn ends<const N: usize>(self) -> Result<&'a [[u8; N]], Fault> {
        // Of nothing there may be no buffer at all.
        if self.len == 0 { Ok(&[]) } else { self.items(1, self.start..self.start + self.len + 1) }
    }

    /// Which rows are null.
    pub fn nulls(self) -> Result<Nulls<'a>, Fault> {
        let there = self.array.n_buffers > 0 && !self.array.buffers.is_null();
        // SAFETY: as in `items`.
        if there && unsafe { !self.array.buffers.read_unaligned().is_null() } {
            return Ok(Nulls { valid: self.items(0, 0..(self.start + self.len).div_ceil(8))?, start: self.start });
        }
        match self.array.null_count > 0 && self.len > 0 {
            true => Err(malformed("an array has nulls, but does not say which rows they are")),
            false => Ok(Nulls { valid: &[], start: 0 }),
        }
    }
}

/// Which rows are null: those whose bit is 0; without bits none is.
pub struct Nulls<'a> {
    valid: &'a [[u8; 1]],
    start: usize,
}

impl Nulls<'_> {
    /// Refuses a null.
    pub fn check(&self, row: usize) -> Result<(), Fault> {
        let bit = self.start + row;
        let null = !self.valid.is_empty() && self.valid[bit / 8][0] >> (bit % 8) & 1 == 0;
        if null { Err(Fault::Null) } else { Ok(()) }
    }
}

/// A range between two ends that were read from a buffer, among `len` items.
fn between(start: i64, end: i64, len: usize) -> Result<Range<usize>, Fault> {
    match (usize::try_from(start), usize::try_from(end)) {
        (Ok(start), Ok(end)) if start <= end && end <= len => Ok(start..end),
        _ => Err(Fault::Malformed(format!("it is from {start} to {end} of {len}"))),
    }
}

fn small(number: [u8; 4]) -> i64 {
    i32::from_ne_bytes(number).into()
}

/// The texts of a column.
pub struct Strings<'a> {
    nulls: Nulls<'a>,
    bytes: Bytes<'a>,
}

/// Where their bytes are.
enum Bytes<'a> {
    Utf8 { ends: &'a [[u8; 4]], data: &'a [u8] },
    LargeUtf8 { ends: &'a [[u8; 8]], data: &'a [u8] },
    View { views: &'a [[u8; 16]], data: Vec<&'a [u8]> },
    Dictionary { indices: Indices<'a>, values: Box<Strings<'a>>, len: usize },
    None,
}

impl<'a> Strings<'a> {
    /// The strings of an array.
    pub fn new(node: Node<'a>, kind: TextKind) -> Result<Strings<'a>, Fault> {
        let bytes = match kind {
            // There are no buffers, and nothing to read of them.
            TextKind::Null => return Ok(Strings { nulls: Nulls { valid: &[], start: 0 }, bytes: Bytes::None }),
            TextKind::Utf8 => {
                let ends = node.ends()?;
                let len = ends.last().map_or(0, |&end| small(end));
                Bytes::Utf8 { ends, data: node.data(2, len)? }
            }
            TextKind::LargeUtf8 => {
                let ends = node.ends()?;
                let len = ends.last().map_or(0, |&end| i64::from_ne_bytes(end));
                Bytes::LargeUtf8 { ends, data: node.data(2, len)? }
            }
            TextKind::View => {
                Bytes::View { views: node.items(1, node.start..node.start + node.len)?, data: node.variadic()? }
            }
        };
        Ok(Strings { nulls: node.nulls()?, bytes })
    }

    /// The strings that the indices of an array stand for.
    pub fn from_dictionary(node: Node<'a>, index: IndexKind, values: TextKind) -> Result<Strings<'a>, Fault> {
        let dictionary = node.dictionary()?;
        let values = Box::new(Strings::new(dictionary, values)?);
        let bytes = Bytes::Dictionary { indices: Indices::new(node, index)?, values, len: dictionary.len };
        Ok(Strings { nulls: node.nulls()?, bytes })
    }

    /// One of them.
    pub fn get(&self, row: usize) -> Result<&'a str, Fault> {
        self.nulls.check(row)?;
        let bytes = match &self.bytes {
            Bytes::Utf8 { ends, data } => &data[between(small(ends[row]), small(ends[row + 1]), data.len())?],
            Bytes::LargeUtf8 { ends, data } => {
                let [start, end] = [ends[row], ends[row + 1]].map(i64::from_ne_bytes);
                &data[between(start, end, data.len())?]
            }
            Bytes::View { views, data } => viewed(&views[row], data)?,
            Bytes::Dictionary { indices, values, len } => {
                let index = indices.get(row);
                let found = usize::try_from(index).ok().filter(|index| index < len);
                let none = || Fault::Malformed(format!("it is number {index} of a dictionary of {len}"));
                return values.get(found.ok_or_else(none)?);
            }
            Bytes::None => return Err(Fault::Null),
        };
        let place = |_| Fault::NotUtf8(std::str::from_utf8(bytes).map_or_else(|error| error.valid_up_to(), str::len));
        simdutf8::basic::from_utf8(bytes).map_err(place)
    }
}

impl<'a> Node<'a> {
    /// A buffer of bytes, as many as the last end says.
    fn data(self, buffer: usize, len: i64) -> Result<&'a [u8], Fault> {
        let len = usize::try_from(len).map_err(|_| malformed("the last string ends before the first byte"))?;
        Ok(self.items::<1>(buffer, 0..len)?.as_flattened())
    }

    /// The buffers of a column of views; the last buffer has their lengths.
    fn variadic(self) -> Result<Vec<&'a [u8]>, Fault> {
        // Nulls, views, and the lengths.
        let n = usize::try_from(self.array.n_buffers).unwrap_or(0).saturating_sub(3);
        let lengths = self.items::<8>(n + 2, 0..n)?;
        lengths.iter().zip(2..).map(|(&len, buffer)| self.data(buffer, i64::from_ne_bytes(len))).collect()
    }
}

/// The bytes of a view: its length, and them or else their beginning, their buffer and their place in it.
fn viewed<'a>(view: &'a [u8; 16], data: &[&'a [u8]]) -> Result<&'a [u8], Fault> {
    const INLINE: i64 = 12;
    let number = |at: usize| small([view[at], view[at + 1], view[at + 2], view[at + 3]]);
    let len = number(0);
    if (0..=INLINE).contains(&len) {
        return Ok(&view[4..4 + len as usize]);
    }
    let (buffer, start) = (number(8), number(12));
    let found = usize::try_from(buffer).ok().and_then(|buffer| data.get(buffer));
    let none = || Fault::Malformed(format!("it is in buffer {buffer} of {}", data.len()));
    let found = found.ok_or_else(none)?;
    Ok(&found[between(start, start + len, found.len())?])
}

/// The indices of a dictionary.
struct Indices<'a> {
    bytes: &'a [u8],
    kind: IndexKind,
}

impl<'a> Indices<'a> {
    fn new(node: Node<'a>, kind: IndexKind) -> Result<Indices<'a>, Fault> {
        let rows = node.start * kind.bytes..(node.start + node.len) * kind.bytes;
        Ok(Indices { bytes: node.items::<1>(1, rows)?.as_flattened(), kind })
    }

    /// One of them; of what 64 bits with a sign do not hold a negative one, which is not there either.
    fn get(&self, row: usize) -> i64 {
        let n = self.kind.bytes;
        let mut number = [0; 8];
        let bytes = &self.bytes[row * n..(row + 1) * n];
        if cfg!(target_endian = "big") {
            number[8 - n..].copy_from_slice(bytes);
        } else {
            number[..n].copy_from_slice(bytes);
        }
        let unused = 64 - 8 * n as u32;
        let number = i64::from_ne_bytes(number);
        if self.kind.signed { number << unused >> unused } else { number }
    }
}

/// The lists of a column: which of its items each has.
pub struct Lists<'a> {
    nulls: Nulls<'a>,
    ends: Ends<'a>,
    len: usize,
}

enum Ends<'a> {
    Small(&'a [[u8; 4]]),
    Large(&'a [[u8; 8]]),
    Fixed { start: usize, size: usize },
}

impl<'a> Lists<'a> {
    /// The lists of an array, and its items.
    pub fn new(node: Node<'a>, kind: ListKind) -> Result<(Lists<'a>, Node<'a>), Fault> {
        let items = node.child(0, None)?;
        let ends = match kind {
            ListKind::Small => Ends::Small(node.ends()?),
            ListKind::Large => Ends::Large(node.ends()?),
            ListKind::Fixed(size) => Ends::Fixed { start: node.start, size },
        };
        Ok((Lists { nulls: node.nulls()?, ends, len: items.len }, items))
    }

    /// The items of a list.
    pub fn get(&self, row: usize) -> Result<Range<usize>, Fault> {
        self.nulls.check(row)?;
        match self.ends {
            Ends::Small(ends) => between(small(ends[row]), small(ends[row + 1]), self.len),
            Ends::Large(ends) => {
                let [start, end] = [ends[row], ends[row + 1]].map(i64::from_ne_bytes);
                between(start, end, self.len)
            }
            Ends::Fixed { start, size } => {
                let first = (start + row).checked_mul(size);
                let last = first.and_then(|first| first.checked_add(size)).filter(|&last| last <= self.len);
                let short = || Fault::Malformed(format!("lists of {size} have only {} items", self.len));
                last.map(|last| last - size..last).ok_or_else(short)
            }
        }
    }
}

/// The texts of a column: strings, or lists of words.
pub enum Texts<'a> {
    Raw(Strings<'a>),
    Words(Lists<'a>, Strings<'a>),
}

impl<'a> Texts<'a> {
    /// One of them; an error says where it is from `place` on.
    pub fn get(&self, row: usize, place: Location) -> Result<Text<'a>, PyErr> {
        match self {
            Texts::Raw(strings) => strings.get(row).map(Text::Raw).map_err(|fault| fault.at(place)),
            Texts::Words(lists, words) => {
                let range = lists.get(row).map_err(|fault| fault.at(place))?;
                let word = |(i, item)| words.get(item).map_err(|fault: Fault| fault.at(place.element("word", i)));
                range.enumerate().map(word).collect::<Result<_, _>>().map(Text::Words)
            }
        }
    }
}
