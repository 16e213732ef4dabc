//! The three structures of the Arrow C data and C stream interfaces, and their ownership.
//!
//! The [specification](https://arrow.apache.org/docs/format/CDataInterface.html) fixes their layout to the byte and asks
//! for it to be copied rather than depended on. Whoever holds a structure whose `release` is set owns it and has to call
//! `release` exactly once, which [`Drop`] does. Ownership is handed over by copying the bytes and clearing `release` in
//! the original structure.
//!
//! The fields are private to this crate: outside of it, a value comes from [`CStructure::take`], whose contract says that
//! it obeys the specification, or from [`crate::export`]. That makes it sound for `Drop` to call `release`, and for the
//! readers to follow the pointers to children and names. The *lengths* of buffers depend on the type and are the contract
//! of [`crate::TextColumn::new`].

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;

/// A data type, and the name of the column that has it.
#[repr(C)]
pub struct ArrowSchema {
    /// The type as a format string; null only in an invalid or released structure.
    pub(crate) format: *const c_char,
    /// The column's name, which may be null.
    pub(crate) name: *const c_char,
    /// Key-value pairs in a binary form, which this crate neither reads nor writes.
    pub(crate) metadata: *const c_char,
    /// A bit set; 2 means "nullable".
    pub(crate) flags: i64,
    pub(crate) n_children: i64,
    pub(crate) children: *mut *mut ArrowSchema,
    /// The type of the dictionary's values, if `format` is the type of indices into one.
    pub(crate) dictionary: *mut ArrowSchema,
    pub(crate) release: Option<unsafe extern "C" fn(*mut ArrowSchema)>,
    pub(crate) private_data: *mut c_void,
}

/// The buffers of a column or of one chunk of it.
#[repr(C)]
pub struct ArrowArray {
    /// The number of rows.
    pub(crate) length: i64,
    /// The number of null rows; −1 if it has not been counted.
    pub(crate) null_count: i64,
    /// The number of rows in the buffers before the first row of the array.
    pub(crate) offset: i64,
    pub(crate) n_buffers: i64,
    pub(crate) n_children: i64,
    pub(crate) buffers: *mut *const c_void,
    pub(crate) children: *mut *mut ArrowArray,
    /// The values of the dictionary, if the buffers hold indices into one.
    pub(crate) dictionary: *mut ArrowArray,
    pub(crate) release: Option<unsafe extern "C" fn(*mut ArrowArray)>,
    pub(crate) private_data: *mut c_void,
}

/// A sequence of arrays of one type, produced on request.
#[repr(C)]
pub struct ArrowArrayStream {
    pub(crate) get_schema: Option<unsafe extern "C" fn(*mut ArrowArrayStream, *mut ArrowSchema) -> c_int>,
    pub(crate) get_next: Option<unsafe extern "C" fn(*mut ArrowArrayStream, *mut ArrowArray) -> c_int>,
    pub(crate) get_last_error: Option<unsafe extern "C" fn(*mut ArrowArrayStream) -> *const c_char>,
    pub(crate) release: Option<unsafe extern "C" fn(*mut ArrowArrayStream)>,
    pub(crate) private_data: *mut c_void,
}

mod sealed {
    /// Implemented for the three structures and for nothing else: code that moves a structure out of a capsule with the name
    /// of its type relies on that.
    pub trait Sealed {}
}

/// The operations that the three structures have in common. No other type can have them.
pub trait CStructure: sealed::Sealed + Sized + Send + 'static {
    /// The name of the Python capsules that hold this structure, as Arrow's PyCapsule interface prescribes it.
    const CAPSULE_NAME: &'static CStr;

    /// Returns a released structure: one that owns nothing.
    fn released() -> Self;

    /// Whether the structure owns nothing, because it never did or because it was handed over or released.
    fn is_released(&self) -> bool;

    /// Moves the structure out of `source` and leaves a released one there. The result may be a released one, too.
    ///
    /// # Safety
    ///
    /// `source` is aligned and points to a structure of this type that obeys the specification: unless it is released, its
    /// counts and pointers are valid for the layout given here, `release` may be called with it once from any thread, and
    /// nobody writes to what it points to before that call. No other thread accesses `source` during the call.
    unsafe fn take(source: *mut Self) -> Self {
        // SAFETY: by this function's contract `source` is aligned, initialised and not accessed by anyone else.
        unsafe { ptr::replace(source, Self::released()) }
    }
}

