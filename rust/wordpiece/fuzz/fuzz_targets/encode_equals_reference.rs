#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| wordpiece_fuzz::encode_equals_reference::check(data));
