//! The reference implementation as an engine of the cases.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;
use wordpiece::reference::{
    self, AddedToken, Behavior, BertNormalizer, Config, Normalizer, Padding, PostProcessor, PreTokenizer, Refusal,
    RefusalKind, Sequence, Side, Strategy, TemplatePiece, TemplateToken, Tokenizer, Truncation, WordPieceDecoder,
};

use crate::case::{Case, Decode, Encoding, Engine, Failure, Text};

pub struct Reference {
    tokenizer: Tokenizer,
    decoder: Option<WordPieceDecoder>,
}

fn failure(refusal: Refusal) -> Failure {
    let class = match refusal.kind {
        RefusalKind::Vocab => "VocabError",
        RefusalKind::Format => "TokenizerFormatError",
        RefusalKind::Input => "InputError",
    };
    Failure { class, message: refusal.message }
}

fn flag(table: &Value, key: &str) -> bool {
    table[key].as_bool().unwrap_or_else(|| panic!("{key} of {table}"))
}

fn list(table: &Value, key: &str) -> Vec<Value> {
    table[key].as_array().unwrap_or_else(|| panic!("{key} of {table}")).clone()
}

fn normalizer(table: &Value) -> Normalizer {
    match table["type"].as_str() {
        Some("BertNormalizer") => Normalizer::Bert(BertNormalizer {
            clean_text: flag(table, "clean_text"),
            handle_chinese_chars: flag(table, "handle_chinese_chars"),
            strip_accents: table["strip_accents"].as_bool(),
            lowercase: flag(table, "lowercase"),
        }),
        Some("NFD") => Normalizer::Nfd,
        Some("Lowercase") => Normalizer::Lowercase,
        Some("StripAccents") => Normalizer::StripAccents,
        Some("Strip") => Normalizer::Strip { left: flag(table, "strip_left"), right: flag(table, "strip_right") },
        Some("Sequence") => Normalizer::Sequence(list(table, "normalizers").iter().map(normalizer).collect()),
        _ => panic!("the reference implementation has no normalizer {table}"),
    }
}

fn pre_tokenizer(table: &Value) -> PreTokenizer {
    match table["type"].as_str() {
        Some("BertPreTokenizer") => PreTokenizer::Bert,
        Some("Whitespace") => PreTokenizer::Whitespace,
        Some("WhitespaceSplit") => PreTokenizer::WhitespaceSplit,
        Some("Punctuation") => PreTokenizer::Punctuation(match table["behavior"].as_str() {
            Some("Removed") => Behavior::Removed,
            Some("Isolated") | None => Behavior::Isolated,
            Some("Contiguous") => Behavior::Contiguous,
            Some(other) => panic!("the reference implementation has no behavior {other}"),
        }),
        Some("Digits") => PreTokenizer::Digits { individual: flag(table, "individual_digits") },
        Some("ByteLevel") => PreTokenizer::ByteLevel {
            add_prefix_space: flag(table, "add_prefix_space"),
            use_regex: flag(table, "use_regex"),
        },
        Some("Sequence") => PreTokenizer::Sequence(list(table, "pretokenizers").iter().map(pre_tokenizer).collect()),
        _ => panic!("the reference implementation has no pre-tokenizer {table}"),
    }
}

fn token_and_id(value: &Value) -> (String, u32) {
    serde_json::from_value(value.clone()).expect("[token, id]")
}

fn pieces(template: &Value, key: &str) -> Vec<TemplatePiece> {
    let piece = |piece: &Value| {
        let (kind, body) = piece.as_object().and_then(|piece| piece.iter().next()).expect("a piece");
        let type_id = body["type_id"].as_u64().expect("a type id") as u32;
        match (kind.as_str(), body["id"].as_str().expect("an id")) {
            ("Sequence", "A") => TemplatePiece::A(type_id),
            ("Sequence", "B") => TemplatePiece::B(type_id),
            (_, name) => TemplatePiece::Special(name.to_owned(), type_id),
        }
    };
    list(template, key).iter().map(piece).collect()
}

fn post_processor(table: &Value) -> PostProcessor {
    if table["type"] == "BertProcessing" {
        return PostProcessor::Bert { cls: token_and_id(&table["cls"]), sep: token_and_id(&table["sep"]) };
    }
    let mut special_tokens = HashMap::new();
    for (name, token) in table["special_tokens"].as_object().expect("special tokens") {
        let ids = serde_json::from_value(token["ids"].clone()).expect("ids");
        let tokens = serde_json::from_value(token["tokens"].clone()).expect("tokens");
        special_tokens.insert(name.clone(), TemplateToken { ids, tokens });
    }
    PostProcessor::Template { single: pieces(table, "single"), pair: pieces(table, "pair"), special_tokens }
}

fn side(name: &str) -> Side {
    match name {
        "left" => Side::Left,
        "right" => Side::Right,
        other => panic!("no side {other:?}"),
    }
}

