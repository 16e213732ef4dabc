"""Runs the property tests, Rust and Python, with random seeds.

    python scripts/fuzz_properties.py [SEEDS [FIRST]]

This Python has the package and its test dependencies installed. SEEDS (200) is how many seeds are tried: FIRST (a
random number, which is printed) and those after it, so that a run can be continued. A seed that fails is named at once
with the command that repeats it, the others follow, and the exit status is 1.

A process for each processor runs the tests of seed after seed, so that it imports what they need once.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

RUST = [
    "cargo",
    "test",
    "--release",
    "--locked",
    "--quiet",
    "--lib",
    "--tests",
    "-p",
    "wordpiece",
    "-p",
    "wordpiece-arrow",
]
QUIET = ["--quiet", "-p", "no:cacheprovider", "-p", "no:xdist", "--tb=short", "--no-header", "-rfE"]
POINTS = ["tests/test_against_peers.py", "-k", "every_code_point"]
SETTINGS = {"HYPOTHESIS_PROFILE": "random"}


def failures(seed: int | None) -> list[str]:
    """Run all property tests with a seed, without one the test of every code point; return what repeats what failed."""
    import pytest

    if seed is None:
        return [f"{sys.executable} -m pytest {' '.join(POINTS)}"] if pytest.main([*POINTS, *QUIET]) else []
    print(f"fuzz: properties, seed {seed}", flush=True)
    found = []
    if subprocess.run(RUST, env=os.environ | {"PROPTEST_RNG_SEED": str(seed)}, stdout=subprocess.DEVNULL).returncode:
        found.append(f"PROPTEST_RNG_SEED={seed} {' '.join(RUST)}")
    files = sorted(str(path) for path in Path("tests").glob("test_*.py") if "hypothesis" in path.read_text("utf-8"))
    properties = ["-m", "hypothesis", f"--hypothesis-seed={seed}"]
    if pytest.main([*properties, *QUIET, *files]):
        found.append(f"HYPOTHESIS_PROFILE=random {sys.executable} -m pytest {' '.join(properties)}")
    for command in found:
        print(f"fuzz: to repeat this failure: {command}", flush=True)
    return found


def tried(first: int, count: int) -> Iterator[str]:
    """Yield the commands that repeat what failed, of so many seeds."""
    with ProcessPoolExecutor(len(os.sched_getaffinity(0)), get_context("spawn")) as pool:
        for found in pool.map(failures, [None, *range(first, first + count)]):
            yield from found


def main() -> int:
    """Run all seeds; return 1 if one failed."""
    os.chdir(Path(__file__).resolve().parent.parent)
    os.environ |= SETTINGS
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    first = int(sys.argv[2]) if len(sys.argv) > 2 else secrets.randbelow(1 << 30)
    failed = list(tried(first, count))
    for command in failed:
        print(f"fuzz: failed: {command}")
    print(
        f"fuzz: {count} seeds from {first} on: {f'{len(failed)} commands failed' if failed else 'the properties hold'}"
    )
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
