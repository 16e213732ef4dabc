//! Execution settings: the instruction set and the threads of a computation.

use wordpiece_parallel::{InstructionSet, Workers};

use crate::arch::TileUnit;

/// The instructions and the threads of a computation. Results in bfloat16 depend on the instructions, none on the
/// threads.
#[derive(Clone, Copy)]
pub struct Execution {
    /// The instructions to compute with.
    pub instruction_set: InstructionSet,
    /// The tile registers that multiply pairs of bfloat16 numbers or int8 numbers; `None` for vectors alone.
    pub tiles: Option<TileUnit>,
    /// The threads that help the calling one; `None` for the calling thread only.
    pub pool: Option<Workers>,
}

impl Execution {
    /// Returns an execution on the calling thread only, with the tile registers that belong to the instruction set.
    pub fn on_this_thread(instruction_set: InstructionSet) -> Execution {
        Execution { instruction_set, tiles: TileUnit::of(instruction_set), pool: None }
    }
}
