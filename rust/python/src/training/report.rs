//! Statistics of texts under a tokenizer.

use std::sync::Mutex;

use pyo3::prelude::*;
use wordpiece::train;

use crate::error::{guarded, to_py};
use crate::location::Location;
use crate::threads::{self, Threads};
use crate::tokenizer::Tokenizer;
use crate::tokenizer::convert;

/// Collects the sums of texts under a tokenizer. Calls from several threads take turns.
#[pyclass(frozen, module = "wordpiece_bert._core")]
pub struct Reporter {
    core: Mutex<train::Reporter>,
}

/// The sums of a report; see `wordpiece::train::ReportSums` for the fields. Maps are lists of pairs with ascending
/// keys.
#[pyclass(frozen, get_all, module = "wordpiece_bert._core")]
pub struct ReportSums {
    texts: u64,
    chars: u64,
    bytes: u64,
    words: u64,
    word_chars: u64,
    tokens: u64,
    unk_words: u64,
    unk_chars: u64,
    words_by_tokens: Vec<(u64, u64)>,
    texts_by_tokens: Vec<(u64, u64)>,
    used: Vec<(u32, u64)>,
}

/// Why locking the reporter cannot fail.
const NOT_POISONED: &str = "a panic while the reporter is locked ends the report";

#[pymethods]
impl Reporter {
    /// Create a reporter for a tokenizer.
    #[new]
    fn new(py: Python<'_>, tokenizer: &Tokenizer, threads: Option<Threads>) -> PyResult<Reporter> {
        guarded(|| {
            let threads = threads::number(threads);
            let core = py.detach(|| train::Reporter::new(tokenizer.definition(), threads).map_err(to_py))?;
            Ok(Reporter { core: Mutex::new(core) })
        })
    }

    /// Add texts to the report; `first` is the index of the first of them, for messages.
    fn add(&self, py: Python<'_>, texts: Vec<Bound<'_, PyAny>>, first: usize) -> PyResult<()> {
        guarded(|| {
            let expected = "texts are an iterable of str";
            let text = |(i, text): (usize, &Bound<'_, PyAny>)| {
                convert::string(text, Location::item("item", first + i), expected)
            };
            let texts = texts.iter().enumerate().map(text).collect::<PyResult<Vec<_>>>()?;
            let texts: Vec<&str> = texts.iter().map(|text| text.get(py)).collect();
            py.detach(|| self.core.lock().expect(NOT_POISONED).add(&texts).map_err(to_py))
        })
    }

    /// Return the sums so far.
    fn sums(&self, py: Python<'_>) -> PyResult<ReportSums> {
        guarded(|| {
            let sums = py.detach(|| self.core.lock().expect(NOT_POISONED).sums());
            Ok(ReportSums {
                texts: sums.texts,
                chars: sums.chars,
                bytes: sums.bytes,
                words: sums.words,
                word_chars: sums.word_chars,
                tokens: sums.tokens,
                unk_words: sums.unk_words,
                unk_chars: sums.unk_chars,
                words_by_tokens: sums.words_by_tokens.into_iter().collect(),
                texts_by_tokens: sums.texts_by_tokens.into_iter().collect(),
                used: sums.used.into_iter().collect(),
            })
        })
    }
}
