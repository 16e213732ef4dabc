//! Some rows, as lists that are written one after the other.

use crate::pretraining::collate::Column;
use crate::pretraining::masking::{EpochKeys, MaskCounts, MaskScratch, Masking};

/// What was counted while rows were made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BlockCounts {
    /// Pairs that aimed at a smaller number of tokens.
    pub short_targets: u64,
    /// Pairs whose first segment is the last sentence of its document, so that the second one is random.
    pub lone_sentences: u64,
    /// Pairs that could not be made, for want of a second segment.
    pub rows_dropped: u64,
    /// Tokens that did not fit.
    pub tokens_cut: u64,
    /// Documents that did not fit a row.
    pub truncated: u64,
    /// Sentences longer than a row, which were divided.
    pub sentences_divided: u64,
    /// What masking did; zeros where masks are not static.
    pub masks: MaskCounts,
}

impl std::ops::AddAssign for BlockCounts {
    fn add_assign(&mut self, other: BlockCounts) {
        self.short_targets += other.short_targets;
        self.lone_sentences += other.lone_sentences;
        self.rows_dropped += other.rows_dropped;
        self.tokens_cut += other.tokens_cut;
        self.truncated += other.truncated;
        self.sentences_divided += other.sentences_divided;
        self.masks += other.masks;
    }
}

/// Rows of one pass over one shard.
#[derive(Debug, Clone, Default)]
pub struct RowBlock {
    /// The ids of all rows, masked if masks are static.
    pub ids: Vec<u32>,
    /// Where each row ends in `ids`.
    pub row_ends: Vec<u64>,
    /// The id of the document in which each row begins, and how many rows of this pass began there before.
    pub identities: Vec<(u64, u64)>,
    /// The length of each sequence; a row is one, unless rows are packed.
    pub sequence_lengths: Vec<u32>,
    /// The place of the second segment in each sequence; 0 for none.
    pub second_starts: Vec<u32>,
    /// The label of each sequence; empty if rows are not pairs.
    pub pair_labels: Vec<u8>,
    /// Where the sequences of each row end; empty unless rows are packed.
    pub sequence_ends: Vec<u64>,
    /// Where the masks of each row end; empty unless masks are static.
    pub mask_ends: Vec<u64>,
    /// The places of masked tokens in their rows, ascending in each.
    pub mask_places: Vec<u32>,
    /// The ids before masking.
    pub mask_ids: Vec<u32>,
    /// What was counted.
    pub counts: BlockCounts,
}

