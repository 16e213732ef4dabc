"""Examples equal the rows of the slow reference in every format, for any number of threads, also after kill -9."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pretraining_reference as reference
import wordpiece_bert as wb
from killed_runs import finish_after_kills
from pretraining_folders import LABELS, tokenizer, vocabulary
from pretraining_readers import mds, tfrecords
from processes import python
from test_pretraining_build import content_of, corpus_of, encode
from test_pretraining_reference import DATA, SPECIAL, TOKENS, cases, store
from wordpiece_bert.errors import ConfigError, InputError
from wordpiece_bert.pretraining import (
    ExamplesReport,
    Masking,
    PretrainingDataset,
    TokenStore,
    build_examples,
    build_token_store,
    next_sentence_pairs,
)
from wordpiece_bert.pretraining.schema import RowSchema
from wordpiece_bert.pretraining.sinks.tables import arrow_schema

TOK = tokenizer()
SEED = 5

# Two shards of the worked store have one document.
pytestmark = pytest.mark.filterwarnings("ignore:.*have one document")


@pytest.fixture(scope="module")
def worked(tmp_path_factory: pytest.TempPathFactory) -> TokenStore:
    """The store of the worked examples."""
    folder = tmp_path_factory.mktemp("worked")
    return build_token_store(TOK, DATA / "corpus.txt", folder / "store", shard_tokens=600)


def arrays_of(folder: Path) -> list[dict[str, list[int]]]:
    """The arrays of each pass and shard."""
    index = json.loads((folder / "index.json").read_text())
    return [
        {name: np.load(folder / file["name"]).tolist() for name, file in entry["files"].items()}
        for entry in index["shards"]
    ]


def expected_arrays(
    made: reference.Store,
    options: reference.Options,
    packing: tuple[int, int, int | None] | None,
    masking: reference.MaskOptions | None,
    prefix: str = "##",
) -> list[dict[str, list[int]]]:
    found = []
    for shards in reference.rows_of(made, SPECIAL, options, Counter()):
        for rows in shards:
            groups = [[row] for row in rows]
            if packing is not None:
                groups = [
                    [rows[number] for number in row]
                    for row in reference.packed([len(row.ids) for row in rows], *packing)
                ]
            arrays = reference.folder_arrays(groups, packing=packing is not None)
            if masking is not None:
                whole = [reference.joined_row(row) for row in groups]
                masks = reference.static_masks(whole, vocabulary(tokenizer(prefix), prefix), masking, options.seed)
                arrays = reference.folder_arrays(groups, packing=packing is not None, masks=masks)
            if options.objective in LABELS:
                arrays.setdefault("pair_labels", [])
            found.append(arrays)
    return found


@pytest.mark.parametrize("case", cases("rows"))
def test_the_worked_rows(case: dict[str, Any], worked: TokenStore, tmp_path: Path) -> None:
    report = build_examples(worked, tmp_path / "rows", TOK, **case["options"])
    dataset = PretrainingDataset(tmp_path / "rows")
    assert (len(dataset), report.rows) == (case["n_rows"], case["n_rows"])
    assert [entry["rows"] for entry in dataset._shards] == case["rows_of_each_pass_and_shard"]
    label = LABELS.get(case["options"]["objective"])
    for row in case["rows"]:
        one = dataset[row["row"]]
        assert one["input_ids"].tolist() == row["ids"]
        types = one["token_type_ids"].tolist()
        assert (types.index(1) if 1 in types else 0) == row["second"]
        assert label is None or one[label] == row["label"]
    names = {"short": "short_targets", "lone": "lone_sentences"}
    assert {name: getattr(report, names.get(name, name)) for name in case["report"]} == case["report"]


documents = st.lists(
    st.lists(
        st.lists(st.sampled_from(["bami", "gu", "ka", ".", "zado", "bagu fi"]), min_size=1, max_size=9), max_size=6
    ),
    min_size=2,
    max_size=9,
)


@pytest.mark.parametrize("prefix", ["##", "@@"])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=25)
@given(
    documents=documents,
    objective=st.sampled_from(["nsp", "sop", "full-sentences", "doc-sentences", "blocks", "text"]),
    max_length=st.integers(5, 40),
    short=st.sampled_from([0.0, 0.1, 0.7, 1.0]),
    least=st.integers(1, 2),
    copies=st.integers(1, 2),
    shard_tokens=st.sampled_from([1, 20, 1 << 28]),
    seed=st.integers(0, 2**64 - 1),
    packing=st.none() | st.tuples(st.integers(0, 40), st.integers(1, 9), st.none() | st.integers(1, 4)),
    masking=st.none()
    | st.builds(
        reference.MaskOptions,
        probability=st.sampled_from([0.15, 0.5]),
        unit_kind=st.sampled_from(["tokens", "words", "spans"]),
        max_predictions=st.none() | st.integers(1, 5),
    ),
)
def test_rows_equal_the_reference(
    prefix: str,
    documents: list[list[list[str]]],
    objective: Any,
    max_length: int,
    short: float,
    least: int,
    copies: int,
    shard_tokens: int,
    seed: int,
    packing: tuple[int, int, int | None] | None,
    masking: reference.MaskOptions | None,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    tok = tokenizer(prefix)
    folder = tmp_path_factory.mktemp("rows")
    content = "\n\n".join("\n".join(" ".join(words) for words in sentences) for sentences in documents)
    (folder / "corpus.txt").write_text(content)
    made = reference.store_of(reference.documents_of([content]), encode(tok), shard_tokens)
    if not made.shards:
        return
    built = build_token_store(tok, folder / "corpus.txt", folder / "store", shard_tokens=shard_tokens)
    short, least = short if objective in LABELS else 0.1, least if objective == "nsp" else 1
    options = reference.Options(objective, max_length, short, least, copies, seed)
    room = None if packing is None else (max_length + packing[0], *packing[1:])
    static = None
    if masking is not None:
        arguments = dict(vars(masking))
        unit = arguments.pop("unit_kind")
        static = Masking(tok, whole_words=unit == "words", spans=unit == "spans", **arguments)
    given_options: dict[str, Any] = {
        **vars(options),
        "packing": False if room is None else room[0],
        "packing_window": 4096 if room is None else room[1],
        "max_sequences_per_row": None if room is None else room[2],
        "masking": static,
    }
    one_sentence = all(len(one.sentences) == 1 for shard in made.shards for one in shard)
    if objective in LABELS and (one_sentence or (objective == "nsp" and made.counts["documents"] == 1)):
        with pytest.raises(InputError, match=r"one (sentence|document)"):
            build_examples(built, folder / "rows", tok, **given_options)
        return
    for threads in (1, 2, 8):
        build_examples(built, folder / str(threads), tok, threads=threads, **given_options)
    assert arrays_of(folder / "1") == expected_arrays(made, options, room, masking, prefix)
    assert content_of(folder / "1") == content_of(folder / "2") == content_of(folder / "8")


FLAVOURS = [
    {"objective": "nsp"},
    {"objective": "sop", "masking": True},
    {"objective": "nsp", "masking": True, "packing": 96},
    {"objective": "doc-sentences", "packing": 96},
    {"objective": "full-sentences", "masking": True},
]


def features(worked: TokenStore, folder: Path, flavour: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The arguments of a flavour, and its rows as row formats have them, from the example folder."""
    options = {"max_length": 40, "seed": SEED, **flavour}
    if flavour.get("masking"):
        options["masking"] = Masking(TOK, max_predictions=4, whole_words=True)
    build_examples(worked, folder, TOK, **options)
    dataset = PretrainingDataset(folder)
    label = LABELS.get(flavour["objective"])
    rows = []
    for i in range(len(dataset)):
        one = dataset[i]
        row = {name: one[name].tolist() for name in ("input_ids", "token_type_ids")}
        if label is not None:
            row[label] = one[label].tolist()
        if dataset.masked:
            row["labels"] = one["labels"].tolist()
        if dataset.packed:
            positions = one["position_ids"].tolist()
            row["position_ids"] = positions
            row["cu_seqlens"] = [i for i, place in enumerate(positions) if place == 0] + [len(positions)]
        rows.append(row)
    return options, rows


