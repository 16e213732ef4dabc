"""`wordpiece_bert.util` and `wordpiece_bert.evaluation` on random data, compared with sentence-transformers itself.

`make test-torch` installs it; without it these tests are skipped.
"""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tiny_models import make_ranker
from wordpiece_bert import CrossEncoder, SentenceEncoder, evaluation, util
from wordpiece_bert._internal.atomic_file import write_bytes
from wordpiece_bert.bert.checkpoint import read_tensors
from wordpiece_bert.bert.checkpoint.safetensors import safetensors_chunks
from wordpiece_bert.hub import find_model

torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed: make test-torch")
peer: Any = pytest.importorskip("sentence_transformers", reason="not installed: make test-torch")
peer_evaluation: Any = pytest.importorskip("sentence_transformers.sentence_transformer.evaluation")

pytestmark = pytest.mark.filterwarnings("ignore")
torch.set_num_threads(1)


def vectors(count: int, width: int = 8, seed: int = 0) -> Any:
    return torch.from_numpy(np.random.default_rng(seed).normal(size=(count, width)).astype(np.float32))


MEASURES = [name for name in util.__all__ if name.endswith(("_sim", "_score"))]


@pytest.mark.parametrize("name", MEASURES)
def test_measures_of_tensors_are_tensors_with_the_numbers_of_the_peer(name: str) -> None:
    a, b = vectors(5), vectors(5, seed=1)
    for x, y in ((a, b), (a[0], b[0]) if not name.startswith("pairwise") else (a, b)):
        found = getattr(util, name)(x, y)
        assert torch.is_tensor(found)
        np.testing.assert_allclose(found, getattr(peer.util, name)(x, y), atol=1e-5)
    assert isinstance(getattr(util, name)(a.numpy(), b.numpy()), np.ndarray)


@pytest.mark.parametrize("name", ["maxsim", "maxsim_pairwise", "mean_maxsim", "mean_maxsim_pairwise"])
def test_scores_of_token_vectors_are_those_of_the_peer(name: str) -> None:
    queries, documents = [vectors(3), vectors(5, seed=1)], [vectors(7, seed=2), vectors(2, seed=3)]
    found = getattr(util, name)(queries, documents)
    assert torch.is_tensor(found)
    np.testing.assert_allclose(found, getattr(peer.util, name)(queries, documents), rtol=1e-5)


def test_vectors_are_changed_as_by_the_peer() -> None:
    x = vectors(4)
    np.testing.assert_allclose(util.normalize_embeddings(x), peer.util.normalize_embeddings(x), atol=1e-6)
    assert torch.equal(util.truncate_embeddings(x, 3), peer.util.truncate_embeddings(x, 3))
    texts = [vectors(3).numpy(), vectors(5, seed=1).numpy()]
    for precision in ("int8", "uint8", "binary", "ubinary"):
        for some in (x, x.numpy(), list(x.numpy()), texts):
            found, expected = (module.quantize_embeddings(some, precision) for module in (util, peer))
            for one, other in zip(found, expected, strict=True):
                np.testing.assert_array_equal(one, other)
                assert one.dtype == other.dtype


def test_search_finds_what_the_peer_finds() -> None:
    queries, corpus = vectors(7), vectors(60, seed=1)
    for options in ({}, {"top_k": 3, "query_chunk_size": 2, "corpus_chunk_size": 7}):
        for function in ("cos_sim", "dot_score", "euclidean_sim", "manhattan_sim"):
            found, expected = (
                module.semantic_search(queries, corpus, **options, score_function=getattr(module, function))
                for module in (util, peer.util)
            )
            assert_equal(found, expected)
        assert_equal(
            *(
                module.semantic_search(queries, corpus, **options, score_function=lambda a, b: a @ b.T)
                for module in (util, peer.util)
            )
        )
    for options in ({}, {"top_k": 2, "max_pairs": 20}):
        assert_equal(
            *(module.paraphrase_mining_embeddings(corpus, **options) for module in (util, peer.util)),
        )


