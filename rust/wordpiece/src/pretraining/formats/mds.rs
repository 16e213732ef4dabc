//! MDS shards, which mosaicml-streaming reads.
//!
//! A shard is the number of samples, the offset of each in the file and that of the end, a JSON object that describes the
//! columns, and the samples. A sample is the sizes of its columns without a fixed size, then the values of all columns in
//! the order of their names.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::error::Result;
use crate::pretraining::npy::PartFile;
use crate::pretraining::rows::RowBlock;

/// Which columns rows have.
#[derive(Debug, Clone)]
pub struct MdsLayout {
    /// Ids have 16 bits, not 32.
    pub narrow_ids: bool,
    /// The name of the column with the label of a pair.
    pub pair_label: Option<String>,
    /// Rows have fixed masks.
    pub masks: bool,
    /// Rows have several sequences.
    pub packed: bool,
    /// The most bytes in a shard, unless one row has more.
    pub size_limit: usize,
}

/// A column: its name, its encoding, and its size in bytes if that is fixed.
type MdsColumn = (String, &'static str, Option<usize>);

/// Writes rows as the shards of a folder.
#[derive(Debug)]
pub struct MdsWriter {
    folder: PathBuf,
    layout: MdsLayout,
    columns: Vec<MdsColumn>,
    /// The description of the columns, as the shards have it.
    config: Vec<u8>,
    samples: Vec<u8>,
    /// Where each sample of the open shard ends in `samples`.
    ends: Vec<usize>,
    shards: Vec<MdsShard>,
}

/// A shard that is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MdsShard {
    /// The number of rows.
    pub samples: u64,
    /// The size of the file.
    pub bytes: u64,
}

impl MdsShard {
    /// Returns the name of the file of a shard.
    #[must_use]
    pub fn name(number: usize) -> String {
        format!("shard.{number:05}.mds")
    }
}

impl MdsWriter {
    /// Begins the shards of a folder, which must exist, or resumes after those that are complete.
    #[must_use]
    pub fn new(folder: &Path, layout: MdsLayout, shards: Vec<MdsShard>) -> MdsWriter {
        let ids = if layout.narrow_ids { "ndarray:uint16" } else { "ndarray:uint32" };
        let mut columns: Vec<MdsColumn> =
            vec![("input_ids".to_owned(), ids, None), ("token_type_ids".to_owned(), "ndarray:int8", None)];
        if let Some(name) = &layout.pair_label {
            columns.push(match layout.packed {
                true => (name.clone(), "ndarray:uint8", None),
                false => (name.clone(), "uint8", Some(1)),
            });
        }
        if layout.masks {
            columns.push(("labels".to_owned(), "ndarray:int32", None));
        }
        if layout.packed {
            columns.push(("position_ids".to_owned(), "ndarray:int32", None));
            columns.push(("cu_seqlens".to_owned(), "ndarray:int32", None));
        }
        columns.sort();
        let config = description(&columns, layout.size_limit).to_string().into_bytes();
        let folder = folder.to_owned();
        MdsWriter { folder, layout, columns, config, samples: Vec::new(), ends: Vec::new(), shards }
    }

    /// Returns the shards that are complete.
    #[must_use]
    pub fn shards(&self) -> &[MdsShard] {
        &self.shards
    }

    /// Appends the rows of a block from row `first` on.
    ///
    /// # Errors
    ///
    /// [`Error::FileUnreadable`](crate::Error::FileUnreadable) if a shard cannot be written.
    pub fn write(&mut self, block: &RowBlock, first: usize) -> Result<()> {
        let types = block.token_type_ids();
        let labels = if self.layout.masks { block.labels() } else { Vec::new() };
        let positions = if self.layout.packed { block.position_ids() } else { Vec::new() };
        let mut sample = Vec::new();
        for i in first..block.len() {
            let row = block.row(i);
            let mut sizes = Vec::new();
            let mut values: Vec<u8> = Vec::new();
            for (name, _, fixed) in &self.columns {
                let before = values.len();
                match name.as_str() {
                    "input_ids" if self.layout.narrow_ids => {
                        push_array(
                            &mut values,
                            row.len(),
                            block.ids[row.clone()].iter().map(|&id| (id as u16).to_le_bytes()),
                        );
                    }
                    "input_ids" => {
                        push_array(&mut values, row.len(), block.ids[row.clone()].iter().map(|id| id.to_le_bytes()));
                    }
                    "token_type_ids" => {
                        push_array(&mut values, row.len(), types[row.clone()].iter().map(|id| id.to_le_bytes()));
                    }
                    "labels" => {
                        push_array(&mut values, row.len(), labels[row.clone()].iter().map(|id| id.to_le_bytes()));
                    }
                    "position_ids" => {
                        push_array(&mut values, row.len(), positions[row.clone()].iter().map(|id| id.to_le_bytes()));
                    }
                    "cu_seqlens" => {
                        let bounds = block.cu_seqlens(i);
                        push_array(&mut values, bounds.len(), bounds.iter().map(|bound| bound.to_le_bytes()));
                    }
                    _ => {
                        let labels = &block.pair_labels[block.sequences(i)];
                        match fixed {
                            Some(_) => values.extend_from_slice(labels),
                            None => push_array(&mut values, labels.len(), labels.iter().map(|&label| [label])),
                        }
                    }
                }
                if fixed.is_none() {
                    sizes.push((values.len() - before) as u32);
                }
            }
            sample.clear();
            sample.extend(sizes.iter().flat_map(|size| size.to_le_bytes()));
            sample.append(&mut values);
            self.push_sample(&sample)?;
        }
        Ok(())
    }

