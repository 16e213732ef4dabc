#!/usr/bin/env bash
# Runs the property tests with random seeds: scripts/fuzz-properties.sh [PYTHON [SEEDS]]
#
# PYTHON (python3) has the package and its test dependencies installed; SEEDS (200) is how many seeds are tried. A seed that
# fails is named at once with the command that repeats it, the others follow, and the exit status is 1.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

python=${1:-python3}
seeds=${2:-200}
export HYPOTHESIS_PROFILE=random

failed=()
try() {
    if ! env "$@"; then
        failed+=("$*")
        echo "fuzz: to repeat this failure: HYPOTHESIS_PROFILE=random $*" >&2
    fi
}
try "$python" -m pytest --quiet tests/test_against_peers.py -k every_code_point
for ((i = 1; i <= seeds; i++)); do
    seed=$((RANDOM << 15 | RANDOM))
    echo "fuzz: properties, seed $seed ($i of $seeds)"
    try PROPTEST_RNG_SEED="$seed" cargo test --release --locked --quiet -p wordpiece -p wordpiece-arrow
    try "$python" -m pytest --quiet -m hypothesis --hypothesis-seed="$seed"
done
if ((${#failed[@]})); then
    printf 'fuzz: failed: %s\n' "${failed[@]}" >&2
    exit 1
fi
echo "fuzz: the properties hold for $seeds seeds"