@given(st.integers(20, 300), st.sampled_from([0.5, 0.75, 0.9]), st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_communities_are_those_of_the_peer(count: int, threshold: float, fewest: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    centers = random.normal(size=(8, 16))
    x = (centers[random.integers(8, size=count)] + 0.5 * random.normal(size=(count, 16))).astype(np.float32)
    expected = peer.util.community_detection(torch.from_numpy(x), threshold, fewest)
    assert util.community_detection(x, threshold, fewest) == expected


# --- hard negatives

WEIGHTS = "model.safetensors"
TEXTS = [
    *("bread dough in the oven", "to bake bread", "bake in the oven", "the wheel and the tire", "repair a bicycle"),
    *("the chain of a bicycle", "a wonderful film", "a dull film", "a great story", "a boring story", "the city"),
]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any, Any, Any]:
    folder = tmp_path_factory.mktemp("models")
    sentences, ranker = find_model("minilm"), make_ranker(folder / "ranker")
    random = np.random.default_rng(0)  # the toy gives one score to all texts of a topic
    noisy = {name: x + 0.1 * random.normal(size=x.shape) for name, x in read_tensors(ranker / WEIGHTS).items()}
    write_bytes(ranker / WEIGHTS, b"".join(safetensors_chunks({name: np.float32(x) for name, x in noisy.items()})))
    theirs = peer.SentenceTransformer(str(sentences), device="cpu"), peer.CrossEncoder(str(ranker), device="cpu")
    return SentenceEncoder(sentences), CrossEncoder(ranker), *theirs


@pytest.mark.model
@pytest.mark.parametrize("output_scores", [False, True])
@pytest.mark.parametrize("output_format", ["triplet", "n-tuple", "labeled-pair", "labeled-list"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"num_negatives": 2, "range_min": 1, "range_max": 5},
        {"num_negatives": 4, "max_score": 0.6, "min_score": 0.01},
        {"relative_margin": 0.3},
        {"absolute_margin": 0.1, "num_negatives": 1},
        {"max_score": 0.5, "num_negatives": 2, "cross_encoder": True},
        {"include_positives": True},
    ],
)
def test_hard_negatives_are_those_of_the_peer(
    models: tuple[Any, Any, Any, Any], options: dict[str, Any], output_format: str, output_scores: bool
) -> None:
    datasets = pytest.importorskip("datasets")
    rows = datasets.Dataset.from_dict(
        {
            "query": ["bread", "bicycle", "film", "bread"],
            "answer": [TEXTS[0], TEXTS[4], TEXTS[6], TEXTS[1]],
        }
    )
    ours, our_ranker, theirs, their_ranker = models
    found, expected = (
        mine(
            rows,
            model,
            corpus=[*TEXTS],
            output_format=output_format,
            output_scores=output_scores,
            verbose=False,
            **options | ({"cross_encoder": ranker} if "cross_encoder" in options else {}),
        )
        for mine, model, ranker in (
            (util.mine_hard_negatives, ours, our_ranker),
            (peer.util.mine_hard_negatives, theirs, their_ranker),
        )
    )
    assert isinstance(found, datasets.Dataset)
    assert found.column_names == expected.column_names
    assert_equal(found.to_list(), expected.to_list())


# --- evaluators


class Table:
    """A model of both packages whose vectors are the rows of a table."""

    def __init__(self, similarity: str = "cosine") -> None:
        self.similarity_fn_name = similarity
        self.model_card_data = self

    def set_evaluation_metrics(self, *arguments: Any) -> None:
        """What the peer calls with the results."""

    def encode(self, texts: Any, **options: Any) -> Any:
        x = np.array([ROWS[int(text)] for text in texts])[:, : options.get("truncate_dim")]
        if options.get("normalize_embeddings"):
            x = np.asarray(util.normalize_embeddings(x))
        x = peer.util.quantize_embeddings(x, options["precision"]) if options.get("precision") else x
        return torch.from_numpy(x) if options.get("convert_to_tensor") else x

    encode_query = encode_document = encode

    def similarity(self, a: Any, b: Any) -> Any:
        return peer.SimilarityFunction.to_similarity_fn(self.similarity_fn_name)(a, b)

    def similarity_pairwise(self, a: Any, b: Any) -> Any:
        return peer.SimilarityFunction.to_similarity_pairwise_fn(self.similarity_fn_name)(a, b)


