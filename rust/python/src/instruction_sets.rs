//! Instruction sets by the names that Python uses.

use pyo3::prelude::*;
use wordpiece_parallel::InstructionSet;

use crate::error;

/// Returns the instruction set called `name`, one of `available`.
///
/// # Errors
///
/// InputError, which lists those that are available.
pub fn by_name(available: &[InstructionSet], name: &str) -> PyResult<InstructionSet> {
    available.iter().copied().find(|set| set.name() == name).ok_or_else(|| {
        let names: Vec<&str> = available.iter().map(|set| set.name()).collect();
        error::input(format!("this machine has no instruction set {name:?}; it has {}", names.join(", ")))
    })
}
