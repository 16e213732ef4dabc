//! The reference implementation: a slow, simple tokenizer that every other path of this project is tested against.
//!
//! It is written to be checked by reading it next to the code of Hugging Face `tokenizers` 0.23.3, which it follows
//! step by step: each step builds a new list, the longest match is found by trying every length, and added tokens are
//! searched for at every position. It shares the tables of [`crate::unicode`] with the pipeline and no other code.
//! Comments mark each deliberate difference from `tokenizers`.
//!
//! Texts are lists of characters here, and all positions and offsets count characters. Time is quadratic in the length
//! of a word and linear in the number of added tokens per character; use it only in tests.
//!
//! The files mirror the pipeline:
//!
//! | file | step |
//! |---|---|
//! | `config` | the definition of a tokenizer, as data |
//! | `added` | added tokens: their ids, and where they occur in a text |
//! | `normalize` | text → normalized text, aligned with the original |
//! | `split` | normalized text → words |
//! | `matcher` | word → tokens |
//! | `inputs` | tokens → rows: truncation, special tokens, padding |
//! | `tokenizer` | all steps together |
//! | `decode` | tokens → text |
//! | `vocab_txt` | reading a `vocab.txt` |
//!
//! ```
//! use wordpiece::reference::{Config, Tokenizer};
//!
//! let vocab = ["[UNK]", "un", "##aff", "##able"];
//! let vocab = vocab.iter().zip(0..).map(|(token, id)| (token.to_string(), id)).collect();
//! let tokenizer = Tokenizer::new(Config { vocab, ..Config::default() }).unwrap();
//! let encoding = tokenizer.encode(&"Unaffable".into(), true).unwrap();
//! assert_eq!(encoding.tokens, ["un", "##aff", "##able"]);
//! assert_eq!(encoding.offsets, [(0, 2), (2, 5), (5, 9)]);
//! ```

mod added;
mod config;
mod decode;
mod inputs;
mod matcher;
mod normalize;
mod split;
mod tokenizer;
mod vocab_txt;

pub use config::{
    AddedToken, Behavior, BertNormalizer, Config, Normalizer, Padding, PostProcessor, PreTokenizer, Refusal,
    RefusalKind, Side, Strategy, TemplatePiece, TemplateToken, Truncation,
};
pub use decode::WordPieceDecoder;
pub use inputs::Encoding;
pub use tokenizer::{Input, Sequence, Tokenizer};
pub use vocab_txt::read_vocab_txt;
