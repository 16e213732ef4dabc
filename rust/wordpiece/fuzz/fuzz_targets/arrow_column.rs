#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| wordpiece_fuzz::arrow_column::check(data));
