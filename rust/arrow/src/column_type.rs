//! The types of columns that contain texts.

use std::fmt;

use crate::abi::{self, ArrowSchema};
use crate::problem::Problem;

/// The type of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ColumnType {
    /// Strings.
    String(StringType),
    /// Lists of items of one type.
    List(ListLayout, Box<ColumnType>),
    /// A table, or a column of structs: its columns with their names.
    Struct(Vec<(String, ColumnType)>),
    /// Any other type, with a name for it that messages show.
    Other(String),
}

/// The type of a column of strings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StringType {
    /// One string for each row.
    Plain(StringLayout),
    /// An index for each row into strings that are stored once.
    Dictionary(IndexType, StringLayout),
}

/// How strings are laid out in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StringLayout {
    /// One after the other, delimited by 32-bit offsets.
    Utf8,
    /// One after the other, delimited by 64-bit offsets.
    LargeUtf8,
    /// In any order in any number of buffers; strings of up to 12 bytes are stored in place of their address.
    View,
    /// Not at all: every row is null. Some libraries give this type to empty columns.
    Null,
}

/// The integers that index a dictionary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexType {
    /// The size of an index in bytes: 1, 2, 4 or 8.
    pub bytes: usize,
    /// Whether indices are signed.
    pub is_signed: bool,
}

/// How lists are delimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListLayout {
    /// By 32-bit offsets.
    Small,
    /// By 64-bit offsets.
    Large,
    /// All lists have this number of items.
    FixedSize(usize),
}

/// The deepest nesting that is read. Texts need three levels (a list of two lists of words); anything deeper is described
/// by its outermost types. The limit also ends the recursion into a schema that contains itself.
const MAX_DEPTH: usize = 5;

impl ColumnType {
    /// Reads the type that a schema describes.
    ///
    /// # Errors
    ///
    /// [`Problem::Malformed`] if the schema breaks a rule of the specification. A valid type that cannot hold texts is not
    /// an error, but [`ColumnType::Other`].
    pub fn read(schema: &ArrowSchema) -> Result<ColumnType, Problem> {
        ColumnType::read_nested(schema, 0)
    }

    fn read_nested(schema: &ArrowSchema, depth: usize) -> Result<ColumnType, Problem> {
        if depth == MAX_DEPTH {
            return Ok(ColumnType::Other("something else".to_owned()));
        }
        // SAFETY: a schema obeys the specification (see `abi`): `format` is null or a C string that lives as long as the
        // schema is not released, and `dictionary` is null or points to a schema that does.
        let (format, dictionary) = unsafe { (abi::text(schema.format), abi::structure(schema.dictionary)) };
        let format = format.ok_or_else(|| Problem::malformed("a type has no format"))?;
        if let Some(values) = dictionary {
            return ColumnType::read_dictionary(format, ColumnType::read_nested(values, depth + 1)?);
        }
        // SAFETY: by the specification `children` points to `n_children` pointers to schemas owned by this one.
        let child = |index| unsafe { abi::child(schema.children, schema.n_children, index) };
        let list = |layout| {
            let items =
                child(0).ok_or_else(|| Problem::Malformed(format!("the list type {format:?} has no item type")))?;
            Ok::<_, Problem>(ColumnType::List(layout, Box::new(ColumnType::read_nested(items, depth + 1)?)))
        };
        Ok(match format {
            "u" => ColumnType::String(StringType::Plain(StringLayout::Utf8)),
            "U" => ColumnType::String(StringType::Plain(StringLayout::LargeUtf8)),
            "vu" => ColumnType::String(StringType::Plain(StringLayout::View)),
            "n" => ColumnType::String(StringType::Plain(StringLayout::Null)),
            "+l" => list(ListLayout::Small)?,
            "+L" => list(ListLayout::Large)?,
            "+s" => {
                let n = usize::try_from(schema.n_children)
                    .map_err(|_| Problem::malformed("a table has a negative number of columns"))?;
                let column = |index| {
                    let schema = child(index)
                        .ok_or_else(|| Problem::Malformed(format!("column {index} of a table has no type")))?;
                    // SAFETY: by the specification `name` is null or a C string that lives as long as the schema.
                    let name = unsafe { abi::text(schema.name) }.unwrap_or_default();
                    Ok((name.to_owned(), ColumnType::read_nested(schema, depth + 1)?))
                };
                ColumnType::Struct((0..n).map(column).collect::<Result<_, Problem>>()?)
            }
            _ => match format.strip_prefix("+w:") {
                Some(size) => {
                    let size = size
                        .parse()
                        .map_err(|_| Problem::Malformed(format!("a list type has the format {format:?}")))?;
                    list(ListLayout::FixedSize(size))?
                }
                None => ColumnType::Other(type_name(format)),
            },
        })
    }

