//! How a computation runs: the instructions that it uses, and the threads that help.

use wordpiece_parallel::{InstructionSet, ThreadPool};

/// The instruction set and the threads of a computation. Results depend on the first, never on the second.
#[derive(Clone, Copy)]
pub struct Execution<'a> {
    /// The instructions to compute with.
    pub instruction_set: InstructionSet,
    /// The threads that help the calling one; `None` if it works alone.
    pub pool: Option<&'a ThreadPool>,
}

impl Execution<'static> {
    /// Returns an execution on the calling thread only.
    pub fn on_this_thread(instruction_set: InstructionSet) -> Execution<'static> {
        Execution { instruction_set, pool: None }
    }
}
