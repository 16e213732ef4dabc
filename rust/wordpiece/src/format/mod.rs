//! The files a tokenizer lives in: read into data, written from it. What is not supported is refused by name.

pub mod tokenizer_json;
pub mod vocab_txt;
