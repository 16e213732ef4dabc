"""Transformers of scikit-learn: counts and vectors equal to the plain calls, and the ways in which they are used."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from small_tokenizer import TEXTS, tokenizer
from wordpiece_bert import SentenceEncoder
from wordpiece_bert.errors import InputError, WordPieceError
from wordpiece_bert.sentence.dense.parts import body_of

sklearn = pytest.importorskip("sklearn", reason="scikit-learn is not installed: pip install '.[sklearn]'")

from sklearn.base import clone  # noqa: E402
from sklearn.compose import ColumnTransformer  # noqa: E402
from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer  # noqa: E402
from sklearn.linear_model import LogisticRegression  # noqa: E402
from sklearn.model_selection import GridSearchCV  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.utils import estimator_checks  # noqa: E402
from sklearn.utils.estimator_checks import check_estimator  # noqa: E402

from wordpiece_bert.integrations.sklearn import SentenceEmbedder, WordPieceVectorizer  # noqa: E402

GOOD = ["a wonderful film", "great actors", "a moving story", "brilliant", "the story is great", "wonderful actors"]
BAD = ["a dull film", "boring actors", "a poor story", "silly", "the story is dull", "poor actors"]
LABELS = [1] * len(GOOD) + [0] * len(BAD)


@pytest.mark.parametrize("options", [{}, {"binary": True}, {"add_special_tokens": True}, {"max_length": 3}])
def test_counts_are_those_of_the_ids(options: dict[str, Any]) -> None:
    found = WordPieceVectorizer(tokenizer(), **options).fit_transform(TEXTS)
    expected = np.zeros((len(TEXTS), len(tokenizer())), np.int64)
    special, length = options.get("add_special_tokens", False), options.get("max_length")
    for row, text in enumerate(TEXTS):
        for token_id in tokenizer().encode(text, add_special_tokens=special, max_length=length).ids:
            expected[row, token_id] += 1
    if "binary" in options:
        expected = np.minimum(expected, 1)
    np.testing.assert_array_equal(found.toarray(), expected)
    assert (found.format, found.dtype, found.has_canonical_format) == ("csr", np.int64, True)


def test_columns_have_the_names_of_tokens() -> None:
    vectorizer = WordPieceVectorizer(tokenizer(), dtype="float32")
    names = vectorizer.get_feature_names_out()
    counts = vectorizer.transform(["the cat sat"])
    assert counts.dtype == np.float32
    assert set(names[counts.indices]) == {"the", "cat", "sat"}
    assert len(names) == counts.shape[1]


def test_vectors_are_those_of_encode(folder: Path) -> None:
    encoder = SentenceEncoder(folder)
    options = {"normalize_embeddings": True, "truncate_dim": 5}
    found = SentenceEmbedder(folder, **options).fit(GOOD).transform(GOOD)  # type: ignore[arg-type]
    np.testing.assert_array_equal(found, encoder.encode(GOOD, **options))  # type: ignore[call-overload]
    np.testing.assert_array_equal(SentenceEmbedder(encoder).transform(np.array(GOOD)), encoder.encode(GOOD))
    long = ["bread " * 99]
    windows = SentenceEmbedder(encoder, windows="mean", stride=2).transform(long)
    np.testing.assert_array_equal(windows, encoder.encode(long, windows="mean", stride=2))


@pytest.mark.parametrize("make", [lambda folder: WordPieceVectorizer(folder), lambda folder: SentenceEmbedder(folder)])
def test_pipelines_grid_search_clones_and_pickles(make: Any, folder: Path) -> None:
    texts = GOOD + BAD
    pipeline = make_pipeline(make(folder), LogisticRegression(C=100))
    assert pipeline.fit(texts, LABELS).score(texts, LABELS) == 1
    again = pickle.loads(pickle.dumps(pipeline))
    np.testing.assert_array_equal(again.predict_proba(texts), pipeline.predict_proba(texts))
    first = pipeline.steps[0]
    option = "binary" if first[0] == "wordpiecevectorizer" else "normalize_embeddings"
    search = GridSearchCV(pipeline, {f"{first[0]}__{option}": [False, True]}, cv=2, n_jobs=2)
    assert search.fit(texts, LABELS).score(texts, LABELS) == 1
    copy = clone(first[1].set_params(**{option: True}))
    assert copy.get_params() == first[1].get_params()
    assert copy.get_params()[option] is True


def test_an_unpickled_transformer_is_fitted_with_another_model(folder: Path) -> None:
    others = [(SentenceEmbedder(folder), {"dtype": "int8"}), (WordPieceVectorizer(folder), {"tokenizer": tokenizer()})]
    for transformer, other in others:
        pickle.loads(pickle.dumps(transformer)).set_params(**other).fit(GOOD)


def test_clones_share_the_weights_of_an_encoder(folder: Path) -> None:
    encoder = SentenceEncoder(folder)
    copy = clone(SentenceEmbedder(encoder))
    assert body_of(copy.model) is body_of(encoder)
    assert len(pickle.dumps(copy)) < 2000


def test_counts_are_input_of_tf_idf() -> None:
    weights = make_pipeline(WordPieceVectorizer(tokenizer()), TfidfTransformer()).fit_transform(TEXTS)
    norms = np.sqrt(weights.multiply(weights).sum(axis=1))
    assert set(np.round(np.asarray(norms).ravel(), 6)) == {0.0, 1.0}


def test_output_of_data_frames(folder: Path) -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"text": GOOD, "n": range(len(GOOD))}, index=[f"row{i}" for i in range(len(GOOD))])
    embedder = SentenceEmbedder(folder, truncate_dim=3).set_output(transform="pandas")
    found = embedder.fit_transform(frame["text"])
    assert list(found.columns) == ["embedding0", "embedding1", "embedding2"]
    assert list(found.index) == list(frame.index)
    both = ColumnTransformer([("a", SentenceEmbedder(folder), "text"), ("b", WordPieceVectorizer(folder), ["text"])])
    np.testing.assert_array_equal(
        both.fit_transform(frame),
        np.hstack([SentenceEmbedder(folder).transform(GOOD), WordPieceVectorizer(folder).transform(GOOD).toarray()]),
    )


def test_wrong_texts_are_refused(folder: Path) -> None:
    for transformer in (SentenceEmbedder(folder), WordPieceVectorizer(folder)):
        with pytest.raises(InputError, match="not one str"):
            transformer.transform("a text")
        with pytest.raises(InputError, match="it has 2 columns"):
            transformer.transform(np.array([["a", "b"]]))
        with pytest.raises(InputError, match="1"):
            transformer.transform(["a", 3])


WRONG: list[tuple[Any, dict[str, Any], str]] = [
    (WordPieceVectorizer, {"binary": "yes"}, "binary must be True or False, not 'yes'"),
    (WordPieceVectorizer, {"add_special_tokens": 1}, "add_special_tokens must be True or False, not 1"),
    (WordPieceVectorizer, {"max_length": -1}, "max_length"),
    (WordPieceVectorizer, {"max_length": "8"}, "max_length"),
    (WordPieceVectorizer, {"threads": 0}, "threads"),
    (WordPieceVectorizer, {"dtype": "texts"}, "dtype must be a type of numbers"),
    (WordPieceVectorizer, {"dtype": "float16"}, "dtype must be a type of numbers that a sparse matrix can have"),
    (SentenceEmbedder, {"prompt_name": "none"}, "none"),
    (SentenceEmbedder, {"prompt_name": 3}, "prompt_name must be a str, not int: 3"),
    (SentenceEmbedder, {"normalize_embeddings": "no"}, "normalize_embeddings must be True or False, not 'no'"),
    (SentenceEmbedder, {"truncate_dim": 0}, "truncate_dim"),
    (SentenceEmbedder, {"truncate_dim": 2.5}, "truncate_dim"),
    (SentenceEmbedder, {"windows": "most"}, "windows"),
    (SentenceEmbedder, {"windows": "mean", "stride": -1}, "stride"),
    (SentenceEmbedder, {"threads": "2"}, "threads"),
]


@pytest.mark.parametrize(("cls", "options", "message"), WRONG)
def test_wrong_parameters_are_refused_by_fit_and_not_before(
    cls: Any, options: dict[str, Any], message: str, folder: Path
) -> None:
    for transformer in (cls(folder, **options), cls(folder).set_params(**options), clone(cls(folder, **options))):
        for fit in (transformer.fit, transformer.fit_transform):
            with pytest.raises(InputError, match=message):
                fit(GOOD)


@pytest.mark.parametrize("cls", [WordPieceVectorizer, SentenceEmbedder])
def test_a_wrong_model_is_refused_by_fit_and_not_before(cls: Any) -> None:
    for model, message in ((3, "not int"), (None, "not NoneType"), ("no/such-model", "no/such-model")):
        transformer = cls(model)
        with pytest.raises(WordPieceError, match=message):
            transformer.fit(GOOD)


#: The checks of scikit-learn that need no data; check_estimator runs few for transformers of texts.
WITHOUT_DATA = (
    "check_do_not_raise_errors_in_init_or_set_params",
    "check_estimator_cloneable",
    "check_estimator_repr",
    "check_estimator_tags_renamed",
    "check_get_params_invariance",
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_set_params",
)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("cls", [WordPieceVectorizer, SentenceEmbedder])
def test_the_checks_of_scikit_learn_pass(cls: Any, folder: Path) -> None:
    transformer = cls(folder)
    results = check_estimator(transformer, on_fail=None)
    assert [str(one["exception"]) for one in results if one["status"] == "failed"] == []
    theirs = check_estimator(HashingVectorizer(), on_fail=None)
    assert {one["check_name"] for one in results} == {one["check_name"] for one in theirs}
    for name in WITHOUT_DATA:
        getattr(estimator_checks, name)(cls.__name__, cls(folder))