    /// Appends a sample, in a new shard if it does not fit.
    fn push_sample(&mut self, sample: &[u8]) -> Result<()> {
        if !self.ends.is_empty() && self.shard_bytes(1) + self.samples.len() + sample.len() > self.layout.size_limit {
            self.end_shard()?;
        }
        self.samples.extend_from_slice(sample);
        self.ends.push(self.samples.len());
        Ok(())
    }

    /// Returns the size of what comes before the samples of the open shard, if it gets some more.
    fn shard_bytes(&self, more: usize) -> usize {
        4 + 4 * (self.ends.len() + more + 1) + self.config.len()
    }

    fn end_shard(&mut self) -> Result<()> {
        let first = self.shard_bytes(0);
        let mut head = Vec::with_capacity(first);
        head.extend_from_slice(&(self.ends.len() as u32).to_le_bytes());
        for end in std::iter::once(&0).chain(&self.ends) {
            head.extend_from_slice(&((first + end) as u32).to_le_bytes());
        }
        head.extend_from_slice(&self.config);
        let mut file = PartFile::create(self.folder.join(MdsShard::name(self.shards.len())))?;
        file.write(&head)?;
        file.write(&self.samples)?;
        file.finish()?;
        let bytes = (first + self.samples.len()) as u64;
        self.shards.push(MdsShard { samples: self.ends.len() as u64, bytes });
        self.samples.clear();
        self.ends.clear();
        Ok(())
    }

    /// Completes the folder: its last shard, then `index.json`. Returns the number of shards.
    ///
    /// # Errors
    ///
    /// See [`MdsWriter::write`].
    pub fn finish(mut self) -> Result<usize> {
        if !self.ends.is_empty() {
            self.end_shard()?;
        }
        let n = self.shards.len();
        let shards = self.shards.iter().enumerate().map(|(i, shard)| {
            let mut entry = description(&self.columns, self.layout.size_limit);
            entry["samples"] = json!(shard.samples);
            entry["raw_data"] = json!({"basename": MdsShard::name(i), "bytes": shard.bytes, "hashes": {}});
            entry["zip_data"] = Value::Null;
            entry
        });
        let index = json!({"version": 2, "shards": shards.collect::<Vec<_>>()});
        let mut file = PartFile::create(self.folder.join("index.json"))?;
        file.write(index.to_string().as_bytes())?;
        file.finish()?;
        Ok(n)
    }
}

/// Returns the description of columns, as a shard and the index have it.
fn description(columns: &[MdsColumn], size_limit: usize) -> Value {
    json!({
        "version": 2,
        "format": "mds",
        "compression": null,
        "hashes": [],
        "size_limit": size_limit,
        "column_names": columns.iter().map(|(name, ..)| name).collect::<Vec<_>>(),
        "column_encodings": columns.iter().map(|(_, encoding, _)| encoding).collect::<Vec<_>>(),
        "column_sizes": columns.iter().map(|(.., size)| size).collect::<Vec<_>>(),
    })
}

/// Appends an array of one dimension: its shape, then its values.
fn push_array<const N: usize>(to: &mut Vec<u8>, length: usize, values: impl Iterator<Item = [u8; N]>) {
    // One dimension, and the logarithm of the number of bytes of its length.
    let head = |width: u8| 1 << 2 | width;
    if let Ok(length) = u8::try_from(length) {
        to.extend_from_slice(&[head(0), length]);
    } else if let Ok(length) = u16::try_from(length) {
        to.push(head(1));
        to.extend_from_slice(&length.to_le_bytes());
    } else {
        to.push(head(2));
        to.extend_from_slice(&(length as u32).to_le_bytes());
    }
    values.for_each(|value| to.extend_from_slice(&value));
}
