//! One text out of a line of JSON, with nothing else of it kept.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::error::Category;

use crate::error::{Error, Result, TextProblem};

/// The way to a field: `text`, `meta.title`, `answers.0.text`. A number takes an item of a list; a dot that belongs to a
/// key is written `\.`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldPath {
    written: String,
    keys: Vec<String>,
}

impl FieldPath {
    /// Reads a path.
    pub fn new(written: &str) -> Result<FieldPath> {
        let mut keys = vec![String::new()];
        let mut chars = written.chars().peekable();
        while let Some(c) = chars.next() {
            let key = keys.last_mut().expect("there is always one");
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

    /// Puts the field of a line at the end of `out`. A key that stands twice counts where it stands last.
    pub(super) fn append(&self, line: &str, replace: bool, out: &mut String) -> std::result::Result<(), TextProblem> {
        let mut parser = serde_json::Deserializer::from_str(line);
        let mut found = None;
        let parsed = Pick { keys: &self.keys, found: &mut found }.deserialize(&mut parser).and_then(|()| parser.end());
        if let Err(error) = parsed {
            let message = without_line(&error);
            return Err(match error.classify() {
                Category::Data => TextProblem::NotText { field: self.written.clone(), message },
                _ => TextProblem::NotJson { message },
            });
        }
        let Some(bytes) = found else {
            return Err(TextProblem::NoField { field: self.written.clone(), keys: keys_of(line) });
        };
        match String::from_utf8(bytes) {
            Ok(text) => out.push_str(&text),
            Err(error) if replace => push_with_replacements(error.as_bytes(), out),
            Err(_) => return Err(TextProblem::LoneSurrogate { field: self.written.clone() }),
        }
        Ok(())
    }
}

/// What the parser says, with the column in place of "at line 1 column 7": the line is one of a file.
fn without_line(error: &serde_json::Error) -> String {
    let message = error.to_string();
    match message.rfind(" at line ") {
        Some(end) => format!("{} at column {}", &message[..end], error.column()),
        None => message,
    }
}

fn keys_of(line: &str) -> Vec<String> {
    let object: serde_json::Result<std::collections::BTreeMap<String, IgnoredAny>> = serde_json::from_str(line);
    object.map_or(Vec::new(), |object| object.into_keys().collect())
}

/// The parser gives a lone surrogate as the three bytes that UTF-8 would have for it; it becomes one U+FFFD.
fn push_with_replacements(bytes: &[u8], out: &mut String) {
    for chunk in bytes.utf8_chunks() {
        out.push_str(chunk.valid());
        if matches!(chunk.invalid(), [0xed, ..]) {
            out.push(char::REPLACEMENT_CHARACTER);
        }
    }
}

/// Walks along the keys and takes the text at their end; everything else is read and forgotten.
struct Pick<'a> {
    keys: &'a [String],
    found: &'a mut Option<Vec<u8>>,
}

impl<'de> DeserializeSeed<'de> for Pick<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> std::result::Result<(), D::Error> {
        match self.keys {
            // As bytes: as a str the parser would refuse lone surrogates like any other mistake.
            [] => deserializer.deserialize_bytes(self),
            _ => deserializer.deserialize_any(self),
        }
    }
}

impl<'de> Visitor<'de> for Pick<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.keys {
            [] => f.write_str("a string"),
            [key, ..] => write!(f, "an object with the key {key:?}"),
        }
    }

    fn visit_bytes<E>(self, bytes: &[u8]) -> std::result::Result<(), E> {
        *self.found = Some(bytes.to_vec());
        Ok(())
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> std::result::Result<(), M::Error> {
        let Pick { keys, found } = self;
        while let Some(hit) = map.next_key_seed(Is(&keys[0]))? {
            if hit {
                *found = None;
                map.next_value_seed(Pick { keys: &keys[1..], found })?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut list: S) -> std::result::Result<(), S::Error> {
        let Pick { keys, found } = self;
        let wanted: Option<usize> = keys.first().and_then(|key| key.parse().ok());
        let Some(wanted) = wanted else {
            return Err(serde::de::Error::invalid_type(serde::de::Unexpected::Seq, &Pick { keys, found }));
        };
        for i in 0.. {
            let more = match i == wanted {
                true => list.next_element_seed(Pick { keys: &keys[1..], found })?.is_some(),
                false => list.next_element::<IgnoredAny>()?.is_some(),
            };
            if !more {
                break;
            }
        }
        Ok(())
    }
}

/// Compares a key without keeping it.
struct Is<'a>(&'a str);

impl<'de> DeserializeSeed<'de> for Is<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> std::result::Result<bool, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Is<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> std::result::Result<bool, E> {
        Ok(key == self.0)
    }
}
