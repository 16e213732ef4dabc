//! Words and their frequencies, the input of all learners.
//!
//! [`WordCounts`] is the multiset. [`count()`] makes one from the texts of a [`BlockSource`], with several threads and
//! with memory that grows with the number of distinct words and not with the text.
//!
//! Texts are split into words as BERT does: with [`BertNormalizer`](crate::normalize::BertNormalizer) and BERT's
//! pre-tokenizer. No word spans two lines, so text may be divided at any line feed without changing the counts.

mod block_source;
mod counter;
mod hash_table;
mod word_counts;

pub use block_source::{BlockSource, ByteBlock, FileBlocks};
pub use counter::{CountOptions, Counted, InvalidBytes, count};
pub use word_counts::WordCounts;
