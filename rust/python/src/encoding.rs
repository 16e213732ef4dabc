//! One row with everything that is known about it, and the questions people ask it.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use pyo3::prelude::*;
use pyo3::types::PyList;
use wordpiece::EncodeOptions;
use wordpiece::inputs::{PadLength, Padding};

use crate::convert::{HeldInput, position};
use crate::error::{self, guarded, to_py};

/// What a text, or a pair of texts, became: one row for the model, with everything there is to know about it.
///
/// Nothing changes it; every list is made when it is asked for and belongs to the caller. All lists have one entry a token.
/// A token or position that is not there is None; a negative one is an InputError.
#[pyclass(frozen, module = "wordpiece_bert._core")]
pub struct Encoding {
    /// The row, or one that this is a window of: held by all its windows.
    root: Arc<wordpiece::Encoding>,
    /// Which window of which window of … the row this is.
    path: Vec<usize>,
    /// Where the windows of a row that was cut come from, for it brings none of its own.
    more: Option<Windows>,
}

/// The windows of a row, worked out when they are first asked for: those of a pair are as many as the windows of one text
/// times those of the other, and hardly anybody looks at them.
pub struct Windows {
    source: WindowSource,
    item: HeldInput,
    row: OnceLock<Arc<wordpiece::Encoding>>,
}

/// What works windows out; the rows of a batch share it.
#[derive(Clone)]
pub struct WindowSource {
    tokenizer: Arc<wordpiece::Tokenizer>,
    options: Arc<EncodeOptions>,
}

impl WindowSource {
    /// For rows that came out of `options`; where those fill up to the longest row, that has `longest` tokens.
    pub fn new(tokenizer: &Arc<wordpiece::Tokenizer>, options: &EncodeOptions, longest: usize) -> WindowSource {
        let mut options = EncodeOptions { overflow: true, ..options.clone() };
        if let Some(padding) = options.padding.take_if(|padding| padding.length == PadLength::Longest) {
            // The row will be alone, its windows filled up as far as the batch was.
            options.padding = Some(Padding { length: PadLength::Fixed(longest), multiple_of: None, ..padding });
        }
        WindowSource { tokenizer: Arc::clone(tokenizer), options: Arc::new(options) }
    }

    /// The windows of one row.
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

    /// The row that brings this one's windows, and where it is in it.
    fn whole(&self, py: Python<'_>) -> PyResult<(&Arc<wordpiece::Encoding>, &wordpiece::Encoding)> {
        let Some(Windows { source, item, row }) = &self.more else { return Ok((&self.root, self.row())) };
        if row.get().is_none() {
            let input = item.input(py)?;
            let found = py.detach(|| source.tokenizer.encode(&input, &source.options)).map_err(to_py)?;
            // Two threads that ask at once both work it out, and get the same: no lock is held meanwhile.
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
    /// Ids of the tokens, list of int.
    #[getter]
    fn ids<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, &self.row().ids)
    }

