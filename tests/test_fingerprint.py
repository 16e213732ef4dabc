"""Fingerprints of vectors: what changes them, what does not, where they stand, and who compares them."""

from __future__ import annotations

import json
import os
import shutil
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from command_line import error_of
from tiny_models import make_sentences
from wordpiece_bert.cli import main
from wordpiece_bert.errors import InputError, VectorsWarning
from wordpiece_bert.sentence import SentenceEncoder, distill_static, semantic_search
from wordpiece_bert.sentence.dense.encoder_fingerprint import fingerprint_of
from wordpiece_bert.sentence.dense.model_contents import model_digests
from wordpiece_bert.tokenizer.corpus.file_formats import VECTOR_FORMATS
from wordpiece_bert.tokenizer.corpus.text_reader import TextReader
from wordpiece_bert.tokenizer.corpus.vector_files import read_stored, read_vectors
from wordpiece_bert.tokenizer.corpus.vector_fingerprint import Fingerprint, TextsDigest, VectorsDigest

TEXTS = ["to repair a bicycle", "bread dough in the oven", "", "the capital of Poland", "flour and  water"]
ASK = ("--query", "bread", "--json", "-q")


@pytest.fixture(autouse=True)
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    make_sentences(Path("model"))
    Path("texts.txt").write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    return tmp_path


def embed(output: str, *options: str, model: str = "model") -> Path:
    assert main(["embed", "texts.txt", "-m", model, "-o", output, "-q", *options]) == 0
    return Path(output)


def settings(folder: str, name: str, **changes: object) -> None:
    """Change fields of a JSON file of a model."""
    file = Path(folder) / name
    content = json.loads(file.read_text()) if file.is_file() else {}
    file.write_text(json.dumps({**content, **changes}))


# --- digests


@given(
    texts=st.lists(st.text(max_size=4), max_size=8), others=st.lists(st.text(max_size=4), max_size=8), data=st.data()
)
def test_the_digest_of_texts_is_that_of_their_sequence(
    texts: list[str], others: list[str], data: st.DataObject
) -> None:
    def digest(blocks: list[list[str]]) -> str:
        found = TextsDigest()
        for block in blocks:
            found.add(block)
        return found.hexdigest()

    cut = data.draw(st.integers(0, len(texts)))
    assert digest([texts]) == digest([texts[:cut], texts[cut:]])
    assert (digest([texts]) == digest([others])) == (texts == others)
    assert digest([["ab", "c"]]) != digest([["a", "bc"]]) != digest([["abc"]]) != digest([["abc", ""]])


def test_texts_of_files_have_the_digest_of_the_same_strings(tmp_path: Path) -> None:
    texts = ["a", "", "ß 中文", "\U0001f600", "x" * 1000]
    path = tmp_path / "some.txt"
    path.write_text("\n".join(texts) + "\n", encoding="utf-8")
    expected = TextsDigest()
    expected.add(texts)
    for size in (None, 1, 2):
        found = TextsDigest()
        for block in TextReader(path, block_texts=size):
            found.add_utf8(*block.utf8())
        assert (found.hexdigest(), found.count) == (expected.hexdigest(), 5)


@given(count=st.integers(0, 5000), cuts=st.lists(st.integers(0, 5000), max_size=5), data=st.data())
def test_the_digest_of_vectors_does_not_depend_on_blocks(count: int, cuts: list[int], data: st.DataObject) -> None:
    def digest(vectors: Any, blocks: list[Any]) -> str:
        found = VectorsDigest()
        for block in blocks:
            found.append(block)
        return found.hexdigest(vectors.shape[1])

    vectors = np.random.default_rng(count).normal(size=(count, 3)).astype(np.float32)
    whole = digest(vectors, [vectors])
    assert digest(vectors, np.split(vectors, sorted(min(cut, count) for cut in cuts))) == whole
    assert digest(vectors, [vectors.astype(np.float64)]) == whole
    if count:
        assert digest(vectors, [vectors[:-1]]) != whole
        changed = vectors.copy()
        changed[data.draw(st.integers(0, min(count, 1024) - 1))] += 1
        assert digest(vectors, [changed]) != whole


# --- the contents of a model


def contents_of(folder: str, **options: Any) -> dict[str, str]:
    return model_digests(SentenceEncoder(folder, **options))


