//! The one place that names Python exceptions: core error → class of `wordpiece_bert.errors`.

use std::panic::{AssertUnwindSafe, catch_unwind};

use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use wordpiece::{Error, ErrorKind};

mod classes {
    pyo3::import_exception!(wordpiece_bert.errors, InputError);
    pyo3::import_exception!(wordpiece_bert.errors, InternalError);
    pyo3::import_exception!(wordpiece_bert.errors, TokenizerFormatError);
    pyo3::import_exception!(wordpiece_bert.errors, TrainingError);
    pyo3::import_exception!(wordpiece_bert.errors, VocabError);
}

/// The exception for an error of the core.
pub fn to_py(error: Error) -> PyErr {
    if let Error::FileUnreadable { file, code: Some(code), message } = error {
        // With the number OSError becomes the class that people catch: FileNotFoundError, PermissionError, …
        return PyOSError::new_err((code, message, file));
    }
    let message = error.to_string();
    match error.kind() {
        ErrorKind::Vocab => classes::VocabError::new_err(message),
        ErrorKind::Format => classes::TokenizerFormatError::new_err(message),
        ErrorKind::Input | ErrorKind::File => classes::InputError::new_err(message),
        ErrorKind::Training => classes::TrainingError::new_err(message),
    }
}

/// The exception for an argument that cannot be used.
pub fn input(message: String) -> PyErr {
    classes::InputError::new_err(message)
}

/// Runs what does the work of a call. A panic in it is a bug of this package and becomes an `InternalError`, which people
/// can catch; PyO3 would make a `PanicException` of it, which is no `Exception`.
pub fn guarded<T>(work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    // Nothing that a panic leaves half-done outlives it: a tokenizer never changes, and the core throws away the scratch
    // space of a thread that panics.
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let said = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        Err(classes::InternalError::new_err(format!(
            "a bug in wordpiece_bert, please report it with what you called: {}",
            said.unwrap_or("panic without a message")
        )))
    })
}

/// Panics while the interpreter is released: lets the tests see what becomes of that.
#[pyfunction]
pub fn _panic(py: Python<'_>, message: String) -> PyResult<()> {
    guarded(|| py.detach(|| panic!("{message}")))
}
