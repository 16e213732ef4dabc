"""Count the lines of code, documentation and tests by room of the Python package and by crate.

Usage: ``size.py [--since COMMIT] [--check]``, in the root of the repository. ``--since`` prints the difference to a
commit. ``--check`` fails where a sum is above what ``[tool.size]`` in ``pyproject.toml`` allows: growth is a decision,
which that table records.

Code is what is left of a file without blank lines, comments and docstrings; these are its documentation, blank lines
excepted. In Rust, tests are the files in ``tests`` folders, files named ``tests.rs``, and a module behind
``#[cfg(test)]`` that ends its file.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import subprocess
import sys
import tarfile
import tokenize
import tomllib
from collections import Counter
from pathlib import Path

PACKAGE = "python/wordpiece_bert/"
KINDS = ("code", "documentation", "tests")
#: Rows of the tests, beside the rooms of the package and the crates.
TESTS = ("tests/", "benchmarks/", "examples/", "scripts/")


def sources(commit: str | None) -> dict[str, str]:
    """Return the texts of the files of Python and Rust by path, in the working tree or in a commit."""
    if commit is None:
        listed = subprocess.run(["git", "ls-files", "-z", "*.py", "*.rs"], check=True, capture_output=True, text=True)
        paths = [path for path in listed.stdout.split("\0") if path and Path(path).is_file()]
        return {path: Path(path).read_text(encoding="utf-8") for path in paths}
    packed = subprocess.run(["git", "archive", commit], check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        return {
            entry.name: archive.extractfile(entry).read().decode("utf-8")  # type: ignore[union-attr]
            for entry in archive
            if entry.isfile() and entry.name.endswith((".py", ".rs"))
        }


def count_python(text: str) -> tuple[int, int]:
    """Return the lines of code and of documentation."""
    described: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
            first = node.body[0]
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                described.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    code: set[int] = set()
    ignored = (tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING, tokenize.ENDMARKER)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            described.add(token.start[0])
        elif token.type not in ignored and token.start[0] not in described:
            code.update(range(token.start[0], token.end[0] + 1))
    blank = {number for number, line in enumerate(text.splitlines(), 1) if not line.strip()}
    return len(code - blank), len(described - code - blank)


def count_rust(text: str) -> tuple[int, int]:
    """Return the lines of code and of documentation."""
    lines = [line.strip() for line in text.splitlines()]
    comments = sum(line.startswith("//") for line in lines)
    return sum(map(bool, lines)) - comments, comments


def measure(files: dict[str, str]) -> dict[str, Counter[str]]:
    """Return code, documentation and tests by row."""
    rows: dict[str, Counter[str]] = {}
    for path, text in files.items():
        parts = path.split("/")
        if path.startswith(PACKAGE):
            room = f"{parts[2]}/" if len(parts) > 3 else "*.py"
            code, documentation = count_python(text)
            rows.setdefault(PACKAGE + room, Counter()).update(code=code, documentation=documentation)
        elif path.endswith(".rs") and parts[0] == "rust":
            row = rows.setdefault(f"rust/{parts[1]}/", Counter())
            if {"tests", "fuzz", "benches"} & {*parts} or parts[-1] == "tests.rs":
                row["tests"] += len(text.splitlines())
                continue
            body, *tests = re.split(r"(?m)^(?=#\[cfg\(test\)\]\nmod \w+ \{)", text, maxsplit=1)
            code, documentation = count_rust(body)
            row.update(code=code, documentation=documentation, tests=sum(len(test.splitlines()) for test in tests))
        elif path.endswith(".py"):
            folder = next((name for name in TESTS if path.startswith(name)), "other/")
            rows.setdefault(folder, Counter())["tests"] += len(text.splitlines())
    return rows


def sums(rows: dict[str, Counter[str]]) -> dict[str, int]:
    """Return what `[tool.size]` limits."""
    return {
        "python": sum(row["code"] for name, row in rows.items() if name.startswith("python/")),
        "rust": sum(row["code"] for name, row in rows.items() if name.startswith("rust/")),
        "tests": sum(row["tests"] for name, row in rows.items() if name.startswith(("tests/", "benchmarks/"))),
    }


def show(rows: dict[str, Counter[str]], before: dict[str, Counter[str]] | None) -> None:
    """Print the table, with the differences to another."""
    print(f"{'':32}" + "".join(f"{kind:>22}" for kind in KINDS))
    total, old_total = Counter[str](), Counter[str]()
    for name in sorted({*rows, *(before or {})}):
        row, old = rows.get(name, Counter()), (before or {}).get(name, Counter())
        total.update(row)
        old_total.update(old)
        print(line(name, row, old if before is not None else None))
    print(line("in all", total, old_total if before is not None else None))


def line(name: str, row: Counter[str], old: Counter[str] | None) -> str:
    """Return a row of the table, with its differences to an older one."""
    cells = []
    for kind in KINDS:
        difference = "" if old is None or row[kind] == old[kind] else f" ({row[kind] - old[kind]:+,})"
        cells.append(f"{row[kind]:,}{difference}" if row[kind] or difference else "")
    return f"{name:32}" + "".join(f"{cell:>22}" for cell in cells)


def main() -> None:
    """Print the table, or check the sums."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--since", metavar="COMMIT", help="print the differences to this commit")
    parser.add_argument("--check", action="store_true", help="fail above the limits of pyproject.toml; print no table")
    options = parser.parse_args()
    rows = measure(sources(None))
    if not options.check:
        show(rows, measure(sources(options.since)) if options.since else None)
    limits = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["tool"]["size"]
    above = {name: lines for name, lines in sums(rows).items() if lines > limits[name]}
    for name, lines in above.items():
        print(
            f"{name}: {lines:,} lines, above the limit of {limits[name]:,}: make it smaller, or raise the limit in "
            "[tool.size] of pyproject.toml in a commit that says why",
            file=sys.stderr,
        )
    sys.exit(bool(above and options.check))


if __name__ == "__main__":
    main()
