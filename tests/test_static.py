"""Static models: vectors against model2vec's and sentence-transformers' numbers, and all that encode can be asked for."""

from __future__ import annotations

import asyncio
import copy
import inspect
import json
import pickle
import shutil
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wordpiece_bert as wb
from model_files import MODELS, stored_dtypes, write_safetensors
from wordpiece_bert.bert.checkpoint import read_tensors
from wordpiece_bert.bert.checkpoint import write_safetensors as write_tensors
from wordpiece_bert.bert.half_precision import BFLOAT16, to_bfloat16, widen
from wordpiece_bert.cli import main
from wordpiece_bert.errors import CheckpointError, ConfigError, InputError, TruncationWarning
from wordpiece_bert.finetune import FrozenClassifier
from wordpiece_bert.sentence import (
    SentenceEncoder,
    StaticEncoder,
    paraphrase_mining,
    retrieve_and_rerank,
    semantic_search,
)
from wordpiece_bert.sentence.dense.body import Call
from wordpiece_bert.sentence.dense.parts import body_of
from wordpiece_bert.sentence.dense.sentence_encoder import sentence_encoder
from wordpiece_bert.sentence.dense.table import TableBody
from wordpiece_bert.serve import ServerSettings
from wordpiece_bert.serve.kinds.outputs import MakesVectors
from wordpiece_bert.serve.kinds.served_model import USUAL
from wordpiece_bert.serve.metrics import Metrics
from wordpiece_bert.serve.models import Models

FOLDERS = sorted(folder.name for folder in MODELS.glob("static_*"))
MODEL2VEC = [name for name in FOLDERS if name.startswith("static_m2v")]
TOLERANCE = {"static_m2v_float16": 1e-3}  # the reference answers in float16 there


def reference(name: str) -> tuple[list[str], list[dict[str, Any]], dict[str, Any]]:
    listing = json.loads((MODELS / name / "reference.json").read_text(encoding="utf-8"))
    return listing["texts"], listing["calls"], dict(np.load(MODELS / name / "reference.npz"))


def edited(name: str, parent: Path, **config: Any) -> Path:
    """Copy a model's folder and change fields of its config.json; the value ... removes a field."""
    folder = parent / name
    shutil.copytree(MODELS / name, folder)
    file = folder / "config.json"
    fields = json.loads(file.read_text()) | config
    file.write_text(json.dumps({key: value for key, value in fields.items() if value is not ...}))
    return folder


def table_of(encoder: SentenceEncoder | StaticEncoder) -> TableBody:
    body = body_of(encoder)
    assert isinstance(body, TableBody)
    return body


@pytest.fixture(scope="module")
def encoder() -> StaticEncoder:
    return StaticEncoder(MODELS / "static_m2v_not_normalized")


@pytest.mark.filterwarnings("ignore::wordpiece_bert.errors.TruncationWarning")
@pytest.mark.parametrize("name", FOLDERS)
def test_vectors_are_those_of_the_reference_programs(name: str) -> None:
    texts, calls, expected = reference(name)
    encoder, same = StaticEncoder(MODELS / name), SentenceEncoder(MODELS / name)
    for call in calls:
        options = call["options"]
        if "normalize" in options:  # model2vec's name
            options = {"normalize_embeddings": options["normalize"]}
        vectors = getattr(encoder, call["method"])(texts, **options)
        assert np.array_equal(getattr(same, call["method"])(texts, **options), vectors)
        assert vectors.dtype == np.float32
        np.testing.assert_allclose(vectors, expected[call["key"]], rtol=0, atol=TOLERANCE.get(name, 1e-6))


@pytest.mark.parametrize("name", MODEL2VEC)
def test_a_single_text_and_token_vectors_are_those_of_the_reference(name: str) -> None:
    texts, _, expected = reference(name)
    encoder = StaticEncoder(MODELS / name)
    one = encoder.encode(texts[0], max_length=None if name != "static_m2v_max_length" else 6, return_truncated=True)[0]
    np.testing.assert_allclose(one, expected["first_alone"], rtol=0, atol=TOLERANCE.get(name, 1e-6))
    offsets = expected["tokens.offsets"]
    rows = encoder.encode(texts[: len(offsets) - 1], output_value="token_embeddings")
    assert [len(row) for row in rows] == np.diff(offsets).tolist()
    np.testing.assert_allclose(np.concatenate(rows), expected["tokens.values"], rtol=0, atol=1e-6)


