//! Divides the making of rows into blocks, and shares them among threads.
//!
//! Rows of pairs follow from their document alone, so documents are shared out; a long document is made piece by piece, and
//! so are rows of single segments, which are copies of the shard. Masks are computed by all threads. The bounds of blocks
//! depend on the shard and the options only.
//!
//! # Cost
//!
//! Memory is bounded by [`BLOCKS_TOGETHER`] blocks of [`LONG_DOCUMENT`] tokens, however long a document is.

use std::collections::VecDeque;
use std::ops::Range;

use wordpiece_parallel::{Workers, checkpoint, map_with};

use super::block::{BlockCounts, RowBlock};
use super::options::{Objective, RowOptions};
use super::pairs::DocumentPairs;
use super::shard::StoreShard;
use super::singles::Singles;
use crate::pretraining::masking::{MaskScratch, Masking};
use crate::pretraining::packing::pack;

/// How sequences are packed into rows.
#[derive(Debug, Clone, Copy)]
pub struct Packing {
    /// The length of a row in tokens; at least the length of a sequence.
    pub length: usize,
    /// How many sequences are packed together.
    pub window: usize,
    /// The most sequences in a row.
    pub max_sequences: Option<usize>,
}

/// A block has at least this many tokens, but for the last.
const BLOCK_TOKENS: usize = 1 << 18;

/// This many blocks are made together, whatever the number of threads.
const BLOCKS_TOGETHER: usize = 16;

/// A document with at least this many tokens is divided into blocks, one after the other. Shorter ones are whole in their
/// block, so that several are made at the same time.
const LONG_DOCUMENT: usize = 1 << 20;

/// Makes the rows of one pass over one shard.
#[derive(Debug)]
pub struct ExampleBuilder {
    options: RowOptions,
    packing: Option<Packing>,
    /// The next document, for pairs.
    document: usize,
    /// The long document before it, if that is not finished.
    open: Option<DocumentPairs>,
    singles: Singles,
    /// Sequences that wait for a window to be full.
    waiting: RowBlock,
    ready: VecDeque<RowBlock>,
    done: bool,
    counts: BlockCounts,
}

impl ExampleBuilder {
    /// Begins with the first row.
    #[must_use]
    pub fn new(options: RowOptions, packing: Option<Packing>) -> ExampleBuilder {
        ExampleBuilder {
            options,
            packing,
            document: 0,
            open: None,
            singles: Singles::default(),
            waiting: RowBlock::default(),
            ready: VecDeque::new(),
            done: false,
            counts: BlockCounts::default(),
        }
    }

    /// Returns what was counted in all blocks so far.
    #[must_use]
    pub fn counts(&self) -> BlockCounts {
        self.counts
    }

    /// Returns the next rows; `None` at the end. The shard must be the same in every call.
    pub fn next_block(
        &mut self,
        shard: &StoreShard<'_>,
        masking: Option<&Masking>,
        pool: Option<Workers>,
    ) -> Option<RowBlock> {
        while self.ready.is_empty() && !self.done {
            let made = self.make(shard, pool);
            let mut blocks = match self.packing {
                None => made,
                Some(packing) => self.pack(made, packing),
            };
            if let Some(masking) = masking {
                let (seed, pass) = (self.options.seed, self.options.pass);
                blocks = map_with(blocks, pool, MaskScratch::default, |scratch, mut block| {
                    checkpoint();
                    block.mask(masking, seed, pass, scratch);
                    block
                });
            }
            for block in &blocks {
                self.counts += block.counts;
            }
            self.ready.extend(blocks.into_iter().filter(|block| !block.is_empty()));
        }
        self.ready.pop_front()
    }

