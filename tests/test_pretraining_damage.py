"""Damaged files of stores and examples, and two writers of one output: an `InputError`, and nothing lost in silence."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pretraining_folders import tokenizer
from test_pretraining_build import write_files
from test_pretraining_reference import DATA
from wordpiece_bert.errors import InputError, WordPieceError
from wordpiece_bert.pretraining import (
    ExamplesReport,
    Masking,
    PretrainingDataset,
    TokenStore,
    build_examples,
    build_token_store,
    merge_token_stores,
)
from wordpiece_bert.pretraining.store_writer import StoreWriter

TOK = tokenizer()
SHARDS: dict[str, Any] = {"shard_tokens": 600}
FOLDERS = ["store", "rows", "packed"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store and example folders."""
    folder = tmp_path_factory.mktemp("made")
    store = build_token_store(TOK, DATA / "corpus.txt", folder / "store", **SHARDS)
    build_examples(store, folder / "rows", TOK, masking=Masking(TOK), objective="sop", max_length=40)
    build_examples(store, folder / "packed", TOK, objective="full-sentences", packing=True, max_length=40)
    return folder


@pytest.fixture(scope="module", autouse=True)
def _bounded_memory() -> Iterator[None]:
    """Let an allocation that a damaged file asks for fail, rather than succeed lazily."""
    if not sys.platform.startswith("linux"):
        yield
        return
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + (4 << 30), limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, limits)


def use(folder: Path) -> None:
    """Do all that reads a folder."""
    if folder.name == "store":
        store = TokenStore(folder)
        repr(store)
        store._repr_html_()
        store.verify()
        for shard in store.shards:
            for number in range(shard.documents):
                shard.document(number)
        build_token_store(TOK, DATA / "corpus.txt", folder, **SHARDS)
        merge_token_stores([folder], folder.parent / "merged")
        store.to_megatron(folder.parent / "megatron")
        build_examples(store, folder.parent / "examples", TOK, objective="sop", max_length=40)
    else:
        for pad_to in (None, "max_length"):
            dataset = PretrainingDataset(folder, pad_to=pad_to)  # type: ignore[arg-type]
            repr(dataset)
            dataset._repr_html_()
            assert len(dataset) < 1 << 40
            for row in range(min(len(dataset), 50)):
                dataset.batch([row])
            assert dataset.lengths.sum() >= 0
        dataset.verify()


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([-1, 0, 1, 1 << 31, 1 << 40, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, 1 << 64, 10**400, 0.5, 1e308]),
    st.sampled_from(["", "x", "uint8", "float64", "O", "../rows", "/dev/zero", "\x00", "𝟛", "-1", "1"]),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=2), st.integers(), max_size=2),
)


