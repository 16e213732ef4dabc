//! Conversion of arguments to the types of the core: texts, words, tokens and ids.
//!
//! Strings are borrowed, not copied. Python caches the UTF-8 of a `str` inside the object, and the references held here keep
//! the `str` alive even if another thread empties the list that it came from. A `str` that holds a number which is not
//! a character has no text: `text` checks each.
//!
//! Every error is an `InputError` that names the location of the value, shows the value, and says what was expected.

use std::sync::Arc;

use pyo3::Borrowed;
use pyo3::exceptions::{PyOverflowError, PySystemError};
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyDict, PyFrozenSet, PyList, PyMemoryView, PySet, PyString, PyTuple, PyType,
};
use wordpiece::{Input, Text, prefetch};

use crate::arrow::{self, ColumnArgument};
use crate::error;
use crate::location::Location;
use crate::text::{self, CheckedStr};

/// Returns the exception for a value of the wrong kind: where it is, what it is and what was expected.
fn refuse(location: Location, value: &Bound<'_, PyAny>, expected: &str) -> PyErr {
    error::input(format!("{location} is {}; {expected}", described(value)))
}

/// Describes a value for a message: its type, and the beginning of its `repr`.
fn described(value: &Bound<'_, PyAny>) -> String {
    const MAX_CHARS: usize = 60;
    if value.is_none() {
        return "None".to_owned();
    }
    let kind = value.get_type().name().map_or_else(|_| "object".to_owned(), |name| text::lossy(&name));
    match text::repr(value) {
        Some(repr) => {
            let short: String = repr.chars().take(MAX_CHARS).collect();
            format!("{kind} {short}{}", if short.len() < repr.len() { "…" } else { "" })
        }
        None => kind,
    }
}

/// Returns the value as a `str` that has a text.
///
/// # Errors
///
/// `InputError` if the value is not a `str`, with the sentence `expected`, or if something in it is not a character.
pub fn string(value: &Bound<'_, PyAny>, location: Location, expected: &str) -> PyResult<CheckedStr> {
    let string = value.cast::<PyString>().map_err(|_| refuse(location, value, expected))?;
    CheckedStr::new(string, location)
}

/// Returns the items of a sequence as a list: of a list, a tuple, or an array of NumPy, pandas, polars or pyarrow.
///
/// Arrays convert themselves, which is much faster than iterating over them. Returns `None` for anything else.
fn listed<'py>(value: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyList>>> {
    if let Ok(list) = value.cast::<PyList>() {
        return Ok(Some(list.clone()));
    }
    if let Ok(tuple) = value.cast::<PyTuple>() {
        return Ok(Some(tuple.to_list()));
    }
    if !is_indivisible(value) {
        for method in ["tolist", "to_pylist", "to_list"] {
            if value.hasattr(method)? {
                // Of strings with numbers beyond Unicode, NumPy makes no `str`.
                let list = value.call_method0(method).map_err(|cause| {
                    match cause.is_instance_of::<PySystemError>(value.py()) {
                        true => {
                            error::input(format!("an array of texts has a number that is not a character: {cause}"))
                        }
                        false => cause,
                    }
                });
                return Ok(list?.cast_into::<PyList>().ok());
            }
        }
    }
    Ok(None)
}