def formula(encoder: StaticEncoder, text: str, longest: int | None) -> Any:
    """Compute a vector of a model2vec model from the definition, in float64."""
    table, mapping, weights = table_of(encoder).embeddings.arrays()
    tokens = [len(token) for token in encoder.tokenizer.get_vocab()]
    text = text if longest is None else text[: longest * int(np.median(tokens))]
    ids = encoder.tokenizer.encode(text, add_special_tokens=False, truncation=False, padding=False).ids
    ids = [token for token in ids[:longest] if token != encoder.tokenizer.unk_token_id]
    rows = [table[token if mapping is None else mapping[token]].astype(np.float64) for token in ids]
    rows = [row if weights is None else row * weights[token] for row, token in zip(rows, ids, strict=True)]
    return np.mean(rows, axis=0) if rows else np.zeros(table.shape[1])


@given(
    texts=st.lists(st.text(alphabet="the cat unéx1,☃[UNK]\u3000\n", max_size=40), max_size=6),
    longest=st.one_of(st.none(), st.integers(1, 9)),
    threads=st.integers(1, 3),
)
@pytest.mark.parametrize("name", ["static_m2v_not_normalized", "static_m2v_mapping"])
def test_vectors_are_those_of_the_formula(name: str, texts: list[str], longest: int | None, threads: int) -> None:
    encoder = StaticEncoder(MODELS / name, threads=threads)
    vectors, _ = encoder.encode(texts, max_length=longest, return_truncated=True)
    assert vectors.shape == (len(texts), 24)
    for vector, text in zip(vectors, texts, strict=True):
        expected = formula(encoder, text, longest)
        if name == "static_m2v_mapping":  # normalizes
            expected = expected / (np.linalg.norm(expected) + 1e-32)
        np.testing.assert_allclose(vector, expected, rtol=0, atol=1e-6)


def test_a_vector_does_not_depend_on_other_texts_or_threads(encoder: StaticEncoder) -> None:
    texts = [f"the {word} river of {n}" * (n % 50) for n in range(3000) for word in ("cat", "old")]
    alone = [encoder.encode(text, max_length=None) for text in texts[::500]]
    for threads in (1, 2, 5):
        vectors = StaticEncoder(MODELS / "static_m2v_not_normalized", threads=threads).encode(texts, max_length=None)
        assert np.array_equal(vectors[::500], alone)


def test_every_instruction_set_computes_the_same_sums(encoder: StaticEncoder) -> None:
    table = table_of(encoder)
    options = table.options(Call(max_seq_length=sys.maxsize), encoder.tokenizer._inner)
    texts = ["the old cat", "", "who was it"]
    for name in wb._core.kernel_instruction_sets():
        vectors, _, tokens = table.embeddings.encode(encoder.tokenizer._inner, texts, *options, None, name)
        assert tokens == 6
        np.testing.assert_array_equal(vectors, encoder.encode(texts))


def test_arrow_columns_arrays_and_iterables_are_texts(encoder: StaticEncoder) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    texts = ["the cat", "a dog", "☃"]
    expected = encoder.encode(texts)
    for column in (pyarrow.array(texts), pyarrow.chunked_array([texts[:1], texts[1:]]), np.array(texts), iter(texts)):
        assert np.array_equal(encoder.encode(column), expected)
    assert encoder.encode([]).shape == (0, 24)
    assert encoder.encode(()).shape == (0, 24)


def test_texts_that_are_cut_are_reported(encoder: StaticEncoder) -> None:
    texts = ["the cat", "the " * 5, "e" * 100]
    with pytest.warns(TruncationWarning, match="2 of 3 texts were truncated to 4 tokens, the first at index 1"):
        vectors = encoder.encode(texts, max_length=4)
    same, truncated = encoder.encode(texts, max_length=4, return_truncated=True)
    assert truncated.tolist() == [False, True, True]
    assert np.array_equal(vectors, same)
    assert encoder.encode("the " * 5, max_length=4, return_truncated=True)[1] is True
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encoder.encode(texts, max_length=None)


