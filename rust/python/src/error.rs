//! From core errors to the exceptions of `wordpiece_bert.errors`; the only module that names Python exception classes.
//!
//! The core words its errors without knowing the caller's language. Where the remedy is an argument of a Python function,
//! [`python_remedy`] replaces the core's.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use wordpiece::files::TextProblem;
use wordpiece::train::TrainingError;
use wordpiece::{Error, ErrorKind};

use crate::location::Location;

mod classes {
    pyo3::import_exception!(wordpiece_bert.errors, InputError);
    pyo3::import_exception!(wordpiece_bert.errors, InternalError);
    pyo3::import_exception!(wordpiece_bert.errors, TokenizerFormatError);
    pyo3::import_exception!(wordpiece_bert.errors, TrainingError);
    pyo3::import_exception!(wordpiece_bert.errors, VocabError);
}

/// Returns the exception for an error of the core.
///
/// A file that the operating system refuses becomes an `OSError` with its number, which Python turns into
/// `FileNotFoundError`, `PermissionError` and so on.
pub fn to_py(error: Error) -> PyErr {
    if let Error::FileUnreadable { file, code: Some(code), message } = error {
        return PyOSError::new_err((code, valid(message), valid(file)));
    }
    if let Error::AtIndex { index, error } = &error
        && let Error::InputNotUtf8 { is_second, word, valid_up_to } = **error
    {
        return input(not_utf8(Location::of_input(*index, is_second, word), valid_up_to));
    }
    let message = valid(match python_remedy(error.innermost()) {
        Some(remedy) => format!("{}; {remedy}", error.problem()),
        None => error.to_string(),
    });
    match error.kind() {
        ErrorKind::Vocab => classes::VocabError::new_err(message),
        ErrorKind::Format => classes::TokenizerFormatError::new_err(message),
        ErrorKind::Input | ErrorKind::File => classes::InputError::new_err(message),
        ErrorKind::Training => classes::TrainingError::new_err(message),
    }
}

/// Returns what to write in Python to avoid an error, where that is an argument; else `None`, and the core's remedy holds.
fn python_remedy(error: &Error) -> Option<String> {
    let remedy = match error {
        Error::MissingUnk { marked_token: None, .. } => "add it, or name the right one with unk_token=",
        Error::EmptyAddedToken { .. } => "use normalized=False",
        Error::MaxLengthBelowSpecials { added, .. } => {
            return Some(format!("pass max_length of at least {added}, or add_special_tokens=False"));
        }
        Error::SequenceTooShort { .. } => "use truncation=\"longest_first\"",
        Error::SecondSequenceNotProvided => "pass a pair, or use truncation=\"longest_first\"",
        Error::ZeroMultiple => "pass a positive number, or None",
        Error::OutOfMemory { .. } => "encode fewer texts at a time, or pass truncation=True with a smaller max_length",
        Error::UnknownId { .. } => "strict=False skips such ids",
        Error::EmptySeparator => "separator=None reads each file as one text",
        Error::BadText { problem, .. } | Error::BadRow { problem, .. } => match problem {
            TextProblem::NotUtf8 { .. } => "convert it to UTF-8 first, or pass errors=\"replace\"",
            TextProblem::LoneSurrogate { .. } => "errors=\"replace\" reads it all the same",
            TextProblem::Null => "errors=\"skip\" omits it",
            _ => return None,
        },
        Error::Training(error) => match error {
            TrainingError::NotUtf8 { .. } => "convert it to UTF-8, or pass errors=\"replace\" or errors=\"skip\"",
            TrainingError::TooManySymbols => "drop the rarest with max_distinct_words=",
            TrainingError::SizeOfBase { .. } => {
                "ask for more than that, or fill its unused slots with fill_unused=True"
            }
            TrainingError::NoUnusedSlot => "pass a larger vocab_size instead of fill_unused=True",
            TrainingError::ZeroThreshold => "pass thresholds of at least 1, or None",
            _ => return None,
        },
        _ => return None,
    };
    Some(remedy.to_owned())
}

/// Returns the exception for an argument that cannot be used.
pub fn input(message: String) -> PyErr {
    classes::InputError::new_err(valid(message))
}

/// Returns the message for a string of a column that is not UTF-8.
pub fn not_utf8(at: Location, valid_up_to: usize) -> String {
    format!("{at} is not valid UTF-8 from byte {valid_up_to} on: repair the column")
}

/// Returns a message that a `str` can be made of, whatever a mistake in unsafe code has put into it.
///
/// PyO3 makes the `str` when the exception is raised, outside of [`guarded`]: if that fails, the process aborts.
pub fn valid(message: String) -> String {
    String::from_utf8(message.into_bytes())
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// Returns the message of a panic.
pub fn panic_message(panic: Box<dyn Any + Send>) -> String {
    match panic.downcast::<String>() {
        Ok(message) => valid(*message),
        Err(panic) => {
            let message = panic.downcast_ref::<&str>().copied().unwrap_or("panic without a message");
            String::from_utf8_lossy(message.as_bytes()).into_owned()
        }
    }
}

/// Runs the work of a call and turns a panic, which is a bug of this package, into an `InternalError`.
///
/// PyO3 would raise a `PanicException`, which is not an `Exception` and escapes `except Exception`.
pub fn guarded<T>(work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    // Unwind safety: a tokenizer never changes, and the core discards the scratch buffers of a thread that panics, so no
    // half-finished state survives the panic.
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        Err(classes::InternalError::new_err(format!(
            "a bug in wordpiece_bert, please report it with the call that raised it: {}",
            panic_message(panic)
        )))
    })
}