@pytest.mark.parametrize("flavour", FLAVOURS, ids=lambda flavour: "-".join(map(str, flavour.values())))
@pytest.mark.parametrize("suffix", ["arrow", "parquet", "jsonl"])
def test_tables_are_read_by_their_readers(
    suffix: str, flavour: dict[str, Any], worked: TokenStore, tmp_path: Path
) -> None:
    options, expected = features(worked, tmp_path / "rows", flavour)
    path = tmp_path / f"rows.{suffix}"
    report = build_examples(worked, path, TOK, **options)
    if suffix == "jsonl":
        found = [json.loads(line) for line in path.read_text().splitlines()]
    else:
        pyarrow = pytest.importorskip("pyarrow")
        if suffix == "parquet":
            table = pytest.importorskip("pyarrow.parquet").read_table(path)
        else:
            table = pyarrow.ipc.open_file(pyarrow.memory_map(str(path))).read_all()
        assert table.schema.field("input_ids").type == pyarrow.list_(pyarrow.int32())
        assert table.schema.field("token_type_ids").type == pyarrow.list_(pyarrow.int8())
        found = table.to_pylist()
    assert found == expected
    assert list(found[0]) == [name for name in found[0] if name in expected[0]]
    assert report.rows == len(expected)
    before = path.read_bytes()
    build_examples(worked, path, TOK, threads=1, **options)
    assert path.read_bytes() == before