def ways(value: Any, way: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the way to every value in a JSON value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [way, *(found for key, item in items for found in ways(item, (*way, key)))]


def changed(value: Any, way: tuple[Any, ...], change: Callable[[Any, Any], None]) -> Any:
    """Return a JSON value in which `change` was called with the container and the key at the end of a way."""
    copy = json.loads(json.dumps(value))
    at = copy
    for key in way[:-1]:
        at = at[key]
    change(at, way[-1])
    return copy


@pytest.mark.parametrize("options", [{"masking": {"masked": None}}, {"masking": {"random": 2}}, {"masking": [1]}])
def test_shares_of_a_report_are_probabilities(options: dict[str, object]) -> None:
    content = {"output": "", "objective": "nsp", "row_length": 8, "options": options}
    with pytest.raises(InputError, match=r"masked|random|masking"):
        ExamplesReport.from_dict(content)


@pytest.mark.parametrize("name", FOLDERS)
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_damaged_index_is_an_error(
    made: Path, tmp_path_factory: pytest.TempPathFactory, name: str, data: st.DataObject
) -> None:
    index = json.loads((made / name / "index.json").read_text())
    way = data.draw(st.sampled_from([way for way in ways(index) if way]))
    if data.draw(st.booleans()):
        damaged = changed(index, way, lambda at, key: at.pop(key))
    else:
        value = data.draw(VALUES)
        damaged = changed(index, way, lambda at, key: at.__setitem__(key, value))
    folder = tmp_path_factory.mktemp("damaged") / name
    shutil.copytree(made / name, folder, copy_function=os.link)
    (folder / "index.json").unlink()
    (folder / "index.json").write_text(json.dumps(damaged))
    with suppress(WordPieceError):
        use(folder)


@pytest.mark.parametrize("name", FOLDERS)
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_damaged_bytes_are_an_error(
    made: Path, tmp_path_factory: pytest.TempPathFactory, name: str, data: st.DataObject
) -> None:
    path = data.draw(st.sampled_from(sorted((made / name).iterdir())))
    content = bytearray(path.read_bytes())
    ends = st.integers(0, len(content) - 1) | st.integers(0, min(len(content), 200) - 1)
    kind = data.draw(st.sampled_from(["bytes", "digits", "cut", "longer"]))
    if kind == "cut":
        del content[data.draw(ends) :]
    elif kind == "longer":
        content += data.draw(st.binary(min_size=1, max_size=9))
    elif kind == "bytes":
        for at in data.draw(st.lists(ends, min_size=1, max_size=8)):
            content[at] = data.draw(st.integers(0, 255))
    else:
        places = [i for i, byte in enumerate(content[:4096]) if 48 <= byte <= 57] or [0]
        for at in data.draw(st.lists(st.sampled_from(places), min_size=1, max_size=8)):
            content[at] = data.draw(st.sampled_from(b"09"))
    folder = tmp_path_factory.mktemp("damaged") / name
    shutil.copytree(made / name, folder, copy_function=os.link)
    (folder / path.name).unlink()
    (folder / path.name).write_bytes(content)
    with suppress(WordPieceError):
        use(folder)


@pytest.mark.parametrize("place", [0, 2])
def test_lengths_of_damaged_rows_are_an_error(made: Path, tmp_path: Path, place: int) -> None:
    folder = shutil.copytree(made / "packed", tmp_path / "packed")
    path = min(folder.glob("*row_offsets.npy"))
    offsets = np.load(path)
    offsets[place] += 1 << 20
    np.save(path, offsets)
    with pytest.raises(InputError, match=f"{path.name}: is damaged: a row ends before its start"):
        _ = PretrainingDataset(folder).lengths


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes")
@pytest.mark.parametrize("name", ["store", "rows"])
def test_a_pipe_in_place_of_a_file_does_not_hang(made: Path, tmp_path: Path, name: str) -> None:
    names = [path.name for path in (made / name).iterdir()]
    for number, victim in enumerate([*names, "journal.jsonl", "index.json.part"]):
        folder = tmp_path / str(number) / name
        shutil.copytree(made / name, folder)
        if victim == "journal.jsonl":
            (folder / "index.json").unlink()
        (folder / victim).unlink(missing_ok=True)
        os.mkfifo(folder / victim)
        if victim == "index.json.part":
            use(folder)
            continue
        for call in (lambda: use(folder), lambda: again(made, folder)):  # noqa: B023
            with pytest.raises(InputError):
                call()


def again(made: Path, folder: Path) -> None:
    """Make the same call that made a folder."""
    if folder.name == "store":
        build_token_store(TOK, DATA / "corpus.txt", folder, **SHARDS)
    else:
        build_examples(made / "store", folder, TOK, masking=Masking(TOK), objective="sop", max_length=40)


# --- journals


def content_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def stopped(made: Path, folder: Path, shards: int) -> Path:
    """Make a folder whose making was stopped after some shards."""
    left = [shards]
    if folder.name == "store":

        def finish(_: StoreWriter) -> None:
            raise KeyboardInterrupt

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(StoreWriter, "finish", finish)
            with pytest.raises(KeyboardInterrupt):
                again(made, folder)
    else:
        from wordpiece_bert.pretraining import journal

        append = journal.Journal.append

        def append_or_stop(self: Any, entry: dict[str, Any]) -> None:
            if "pass" in entry:
                if left[0] == 0:
                    raise KeyboardInterrupt
                left[0] -= 1
            append(self, entry)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(journal.Journal, "append", append_or_stop)
            with pytest.raises(KeyboardInterrupt):
                again(made, folder)
    return folder


@pytest.fixture(scope="module")
def stopped_folders(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    parent = tmp_path_factory.mktemp("stopped")
    for name in ("store", "rows"):
        stopped(made, parent / name, 3)
        assert (parent / name / "journal.jsonl").read_bytes().count(b"\n") >= 4
    return parent


@pytest.mark.parametrize("name", ["store", "rows"])
@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_run_goes_on_only_after_what_is_intact(
    made: Path,
    stopped_folders: Path,
    tmp_path_factory: pytest.TempPathFactory,
    name: str,
    data: st.DataObject,
) -> None:
    """Whatever happened to the journal or to a shard: the bytes equal an unbroken run's, or it is refused."""
    folder = tmp_path_factory.mktemp("damaged") / name
    shutil.copytree(stopped_folders / name, folder)
    path = data.draw(st.sampled_from([folder / "journal.jsonl", *sorted(folder.iterdir())]))
    lines = (folder / "journal.jsonl").read_bytes().splitlines(keepends=True)
    kind = data.draw(st.sampled_from(["missing", "bytes", "cut", "line twice", "line missing", "swapped", "none"]))
    if kind in ("line twice", "line missing", "swapped"):
        at = data.draw(st.integers(1, len(lines) - 1))
        other = data.draw(st.integers(1, len(lines) - 1))
        if kind == "swapped":
            lines[at], lines[other] = lines[other], lines[at]
        else:
            lines[at : at + 1] = [lines[at]] * 2 if kind == "line twice" else []
        (folder / "journal.jsonl").write_bytes(b"".join(lines))
    elif kind == "missing":
        path.unlink()
    elif kind != "none":
        content = bytearray(path.read_bytes())
        at = data.draw(st.integers(0, len(content) - 1))
        if kind == "cut":
            del content[at:]
        else:
            content[at] ^= data.draw(st.integers(1, 255))
        path.write_bytes(content)
    header_is_damaged = path.name == "journal.jsonl" and path.exists() and not path.read_bytes().startswith(lines[0])
    if header_is_damaged and kind == "bytes":
        with pytest.raises(InputError, match="begun"):
            again(made, folder)
        return
    again(made, folder)
    assert content_of(folder) == content_of(made / name)


@pytest.mark.parametrize("name", ["store", "rows"])
@pytest.mark.parametrize("at", [0, 20])
def test_a_carriage_return_does_not_end_a_header(
    made: Path, stopped_folders: Path, tmp_path: Path, name: str, at: int
) -> None:
    shutil.copytree(stopped_folders / name, tmp_path / name)
    content = bytearray((tmp_path / name / "journal.jsonl").read_bytes())
    content[at] = ord("\r")
    (tmp_path / name / "journal.jsonl").write_bytes(content)
    with pytest.raises(InputError, match="begun"):
        again(made, tmp_path / name)


# --- two writers


@pytest.mark.skipif(sys.platform == "win32", reason="there are no locks")
@pytest.mark.parametrize("name", ["store", "rows", "rows-mds", "merged"])
def test_a_second_writer_is_refused(made: Path, tmp_path: Path, name: str) -> None:
    import fcntl

    folder = tmp_path / name

    def call() -> object:
        if name == "merged":
            return merge_token_stores([made / "store"], folder)
        if name == "store":
            return build_token_store(TOK, DATA / "corpus.txt", folder, **SHARDS)
        kind: Any = "mds" if "mds" in name else "npy"
        return build_examples(made / "store", folder, TOK, format=kind, objective="sop", max_length=40)

    folder.mkdir()
    descriptor = os.open(folder, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    with pytest.raises(InputError, match="is being written by another process"):
        call()
    assert list(folder.iterdir()) == []
    os.close(descriptor)
    call()
    before = content_of(folder)
    call()
    assert content_of(folder) == before


PROGRAM = """
import sys
import time
import wordpiece_bert as wb
from wordpiece_bert.errors import InputError
from wordpiece_bert.pretraining import build_examples, build_token_store
vocab, corpus, store, rows = sys.argv[1:]
tokenizer = wb.Tokenizer.from_vocab(vocab)
for call in (
    lambda: build_token_store(tokenizer, corpus, store, shard_tokens=3_000, threads=1),
    lambda: build_examples(store, rows, tokenizer, objective="sop", dupe_factor=2, threads=1),
):
    while True:
        try:
            call()
            break
        except InputError as error:
            if "another process" not in str(error):
                raise
            time.sleep(0.005)
"""


def test_many_writers_lose_nothing(tmp_path: Path) -> None:
    [corpus] = write_files(tmp_path, [(DATA / "corpus.txt").read_text() * 60])
    arguments = [str(DATA / "vocab.txt"), str(corpus)]
    command = [sys.executable, "-c", PROGRAM, *arguments]
    subprocess.run([*command, str(tmp_path / "a"), str(tmp_path / "a-rows")], check=True)
    writers = [
        subprocess.Popen([*command, str(tmp_path / "b"), str(tmp_path / "b-rows")], stderr=subprocess.PIPE)
        for _ in range(4)
    ]
    for writer in writers:
        _, errors = writer.communicate(timeout=300)
        assert writer.returncode == 0, errors.decode()
    for name in ("", "-rows"):
        found = content_of(tmp_path / f"b{name}")
        assert found == content_of(tmp_path / f"a{name}")
    TokenStore(tmp_path / "b").verify()


def test_threads_of_one_process_are_kept_apart_too(tmp_path: Path) -> None:
    results: list[object] = []

    def write() -> None:
        try:
            results.append(build_token_store(TOK, DATA / "corpus.txt", tmp_path / "store", **SHARDS).tokens)
        except InputError as error:
            results.append("another process" in str(error))

    threads = [threading.Thread(target=write) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(results) <= {True, TokenStore(tmp_path / "store").tokens}
    TokenStore(tmp_path / "store").verify()
