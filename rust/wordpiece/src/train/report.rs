//! Statistics of texts under a tokenizer, as exact sums from which ratios can be computed.
//!
//! Words are what the normalizer and the pre-tokenizer produce; added tokens are not recognised in the texts. The
//! continuing-subword prefix and all other settings are the tokenizer's.
//!
//! # Cost
//!
//! Each thread segments each distinct word once and then only counts it, so a report is hardly slower than counting
//! words. Memory grows with the number of distinct words, once for each thread.

use std::collections::BTreeMap;
use std::hash::BuildHasher;
use std::ops::Range;

use hashbrown::{DefaultHashBuilder, HashTable};
use wordpiece_parallel::{InstructionSet, fork_join};

use crate::definition::Definition;
use crate::error::{Error, Result};
use crate::fast::words::{WordBuffer, WordFinder};
use crate::matcher::{Matcher, WordPieces};
use crate::normalize::{Normalized, Normalizer};
use crate::split::PreTokenizer;

/// The most bytes of a text. Positions have 32 bits, and normalization can triple the length.
const LONGEST_TEXT: usize = 1 << 30;

/// The sums over all texts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReportSums {
    /// The number of texts that are not empty.
    pub texts: u64,
    /// The number of characters of the texts.
    pub chars: u64,
    /// The number of bytes of the texts.
    pub bytes: u64,
    /// The number of words.
    pub words: u64,
    /// The number of characters of the words, after normalization.
    pub word_chars: u64,
    /// The number of tokens; a word that cannot be segmented is one token.
    pub tokens: u64,
    /// The number of words that cannot be segmented.
    pub unk_words: u64,
    /// The number of characters of these words.
    pub unk_chars: u64,
    /// The number of words for each number of tokens, without the words that cannot be segmented.
    pub words_by_tokens: BTreeMap<u64, u64>,
    /// The number of texts for each number of tokens.
    pub texts_by_tokens: BTreeMap<u64, u64>,
    /// How often each id occurs; ids that do not occur are not stored.
    pub used: BTreeMap<u32, u64>,
}

/// Collects the sums of texts under a tokenizer.
#[derive(Debug)]
pub struct Reporter {
    context: ReportContext,
    /// The sums of each thread; at least one.
    threads: Vec<ThreadReport>,
}

/// The steps of the tokenizer, which all threads share.
#[derive(Debug)]
struct ReportContext {
    normalizer: Option<Normalizer>,
    pre_tokenizer: Option<PreTokenizer>,
    matcher: Matcher,
    unk_id: u32,
    /// Finds words without the general pipeline, if it supports the normalizer and the pre-tokenizer.
    finder: Option<WordFinder>,
}

/// A distinct word.
#[derive(Debug, Clone)]
struct DistinctWord {
    /// The range of the word in [`ThreadReport::text`].
    text: Range<usize>,
    /// The range of its tokens in [`ThreadReport::ids`].
    ids: Range<usize>,
    /// The number of characters.
    chars: u64,
    /// Whether it cannot be segmented; its only token is then the unknown token.
    unknown: bool,
    /// How often it occurs.
    count: u64,
}

/// The words one thread has seen, and its scratch buffers.
#[derive(Debug, Default)]
struct ThreadReport {
    /// The indices of the words in `words`, by the hash of the text.
    index: HashTable<u32>,
    hasher: DefaultHashBuilder,
    words: Vec<DistinctWord>,
    /// The bytes of all distinct words.
    text: Vec<u8>,
    /// The tokens of all distinct words.
    ids: Vec<u32>,
    /// `texts`, `chars`, `bytes` and `texts_by_tokens`; the other sums follow from the words.
    sums: ReportSums,
    space: WordBuffer,
    normalized: Normalized,
    ranges: Vec<Range<usize>>,
    word_pieces: WordPieces,
}

impl Reporter {
    /// Creates a reporter for a tokenizer that uses this many threads; 0 means 1.
    ///
    /// # Errors
    ///
    /// [`Error::MissingUnk`].
    pub fn new(definition: &Definition, threads: usize) -> Result<Reporter> {
        let unk_token = &definition.unk_token;
        let unk_id = definition.vocab.id(unk_token).ok_or_else(|| definition.missing_unk())?;
        let prefix = &definition.continuing_subword_prefix;
        let finder = match (&definition.normalizer, &definition.pre_tokenizer) {
            (Some(Normalizer::Bert(bert)), Some(PreTokenizer::Bert)) => {
                WordFinder::new(*bert, InstructionSet::detect())
            }
            _ => None,
        };
        let context = ReportContext {
            normalizer: definition.normalizer.clone(),
            pre_tokenizer: definition.pre_tokenizer.clone(),
            matcher: Matcher::new(definition.vocab.iter(), prefix, definition.max_input_chars_per_word),
            unk_id,
            finder,
        };
        Ok(Reporter { context, threads: (0..threads.max(1)).map(|_| ThreadReport::default()).collect() })
    }