    /// The tokens as text, list of str; of an added token what stood in the text, white space that it took included.
    #[getter]
    fn tokens<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, &self.row().tokens)
    }

    /// Start and end of each token in its text (of a text given as words: in its word), list of (int, int).
    ///
    /// In characters, or in what `offset_unit` asked for; (0, 0) at special tokens and padding.
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

    /// Segment ids, list of int.
    #[getter]
    fn token_type_ids<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, &self.row().type_ids)
    }

    /// The same as `token_type_ids`, by the name that `tokenizers` has for it.
    #[getter]
    fn type_ids<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.token_type_ids(py)
    }

    /// 1 for tokens, 0 for padding, list of int.
    #[getter]
    fn attention_mask<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, &self.row().attention_mask)
    }

    /// 1 for special tokens that the template put there and for padding, list of int.
    #[getter]
    fn special_tokens_mask<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, &self.row().special_tokens_mask)
    }

    /// The windows that truncation cut off, list of Encoding; of a pair they are nested, as in `tokenizers`.
    ///
    /// They are worked out when they are first asked for.
    #[getter]
    fn overflowing(&self, py: Python<'_>) -> PyResult<Vec<Encoding>> {
        guarded(|| {
            let (root, row) = self.whole(py)?;
            let path = |i| self.path.iter().copied().chain([i]).collect();
            let window = |i| Encoding { root: Arc::clone(root), path: path(i), more: None };
            Ok((0..row.overflowing.len()).map(window).collect())
        })
    }

    /// Whether truncation took anything from the row.
    #[getter]
    fn truncated(&self) -> bool {
        self.row().truncated
    }

    /// The number of tokens before truncation and padding, special tokens included.
    #[getter]
    fn n_tokens(&self) -> usize {
        self.row().n_tokens
    }

    /// The number of texts that the row is made of.
    #[getter]
    fn n_sequences(&self) -> usize {
        self.row().n_sequences()
    }

    /// Return the token that covers a character of a text, int or None.
    #[pyo3(signature = (char_pos, sequence_index=None))]
    fn char_to_token(
        &self,
        char_pos: &Bound<'_, PyAny>,
        sequence_index: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Option<usize>> {
        Ok(self.row().char_to_token(position("char_pos", char_pos)?, sequence(sequence_index)?))
    }

    /// Return the word that covers a character of a text, int or None.
    #[pyo3(signature = (char_pos, sequence_index=None))]
    fn char_to_word(
        &self,
        char_pos: &Bound<'_, PyAny>,
        sequence_index: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Option<u32>> {
        Ok(self.row().char_to_word(position("char_pos", char_pos)?, sequence(sequence_index)?))
    }

    /// Return start and end of a token in its text, (int, int); None for a special token.
    fn token_to_chars(&self, token_index: &Bound<'_, PyAny>) -> PyResult<Option<(u32, u32)>> {
        let found = self.row().token_to_chars(position("token_index", token_index)? as usize);
        Ok(found.map(|(_, offsets)| offsets))
    }

    /// Return the word of a token, int; None for a special token.
    fn token_to_word(&self, token_index: &Bound<'_, PyAny>) -> PyResult<Option<u32>> {
        Ok(self.row().token_to_word(position("token_index", token_index)? as usize).map(|(_, word)| word))
    }

    /// Return the text of a token, 0 or 1; None for a special token.
    fn token_to_sequence(&self, token_index: &Bound<'_, PyAny>) -> PyResult<Option<u32>> {
        Ok(self.row().token_to_sequence(position("token_index", token_index)? as usize))
    }

    /// Return the first token of a word and the one behind its last, (int, int) or None.
    #[pyo3(signature = (word_index, sequence_index=None))]
    fn word_to_tokens(
        &self,
        word_index: &Bound<'_, PyAny>,
        sequence_index: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Option<(usize, usize)>> {
        Ok(self.row().word_to_tokens(position("word_index", word_index)?, sequence(sequence_index)?).map(ends))
    }

    /// Return start and end of a word in its text, (int, int) or None.
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

/// What a pickle holds.
#[derive(FromPyObject, IntoPyObject)]
#[pyo3(from_item_all)]
pub struct State {
    ids: Vec<u32>,
    type_ids: Vec<u32>,
    tokens: Vec<String>,
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
            tokens: row.tokens.clone(),
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
            return Err(error::input("this is no pickled Encoding: its lists do not fit together".to_owned()));
        }
        let bits = |mask: Vec<u32>| mask.into_iter().map(|bit| u8::from(bit != 0)).collect();
        Ok(wordpiece::Encoding {
            ids: self.ids,
            type_ids: self.type_ids,
            tokens: self.tokens,
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

/// Make an Encoding of what a pickle holds.
#[pyfunction]
pub fn _restore_encoding(state: State) -> PyResult<Encoding> {
    guarded(|| Ok(Encoding::new(state.row()?, None)))
}
