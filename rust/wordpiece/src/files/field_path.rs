//! Extracts one field from a line of JSON without storing the rest of the line.
//!
//! The parser visits the line once. Values outside the path are validated as JSON and discarded; only the text itself is
//! copied.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::error::Category;

use crate::error::{Error, Result, TextProblem};

/// The path to a field of a JSON value: `text`, `meta.title`, `answers.0.text`.
///
/// Keys are separated by dots; a dot that is part of a key is written `\.`, a backslash `\\`. In a list, the key is an
/// index counted from 0.
///
/// ```
/// use wordpiece::files::FieldPath;
///
/// assert!(FieldPath::new(r"meta.file\.name").is_ok());
/// assert!(FieldPath::new("meta..title").is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldPath {
    /// The path as the caller wrote it, for messages.
    written: String,
    /// The unescaped keys; none is empty.
    keys: Vec<String>,
}

impl FieldPath {
    /// Parses a path.
    ///
    /// # Errors
    ///
    /// [`Error::BadFieldPath`] if a key is empty.
    ///
    /// # Examples
    ///
    /// ```
    /// use wordpiece::files::FieldPath;
    ///
    /// assert!(FieldPath::new("article.text").is_ok()); // {"article": {"text": "…"}}
    /// assert!(FieldPath::new("article..text").is_err());
    /// ```
    pub fn new(written: &str) -> Result<FieldPath> {
        let mut keys = vec![String::new()];
        let mut chars = written.chars().peekable();
        while let Some(c) = chars.next() {
            let key = keys.last_mut().expect("the list starts with one key and never shrinks");
            match c {
                '\\' => key.push(chars.next_if(|&next| next == '.' || next == '\\').unwrap_or('\\')),
                '.' => keys.push(String::new()),
                c => key.push(c),
            }
        }
        if keys.iter().any(String::is_empty) {
            return Err(Error::BadFieldPath { path: written.to_owned() });
        }
        Ok(FieldPath { written: written.to_owned(), keys })
    }

    /// Appends the field of a JSON line to `out`. If a key occurs more than once, the last one counts, as in
    /// Python, and the others must be text as well.
    ///
    /// With `replace`, lone surrogates become U+FFFD. After an error `out` is unchanged.
    pub(super) fn append(&self, line: &str, replace: bool, out: &mut String) -> std::result::Result<(), TextProblem> {
        self.append_value(line, replace, false, out)
    }

    /// As [`FieldPath::append`] for the id of a document: appends `n` and the digits of a whole number, or `s` and a text.
    pub(super) fn append_id(&self, line: &str, out: &mut String) -> std::result::Result<(), TextProblem> {
        self.append_value(line, false, true, out)
    }

    fn append_value(
        &self,
        line: &str,
        replace: bool,
        is_id: bool,
        out: &mut String,
    ) -> std::result::Result<(), TextProblem> {
        let mut parser = serde_json::Deserializer::from_str(line);
        let mut text = None;
        let seed = FieldSeed { keys: &self.keys, text: &mut text, is_id };
        let parsed = seed.deserialize(&mut parser).and_then(|()| parser.end());
        if let Err(error) = parsed {
            let message = message_without_line(&error);
            return Err(match error.classify() {
                Category::Data => TextProblem::NotText { field: self.written.clone(), message },
                _ => TextProblem::NotJson { message },
            });
        }
        let Some(bytes) = text else {
            return Err(TextProblem::NoField { field: self.written.clone(), keys: top_level_keys(line) });
        };
        match String::from_utf8(bytes) {
            Ok(text) => out.push_str(&text),
            Err(error) if replace => push_replacing_surrogates(error.as_bytes(), out),
            Err(_) => return Err(TextProblem::LoneSurrogate { field: self.written.clone() }),
        }
        Ok(())
    }
}

/// Returns the parser's message with the column only: its "line 1" would be confused with the line of the file.
fn message_without_line(error: &serde_json::Error) -> String {
    let message = error.to_string();
    match message.rfind(" at line ") {
        Some(end) => format!("{} at column {}", &message[..end], error.column()),
        None => message,
    }
}

