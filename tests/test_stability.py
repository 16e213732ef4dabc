"""Each public module says whether it is stable, and docs/reference/stability.md says the same."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent


def marks() -> dict[str, str]:
    """Return what the docstring of each module of the reference says."""
    pages = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "reference").glob("*.rst"))
    found = {}
    for module in sorted({*re.findall(r"^\.\. currentmodule:: (\S+)$", pages, re.MULTILINE)}):
        path = ROOT / "python" / module.replace(".", "/")
        file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        doc = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
        mark = re.fullmatch(r"Stability: (stable|provisional)\.", doc.splitlines()[-1])
        assert mark, f"the docstring of {module} ends without 'Stability: stable.' or 'Stability: provisional.'"
        found[module] = mark[1]
    return found


def test_each_public_module_is_marked_as_the_page_says() -> None:
    page = (ROOT / "docs" / "reference" / "stability.md").read_text(encoding="utf-8")
    listed = {}
    for word, kind in (("Stable", "stable"), ("Provisional", "provisional")):
        (line,) = re.findall(rf"^{word}: ([^;]*);", page, re.MULTILINE)
        listed |= dict.fromkeys(re.findall(r"`([\w.]+)`", line), kind)
    assert listed == marks()
    assert len(listed) > 30
