//! A file without its vocabulary.

use std::fmt::{self, Write as _};

use serde::de::{Deserializer as _, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::object::{JsonString, Object};
use super::read::file;
use crate::error::Result;

/// Returns a `tokenizer.json` of any model with only these tokens of its vocabulary, and without merges: what tells the model
/// and its settings, in a few kilobytes. Of a key that an object repeats, the last value counts.
///
/// # Errors
///
/// The text is not JSON, or not an object.
pub fn outline(json: &str, tokens: &[&str]) -> Result<String> {
    let file = file(json.strip_prefix('\u{feff}').unwrap_or(json))?;
    let mut text = String::new();
    write_fields(&mut text, &file, |text, name, value| match name {
        "model" => match Object::new(name, value) {
            Ok(model) => write_fields(text, &model, |text, name, value| match name {
                "vocab" => text.push_str(&vocab(value, tokens)),
                "merges" => text.push_str("[]"),
                _ => text.push_str(value.get()),
            }),
            Err(_) => text.push_str(value.get()),
        },
        _ => text.push_str(value.get()),
    });
    Ok(text)
}

/// Appends an object, with the values that `write` appends for its fields.
fn write_fields(text: &mut String, object: &Object, write: impl Fn(&mut String, &str, &RawValue)) {
    text.push('{');
    for (index, (name, value)) in object.fields.iter().enumerate() {
        text.push_str(if index == 0 { "" } else { "," });
        text.push_str(&quoted(name));
        text.push(':');
        write(text, name, value);
    }
    text.push('}');
}

/// Returns a text as a JSON string.
fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("every string can be written")
}

/// Returns the entries of some tokens in a vocabulary; of a list, as Unigram models have it, an empty one.
fn vocab(value: &RawValue, tokens: &[&str]) -> String {
    if value.get().starts_with('[') {
        return "[]".to_owned();
    }
    let kept = serde_json::Deserializer::from_str(value.get()).deserialize_map(Kept(tokens));
    kept.unwrap_or_else(|_| value.get().to_owned())
}

/// Makes an object of the entries of a vocabulary that these tokens have.
struct Kept<'a>(&'a [&'a str]);

impl<'de> Visitor<'de> for Kept<'_> {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of tokens and their ids")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<String, A::Error> {
        let mut text = String::from("{");
        while let Some(JsonString(token)) = map.next_key()? {
            if !self.0.contains(&token.as_ref()) {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            let id: &RawValue = map.next_value()?;
            let separator = if text.len() > 1 { "," } else { "" };
            write!(text, "{separator}{}:{}", quoted(&token), id.get()).expect("a string takes all");
        }
        text.push('}');
        Ok(text)
    }
}
