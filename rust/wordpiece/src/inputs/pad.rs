//! Filling rows up to a length.

use super::truncate::Side;
use crate::error::{Error, Result};

/// Filling rows up to a length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Padding {
    /// Up to where.
    pub length: PadLength,
    /// The length is rounded up to a multiple of this.
    pub multiple_of: Option<usize>,
    /// The id of the padding token.
    pub id: u32,
    /// Its segment id.
    pub type_id: u32,
    /// Its text.
    pub token: String,
    /// On which side it stands.
    pub side: Side,
}

/// Up to where rows are filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PadLength {
    /// The longest row of the batch.
    Longest,
    /// A length; longer rows stay as they are.
    Fixed(usize),
}

impl Padding {
    /// The length that rows are filled up to, when the longest of the batch has `longest` tokens.
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
}