    /// Adds texts to the report. They are divided equally among the threads; the calling thread processes the first
    /// part.
    ///
    /// # Errors
    ///
    /// [`Error::TextTooLong`], or an error of the tokenizer's patterns, with the index of the text. The sums are then
    /// incomplete.
    pub fn add(&mut self, texts: &[&str]) -> Result<()> {
        let Reporter { context, threads } = self;
        let size = texts.len().div_ceil(threads.len()).max(1);
        let (own_report, other_reports) = threads.split_first_mut().expect("there is at least one thread");
        if texts.len() < 2 || other_reports.is_empty() {
            return own_report.add(context, texts, 0);
        }
        let (own_texts, other_texts) = texts.split_at(size);
        let others = other_texts.chunks(size).zip(other_reports).enumerate();
        let (own, others) = fork_join(
            others,
            |(i, (part, report)), _| report.add(context, part, (i + 1) * size),
            |_| own_report.add(context, own_texts, 0),
        );
        own?;
        others.into_iter().collect()
    }

    /// Returns the sums over all texts so far.
    pub fn sums(&self) -> ReportSums {
        let mut all = ReportSums::default();
        for report in &self.threads {
            all.texts += report.sums.texts;
            all.chars += report.sums.chars;
            all.bytes += report.sums.bytes;
            for (&tokens, &n) in &report.sums.texts_by_tokens {
                *all.texts_by_tokens.entry(tokens).or_default() += n;
            }
            for word in &report.words {
                let (n, pieces) = (word.count, word.ids.len() as u64);
                all.words += n;
                all.word_chars += n * word.chars;
                all.tokens += n * pieces;
                if word.unknown {
                    all.unk_words += n;
                    all.unk_chars += n * word.chars;
                } else {
                    *all.words_by_tokens.entry(pieces).or_default() += n;
                }
                for &id in &report.ids[word.ids.clone()] {
                    *all.used.entry(id).or_default() += n;
                }
            }
        }
        all
    }
}

impl ThreadReport {
    /// Adds texts, the first of which has the index `first`.
    fn add(&mut self, context: &ReportContext, texts: &[&str], first: usize) -> Result<()> {
        for (i, text) in texts.iter().enumerate().filter(|(_, text)| !text.is_empty()) {
            let tokens = self.add_words(context, text).map_err(|error| error.at_index(first + i))?;
            self.sums.texts += 1;
            self.sums.chars += text.chars().count() as u64;
            self.sums.bytes += text.len() as u64;
            *self.sums.texts_by_tokens.entry(tokens).or_default() += 1;
        }
        Ok(())
    }

    /// Adds the words of a text; returns the number of their tokens.
    fn add_words(&mut self, context: &ReportContext, text: &str) -> Result<u64> {
        if text.len() > LONGEST_TEXT {
            return Err(Error::TextTooLong { bytes: text.len() });
        }
        // The buffers are moved out so that their content and `self` can be borrowed at the same time.
        let mut space = std::mem::take(&mut self.space);
        let words = context.finder.as_ref().and_then(|finder| finder.find(text, &mut space));
        let tokens = words.map(|words| {
            let spans = words.starts.iter().zip(words.ends);
            spans.map(|(&start, &end)| self.add_word(context, &words.text[start as usize..end as usize])).sum()
        });
        self.space = space;
        match tokens {
            Some(tokens) => Ok(tokens),
            None => self.add_words_by_pipeline(context, text),
        }
    }

    /// Adds the words of a text by the tokenizer's own steps; returns the number of their tokens.
    fn add_words_by_pipeline(&mut self, context: &ReportContext, text: &str) -> Result<u64> {
        let mut normalized = std::mem::take(&mut self.normalized);
        let mut ranges = std::mem::take(&mut self.ranges);
        let aligned = context.pre_tokenizer.as_ref().is_some_and(PreTokenizer::needs_spans);
        normalized.reset(text, 0, aligned);
        if let Some(normalizer) = &context.normalizer {
            normalizer.apply(&mut normalized)?;
        }
        ranges.clear();
        ranges.push(0..normalized.text.len());
        if let Some(pre_tokenizer) = &context.pre_tokenizer {
            pre_tokenizer.split(&mut normalized, &mut ranges)?;
        }
        let words = ranges.iter().filter(|range| !range.is_empty());
        let tokens = words.map(|range| self.add_word(context, &normalized.text.as_bytes()[range.clone()])).sum();
        (self.normalized, self.ranges) = (normalized, ranges);
        Ok(tokens)
    }

    /// Adds a word, which must be valid UTF-8; returns the number of its tokens.
    fn add_word(&mut self, context: &ReportContext, word: &[u8]) -> u64 {
        let ThreadReport { index, hasher, words, text, ids, word_pieces, .. } = self;
        let hash = hasher.hash_one(word);
        if let Some(&i) = index.find(hash, |&i| text[words[i as usize].text.clone()] == *word) {
            let known = &mut words[i as usize];
            known.count += 1;
            return known.ids.len() as u64;
        }
        let as_str = std::str::from_utf8(word).expect("words are cut from text at character boundaries");
        let unknown = !context.matcher.match_word(as_str, word_pieces);
        let first = ids.len();
        if unknown {
            ids.push(context.unk_id);
        } else {
            ids.extend(word_pieces.pieces.iter().map(|piece| piece.id));
        }
        let start = text.len();
        text.extend_from_slice(word);
        let chars = as_str.chars().count() as u64;
        words.push(DistinctWord { text: start..text.len(), ids: first..ids.len(), chars, unknown, count: 1 });
        index.insert_unique(hash, words.len() as u32 - 1, |&i| hasher.hash_one(&text[words[i as usize].text.clone()]));
        (ids.len() - first) as u64
    }
}
