"""Token stores: what is opened, verified, merged and exported. The stores here are written with NumPy alone."""

from __future__ import annotations

import json
import pickle
import zlib
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pretraining_readers import megatron
from test_pretraining_reference import cases
from wordpiece_bert.errors import InputError
from wordpiece_bert.pretraining import TokenStore, merge_token_stores

SHARDS = cases("store")["shards"]
COUNTS = cases("store")["counts"]
DTYPES = {"sentence_offsets": "<i8", "document_offsets": "<i8", "document_ids": "<u8"}


def write_store(folder: Path, shards: list[dict[str, Any]], dtype: str = "uint16", **changes: object) -> Path:
    """Write a store of these shards, as the specification describes it."""
    folder.mkdir(parents=True)
    entries = []
    for number, shard in enumerate(shards):
        files = {}
        for name in ("ids", *DTYPES):
            path = folder / f"{number:05}.{name}.npy"
            np.save(path, np.array(shard[name], DTYPES.get(name, dtype)))
            data = path.read_bytes()
            files[name] = {"name": path.name, "bytes": len(data), "crc32": f"{zlib.crc32(data):08x}"}
        sizes = {"tokens": len(shard["ids"]), "sentences": len(shard["sentence_offsets"]) - 1}
        entries.append({**sizes, "documents": len(shard["document_ids"]), "files": files})
    counts = {name: sum(entry[name] for entry in entries) for name in ("documents", "sentences", "tokens")}
    index = {
        "format": "wordpiece-bert tokens",
        "version": 1,
        "dtype": dtype,
        "tokenizer": "f" * 64,
        "vocab_size": 54,
        "options": {"documents": "blank-line"},
        "counts": {**counts, "documents_empty": 0, "sentences_empty": 0, "skipped": 0, "bytes": 6912},
        "shards": entries,
        **changes,
    }
    (folder / "index.json").write_text(json.dumps(index))
    return folder


def sentences_of(store: TokenStore) -> list[list[int]]:
    return [
        ids.tolist() for shard in store.shards for number in range(shard.documents) for ids in shard.document(number)
    ]


SENTENCES = [shard["ids"][a:b] for shard in SHARDS for a, b in pairwise(shard["sentence_offsets"])]


def test_a_store_maps_its_arrays(tmp_path: Path) -> None:
    store = TokenStore(write_store(tmp_path / "store", SHARDS))
    assert (store.documents, store.sentences, store.tokens) == tuple(
        COUNTS[name] for name in ("documents", "sentences", "tokens")
    )
    assert sentences_of(store) == SENTENCES
    assert all(isinstance(shard.ids, np.memmap) for shard in store.shards)
    assert [shard.document_ids.tolist() for shard in store.shards] == [shard["document_ids"] for shard in SHARDS]
    store.verify()
    assert "12 documents, 94 sentences, 2,919 tokens, uint16, 4 shards" in repr(store)
    assert "<td>2,919</td>" in store._repr_html_()


def test_a_store_is_pickled_as_its_path(tmp_path: Path) -> None:
    store = TokenStore(write_store(tmp_path / "store", SHARDS))
    sentences_of(store)  # the arrays are open
    data = pickle.dumps(store)
    assert len(data) < 500
    assert sentences_of(pickle.loads(data)) == SENTENCES


def test_a_cut_file_is_refused_on_opening(tmp_path: Path) -> None:
    folder = write_store(tmp_path / "store", SHARDS)
    path = folder / "00001.ids.npy"
    path.write_bytes(path.read_bytes()[:-2])
    with pytest.raises(InputError, match=r"00001\.ids\.npy: [\d,]+ bytes, but .*index\.json says"):
        TokenStore(folder)
    path.unlink()
    with pytest.raises(InputError, match=r"00001\.ids\.npy: No such file"):
        TokenStore(folder)


def test_a_changed_file_is_found_by_verify(tmp_path: Path) -> None:
    folder = write_store(tmp_path / "store", SHARDS)
    path = folder / "00002.sentence_offsets.npy"
    data = bytearray(path.read_bytes())
    data[-8] ^= 1
    path.write_bytes(data)
    store = TokenStore(folder)
    with pytest.raises(InputError, match=r"00002\.sentence_offsets\.npy: its CRC-32 is"):
        store.verify()