ROWS = np.random.default_rng(7).normal(size=(300, 8)).astype(np.float32)
ALL = ["cosine", "dot", "euclidean", "manhattan"]


def check_evaluator(name: str, arguments: list[Any], options: dict[str, Any], folder: Path, similarity: str) -> None:
    """Compare an evaluator with the peer's: results, the primary measure, and the file of results."""
    ours, theirs = (getattr(module, name)(*arguments, **options) for module in (evaluation, peer_evaluation))
    model = Table(similarity)
    found, expected = ours(model, folder / "ours", 1, 20), theirs(model, str(folder / "theirs"), 1, 20)
    assert list(found) == list(expected) or sorted(found) == sorted(expected)
    for key, value in expected.items():
        assert found[key] == pytest.approx(value, abs=2e-6), key
    assert ours.primary_metric == theirs.primary_metric
    assert ours.greater_is_better == theirs.greater_is_better
    assert ours.csv_file == theirs.csv_file
    lines = [(folder / side / ours.csv_file).read_text().splitlines() for side in ("ours", "theirs")]
    assert lines[0][0] == lines[1][0]
    np.testing.assert_allclose(*([float(cell) for cell in text[1].split(",")] for text in lines), atol=2e-6)


def texts(random: Any, count: int, rows: int = 300, first: int = 0) -> list[str]:
    return [str(first + row) for row in random.integers(rows, size=count)]


NAMED = st.sampled_from([{}, {"name": "dev"}, {"name": "dev", "truncate_dim": 3}])
MEASURED = st.one_of(
    st.just({}), st.lists(st.sampled_from(ALL), min_size=1, unique=True).map(lambda x: {"similarity_fn_names": x})
)
SEEDS = st.integers(0, 2**32 - 1)


@given(NAMED, MEASURED, st.sampled_from([None, "int8", "uint8", "binary", "ubinary"]), st.sampled_from(ALL), SEEDS)
def test_similarity_is_measured_as_by_the_peer(
    tmp_path_factory: Any, named: Any, measured: Any, precision: Any, similarity: str, seed: int
) -> None:
    random = np.random.default_rng(seed)
    arguments = [texts(random, 60), texts(random, 60), np.round(random.normal(size=60), 1).tolist()]
    options = named | measured | {"precision": precision}
    check_evaluator("EmbeddingSimilarityEvaluator", arguments, options, tmp_path_factory.mktemp("x"), similarity)
    if len(measured.get("similarity_fn_names", [])) > 1:
        options["main_similarity"] = measured["similarity_fn_names"][0]
        check_evaluator("EmbeddingSimilarityEvaluator", arguments, options, tmp_path_factory.mktemp("x"), similarity)


@given(NAMED, MEASURED, st.integers(2, 60), st.sampled_from([2, 150]), st.sampled_from(ALL), SEEDS)
def test_decisions_are_measured_as_by_the_peer(
    tmp_path_factory: Any, named: Any, measured: Any, count: int, rows: int, similarity: str, seed: int
) -> None:
    random = np.random.default_rng(seed)  # two by two rows have many equal scores
    labels = [1, 0, *random.integers(2, size=count - 2).tolist()]
    arguments = [texts(random, count, rows), texts(random, count, rows, 150), labels]
    folder = tmp_path_factory.mktemp("x")
    check_evaluator("BinaryClassificationEvaluator", arguments, named | measured, folder, similarity)


@given(NAMED, MEASURED, st.sampled_from([None, 0.3, {"dot": 1.5}]), st.sampled_from(ALL), SEEDS)
def test_triplets_are_measured_as_by_the_peer(
    tmp_path_factory: Any, named: Any, measured: Any, margin: Any, similarity: str, seed: int
) -> None:
    random = np.random.default_rng(seed)
    options = named | measured | {"margin": margin}
    folder = tmp_path_factory.mktemp("x")
    check_evaluator("TripletEvaluator", [texts(random, 50) for _ in range(3)], options, folder, similarity)


