"""`wordpiece_bert.util`: the functions under the names of sentence-transformers, against slow and obvious ones.

tests/test_peer_snippets.py and tests/test_against_sentence_transformers.py compare them with the peer itself.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model_files import with_tokenizer
from tiny_models import make_ranker, make_sentences
from wordpiece_bert import CrossEncoder, SentenceEncoder, SparseEncoder, util
from wordpiece_bert.errors import InputError, TrainingWarning
from wordpiece_bert.sentence import MultiVectors, SparseVectors, quantize_embeddings


def vectors(count: int, width: int = 6, seed: int = 0) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.random.default_rng(seed).normal(size=(count, width)).astype(np.float32)


MEASURES = {
    "cosine": lambda x, y: x @ y / np.sqrt((x @ x) * (y @ y)),
    "dot": lambda x, y: x @ y,
    "euclidean": lambda x, y: -np.sqrt(((x - y) ** 2).sum()),
    "manhattan": lambda x, y: -np.abs(x - y).sum(),
}


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("name", util.SimilarityFunction.possible_values())
def test_similarities_are_those_of_the_formulas(name: str, sparse: bool) -> None:
    a, b = np.round(vectors(4)), np.round(vectors(5, seed=1))
    a[0, 0] = b[0, 1] = 1  # no vector is 0
    given_as: Callable[[Any], Any] = SparseVectors.from_dense if sparse else np.asarray
    expected = [[MEASURES[name](x.astype(np.float64), y) for y in b.astype(np.float64)] for x in a]
    every = util.SimilarityFunction.to_similarity_fn(name)
    pairs = util.SimilarityFunction.to_similarity_pairwise_fn(util.SimilarityFunction(name))
    np.testing.assert_allclose(every(given_as(a), given_as(b)), expected, atol=1e-6)
    np.testing.assert_allclose(pairs(given_as(a), given_as(b[:4])), np.diagonal(expected), atol=1e-6)


def test_the_older_name_of_the_cosine() -> None:
    np.testing.assert_array_equal(util.pytorch_cos_sim(vectors(2), vectors(3)), util.cos_sim(vectors(2), vectors(3)))


def test_scores_of_token_vectors() -> None:
    queries, documents = [vectors(2), vectors(3, seed=1)], [vectors(4, seed=2), vectors(1, seed=3)]
    expected = [[sum(max(q @ d for d in document) for q in query) for document in documents] for query in queries]
    lengths = np.array([2, 3])
    np.testing.assert_allclose(util.maxsim(queries, documents), expected, rtol=1e-5)
    np.testing.assert_allclose(util.maxsim_pairwise(queries, documents), np.diagonal(expected), rtol=1e-5)
    np.testing.assert_allclose(util.mean_maxsim(queries, documents), expected / lengths[:, None], rtol=1e-5)
    np.testing.assert_allclose(
        util.mean_maxsim_pairwise(queries, documents), np.diagonal(expected) / lengths, rtol=1e-5
    )
    with pytest.raises(InputError, match="cpu"):
        util.maxsim(queries, documents, device="cuda")
    with pytest.raises(InputError, match="chunk_elements"):
        util.maxsim(queries, documents, chunk_elements=0)


def test_vectors_are_normalized_and_cut() -> None:
    x = vectors(3)
    x[1] = 0
    unit = util.normalize_embeddings(x)
    np.testing.assert_allclose(np.linalg.norm(unit, axis=1), [1, 0, 1], atol=1e-6)
    np.testing.assert_allclose(util.normalize_embeddings(SparseVectors.from_dense(x)).toarray(), unit, atol=1e-6)
    assert util.normalize_embeddings(SparseVectors.from_dense(x[0])).shape == (6,)
    np.testing.assert_array_equal(util.truncate_embeddings(x, 2), x[:, :2])
    np.testing.assert_array_equal(util.truncate_embeddings(x.tolist(), 2), x[:, :2])
    assert util.truncate_embeddings(x, None).shape == util.truncate_embeddings(x, 9).shape == (3, 6)
    with pytest.raises(InputError, match="truncate_dim must be a whole number, 1 or more, or None for all, not 0"):
        util.truncate_embeddings(x, 0)


# --- search


@pytest.mark.parametrize("chunks", [(1, 1), (2, 3), (100, 500_000)])
def test_a_score_function_of_the_caller_finds_what_one_of_ours_does(chunks: tuple[int, int]) -> None:
    queries, corpus = vectors(4), vectors(11, seed=1)
    sizes: list[tuple[int, int]] = []

    def products(a: Any, b: Any) -> Any:
        sizes.append((len(a), len(b)))
        return a @ b.T

    expected = util.semantic_search(queries, corpus, *chunks, 5, util.dot_score)
    found = util.semantic_search(queries, corpus, *chunks, 5, products)
    assert [[hit["corpus_id"] for hit in one] for one in found] == [
        [hit["corpus_id"] for hit in one] for one in expected
    ]
    np.testing.assert_allclose(
        *[[[hit["score"] for hit in one] for one in hits] for hits in (found, expected)], rtol=1e-5
    )
    assert max(sizes) <= chunks
    pairs = util.paraphrase_mining_embeddings(corpus, top_k=3, score_function=products)
    assert [pair[1:] for pair in pairs] == [
        pair[1:] for pair in util.paraphrase_mining_embeddings(corpus, top_k=3, score_function=util.dot_score)
    ]


def test_equal_scores_of_a_function_come_in_the_order_of_the_rows() -> None:
    found = util.semantic_search(vectors(1), vectors(7), 1, 2, 4, lambda a, b: np.zeros((len(a), len(b))))
    assert [hit["corpus_id"] for hit in found[0]] == [0, 1, 2, 3]


def test_wrong_arguments_of_a_search_are_named() -> None:
    x = vectors(3)
    with pytest.raises(InputError, match="score_function must return an array of shape"):
        util.semantic_search(x, x, score_function=lambda a, b: np.zeros(3))
    with pytest.raises(InputError, match="the result of score_function"):
        util.semantic_search(x, x, score_function=lambda a, b: None)
    for name in ("query_chunk_size", "corpus_chunk_size", "top_k"):
        with pytest.raises(InputError, match=name):
            util.semantic_search(x, x, **{name: 0})
        with pytest.raises(InputError, match=name):
            util.paraphrase_mining_embeddings(x, **{name: 0})


def test_paraphrases_of_texts_are_those_of_their_vectors(tmp_path: Path) -> None:
    encoder = SentenceEncoder(make_sentences(tmp_path / "model"))
    texts = ["bread in the oven", "a dull film", "the wheel and the tire", "to bake bread"]
    options: dict[str, Any] = {"top_k": 2, "max_pairs": 3, "score_function": util.dot_score}
    for more in ({}, {"truncate_dim": 4}, {"prompt": "bread "}):
        expected = util.paraphrase_mining_embeddings(encoder.encode(texts, **more), **options)
        assert util.paraphrase_mining(encoder, texts, **options, **more) == expected
    assert util.paraphrase_mining(tmp_path / "model", texts)[0][1:] == [0, 3]


# --- communities


def communities(x: Any, threshold: float, fewest: int) -> list[list[int]]:
    """The definition: candidates by falling size, each takes what is near it and free, if that is enough."""
    unit = x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12)
    scores = unit @ unit.T
    near = [np.flatnonzero(row >= np.float32(threshold)) for row in scores]
    used: set[int] = set()
    found = []
    for center in sorted(range(len(x)), key=lambda row: -len(near[row])):
        free = [row for row in near[center].tolist() if row not in used]
        if center in used or len(near[center]) < fewest or len(free) < fewest:
            continue
        rest = sorted((row for row in free if row != center), key=lambda row: -scores[center, row])
        found.append([center, *rest])
        used.update([center, *free])
    return sorted(found, key=len, reverse=True)


@given(st.integers(1, 80), st.integers(1, 4), st.sampled_from([0.0, 0.3, 0.7, 0.9]), st.integers(1, 12), st.data())
def test_communities_are_those_of_the_definition(
    count: int, width: int, threshold: float, fewest: int, data: st.DataObject
) -> None:
    x = vectors(count, width, data.draw(st.integers(0, 2**32 - 1)))
    batch = data.draw(st.sampled_from([1, 7, 1024]))
    found = util.community_detection(x, threshold, fewest, batch)
    assert [set(one) for one in found] == [set(one) for one in communities(x, threshold, fewest)]
    assert [one[0] for one in found] == [one[0] for one in communities(x, threshold, fewest)]


def test_more_vectors_than_a_block_have_the_communities_of_the_definition() -> None:
    centers = vectors(40, 24)
    x = (centers[np.arange(2500) % 40] + 0.4 * vectors(2500, 24, seed=1)).astype(np.float32)
    assert len(communities(x, 0.8, 10)[0]) > 20
    assert util.community_detection(x, 0.8, 10) == communities(x, 0.8, 10)
    assert util.community_detection(x, 0.8, 10, 100) == communities(x, 0.8, 10)


def test_communities_of_nothing_and_wrong_arguments() -> None:
    assert util.community_detection([]) == util.community_detection(np.zeros((0, 4), np.float32)) == []
    assert util.community_detection(vectors(3), min_community_size=4) == []
    assert util.community_detection(vectors(1)[0], -1, 1) == [[0]]
    x = vectors(4)
    for name, value in (("threshold", float("nan")), ("min_community_size", 0), ("batch_size", 0)):
        with pytest.raises(InputError, match=name):
            util.community_detection(x, **{name: value})
    x[2, 1] = np.nan
    with pytest.raises(InputError, match=r"embeddings\[2\] is not finite"):
        util.community_detection(x, 0.1, 2)


# --- quantization of lists


def test_token_vectors_of_texts_share_their_ranges() -> None:
    texts = [vectors(3), vectors(5, seed=1), np.zeros((0, 6), np.float32)]
    whole = np.concatenate(texts)
    ends = np.cumsum([0, 3, 5, 0])
    for precision in ("float32", "int8", "uint8", "binary", "ubinary"):
        expected = quantize_embeddings(whole, precision)
        for some in (texts, MultiVectors.from_list(texts)):
            found = quantize_embeddings(some, precision)
            assert isinstance(found, list)
            for x, start, end in zip(found, ends, ends[1:], strict=False):
                np.testing.assert_array_equal(x, expected[start:end])
                assert x.dtype == expected.dtype
        np.testing.assert_array_equal(quantize_embeddings(list(whole), precision), expected)
    np.testing.assert_array_equal(quantize_embeddings(whole[0], "ubinary"), quantize_embeddings(whole, "ubinary")[0])
    with pytest.raises(InputError, match=r"embeddings\[1\] has vectors of 4 numbers, embeddings\[0\] of 6"):
        quantize_embeddings([vectors(2), vectors(2, 4)], "int8")
    with pytest.raises(InputError, match=r"embeddings\[1\] must be floating-point vectors"):
        quantize_embeddings([vectors(2), vectors(2)[0]], "int8")


# --- what encoders have for snippets


def test_sparsity_and_intersection() -> None:
    x = np.array([[0, 1, 2, 0], [3, 0, -1, 0], [0, 0, 0, 0]], np.float32)
    assert SparseEncoder.sparsity(x) == {"active_dims": 4 / 3, "sparsity_ratio": 1 - 4 / 3 / 4}
    assert SparseEncoder.sparsity(SparseVectors.from_dense(x[0])) == {"active_dims": 2.0, "sparsity_ratio": 0.5}
    assert SparseEncoder.sparsity(np.zeros((0, 4))) == {"active_dims": 0.0, "sparsity_ratio": 1.0}
    shared = SparseEncoder.intersection(SparseVectors.from_dense(x[0]), SparseVectors.from_dense(x))
    np.testing.assert_array_equal(shared.toarray(), np.where(x[0] * x > 0, x[0] * x, 0))
    assert SparseEncoder.intersection(x[0], x[0]).shape == (4,)
    with pytest.raises(InputError, match="one vector"):
        SparseEncoder.intersection(x, x)
    with pytest.raises(InputError, match="4 numbers, the vectors 3"):
        SparseEncoder.intersection(x[0], x[:, :3])


def test_the_number_of_labels_is_compared_with_the_model(tmp_path: Path) -> None:
    folder = make_ranker(tmp_path / "ranker")
    assert CrossEncoder(folder, num_labels=1).num_labels == 1
    with pytest.raises(InputError, match="num_labels is 3, but the model has 1"):
        CrossEncoder(folder, num_labels=3)


# --- hard negatives

PAIRS = [
    ("bake bread", "bread dough in the oven"),
    ("repair a bicycle", "the wheel and the tire"),
    ("wonderful film", "a great story"),
    ("bake bread", "to bake in the oven"),
]
MORE = ["a dull film", "the city", "bread and flour", "the chain of a bicycle", "a boring story"]


def mined(encoder: SentenceEncoder, **options: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = util.mine_hard_negatives(
        [{"query": query, "answer": answer} for query, answer in PAIRS], encoder, corpus=MORE, **options
    )
    return rows


def candidates(encoder: SentenceEncoder, query: str) -> list[tuple[float, str]]:
    """The texts that are not answers to a query, by falling cosine."""
    own = {answer for text, answer in PAIRS if text == query}
    pool = [text for text in dict.fromkeys([*MORE, *(answer for _, answer in PAIRS)]) if text not in own]
    scores = util.cos_sim(encoder.encode_query(query), encoder.encode_document(pool))[0]
    return sorted(zip(scores.tolist(), pool, strict=True), key=lambda one: -round(one[0], 5))


def test_the_nearest_texts_that_are_no_answers_are_hard_negatives(encoder: SentenceEncoder) -> None:
    rows = mined(encoder, num_negatives=2)
    expected = [
        {"query": query, "answer": answer, "negative": text}
        for query in dict.fromkeys(query for query, _ in PAIRS)
        for answer in (answer for text, answer in PAIRS if text == query)
        for _, text in candidates(encoder, query)[:2]
    ]
    assert rows == expected
    skipped = mined(encoder, num_negatives=2, range_min=1)
    assert skipped[0]["negative"] == expected[1]["negative"]


def test_limits_leave_out_what_is_too_near_or_too_far(encoder: SentenceEncoder) -> None:
    scores = [score for query in dict.fromkeys(query for query, _ in PAIRS) for score, _ in candidates(encoder, query)]
    middle = float(np.median(scores))
    for limits, holds in (
        ({"max_score": middle}, lambda positive, negative: negative <= middle),
        ({"min_score": middle}, lambda positive, negative: negative >= middle),
        ({"absolute_margin": 0.2}, lambda positive, negative: negative <= positive - 0.2 + 1e-6),
        ({"relative_margin": 0.3}, lambda positive, negative: negative <= 0.7 * positive + 1e-6),
    ):
        with pytest.warns(
            TrainingWarning, match=rf"of 3 queries have fewer than num_negatives=5 .*: change {next(iter(limits))} or"
        ):
            rows = mined(encoder, num_negatives=5, output_scores=True, **limits)
        assert rows
        assert all(holds(*row["scores"]) for row in rows), limits
        assert len(rows) < 20


def test_formats_of_hard_negatives(encoder: SentenceEncoder) -> None:
    triplets = mined(encoder, num_negatives=2, output_scores=True)
    tuples = mined(encoder, num_negatives=2, output_format="n-tuple", output_scores=True)
    assert [(row["negative_1"], row["negative_2"]) for row in tuples] == [
        (first["negative"], second["negative"]) for first, second in zip(triplets[::2], triplets[1::2], strict=True)
    ]
    assert [row["scores"][1:] for row in tuples] == [
        [triplets[i]["scores"][1], triplets[i + 1]["scores"][1]] for i in range(0, len(triplets), 2)
    ]
    pairs = mined(encoder, num_negatives=2, output_format="labeled-pair")
    assert [row["label"] for row in pairs] == [1, 1, 0, 0, 1, 0, 0, 1, 0, 0]
    lists = mined(encoder, num_negatives=2, output_format="labeled-list")
    assert [row["labels"] for row in lists] == [[1, 0, 0]] * 4
    assert [row["answer"][1:] for row in lists] == [[row["negative_1"], row["negative_2"]] for row in tuples]
    ranked = mined(encoder, num_negatives=3, include_positives=True, output_scores=True)
    assert any(row["answer"] in (row["negative_1"], row["negative_2"], row["negative_3"]) for row in ranked)
    assert all(row["scores"][1:] == sorted(row["scores"][1:], reverse=True) for row in ranked)


@pytest.mark.parametrize("limit", [{"max_score": 0.3}, {"absolute_margin": 0.01}, {"relative_margin": 0.1}])
@pytest.mark.filterwarnings("ignore:1 of 3 queries have fewer")
def test_limits_leave_out_no_positive_that_is_ranked_too(encoder: SentenceEncoder, limit: dict[str, float]) -> None:
    with_all = mined(encoder, num_negatives=2, include_positives=True, range_min=1, output_scores=True)
    limited = mined(encoder, num_negatives=2, include_positives=True, output_scores=True, **limit)
    answers = {query: {answer for text, answer in PAIRS if text == query} for query, _ in PAIRS}
    for rows, known in ((with_all, "bake bread"), (limited, "bake bread"), (limited, "wonderful film")):
        row = next(row for row in rows if row["query"] == known)
        ranked = {row["negative_1"], row["negative_2"]}
        assert answers[known] <= ranked
        assert row["scores"][1:] == sorted(row["scores"][1:], reverse=True)
    allowed = {"max_score": 0.3, "absolute_margin": 0.4079 - 0.01, "relative_margin": 0.9 * 0.4079}
    negative = next(row for row in limited if row["query"] == "wonderful film")["scores"][2]
    assert negative <= allowed[next(iter(limit))]


def test_a_query_that_stands_in_the_corpus_is_not_its_own_negative(encoder: SentenceEncoder) -> None:
    queries = [query for query, _ in PAIRS]
    rows = [{"query": query, "answer": answer} for query, answer in PAIRS]
    for more in ({}, {"include_positives": True}, {"sampling_strategy": "random", "range_max": 9}):
        found = util.mine_hard_negatives(
            rows, encoder, corpus=[*queries, *MORE], num_negatives=3, output_format="n-tuple", **more
        )
        assert len(found) == len(PAIRS)
        assert all(row["query"] not in [row[f"negative_{i}"] for i in (1, 2, 3)] for row in found)
        assert any(query in row.values() for row in found for query in queries if query != row["query"])
    columns = {"answer": [answer for _, answer in PAIRS], "query": queries}
    named = util.mine_hard_negatives(columns, encoder, anchor_column_name="query", num_negatives=1)
    assert named == util.mine_hard_negatives(columns, encoder, positive_column_name="answer", num_negatives=1)
    assert named == util.mine_hard_negatives(rows, encoder, num_negatives=1)
    # A text that is its own answer is a positive as any other.
    same = util.mine_hard_negatives([*rows, {"query": queries[0], "answer": queries[0]}], encoder, num_negatives=1)
    assert {row["answer"] for row in same if row["query"] == queries[0]} == {queries[0], PAIRS[0][1], PAIRS[3][1]}


def test_queries_without_enough_negatives_are_counted_with_what_to_change(encoder: SentenceEncoder) -> None:
    for options, message in (
        (
            {"min_score": 0.9999},
            "3 of 3 queries have fewer than num_negatives=3 negatives: change min_score or corpus,",
        ),
        ({"range_min": 7, "range_max": 10}, "3 of 3 .*: change range_min or corpus, or lower num_negatives"),
        (
            {"max_score": -0.5, "range_max": 4, "output_format": "n-tuple"},
            "negatives, and so no row: change max_score or range_max",
        ),
    ):
        with pytest.warns(TrainingWarning, match=message):
            assert len(mined(encoder, **options)) < 3 * len(PAIRS)


def test_random_negatives_depend_on_the_seed_alone(encoder: SentenceEncoder) -> None:
    options: dict[str, Any] = {"num_negatives": 2, "sampling_strategy": "random", "range_max": 6}
    first = mined(encoder, **options, seed=3)
    assert first == mined(encoder, **options, seed=3)
    assert any(first != mined(encoder, **options, seed=seed) for seed in range(4, 9))
    best = {query: {text for _, text in candidates(encoder, query)[:6]} for query, _ in PAIRS}
    assert all(row["negative"] in best[row["query"]] for row in first)


def test_a_cross_encoder_decides_about_limits(encoder: SentenceEncoder, tmp_path: Path) -> None:
    ranker = CrossEncoder(make_ranker(tmp_path / "ranker"))
    rows = mined(encoder, num_negatives=3, cross_encoder=ranker, max_score=0.5, output_scores=True)
    assert rows
    predicted = ranker.predict([(row["query"], row["negative"]) for row in rows])
    np.testing.assert_allclose([row["scores"][1] for row in rows], predicted, atol=1e-6)
    assert predicted.max() <= 0.5


def test_wrong_arguments_of_mining_are_named(encoder: SentenceEncoder, tmp_path: Path) -> None:
    three_labels = CrossEncoder(with_tokenizer("cross_encoder_classes", tmp_path))
    rows = [{"query": "a", "answer": "b"}]
    for data, options, message in (
        ([], {}, "rows that are dicts"),
        ("text", {}, "rows or columns of texts, not str"),
        ([{"query": "a"}], {}, "two columns"),
        ([*rows, {"query": "c"}], {}, "no column 'answer'"),
        (rows, {"anchor_column_name": "question"}, "no column 'question'"),
        (rows, {"anchor_column_name": "query", "positive_column_name": "query"}, "are the same column 'query'"),
        ([{"query": "a", "answer": 1}], {}, "the column 'answer'"),
        (rows, {"range_min": 2, "range_max": 4}, "num_negatives=3 do not fit"),
        (rows, {"output_format": "pairs"}, "output_format"),
        (rows, {"sampling_strategy": "best"}, "sampling_strategy"),
        (rows, {"cross_encoder": encoder}, "cross_encoder"),
        (rows, {"cross_encoder": three_labels}, "cross_encoder must be a cross encoder with one label; this one has 3"),
        (rows, {"num_negatives": 0}, "num_negatives"),
        (rows, {"max_score": 95}, "max_score must be from -1 to 1, a cosine, not 95"),
        (rows, {"min_score": 1.5}, "min_score must be from -1 to 1"),
        (rows, {"min_score": 0.5, "max_score": 0.4}, "min_score=0.5 is above max_score=0.4"),
        (rows, {"absolute_margin": 5}, "absolute_margin must be at most 2"),
        (rows, {"relative_margin": 5}, "relative_margin must be at most 1, as a share of a score: 0.05 for 5 %, not 5"),
    ):
        with pytest.raises(InputError, match=message):
            util.mine_hard_negatives(data, encoder, **options)
