#!/usr/bin/env bash
# Compiles the NEON code (64-bit Arm) with clippy. Skipped with a message where Rust's standard library for the target, or
# a C compiler for the wordpiece crate's C libraries, is missing: `make test-aarch64` installs both.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
target=aarch64-unknown-linux-gnu

if [ "$(uname -m)" = aarch64 ]; then
    exit 0 # clippy has seen it already
fi
if ! [ -d "$(rustc --print sysroot)/lib/rustlib/$target" ]; then
    echo "NEON: not compiled: no standard library for $target (make test-aarch64 installs it)"
    exit 0
fi
crates=(-p wordpiece-parallel -p wordpiece-kernels)
if command -v aarch64-linux-gnu-gcc >/dev/null; then
    crates+=(-p wordpiece-arrow -p wordpiece)
else
    echo "NEON: the wordpiece crate is not compiled: no aarch64-linux-gnu-gcc (make test-aarch64 installs it)"
fi
CC_aarch64_unknown_linux_gnu=aarch64-linux-gnu-gcc \
    cargo clippy --target "$target" --all-targets --locked "${crates[@]}" -- -D warnings
