"""The tables of modules in the documents on the design name every module, and none that does not exist."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest

from conftest import THOROUGH

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "rust" / "DESIGN.md", *sorted((ROOT / "rust").glob("*/DESIGN.md")), ROOT / "docs" / "design.md"]
#: The pages of the rooms of the Python package.
PAGES = sorted((ROOT / "python" / "wordpiece_bert").glob("*/README.md"))
#: A table of the modules of a folder, which its first line names.
TABLE = re.compile(r"^\| `([\w/]+/)` \| what it does \|\n\|[-|]+\|\n((?:\|.*\n)+)", re.MULTILINE)


def folder_of(name: str) -> Path:
    """Folders are named from the one that holds the crates or the Python package, or the modules of a crate."""
    found = [start / name for start in (ROOT / "rust", ROOT / "python") if (start / name).is_dir()]
    assert found, f"there is no folder {name}"
    return found[0]


def modules_of(folder: Path) -> set[str]:
    """The modules of a folder, as the tables name them: files with their ending, folders with a slash."""
    files = {path.name for path in folder.iterdir() if path.suffix in (".rs", ".py")}
    folders = {f"{path.name}/" for path in folder.iterdir() if path.is_dir() and any(path.rglob("*.[rp][sy]"))}
    return (files | folders) - {"__init__.py", "__main__.py", "lib.rs", "mod.rs", "tests.rs", "tests/", "page/"}


def tables() -> dict[str, list[str]]:
    """The modules that each table names in its first column, by the name of the folder."""
    found: dict[str, list[str]] = {}
    for document in [*DOCUMENTS, *PAGES]:
        for name, rows in TABLE.findall(document.read_text(encoding="utf-8")):
            cells = [row.split("|")[1] for row in rows.splitlines()]
            found.setdefault(name, []).extend(re.findall(r"`([^`]+)`", "".join(cells)))
    return found


TABLES = tables()


def test_the_files_of_thorough_tests_exist() -> None:
    assert {name for name in THOROUGH if not (ROOT / "tests" / f"{name}.py").is_file()} == set()


@pytest.mark.parametrize("path", sorted((ROOT / "tests").glob("*.py")), ids=lambda path: path.stem)
def test_what_a_file_of_tests_imports_is_there_or_named_where_it_is_skipped(path: Path) -> None:
    """Without the optional packages the tests are collected: `pytest.importorskip` names the package that is missing."""
    text = path.read_text(encoding="utf-8")
    own = {
        one.stem
        for folder in ("docs/_extensions", "examples", "scripts", "tests")
        for one in (ROOT / folder).glob("*.py")
    }
    there = {*sys.stdlib_module_names, *own, "benchmarks", "hypothesis", "numpy", "pytest", "wordpiece_bert"}
    for node in ast.parse(text).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [one.name for one in node.names]
            for package in {name.partition(".")[0] for name in names} - there:
                before = "".join(text.splitlines(keepends=True)[: node.lineno])
                assert f'importorskip("{package}' in before, f"{path.name} imports {package}"


def test_every_crate_and_package_has_a_table() -> None:
    crates = {f"{path.parent.name}/src/" for path in (ROOT / "rust").glob("*/src")}
    packages = {
        f"wordpiece_bert/{path.parent.name}/" for path in (ROOT / "python").glob("wordpiece_bert/*/__init__.py")
    }
    assert crates | packages | {"wordpiece_bert/"} == set(TABLES)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.parent.name)
def test_a_room_has_one_page(page: Path) -> None:
    assert len(page.read_text(encoding="utf-8").splitlines()) <= 40


@pytest.mark.parametrize("name", TABLES)
def test_a_table_names_the_modules_of_its_folder(name: str) -> None:
    named = TABLES[name]
    assert len(named) == len(set(named))
    assert set(named) == modules_of(folder_of(name))


@pytest.mark.parametrize("document", [*DOCUMENTS, *PAGES], ids=lambda path: path.relative_to(ROOT).as_posix())
def test_paths_in_a_document_exist(document: Path) -> None:
    """Paths of files in the text, from the root of the repository, of the crates, a crate, the package or one within."""
    text = document.read_text(encoding="utf-8")
    starts = [
        ROOT,
        ROOT / "rust",
        ROOT / "python",
        ROOT / "python" / "wordpiece_bert",
        *(ROOT / "rust").glob("*"),
        *(ROOT / "rust").glob("*/src"),
        *(ROOT / "python" / "wordpiece_bert").glob("*"),
    ]
    paths = set(re.findall(r"`([\w./-]+/[\w.-]+\.(?:rs|py|md|js|toml))`", text))
    assert paths or document in PAGES
    assert not {path for path in paths if "NAME" not in path and not any((start / path).exists() for start in starts)}


#: The crates that are published, whose documentation others read.
DOCUMENTED = ("arrow", "kernels", "parallel", "wordpiece")
#: Lines of documentation for a line of code, at least.
SHARE = 0.3
#: An item that is compiled for tests alone: its attribute, and its lines up to the end or to a brace as far in.
TESTS = re.compile(r"^( *)#\[cfg\(test\)\]\n(?: *#\[.*\n)*(?:.*;\n|.*\{\n(?:.*\n)*?\1\}\n)", re.MULTILINE)


def lines_of(source: str) -> tuple[int, int]:
    """The lines of documentation, and the lines of code, of a Rust file; tests and other comments are neither."""
    lines = [line.strip() for line in TESTS.sub("", source).splitlines()]
    documentation = sum(line.startswith(("///", "//!")) for line in lines)
    return documentation, sum(bool(line) and not line.startswith("//") for line in lines)


def test_lines_are_counted_as_documentation_or_code() -> None:
    source = """\
//! A crate.

/// A function.
// A comment.
#[inline]
pub fn one() -> u8 {
    1 // one
}

#[cfg(test)]
mod tests {
    /// A test.
    #[test]
    fn is_one() {
        assert_eq!(one(), 1);
    }
}

/// Another.
pub fn two() -> u8 { 2 }
"""
    assert lines_of(source) == (3, 5)
    assert lines_of("#[cfg(test)]\nmod tests;\n/// A type.\npub struct A;\n") == (1, 1)


@pytest.mark.parametrize("crate", DOCUMENTED)
def test_a_published_crate_is_documented(crate: str) -> None:
    documentation = code = 0
    for file in sorted((ROOT / "rust" / crate / "src").rglob("*.rs")):
        source = file.read_text(encoding="utf-8")
        if file.name != "tests.rs" and not source.startswith("// Generated by"):
            counted = lines_of(source)
            documentation, code = documentation + counted[0], code + counted[1]
    assert documentation >= SHARE * code, f"{documentation} lines of documentation for {code} of code"
