"""The compiled part of pre-training data against the slow reference: stores, rows, packing, static masks, formats."""

from __future__ import annotations

import gzip
import json
import shutil
import tempfile
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pretraining_reference as reference
from pretraining_folders import tokenizer, vocabulary
from pretraining_readers import mds, tfrecords
from test_pretraining_reference import SPECIAL
from wordpiece_bert import _core
from wordpiece_bert.errors import InputError
from wordpiece_bert.pretraining.journal import Journal
from wordpiece_bert.pretraining.row_options import RowOptions
from wordpiece_bert.pretraining.schema import RowSchema
from wordpiece_bert.pretraining.sinks.array_folder import ArrayFolder
from wordpiece_bert.pretraining.sinks.mds import MdsFolder
from wordpiece_bert.pretraining.store_writer import StoreWriter

TOK = tokenizer()
ARRAYS = ("ids", "sentence_offsets", "document_offsets", "document_ids")


def encode(text: str) -> list[int]:
    return list(TOK.encode(text, add_special_tokens=False).ids)


def add_files(writer: StoreWriter, files: Sequence[Path], block_texts: int | None, stop: int = -1) -> bool:
    """Add the texts of files; return False after `stop` blocks, as if killed."""
    reader = _core.TextReader([str(file) for file in files[writer.first_input :]], "\n", [], "strict", block_texts)
    blocks = 0
    while (block := reader.next_block()) is not None:
        if blocks == stop:
            return False
        writer.add(block)
        blocks += 1
    return True


def writer_of(folder: Path, n_files: int, **changes: Any) -> StoreWriter:
    options: dict[str, Any] = {
        "file_numbers": list(range(n_files)),
        "documents": "blank-line",
        "split": False,
        "abbreviations": None,
        "dtype": None,
        "shard_tokens": 40,
        "threads": 1,
    }
    recorded = changes.pop("options", {"documents": "blank-line"})
    fingerprint = changes.pop("fingerprint", TOK.fingerprint)
    folder.mkdir(exist_ok=True)
    builder = _core.TokenStoreBuilder(TOK._inner, **options | changes)
    return StoreWriter(folder, builder, TOK, fingerprint, recorded)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def shards_of(folder: Path) -> Iterator[list[np.ndarray]]:
    index = json.loads((folder / "index.json").read_text())
    for shard in index["shards"]:
        yield [np.load(folder / shard["files"][name]["name"], mmap_mode="r") for name in ARRAYS]


def read_store(folder: Path) -> list[list[reference.Document]]:
    shards = []
    for ids, sentences, documents, document_ids in shards_of(folder):
        cut = [ids[first:end].tolist() for first, end in pairwise(sentences.tolist())]
        bounds = pairwise(documents.tolist())
        shards.append(
            [reference.Document(i, cut[a:b]) for i, (a, b) in zip(document_ids.tolist(), bounds, strict=True)]
        )
    return shards


# White space that Python and Unicode trim alike, pieces of words, terminators, and what has no token. A NUL comes in two,
# so that no file looks like UTF-16.
LINES = st.lists(
    st.sampled_from(
        ["ba", "lomi", "Do", "no.", "e.g.", "!", "?", "。", "»", '"', "\u200b", "\x00\x00", " ", "\u3000", "A.", "x"]
    ),
    max_size=8,
).map(" ".join)
FILES = st.lists(
    st.lists(LINES, max_size=12).map(lambda lines: "\n".join(lines) + "\n" * (len(lines) % 2)), min_size=1, max_size=3
)


@given(
    files=FILES,
    documents=st.sampled_from(["blank-line", "line", "file"]),
    sentences=st.sampled_from(["lines", "split"]),
    crlf=st.booleans(),
    block_texts=st.integers(1, 9),
    kills=st.lists(st.integers(0, 6), max_size=3),
)
def test_a_store_is_that_of_the_reference_however_often_it_is_interrupted(
    *, files: list[str], documents: str, sentences: str, crlf: bool, block_texts: int, kills: list[int]
) -> None:
    expected = reference.store_of(reference.documents_of(files, documents, sentences), encode, 40)
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        paths = []
        for number, content in enumerate(files):
            paths.append(root / f"{number}.txt")
            data = content.replace("\n", "\r\n") if crlf else content
            paths[-1].write_bytes(gzip.compress(data.encode()) if number % 2 else data.encode())
        changes = {"documents": documents, "split": sentences == "split"}

        def built(folder: Path, kills: Sequence[int], **more: object) -> dict[str, int] | None:
            for kill in kills:
                with writer_of(folder, len(files), **changes, **more) as writer:
                    if add_files(writer, paths, block_texts, kill):
                        break
            writer = writer_of(folder, len(files), **changes, **more)
            add_files(writer, paths, block_texts + 3)
            writer.finish()
            return writer.counts

        if not expected.shards:
            with pytest.raises(InputError, match="no document has a token"):
                built(root / "empty", kills)
            return
        counts = built(root / "whole", [])
        assert read_store(root / "whole") == expected.shards
        assert counts is not None
        names = ("documents", "documents_empty", "sentences", "sentences_empty", "tokens")
        assert {name: counts[name] for name in names} == {name: expected.counts[name] for name in names}
        built(root / "killed", kills, threads=2)
        assert contents(root / "killed") == contents(root / "whole")
        assert writer_of(root / "whole", len(files), **changes).finished


