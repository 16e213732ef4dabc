//! Columns of Arrow in, as texts; and out, as columns of ids. Both ways nothing is copied and no other package is needed.
//!
//! Any library can pass its columns on: by the capsules of Python's Arrow interface
//! (<https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html>). `abi` has the structures in them,
//! `kind` their types, `read` their buffers; `export` makes such structures, `table` of the arrays of a batch.
//!
//! `rust/DESIGN.md` says why no crate does this.

mod abi;
mod export;
mod kind;
mod read;
mod table;

use std::ffi::c_int;

use numpy::{PyArrayDescr, PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple, PyType};
use wordpiece::{Input, Text};

use crate::error::{self, guarded};
use crate::location::Location;
use abi::{Array, Schema, Stream, Structure};
use export::Buffer;
use kind::{IndexKind, Kind, ListKind, TextKind};
use read::{Fault, Lists, Node, Nulls, Strings, Texts};

pub use table::{_arrow_array, _arrow_schema, _arrow_stream};

/// The methods by which objects pass columns on.
const STREAM: &str = "__arrow_c_stream__";
const ARRAY: &str = "__arrow_c_array__";

/// Texts, or pairs of texts, that stand in memory as Arrow lays it out.
///
/// It owns the structures, and with them the producer's memory; they are released when it is dropped.
pub struct Column {
    name: &'static str,
    shape: Shape,
    chunks: Vec<Array>,
    /// How many rows there are up to the end of each chunk.
    ends: Vec<usize>,
}

/// What a row is made of.
enum Shape {
    Text(TextShape),
    /// A table with one column of texts, or with two.
    Table(Vec<TextShape>),
    /// Lists of two texts.
    Lists(ListKind, TextShape),
}

/// What a text is made of.
enum TextShape {
    String(TextKind),
    Dictionary(IndexKind, TextKind),
    Words(ListKind, Box<TextShape>),
}

impl TextShape {
    fn of(kind: &Kind, split: bool) -> Option<TextShape> {
        match (kind, split) {
            // Of an empty column some libraries do not know the type.
            (Kind::Text(TextKind::Null), _) => Some(TextShape::String(TextKind::Null)),
            (Kind::Text(text), false) => Some(TextShape::String(*text)),
            (Kind::Dictionary(index, text), false) => Some(TextShape::Dictionary(*index, *text)),
            (Kind::List(list, words), true) => Some(TextShape::Words(*list, Box::new(TextShape::of(words, false)?))),
            _ => None,
        }
    }

    fn strings<'a>(&self, node: Node<'a>) -> Result<Strings<'a>, Fault> {
        match self {
            TextShape::String(text) => Strings::new(node, *text),
            TextShape::Dictionary(index, text) => Strings::from_dictionary(node, *index, *text),
            TextShape::Words(..) => unreachable!("words are strings"),
        }
    }

    fn texts<'a>(&self, node: Node<'a>) -> Result<Texts<'a>, Fault> {
        match self {
            TextShape::Words(list, words) => {
                let (lists, items) = Lists::new(node, *list)?;
                Ok(Texts::Words(lists, words.strings(items)?))
            }
            _ => self.strings(node).map(Texts::Raw),
        }
    }
}

impl Shape {
    fn of(kind: &Kind, split: bool) -> Option<Shape> {
        if let Some(text) = TextShape::of(kind, split) {
            return Some(Shape::Text(text));
        }
        match kind {
            Kind::Struct(columns) if matches!(columns.len(), 1 | 2) => {
                let texts = columns.iter().map(|(_, kind)| TextShape::of(kind, split));
                texts.collect::<Option<_>>().map(Shape::Table)
            }
            Kind::List(list, texts) => TextShape::of(texts, split).map(|texts| Shape::Lists(*list, texts)),
            _ => None,
        }
    }

    fn is_pair(&self) -> bool {
        match self {
            Shape::Text(_) => false,
            Shape::Table(columns) => columns.len() == 2,
            Shape::Lists(..) => true,
        }
    }
}

/// The rows of a chunk, ready to be read.
enum Rows<'a> {
    Text(Texts<'a>),
    Table(Nulls<'a>, Vec<Texts<'a>>),
    Lists(Lists<'a>, Texts<'a>),
}

