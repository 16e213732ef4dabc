//! Normalization of a text, aligned with the original.
//!
//! The first step of the pipeline. [`Normalizer`] is the configuration, as `tokenizer.json` states it. The result is the
//! normalized text together with, for each of its bytes, the bytes of the original that it derives from, so that offsets
//! can refer to the text as it was given. Output and alignment are the same as in `tokenizers` 0.23.3; with its default
//! options [`BertNormalizer`] performs the text clean-up of `BasicTokenizer` (Devlin et al., 2018).
//!
//! | file | contents |
//! |---|---|
//! | `normalized` | the text with its alignment, and the edits that keep both in step |
//! | `bert` | BERT's four steps in one pass over the characters |
//! | `components` | the small normalizers that other files combine |
//! | `normalizer` | the configuration, and which code runs each variant |
//!
//! Cost: one pass per normalizer, linear in the text. The fast path (the module `fast`) replaces all of this for ordinary
//! BERT definitions and falls back to it for text that it does not handle.
//!
//! For example, the default BERT normalizer turns `"Ünïque 東京!"` into `"unique  東  京 !"`, in which the first `u` derives
//! from bytes 0..2 of the original and the space on each side of `東` from the bytes of `東`.

mod bert;
mod components;
mod normalized;
mod normalizer;

pub use bert::BertNormalizer;
pub(crate) use normalized::Normalized;
pub use normalizer::Normalizer;
