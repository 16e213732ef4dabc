//! Execution settings: the instruction set and the threads of a computation.

use wordpiece_parallel::{InstructionSet, Workers};

/// The instruction set and the threads of a computation. Results depend on the first, never on the second.
#[derive(Clone, Copy)]
pub struct Execution {
    /// The instructions to compute with.
    pub instruction_set: InstructionSet,
    /// The threads that help the calling one; `None` for the calling thread only.
    pub pool: Option<Workers>,
}

impl Execution {
    /// Returns an execution on the calling thread only.
    pub fn on_this_thread(instruction_set: InstructionSet) -> Execution {
        Execution { instruction_set, pool: None }
    }
}
