//! Training: counts of words, the learners, and whoever watches them.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyIterator};
use wordpiece::files::TextSource;
use wordpiece::normalize::BertNormalizer;
use wordpiece::train::{
    self, BlockSource, ByteBlock, CountOptions, FileBlocks, InvalidBytes, Learner, MergeOptions, Progress, Stage,
};
use wordpiece::train::{TopDownOptions, TrainOptions, TrainingError};
use wordpiece::{Error, Text};

use crate::arrow::ColumnArgument;
use crate::convert;
use crate::error::{guarded, input, to_py};
use crate::location::Location;
use crate::threads;
use crate::tokenizer::Tokenizer;

/// Bytes of texts taken from Python at a time, while the interpreter is held.
const TEXT_BLOCK: usize = 1 << 20;

/// The bytes of all words, where each ends, and their counts.
type Columns<'py> = (Bound<'py, PyBytes>, Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<u64>>);

/// Words and their counts, immutable. `wordpiece_bert.WordCounts` is its face.
#[pyclass(frozen, module = "wordpiece_bert._core")]
pub struct WordCounts {
    core: Arc<train::WordCounts>,
}

/// What counting met besides words, and the words.
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

/// A vocabulary, and how it came about.
#[pyclass(frozen, get_all, module = "wordpiece_bert._core")]
pub struct Trained {
    tokens: Vec<String>,
    counts: Vec<u64>,
    unknown: u128,
    pieces: Vec<(u32, Vec<u32>)>,
    stop: &'static str,
    least_size: usize,
    threshold: Option<u64>,
    dropped_chars: Vec<char>,
    /// Occurrences of dropped characters, all characters, words with one, all words.
    dropped_shares: (u64, u64, u128, u128),
    /// Distinct words that were left out, and their occurrences.
    left_out: (u64, u128),
}

/// How texts are normalized and counted: lowercase, strip_accents, clean_text, tokenize_chinese_chars, errors,
/// max_distinct_words.
type CountFields = (bool, Option<bool>, bool, bool, String, Option<usize>);

fn count_options(fields: CountFields, threads: Option<&Bound<'_, PyAny>>) -> PyResult<CountOptions> {
    let (lowercase, strip_accents, clean_text, tokenize_chinese_chars, errors, max_distinct_words) = fields;
    let invalid_bytes = match errors.as_str() {
        "strict" => InvalidBytes::Refuse,
        "replace" => InvalidBytes::Replace,
        "skip" => InvalidBytes::SkipLine,
        other => return Err(input(format!("errors must be one of 'strict', 'replace', 'skip', not {other:?}"))),
    };
    let normalizer = BertNormalizer { clean_text, tokenize_chinese_chars, strip_accents, lowercase };
    let threads = threads::number(threads::checked("threads", threads)?);
    Ok(CountOptions { normalizer, invalid_bytes, max_distinct_words, threads })
}

/// Whoever watches: a callable for (stage, done, total), or nobody; and what it, or a signal, raised.
struct Observer {
    callable: Option<Py<PyAny>>,
    raised: Option<PyErr>,
}

impl Observer {
    fn look(&mut self, progress: Progress) -> bool {
        let stage = match progress.stage {
            Stage::Counting => "counting",
            Stage::Learning => "learning",
        };
        Python::attach(|py| {
            let mut told = py.check_signals();
            if let (Ok(()), Some(callable)) = (&told, &self.callable) {
                told = callable.call1(py, (stage, progress.done, progress.total)).map(drop);
            }
            self.raised = told.err();
            self.raised.is_none()
        })
    }

    /// The exception for an error: what was raised, where that is why the work was stopped.
    fn error(self, error: Error) -> PyErr {
        match (self.raised, error) {
            (Some(raised), Error::Training(TrainingError::Interrupted)) => raised,
            (_, error) => to_py(error),
        }
    }
}

/// Texts that an iterable yields, each a line of a block: white space ends a word like any other.
struct Texts {
    items: Py<PyIterator>,
    index: usize,
    raised: Option<PyErr>,
}

impl Texts {
    fn fill(&mut self, py: Python<'_>, block: &mut ByteBlock) -> PyResult<()> {
        let expected = "texts to count are an iterable of str";
        for item in self.items.bind(py).clone() {
            let text = convert::string(&item?, Location::item("item", self.index), expected)?;
            block.bytes.extend_from_slice(text.to_str()?.as_bytes());
            block.bytes.push(b'\n');
            block.texts += 1;
            block.size += text.to_str()?.len() as u64;
            self.index += 1;
            if block.bytes.len() >= TEXT_BLOCK {
                break;
            }
        }
        Ok(())
    }
}