def test_sizes_and_checksums_are_those_of_the_files(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("ba do\n\nlo mi\n")
    writer = writer_of(tmp_path / "store", 1)
    add_files(writer, [tmp_path / "a.txt"], None)
    writer.finish()
    index = json.loads((tmp_path / "store" / "index.json").read_text())
    assert (index["format"], index["version"], index["dtype"]) == ("wordpiece-bert tokens", 1, "uint16")
    for entry in index["shards"][0]["files"].values():
        data = (tmp_path / "store" / entry["name"]).read_bytes()
        assert (len(data), f"{zlib.crc32(data):08x}") == (entry["bytes"], entry["crc32"])
    assert not (tmp_path / "store" / "journal.jsonl").exists()


def test_a_torn_journal_and_left_parts_are_repaired(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("ba do lo mi no pu ra so\n\n" * 30)
    for name in ("whole", "torn"):
        with writer_of(tmp_path / name, 1) as writer:
            add_files(writer, [tmp_path / "a.txt"], 7)
            if name == "whole":
                writer.finish()
    journal = tmp_path / "torn" / "journal.jsonl"
    journal.write_bytes(journal.read_bytes()[:-9])
    (tmp_path / "torn" / "00009.ids.npy.part").write_bytes(b"a part")
    writer = writer_of(tmp_path / "torn", 1)
    add_files(writer, [tmp_path / "a.txt"], None)
    writer.finish()
    assert contents(tmp_path / "torn") == contents(tmp_path / "whole")


@pytest.mark.parametrize("finished", [False, True])
@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"options": {"documents": "line"}}, "documents"),
        ({"options": {"documents": "blank-line", "bytes": 3}}, "bytes"),
        ({"fingerprint": "another"}, "tokenizer"),
        ({"dtype": "uint32"}, "dtype"),
    ],
)
def test_another_call_does_not_go_on_with_a_store(
    tmp_path: Path, changes: dict[str, Any], key: str, *, finished: bool
) -> None:
    (tmp_path / "a.txt").write_text("ba do\n")
    with writer_of(tmp_path / "store", 1) as writer:
        add_files(writer, [tmp_path / "a.txt"], None)
        if finished:
            writer.finish()
    before = contents(tmp_path / "store")
    with pytest.raises(InputError, match=rf"begun with (another {key};|{key}=)"):
        writer_of(tmp_path / "store", 1, **changes)
    assert contents(tmp_path / "store") == before


def test_document_ids_are_numbers_or_texts(tmp_path: Path) -> None:
    lines = [
        '{"t": "ba\\ndo", "id": 7}',
        '{"t": "lo", "id": "doc-1"}',
        '{"t": "mi", "id": -1}',
        '{"t": "no", "id": 1.5}',
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    writer = writer_of(tmp_path / "store", 1, documents="value")
    reader = _core.TextReader([str(tmp_path / "a.jsonl")], None, ["t", "id"], "skip", None, second_is_id=True)
    block = reader.next_block()
    assert block is not None
    writer.add(block)
    writer.finish()
    counts = writer.counts
    assert (counts["documents"], counts["sentences"], counts["skipped"]) == (3, 4, 1)
    [(_, _, _, ids)] = shards_of(tmp_path / "store")
    assert ids.tolist() == [7, reference.text_id("doc-1"), 2**64 - 1]
    with pytest.raises(InputError, match='the field "id" is not text'):
        _core.TextReader([str(tmp_path / "a.jsonl")], None, ["t", "id"], "strict", None, second_is_id=True).next_block()


def test_ids_of_documents_are_the_same_numbers_in_json_and_in_tables(tmp_path: Path) -> None:
    ids = ["7", "doc", "-5", str(-(2**63)), str(2**64 - 1), str(2**64), "07", "-0"]
    (tmp_path / "a.csv").write_text("t,id\n" + "".join(f"ba,{one}\n" for one in ids))
    is_number = [True, False, True, True, True, False, False, False]
    values = [int(one) if number else one for one, number in zip(ids, is_number, strict=True)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"t": "ba", "id": one}) + "\n" for one in values))
    for name, fields, table in (("a.csv", [], {"columns": ["t", "id"], "table": "csv"}), ("a.jsonl", ["t", "id"], {})):
        writer = writer_of(tmp_path / f"{name}.store", 1, documents="value")
        separator = "\n" if table else None
        reader = _core.TextReader([str(tmp_path / name)], separator, fields, "strict", None, second_is_id=True, **table)
        block = reader.next_block()
        assert block is not None
        writer.add(block)
        writer.finish()
    [[*_, of_table]], [[*_, of_lines]] = shards_of(tmp_path / "a.csv.store"), shards_of(tmp_path / "a.jsonl.store")
    assert of_table.tolist() == of_lines.tolist()