    /// Makes some blocks of unpacked rows; sets `done` at the end of the shard.
    fn make(&mut self, shard: &StoreShard<'_>, pool: Option<Workers>) -> Vec<RowBlock> {
        if !matches!(self.options.objective, Objective::Nsp | Objective::Sop) {
            let mut block = RowBlock::default();
            self.done = !self.singles.fill(shard, &self.options, BLOCK_TOKENS, &mut block);
            return vec![block];
        }
        let mut blocks = self.make_long(shard);
        let runs = self.next_runs(shard, BLOCKS_TOGETHER - blocks.len());
        self.done = self.open.is_none() && self.document == shard.documents();
        let options = &self.options;
        blocks.extend(map_with(
            runs,
            pool,
            || (),
            |(), run| {
                let mut block = RowBlock::default();
                for document in run {
                    checkpoint();
                    DocumentPairs::new(shard, document, options).fill(shard, options, usize::MAX, &mut block);
                }
                block
            },
        ));
        blocks
    }

    /// Makes blocks of the long document that is open or comes next; none if the next one is short.
    fn make_long(&mut self, shard: &StoreShard<'_>) -> Vec<RowBlock> {
        let mut blocks = Vec::new();
        if self.open.is_none() && self.document < shard.documents() && is_long(shard, self.document) {
            self.open = Some(DocumentPairs::new(shard, self.document, &self.options));
            self.document += 1;
        }
        while let Some(pairs) = self.open.as_mut().filter(|_| blocks.len() < BLOCKS_TOGETHER) {
            checkpoint();
            let mut block = RowBlock::default();
            if !pairs.fill(shard, &self.options, BLOCK_TOKENS, &mut block) {
                self.open = None;
            }
            blocks.push(block);
        }
        blocks
    }

    /// Takes the documents up to the next long one, as the ranges of at most `most` blocks.
    fn next_runs(&mut self, shard: &StoreShard<'_>, most: usize) -> Vec<Range<usize>> {
        let mut runs = Vec::with_capacity(most);
        let is_short = |document: usize| document < shard.documents() && !is_long(shard, document);
        while self.open.is_none() && runs.len() < most && is_short(self.document) {
            let begin = self.document;
            let start = shard.start(shard.sentences_of(begin).0);
            while is_short(self.document) && shard.start(shard.sentences_of(self.document).0) - start < BLOCK_TOKENS {
                self.document += 1;
            }
            runs.push(begin..self.document);
        }
        runs
    }

    /// Packs the sequences of blocks, window by window; the sequences of an incomplete window wait unless the shard is
    /// done.
    fn pack(&mut self, made: Vec<RowBlock>, packing: Packing) -> Vec<RowBlock> {
        let mut packed = Vec::new();
        for block in made {
            let mut counted = RowBlock { counts: block.counts, ..RowBlock::default() };
            for i in 0..block.len() {
                push_sequence(&mut self.waiting, &block, i);
                if self.waiting.len() == packing.window {
                    checkpoint();
                    packed.push(pack_window(&std::mem::take(&mut self.waiting), packing));
                }
            }
            match packed.last_mut() {
                Some(last) => last.counts += counted.counts,
                None => packed.push(std::mem::take(&mut counted)),
            }
        }
        if self.done && !self.waiting.is_empty() {
            packed.push(pack_window(&std::mem::take(&mut self.waiting), packing));
        }
        packed
    }
}

/// Returns whether a document is divided into blocks.
fn is_long(shard: &StoreShard<'_>, document: usize) -> bool {
    let (first, last) = shard.sentences_of(document);
    shard.start(last) - shard.start(first) >= LONG_DOCUMENT
}

/// Appends row `i` of a block to another one, as a sequence.
fn push_sequence(to: &mut RowBlock, from: &RowBlock, i: usize) {
    to.ids.extend_from_slice(&from.ids[from.row(i)]);
    to.end_row(from.second_starts[i], from.identities[i]);
    to.pair_labels.extend(from.pair_labels.get(i));
}

