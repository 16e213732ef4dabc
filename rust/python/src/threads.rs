//! The number of threads of a call, and the thread pools.
//!
//! A call uses the number in `threads=`, else the number of `set_num_threads`, else as many threads as the affinity, the
//! control group and a variable of the environment allow; never more than its affinity has processors, because threads
//! that take turns on a processor only push each other's tables out of its caches. Results never depend on the number.

use std::env;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use pyo3::prelude::*;
use pyo3::types::PyBool;
use wordpiece::BatchItem;
use wordpiece_parallel::{Workers, allowed_processors, available_processors, thread_pool};

use crate::error;
use crate::text;

/// A batch with fewer bytes of text is encoded on the calling thread: waking others would take longer.
const MIN_SHARED_BYTES: usize = 32 << 10;

/// The most threads that can be requested: a slip such as `threads=10**6` is reported, not tried.
const MAX_THREADS: usize = 1024;

/// The number that `set_num_threads` set; 0 for as many as the process may use.
static DEFAULT: AtomicUsize = AtomicUsize::new(0);

/// The variable that limits the number that is used without `threads=` and `set_num_threads`.
const OWN_VARIABLE: &str = "WORDPIECE_BERT_NUM_THREADS";

/// The variable of OpenMP, which Ray and Dask set for their workers; it limits the number where the other is not set.
const SHARED_VARIABLE: &str = "OMP_NUM_THREADS";

/// The number of the environment and the variable that has it, if one does.
static ENVIRONMENT: OnceLock<Option<(usize, &'static str)>> = OnceLock::new();

/// Reads the variables of the environment, once, while the module is imported: Python may change them in later calls.
///
/// # Errors
///
/// InputError if the package's variable is not a number of threads. One of OpenMP may be for other programs: a warning.
pub fn read_environment(py: Python<'_>) -> PyResult<()> {
    let value =
        |name| env::var_os(name).map(|value| value.to_string_lossy().into_owned()).filter(|value| !value.is_empty());
    let (found, given) = match (value(OWN_VARIABLE), value(SHARED_VARIABLE)) {
        (Some(own), _) => match own.trim().parse() {
            Ok(number) if (1..=MAX_THREADS).contains(&number) => (Some((number, OWN_VARIABLE)), None),
            _ => {
                return Err(error::input(format!(
                    "the environment variable {OWN_VARIABLE} must be a whole number from 1 to {MAX_THREADS}, not {own:?}: \
                     correct or unset it"
                )));
            }
        },
        // OpenMP accepts a list with a number for each level of nested threads.
        (None, Some(shared)) => match shared.split(',').next().unwrap_or_default().trim().parse() {
            Ok(number) if number > 0 => (Some((number, SHARED_VARIABLE)), None),
            _ => (None, Some(shared)),
        },
        (None, None) => (None, None),
    };
    if let Some(given) = given {
        let message = format!(
            "the environment variable {SHARED_VARIABLE} is {given:?}, which does not begin with a whole number from 1, and \
             is ignored: correct it, or set {OWN_VARIABLE}"
        );
        py.import("wordpiece_bert._internal.warn")?.getattr("warn")?.call1((message,))?;
    }
    ENVIRONMENT.get_or_init(|| found);
    Ok(())
}

/// A number of threads that a caller asks for, from 1 to 1024; any other value is an InputError.
#[derive(Clone, Copy)]
pub struct Threads(usize);

impl FromPyObject<'_, '_> for Threads {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, '_, PyAny>) -> PyResult<Threads> {
        let is_valid = |number: &usize| (1..=MAX_THREADS).contains(number) && !given.is_instance_of::<PyBool>();
        given.extract().ok().filter(is_valid).map(Threads).ok_or_else(|| {
            error::input(format!(
                "the number of threads must be a whole number from 1 to {MAX_THREADS}, or None for as many as this \
                 process may use, not {}",
                text::repr(&given).unwrap_or_default()
            ))
        })
    }
}

/// Returns the threads that help the calling one with the texts of a batch; `None` for the calling thread only.
pub fn pool_for_texts(threads: Option<Threads>, items: &[impl BatchItem]) -> Option<Workers> {
    pool_for_bytes(threads, items.iter().map(BatchItem::bytes).sum())
}

/// Returns the threads that help the calling one with `bytes` of text; `None` for the calling thread only.
pub fn pool_for_bytes(threads: Option<Threads>, bytes: usize) -> Option<Workers> {
    if bytes < MIN_SHARED_BYTES { None } else { pool(threads) }
}

/// Returns the pool whose threads help the calling one; `None` for the calling thread only.
///
/// A system that cannot start the threads is not an error: the calling thread then does the work.
pub fn pool(threads: Option<Threads>) -> Option<Workers> {
    match number(threads) {
        // The calling thread is one of them.
        1 => None,
        size => thread_pool(size - 1),
    }
}

/// Returns the number of threads to use, the calling one included.
pub fn number(threads: Option<Threads>) -> usize {
    match threads.map_or_else(|| DEFAULT.load(Ordering::Relaxed), |Threads(number)| number) {
        0 => decided().0,
        1 => 1,
        size => size.min(allowed_processors()),
    }
}

/// Returns the number that is used without any argument or setting, and what decided it, in words.
fn decided() -> (usize, &'static str) {
    let (available, allowed) = (available_processors().min(MAX_THREADS), allowed_processors());
    match ENVIRONMENT.get().copied().flatten() {
        Some((number, variable)) if number < available => (number, variable),
        _ if available < allowed && cfg!(target_os = "linux") => (available, "quota of the control group"),
        _ if cfg!(target_os = "linux") => (available, "affinity"),
        _ => (available, "processors of the machine"),
    }
}

/// Return the number of threads of a call without ``threads=``, and what decided it.
#[pyfunction]
pub fn default_threads() -> (usize, &'static str) {
    match DEFAULT.load(Ordering::Relaxed) {
        0 => decided(),
        _ => (number(None), "set_num_threads"),
    }
}

/// Set how many threads calls without ``threads=`` use.
///
/// Parameters
/// ----------
/// n : int or None
///     A number from 1 to 1024; None, which is the initial setting, for as many as affinity, control group and the
///     environment variable ``WORDPIECE_BERT_NUM_THREADS`` allow, or ``OMP_NUM_THREADS`` where the former is not set.
///     The variables are read when the package is loaded. On Linux, calls use no more than the affinity has processors.
///
/// Raises
/// ------
/// InputError
///     If `n` is not such a number.
///
/// Examples
/// --------
/// >>> from wordpiece_bert import set_num_threads
/// >>> set_num_threads(2)
/// >>> set_num_threads(None)
#[pyfunction]
pub fn set_num_threads(n: Option<Threads>) {
    DEFAULT.store(n.map_or(0, |Threads(number)| number), Ordering::Relaxed);
}