def are_separated(queries: list[str], corpus: list[str], relevant: list[set[int]], width: Any, similarity: str) -> bool:
    """Whether no rounding decides on the place of a relevant document: BLAS rounds a product by its place in a matrix."""
    a, b = (ROWS[[int(text) for text in part]][:, :width].astype(float) for part in (queries, corpus))
    if similarity == "cosine":
        a, b = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (a, b))
    if similarity in ("cosine", "dot"):
        scores = a @ b.T
    else:
        scores = -np.linalg.norm(a[:, None] - b, axis=2, ord=1 if similarity == "manhattan" else 2)
    gaps = [np.abs(np.delete(row, i) - row[i]) for row, found in zip(scores, relevant, strict=True) for i in found]
    return all((gap > 1e-5).all() for gap in gaps)


@given(NAMED, st.integers(1, 300), st.sampled_from([7, 50_000]), st.booleans(), st.sampled_from(ALL), SEEDS)
def test_retrieval_is_measured_as_by_the_peer(
    tmp_path_factory: Any, named: Any, count: int, chunk: int, functions: bool, similarity: str, seed: int
) -> None:
    random = np.random.default_rng(seed)
    queries = {f"q{i}": text for i, text in enumerate(texts(random, 20))}
    corpus = {f"d{i}": str(row) for i, row in enumerate(random.permutation(300)[:count])}
    relevant = {query: {f"d{i}" for i in random.integers(count + 3, size=random.integers(5))} for query in queries}
    relevant["q0"] = {"d0"}
    known = [{int(one[1:]) for one in found & corpus.keys()} for found in relevant.values()]
    used = "dot" if functions else similarity
    assume(are_separated([*queries.values()], [*corpus.values()], known, named.get("truncate_dim"), used))
    options = named | {"corpus_chunk_size": chunk, "map_at_k": [5, 100], "ndcg_at_k": [3, 10], "mrr_at_k": [1, 10]}
    if functions:
        options["score_functions"] = {"b": peer.util.dot_score, "a": lambda a, b: a @ b.T / 2}
    folder = tmp_path_factory.mktemp("x")
    check_evaluator("InformationRetrievalEvaluator", [queries, corpus, relevant], options, folder, similarity)


@given(st.integers(1, 60), st.sampled_from([7, 50_000]), SEEDS)
def test_equal_scores_of_a_retrieval_are_ranked_as_by_the_peer(
    tmp_path_factory: Any, count: int, chunk: int, seed: int
) -> None:
    """The same row for several documents, in numbers whose products are exact."""
    random = np.random.default_rng(seed)
    queries = {f"q{i}": text for i, text in enumerate(texts(random, 5))}
    corpus = {f"d{i}": text for i, text in enumerate(texts(random, count, 8))}
    relevant = {query: {f"d{i}" for i in random.integers(count, size=1 + random.integers(5))} for query in queries}
    exact = np.round(ROWS * 16) / 16
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(globals(), "ROWS", exact.astype(np.float32))
        options = {"corpus_chunk_size": chunk, "map_at_k": [5, 100]}
        folder = tmp_path_factory.mktemp("x")
        check_evaluator("InformationRetrievalEvaluator", [queries, corpus, relevant], options, folder, "dot")


@given(NAMED, st.sampled_from([1, 10]), st.booleans(), SEEDS)
def test_reranking_is_measured_as_by_the_peer(
    tmp_path_factory: Any, named: Any, at_k: int, batched: bool, seed: int
) -> None:
    random = np.random.default_rng(seed)
    numbers = [str(row) for row in random.permutation(300)]  # without equal scores, whose order is arbitrary there
    samples = [
        {
            "query": numbers[20 * i],
            "positive": numbers[20 * i + 1] if i == 3 else numbers[20 * i + 1 : 20 * i + 1 + int(random.integers(6))],
            "negative": numbers[20 * i + 7 : 20 * i + 7 + int(random.integers(1, 13))],
        }
        for i in range(8)
    ]
    options = named | {"at_k": at_k, "use_batched_encoding": batched}
    check_evaluator("RerankingEvaluator", [samples], options, tmp_path_factory.mktemp("x"), "cosine")


