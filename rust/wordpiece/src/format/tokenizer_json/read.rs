//! Reads the file's top level: version, model and vocabulary, added tokens, truncation and padding.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::components;
use super::object::{FILE, JsonString, Object};
use crate::added::{AddedToken, check_ids, fixed_ids};
use crate::definition::Definition;
use crate::error::{Error, Result};
use crate::inputs::{PadLength, Padding, Side, Truncation, TruncationStrategy};
use crate::vocab::Vocab;

/// The version of the format. There has been no other.
pub(super) const VERSION: &str = "1.0";

/// The top-level fields, in the order in which they are written.
const FIELDS: [&str; 9] = [
    "version",
    "truncation",
    "padding",
    "added_tokens",
    "normalizer",
    "pre_tokenizer",
    "post_processor",
    "decoder",
    "model",
];

const SIDES: [(&str, Side); 2] = [("Right", Side::Right), ("Left", Side::Left)];

/// Returns the text of a file.
///
/// # Errors
///
/// [`Error::Json`] if it is not UTF-8.
pub fn text(bytes: &[u8]) -> Result<&str> {
    simdutf8::compat::from_utf8(bytes).map_err(|error| {
        let at = error.valid_up_to();
        Error::Json { message: format!("not UTF-8: byte 0x{:02x} at offset {at}", bytes[at]), line: 0, column: 0 }
    })
}

/// Reads a `tokenizer.json`. Of a key that an object repeats, the last value counts. A byte order mark before it is skipped.
///
/// The ids of added tokens are those that `tokenizers` assigns on reading the file; if the file states others, it is
/// refused. The result is not checked for consistency between components; [`Tokenizer::new`](crate::Tokenizer::new) does that.
///
/// # Errors
///
/// An error of [kind](Error::kind) `Format` that names the component, such as `normalizer.normalizers[1]`, and its field;
/// or, for text that is not JSON, the line and the column. [`Error::AddedTokenId`] for an added token with another id,
/// [`Error::DuplicateId`] for two tokens with one id, and [`Error::VocabTooLarge`].
pub fn read(json: &str) -> Result<Definition> {
    parse(json, check_ids)
}

/// Reads the text of a [`snapshot`](super::snapshot()), or the state of a tokenizer of the reference that is in memory: added
/// tokens have the ids that the text states.
///
/// # Errors
///
/// As for [`read`]. [`Error::AddedTokenId`] only for a token that has another id in the vocabulary.
pub fn restore(json: &str) -> Result<Definition> {
    parse(json, |_, _, _| Ok(()))
}

/// Parses a file. `check` is given the vocabulary, the added tokens and the ids that the file states for them.
fn parse(json: &str, check: impl FnOnce(&Vocab, &[AddedToken], &[u32]) -> Result<()>) -> Result<Definition> {
    let json = json.strip_prefix('\u{feff}').unwrap_or(json);
    let file = file(json)?;
    if let Some(unknown) = file.fields.keys().find(|name| !FIELDS.contains(&name.as_ref())) {
        return Err(Error::UnknownField { component: FILE.to_owned(), field: unknown.clone().into_owned() });
    }
    if let Some(value) = file.raw("version")
        && file.text("version")? != VERSION
    {
        return Err(file.invalid("version", value, "\"1.0\", the only version of the format"));
    }
    let component = |field: &str| file.raw(field).filter(|value| value.get() != "null");
    let model = file.object("model")?;
    let vocab = match model.kind()?.as_deref() {
        None | Some("WordPiece") => vocab(json, &model)?,
        Some(other) => return Err(model.unsupported(other)),
    };
    let (added_tokens, stated_ids) = match file.has("added_tokens") {
        true => added_tokens(&file)?,
        false => (Vec::new(), Vec::new()),
    };
    check(&vocab, &added_tokens, &stated_ids)?;
    let fixed_ids = fixed_ids(&vocab, &added_tokens, &stated_ids)?;
    Ok(Definition {
        unk_token: model.text("unk_token")?,
        continuing_subword_prefix: model.text("continuing_subword_prefix")?,
        max_input_chars_per_word: model.count("max_input_chars_per_word")?,
        normalizer: component("normalizer")
            .map(|value| components::normalizer("normalizer".to_owned(), value, 0))
            .transpose()?,
        pre_tokenizer: component("pre_tokenizer")
            .map(|value| components::pre_tokenizer("pre_tokenizer".to_owned(), value, 0))
            .transpose()?,
        post_processor: component("post_processor")
            .map(|value| components::post_processor("post_processor".to_owned(), value, 0))
            .transpose()?,
        decoder: component("decoder").map(|value| components::decoder("decoder".to_owned(), value, 0)).transpose()?,
        truncation: component("truncation").map(truncation).transpose()?,
        padding: component("padding").map(padding).transpose()?,
        added_tokens,
        fixed_ids,
        vocab,
    })
}