@pytest.mark.parametrize("flavour", FLAVOURS, ids=lambda flavour: "-".join(map(str, flavour.values())))
def test_mds_samples(flavour: dict[str, Any], worked: TokenStore, tmp_path: Path) -> None:
    options, expected = features(worked, tmp_path / "rows", flavour)
    build_examples(worked, tmp_path / "mds", TOK, format="mds", **options)
    samples = list(mds(tmp_path / "mds"))
    assert len(samples) == len(expected)
    for sample, row in zip(samples, expected, strict=True):
        assert sample["input_ids"].dtype == np.uint16
        for name, value in row.items():
            if name in sample:
                assert sample[name].tolist() == value, name
    label = LABELS.get(flavour["objective"])
    assert {"input_ids", *([label] if label else []), *(["labels"] if "masking" in flavour else [])} <= set(samples[0])
    with pytest.raises(InputError, match="has a data set already"):
        build_examples(worked, tmp_path / "mds", TOK, format="mds", **{**options, "seed": 99})


# It runs in a process of its own, which a fault inside pyarrow would end.
CONTINUE_DAMAGED = """
import random, sys
from pathlib import Path
from test_vector_files import damaged
from wordpiece_bert.errors import InputError
from wordpiece_bert.pretraining.schema import RowSchema
from wordpiece_bert.pretraining.sinks.tables import ArrowRows

path, rng, refused = Path(sys.argv[1]), random.Random(1), 0
content = path.read_bytes()
for _ in range(300):
    rows = ArrowRows(path, RowSchema())
    rows.part.write_bytes(damaged(content, rng).ljust(len(content), b"\\0"))
    with rows:
        try:
            rows.begin([{"rows": 1, "bytes": len(content), "crc": 0}])
        except InputError:
            refused += 1
print(refused)
"""


