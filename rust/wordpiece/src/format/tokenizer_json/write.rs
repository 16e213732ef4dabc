//! Writes the text that `tokenizers` would write for the same tokenizer, key by key and line by line.
//!
//! A definition is turned into a tree of [`Node`]s, which `serde_json` writes. The tree exists because the order of the keys
//! is part of the format, and because the canonical text of components is made from the same tree.

use std::borrow::Cow;

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};

use super::portable::portable;
use super::read::VERSION;
use crate::added::AddedToken;
use crate::decode::Decoder;
use crate::definition::Definition;
use crate::error;
use crate::inputs::{
    PadLength, Padding, PostProcessor, SequenceId, Side, Template, TemplatePiece, Truncation, TruncationStrategy,
};
use crate::normalize::Normalizer;
use crate::pattern::Pattern;
use crate::split::{ByteLevel, Metaspace, PreTokenizer, PrependScheme, SplitBehavior};

/// Writes a `tokenizer.json`, indented by two spaces, from which `tokenizers` reads the same ids.
///
/// Added tokens are written by ascending id, as the reference does; a token that was registered twice is written once,
/// with the flags of its last registration. If the reference would give one of them another id, because the vocabulary has
/// gaps, the added tokens are in `model.vocab` as well.
///
/// # Errors
///
/// [`Error::AddedTokenUnwritable`](crate::Error::AddedTokenUnwritable) if that would change the pieces of some text.
pub fn write(definition: &Definition) -> error::Result<String> {
    Ok(snapshot(portable(definition)?.as_ref()))
}

/// Writes the state of a tokenizer in the form of a `tokenizer.json`, with its added tokens whatever their ids.
///
/// [`restore`](super::restore()) gives the same definition with added tokens by ascending id. If the vocabulary has gaps,
/// `tokenizers` may give them other ids on reading the text; [`write()`] returns one that it reads with the same ids.
pub fn snapshot(definition: &Definition) -> String {
    written(definition, &definition.registered_tokens())
}

/// Writes the whole state of a tokenizer: as [`snapshot()`], with added tokens as they were registered, one after the other.
pub fn state(definition: &Definition) -> String {
    written(definition, &definition.registrations())
}

fn written(definition: &Definition, added: &[(u32, AddedToken)]) -> String {
    let file = object([
        ("version", text(VERSION)),
        ("truncation", optional(definition.truncation.as_ref(), truncation)),
        ("padding", optional(definition.padding.as_ref(), padding)),
        ("added_tokens", list(added, added_token)),
        ("normalizer", optional(definition.normalizer.as_ref(), normalizer)),
        ("pre_tokenizer", optional(definition.pre_tokenizer.as_ref(), pre_tokenizer)),
        ("post_processor", optional(definition.post_processor.as_ref(), post_processor)),
        ("decoder", optional(definition.decoder.as_ref(), decoder)),
        ("model", model(definition)),
    ]);
    serde_json::to_string_pretty(&file).expect("strings and numbers can always be written")
}

pub(super) fn model(definition: &Definition) -> Node<'_> {
    object([
        ("type", text("WordPiece")),
        ("unk_token", text(&definition.unk_token)),
        ("continuing_subword_prefix", text(&definition.continuing_subword_prefix)),
        ("max_input_chars_per_word", count(definition.max_input_chars_per_word)),
        ("vocab", Node::Object(definition.vocab.iter().map(|(token, id)| (token.into(), number(id))).collect())),
    ])
}

/// A JSON value whose objects keep the order of their keys. Strings are borrowed from the definition where possible.
pub(super) enum Node<'a> {
    Null,
    Flag(bool),
    Number(u64),
    Text(Cow<'a, str>),
    List(Vec<Node<'a>>),
    Object(Vec<(Cow<'a, str>, Node<'a>)>),
}

impl Serialize for Node<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Node::Null => serializer.serialize_unit(),
            Node::Flag(flag) => serializer.serialize_bool(*flag),
            Node::Number(number) => serializer.serialize_u64(*number),
            Node::Text(text) => serializer.serialize_str(text),
            Node::List(items) => {
                let mut list = serializer.serialize_seq(Some(items.len()))?;
                items.iter().try_for_each(|item| list.serialize_element(item))?;
                list.end()
            }
            Node::Object(fields) => {
                let mut map = serializer.serialize_map(Some(fields.len()))?;
                fields.iter().try_for_each(|(name, value)| map.serialize_entry(name, value))?;
                map.end()
            }
        }
    }
}

fn text(text: &str) -> Node<'_> {
    Node::Text(Cow::Borrowed(text))
}

fn character<'a>(c: char) -> Node<'a> {
    Node::Text(Cow::Owned(c.to_string()))
}

pub(super) fn number<'a>(number: u32) -> Node<'a> {
    Node::Number(number.into())
}

fn count<'a>(count: usize) -> Node<'a> {
    Node::Number(count as u64)
}

