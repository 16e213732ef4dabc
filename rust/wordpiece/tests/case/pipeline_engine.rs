//! The pipeline as an engine of the cases: each case is read as a tokenizer.json and runs on every instruction set.

use std::collections::BTreeMap;

use wordpiece::format::{tokenizer_json, vocab_txt};
use wordpiece::{EncodeOptions, Error, ErrorKind, Input, OffsetUnit, Tokenizer};

use crate::case::{Case, Decode, Encoding, Engine, Failure, Text};
use crate::engines;

/// The pipeline on one instruction set, or without the fast path.
pub struct Pipeline {
    tokenizer: Tokenizer,
}

fn failure(error: Error) -> Failure {
    let class = match error.kind() {
        ErrorKind::Vocab => "VocabError",
        ErrorKind::Format => "TokenizerFormatError",
        ErrorKind::Input => "InputError",
        ErrorKind::File => "OSError",
        ErrorKind::Training => "TrainingError",
    };
    Failure { class, message: error.to_string() }
}

fn text(text: &Text) -> wordpiece::Text<'_> {
    match text {
        Text::Whole(text) => wordpiece::Text::Raw(text),
        Text::Words(words) => wordpiece::Text::Words(words.iter().map(String::as_str).collect()),
    }
}

fn encoding(given: &wordpiece::Encoding) -> Encoding {
    let or_none = |id: &Option<u32>| id.map_or(-1, i64::from);
    Encoding {
        ids: given.ids.clone(),
        tokens: given.tokens.clone(),
        offsets: given.offsets.iter().map(|&(start, end)| (start as usize, end as usize)).collect(),
        word_ids: given.word_ids.iter().map(or_none).collect(),
        type_ids: given.type_ids.clone(),
        sequence_ids: given.sequence_ids().iter().map(or_none).collect(),
        attention_mask: given.attention_mask.iter().map(|&mask| mask.into()).collect(),
        special_tokens_mask: given.special_tokens_mask.iter().map(|&mask| mask.into()).collect(),
        overflowing: given.overflowing.iter().map(encoding).collect(),
    }
}

impl Engine for Pipeline {
    const NAME: &'static str = "pipeline";

    fn build(case: &Case) -> Result<Vec<(&'static str, Self)>, Failure> {
        let definition = tokenizer_json::read(&case.tokenizer_json()).map_err(failure)?;
        let tokenizer = Tokenizer::new(definition).map_err(failure)?;
        let variants = engines::on_all_engines(&tokenizer).into_iter();
        Ok(variants.map(|(name, tokenizer)| (name, Pipeline { tokenizer })).collect())
    }

    fn encode(&self, case: &Case) -> Result<Vec<Encoding>, Failure> {
        let inputs: Vec<Input<'_>> = case
            .inputs
            .iter()
            .map(|input| Input { first: text(&input.text), second: input.pair.as_ref().map(text) })
            .collect();
        let definition = self.tokenizer.definition();
        let options = EncodeOptions {
            add_special_tokens: case.add_special_tokens,
            truncation: definition.truncation,
            padding: definition.padding.clone(),
            offset_unit: OffsetUnit::Char,
            encode_special_tokens: case.encode_special_tokens,
            overflow: true,
        };
        let encodings = self.tokenizer.encodings(&inputs, &options, None).map_err(failure)?;
        Ok(encodings.iter().map(encoding).collect())
    }

    fn decode(&self, decode: &Decode) -> Result<String, Failure> {
        self.tokenizer.decode(&decode.ids, decode.skip_special_tokens, false, false).map_err(failure)
    }

    fn token_to_id(&self, token: &str) -> Option<u32> {
        self.tokenizer.token_to_id(token)
    }

    fn id_to_token(&self, id: u32) -> Option<String> {
        self.tokenizer.id_to_token(id).map(str::to_owned)
    }

    fn vocab_size(&self) -> usize {
        self.tokenizer.vocab_size(true)
    }

    fn read_vocab_txt(text: &str) -> Result<BTreeMap<String, u32>, Failure> {
        let (vocab, _warnings) = vocab_txt::read(text.as_bytes(), false).map_err(failure)?;
        Ok(vocab.iter().map(|(token, id)| (token.to_owned(), id)).collect())
    }
}
