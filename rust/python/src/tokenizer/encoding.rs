//! The class `Encoding`: one encoded row and the lookups on it.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use pyo3::prelude::*;
use pyo3::types::PyList;
use wordpiece::EncodeOptions;
use wordpiece::inputs::{PadLength, Padding};

use super::convert::{HeldInput, position};
use crate::error::{self, guarded, to_py};
use crate::text::{Fields, Utf8String, strings};

/// An encoded text or pair of texts: one row of model input, with the origin of each token.
///
/// An Encoding never changes. Every list is made on access and belongs to the caller; all lists have one item for each
/// token. Lookups return None for a token or position that does not exist, and raise InputError for a negative one.
///
/// Examples
/// --------
/// >>> from wordpiece_bert import Tokenizer
/// >>> tokenizer = Tokenizer.from_vocab(["[UNK]", "[CLS]", "[SEP]", "new", "york", "##er"])
/// >>> encoding = tokenizer.encode("New Yorker", "new")
/// >>> encoding
/// Encoding(7 tokens: [CLS] new york ##er [SEP] new [SEP])
/// >>> encoding.offsets
/// [(0, 0), (0, 3), (4, 8), (8, 10), (0, 0), (0, 3), (0, 0)]
/// >>> encoding.char_to_token(8), encoding.char_to_token(0, 1), encoding.char_to_word(8)
/// (3, 5, 1)
/// >>> encoding.token_to_chars(3), encoding.token_to_word(3), encoding.token_to_sequence(5)
/// ((8, 10), 1, 1)
/// >>> encoding.word_to_tokens(1), encoding.word_to_chars(1)
/// ((2, 4), (4, 10))
#[allow(clippy::doc_lazy_continuation)] // it is Python's documentation, not Markdown
#[pyclass(frozen, module = "wordpiece_bert._core")]
pub struct Encoding {
    /// The row, or the row that this is a window of; shared by all windows of a row.
    root: Arc<wordpiece::Encoding>,
    /// The indices that lead from the row to this window, one for each level of nesting; empty for the row itself.
    path: Vec<usize>,
    /// Computes the windows of a truncated row, which does not store them.
    more: Option<Windows>,
}

/// The windows of a truncated row, computed on first access.
///
/// A pair has as many windows as the product of the two texts' windows, and few callers look at them.
pub struct Windows {
    source: WindowSource,
    item: HeldInput,
    row: OnceLock<Arc<wordpiece::Encoding>>,
}

/// The tokenizer and options that compute windows, shared by the rows of a batch.
#[derive(Clone)]
pub struct WindowSource {
    tokenizer: Arc<wordpiece::Tokenizer>,
    options: Arc<EncodeOptions>,
}

impl WindowSource {
    /// Returns the source of windows for rows encoded with `options`. If these pad to the longest row of the batch, its
    /// length is `longest` tokens.
    pub fn new(tokenizer: &Arc<wordpiece::Tokenizer>, options: &EncodeOptions, longest: usize) -> WindowSource {
        let mut options = EncodeOptions { overflow: true, ..options.clone() };
        if let Some(padding) = options.padding.take_if(|padding| padding.length == PadLength::Longest) {
            // The row is encoded again by itself, so the length of the batch must be fixed.
            options.padding = Some(Padding { length: PadLength::Fixed(longest), multiple_of: None, ..padding });
        }
        WindowSource { tokenizer: Arc::clone(tokenizer), options: Arc::new(options) }
    }

    /// Returns the windows of one row, not yet computed.
    pub fn of(&self, item: HeldInput) -> Windows {
        Windows { source: self.clone(), item, row: OnceLock::new() }
    }
}

impl Encoding {
    pub fn new(row: wordpiece::Encoding, more: Option<Windows>) -> Encoding {
        Encoding { root: Arc::new(row), path: Vec::new(), more }
    }

    fn row(&self) -> &wordpiece::Encoding {
        self.path.iter().fold(&self.root, |row, &i| &row.overflowing[i])
    }

