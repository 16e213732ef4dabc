"""The page of models says what the registry and the loaders do."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import wordpiece_bert
from wordpiece_bert import bert
from wordpiece_bert.bert.auto import read_config
from wordpiece_bert.bert.family_table import FAMILIES, family_named
from wordpiece_bert.errors import ConfigError

PAGE = Path(__file__).parent.parent / "docs" / "how-to" / "which-models-run.md"
RUNNING, REFUSED = PAGE.read_text(encoding="utf-8").split("## What is refused")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in RUNNING.splitlines()
    if line.startswith("| ") and not line.startswith(("| model |", "|---"))
]
#: Types that the page names as refused.
OTHER_TYPES = ("deberta", "roformer", "longformer", "big_bird", "t5", "funnel", "convbert", "layoutlm")


def test_every_type_of_the_table_is_registered_and_every_family_is_in_the_table() -> None:
    types = {name for row in ROWS for name in re.findall(r"`([\w-]+)`", row[1])} - {"alibi", "model2vec"}
    assert all(family_named(name) is not None for name in types)
    # Their config.json has other types: types of BERT and of the remote code.
    assert {FAMILIES[name].model_type for name in FAMILIES} - types == {"jina_bert", "gte"}


def test_every_class_of_the_table_exists() -> None:
    for row in ROWS:
        for name in re.findall(r"`([\w.]+)`", row[3]):
            where = wordpiece_bert if hasattr(wordpiece_bert, name.split(".")[0]) else bert
            if name == "M3Encoder":
                from wordpiece_bert import sentence as where  # type: ignore[no-redef]
            found: object = where
            for part in name.split("."):
                found = getattr(found, part)
            assert callable(found), name


def test_tokenizers_and_checks_have_the_words_of_the_page() -> None:
    kinds = ("WordPiece", "byte-level BPE", "Unigram", "Gemma's BPE")
    for row in ROWS:
        assert len(row) == 6, row
        assert row[2].startswith(kinds), row
        assert row[4].split(";")[0].split(",")[0] in ("weights", "layout", "code"), row


@pytest.mark.parametrize("name", OTHER_TYPES)
def test_types_that_are_named_as_refused_are(name: str, tmp_path: Path) -> None:
    assert f"`{name}`" in REFUSED
    (tmp_path / "config.json").write_text(f'{{"model_type": "{name}"}}')
    with pytest.raises(ConfigError, match=f"{name}"):
        read_config(tmp_path)