impl<'a> Rows<'a> {
    fn new(node: Node<'a>, shape: &Shape) -> Result<Rows<'a>, Fault> {
        Ok(match shape {
            Shape::Text(text) => Rows::Text(text.texts(node)?),
            Shape::Table(columns) => {
                let texts = columns.iter().enumerate().map(|(i, column)| column.texts(node.column(i)?));
                Rows::Table(node.nulls()?, texts.collect::<Result<_, _>>()?)
            }
            Shape::Lists(list, texts) => {
                let (lists, items) = Lists::new(node, *list)?;
                Rows::Lists(lists, texts.texts(items)?)
            }
        })
    }

    fn get(&self, row: usize, place: Location) -> PyResult<Input<'a>> {
        let first = |text| Input { first: text, second: None };
        match self {
            Rows::Text(texts) => texts.get(row, place).map(first),
            Rows::Table(nulls, columns) => {
                nulls.check(row).map_err(|fault| fault.at(place))?;
                let first = columns[0].get(row, place)?;
                let second = columns.get(1).map(|texts| texts.get(row, place.second())).transpose()?;
                Ok(Input { first, second })
            }
            Rows::Lists(lists, texts) => {
                let both = lists.get(row).map_err(|fault| fault.at(place))?;
                if both.len() != 2 {
                    return Err(Fault::NoPair(both.len()).at(place));
                }
                let first = texts.get(both.start, place)?;
                Ok(Input { first, second: Some(texts.get(both.start + 1, place.second())?) })
            }
        }
    }
}

impl Column {
    /// Whether an object says that it passes columns on.
    pub fn is_passed_on_by(value: &Bound<'_, PyAny>) -> bool {
        [STREAM, ARRAY].into_iter().any(|method| value.hasattr(method).unwrap_or(false))
    }

    /// Takes the column that an object passes on; `None` where it passes none on, or only a copy that it would have to make.
    ///
    /// With `single`, pairs are refused: the other text of each row comes from elsewhere.
    pub fn import(value: &Bound<'_, PyAny>, name: &'static str, split: bool, single: bool) -> PyResult<Option<Column>> {
        // The methods of a class are not its own.
        if value.is_instance_of::<PyType>() {
            return Ok(None);
        }
        // What pandas has in arrays of Python objects it would have to copy, and it knows no pairs there.
        if value.getattr("dtype").is_ok_and(|dtype| dtype.is_instance_of::<PyArrayDescr>()) {
            return Ok(None);
        }
        let fault = |what: String| Fault::Malformed(what).at(name);
        // A stream first: an object with both, such as nanoarrow's, may be of several arrays.
        let (schema, chunks) = if let Ok(method) = value.getattr(STREAM) {
            let Some(capsule) = export_of(value, &method, name)? else { return Ok(None) };
            let stream = abi::take::<Stream>(&capsule).map_err(fault)?;
            // It may wait for other threads that want the interpreter.
            value.py().detach(|| drained(stream)).map_err(|fault| fault.at(name))?
        } else if let Ok(method) = value.getattr(ARRAY) {
            let Some(capsules) = export_of(value, &method, name)? else { return Ok(None) };
            let both = capsules.cast::<PyTuple>().ok().filter(|both| both.len() == 2);
            let both = both.ok_or_else(|| fault("__arrow_c_array__ must return a tuple of two capsules".to_owned()))?;
            let schema = abi::take::<Schema>(&both.get_item(0)?).map_err(fault)?;
            (schema, vec![abi::take::<Array>(&both.get_item(1)?).map_err(fault)?])
        } else {
            return Ok(None);
        };
        let kind = Kind::read(&schema).map_err(fault)?;
        let shape = Shape::of(&kind, split).filter(|shape| !(single && shape.is_pair()));
        let shape = shape.ok_or_else(|| error::input(expectation(name, &kind, split, single)))?;
        let mut n = 0_usize;
        let end = |chunk: &Array| {
            n = n.checked_add(Node::whole(chunk)?.len).ok_or_else(|| Fault::Malformed("too many rows".to_owned()))?;
            Ok(n)
        };
        let ends = chunks.iter().map(end).collect::<Result<_, Fault>>().map_err(|fault| fault.at(name))?;
        Ok(Some(Column { name, shape, chunks, ends }))
    }