/// Parses the top-level object of a file. Only what is not one is read again, for its error.
pub(super) fn file(json: &str) -> Result<Object<'_>> {
    if let Some(file) = Object::parse(FILE, json) {
        return Ok(file);
    }
    match serde_json::from_str(json) {
        Ok(value) => Object::new(FILE, value),
        Err(error) => Err(Error::Json { message: message_of(&error), line: error.line(), column: error.column() }),
    }
}

/// Tokens and their ids, in the order of the file.
struct VocabEntries<'a>(Vec<(JsonString<'a>, u32)>);

impl<'de: 'a, 'a> Deserialize<'de> for VocabEntries<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct VocabEntriesVisitor;

        impl<'de> Visitor<'de> for VocabEntriesVisitor {
            type Value = VocabEntries<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of tokens and their ids")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<VocabEntries<'de>, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(VocabEntries(entries))
            }
        }

        deserializer.deserialize_map(VocabEntriesVisitor)
    }
}

/// Reads the vocabulary. `json` is the entire file, which the location in an error message refers to.
fn vocab(json: &str, model: &Object) -> Result<Vocab> {
    let value = model.required("vocab")?;
    let VocabEntries(entries) = serde_json::from_str(value.get()).map_err(|error| {
        // The parser counts lines and columns from the start of the vocabulary; the message is to count from the top.
        let start = value.get().as_ptr() as usize - json.as_ptr() as usize;
        let before = &json[..start];
        let (above, indent) = (before.matches('\n').count(), start - before.rfind('\n').map_or(0, |at| at + 1));
        let column = if error.line() == 1 { indent + error.column() } else { error.column() };
        Error::Json { message: format!("model.vocab: {}", message_of(&error)), line: above + error.line(), column }
    })?;
    Vocab::new(entries.iter().map(|(JsonString(token), id)| (token.as_ref(), *id)))
}

/// Reads the added tokens and the ids that the file states for them.
fn added_tokens(file: &Object) -> Result<(Vec<AddedToken>, Vec<u32>)> {
    let mut tokens = Vec::new();
    let mut stated = Vec::new();
    for (path, value) in file.items("added_tokens")? {
        let object = Object::new(path, value)?;
        let id = object.id("id")?;
        let token = AddedToken {
            content: object.text("content")?,
            single_word: object.flag("single_word")?,
            lstrip: object.flag("lstrip")?,
            rstrip: object.flag("rstrip")?,
            normalized: object.flag("normalized")?,
            special: object.flag("special")?,
        };
        // A token without content matches nothing and gets no id.
        if !token.content.is_empty() {
            tokens.push(token);
            stated.push(id);
        }
    }
    Ok((tokens, stated))
}

/// Reads the truncation.
fn truncation(value: &RawValue) -> Result<Truncation> {
    let object = Object::new("truncation", value)?;
    let strategies = [
        ("LongestFirst", TruncationStrategy::LongestFirst),
        ("OnlyFirst", TruncationStrategy::OnlyFirst),
        ("OnlySecond", TruncationStrategy::OnlySecond),
    ];
    Ok(Truncation {
        max_length: object.count("max_length")?,
        stride: object.count("stride")?,
        strategy: object.choice("strategy", &strategies)?,
        side: if object.has("direction") { object.choice("direction", &SIDES)? } else { Side::Right },
    })
}

/// Reads the padding.
fn padding(value: &RawValue) -> Result<Padding> {
    let object = Object::new("padding", value)?;
    let strategy = object.required("strategy")?;
    let length = match strategy.get().starts_with('{') {
        true => PadLength::Fixed(object.object("strategy")?.count("Fixed")?),
        false => object.choice("strategy", &[("BatchLongest", PadLength::Longest)])?,
    };
    let multiple_of: Option<usize> = object.optional("pad_to_multiple_of", "a whole number or null")?;
    Ok(Padding {
        length,
        // The reference treats a multiple of 0 as no multiple.
        multiple_of: multiple_of.filter(|&multiple| multiple > 0),
        id: object.id("pad_id")?,
        type_id: object.id("pad_type_id")?,
        token: object.text("pad_token")?,
        side: object.choice("direction", &SIDES)?,
    })
}

/// Returns the message of the JSON parser without the location that it appends.
fn message_of(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rfind(" at line ") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}
