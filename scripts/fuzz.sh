#!/usr/bin/env bash
# Runs every fuzz target for a number of seconds (60): scripts/fuzz.sh [SECONDS]
#
# Needs cargo-fuzz (cargo install cargo-fuzz) and a nightly toolchain; skipped with a message without them. A crash leaves
# its input under fuzz/artifacts: move it to fuzz/regressions/TARGET, where `cargo test` replays it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../rust/wordpiece"

if ! cargo fuzz --version >/dev/null 2>&1 || ! cargo +nightly --version >/dev/null 2>&1; then
    echo "fuzz: the targets are skipped: needs cargo-fuzz and a nightly toolchain"
    exit 0
fi
for target in $(cargo +nightly fuzz list); do
    echo "fuzz: $target, ${1:-60} seconds"
    cargo +nightly fuzz run "$target" -- -max_total_time="${1:-60}"
done
