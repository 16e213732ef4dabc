//! The bodies of the fuzz targets: each `check` panics if an input violates what the target asserts.
//!
//! They are shared by the binaries in `fuzz_targets/`, which libFuzzer drives, and by `tests/fuzz_regressions.rs`, which
//! replays seeds and past crashers on a stable compiler.

pub mod encode_equals_reference;
pub mod jsonl_field;
pub mod tokenizer_json;
pub mod vocab_txt;

#[path = "../../tests/support/mod.rs"]
mod support;

/// Checks one input; panics if it is a crasher.
pub type Check = fn(&[u8]);

/// All targets, each with the name of its binary.
pub const TARGETS: &[(&str, Check)] = &[
    ("encode_equals_reference", encode_equals_reference::check),
    ("jsonl_field", jsonl_field::check),
    ("tokenizer_json", tokenizer_json::check),
    ("vocab_txt", vocab_txt::check),
];
