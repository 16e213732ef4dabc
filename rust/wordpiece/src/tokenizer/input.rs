//! The inputs of a tokenizer: one text or a pair, each as a string or already split into words.
//!
//! Inputs borrow their texts, so building one allocates at most a list of words.

use crate::error::Result;

/// A text, or the words of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Text<'a> {
    /// A string.
    Raw(&'a str),
    /// A text that was split into words before. Word ids are the indices of these words, and offsets are positions in
    /// each word; a word may still become several pieces, and is normalized and split like a text.
    Words(Vec<&'a str>),
}

impl Text<'_> {
    /// Returns the length in bytes, of all words together.
    pub fn len(&self) -> usize {
        match self {
            Text::Raw(text) => text.len(),
            Text::Words(words) => words.iter().map(|word| word.len()).sum(),
        }
    }

    /// Returns whether there are no bytes in it.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The input of one row: a text, or a pair of texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input<'a> {
    /// The first text.
    pub first: Text<'a>,
    /// The second text. An empty one makes a pair as well.
    pub second: Option<Text<'a>>,
}

impl<'a> Input<'a> {
    /// Makes an input of a single text.
    pub fn single(text: &'a str) -> Input<'a> {
        Input { first: Text::Raw(text), second: None }
    }

    /// Makes an input of a pair of texts.
    pub fn pair(first: &'a str, second: &'a str) -> Input<'a> {
        Input { first: Text::Raw(first), second: Some(Text::Raw(second)) }
    }

    /// Returns the length of both texts in bytes.
    pub fn len(&self) -> usize {
        self.first.len() + self.second.as_ref().map_or(0, Text::len)
    }

    /// Returns whether there are no bytes in either text.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// An item of a batch: an [`Input`], or a text by itself, which takes a third of the memory.
///
/// A batch of many short texts is a list that is larger than a cache; the calling thread alone goes through it.
pub trait BatchItem: Sync + Sized {
    /// Returns the length of its texts in bytes.
    fn bytes(&self) -> usize;

    /// Whether [`with_inputs`](BatchItem::with_inputs) copies texts. Then it is called for a small part of a batch at a time.
    const COPIES: bool = false;

    /// Calls `f` with some items as inputs; the first item has index `first` in the batch.
    ///
    /// # Errors
    ///
    /// The error of `f`, or of an item that is not a text, with its index in the batch.
    fn with_inputs<T>(items: &[Self], first: usize, f: impl FnOnce(&[Input<'_>]) -> Result<T>) -> Result<T>;
}

impl BatchItem for Input<'_> {
    fn bytes(&self) -> usize {
        self.len()
    }

    fn with_inputs<T>(items: &[Self], _: usize, f: impl FnOnce(&[Input<'_>]) -> Result<T>) -> Result<T> {
        f(items)
    }
}

impl BatchItem for &str {
    fn bytes(&self) -> usize {
        self.len()
    }

    fn with_inputs<T>(items: &[Self], _: usize, f: impl FnOnce(&[Input<'_>]) -> Result<T>) -> Result<T> {
        f(&items.iter().map(|text| Input::single(text)).collect::<Vec<_>>())
    }
}
