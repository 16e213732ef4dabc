//! The columns that a batch is requested to return, and its result: flat arrays that NumPy, Arrow and models use
//! without conversion.
//!
//! A row is one input, or one window of it. The tokens of row `i` are those from `row_offsets[i]` to `row_offsets[i +
//! 1]`, in every column with a value for each token; offsets have two.

/// The columns that a batch returns in addition to ids. Others are not computed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Columns {
    /// Segment ids.
    pub type_ids: bool,
    /// The attention mask: 1, but 0 for padding.
    pub attention_mask: bool,
    /// 1 for special tokens and padding, else 0.
    pub special_tokens_mask: bool,
    /// Start and end of each token in its text.
    pub offsets: bool,
    /// The word that each token belongs to.
    pub word_ids: bool,
    /// The text, first or second, that each token comes from.
    pub sequence_ids: bool,
    /// The windows of the tokens that truncation dropped, as rows after the row of their input.
    pub windows: bool,
    /// The number of tokens of each input before truncation and padding.
    pub n_tokens: bool,
}

impl Columns {
    /// Returns the number of bytes that a token needs in a [`BatchRows`].
    pub(super) fn token_bytes<N>(&self) -> usize {
        let of_model = [true, self.type_ids, self.attention_mask, self.special_tokens_mask];
        let count = |columns: &[bool]| columns.iter().filter(|is_requested| **is_requested).count();
        size_of::<N>() * count(&of_model)
            + size_of::<i32>() * count(&[self.word_ids, self.sequence_ids])
            + 2 * size_of::<i64>() * count(&[self.offsets])
    }
}

/// Rows as flat arrays, one row after the other. Columns that were not requested are empty.
///
/// ```
/// use wordpiece::{Columns, Definition, EncodeOptions, Input, Tokenizer, Vocab};
/// use wordpiece::inputs::Padding;
///
/// let tokenizer = Tokenizer::new(Definition::bert(Vocab::new([("[UNK]", 0), ("a", 1), ("b", 2), ("[PAD]", 3)])?))?;
/// let options = EncodeOptions { padding: Some(Padding::longest(3, "[PAD]")), ..EncodeOptions::default() };
/// let columns = Columns { attention_mask: true, ..Columns::default() };
/// let inputs = [Input::single("a b"), Input::single("b")];
/// let rows = tokenizer.encode_batch::<i64>(&inputs, &options, &columns, None)?;
/// assert_eq!(rows.shape(), Some((2, 2)));
/// assert_eq!(rows.ids, [1, 2, 2, 3]);
/// assert_eq!(rows.attention_mask, [1, 1, 1, 0]);
/// assert!(rows.type_ids.is_empty(), "not requested");
/// # Ok::<(), wordpiece::Error>(())
/// ```
///
/// `N` is the number type of what a model is called with: ids, segment ids and masks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BatchRows<N = u32> {
    /// Ids of all rows.
    pub ids: Vec<N>,
    /// Where each row begins in `ids`, and where the last one ends: one number more than there are rows. The other
    /// columns with a value for each token are divided in the same way.
    pub row_offsets: Vec<i64>,
    /// Segment ids.
    pub type_ids: Vec<N>,
    /// The attention mask: 1, but 0 for padding.
    pub attention_mask: Vec<N>,
    /// 1 for special tokens and padding, else 0.
    pub special_tokens_mask: Vec<N>,
    /// Start and end of each token, two numbers for each, in the unit of the options; 0 and 0 for special tokens and
    /// padding.
    pub offsets: Vec<i64>,
    /// Word ids; −1 for special tokens and padding.
    pub word_ids: Vec<i32>,
    /// Sequence ids, 0 or 1; −1 for special tokens and padding.
    pub sequence_ids: Vec<i32>,
    /// The index of the input that each row comes from; only if windows are requested.
    pub overflow_to_sample: Vec<i64>,
    /// The number of tokens of each input before truncation and padding, special tokens included.
    pub n_tokens: Vec<i64>,
    /// Whether each input was truncated. Always filled in.
    pub truncated: Vec<bool>,
}

impl<N> BatchRows<N> {
    /// Returns the number of rows and their length if all have the same; (0, 0) without rows.
    pub fn shape(&self) -> Option<(usize, usize)> {
        let rows = self.row_offsets.len().saturating_sub(1);
        let length = self.ids.len().checked_div(rows).unwrap_or(0);
        let is_even = self.row_offsets.iter().enumerate().all(|(row, &start)| start == (row * length) as i64);
        is_even.then_some((rows, length))
    }
}

/// A number type of model inputs: `i64` for PyTorch and ONNX, `u32` for everything that stays here.
pub trait Number: Copy + Send {
    /// Converts a number.
    fn of(number: u32) -> Self;

    /// Converts a list; without copying it, where the type is the same.
    fn list(numbers: Vec<u32>) -> Vec<Self> {
        numbers.into_iter().map(Self::of).collect()
    }
}

impl Number for u32 {
    fn of(number: u32) -> u32 {
        number
    }

    fn list(numbers: Vec<u32>) -> Vec<u32> {
        numbers
    }
}

impl Number for i64 {
    fn of(number: u32) -> i64 {
        number.into()
    }
}
