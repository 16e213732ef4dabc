#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| wordpiece_fuzz::jsonl_field::check(data));
