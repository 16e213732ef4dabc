//! For the tests of both crates: the instruction sets that they run, and a variable that requires some of them.

use std::io::Write;
use std::sync::Once;

use crate::InstructionSet;

/// The environment variable that lists the instruction sets that must be tested, such as `scalar,avx2,avx512,amx`.
///
/// A test fails if one of them is not available, where it would otherwise be skipped without notice.
pub const REQUIRED: &str = "WORDPIECE_REQUIRE_INSTRUCTION_SETS";

/// The environment variable that reduces exhaustive tests, for runs under emulation (qemu): set it to `1`.
pub const EMULATED: &str = "WORDPIECE_EMULATED";

/// Returns whether the exhaustive test `name` should visit only a sample, or nothing, and reports it on standard error
/// if so.
///
/// Tests that visit every character take minutes where each instruction is emulated. This is the case under Miri, and
/// where [`EMULATED`] is set to anything but `0` or the empty string.
pub fn skips_exhaustive_test(name: &str) -> bool {
    let reason = match std::env::var(EMULATED) {
        _ if cfg!(miri) => "Miri interprets it".to_string(),
        Ok(value) if !value.is_empty() && value != "0" => format!("{EMULATED}={value}"),
        _ => return false,
    };
    // Written directly: `eprintln!` would be captured and shown only for failing tests.
    let _ = writeln!(std::io::stderr(), "not exhaustive: {name} ({reason})");
    true
}

/// The name of an extension, and a function that returns whether the CPU has it.
type Extension = (&'static str, fn() -> bool);

/// Extensions that have tests of their own.
const EXTENSIONS: &[Extension] = &[
    #[cfg(target_arch = "x86_64")]
    ("avx512-bf16", || crate::instruction_set::Avx512::new().is_some_and(|token| token.bf16().is_some())),
    #[cfg(target_arch = "x86_64")]
    ("amx", || crate::instruction_set::Amx::new().is_some()),
    #[cfg(target_arch = "x86_64")]
    ("amx-int8", || crate::instruction_set::Amx::new().is_some_and(|token| token.int8().is_some())),
    #[cfg(target_arch = "aarch64")]
    ("neon-bf16", || crate::instruction_set::Neon::new().is_some_and(|token| token.bf16().is_some())),
    #[cfg(target_arch = "aarch64")]
    ("neon-i8mm", || crate::instruction_set::Neon::new().is_some_and(|token| token.int8_matrix().is_some())),
];

/// Returns all instruction sets of this CPU, to be tested one by one; see [`instruction_sets_where`].
///
/// # Panics
///
/// If [`REQUIRED`] names an instruction set that this CPU does not have.
pub fn instruction_sets() -> Vec<InstructionSet> {
    instruction_sets_where(|_| true)
}

/// Returns the instruction sets of [`InstructionSet::available_where`], to be tested one by one.
///
/// The first call in a process reports which instruction sets run and which are skipped. It does so on standard error,
/// which the test harness does not capture here.
///
/// # Panics
///
/// If [`REQUIRED`] names an instruction set that is not among them.
pub fn instruction_sets_where(is_used: impl Fn(InstructionSet) -> bool) -> Vec<InstructionSet> {
    static REPORTED: Once = Once::new();
    let sets = InstructionSet::available_where(is_used);
    let mut names: Vec<&str> = sets.iter().map(|set| set.name()).collect();
    let known = InstructionSet::NAMES.iter().copied().chain(EXTENSIONS.iter().map(|extension| extension.0));
    names.extend(EXTENSIONS.iter().filter(|(_, is_available)| is_available()).map(|extension| extension.0));
    let skipped: Vec<&str> = known.filter(|name| !names.contains(name)).collect();
    REPORTED.call_once(|| {
        let skipped = if skipped.is_empty() { "none".to_string() } else { skipped.join(", ") };
        // Written directly: `eprintln!` would be captured and shown only for failing tests.
        let _ = writeln!(std::io::stderr(), "instruction sets tested: {}; skipped: {skipped}", names.join(", "));
    });
    let required = std::env::var(REQUIRED).unwrap_or_default();
    if let Some(missing) = missing(&required, &names) {
        panic!(
            "{missing}: required by {REQUIRED}={required}, but not available here (available: {})",
            names.join(", ")
        );
    }
    sets
}

/// Returns the first of the comma-separated names in `required` that is not in `available`.
fn missing<'a>(required: &'a str, available: &[&str]) -> Option<&'a str> {
    required.split(',').map(str::trim).find(|name| !name.is_empty() && !available.contains(name))
}

#[cfg(test)]
mod tests {
    use super::missing;

    #[test]
    fn names_that_are_required_must_be_available() {
        let available = ["scalar", "avx2"];
        assert_eq!(missing("", &available), None);
        assert_eq!(missing("scalar, avx2,", &available), None);
        assert_eq!(missing("scalar,avx512", &available), Some("avx512"));
        assert_eq!(missing("sse", &available), Some("sse"));
    }
}