    /// Returns the type of a dictionary with indices of format `format` and the given values.
    fn read_dictionary(format: &str, values: ColumnType) -> Result<ColumnType, Problem> {
        let (bytes, is_signed) = match format {
            "c" => (1, true),
            "s" => (2, true),
            "i" => (4, true),
            "l" => (8, true),
            "C" => (1, false),
            "S" => (2, false),
            "I" => (4, false),
            "L" => (8, false),
            _ => return Err(Problem::Malformed(format!("the indices of a dictionary have the format {format:?}"))),
        };
        Ok(match values {
            ColumnType::String(StringType::Plain(layout)) => {
                ColumnType::String(StringType::Dictionary(IndexType { bytes, is_signed }, layout))
            }
            other => ColumnType::Other(format!("a dictionary of {other}")),
        })
    }
}

/// Returns the usual name of a type that is neither a string nor a list nor a struct.
fn type_name(format: &str) -> String {
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

impl fmt::Display for StringLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            StringLayout::Utf8 => "string",
            StringLayout::LargeUtf8 => "large_string",
            StringLayout::View => "string_view",
            StringLayout::Null => "null",
        })
    }
}

/// Writes the type as pyarrow does; of a struct, the first five columns.
impl fmt::Display for ColumnType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const COLUMNS_SHOWN: usize = 5;
        match self {
            ColumnType::String(StringType::Plain(layout)) => layout.fmt(f),
            ColumnType::String(StringType::Dictionary(_, values)) => write!(f, "dictionary of {values}"),
            ColumnType::List(ListLayout::Small, items) => write!(f, "list<{items}>"),
            ColumnType::List(ListLayout::Large, items) => write!(f, "large_list<{items}>"),
            ColumnType::List(ListLayout::FixedSize(size), items) => write!(f, "fixed_size_list<{items}>[{size}]"),
            ColumnType::Struct(columns) => {
                let shown: Vec<String> =
                    columns.iter().take(COLUMNS_SHOWN).map(|(name, kind)| format!("{name}: {kind}")).collect();
                let more = if columns.len() > COLUMNS_SHOWN { ", …" } else { "" };
                write!(f, "struct<{}{more}>", shown.join(", "))
            }
            ColumnType::Other(name) => f.write_str(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::Field;

    fn read(field: &Field) -> Result<String, Problem> {
        ColumnType::read(&field.schema()).map(|kind| kind.to_string())
    }

    #[test]
    fn types_are_named_as_pyarrow_names_them() {
        let list = Field::new("+l", "").with_children([Field::new("u", "item")]);
        let columns = (0..6).map(|i| Field::new("u", format!("c{i}")));
        for (field, name) in [
            (Field::new("vu", ""), "string_view"),
            (list.clone(), "list<string>"),
            (Field::new("+w:3", "").with_children([list]), "fixed_size_list<list<string>>[3]"),
            (Field::new("C", "").with_dictionary(Field::new("U", "")), "dictionary of large_string"),
            (Field::new("i", "").with_dictionary(Field::new("l", "")), "a dictionary of int64"),
            (
                Field::new("+s", "").with_children(columns),
                "struct<c0: string, c1: string, c2: string, c3: string, c4: string, …>",
            ),
            (Field::new("tsu:UTC", ""), "type \"tsu:UTC\" of the C data interface"),
        ] {
            assert_eq!(read(&field), Ok(name.to_owned()));
        }
    }

    #[test]
    fn nesting_is_read_to_a_limited_depth() {
        let nested =
            |depth| (0..depth).fold(Field::new("u", ""), |items, _| Field::new("+l", "").with_children([items]));
        assert_eq!(read(&nested(4)), Ok("list<list<list<list<string>>>>".to_owned()));
        assert_eq!(read(&nested(9)), Ok("list<list<list<list<list<something else>>>>>".to_owned()));
    }

    #[test]
    fn malformed_types_are_refused() {
        for field in [
            Field::new("+l", ""),
            Field::new("+w:-2", "").with_children([Field::new("u", "")]),
            Field::new("f", "").with_dictionary(Field::new("u", "")),
        ] {
            assert!(matches!(read(&field), Err(Problem::Malformed(_))));
        }
        assert_eq!(
            ColumnType::read(&<ArrowSchema as crate::CStructure>::released()),
            Err(Problem::malformed("a type has no format"))
        );
    }
}
