"""The tables of modules in the documents on the design name every module, and none that does not exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "rust" / "DESIGN.md", ROOT / "docs" / "design.md"]
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
    for document in DOCUMENTS:
        for name, rows in TABLE.findall(document.read_text(encoding="utf-8")):
            cells = [row.split("|")[1] for row in rows.splitlines()]
            found.setdefault(name, []).extend(re.findall(r"`([^`]+)`", "".join(cells)))
    return found


TABLES = tables()


def test_every_crate_and_package_has_a_table() -> None:
    crates = {f"{path.parent.name}/src/" for path in (ROOT / "rust").glob("*/src")}
    packages = {f"wordpiece_bert/{name}/" for name in ("finetune", "inspect", "pretraining", "sentence", "serve")}
    assert crates | packages | {"wordpiece_bert/"} == set(TABLES)


@pytest.mark.parametrize("name", TABLES)
def test_a_table_names_the_modules_of_its_folder(name: str) -> None:
    named = TABLES[name]
    assert len(named) == len(set(named))
    assert set(named) == modules_of(folder_of(name))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
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
    assert paths
    assert not {path for path in paths if "NAME" not in path and not any((start / path).exists() for start in starts)}
