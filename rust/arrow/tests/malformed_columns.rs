//! Columns made of arbitrary bytes are read or refused, never misread: the fuzz target `arrow`, replayed.

mod arbitrary;

use std::path::Path;

/// A generator of bytes (SplitMix64), the same on every machine.
fn random_bytes(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mut next = || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    };
    (0..len).map(|_| next() as u8).collect()
}

/// The columns are made from the seed of the workspace's property tests.
#[test]
fn random_columns_are_read_or_refused() {
    let columns: u64 = if cfg!(miri) { 300 } else { 20_000 };
    let run: u64 = std::env::var("PROPTEST_RNG_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0);
    let mut read = 0;
    for index in 0..columns {
        let seed = run.wrapping_mul(columns).wrapping_add(index);
        read += u64::from(arbitrary::read(&random_bytes(seed, (seed % 400) as usize)));
    }
    // Otherwise the generator makes so much nonsense that hardly any row is looked at.
    assert!(read > columns / 100, "only {read} of {columns} columns had rows that were read");
}

#[test]
fn inputs_kept_from_fuzzing_are_read_or_refused() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/regressions");
    for file in Path::new(folder).read_dir().into_iter().flatten() {
        let path = file.expect("a readable folder").path();
        println!("{}", path.display());
        arbitrary::read(&std::fs::read(path).expect("a readable file"));
    }
}

#[test]
fn strings_survive_a_round_trip() {
    for strings in [&[][..], &[""], &["a", "", "Z\u{fc}rich", "\u{1f600}", "longer than a view holds inline"]] {
        arbitrary::round_trip(strings);
    }
}