macro_rules! c_structure {
    ($structure:ty, $capsule_name:literal) => {
        impl sealed::Sealed for $structure {}

        impl CStructure for $structure {
            const CAPSULE_NAME: &'static CStr = $capsule_name;

            fn released() -> Self {
                // SAFETY: every field is an integer, a raw pointer or an optional function pointer, and all of them may
                // be zero.
                unsafe { std::mem::zeroed() }
            }

            fn is_released(&self) -> bool {
                self.release.is_none()
            }
        }

        impl Drop for $structure {
            fn drop(&mut self) {
                if let Some(release) = self.release {
                    // SAFETY: a structure that is not released came from `take` or `export`. Both guarantee that
                    // `release` may be called with it once. `drop` runs once, and handing over clears `release`.
                    unsafe { release(self) };
                }
            }
        }

        // SAFETY: the specification lets the owner use and release a structure on any thread.
        unsafe impl Send for $structure {}
    };
}

c_structure!(ArrowSchema, c"arrow_schema");
c_structure!(ArrowArray, c"arrow_array");
c_structure!(ArrowArrayStream, c"arrow_array_stream");

// SAFETY: through a shared reference this crate only reads an array and what it points to, and by the specification nobody
// writes there before `release`, which needs ownership.
unsafe impl Sync for ArrowArray {}

/// Returns the C string at `pointer`, or `None` if `pointer` is null or the string is not UTF-8.
///
/// # Safety
///
/// Unless it is null, `pointer` points to a string that ends with a zero byte and lives, unchanged, for `'a`.
pub(crate) unsafe fn text<'a>(pointer: *const c_char) -> Option<&'a str> {
    if pointer.is_null() {
        return None;
    }
    // SAFETY: `pointer` is not null, so by this function's contract it points to a C string that lives for `'a`.
    unsafe { CStr::from_ptr(pointer) }.to_str().ok()
}

/// Returns the structure at `pointer`, or `None` if `pointer` is null or misaligned, or the structure was released: what a
/// released one points to belongs to someone else or to nobody.
///
/// # Safety
///
/// If it is neither null nor misaligned, `pointer` points to a structure that lives, unchanged, for `'a`.
pub(crate) unsafe fn structure<'a, T: CStructure>(pointer: *const T) -> Option<&'a T> {
    // SAFETY: `pointer` is aligned (checked here) and `as_ref` checks for null; the rest is this function's contract.
    let structure = if pointer.is_aligned() { unsafe { pointer.as_ref() } } else { None };
    structure.filter(|structure| !structure.is_released())
}

/// Returns child `index` of a structure with `n_children` children, or `None` if there is no such child, its pointer is null
/// or misaligned, or it was released.
///
/// # Safety
///
/// Unless it is null, `children` points to `n_children` pointers (at any alignment), each as [`structure`] demands.
pub(crate) unsafe fn child<'a, T: CStructure>(children: *mut *mut T, n_children: i64, index: usize) -> Option<&'a T> {
    if children.is_null() || !usize::try_from(n_children).is_ok_and(|n| index < n) {
        return None;
    }
    // SAFETY: `children` is not null and `index < n_children` (both checked above), so by this function's contract there is
    // a pointer at `index`; it is read without assuming alignment.
    unsafe { structure(children.add(index).read_unaligned()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::Field;

    #[test]
    fn taking_a_structure_leaves_a_released_one() {
        let mut schema = Field::new("u", "text").schema();
        // SAFETY: `schema` was made by `export` and is accessed by this test only.
        let taken = unsafe { ArrowSchema::take(&mut schema) };
        assert!(schema.is_released() && !taken.is_released());
        // SAFETY: as above; a released structure is a valid one.
        assert!(unsafe { ArrowSchema::take(&mut schema) }.is_released());
    }

    #[test]
    fn children_that_are_missing_null_misaligned_or_released_are_none() {
        let (mut schema, mut released) = (Field::new("u", "text").schema(), ArrowSchema::released());
        let aligned: *mut ArrowSchema = &mut schema;
        let mut children = [ptr::null_mut(), aligned.wrapping_byte_add(1), aligned, &mut released];
        let pointer = children.as_mut_ptr();
        // SAFETY: `pointer` points to four pointers: null, misaligned, to `schema` and to `released`, which outlive the
        // references.
        let exists = |n, index| unsafe { child(pointer, n, index) }.is_some();
        assert_eq!([0, 1, 2, 3, 4].map(|index| exists(4, index)), [false, false, true, false, false]);
        assert!(!exists(-1, 2) && !exists(2, 2) && !exists(i64::MIN, 0));
        // SAFETY: a null pointer has no children.
        assert!(unsafe { child::<ArrowSchema>(ptr::null_mut(), 1, 0) }.is_none());
    }
}
