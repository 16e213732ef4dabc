//! Work without the interpreter that still obeys Ctrl-C.
//!
//! # NumPy's memory
//!
//! Work reads and writes slices of NumPy arrays that were borrowed before. What holds meanwhile, and what does not:
//!
//! - The memory stays where it is: the borrow holds a reference to the array, and NumPy neither frees nor resizes an array
//!   that others refer to, unless its `resize` is called with refcheck=False. Whoever does that while a call runs frees what the
//!   call reads, as with any function of NumPy that releases the interpreter. The length and the layout were checked when it
//!   was borrowed, and are those of the slice.
//! - No other extension that uses the `numpy` crate borrows an array that overlaps, if one of the two borrows is for writing.
//! - Nothing keeps Python code on another thread, or another process that maps the same file, from writing to an array that
//!   is read here. By Rust's rules that is a data race, which no check of ours can exclude, as with any function of NumPy that
//!   releases the interpreter. So the guide asks callers not to. Nothing here goes unchecked because of a number that was read
//!   from an array: the kernels index with bounds checks, so what such a write can be expected to cause is wrong numbers or
//!   an `InternalError`.
//!
//! Strings are not affected: a `str` never changes, and texts of NumPy arrays are copied before they are looked at.

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::ffi;
use pyo3::prelude::*;
use wordpiece_parallel::interruptible;

/// Runs `work` with the interpreter released; every 20 ms, signal handlers run on the calling thread.
///
/// Python runs handlers on the main thread only; calls from other threads are not interrupted. A call of less than 20 ms
/// pays nothing but a reading of the clock. When the interpreter shuts down while a daemon thread is here, its work ends,
/// and that of the threads that help it: nobody is left to receive the result.
///
/// # Errors
///
/// What a handler raised, such as KeyboardInterrupt; the work is then dropped.
pub fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    let mut raised = None;
    let mut go_on = || {
        // `None` when the interpreter is shutting down, which `Python::attach` would answer with a panic.
        match Python::try_attach(|py| py.check_signals()) {
            Some(Ok(())) => return true,
            Some(Err(error)) => raised = Some(error),
            None => (),
        }
        false
    };
    let done = py.detach(|| interruptible(interpreter_lives, &mut go_on, work));
    done.map_err(|_| raised.unwrap_or_else(|| PyKeyboardInterrupt::new_err(())))
}

/// Returns whether the interpreter still runs Python.
///
/// The threads that help a caller ask. The caller itself may be waiting for the interpreter when it shuts down: then it never
/// gets it. Before Python 3.14 the thread ends there; since then it sleeps.
fn interpreter_lives() -> bool {
    // SAFETY: may be called on any thread at any time. It reads a flag that is cleared when shutting down begins.
    unsafe { ffi::Py_IsInitialized() != 0 }
}