/// Returns the items of an iterable as a list.
///
/// Returns `None` for anything else, and for iterables that cannot be meant as a batch: those without an order (dict, set),
/// indivisible values such as `bytes`, and tables and rows, which yield the names of their columns.
fn collected<'py>(value: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyList>>> {
    let unordered =
        value.is_instance_of::<PyDict>() || value.is_instance_of::<PySet>() || value.is_instance_of::<PyFrozenSet>();
    if unordered || is_indivisible(value) {
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

/// Whether a value is iterable, but a single value rather than a collection.
fn is_indivisible(value: &Bound<'_, PyAny>) -> bool {
    value.is_instance_of::<PyString>()
        || value.is_instance_of::<PyBytes>()
        || value.is_instance_of::<PyByteArray>()
        || value.is_instance_of::<PyMemoryView>()
        // A class has the methods of its instances as attributes, but cannot call them.
        || value.is_instance_of::<PyType>()
}

/// One text, as references to Python strings.
pub enum HeldText {
    /// A text that the tokenizer splits.
    Raw(CheckedStr),
    /// The words of a text that the user has split.
    Words(Vec<CheckedStr>),
}

impl HeldText {
    /// Reads a text: a `str` or, with `split`, a list of words.
    fn read(value: &Bound<'_, PyAny>, split: bool, location: Location) -> PyResult<HeldText> {
        if split { HeldText::words(value, location) } else { HeldText::raw(value, location) }
    }

    fn raw(value: &Bound<'_, PyAny>, location: Location) -> PyResult<HeldText> {
        let expected = match (location.is_item(), location.is_second()) {
            (false, _) => "text input must be a str (for a list of words: is_split_into_words=True)",
            (true, false) => "text input must be a str, or a pair of them: (text, pair)",
            (true, true) => "text input must be a str",
        };
        string(value, location, expected).map(HeldText::Raw)
    }

    fn words(value: &Bound<'_, PyAny>, location: Location) -> PyResult<HeldText> {
        let expected = "with is_split_into_words=True a text is a list of words, each a str";
        let Some(words) = listed(value)? else { return Err(refuse(location, value, expected)) };
        let word = |(i, word)| string(&word, location.element("word", i), expected);
        words.iter().enumerate().map(word).collect::<PyResult<Vec<_>>>().map(HeldText::Words)
    }

    /// Returns the text that the core consumes, borrowed.
    fn text(&self, py: Python<'_>) -> Text<'_> {
        match self {
            HeldText::Raw(text) => Text::Raw(text.get(py)),
            HeldText::Words(words) => Text::Words(words.iter().map(|word| word.get(py)).collect()),
        }
    }
}

/// The input for one row of output, kept alive by references.
pub enum HeldInput {
    /// A text or a pair of texts.
    Texts(HeldTexts),
    /// A row of a column, by its index.
    Row(Arc<ColumnArgument>, usize),
}

impl HeldInput {
    /// Returns the input that the core consumes, borrowed; the input of a column is copied to `copies`.
    pub fn input<'a>(&'a self, py: Python<'_>, copies: &'a mut Vec<u8>) -> PyResult<Input<'a>> {
        match self {
            HeldInput::Texts(texts) => Ok(texts.input(py)),
            HeldInput::Row(column, row) => column.input(*row, copies),
        }
    }
}

/// A text or a pair of texts, as references to Python strings.
pub struct HeldTexts {
    first: HeldText,
    second: Option<HeldText>,
}

impl HeldTexts {
    /// Reads the arguments `text` and `pair` of a call for one row.
    pub fn new(text: &Bound<'_, PyAny>, pair: Option<&Bound<'_, PyAny>>, split: bool) -> PyResult<HeldTexts> {
        let first = HeldText::read(text, split, Location::argument("text"))?;
        let second = pair.map(|pair| HeldText::read(pair, split, Location::argument("pair"))).transpose()?;
        Ok(HeldTexts { first, second })
    }

    /// Reads item `index` of a batch: a text or a pair of texts.
    fn read(value: &Bound<'_, PyAny>, split: bool, index: usize) -> PyResult<HeldTexts> {
        let location = Location::item("item", index);
        if !value.is_instance_of::<PyString>()
            && let Some(both) = listed(value)?
            // With words, a list is a pair if it has two lists; without, whatever is not a str can only be a pair.
            && (!split || (both.len() == 2 && both.iter().all(|text| !text.is_instance_of::<PyString>())))
        {
            if both.len() != 2 {
                let expected = "a pair has two texts, (text, pair); for a list of words: is_split_into_words=True";
                return Err(refuse(location, value, expected));
            }
            let first = HeldText::read(&both.get_item(0)?, split, location)?;
            let second = HeldText::read(&both.get_item(1)?, split, location.second())?;
            return Ok(HeldTexts { first, second: Some(second) });
        }
        Ok(HeldTexts { first: HeldText::read(value, split, location)?, second: None })
    }