impl BlockSource for Texts {
    fn next_block(
        &mut self,
        block: &mut ByteBlock,
        _: bool,
        _: &mut dyn FnMut() -> wordpiece::Result<()>,
    ) -> wordpiece::Result<bool> {
        block.bytes.clear();
        (block.texts, block.size) = (0, 0);
        match Python::attach(|py| self.fill(py, block)) {
            Ok(()) => Ok(block.texts > 0),
            Err(raised) => {
                self.raised = Some(raised);
                Err(Error::Training(TrainingError::Interrupted))
            }
        }
    }
}

/// The texts of a column of Arrow, read where they stand.
struct ColumnTexts<'a> {
    column: &'a ColumnArgument,
    chunk: usize,
    texts: std::vec::IntoIter<Text<'a>>,
    raised: Option<PyErr>,
}

impl BlockSource for ColumnTexts<'_> {
    fn next_block(
        &mut self,
        block: &mut ByteBlock,
        _: bool,
        _: &mut dyn FnMut() -> wordpiece::Result<()>,
    ) -> wordpiece::Result<bool> {
        block.bytes.clear();
        (block.texts, block.size) = (0, 0);
        while block.bytes.len() < TEXT_BLOCK {
            if let Some(text) = self.texts.next() {
                let Text::Raw(text) = text else { unreachable!("no list of words was asked for") };
                block.bytes.extend_from_slice(text.as_bytes());
                block.bytes.push(b'\n');
                block.texts += 1;
                block.size += text.len() as u64;
            } else if self.chunk < self.column.n_chunks() {
                let texts = self.column.chunk_texts(self.chunk).map_err(|raised| {
                    self.raised = Some(raised);
                    Error::Training(TrainingError::Interrupted)
                })?;
                self.texts = texts.into_iter();
                self.chunk += 1;
            } else {
                break;
            }
        }
        Ok(block.texts > 0)
    }
}