def test_a_model_is_its_contents_not_its_path() -> None:
    expected = contents_of("model")
    shutil.copytree("model", "copy")
    Path("copy/README.md").write_text("A model.")
    settings("copy", "config_sentence_transformers.json", prompts={"query": "find "})  # no document's
    settings("copy", "config.json", _name_or_path="elsewhere", transformers_version="9")
    assert contents_of("copy") == expected
    assert contents_of("model", dtype="bfloat16") == contents_of("model", dtype="int8") == expected


def test_the_part_that_differs_is_named(tmp_path: Path) -> None:
    """Changes of a saved folder, and which parts they change."""
    SentenceEncoder("model").save_pretrained("saved")
    before = contents_of("saved")

    def weights(folder: Path) -> None:
        file = folder / "model.safetensors"
        data = bytearray(file.read_bytes())
        data[-2] ^= 1  # an exponent's lowest bit
        file.write_bytes(data)

    def pooling(folder: Path) -> None:
        (name,) = (path.parent.name for path in folder.glob("1_*/config.json"))
        settings(str(folder / name), "config.json", pooling_mode_mean_tokens=False, pooling_mode_cls_token=True)

    def tokenizer(folder: Path) -> None:
        content = (folder / "tokenizer.json").read_text()
        assert '"oven"' in content
        (folder / "tokenizer.json").write_text(content.replace('"oven"', '"overt"'))

    changes: dict[str, Callable[[Path], None]] = {
        "weights": weights,
        "modules": pooling,
        "tokenizer": tokenizer,
        "configuration": lambda folder: settings(str(folder), "config.json", layer_norm_eps=0.1),
    }
    for part, change in changes.items():
        shutil.copytree("saved", part)
        change(tmp_path / part)
        after = contents_of(part)
        assert [name for name in before if before[name] != after[name]] == [part]


def test_an_encoder_in_memory_has_the_contents_of_its_saved_folder() -> None:
    made = distill_static("model", pca_dims=None)
    assert made._source is None
    made.save_pretrained("static")
    assert model_digests(made) == contents_of("static")
    encoder = SentenceEncoder("model")
    encoder.save_pretrained("saved")
    encoder._source = None
    assert model_digests(encoder) == contents_of("saved")


def test_a_folder_that_changed_since_it_was_loaded_is_not_taken_for_the_encoder() -> None:
    SentenceEncoder("model").save_pretrained("saved")
    encoder = SentenceEncoder("saved")
    before = model_digests(encoder)
    data = bytearray(Path("saved/model.safetensors").read_bytes())
    data[-2] ^= 1
    Path("saved/model.safetensors").write_bytes(data)
    assert model_digests(encoder) == before != contents_of("saved")


# --- files of vectors, and the command