    /// Returns the input that the core consumes, borrowed.
    pub fn input(&self, py: Python<'_>) -> Input<'_> {
        Input { first: self.first.text(py), second: self.second.as_ref().map(|text| text.text(py)) }
    }
}

/// A batch of inputs as it was passed; its items have not been checked.
pub enum BatchArgument<'py> {
    /// The items of a list or of another iterable: a tuple, which no other thread can change.
    List(Bound<'py, PyTuple>),
    /// An Arrow column, or a NumPy array of fixed-width strings converted to one.
    Column(Arc<ColumnArgument>),
}

impl<'py> BatchArgument<'py> {
    /// Reads the argument `name`. With `split`, texts are lists of words. With `single`, a column must not have pairs, because
    /// the second texts come from another argument.
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
        if value.get_type().name()? == "LazyFrame" {
            // Of polars: it has no data yet, and raises errors of its own when it is iterated.
            let expected = "its rows are not computed yet; pass the result of its method collect()";
            return Err(refuse(Location::argument(name), value, expected));
        }
        let column = match ColumnArgument::import(value, name, split, !single)? {
            None if !split => ColumnArgument::from_numpy_strings(value, name)?,
            column => column,
        };
        if let Some(column) = column {
            return Ok(BatchArgument::Column(Arc::new(column)));
        }
        match collected(value)? {
            Some(list) => Ok(BatchArgument::List(list.to_tuple())),
            None => {
                let expected = "a batch is a list of texts, each a str or a pair of them, or a column of strings";
                Err(refuse(Location::argument(name), value, expected))
            }
        }
    }

    /// Reads the items, each a text. They are the first or the second texts of pairs; `location` words that for messages.
    pub fn texts(&self, split: bool, location: fn(usize) -> Location) -> PyResult<TextSequence<'_>> {
        match self {
            BatchArgument::Column(column) => Ok(TextSequence::Column(column, location)),
            BatchArgument::List(list) => {
                let text = |(i, value): (usize, Bound<'py, PyAny>)| HeldText::read(&value, split, location(i));
                list.iter().enumerate().map(text).collect::<PyResult<_>>().map(TextSequence::List)
            }
        }
    }
}

/// Reads the items of a list, each a text or a pair.
pub fn items(list: &Bound<'_, PyTuple>, split: bool) -> PyResult<Vec<HeldTexts>> {
    let read = |(i, value): (usize, Bound<'_, PyAny>)| {
        if i % ITEMS_PER_SIGNAL_CHECK == 0 {
            value.py().check_signals()?;
        }
        HeldTexts::read(&value, split, i)
    };
    list.iter().enumerate().map(read).collect()
}

/// One text for each row of a batch, kept alive by references.
pub enum TextSequence<'a> {
    /// Texts as references to Python strings.
    List(Vec<HeldText>),
    /// A column without pairs, and the location of a row.
    Column(&'a ColumnArgument, fn(usize) -> Location),
}

impl TextSequence<'_> {
    /// Returns the texts that the core consumes, borrowed; the texts of a column are copied to `copies`.
    pub fn texts<'a>(&'a self, py: Python<'_>, copies: &'a mut Vec<u8>) -> PyResult<Vec<Text<'a>>> {
        match self {
            TextSequence::List(texts) => Ok(texts.iter().map(|text| text.text(py)).collect()),
            TextSequence::Column(column, location) => py.detach(|| column.texts(copies, *location)),
        }
    }
}

/// Returns the pairs of first and second texts, borrowed; the texts of columns are copied to `copies`.
///
/// # Errors
///
/// `InputError` if there are not equally many of both, or if a column cannot be read.
pub fn zipped<'a>(
    py: Python<'_>,
    texts: &'a TextSequence<'_>,
    pairs: &'a TextSequence<'_>,
    copies: &'a mut [Vec<u8>; 2],
) -> PyResult<Vec<Input<'a>>> {
    let [first, second] = copies;
    let (texts, pairs) = (texts.texts(py, first)?, pairs.texts(py, second)?);
    check_lengths(texts.len(), pairs.len())?;
    Ok(texts.into_iter().zip(pairs).map(|(first, second)| Input { first, second: Some(second) }).collect())
}

/// Returns the pairs of the texts of two batches of `str`, borrowed; `None` if one has other items, as for [`plain`].
///
/// # Errors
///
/// `InputError` if there are not equally many of both.
pub fn plain_pairs<'a>(texts: &'a BatchArgument<'_>, pairs: &'a BatchArgument<'_>) -> PyResult<Option<Vec<Input<'a>>>> {
    let (BatchArgument::List(texts), BatchArgument::List(pairs)) = (texts, pairs) else { return Ok(None) };
    let (Some(texts), Some(pairs)) = (plain(texts), plain(pairs)) else { return Ok(None) };
    check_lengths(texts.len(), pairs.len())?;
    Ok(Some(texts.into_iter().zip(pairs).map(|(first, second)| Input::pair(first, second)).collect()))
}