fn object<'a, const N: usize>(fields: [(&'static str, Node<'a>); N]) -> Node<'a> {
    Node::Object(fields.into_iter().map(|(name, value)| (Cow::Borrowed(name), value)).collect())
}

/// Returns a component without options: an object that has only a type.
fn plain<'a>(kind: &'static str) -> Node<'a> {
    object([("type", text(kind))])
}

pub(super) fn optional<'a, T>(value: Option<&'a T>, write: fn(&'a T) -> Node<'a>) -> Node<'a> {
    value.map_or(Node::Null, write)
}

pub(super) fn list<'a, T>(items: &'a [T], write: fn(&'a T) -> Node<'a>) -> Node<'a> {
    Node::List(items.iter().map(write).collect())
}

fn side<'a>(side: Side) -> Node<'a> {
    text(match side {
        Side::Left => "Left",
        Side::Right => "Right",
    })
}

fn truncation(truncation: &Truncation) -> Node<'_> {
    let strategy = match truncation.strategy {
        TruncationStrategy::LongestFirst => "LongestFirst",
        TruncationStrategy::OnlyFirst => "OnlyFirst",
        TruncationStrategy::OnlySecond => "OnlySecond",
    };
    object([
        ("direction", side(truncation.side)),
        ("max_length", count(truncation.max_length)),
        ("strategy", text(strategy)),
        ("stride", count(truncation.stride)),
    ])
}

fn padding(padding: &Padding) -> Node<'_> {
    let strategy = match padding.length {
        PadLength::Longest => text("BatchLongest"),
        PadLength::Fixed(length) => object([("Fixed", count(length))]),
    };
    object([
        ("strategy", strategy),
        ("direction", side(padding.side)),
        ("pad_to_multiple_of", padding.multiple_of.map_or(Node::Null, count)),
        ("pad_id", number(padding.id)),
        ("pad_type_id", number(padding.type_id)),
        ("pad_token", text(&padding.token)),
    ])
}

pub(super) fn added_token((id, token): &(u32, AddedToken)) -> Node<'_> {
    object([
        ("id", number(*id)),
        ("content", text(&token.content)),
        ("single_word", Node::Flag(token.single_word)),
        ("lstrip", Node::Flag(token.lstrip)),
        ("rstrip", Node::Flag(token.rstrip)),
        ("normalized", Node::Flag(token.normalized)),
        ("special", Node::Flag(token.special)),
    ])
}

pub(super) fn normalizer(normalizer: &Normalizer) -> Node<'_> {
    match normalizer {
        Normalizer::Bert(bert) => object([
            ("type", text("BertNormalizer")),
            ("clean_text", Node::Flag(bert.clean_text)),
            ("handle_chinese_chars", Node::Flag(bert.tokenize_chinese_chars)),
            ("strip_accents", bert.strip_accents.map_or(Node::Null, Node::Flag)),
            ("lowercase", Node::Flag(bert.lowercase)),
        ]),
        Normalizer::Sequence(steps) => {
            object([("type", text("Sequence")), ("normalizers", list(steps, self::normalizer))])
        }
        Normalizer::Lowercase => plain("Lowercase"),
        Normalizer::Nfd => plain("NFD"),
        Normalizer::Nfc => plain("NFC"),
        Normalizer::Nfkd => plain("NFKD"),
        Normalizer::Nfkc => plain("NFKC"),
        Normalizer::StripAccents => plain("StripAccents"),
        Normalizer::Strip { left, right } => {
            object([("type", text("Strip")), ("strip_left", Node::Flag(*left)), ("strip_right", Node::Flag(*right))])
        }
        Normalizer::Replace { pattern, content } => replace(pattern, content),
        Normalizer::Prepend(prefix) => object([("type", text("Prepend")), ("prepend", text(prefix))]),
    }
}

pub(super) fn pre_tokenizer(pre_tokenizer: &PreTokenizer) -> Node<'_> {
    match pre_tokenizer {
        PreTokenizer::Bert => plain("BertPreTokenizer"),
        PreTokenizer::Whitespace => plain("Whitespace"),
        PreTokenizer::WhitespaceSplit => plain("WhitespaceSplit"),
        PreTokenizer::Punctuation(split) => object([("type", text("Punctuation")), ("behavior", behavior(*split))]),
        PreTokenizer::Digits { individual } => {
            object([("type", text("Digits")), ("individual_digits", Node::Flag(*individual))])
        }
        PreTokenizer::Split { pattern, behavior: split, invert } => object([
            ("type", text("Split")),
            ("pattern", self::pattern(pattern)),
            ("behavior", behavior(*split)),
            ("invert", Node::Flag(*invert)),
        ]),
        PreTokenizer::CharDelimiter(delimiter) => {
            object([("type", text("CharDelimiterSplit")), ("delimiter", character(*delimiter))])
        }
        PreTokenizer::Metaspace(options) => metaspace(options),
        PreTokenizer::ByteLevel(options) => byte_level(options),
        PreTokenizer::Sequence(steps) => {
            object([("type", text("Sequence")), ("pretokenizers", list(steps, self::pre_tokenizer))])
        }
    }
}

