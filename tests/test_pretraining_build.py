"""Token stores that are built equal the stores of the slow reference, also after kill -9 at random moments."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pretraining_reference as reference
import wordpiece_bert as wb
from command_line import stdin
from killed_runs import finish_after_kills
from pretraining_folders import tokenizer
from test_pretraining_reference import DATA, TOKENS, cases
from wordpiece_bert.errors import InputError
from wordpiece_bert.pretraining import TokenStore, build_token_store, merge_token_stores, store_batches

TOK = tokenizer()
NAMES = ("documents", "documents_empty", "sentences", "sentences_empty", "tokens")

words = st.sampled_from(
    ["bami", "gu", "Mr.", "J.", "fi!", "zado?", "e.g.", "ka.", "雨。", "(so)", "”", "U.S.", "\x00\x00", "no…"]
)
lines = st.lists(words, max_size=6).map(" ".join)
contents = st.lists(lines | st.sampled_from(["", "", "  ", "\x00\x00", "\u3000"]), max_size=12).flatmap(
    lambda parts: st.sampled_from(["\n", "\r\n"]).map(lambda end: end.join(parts))
)


def encode(tok: wb.Tokenizer = TOK) -> Any:
    return lambda sentence: tok.encode(sentence, add_special_tokens=False).ids


def write_files(folder: Path, files: list[str]) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for number, content in enumerate(files):
        paths.append(folder / f"{number}.txt")
        paths[-1].write_bytes(content.encode())
    return paths


def content_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def assert_store(store: TokenStore, expected: reference.Store) -> None:
    assert {name: getattr(store, name) for name in NAMES} == {name: expected.counts[name] for name in NAMES}
    found = [
        [(int(shard.document_ids[i]), [ids.tolist() for ids in shard.document(i)]) for i in range(shard.documents)]
        for shard in store.shards
    ]
    assert found == [[(one.id, one.sentences) for one in shard] for shard in expected.shards]


def test_the_worked_store(tmp_path: Path) -> None:
    store = build_token_store(TOK, DATA / "corpus.txt", tmp_path / "store", shard_tokens=cases("store")["shard_tokens"])
    assert {name: getattr(store, name) for name in NAMES} == cases("store")["counts"]
    for shard, expected in zip(store.shards, cases("store")["shards"], strict=True):
        for name, values in expected.items():
            assert getattr(shard, name).tolist() == values
    store.verify()
    index = json.loads((tmp_path / "store" / "index.json").read_text())
    assert (index["format"], index["version"], index["dtype"]) == ("wordpiece-bert tokens", 1, "uint16")
    assert index["shards"][0]["files"]["ids"]["name"] == "00000.ids.npy"
    assert np.load(tmp_path / "store" / "00000.ids.npy", mmap_mode="r").dtype == np.uint16
    assert not (tmp_path / "store" / "journal.jsonl").exists()


@pytest.mark.parametrize("documents", ["blank-line", "line", "file"])
@pytest.mark.parametrize("sentences", ["lines", "split"])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40)
@given(st.lists(contents, min_size=1, max_size=4), st.sampled_from([1, 7, 1 << 28]))
def test_stores_equal_the_reference(
    tmp_path_factory: pytest.TempPathFactory, documents: str, sentences: str, files: list[str], shard_tokens: int
) -> None:
    folder = tmp_path_factory.mktemp("store")
    paths = write_files(folder, files)
    expected = reference.store_of(reference.documents_of(files, documents, sentences), encode(), shard_tokens)
    options: dict[str, Any] = {"documents": documents, "sentences": sentences, "shard_tokens": shard_tokens}
    if not expected.shards:
        with pytest.raises(InputError, match=r"no document|tokens"):
            build_token_store(TOK, paths, folder / "a", **options)
        return
    assert_store(build_token_store(TOK, paths, folder / "a", threads=1, **options), expected)
    build_token_store(TOK, paths, folder / "b", threads=8, **options)
    assert content_of(folder / "a") == content_of(folder / "b")


def test_abbreviations_are_replaced(tmp_path: Path) -> None:
    content = "Gu ka. Bami zado vol. Fi so\n"
    [path] = write_files(tmp_path, [content])
    for number, given_words in enumerate([[], ["ka"]]):
        store = build_token_store(TOK, path, tmp_path / str(number), sentences="split", abbreviations=given_words)
        expected = reference.documents_of([content], "blank-line", "split", given_words)
        assert_store(store, reference.store_of(expected, encode()))


def test_fields_with_ids(tmp_path: Path) -> None:
    texts = ["Bami gu.\nka fi", "", "\x00", "zado\n\nso ka."]
    ids = [7, "doc-1", "café", 2**64 - 1]
    path = tmp_path / "texts.jsonl"
    rows = [json.dumps({"meta": {"id": one}, "text": text}) for one, text in zip(ids, texts, strict=True)]
    path.write_text("\n".join(rows) + "\n")
    store = build_token_store(TOK, path, tmp_path / "ids", field="text", id_field="meta.id")
    numbers = [one if isinstance(one, int) else reference.text_id(one) for one in ids]
    cut = [reference.cut_lines(reference.lines_of(text), "lines") for text in texts]
    expected = reference.store_of([reference.Text(i, t) for i, t in zip(numbers, cut, strict=True)], encode())
    assert_store(store, expected)
    plain = build_token_store(TOK, path, tmp_path / "plain", field="text")
    assert_store(plain, reference.store_of([reference.Text(i, t) for i, t in enumerate(cut)], encode()))


@pytest.mark.parametrize("kind", ["int64", "uint64", "string"])
def test_columns_with_ids(tmp_path: Path, kind: str) -> None:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    texts = ["Bami gu.\nka fi", "", None, "caf\udce9", "zado\n\nso ka.", "ka"]  # the fourth is not UTF-8
    given_ids: list[Any] = ["a", "b", "c", "d", "é", "f"] if kind == "string" else [3, 2, 1, 0, 5, 9]
    if kind == "int64":
        given_ids[0] = -1
    values = [None if text is None else text.encode(errors="surrogateescape") for text in texts]
    table = pa.table({"id": pa.array(given_ids, kind), "text": pa.array(values, pa.binary()).view(pa.string())})
    pq.write_table(table, tmp_path / "texts.parquet", row_group_size=2)
    store = build_token_store(
        TOK, tmp_path / "texts.parquet", tmp_path / "store", column="text", id_column="id", errors="skip"
    )
    numbers = [reference.text_id(one) if isinstance(one, str) else one % 2**64 for one in given_ids]
    kept = [
        reference.Text(number, reference.cut_lines(reference.lines_of(text), "lines"))
        for number, text in zip(numbers, texts, strict=True)
        if text not in (None, texts[3])
    ]
    assert_store(store, reference.store_of(kept, encode()))
    assert store.skipped == 2
    (batch,) = store_batches(TOK, errors="skip")(table.to_batches())
    assert batch.column(0).to_pylist() == store.shards[0].document_ids.view("int64").tolist()
    with pytest.raises(InputError):
        build_token_store(TOK, tmp_path / "texts.parquet", tmp_path / "strict", column="text")


def test_compressed_files_and_other_line_ends_are_the_same(tmp_path: Path) -> None:
    content = (DATA / "corpus.txt").read_bytes()
    (tmp_path / "a.txt").write_bytes(content)
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress(content))
    (tmp_path / "c.txt").write_bytes(content.replace(b"\n", b"\r\n"))
    stores = [build_token_store(TOK, path, tmp_path / path.name[0]) for path in sorted(tmp_path.glob("*.*"))]
    ids = [store.shards[0].ids.tolist() for store in stores]
    assert ids[0] == ids[1] == ids[2]


def test_standard_input_is_read_from_its_beginning(tmp_path: Path, stdin: Callable[[bytes], None]) -> None:
    stdin((DATA / "corpus.txt").read_bytes())
    build_token_store(TOK, "-", tmp_path / "piped")
    build_token_store(TOK, DATA / "corpus.txt", tmp_path / "file")
    assert content_of(tmp_path / "piped")["00000.ids.npy"] == content_of(tmp_path / "file")["00000.ids.npy"]


def test_parts_have_the_documents_of_the_whole(tmp_path: Path) -> None:
    content = (DATA / "corpus.txt").read_text()
    paths = write_files(tmp_path, [content, "gu ka\n", content[:500], "\n", "bami\n\nfi"])
    whole = build_token_store(TOK, paths, tmp_path / "whole")
    parts = [build_token_store(TOK, paths, tmp_path / f"part-{i}", part=(i, 2)) for i in range(2)]
    merged = merge_token_stores(parts, tmp_path / "merged")
    assert merged.tokens == whole.tokens
    found = sorted(int(one) for shard in merged.shards for one in shard.document_ids)
    assert found == sorted(whole.shards[0].document_ids.tolist())
    with pytest.raises(InputError, match="part 7 of 8 has no file: there are 5"):
        build_token_store(TOK, paths, tmp_path / "none", part=(7, 8))


def test_a_finished_store_is_returned_and_another_call_refused(tmp_path: Path) -> None:
    [path] = write_files(tmp_path, ["gu ka\n\nbami\n"])
    first = build_token_store(TOK, path, tmp_path / "store")
    before = content_of(tmp_path / "store")
    assert build_token_store(TOK, path, tmp_path / "store").tokens == first.tokens
    assert content_of(tmp_path / "store") == before
    for arguments, message in [
        ({"documents": "line"}, "documents"),
        ({"shard_tokens": 5}, "shard_tokens"),
        ({"dtype": "uint32"}, "dtype"),
    ]:
        with pytest.raises(InputError, match=message):
            build_token_store(TOK, path, tmp_path / "store", **arguments)
    with pytest.raises(InputError, match="tokenizer"):
        build_token_store(TOK.with_added_tokens(["zebra"]), path, tmp_path / "store")
    path.write_text("gu ka\n\nbami fi\n")
    with pytest.raises(InputError, match="input_bytes"):
        build_token_store(TOK, path, tmp_path / "store")
    assert content_of(tmp_path / "store") == before


def test_bad_input_is_an_error_or_counted(tmp_path: Path) -> None:
    path = tmp_path / "bad.txt"
    path.write_bytes(b"gu ka\nba\xffmi\n\nfi\n")
    with pytest.raises(InputError, match=r"bad\.txt"):
        build_token_store(TOK, path, tmp_path / "strict")
    store = build_token_store(TOK, path, tmp_path / "skip", errors="skip")
    assert (store.skipped, store.sentences, store.documents) == (1, 2, 2)
    build_token_store(TOK, path, tmp_path / "replace", errors="replace")
    with pytest.raises(InputError, match=r"index\.json"):
        TokenStore(tmp_path / "strict")
    empty = tmp_path / "empty.txt"
    empty.write_text("\n \n")
    with pytest.raises(InputError, match="token"):
        build_token_store(TOK, empty, tmp_path / "nothing")
    for arguments, message in [
        ({"documents": "lines"}, "documents must be one of 'blank-line'"),
        ({"sentences": "cut"}, "sentences must be one of"),
        ({"dtype": "int64"}, "dtype must be one of"),
        ({"part": (2, 2)}, r"part must be \(i, n\) with i below n, not \(2, 2\)"),
        ({"part": 3}, r"part must be \(i, n\)"),
        ({"id_field": "id"}, "id_field='id' is for JSON lines"),
        ({"id_column": "id"}, "id_column='id' is for tables"),
        ({"shard_tokens": 0}, "shard_tokens must be"),
        ({"abbreviations": "mr"}, "abbreviations must be a list of str"),
        ({"errors": "ignore"}, "errors must be one of"),
        ({"field": 3}, "field must be a name"),
        ({"field": "text", "documents": "line"}, "documents='line' is for text"),
        ({"column": "text", "documents": "file"}, "documents='file' is for text"),
        ({"abbreviations": ["mr"]}, "abbreviations is for sentences='split'"),
    ]:
        with pytest.raises(InputError, match=message):
            build_token_store(TOK, path, tmp_path / "arguments", **arguments)
    assert not (tmp_path / "arguments").exists()
    with pytest.raises(FileNotFoundError):
        build_token_store(TOK, tmp_path / "missing.txt", tmp_path / "arguments")


def test_ids_beyond_uint16(tmp_path: Path) -> None:
    vocabulary = {token: i for i, token in enumerate(TOKENS)} | {"gu": 65_536}
    tok = wb.Tokenizer.from_vocab(vocabulary)
    [path] = write_files(tmp_path, ["gu ka\n\nbami\n"])
    with pytest.raises(InputError, match="uint32"):
        build_token_store(tok, path, tmp_path / "narrow", dtype="uint16")
    store = build_token_store(tok, path, tmp_path / "wide")
    assert store.dtype == np.uint32
    assert 65_536 in store.shards[0].ids


PROGRAM = """
import sys
import wordpiece_bert as wb
from wordpiece_bert.pretraining import build_token_store
vocab, output, *files = sys.argv[1:]
build_token_store(wb.Tokenizer.from_vocab(vocab), files, output, shard_tokens=20_000, threads=2)
"""


def corpus_of(folder: Path, megabytes: float, seed: int = 0) -> list[Path]:
    rng = random.Random(seed)
    pieces = [token.removeprefix("##") for token in TOKENS[5:]]
    paths = []
    for number in range(3):
        parts = []
        while sum(map(len, parts[-200:])) == 0 or len("".join(parts)) < megabytes * 1e6 / 3:
            for _ in range(200):
                parts.append(" ".join("".join(rng.choices(pieces, k=3)) for _ in range(rng.randrange(1, 30))) + "\n")
                if rng.random() < 0.2:
                    parts.append("\n")
        paths.append(folder / f"corpus-{number}.txt")
        paths[-1].write_text("".join(parts))
    return paths


def test_killed_runs_go_on_and_give_the_same_bytes(tmp_path: Path) -> None:
    files = [str(path) for path in corpus_of(tmp_path, 1)]

    def arguments(output: str) -> list[str]:
        return [PROGRAM, str(DATA / "vocab.txt"), str(tmp_path / output), *files]

    def check_refused() -> None:
        if not (tmp_path / "killed" / "index.json").exists():
            with pytest.raises(InputError):
                TokenStore(tmp_path / "killed")

    rng = random.Random(1)
    shares = [rng.uniform(0.1, 0.75) for _ in range(12)]
    finish_after_kills(arguments("whole"), arguments("killed"), shares, check_refused)
    assert content_of(tmp_path / "killed") == content_of(tmp_path / "whole")
