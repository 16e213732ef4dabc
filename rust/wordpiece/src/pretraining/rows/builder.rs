//! Divides the making of rows into blocks, and shares them among threads.
//!
//! Rows of pairs follow from their document alone, so documents are shared out; rows of single segments are copies of the
//! shard and are made by one thread. Masks are computed by all threads. The bounds of blocks depend on the shard and the
//! options only.

use std::collections::VecDeque;

use wordpiece_parallel::{Workers, checkpoint, map_with};

use super::block::{BlockCounts, RowBlock};
use super::options::{Objective, RowOptions};
use super::pairs;
use super::shard::StoreShard;
use super::singles::Singles;
use crate::pretraining::masking::{MaskScratch, Masking};
use crate::pretraining::packing::pack;

/// How sequences are packed into rows.
#[derive(Debug, Clone, Copy)]
pub struct Packing {
    /// The length of a row in tokens; at least that of a sequence.
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

/// Makes the rows of one pass over one shard.
#[derive(Debug)]
pub struct ExampleBuilder {
    options: RowOptions,
    packing: Option<Packing>,
    /// The next document, for pairs.
    document: usize,
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
        let mut runs = Vec::with_capacity(BLOCKS_TOGETHER);
        while runs.len() < BLOCKS_TOGETHER && self.document < shard.documents() {
            let begin = self.document;
            let start = shard.start(shard.sentences_of(begin).0);
            while self.document < shard.documents()
                && shard.start(shard.sentences_of(self.document).0) - start < BLOCK_TOKENS
            {
                self.document += 1;
            }
            runs.push(begin..self.document);
        }
        self.done = self.document == shard.documents();
        let options = &self.options;
        map_with(
            runs,
            pool,
            || (),
            |(), run| {
                let mut block = RowBlock::default();
                for document in run {
                    checkpoint();
                    pairs::push_document(shard, document, options, &mut block);
                }
                block
            },
        )
    }

    /// Packs the sequences of blocks, window by window; those of an incomplete window wait unless the shard is done.
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