fn counted(py: Python<'_>, counted: train::Counted) -> PyResult<Counted> {
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

/// The file at a path; `-` is standard input.
fn source(path: PathBuf) -> TextSource {
    if path.as_os_str() == "-" { TextSource::stdin() } else { TextSource::path(path) }
}

#[pymethods]
impl WordCounts {
    /// Count the words of files.
    #[staticmethod]
    fn from_files(
        py: Python<'_>,
        paths: Vec<PathBuf>,
        options: CountFields,
        threads: Option<&Bound<'_, PyAny>>,
        observer: Option<Py<PyAny>>,
    ) -> PyResult<Counted> {
        guarded(|| {
            let options = count_options(options, threads)?;
            let size = |path: &PathBuf| std::fs::metadata(path).ok().filter(|it| it.is_file()).map(|it| it.len());
            let total = paths.iter().map(size).sum::<Option<u64>>();
            let mut observer = Observer { callable: observer, raised: None };
            let found = py.detach(|| {
                let mut files = FileBlocks::new(paths.into_iter().map(source).collect(), total);
                train::count(&mut files, &options, &mut |progress| observer.look(progress))
            });
            counted(py, found.map_err(|error| observer.error(error))?)
        })
    }

    /// Count the words of texts: of an iterable, or of a column of Arrow.
    #[staticmethod]
    fn from_texts(
        py: Python<'_>,
        texts: &Bound<'_, PyAny>,
        options: CountFields,
        threads: Option<&Bound<'_, PyAny>>,
        observer: Option<Py<PyAny>>,
    ) -> PyResult<Counted> {
        guarded(|| {
            let options = count_options(options, threads)?;
            if let Some(column) = ColumnArgument::import(texts, "texts", false, false)? {
                let mut texts = ColumnTexts { column: &column, chunk: 0, texts: Vec::new().into_iter(), raised: None };
                let mut observer = Observer { callable: observer, raised: None };
                let found = py.detach(|| train::count(&mut texts, &options, &mut |progress| observer.look(progress)));
                return counted(py, found.map_err(|error| texts.raised.unwrap_or_else(|| observer.error(error)))?);
            }
            let mut texts = Texts { items: texts.try_iter()?.unbind(), index: 0, raised: None };
            let mut observer = Observer { callable: observer, raised: None };
            let found = py.detach(|| train::count(&mut texts, &options, &mut |progress| observer.look(progress)));
            counted(py, found.map_err(|error| texts.raised.unwrap_or_else(|| observer.error(error)))?)
        })
    }

    /// Take words and counts as they are: the bytes of all words, where each ends, and their counts.
    #[staticmethod]
    fn from_columns(
        py: Python<'_>,
        text: &[u8],
        ends: PyReadonlyArray1<'_, i64>,
        counts: PyReadonlyArray1<'_, u64>,
    ) -> PyResult<WordCounts> {
        guarded(|| {
            let (ends, counts) = (ends.as_slice()?, counts.as_slice()?);
            py.detach(|| {
                let text =
                    std::str::from_utf8(text).map_err(|error| input(format!("the words are not UTF-8: {error}")))?;
                let mut start = 0;
                let mut words = Vec::with_capacity(ends.len());
                for (i, (&end, &count)) in ends.iter().zip(counts).enumerate() {
                    let end = usize::try_from(end).unwrap_or(usize::MAX);
                    let Some(word) = text.get(start..end) else {
                        return Err(input(format!("word {i} ends at byte {end}, which is not where a character does")));
                    };
                    words.push((word, count));
                    start = end;
                }
                Ok(WordCounts { core: Arc::new(train::WordCounts::new(words).map_err(to_py)?) })
            })
        })
    }

    /// Return the bytes of all words, where each ends, and their counts: by count descending, then word ascending.
    fn columns<'py>(&self, py: Python<'py>) -> PyResult<Columns<'py>> {
        guarded(|| {
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

    /// Return the words with their counts: by count descending, then word ascending.
    fn items(&self, most: Option<usize>) -> PyResult<Vec<(String, u64)>> {
        guarded(|| {
            let ranked = self.core.ranked().into_iter().take(most.unwrap_or(usize::MAX));
            Ok(ranked.map(|i| (self.core.word(i).to_owned(), self.core.counts()[i])).collect())
        })
    }

    /// The count of a word.
    fn get(&self, word: &str) -> u64 {
        self.core.get(word)
    }

    /// The number of distinct words.
    fn __len__(&self) -> usize {
        self.core.len()
    }

    /// The sum of all counts.
    #[getter]
    fn total(&self) -> u128 {
        self.core.total()
    }

    /// Whether the words and counts are the same.
    fn equals(&self, other: &WordCounts) -> bool {
        self.core == other.core
    }

    /// Return both together.
    fn merged(&self, py: Python<'_>, other: &WordCounts) -> PyResult<WordCounts> {
        guarded(|| py.detach(|| Ok(WordCounts { core: Arc::new(self.core.merged(&other.core).map_err(to_py)?) })))
    }

    /// Return the counts without words of more characters; and how many those were, and how often they occurred.
    fn without_longer(&self, py: Python<'_>, most: usize) -> PyResult<(WordCounts, u64, u128)> {
        guarded(|| {
            py.detach(|| {
                let (kept, words, occurrences) = self.core.without_longer(most);
                Ok((WordCounts { core: Arc::new(kept) }, words, occurrences))
            })
        })
    }

    /// Learn a vocabulary by joining pairs; `likelihood`: by the score of that name.
    #[pyo3(signature = (vocab_size, special_tokens, base, fill_unused, threads, observer, *, likelihood, min_frequency,
        limit_alphabet, initial_alphabet))]
    #[allow(clippy::too_many_arguments, reason = "the options of the learner")]
    fn train_joining(
        &self,
        py: Python<'_>,
        vocab_size: usize,
        special_tokens: Vec<String>,
        base: Option<Vec<String>>,
        fill_unused: bool,
        threads: Option<&Bound<'_, PyAny>>,
        observer: Option<Py<PyAny>>,
        likelihood: bool,
        min_frequency: u64,
        limit_alphabet: Option<usize>,
        initial_alphabet: Vec<String>,
    ) -> PyResult<Trained> {
        let how = MergeOptions { min_frequency, limit_alphabet, initial_alphabet };
        let learner = if likelihood { Learner::Likelihood(how) } else { Learner::Bpe(how) };
        let threads = threads::number(threads::checked("threads", threads)?);
        self.train(py, TrainOptions { vocab_size, special_tokens, base, fill_unused, learner, threads }, observer)
    }

    /// Learn a vocabulary from whole words down.
    #[pyo3(signature = (vocab_size, special_tokens, base, fill_unused, threads, observer, *, lower_thresh, upper_thresh,
        num_iterations, slack_ratio, max_token_length, max_unique_chars, max_input_words, include_joiner))]
    #[allow(clippy::too_many_arguments, reason = "the options of the learner")]
    fn train_top_down(
        &self,
        py: Python<'_>,
        vocab_size: usize,
        special_tokens: Vec<String>,
        base: Option<Vec<String>>,
        fill_unused: bool,
        threads: Option<&Bound<'_, PyAny>>,
        observer: Option<Py<PyAny>>,
        lower_thresh: Option<u64>,
        upper_thresh: Option<u64>,
        num_iterations: usize,
        slack_ratio: f64,
        max_token_length: usize,
        max_unique_chars: usize,
        max_input_words: Option<usize>,
        include_joiner: bool,
    ) -> PyResult<Trained> {
        let learner = Learner::TopDown(TopDownOptions {
            lower_thresh,
            upper_thresh,
            num_iterations,
            slack_ratio,
            max_token_length,
            max_unique_chars,
            max_input_words,
            include_joiner,
        });
        let threads = threads::number(threads::checked("threads", threads)?);
        self.train(py, TrainOptions { vocab_size, special_tokens, base, fill_unused, learner, threads }, observer)
    }
}

