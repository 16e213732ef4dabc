"""`--part I/N` and `merge`: any division gives the bytes of one run, killed parts are made again, wrong parts are refused."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from processes import printed
from wordpiece_bert import Tokenizer, merge_parts, open_vectors, write_vectors
from wordpiece_bert.cli import main
from wordpiece_bert.errors import InputError
from wordpiece_bert.tokenizer.corpus import row_writer
from wordpiece_bert.tokenizer.corpus.file_parts import part_of_files

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

WORDS = ["a", "the", "cat", "dog", "sat", "on", "mat", "bread", "dough", "oven", "flour", "water", "repair", "bicycle"]
FORMATS = ("npy", "parquet", "arrow", "arrows", "jsonl")


@pytest.fixture(autouse=True)
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(row_writer, "GROUP_ROWS", 7)  # so that few rows are several record batches


def write_tables(files: list[tuple[int, int]], seed: int = 0) -> list[str]:
    """Write Parquet files, each of so many rows in groups of so many, where nothing else is."""
    for path in Path().iterdir():
        if path.is_file():
            path.unlink()
    chance = random.Random(seed)
    names, row = [], 0
    for number, (rows, group) in enumerate(files):
        texts = [" ".join(chance.choices(WORDS, k=chance.randrange(9))) for _ in range(rows)]
        table = {"id": [f"d{row + i}" for i in range(rows)], "text": texts}
        row += rows
        names.append(f"t{number}.parquet")
        schema = pyarrow.schema([("id", pyarrow.string()), ("text", pyarrow.string())])
        parquet.write_table(pyarrow.table(table, schema=schema), names[-1], row_group_size=group)
    return names


def run(*arguments: str) -> None:
    assert main([*arguments, "-q"]) == 0


def in_parts(command: list[str], count: int, kind: str) -> list[str]:
    outputs = [f"part{i}.{kind}" for i in range(count)]
    for i, output in enumerate(outputs):
        run(*command, "--part", f"{i}/{count}", "-o", output)
    return outputs


def bytes_of(output: str) -> dict[str, bytes]:
    """What an output has written, by the ends of the names."""
    stem = output.partition(".")[0]
    own = [path for path in Path().iterdir() if path.name.partition(".")[0] == stem and path.is_file()]
    return {path.name.removeprefix(stem): path.read_bytes() for path in own}


FILES = st.lists(st.tuples(st.integers(0, 25), st.integers(1, 9)), min_size=1, max_size=3)


@settings(max_examples=25, deadline=None)
@given(FILES, st.integers(1, 6), st.sampled_from(FORMATS), st.booleans(), st.randoms(use_true_random=False))
def test_merged_vectors_are_the_bytes_of_one_run(
    models: Path, files: list[tuple[int, int]], count: int, kind: str, has_ids: bool, chance: random.Random
) -> None:
    names = write_tables(files)
    ids = ["--id-column", "id"] if has_ids and kind != "npy" else []
    command = ["embed", *names, "--text-column", "text", *ids, "-m", str(models / "static")]
    run(*command, "-o", f"one.{kind}")
    parts = in_parts(command, count, kind)
    chance.shuffle(parts)
    run("merge", *parts, "-o", f"merged.{kind}")
    assert bytes_of(f"one.{kind}") == bytes_of(f"merged.{kind}")


@settings(max_examples=20, deadline=None)
@given(FILES, st.integers(1, 5), st.sampled_from(FORMATS), st.sampled_from([[], ["--padding"]]))
def test_merged_tokens_are_the_bytes_of_one_run(
    models: Path, files: list[tuple[int, int]], count: int, kind: str, more: list[str]
) -> None:
    names = write_tables(files)
    command = ["encode", *names, "--text-column", "text", "-m", str(models / "static"), "--offsets", "--word-ids"]
    command += ["--max-length", "6", *more]
    run(*command, "-o", f"one.{kind}")
    run("merge", *in_parts(command, count, kind), "-o", f"merged.{kind}")
    assert bytes_of(f"one.{kind}") == bytes_of(f"merged.{kind}")


@pytest.mark.parametrize("kind", ["parquet", "arrow", "jsonl"])
@pytest.mark.parametrize("model", ["splade", "colbert"])
def test_merged_sparse_and_token_vectors_are_the_bytes_of_one_run(models: Path, model: str, kind: str) -> None:
    command = ["embed", *write_tables([(20, 3), (5, 5)]), "--text-column", "text", "-m", str(models / model)]
    run(*command, "-o", f"one.{kind}")
    run("merge", *in_parts(command, 3, kind), "-o", f"merged.{kind}")
    assert bytes_of(f"one.{kind}") == bytes_of(f"merged.{kind}")


@pytest.mark.parametrize("kind", FORMATS)
def test_files_of_lines_are_divided_too(models: Path, kind: str) -> None:
    for i in range(5):
        Path(f"{i}.txt").write_text("".join(f"{' '.join(WORDS[: j % 9])}\n" for j in range(i * 5)))
    names = [f"{i}.txt" for i in range(5)]
    for command, options in (("embed", ["-m", str(models / "static")]), ("encode", ["-m", str(models / "static")])):
        run(command, *names, *options, "-o", f"one.{kind}")
        run("merge", *in_parts([command, *names, *options], 3, kind), "-o", f"merged.{kind}")
        assert bytes_of(f"one.{kind}") == bytes_of(f"merged.{kind}")


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, 50), min_size=1, max_size=30), st.integers(1, 40))
def test_parts_are_disjoint_in_order_and_even(sizes: list[int], count: int) -> None:
    for path in Path().glob("*.txt"):
        path.unlink()
    names = [f"{i}.txt" for i in range(len(sizes))]
    for name, size in zip(names, sizes, strict=True):
        Path(name).write_bytes(b"x" * size)
    parts = [part_of_files(names, (i, count), tables=False) for i in range(count)]
    assert [file.path for part in parts for file in part if file.groups is None] == names
    largest = max(sizes) + 1
    for part in parts:
        own = sum(Path(file).stat().st_size + 1 for file in part if file.groups is None)
        assert abs(own - (sum(sizes) + len(sizes)) / count) <= largest


@settings(max_examples=15, deadline=None)
@given(FILES, st.integers(1, 5), st.sampled_from([["float32"], ["float32", "int8"], ["binary", "int8"]]))
def test_folders_of_parts_have_the_rows_of_one_run(
    models: Path,
    tmp_path_factory: pytest.TempPathFactory,
    files: list[tuple[int, int]],
    count: int,
    precision: list[str],
) -> None:
    names, home = write_tables(files), tmp_path_factory.mktemp("vectors")
    columns: dict[str, Any] = {"text_column": "text", "id_column": "id", "precision": precision, "keep": ["text"]}
    write_vectors(names, home / "one", models / "static", **columns)
    parts = [home / f"p{i}" for i in range(count)]
    for i, part in enumerate(parts):
        write_vectors(names, part, models / "static", part=(i, count), **columns)
    rows = merge_parts(parts[::-1], home / "all")
    one = pyarrow.Table.from_batches(open_vectors(home / "one").batches()) if rows else None
    for folder in (open_vectors(home / "all"), open_vectors(parts)):
        assert len(folder) == rows == sum(rows for rows, _ in files)
        if one is not None:
            assert pyarrow.Table.from_batches(folder.batches()).equals(one)
        if one is not None and "float32" in precision:
            found = folder.search("bread in the oven", top_k=3, precision="float32")
            assert found == open_vectors(home / "one").search("bread in the oven", top_k=3, precision="float32")
    inodes = {path.stat().st_ino for path in (home / "all").glob("*.parquet")}
    assert inodes == {path.stat().st_ino for part in parts for path in part.glob("*.parquet")}  # linked, not copied


def test_a_part_of_files_that_are_documents(models: Path) -> None:
    Path("texts").mkdir()
    for i in range(7):
        Path(f"texts/{i}.txt").write_text(f"the cat sat on the mat {i}. bread in the oven.\n")
    run("embed", "texts", "--whole", "-m", str(models / "static"), "-o", "one.vectors")
    for i in range(3):
        run("embed", "texts", "--whole", "-m", str(models / "static"), "-o", f"p{i}.vectors", "--part", f"{i}/3")
    merge_parts([f"p{i}.vectors" for i in range(3)], "all.vectors")
    tables = [pyarrow.Table.from_batches(open_vectors(name).batches()) for name in ("one.vectors", "all.vectors")]
    assert tables[0].equals(tables[1])


@pytest.mark.parametrize("kind", ["npy", "vectors"])
def test_a_part_that_is_complete_stays_as_it_is(models: Path, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["embed", *write_tables([(20, 5)]), "--text-column", "text", "-m", str(models / "static")]
    command += ["--id-column", "id"] if kind == "vectors" else []
    command += ["--part", "1/2", "-o", f"part.{kind}"]
    run(*command)
    times = {path: path.stat().st_mtime_ns for path in Path().rglob("*") if "part" in str(path)}
    assert main([*command, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == 10
    assert {path: path.stat().st_mtime_ns for path in Path().rglob("*") if "part" in str(path)} == times


def test_parts_can_be_divided_into_more_than_there_are_rows(models: Path) -> None:
    command = ["embed", *write_tables([(3, 1)]), "--text-column", "text", "-m", str(models / "static")]
    run(*command, "-o", "one.npy")
    parts = in_parts(command, 8, "npy")
    assert sorted(len(np.load(part)) for part in parts) == [0] * 5 + [1] * 3
    run("merge", *parts, "-o", "merged.npy")
    assert bytes_of("one.npy") == bytes_of("merged.npy")


@pytest.mark.parametrize("part", ["3/3", "0/0", "9/2"])
@pytest.mark.parametrize("output", ["ids.npy", "v.npy", "v.vectors"])
def test_parts_that_do_not_exist_are_refused(
    models: Path, part: str, output: str, capsys: pytest.CaptureFixture[str]
) -> None:
    names = write_tables([(3, 1)])
    command = ["encode" if output == "ids.npy" else "embed", *names, "--text-column", "text"]
    command += ["--id-column", "id"] if output == "v.vectors" else []
    assert main([*command, "-m", str(models / "static"), "-o", output, "--part", part]) == 2
    assert f"part {part}: parts are counted from 0" in capsys.readouterr().err
    assert not Path(output).exists()


@pytest.mark.parametrize("part", ["-1/2", "1", "a/b", "1/2/3", "¹/2", ""])
def test_what_is_no_part_is_refused(part: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["encode", "x.txt", "-o", "x.npy", f"--part={part}"])
    assert "is not I/N, such as 0/8" in capsys.readouterr().err


@pytest.mark.parametrize("part", [(-1, 2), (2, 2), (0, 0), (0.0, 1), (True, 2), "0/2", 3, None, (1, 2, 3)])
def test_the_functions_refuse_them_too(part: Any) -> None:
    Path("x.txt").write_text("a\n")
    with pytest.raises(InputError, match="part"):
        part_of_files(["x.txt"], part, tables=False)


def test_parts_need_files_and_an_output(capsys: pytest.CaptureFixture[str], models: Path) -> None:
    model = ["-m", str(models / "static")]
    names = write_tables([(3, 1)])
    for arguments, message in (
        (["encode", "-", "-o", "x.npy"], "standard input cannot be divided"),
        (["encode", *names, "--text-column", "text"], "give --output"),
        (["embed", *names, "--text-column", "text", "-o", "-"], "give --output"),
        (["embed", *names, "--text-column", "text", "--id-column", "id", "--update", "-o", "x.vectors"], "new folder"),
    ):
        assert main([*arguments, *model, "--part", "0/2"]) == 2
        assert message in capsys.readouterr().err


@pytest.fixture
def three(models: Path) -> list[str]:
    command = ["embed", *write_tables([(20, 4)]), "--text-column", "text", "--id-column", "id"]
    return in_parts([*command, "-m", str(models / "static")], 3, "parquet")


def test_missing_and_double_parts_are_named(three: list[str]) -> None:
    with pytest.raises(InputError, match="part 1/3 is missing: make it"):
        merge_parts([three[0], three[2]], "all.parquet")
    with pytest.raises(InputError, match="part 0/3 is missing, and 1 more"):
        merge_parts([three[2]], "all.parquet")
    with pytest.raises(InputError, match=r"part1\.parquet and part1\.parquet are both part 1/3"):
        merge_parts([*three, three[1]], "all.parquet")
    with pytest.raises(InputError, match="files is empty"):
        merge_parts([], "all.parquet")
    with pytest.raises(FileNotFoundError):
        merge_parts([three[0], "nothing.parquet"], "all.parquet")
    assert not Path("all.parquet").exists()


def test_parts_of_other_calls_are_named(three: list[str], models: Path) -> None:
    command = ["embed", "t0.parquet", "--text-column", "text", "--id-column", "id", "-m", str(models / "static")]
    for more, name in ((["--prompt", "x "], "prompt"), (["--errors", "strict"], None)):
        run(*command, *more, "--part", "1/3", "-o", "other.parquet")
        if name is None:
            merge_parts([three[0], "other.parquet", three[2]], "all.parquet")
        else:
            with pytest.raises(InputError, match=rf"other\.parquet is of another call.*what differs is {name}"):
                merge_parts([three[0], "other.parquet", three[2]], "all2.parquet")
    run(*command, "--part", "1/4", "-o", "other.parquet")
    with pytest.raises(InputError, match="it is part 1/4, the other one part 0/3"):
        merge_parts([three[0], "other.parquet", three[2]], "all2.parquet")
    table = parquet.read_table("t0.parquet")
    parquet.write_table(table, "t0.parquet", row_group_size=4, compression="none")  # the input changes
    run(*command, "--part", "1/3", "-o", "other.parquet")
    with pytest.raises(InputError, match="what differs is inputs"):
        merge_parts([three[0], "other.parquet", three[2]], "all2.parquet")


def test_parts_that_are_not_whole_are_refused(three: list[str]) -> None:
    content = Path(three[1]).read_bytes()
    Path(three[1]).write_bytes(content[:-9])
    with pytest.raises(InputError, match=r"part1\.parquet: has [\d,]+ bytes, not"):
        merge_parts(three, "all.parquet")
    Path(three[1]).write_bytes(content)
    record = Path("part1.parquet.part.json")
    for broken in ("{}", '{"part": 3}', record.read_text().replace('"count": 3', '"count": 4'), "not JSON"):
        whole = record.read_text()
        record.write_text(broken)
        with pytest.raises(InputError, match=r"part1\.parquet\.part\.json"):
            merge_parts(three, "all.parquet")
        record.write_text(whole)
    record.unlink()
    with pytest.raises(InputError, match="is not a complete part"):
        merge_parts(three, "all.parquet")
    assert not Path("all.parquet").exists()


def test_the_output_is_neither_a_part_nor_of_another_format(three: list[str]) -> None:
    for output, message in ((three[0], "input"), ("all.npy", "the parts are parquet"), ("no/all.parquet", "no")):
        with pytest.raises(InputError, match=message):
            merge_parts(three, output)


@pytest.mark.parametrize("kind", ["parquet", "arrow", "jsonl", "vectors"])
def test_an_id_in_two_parts_is_an_error(models: Path, kind: str) -> None:
    write_tables([(10, 5)])
    table = parquet.read_table("t0.parquet")
    twice = table.set_column(0, "id", pyarrow.array([*(f"d{i}" for i in range(9)), "d2"]))
    parquet.write_table(twice, "t0.parquet", row_group_size=5)
    command = ["embed", "t0.parquet", "--text-column", "text", "--id-column", "id", "-m", str(models / "static")]
    parts = in_parts(command, 2, kind)
    with pytest.raises(InputError, match="two rows have the same id, 'd2'"):
        merge_parts(parts, f"all.{kind}")
    assert not Path(f"all.{kind}").exists()


def test_folders_are_refused_where_they_are_no_parts(models: Path) -> None:
    names = write_tables([(10, 5)])
    columns: dict[str, Any] = {"text_column": "text", "id_column": "id"}
    write_vectors(names, "whole", models / "static", **columns)
    for i in range(2):
        write_vectors(names, f"p{i}", models / "static", part=(i, 2), **columns)
    with pytest.raises(InputError, match="whole: is not a part"):
        merge_parts(["p0", "whole"], "all")
    Path("x.npy").touch()
    with pytest.raises(InputError, match=r"x\.npy: is no folder, but p0 is one"):
        merge_parts(["p0", "x.npy"], "all")
    with pytest.raises(InputError, match="whole: exists"):
        merge_parts(["p0", "p1"], "whole")
    with pytest.raises(InputError, match="part 1/2 is missing"):
        merge_parts(["p0"], "all")
    with pytest.raises(InputError, match="are both part 0/2"):
        open_vectors(["p0", "p0"])
    with pytest.raises(InputError, match="is of another call"):
        write_vectors(names, "p0", models / "static", part=(0, 3), **columns)
    with pytest.raises(InputError, match="is part 0/2, not part 1/2"):
        write_vectors(names, "p0", models / "static", part=(1, 2), **columns)
    with pytest.raises(InputError, match="part divides files"):
        write_vectors(parquet.read_table(names[0]), "p3", models / "static", part=(0, 2), **columns)
    write_vectors(names, "p1", models / "static", update=True, keep=None)
    with pytest.raises(InputError, match="p1: is not a part: one run wrote it whole, or brought it up to date"):
        merge_parts(["p0", "p1"], "all")


# A process that writes a part again and again, each attempt killed just before a change of the disk that chance chooses.
KILLED = """
import os, random, signal, sys
from killed_runs import killed_at
from wordpiece_bert.cli import main
# A folder that the arguments may not write twice, or "".
once, arguments = sys.argv[2], sys.argv[3:]
chance = random.Random(int(sys.argv[1]))

