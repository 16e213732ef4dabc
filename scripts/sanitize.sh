#!/usr/bin/env bash
# Runs the Rust tests under AddressSanitizer, and the tests of the portable code under Miri. Names at the end what it did not run.
#
# Both need a nightly toolchain: rustup toolchain install nightly --component miri,rust-src. AddressSanitizer checks all
# instruction sets of this CPU; the standard library and the C libraries (Oniguruma, Zstandard) are not instrumented. Miri is
# an interpreter: it sees undefined behaviour that no crash shows, and neither vector instructions nor C libraries. Its part
# should take less than an hour; tests that would take too long are ignored or smaller there (`cfg(miri)`).
#
# Without Miri, the code that is written for it (no CPUID, no maps of memory, smaller tests) is compiled and run natively, so
# that it does not rot. Arguments go to `cargo test` under AddressSanitizer.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

crates=(wordpiece-parallel wordpiece-arrow wordpiece-kernels wordpiece)
# Of the tokenizer, the modules with unsafe code and what they call; the others are safe code.
modules=(added:: batch:: bert:: fast:: inputs:: matcher:: memory:: offsets:: scratch:: vocab::)
skipped=()

if cargo +nightly --version >/dev/null 2>&1; then
    host=$(rustc -vV | sed -n 's/^host: //p')
    for crate in "${crates[@]}"; do
        echo "sanitize: AddressSanitizer, $crate"
        # A target is named so that build scripts and macros, which run on the host, are not instrumented. Tests ask for memory
        # that cannot be had: the allocator returns null for it, as the system's allocator does, instead of ending the process.
        ASAN_OPTIONS=allocator_may_return_null=1 RUSTFLAGS=-Zsanitizer=address CARGO_TARGET_DIR=target/sanitize \
            cargo +nightly test --locked --lib --tests --target "$host" -p "$crate" "$@"
    done
else
    skipped+=("AddressSanitizer (rustup toolchain install nightly)")
fi

# Runs COMMAND... for each crate, with the tests that Miri interprets.
portable_tests() {
    local crate
    for crate in "${crates[@]}"; do
        echo "sanitize: $*, $crate"
        # The tests read files and clocks. The threads of the pool live as long as the process, which Miri calls a leak; the
        # crate for Arrow uses no threads, and owns memory through raw pointers: there, leaks are errors.
        case $crate in
        wordpiece-arrow) MIRIFLAGS="-Zmiri-disable-isolation" "$@" --locked --lib --tests -p "$crate" ;;
        wordpiece) MIRIFLAGS="-Zmiri-disable-isolation -Zmiri-ignore-leaks" \
            "$@" --locked --lib -p "$crate" -- "${modules[@]}" ;;
        *) MIRIFLAGS="-Zmiri-disable-isolation -Zmiri-ignore-leaks" "$@" --locked --lib -p "$crate" ;;
        esac
    done
}

if cargo +nightly miri --version >/dev/null 2>&1; then
    # With backtraces, each panic of a test takes Miri many seconds.
    export CARGO_TARGET_DIR=target/miri RUST_BACKTRACE=0
    portable_tests cargo +nightly miri test
else
    skipped+=("Miri (rustup +nightly component add miri rust-src); its code was only run natively")
    export CARGO_TARGET_DIR=target/cfg-miri RUSTFLAGS="--cfg miri"
    portable_tests cargo test
fi

if [ ${#skipped[@]} -gt 0 ]; then
    printf 'sanitize: NOT RUN: %s\n' "${skipped[@]}"
fi