def test_max_seq_length_is_that_of_the_configuration_and_may_be_set(tmp_path: Path) -> None:
    assert StaticEncoder(edited("static_m2v", tmp_path / "null", max_length=None)).max_seq_length == sys.maxsize
    assert StaticEncoder(edited("static_m2v", tmp_path / "absent", max_length=...)).max_seq_length == 512
    encoder = StaticEncoder(MODELS / "static_m2v_max_length")
    assert encoder.max_seq_length == 6
    encoder.max_seq_length = 2
    assert np.array_equal(encoder.encode("a it"), encoder.encode("a it", max_length=2))
    with pytest.raises(InputError, match="max_seq_length must be"):
        encoder.max_seq_length = 0


def test_a_truncation_in_the_tokenizer_file_holds_for_sentence_transformers(tmp_path: Path) -> None:
    folder = tmp_path / "cut"
    shutil.copytree(MODELS / "static_st", folder)
    wb.Tokenizer.from_file(folder / "tokenizer.json").with_truncation(max_length=2).save(folder / "tokenizer.json")
    encoder = SentenceEncoder(folder)
    assert encoder.max_seq_length == 2
    whole = SentenceEncoder(MODELS / "static_st")
    with pytest.warns(TruncationWarning, match="truncated to 2 tokens"):
        vector = encoder.encode("the old cat")
    assert np.array_equal(vector, whole.encode("the old"))
    assert np.array_equal(encoder.encode("the old cat", max_length=None), whole.encode("the old cat"))


@pytest.mark.parametrize("name", FOLDERS)
def test_a_saved_folder_has_the_same_vectors_and_tensors(name: str, tmp_path: Path) -> None:
    texts, _, _ = reference(name)
    encoder = SentenceEncoder(MODELS / name)
    encoder.save_pretrained(tmp_path / "saved")
    again = StaticEncoder(tmp_path / "saved")
    first, second = (one.encode(texts, return_truncated=True) for one in (encoder, again))
    assert np.array_equal(first[0], second[0])
    assert np.array_equal(first[1], second[1])
    home = MODELS / name
    weights = home / "model.safetensors"
    if not weights.is_file():
        weights = home / "0_StaticEmbedding" / "model.safetensors"
    files = weights, tmp_path / "saved/model.safetensors"
    before, after = (read_tensors(file) for file in files)
    assert before.keys() == after.keys()
    for key, tensor in before.items():
        assert np.array_equal(after[key], tensor)
    dtypes, dtypes_after = (stored_dtypes(file) for file in files)
    table = "embeddings" if "embeddings" in dtypes else "embedding.weight"
    assert dtypes_after[table] == dtypes[table]


def test_a_saved_folder_of_model2vec_has_the_settings(tmp_path: Path) -> None:
    given: dict[str, Any] = {"truncate_dim": 2, "similarity_fn_name": "dot", "prompts": {"query": "a "}}
    for options in (given, {}):  # the second replaces the first
        encoder = SentenceEncoder(MODELS / "static_m2v", **options)
        encoder.save_pretrained(tmp_path)
        again = SentenceEncoder(tmp_path)
        for name in given:
            assert getattr(again, name) == getattr(encoder, name)


def test_a_bfloat16_table_is_saved_as_such(tmp_path: Path) -> None:
    shutil.copytree(MODELS / "static_m2v", tmp_path / "model")
    file = tmp_path / "model" / "model.safetensors"
    table = to_bfloat16(read_tensors(file)["embeddings"])  # type: ignore[arg-type]
    write_tensors(file, {"embeddings": table})
    encoder = SentenceEncoder(tmp_path / "model")
    encoder.save_pretrained(tmp_path / "saved")
    saved = tmp_path / "saved" / "model.safetensors"
    assert stored_dtypes(saved) == {"embeddings": BFLOAT16}
    assert np.array_equal(read_tensors(saved)["embeddings"], widen(table))