    /// Returns the row that holds the windows, and the row within it that this Encoding shows.
    fn whole(&self, py: Python<'_>) -> PyResult<(&Arc<wordpiece::Encoding>, &wordpiece::Encoding)> {
        let Some(Windows { source, item, row }) = &self.more else { return Ok((&self.root, self.row())) };
        if row.get().is_none() {
            let mut copies = Vec::new();
            let input = item.input(py, &mut copies)?;
            let found = py.detach(|| source.tokenizer.encode(&input, &source.options)).map_err(to_py)?;
            // Two threads may compute the same row at once; no lock is held, and one of the equal results is kept.
            let _ = row.set(Arc::new(found));
        }
        let row = row.get().expect("set above");
        Ok((row, row))
    }
}

fn ends(range: Range<usize>) -> (usize, usize) {
    (range.start, range.end)
}

#[pymethods]
impl Encoding {
    /// The ids of the tokens, list of int.
    #[getter]
    fn ids<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, &self.row().ids)
    }

    /// The tokens, list of str; for an added token the matched text, with the white space that it consumed.
    #[getter]
    fn tokens<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, &self.row().tokens)
    }

    /// The start and end of each token in its text, or in its word for a text given as words, list of (int, int).
    ///
    /// In characters or in the requested ``offset_unit``; (0, 0) for special tokens and padding.
    #[getter]
    fn offsets<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, &self.row().offsets)
    }

    /// The word that each token belongs to, counted from 0 in each text, list of int or None.
    #[getter]
    fn word_ids<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, &self.row().word_ids)
    }

    /// The text that each token comes from, 0 or 1, list of int or None.
    #[getter]
    fn sequence_ids<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.row().sequence_ids())
    }

    /// The segment id of each token, list of int.
    #[getter]
    fn token_type_ids<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, &self.row().type_ids)
    }

    /// The same as `token_type_ids`, under the name that `tokenizers` uses.
    #[getter]
    fn type_ids<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.token_type_ids(py)
    }

    /// 1 for tokens, 0 for padding, list of int.
    #[getter]
    fn attention_mask<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, &self.row().attention_mask)
    }

    /// 1 for special tokens of the template and for padding, else 0, list of int.
    #[getter]
    fn special_tokens_mask<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, &self.row().special_tokens_mask)
    }

    /// The windows after the first one, list of Encoding; the windows of a pair are nested, as in `tokenizers`.
    ///
    /// They are computed on first access.
    #[getter]
    fn overflowing(&self, py: Python<'_>) -> PyResult<Vec<Encoding>> {
        guarded(|| {
            let (root, row) = self.whole(py)?;
            let path = |i| self.path.iter().copied().chain([i]).collect();
            let window = |i| Encoding { root: Arc::clone(root), path: path(i), more: None };
            Ok((0..row.overflowing.len()).map(window).collect())
        })
    }

    /// Whether truncation removed tokens from the row.
    #[getter]
    fn truncated(&self) -> bool {
        self.row().truncated
    }

    /// The number of tokens before truncation and padding, special tokens included.
    #[getter]
    fn n_tokens(&self) -> usize {
        self.row().n_tokens
    }

    /// The number of texts in the row, 1 or 2.
    #[getter]
    fn n_sequences(&self) -> usize {
        self.row().n_sequences()
    }

    /// Return the token that covers a character of a text, int or None.
    ///
    /// Parameters
    /// ----------
    /// char_pos : int
    ///     The position of the character, in the unit of the offsets.
    /// sequence_index : int, default 0
    ///     Which text of a pair.
    #[pyo3(signature = (char_pos, sequence_index=None))]
    fn char_to_token(
        &self,
        char_pos: &Bound<'_, PyAny>,
        sequence_index: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Option<usize>> {
        Ok(self.row().char_to_token(position("char_pos", char_pos)?, sequence(sequence_index)?))
    }

    /// Return the word that covers a character of a text, int or None.
    ///
    /// Parameters
    /// ----------
    /// char_pos : int
    ///     The position of the character, in the unit of the offsets.
    /// sequence_index : int, default 0
    ///     Which text of a pair.
    #[pyo3(signature = (char_pos, sequence_index=None))]
    fn char_to_word(
        &self,
        char_pos: &Bound<'_, PyAny>,
        sequence_index: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Option<u32>> {
        Ok(self.row().char_to_word(position("char_pos", char_pos)?, sequence(sequence_index)?))
    }

    /// Return the start and end of a token in its text, (int, int); None for a special token.
    ///
    /// Parameters
    /// ----------
    /// token_index : int
    ///     The position of the token.
    fn token_to_chars(&self, token_index: &Bound<'_, PyAny>) -> PyResult<Option<(u32, u32)>> {
        let found = self.row().token_to_chars(position("token_index", token_index)? as usize);
        Ok(found.map(|(_, offsets)| offsets))
    }

    /// Return the word of a token, int; None for a special token.
    ///
    /// Parameters
    /// ----------
    /// token_index : int
    ///     The position of the token.
    fn token_to_word(&self, token_index: &Bound<'_, PyAny>) -> PyResult<Option<u32>> {
        Ok(self.row().token_to_word(position("token_index", token_index)? as usize).map(|(_, word)| word))
    }

    /// Return the text of a token, 0 or 1; None for a special token.
    ///
    /// Parameters
    /// ----------
    /// token_index : int
    ///     The position of the token.
    fn token_to_sequence(&self, token_index: &Bound<'_, PyAny>) -> PyResult<Option<u32>> {
        Ok(self.row().token_to_sequence(position("token_index", token_index)? as usize))
    }

    /// Return the first token of a word and the one after its last, (int, int) or None.
    ///
    /// Parameters
    /// ----------
    /// word_index : int
    ///     The index of the word.
    /// sequence_index : int, default 0
    ///     Which text of a pair.
    #[pyo3(signature = (word_index, sequence_index=None))]
    fn word_to_tokens(
        &self,
        word_index: &Bound<'_, PyAny>,
        sequence_index: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Option<(usize, usize)>> {
        Ok(self.row().word_to_tokens(position("word_index", word_index)?, sequence(sequence_index)?).map(ends))
    }

    /// Return the start and end of a word in its text, (int, int) or None.
    ///
    /// Parameters
    /// ----------
    /// word_index : int
    ///     The index of the word.
    /// sequence_index : int, default 0
    ///     Which text of a pair.
    #[pyo3(signature = (word_index, sequence_index=None))]
    fn word_to_chars(
        &self,
        word_index: &Bound<'_, PyAny>,
        sequence_index: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Option<(u32, u32)>> {
        Ok(self.row().word_to_chars(position("word_index", word_index)?, sequence(sequence_index)?))
    }

    fn __len__(&self) -> usize {
        self.row().len()
    }

    /// Refuses indices and iteration, which Python builds on this method: which list is meant is not clear.
    fn __getitem__(&self, _index: &Bound<'_, PyAny>) -> PyResult<()> {
        Err(error::input(
            "an Encoding is not a list: use encoding.ids for its token ids, or another of its lists, such as \
             encoding.tokens and encoding.offsets"
                .to_owned(),
        ))
    }

    /// Refuses the conversion to an array of numbers. An array of objects can have it as an item.
    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(
        slf: Bound<'py, Self>,
        dtype: Option<Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _ = copy; // NumPy passes it; an object is not copied.
        let is_object = |dtype: Bound<'py, PyAny>| dtype.getattr("hasobject")?.is_truthy();
        if !dtype.map(is_object).transpose()?.unwrap_or(false) {
            return Err(error::input(
                "an Encoding is not an array: use numpy.array(encoding.ids) for its token ids, or another of its \
                 lists, such as encoding.attention_mask and encoding.offsets"
                    .to_owned(),
            ));
        }
        let array = slf.py().import("numpy")?.call_method1("empty", ((), "O"))?;
        array.set_item((), slf)?;
        Ok(array)
    }

    fn __repr__(&self) -> String {
        const SHOWN: usize = 16;
        let row = self.row();
        let tokens: Vec<&str> = row.tokens.iter().take(SHOWN).map(String::as_str).collect();
        let more = if row.len() > SHOWN { " …" } else { "" };
        let mut about = format!("{} tokens: {}{more}", row.len(), tokens.join(" "));
        if row.truncated {
            about += &format!("; cut from {}", row.n_tokens);
        }
        format!("Encoding({about})")
    }

    /// The table that a notebook shows.
    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("wordpiece_bert._internal.notebook")?.call_method1("encoding_html", (slf,))
    }

    fn __eq__(&self, py: Python<'_>, other: PyRef<'_, Encoding>) -> PyResult<bool> {
        let (mine, theirs) = (self.row(), other.row());
        if (&mine.ids, &mine.tokens, &mine.offsets) != (&theirs.ids, &theirs.tokens, &theirs.offsets) {
            return Ok(false);
        }
        guarded(|| Ok(self.whole(py)?.1 == other.whole(py)?.1))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (State,))> {
        let restore = py.import("wordpiece_bert._core")?.getattr("_restore_encoding")?;
        guarded(|| Ok((restore, (State::of(self.whole(py)?.1),))))
    }
}

fn sequence(index: Option<&Bound<'_, PyAny>>) -> PyResult<u32> {
    index.map_or(Ok(0), |index| position("sequence_index", index))
}

/// The contents of a pickled Encoding.
#[derive(FromPyObject, IntoPyObject)]
#[pyo3(from_item_all)]
pub struct State {
    ids: Vec<u32>,
    type_ids: Vec<u32>,
    tokens: Vec<Utf8String>,
    word_ids: Vec<Option<u32>>,
    offsets: Vec<(u32, u32)>,
    special_tokens_mask: Vec<u32>,
    attention_mask: Vec<u32>,
    sequence_ranges: Vec<(u32, usize, usize)>,
    truncated: bool,
    n_tokens: usize,
    overflowing: Vec<State>,
}

impl State {
    fn of(row: &wordpiece::Encoding) -> State {
        let numbers = |mask: &[u8]| mask.iter().map(|&bit| u32::from(bit)).collect();
        State {
            ids: row.ids.clone(),
            type_ids: row.type_ids.clone(),
            tokens: row.tokens.iter().cloned().map(Utf8String).collect(),
            word_ids: row.word_ids.clone(),
            offsets: row.offsets.clone(),
            special_tokens_mask: numbers(&row.special_tokens_mask),
            attention_mask: numbers(&row.attention_mask),
            sequence_ranges: row.sequence_ranges.iter().map(|(id, range)| (*id, range.start, range.end)).collect(),
            truncated: row.truncated,
            n_tokens: row.n_tokens,
            overflowing: row.overflowing.iter().map(State::of).collect(),
        }
    }

    fn row(self) -> PyResult<wordpiece::Encoding> {
        let n = self.ids.len();
        let lengths = [
            self.type_ids.len(),
            self.tokens.len(),
            self.word_ids.len(),
            self.offsets.len(),
            self.special_tokens_mask.len(),
            self.attention_mask.len(),
        ];
        let inside = self.sequence_ranges.iter().all(|&(_, start, end)| start <= end && end <= n);
        if lengths.iter().any(|&length| length != n) || !inside {
            return Err(error::input("this is not a pickled Encoding: its lists have different lengths".to_owned()));
        }
        let bits = |mask: Vec<u32>| mask.into_iter().map(|bit| u8::from(bit != 0)).collect();
        Ok(wordpiece::Encoding {
            ids: self.ids,
            type_ids: self.type_ids,
            tokens: strings(self.tokens),
            word_ids: self.word_ids,
            offsets: self.offsets,
            special_tokens_mask: bits(self.special_tokens_mask),
            attention_mask: bits(self.attention_mask),
            sequence_ranges: self.sequence_ranges.into_iter().map(|(id, start, end)| (id, start..end)).collect(),
            truncated: self.truncated,
            n_tokens: self.n_tokens,
            overflowing: self.overflowing.into_iter().map(State::row).collect::<PyResult<_>>()?,
        })
    }
}

/// Make an Encoding from the contents of its pickle.
#[pyfunction]
pub fn _restore_encoding(state: Fields<State>) -> PyResult<Encoding> {
    guarded(|| Ok(Encoding::new(state.0.row()?, None)))
}