def test_offsets_that_do_not_ascend_are_found_by_verify(tmp_path: Path) -> None:
    shard = {**SHARDS[0], "sentence_offsets": [0, 3, 3, *SHARDS[0]["sentence_offsets"][3:]]}
    with pytest.raises(InputError, match="offsets must ascend from 0"):
        TokenStore(write_store(tmp_path / "store", [shard])).verify()


def test_what_is_no_finished_store_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such folder"):
        TokenStore(tmp_path / "nothing")
    folder = write_store(tmp_path / "store", SHARDS)
    (folder / "index.json").rename(folder / "journal.jsonl")
    with pytest.raises(InputError, match=r"no index\.json.*interrupted.*same call again"):
        TokenStore(folder)
    with pytest.raises(InputError, match="format is 'wordpiece-bert examples'"):
        TokenStore(write_store(tmp_path / "examples", [], format="wordpiece-bert examples"))
    with pytest.raises(InputError, match="version 2"):
        TokenStore(write_store(tmp_path / "newer", [], version=2))
    index = json.loads((folder / "journal.jsonl").read_text())
    (folder / "index.json").write_text(json.dumps({**index, "shards": [{"files": {"ids": {"name": 1}}}]}))
    with pytest.raises(InputError, match="shards must be a list"):
        TokenStore(folder)
    with pytest.raises(InputError, match="dtype 'float64'"):
        TokenStore(write_store(tmp_path / "floats", [], dtype="float64"))


@pytest.mark.parametrize(("vocab_size", "width"), [(65_499, 2), (65_500, 4)])
def test_megatron_reads_the_sentences(tmp_path: Path, vocab_size: int, width: int) -> None:
    store = TokenStore(write_store(tmp_path / "store", SHARDS, vocab_size=vocab_size))
    binary, index = store.to_megatron(tmp_path / "corpus.v1")
    assert (binary.name, index.name) == ("corpus.v1.bin", "corpus.v1.idx")
    assert binary.stat().st_size == width * store.tokens
    sentences, bounds = megatron(tmp_path / "corpus.v1")
    assert sentences == SENTENCES
    before, expected = 0, [0]
    for shard in SHARDS:
        expected += [before + one for one in shard["document_offsets"][1:]]
        before += len(shard["sentence_offsets"]) - 1
    assert bounds == expected
    assert sorted(path.name for path in tmp_path.iterdir()) == ["corpus.v1.bin", "corpus.v1.idx", "store"]
    with pytest.raises(InputError, match="is inside the store"):
        store.to_megatron(tmp_path / "other" / ".." / "store" / "corpus")


def test_parts_merge_without_a_copy(tmp_path: Path) -> None:
    parts = [write_store(tmp_path / "parts" / str(i), [shard]) for i, shard in enumerate(SHARDS)]
    merged = merge_token_stores(parts, tmp_path / "merged")
    assert [path.name for path in (tmp_path / "merged").iterdir()] == ["index.json"]
    assert sentences_of(merged) == SENTENCES
    merged.verify()
    assert merged.documents == COUNTS["documents"]
    # Relative names: all can be moved together, and a merged store can be merged again.
    (tmp_path / "parts").rename(tmp_path / "other")
    with pytest.raises(InputError, match="No such file"):
        TokenStore(tmp_path / "merged")
    (tmp_path / "other").rename(tmp_path / "parts")
    again = merge_token_stores([merged], tmp_path / "deeper" / "again")
    assert sentences_of(again) == SENTENCES
    assert sentences_of(merge_token_stores(parts, tmp_path / "merged")) == SENTENCES  # the same call


def test_stores_that_do_not_fit_together_are_refused(tmp_path: Path) -> None:
    first = write_store(tmp_path / "first", SHARDS[:1])
    other = write_store(tmp_path / "other", SHARDS[1:], tokenizer="e" * 64)
    wide = write_store(tmp_path / "wide", SHARDS[1:], dtype="uint32")
    merge_token_stores([first], tmp_path / "alone")
    for stores, output, message in [
        ([first, other], "merged", "its tokenizer is eee"),
        ([first, wide], "merged", "its dtype is uint32"),
        ([first, first], "merged", "given twice"),
        ([first, tmp_path / "alone"], "merged", "given twice in stores: its shards are in .*first too"),
        ([first], "first", "one of the stores to merge"),
        ([], "merged", "stores is empty"),
        (first, "merged", "must be a list of token stores"),
        ([first], "other", "another token store already"),
    ]:
        with pytest.raises(InputError, match=message):
            merge_token_stores(stores, tmp_path / output)  # type: ignore[arg-type]
    assert not (tmp_path / "merged").exists()
