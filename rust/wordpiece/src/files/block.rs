//! Some megabytes of whole texts, and where each comes from.

use std::ops::Range;
use std::sync::Arc;

use crate::tokenizer::Input;

/// Texts that were read together. One kept from call to call keeps its memory.
#[derive(Debug, Clone, Default)]
pub struct Block {
    pub(super) text: String,
    /// Where the texts stand in `text`.
    pub(super) spans: Vec<Range<usize>>,
    /// Where their second texts stand; empty unless texts are pairs.
    pub(super) seconds: Vec<Range<usize>>,
    pub(super) starts: Vec<Start>,
    pub(super) names: Arc<[String]>,
    pub(super) whole: bool,
    pub(super) skipped: Vec<String>,
    pub(super) skipped_count: usize,
    pub(super) bytes_read: u64,
}

/// Where a text begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Start {
    pub file: u32,
    /// Counted from 1.
    pub line: u64,
}

/// Texts left out that a block describes; the rest it counts.
const SKIPPED_TOLD: usize = 20;

impl Block {
    /// Takes texts that stand one after the other, such as the strings of an Arrow array: text *i* ends at `ends[i]`.
    ///
    /// `None` where the ends do not rise, point behind the text or cut a character.
    pub fn from_parts(name: &str, text: String, ends: &[usize], first_row: u64) -> Option<Block> {
        let mut start = 0;
        let mut spans = Vec::with_capacity(ends.len());
        for &end in ends {
            text.get(start..end)?;
            spans.push(start..end);
            start = end;
        }
        let starts = (first_row..).take(ends.len()).map(|line| Start { file: 0, line }).collect();
        Some(Block { text, spans, starts, names: Arc::from([name.to_owned()]), ..Block::default() })
    }

    /// The number of texts; a pair counts once.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The number of bytes of text.
    pub fn bytes(&self) -> usize {
        self.spans.iter().chain(&self.seconds).map(ExactSizeIterator::len).sum()
    }

    /// The texts; of pairs the first ones.
    pub fn texts(&self) -> impl ExactSizeIterator<Item = &str> {
        self.spans.iter().map(|span| &self.text[span.clone()])
    }

    /// The second texts; none unless texts are pairs.
    pub fn second_texts(&self) -> impl ExactSizeIterator<Item = &str> {
        self.seconds.iter().map(|span| &self.text[span.clone()])
    }

    /// What [`Tokenizer::encode_batch`](crate::Tokenizer::encode_batch) takes.
    pub fn inputs(&self) -> Vec<Input<'_>> {
        if self.seconds.is_empty() {
            self.texts().map(Input::single).collect()
        } else {
            self.texts().zip(self.second_texts()).map(|(first, second)| Input::pair(first, second)).collect()
        }
    }

    /// Where text `i` comes from, in words: `a.txt line 3`; the name alone where a file is one text.
    pub fn place(&self, i: usize) -> String {
        let Start { file, line } = self.starts[i];
        let name = &self.names[file as usize];
        if self.whole { name.clone() } else { format!("{name} line {line}") }
    }

    /// How many texts were left out on the way to this block.
    pub fn skipped_count(&self) -> usize {
        self.skipped_count
    }

    /// What was wrong with them and where; of many only the first.
    pub fn skipped(&self) -> &[String] {
        &self.skipped
    }

    /// Bytes of the files read when the block was made, all files together; of compressed files what is on the disk.
    pub fn bytes_read(&self) -> u64 {
        self.bytes_read
    }

    pub(super) fn clear(&mut self) {
        self.text.clear();
        self.spans.clear();
        self.seconds.clear();
        self.starts.clear();
        self.skipped.clear();
        self.skipped_count = 0;
    }

    pub(super) fn push(&mut self, text: &str, start: Start) {
        let at = self.text.len();
        self.text.push_str(text);
        self.spans.push(at..self.text.len());
        self.starts.push(start);
    }

    pub(super) fn skip(&mut self, what: impl FnOnce() -> String) {
        self.skipped_count += 1;
        if self.skipped.len() < SKIPPED_TOLD {
            self.skipped.push(what());
        }
    }
}
