//! The ways in which a dense layer can multiply, and the choice for a number type and a CPU.

#[cfg(target_arch = "x86_64")]
use wordpiece_parallel::cpu;

use crate::arch::{InstructionSet, TileUnit};

/// How a dense layer multiplies; its weights are packed for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Products {
    /// float32 products.
    Float32,
    /// float32 products of weights that were rounded to bfloat16, and unrounded inputs.
    RoundedWeights,
    /// Products of pairs of bfloat16 numbers, inputs rounded as well, summed in float32.
    Bfloat16Pairs,
}

impl Products {
    /// Returns the fastest way to multiply weights rounded to bfloat16 with these instructions and tile registers.
    ///
    /// It is never slower than float32: pairs are multiplied only by instructions that are faster than the ones for
    /// float32.
    pub fn bfloat16(instruction_set: InstructionSet, tiles: Option<TileUnit>) -> Products {
        match instruction_set {
            _ if tiles.is_some() => Products::Bfloat16Pairs,
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Avx512(token) if token.bf16().is_some() && cpu::has_fast_bf16_dot() => {
                Products::Bfloat16Pairs
            }
            #[cfg(target_arch = "aarch64")]
            InstructionSet::Neon(token) if token.bf16().is_some() => Products::Bfloat16Pairs,
            _ => Products::RoundedWeights,
        }
    }

    /// Whether products are computed faster than float32 products.
    pub fn is_faster(self) -> bool {
        self == Products::Bfloat16Pairs
    }

    /// Returns the name of the instructions that multiply, such as "avx512-bf16".
    pub fn name(self, instruction_set: InstructionSet, tiles: Option<TileUnit>) -> String {
        match (self, tiles) {
            (Products::Bfloat16Pairs, Some(tiles)) => format!("{}-bf16", tiles.name()),
            (Products::Bfloat16Pairs, None) => format!("{}-bf16", instruction_set.name()),
            (Products::Float32 | Products::RoundedWeights, _) => instruction_set.name().to_string(),
        }
    }

    /// Returns the reason for the choice of [`Products::bfloat16`], a clause without a full stop.
    pub fn reason(instruction_set: InstructionSet, tiles: Option<TileUnit>) -> &'static str {
        match (Products::bfloat16(instruction_set, tiles), instruction_set) {
            #[cfg(target_arch = "x86_64")]
            _ if matches!(tiles, Some(TileUnit::Amx(_))) => "AMX multiplies bfloat16 many times as fast as float32",
            _ if tiles.is_some() => "AMX is emulated, for tests",
            (Products::Bfloat16Pairs, _) if cfg!(target_arch = "aarch64") => {
                "a BFMMLA has four times the products of a float32 instruction"
            }
            (Products::Bfloat16Pairs, _) => "AVX512-BF16 multiplies bfloat16 twice as fast as float32 on this CPU",
            #[cfg(target_arch = "x86_64")]
            (_, InstructionSet::Avx512(token)) if token.bf16().is_some() => {
                "AVX512-BF16 multiplies bfloat16 no faster than float32 on this CPU"
            }
            _ => "these instructions do not multiply bfloat16",
        }
    }
}

/// Returns the name of the instructions that multiply int8 numbers, such as "avx512-vnni" or "amx-int8".
pub fn byte_products_name(instruction_set: InstructionSet, tiles: Option<TileUnit>) -> String {
    match tiles.filter(|unit| unit.multiplies_bytes()) {
        Some(unit) => format!("{}-int8", unit.name()),
        None => instruction_set.byte_paths().first().map_or(instruction_set.name(), |path| path.0).to_string(),
    }
}
