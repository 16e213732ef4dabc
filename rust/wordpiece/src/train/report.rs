//! What a tokenizer makes of texts, in whole numbers: the sums that ratios are formed from.
//!
//! Words are what the normalizer and the splitter give; added tokens are not looked for. Each distinct word is cut once, so
//! a report takes little longer than counting words.

use std::collections::BTreeMap;
use std::hash::BuildHasher;
use std::ops::Range;

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::definition::Definition;
use crate::error::{Error, Result};
use crate::fast::InstructionSet;
use crate::fast::words::{Space, WordFinder};
use crate::matcher::{Matcher, WordPieces};
use crate::normalize::{Normalized, Normalizer};
use crate::split::PreTokenizer;

/// The bytes of a text. Positions have 32 bits, and normalizing may make text three times as long.
const LONGEST_TEXT: usize = 1 << 30;

/// The sums over all texts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sums {
    /// Texts that are not empty.
    pub texts: u64,
    /// Their characters.
    pub chars: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Words.
    pub words: u64,
    /// The characters of the words, after normalization.
    pub word_chars: u64,
    /// Tokens; a word that cannot be cut is one.
    pub tokens: u64,
    /// Words that cannot be cut.
    pub unk_words: u64,
    /// Their characters.
    pub unk_chars: u64,
    /// Words by the number of their tokens; those that cannot be cut are not among them.
    pub words_by_tokens: BTreeMap<u64, u64>,
    /// Texts by the number of their tokens.
    pub texts_by_tokens: BTreeMap<u64, u64>,
    /// How often each id was used.
    pub used: BTreeMap<u32, u64>,
}

/// A tokenizer taken apart, and what it has seen so far.
#[derive(Debug)]
pub struct Reporter {
    shared: Shared,
    memories: Vec<Memory>,
}

/// What all threads read.
#[derive(Debug)]
struct Shared {
    normalizer: Option<Normalizer>,
    pre_tokenizer: Option<PreTokenizer>,
    matcher: Matcher,
    unk_id: u32,
    /// The fast way to the words, for the normalizers that it knows.
    finder: Option<WordFinder>,
}

/// A distinct word.
#[derive(Debug, Clone)]
struct Seen {
    text: Range<usize>,
    ids: Range<usize>,
    chars: u64,
    unknown: bool,
    count: u64,
}

/// What a thread remembers.
#[derive(Debug, Default)]
struct Memory {
    words: HashTable<u32>,
    hasher: DefaultHashBuilder,
    seen: Vec<Seen>,
    text: Vec<u8>,
    ids: Vec<u32>,
    sums: Sums,
    space: Space,
    normalized: Normalized,
    ranges: Vec<Range<usize>>,
    word_pieces: WordPieces,
}

impl Reporter {
    /// A reporter on a tokenizer, with so many threads; 0 is taken as 1.
    ///
    /// # Errors
    ///
    /// The unknown token is not in the vocabulary.
    pub fn new(definition: &Definition, threads: usize) -> Result<Reporter> {
        let unk_token = &definition.unk_token;
        let unk_id = definition.vocab.id(unk_token).ok_or(Error::MissingUnk { unk_token: unk_token.clone() })?;
        let prefix = &definition.continuing_subword_prefix;
        let finder = match (&definition.normalizer, &definition.pre_tokenizer) {
            (Some(Normalizer::Bert(bert)), Some(PreTokenizer::Bert)) => {
                WordFinder::new(*bert, InstructionSet::detect())
            }
            _ => None,
        };
        let shared = Shared {
            normalizer: definition.normalizer.clone(),
            pre_tokenizer: definition.pre_tokenizer.clone(),
            matcher: Matcher::new(definition.vocab.iter(), prefix, definition.max_input_chars_per_word),
            unk_id,
            finder,
        };
        Ok(Reporter { shared, memories: (0..threads.max(1)).map(|_| Memory::default()).collect() })
    }

