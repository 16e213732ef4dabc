//! Rows of examples as the padded arrays of a batch, masked on the way.
//!
//! A [`Shard`] borrows the arrays of an example folder, which are usually memory maps, and does not trust them. A
//! [`Batch`] has one list for each array; each row is converted, padded and masked in one pass over it.

use std::ops::Range;

use super::masking::{MaskScratch, Masking, RowKeys, TokenId};
use crate::error::{Error, Result};
use crate::memory;

/// A list of 16-bit or 32-bit numbers.
#[derive(Debug, Clone, Copy)]
pub enum Column<'a> {
    /// 16 bits each.
    U16(&'a [u16]),
    /// 32 bits each.
    U32(&'a [u32]),
}

impl<'a> Column<'a> {
    /// Returns the numbers in a range, or `None` if it exceeds the list.
    fn get(self, range: Range<usize>) -> Option<Column<'a>> {
        Some(match self {
            Column::U16(list) => Column::U16(list.get(range)?),
            Column::U32(list) => Column::U32(list.get(range)?),
        })
    }

    /// Returns the length of the list.
    #[must_use]
    pub fn len(self) -> usize {
        match self {
            Column::U16(list) => list.len(),
            Column::U32(list) => list.len(),
        }
    }

    /// Returns whether the list is empty.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Returns a number of the list.
    fn at(self, i: usize) -> usize {
        match self {
            Column::U16(list) => list[i] as usize,
            Column::U32(list) => list[i] as usize,
        }
    }
}

/// The arrays of the rows of one pass over one shard; see the layout of example folders.
#[derive(Debug, Clone, Copy)]
pub struct Shard<'a> {
    /// The ids of all rows.
    pub ids: Column<'a>,
    /// Where each row begins in `ids`, and where the last one ends.
    pub row_offsets: &'a [i64],
    /// The place of the first token of each second segment, 0 for none; by row, or by sequence if rows are packed.
    pub second_starts: Option<Column<'a>>,
    /// The label of each pair; by row, or by sequence.
    pub pair_labels: Option<&'a [u8]>,
    /// The masks, if they are fixed: where the masks of each row begin, the places, and the ids before masking.
    pub masks: Option<(&'a [i64], Column<'a>, Column<'a>)>,
    /// The sequences of packed rows: where the sequences of each row begin, and their lengths in tokens.
    pub sequences: Option<(&'a [i64], Column<'a>)>,
}

/// One row of a shard.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    ids: Column<'a>,
    second_starts: Option<Column<'a>>,
    pair_labels: Option<&'a [u8]>,
    masks: Option<(Column<'a>, Column<'a>)>,
    /// The lengths of the sequences of a packed row.
    sequences: Option<Column<'a>>,
}

/// Returns range `i` of a list of offsets.
fn range(offsets: &[i64], i: usize) -> Option<Range<usize>> {
    let bound = |i: usize| usize::try_from(*offsets.get(i)?).ok();
    let (start, end) = (bound(i)?, bound(i + 1)?);
    (start <= end).then_some(start..end)
}

impl<'a> Shard<'a> {
    /// Returns the number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.row_offsets.len().saturating_sub(1)
    }

    /// Returns whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the length of a row in tokens; `None` if there is no such row or its offsets descend.
    #[must_use]
    pub fn row_length(&self, i: usize) -> Option<usize> {
        range(self.row_offsets, i).map(|range| range.len())
    }

    /// Returns a row.
    ///
    /// # Errors
    ///
    /// [`Error::BrokenExamples`] if there is no such row, or the arrays do not fit together.
    pub fn row(&self, i: usize) -> Result<Row<'a>> {
        self.try_row(i).ok_or(Error::BrokenExamples { row: i })
    }

    fn try_row(&self, i: usize) -> Option<Row<'a>> {
        let ids = self.ids.get(range(self.row_offsets, i)?)?;
        let (items, sequences) = match self.sequences {
            Some((offsets, lengths)) => {
                let range = range(offsets, i)?;
                (range.clone(), Some(lengths.get(range)?))
            }
            None => (i..i + 1, None),
        };
        if let Some(lengths) = sequences
            && (0..lengths.len()).map(|i| lengths.at(i)).sum::<usize>() != ids.len()
        {
            return None;
        }
        let second_starts = match self.second_starts {
            Some(list) => Some(list.get(items.clone())?),
            None => None,
        };
        let pair_labels = match self.pair_labels {
            Some(list) => Some(list.get(items)?),
            None => None,
        };
        let masks = match self.masks {
            Some((offsets, places, old)) => {
                let range = range(offsets, i)?;
                Some((places.get(range.clone())?, old.get(range)?))
            }
            None => None,
        };
        Some(Row { ids, second_starts, pair_labels, masks, sequences })
    }
}

impl Row<'_> {
    /// Returns the length in tokens.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Returns whether the row has no tokens.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Calls `f` with the range of each sequence in the row and the place of its second segment in the row.
    fn for_each_sequence(&self, mut f: impl FnMut(Range<usize>, Option<usize>)) {
        let mut start = 0;
        for i in 0..self.sequences.map_or(1, Column::len) {
            let end = self.sequences.map_or(self.ids.len(), |lengths| start + lengths.at(i));
            let second = self.second_starts.map_or(0, |list| list.at(i));
            f(start..end, (second > 0).then_some(start + second));
            start = end;
        }
    }
}

/// The label of tokens that are not to be predicted.
pub const IGNORED: i64 = -100;

/// How the rows of a batch are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchLayout {
    /// Each row padded to this length in tokens.
    Padded(usize),
    /// All rows one after the other, without padding.
    Flat,
}

