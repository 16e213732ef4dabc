#![no_main]

/// The generator of columns, which `cargo test -p wordpiece-arrow` uses, too.
#[path = "../../tests/arbitrary/mod.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod arbitrary;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    arbitrary::read(data);
});