fn post_processor(post_processor: &PostProcessor) -> Node<'_> {
    let token = |(token, id): &'_ (String, u32)| Node::List(vec![Node::Text(Cow::Owned(token.clone())), number(*id)]);
    match post_processor {
        PostProcessor::Bert { cls, sep } => {
            object([("type", text("BertProcessing")), ("sep", token(sep)), ("cls", token(cls))])
        }
        PostProcessor::Roberta { cls, sep, trim_offsets, add_prefix_space } => object([
            ("type", text("RobertaProcessing")),
            ("sep", token(sep)),
            ("cls", token(cls)),
            ("trim_offsets", Node::Flag(*trim_offsets)),
            ("add_prefix_space", Node::Flag(*add_prefix_space)),
        ]),
        PostProcessor::Template(options) => template(options),
    }
}

fn template(template: &Template) -> Node<'_> {
    let mut special: Vec<(Cow<'_, str>, Node<'_>)> = Vec::with_capacity(template.special_tokens.len());
    for token in &template.special_tokens {
        let fields = object([
            ("id", text(&token.name)),
            ("ids", Node::List(token.ids.iter().map(|&id| number(id)).collect())),
            ("tokens", Node::List(token.tokens.iter().map(|token| text(token)).collect())),
        ]);
        special.push((Cow::Borrowed(&token.name), fields));
    }
    special.sort_by(|a, b| a.0.cmp(&b.0));
    object([
        ("type", text("TemplateProcessing")),
        ("single", list(&template.single, piece)),
        ("pair", list(&template.pair, piece)),
        ("special_tokens", Node::Object(special)),
    ])
}

fn piece(piece: &TemplatePiece) -> Node<'_> {
    let (kind, id, type_id) = match piece {
        TemplatePiece::Sequence { sequence: SequenceId::A, type_id } => ("Sequence", "A", type_id),
        TemplatePiece::Sequence { sequence: SequenceId::B, type_id } => ("Sequence", "B", type_id),
        TemplatePiece::Special { name, type_id } => ("SpecialToken", name.as_str(), type_id),
    };
    object([(kind, object([("id", text(id)), ("type_id", number(*type_id))]))])
}

fn decoder(decoder: &Decoder) -> Node<'_> {
    match decoder {
        Decoder::WordPiece { prefix, cleanup } => {
            object([("type", text("WordPiece")), ("prefix", text(prefix)), ("cleanup", Node::Flag(*cleanup))])
        }
        Decoder::Sequence(steps) => object([("type", text("Sequence")), ("decoders", list(steps, self::decoder))]),
        Decoder::Fuse => plain("Fuse"),
        Decoder::Strip { content, start, stop } => object([
            ("type", text("Strip")),
            ("content", character(*content)),
            ("start", count(*start)),
            ("stop", count(*stop)),
        ]),
        Decoder::Replace { pattern, content } => replace(pattern, content),
        Decoder::Metaspace(options) => metaspace(options),
        Decoder::ByteLevel(options) => byte_level(options),
    }
}

/// Returns `Replace`, which is the same as a normalizer and as a decoder.
fn replace<'a>(pattern: &'a Pattern, content: &'a str) -> Node<'a> {
    object([("type", text("Replace")), ("pattern", self::pattern(pattern)), ("content", text(content))])
}

fn pattern(pattern: &Pattern) -> Node<'_> {
    object([(if pattern.is_regex() { "Regex" } else { "String" }, text(pattern.source()))])
}

fn behavior<'a>(behavior: SplitBehavior) -> Node<'a> {
    text(match behavior {
        SplitBehavior::Removed => "Removed",
        SplitBehavior::Isolated => "Isolated",
        SplitBehavior::MergedWithPrevious => "MergedWithPrevious",
        SplitBehavior::MergedWithNext => "MergedWithNext",
        SplitBehavior::Contiguous => "Contiguous",
    })
}

/// Returns `Metaspace`, which is the same as a pre-tokenizer and as a decoder.
fn metaspace(metaspace: &Metaspace) -> Node<'_> {
    let scheme = match metaspace.prepend {
        PrependScheme::First => "first",
        PrependScheme::Never => "never",
        PrependScheme::Always => "always",
    };
    object([
        ("type", text("Metaspace")),
        ("replacement", character(metaspace.replacement)),
        ("prepend_scheme", text(scheme)),
        ("split", Node::Flag(metaspace.split)),
    ])
}

/// Returns `ByteLevel`, which is the same as a pre-tokenizer and as a decoder.
fn byte_level<'a>(byte_level: &ByteLevel) -> Node<'a> {
    object([
        ("type", text("ByteLevel")),
        ("add_prefix_space", Node::Flag(byte_level.add_prefix_space)),
        ("trim_offsets", Node::Flag(byte_level.trim_offsets)),
        ("use_regex", Node::Flag(byte_level.use_regex)),
    ])
}
