//! Tile registers: the operations of AMX behind a trait, and the choice between the instructions and their emulation.
//!
//! The operations are for one type of numbers, [`Bfloat16`] or [`Int8`].

use std::cell::Cell;
use std::marker::PhantomData;

#[cfg(target_arch = "x86_64")]
use wordpiece_parallel::instruction_set::Amx;

use super::InstructionSet;
use crate::matrix::{ByteRow, HalfRow, PairRow, QuadRow, Row, SumRow};

/// How many rows a tile register has, each of 64 bytes.
pub const TILE_REGISTER_ROWS: usize = 16;

/// The numbers that tile registers multiply, by the rows of panels that tiles are loaded from and stored to.
///
/// Panels have the layout of tiles, so nothing is packed for them: a row of inputs is a row of one tile, and a row of packed
/// weights or of sums is a row of two tiles, one for either half of the outputs.
pub trait TileNumbers {
    /// A row of inputs: 64 bytes.
    type Input: Copy;
    /// A row of packed weights: for each of 32 outputs, the 4 bytes that are multiplied by 4 bytes of inputs.
    type Weight: Copy;
    /// A row of 32 sums of 32 bits.
    type Sum: Copy;
}

/// bfloat16, a tile of inputs having 32 columns, and sums in float32.
#[derive(Debug, Clone, Copy, Default)]
pub struct Bfloat16;

impl TileNumbers for Bfloat16 {
    type Input = HalfRow;
    type Weight = PairRow;
    type Sum = Row;
}

/// int8, a tile of inputs having 64 columns, and sums in int32.
#[derive(Debug, Clone, Copy, Default)]
pub struct Int8;

impl TileNumbers for Int8 {
    type Input = ByteRow;
    type Weight = QuadRow;
    type Sum = SumRow;
}

/// A tile of inputs: 16 rows of one panel or group.
pub type InputTile<N> = [<N as TileNumbers>::Input; TILE_REGISTER_ROWS];
/// Two tiles of weights side by side: 16 rows of one packed panel.
pub type WeightTiles<N> = [<N as TileNumbers>::Weight; TILE_REGISTER_ROWS];
/// Two tiles of sums side by side, 16 rows by 16 outputs each.
pub type SumTiles<N> = [<N as TileNumbers>::Sum; TILE_REGISTER_ROWS];

/// Eight tile registers, numbered from 0; tile C holds sums, A inputs and B weights.
pub trait TileRegisters {
    /// The numbers that are multiplied.
    type Numbers: TileNumbers;

    /// Sets a tile to 0.
    fn zero<const C: usize>(&mut self);

    /// Loads a tile of inputs.
    fn load_inputs<const A: usize>(&mut self, from: &InputTile<Self::Numbers>);

    /// Loads the tile of weights of the outputs from 16·`HALF` on.
    fn load_weights<const B: usize, const HALF: usize>(&mut self, from: &WeightTiles<Self::Numbers>);

    /// Adds products to sums, C += A·B, as the instruction TDPBF16PS or TDPBSSD.
    ///
    /// For each sum of bfloat16 numbers, the products of the first numbers of all pairs are added up, and the products
    /// of the second numbers, each by fused multiply-adds first to last; then both, and the result to the sum. All
    /// operations round to nearest, ties to even, and treat subnormal numbers as 0.
    ///
    /// Sums of int8 numbers are exact modulo 2³².
    fn multiply<const C: usize, const A: usize, const B: usize>(&mut self);

    /// Stores a tile of sums, for the outputs from 16·`HALF` on.
    fn store<const C: usize, const HALF: usize>(&self, to: &mut SumTiles<Self::Numbers>);
}

/// The exclusive use of the tile registers of this thread.
///
/// A thread has one set of registers. With two users at once, the first to end would release the registers of the other,
/// whose next instruction would be invalid. It stays on its thread.
#[derive(Debug)]
pub struct ExclusiveUse {
    _not_send: PhantomData<*const ()>,
}

thread_local! {
    /// Whether an [`ExclusiveUse`] of this thread exists.
    static IN_USE: Cell<bool> = const { Cell::new(false) };
}

impl ExclusiveUse {
    /// Begins to use the tile registers of this thread, until the value is dropped.
    ///
    /// # Panics
    ///
    /// If they are in use already.
    #[inline(always)]
    pub fn new() -> ExclusiveUse {
        assert!(!IN_USE.replace(true), "this thread uses its tile registers already");
        ExclusiveUse { _not_send: PhantomData }
    }
}

impl Drop for ExclusiveUse {
    #[inline(always)]
    fn drop(&mut self) {
        IN_USE.set(false);
    }
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

    /// Whether it multiplies int8 numbers; it always multiplies bfloat16.
    pub fn multiplies_bytes(self) -> bool {
        match self {
            #[cfg(target_arch = "x86_64")]
            TileUnit::Amx(token) => token.int8().is_some(),
            TileUnit::Emulated => true,
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
