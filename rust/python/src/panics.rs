//! Panics in each place where one is caught, so that the tests can check the resulting exceptions.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use pyo3::prelude::*;
use wordpiece_parallel::{checkpoint, fork_join, interruptible, map_with, thread_pool};

use crate::error::{self, guarded};
use crate::interrupt::detached;
use crate::text::Utf8;

/// Panic at `place` with the bytes `message`, which need not be UTF-8.
#[pyfunction]
pub fn _panic(py: Python<'_>, message: &[u8], place: Utf8<'_>) -> PyResult<()> {
    // SAFETY: not always the UTF-8 that it has to be: the tests need what a mistake in unsafe code could make. Nothing but
    // `panic!` and `error` look at it.
    let message = unsafe { str::from_utf8_unchecked(message) };
    let main = thread::current().id();
    let is_helper = || thread::current().id() != main;
    // Both threads of a map have an item: the one that is not to panic waits for the other.
    let panics = AtomicBool::new(false);
    let shared = |of_helper: bool| {
        let work = |(): &mut (), _: usize| {
            if is_helper() == of_helper {
                panics.store(true, Ordering::Relaxed);
                panic!("{message}");
            }
            while !panics.load(Ordering::Relaxed) {
                checkpoint();
                thread::yield_now();
            }
        };
        map_with((0..2).collect(), thread_pool(1), || (), work);
    };
    guarded(|| match &*place {
        "call" => panic!("{message}"),
        "detached" => py.detach(|| panic!("{message}")),
        "interruptible" => detached(py, || panic!("{message}")),
        "helper" => detached(py, || shared(true)),
        "caller" => detached(py, || shared(false)),
        "thread" => detached(py, || drop(fork_join([()], |(), _| panic!("{message}"), |_| ()))),
        "poll" => py.detach(|| {
            let endless = || loop {
                checkpoint();
            };
            let _ = interruptible::<()>(|| true, &mut || panic!("{message}"), endless);
            Ok(())
        }),
        "error" => Err(error::input(message.to_owned())),
        _ => Err(error::input(format!("no place {:?}", &*place))),
    })
}
