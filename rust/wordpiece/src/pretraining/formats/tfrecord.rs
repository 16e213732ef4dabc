//! TFRecord files with the features of Google's BERT, each row padded.
//!
//! A record is its length, a checksum of the length, the bytes, and a checksum of those. The bytes are a `tf.train.Example`
//! in the encoding of protocol buffers: features by name, each a list of integers or floats.

use crate::pretraining::rows::RowBlock;

/// Encodes rows as records; they must have static masks.
#[derive(Debug)]
pub struct TfrecordEncoder {
    length: usize,
    max_predictions: usize,
    example: Vec<u8>,
}

impl TfrecordEncoder {
    /// Creates an encoder of rows that are padded to `length` tokens and `max_predictions` masks.
    #[must_use]
    pub fn new(length: usize, max_predictions: usize) -> TfrecordEncoder {
        TfrecordEncoder { length, max_predictions, example: Vec::new() }
    }

    /// Appends the rows of a block to the bytes of a file.
    pub fn encode(&mut self, block: &RowBlock, to: &mut Vec<u8>) {
        let types = block.token_type_ids();
        for i in 0..block.len() {
            let row = block.row(i);
            let masks = if block.mask_ends.is_empty() { 0..0 } else { block.masks(i) };
            let padded = |length: usize| std::iter::repeat_n(0_u64, length);
            let n = row.len();
            let pad = self.length.saturating_sub(n);
            let unfilled = self.max_predictions.saturating_sub(masks.len());
            let ids = block.ids[row.clone()].iter().map(|&id| u64::from(id));
            let places = block.mask_places[masks.clone()].iter().map(|&place| u64::from(place));
            let labels = block.mask_ids[masks.clone()].iter().map(|&id| u64::from(id));
            let weights = (0..masks.len()).map(|_| 1.0).chain(std::iter::repeat_n(0.0, unfilled));
            let example = &mut self.example;
            example.clear();
            push_integers(example, "input_ids", ids.chain(padded(pad)));
            push_integers(example, "input_mask", (0..n).map(|_| 1).chain(padded(pad)));
            push_integers(example, "segment_ids", types[row].iter().map(|&id| id as u64).chain(padded(pad)));
            push_integers(example, "masked_lm_positions", places.chain(padded(unfilled)));
            push_integers(example, "masked_lm_ids", labels.chain(padded(unfilled)));
            push_floats(example, "masked_lm_weights", weights);
            let label = block.pair_labels.get(i).copied().unwrap_or(0);
            push_integers(example, "next_sentence_labels", std::iter::once(u64::from(label)));
            let mut record = Vec::with_capacity(example.len() + 32);
            push_field(&mut record, 1, example);
            push_record(to, &record);
        }
    }
}

/// Appends a number of variable length.
fn push_varint(to: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

/// Appends a field of bytes with its number.
fn push_field(to: &mut Vec<u8>, field: u8, bytes: &[u8]) {
    to.push(field << 3 | 2);
    push_varint(to, bytes.len() as u64);
    to.extend_from_slice(bytes);
}

/// Appends an entry of the map of features: a name, and a list in field `kind` of a feature.
fn push_feature(to: &mut Vec<u8>, name: &str, kind: u8, packed: &[u8]) {
    let mut list = Vec::with_capacity(packed.len() + 8);
    push_field(&mut list, 1, packed);
    let mut feature = Vec::with_capacity(list.len() + 8);
    push_field(&mut feature, kind, &list);
    let mut entry = Vec::with_capacity(feature.len() + name.len() + 16);
    push_field(&mut entry, 1, name.as_bytes());
    push_field(&mut entry, 2, &feature);
    push_field(to, 1, &entry);
}

fn push_integers(to: &mut Vec<u8>, name: &str, values: impl Iterator<Item = u64>) {
    let mut packed = Vec::new();
    values.for_each(|value| push_varint(&mut packed, value));
    push_feature(to, name, 3, &packed);
}

fn push_floats(to: &mut Vec<u8>, name: &str, values: impl Iterator<Item = f32>) {
    let packed: Vec<u8> = values.flat_map(f32::to_le_bytes).collect();
    push_feature(to, name, 2, &packed);
}

/// Appends a record.
fn push_record(to: &mut Vec<u8>, bytes: &[u8]) {
    let length = (bytes.len() as u64).to_le_bytes();
    to.extend_from_slice(&length);
    to.extend_from_slice(&masked_crc32c(&length).to_le_bytes());
    to.extend_from_slice(bytes);
    to.extend_from_slice(&masked_crc32c(bytes).to_le_bytes());
}

/// Returns the checksum as TFRecord stores it.
fn masked_crc32c(bytes: &[u8]) -> u32 {
    crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8)
}

/// The remainders for each byte at each of eight places.
const TABLES: [[u32; 256]; 8] = tables();

const fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut remainder = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            remainder = if remainder & 1 == 1 { remainder >> 1 ^ 0x82f6_3b78 } else { remainder >> 1 };
            bit += 1;
        }
        tables[0][byte] = remainder;
        byte += 1;
    }
    let mut place = 1;
    while place < 8 {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[place - 1][byte];
            tables[place][byte] = before >> 8 ^ tables[0][(before & 0xff) as usize];
            byte += 1;
        }
        place += 1;
    }
    tables
}

/// Returns the CRC-32C (Castagnoli) of some bytes, eight at a time.
fn crc32c(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    let (chunks, rest) = bytes.as_chunks::<8>();
    for &chunk in chunks {
        let word = u64::from_le_bytes(chunk) ^ u64::from(crc);
        crc = (0..8).fold(0, |crc, i| crc ^ TABLES[7 - i][(word >> (8 * i) & 0xff) as usize]);
    }
    for &byte in rest {
        crc = crc >> 8 ^ TABLES[0][((crc ^ u32::from(byte)) & 0xff) as usize];
    }
    !crc
}

#[cfg(test)]
mod tests {
    use super::crc32c;

    #[test]
    fn checksums_equal_those_of_rfc_3720() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
        assert_eq!(crc32c(b""), 0);
    }
}
