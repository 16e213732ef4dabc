//! The three structures of the Arrow C data and stream interfaces, and how they change hands.
//!
//! The specification (<https://arrow.apache.org/docs/format/CDataInterface.html>) fixes them to the byte and wants them
//! copied rather than depended on. Who holds one that has a `release` owns it; it is passed on by copying its bytes and
//! taking away the `release` of what stays behind.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;

use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyCapsuleMethods};

/// A type, with the name of the column that has it.
#[repr(C)]
pub struct Schema {
    pub format: *const c_char,
    pub name: *const c_char,
    pub metadata: *const c_char,
    pub flags: i64,
    pub n_children: i64,
    pub children: *mut *mut Schema,
    pub dictionary: *mut Schema,
    pub release: Option<unsafe extern "C" fn(*mut Schema)>,
    pub private_data: *mut c_void,
}

/// The buffers of a column, or of a part of one.
#[repr(C)]
pub struct Array {
    pub length: i64,
    pub null_count: i64,
    pub offset: i64,
    pub n_buffers: i64,
    pub n_children: i64,
    pub buffers: *mut *const c_void,
    pub children: *mut *mut Array,
    pub dictionary: *mut Array,
    pub release: Option<unsafe extern "C" fn(*mut Array)>,
    pub private_data: *mut c_void,
}

/// Arrays of one type, one after the other.
#[repr(C)]
pub struct Stream {
    pub get_schema: Option<unsafe extern "C" fn(*mut Stream, *mut Schema) -> c_int>,
    pub get_next: Option<unsafe extern "C" fn(*mut Stream, *mut Array) -> c_int>,
    pub get_last_error: Option<unsafe extern "C" fn(*mut Stream) -> *const c_char>,
    pub release: Option<unsafe extern "C" fn(*mut Stream)>,
    pub private_data: *mut c_void,
}

/// What all three have in common.
pub trait Structure: Sized + 'static {
    /// The name of a capsule with one.
    const CAPSULE: &'static CStr;

    /// One that owns nothing: zeros throughout, which every field of the three may be.
    fn empty() -> Self {
        // SAFETY: the fields are numbers, pointers and functions that may be missing; zero is a value of each.
        unsafe { std::mem::zeroed() }
    }

    /// Whether it owns nothing, or nothing any more.
    fn is_released(&self) -> bool;
}

macro_rules! structure {
    ($kind:ty, $capsule:literal) => {
        impl Structure for $kind {
            const CAPSULE: &'static CStr = $capsule;

            fn is_released(&self) -> bool {
                self.release.is_none()
            }
        }

        impl Drop for $kind {
            fn drop(&mut self) {
                if let Some(release) = self.release {
                    // SAFETY: who made the structure asks for this call with this argument, once.
                    unsafe { release(self) };
                }
            }
        }

        // SAFETY: the specification lets the owner use and release a structure from any thread.
        unsafe impl Send for $kind {}
    };
}

structure!(Schema, c"arrow_schema");
structure!(Array, c"arrow_array");
structure!(Stream, c"arrow_array_stream");

// SAFETY: of an array that stays where it is nothing is written but by its release, for which the owner must be alone.
unsafe impl Sync for Array {}

/// Takes the structure out of a capsule; the text says what is wrong with the capsule.
pub fn take<T: Structure>(capsule: &Bound<'_, PyAny>) -> Result<T, String> {
    let expected = T::CAPSULE.to_string_lossy();
    let Ok(capsule) = capsule.cast::<PyCapsule>() else {
        let kind = capsule.get_type();
        return Err(format!("a capsule {expected:?} was expected, not an object of {kind}"));
    };
    let Ok(pointer) = capsule.pointer_checked(Some(T::CAPSULE)) else {
        return Err(format!("a capsule {expected:?} was expected, not one with another name"));
    };
    let pointer = pointer.cast::<T>();
    if !pointer.is_aligned() {
        return Err(format!("the capsule {expected:?} does not point to such a structure"));
    }
    // SAFETY: a capsule of this name holds such a structure, which is whoever's takes it.
    let taken = unsafe { ptr::replace(pointer.as_ptr(), T::empty()) };
    if taken.is_released() {
        return Err(format!("the capsule {expected:?} is empty: what it held was released, or taken before"));
    }
    Ok(taken)
}

/// A text of C; `None` where there is none, or none in UTF-8.
///
/// # Safety
///
/// A pointer that is not null points to a text that ends with a zero and lives for `'a`.
pub unsafe fn text<'a>(pointer: *const c_char) -> Option<&'a str> {
    // SAFETY: by contract.
    (!pointer.is_null()).then(|| unsafe { CStr::from_ptr(pointer) })?.to_str().ok()
}

/// A child of a structure, where there is such a one.
///
/// # Safety
///
/// Where `children` is not null it points to `n` pointers, each null or one to a structure that lives for `'a`.
pub unsafe fn child<'a, T>(children: *mut *mut T, n: i64, index: usize) -> Option<&'a T> {
    let there = !children.is_null() && usize::try_from(n).is_ok_and(|n| index < n);
    // SAFETY: by contract.
    if there { unsafe { children.add(index).read_unaligned().as_ref() } } else { None }
}
