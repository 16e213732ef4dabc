//! Work without the interpreter that still obeys Ctrl-C.

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use wordpiece_parallel::interruptible;

/// Runs `work` with the interpreter released; every 20 ms, signal handlers run on the calling thread.
///
/// Python runs handlers on the main thread only; calls from other threads are not interrupted. A call of less than 20 ms
/// pays nothing but a reading of the clock.
///
/// # Errors
///
/// What a handler raised, such as KeyboardInterrupt; the work is then dropped.
pub fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    let mut raised = None;
    let mut go_on = || {
        raised = Python::attach(|py| py.check_signals().err());
        raised.is_none()
    };
    let done = py.detach(|| interruptible(&mut go_on, work));
    done.map_err(|_| raised.unwrap_or_else(|| PyKeyboardInterrupt::new_err(())))
}
