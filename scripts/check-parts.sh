#!/usr/bin/env bash
# Runs lint, test and the parts of the complete check that the changed files call for, or with --nightly all parts: what
# scripts/changed_parts.py prints. Its options and paths are also taken here. The first part that fails ends the run.
#
# Each part uses all processors, so they run one after the other. Installing torch is mostly waiting for a network, and is
# done beside lint; where torch cannot be installed, the tests with it are skipped.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
torch=.venv-torch/torch.stamp

mkdir -p build
make --no-print-directory .venv/environment.stamp
.venv/bin/python scripts/changed_parts.py "$@" >build/parts.txt
echo "these parts run:" && cat build/parts.txt
# The compiler for Arm, with which lint compiles the NEON code.
if grep -q '^lint$' build/parts.txt; then
    scripts/test-emulated.sh aarch64 --install
fi

while read -r part <&3; do
    case $part in
        lint | lint-python)
            if grep -q '^test-torch$' build/parts.txt; then
                scripts/beside.sh "$part" sh -c "make --no-print-directory $torch || echo 'torch cannot be installed'"
            else
                make --no-print-directory "$part"
            fi
            ;;
        test-torch)
            if [ -e $torch ]; then
                make --no-print-directory test-torch
            else
                echo "torch cannot be installed: the tests with it are skipped"
            fi
            ;;
        *) eval "make --no-print-directory $part" ;;
    esac
done 3<build/parts.txt