fn strategy(name: &str) -> Strategy {
    match name {
        "longest_first" => Strategy::LongestFirst,
        "only_first" => Strategy::OnlyFirst,
        "only_second" => Strategy::OnlySecond,
        other => panic!("no strategy {other:?}"),
    }
}

fn sequence(text: &Text) -> Sequence {
    match text {
        Text::Whole(text) => Sequence::Text(text.clone()),
        Text::Words(words) => Sequence::Words(words.clone()),
    }
}

fn optional(value: Value) -> Option<Value> {
    (!value.is_null()).then_some(value)
}

fn config(case: &Case) -> Config {
    let mut config = Config { vocab: case.vocab(), ..Config::default() };
    let model = case.model.clone();
    config.unk_token = model.unk_token.unwrap_or(config.unk_token);
    config.continuing_subword_prefix = model.continuing_subword_prefix.unwrap_or(config.continuing_subword_prefix);
    config.max_input_chars_per_word = model.max_input_chars_per_word.unwrap_or(config.max_input_chars_per_word);
    config.normalizer = optional(case.normalizer()).as_ref().map(normalizer);
    config.pre_tokenizer = optional(case.pre_tokenizer()).as_ref().map(pre_tokenizer);
    config.post_processor = optional(case.post_processor()).as_ref().map(post_processor);
    let added = case.added_tokens.iter().map(|token| AddedToken {
        content: token.content.clone(),
        id: token.id,
        single_word: token.single_word,
        lstrip: token.lstrip,
        rstrip: token.rstrip,
        normalized: token.normalized(),
        special: token.special,
    });
    config.added_tokens = added.collect();
    config.encode_special_tokens = case.encode_special_tokens;
    config.truncation = case.truncation.as_ref().map(|t| Truncation {
        max_length: t.max_length,
        stride: t.stride,
        strategy: strategy(&t.strategy),
        direction: side(&t.direction),
    });
    config.padding = case.padding.as_ref().map(|p| Padding {
        length: p.length,
        multiple_of: p.pad_to_multiple_of.unwrap_or(0),
        direction: side(&p.direction),
        pad_id: p.pad_id,
        pad_type_id: p.pad_type_id,
        pad_token: p.pad_token.clone(),
    });
    config
}

fn encoding(from: reference::Encoding) -> Encoding {
    Encoding {
        ids: from.ids,
        tokens: from.tokens,
        offsets: from.offsets,
        word_ids: from.word_ids.iter().map(|id| id.map_or(-1, i64::from)).collect(),
        type_ids: from.type_ids,
        sequence_ids: from.sequence_ids.iter().map(|id| id.map_or(-1, |id| id as i64)).collect(),
        attention_mask: from.attention_mask,
        special_tokens_mask: from.special_tokens_mask,
        overflowing: from.overflowing.into_iter().map(encoding).collect(),
    }
}

impl Engine for Reference {
    const NAME: &'static str = "reference";

    fn skips(case: &Case) -> Option<&'static str> {
        (case.differs.as_deref() == Some("D10"))
            .then_some("it reads no tokenizer.json, so it cannot refuse unknown names")
    }

    fn build(case: &Case) -> Result<Vec<(&'static str, Self)>, Failure> {
        let tokenizer = Tokenizer::new(config(case)).map_err(failure)?;
        let decoder = optional(case.decoder()).map(|table| WordPieceDecoder {
            prefix: table["prefix"].as_str().expect("a prefix").to_owned(),
            cleanup: flag(&table, "cleanup"),
        });
        Ok(vec![(Self::NAME, Self { tokenizer, decoder })])
    }

    fn encode(&self, case: &Case) -> Result<Vec<Encoding>, Failure> {
        let batch: Vec<reference::Input> = case
            .inputs
            .iter()
            .map(|input| reference::Input { first: sequence(&input.text), second: input.pair.as_ref().map(sequence) })
            .collect();
        let encodings = self.tokenizer.encode_batch(&batch, case.add_special_tokens).map_err(failure)?;
        Ok(encodings.into_iter().map(encoding).collect())
    }

    fn decode(&self, decode: &Decode) -> Result<String, Failure> {
        Ok(self.tokenizer.decode(&decode.ids, decode.skip_special_tokens, self.decoder.as_ref()))
    }

    fn token_to_id(&self, token: &str) -> Option<u32> {
        self.tokenizer.token_to_id(token)
    }

    fn id_to_token(&self, id: u32) -> Option<String> {
        self.tokenizer.id_to_token(id).map(str::to_owned)
    }

    fn vocab_size(&self) -> usize {
        self.tokenizer.vocab_size()
    }

    fn read_vocab_txt(text: &str) -> Result<BTreeMap<String, u32>, Failure> {
        let vocab = reference::read_vocab_txt(text.as_bytes()).map_err(failure)?;
        Ok(vocab.into_iter().collect())
    }
}
