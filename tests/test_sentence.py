"""SentenceEncoder against sentence-transformers' numbers, and all that encode can be asked for."""

from __future__ import annotations

import json
import shutil
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model_files import MODELS
from sentence_fixtures import FOLDERS, LISTING, LONG, REFERENCE, TEXTS, TOLERANCE, change, encoder, folders
from wordpiece_bert.errors import InputError, ModelNotFoundError
from wordpiece_bert.hub import find_model
from wordpiece_bert.sentence import SentenceEncoder, TruncationWarning, quantize_embeddings
from wordpiece_bert.sentence.dense.parts import transformer_of

# The folders hold one text that is longer than their 12 tokens; only the tests that are about it look at the warning.
pytestmark = pytest.mark.filterwarnings("ignore::wordpiece_bert.errors.TruncationWarning")


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
    for stride in (1, -1):
        with pytest.raises(InputError, match=f"stride={stride} is for windows, of which there are none"):
            model.encode(texts, stride=stride)
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