impl RowBlock {
    /// Returns the number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.row_ends.len()
    }

    /// Returns whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.row_ends.is_empty()
    }

    /// Returns the range of a row in `ids`.
    #[must_use]
    pub fn row(&self, i: usize) -> std::ops::Range<usize> {
        let start = if i == 0 { 0 } else { self.row_ends[i - 1] };
        start as usize..self.row_ends[i] as usize
    }

    /// Returns the range of the sequences of a row in the lists by sequence.
    #[must_use]
    pub fn sequences(&self, i: usize) -> std::ops::Range<usize> {
        if self.sequence_ends.is_empty() {
            return i..i + 1;
        }
        let start = if i == 0 { 0 } else { self.sequence_ends[i - 1] };
        start as usize..self.sequence_ends[i] as usize
    }

    /// Returns the range of the masks of a row.
    #[must_use]
    pub fn masks(&self, i: usize) -> std::ops::Range<usize> {
        let start = if i == 0 { 0 } else { self.mask_ends[i - 1] };
        start as usize..self.mask_ends[i] as usize
    }

    /// Returns the rows from row `first` on, without what was counted.
    #[must_use]
    pub fn rest(&self, first: usize) -> RowBlock {
        fn after<T: Copy>(list: &[T], start: usize) -> Vec<T> {
            list.get(start..).unwrap_or_default().to_vec()
        }
        fn ends_after(ends: &[u64], first: usize, start: usize) -> Vec<u64> {
            ends.get(first..).unwrap_or_default().iter().map(|end| end - start as u64).collect()
        }
        let before = |ends: &[u64]| first.checked_sub(1).and_then(|last| ends.get(last)).map_or(0, |&end| end as usize);
        let (tokens, masks) = (before(&self.row_ends), before(&self.mask_ends));
        let sequences = if self.sequence_ends.is_empty() { first } else { before(&self.sequence_ends) };
        RowBlock {
            ids: after(&self.ids, tokens),
            row_ends: ends_after(&self.row_ends, first, tokens),
            identities: after(&self.identities, first),
            sequence_lengths: after(&self.sequence_lengths, sequences),
            second_starts: after(&self.second_starts, sequences),
            pair_labels: after(&self.pair_labels, sequences),
            sequence_ends: ends_after(&self.sequence_ends, first, sequences),
            mask_ends: ends_after(&self.mask_ends, first, masks),
            mask_places: after(&self.mask_places, masks),
            mask_ids: after(&self.mask_ids, masks),
            counts: BlockCounts::default(),
        }
    }

    /// Returns the segment id of each token.
    #[must_use]
    pub fn token_type_ids(&self) -> Vec<i8> {
        let mut ids = vec![0; self.ids.len()];
        let mut start = 0;
        for (&length, &second) in self.sequence_lengths.iter().zip(&self.second_starts) {
            let end = start + length as usize;
            if second > 0 {
                ids[start + second as usize..end].fill(1);
            }
            start = end;
        }
        ids
    }

    /// Returns the place of each token in its sequence.
    #[must_use]
    pub fn position_ids(&self) -> Vec<i32> {
        self.sequence_lengths.iter().flat_map(|&length| 0..length as i32).collect()
    }

    /// Returns the label of each token: the id before masking, -100 where nothing was masked.
    #[must_use]
    pub fn labels(&self) -> Vec<i32> {
        let mut labels = vec![-100; self.ids.len()];
        for i in 0..self.len() {
            let start = self.row(i).start;
            for mask in self.masks(i) {
                labels[start + self.mask_places[mask] as usize] = self.mask_ids[mask] as i32;
            }
        }
        labels
    }

    /// Returns where the sequences of each row begin in it, and its length; a row has one number more than sequences.
    #[must_use]
    pub fn cu_seqlens(&self, i: usize) -> Vec<i32> {
        let mut bounds = vec![0];
        for &length in &self.sequence_lengths[self.sequences(i)] {
            bounds.push(bounds[bounds.len() - 1] + length as i32);
        }
        bounds
    }

    /// Appends tokens of a store to the row that is being written.
    pub(super) fn push_ids(&mut self, ids: Column<'_>, range: std::ops::Range<usize>) {
        match ids {
            Column::U16(ids) => self.ids.extend(ids[range].iter().map(|&id| u32::from(id))),
            Column::U32(ids) => self.ids.extend_from_slice(&ids[range]),
        }
    }

    /// Ends the row that is being written.
    pub(super) fn end_row(&mut self, second_start: u32, identity: (u64, u64)) {
        let start = self.row_ends.last().copied().unwrap_or(0);
        self.row_ends.push(self.ids.len() as u64);
        self.sequence_lengths.push((self.ids.len() as u64 - start) as u32);
        self.second_starts.push(second_start);
        self.identities.push(identity);
    }

    /// Masks all rows, by their identities.
    pub(super) fn mask(&mut self, masking: &Masking, seed: u64, pass: u64, scratch: &mut MaskScratch) {
        let mut chosen: Vec<(u32, u32, u32)> = Vec::new();
        let mut keys = (0, EpochKeys::new(seed, pass, 0));
        for i in 0..self.len() {
            let (document, ordinal) = self.identities[i];
            if keys.0 != document {
                keys = (document, EpochKeys::new(seed, pass, document));
            }
            let range = self.row(i);
            chosen.clear();
            let ids = &self.ids[range.clone()];
            let write = |place: usize, old, new| chosen.push((place as u32, old, new));
            self.counts.masks += masking.apply(ids, &keys.1.row(ordinal), scratch, write);
            chosen.sort_unstable_by_key(|&(place, ..)| place);
            for &(place, old, new) in &chosen {
                self.ids[range.start + place as usize] = new;
                self.mask_places.push(place);
                self.mask_ids.push(old);
            }
            self.mask_ends.push(self.mask_places.len() as u64);
        }
    }
}
