//! The lists of an array, and texts that are lists of words.

use std::ops::Range;

use crate::array_slice::{ArraySlice, NullMask, checked_range, widened};
use crate::column_type::ListLayout;
use crate::foreign::Items;
use crate::problem::Problem;
use crate::rows::RowText;
use crate::strings::StringArray;

/// The lists of an array: which items of its child belong to each row.
pub(crate) struct ListArray<'a> {
    nulls: NullMask<'a>,
    bounds: ListBounds<'a>,
    /// The number of items of all lists together.
    n_items: usize,
}

enum ListBounds<'a> {
    Small(Items<'a, 4>),
    Large(Items<'a, 8>),
    /// `start` rows precede the first one in the child.
    FixedSize {
        start: usize,
        size: usize,
    },
}

impl<'a> ListArray<'a> {
    /// Opens the lists of an array and returns them and its items.
    pub(crate) fn new(array: ArraySlice<'a>, layout: ListLayout) -> Result<(ListArray<'a>, ArraySlice<'a>), Problem> {
        let items = array.child(0)?;
        let bounds = match layout {
            ListLayout::Small => ListBounds::Small(array.offsets()?),
            ListLayout::Large => ListBounds::Large(array.offsets()?),
            ListLayout::FixedSize(size) => ListBounds::FixedSize { start: array.start(), size },
        };
        Ok((ListArray { nulls: array.null_mask()?, bounds, n_items: items.len() }, items))
    }

    /// Returns which items belong to a row, which must be below the array's length. The range lies within the items.
    pub(crate) fn get(&self, row: usize) -> Result<Range<usize>, Problem> {
        self.nulls.check(row)?;
        match self.bounds {
            ListBounds::Small(offsets) => {
                let [start, end] = [offsets.get(row), offsets.get(row + 1)].map(widened);
                checked_range(start, end, self.n_items)
            }
            ListBounds::Large(offsets) => {
                let [start, end] = [offsets.get(row), offsets.get(row + 1)].map(i64::from_ne_bytes);
                checked_range(start, end, self.n_items)
            }
            ListBounds::FixedSize { start, size } => {
                let first = (start + row).checked_mul(size);
                let end = first.and_then(|first| first.checked_add(size)).filter(|&end| end <= self.n_items);
                let missing = || Problem::Malformed(format!("lists of {size} have only {} items", self.n_items));
                end.map(|end| end - size..end).ok_or_else(missing)
            }
        }
    }
}

/// The texts of an array: strings, or lists of words.
pub(crate) enum TextArray<'a> {
    Strings(StringArray<'a>),
    Words(ListArray<'a>, StringArray<'a>),
}

impl<'a> TextArray<'a> {
    /// Returns the text of a row, which must be below the array's length.
    ///
    /// # Errors
    ///
    /// A problem and, if it concerns one word of a list, the index of that word.
    pub(crate) fn get(&self, row: usize) -> Result<RowText<'a>, (Option<usize>, Problem)> {
        match self {
            TextArray::Strings(strings) => strings.get(row).map(RowText::Raw).map_err(|problem| (None, problem)),
            TextArray::Words(lists, words) => {
                let range = lists.get(row).map_err(|problem| (None, problem))?;
                let word = |(i, item)| words.get(item).map_err(|problem| (Some(i), problem));
                range.enumerate().map(word).collect::<Result<_, _>>().map(RowText::Words)
            }
        }
    }
}
