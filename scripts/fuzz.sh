#!/usr/bin/env bash
# Runs every fuzz target for a number of seconds (60): scripts/fuzz.sh [SECONDS]
#
# Needs cargo-fuzz (cargo install cargo-fuzz) and a nightly toolchain; without them it names the targets that it did not run.
# A crash leaves its input under fuzz/artifacts: move it to fuzz/regressions/TARGET, where `cargo test` replays it. Files
# that only Python reads (token vectors, sparse vectors, int8 models, frozen classifiers) have tests/test_damaged_files.py.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if ! cargo fuzz --version >/dev/null 2>&1 || ! cargo +nightly --version >/dev/null 2>&1; then
    echo "fuzz: NOT RUN, needs cargo-fuzz and a nightly toolchain:" rust/{wordpiece,arrow}/fuzz/fuzz_targets/*.rs
    exit 0
fi
for crate in rust/wordpiece rust/arrow; do
    (
        cd "$crate"
        for target in $(cargo +nightly fuzz list); do
            echo "fuzz: $crate, $target, ${1:-60} seconds"
            # New inputs go to the first folder; the others are read only.
            mkdir -p "fuzz/corpus/$target"
            folders=("fuzz/corpus/$target")
            [ ! -d "fuzz/seeds/$target" ] || folders+=("fuzz/seeds/$target")
            cargo +nightly fuzz run "$target" "${folders[@]}" -- -max_total_time="${1:-60}" -max_len=4096
        done
    )
done
