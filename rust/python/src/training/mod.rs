//! Vocabulary training: word counts, the learners, and reports on a tokenizer.
//!
//! The classes here hold values of `wordpiece::train` and convert their settings and results. The interpreter is
//! released while the core works; [`observer`] attaches to it about every 50 ms to report progress and to check for
//! signals.
//!
//! Settings with many fields arrive as dicts, which `wordpiece_bert.training.options` fills with checked values.

mod observer;
mod report;
mod text_blocks;
mod trained;
mod word_counts;

pub use report::{ReportSums, Reporter};
pub use trained::Trained;
pub use word_counts::{Counted, WordCounts};
