#!/usr/bin/env bash
# `make test` and `make test-thorough`: the target of make with the tests in Python, then arguments of `cargo test`. Both run
# side by side, because the last steps of building the package use one processor, and some tests in Python wait. What cargo
# prints comes at the end.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

target=$1
cargo_test=(cargo test --locked "${@:2}")

mkdir -p build
echo "${cargo_test[*]} (what it prints comes at the end)"
# Without MAKEFLAGS, in which cargo would look for the processes that make may start.
env -u MAKEFLAGS -u MFLAGS "${cargo_test[@]}" >build/test-rust.txt 2>&1 &
rust=$!
trap 'kill "$rust"; exit 130' INT TERM

make --no-print-directory "$target"
python_failed=$?
wait "$rust"
rust_failed=$?
cat build/test-rust.txt
((python_failed == 0)) || echo "make $target failed: see above what cargo prints" >&2
((rust_failed == 0)) || echo "cargo test failed" >&2
((python_failed == 0 && rust_failed == 0))