/// Returns the rows of a window of sequences.
fn pack_window(sequences: &RowBlock, packing: Packing) -> RowBlock {
    let mut rows = RowBlock::default();
    for row in pack(&sequences.sequence_lengths, packing.length, packing.max_sequences) {
        for &i in &row {
            rows.ids.extend_from_slice(&sequences.ids[sequences.row(i)]);
            rows.sequence_lengths.push(sequences.sequence_lengths[i]);
            rows.second_starts.push(sequences.second_starts[i]);
            rows.pair_labels.extend(sequences.pair_labels.get(i));
        }
        rows.row_ends.push(rows.ids.len() as u64);
        rows.sequence_ends.push(rows.sequence_lengths.len() as u64);
        rows.identities.push(sequences.identities[row[0]]);
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pretraining::collate::Column;

    /// The arrays of a shard with documents of some numbers of tokens, in sentences of 1 to 40 tokens.
    fn arrays(documents: &[usize]) -> (Vec<u16>, Vec<i64>, Vec<i64>, Vec<u64>) {
        let (mut sentences, mut bounds) = (vec![0], vec![0]);
        for (i, &tokens) in documents.iter().enumerate() {
            let end = sentences[sentences.len() - 1] + tokens as i64;
            while sentences[sentences.len() - 1] < end {
                let length = 1 + (sentences.len() as i64 * 7919 + i as i64) % 40;
                sentences.push(end.min(sentences[sentences.len() - 1] + length));
            }
            bounds.push(sentences.len() as i64 - 1);
        }
        let n = sentences[sentences.len() - 1];
        ((0..n).map(|i| (i % 60_000) as u16).collect(), sentences, bounds, (0..documents.len() as u64).collect())
    }

    /// All rows of a shard, and the most tokens in a block.
    fn built(objective: Objective, documents: &[usize]) -> (RowBlock, usize) {
        let (ids, sentences, bounds, names) = arrays(documents);
        let shard = StoreShard::new(Column::U16(&ids), &sentences, &bounds, &names).expect("the arrays fit together");
        let mut builder = ExampleBuilder::new(options(objective), None);
        let (mut all, mut most) = (RowBlock::default(), 0);
        while let Some(block) = builder.next_block(&shard, None, None) {
            most = most.max(block.ids.len());
            for i in 0..block.len() {
                push_sequence(&mut all, &block, i);
            }
        }
        all.counts = builder.counts();
        (all, most)
    }

    fn options(objective: Objective) -> RowOptions {
        RowOptions {
            objective,
            max_length: 128,
            short_seq_prob: 0.1,
            min_sentences: 1,
            seed: 7,
            pass: 1,
            cls_id: 1,
            sep_id: 2,
        }
    }

    #[test]
    fn a_long_document_has_the_rows_of_one_block_in_blocks_of_bounded_size() {
        let documents = [900, LONG_DOCUMENT + 3 * BLOCK_TOKENS + 5, 30_000, LONG_DOCUMENT, 12];
        let (ids, sentences, bounds, names) = arrays(&documents);
        let shard = StoreShard::new(Column::U16(&ids), &sentences, &bounds, &names).expect("the arrays fit together");
        for objective in [Objective::Nsp, Objective::Sop] {
            let mut whole = RowBlock::default();
            for document in 0..documents.len() {
                let options = options(objective);
                DocumentPairs::new(&shard, document, &options).fill(&shard, &options, usize::MAX, &mut whole);
            }
            let (found, most) = built(objective, &documents);
            assert!(found.ids == whole.ids && found.row_ends == whole.row_ends, "{objective:?}");
            assert_eq!((found.identities, found.pair_labels), (whole.identities, whole.pair_labels));
            assert_eq!(found.counts, whole.counts);
            assert!(most < BLOCK_TOKENS + 128, "{objective:?}: a block of {most} tokens");
        }
        for objective in [Objective::FullSentences, Objective::DocSentences, Objective::Blocks] {
            let mut whole = RowBlock::default();
            assert!(!Singles::default().fill(&shard, &options(objective), usize::MAX / 2, &mut whole));
            let (found, most) = built(objective, &documents);
            assert!(found.ids == whole.ids && found.row_ends == whole.row_ends, "{objective:?}");
            assert_eq!(found.identities, whole.identities);
            assert_eq!(found.counts, whole.counts);
            assert!(most < BLOCK_TOKENS + 256, "{objective:?}: a block of {most} tokens");
        }
    }
}
