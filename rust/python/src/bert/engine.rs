//! Which instructions compute in a number type, for `wordpiece_bert.bert.engines.choice`.

use std::env;
use std::sync::OnceLock;

use pyo3::prelude::*;
use wordpiece_kernels::InstructionSet;
use wordpiece_kernels::arch::TileUnit;
use wordpiece_kernels::gemm::{Products, byte_products_name};
use wordpiece_parallel::cpu;

use crate::error::{self, guarded};
use crate::instruction_sets;
use crate::text::Utf8;
use crate::threads::{self, Threads};

/// Returns how dense layers multiply numbers of the type `dtype` with an instruction set, by default the best one.
///
/// # Errors
///
/// InputError if there is no such type or instruction set.
pub fn products_for(dtype: &str, instruction_set: Option<&str>) -> PyResult<Products> {
    match dtype {
        "float32" => Ok(Products::Float32),
        "bfloat16" => {
            let (set, tiles) = kernels_for(instruction_set)?;
            Ok(Products::bfloat16(set, tiles))
        }
        _ => Err(error::input(format!("the kernels multiply float32 or bfloat16, not {dtype:?}"))),
    }
}

/// Describe the products of a dtype on this CPU: the name of the CPU, the name of the instructions that multiply,
/// whether the products are faster than in float32, and the reason.
#[pyfunction]
#[pyo3(signature = (dtype, instruction_set=None))]
pub fn describe_products(
    dtype: Utf8<'_>,
    instruction_set: Option<Utf8<'_>>,
) -> PyResult<(String, String, bool, String)> {
    guarded(|| {
        let (dtype, instruction_set) = (&*dtype, instruction_set.as_deref());
        if dtype == "int8" {
            let (set, tiles) = kernels_for(instruction_set)?;
            let name = byte_products_name(set, tiles);
            return Ok((cpu::name(), name, true, "int8 products, exact sums".to_string()));
        }
        let (products, (set, tiles)) = (products_for(dtype, instruction_set)?, kernels_for(instruction_set)?);
        let reason = match products {
            Products::Float32 => String::new(),
            Products::RoundedWeights | Products::Bfloat16Pairs => Products::reason(set, tiles).to_string(),
        };
        Ok((cpu::name(), products.name(set, tiles), products.is_faster(), reason))
    })
}

/// Return how many threads a call with this argument `threads` uses.
#[pyfunction]
#[pyo3(signature = (threads=None))]
pub fn num_threads(threads: Option<Threads>) -> usize {
    threads::number(threads)
}

/// Return the names of the instruction sets that this CPU has, the best last. "amx" is the best with tile registers;
/// "amx-emulated", which is not listed, computes their products number by number, for tests.
#[pyfunction]
pub fn kernel_instruction_sets() -> Vec<&'static str> {
    let mut names: Vec<_> = InstructionSet::all_available().into_iter().map(InstructionSet::name).collect();
    names.extend(TileUnit::of(InstructionSet::detect()).map(TileUnit::name));
    names
}

/// The variable that says with which instructions models compute where a call does not.
const VARIABLE: &str = "WORDPIECE_BERT_INSTRUCTION_SET";

/// The instruction set that the environment had when the module was imported.
static CHOSEN: OnceLock<Option<String>> = OnceLock::new();

/// Reads the variable of the environment, while the module is imported.
///
/// # Errors
///
/// InputError if this CPU has no such instruction set.
pub fn read_environment() -> PyResult<()> {
    let given = env::var_os(VARIABLE).map(|value| value.to_string_lossy().trim().to_string());
    let given = given.filter(|value| !value.is_empty());
    if let Some(name) = &given
        && kernels_for(Some(name)).is_err()
    {
        return Err(error::input(format!(
            "the environment variable {VARIABLE} must be one of {}, which this CPU has, not {name:?}: correct or unset it",
            kernel_instruction_sets().join(", ")
        )));
    }
    CHOSEN.get_or_init(|| given);
    Ok(())
}

/// Returns the instruction set of this name and the tile registers that it computes with; without a name, of the
/// environment, or else the best of this CPU.
///
/// # Errors
///
/// InputError if this CPU does not have it.
pub fn kernels_for(name: Option<&str>) -> PyResult<(InstructionSet, Option<TileUnit>)> {
    let name = name.or_else(|| CHOSEN.get().and_then(Option::as_deref));
    let best = InstructionSet::detect();
    match (name, TileUnit::of(best)) {
        (None, tiles) => Ok((best, tiles)),
        (Some(name), Some(tiles)) if name == tiles.name() => Ok((best, Some(tiles))),
        (Some(name), _) if name == TileUnit::Emulated.name() => Ok((best, Some(TileUnit::Emulated))),
        (Some(name), _) => {
            let sets = InstructionSet::all_available();
            // The names of byte paths choose a level with or without its extensions, for tests and benchmarks.
            let mut paths = sets.iter().flat_map(|set| set.byte_paths());
            match paths.find(|path| path.0 == name && path.0 != path.1.name()) {
                Some((_, set)) => Ok((set, None)),
                None => Ok((instruction_sets::by_name(&sets, name)?, None)),
            }
        }
    }
}