def test_a_damaged_arrow_file_is_not_continued(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    path = tmp_path / "rows.arrow"
    schema = arrow_schema(RowSchema())
    batch = pa.record_batch([[[1, 2, 3], [4]] * 9, [[0, 0, 0], [1]] * 9], schema=schema)
    with path.open("wb") as file, pa.ipc.new_file(file, schema) as writer:
        writer.write_batch(batch)
        writer.write_batch(batch)
        end = file.tell()
    path.write_bytes(path.read_bytes()[:end])
    done = python(CONTINUE_DAMAGED, path)
    assert (done.returncode, done.stderr) == (0, "")
    assert 20 < int(done.stdout) <= 300


def test_tfrecords_have_the_original_features(worked: TokenStore, tmp_path: Path) -> None:
    options, expected = features(worked, tmp_path / "rows", {"objective": "nsp", "masking": True})
    build_examples(worked, tmp_path / "rows.tfrecord", TOK, **options)
    records = list(tfrecords(tmp_path / "rows.tfrecord"))
    assert len(records) == len(expected)
    for record, row in zip(records, expected, strict=True):
        n, length = len(row["input_ids"]), 40
        places = [place for place, label in enumerate(row["labels"]) if label != -100]
        more = [0] * (4 - len(places))
        assert record == {
            "input_ids": row["input_ids"] + [0] * (length - n),
            "input_mask": [1] * n + [0] * (length - n),
            "segment_ids": row["token_type_ids"] + [0] * (length - n),
            "masked_lm_positions": places + more,
            "masked_lm_ids": [row["labels"][place] for place in places] + more,
            "masked_lm_weights": [1.0] * len(places) + [0.0] * len(more),
            "next_sentence_labels": [row["next_sentence_label"]],
        }
    for wrong in ({"masking": None}, {"masking": Masking(TOK)}, {"packing": True}):
        with pytest.raises(InputError, match="format='tfrecord'"):
            build_examples(worked, tmp_path / "wrong.tfrecord", TOK, **{**options, **wrong})


def test_the_report_proves_the_shares(tmp_path: Path) -> None:
    files = corpus_of(tmp_path, 0.6)
    built = build_token_store(TOK, files, tmp_path / "store")
    report = build_examples(built, tmp_path / "rows", TOK, masking=Masking(TOK), max_length=64, min_sentences=2)
    assert report.chosen == report.masked + report.random + report.kept
    assert abs(report.chosen / report.candidates - 0.15) < 0.005
    assert len(report.shares()) == 4
    assert all(share.holds for share in report.shares())
    assert sum(report.labels) == report.rows == report.sequences
    dataset = PretrainingDataset(tmp_path / "rows")
    lengths = np.sort(dataset.lengths)
    quartiles = [lengths[max(0, -(-len(lengths) * quarter // 4) - 1)] for quarter in range(5)]
    assert list(report.lengths) == [int(one) for one in quartiles]
    assert report.tokens == lengths.sum()
    assert report.fill_rate == pytest.approx(report.tokens / (64 * report.rows))
    assert dataset.report.to_dict() | {"seconds": 0} == report.to_dict() | {"seconds": 0}
    text = report.text()
    assert f"{report.rows:,}" in text
    assert "TOO FAR" not in text
    assert ExamplesReport.from_dict(json.loads(report.to_json())).to_dict() == report.to_dict()
    assert "masked, of chosen tokens" in report._repr_html_()
    pytest.importorskip("matplotlib")
    report.plot(tmp_path / "report.svg")
    assert b"<svg" in (tmp_path / "report.svg").read_bytes()


def test_a_share_that_is_off_is_reported() -> None:
    report = ExamplesReport("rows", "nsp", 128, rows=1000, labels=(300, 700), masked=500, random=400, kept=100)
    assert [share.holds for share in report.shares()] == [False, False, True, False]
    assert report.text().count("TOO FAR") == 3


def test_packed_sentences_fill_rows(tmp_path: Path) -> None:
    built = build_token_store(TOK, corpus_of(tmp_path, 0.6), tmp_path / "store")
    report = build_examples(built, tmp_path / "rows", TOK, objective="doc-sentences", max_length=128, packing=512)
    assert report.fill_rate > 0.97
    assert report.sequences > report.rows


def test_a_finished_folder_is_returned_and_another_call_refused(worked: TokenStore, tmp_path: Path) -> None:
    options = {"max_length": 40, "seed": SEED, "masking": Masking(TOK)}
    first = build_examples(worked, tmp_path / "rows", TOK, **options)
    before = content_of(tmp_path / "rows")
    again = build_examples(worked, tmp_path / "rows", TOK, **options)
    assert again.to_dict() | {"seconds": 0} == first.to_dict() | {"seconds": 0}
    assert content_of(tmp_path / "rows") == before
    for changed, what in [({"seed": 6}, "seed"), ({"masking": None}, "masking"), ({"max_length": 41}, "row_length")]:
        with pytest.raises(InputError, match=rf"begun with (another )?{what}\b"):
            build_examples(worked, tmp_path / "rows", TOK, **{**options, **changed})
    other = build_token_store(TOK, DATA / "corpus.txt", tmp_path / "other", shard_tokens=100)
    with pytest.raises(InputError, match="another token store"):
        build_examples(other, tmp_path / "rows", TOK, **options)
    assert content_of(tmp_path / "rows") == before


def test_bad_input_is_an_error(worked: TokenStore, tmp_path: Path) -> None:
    for arguments, message in [
        ({"objective": "mlm"}, "objective must be one of 'nsp'"),
        ({"max_length": 4}, "max_length must be a whole number from 5"),
        ({"max_length": 2, "objective": "text"}, "max_length must be a whole number from 3"),
        ({"short_seq_prob": 1.5}, "short_seq_prob must be between 0 and 1, not 1.5"),
        ({"dupe_factor": 0}, "dupe_factor must be"),
        ({"packing_window": 0}, "packing_window must be"),
        ({"packing": 64}, r"packing must be True, False, or a row length of max_length \(128\) or more, not 64"),
        ({"max_sequences_per_row": 0}, "max_sequences_per_row must be"),
        ({"min_sentences": 0}, "min_sentences must be"),
        ({"seed": 2**64}, "seed must be"),
        ({"format": "csv"}, "format must be one of 'npy'"),
        ({"masking": TOK}, "masking must be a Masking"),
    ]:
        with pytest.raises(InputError, match=message):
            build_examples(worked, tmp_path / "rows", TOK, **arguments)
    with pytest.raises(InputError, match="another tokenizer"):
        build_examples(worked, tmp_path / "rows", TOK.with_added_tokens(["zebra"]))
    with pytest.raises(InputError, match="the token store itself"):
        build_examples(worked, worked.path, TOK)
    with pytest.raises(InputError, match="no such folder"):
        build_examples(tmp_path / "nothing", tmp_path / "rows", TOK)
    assert not (tmp_path / "rows").exists()


def test_what_a_corpus_lacks_is_named(tmp_path: Path) -> None:
    (tmp_path / "one.txt").write_text("gu ka\nbami\n")
    one = build_token_store(TOK, tmp_path / "one.txt", tmp_path / "one")
    with pytest.raises(InputError, match="has one document"):
        build_examples(one, tmp_path / "rows", TOK)
    assert build_examples(one, tmp_path / "sop", TOK, objective="sop").rows == 1
    (tmp_path / "lines.txt").write_text("gu ka\n\nbami\n")
    lone = build_token_store(TOK, tmp_path / "lines.txt", tmp_path / "lines")
    for objective in ("nsp", "sop"):
        with pytest.raises(InputError, match="every document has one sentence"):
            build_examples(lone, tmp_path / "rows", TOK, objective=objective)  # type: ignore[arg-type]
    (tmp_path / "two.txt").write_text("gu ka\nbami\n\nka\nfi\n")
    shards = build_token_store(TOK, tmp_path / "two.txt", tmp_path / "two", shard_tokens=1)
    with pytest.warns(UserWarning, match="2 of 2 shards have one document"):
        assert build_examples(shards, tmp_path / "alone", TOK).labels[1] == 0
    bare = wb.Tokenizer.from_vocab(["[UNK]", "[SEP]", "gu", "ka"])
    bare_store = build_token_store(bare, tmp_path / "two.txt", tmp_path / "bare")
    with pytest.raises(ConfigError, match=r"no \[CLS\] token"):
        build_examples(bare_store, tmp_path / "rows", bare)


def test_pairs_in_memory_are_those_of_a_store() -> None:
    corpus = [
        [" ".join(TOK.convert_ids_to_tokens(ids)) for ids in one.sentences] for shard in store().shards for one in shard
    ]
    shard = [reference.Document(i, [encode()(text) for text in texts]) for i, texts in enumerate(corpus)]
    options = reference.Options(max_length=48, short_seq_prob=0.3, seed=77)
    [[rows]] = reference.rows_of(reference.Store([shard]), SPECIAL, options, Counter())
    found = list(next_sentence_pairs(corpus, TOK, max_length=48, short_seq_prob=0.3, seed=77))
    assert [(one.input_ids.tolist(), one.token_type_ids.tolist(), one.next_sentence_label) for one in found] == [
        (row.ids, row.token_type_ids, row.label) for row in rows
    ]


PROGRAM = """
import sys
import wordpiece_bert as wb
from wordpiece_bert.pretraining import Masking, build_examples
from wordpiece_bert.pretraining.sinks import mds, row_sink
vocab, store, output = sys.argv[1:]
row_sink.CHECKPOINT_BYTES = mds.SHARD_BYTES = 100_000
tokenizer = wb.Tokenizer.from_vocab(vocab)
masking = Masking(tokenizer, max_predictions=20)
build_examples(
    store, output, tokenizer, dupe_factor=3, masking=masking, threads=2, format="mds" if output.endswith("mds") else None
)
"""


@pytest.fixture(scope="module")
def to_kill(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that takes a while, in several shards."""
    folder = tmp_path_factory.mktemp("kill")
    return build_token_store(TOK, corpus_of(folder, 0.5), folder / "store", shard_tokens=20_000).path


def visible(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if not path.name.startswith(".")]


def bytes_of(output: Path) -> dict[str, bytes]:
    return content_of(output) if output.is_dir() else {output.name: output.read_bytes()}


@pytest.mark.parametrize("name", ["rows", "rows.jsonl", "rows.arrow", "rows.tfrecord", "rows-mds", "rows.parquet"])
def test_killed_runs_go_on_and_give_the_same_bytes(name: str, to_kill: Path, tmp_path: Path) -> None:
    if name.endswith(("arrow", "parquet")):
        pytest.importorskip("pyarrow")
    command = [PROGRAM, str(DATA / "vocab.txt"), str(to_kill)]
    (tmp_path / "whole").mkdir()
    (tmp_path / "killed").mkdir()
    outputs = [str(tmp_path / folder / name) for folder in ("whole", "killed")]
    finish_after_kills([*command, outputs[0]], [*command, outputs[1]], (0.5, 0.4, 0.3))
    assert bytes_of(tmp_path / "killed" / name) == bytes_of(tmp_path / "whole" / name)
    assert visible(tmp_path / "killed") == [name]  # no part, no journal


class Killed(BaseException):
    """Stands for the end of a process, after which nothing is tidied up."""


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.arrow", "rows.tfrecord", "rows-mds"])
@pytest.mark.parametrize("stop", [1, 2, 5])
def test_a_run_goes_on_after_the_last_rows_that_are_safe(
    name: str, stop: int, to_kill: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped after some journal lines, a run writes the rest only."""
    from wordpiece_bert.pretraining import journal
    from wordpiece_bert.pretraining.sinks import mds
    from wordpiece_bert.pretraining.sinks import row_sink as base

    if name.endswith("arrow"):
        pytest.importorskip("pyarrow")
    monkeypatch.setattr(base, "CHECKPOINT_BYTES", 200_000)
    monkeypatch.setattr(mds, "SHARD_BYTES", 200_000)
    arguments: dict[str, Any] = {"masking": Masking(TOK, max_predictions=20), "seed": 2}
    arguments["format"] = "mds" if name.endswith("mds") else None
    whole, cut = tmp_path / "whole" / name, tmp_path / "cut" / name
    whole.parent.mkdir()
    cut.parent.mkdir()
    report = build_examples(to_kill, whole, TOK, **arguments)
    append, lines = journal.Journal.append, [0]

    def append_or_stop(self: journal.Journal, entry: dict[str, Any]) -> None:
        if "rows" in entry:
            if lines[0] == stop:
                raise Killed
            lines[0] += 1
        append(self, entry)

    monkeypatch.setattr(journal.Journal, "append", append_or_stop)
    with pytest.raises(Killed):
        build_examples(to_kill, cut, TOK, **arguments)
    if not cut.is_dir():
        with (cut.parent / f"{name}.part").open("ab") as part:
            part.write(b"what was not safe")
    monkeypatch.setattr(journal.Journal, "append", append)
    written = []
    owner: Any = mds.MdsFolder if name.endswith("mds") else base.FileSink
    write = owner.write

    def counted(self: Any, rows: Any) -> Any:
        written.append(len(rows))
        return write(self, rows)

    monkeypatch.setattr(owner, "write", counted)
    again = build_examples(to_kill, cut, TOK, **arguments)
    assert 0 < sum(written) < report.rows
    assert bytes_of(cut) == bytes_of(whole)
    ignored = {"seconds": 0, "output": ""}
    assert again.to_dict() | ignored == report.to_dict() | ignored
    assert visible(cut.parent) == [name]


def test_an_unfinished_file_of_another_call_is_replaced(
    to_kill: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from wordpiece_bert.pretraining.sinks import row_sink as base

    monkeypatch.setattr(base, "CHECKPOINT_BYTES", 600_000)
    build_examples(to_kill, tmp_path / "whole.jsonl", TOK, seed=1)
    shown = [0]

    def stop(self: Any, done: int, **_: Any) -> None:
        shown[0] += 1
        if shown[0] == 6:
            raise KeyboardInterrupt

    path = tmp_path / "rows.jsonl"
    with monkeypatch.context() as patch:
        patch.setattr("wordpiece_bert._internal.progress.Progress.update", stop)
        with pytest.raises(KeyboardInterrupt):
            build_examples(to_kill, path, TOK, seed=9, show_progress_bar=True)
        assert not path.exists()
        assert {entry.name for entry in tmp_path.glob("rows*")} == {"rows.jsonl.part", "rows.jsonl.journal.jsonl"}
        shown[0] = 5
        with pytest.raises(KeyboardInterrupt):  # nothing is safe yet, so nothing stays
            build_examples(to_kill, tmp_path / "early.jsonl", TOK, seed=9, show_progress_bar=True)
        assert not list(tmp_path.glob("early*"))
    build_examples(to_kill, path, TOK, seed=1)
    assert path.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
    assert {entry.name for entry in tmp_path.glob("rows*")} == {"rows.jsonl"}


@pytest.mark.skipif(sys.platform == "win32", reason="there are no locks")
def test_two_processes_do_not_write_one_file(to_kill: Path, tmp_path: Path) -> None:
    import fcntl

    with (tmp_path / "rows.jsonl.part").open("wb") as part:
        fcntl.flock(part, fcntl.LOCK_EX)
        with pytest.raises(InputError, match="is being written by another process"):
            build_examples(to_kill, tmp_path / "rows.jsonl", TOK)


FORMATS = ["rows", "rows.jsonl", "rows.arrow", "rows.parquet", "rows.tfrecord", "rows-mds"]


def arguments_for(name: str) -> dict[str, Any]:
    if name.endswith(("arrow", "parquet")):
        pytest.importorskip("pyarrow")
    kind: Any = "mds" if name.endswith("mds") else None
    return {"masking": Masking(TOK, max_predictions=20), "seed": 2, "format": kind}


@pytest.mark.parametrize("name", FORMATS)
def test_the_same_call_after_success_writes_nothing(name: str, to_kill: Path, tmp_path: Path) -> None:
    arguments, output = arguments_for(name), tmp_path / name
    first = build_examples(to_kill, output, TOK, **arguments)

    def state() -> dict[str, tuple[int, bytes]]:
        files = [path for path in tmp_path.rglob("*") if path.is_file()]
        return {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in files}

    before = state()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("wordpiece_bert.pretraining.steps.Step.blocks", None)  # no row is made
        again = build_examples(to_kill, output, TOK, **arguments)
    assert again.to_dict() | {"seconds": 0} == first.to_dict() | {"seconds": 0}
    assert state() == before
    if output.is_dir():
        with pytest.raises(InputError, match=r"begun with seed=|has a data set already"):
            build_examples(to_kill, output, TOK, **{**arguments, "seed": 3})
        assert state() == before
    else:  # a file that was changed, or is of another call, is made again
        output.write_bytes(output.read_bytes()[:-1] + b"x")
        build_examples(to_kill, output, TOK, **arguments)
        assert {path: content for path, (_, content) in state().items()}[str(output)] == before[str(output)][1]
        build_examples(to_kill, output, TOK, **{**arguments, "seed": 3})
        assert output.read_bytes() != before[str(output)][1]


def test_a_finished_mds_folder_without_a_shard_is_refused(to_kill: Path, tmp_path: Path) -> None:
    arguments = arguments_for("mds")
    build_examples(to_kill, tmp_path / "mds", TOK, **arguments)
    (tmp_path / "mds" / "shard.00000.mds").unlink()
    with pytest.raises(InputError, match=r"shard\.00000\.mds: No such file"):
        build_examples(to_kill, tmp_path / "mds", TOK, **arguments)


assert len(TOKENS) == TOK.vocab_size
