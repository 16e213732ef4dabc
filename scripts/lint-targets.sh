#!/usr/bin/env bash
# Compiles with clippy what is compiled for other targets only: the NEON code (64-bit Arm), and the wordpiece crate without
# its C libraries (WebAssembly; compiled, never run). What is missing is named: Rust's standard library for the target, or a
# C compiler for the crate's C libraries on Arm; `make test-aarch64` installs both.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

have_target() {
    [ -d "$(rustc --print sysroot)/lib/rustlib/$1" ]
}

neon() {
    local target=aarch64-unknown-linux-gnu crates=(-p wordpiece-parallel -p wordpiece-kernels)
    if [ "$(uname -m)" = aarch64 ]; then
        return # clippy has seen it already
    fi
    if ! have_target "$target"; then
        echo "NEON: not compiled: no standard library for $target (make test-aarch64 installs it)"
        return
    fi
    if command -v aarch64-linux-gnu-gcc >/dev/null; then
        crates+=(-p wordpiece-arrow -p wordpiece)
    else
        echo "NEON: the wordpiece crate is not compiled: no aarch64-linux-gnu-gcc (make test-aarch64 installs it)"
    fi
    CC_aarch64_unknown_linux_gnu=aarch64-linux-gnu-gcc \
        cargo clippy --target "$target" --all-targets --locked "${crates[@]}" -- -D warnings
}

webassembly() {
    local target=wasm32-unknown-unknown
    if ! have_target "$target" && ! { command -v rustup >/dev/null && rustup target add "$target"; }; then
        echo "WebAssembly: not compiled: no standard library for $target (rustup target add $target)"
        return
    fi
    cargo clippy --target "$target" --no-default-features --locked -p wordpiece -- -D warnings
}

neon
webassembly
