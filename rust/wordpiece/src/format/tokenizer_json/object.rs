//! JSON objects whose fields are parsed one by one, on request.
//!
//! An [`Object`] keeps the text of each field and parses it as the type that the caller requests. Memory is therefore
//! proportional to the fields that are used, the only recursion is the caller's, and every error can name the component
//! and the field.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::error::{Error, Result};

/// The path of the file's top-level object in error messages.
pub(super) const FILE: &str = "tokenizer.json";

/// A JSON object. Of a repeated key, the last value counts.
pub(super) struct Object<'a> {
    /// The path of the object in the file, for error messages, such as `normalizer.normalizers[1]`.
    pub path: String,
    /// The text of each field, by name.
    pub fields: BTreeMap<Cow<'a, str>, &'a RawValue>,
}

impl<'a> Object<'a> {
    /// Parses an object whose path is `path`; `None` if the text is something else, or not JSON.
    pub fn parse(path: impl Into<String>, json: &'a str) -> Option<Object<'a>> {
        let RawFields(fields) = serde_json::from_str(json).ok()?;
        Some(Object { path: path.into(), fields })
    }

    /// Parses an object whose path is `path`; an error if the value is something else.
    pub fn new(path: impl Into<String>, value: &'a RawValue) -> Result<Object<'a>> {
        let path = path.into();
        Object::parse(path.as_str(), value.get()).ok_or_else(|| Error::InvalidField {
            component: FILE.to_owned(),
            field: path,
            value: shown(value),
            expected: "an object".to_owned(),
        })
    }

    /// Returns the text of a field, or `None` if the object does not have it.
    pub fn raw(&self, field: &str) -> Option<&'a RawValue> {
        self.fields.get(field).copied()
    }

    /// Returns whether the object has a field.
    pub fn has(&self, field: &str) -> bool {
        self.fields.contains_key(field)
    }

    /// Returns the text of a field that must be present.
    pub fn required(&self, field: &str) -> Result<&'a RawValue> {
        let missing = || Error::MissingField { component: self.path.clone(), field: field.to_owned() };
        self.raw(field).ok_or_else(missing)
    }

    /// Parses a field that must be present as a `T`, which `expected` describes in words.
    pub fn get<T: Deserialize<'a>>(&self, field: &str, expected: &str) -> Result<T> {
        let value = self.required(field)?;
        serde_json::from_str(value.get()).map_err(|_| self.invalid(field, value, expected))
    }

    /// Parses a field that may be missing or null as a `T`, which `expected` describes in words.
    pub fn optional<T: Deserialize<'a>>(&self, field: &str, expected: &str) -> Result<Option<T>> {
        if self.has(field) { self.get(field, expected) } else { Ok(None) }
    }

    /// Parses a field that must be a string.
    pub fn text(&self, field: &str) -> Result<String> {
        self.get(field, "a string")
    }

    /// Parses a field that must be a string of one character.
    pub fn character(&self, field: &str) -> Result<char> {
        self.get(field, "a string of one character")
    }

    /// Parses a field that must be a boolean.
    pub fn flag(&self, field: &str) -> Result<bool> {
        self.get(field, "true or false")
    }

    /// Parses a field that must be a count.
    pub fn count(&self, field: &str) -> Result<usize> {
        self.get(field, "a whole number from 0")
    }

    /// Parses a field that must be a token id or segment id.
    pub fn id(&self, field: &str) -> Result<u32> {
        self.get(field, "a whole number from 0 to 4294967295")
    }

    /// Parses a field that must be one of the given strings; returns the value paired with it.
    pub fn choice<T: Copy>(&self, field: &str, choices: &[(&str, T)]) -> Result<T> {
        let value = self.required(field)?;
        let name: Option<String> = serde_json::from_str(value.get()).ok();
        let found = choices.iter().find(|(choice, _)| name.as_deref() == Some(choice));
        found.map(|&(_, value)| value).ok_or_else(|| {
            let names: Vec<String> = choices.iter().map(|(choice, _)| format!("{choice:?}")).collect();
            self.invalid(field, value, &names.join(" or "))
        })
    }

    /// Parses a field that must be an array; returns the path and the text of each item.
    pub fn items(&self, field: &str) -> Result<impl Iterator<Item = (String, &'a RawValue)> + use<'a>> {
        let values: Vec<&'a RawValue> = self.get(field, "an array")?;
        let path = self.path_of(field);
        Ok(values.into_iter().enumerate().map(move |(i, value)| (format!("{path}[{i}]"), value)))
    }

    /// Parses a field that must be an object.
    pub fn object(&self, field: &str) -> Result<Object<'a>> {
        Object::new(self.path_of(field), self.required(field)?)
    }

    /// Returns the `type` of the component, if the object states it.
    pub fn kind(&self) -> Result<Option<String>> {
        if self.has("type") { self.text("type").map(Some) } else { Ok(None) }
    }

    /// Returns the error for a field whose value cannot be used.
    pub fn invalid(&self, field: &str, value: &RawValue, expected: &str) -> Error {
        Error::InvalidField {
            component: self.path.clone(),
            field: field.to_owned(),
            value: shown(value),
            expected: expected.to_owned(),
        }
    }

    /// Returns the error for a component of a type that this crate does not implement.
    pub fn unsupported(&self, name: &str) -> Error {
        Error::Unsupported { component: self.path.clone(), name: name.to_owned() }
    }

    /// Returns the error for a component that neither states its type nor has a field that implies it.
    pub fn untyped(&self) -> Error {
        Error::MissingField { component: self.path.clone(), field: "type".to_owned() }
    }

    /// Returns the path of a field in the file.
    fn path_of(&self, field: &str) -> String {
        if self.path == FILE { field.to_owned() } else { format!("{}.{field}", self.path) }
    }
}

/// Returns the text of a value for an error message, truncated after 60 characters.
pub(super) fn shown(value: &RawValue) -> String {
    const LIMIT: usize = 60;
    let text = value.get();
    match text.char_indices().nth(LIMIT) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// A JSON string, borrowed from the file unless it contains escapes.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct JsonString<'a>(pub Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for JsonString<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct StringVisitor;

        impl<'de> Visitor<'de> for StringVisitor {
            type Value = JsonString<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> std::result::Result<JsonString<'de>, E> {
                Ok(JsonString(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> std::result::Result<JsonString<'de>, E> {
                Ok(JsonString(Cow::Owned(text.to_owned())))
            }
        }

        deserializer.deserialize_str(StringVisitor)
    }
}

/// The fields of an object before they have a path.
struct RawFields<'a>(BTreeMap<Cow<'a, str>, &'a RawValue>);

impl<'de: 'a, 'a> Deserialize<'de> for RawFields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct RawFieldsVisitor;

        impl<'de> Visitor<'de> for RawFieldsVisitor {
            type Value = RawFields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<RawFields<'de>, A::Error> {
                let mut fields = BTreeMap::new();
                while let Some((JsonString(name), value)) = map.next_entry()? {
                    fields.insert(name, value);
                }
                Ok(RawFields(fields))
            }
        }

        deserializer.deserialize_map(RawFieldsVisitor)
    }
}
