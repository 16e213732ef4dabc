//! A JSON object as its fields, each still text: a field is parsed when it is asked for, as the type asked for.
//!
//! That way a file costs memory in proportion to what is used of it, nothing recurses without a limit, and every error
//! can name the component and the field.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::error::{Error, Result};

/// How errors call the file as a whole.
pub(super) const FILE: &str = "tokenizer.json";

/// The fields of a JSON object; of a repeated one the last.
pub(super) struct Object<'a> {
    /// Where the object stands, for errors: `normalizer.normalizers[1]`.
    pub path: String,
    pub fields: BTreeMap<Cow<'a, str>, &'a RawValue>,
}

impl<'a> Object<'a> {
    /// Takes a value that must be an object.
    pub fn new(path: impl Into<String>, value: &'a RawValue) -> Result<Object<'a>> {
        let path = path.into();
        match serde_json::from_str::<Fields>(value.get()) {
            Ok(Fields(fields)) => Ok(Object { path, fields }),
            Err(_) => Err(Error::InvalidField {
                component: FILE.to_owned(),
                field: path,
                value: shown(value),
                expected: "an object".to_owned(),
            }),
        }
    }

    /// A field that may be missing.
    pub fn raw(&self, field: &str) -> Option<&'a RawValue> {
        self.fields.get(field).copied()
    }

    /// Whether there is such a field.
    pub fn has(&self, field: &str) -> bool {
        self.fields.contains_key(field)
    }

    /// A field that must be there.
    pub fn required(&self, field: &str) -> Result<&'a RawValue> {
        let missing = || Error::MissingField { component: self.path.clone(), field: field.to_owned() };
        self.raw(field).ok_or_else(missing)
    }

    /// A field that must be there, as a `T`; `expected` says in words what that is.
    pub fn get<T: Deserialize<'a>>(&self, field: &str, expected: &str) -> Result<T> {
        let value = self.required(field)?;
        serde_json::from_str(value.get()).map_err(|_| self.invalid(field, value, expected))
    }

    /// A field that may be missing or null, as a `T`.
    pub fn optional<T: Deserialize<'a>>(&self, field: &str, expected: &str) -> Result<Option<T>> {
        if self.has(field) { self.get(field, expected) } else { Ok(None) }
    }

    /// A field that holds a string.
    pub fn text(&self, field: &str) -> Result<String> {
        self.get(field, "a string")
    }

    /// A field that holds a string of one character.
    pub fn character(&self, field: &str) -> Result<char> {
        self.get(field, "a string of one character")
    }

    /// A field that holds a boolean.
    pub fn flag(&self, field: &str) -> Result<bool> {
        self.get(field, "true or false")
    }

    /// A field that holds a count.
    pub fn count(&self, field: &str) -> Result<usize> {
        self.get(field, "a whole number from 0")
    }

    /// A field that holds an id.
    pub fn id(&self, field: &str) -> Result<u32> {
        self.get(field, "a whole number from 0 to 4294967295")
    }

    /// A field that holds one of some strings.
    pub fn choice<T: Copy>(&self, field: &str, choices: &[(&str, T)]) -> Result<T> {
        let value = self.required(field)?;
        let name: Option<String> = serde_json::from_str(value.get()).ok();
        let found = choices.iter().find(|(choice, _)| name.as_deref() == Some(choice));
        found.map(|&(_, value)| value).ok_or_else(|| {
            let names: Vec<String> = choices.iter().map(|(choice, _)| format!("{choice:?}")).collect();
            self.invalid(field, value, &names.join(" or "))
        })
    }

    /// A field that holds an array, with the path of each of its items.
    pub fn items(&self, field: &str) -> Result<impl Iterator<Item = (String, &'a RawValue)> + use<'a>> {
        let values: Vec<&'a RawValue> = self.get(field, "an array")?;
        let path = self.path_of(field);
        Ok(values.into_iter().enumerate().map(move |(i, value)| (format!("{path}[{i}]"), value)))
    }

    /// A field that holds an object.
    pub fn object(&self, field: &str) -> Result<Object<'a>> {
        Object::new(self.path_of(field), self.required(field)?)
    }

    /// The declared type, if any.
    pub fn kind(&self) -> Result<Option<String>> {
        if self.has("type") { self.text("type").map(Some) } else { Ok(None) }
    }

    /// The error for a field with a value that cannot be used.
    pub fn invalid(&self, field: &str, value: &RawValue, expected: &str) -> Error {
        Error::InvalidField {
            component: self.path.clone(),
            field: field.to_owned(),
            value: shown(value),
            expected: expected.to_owned(),
        }
    }

    /// The error for a component of a type that is not known here.
    pub fn unsupported(&self, name: &str) -> Error {
        Error::Unsupported { component: self.path.clone(), name: name.to_owned() }
    }

    /// The error for a component that says neither its type nor anything that tells it.
    pub fn untyped(&self) -> Error {
        Error::MissingField { component: self.path.clone(), field: "type".to_owned() }
    }

    fn path_of(&self, field: &str) -> String {
        if self.path == FILE { field.to_owned() } else { format!("{}.{field}", self.path) }
    }
}

/// A value for an error message: its text, cut when it is long.
pub(super) fn shown(value: &RawValue) -> String {
    const LIMIT: usize = 60;
    let text = value.get();
    match text.char_indices().nth(LIMIT) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// A string of the file, borrowed where it holds no escapes.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Text<'a>(pub Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct TextVisitor;

        impl<'de> Visitor<'de> for TextVisitor {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> std::result::Result<Text<'de>, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> std::result::Result<Text<'de>, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }

        deserializer.deserialize_str(TextVisitor)
    }
}

struct Fields<'a>(BTreeMap<Cow<'a, str>, &'a RawValue>);

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct FieldsVisitor;

        impl<'de> Visitor<'de> for FieldsVisitor {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Fields<'de>, A::Error> {
                let mut fields = BTreeMap::new();
                while let Some((Text(name), value)) = map.next_entry()? {
                    fields.insert(name, value);
                }
                Ok(Fields(fields))
            }
        }

        deserializer.deserialize_map(FieldsVisitor)
    }
}