def attempt(kill_at):
    return killed_at(kill_at, lambda: main(arguments))

kills = 0
for _ in range(8):
    code = attempt(chance.randrange(1, 12))
    if code == 0:
        break
    assert code == -signal.SIGKILL, code
    kills += 1
    if os.path.exists(once):
        break
assert os.path.exists(once) or attempt(None) == 0
print(kills)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL, no fork")
@pytest.mark.parametrize("kind", ["npy", "parquet", "vectors"])
def test_parts_and_merges_that_are_killed_at_random_are_made_again(models: Path, kind: str) -> None:
    names = write_tables([(30, 4), (9, 2)])
    ids = [] if kind == "npy" else ["--id-column", "id"]
    command = ["embed", *names, "--text-column", "text", *ids, "-m", str(models / "static"), "-q"]

    def killed(seed: int, *arguments: str, once: str = "") -> int:
        return int(printed(KILLED, seed, once, *arguments)[-1])

    run(*command[:-1], "-o", f"one.{kind}")
    parts = [f"part{i}.{kind}" for i in range(3)]
    kills = sum(killed(i, *command, "-o", part, "--part", f"{i}/3") for i, part in enumerate(parts))
    merged = f"merged.{kind}"
    for seed in (0, 1) if kind == "vectors" else (7,):
        shutil.rmtree(merged, ignore_errors=True)
        kills += killed(seed, "merge", *parts, "-o", merged, "-q", once=merged if kind == "vectors" else "")
    if kind == "vectors":
        tables = [
            pyarrow.Table.from_batches(open_vectors(name).batches()) for name in ("one.vectors", "merged.vectors")
        ]
        assert tables[0].equals(tables[1])
    elif kind == "npy":
        assert bytes_of("one.npy") == bytes_of("merged.npy")
    else:
        # The process has row groups of the usual size.
        assert parquet.read_table("one.parquet").equals(parquet.read_table("merged.parquet"))
    assert kills
    assert not [path for path in Path().rglob("*") if path.name.endswith(".part")]


