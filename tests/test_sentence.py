"""SentenceEncoder against sentence-transformers' numbers, and all that encode can be asked for."""

from __future__ import annotations

import json
import shutil
import sys
import types
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model_files import MODELS, sentence_folder, with_tokenizer, write_safetensors
from wordpiece_bert.bert import AutoModel
from wordpiece_bert.bert.checkpoint import read_tensors
from wordpiece_bert.errors import CheckpointError, ConfigError, InputError, ModelNotFoundError
from wordpiece_bert.hub import find_model
from wordpiece_bert.sentence import (
    SentenceEncoder,
    TruncationWarning,
    pairwise_similarity,
    paraphrase_mining,
    paraphrase_mining_embeddings,
    quantize_embeddings,
    semantic_search,
    similarity,
)
from wordpiece_bert.sentence.dense.base import transformer_of

if TYPE_CHECKING:
    from pathlib import Path

TOLERANCE = 1e-5  # absolute; what is reached is about 1e-6

LISTING = json.loads((MODELS / "sentence_reference.json").read_text(encoding="utf-8"))
REFERENCE = np.load(MODELS / "sentence_reference.npz")
FOLDERS = sorted(folder.name for folder in MODELS.glob("sentence_*") if (folder / "modules.json").is_file())
TEXTS: list[str] = LISTING["sentence_max"]["texts"]
LONG = "the " * 60

# The folders hold one text that is longer than their 12 tokens; only the tests that are about it look at the warning.
pytestmark = pytest.mark.filterwarnings("ignore::wordpiece_bert.errors.TruncationWarning")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    parent = tmp_path_factory.mktemp("sentence")
    return {name: sentence_folder(name, parent) for name in FOLDERS}


