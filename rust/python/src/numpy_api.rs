//! NumPy's C API, fetched before the first call that makes or takes an array.
//!
//! The numpy crate fetches it in the first call that needs it, and panics if the Python code that it runs there raises, as
//! Ctrl-C does. So each call that may be the first one calls [`ready`] before: those that can be reached without an array
//! themselves, and for all others the module, when one of its names is used that is in `_arrays`.

use std::panic::catch_unwind;
use std::sync::atomic::{AtomicBool, Ordering};

use numpy::{PyArray1, PyArrayMethods};
use pyo3::exceptions::{PyAttributeError, PyImportError, PyKeyboardInterrupt};
use pyo3::prelude::*;
use pyo3::types::PyString;

/// Whether the API has been fetched. A forked child has it, too: it has the memory of its parent.
static FETCHED: AtomicBool = AtomicBool::new(false);

/// Imports NumPy and fetches its C API, unless that has been done.
///
/// # Errors
///
/// MissingPackageError if NumPy cannot be imported or used; what a signal handler raises. A later call tries again.
pub fn ready(py: Python<'_>) -> PyResult<()> {
    if FETCHED.load(Ordering::Acquire) {
        return Ok(());
    }
    // In Python, which has a lock for it that a fork waits for.
    let load = py.import("wordpiece_bert._internal.lazy")?.getattr("load_numpy")?;
    load.call1((wrap_pyfunction!(fetch, py)?,)).map(drop)
}

/// Fetches NumPy's C API and the API of its borrow checker, when NumPy has been imported.
#[pyfunction]
fn fetch() -> PyResult<()> {
    catch_unwind(|| Python::attach(|py| drop(PyArray1::<u8>::zeros(py, 0, false).readonly()))).map_err(|panic| {
        match crate::error::panic_message(panic) {
            message if message.contains("KeyboardInterrupt") => PyKeyboardInterrupt::new_err(()),
            message => PyImportError::new_err(format!("NumPy's C API cannot be used: {message}")),
        }
    })?;
    FETCHED.store(true, Ordering::Release);
    Ok(())
}

/// Returns a class or a function whose calls make or take arrays, for a name that the module does not have yet.
#[pyfunction]
#[pyo3(pass_module)]
pub fn __getattr__<'py>(module: &Bound<'py, PyModule>, name: &Bound<'py, PyString>) -> PyResult<Bound<'py, PyAny>> {
    let arrays = module.dict().get_item("_arrays")?.expect("the module has it").cast_into::<PyModule>()?;
    let Some(value) = arrays.dict().get_item(name)? else {
        return Err(PyAttributeError::new_err(format!("module '{}' has no attribute '{name}'", module.name()?)));
    };
    ready(module.py())?;
    module.setattr(name, &value)?;
    Ok(value)
}
