//! Rows as `.npy` files that readers memory-map: ids and offsets, and what cannot be derived from them.

use std::path::Path;

use crate::error::Result;
use crate::pretraining::npy::{FileEntry, NpyWriter};
use crate::pretraining::rows::RowBlock;

/// Which files rows have.
#[derive(Debug, Clone, Copy)]
pub struct NpyExampleLayout {
    /// Ids have 16 bits, not 32.
    pub narrow_ids: bool,
    /// Places in a row have 16 bits, not 32.
    pub narrow_places: bool,
    /// Rows are pairs with a label.
    pub pairs: bool,
    /// Rows have fixed masks.
    pub masks: bool,
    /// Rows have several sequences.
    pub packed: bool,
}

/// Writes the rows of one pass over one shard.
#[derive(Debug)]
pub struct NpyExampleWriter {
    layout: NpyExampleLayout,
    input_ids: NpyWriter,
    row_offsets: NpyWriter,
    second_starts: NpyWriter,
    pair_labels: Option<NpyWriter>,
    /// `masked_offsets`, `masked_positions`, `masked_ids`.
    masks: Option<[NpyWriter; 3]>,
    /// `sequence_offsets`, `sequence_lengths`.
    sequences: Option<[NpyWriter; 2]>,
    /// How many tokens, masks and sequences were written.
    written: [i64; 3],
}

/// Creates a file of 16-bit or 32-bit numbers.
fn create(folder: &Path, name: &str, narrow: bool) -> Result<NpyWriter> {
    if narrow { NpyWriter::create::<u16>(folder, name) } else { NpyWriter::create::<u32>(folder, name) }
}

/// Appends numbers to a file that [`create`] has made.
fn extend(file: &mut NpyWriter, numbers: &[u32], narrow: bool) -> Result<()> {
    match narrow {
        true => file.extend(numbers.iter().map(|&number| number as u16)),
        false => file.extend(numbers.iter().copied()),
    }
}

impl NpyExampleWriter {
    /// Creates the files `<prefix>.input_ids.npy` and so on in a folder.
    ///
    /// # Errors
    ///
    /// [`Error::FileUnreadable`](crate::Error::FileUnreadable) if they cannot be written; so have all methods.
    pub fn new(folder: &Path, prefix: &str, layout: NpyExampleLayout) -> Result<NpyExampleWriter> {
        let name = |what: &str| format!("{prefix}.{what}.npy");
        let offsets = |what: &str| -> Result<NpyWriter> {
            let mut file = NpyWriter::create::<i64>(folder, &name(what))?;
            file.extend(std::iter::once(0_i64))?;
            Ok(file)
        };
        let NpyExampleLayout { narrow_ids, narrow_places, .. } = layout;
        let masks = || -> Result<[NpyWriter; 3]> {
            Ok([
                offsets("masked_offsets")?,
                create(folder, &name("masked_positions"), narrow_places)?,
                create(folder, &name("masked_ids"), narrow_ids)?,
            ])
        };
        let sequences = || -> Result<[NpyWriter; 2]> {
            Ok([offsets("sequence_offsets")?, create(folder, &name("sequence_lengths"), narrow_places)?])
        };
        let labels = || NpyWriter::create::<u8>(folder, &name("pair_labels"));
        Ok(NpyExampleWriter {
            layout,
            input_ids: create(folder, &name("input_ids"), narrow_ids)?,
            row_offsets: offsets("row_offsets")?,
            second_starts: create(folder, &name("second_starts"), narrow_places)?,
            pair_labels: layout.pairs.then(labels).transpose()?,
            masks: layout.masks.then(masks).transpose()?,
            sequences: layout.packed.then(sequences).transpose()?,
            written: [0; 3],
        })
    }

    /// Appends rows.
    ///
    /// # Errors
    ///
    /// See [`NpyExampleWriter::new`].
    pub fn write(&mut self, block: &RowBlock) -> Result<()> {
        let NpyExampleLayout { narrow_ids, narrow_places, .. } = self.layout;
        let [tokens, masks, sequences] = self.written;
        extend(&mut self.input_ids, &block.ids, narrow_ids)?;
        self.row_offsets.extend(block.row_ends.iter().map(|&end| tokens + end as i64))?;
        extend(&mut self.second_starts, &block.second_starts, narrow_places)?;
        if let Some(file) = &mut self.pair_labels {
            file.extend(block.pair_labels.iter().copied())?;
        }
        if let Some([offsets, places, ids]) = &mut self.masks {
            offsets.extend(block.mask_ends.iter().map(|&end| masks + end as i64))?;
            extend(places, &block.mask_places, narrow_places)?;
            extend(ids, &block.mask_ids, narrow_ids)?;
        }
        if let Some([offsets, lengths]) = &mut self.sequences {
            offsets.extend(block.sequence_ends.iter().map(|&end| sequences + end as i64))?;
            extend(lengths, &block.sequence_lengths, narrow_places)?;
        }
        self.written[0] += block.ids.len() as i64;
        self.written[1] += block.mask_places.len() as i64;
        self.written[2] += block.sequence_lengths.len() as i64;
        Ok(())
    }

    /// Completes the files; returns each with what it holds, such as `"input_ids"`.
    ///
    /// # Errors
    ///
    /// See [`NpyExampleWriter::new`].
    pub fn finish(self) -> Result<Vec<(&'static str, FileEntry)>> {
        let mut files = vec![
            ("input_ids", self.input_ids.finish()?),
            ("row_offsets", self.row_offsets.finish()?),
            ("second_starts", self.second_starts.finish()?),
        ];
        if let Some(file) = self.pair_labels {
            files.push(("pair_labels", file.finish()?));
        }
        if let Some([offsets, places, ids]) = self.masks {
            files.push(("masked_offsets", offsets.finish()?));
            files.push(("masked_positions", places.finish()?));
            files.push(("masked_ids", ids.finish()?));
        }
        if let Some([offsets, lengths]) = self.sequences {
            files.push(("sequence_offsets", offsets.finish()?));
            files.push(("sequence_lengths", lengths.finish()?));
        }
        Ok(files)
    }
}
