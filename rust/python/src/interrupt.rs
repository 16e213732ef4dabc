//! Work without the interpreter that still obeys Ctrl-C.

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use wordpiece_parallel::interruptible;

/// Runs `work` with the interpreter released; every 20 ms, signal handlers run on the calling thread.
///
/// Python runs handlers on the main thread only; calls from other threads are not interrupted. A call of less than 20 ms
/// pays nothing but a reading of the clock. When the interpreter shuts down while a daemon thread is here, its work ends:
/// nobody is left to receive the result.
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
    let done = py.detach(|| interruptible(&mut go_on, work));
    done.map_err(|_| raised.unwrap_or_else(|| PyKeyboardInterrupt::new_err(())))
}