impl WordCounts {
    fn train(&self, py: Python<'_>, options: TrainOptions, observer: Option<Py<PyAny>>) -> PyResult<Trained> {
        guarded(|| {
            let mut observer = Observer { callable: observer, raised: None };
            let trained = py.detach(|| train::train(&self.core, &options, &mut |progress| observer.look(progress)));
            let trained = trained.map_err(|error| observer.error(error))?;
            let dropped = trained.dropped;
            Ok(Trained {
                tokens: trained.tokens,
                counts: trained.counts,
                unknown: trained.unknown,
                pieces: trained.pieces,
                stop: match trained.stop {
                    train::Stop::SizeReached => "size",
                    train::Stop::NothingLeft => "nothing left",
                    train::Stop::Threshold(_) => "threshold",
                },
                least_size: trained.least_size,
                threshold: trained.threshold,
                dropped_shares: (dropped.occurrences, dropped.of_characters, dropped.words, dropped.of_words),
                dropped_chars: dropped.chars,
                left_out: (trained.excluded.words, trained.excluded.occurrences),
            })
        })
    }
}

/// What a tokenizer makes of texts, so far.
#[pyclass(frozen, module = "wordpiece_bert._core")]
pub struct Reporter {
    core: Mutex<train::Reporter>,
}

/// The sums of a report. Words and texts by their tokens, and uses by id, are lists of pairs.
#[pyclass(frozen, get_all, module = "wordpiece_bert._core")]
pub struct Sums {
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

#[pymethods]
impl Reporter {
    #[new]
    fn new(py: Python<'_>, tokenizer: &Tokenizer, threads: Option<&Bound<'_, PyAny>>) -> PyResult<Reporter> {
        guarded(|| {
            let threads = threads::number(threads::checked("threads", threads)?);
            let core = py.detach(|| train::Reporter::new(tokenizer.definition(), threads).map_err(to_py))?;
            Ok(Reporter { core: Mutex::new(core) })
        })
    }

    /// Take texts into account; `first` is the index of the first of them, for messages.
    fn add(&self, py: Python<'_>, texts: Vec<Bound<'_, PyAny>>, first: usize) -> PyResult<()> {
        guarded(|| {
            let expected = "texts are an iterable of str";
            let text = |(i, text): (usize, &Bound<'_, PyAny>)| {
                Ok(convert::string(text, Location::item("item", first + i), expected)?.unbind())
            };
            let texts = texts.iter().enumerate().map(text).collect::<PyResult<Vec<_>>>()?;
            let texts = texts.iter().map(|text| text.to_str(py)).collect::<PyResult<Vec<_>>>()?;
            // Nobody else has this reporter; a lock that a panic poisoned holds nothing that is used again.
            py.detach(|| self.core.lock().expect("not shared").add(&texts).map_err(to_py))
        })
    }

    /// The sums so far.
    fn sums(&self, py: Python<'_>) -> PyResult<Sums> {
        guarded(|| {
            let sums = py.detach(|| self.core.lock().expect("not shared").sums());
            Ok(Sums {
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