# --- rows

DOCUMENTS = st.lists(
    st.lists(st.lists(st.integers(0, len(TOK) - 1), min_size=1, max_size=14), min_size=1, max_size=5),
    min_size=1,
    max_size=7,
).map(lambda documents: [reference.Document(3 * i // 2, sentences) for i, sentences in enumerate(documents)])


def arrays_of(shard: list[reference.Document], dtype: str) -> list[np.ndarray]:
    sentences = [sentence for document in shard for sentence in document.sentences]
    return [
        np.array([one for sentence in sentences for one in sentence], dtype),
        np.cumsum([0, *map(len, sentences)]),
        np.cumsum([0, *(len(document.sentences) for document in shard)]),
        np.array([document.id for document in shard], np.uint64),
    ]


def builder_of(
    shard: list[reference.Document],
    options: reference.Options,
    pass_number: int = 0,
    packing: tuple[int, int, int | None] | None = None,
    masking: _core.MaskingRules | None = None,
    **more: Any,
) -> _core.ExampleBuilder:
    length, window, most = packing or (None, 1, None)
    return _core.ExampleBuilder(
        *arrays_of(shard, more.get("dtype", "uint16")),
        RowOptions(
            **vars(options),
            cls_id=SPECIAL.cls,
            sep_id=SPECIAL.sep,
            packing=length,
            packing_window=window,
            max_sequences_per_row=most,
        ),
        pass_number,
        masking,
        more.get("threads", 1),
    )


def blocks_of(builder: _core.ExampleBuilder) -> Iterator[_core.ExampleBlock]:
    while (block := builder.next_block()) is not None:
        yield block


def rules(options: reference.MaskOptions) -> _core.MaskingRules:
    assert TOK.mask_token_id is not None
    return _core.MaskingRules(
        TOK._inner,
        TOK.all_special_ids,
        TOK.mask_token_id,
        vars(options) | {"unit": options.unit_kind},
    )


OPTIONS = st.builds(
    reference.Options,
    objective=st.sampled_from(["nsp", "sop", "full-sentences", "doc-sentences", "blocks", "text"]),
    max_length=st.integers(5, 30),
    short_seq_prob=st.sampled_from([0.0, 0.1, 0.5, 1.0]),
    min_sentences=st.integers(1, 3),
    seed=st.integers(0, 2**64 - 1),
)
MASKS = st.builds(
    reference.MaskOptions,
    probability=st.sampled_from([0.0, 0.15, 0.5, 1.0]),
    unit_kind=st.sampled_from(["tokens", "words", "spans"]),
    max_predictions=st.none() | st.integers(1, 4),
)


@given(
    shard=DOCUMENTS,
    options=OPTIONS,
    pass_number=st.integers(0, 3),
    packing=st.none() | st.tuples(st.integers(30, 50), st.integers(1, 9), st.none() | st.integers(1, 3)),
    masks=st.none() | MASKS,
    dtype=st.sampled_from(["uint16", "uint32"]),
    threads=st.integers(1, 3),
)
def test_rows_are_those_of_the_reference(
    *,
    shard: list[reference.Document],
    options: reference.Options,
    pass_number: int,
    packing: tuple[int, int, int | None] | None,
    masks: reference.MaskOptions | None,
    dtype: str,
    threads: int,
) -> None:
    report: Counter[str] = Counter()
    sequences = reference.RowsOfShard(shard, SPECIAL, options, pass_number, report).rows
    rows = [[row] for row in sequences]
    if packing is not None:
        room, window, most = packing
        numbers = reference.packed([len(row.ids) for row in sequences], room, window, most)
        rows = [[sequences[number] for number in row] for row in numbers]
    static = None
    if masks is not None:
        whole = [reference.joined_row(row) for row in rows]
        static = reference.static_masks(whole, vocabulary(TOK), masks, options.seed)
    expected = reference.folder_arrays(rows, packing=packing is not None, masks=static)
    masking = None if masks is None else rules(masks)
    builder = builder_of(shard, options, pass_number, packing, masking, dtype=dtype, threads=threads)
    pairs = options.objective in ("nsp", "sop")
    with tempfile.TemporaryDirectory() as folder:
        schema = RowSchema(
            label="label" if pairs else None,
            masked=masks is not None,
            packed=packing is not None,
            ids=np.dtype(dtype),
            row_length=options.max_length,
        )
        sink = ArrayFolder(Path(folder), schema)
        identities = []
        with sink:
            sink.begin([])
            sink.begin_step(0, 0)
            for block in blocks_of(builder):
                sink.write(block)
                arrays = block.arrays()
                identities += list(zip(arrays["document_ids"].tolist(), arrays["ordinals"].tolist(), strict=True))
            part = sink.commit()
        assert part is not None
        found = {what: np.load(Path(folder, file["name"])) for what, file in part["files"].items()}
        assert not list(Path(folder).glob("*.part"))
    assert found["input_ids"].dtype == dtype
    for name, values in expected.items():
        assert found.pop(name).tolist() == values, name
    # Rows of one segment have none; the reference does not write that.
    assert not any(array.any() for array in found.values())
    assert identities == [row[0].identity[1:] for row in rows]
    counts = builder.counts
    names = {"short": "short_targets", "lone": "lone_sentences", "rows_dropped": "rows_dropped"}
    names |= {"tokens_cut": "tokens_cut", "truncated": "truncated"}
    assert {name: counts[ours] for name, ours in names.items()} == {name: report[name] for name in names}
    if static is not None:
        fates = Counter(fate for _, _, fate in static for fate in fate.values())
        assert {fate: counts[fate] for fate in ("masked", "random", "kept")} == {
            fate: fates[fate] for fate in ("masked", "random", "kept")
        }


def test_blocks_do_not_depend_on_threads() -> None:
    rng = np.random.default_rng(0)
    shard = [
        reference.Document(
            i, [rng.integers(5, len(TOK), rng.integers(1, 60)).tolist() for _ in range(rng.integers(1, 30))]
        )
        for i in range(900)
    ]
    for objective in ("nsp", "full-sentences"):
        options = reference.Options(objective=objective)
        made = []
        for threads in (1, 2, 8):
            blocks = blocks_of(builder_of(shard, options, masking=rules(reference.MaskOptions()), threads=threads))
            made.append([{name: array.tobytes() for name, array in block.arrays().items()} for block in blocks])
        assert len(made[0]) > 1
        assert made[0] == made[1] == made[2]


@pytest.mark.parametrize("packing", [None, (40, 16, None)])
def test_mds_shards_have_the_rows(packing: tuple[int, int, int | None] | None, tmp_path: Path) -> None:
    shard = [reference.Document(i, [[5 + i, 6, 7], [8, 9 + i]]) for i in range(9)]
    options = reference.Options(max_length=20)
    masking = rules(reference.MaskOptions())
    builder = builder_of(shard, options, packing=packing, masking=masking)
    schema = RowSchema(label="next_sentence_label", masked=True, packed=packing is not None, ids=np.dtype(np.uint16))
    sink = MdsFolder(tmp_path, schema)
    expected = []
    sink.begin([])
    for block in blocks_of(builder):
        assert sink.write(block) == []
        arrays = block.arrays()
        for i, (first, end) in enumerate(pairwise(arrays["row_offsets"].tolist())):
            row = {name: arrays[name][first:end].tolist() for name in ("input_ids", "token_type_ids", "labels")}
            if packing is None:
                row["next_sentence_label"] = int(arrays["pair_labels"][i])
            else:
                a, b = arrays["sequence_offsets"][i : i + 2].tolist()
                row["next_sentence_label"] = arrays["pair_labels"][a:b].tolist()
                row["position_ids"] = arrays["position_ids"][first:end].tolist()
                row["cu_seqlens"] = arrays["cu_seqlens"][a + i : b + i + 1].tolist()
            expected.append(row)
    sink.finish(Journal(sink.journal, {}), [], {})
    assert [path.name for path in tmp_path.glob("*.mds")] == ["shard.00000.mds"]
    found = [{name: np.asarray(value).squeeze().tolist() for name, value in row.items()} for row in mds(tmp_path)]
    expected = [{name: np.squeeze(value).tolist() for name, value in row.items()} for row in expected]
    assert found == expected


def test_records_have_the_features_of_the_original(tmp_path: Path) -> None:
    shard = [reference.Document(i, [[5 + i, 6, 7], [8, 9 + i]]) for i in range(9)]
    masking = rules(reference.MaskOptions(max_predictions=3))
    builder = builder_of(shard, reference.Options(max_length=20), masking=masking)
    encoder = _core.TfrecordEncoder(20, 3)
    blocks = list(blocks_of(builder))
    (tmp_path / "a.tfrecord").write_bytes(b"".join(encoder.encode(block).tobytes() for block in blocks))
    assert len(list(tfrecords(tmp_path / "a.tfrecord"))) == sum(map(len, blocks))
    (tmp_path / "rest.tfrecord").write_bytes(encoder.encode(blocks[0].rest(3)).tobytes())
    assert list(tfrecords(tmp_path / "rest.tfrecord")) == list(tfrecords(tmp_path / "a.tfrecord"))[3 : len(blocks[0])]
    records = list(tfrecords(tmp_path / "a.tfrecord"))
    arrays = blocks[0].arrays()
    for record, (first, end), label in zip(
        records, pairwise(arrays["row_offsets"].tolist()), arrays["pair_labels"].tolist(), strict=True
    ):
        n, labels = end - first, arrays["labels"][first:end]
        places = np.flatnonzero(labels != -100)
        pad = [0] * (20 - n)
        assert record["input_ids"] == arrays["input_ids"][first:end].tolist() + pad
        assert record["input_mask"] == [1] * n + pad
        assert record["segment_ids"] == arrays["token_type_ids"][first:end].tolist() + pad
        assert record["masked_lm_positions"] == places.tolist() + [0] * (3 - len(places))
        assert record["masked_lm_ids"] == labels[places].tolist() + [0] * (3 - len(places))
        assert record["masked_lm_weights"] == [1.0] * len(places) + [0.0] * (3 - len(places))
        assert record["next_sentence_labels"] == [label]


@given(
    shard=DOCUMENTS,
    packing=st.none() | st.just((40, 16, None)),
    masked=st.booleans(),
    share=st.floats(0, 1, exclude_max=True),
)
def test_the_rest_of_a_block_has_its_last_rows(
    shard: list[reference.Document], packing: tuple[int, int, int | None] | None, *, masked: bool, share: float
) -> None:
    masking = rules(reference.MaskOptions()) if masked else None
    for block in blocks_of(builder_of(shard, reference.Options(max_length=20), packing=packing, masking=masking)):
        first = int(share * len(block))
        schema = RowSchema(label="label", masked=masked, packed=packing is not None)
        assert list(schema.dicts(block.rest(first))) == list(schema.dicts(block))[first:]
        whole, rest = (one.stored(narrow_ids=False, narrow_places=False) for one in (block, block.rest(first)))
        for name in ("masked_ids", "masked_positions", "second_starts", "sequence_lengths"):
            assert rest[name].tolist() == whole[name].tolist()[len(whole[name]) - len(rest[name]) :]
        assert block.rest(first).arrays()["ordinals"].tolist() == block.arrays()["ordinals"].tolist()[first:]


def test_arrays_that_do_not_fit_together_are_refused() -> None:
    ids, sentences, documents, document_ids = arrays_of([reference.Document(0, [[5, 6], [7]])], "uint16")
    options, rest = RowOptions(objective="text", max_length=8, cls_id=2, sep_id=3), (0, None, 1)
    for broken in (
        (ids[:2], sentences, documents, document_ids),
        (ids, sentences[::-1].copy(), documents, document_ids),
        (ids, sentences, documents[:1], document_ids),
        (ids, sentences, documents, document_ids[:0]),
    ):
        with pytest.raises(InputError, match="do not fit together"):
            _core.ExampleBuilder(*broken, options, *rest)
    with pytest.raises(InputError, match="uint16 or uint32"):
        _core.ExampleBuilder(ids.astype(np.int64), sentences, documents, document_ids, options, *rest)
    with pytest.raises(InputError, match="objective"):
        _core.ExampleBuilder(ids, sentences, documents, document_ids, replace(options, objective="mlm"), *rest)


def test_a_failed_write_leaves_no_complete_file(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("ba do\n")
    writer = writer_of(tmp_path / "store", 1)
    shutil.rmtree(tmp_path / "store")
    with pytest.raises(OSError, match="store"):
        add_files(writer, [tmp_path / "a.txt"], None)
