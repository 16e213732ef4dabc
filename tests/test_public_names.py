"""The list of public names with their signatures is the package's."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LIST = ROOT / "tests" / "data" / "public_names.txt"


def test_the_list_of_public_names_is_that_of_the_package() -> None:
    done = subprocess.run(
        [sys.executable, "scripts/public_names.py", "--check"],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_list_has_functions_classes_methods_and_attributes() -> None:
    lines = LIST.read_text(encoding="utf-8").splitlines()
    assert len(lines) == len(set(lines))
    assert "wordpiece_bert.Tokenizer.encode_ids(text, pair=None)" in lines
    assert "class wordpiece_bert.corpus.EncodeSummary(output, texts, rows, tokens, truncated, truncated_places" in (
        line.partition(", skipped")[0] for line in lines
    )
    assert any(line.startswith("wordpiece_bert.RaggedBatch: ") and "row_offsets" in line for line in lines)
    assert "wordpiece_bert.errors.VocabError(WordPieceError, ValueError)" in lines
    assert "wordpiece_bert.training.train_vocab is wordpiece_bert.train_vocab" in lines


@pytest.mark.parametrize(
    "page", sorted((ROOT / "docs" / "_templates" / "by_task").glob("*.rst")), ids=lambda page: page.stem
)
def test_a_table_of_methods_by_task_has_all_of_them(page: Path) -> None:
    found = re.findall(rf"^{re.escape(page.stem)}\.(\w+)\(", LIST.read_text(encoding="utf-8"), re.MULTILINE)
    assert found
    assert sorted(re.findall(r":meth:`~\w+\.(\w+)`", page.read_text(encoding="utf-8"))) == sorted(found)
