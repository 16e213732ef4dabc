//! Progress callbacks, and Ctrl-C while the core works.

use pyo3::prelude::*;
use wordpiece::Error;
use wordpiece::train::{Progress, Stage, TrainingError};

use crate::error::to_py;
use crate::interrupt::end_if_forked;

/// Calls back into Python and keeps what was raised there.
struct Observer {
    /// Called with the stage, the work done and the total; the total is `None` if it is not known.
    callable: Option<Py<PyAny>>,
    raised: Option<PyErr>,
    process: u32,
}

impl Observer {
    /// Checks for signals and reports progress; returns whether to continue: no longer when the interpreter is shutting down.
    fn observe(&mut self, progress: Progress) -> bool {
        let stage = match progress.stage {
            Stage::Counting => "counting",
            Stage::Learning => "learning",
        };
        let goes_on = Python::try_attach(|py| {
            let mut result = py.check_signals();
            end_if_forked(py, self.process);
            if let (Ok(()), Some(callable)) = (&result, &self.callable) {
                result = callable.call1(py, (stage, progress.done, progress.total)).map(drop);
            }
            self.raised = result.err();
            self.raised.is_none()
        });
        goes_on.unwrap_or(false)
    }
}

/// Runs `work` without the interpreter and passes it an observer that reports to `callable`.
///
/// Returns what a signal handler or `callable` raised, if that is why the work ended.
pub fn run_observed<T: Send>(
    py: Python<'_>,
    callable: Option<Py<PyAny>>,
    work: impl FnOnce(&mut dyn FnMut(Progress) -> bool) -> wordpiece::Result<T> + Send,
) -> PyResult<T> {
    let mut observer = Observer { callable, raised: None, process: std::process::id() };
    let result = py.detach(|| work(&mut |progress| observer.observe(progress)));
    result.map_err(|error| match (observer.raised, error) {
        (Some(raised), Error::Training(TrainingError::Interrupted)) => raised,
        (_, error) => to_py(error),
    })
}
