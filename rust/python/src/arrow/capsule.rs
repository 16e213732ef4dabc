//! Structures of the Arrow C interface in and out of Python capsules.

use pyo3::prelude::*;
use pyo3::sync::critical_section::with_critical_section;
use pyo3::types::{PyCapsule, PyCapsuleMethods};
use wordpiece_arrow::CStructure;

/// Moves the structure out of a capsule and leaves a released one there.
///
/// # Errors
///
/// The problem with the capsule, as a sentence: it is another object, has another name, or is empty.
pub fn take<T: CStructure>(capsule: &Bound<'_, PyAny>) -> Result<T, String> {
    let expected = T::CAPSULE_NAME.to_string_lossy();
    let Ok(capsule) = capsule.cast::<PyCapsule>() else {
        let kind = capsule.get_type();
        return Err(format!("a capsule {expected:?} was expected, not an object of {kind}"));
    };
    let Ok(pointer) = capsule.pointer_checked(Some(T::CAPSULE_NAME)) else {
        return Err(format!("a capsule {expected:?} was expected, not one with another name"));
    };
    let pointer = pointer.cast::<T>();
    if !pointer.is_aligned() {
        return Err(format!("the capsule {expected:?} does not point to such a structure"));
    }
    // Two threads may be given the same capsule. With the GIL one of them comes first; without it, the capsule's lock
    // decides.
    let taken = with_critical_section(capsule, || {
        // SAFETY: the interface demands that a capsule of this name (checked above) points to such a structure, which
        // obeys the specification and belongs to whoever takes it. The pointer is aligned (checked above). Other calls
        // of this function wait for the critical section.
        unsafe { T::take(pointer.as_ptr()) }
    });
    if taken.is_released() {
        return Err(format!("the capsule {expected:?} is empty: its content was released or has been taken before"));
    }
    Ok(taken)
}

/// Returns a new capsule that owns a structure.
pub fn new<T: CStructure>(py: Python<'_>, structure: T) -> PyResult<Bound<'_, PyCapsule>> {
    PyCapsule::new_with_value(py, structure, T::CAPSULE_NAME)
}
