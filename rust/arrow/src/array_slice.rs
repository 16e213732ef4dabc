//! Rows of an array, and their buffers. No other module follows a buffer pointer.
//!
//! Numbers are read as arrays of bytes, which have no alignment: the specification recommends that buffers are aligned, but
//! does not demand it. They are read as copies ([`Items`]), as someone may write to them.

use std::ops::Range;

use crate::abi::{self, ArrowArray};
use crate::foreign::Items;
use crate::problem::Problem;

/// The rows `start..start + len` of an array, counted from the beginning of its buffers.
///
/// # Invariant
///
/// `len` is at most [`MAX_ROWS`] and `start` at most twice that. The buffers are as long as the array's type, offset and
/// length imply, and only the methods for that type are called: both are the contract of [`ArraySlice::new`].
#[derive(Clone, Copy)]
pub(crate) struct ArraySlice<'a> {
    array: &'a ArrowArray,
    start: usize,
    len: usize,
}

/// The largest offset or length that is accepted. Three times that, times the 16 bytes of the widest item, is less than
/// `isize::MAX`, which bounds every allocation: so the sums and products below do not overflow.
const MAX_ROWS: usize = isize::MAX as usize / 64;

impl<'a> ArraySlice<'a> {
    /// Returns all rows of an array.
    ///
    /// # Errors
    ///
    /// [`Problem::Malformed`] if the length or the offset is negative or above [`MAX_ROWS`].
    ///
    /// # Safety
    ///
    /// The caller reads the array, its children and its dictionary only with the methods of their types. For those types
    /// each buffer that is present has at least the length that the specification prescribes for the offset and length of
    /// its array, and is not freed for `'a`.
    pub(crate) unsafe fn new(array: &'a ArrowArray) -> Result<ArraySlice<'a>, Problem> {
        let checked = |name, value: i64| {
            let number = usize::try_from(value).ok().filter(|&number| number <= MAX_ROWS);
            number.ok_or_else(|| Problem::Malformed(format!("an array has the {name} {value}")))
        };
        Ok(ArraySlice { array, start: checked("offset", array.offset)?, len: checked("length", array.length)? })
    }

    /// Returns the number of rows.
    pub(crate) fn len(self) -> usize {
        self.len
    }

    /// Returns the number of rows in the buffers before the first row of the slice.
    pub(crate) fn start(self) -> usize {
        self.start
    }

    /// Returns all rows of child `index`.
    pub(crate) fn child(self, index: usize) -> Result<ArraySlice<'a>, Problem> {
        // SAFETY: an array obeys the specification (see `abi`): `children` points to `n_children` pointers to arrays owned
        // by this one.
        let child = unsafe { abi::child(self.array.children, self.array.n_children, index) };
        let child = child.ok_or_else(|| Problem::Malformed(format!("an array has no child {index}")))?;
        // SAFETY: the contract of `new` covers children.
        unsafe { ArraySlice::new(child) }
    }

