//! Options of encoding, and the properties of pieces that a call requests.

use crate::inputs::{Padding, Truncation};
use crate::offsets::OffsetUnit;

/// How texts are encoded.
///
/// ```
/// use wordpiece::EncodeOptions;
///
/// let options = EncodeOptions { add_special_tokens: false, ..EncodeOptions::default() };
/// assert!(options.truncation.is_none() && options.padding.is_none());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodeOptions {
    /// Whether the special tokens of the post-processor are put around the texts.
    pub add_special_tokens: bool,
    /// Truncates rows to a length; `None` keeps every token.
    pub truncation: Option<Truncation>,
    /// Fills rows up to a length; `None` leaves them as they are.
    pub padding: Option<Padding>,
    /// The unit that offsets count.
    pub offset_unit: OffsetUnit,
    /// Whether the text of special tokens is treated as ordinary text instead of as the token.
    pub encode_special_tokens: bool,
    /// Whether an [`Encoding`](crate::Encoding) includes the rows of the tokens that truncation dropped. A pair has as
    /// many rows as the product of the numbers of windows of its two texts.
    pub overflow: bool,
}

impl Default for EncodeOptions {
    /// Returns options that add special tokens, neither truncate nor pad, count offsets in characters, and include
    /// overflowing rows.
    fn default() -> Self {
        EncodeOptions {
            add_special_tokens: true,
            truncation: None,
            padding: None,
            offset_unit: OffsetUnit::Char,
            encode_special_tokens: false,
            overflow: true,
        }
    }
}

/// The properties of pieces that a call requests in addition to ids. Others are not computed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RequestedFields {
    /// The word that each piece belongs to.
    pub word_ids: bool,
    /// The part of the text that each piece comes from.
    pub spans: bool,
    /// The text of added tokens.
    pub texts: bool,
    /// All pieces, including those that truncation drops, or their number. Otherwise tokenizing may stop when a row
    /// is full.
    pub all_pieces: bool,
}