def test_dense_and_prompts_of_sentence_transformers(tmp_path: Path) -> None:
    folder = tmp_path / "dense"
    shutil.copytree(MODELS / "static_st", folder)
    rng = np.random.default_rng(5)
    weight, bias = rng.normal(size=(10, 24)).astype(np.float32), rng.normal(size=10).astype(np.float32)
    (folder / "1_Dense").mkdir()
    write_safetensors(folder / "1_Dense" / "model.safetensors", {"linear.weight": weight, "linear.bias": bias})
    dense = {"in_features": 24, "out_features": 10, "activation_function": "torch.nn.modules.linear.Identity"}
    (folder / "1_Dense" / "config.json").write_text(json.dumps(dense))
    listing = json.loads((folder / "modules.json").read_text())
    for kind in ("Dense", "Normalize"):
        path = f"{len(listing)}_{kind}"
        (folder / path).mkdir(exist_ok=True)
        listing.append({"idx": len(listing), "path": path, "type": f"sentence_transformers.models.{kind}"})
    (folder / "modules.json").write_text(json.dumps(listing))
    settings = {"prompts": {"query": "who "}, "similarity_fn_name": "dot"}
    (folder / "config_sentence_transformers.json").write_text(json.dumps(settings))
    encoder = SentenceEncoder(folder)
    expected = SentenceEncoder(MODELS / "static_st").encode(["who was it"]) @ weight.T + bias
    expected /= np.linalg.norm(expected)
    np.testing.assert_allclose(encoder.encode_query(["was it"]), expected, rtol=0, atol=1e-6)
    assert (encoder.dimension, encoder.similarity_fn_name) == (10, "dot")
    encoder.save_pretrained(tmp_path / "saved")
    saved = SentenceEncoder(tmp_path / "saved")
    np.testing.assert_allclose(saved.encode_query(["was it"]), expected, rtol=0, atol=1e-6)


def test_outputs_other_than_an_array(encoder: StaticEncoder) -> None:
    texts = ["the cat", "", "it"]
    vectors = encoder.encode(texts)
    assert np.array_equal(encoder.encode(texts, convert_to_numpy=False), list(vectors))
    assert encoder.encode(texts, precision="ubinary").dtype == np.uint8
    assert encoder.encode(texts, truncate_dim=5).shape == (3, 5)
    features = encoder.encode(texts, output_value=None)
    assert [len(one["input_ids"]) for one in features] == [2, 0, 1]
    assert np.array_equal(features[0]["sentence_embedding"], vectors[0])
    assert np.array_equal(features[0]["token_embeddings"].mean(axis=0), vectors[0])


def test_tokens_have_offsets_in_their_text(encoder: StaticEncoder) -> None:
    found = encoder.encode_tokens("The ☃ cats")
    assert (found.tokens, found.offsets) == (["the", "cat", "##s"], [(0, 3), (6, 9), (9, 10)])
    assert np.array_equal(found.vectors.mean(axis=0), encoder.encode("The ☃ cats"))
    assert [len(one.tokens) for one in encoder.encode_tokens(["", "a"])] == [0, 1]


