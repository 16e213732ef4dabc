#!/usr/bin/env bash
# `make test`: the Rust tests are compiled and run beside `make test-python`, because the last steps of building the package
# use one processor, and some tests in Python wait. What cargo prints comes at the end.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

mkdir -p build
echo "cargo test --workspace --locked (what it prints comes at the end)"
# Without MAKEFLAGS, in which cargo would look for the processes that make may start.
env -u MAKEFLAGS -u MFLAGS cargo test --workspace --locked >build/test-rust.txt 2>&1 &
rust=$!
trap 'kill "$rust"; exit 130' INT TERM

make --no-print-directory test-python
python_failed=$?
wait "$rust"
rust_failed=$?
cat build/test-rust.txt
((python_failed == 0)) || echo "make test-python failed: see above what cargo prints" >&2
((rust_failed == 0)) || echo "cargo test failed" >&2
((python_failed == 0 && rust_failed == 0))
