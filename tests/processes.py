"""Programs that run in processes of their own, with what the tests may import."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent
from typing import Any

TESTS = Path(__file__).parent


def python(
    code: str, *arguments: object, env: Mapping[str, str] | None = None, seconds: float = 300, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run a program; its arguments are in `sys.argv`, and its environment is this one unless another is given."""
    path = os.pathsep.join([str(TESTS), *filter(None, sys.path)])
    return subprocess.run(
        [sys.executable, "-c", dedent(code), *map(str, arguments)],
        env={**(os.environ if env is None else env), "PYTHONPATH": path},
        capture_output=True, encoding="utf-8", timeout=seconds, check=False, **options,
    )  # fmt: skip


def printed(code: str, *arguments: object, **options: Any) -> list[str]:
    """Return the lines that a program prints, which must end well; the options are as for `python`."""
    done = python(code, *arguments, **options)
    assert done.returncode == 0, f"{done.returncode}: {done.stderr[-3000:]}"
    return done.stdout.splitlines()
