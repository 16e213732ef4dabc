//! Texts, words, tokens and ids as Python has them → what the core takes.
//!
//! Strings are borrowed, not copied: Python keeps the UTF-8 of a `str` beside it, and the references held here keep the `str`
//! alive even when another thread empties the list it came from. A `str` with a lone surrogate has no UTF-8; it is refused
//! here and nowhere else.

use std::sync::Arc;

use pyo3::Borrowed;
use pyo3::exceptions::PyUnicodeEncodeError;
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyDict, PyFrozenSet, PyList, PyMemoryView, PySet, PyString, PyTuple, PyType,
};
use wordpiece::{Input, Text, prefetch};

use crate::arrow::{self, ColumnArgument};
use crate::error;
use crate::location::Location;

/// Refuses a value: says where it stands, what it is and what was expected.
fn refuse(place: Location, value: &Bound<'_, PyAny>, expected: &str) -> PyErr {
    error::input(format!("{place} is {}; {expected}", described(value)))
}

/// A value for a message: its type, and as much of its `repr` as a line holds.
fn described(value: &Bound<'_, PyAny>) -> String {
    const MOST: usize = 60;
    if value.is_none() {
        return "None".to_owned();
    }
    let kind = value.get_type().name().map_or_else(|_| "object".to_owned(), |name| name.to_string());
    match value.repr() {
        Ok(repr) => {
            let repr = repr.to_string_lossy().into_owned();
            let short: String = repr.chars().take(MOST).collect();
            format!("{kind} {short}{}", if short.len() < repr.len() { "…" } else { "" })
        }
        Err(_) => kind,
    }
}

/// A `str` whose UTF-8 can be borrowed.
pub fn string<'py>(value: &Bound<'py, PyAny>, place: Location, expected: &str) -> PyResult<Bound<'py, PyString>> {
    let text = value.cast::<PyString>().map_err(|_| refuse(place, value, expected))?;
    match text.to_str() {
        Ok(_) => Ok(text.clone()),
        Err(cause) if cause.is_instance_of::<PyUnicodeEncodeError>(value.py()) => {
            let at: usize = cause.value(value.py()).getattr("start")?.extract()?;
            let found = value.get_item(at)?.repr()?;
            Err(error::input(format!(
                "{place} has a lone surrogate, {}, at position {at}, which is no character: clean the text, for example \
                 with text.encode(\"utf-8\", \"replace\").decode()",
                found.to_string_lossy()
            )))
        }
        Err(cause) => Err(cause),
    }
}

/// A list of what a sequence holds: of a list, a tuple, an array (NumPy's, pandas', polars', Arrow's).
///
/// An array of `str` is asked for its strings: its buffer has them in a form of its own.
fn listed<'py>(value: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyList>>> {
    if let Ok(list) = value.cast::<PyList>() {
        return Ok(Some(list.clone()));
    }
    if let Ok(tuple) = value.cast::<PyTuple>() {
        return Ok(Some(tuple.to_list()));
    }
    if !is_lump(value) {
        for method in ["tolist", "to_pylist", "to_list"] {
            if value.hasattr(method)? {
                return Ok(value.call_method0(method)?.cast_into::<PyList>().ok());
            }
        }
    }
    Ok(None)
}

/// A list of what an iterable yields; none of what has no order, is one lump, or would yield names of columns.
fn drained<'py>(value: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyList>>> {
    let unordered =
        value.is_instance_of::<PyDict>() || value.is_instance_of::<PySet>() || value.is_instance_of::<PyFrozenSet>();
    if unordered || is_lump(value) {
        return Ok(None);
    }
    if let Some(list) = listed(value)? {
        return Ok(Some(list));
    }
    if value.hasattr("keys")? {
        return Ok(None);
    }
    match value.try_iter() {
        Err(_) => Ok(None),
        Ok(items) => Ok(Some(PyList::new(value.py(), items.collect::<PyResult<Vec<_>>>()?)?)),
    }
}

fn is_lump(value: &Bound<'_, PyAny>) -> bool {
    value.is_instance_of::<PyString>()
        || value.is_instance_of::<PyBytes>()
        || value.is_instance_of::<PyByteArray>()
        || value.is_instance_of::<PyMemoryView>()
        // The methods of a class are not its own.
        || value.is_instance_of::<PyType>()
}

/// A text as Python holds it.
pub enum HeldText {
    Raw(Py<PyString>),
    Words(Vec<Py<PyString>>),
}

impl HeldText {
    fn read(value: &Bound<'_, PyAny>, split: bool, place: Location) -> PyResult<HeldText> {
        if split { HeldText::words(value, place) } else { HeldText::raw(value, place) }
    }

    fn raw(value: &Bound<'_, PyAny>, place: Location) -> PyResult<HeldText> {
        let expected = match (place.is_item(), place.is_second()) {
            (false, _) => "text input must be a str (for a list of words: is_split_into_words=True)",
            (true, false) => "text input must be a str, or a pair of them: (text, pair)",
            (true, true) => "text input must be a str",
        };
        Ok(HeldText::Raw(string(value, place, expected)?.unbind()))
    }