@pytest.fixture(scope="module")
def encoder(folders: dict[str, Path]) -> SentenceEncoder:
    return SentenceEncoder.from_pretrained(folders["sentence_max"])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with Dense and Normalize that a test may change."""
    return sentence_folder("sentence_cls_dense_normalize", tmp_path)


def change(file: Path, **values: Any) -> None:
    content = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps({**content, **values}), encoding="utf-8")


# --- equal to the reference


def test_every_pooling_mode_and_module_is_among_the_folders() -> None:
    assert len(FOLDERS) == 13


@pytest.mark.parametrize("name", FOLDERS)
def test_vectors_and_similarities_equal_sentence_transformers(folders: dict[str, Path], name: str) -> None:
    model = SentenceEncoder.from_pretrained(folders[name])
    vectors = model.encode(LISTING[name]["texts"])
    expected = REFERENCE[f"{name}.embeddings"]
    assert vectors.dtype == np.float32
    assert vectors.shape == expected.shape == (len(TEXTS), model.dimension)
    np.testing.assert_allclose(vectors, expected, rtol=0, atol=TOLERANCE)
    assert model.similarity_fn_name == LISTING[name].get("similarity", "cosine")
    scores = model.similarity(vectors, vectors)
    if name != "sentence_old_layout":
        np.testing.assert_allclose(scores, REFERENCE[f"{name}.similarity"], rtol=0, atol=TOLERANCE)
    np.testing.assert_allclose(model.similarity_pairwise(vectors, vectors[::-1]), np.diag(scores[:, ::-1]), atol=1e-5)


@pytest.mark.parametrize("name", FOLDERS)
def test_prompts_equal_sentence_transformers(folders: dict[str, Path], name: str) -> None:
    model = SentenceEncoder.from_pretrained(folders[name])
    for prompt, text in LISTING[name].get("prompts", {}).items():
        expected = REFERENCE[f"{name}.prompt.{prompt}"]
        for vectors in (model.encode(TEXTS, prompt_name=prompt), model.encode(TEXTS, prompt=text)):
            np.testing.assert_allclose(vectors, expected, rtol=0, atol=TOLERANCE)


def test_a_folder_without_modules_is_averaged() -> None:
    model = SentenceEncoder.from_pretrained(MODELS / "sentence_plain_folder")
    expected = REFERENCE["sentence_plain_folder.embeddings"]
    np.testing.assert_allclose(model.encode(TEXTS), expected, rtol=0, atol=TOLERANCE)
    assert model.max_seq_length == 48


def test_normalized_and_token_vectors_equal_sentence_transformers(encoder: SentenceEncoder) -> None:
    vectors = encoder.encode(TEXTS, normalize_embeddings=True)
    np.testing.assert_allclose(vectors, REFERENCE["sentence_max.normalized"], rtol=0, atol=TOLERANCE)
    tokens = encoder.encode(TEXTS[:1], output_value="token_embeddings")
    expected = REFERENCE["sentence_max.token_embeddings_0"]
    np.testing.assert_allclose(tokens[0], expected, rtol=0, atol=TOLERANCE)


def minilm() -> SentenceEncoder:
    try:
        find_model("minilm")
    except ModelNotFoundError as error:
        pytest.skip(f"MiniLM is compared only where its weights are: {error}")
    return SentenceEncoder.from_pretrained("minilm")


def test_minilm_equals_sentence_transformers_on_every_text() -> None:
    model = minilm()
    texts = json.loads((MODELS / "minilm_sentences.json").read_text(encoding="utf-8"))
    expected = np.load(MODELS / "minilm_reference.npz")
    vectors, truncated = model.encode(texts, return_truncated=True)
    assert (model.max_seq_length, model.dimension) == (256, 384)
    np.testing.assert_allclose(vectors, expected["embeddings"], rtol=0, atol=TOLERANCE)
    np.testing.assert_array_equal(truncated, expected["untruncated_lengths"] > 256)
    assert truncated.any()
    for precision in ("binary", "ubinary"):
        np.testing.assert_array_equal(quantize_embeddings(vectors, precision), expected[precision])
    steps = quantize_embeddings(vectors, "int8").astype(int) - expected["int8"]
    assert np.abs(steps).max() <= 1  # a number on the border of two steps may be rounded to either
    assert np.count_nonzero(steps) < 100


# --- order, batches, shapes


@given(texts=st.lists(st.sampled_from([*TEXTS, LONG, "a", "cat ##s"]), max_size=12), size=st.integers(1, 5))
def test_vectors_do_not_depend_on_order_or_batches(encoder: SentenceEncoder, texts: list[str], size: int) -> None:
    vectors = encoder.encode(texts, batch_size=size)
    assert vectors.shape == (len(texts), 32)
    for text, vector in zip(texts, vectors, strict=True):
        np.testing.assert_allclose(encoder.encode(text), vector, atol=1e-6)


def test_one_text_gives_one_vector(encoder: SentenceEncoder) -> None:
    assert encoder.encode("cat").shape == (32,)
    assert encoder.encode(["cat"]).shape == (1, 32)
    assert encoder.encode("cat", output_value="token_embeddings").shape == (3, 32)
    vector, cut = encoder.encode(LONG, return_truncated=True)
    assert vector.shape == (32,)
    assert cut is True


@pytest.mark.parametrize(
    ("options", "shape", "dtype"),
    [
        ({}, (0, 32), "float32"),
        ({"truncate_dim": 9}, (0, 9), "float32"),
        ({"precision": "int8"}, (0, 32), "int8"),
        ({"precision": "ubinary", "truncate_dim": 9}, (0, 2), "uint8"),
        ({"normalize_embeddings": True}, (0, 32), "float32"),
    ],
)
def test_no_text_gives_an_empty_array(encoder: SentenceEncoder, options: Any, shape: Any, dtype: str) -> None:
    vectors = encoder.encode([], **options)
    assert (vectors.shape, vectors.dtype) == (shape, np.dtype(dtype))
    assert encoder.encode([], output_value="token_embeddings") == []


def test_any_iterable_of_texts_is_accepted(encoder: SentenceEncoder) -> None:
    expected = encoder.encode(["cat", "dog"])
    for texts in (("cat", "dog"), (text for text in ("cat", "dog")), np.array(["cat", "dog"])):
        np.testing.assert_array_equal(encoder.encode(texts), expected)


def test_texts_may_be_a_column(encoder: SentenceEncoder) -> None:
    pa, pl = pytest.importorskip("pyarrow"), pytest.importorskip("polars")
    texts = ["A cat sat.", "", "Rain, again."]
    vectors = encoder.encode(texts)
    for column in (
        pa.array(texts),
        pa.chunked_array([texts[:1], texts[1:]]),
        pl.Series(texts),
        pl.DataFrame({"a": texts}),
    ):
        np.testing.assert_array_equal(encoder.encode(column), vectors)
    with pytest.raises(InputError, match=r"^item 1 is null"):
        encoder.encode(pa.array(["a", None]))
    with pytest.raises(InputError, match=r"^texts is a table of 2 columns \(a, b\); choose one column"):
        encoder.encode(pl.DataFrame({"a": texts, "b": texts}))


def test_token_vectors_do_not_depend_on_the_batch(encoder: SentenceEncoder) -> None:
    rows = encoder.encode(["cat", LONG, ""], output_value="token_embeddings", batch_size=3)
    assert [row.shape for row in rows] == [(3, 32), (12, 32), (2, 32)]
    np.testing.assert_allclose(rows[0], encoder.encode("cat", output_value="token_embeddings"), atol=1e-6)


# --- truncation is reported


def test_the_warning_about_cut_texts_has_their_number_and_the_first_index(encoder: SentenceEncoder) -> None:
    with pytest.warns(
        TruncationWarning, match="^2 of 4 texts were truncated to 12 tokens, the first at index 1;"
    ) as caught:
        encoder.encode(["cat", LONG, "dog", LONG])
    assert caught[0].filename == __file__


def test_which_texts_were_cut_is_returned_on_request(encoder: SentenceEncoder) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        vectors, cut = encoder.encode(["cat", LONG, "dog", LONG], return_truncated=True)
        encoder.encode(["cat", "the " * 10])
    assert cut.tolist() == [False, True, False, True]
    assert vectors.shape == (4, 32)


def test_a_shorter_row_cuts_more(folders: dict[str, Path]) -> None:
    model = SentenceEncoder.from_pretrained(folders["sentence_max"])
    assert model.max_seq_length == 12
    model.max_seq_length = 5
    tokens, cut = model.encode(["the cat was in the house"], output_value="token_embeddings", return_truncated=True)
    assert cut.tolist() == [True]
    assert tokens[0].shape == (5, 32)
    for value in (0, 49, -1, 2.0, True, None):
        with pytest.raises(InputError, match="max_seq_length must be a whole number from 1 to 48"):
            model.max_seq_length = value  # type: ignore[assignment]


# --- options


def test_truncate_dim_cuts_before_it_normalizes(encoder: SentenceEncoder) -> None:
    full = encoder.encode(TEXTS)
    np.testing.assert_array_equal(encoder.encode(TEXTS, truncate_dim=9), full[:, :9])
    cut = encoder.encode(TEXTS, truncate_dim=9, normalize_embeddings=True)
    np.testing.assert_allclose(cut, full[:, :9] / np.linalg.norm(full[:, :9], axis=1, keepdims=True), atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(cut, axis=1), 1, atol=1e-6)


def test_a_folder_may_set_truncate_dim(folders: dict[str, Path]) -> None:
    model = SentenceEncoder.from_pretrained(folders["sentence_truncate"])
    assert model.dimension == 9
    np.testing.assert_array_equal(model.encode(TEXTS, truncate_dim=9), model.encode(TEXTS))
    assert model.encode(TEXTS, truncate_dim=32).shape == (len(TEXTS), 32)


@pytest.mark.parametrize("precision", ["int8", "uint8", "binary", "ubinary"])
def test_precision_is_quantization_of_the_vectors(encoder: SentenceEncoder, precision: str) -> None:
    found = encoder.encode(TEXTS, precision=precision)
    np.testing.assert_array_equal(found, quantize_embeddings(encoder.encode(TEXTS), precision))


def test_queries_and_documents_use_their_prompts(folders: dict[str, Path]) -> None:
    model = SentenceEncoder.from_pretrained(folders["sentence_prompts"])
    assert model.prompts == {"query": "the people: ", "document": "a book: "}
    np.testing.assert_array_equal(model.encode_query(TEXTS), model.encode(TEXTS, "query"))
    np.testing.assert_array_equal(model.encode_document(TEXTS), model.encode(TEXTS, "document"))
    np.testing.assert_array_equal(model.encode(TEXTS), model.encode(TEXTS, "query"))  # its default
    np.testing.assert_array_equal(model.encode_query(TEXTS, prompt="a book: "), model.encode_document(TEXTS))
    np.testing.assert_array_equal(model.encode(TEXTS, "query", "a book: "), model.encode_document(TEXTS))
    assert not np.allclose(model.encode("cat", prompt=""), model.encode("cat"))
    assert model.encode_document("cat", normalize_embeddings=True).shape == (32,)


def test_a_prompt_is_put_before_the_text(folders: dict[str, Path]) -> None:
    model = SentenceEncoder.from_pretrained(folders["sentence_max"])
    np.testing.assert_array_equal(model.encode(["cat"], prompt="the people: "), model.encode(["the people: cat"]))


def test_query_and_document_are_empty_prompts_by_default(folders: dict[str, Path], tmp_path: Path) -> None:
    folder = shutil.copytree(folders["sentence_prompts"], tmp_path / "model")
    change(folder / "config_sentence_transformers.json", prompts={"passage": "a book: "}, default_prompt_name="passage")
    model = SentenceEncoder.from_pretrained(folder)
    assert model.prompts == {"query": "", "document": "", "passage": "a book: "}
    np.testing.assert_array_equal(model.encode_document(TEXTS), model.encode(TEXTS, prompt=""))
    np.testing.assert_array_equal(model.encode_query(TEXTS), model.encode(TEXTS, prompt=""))
    np.testing.assert_array_equal(model.encode(TEXTS), model.encode(TEXTS, prompt="a book: "))


def test_lower_casing_keeps_special_tokens(folders: dict[str, Path], tmp_path: Path) -> None:
    folder = shutil.copytree(folders["sentence_max"], tmp_path / "model")
    tokenizer = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    tokenizer["normalizer"] |= {"lowercase": False}
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    change(folder / "tokenizer_config.json", do_lower_case=False)
    cased = SentenceEncoder.from_pretrained(folder)
    change(folder / "sentence_bert_config.json", do_lower_case=True)
    lower = SentenceEncoder.from_pretrained(folder)
    np.testing.assert_array_equal(lower.encode("The CAT [MASK]"), cased.encode("the cat [MASK]"))
    assert not np.allclose(cased.encode("The CAT [MASK]"), lower.encode("The CAT [MASK]"))
    assert not np.allclose(lower.encode("the cat [mask]"), lower.encode("the cat [MASK]"))


def test_threads_and_progress_change_nothing(
    folders: dict[str, Path],
    encoder: SentenceEncoder,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("wordpiece_bert._internal.progress.BAR_INTERVAL", 0)
    monkeypatch.setattr("wordpiece_bert._internal.progress.shows_bars", lambda stream: True)
    model = SentenceEncoder.from_pretrained(folders["sentence_max"], threads=2)
    np.testing.assert_array_equal(model.encode(TEXTS, show_progress_bar=True), encoder.encode(TEXTS))
    assert f"{len(TEXTS)} of {len(TEXTS)} rows" in capsys.readouterr().err
    model.encode(TEXTS)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["a", None], r"texts\[1\] must be a str, not NoneType: None"),
        (["a", "b", 3], r"texts\[2\] must be a str, not int: 3"),
        ([float("nan")], r"texts\[0\] must be a str, not float: nan"),
        ([b"a"], r"texts\[0\] must be a str, not bytes: b'a'"),
        ([["a"]], r"texts\[0\] must be a str, not list"),
        ([("a", "b")], r"texts\[0\] must be a str, not tuple"),
        (None, "texts must not be None"),
        (3, "texts must be a str, a list of str or a column of strings, not int"),
        (b"abc", "texts must be a str, a list of str or a column of strings, not bytes"),
        ({"a": 1}, "texts must be a str, a list of str or a column of strings, not dict"),
        ({"a"}, "texts must be a str, a list of str or a column of strings, not set"),
    ],
)
def test_an_item_that_is_not_a_text_is_reported_with_its_index(
    encoder: SentenceEncoder, texts: Any, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        encoder.encode(texts)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "batch_size must be a whole number, 1 or more, not 0"),
        ({"batch_size": 2.0}, "batch_size must be a whole number"),
        ({"batch_size": True}, "batch_size must be a whole number"),
        ({"prompt_name": "question"}, r"no prompt 'question'; its prompts are \['query', 'document'\]"),
        ({"prompt": 3}, "prompt must be a str, not int: 3"),
        ({"output_value": "words"}, "output_value must be .* not 'words'"),
        ({"precision": "int4"}, "precision must be one of float32, int8, uint8, binary, ubinary, not 'int4'"),
        ({"precision": "int8"}, "at least 2 vectors"),
        ({"truncate_dim": 0}, "truncate_dim must be a whole number from 1 to 32"),
        ({"truncate_dim": 33}, "truncate_dim must be a whole number from 1 to 32, the width of a vector, not 33"),
        ({"truncate_dim": 2.0}, "truncate_dim must be"),
        ({"output_value": "token_embeddings", "precision": "int8"}, "are for sentence vectors"),
        ({"output_value": "token_embeddings", "normalize_embeddings": True}, "are for sentence vectors"),
    ],
)
def test_wrong_options_are_refused(encoder: SentenceEncoder, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        encoder.encode(["cat"], **options)


def test_repr_has_sizes_and_model(encoder: SentenceEncoder) -> None:
    assert repr(encoder).startswith("SentenceEncoder(dimension 32, at most 12 tokens, BertModel(1 layers,")


# --- the folder


def test_max_seq_length_of_the_folder_overrides_the_tokenizers(folder: Path) -> None:
    assert SentenceEncoder.from_pretrained(folder).max_seq_length == 12
    change(folder / "sentence_bert_config.json", max_seq_length=7)
    assert SentenceEncoder.from_pretrained(folder).max_seq_length == 7
    change(folder / "sentence_bert_config.json", max_seq_length=None)
    assert SentenceEncoder.from_pretrained(folder).max_seq_length == 12


@pytest.mark.parametrize("limit", [10**30, 1e30, 512, None])
def test_no_row_is_longer_than_the_position_table(folder: Path, limit: Any) -> None:
    change(folder / "tokenizer_config.json", model_max_length=limit)
    assert SentenceEncoder.from_pretrained(folder).max_seq_length == 48
    change(folder / "sentence_bert_config.json", max_seq_length=514)
    assert SentenceEncoder.from_pretrained(folder).max_seq_length == 48


def test_old_names_of_modules_and_pooling_modes_are_read(folder: Path) -> None:
    expected = SentenceEncoder.from_pretrained(folder).encode(TEXTS)
    kinds = {"": "Transformer", "1_Pooling": "Pooling", "2_Dense": "Dense", "3_Normalize": "Normalize"}
    modules = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (path, kind) in enumerate(kinds.items())
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    old = {"word_embedding_dimension": 32, "pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(old))
    (folder / "3_Normalize" / "config.json").unlink()
    (folder / "sentence_bert_config.json").rename(folder / "sentence_distilbert_config.json")
    np.testing.assert_array_equal(SentenceEncoder.from_pretrained(folder).encode(TEXTS), expected)


def test_old_pooling_booleans_are_concatenated_in_their_fixed_order(folders: dict[str, Path], tmp_path: Path) -> None:
    folder = shutil.copytree(folders["sentence_concat"], tmp_path / "model")
    modes = {"mean_tokens": True, "cls_token": True, "max_tokens": True}
    old = {f"pooling_mode_{mode}": value for mode, value in modes.items()}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"word_embedding_dimension": 32, **old}))
    vectors = SentenceEncoder.from_pretrained(folder).encode(TEXTS)
    np.testing.assert_allclose(vectors, REFERENCE["sentence_concat.embeddings"], rtol=0, atol=TOLERANCE)


def test_a_residual_is_added_to_a_dense_module(folder: Path) -> None:
    tensors = read_tensors(folder / "2_Dense" / "model.safetensors")
    residual = np.linspace(-1, 1, 16 * 32, dtype=np.float32).reshape(16, 32)
    write_safetensors(folder / "2_Dense" / "model.safetensors", {**tensors, "residual.weight": residual})
    change(folder / "2_Dense" / "config.json", use_residual=True)
    found = SentenceEncoder.from_pretrained(folder).encode("cat")
    pooled: Any = SentenceEncoder.from_pretrained(folder).encode("cat", output_value="token_embeddings")[0]
    expected = np.tanh(pooled @ tensors["linear.weight"].T + tensors["linear.bias"]) + pooled @ residual.T  # type: ignore[operator]
    np.testing.assert_allclose(found, expected / np.linalg.norm(expected), atol=1e-6)


@pytest.mark.parametrize(
    ("file", "values", "message"),
    [
        ("1_Pooling/config.json", {"pooling_mode": "median"}, r"pooling_mode is \['median'\]; the modes are cls, max"),
        ("1_Pooling/config.json", {"pooling_mode": []}, r"pooling_mode is \[\]"),
        ("1_Pooling/config.json", {"pooling_mode": ["cls", 3]}, "pooling_mode is"),
        ("1_Pooling/config.json", {"embedding_dimension": 31}, "vectors of 31 numbers.* hidden_size is 32"),
        ("1_Pooling/config.json", {"include_prompt": 1}, "include_prompt is 1, expected bool"),
        ("2_Dense/config.json", {"activation_function": "os.system"}, "activation_function is 'os.system'; supported"),
        ("2_Dense/config.json", {"activation_function": "torch.nn.modules.activation.SiLU"}, "SiLU"),
        ("2_Dense/config.json", {"in_features": 31}, "in_features is 31, but the module before returns vectors of 32"),
        ("2_Dense/config.json", {"module_input_name": "token_embeddings"}, "module_input_name is 'token_embeddings'"),
        ("3_Normalize/config.json", {"module_output_name": "x"}, "module_output_name is 'x'"),
        ("sentence_bert_config.json", {"max_seq_length": "12"}, "max_seq_length is '12', expected int"),
        ("sentence_bert_config.json", {"max_seq_length": 0}, "0 tokens"),
        ("sentence_bert_config.json", {"do_lower_case": "yes"}, "do_lower_case is 'yes', expected bool"),
        ("sentence_bert_config.json", {"transformer_task": "fill-mask"}, "transformer_task is 'fill-mask'"),
        ("tokenizer_config.json", {"model_max_length": "512"}, "model_max_length is '512'"),
        ("config_sentence_transformers.json", {"prompts": ["a"]}, r"prompts is \['a'\], expected dict"),
        ("config_sentence_transformers.json", {"prompts": {"a": 1}}, "the prompt 'a' is 1"),
        ("config_sentence_transformers.json", {"default_prompt_name": "a"}, "default_prompt_name is 'a'"),
        ("config_sentence_transformers.json", {"similarity_fn_name": "maxsim"}, "similarity_fn_name is 'maxsim'"),
        ("config_sentence_transformers.json", {"model_type": "SparseEncoder"}, "load it with SparseEncoder"),
        ("config_sentence_transformers.json", {"truncate_dim": 17}, "truncate_dim is 17, but the vectors have 16"),
    ],
)
def test_unsupported_settings_are_refused_with_the_file(folder: Path, file: str, values: Any, message: str) -> None:
    change(folder / file, **values)
    with pytest.raises(ConfigError, match=message) as caught:
        SentenceEncoder.from_pretrained(folder)
    assert str(caught.value).startswith(str(folder))


POOLING = {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}
TRANSFORMER = {"path": "", "type": "sentence_transformers.models.Transformer"}


@pytest.mark.parametrize(
    ("modules", "message"),
    [
        ({}, "must be a list of modules"),
        ([], "must begin with a Transformer and a Pooling"),
        ([POOLING, TRANSFORMER], r"not with \['Pooling', 'Transformer'\]"),
        ([TRANSFORMER, POOLING, POOLING], "has a second Pooling"),
        (
            [TRANSFORMER, {"type": "sentence_transformers.models.LSTM"}],
            "a 'sentence_transformers.models.LSTM'; supported",
        ),
        ([TRANSFORMER, POOLING, {"type": "evil.Normalize"}], "module 2 is a 'evil.Normalize'"),
        ([TRANSFORMER, {**POOLING, "path": "../1_Pooling"}], "leaves the model folder"),
        ([{**TRANSFORMER, "path": "/etc"}, POOLING], "leaves the model folder"),
        ([TRANSFORMER, {**POOLING, "path": 3}], "path is 3, expected str"),
        (["Transformer"], "module 0 must be an object with a type"),
        ([TRANSFORMER, {**POOLING, "path": "9_Pooling"}], "cannot be read"),
    ],
)
def test_other_modules_are_refused_by_name(folder: Path, modules: Any, message: str) -> None:
    (folder / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(ConfigError, match=message):
        SentenceEncoder.from_pretrained(folder)


def test_weights_of_a_dense_module_that_do_not_fit_are_refused(folder: Path) -> None:
    change(folder / "2_Dense" / "config.json", out_features=15)
    with pytest.raises(CheckpointError, match=r"linear\.weight has shape \(16, 32\).*\(15, 32\)"):
        SentenceEncoder.from_pretrained(folder)
    (folder / "2_Dense" / "model.safetensors").rename(folder / "2_Dense" / "pytorch_model.bin")
    with pytest.raises(CheckpointError, match=r"pytorch_model\.bin: is not a file of torch\.save"):
        SentenceEncoder.from_pretrained(folder)


# --- similarity and quantization

A = np.array([[1.0, 2.0, 2.0], [0.0, 0.0, 0.0]], np.float32)
B = np.array([[3.0, 0.0, 4.0], [1.0, 2.0, 2.0], [-1.0, -2.0, -2.0]], np.float32)


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        ("cosine", [[11 / 15, 1, -1], [0, 0, 0]]),
        ("dot", [[11, 9, -9], [0, 0, 0]]),
        ("euclidean", [[-np.sqrt(12), 0, -6], [-5, -3, -3]]),
        ("manhattan", [[-6, 0, -10], [-7, -5, -5]]),
    ],
)
def test_similarity_by_hand(metric: str, expected: Any) -> None:
    np.testing.assert_allclose(similarity(A, B, metric), expected, atol=1e-6)
    np.testing.assert_allclose(similarity(A[0], B, metric), expected[:1], atol=1e-6)
    np.testing.assert_allclose(pairwise_similarity(A, B[:2], metric), np.diag(np.array(expected)), atol=1e-6)
    assert similarity(A[:0], B, metric).shape == (0, 3)
    assert similarity(A, B, metric).dtype == np.float32


def test_euclidean_distance_of_near_vectors_keeps_its_digits() -> None:
    x = np.full((1, 384), 100, np.float32)
    y = x + np.float32(1e-3)
    np.testing.assert_allclose(similarity(x, y, "euclidean"), -np.linalg.norm((y - x).astype(float)), rtol=1e-6)


def test_vectors_that_cannot_be_compared_are_refused() -> None:
    with pytest.raises(InputError, match="of a have 3 numbers, those of b 2"):
        similarity(A, B[:, :2])
    with pytest.raises(InputError, match="not 2 and 3"):
        pairwise_similarity(A, B)
    with pytest.raises(InputError, match="similarity must be one of cosine, dot, euclidean, manhattan, not 'l2'"):
        similarity(A, B, "l2")
    with pytest.raises(InputError, match=r"not of shape \[1, 2, 3\]"):
        similarity(A[None], B)


@pytest.mark.parametrize("precision", ["int8", "uint8", "binary", "ubinary"])
def test_quantization_equals_sentence_transformers(precision: str) -> None:
    reference = np.load(MODELS / "minilm_reference.npz")
    found = quantize_embeddings(reference["embeddings"], precision)
    assert found.dtype == reference[precision].dtype
    np.testing.assert_array_equal(found, reference[precision])


def test_ranges_and_calibration_set_the_steps() -> None:
    reference = np.load(MODELS / "minilm_reference.npz")
    x = reference["embeddings"]
    ranges = np.stack([np.full(384, -0.2), np.full(384, 0.2)])
    np.testing.assert_array_equal(quantize_embeddings(x, "int8", ranges), reference["int8_fixed_ranges"])
    own = np.stack([x.min(axis=0), x.max(axis=0)])
    np.testing.assert_array_equal(quantize_embeddings(x[:1], "int8", own), reference["int8"][:1])
    np.testing.assert_array_equal(quantize_embeddings(x[:1], "int8", calibration_embeddings=x), reference["int8"][:1])


def test_a_constant_dimension_has_the_lowest_step() -> None:
    x = np.array([[1.0, 0.0], [1.0, 255.0]], np.float32)
    assert quantize_embeddings(x, "uint8").tolist() == [[0, 0], [0, 255]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((A[0], "int8"), "8-bit precision needs at least 2 vectors"),
        ((A.astype(np.int8), "int8"), "embeddings must be floating-point vectors"),
        ((A, "int8", A[:, :2]), r"ranges must have shape \[2, 3\].*not \[2, 2\]"),
        ((A, "int8", None, B[:, :2]), "3 dimensions"),
        ((A[:1], "uint8"), "at least 2 vectors"),
        ((A, "int2"), "precision must be one of"),
    ],
)
def test_wrong_arguments_of_quantization_are_refused(arguments: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        quantize_embeddings(*arguments)


# --- long texts as windows


def naive_windows(model: SentenceEncoder, text: str, prompt: str, stride: int, how: str) -> Any:
    """Split the ids by hand, and run the windows one by one."""
    tok, bert = model.tokenizer, transformer_of(model).model
    body = tok.encode(text, add_special_tokens=False, truncation=False, padding=False).ids
    lead = tok.encode(prompt, add_special_tokens=False, truncation=False, padding=False).ids if prompt else []
    room = model.max_seq_length - 2 - len(lead)
    starts = range(0, max(len(body) - stride, 1), room - stride)
    vectors = []
    for start in starts:
        ids = [tok.cls_token_id, *lead, *body[start : start + room], tok.sep_token_id]
        x = bert([ids]).last_hidden_state
        skip = 0 if model._folder.pooling.include_prompt or not prompt else len(lead) + 1
        y = np.concatenate(
            [bert.pool(x, np.ones((1, len(ids)), bool), mode, skip) for mode in model._folder.pooling.modes], 1
        )
        for module in model._folder.modules:
            y = module(y)
        vectors.append(y[0])
    combined = np.mean(vectors, axis=0) if how == "mean" else np.max(vectors, axis=0)
    normalized = model._folder.modules and type(model._folder.modules[-1]).__name__ == "Normalize"
    return combined / np.linalg.norm(combined) if normalized else combined


@pytest.mark.parametrize("how", ["mean", "max"])
@pytest.mark.parametrize("stride", [0, 3])
@pytest.mark.parametrize(
    "name", ["sentence_max", "sentence_mean_normalize", "sentence_no_prompt_pooling", "sentence_concat"]
)
def test_long_texts_are_windows_whose_vectors_are_combined(
    folders: dict[str, Path], name: str, stride: int, how: Any
) -> None:
    model = SentenceEncoder.from_pretrained(folders[name])
    texts = ["cat", LONG, "", "the cat was in the house " * 5]
    prompt = "the people: " if name == "sentence_no_prompt_pooling" else None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        vectors, truncated = model.encode(texts, prompt=prompt, windows=how, stride=stride, return_truncated=True)
    assert not truncated.any()
    for vector, text in zip(vectors, texts, strict=True):
        np.testing.assert_allclose(vector, naive_windows(model, text, prompt or "", stride, how), atol=1e-5)
    np.testing.assert_allclose(
        vectors[0], model.encode("cat", prompt=prompt), atol=1e-6
    )  # a short text is not affected
    assert model.encode([], windows=how).shape == (0, model.dimension)
    assert model.encode(LONG, windows=how).shape == (model.dimension,)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"windows": "sum"}, "windows must be None or one of mean, max"),
        ({"windows": "mean", "stride": 10}, "stride must be a whole number from 0 to 9"),
        ({"windows": "mean", "stride": -1}, "stride must be"),
        ({"windows": "mean", "prompt": "the people and the city " * 3}, "no room for text after a prompt of"),
        ({"windows": "mean", "output_value": "token_embeddings"}, "windows are for sentence vectors"),
    ],
)
def test_wrong_windows_are_reported(encoder: SentenceEncoder, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        encoder.encode(["cat"], **options)


# --- tokens


def test_token_vectors_have_offsets(encoder: SentenceEncoder) -> None:
    texts = ["the cat, and Paris", LONG]
    with pytest.warns(TruncationWarning):
        found = encoder.encode_tokens(texts)
    expected: Any = encoder.encode(texts, output_value="token_embeddings")
    for one, vectors in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one.vectors, vectors)
        assert len(one.tokens) == len(one.offsets) == len(vectors)
    assert [one.truncated for one in found] == [False, True]
    assert [texts[0][start:end] for start, end in found[0].offsets] == ["", "the", "cat", ",", "and", "Paris", ""]
    assert encoder.encode_tokens("cat").tokens == ["[CLS]", "cat", "[SEP]"]


# --- search


numbers = st.integers(-3, 3).map(float)


@given(data=st.data(), metric=st.sampled_from(["cosine", "dot", "euclidean", "manhattan"]))
def test_semantic_search_gives_the_best_rows_in_order(data: st.DataObject, metric: str) -> None:
    rows = st.lists(st.lists(numbers, min_size=3, max_size=3), min_size=1, max_size=8).map(
        lambda x: np.array(x, np.float32)
    )
    queries, corpus, top_k = data.draw(rows), data.draw(rows), data.draw(st.integers(1, 10))
    found = semantic_search(queries, corpus, top_k, metric)
    scores = similarity(queries, corpus, metric)
    for row, hits in zip(scores, found, strict=True):
        assert len(hits) == min(top_k, len(corpus))
        np.testing.assert_allclose([hit["score"] for hit in hits], np.sort(row)[::-1][: len(hits)], atol=1e-6)
        for hit in hits:
            np.testing.assert_allclose(row[hit["corpus_id"]], hit["score"], atol=1e-6)
        assert len({hit["corpus_id"] for hit in hits}) == len(hits)


def test_mining_does_not_depend_on_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = np.random.default_rng(1).normal(size=(40, 8)).astype(np.float32)
    pairs = paraphrase_mining_embeddings(vectors)
    monkeypatch.setattr("wordpiece_bert.sentence.search.semantic._BLOCK", 100)
    again = paraphrase_mining_embeddings(vectors)
    assert [pair[1:] for pair in again] == [pair[1:] for pair in pairs]


def test_every_pair_is_mined_once_the_most_similar_first() -> None:
    vectors = np.random.default_rng(2).normal(size=(30, 8)).astype(np.float32)
    scores = similarity(vectors, vectors)
    pairs = paraphrase_mining_embeddings(vectors)
    assert len(pairs) == 30 * 29 // 2
    assert all(i < j for _, i, j in pairs)
    assert len({(i, j) for _, i, j in pairs}) == len(pairs)
    np.testing.assert_allclose(
        [s for s, i, j in pairs], sorted((scores[i, j] for _, i, j in pairs), reverse=True), atol=1e-6
    )
    assert paraphrase_mining_embeddings(vectors, max_pairs=5) == pairs[:5]
    few = paraphrase_mining_embeddings(vectors, top_k=2)
    best_two = {
        (min(i, int(j)), max(i, int(j)))
        for i in range(30)
        for j in np.argsort(-(scores[i] - 9 * (np.arange(30) == i)))[:2]
    }
    assert {(i, j) for _, i, j in few} == best_two
    assert few[0] == pairs[0]
    assert paraphrase_mining_embeddings(vectors[:1]) == []
    assert paraphrase_mining_embeddings(np.zeros((0, 8), np.float32)) == []


def test_paraphrases_of_sentences_are_found(encoder: SentenceEncoder) -> None:
    sentences = ["the cat was in the house", "paris is a city", "the cat was in the house!", "good morning"]
    score, i, j = paraphrase_mining(encoder, sentences, top_k=3)[0]
    vectors = encoder.encode(sentences)
    np.testing.assert_allclose(score, similarity(vectors[i], vectors[j])[0, 0], atol=1e-6)
    assert score == max(pair[0] for pair in paraphrase_mining(encoder, sentences))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda v: semantic_search(v, v, 0), "top_k must be"),
        (lambda v: semantic_search(v, v[:, :2]), "not from the same model"),
        (lambda v: semantic_search(v, v, metric="best"), "similarity must be one of"),
        (lambda v: semantic_search(v[None], v), "query_embeddings must be vectors"),
        (lambda v: paraphrase_mining_embeddings(v, max_pairs=0), "max_pairs must be"),
        (lambda v: paraphrase_mining_embeddings(v, top_k=1.0), "top_k must be"),
    ],
)
def test_wrong_arguments_of_searches_are_reported(call: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call(np.ones((3, 4), np.float32))


# --- variants


@pytest.mark.parametrize("name", ["distilbert_model", "electra_model", "albert_model"])
def test_variants_are_sentence_encoders_too(name: str, tmp_path: Path) -> None:
    folder = with_tokenizer(name, tmp_path)
    model = SentenceEncoder.from_pretrained(folder)
    base = AutoModel.base_from_pretrained(folder)
    vectors = model.encode(["cat", "the cat was in the house"])
    inputs = model.tokenizer(["the cat was in the house"])
    np.testing.assert_allclose(vectors[1], base(**inputs).last_hidden_state[0].mean(axis=0), atol=1e-5)


def test_the_padding_id_does_not_matter_to_mpnet(tmp_path: Path) -> None:
    model = SentenceEncoder.from_pretrained(MODELS / "mpnet_model")
    assert model.max_seq_length == 46
    together = model.encode(["cat", "the cat was in the house"])
    np.testing.assert_allclose(together[0], model.encode("cat"), atol=1e-6)


# --- more modules


def test_layer_norm_and_dropout_follow_the_pooling(tmp_path: Path) -> None:
    folder = sentence_folder("sentence_max", tmp_path)
    plain: Any = SentenceEncoder.from_pretrained(folder).encode(TEXTS)
    modules = json.loads((folder / "modules.json").read_text())
    for number, kind in enumerate(["LayerNorm", "Dropout"], 2):
        modules.append(
            {
                "idx": number,
                "name": str(number),
                "path": f"{number}_{kind}",
                "type": f"sentence_transformers.models.{kind}",
            }
        )
        (folder / f"{number}_{kind}").mkdir()
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "3_Dropout" / "config.json").write_text('{"dropout": 0.2}')
    (folder / "2_LayerNorm" / "config.json").write_text('{"dimension": 32}')
    weight, bias = np.linspace(0.5, 2, 32, dtype=np.float32), np.linspace(-1, 1, 32, dtype=np.float32)
    write_safetensors(folder / "2_LayerNorm" / "model.safetensors", {"norm.weight": weight, "norm.bias": bias})
    mean, variance = plain.mean(axis=1, keepdims=True), plain.var(axis=1, keepdims=True)
    expected = (plain - mean) / np.sqrt(variance + 1e-5) * weight + bias
    np.testing.assert_allclose(SentenceEncoder.from_pretrained(folder).encode(TEXTS), expected, atol=1e-5)
    change(folder / "2_LayerNorm" / "config.json", dimension=31)
    with pytest.raises(ConfigError, match="dimension must be 32"):
        SentenceEncoder.from_pretrained(folder)


def test_layers_are_weighted_before_the_pooling_if_the_transformer_returns_them(tmp_path: Path) -> None:
    folder = with_tokenizer("bert_model", tmp_path)
    kinds = ["Transformer", "WeightedLayerPooling", "Pooling"]
    modules = [
        {"idx": i, "name": str(i), "path": f"{i}_{kind}" if i else "", "type": f"sentence_transformers.models.{kind}"}
        for i, kind in enumerate(kinds)
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    for module in modules[1:]:
        (folder / module["path"]).mkdir()
    (folder / "1_WeightedLayerPooling" / "config.json").write_text('{"layer_start": 2, "num_hidden_layers": 3}')
    (folder / "2_Pooling" / "config.json").write_text('{"embedding_dimension": 48, "pooling_mode": "max"}')
    write_safetensors(folder / "1_WeightedLayerPooling" / "model.safetensors", {"layer_weights": np.array([0.5, -2.0])})
    base = AutoModel.base_from_pretrained(folder)
    model = SentenceEncoder.from_pretrained(folder)  # sentence-transformers ignores the module here
    states: Any = base(**model.tokenizer(["the cat"]), output_hidden_states=True).hidden_states
    np.testing.assert_allclose(model.encode("the cat"), states[3][0].max(axis=0), atol=1e-6)
    change(folder / "config.json", output_hidden_states=True)
    model = SentenceEncoder.from_pretrained(folder)
    expected = (0.5 * states[2][0] - 2 * states[3][0]) / -1.5
    np.testing.assert_allclose(model.encode("the cat"), expected.max(axis=0), atol=1e-5)
    np.testing.assert_allclose(model.encode_tokens("the cat").vectors, expected, atol=1e-5)
    change(folder / "1_WeightedLayerPooling" / "config.json", layer_start=4)
    with pytest.raises(ConfigError, match="layer_start is 4, but the Transformer has 3 layers"):
        SentenceEncoder.from_pretrained(folder)
    change(folder / "1_WeightedLayerPooling" / "config.json", layer_start=1)
    with pytest.raises(CheckpointError, match=r"layer_weights has shape \(2,\).*\(3,\)"):
        SentenceEncoder.from_pretrained(folder)


# --- the names of sentence-transformers


def test_an_encoder_is_made_of_a_name(folder: Path) -> None:
    loaded = SentenceEncoder.from_pretrained(folder)
    named = SentenceEncoder(folder, device="cpu", threads=1)
    np.testing.assert_array_equal(named.encode(TEXTS), loaded.encode(TEXTS))
    assert named.get_sentence_embedding_dimension() == named.dimension
    with pytest.raises(InputError, match="the CPU only"):
        SentenceEncoder(folder, device="cuda")
    with pytest.raises(InputError, match="named by a str or a path, not BertModel"):
        SentenceEncoder(transformer_of(loaded).model)  # type: ignore[arg-type]


def test_arguments_of_encode(encoder: SentenceEncoder) -> None:
    texts = ["a b", "c"]
    expected = encoder.encode(texts)
    np.testing.assert_array_equal(encoder.encode(sentences=texts), expected)
    np.testing.assert_array_equal(encoder.encode(inputs=texts, device="cpu"), expected)
    positional = encoder.encode(
        texts, None, None, 32, False, "sentence_embedding", "float32", True, False, "cpu", True, 8
    )
    np.testing.assert_array_equal(positional, encoder.encode(texts, normalize_embeddings=True, truncate_dim=8))
    listed: Any = encoder.encode(texts, convert_to_numpy=False)
    assert isinstance(listed, list)
    np.testing.assert_array_equal(np.stack(listed), expected)
    assert encoder.encode(texts[0], convert_to_numpy=False).shape == expected[0].shape
    with pytest.raises(InputError, match="texts and sentences are names of one argument"):
        encoder.encode(texts, sentences=texts)
    with pytest.raises(InputError, match="texts must not be None"):
        encoder.encode()
    with pytest.raises(InputError, match="the CPU only"):
        encoder.encode(texts, device="cuda:0")
    with pytest.raises(InputError, match="one process uses all CPUs"):
        encoder.encode(texts, pool={})  # type: ignore[call-overload]


def test_all_values_of_a_text(encoder: SentenceEncoder) -> None:
    texts = ["a b", "c"]
    features = encoder.encode(texts, output_value=None)
    vectors, tokens = encoder.encode(texts), encoder.encode(texts, output_value="token_embeddings")
    for index, item in enumerate(features):
        assert list(item) == ["input_ids", "attention_mask", "token_embeddings", "sentence_embedding"]
        assert item["input_ids"].tolist() == encoder.tokenizer.encode(texts[index]).ids
        assert item["attention_mask"].tolist() == [1] * len(item["input_ids"])
        np.testing.assert_array_equal(item["sentence_embedding"], vectors[index])
        np.testing.assert_array_equal(item["token_embeddings"], tokens[index])
    one = encoder.encode(texts[0], output_value=None)
    np.testing.assert_array_equal(one["sentence_embedding"], vectors[0])
    with pytest.raises(InputError, match="are for sentence vectors"):
        encoder.encode(texts, output_value=None, normalize_embeddings=True)


def test_tensors_need_pytorch(encoder: SentenceEncoder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(InputError, match="pip install torch"):
        encoder.encode(["a"], convert_to_tensor=True)
    torch = types.ModuleType("torch")
    torch.from_numpy = lambda array: ("tensor", array)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch", torch)
    kind, array = encoder.encode("a", convert_to_tensor=True)
    assert kind == "tensor"
    np.testing.assert_array_equal(array, encoder.encode("a"))
    for kind, array in encoder.encode(["a"], convert_to_tensor=True, output_value="token_embeddings"):
        assert (kind, array.ndim) == ("tensor", 2)
    assert {kind for kind, _ in encoder.encode("a", convert_to_tensor=True, output_value=None).values()} == {"tensor"}


def test_every_model_has_the_usual_prompts(encoder: SentenceEncoder) -> None:
    encoder._folder.prompts.clear()
    for name in ("query", "document"):
        np.testing.assert_array_equal(encoder.encode(TEXTS, prompt_name=name), encoder.encode(TEXTS))
    with pytest.raises(InputError, match="no prompt 'other'"):
        encoder.encode(TEXTS, prompt_name="other")
