"""`wordpiece_bert.util` and `wordpiece_bert.evaluation` on random data, compared with sentence-transformers itself.

`make test-torch` installs it; without it these tests are skipped.
"""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiny_models import make_ranker
from wordpiece_bert import CrossEncoder, SentenceEncoder, util
from wordpiece_bert._internal.atomic_file import write_bytes
from wordpiece_bert.bert.checkpoint import read_tensors
from wordpiece_bert.bert.checkpoint.safetensors import safetensors_chunks
from wordpiece_bert.hub import find_model

torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed: make test-torch")
peer: Any = pytest.importorskip("sentence_transformers", reason="not installed: make test-torch")

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


# --- names and arguments


@pytest.mark.parametrize("name", [name for name in util.__all__ if name not in ("SimilarityFunction",)])
def test_functions_have_the_arguments_of_the_peer(name: str) -> None:
    ours, theirs = (inspect.signature(getattr(module, name)).parameters for module in (util, peer.util))
    missing = {"cache_folder", "use_multi_process", "as_triplets", "margin"}  # of mine_hard_negatives
    wanted = [one for one in theirs if one not in missing]
    assert [one for one in ours if one in theirs] == wanted
    assert all(ours[one].kind is inspect.Parameter.KEYWORD_ONLY for one in ours if one not in theirs)
    for one in wanted:
        default = theirs[one].default
        if not callable(default) and one != "verbose":
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