    /// The strings of an array of NumPy of a dtype such as `<U10`, which has four bytes for each character; `None` for
    /// any other, and where a string has a surrogate.
    pub fn from_unicode(value: &Bound<'_, PyAny>, name: &'static str) -> Option<Column> {
        let array = value.cast::<PyUntypedArray>().ok()?;
        let dtype = array.dtype();
        if dtype.kind() != b'U' || dtype.is_native_byteorder() != Some(true) {
            return None;
        }
        if array.ndim() != 1 || !array.is_c_contiguous() {
            return None;
        }
        let (n, width) = (array.len(), dtype.itemsize() / 4);
        let units: &[u32] = match n * width {
            0 => &[],
            // SAFETY: so many numbers are there, one after the other, in this machine's byte order; while the interpreter
            // is held nobody who plays by its rules writes to them.
            size => unsafe { std::slice::from_raw_parts((*array.as_array_ptr()).fields.data.cast::<u32>(), size) },
        };
        let mut text = String::with_capacity(units.len());
        let mut ends = Vec::with_capacity(n + 1);
        ends.push(0);
        for row in 0..n {
            let row = &units[row * width..(row + 1) * width];
            // What is left of the width is zeros.
            let len = row.iter().rposition(|&unit| unit != 0).map_or(0, |last| last + 1);
            let row = &row[..len];
            if row.iter().fold(0, |all, unit| all | unit) < 0x80 {
                text.extend(row.iter().map(|&unit| char::from(unit as u8)));
            } else {
                row.iter().try_for_each(|&unit| char::from_u32(unit).map(|unit| text.push(unit)))?;
            }
            ends.push(text.len() as i64);
        }
        let buffers = vec![Buffer::Absent, Buffer::Numbers(ends), Buffer::Bytes(text.into_bytes())];
        let shape = Shape::Text(TextShape::String(TextKind::LargeUtf8));
        Some(Column { name, shape, chunks: vec![export::array(n, 0, buffers, Vec::new())], ends: vec![n] })
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    /// The number of parts.
    pub fn chunks(&self) -> usize {
        self.chunks.len()
    }

    /// The texts of a part of a column without pairs.
    pub fn texts_of(&self, chunk: usize) -> PyResult<Vec<Text<'_>>> {
        let first = chunk.checked_sub(1).map_or(0, |before| self.ends[before]);
        let rows = self.rows(chunk)?;
        let text = |row| Ok(rows.get(row - first, Location::item("item", row))?.first);
        (first..self.ends[chunk]).map(text).collect()
    }

    fn rows(&self, chunk: usize) -> PyResult<Rows<'_>> {
        let rows = Node::whole(&self.chunks[chunk]).and_then(|node| Rows::new(node, &self.shape));
        rows.map_err(|fault| fault.at(self.name))
    }

    /// What the core takes, borrowed from the producer's memory.
    pub fn inputs(&self) -> PyResult<Vec<Input<'_>>> {
        self.inputs_at(|row| Location::item("item", row))
    }

    fn inputs_at(&self, place: impl Fn(usize) -> Location) -> PyResult<Vec<Input<'_>>> {
        let mut inputs = Vec::new();
        let none = |_| error::input(format!("{} has {} rows, more than there is memory for", self.name, self.len()));
        inputs.try_reserve_exact(self.len()).map_err(none)?;
        for (chunk, &end) in self.ends.iter().enumerate() {
            let first = inputs.len();
            if first < end {
                let rows = self.rows(chunk)?;
                for i in first..end {
                    inputs.push(rows.get(i - first, place(i))?);
                }
            }
        }
        Ok(inputs)
    }

    /// One row of it.
    pub fn input(&self, row: usize) -> PyResult<Input<'_>> {
        let chunk = self.ends.partition_point(|&end| end <= row);
        let first = chunk.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.rows(chunk)?.get(row - first, Location::item("item", row))
    }

    /// The texts of a column without pairs; an error says that they are at `place`.
    pub fn texts(&self, place: impl Fn(usize) -> Location) -> PyResult<Vec<Text<'_>>> {
        Ok(self.inputs_at(place)?.into_iter().map(|input| input.first).collect())
    }
}

