"""The slow reference of pre-training data reproduces the worked examples, which another implementation made."""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import pretraining_reference as reference

DATA = Path(__file__).with_name("data") / "pretraining"
TOKENS = (DATA / "vocab.txt").read_text().splitlines()
SPECIAL = reference.Special(TOKENS.index("[CLS]"), TOKENS.index("[SEP]"))


def cases(name: str) -> Any:
    return json.loads((DATA / f"{name}.json").read_text())


GENERATOR = cases("generator")


def store() -> reference.Store:
    """The store of ``store.json``."""
    made = reference.Store([])
    for shard in cases("store")["shards"]:
        documents = []
        for number, identity in enumerate(shard["document_ids"]):
            first, last = shard["document_offsets"][number : number + 2]
            bounds = shard["sentence_offsets"][first : last + 1]
            sentences = [shard["ids"][a:b] for a, b in pairwise(bounds)]
            documents.append(reference.Document(identity, sentences))
        made.shards.append(documents)
    return made


def test_mix_and_draws() -> None:
    assert all(reference.mix(int(z, 16)) == int(mixed, 16) for z, mixed in GENERATOR["mix"])
    assert [reference.draw(0, i) for i in range(5)] == [int(one, 16) for one in GENERATOR["draws_of_key_0"]]
    assert [reference.draw(1234567, i) for i in range(5)] == GENERATOR["draws_of_key_1234567"]


@pytest.mark.parametrize("case", GENERATOR["keys"])
def test_keys(case: dict[str, Any]) -> None:
    key = reference.key_of(case["seed"], case["stream"], case["epoch"], case["high"], case["low"])
    assert key == int(case["key"], 16)
    assert [reference.draw(key, i) for i in (0, 1, 2, 511)] == [int(one, 16) for one in case["draws"]]


def test_numbers_of_draws() -> None:
    assert all(reference.unit_of(int(u, 16)) == value for u, value in GENERATOR["unit"])
    assert all(reference.below_of(int(u, 16), n) == value for u, n, value in GENERATOR["below"])
    for case in GENERATOR["coins"]:
        assert reference.Draws(int(case["key"], 16)).coins(case["n"]) == case["ones"]
    for case in GENERATOR["span_length"]:
        u = int(case["draw"], 16)
        assert reference.span_length(u) == case["lengths"]["p=0.2 max=10"]
        assert reference.span_length(u, 0.5, 4) == case["lengths"]["p=0.5 max=4"]
    assert all(reference.text_id(text) == int(one, 16) for text, one in GENERATOR["text_id"])


@pytest.mark.parametrize("case", GENERATOR["epoch_order"])
def test_reading_orders(case: dict[str, Any]) -> None:
    assert reference.epoch_order(case["n"], case["seed"], case["epoch"]) == case["order"]


@pytest.mark.parametrize("case", cases("sentences"))
def test_sentences(case: dict[str, Any]) -> None:
    assert reference.split_line(case["line"]) == case["sentences"]


@pytest.mark.parametrize("case", cases("packing"))
def test_packing(case: dict[str, Any]) -> None:
    rows = reference.packed(case["lengths"], case["room"], case["window"], case["max_sequences_per_row"])
    assert rows == case["rows"]


@pytest.mark.parametrize("case", cases("rows"))
def test_rows(case: dict[str, Any]) -> None:
    report = Counter(dict.fromkeys(case["report"], 0))
    found = reference.rows_of(store(), SPECIAL, reference.Options(**case["options"]), report)
    assert [len(rows) for shards in found for rows in shards] == case["rows_of_each_pass_and_shard"]
    assert report == case["report"]
    flat = [row for shards in found for rows in shards for row in rows]
    for row in case["rows"]:
        one = flat[row["row"]]
        assert (one.ids, one.second, one.label) == (row["ids"], row["second"], row["label"])
        assert one.identity == tuple(row["identity"])


@pytest.mark.parametrize("case", cases("masking"))
def test_masking(case: dict[str, Any]) -> None:
    special = {TOKENS.index(token) for token in ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")}
    vocabulary = reference.Vocabulary(
        special=special,
        continues={i for i, token in enumerate(TOKENS) if token.startswith("##")},
        ordinary=[i for i in range(len(TOKENS)) if i not in special],
        mask=TOKENS.index("[MASK]"),
    )
    options = reference.MaskOptions(**case["options"])
    found = reference.mask_row(case["ids"], vocabulary, options, case["seed"], case["epoch"], 0, case["row"])
    assert found == (case["input_ids"], case["labels"], {int(place): fate for place, fate in case["fates"].items()})