    fn words(value: &Bound<'_, PyAny>, place: Location) -> PyResult<HeldText> {
        let expected = "with is_split_into_words=True a text is a list of words, each a str";
        let Some(words) = listed(value)? else { return Err(refuse(place, value, expected)) };
        let word = |(i, word)| Ok(string(&word, place.element("word", i), expected)?.unbind());
        words.iter().enumerate().map(word).collect::<PyResult<Vec<_>>>().map(HeldText::Words)
    }

    fn text(&self, py: Python<'_>) -> PyResult<Text<'_>> {
        Ok(match self {
            HeldText::Raw(text) => Text::Raw(text.to_str(py)?),
            HeldText::Words(words) => Text::Words(words.iter().map(|word| word.to_str(py)).collect::<PyResult<_>>()?),
        })
    }
}

/// What becomes one row, as it was given.
pub enum HeldInput {
    /// Texts that Python holds.
    Texts { first: HeldText, second: Option<HeldText> },
    /// A row of a column.
    Row(Arc<ColumnArgument>, usize),
}

impl HeldInput {
    /// The texts of a call for one row.
    pub fn new(text: &Bound<'_, PyAny>, pair: Option<&Bound<'_, PyAny>>, split: bool) -> PyResult<HeldInput> {
        let first = HeldText::read(text, split, Location::argument("text"))?;
        let second = pair.map(|pair| HeldText::read(pair, split, Location::argument("pair"))).transpose()?;
        Ok(HeldInput::Texts { first, second })
    }

    /// An item of a batch: a text or a pair of texts.
    fn read(value: &Bound<'_, PyAny>, split: bool, index: usize) -> PyResult<HeldInput> {
        let place = Location::item("item", index);
        if !value.is_instance_of::<PyString>()
            && let Some(both) = listed(value)?
            // Of words a pair is two lists; of texts anything that is no text can only be a pair.
            && (!split || (both.len() == 2 && both.iter().all(|text| !text.is_instance_of::<PyString>())))
        {
            if both.len() != 2 {
                let expected = "a pair has two texts, (text, pair); for a list of words: is_split_into_words=True";
                return Err(refuse(place, value, expected));
            }
            let first = HeldText::read(&both.get_item(0)?, split, place)?;
            let second = HeldText::read(&both.get_item(1)?, split, place.second())?;
            return Ok(HeldInput::Texts { first, second: Some(second) });
        }
        Ok(HeldInput::Texts { first: HeldText::read(value, split, place)?, second: None })
    }

    /// What the core takes, borrowed.
    pub fn input(&self, py: Python<'_>) -> PyResult<Input<'_>> {
        match self {
            HeldInput::Texts { first, second } => {
                let second = second.as_ref().map(|text| text.text(py)).transpose()?;
                Ok(Input { first: first.text(py)?, second })
            }
            HeldInput::Row(column, row) => column.input(*row),
        }
    }
}

/// The argument that should be a batch, as it holds its items.
pub enum BatchArgument<'py> {
    /// A list or another iterable: references of our own to its items, which nobody can take away.
    List(Bound<'py, PyTuple>),
    /// A column of Arrow, or strings of NumPy in a form that is as good.
    Column(Arc<ColumnArgument>),
}

impl<'py> BatchArgument<'py> {
    /// Takes the items, not yet looking at them. With `single` each is to be a text, as there are second texts elsewhere.
    pub fn new(
        value: &Bound<'py, PyAny>,
        name: &'static str,
        split: bool,
        single: bool,
    ) -> PyResult<BatchArgument<'py>> {
        if let Ok(list) = value.cast::<PyList>() {
            return Ok(BatchArgument::List(list.to_tuple()));
        }
        if let Ok(tuple) = value.cast::<PyTuple>() {
            return Ok(BatchArgument::List(tuple.clone()));
        }
        let column = match ColumnArgument::import(value, name, split, !single)? {
            None if !split => ColumnArgument::from_numpy_strings(value, name),
            column => column,
        };
        if let Some(column) = column {
            return Ok(BatchArgument::Column(Arc::new(column)));
        }
        match drained(value)? {
            Some(list) => Ok(BatchArgument::List(list.to_tuple())),
            None => {
                let expected = "a batch is a list of texts, each a str or a pair of them, or a column of strings";
                Err(refuse(Location::argument(name), value, expected))
            }
        }
    }

    /// The items one by one.
    pub fn items(&self, split: bool) -> PyResult<Vec<HeldInput>> {
        match self {
            BatchArgument::List(list) => {
                list.iter().enumerate().map(|(i, value)| HeldInput::read(&value, split, i)).collect()
            }
            BatchArgument::Column(column) => {
                Ok((0..column.len()).map(|row| HeldInput::Row(Arc::clone(column), row)).collect())
            }
        }
    }