/// Checks that there are as many second texts as first ones.
fn check_lengths(n: usize, m: usize) -> PyResult<()> {
    if n == m {
        return Ok(());
    }
    Err(error::input(format!("batch length of `text`: {n} does not match batch length of `text_pair`: {m}")))
}

/// Returns the texts of a tuple of `str`, borrowed; `None` if an item is not a `str` with a UTF-8 form.
///
/// This is the fast path: most batches are lists of `str`. Borrowing from one copy of the references costs a fraction of
/// reading the items one by one. On `None` the caller reads the items with [`items`], which reports what is
/// wrong with them.
pub fn plain<'a>(list: &'a Bound<'_, PyTuple>) -> Option<Vec<&'a str>> {
    fn text_of<'a>(item: Borrowed<'a, '_, PyAny>) -> Option<&'a str> {
        // A tuple never changes and keeps its items alive: for `'a`, as it is borrowed.
        text::plain(item.cast::<PyString>().ok()?)
    }
    // Each str is a separate object, often far from the previous one: reading one waits for memory unless it was
    // prefetched.
    let mut ahead = list.iter_borrowed();
    ahead.by_ref().take(PREFETCH_DISTANCE).for_each(|item| prefetch(item.as_ptr()));
    let mut texts = Vec::with_capacity(list.len());
    for item in list.iter_borrowed() {
        if let Some(item) = ahead.next() {
            prefetch(item.as_ptr());
        }
        texts.push(text_of(item)?);
    }
    Some(texts)
}

/// While items are read one by one, which holds the interpreter, signals are checked after this many.
const ITEMS_PER_SIGNAL_CHECK: usize = 1 << 14;

/// How many strings ahead of the current one are prefetched.
const PREFETCH_DISTANCE: usize = 12;

/// Whether an argument is one text rather than a batch of them. As in transformers, an empty list is a text without words.
pub fn is_single(value: &Bound<'_, PyAny>, split: bool) -> PyResult<bool> {
    if !split {
        return Ok(value.is_instance_of::<PyString>());
    }
    // A column is a batch. It must not be looked into here, because a stream can be read only once.
    if arrow::passes_on_columns(value) {
        return Ok(false);
    }
    let Some(list) = listed(value)? else { return Ok(false) };
    Ok(list.get_item(0).map_or(true, |first| first.is_instance_of::<PyString>()))
}

/// Reads a token id.
pub fn id(value: &Bound<'_, PyAny>, location: Location) -> PyResult<u32> {
    match value.extract::<u32>() {
        Ok(id) if !value.is_instance_of::<PyBool>() => Ok(id),
        _ => Err(refuse(location, value, "an id is a whole number from 0 to 4294967295")),
    }
}

/// Reads a list of token ids, itself an argument or an item of one.
pub fn ids(value: &Bound<'_, PyAny>, location: Location) -> PyResult<Vec<u32>> {
    let Some(list) = collected(value)? else { return Err(refuse(location, value, "ids are a list of whole numbers")) };
    let at = |i| if location.is_item() { location.element("id", i) } else { Location::item("id", i) };
    list.iter().enumerate().map(|(i, value)| id(&value, at(i))).collect()
}

/// Reads a batch of lists of token ids, the argument `ids`.
pub fn id_lists(value: &Bound<'_, PyAny>) -> PyResult<Vec<Vec<u32>>> {
    let Some(lists) = collected(value)? else {
        return Err(refuse(Location::argument("ids"), value, "a batch is a list of lists of ids"));
    };
    lists.iter().enumerate().map(|(i, list)| ids(&list, Location::item("item", i))).collect()
}

/// Reads the argument `name`, an index or position. Negative ones do not count from the end; they are refused.
pub fn position(name: &'static str, value: &Bound<'_, PyAny>) -> PyResult<u32> {
    match value.extract::<i64>() {
        // No text is that long, so the position does not exist, whichever it is.
        Ok(position) if position >= 0 => Ok(u32::try_from(position).unwrap_or(u32::MAX)),
        Err(error) if error.is_instance_of::<PyOverflowError>(value.py()) && value.gt(0)? => Ok(u32::MAX),
        _ => Err(refuse(Location::argument(name), value, "expected a whole number, 0 or more")),
    }
}
