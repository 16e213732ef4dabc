#!/usr/bin/env bash
# Runs a target of make and, beside it, a command: many steps use one processor, or wait. What the command prints comes at the
# end.
#
#     scripts/beside.sh test-python cargo test --locked
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

target=$1
command=("${@:2}")
output=build/beside-$target.txt

mkdir -p build
echo "${command[*]} (what it prints comes at the end)"
# Without MAKEFLAGS, in which cargo would look for the processes that make may start.
env -u MAKEFLAGS -u MFLAGS "${command[@]}" >"$output" 2>&1 &
other=$!
trap 'kill "$other"; exit 130' INT TERM

make --no-print-directory "$target"
target_failed=$?
wait "$other"
other_failed=$?
cat "$output"
((target_failed == 0)) || echo "make $target failed: see above what was printed beside it" >&2
((other_failed == 0)) || echo "${command[*]} failed" >&2
((target_failed == 0 && other_failed == 0))
