//! What a call uses alone, and what no call uses after an error or an interruption, which leave it half-way.

use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;

use crate::error::{self, to_py};
use crate::interrupt::detached;

/// A builder or an encoder.
pub struct Slot<T>(Mutex<State<T>>);

enum State<T> {
    Ready(T),
    InUse,
    HalfWay,
}

impl<T: Send> Slot<T> {
    pub fn new(content: T) -> Slot<T> {
        Slot(Mutex::new(State::Ready(content)))
    }

    /// Calls `work` with the content, without the interpreter.
    pub fn call<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut T) -> wordpiece::Result<R> + Send,
    ) -> PyResult<R> {
        let mut content = match self.put(State::InUse) {
            State::Ready(content) => content,
            State::InUse => return Err(error::input("another call uses this: wait for its end".to_owned())),
            State::HalfWay => {
                self.put(State::HalfWay);
                let message = "an error or an interruption has left this half-way: make the same call again";
                return Err(error::input(message.to_owned()));
            }
        };
        let end = EndOfCall(self);
        let result = detached(py, || work(&mut content))?.map_err(to_py)?;
        std::mem::forget(end);
        self.put(State::Ready(content));
        Ok(result)
    }

    fn put(&self, state: State<T>) -> State<T> {
        std::mem::replace(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner), state)
    }
}

/// What is left of a call that ends by an error or a panic.
struct EndOfCall<'a, T: Send>(&'a Slot<T>);

impl<T: Send> Drop for EndOfCall<'_, T> {
    fn drop(&mut self) {
        self.0.put(State::HalfWay);
    }
}
