//! The settings of padding, and the length that they extend rows to.
//!
//! [`Encoding::pad`](super::Encoding::pad) and [`batch::concat`](crate::batch) add the padding tokens, which have attention
//! mask 0 and are marked as special. Equals `Encoding::pad` of `tokenizers` 0.23.3; the rows
//! that overflow from a row are padded to the same length.

use super::truncate::Side;
use crate::error::{Error, Result};

/// How rows are padded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Padding {
    /// The length to pad to.
    pub length: PadLength,
    /// Round the length up to a multiple of this. 0 is an error.
    pub multiple_of: Option<usize>,
    /// The id of the padding token.
    pub id: u32,
    /// The segment id of the padding token.
    pub type_id: u32,
    /// The text of the padding token; it need not be in the vocabulary.
    pub token: String,
    /// The side on which padding is added.
    pub side: Side,
}

/// The length that rows are padded to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PadLength {
    /// The length of the longest row of the batch.
    Longest,
    /// A fixed number of tokens; longer rows are not changed.
    Fixed(usize),
}

impl Padding {
    /// Returns padding on the right, to the longest row of the batch, with segment id 0 as in BERT.
    pub fn longest(id: u32, token: impl Into<String>) -> Padding {
        Padding {
            length: PadLength::Longest,
            multiple_of: None,
            id,
            type_id: 0,
            token: token.into(),
            side: Side::Right,
        }
    }

    /// Returns the length that rows are padded to if the longest of the batch has `longest` tokens.
    ///
    /// # Errors
    ///
    /// Returns [`Error::ZeroMultiple`] for a multiple of 0 and [`Error::TooLarge`] if rounding up overflows.
    pub fn target(&self, longest: usize) -> Result<usize> {
        let length = match self.length {
            PadLength::Longest => longest,
            PadLength::Fixed(length) => length,
        };
        match self.multiple_of {
            None => Ok(length),
            Some(0) => Err(Error::ZeroMultiple),
            Some(multiple) => {
                length.checked_next_multiple_of(multiple).ok_or(Error::TooLarge { what: "a row", size: length })
            }
        }
    }

    /// Returns the number of bytes that an [`Encoding`](super::encoding::Encoding) needs for each padding token, roughly.
    pub(crate) fn token_bytes(&self) -> usize {
        // The allocator rounds the text of a token up.
        4 * size_of::<u32>() + 2 * size_of::<(u32, u32)>() + size_of::<String>() + self.token.len().next_multiple_of(32)
    }
}