/// The arrays of a batch. All of the same length but `attention_mask` of packed rows, `pair_labels` and `cu_seqlens`.
#[derive(Debug, Clone, Default)]
pub struct Batch {
    /// Token ids.
    pub input_ids: Vec<i64>,
    /// Segment ids.
    pub token_type_ids: Vec<i64>,
    /// 1 for tokens, 0 for padding. Empty if rows are packed or flat.
    pub attention_mask: Vec<i64>,
    /// Of packed rows: whether a token sees another one of its row, `length * length` for each row.
    pub sees: Vec<bool>,
    /// The ids to predict, [`IGNORED`] elsewhere. Empty if nothing is masked.
    pub labels: Vec<i64>,
    /// Whether the rows are masked, even if they have no tokens.
    pub has_labels: bool,
    /// Of packed or flat rows: the place of each token in its sequence.
    pub position_ids: Vec<i64>,
    /// The labels of pairs.
    pub pair_labels: Vec<i64>,
    /// Of packed or flat rows: where sequences end in the batch; 0 first. Padding of packed rows belongs to no sequence.
    pub cu_seqlens: Vec<i32>,
    /// The longest sequence of packed or flat rows, in tokens.
    pub longest_sequence: usize,
}

/// How the rows of a batch are masked: the rules, and the keys of each row.
pub type RowMasking<'a> = (&'a Masking, &'a dyn Fn(usize) -> RowKeys);

impl Batch {
    /// Makes a batch of rows.
    ///
    /// Rows longer than the padded length are an error of the caller, who computed it from their lengths.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`] if the arrays cannot be allocated; [`Error::TooLarge`] if a row is longer than the length
    /// to pad to.
    pub fn new(
        rows: &[Row<'_>],
        layout: BatchLayout,
        pad_id: i64,
        masking: Option<RowMasking<'_>>,
        scratch: &mut MaskScratch,
    ) -> Result<Batch> {
        let longest = rows.iter().map(Row::len).max().unwrap_or(0);
        let (length, total) = match layout {
            BatchLayout::Padded(length) if longest > length => {
                return Err(Error::TooLarge { what: "a row to be padded", size: longest });
            }
            BatchLayout::Padded(length) => (length, length.saturating_mul(rows.len())),
            BatchLayout::Flat => (0, rows.iter().map(Row::len).sum()),
        };
        let packed = rows.iter().any(|row| row.sequences.is_some());
        let flat = layout == BatchLayout::Flat;
        let has_labels = masking.is_some() || rows.iter().any(|row| row.masks.is_some());
        let cells = if packed && !flat { length } else { 0 };
        memory::check_tokens(total, rows.len(), length.max(longest), 8 * 5 + cells)?;
        let when = |wanted: bool, value: i64| if wanted { vec![value; total] } else { Vec::new() };
        let mut batch = Batch {
            input_ids: vec![pad_id; total],
            token_type_ids: vec![0; total],
            attention_mask: when(!packed && !flat, 0),
            sees: vec![false; total * cells],
            labels: when(has_labels, IGNORED),
            has_labels,
            position_ids: when(packed || flat, 0),
            pair_labels: Vec::with_capacity(rows.len()),
            cu_seqlens: if packed || flat { vec![0] } else { Vec::new() },
            longest_sequence: 0,
        };
        let mut at = 0;
        for (i, row) in rows.iter().enumerate() {
            let keys = masking.map(|(masking, keys)| (masking, keys(i)));
            match row.ids {
                Column::U16(ids) => batch.write_ids(at, ids, keys, scratch),
                Column::U32(ids) => batch.write_ids(at, ids, keys, scratch),
            }
            batch.write_layout(at, row, cells);
            at += if flat { row.len() } else { length };
        }
        Ok(batch)
    }

    /// Writes the ids of a row, masked or not, and its labels, from `at` on.
    fn write_ids<I: TokenId + Into<i64>>(
        &mut self,
        at: usize,
        ids: &[I],
        masking: Option<(&Masking, RowKeys)>,
        scratch: &mut MaskScratch,
    ) {
        let to = &mut self.input_ids[at..at + ids.len()];
        for (to, &id) in to.iter_mut().zip(ids) {
            *to = id.into();
        }
        if let Some((masking, keys)) = masking {
            let labels = &mut self.labels[at..at + ids.len()];
            masking.apply(ids, &keys, scratch, |place, old, new| {
                to[place] = new.into();
                labels[place] = old.into();
            });
        }
    }

    /// Writes everything that follows from the layout of a row.
    fn write_layout(&mut self, at: usize, row: &Row<'_>, cells: usize) {
        if !self.attention_mask.is_empty() {
            self.attention_mask[at..at + row.len()].fill(1);
        }
        row.for_each_sequence(|range, second| {
            if let Some(second) = second {
                self.token_type_ids[(at + second).min(at + range.end)..at + range.end].fill(1);
            }
            if !self.position_ids.is_empty() {
                for (place, position) in (0..).zip(&mut self.position_ids[at + range.start..at + range.end]) {
                    *position = place;
                }
            }
            if let Some(&last) = self.cu_seqlens.last() {
                self.cu_seqlens.push(last.saturating_add(range.len() as i32));
                self.longest_sequence = self.longest_sequence.max(range.len());
            }
            if cells > 0 {
                for i in range.clone() {
                    self.sees[(at + i) * cells..][range.clone()].fill(true);
                }
            }
        });
        if let Some(labels) = row.pair_labels {
            self.pair_labels.extend(labels.iter().map(|&label| i64::from(label)));
        }
        if let Some((places, old)) = row.masks {
            let labels = &mut self.labels[at..at + row.len()];
            for i in 0..places.len() {
                if let Some(label) = labels.get_mut(places.at(i)) {
                    *label = old.at(i) as i64;
                }
            }
        }
    }
}