/// Return the strings of a column of Arrow, None for anything else.
#[pyfunction]
pub fn _column_texts(py: Python<'_>, texts: &Bound<'_, PyAny>) -> PyResult<Option<Vec<Py<PyString>>>> {
    guarded(|| {
        let Some(column) = Column::import(texts, "texts", false, true)? else { return Ok(None) };
        let strings = column.texts(|row| Location::item("item", row))?.into_iter().map(|text| match text {
            Text::Raw(text) => PyString::new(py, text).unbind(),
            Text::Words(_) => unreachable!("no list of words was asked for"),
        });
        Ok(Some(strings.collect()))
    })
}

/// What a method of the interface returns; `None` where it raises and the object can be read in another way.
fn export_of<'py>(
    value: &Bound<'py, PyAny>,
    method: &Bound<'py, PyAny>,
    name: &str,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = value.py();
    match method.call0() {
        Ok(exported) => Ok(Some(exported)),
        // pandas without pyarrow has the method, and cannot do it.
        Err(cause) if cause.is_instance_of::<PyException>(py) => {
            if value.hasattr("tolist")? {
                return Ok(None);
            }
            let error =
                error::input(format!("{name} is {}, which does not pass its columns on: {cause}", value.get_type()));
            error.set_cause(py, Some(cause));
            Err(error)
        }
        Err(cause) => Err(cause),
    }
}

/// The type and the arrays of a stream.
fn drained(mut stream: Stream) -> Result<(Schema, Vec<Array>), Fault> {
    let (Some(get_schema), Some(get_next)) = (stream.get_schema, stream.get_next) else {
        return Err(Fault::Malformed("a stream lacks its functions".to_owned()));
    };
    let mut schema = Schema::empty();
    // SAFETY: the stream is not released, and the structure owns nothing yet.
    let code = unsafe { get_schema(&mut stream, &mut schema) };
    checked(&mut stream, code)?;
    if schema.is_released() {
        return Err(Fault::Malformed("a stream has no type".to_owned()));
    }
    let mut arrays = Vec::new();
    loop {
        let mut array = Array::empty();
        // SAFETY: as above.
        let code = unsafe { get_next(&mut stream, &mut array) };
        checked(&mut stream, code)?;
        if array.is_released() {
            return Ok((schema, arrays));
        }
        arrays.push(array);
    }
}

/// The error of a stream's function, in its words.
fn checked(stream: &mut Stream, code: c_int) -> Result<(), Fault> {
    if code == 0 {
        return Ok(());
    }
    // SAFETY: the stream is not released, and has just failed; the text lives until it is asked for something else.
    let said = stream.get_last_error.and_then(|last| unsafe { abi::text(last(stream)) });
    Err(Fault::Failed(format!("its stream failed with code {code}: {}", said.unwrap_or("it does not say why"))))
}

/// Why a type is not what is wanted here.
fn expectation(name: &str, kind: &Kind, split: bool, single: bool) -> String {
    let text = match split {
        false => "strings (string, large_string, string_view, or a dictionary of them)",
        true => "lists of strings, for is_split_into_words=True",
    };
    match kind {
        Kind::Struct(columns) if columns.len() != 1 && (single || columns.len() != 2) => {
            let names: Vec<&str> = columns.iter().map(|(name, _)| name.as_str()).take(8).collect();
            let more = if names.len() < columns.len() { ", …" } else { "" };
            let pairs = if single { "" } else { ", or two for pairs" };
            format!(
                "{name} is a table of {} columns ({}{more}); choose one column of {text}{pairs}",
                columns.len(),
                names.join(", ")
            )
        }
        _ => {
            let pairs = if single { "" } else { ", or two such columns for pairs" };
            format!("{name} is an Arrow column of {kind}; a batch is a column of {text}{pairs}")
        }
    }
}
