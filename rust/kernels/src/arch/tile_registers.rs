//! Tile registers: the operations of AMX behind a trait, and the choice between the instructions and their emulation.

#[cfg(target_arch = "x86_64")]
use wordpiece_parallel::instruction_set::Amx;

use super::InstructionSet;
use crate::matrix::{HalfRow, PairRow, Row};

/// How many rows a tile register has, each of 64 bytes.
pub const TILE_REGISTER_ROWS: usize = 16;

/// A tile of inputs: 16 rows of 32 bfloat16 numbers, which are 16 rows of one panel.
pub type InputTile = [HalfRow; TILE_REGISTER_ROWS];
/// Two tiles of weights side by side, 16 pairs of inputs by 16 outputs each: 16 rows of one packed panel.
pub type WeightTiles = [PairRow; TILE_REGISTER_ROWS];
/// Two tiles of sums side by side, 16 rows by 16 outputs each.
pub type SumTiles = [Row; TILE_REGISTER_ROWS];

/// Eight tile registers, numbered from 0; tile C holds sums in float32, A inputs and B weights in bfloat16.
///
/// Panels have the layout of tiles, so nothing is packed for them: a row of a panel of inputs is a row of A, and a row of
/// pairs of packed weights is a row of two B, one for either half of the outputs.
pub trait TileRegisters {
    /// Sets a tile to 0.
    fn zero<const C: usize>(&mut self);

    /// Loads a tile of inputs.
    fn load_inputs<const A: usize>(&mut self, from: &InputTile);

    /// Loads the tile of weights of the outputs from 16·`HALF` on.
    fn load_weights<const B: usize, const HALF: usize>(&mut self, from: &WeightTiles);

    /// Adds the products of pairs to sums, C += A·B, as the instruction TDPBF16PS.
    ///
    /// For each sum, the products of the first numbers of all pairs are added up, and those of the second numbers, each by
    /// fused multiply-adds first to last; then both, and the result to the sum. All operations round to nearest, ties to
    /// even, and treat subnormal numbers as 0.
    fn multiply<const C: usize, const A: usize, const B: usize>(&mut self);

    /// Stores a tile of sums, those of the outputs from 16·`HALF` on.
    fn store<const C: usize, const HALF: usize>(&self, to: &mut SumTiles);
}

/// What computes with tile registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TileUnit {
    /// The instructions.
    #[cfg(target_arch = "x86_64")]
    Amx(Amx),
    /// Their emulation, with the same bits and much slower: for tests on CPUs without them. Nothing chooses it by itself.
    Emulated,
}

impl TileUnit {
    /// Returns the tile registers that belong to an instruction set, if the CPU has them.
    pub fn of(instruction_set: InstructionSet) -> Option<TileUnit> {
        match instruction_set {
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Avx512(token) => token.amx().map(TileUnit::Amx),
            _ => None,
        }
    }

    /// Returns the name by which tests and users refer to it.
    pub fn name(self) -> &'static str {
        match self {
            #[cfg(target_arch = "x86_64")]
            TileUnit::Amx(_) => "amx",
            TileUnit::Emulated => "amx-emulated",
        }
    }
}