/// Returns the keys of a JSON object in sorted order; nothing for other values.
fn top_level_keys(line: &str) -> Vec<String> {
    let object: serde_json::Result<std::collections::BTreeMap<String, IgnoredAny>> = serde_json::from_str(line);
    object.map_or(Vec::new(), |object| object.into_keys().collect())
}

/// Appends a text in which each lone surrogate becomes one U+FFFD.
///
/// `serde_json` returns a lone surrogate as the three bytes that UTF-8 would have for it (`ed a0..bf 80..bf`), which
/// are three invalid chunks; only the first of them produces the replacement character.
fn push_replacing_surrogates(bytes: &[u8], out: &mut String) {
    for chunk in bytes.utf8_chunks() {
        out.push_str(chunk.valid());
        if matches!(chunk.invalid(), [0xed, ..]) {
            out.push(char::REPLACEMENT_CHARACTER);
        }
    }
}

/// Follows the keys and stores the text at their end; skips every other value.
struct FieldSeed<'a> {
    keys: &'a [String],
    text: &'a mut Option<Vec<u8>>,
    /// Whether the value is an id: a whole number or a string, stored with its kind.
    is_id: bool,
}

impl<'de> DeserializeSeed<'de> for FieldSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> std::result::Result<(), D::Error> {
        match self.keys {
            // As bytes: as a str, the parser would report a lone surrogate as a syntax error.
            [] if !self.is_id => deserializer.deserialize_bytes(self),
            _ => deserializer.deserialize_any(self),
        }
    }
}

impl<'de> Visitor<'de> for FieldSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.keys {
            [] if self.is_id => f.write_str("a whole number of 64 bits or a string"),
            [] => f.write_str("a string"),
            [key, ..] => write!(f, "an object with the key {key:?}"),
        }
    }

    fn visit_bytes<E>(self, bytes: &[u8]) -> std::result::Result<(), E> {
        *self.text = Some(bytes.to_vec());
        Ok(())
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> std::result::Result<(), E> {
        if !(self.is_id && self.keys.is_empty()) {
            return Err(E::invalid_type(serde::de::Unexpected::Str(value), &self));
        }
        *self.text = Some([b"s", value.as_bytes()].concat());
        Ok(())
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> std::result::Result<(), E> {
        if !(self.is_id && self.keys.is_empty()) {
            return Err(E::invalid_type(serde::de::Unexpected::Unsigned(value), &self));
        }
        *self.text = Some(format!("n{value}").into_bytes());
        Ok(())
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> std::result::Result<(), E> {
        if !(self.is_id && self.keys.is_empty()) {
            return Err(E::invalid_type(serde::de::Unexpected::Signed(value), &self));
        }
        // Two's complement, as a column of int64 that is read as uint64.
        *self.text = Some(format!("n{}", value as u64).into_bytes());
        Ok(())
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> std::result::Result<(), M::Error> {
        let FieldSeed { keys, text, is_id } = self;
        if keys.is_empty() {
            return Err(serde::de::Error::invalid_type(serde::de::Unexpected::Map, &FieldSeed { keys, text, is_id }));
        }
        while let Some(is_key) = map.next_key_seed(KeyEquals(&keys[0]))? {
            if is_key {
                *text = None;
                map.next_value_seed(FieldSeed { keys: &keys[1..], text, is_id })?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut list: S) -> std::result::Result<(), S::Error> {
        let FieldSeed { keys, text, is_id } = self;
        let index: Option<usize> = keys.first().and_then(|key| key.parse().ok());
        let Some(index) = index else {
            return Err(serde::de::Error::invalid_type(serde::de::Unexpected::Seq, &FieldSeed { keys, text, is_id }));
        };
        for i in 0.. {
            let more = match i == index {
                true => list.next_element_seed(FieldSeed { keys: &keys[1..], text, is_id })?.is_some(),
                false => list.next_element::<IgnoredAny>()?.is_some(),
            };
            if !more {
                break;
            }
        }
        Ok(())
    }
}

/// Compares a key with the given one without allocating.
struct KeyEquals<'a>(&'a str);

impl<'de> DeserializeSeed<'de> for KeyEquals<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> std::result::Result<bool, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for KeyEquals<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> std::result::Result<bool, E> {
        Ok(key == self.0)
    }
}
