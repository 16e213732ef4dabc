#!/usr/bin/env bash
# Runs every fuzz target for a number of seconds (60): scripts/fuzz.sh [SECONDS]
#
# Needs cargo-fuzz (cargo install cargo-fuzz) and a nightly toolchain; skipped with a message without them. A crash leaves
# its input under fuzz/artifacts: move it to fuzz/regressions/TARGET, where `cargo test` replays it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if ! cargo fuzz --version >/dev/null 2>&1 || ! cargo +nightly --version >/dev/null 2>&1; then
    echo "fuzz: the targets are skipped: needs cargo-fuzz and a nightly toolchain"
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
