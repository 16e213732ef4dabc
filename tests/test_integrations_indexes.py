"""The page about indexes: its sections run as printed where the package of each is installed."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

from test_docs import ROOT, Block, blocks, clone, run_block

__all__ = ["clone"]

PAGE = ROOT / "docs" / "how-to" / "indexes.md"
#: The package that a section needs.
PACKAGES = {"FAISS": "faiss", "usearch": "usearch"}


def sections() -> dict[str, list[Block]]:
    """The blocks of each section; those before the first are under an empty name."""
    text = PAGE.read_text(encoding="utf-8")
    heads = [(0, "")] + [(text.count("\n", 0, m.start()) + 1, m[1]) for m in re.finditer("^## (.*)$", text, re.M)]
    found: dict[str, list[Block]] = {name: [] for _, name in heads}
    for block in blocks(PAGE):
        found[[name for line, name in heads if line < block.line][-1]].append(block)
    return found


@pytest.mark.model
@pytest.mark.parametrize("name", [name for name in sections() if name])
def test_a_section_runs_as_printed(name: str, clone: Path) -> None:
    if name in PACKAGES:
        try:
            importlib.import_module(PACKAGES[name])
        except ImportError:
            pytest.skip(f"needs {PACKAGES[name]}: make test-integrations")
    session: dict[str, object] = {"__name__": "__main__"}
    compared = sum(run_block(block, PAGE.name, session) for block in (*sections()[""], *sections()[name]))
    assert compared >= 2
