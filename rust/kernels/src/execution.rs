//! Execution settings: the instruction set and the threads of a computation.

use wordpiece_parallel::{InstructionSet, ThreadPool};

/// The instruction set and the threads of a computation. Results depend on the first, never on the second.
#[derive(Clone, Copy)]
pub struct Execution<'a> {
    /// The instructions to compute with.
    pub instruction_set: InstructionSet,
    /// The pool whose threads help the calling one; `None` for the calling thread only.
    pub pool: Option<&'a ThreadPool>,
}

impl Execution<'static> {
    /// Returns an execution on the calling thread only.
    pub fn on_this_thread(instruction_set: InstructionSet) -> Execution<'static> {
        Execution { instruction_set, pool: None }
    }
}