def test_a_long_list_is_encoded_in_steps_with_a_progress_bar(
    encoder: StaticEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = ["the cat", "a dog", "it", "she", "river"]
    monkeypatch.setattr("wordpiece_bert.sentence.dense.table._TEXTS_PER_STEP", 2)
    assert np.array_equal(encoder.encode(texts, show_progress_bar=True), encoder.encode(texts))
    with pytest.raises(InputError, match=r"texts\[3\] must be a str, not NoneType"):
        encoder.encode([*texts[:3], None], show_progress_bar=True)  # type: ignore[list-item]


def test_it_is_pickled_and_copied(encoder: StaticEncoder) -> None:
    expected = encoder.encode("the cat")
    for other in (pickle.loads(pickle.dumps(encoder)), copy.copy(encoder), copy.deepcopy(encoder)):
        assert np.array_equal(other.encode("the cat"), expected)
    mapped = StaticEncoder(MODELS / "static_m2v_mapping")
    assert np.array_equal(pickle.loads(pickle.dumps(mapped)).encode("the cat"), mapped.encode("the cat"))


@pytest.mark.filterwarnings("ignore::wordpiece_bert.errors.TruncationWarning")
def test_embed_writes_the_same_vectors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    texts = ["the old cat", "", "who ☃ was it?", "the " * 2000]
    (tmp_path / "texts.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")
    model = str(MODELS / "static_m2v_not_normalized")
    assert main(["embed", "texts.txt", "-m", model, "-o", "v.npy", "--json"]) == 0
    vectors, truncated = SentenceEncoder(model).encode(texts, return_truncated=True)
    assert np.array_equal(np.load("v.npy"), vectors)
    summary = json.loads(capsys.readouterr().out)
    assert (summary["vectors"], summary["dimensions"], summary["truncated"]) == (4, 24, int(truncated.sum()))
    assert main(["embed", "texts.txt", "-m", model, "-o", "n.npy", "-q", "--normalize"]) == 0
    np.testing.assert_allclose(np.linalg.norm(np.load("n.npy"), axis=1), [1, 0, 1, 1], rtol=0, atol=1e-6)
    main(["embed", "texts.txt", "-m", model, "-o", "v.npy", "--verbose"])
    assert f"{model}: static embeddings, 24 dimensions, at most 512 tokens a text" in capsys.readouterr().err


# --- refusals


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_length": 0}, "max_length must be"),
        ({"output_value": "words"}, "output_value must be"),
        ({"output_value": "token_embeddings", "truncate_dim": 3}, "are for sentence vectors"),
        ({"truncate_dim": 25}, "truncate_dim must be"),
        ({"precision": "int4"}, "precision must be"),
        ({"prompt_name": "passage"}, "no prompt 'passage'"),
    ],
)
def test_wrong_arguments_are_refused(encoder: StaticEncoder, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        encoder.encode(["the cat"], **options)


@pytest.mark.parametrize("texts", [["a", 3], 3, [None], [("a", "b")], {"a": 1}, ["\ud800"]])
def test_what_is_no_text_is_refused(encoder: StaticEncoder, texts: Any) -> None:
    with pytest.raises(InputError):
        encoder.encode(texts)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dtype": "bfloat16"}, "dtype must be 'float32' for a static model.*, not 'bfloat16'"),
        ({"dtype": "int8", "calibrate": ["a"]}, "dtype must be 'float32' for a static model.*, not 'int8'"),
        ({"backend": "numpy"}, "backend must be 'rust' for a static model.*, not 'numpy'"),
    ],
)
def test_options_of_an_engine_are_refused_by_name(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        SentenceEncoder(MODELS / "static_st", **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"windows": "mean"}, "pass max_length=None"),
        ({"stride": 2}, "pass max_length=None"),
        ({"device": "cuda"}, "device must be"),
        ({"pool": 2}, "pool must be None"),
    ],
)
def test_options_of_calls_that_a_table_has_not(encoder: StaticEncoder, options: dict[str, Any], message: str) -> None:
    for one in (encoder, SentenceEncoder(MODELS / "static_m2v")):
        with pytest.raises(InputError, match=message):
            one.encode(["the cat"], **options)


def test_a_static_encoder_is_made_without_options_of_models() -> None:
    own = inspect.signature(StaticEncoder).parameters
    assert own.keys().isdisjoint({"backend", "dtype", "calibrate", "device"})
    with pytest.raises(TypeError, match="unexpected keyword argument 'backend'"):
        StaticEncoder(MODELS / "static_m2v", backend="rust")  # type: ignore[call-arg]
    with pytest.raises(InputError, match="static model"):
        StaticEncoder(MODELS / "static_m2v").encode_chunks("the cat", [(0, 3)])


