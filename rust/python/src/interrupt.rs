//! Work without the interpreter that still obeys Ctrl-C.
//!
//! # NumPy's memory
//!
//! Work reads and writes slices of NumPy arrays that were borrowed before. What holds meanwhile, and what does not:
//!
//! - The memory stays where it is: the borrow holds a reference to the array, and NumPy neither frees nor resizes an array
//!   that others refer to, unless its `resize` is called with refcheck=False. Whoever does that while a call runs frees what the
//!   call reads, as with any function of NumPy that releases the interpreter. The length and the layout were checked
//!   when it was borrowed, and the slice has them.
//! - No other extension that uses the `numpy` crate borrows an array that overlaps, if one of the two borrows is for writing.
//! - Nothing keeps Python code on another thread, or another process that maps the same file, from writing to an array that
//!   is read here. By Rust's rules that is a data race. No check of ours can exclude it, as with any function of NumPy
//!   that releases the interpreter. So the guide asks callers not to. Nothing here goes unchecked because of a number
//!   that was read from an array: the kernels index with bounds checks, so what such a write can be expected to cause
//!   is wrong numbers or an `InternalError`.
//!
//! Strings are not affected: a `str` never changes, and texts of NumPy arrays are copied before they are looked at.

use std::process;

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::ffi;
use pyo3::prelude::*;
use wordpiece_parallel::interruptible;

use crate::error;

/// Runs `work` with the interpreter released; every 20 ms, signal handlers run on the calling thread.
///
/// Python runs handlers on the main thread only; calls from other threads are not interrupted. A call of less than 20 ms
/// pays nothing but a reading of the clock. When the interpreter shuts down while a daemon thread is here, its work
/// ends, and so does the work of the threads that help it: nobody is left to receive the result.
///
/// # Errors
///
/// What a handler raised, such as KeyboardInterrupt; the work is then dropped. InputError in a process that a handler forked, if
/// other threads helped.
pub fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    let mut stopped = None;
    let mut go_on = || {
        // `None` when the interpreter is shutting down, which `Python::attach` would answer with a panic.
        stopped = match Python::try_attach(|py| py.check_signals()) {
            Some(Ok(())) => return true,
            Some(Err(error)) => Some(error),
            None => Some(PyKeyboardInterrupt::new_err(())),
        };
        false
    };
    let done = py.detach(|| interruptible(interpreter_lives, &mut go_on, work));
    // Also where the work had reached its end by then: the handler has run, and what it raised would be lost.
    stopped.map_or_else(|| done.map_err(|_| forked()), Err)
}

/// Returns the exception for a process that a signal handler has forked during a call that other threads helped with.
fn forked() -> PyErr {
    error::input(
        "a signal handler has forked this process during a call with several threads, which do not exist in it: make the \
         call again"
            .to_owned(),
    )
}

/// Ends a process that a signal handler has forked from the process `of`, where other threads would be waited for without end.
///
/// Of a training of vocabularies, threads live as long as the call, and there is no way out of it without them.
pub fn end_if_forked(py: Python<'_>, of: u32) {
    if process::id() != of {
        eprintln!(
            "wordpiece_bert: a process that a signal handler forks during a training of a vocabulary cannot go on"
        );
        // It does not return; if it cannot even be called, the process would have waited.
        let _ = py.import("os").and_then(|os| os.call_method1("_exit", (FORKED_STATUS,)));
    }
}

/// The exit status of a process that cannot go on: an internal software error, in sysexits.h.
const FORKED_STATUS: i32 = 70;

/// Returns whether the interpreter still runs Python.
///
/// The threads that help a caller ask. The caller itself may be waiting for the interpreter when it shuts down: then it never
/// gets it. Before Python 3.14 the thread ends there; since then it sleeps.
fn interpreter_lives() -> bool {
    // SAFETY: may be called on any thread at any time. It reads a flag that is cleared when shutting down begins.
    unsafe { ffi::Py_IsInitialized() != 0 }
}
