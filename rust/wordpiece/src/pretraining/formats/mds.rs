//! MDS shards, which mosaicml-streaming reads.
//!
//! A shard is the number of samples, the offset of each in the file and of the end, a JSON object that describes the
//! columns, and the samples. A sample is the sizes of its columns without a fixed size, then the values of all columns
//! in the order of their names.

use serde_json::{Value, json};

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

/// Encodes rows as shards.
#[derive(Debug)]
pub struct MdsEncoder {
    layout: MdsLayout,
    columns: Vec<MdsColumn>,
    /// The description of the columns, as the shards have it.
    config: Vec<u8>,
    samples: Vec<u8>,
    /// Where each sample of the open shard ends in `samples`.
    ends: Vec<usize>,
    complete: Vec<MdsShard>,
}

/// A shard that is complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MdsShard {
    /// The number of rows.
    pub samples: u64,
    /// What the file has before the samples, and the samples.
    pub content: [Vec<u8>; 2],
}

impl MdsEncoder {
    /// Begins a shard.
    #[must_use]
    pub fn new(layout: MdsLayout) -> MdsEncoder {
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
        MdsEncoder { layout, columns, config, samples: Vec::new(), ends: Vec::new(), complete: Vec::new() }
    }

    /// Appends the rows of a block; returns the shards that have become complete.
    pub fn encode(&mut self, block: &RowBlock) -> Vec<MdsShard> {
        let types = block.token_type_ids();
        let labels = if self.layout.masks { block.labels() } else { Vec::new() };
        let positions = if self.layout.packed { block.position_ids() } else { Vec::new() };
        let mut sample = Vec::new();
        for i in 0..block.len() {
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
            self.push_sample(&sample);
        }
        std::mem::take(&mut self.complete)
    }

    /// Appends a sample, in a new shard if it does not fit.
    fn push_sample(&mut self, sample: &[u8]) {
        if !self.ends.is_empty() && self.shard_bytes(1) + self.samples.len() + sample.len() > self.layout.size_limit {
            let shard = self.end_shard();
            self.complete.push(shard);
        }
        self.samples.extend_from_slice(sample);
        self.ends.push(self.samples.len());
    }

    /// Returns the size of what comes before the samples of the open shard, if it gets some more.
    fn shard_bytes(&self, more: usize) -> usize {
        4 + 4 * (self.ends.len() + more + 1) + self.config.len()
    }

    fn end_shard(&mut self) -> MdsShard {
        let first = self.shard_bytes(0);
        let mut head = Vec::with_capacity(first);
        head.extend_from_slice(&(self.ends.len() as u32).to_le_bytes());
        for end in std::iter::once(&0).chain(&self.ends) {
            head.extend_from_slice(&((first + end) as u32).to_le_bytes());
        }
        head.extend_from_slice(&self.config);
        let samples = std::mem::take(&mut self.ends).len() as u64;
        MdsShard { samples, content: [head, std::mem::take(&mut self.samples)] }
    }

    /// Returns the last shard, if there are rows in none.
    pub fn finish(&mut self) -> Option<MdsShard> {
        (!self.ends.is_empty()).then(|| self.end_shard())
    }

    /// Returns the content of `index.json` for shards of these names, samples and sizes in bytes.
    #[must_use]
    pub fn index(&self, shards: &[(String, u64, u64)]) -> String {
        let shards = shards.iter().map(|(name, samples, bytes)| {
            let mut entry = description(&self.columns, self.layout.size_limit);
            entry["samples"] = json!(samples);
            entry["raw_data"] = json!({"basename": name, "bytes": bytes, "hashes": {}});
            entry["zip_data"] = Value::Null;
            entry
        });
        json!({"version": 2, "shards": shards.collect::<Vec<_>>()}).to_string()
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