def test_one_process_and_four_give_the_same(models: Path) -> None:
    """What an array of jobs runs, as local processes at the same time."""
    names = write_tables([(40, 4)])
    command = [sys.executable, "-m", "wordpiece_bert", "embed", *names, "--text-column", "text", "-q"]
    command += ["-m", str(models / "static")]
    workers = [subprocess.Popen([*command, "-o", f"part{i}.npy", "--part", f"{i}/4"]) for i in range(4)]
    assert [worker.wait() for worker in workers] == [0] * 4
    subprocess.run([*command, "-o", "one.npy"], check=True)
    run("merge", *(f"part{i}.npy" for i in range(4)), "-o", "merged.npy")
    assert bytes_of("one.npy") == bytes_of("merged.npy")


def test_token_stores_of_parts_have_the_rows_that_the_page_says(models: Path) -> None:
    chance = random.Random(3)
    for i in range(6):
        sentences = (" ".join(chance.choices(WORDS, k=chance.randint(3, 9))) + "." for _ in range(24))
        Path(f"{i}.txt").write_text("\n\n".join("\n".join(next(sentences) for _ in range(4)) for _ in range(6)))
    names = [f"{i}.txt" for i in range(6)]
    common = ["-m", str(models / "words")]
    run("pretrain-data", *names, *common, "--tokens", "one.tokens")
    for i in range(3):
        run("pretrain-data", *names, *common, "--tokens", f"{i}.tokens", "--part", f"{i}/3")
    run("pretrain-data", *(f"{i}.tokens" for i in range(3)), *common, "--tokens", "all.tokens", "-o", "unused.jsonl")
    same = {}
    for objective in ("text", "sop", "doc-sentences", "nsp", "full-sentences", "blocks"):
        for store in ("one", "all"):
            more = ["--objective", objective, "--max-length", "16", "-o", f"{store}-{objective}.jsonl"]
            run("pretrain-data", f"{store}.tokens", *common, *more)
        one, parts = (Path(f"{store}-{objective}.jsonl").read_text().splitlines() for store in ("one", "all"))
        same[objective] = sorted(one) == sorted(parts)
    assert same == {
        "text": True, "sop": True, "doc-sentences": True, "nsp": False, "full-sentences": False, "blocks": False,
    }  # fmt: skip


def test_readers_take_parts_of_files_in_the_place_of_paths(models: Path) -> None:
    names = write_tables([(20, 3)])
    tokenizer = Tokenizer.from_pretrained(models / "static")
    whole = [row for batch in tokenizer.iter_files(names, column="text") for row in batch.to_list()]
    parts = [part_of_files(names, (i, 3), tables=True) for i in range(3)]
    found = [row for part in parts for batch in tokenizer.iter_files(part, column="text") for row in batch.to_list()]
    assert found == whole