@given(NAMED, st.integers(2, 40), st.integers(0, 30), st.booleans(), st.integers(1, 60), SEEDS)
def test_paraphrase_mining_is_measured_as_by_the_peer(
    tmp_path_factory: Any, named: Any, count: int, pairs: int, closure: bool, max_pairs: int, seed: int
) -> None:
    random = np.random.default_rng(seed)
    sentences = {f"s{i}": text for i, text in enumerate(random.permutation(300)[:count].astype(str).tolist())}
    same = [(f"s{i}", f"s{j}") for i, j in random.integers(count + 2, size=(pairs, 2)) if i != j]
    options = named | {"duplicates_list": same, "add_transitive_closure": closure, "max_pairs": max_pairs}
    options["top_k"] = int(random.integers(1, 10))
    # Without a pair that it knows, there is nothing to measure: an InputError, where the peer divides by 0.
    assume(any(one in sentences and other in sentences for one, other in same))
    check_evaluator("ParaphraseMiningEvaluator", [sentences], options, tmp_path_factory.mktemp("x"), "cosine")


def test_evaluators_in_a_sequence_are_those_of_the_peer() -> None:
    random = np.random.default_rng(0)
    columns = [texts(random, 20), texts(random, 20)]
    results = []
    for module in (evaluation, peer_evaluation):
        parts = [
            module.EmbeddingSimilarityEvaluator(*columns, random.permutation(20).tolist(), name="sts")
            if module is evaluation
            else module.EmbeddingSimilarityEvaluator(*columns, results[0][1].evaluators[0].scores.tolist(), name="sts"),
            module.TripletEvaluator(*columns, columns[0][::-1]),
        ]
        evaluator = module.SequentialEvaluator(parts, main_score_function=lambda scores: sum(scores) / 2)
        results.append((evaluator(Table()), evaluator))
    (found, ours), (expected, theirs) = results
    assert list(found) == list(expected)
    np.testing.assert_allclose(list(found.values()), list(expected.values()), atol=1e-6)
    assert ours.primary_metric == theirs.primary_metric


# --- names and arguments


@pytest.mark.parametrize("name", sorted(set(evaluation.__all__) - {"BaseEvaluator", "Judged", "read_beir"}))
def test_evaluators_have_the_arguments_of_the_peer(name: str) -> None:
    ours, theirs = (inspect.signature(getattr(module, name)).parameters for module in (evaluation, peer_evaluation))
    wanted = [one for one in theirs if one not in ("mrr_at_k", "main_distance_function") or name.startswith("Info")]
    assert [one for one in ours if one in theirs] == wanted
    for one in wanted:
        default = theirs[one].default
        if not callable(default):
            assert ours[one].default == (tuple(default) if isinstance(default, list) else default), one


@pytest.mark.parametrize("name", [name for name in util.__all__ if name not in ("SimilarityFunction",)])
def test_functions_have_the_arguments_of_the_peer(name: str) -> None:
    ours, theirs = (inspect.signature(getattr(module, name)).parameters for module in (util, peer.util))
    missing = {"cache_folder", "use_multi_process", "as_triplets", "margin"}  # of mine_hard_negatives
    wanted = [one for one in theirs if one not in missing]
    assert [one for one in ours if one in theirs] == wanted
    assert all(ours[one].kind is inspect.Parameter.KEYWORD_ONLY for one in ours if one not in theirs)
    for one in wanted:
        default = theirs[one].default
        as_many = one == "top_k" and name.startswith("paraphrase_mining")  # None, which is 100 without a threshold
        if not callable(default) and one != "verbose" and not as_many:
            assert ours[one].default == default, one


def assert_equal(found: Any, expected: Any) -> None:
    """Compare nested lists and dicts: numbers to 1e-5, all else exactly."""
    if isinstance(expected, dict):
        assert list(found) == list(expected)
        found, expected = list(found.values()), list(expected.values())
    if isinstance(expected, list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_equal(one, other)
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, abs=1e-5)
    else:
        assert found == expected
