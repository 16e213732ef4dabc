//! Types of Arrow: which are texts, which words, which pairs.

use crate::arrow::abi::{self, Schema};

/// A type of Arrow, as far as texts are made of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    Text(TextKind),
    Dictionary(IndexKind, TextKind),
    List(ListKind, Box<Kind>),
    /// A table, or a column of records: the columns with their names.
    Struct(Vec<(String, Kind)>),
    /// Any other, with a name for it.
    Other(String),
}

/// Where strings stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextKind {
    /// One after the other, the ends as 32 bits.
    Utf8,
    /// The same with 64 bits.
    LargeUtf8,
    /// Anywhere; short ones beside their length.
    View,
    /// There are none: every item is null.
    Null,
}

/// The numbers that stand for the strings of a dictionary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexKind {
    pub bytes: usize,
    pub signed: bool,
}

/// Where lists begin and end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListKind {
    Small,
    Large,
    /// All have so many items.
    Fixed(usize),
}

/// Lists of lists in records are as deep as texts go; what is deeper is told by its outermost types.
const DEEPEST: usize = 5;

impl Kind {
    /// Reads the type; the text says what is wrong with it.
    pub fn read(schema: &Schema) -> Result<Kind, String> {
        Kind::read_at(schema, 0)
    }

    fn read_at(schema: &Schema, depth: usize) -> Result<Kind, String> {
        if depth == DEEPEST {
            return Ok(Kind::Other("something else".to_owned()));
        }
        // SAFETY: a schema that is not released has a format and, it may be, children.
        let (format, child) = unsafe {
            let child = |index| abi::child(schema.children, schema.n_children, index);
            (abi::text(schema.format).ok_or("a type has no format")?, child)
        };
        // SAFETY: as above.
        if let Some(values) = unsafe { schema.dictionary.as_ref() } {
            let (bytes, signed) = match format {
                "c" | "s" | "i" | "l" => ("csil".find(format), true),
                "C" | "S" | "I" | "L" => ("CSIL".find(format), false),
                _ => return Err(format!("the indices of a dictionary have the format {format:?}")),
            };
            let index = IndexKind { bytes: 1 << bytes.unwrap_or(0), signed };
            return Ok(match Kind::read_at(values, depth + 1)? {
                Kind::Text(text) => Kind::Dictionary(index, text),
                other => Kind::Other(format!("a dictionary of {other}")),
            });
        }
        let list = |kind| {
            let items = child(0).ok_or_else(|| format!("the list type {format:?} has no type of its items"))?;
            Ok::<Kind, String>(Kind::List(kind, Box::new(Kind::read_at(items, depth + 1)?)))
        };
        Ok(match format {
            "u" => Kind::Text(TextKind::Utf8),
            "U" => Kind::Text(TextKind::LargeUtf8),
            "vu" => Kind::Text(TextKind::View),
            "n" => Kind::Text(TextKind::Null),
            "+l" => list(ListKind::Small)?,
            "+L" => list(ListKind::Large)?,
            "+s" => {
                let n = usize::try_from(schema.n_children).map_err(|_| "a table has a negative number of columns")?;
                let column = |index| {
                    let schema = child(index).ok_or_else(|| format!("column {index} of a table has no type"))?;
                    // SAFETY: as above.
                    let name = unsafe { abi::text(schema.name) }.unwrap_or_default();
                    Ok((name.to_owned(), Kind::read_at(schema, depth + 1)?))
                };
                Kind::Struct((0..n).map(column).collect::<Result<_, String>>()?)
            }
            _ => match format.strip_prefix("+w:") {
                Some(size) => {
                    let size = size.parse().map_err(|_| format!("a list type has the format {format:?}"))?;
                    list(ListKind::Fixed(size))?
                }
                None => Kind::Other(name(format)),
            },
        })
    }
}

/// What people call a type that is no text.
fn name(format: &str) -> String {
    let known = match format {
        "b" => "bool",
        "c" => "int8",
        "C" => "uint8",
        "s" => "int16",
        "S" => "uint16",
        "i" => "int32",
        "I" => "uint32",
        "l" => "int64",
        "L" => "uint64",
        "e" => "float16",
        "f" => "float32",
        "g" => "float64",
        "z" => "binary",
        "Z" => "large_binary",
        "vz" => "binary_view",
        "+vl" => "list_view",
        "+vL" => "large_list_view",
        "+m" => "map",
        "+r" => "run_end_encoded",
        _ => return format!("type {format:?} of the C data interface"),
    };
    known.to_owned()
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        const SHOWN: usize = 5;
        match self {
            Kind::Text(TextKind::Utf8) => f.write_str("string"),
            Kind::Text(TextKind::LargeUtf8) => f.write_str("large_string"),
            Kind::Text(TextKind::View) => f.write_str("string_view"),
            Kind::Text(TextKind::Null) => f.write_str("null"),
            Kind::Dictionary(_, values) => write!(f, "dictionary of {}", Kind::Text(*values)),
            Kind::List(ListKind::Small, items) => write!(f, "list<{items}>"),
            Kind::List(ListKind::Large, items) => write!(f, "large_list<{items}>"),
            Kind::List(ListKind::Fixed(size), items) => write!(f, "fixed_size_list<{items}>[{size}]"),
            Kind::Struct(columns) => {
                let shown: Vec<String> =
                    columns.iter().take(SHOWN).map(|(name, kind)| format!("{name}: {kind}")).collect();
                let more = if columns.len() > SHOWN { ", …" } else { "" };
                write!(f, "struct<{}{more}>", shown.join(", "))
            }
            Kind::Other(name) => f.write_str(name),
        }
    }
}
