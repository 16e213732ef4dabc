"""NaN, infinity and limits that no score can reach are refused where an answer would hide them."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wordpiece_bert import util
from wordpiece_bert.errors import InputError
from wordpiece_bert.evaluation import (
    BinaryClassificationEvaluator,
    EmbeddingSimilarityEvaluator,
    InformationRetrievalEvaluator,
    ParaphraseMiningEvaluator,
    RerankingEvaluator,
    TripletEvaluator,
)
from wordpiece_bert.search.paraphrase_mining import mined_pairs
from wordpiece_bert.sentence import (
    MultiVectors,
    SparseVectors,
    maxsim,
    maxsim_pairwise,
    paraphrase_mining_embeddings,
    quantize_embeddings,
    similarity,
)
from wordpiece_bert.sentence.multi_vector import parts
from wordpiece_bert.sentence.sparse.sparse_vectors import sparse_similarity

X = np.random.default_rng(3).normal(size=(6, 4)).astype(np.float32)


def with_bad(value: float) -> Any:
    x = X.copy()
    x[2, 1] = value
    return x


# --- pairs, communities, quantization


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(
    "call",
    [
        paraphrase_mining_embeddings,
        lambda x: paraphrase_mining_embeddings(x, metric="euclidean", threshold=-1),
        util.paraphrase_mining_embeddings,
        util.community_detection,
        lambda x: quantize_embeddings(x, "int8"),
        lambda x: quantize_embeddings(x, "uint8", [[-3.0] * 4, [3.0] * 4]),
        lambda x: quantize_embeddings(x, "ubinary"),
        lambda x: quantize_embeddings(X, "int8", calibration_embeddings=x),
        lambda x: quantize_embeddings([X, x], "binary"),
    ],
)
def test_a_vector_that_is_not_finite_is_named(call: Callable[[Any], Any], value: float) -> None:
    with pytest.raises(InputError, match=rf"embeddings(\[1\])?\[2\] is not finite: it has {value} at index 1"):
        call(with_bad(value))


@pytest.mark.parametrize(
    ("lowest", "highest"), [(1.0, -1.0), (np.nan, 1.0), (0.0, np.nan), (-np.inf, 1.0), (0.0, np.inf), (-3e38, 3e38)]
)
def test_ranges_that_have_no_width_are_refused(lowest: float, highest: float) -> None:
    ranges = np.array([[-1.0] * 4, [1.0] * 4], np.float32)
    ranges[:, 3] = lowest, highest
    with pytest.raises(InputError, match="in dimension 3: the first row of ranges has the lowest"):
        quantize_embeddings(X, "uint8", ranges)
    ranges[:, 3] = 1.0  # a dimension in which all vectors are equal
    assert quantize_embeddings(X, "uint8", ranges).shape == X.shape


def test_no_vector_is_paired_with_itself_whatever_its_scores() -> None:
    for low in (-np.inf, -1.0):
        pairs = util.paraphrase_mining_embeddings(
            X, score_function=lambda a, b, low=low: np.full((len(a), len(b)), low)
        )
        assert sorted(pair[1:] for pair in pairs) == [[i, j] for i in range(6) for j in range(i + 1, 6)]


def test_scores_that_are_nan_are_refused() -> None:
    for call in (util.semantic_search, lambda a, b, **options: util.paraphrase_mining_embeddings(b, **options)):
        with pytest.raises(InputError, match="score_function returned NaN for the vectors 0 and 2"):
            call(X, with_bad(np.nan), score_function=lambda a, b: a @ b.T)
    scores = np.zeros((4, 4), np.float32)
    scores[2, 3] = np.nan  # as from products that overflow in both directions
    for least in (None, np.float32(-1)):
        with pytest.raises(InputError, match="the score of the vectors 2 and 3 is NaN: their numbers are too large"):
            mined_pairs(4, lambda rows, columns: scores[rows, columns].copy(), None, 10, least)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_token_vectors_that_are_not_finite_are_named(value: float) -> None:
    bad = with_bad(value)
    queries = MultiVectors(np.concatenate([X, bad]), [0, 4, 6, 12])
    for compare in (maxsim, util.maxsim, maxsim_pairwise):
        for a, b, place in (
            (queries, MultiVectors(np.concatenate([X, X]), [0, 4, 6, 12]), r"a\[2\]"),
            ([X, X, bad], [X, X, X], r"a\[2\]"),
            ([X, X], [X, bad], r"b\[1\]"),
            ([X, X, X], queries, r"b\[2\]"),
            (X[None], bad[None], r"b\[0\]"),
        ):
            with pytest.raises(InputError, match=f"{place} is not finite: a vector has {value} at index 1"):
                compare(a, b)
    with pytest.raises(InputError, match=r"b\[0\] is not finite"):
        maxsim(X, queries[2:])
    assert maxsim(X, queries[:2]).shape == (1, 2)
    mask = np.arange(6) != 2
    assert np.isfinite(maxsim(X[None], bad[None], b_mask=mask[None])).all()


def test_documents_are_read_for_nan_once(monkeypatch: pytest.MonkeyPatch) -> None:
    documents, read = MultiVectors(X, [0, 4, 6]), list[object]()
    first_non_finite = parts.first_non_finite
    monkeypatch.setattr(parts, "first_non_finite", lambda x: read.append(x) or first_non_finite(x))
    expected = maxsim(X, documents)
    assert len(read) == 2  # the query too
    np.testing.assert_array_equal(maxsim(X, documents), expected)
    assert [x is documents.vectors for x in read] == [False, True, False]
    assert pickle.loads(pickle.dumps(documents)) == documents


@pytest.mark.parametrize(
    "call",
    [
        util.normalize_embeddings,
        lambda x: util.cos_sim(X, x),
        lambda x: util.pairwise_cos_sim(x, X),
        lambda x: sparse_similarity(SparseVectors.from_dense(x), X, "cosine"),
        lambda x: [[hit["score"] for hit in hits] for hits in util.semantic_search(x, X)],
        lambda x: [[hit["score"] for hit in hits] for hits in util.semantic_search(X, x)],
        paraphrase_mining_embeddings,
        lambda x: util.community_detection(x, 0.5, 2),
    ],
)
@pytest.mark.parametrize("scale", [1e-40, 1e-25, 1e-13, 1e15, 1e25, 1e37])
def test_the_lengths_of_vectors_change_no_cosine(call: Callable[[Any], Any], scale: float) -> None:
    x = (X * np.float32(scale)).astype(np.float64)
    unit = (x / np.linalg.norm(x, axis=1, keepdims=True)).astype(np.float32)
    found, expected = call(x.astype(np.float32)), call(unit)
    np.testing.assert_allclose(np.hstack(found), np.hstack(expected), atol=1e-6)


# --- thresholds


@given(st.integers(0, 2**32 - 1), st.sampled_from(["cosine", "dot", "euclidean"]), st.integers(1, 60))
def test_a_threshold_finds_all_pairs_that_reach_it(seed: int, metric: str, most: int) -> None:
    random = np.random.default_rng(seed)
    x = np.repeat(random.normal(size=(6, 5)), 5, axis=0) + 0.2 * random.normal(size=(30, 5))
    every = paraphrase_mining_embeddings(x, top_k=29, metric=metric)
    threshold = every[len(every) // 3][0]
    expected = [pair[1:] for pair in every if pair[0] >= threshold]
    found = paraphrase_mining_embeddings(x, metric=metric, threshold=threshold - 1e-6)
    assert {tuple(pair[1:]) for pair in found} >= {tuple(pair) for pair in expected}
    assert all(pair[0] >= threshold - 1e-6 for pair in found)
    assert paraphrase_mining_embeddings(x, metric=metric, threshold=threshold - 1e-6, max_pairs=most) == found[:most]
    functions = {"cosine": util.cos_sim, "dot": util.dot_score, "euclidean": util.euclidean_sim}
    options: dict[str, Any] = {"score_function": functions[metric], "threshold": threshold - 1e-6}
    assert util.paraphrase_mining_embeddings(x, **options) == found
    nearest = util.paraphrase_mining_embeddings(x, top_k=1, **options)
    assert nearest == [pair for pair in paraphrase_mining_embeddings(x, top_k=1, metric=metric) if pair in nearest]


def test_equal_vectors_reach_a_cosine_of_one() -> None:
    for width in (2, 3, 384, 4096):
        x = np.repeat(np.random.default_rng(width).normal(size=(20, width)), 3, axis=0).astype(np.float32)
        groups = [[3 * i, 3 * i + 1, 3 * i + 2] for i in range(20)]
        x *= np.random.default_rng(1).uniform(0.1, 10, (60, 1)).astype(np.float32)
        assert (np.diag(similarity(x, x)) < 1).any()
        assert sorted(sorted(one) for one in util.community_detection(x, 1.0, 2)) == groups
        pairs = paraphrase_mining_embeddings(x, threshold=1)
        assert sorted(pair[1:] for pair in pairs) == [
            [a, b] for one in groups for a, b in ((one[0], one[1]), (one[0], one[2]), (one[1], one[2]))
        ]
        x[1, 0] += 0.01 * np.linalg.norm(x[1])  # a cosine of about 0.99995
        assert len(util.community_detection(x, 1.0, 2)[-1]) == 2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: util.community_detection(X, 95, 2), "threshold must be from -1 to 1, a cosine, not 95"),
        (lambda: util.community_detection(X, -1.01, 2), "threshold must be from -1 to 1"),
        (lambda: paraphrase_mining_embeddings(X, threshold=1.5), "threshold must be from -1 to 1"),
        (lambda: paraphrase_mining_embeddings(X, threshold="1"), "threshold must be a finite number"),
        (
            lambda: paraphrase_mining_embeddings(X, threshold=0.5, metric="euclidean"),
            "threshold must be 0 or less, a negative euclidean distance, not 0.5",
        ),
        (lambda: util.paraphrase_mining_embeddings(X, threshold=95), "threshold must be from -1 to 1"),
        (lambda: util.paraphrase_mining("minilm", ["a"], threshold=95), "threshold must be from -1 to 1"),
    ],
)
def test_a_threshold_that_no_score_reaches_is_refused(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()


# --- evaluators


class Damaged:
    """A model whose vector of one text has NaN, in one of the three forms of vectors."""

    similarity_fn_name = "cosine"

    def __init__(self, form: str) -> None:
        self.form = form

    def encode(self, texts: list[str], **options: Any) -> Any:
        x = np.array([[np.nan if text == "bad" else len(text), 1, 2] for text in texts], np.float32)
        if self.form == "sparse":
            return SparseVectors.from_dense(x)
        return x if self.form == "dense" else MultiVectors(np.repeat(x, 2, axis=0), np.arange(0, 2 * len(x) + 1, 2))

    encode_query = encode_document = encode


@pytest.mark.parametrize("form", ["dense", "sparse", "many"])
@pytest.mark.parametrize(
    "evaluator",
    [
        EmbeddingSimilarityEvaluator(["a", "bb"], ["ccc", "bad"], [0, 1]),
        BinaryClassificationEvaluator(["a", "bb"], ["ccc", "bad"], [0, 1]),
        TripletEvaluator(["a"], ["bb"], ["bad"]),
        InformationRetrievalEvaluator({"q": "a"}, {"d": "bb", "e": "bad"}, {"q": {"d"}}),
        RerankingEvaluator([{"query": "a", "positive": ["bb"], "negative": ["bad"]}]),
        ParaphraseMiningEvaluator({"a": "a", "b": "bb", "c": "bad"}, [("a", "b")]),
    ],
    ids=lambda evaluator: type(evaluator).__name__,
)
def test_an_evaluator_measures_nothing_with_nan(evaluator: Any, form: str) -> None:
    with pytest.raises(InputError, match="the model's vector of 'bad' is not finite"):
        evaluator(Damaged(form))


def test_scores_of_a_callers_function_are_numbers() -> None:
    nan = {"score": lambda a, b: np.full((len(a), len(b)), np.nan)}
    model = Damaged("dense")
    retrieval = InformationRetrievalEvaluator({"q": "a"}, {"d": "bb"}, {"q": {"d"}}, score_functions=nan)
    with pytest.raises(InputError, match="the score function 'score' returned NaN for the vectors 0 and 0"):
        retrieval(model)
    sample = {"query": "a", "positive": ["bb"], "negative": ["ccc"]}
    with pytest.raises(InputError, match="similarity_fct returned NaN"):
        RerankingEvaluator([sample], similarity_fct=nan["score"])(model)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: EmbeddingSimilarityEvaluator(
                ["a"], ["b"], [1], main_similarity="dot", similarity_fn_names=["cosine"]
            ),
            "the main similarity, 'dot', must be one of similarity_fn_names",
        ),
        (lambda: TripletEvaluator(["a"], ["b"], ["c"], margin=5)(Damaged("dense")), "margin must be from -2 to 2"),
        (
            lambda: InformationRetrievalEvaluator({"q": "a"}, {"d": "b"}, {"q": {"d"}}, main_score_function="best"),
            "main_score_function must be one of",
        ),
        (
            lambda: InformationRetrievalEvaluator({"q": "a"}, {"d": "b"}, {"q": {"d"}}, main_score_function="dot")(
                Damaged("dense")
            ),
            "main_score_function must be one of 'cosine', not 'dot'",
        ),
        (lambda: ParaphraseMiningEvaluator({"a": "a", "b": "b"}, [("a", "c")]), "none of the 1 pairs of duplicates"),
    ],
)
def test_arguments_of_evaluators_that_would_measure_nothing_are_refused(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()