    /// Returns those rows of child `index` that are rows of the slice, where children are the columns of a table.
    pub(crate) fn column(self, index: usize) -> Result<ArraySlice<'a>, Problem> {
        let (child, end) = (self.child(index)?, self.start + self.len);
        if end > child.len {
            return Err(Problem::Malformed(format!("column {index} has {} rows, but {end} are needed", child.len)));
        }
        Ok(ArraySlice { start: child.start + self.start, len: self.len, ..child })
    }

    /// Returns the values of the dictionary that the array's indices refer to.
    pub(crate) fn dictionary(self) -> Result<ArraySlice<'a>, Problem> {
        // SAFETY: by the specification `dictionary` is null or points to an array owned by this one.
        let values = unsafe { abi::structure(self.array.dictionary) };
        let values = values.ok_or_else(|| Problem::malformed("a dictionary has no values"))?;
        // SAFETY: the contract of `new` covers the dictionary.
        unsafe { ArraySlice::new(values) }
    }

    /// Returns the items `range` of a buffer of items of `N` bytes; nothing is read if the range is empty.
    ///
    /// # Errors
    ///
    /// [`Problem::Malformed`] if the buffer is missing or could not exist in one allocation.
    ///
    /// # Safety
    ///
    /// If the array has the buffer, it has at least `range.end` items.
    unsafe fn items<const N: usize>(self, buffer: usize, range: Range<usize>) -> Result<Items<'a, N>, Problem> {
        if range.is_empty() {
            return Ok(Items::EMPTY);
        }
        if range.end > isize::MAX as usize / N {
            return Err(Problem::Malformed(format!("buffer {buffer} would have {} items", range.end)));
        }
        let pointer = self.buffer(buffer);
        if pointer.is_null() {
            return Err(Problem::Malformed(format!("an array of {} rows has no buffer {buffer}", self.len)));
        }
        // SAFETY: the pointer is not null (checked above), and by this function's contract the buffer has `range.end` items,
        // which is at most `isize::MAX` bytes (checked above). By the contract of `new` it is not freed for `'a`.
        Ok(unsafe { Items::new(pointer.cast::<[u8; N]>().add(range.start), range.len()) })
    }

    /// Returns the address of a buffer, or null if the array does not have it.
    fn buffer(self, index: usize) -> *const u8 {
        let array = self.array;
        if array.buffers.is_null() || !usize::try_from(array.n_buffers).is_ok_and(|n| index < n) {
            return std::ptr::null();
        }
        // SAFETY: by the specification `buffers` points to `n_buffers` pointers, and `index` is one of them (checked above);
        // it is read without assuming alignment.
        unsafe { array.buffers.add(index).read_unaligned() }.cast()
    }

    /// Returns the offsets of strings or lists, of `N` bytes each: `len + 1` of them, or none if there are no rows.
    pub(crate) fn offsets<const N: usize>(self) -> Result<Items<'a, N>, Problem> {
        // The specification once allowed the buffer to be absent when there are no rows.
        if self.len == 0 {
            return Ok(Items::EMPTY);
        }
        // SAFETY: a buffer of offsets has one more item than there are rows in the buffers, and the slice ends at or before
        // the last of those rows.
        unsafe { self.items(1, self.start..self.start + self.len + 1) }
    }

    /// Returns the bytes of strings up to the last of their offsets.
    pub(crate) fn string_data(self, last_offset: i64) -> Result<Items<'a, 1>, Problem> {
        // SAFETY: the data buffer reaches at least to each of the offsets.
        unsafe { self.bytes(2, last_offset) }
    }

    /// Returns the views of strings.
    pub(crate) fn views(self) -> Result<Items<'a, 16>, Problem> {
        // SAFETY: the buffer of views has an item for each row in the buffers, and the slice ends at or before the last one.
        unsafe { self.items(1, self.start..self.start + self.len) }
    }

    /// Returns the buffers that views point into.
    pub(crate) fn view_data(self) -> Result<Vec<Items<'a, 1>>, Problem> {
        // All buffers but the validity bitmap, the views, and the last one, which holds the lengths of those between.
        let n = usize::try_from(self.array.n_buffers).unwrap_or(0).saturating_sub(3);
        // SAFETY: the last buffer of an array of views has a 64-bit length for each of the `n` data buffers.
        let lengths = unsafe { self.items::<8>(n + 2, 0..n)? };
        // SAFETY: the length of data buffer `i + 2` is the one that the producer gives for it.
        let data = |i| unsafe { self.bytes(i + 2, i64::from_ne_bytes(lengths.get(i))) };
        (0..n).map(data).collect()
    }

    /// Returns the bytes of the dictionary indices of the rows, `width` bytes each.
    pub(crate) fn indices(self, width: usize) -> Result<Items<'a, 1>, Problem> {
        // SAFETY: the buffer of indices has `width` bytes for each row in the buffers, and the slice ends at or before the
        // last one. The products do not overflow, as `width` is at most 8.
        unsafe { self.items::<1>(1, self.start * width..(self.start + self.len) * width) }
    }

    /// Returns the first `len` bytes of a buffer.
    ///
    /// # Safety
    ///
    /// If the array has the buffer and `len` is positive, the buffer has at least `len` bytes.
    unsafe fn bytes(self, buffer: usize, len: i64) -> Result<Items<'a, 1>, Problem> {
        let len =
            usize::try_from(len).map_err(|_| Problem::Malformed(format!("buffer {buffer} would have {len} bytes")))?;
        // SAFETY: by this function's contract the buffer has `len` items of one byte.
        unsafe { self.items::<1>(buffer, 0..len) }
    }

    /// Returns which rows are null.
    pub(crate) fn null_mask(self) -> Result<NullMask<'a>, Problem> {
        if !self.buffer(0).is_null() {
            // SAFETY: a validity bitmap has a bit for each row in the buffers, and the slice ends at or before the last one.
            let bitmap = unsafe { self.items::<1>(0, 0..(self.start + self.len).div_ceil(8))? };
            return Ok(NullMask { bitmap, start: self.start });
        }
        if self.array.null_count > 0 && self.len > 0 {
            return Err(Problem::malformed("an array has nulls, but does not say which rows they are"));
        }
        Ok(NullMask::NONE)
    }
}

/// The null rows of a slice.
pub(crate) struct NullMask<'a> {
    /// A bit for each row from the beginning of the buffers on, lowest bit first, 0 for null; empty if no row is null.
    bitmap: Items<'a, 1>,
    start: usize,
}

impl NullMask<'_> {
    /// No row is null.
    pub(crate) const NONE: NullMask<'static> = NullMask { bitmap: Items::EMPTY, start: 0 };

    /// Returns [`Problem::Null`] if the row is null.
    pub(crate) fn check(&self, row: usize) -> Result<(), Problem> {
        let bit = self.start + row;
        let is_null = !self.bitmap.is_empty() && self.bitmap.get(bit / 8)[0] >> (bit % 8) & 1 == 0;
        if is_null { Err(Problem::Null) } else { Ok(()) }
    }
}

/// Returns the range between two offsets that were read from a buffer, checked to lie within `0..len`.
pub(crate) fn checked_range(start: i64, end: i64, len: usize) -> Result<Range<usize>, Problem> {
    match (usize::try_from(start), usize::try_from(end)) {
        (Ok(start), Ok(end)) if start <= end && end <= len => Ok(start..end),
        _ => Err(Problem::Malformed(format!("it runs from {start} to {end} in a buffer of length {len}"))),
    }
}

/// Returns a 32-bit offset as a 64-bit one.
pub(crate) fn widened(offset: [u8; 4]) -> i64 {
    i32::from_ne_bytes(offset).into()
}