    /// Takes texts into account.
    ///
    /// # Errors
    ///
    /// What the tokenizer's patterns say about a text, with its index.
    pub fn add(&mut self, texts: &[&str]) -> Result<()> {
        let Reporter { shared, memories } = self;
        let size = texts.len().div_ceil(memories.len()).max(1);
        if texts.len() < 2 || memories.len() == 1 {
            return memories[0].add(shared, texts, 0);
        }
        std::thread::scope(|scope| {
            let mut threads = Vec::new();
            for (i, (part, memory)) in texts.chunks(size).zip(memories).enumerate() {
                let shared = &*shared;
                threads.push(scope.spawn(move || memory.add(shared, part, i * size)));
            }
            threads
                .into_iter()
                .try_for_each(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        })
    }

    /// The sums so far.
    pub fn sums(&self) -> Sums {
        let mut all = Sums::default();
        for memory in &self.memories {
            all.texts += memory.sums.texts;
            all.chars += memory.sums.chars;
            all.bytes += memory.sums.bytes;
            for (&tokens, &n) in &memory.sums.texts_by_tokens {
                *all.texts_by_tokens.entry(tokens).or_default() += n;
            }
            for seen in &memory.seen {
                let (n, pieces) = (seen.count, seen.ids.len() as u64);
                all.words += n;
                all.word_chars += n * seen.chars;
                all.tokens += n * pieces;
                if seen.unknown {
                    all.unk_words += n;
                    all.unk_chars += n * seen.chars;
                } else {
                    *all.words_by_tokens.entry(pieces).or_default() += n;
                }
                for &id in &memory.ids[seen.ids.clone()] {
                    *all.used.entry(id).or_default() += n;
                }
            }
        }
        all
    }
}

impl Memory {
    fn add(&mut self, shared: &Shared, texts: &[&str], first: usize) -> Result<()> {
        for (i, text) in texts.iter().enumerate().filter(|(_, text)| !text.is_empty()) {
            let tokens = self.text(shared, text).map_err(|error| error.at_index(first + i))?;
            self.sums.texts += 1;
            self.sums.chars += text.chars().count() as u64;
            self.sums.bytes += text.len() as u64;
            *self.sums.texts_by_tokens.entry(tokens).or_default() += 1;
        }
        Ok(())
    }

    /// Counts the words of a text; returns the number of their tokens.
    fn text(&mut self, shared: &Shared, text: &str) -> Result<u64> {
        if text.len() > LONGEST_TEXT {
            return Err(Error::TextTooLong { bytes: text.len() });
        }
        let mut tokens = 0;
        let mut space = std::mem::take(&mut self.space);
        let words = shared.finder.as_ref().and_then(|finder| finder.find(text, &mut space));
        if let Some(words) = words {
            for (&start, &end) in words.starts.iter().zip(words.ends) {
                tokens += self.word(shared, &words.text[start as usize..end as usize]);
            }
            self.space = space;
            return Ok(tokens);
        }
        self.space = space;
        let mut normalized = std::mem::take(&mut self.normalized);
        let mut ranges = std::mem::take(&mut self.ranges);
        let aligned = shared.pre_tokenizer.as_ref().is_some_and(PreTokenizer::needs_spans);
        normalized.reset(text, 0, aligned);
        if let Some(normalizer) = &shared.normalizer {
            normalizer.apply(&mut normalized)?;
        }
        ranges.clear();
        ranges.push(0..normalized.text.len());
        if let Some(pre_tokenizer) = &shared.pre_tokenizer {
            pre_tokenizer.split(&mut normalized, &mut ranges)?;
        }
        for range in ranges.iter().filter(|range| !range.is_empty()) {
            tokens += self.word(shared, &normalized.text.as_bytes()[range.clone()]);
        }
        (self.normalized, self.ranges) = (normalized, ranges);
        Ok(tokens)
    }

    fn word(&mut self, shared: &Shared, word: &[u8]) -> u64 {
        let Memory { words, hasher, seen, text, ids, word_pieces, .. } = self;
        let hash = hasher.hash_one(word);
        let bytes = |seen: &Seen, text: &[u8]| text[seen.text.clone()] == *word;
        if let Some(&i) = words.find(hash, |&i| bytes(&seen[i as usize], text)) {
            let seen = &mut seen[i as usize];
            seen.count += 1;
            return seen.ids.len() as u64;
        }
        // Cut out of a str between characters, as the splitter does.
        let as_str = std::str::from_utf8(word).expect("words are cut out of text between characters");
        let unknown = !shared.matcher.match_word(as_str, word_pieces);
        let first = ids.len();
        if unknown {
            ids.push(shared.unk_id);
        } else {
            ids.extend(word_pieces.pieces.iter().map(|piece| piece.id));
        }
        let start = text.len();
        text.extend_from_slice(word);
        let chars = as_str.chars().count() as u64;
        seen.push(Seen { text: start..text.len(), ids: first..ids.len(), chars, unknown, count: 1 });
        words.insert_unique(hash, seen.len() as u32 - 1, |&i| hasher.hash_one(&text[seen[i as usize].text.clone()]));
        (ids.len() - first) as u64
    }
}