def test_functions_that_take_encoders_take_it(tmp_path: Path) -> None:
    folder, texts = MODELS / "static_m2v", ["the cat", "the old cat", "a river", "a dog"]
    encoder, other = StaticEncoder(folder), SentenceEncoder(folder)
    encoder.max_seq_length = other.max_seq_length = 100
    same = sentence_encoder(encoder)
    assert isinstance(same, SentenceEncoder)
    assert (same.max_seq_length, body_of(same)) == (100, body_of(encoder))
    assert np.array_equal(pickle.loads(pickle.dumps(same)).encode(texts), encoder.encode(texts))
    assert paraphrase_mining(encoder, texts) == paraphrase_mining(other, texts)
    assert retrieve_and_rerank("a cat", texts, encoder) == retrieve_and_rerank("a cat", texts, other)
    first, second = (FrozenClassifier(one).fit(texts, ["x", "x", "y", "y"]) for one in (encoder, other))
    assert np.array_equal(first.predict_proba(texts), second.predict_proba(texts))
    served = Models({"a": encoder}, ServerSettings(), {}, Metrics()).of_kind(MakesVectors, "a")
    answer = asyncio.run(served.embed(texts, USUAL))
    assert np.array_equal(answer.values, encoder.encode(texts))
    vectors, file = tmp_path / "vectors.npy", tmp_path / "texts.txt"
    file.write_text("".join(f"{text}\n" for text in texts))
    assert main(["embed", str(file), "-m", str(folder), "-o", str(vectors), "-q"]) == 0
    encoder.max_seq_length = other.max_seq_length = 512
    hits, expected = (
        semantic_search(one.encode("a cat"), vectors, encoder=one, texts=texts) for one in (encoder, other)
    )
    assert hits == expected
    assert repr(encoder).startswith("StaticEncoder(dimension 24, ")
    assert repr(other).startswith("SentenceEncoder(dimension 24, ")


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"normalize": 1}, "normalize is 1, expected bool"),
        ({"max_length": 0}, "max_length is 0; expected 1 or more, or null"),
        ({"max_length": "all"}, "max_length is 'all', expected int"),
        ({"model_type": "bert", "architectures": ...}, "model_type is 'bert'"),
    ],
)
def test_settings_that_are_not_supported_are_refused(config: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=message):
        SentenceEncoder(edited("static_m2v", tmp_path, **config))


@pytest.mark.parametrize(
    ("name", "kind", "place", "message"),
    [
        ("static_m2v", "Dense", "2", "Dense"),
        ("static_m2v", "LSTM", "2", "LSTM"),
        (
            *("static_st", "StaticEmbedding", ""),
            "has a second StaticEmbedding; only Dense, LayerNorm, Normalize, Dropout may follow the StaticEmbedding",
        ),
    ],
)
def test_modules_that_are_not_supported_are_refused_by_name(
    name: str, kind: str, place: str, message: str, tmp_path: Path
) -> None:
    folder = shutil.copytree(MODELS / name, tmp_path / name)
    listing = json.loads((folder / "modules.json").read_text())
    listing.append({"idx": 9, "name": "9", "path": place, "type": f"sentence_transformers.models.{kind}"})
    (folder / "modules.json").write_text(json.dumps(listing))
    with pytest.raises(ConfigError, match=message):
        SentenceEncoder(folder)
    (folder / "modules.json").write_text("[]")
    with pytest.raises(ConfigError, match=r"modules.json: lists no modules"):
        StaticEncoder(folder)


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        ({"table": np.zeros((136, 4))}, "no tensor embeddings or embedding.weight"),
        ({"embeddings": np.zeros((135, 4))}, "has 135 rows, but tokenizer.json 136 tokens"),
        ({"embeddings": np.zeros((137, 4))}, "has 137 rows, but tokenizer.json 136 tokens"),
        ({"embedding.weight": np.zeros((135, 4))}, "has 135 rows, but tokenizer.json 136 tokens"),
        ({"embeddings": np.zeros(136)}, r"has shape \[136\], expected \[tokens, width\]"),
        ({"embeddings": np.zeros((136, 4)), "weights": np.zeros(135)}, r"weights has .*, expected floats \[136\]"),
        ({"embeddings": np.zeros((136, 4)), "mapping": np.zeros(136)}, "mapping has dtype float32"),
    ],
)
def test_tensors_that_do_not_fit_are_refused(tensors: dict[str, Any], message: str, tmp_path: Path) -> None:
    folder = edited("static_m2v", tmp_path)
    write_safetensors(folder / "model.safetensors", {name: x.astype(np.float32) for name, x in tensors.items()})
    with pytest.raises(CheckpointError, match=message):
        SentenceEncoder(folder)


def test_a_mapping_to_a_row_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    folder = edited("static_m2v_mapping", tmp_path)
    tensors = read_tensors(folder / "model.safetensors")
    write_safetensors(folder / "model.safetensors", {"embeddings": np.asarray(tensors["embeddings"])[:7]})
    header_and_mapping = {"embeddings": tensors["embeddings"][:7], "mapping": tensors["mapping"]}
    from wordpiece_bert.bert.checkpoint.safetensors import write_safetensors as write

    write(folder / "model.safetensors", header_and_mapping)
    with pytest.raises(CheckpointError, match=r"mapping sends token \d+ to row \d+, but embeddings has 7 rows"):
        SentenceEncoder(folder)
