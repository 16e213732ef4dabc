//! The strings of an array, in each of Arrow's layouts.

use crate::array_slice::{ArraySlice, NullMask, checked_range, widened};
use crate::column_type::{IndexType, StringLayout, StringType};
use crate::foreign::Items;
use crate::problem::Problem;

/// The strings of an array.
pub(crate) struct StringArray<'a> {
    nulls: NullMask<'a>,
    data: StringData<'a>,
}

/// The bytes of the strings, with what is needed to find the bytes of a row.
enum StringData<'a> {
    Utf8 { offsets: Items<'a, 4>, bytes: Items<'a, 1> },
    LargeUtf8 { offsets: Items<'a, 8>, bytes: Items<'a, 1> },
    View { views: Items<'a, 16>, buffers: Vec<Items<'a, 1>> },
    Dictionary { indices: DictionaryIndices<'a>, values: Box<StringArray<'a>>, n_values: usize },
    Null,
}

impl<'a> StringArray<'a> {
    /// Opens the strings of an array, which has the type `kind`.
    pub(crate) fn new(array: ArraySlice<'a>, kind: StringType) -> Result<StringArray<'a>, Problem> {
        let (indices, layout) = match kind {
            StringType::Plain(layout) => return StringArray::plain(array, layout),
            StringType::Dictionary(indices, layout) => (indices, layout),
        };
        let values = array.dictionary()?;
        let data = StringData::Dictionary {
            indices: DictionaryIndices::new(array, indices)?,
            values: Box::new(StringArray::plain(values, layout)?),
            n_values: values.len(),
        };
        Ok(StringArray { nulls: array.null_mask()?, data })
    }

    fn plain(array: ArraySlice<'a>, layout: StringLayout) -> Result<StringArray<'a>, Problem> {
        let data = match layout {
            // An array of this type has no buffers.
            StringLayout::Null => return Ok(StringArray { nulls: NullMask::NONE, data: StringData::Null }),
            StringLayout::Utf8 => {
                let offsets = array.offsets()?;
                let last = offsets.last().map_or(0, widened);
                StringData::Utf8 { offsets, bytes: array.string_data(last)? }
            }
            StringLayout::LargeUtf8 => {
                let offsets = array.offsets()?;
                let last = offsets.last().map_or(0, i64::from_ne_bytes);
                StringData::LargeUtf8 { offsets, bytes: array.string_data(last)? }
            }
            StringLayout::View => StringData::View { views: array.views()?, buffers: array.view_data()? },
        };
        Ok(StringArray { nulls: array.null_mask()?, data })
    }

    /// Returns the string of a row, which must be below the array's length. Whether it is UTF-8 has not been checked.
    ///
    /// # Errors
    ///
    /// [`Problem::Null`], or [`Problem::Malformed`] if the string is not inside its buffer or the dictionary has no such
    /// index.
    pub(crate) fn get(&self, row: usize) -> Result<Items<'a, 1>, Problem> {
        self.nulls.check(row)?;
        Ok(match &self.data {
            StringData::Utf8 { offsets, bytes } => {
                let [start, end] = [offsets.get(row), offsets.get(row + 1)].map(widened);
                bytes.bytes(checked_range(start, end, bytes.len())?)
            }
            StringData::LargeUtf8 { offsets, bytes } => {
                let [start, end] = [offsets.get(row), offsets.get(row + 1)].map(i64::from_ne_bytes);
                bytes.bytes(checked_range(start, end, bytes.len())?)
            }
            StringData::View { views, buffers } => view_bytes(*views, row, buffers)?,
            StringData::Dictionary { indices, values, n_values } => {
                let index = indices.get(row);
                let found = usize::try_from(index).ok().filter(|index| index < n_values);
                let missing = || Problem::Malformed(format!("it is number {index} of a dictionary of {n_values}"));
                return values.get(found.ok_or_else(missing)?);
            }
            StringData::Null => return Err(Problem::Null),
        })
    }
}

/// Returns the bytes of a view: 32 bits of length, then the string itself if it has up to 12 bytes, else four bytes of
/// prefix, the index of a buffer and the position in it.
fn view_bytes<'a>(views: Items<'a, 16>, row: usize, buffers: &[Items<'a, 1>]) -> Result<Items<'a, 1>, Problem> {
    const MAX_INLINE: i64 = 12;
    let view = views.get(row);
    let number = |at: usize| widened([view[at], view[at + 1], view[at + 2], view[at + 3]]);
    let len = number(0);
    if (0..=MAX_INLINE).contains(&len) {
        return Ok(views.bytes_of(row, 4, len as usize));
    }
    let (index, start) = (number(8), number(12));
    let buffer = usize::try_from(index).ok().and_then(|index| buffers.get(index));
    let missing = || Problem::Malformed(format!("it is in buffer {index} of {}", buffers.len()));
    let buffer = buffer.ok_or_else(missing)?;
    // Both are 32-bit numbers: the sum does not overflow.
    Ok(buffer.bytes(checked_range(start, start + len, buffer.len())?))
}

/// The indices of an array into its dictionary.
struct DictionaryIndices<'a> {
    /// `kind.bytes` bytes for each row.
    bytes: Items<'a, 1>,
    kind: IndexType,
}

impl<'a> DictionaryIndices<'a> {
    fn new(array: ArraySlice<'a>, kind: IndexType) -> Result<DictionaryIndices<'a>, Problem> {
        Ok(DictionaryIndices { bytes: array.indices(kind.bytes)?, kind })
    }

    /// Returns the index of a row. An unsigned 64-bit one above `i64::MAX` becomes negative: no dictionary has it either way.
    fn get(&self, row: usize) -> i64 {
        let width = self.kind.bytes;
        let mut extended = [0; 8];
        let from = if cfg!(target_endian = "big") { 8 - width } else { 0 };
        for (i, byte) in extended[from..from + width].iter_mut().enumerate() {
            [*byte] = self.bytes.get(row * width + i);
        }
        let number = i64::from_ne_bytes(extended);
        let unused_bits = 64 - 8 * width as u32;
        if self.kind.is_signed { number << unused_bits >> unused_bits } else { number }
    }
}
