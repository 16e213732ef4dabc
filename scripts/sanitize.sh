#!/usr/bin/env bash
# Runs the Rust tests under AddressSanitizer, and those of the portable code under Miri.
#
# Both need a nightly toolchain (rustup toolchain install nightly); without one they are skipped with a message. Miri is
# an interpreter: it sees undefined behaviour that no crash shows, and neither vector instructions nor C libraries.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if ! cargo +nightly --version >/dev/null 2>&1; then
    echo "sanitize: skipped: needs a nightly toolchain (rustup toolchain install nightly)"
    exit 0
fi
host=$(rustc -vV | sed -n 's/^host: //p')
crates=(-p wordpiece-parallel -p wordpiece-kernels -p wordpiece-arrow -p wordpiece)

echo "sanitize: AddressSanitizer"
# A target is named so that build scripts and macros, which run on the host, are not instrumented.
RUSTFLAGS=-Zsanitizer=address CARGO_TARGET_DIR=target/sanitize \
    cargo +nightly test --locked --lib --tests --target "$host" "${crates[@]}" "$@"

if cargo +nightly miri --version >/dev/null 2>&1 || rustup +nightly component add miri rust-src; then
    echo "sanitize: Miri"
    # The tests read files and clocks.
    MIRIFLAGS="-Zmiri-disable-isolation" CARGO_TARGET_DIR=target/miri \
        cargo +nightly miri test --locked --lib "${crates[@]}" "$@"
else
    echo "sanitize: Miri is skipped: the nightly toolchain has no such component"
fi
