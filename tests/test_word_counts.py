"""Word counts: the same words as the reference, for any number of threads, any order and any kind of source."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import strategies
import wordpiece_bert as wb
from wordpiece_bert.errors import InputError, TrainingError
from wordpiece_bert.training import NormalizerSettings

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

DATA = Path(__file__).parent / "data" / "trainers"

OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "lowercase": st.booleans(),
        "strip_accents": st.none() | st.booleans(),
        "clean_text": st.booleans(),
        "tokenize_chinese_chars": st.booleans(),
    },
)


def by_reference(items: list[str], options: dict[str, bool | None]) -> dict[str, int]:
    tokenizers = pytest.importorskip("tokenizers")
    normalizer = tokenizers.normalizers.BertNormalizer(
        clean_text=options.get("clean_text", True),
        handle_chinese_chars=options.get("tokenize_chinese_chars", True),
        strip_accents=options.get("strip_accents"),
        lowercase=options.get("lowercase", True),
    )
    splitter = tokenizers.pre_tokenizers.BertPreTokenizer()
    counts: Counter[str] = Counter()
    for item in items:
        for word, _ in splitter.pre_tokenize_str(normalizer.normalize_str(item)):
            counts[word] += 1
    return counts


# --- the words


@given(st.lists(strategies.texts, max_size=8), OPTIONS)
def test_words_are_those_of_the_reference(items: list[str], options: dict[str, bool | None]) -> None:
    assert wb.WordCounts.from_texts(items, **options).to_dict() == by_reference(items, options)  # type: ignore[arg-type]


def test_combining_marks_survive_block_boundaries() -> None:
    # Long words with marks that canonical ordering reorders, around every multiple of 4 KiB.
    items = ["x" * n + " a\u0301\u0327 o\u0308\u0323 " * 300 + "y" * (9000 - n) for n in range(4080, 4110)]
    assert wb.WordCounts.from_texts(items).to_dict() == by_reference(items, {})


@pytest.mark.parametrize("lowercase", [True, False])
def test_words_of_a_file_with_all_kinds_of_characters(lowercase: bool) -> None:
    name = "text.lower.counts.tsv" if lowercase else "text.cased.counts.tsv"
    rows = (DATA / name).read_bytes().decode().split("\n")[:-1]
    counts = wb.WordCounts.from_files(DATA / "text.txt", lowercase=lowercase)
    assert [f"{word}\t{n}" for word, n in counts.most_common()] == rows
    assert counts.texts == (DATA / "text.txt").read_bytes().count(b"\n") + 1
    assert counts.bytes == (DATA / "text.txt").stat().st_size


@given(st.lists(strategies.texts, max_size=6), st.integers(0, 6))
def test_counts_do_not_depend_on_files_parts_and_threads(items: list[str], cut: int) -> None:
    lines = [line for item in items for line in item.split("\n")]
    whole = wb.WordCounts.from_texts(lines, threads=1)
    assert wb.WordCounts.from_texts(iter(lines), threads=3) == whole
    assert wb.WordCounts.from_texts(pa.array(lines, pa.string())) == whole
    parts = [wb.WordCounts.from_texts(part) for part in (lines[:cut], lines[cut:])]
    assert parts[0] + parts[1] == parts[1] + parts[0] == sum(parts) == whole
    assert wb.WordCounts.from_texts(reversed(lines)).to_dict() == whole.to_dict()


def test_a_large_file_over_threads_is_the_sum_of_its_lines(tmp_path: Path) -> None:
    lines = [f"word{i % 977} Übung{i % 13}, {'long' * (i % 9)}! 中文{i % 5}" for i in range(200_000)]
    path = tmp_path / "large.txt"
    path.write_text("\n".join(lines), encoding="utf-8")
    assert path.stat().st_size > 5 << 20
    one = wb.WordCounts.from_files(path, threads=1)
    assert one == wb.WordCounts.from_files(path, threads=4)
    assert one.to_dict() == wb.WordCounts.from_texts(lines).to_dict()
    assert one.texts == 200_000
    assert one["word0"] == len(range(0, 200_000, 977))


def test_a_byte_order_mark_is_skipped(tmp_path: Path) -> None:
    (tmp_path / "bom.txt").write_bytes(b"\xef\xbb\xbfhello")
    assert wb.WordCounts.from_files(tmp_path / "bom.txt", clean_text=False).to_dict() == {"hello": 1}


# --- hostile input


def test_invalid_utf8_is_reported_with_its_location(tmp_path: Path) -> None:
    path = tmp_path / "bad.txt"
    filler = b"a line of text\n" * 200_000
    path.write_bytes(filler + b"b\xe9d \xff here\nlast\n" + filler)
    with pytest.raises(TrainingError) as raised:
        wb.WordCounts.from_files(path)
    assert f"{path}: not UTF-8: byte 0xe9 in line 200001, byte offset {len(filler) + 1}" in str(raised.value)
    replaced = wb.WordCounts.from_files(path, errors="replace")
    assert (replaced["bd"], replaced["here"], replaced.replaced, replaced.skipped) == (1, 1, 2, 0)
    skipped = wb.WordCounts.from_files(path, errors="skip")
    assert (skipped["bd"], skipped["here"], skipped["last"], skipped.skipped) == (0, 0, 1, 1)
    assert skipped.texts == replaced.texts == 400_002


def test_utf16_is_refused_with_a_mark_and_without(tmp_path: Path) -> None:
    plain = tmp_path / "plain.txt"
    plain.write_text("one\n")
    for start in ("\ufeff", ""):
        for coding in ("utf-16-le", "utf-16-be"):
            path = tmp_path / f"{coding}.txt"
            path.write_bytes(f"{start}hello\nyou\n".encode(coding))
            with pytest.raises(TrainingError, match="begins as UTF-16"):
                wb.WordCounts.from_files(path)
            skipped = wb.WordCounts.from_files([path, plain], errors="skip")
            assert (skipped.to_dict(), skipped.skipped >= 2) == ({"one": 1}, True)


def test_the_first_error_is_reported_for_any_number_of_threads(tmp_path: Path) -> None:
    path = tmp_path / "bad.txt"
    path.write_bytes((b"text\n" * 300_000 + b"\xff\n") * 4)
    for threads in (1, 4):
        with pytest.raises(TrainingError, match="in line 300001,"):
            wb.WordCounts.from_files(path, threads=threads)


def test_random_bytes_and_endless_lines_end_quickly(tmp_path: Path) -> None:
    path = tmp_path / "noise.bin"
    path.write_bytes(os.urandom(4 << 20))
    start = time.monotonic()
    with pytest.raises(TrainingError, match="not UTF-8"):
        wb.WordCounts.from_files(path)
    for errors in ("replace", "skip"):
        assert len(wb.WordCounts.from_files(path, errors=errors)) > 0  # type: ignore[arg-type]
    path.write_bytes(b"word " * (10 << 20))
    assert wb.WordCounts.from_files(path).to_dict() == {"word": 10 << 20}
    path.write_bytes(b"x" * (1 << 20))
    assert wb.WordCounts.from_files(path).to_dict() == {"x" * (1 << 20): 1}
    assert time.monotonic() - start < 30


def test_max_distinct_words_keeps_frequent_words_and_reports_the_undercount() -> None:
    def noise() -> Iterator[str]:
        # Three chunks of 64 MiB; in each, most words are new.
        for i in range(3 << 13):
            rare = " ".join(f"r{(8 * i + j) % 50_000:x}a{i >> 13}" for j in range(8))
            yield f"{'the quick brown fox ' * 100}{'z' * 6400} {rare}"

    free = wb.WordCounts.from_texts(noise())
    assert free.bytes > 3 * (64 << 20)
    one = wb.WordCounts.from_texts(noise(), max_distinct_words=20_000, threads=1)
    two = wb.WordCounts.from_texts(noise(), max_distinct_words=20_000, threads=3)
    assert one == two
    assert len(one) <= 20_000
    assert one.dropped > 0
    assert one.undercount > 0
    assert one["the"] == free["the"] == 100 * (3 << 13)
    for word, n in one.to_dict().items():
        assert free[word] - one.undercount <= n <= free[word]


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("what", ["counting", "learning"])
def test_an_interrupt_stops_within_a_second_without_leftover_files(what: str, tmp_path: Path) -> None:
    code = f"""
