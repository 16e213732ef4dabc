"""Folders of vectors that are brought up to date: any sequence of changes, kills at every write, two writers, readers."""

from __future__ import annotations

import hashlib
import io
import json
import os
import random
import re
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tiny_models
import vector_folders
from processes import printed, python
from vector_folders import Rows, contents, expected, layout, write
from wordpiece_bert.errors import InputError
from wordpiece_bert.sentence import open_vectors, write_vectors
from wordpiece_bert.vectors import folder_update as writing
from wordpiece_bert.vectors import part_collector as collecting
from wordpiece_bert.vectors import part_files
from wordpiece_bert.vectors.layout import read_listing


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of 8 rows in groups of 3, so that few rows are many files."""
    monkeypatch.setattr(collecting, "PART_ROWS", 8)
    monkeypatch.setattr(collecting, "GROUP_ROWS", 3)
    monkeypatch.setattr(part_files, "GROUP_ROWS", 3)
    monkeypatch.setattr(writing, "TEXTS", 4)


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


DOCUMENTS = st.dictionaries(
    st.sampled_from([f"d{i}" for i in range(40)]),
    st.tuples(st.sampled_from(["a", "b", "ä long text"]), st.one_of(st.none(), st.integers(0, 2))),
    max_size=40,
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(DOCUMENTS, st.booleans()), min_size=1, max_size=4))
def test_a_folder_is_what_a_dict_would_be(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[Rows, bool]]
) -> None:
    folder = tmp_path_factory.mktemp("vectors")
    model: Rows = {}
    for rows, prune in steps:
        new = {key for key in rows if key not in model}
        changed = {key for key in rows if key in model and model[key][0] != rows[key][0]}
        others = {key for key in rows if key in model and model[key][0] == rows[key][0] and model[key] != rows[key]}
        gone = model.keys() - rows.keys()
        plan, embedded = write(folder, rows, prune=prune)
        assert sorted(embedded) == sorted(rows[key][0] for key in new | changed)
        assert (plan.new, plan.changed, plan.other_fields) == (len(new), len(changed), len(others))
        assert (plan.unchanged, plan.gone) == (len(rows) - len(new) - len(changed) - len(others), len(gone))
        model = rows if prune else model | rows
        assert contents(folder) == expected(model)
        listing = read_listing(folder)
        others = [listing.replaced.file] if listing.replaced else []
        assert files(folder) == {"vectors.json", *(part.file for part in listing.parts), *others}
        assert (listing.rows, len(open_vectors(folder))) == (len(model), len(model))
        if listing.replaced:
            assert listing.replaced.rows * 5 <= sum(part.rows for part in listing.parts)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(DOCUMENTS, st.booleans(), st.booleans()), min_size=2, max_size=6))
def test_a_search_finds_what_it_finds_in_a_folder_written_anew(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[Rows, bool, bool]]
) -> None:
    folder, of = tmp_path_factory.mktemp("vectors"), layout(("float32", "int8", "binary"))
    model: Rows = {}
    queries = np.stack([vector_folders.vector_of(text) for text in ("a", "b", "c")])
    for number, (rows, prune, compact) in enumerate(steps):
        write(folder, rows, prune=prune, of=of, compact=compact)
        model = rows if prune else model | rows
        anew = folder.parent / f"{folder.name}-{number}"
        write(anew, model, update=False, of=of)
        opened = open_vectors(folder)
        assert not (compact and read_listing(folder).replaced)
        for precision in ("float32", "int8", "binary"):
            for top_k in (1, 3, sys.maxsize):
                found, fresh = (
                    one.search_vectors(queries, top_k, precision=precision, rescore_multiplier=50)
                    for one in (opened, open_vectors(anew))
                )
                for mine, other in zip(found, fresh, strict=True):
                    assert [hit["score"] for hit in mine] == [hit["score"] for hit in other]
                    if top_k == sys.maxsize:  # of equal scores the order of the rows decides
                        assert sorted(mine, key=by_id) == sorted(other, key=by_id)


def by_id(hit: Any) -> Any:
    return hit["id"]


def new_bytes(folder: Path, before: set[str]) -> int:
    return sum(path.stat().st_size for path in folder.iterdir() if path.name not in before)


def test_a_small_update_writes_little_and_leaves_few_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()  # parts of the usual size
    rows: Rows = {f"d{i}": (f"text {i}", i % 7) for i in range(20_000)}
    folder = tmp_path / "v"
    write(folder, rows, update=False)
    whole = new_bytes(folder, set())
    chance = random.Random(1)
    for step in range(40):
        before = files(folder)
        some: Rows = {key: (f"new {step} {key}", 1) for key in chance.sample([*rows], 10)}
        write(folder, some)
        rows |= some
        # Ten rows, and rows of earlier updates that are joined with them.
        assert new_bytes(folder, before) < whole / 50
        assert len(files(folder)) < 14
    assert contents(folder) == expected(rows)
    before = files(folder)
    write(folder, dict.fromkeys(chance.sample([*rows], 200), ("of one per cent", 1)))
    assert new_bytes(folder, before) <= 0.05 * whole


def test_replaced_rows_are_joined_when_they_are_a_fifth(tmp_path: Path) -> None:
    rows: Rows = {f"d{i}": (f"text {i}", i) for i in range(40)}
    folder = tmp_path / "v"
    write(folder, rows, update=False)
    seen = set()
    for i in range(12):
        rows[f"d{i * 3}"] = ("another", i)
        write(folder, {f"d{i * 3}": ("another", i)})
        listing = read_listing(folder)
        seen.add(listing.replaced.rows if listing.replaced else 0)
        assert contents(folder) == expected(rows)
    assert 0 in seen
    assert max(seen) > 5


def test_other_programs_get_no_replaced_rows(tmp_path: Path) -> None:
    rows: Rows = {f"d{i}": (f"text {i}", i) for i in range(20)}
    write(tmp_path / "v", rows, update=False)
    write(tmp_path / "v", {"d3": ("new", 3)})
    with pytest.raises(InputError, match=r"have 1 rows that updates have replaced or deleted: read batches\(\)"):
        _ = open_vectors(tmp_path / "v").files
    write(tmp_path / "v", {"d3": ("new", 3)}, compact=True)
    opened = open_vectors(tmp_path / "v")
    assert sum(vector_folders.pyarrow.parquet.read_metadata(name).num_rows for name in opened.files) == 20
    assert contents(opened) == expected(rows | {"d3": ("new", 3)})


def test_a_folder_without_replaced_rows_is_as_earlier_versions_write_it(tmp_path: Path) -> None:
    write(tmp_path / "v", {f"d{i}": ("a", 1) for i in range(9)}, update=False)
    content = json.loads((tmp_path / "v" / "vectors.json").read_text())
    assert content.keys() == {"version", "rows", "layout", "ranges", "parts"}
    assert content["version"] == 1
    write(tmp_path / "v", {"d1": ("c", 1)})
    content = json.loads((tmp_path / "v" / "vectors.json").read_text())
    assert (content["version"], content["rows"]) == (2, 9)


def test_damage_of_the_list_of_replaced_rows_is_an_error(tmp_path: Path) -> None:
    write(tmp_path / "v", {f"d{i}": (f"text {i}", i) for i in range(20)}, update=False)
    write(tmp_path / "v", {"d3": ("new", 3)})
    (path,) = (tmp_path / "v").glob("replaced-*.npy")
    whole, listing = path.read_bytes(), (tmp_path / "v" / "vectors.json").read_text()
    path.write_bytes(whole[:-1] + b"\1")
    for call in (lambda: open_vectors(tmp_path / "v"), lambda: write(tmp_path / "v", {"d4": ("new", 4)})):
        with pytest.raises(InputError, match=r"replaced-000000\.npy: another program has changed it"):
            call()
    for values in ([3, 3], [99], [-1], ["x"]):
        array = io.BytesIO()
        np.save(array, np.array(values))
        path.write_bytes(array.getvalue())
        other = re.sub(r'"digest": "\w+"', f'"digest": "{hashlib.sha256(array.getvalue()).hexdigest()}"', listing)
        (tmp_path / "v" / "vectors.json").write_text(other)
        with pytest.raises(InputError, match=r"replaced-000000\.npy: is damaged"):
            open_vectors(tmp_path / "v")
    (tmp_path / "v" / "vectors.json").write_text(listing)
    path.unlink()
    with pytest.raises(InputError, match=r"replaced-000000\.npy: is missing"):
        open_vectors(tmp_path / "v")


def test_words_are_found_in_the_newest_texts(tmp_path: Path) -> None:
    models = tiny_models.make_all(tmp_path / "models")
    texts = ["bread dough", "a bicycle", "flour and water", "the cat", "a dog", "the mat"]
    columns: dict[str, Any] = {"text_column": "text", "id_column": "id", "keep": ["text"]}
    table = vector_folders.pyarrow.table({"id": [*range(6)], "text": texts})
    write_vectors(table, tmp_path / "v", models / "static", **columns)
    write_vectors(vector_folders.pyarrow.table({"id": [0], "text": ["the oven"]}), tmp_path / "v", update=True)
    folder = open_vectors(tmp_path / "v")
    assert read_listing(tmp_path / "v").replaced is not None
    for mode in ("bm25", "hybrid", "vectors"):
        hits = folder.search("dough oven", top_k=6, mode=mode)
        assert (hits[0]["id"], hits[0]["text"]) == (0, "the oven")
        assert "bread dough" not in [hit["text"] for hit in hits]
    assert sorted(folder.ids()) == [*range(6)]


def test_few_rows_change_few_parts(tmp_path: Path) -> None:
    rows: Rows = {f"d{i}": (f"text {i}", i) for i in range(72)}
    write(tmp_path / "v", rows, update=False)
    before = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "v").glob("*.parquet")}
    assert len(before) == 8
    rows["d20"] = ("another", 20)
    plan, embedded = write(tmp_path / "v", rows)
    assert embedded == ["another"]
    assert plan == writing.UpdatePlan(0, 1, 0, 71, 0, prune=False)
    after = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "v").glob("*.parquet")}
    assert after.items() > before.items()  # all files are the same, and there is a new one
    assert len(after) == len(before) + 1


def test_an_open_folder_stays_as_it_was(tmp_path: Path) -> None:
    rows: Rows = {f"d{i}": (f"text {i}", i) for i in range(20)}
    write(tmp_path / "v", rows, update=False)
    opened = open_vectors(tmp_path / "v")
    write(tmp_path / "v", {"d1": ("new", 1)}, prune=True)
    assert contents(opened) == expected(rows)
    assert contents(tmp_path / "v") == expected({"d1": ("new", 1)})


def test_a_folder_of_something_else_is_not_updated(tmp_path: Path) -> None:
    write(tmp_path / "v", {"d1": ("a", 1)}, update=False)
    with pytest.raises(InputError, match="has vectors already"):
        write(tmp_path / "v", {"d1": ("a", 1)}, update=False)
    with pytest.raises(InputError, match=r"what differs is precisions \(float32 in the folder, float32, int8 now\)"):
        write(tmp_path / "v", {"d1": ("a", 1)}, of=layout(("float32", "int8")))
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").touch()
    with pytest.raises(InputError, match=r"has files that are not vectors, such as notes\.txt"):
        write(tmp_path / "other", {"d1": ("a", 1)})
    for name, number in (("mine", 0), ("v", 3)):
        own = tmp_path / name / f"part-{number:06}.parquet"
        own.parent.mkdir(exist_ok=True)
        vector_folders.pyarrow.parquet.write_table(vector_folders.table_of({"d1": ("a", 1)}), own)
        with pytest.raises(InputError, match=rf"has files that are not vectors, such as {own.name}"):
            write(tmp_path / name, {"d1": ("a", 1)})
        own.unlink()
    (tmp_path / "v" / open_vectors(tmp_path / "v").files[0]).unlink()
    with pytest.raises(InputError, match=r"the part part-000000\.parquet is missing"):
        write(tmp_path / "v", {"d1": ("a", 1)})


def test_two_writers_are_refused(tmp_path: Path) -> None:
    other = (
        f"import pathlib, vector_folders as v; v.write(pathlib.Path({os.fspath(tmp_path / 'v')!r}), {{'d1': ('b', 1)}})"
    )

    def embed_within(texts: list[str]) -> writing.Encoded:
        with pytest.raises(InputError, match="is being written by another process"):
            write(tmp_path / "v", {"d1": ("b", 1)})
        run = python(other)
        assert run.returncode == 1
        assert "is being written by another process" in run.stderr
        raise KeyboardInterrupt

    of = layout()
    documents = vector_folders.Documents(vector_folders.table_of({"d1": ("a", 1)}), "body", "key", of.keep)
    with pytest.raises(KeyboardInterrupt):
        writing.write_folder(
            tmp_path / "v", documents, of, embed_within, update=False, prune=False,
            planned=lambda plan: None, done=lambda count, cut: None,
        )  # fmt: skip
    assert not (tmp_path / "v").exists()


def interrupted_write(folder: Path, rows: Rows, embed: Callable[[list[str]], writing.Encoded]) -> str:
    """Write documents with an encoder that is interrupted; return what the interruption says."""
    of = layout()
    documents = vector_folders.Documents(vector_folders.table_of(rows), "body", "key", of.keep)
    with pytest.raises(KeyboardInterrupt) as caught:
        writing.write_folder(
            folder, documents, of, embed, update=False, prune=False,
            planned=lambda plan: None, done=lambda count, cut: None,
        )  # fmt: skip
    (note,) = caught.value.__notes__
    return note


def test_an_interrupted_run_keeps_what_was_embedded_and_says_so(tmp_path: Path) -> None:
    rows: Rows = {f"d{i}": (f"text {i}", i) for i in range(20)}
    folder = tmp_path / "v"
    calls = 0

    def embed(texts: list[str]) -> writing.Encoded:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise KeyboardInterrupt
        return vector_folders.encoded(texts)

    assert (
        interrupted_write(folder, rows, embed)
        == f"8 of 20 texts are embedded and kept in {folder}; run it again for the rest"
    )
    plan, embedded = write(folder, rows, update=False)
    assert (plan.new, plan.unchanged) == (12, 8)
    assert embedded == [f"text {i}" for i in range(8, 20)]
    assert contents(folder) == expected(rows)


@pytest.mark.skipif(sys.platform == "win32", reason="signals of Unix")
def test_a_signal_while_a_part_is_written_takes_effect_when_the_part_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows: Rows = {f"d{i}": (f"text {i}", i) for i in range(20)}
    append = part_files.PartWriter.append

    def interrupted(writer: part_files.PartWriter, batch: object) -> None:
        signal.raise_signal(signal.SIGINT)
        append(writer, batch)

    monkeypatch.setattr(part_files.PartWriter, "append", interrupted)
    note = interrupted_write(tmp_path / "v", rows, vector_folders.encoded)
    monkeypatch.undo()
    assert note.startswith("4 of 20 texts are embedded and kept")
    _, embedded = write(tmp_path / "v", rows, update=False)
    assert embedded == [f"text {i}" for i in range(4, 20)]
    assert contents(tmp_path / "v") == expected(rows)


def test_an_interruption_before_the_first_vector_says_that_nothing_is_kept(tmp_path: Path) -> None:
    def embed(texts: list[str]) -> writing.Encoded:
        raise KeyboardInterrupt

    note = interrupted_write(tmp_path / "v", {"d1": ("a", 1)}, embed)
    assert note == "no text was embedded yet"
    assert not (tmp_path / "v").exists()


# A process that runs a write again and again, and kills the n-th attempt just before its n-th change of the disk.
KILLED = """
import os, signal, sys
from pathlib import Path
from killed_runs import killed_at
from vector_folders import contents, expected, write
from wordpiece_bert.vectors import part_collector, part_files, folder_update

