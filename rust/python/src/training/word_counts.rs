//! The multiset of words, and counting words into it.

use std::path::PathBuf;
use std::sync::Arc;

use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use wordpiece::files::TextSource;
use wordpiece::normalize::BertNormalizer;
use wordpiece::train::{self, CountOptions, FileBlocks, InvalidBytes};

use super::observer::run_observed;
use super::text_blocks::{ColumnTexts, IterableTexts, PythonBlocks};
use super::trained::{TargetFields, Trained, train_options};
use crate::arrow::ColumnArgument;
use crate::error::{guarded, input, to_py};
use crate::numpy_api;
use crate::text::{Fields, Utf8, Utf8String};
use crate::threads::{self, Threads};

/// The bytes of all words, the end of each word in them, and the counts.
type WordColumns<'py> = (Bound<'py, PyBytes>, Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<u64>>);

/// Words and their counts, immutable; what `wordpiece_bert.WordCounts` wraps.
#[pyclass(frozen, module = "wordpiece_bert._core")]
pub struct WordCounts {
    core: Arc<train::WordCounts>,
}

/// The counted words and what else was found; see `wordpiece::train::Counted` for the fields.
#[pyclass(frozen, get_all, module = "wordpiece_bert._core")]
pub struct Counted {
    words: Py<WordCounts>,
    texts: u64,
    bytes: u64,
    replaced: u64,
    skipped: u64,
    dropped: u64,
    undercount: u64,
}

impl Counted {
    fn new(py: Python<'_>, counted: train::Counted) -> PyResult<Counted> {
        Ok(Counted {
            words: Py::new(py, WordCounts { core: Arc::new(counted.words) })?,
            texts: counted.texts,
            bytes: counted.bytes,
            replaced: counted.replaced,
            skipped: counted.skipped,
            dropped: counted.dropped,
            undercount: counted.undercount,
        })
    }
}

/// How texts are normalized and counted, as items of a dict.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct CountFields {
    lowercase: bool,
    strip_accents: Option<bool>,
    clean_text: bool,
    tokenize_chinese_chars: bool,
    errors: Utf8String,
    max_distinct_words: Option<usize>,
}

fn count_options(fields: CountFields, threads: Option<Threads>) -> PyResult<CountOptions> {
    let CountFields { lowercase, strip_accents, clean_text, tokenize_chinese_chars, errors, max_distinct_words } =
        fields;
    let invalid_bytes = match &*errors {
        "strict" => InvalidBytes::Refuse,
        "replace" => InvalidBytes::Replace,
        "skip" => InvalidBytes::SkipLine,
        other => return Err(input(format!("errors must be one of 'strict', 'replace', 'skip', not {other:?}"))),
    };
    let normalizer = BertNormalizer { clean_text, tokenize_chinese_chars, strip_accents, lowercase };
    Ok(CountOptions { normalizer, invalid_bytes, max_distinct_words, threads: threads::number(threads) })
}

/// Returns the source for a path; `-` is standard input.
fn source(path: PathBuf) -> TextSource {
    if path.as_os_str() == "-" { TextSource::stdin() } else { TextSource::path(path) }
}

/// Counts the words of texts that Python holds.
fn count_texts(
    py: Python<'_>,
    mut texts: impl PythonBlocks,
    options: &CountOptions,
    observer: Option<Py<PyAny>>,
) -> PyResult<Counted> {
    match run_observed(py, observer, |observer| train::count(&mut texts, options, observer)) {
        Ok(counted) => Counted::new(py, counted),
        Err(error) => Err(texts.raised().unwrap_or(error)),
    }
}

#[pymethods]
impl WordCounts {
    /// Count the words of files.
    #[staticmethod]
    fn from_files(
        py: Python<'_>,
        paths: Vec<PathBuf>,
        options: Fields<CountFields>,
        threads: Option<Threads>,
        observer: Option<Py<PyAny>>,
    ) -> PyResult<Counted> {
        guarded(|| {
            let options = count_options(options.0, threads)?;
            // The total is known only if all are regular files.
            let size =
                |path: &PathBuf| std::fs::metadata(path).ok().filter(|file| file.is_file()).map(|file| file.len());
            let total = paths.iter().map(size).sum::<Option<u64>>();
            let counted = run_observed(py, observer, |observer| {
                let mut files = FileBlocks::new(paths.into_iter().map(source).collect(), total);
                train::count(&mut files, &options, observer)
            });
            Counted::new(py, counted?)
        })
    }

    /// Count the words of texts: of an iterable, or of an Arrow column.
    #[staticmethod]
    fn from_texts(
        py: Python<'_>,
        texts: &Bound<'_, PyAny>,
        options: Fields<CountFields>,
        threads: Option<Threads>,
        observer: Option<Py<PyAny>>,
    ) -> PyResult<Counted> {
        guarded(|| {
            let options = count_options(options.0, threads)?;
            match ColumnArgument::import(texts, "texts", false, false)? {
                Some(column) => count_texts(py, ColumnTexts::new(&column), &options, observer),
                None => count_texts(py, IterableTexts::new(texts)?, &options, observer),
            }
        })
    }