import os, sys, time, random
import wordpiece_bert as wb
from pathlib import Path
draw = random.Random(1)
words = ["".join(draw.choices("abcdefghijklmnop", k=draw.randint(4, 14))) for _ in range(250_000)]
def texts():
    while True:
        yield " ".join(draw.choices(words, k=50))
def ready():
    print("ready", flush=True)
# Imported first: Python reports an interrupt within `eval`, which imports use, in the exit status even if it was handled.
wb.WordCounts, wb.train_vocab
try:
    if {what!r} == "counting":
        ready()
        wb.WordCounts.from_texts(texts()).save({str(tmp_path)!r} + "/counts.tsv")
    else:
        counts = wb.WordCounts.from_dict({{word: i + 1 for i, word in enumerate(words)}})
        ready()
        wb.train_vocab(counts, 1_000_000).save({str(tmp_path)!r} + "/vocab.txt")
except KeyboardInterrupt:
    print("stopped", flush=True)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.3)
        start = time.monotonic()
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "stopped\n"
        assert time.monotonic() - start < 5  # normally within a second; five allow for a busy machine
        assert process.wait() == 0
    assert list(tmp_path.iterdir()) == []


# --- merging


def test_counts_of_different_settings_do_not_add_up() -> None:
    lower, cased = wb.WordCounts.from_texts(["A a"]), wb.WordCounts.from_texts(["A a"], lowercase=False)
    with pytest.raises(TrainingError, match="lowercase True and False, strip_accents True and False"):
        lower + cased
    assert lower.fingerprint != cased.fingerprint
    assert lower.fingerprint == wb.WordCounts.from_texts([], strip_accents=True).fingerprint
    plain = wb.WordCounts.from_dict({"a": 1})
    assert plain.fingerprint is None
    assert (plain + lower).fingerprint is None
    assert (lower + plain).to_dict() == {"a": 3}
    with pytest.raises(TrainingError, match="too large"):
        wb.WordCounts.from_dict({"a": (1 << 64) - 1}) + plain