    /// The items where none is a pair, the first texts of a batch or, as `place` has it, the second ones.
    pub fn texts(&self, split: bool, place: fn(usize) -> Location) -> PyResult<TextSequence<'_>> {
        match self {
            BatchArgument::Column(column) => Ok(TextSequence::Column(column, place)),
            BatchArgument::List(list) => {
                let source = |(i, value): (usize, Bound<'py, PyAny>)| HeldText::read(&value, split, place(i));
                list.iter().enumerate().map(source).collect::<PyResult<_>>().map(TextSequence::List)
            }
        }
    }
}

/// One text for each row of a batch.
pub enum TextSequence<'a> {
    List(Vec<HeldText>),
    /// With what errors call the rows.
    Column(&'a ColumnArgument, fn(usize) -> Location),
}

impl TextSequence<'_> {
    fn texts(&self, py: Python<'_>) -> PyResult<Vec<Text<'_>>> {
        match self {
            TextSequence::List(sources) => sources.iter().map(|source| source.text(py)).collect(),
            TextSequence::Column(column, place) => py.detach(|| column.texts(*place)),
        }
    }
}

/// What the core takes of texts and their second texts, borrowed.
pub fn zipped<'a>(
    py: Python<'_>,
    texts: &'a TextSequence<'_>,
    pairs: &'a TextSequence<'_>,
) -> PyResult<Vec<Input<'a>>> {
    let (texts, pairs) = (texts.texts(py)?, pairs.texts(py)?);
    let (n, m) = (texts.len(), pairs.len());
    if n != m {
        return Err(error::input(format!(
            "batch length of `text`: {n} does not match batch length of `text_pair`: {m}"
        )));
    }
    Ok(texts.into_iter().zip(pairs).map(|(first, second)| Input { first, second: Some(second) }).collect())
}

/// What the core takes of a tuple with texts and nothing else, borrowed; `None` when something is no text.
///
/// Most batches are one. Copying the references at once and borrowing from the copy costs a fraction of taking items one
/// by one; what is not such a list goes the general way, which tells what is wrong with it.
pub fn plain<'a>(list: &'a Bound<'_, PyTuple>) -> Option<Vec<Input<'a>>> {
    fn text<'a>(item: Borrowed<'a, '_, PyAny>) -> Option<&'a str> {
        let string = item.cast::<PyString>().ok()?;
        let text = string.to_str().ok()?;
        // SAFETY: the UTF-8 of a str lives as long as the str and never changes, and the str as long as the tuple
        // it was borrowed from. PyO3 says so for the str alone.
        Some(unsafe { std::mem::transmute::<&str, &'a str>(text) })
    }
    // Each str is a place of its own in memory: while one is read, some after it are asked for.
    let mut ahead = list.iter_borrowed();
    ahead.by_ref().take(AHEAD).for_each(|item| prefetch(item.as_ptr()));
    let input = |item| {
        if let Some(item) = ahead.next() {
            prefetch(item.as_ptr());
        }
        text(item).map(Input::single)
    };
    list.iter_borrowed().map(input).collect()
}

/// How many strs ahead the memory is asked for one.
const AHEAD: usize = 12;

/// Whether an argument is one text rather than a batch of them.
pub fn is_single(value: &Bound<'_, PyAny>, split: bool) -> PyResult<bool> {
    if !split {
        return Ok(value.is_instance_of::<PyString>());
    }
    // A column is a batch, and some can be read but once.
    if arrow::passes_on_columns(value) {
        return Ok(false);
    }
    let first = listed(value)?.and_then(|list| list.get_item(0).ok());
    Ok(first.is_some_and(|first| first.is_instance_of::<PyString>()))
}

/// One id.
pub fn id(value: &Bound<'_, PyAny>, place: Location) -> PyResult<u32> {
    match value.extract::<u32>() {
        Ok(id) if !value.is_instance_of::<PyBool>() => Ok(id),
        _ => Err(refuse(place, value, "an id is a whole number from 0 to 4294967295")),
    }
}

/// A list of ids.
pub fn ids(value: &Bound<'_, PyAny>, place: Location) -> PyResult<Vec<u32>> {
    let Some(list) = drained(value)? else { return Err(refuse(place, value, "ids are a list of whole numbers")) };
    let at = |i| if place.is_item() { place.element("id", i) } else { Location::item("id", i) };
    list.iter().enumerate().map(|(i, value)| id(&value, at(i))).collect()
}

/// A list of lists of ids.
pub fn id_lists(value: &Bound<'_, PyAny>) -> PyResult<Vec<Vec<u32>>> {
    let Some(lists) = drained(value)? else {
        return Err(refuse(Location::argument("ids"), value, "a batch is a list of lists of ids"));
    };
    lists.iter().enumerate().map(|(i, list)| ids(&list, Location::item("item", i))).collect()
}

/// An index or position; a negative one does not count from the end, it is a mistake.
pub fn position(name: &'static str, value: &Bound<'_, PyAny>) -> PyResult<u32> {
    match value.extract::<i64>() {
        // Beyond what any text has: nothing is there.
        Ok(position) if position >= 0 => Ok(u32::try_from(position).unwrap_or(u32::MAX)),
        _ => Err(refuse(Location::argument(name), value, "expected a whole number from 0 on")),
    }
}
