//! Replays the fuzz targets without a fuzzer: hand-made seeds, past crashers, and a few pseudo-random inputs.
//!
//! `fuzz/README.md` says how to fuzz. Inputs that once crashed a target are kept in `fuzz/regressions/<target>/`.

use std::path::{Path, PathBuf};

#[path = "../fuzz/src/lib.rs"]
mod fuzz;

/// Pseudo-random inputs per target: enough to execute every body, without trying to find anything new.
const RANDOM_INPUTS: u64 = 40;

/// Returns the files of a folder in alphabetical order; none if the folder does not exist.
fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("a readable folder").path()).collect();
    files.sort();
    files
}

/// Returns `len` bytes of the generator SplitMix64, seeded with `seed`.
fn random_bytes(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    std::iter::repeat_with(|| next().to_le_bytes()).flatten().take(len).collect()
}

/// Runs one input and names it in the first line of a failure.
fn run(target: &str, name: &str, check: fuzz::Check, data: &[u8]) {
    if let Err(panic) = std::panic::catch_unwind(|| check(data)) {
        let message = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        panic!("{target}: {name}: {}", message.unwrap_or("no message"));
    }
}

#[test]
fn seeds_and_past_crashers_pass_every_target() {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz");
    for &(target, check) in fuzz::TARGETS {
        let kept = [fuzz.join("seeds").join(target), fuzz.join("regressions").join(target)];
        for file in kept.iter().flat_map(|folder| files(folder)) {
            let data = std::fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            run(target, &file.display().to_string(), check, &data);
        }
        for seed in 0..RANDOM_INPUTS {
            run(target, &format!("random input {seed}"), check, &random_bytes(seed, 64 << (seed % 7)));
        }
    }
}

#[test]
fn every_folder_of_seeds_and_regressions_belongs_to_a_target() {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz");
    for folder in ["seeds", "regressions"].iter().flat_map(|kind| files(&fuzz.join(kind))) {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let known = fuzz::TARGETS.iter().any(|(target, _)| *target == name);
        assert!(known || !folder.is_dir(), "{} belongs to no target", folder.display());
    }
}

/// A seed that is refused would exercise only the errors.
#[test]
fn every_seed_of_tokenizer_json_can_be_read() {
    let seeds = files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds/tokenizer_json"));
    assert!(!seeds.is_empty(), "there are no seeds");
    for seed in seeds {
        let json = std::fs::read_to_string(&seed).expect("a text file");
        if let Err(error) = wordpiece::format::tokenizer_json::read(&json) {
            panic!("{}: {error}", seed.display());
        }
    }
}