def test_arrow_columns_are_read_in_place() -> None:
    texts = ["b a b", "", "Ä c"] * 3
    expected = wb.WordCounts.from_texts(texts)
    chunked = pa.chunked_array([texts[:2], [], texts[2:]])
    for column in (pa.array(texts), chunked, pa.table({"text": texts}), pa.array(texts).dictionary_encode()):
        assert wb.WordCounts.from_texts(column) == expected
    polars = pytest.importorskip("polars")
    assert wb.WordCounts.from_texts(polars.Series(texts)) == expected
    assert wb.train_vocab(polars.DataFrame({"x": texts}), 3, special_tokens=[]).tokens == ["a", "b", "c"]
    with pytest.raises(InputError, match="item 4 is null"):
        wb.WordCounts.from_texts(pa.chunked_array([["a", "b"], ["c", "d", None]]))
    with pytest.raises(InputError, match="texts is an Arrow column of int64"):
        wb.WordCounts.from_texts(pa.array([1, 2]))


def test_properties_of_counts() -> None:
    counts = wb.WordCounts.from_texts(["b a b", "c"])
    assert (len(counts), counts.total, counts.texts, counts.bytes) == (3, 4, 2, 6)
    assert list(counts.to_dict().items()) == [("b", 2), ("a", 1), ("c", 1)]
    assert counts.most_common(1) == [("b", 2)]
    assert counts["b"] == 2
    assert counts["z"] == 0
    assert "a" in counts
    assert "z" not in counts
    assert list(counts) == ["b", "a", "c"]
    assert counts.normalizer == NormalizerSettings()
    assert pickle.loads(pickle.dumps(counts)) == counts
    assert repr(counts) == "WordCounts(3 words, 4 occurrences, 2 texts)"
    with pytest.raises(TypeError):
        wb.WordCounts()
    with pytest.raises(TypeError):
        hash(counts)


def test_a_dict_is_used_unsplit_but_checked() -> None:
    assert wb.WordCounts.from_dict({"Not split!": 2, "": 3, "a": 0}).to_dict() == {"Not split!": 2}
    for wrong in ({1: 1}, {"a": 1.5}, {"a": True}, {"\ud800": 1}):
        with pytest.raises(InputError):
            wb.WordCounts.from_dict(wrong)  # type: ignore[arg-type]
    for wrong in ({"a": -1}, {"a": 1 << 64}):
        with pytest.raises(TrainingError, match="the count of 'a'"):
            wb.WordCounts.from_dict(wrong)


# --- files


KINDS = ("parquet", "arrow", "feather", "tsv")


