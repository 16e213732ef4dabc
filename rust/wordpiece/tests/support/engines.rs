//! The engines that tests compare: every instruction set of this CPU, and the pipeline without the fast path.

use wordpiece::{InstructionSet, Tokenizer};

/// Returns the same tokenizer without the fast path and on every instruction set of this CPU, each with a name for
/// messages.
///
/// The first call of a process reports which instruction sets run. It panics if `WORDPIECE_REQUIRE_INSTRUCTION_SETS` names
/// one that does not.
pub fn on_all_engines(tokenizer: &Tokenizer) -> Vec<(&'static str, Tokenizer)> {
    let sets = instruction_sets().into_iter().map(|set| (set.name(), Some(set)));
    let engines = sets.chain([("without the fast path", None)]);
    engines.map(|(name, set)| (name, tokenizer.clone().with_instruction_set(set))).collect()
}

/// Returns the instruction sets that the fast path can use on this CPU; see [`on_all_engines`].
pub fn instruction_sets() -> Vec<InstructionSet> {
    let ours = Tokenizer::instruction_sets();
    wordpiece_parallel::testing::instruction_sets_where(|set| ours.contains(&set))
}
