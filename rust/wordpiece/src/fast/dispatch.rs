//! The entry points of the loops: one scan and one lookup for each instruction set, and the choice between them.
//!
//! The loops are generic over [`Primitives`](super::primitives::Primitives) and always inlined. Each function here with
//! `#[target_feature]` instantiates one of them for the token of its instruction set, so the compiler generates the
//! complete loop, not only single operations, with those instructions. Choosing costs one predictable branch for each
//! call, which scans or looks up thousands of bytes.

use super::buffer::NormalizedBuffer;
use super::primitives::Scalar;
use super::scan::{ScanSource, scan_with};
use super::table::look_up::{LookupOutput, MissHandler, WordRanges, look_up_with};
use super::table::store::WordTable;
use wordpiece_parallel::InstructionSet;
#[cfg(target_arch = "aarch64")]
use wordpiece_parallel::instruction_set::Neon;
#[cfg(target_arch = "x86_64")]
use wordpiece_parallel::instruction_set::{Avx2, Vbmi2};

/// Returns the instruction set that the fast path uses on a CPU with `set`: AVX2 in place of AVX-512 without VBMI2.
pub(super) fn effective(set: InstructionSet) -> InstructionSet {
    match set {
        #[cfg(target_arch = "x86_64")]
        InstructionSet::Avx512(token) if token.vbmi2().is_none() => InstructionSet::Avx2(token.avx2()),
        set => set,
    }
}

/// Returns the instruction sets of this CPU that the fast path has code for, the best last.
pub(crate) fn instruction_sets() -> Vec<InstructionSet> {
    InstructionSet::available_where(|set| effective(set) == set)
}

/// Scans a text into `buffer`, up to the first character that does not fit into the bytes it occupies; returns where it
/// stopped, in bytes. See [`scan_with`].
pub(super) fn scan(set: InstructionSet, source: ScanSource<'_>, buffer: &mut NormalizedBuffer) -> usize {
    match set {
        // SAFETY: `Scalar` needs nothing beyond the baseline of the target.
        InstructionSet::Scalar => unsafe { scan_with(Scalar, source, buffer) },
        // SAFETY: the token proves that the CPU has the features of the function.
        #[cfg(target_arch = "x86_64")]
        InstructionSet::Avx2(token) => unsafe { scan_avx2(token, source, buffer) },
        #[cfg(target_arch = "x86_64")]
        InstructionSet::Avx512(token) => match token.vbmi2() {
            // SAFETY: the token proves that the CPU has the features of the function.
            Some(token) => unsafe { scan_vbmi2(token, source, buffer) },
            // SAFETY: the token proves that the CPU has the features of the function.
            None => unsafe { scan_avx2(token.avx2(), source, buffer) },
        },
        // SAFETY: the token proves that the CPU has NEON.
        #[cfg(target_arch = "aarch64")]
        InstructionSet::Neon(token) => unsafe { scan_neon(token, source, buffer) },
    }
}

/// Appends the ids of words in order; `miss` appends the ids of a word that its line of the table does not hold. See
/// [`look_up_with`].
pub(super) fn look_up(
    set: InstructionSet,
    table: &mut WordTable,
    words: WordRanges<'_>,
    output: LookupOutput<'_>,
    miss: &mut MissHandler<'_>,
) {
    match set {
        // SAFETY: `Scalar` needs nothing beyond the baseline of the target.
        InstructionSet::Scalar => unsafe { look_up_with(Scalar, table, words, output, miss) },
        // SAFETY: the token proves that the CPU has the features of the function.
        #[cfg(target_arch = "x86_64")]
        InstructionSet::Avx2(token) => unsafe { look_up_avx2(token, table, words, output, miss) },
        #[cfg(target_arch = "x86_64")]
        InstructionSet::Avx512(token) => match token.vbmi2() {
            // SAFETY: the token proves that the CPU has the features of the function.
            Some(token) => unsafe { look_up_vbmi2(token, table, words, output, miss) },
            // SAFETY: the token proves that the CPU has the features of the function.
            None => unsafe { look_up_avx2(token.avx2(), table, words, output, miss) },
        },
        // SAFETY: the token proves that the CPU has NEON.
        #[cfg(target_arch = "aarch64")]
        InstructionSet::Neon(token) => unsafe { look_up_neon(token, table, words, output, miss) },
    }
}

/// Defines the two entry points of an instruction set: its loops, compiled with its features.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! entry_points {
    ($token:ty, $features:literal, $scan:ident, $look_up:ident) => {
        /// # Safety
        ///
        /// The CPU must have the features, as a value of the token proves.
        #[target_feature(enable = $features)]
        unsafe fn $scan(token: $token, source: ScanSource<'_>, buffer: &mut NormalizedBuffer) -> usize {
            // SAFETY: the CPU has the token's instructions.
            unsafe { scan_with(token, source, buffer) }
        }

        /// # Safety
        ///
        /// The CPU must have the features, as a value of the token proves.
        #[target_feature(enable = $features)]
        unsafe fn $look_up(
            token: $token,
            table: &mut WordTable,
            words: WordRanges<'_>,
            output: LookupOutput<'_>,
            miss: &mut MissHandler<'_>,
        ) {
            // SAFETY: the CPU has the token's instructions.
            unsafe { look_up_with(token, table, words, output, miss) }
        }
    };
}

#[cfg(target_arch = "x86_64")]
entry_points!(Avx2, "avx2,bmi1,bmi2,lzcnt,popcnt", scan_avx2, look_up_avx2);
#[cfg(target_arch = "x86_64")]
entry_points!(
    Vbmi2,
    "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,bmi1,bmi2,lzcnt,popcnt",
    scan_vbmi2,
    look_up_vbmi2
);
#[cfg(target_arch = "aarch64")]
entry_points!(Neon, "neon", scan_neon, look_up_neon);

#[cfg(test)]
pub(in crate::fast) mod tests {
    use super::*;
    use wordpiece_parallel::testing::instruction_sets_where;

    /// Returns the instruction sets to be tested one by one.
    pub fn instruction_sets() -> Vec<InstructionSet> {
        instruction_sets_where(|set| effective(set) == set)
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn avx512_without_vbmi2_is_replaced_by_avx2() {
        use wordpiece_parallel::instruction_set::Avx512;
        if let Some(token) = Avx512::new() {
            let set = InstructionSet::Avx512(token.without_extensions());
            assert_eq!(effective(set).name(), "avx2");
        }
    }
}
