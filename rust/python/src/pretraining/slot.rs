//! What a call uses alone, and what no call uses after an error or an interruption, which leave it half-way.

use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;

use crate::error::{self, to_py};
use crate::interrupt::detached;

/// A builder or an encoder.
pub struct Slot<T>(Mutex<Option<T>>);

impl<T: Send> Slot<T> {
    pub fn new(content: T) -> Slot<T> {
        Slot(Mutex::new(Some(content)))
    }

    /// Calls `work` with the content, without the interpreter.
    pub fn call<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut T) -> wordpiece::Result<R> + Send,
    ) -> PyResult<R> {
        let taken = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut content = taken.ok_or_else(|| {
            error::input("an error or an interruption has left this half-way: make the same call again".to_owned())
        })?;
        let result = detached(py, || work(&mut content))?.map_err(to_py)?;
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(content);
        Ok(result)
    }
}