@pytest.mark.parametrize("kind", VECTOR_FORMATS)
def test_embed_writes_the_fingerprint_that_search_expects(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = embed(f"v.{kind}")
    digest = TextsDigest()
    digest.add(TEXTS)
    stored = read_stored(path)
    assert stored.record is not None
    found = Fingerprint.from_json(stored.record, str(path))
    assert replace(found, vectors="") == fingerprint_of(SentenceEncoder("model"), digest, prompt="")
    assert Path(f"{path}.fingerprint.json").exists() == (kind in ("npy", "jsonl"))
    shutil.copytree("model", "elsewhere")
    assert main(["search", "texts.txt", "-m", "elsewhere", "--vectors", str(path), *ASK]) == 0
    assert capsys.readouterr().err == ""


def no_change() -> None:
    pass


def shuffled() -> None:
    Path("texts.txt").write_text("\n".join(TEXTS[::-1]) + "\n", encoding="utf-8")


def other_weights() -> None:
    data = bytearray(Path("model/model.safetensors").read_bytes())
    data[-2] ^= 1
    Path("model/model.safetensors").write_bytes(data)


def shorter_rows() -> None:
    settings("model", "sentence_bert_config.json", max_seq_length=9)
    Path("model/modules.json").write_text(
        json.dumps(
            [
                {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
                {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
            ]
        )
    )
    Path("model/1_Pooling").mkdir()
    settings("model/1_Pooling", "config.json", pooling_mode_mean_tokens=True)


def a_prompt() -> None:
    settings("model", "config_sentence_transformers.json", prompts={"document": "text: "})
    if not Path("model/modules.json").exists():
        shorter_rows()


@pytest.mark.parametrize("kind", VECTOR_FORMATS)
@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (shuffled, [], "the texts"),
        (other_weights, [], "the weights of the model"),
        (no_change, ["--dtype", "bfloat16"], "dtype ('float32' in the file, 'bfloat16' now)"),
        (shorter_rows, [], "(64 in the file, 9 now)"),
        (a_prompt, [], "prompt ('' in the file, 'text: ' now)"),
    ],
)
def test_search_refuses_vectors_of_something_else(
    kind: str, change: Callable[[], None], options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = embed(f"v.{kind}")
    change()
    command = ["search", "texts.txt", "-m", "model", "--vectors", str(path), *ASK, *options]
    found = error_of(capsys, *command)
    assert message in found
    assert "--allow-stale" in found
    assert main([*command, "--allow-stale"]) == 0
    printed = capsys.readouterr()
    assert message in printed.err
    assert "--allow-stale" not in printed.err
    assert len(json.loads(printed.out)["hits"]) == len(TEXTS)


def test_the_scale_matters_where_the_metric_sees_it(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["search", "texts.txt", "-m", "model", "--vectors", str(embed("v.npy", "--normalize")), *ASK]
    assert main(command) == 0
    capsys.readouterr()
    shorter_rows()
    settings("model", "config_sentence_transformers.json", similarity_fn_name="dot")
    embed("v.npy", "--normalize")
    assert "normalized (true in the file, false now)" in error_of(capsys, *command)


@pytest.mark.parametrize("kind", VECTOR_FORMATS)
def test_vectors_without_a_fingerprint_are_searched_with_a_warning(
    kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = embed(f"v.{kind}")
    if kind in ("npy", "jsonl"):
        path.with_name(path.name + ".fingerprint.json").unlink()
    else:
        import pyarrow as pa
        import pyarrow.parquet as pq

        vectors = read_vectors(path)
        table = pa.table({"vector": pa.FixedSizeListArray.from_arrays(vectors.reshape(-1), vectors.shape[1])})
        if kind == "parquet":
            pq.write_table(table, path)
        else:
            with (pa.ipc.new_file if kind == "arrow" else pa.ipc.new_stream)(path, table.schema) as writer:
                writer.write_table(table)
    assert main(["search", "texts.txt", "-m", "model", "--vectors", str(path), *ASK]) == 0
    assert f"{path} has no fingerprint" in capsys.readouterr().err


@pytest.mark.parametrize("kind", VECTOR_FORMATS)
def test_vectors_that_another_program_changed_are_refused(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The fingerprint may stay when vectors are sorted or computed again, in its own file or in the metadata."""
    path = embed(f"v.{kind}")
    vectors = read_vectors(path)[::-1]
    if kind == "npy":
        np.save(path, vectors)
    elif kind == "jsonl":
        path.write_text("".join(json.dumps({"vector": row}) + "\n" for row in vectors.tolist()))
    else:
        import pyarrow as pa
        import pyarrow.parquet as pq

        record = read_stored(path).record
        metadata = {"wordpiece_bert.fingerprint": record}
        table = pa.table({"vector": pa.array(vectors.tolist(), pa.list_(pa.float32()))})
        if kind == "parquet":
            pq.write_table(table.replace_schema_metadata(metadata), path)
        else:
            with (pa.ipc.new_file if kind == "arrow" else pa.ipc.new_stream)(path, table.schema) as writer:
                writer.write_batch(table.to_batches()[0], custom_metadata=metadata)
    found = error_of(capsys, "search", "texts.txt", "-m", "model", "--vectors", str(path), *ASK)
    assert "what differs: the vectors, which were changed after they were computed." in found


def test_new_vectors_are_never_beside_an_old_fingerprint(tmp_path: Path) -> None:
    from wordpiece_bert.tokenizer.corpus.vector_writers import vector_writer

    embed("v.npy")
    with vector_writer(tmp_path / "v.npy", 2, "npy") as writer:
        writer.begin()
        writer.append(np.ones((1, 2), np.float32))
        writer.commit()
    assert read_stored(tmp_path / "v.npy").record is None
    assert not [name for name in os.listdir() if "fingerprint" in name]


def test_a_fingerprint_replaces_no_input(capsys: pytest.CaptureFixture[str]) -> None:
    Path("v.npy.fingerprint.json").write_text("a text\n")
    for command in (["embed", "-o", "v.npy"], ["search", "--vectors", "v.npy", "--query", "a"]):
        assert "is one of the inputs" in error_of(capsys, *command, "-m", "model", "v.npy.fingerprint.json")
    assert Path("v.npy.fingerprint.json").read_text() == "a text\n"


def test_a_fingerprint_is_found_through_a_link() -> None:
    Path("data").mkdir()
    embed("data/v.npy")
    Path("v.npy").symlink_to("data/v.npy")
    assert read_stored(Path("v.npy")).record == read_stored(Path("data/v.npy")).record is not None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda record: record[:-5], "not JSON"),
        (lambda record: b"[]", "is no JSON object"),
        (lambda record: record.replace(b'"version": 1', b'"version": 2'), "has the version 2, not 1"),
        (lambda record: record.replace(b'"dtype": "float32"', b'"dtype": 32'), "is malformed: dtype is 32"),
        (lambda record: b"\xff" + record, "not UTF-8"),
        (lambda record: b" " * 2_000_000, "larger than 1,000,000 bytes"),
    ],
)
def test_damaged_fingerprints_are_refused(
    change: Callable[[bytes], bytes], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    embed("v.npy")
    sidecar = Path("v.npy.fingerprint.json")
    sidecar.write_bytes(change(sidecar.read_bytes()))
    assert message in error_of(capsys, "search", "texts.txt", "-m", "model", "--vectors", "v.npy", *ASK)


def test_the_version_of_the_library_is_recorded_and_not_compared(capsys: pytest.CaptureFixture[str]) -> None:
    embed("v.npy")
    sidecar = Path("v.npy.fingerprint.json")
    record = json.loads(sidecar.read_text())
    sidecar.write_text(json.dumps({**record, "library": "0.0.1"}))
    command = ["search", "texts.txt", "-m", "model", "--vectors", "v.npy", *ASK]
    assert main(command) == 0
    assert capsys.readouterr().err == ""
    shuffled()
    assert "(it was written by wordpiece-bert 0.0.1, this is " in error_of(capsys, *command)


# --- semantic_search


@pytest.mark.parametrize("kind", VECTOR_FORMATS)
def test_semantic_search_compares_a_file(kind: str) -> None:
    path, encoder = embed(f"v.{kind}"), SentenceEncoder("model")
    asked = encoder.encode_query(["bread"])
    expected = semantic_search(asked, read_vectors(path))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for file in (path, str(path)):
            assert semantic_search(asked, file, encoder=encoder) == expected
            assert semantic_search(asked, file, encoder=encoder, texts=iter(TEXTS)) == expected
    with pytest.raises(InputError, match=r"what differs: the texts\. .* allow_stale=True"):
        semantic_search(asked, path, encoder=encoder, texts=TEXTS[::-1])
    with pytest.raises(InputError, match="5 vectors, but there are 1 texts"):
        semantic_search(asked, path, encoder=encoder, texts=["a"], allow_stale=True)
    encoder.max_seq_length = 7
    with pytest.raises(InputError, match="max_seq_length"):
        semantic_search(asked, path, encoder=encoder)
    with pytest.warns(VectorsWarning, match="max_seq_length") as caught:
        assert semantic_search(asked, path, encoder=encoder, allow_stale=True) == expected
    assert caught[0].filename == __file__


def test_semantic_search_warns_of_a_file_without_a_fingerprint() -> None:
    encoder = SentenceEncoder("model")
    np.save("lone.npy", encoder.encode(TEXTS))
    with pytest.warns(VectorsWarning, match=r"lone\.npy has no fingerprint"):
        found = semantic_search(encoder.encode("bread"), "lone.npy", encoder=encoder)
    assert found[0] == semantic_search(encoder.encode("bread"), encoder.encode(TEXTS))[0]
    with pytest.raises(InputError, match="pass encoder"):
        semantic_search(encoder.encode("bread"), "lone.npy")
    with pytest.raises(InputError, match="corpus_embeddings is an array"):
        semantic_search(encoder.encode("bread"), encoder.encode(TEXTS), encoder=encoder)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("precision", [None, "float32", "ubinary", "int8"])
@pytest.mark.parametrize("metric", ["cosine", "dot", "euclidean", "manhattan"])
def test_a_query_that_is_not_finite_is_refused(value: float, precision: str | None, metric: str) -> None:
    rng = np.random.default_rng(1)
    queries = rng.normal(size=(3, 8)).astype(np.float32)
    queries[1, 5] = value
    dtype = {"ubinary": np.uint8, "int8": np.int8}.get(precision or "", np.float32)
    corpus = np.ones((4, 1 if precision == "ubinary" else 8), dtype)
    ranges = None if precision is None else np.array([[-1.0] * 8, [1.0] * 8], np.float32)
    with pytest.raises(InputError, match=rf"query 1 has {value} at index 5"):
        semantic_search(queries, corpus, metric=metric, corpus_precision=precision, ranges=ranges)