    /// Create a multiset from the bytes of all words, the end of each word in them, and the counts.
    #[staticmethod]
    fn from_columns(
        py: Python<'_>,
        text: &[u8],
        ends: &Bound<'_, PyAny>,
        counts: &Bound<'_, PyAny>,
    ) -> PyResult<WordCounts> {
        guarded(|| {
            numpy_api::ready(py)?;
            let (ends, counts): (PyReadonlyArray1<'_, i64>, PyReadonlyArray1<'_, u64>) =
                (ends.extract()?, counts.extract()?);
            let (ends, counts) = (ends.as_slice()?, counts.as_slice()?);
            py.detach(|| {
                let text =
                    std::str::from_utf8(text).map_err(|error| input(format!("the words are not UTF-8: {error}")))?;
                let mut start = 0;
                let mut words = Vec::with_capacity(ends.len());
                for (i, (&end, &count)) in ends.iter().zip(counts).enumerate() {
                    let end = usize::try_from(end).unwrap_or(usize::MAX);
                    let Some(word) = text.get(start..end) else {
                        return Err(input(format!("word {i} ends at byte {end}, which is not the end of a character")));
                    };
                    words.push((word, count));
                    start = end;
                }
                Ok(WordCounts { core: Arc::new(train::WordCounts::new(words).map_err(to_py)?) })
            })
        })
    }

    /// Return the bytes of all words, the end of each word in them, and the counts, by descending count, then word.
    fn columns<'py>(&self, py: Python<'py>) -> PyResult<WordColumns<'py>> {
        guarded(|| {
            numpy_api::ready(py)?;
            let (text, ends, counts) = py.detach(|| {
                let mut text = Vec::with_capacity(self.core.text_len());
                let (mut ends, mut counts) = (Vec::new(), Vec::new());
                for i in self.core.ranked() {
                    text.extend_from_slice(self.core.word(i).as_bytes());
                    ends.push(text.len() as i64);
                    counts.push(self.core.counts()[i]);
                }
                (text, ends, counts)
            });
            Ok((PyBytes::new(py, &text), PyArray1::from_vec(py, ends), PyArray1::from_vec(py, counts)))
        })
    }

    /// Return the `most` most frequent words, or all, with their counts, by descending count, then word.
    fn items(&self, most: Option<usize>) -> PyResult<Vec<(String, u64)>> {
        guarded(|| {
            let ranked = self.core.ranked().into_iter().take(most.unwrap_or(usize::MAX));
            Ok(ranked.map(|i| (self.core.word(i).to_owned(), self.core.counts()[i])).collect())
        })
    }

    /// Return the count of a word, 0 if it does not occur.
    fn get(&self, word: Utf8<'_>) -> u64 {
        self.core.get(&word)
    }

    /// Return the number of distinct words.
    fn __len__(&self) -> usize {
        self.core.len()
    }

    /// The sum of all counts.
    #[getter]
    fn total(&self) -> u128 {
        self.core.total()
    }

    /// Return whether the words and counts are equal.
    fn equals(&self, other: &WordCounts) -> bool {
        self.core == other.core
    }

    /// Return the sum of two multisets.
    fn merged(&self, py: Python<'_>, other: &WordCounts) -> PyResult<WordCounts> {
        guarded(|| py.detach(|| Ok(WordCounts { core: Arc::new(self.core.merged(&other.core).map_err(to_py)?) })))
    }

    /// Return the multiset without words of more than `most` characters, the number of words removed, and how often
    /// they occurred.
    fn without_longer(&self, py: Python<'_>, most: usize) -> PyResult<(WordCounts, u64, u128)> {
        guarded(|| {
            py.detach(|| {
                let (kept, words, occurrences) = self.core.without_longer(most);
                Ok((WordCounts { core: Arc::new(kept) }, words, occurrences))
            })
        })
    }

    /// Learn a vocabulary with ``"bpe"``, ``"likelihood"`` or ``"top_down"``.
    ///
    /// `target` has the options of all algorithms (``vocab_size``, ``special_tokens``, ``base``, ``fill_unused``),
    /// `options` the options of this one.
    fn train(
        &self,
        py: Python<'_>,
        target: Fields<TargetFields>,
        algorithm: Utf8<'_>,
        options: &Bound<'_, PyAny>,
        threads: Option<Threads>,
        observer: Option<Py<PyAny>>,
    ) -> PyResult<Trained> {
        guarded(|| {
            let options = train_options(target.0, &algorithm, options, threads::number(threads))?;
            let trained = run_observed(py, observer, |observer| train::train(&self.core, &options, observer));
            Ok(trained?.into())
        })
    }
}