part_collector.PART_ROWS, part_collector.GROUP_ROWS, part_files.GROUP_ROWS, folder_update.TEXTS = 8, 3, 3, 4
home = Path(sys.argv[1])
old = {f"d{i}": (f"text {i}", i) for i in range(20)}
new = {f"d{i}": (f"text {i}" if i % 5 else f"new {i}", i if i % 7 else None) for i in range(3, 30)}

def run(folder, rows, *, kill_at=None, **options):
    # Return the exit status, and how many texts were embedded.
    reading, writing_end = os.pipe()
    def child():
        os.write(writing_end, str(len(write(folder, rows, **options)[1])).encode())
        return 0
    code = killed_at(kill_at, child)
    os.close(writing_end)
    said = os.read(reading, 100)
    os.close(reading)
    return code, int(said or 0)

def check(name, before, after, options):
    total = None
    kill_at = 1
    again = []
    while True:
        folder = home / f"{name}{kill_at}"
        if before is not None:
            assert run(folder, before)[0] == 0
        code, _ = run(folder, after, kill_at=kill_at, **options)
        if code == 0:
            break
        assert code == -signal.SIGKILL, code
        if before is not None:
            assert contents(folder) in (expected(before), expected(after)), kill_at
        elif (folder / "vectors.json").exists():
            assert contents(folder) == expected(after), kill_at
        code, said = run(folder, after, **options)
        assert code == 0
        assert contents(folder) == expected(after), kill_at
        names = {path.name for path in folder.iterdir()}
        replaced = [path.name for path in folder.glob("replaced-*.npy")]
        assert len(replaced) < 2
        assert names - {path.name for path in folder.glob("part-*.parquet")} in ({"vectors.json"}, {"vectors.json", *replaced}), names
        again.append(said)
        kill_at += 1
    print(name, kill_at - 1, again[0], again[-1], flush=True)

check("new", None, old, {})
check("updated", old, new, {"prune": True})
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL, no fork")
def test_a_run_that_is_killed_at_any_change_of_the_disk_is_continued(tmp_path: Path) -> None:
    new, updated = (line.split() for line in printed(KILLED, tmp_path))
    # Every change was met; a run after a kill at the first embeds everything, after one at the last nothing.
    assert (new[0], new[2:], updated[0], updated[2:]) == ("new", ["20", "0"], "updated", ["13", "0"])
    assert int(new[1]) > 12
    assert int(updated[1]) > 20