@pytest.mark.parametrize("kind", KINDS)
@given(items=st.lists(strategies.texts, max_size=6), options=OPTIONS)
def test_counts_round_trip_through_files(
    kind: str, items: list[str], options: dict[str, bool | None], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("counts")
    counts = wb.WordCounts.from_texts(items, **options)  # type: ignore[arg-type]
    path = folder / f"counts.{kind}"
    if kind == "tsv" and any("\t" in word or "\n" in word or word.endswith("\r") for word in counts):
        with pytest.raises(TrainingError, match="tsv cannot hold"):
            counts.save(path)
        return
    counts.save(path)
    again = wb.WordCounts.load(path, check_words=True)
    assert again == counts
    before = path.read_bytes()
    again.save(path)
    assert path.read_bytes() == before, "the same content, the same bytes"
    assert [file.name for file in folder.iterdir()] == [path.name]


def test_files_have_the_documented_columns_and_metadata(tmp_path: Path) -> None:
    counts = wb.WordCounts.from_texts(["b a b", "ü"])
    counts.save(tmp_path / "counts.parquet")
    table = parquet.read_table(tmp_path / "counts.parquet")
    assert table.schema.field("word").type == pa.string()
    assert table.schema.field("count").type == pa.uint64()
    assert not table.schema.field("word").nullable
    assert table.to_pydict() == {"word": ["b", "a", "u"], "count": [2, 1, 1]}
    metadata = {name.decode(): value.decode() for name, value in table.schema.metadata.items()}
    assert metadata["wordpiece_bert.schema"] == "word-counts/1"
    assert metadata["wordpiece_bert.fingerprint"] == counts.fingerprint
    assert json.loads(metadata["wordpiece_bert.pipeline"])["normalizer"]["lowercase"] is True
    assert [metadata[f"wordpiece_bert.{name}"] for name in ("texts", "bytes", "words", "undercount")] == [
        "2",
        "7",
        "3",
        "0",
    ]
    wb.WordCounts.from_dict({"x": 2, "#": 3}).save(tmp_path / "plain.tsv")
    assert (tmp_path / "plain.tsv").read_text() == "#\t3\nx\t2\n"


def test_tables_of_other_programs_can_be_read(tmp_path: Path) -> None:
    table = pa.table(
        {"other": [0.5, 1.5], "count": pa.array([3, 4], pa.int32()), "word": pa.array(["a", "b"], pa.large_string())}
    )
    parquet.write_table(table, tmp_path / "other.parquet")
    counts = wb.WordCounts.load(tmp_path / "other.parquet")
    assert (counts.to_dict(), counts.fingerprint) == ({"b": 4, "a": 3}, None)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a\t1\na\t2\n", "is in the counts twice"),
        ("a\t0\n", "above 0"),
        ("a\t-1\n", "above 0"),
        ("a 1\n", "line 1 has no tab"),
        ("a\t1\t2\n", "line 1 is"),
        ("\t1\n", "a word is empty"),
        (f"a\t{1 << 64}\n", "above 0"),
        ("# wordpiece_bert.schema=word-counts/9\na\t1\n", "word-counts/9"),
        ("# wordpiece_bert.schema=word-counts/1\n# wordpiece_bert.words=2\na\t1\n", "incomplete"),
        ("# wordpiece_bert.schema=word-counts/1\n# wordpiece_bert.pipeline={}\na\t1\n", "count again"),
    ],
)
def test_invalid_files_are_reported(content: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "counts.tsv"
    path.write_text(content)
    with pytest.raises(TrainingError, match=message) as raised:
        wb.WordCounts.load(path)
    assert str(raised.value).startswith(str(path))


def test_words_that_the_settings_would_split_are_reported(tmp_path: Path) -> None:
    counts = wb.WordCounts.from_texts(["well known words"])
    counts.save(tmp_path / "counts.tsv")
    content = (tmp_path / "counts.tsv").read_text().replace("known", "well-known")
    (tmp_path / "counts.tsv").write_text(content)
    with pytest.raises(TrainingError, match="'well-known' is not a single word"):
        wb.WordCounts.load(tmp_path / "counts.tsv")


def test_invalid_tables_are_reported(tmp_path: Path) -> None:
    def written(**columns: object) -> Path:
        parquet.write_table(pa.table(columns), tmp_path / "wrong.parquet")
        return tmp_path / "wrong.parquet"

    for columns, message in (
        ({"word": ["a"]}, "a file of counts has word and count"),
        ({"word": ["a", None], "count": [1, 2]}, "column word has a null"),
        ({"word": ["a"], "count": [-1]}, "they must be string and uint64"),
        ({"word": ["a"], "count": ["many"]}, "they must be string and uint64"),
        ({"word": ["a"], "count": [0]}, "a count is 0"),
    ):
        with pytest.raises(TrainingError, match=message):
            wb.WordCounts.load(written(**columns))
    (tmp_path / "no.parquet").write_bytes(b"no parquet")
    with pytest.raises(TrainingError, match="invalid file"):
        wb.WordCounts.load(tmp_path / "no.parquet")
    with pytest.raises(FileNotFoundError):
        wb.WordCounts.load(tmp_path / "missing.parquet")
    with pytest.raises(InputError, match=r"suffixes \.parquet, \.arrow"):
        wb.WordCounts.load(tmp_path / "counts.csv")
