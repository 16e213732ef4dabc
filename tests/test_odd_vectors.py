"""Whatever is given as vectors: a right answer or a `WordPieceError`, in every public function that takes them.

Each odd value has a meaning, the float32 array that a right answer is computed from, or none: then it must be refused.
The grid calls each function with all pairs of values, and compares with the call for their meanings.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pytest

from model_files import MODELS, sentence_folder
from wordpiece_bert import MultiVectorEncoder, SentenceEncoder, SparseEncoder, inspect
from wordpiece_bert.errors import InputError, WordPieceError
from wordpiece_bert.finetune import losses
from wordpiece_bert.finetune.frozen_heads import LogisticRegression
from wordpiece_bert.sentence import (
    MultiVectors,
    SparseVectors,
    maxsim,
    maxsim_pairwise,
    pairwise_similarity,
    paraphrase_mining_embeddings,
    quantize_embeddings,
    retrieve_and_rerank,
    semantic_search,
    similarity,
)

D = 4
VECTORS = np.random.default_rng(5).integers(-3, 4, (3, D)).astype(np.float32)
VECTORS[1] = [1, 0, 2, 1]


# --- stand-ins for tensors of torch, which the tests do not need


class Tensor:
    """A tensor of torch as NumPy sees it: `__array__` calls `numpy`, which raises what torch raises.

    The messages come from ``torch/csrc/utils/tensor_numpy.cpp``.
    """

    layout = "torch.strided"

    def __init__(self, values: Any, error: Exception | None = None) -> None:
        self.values, self.error = values, error

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        if self.error is not None:
            raise self.error
        return self.values if dtype is None else self.values.astype(dtype, copy=False)

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, index: Any) -> Tensor:
        return Tensor(self.values[index], self.error)

    @property
    def ndim(self) -> int:
        return int(self.values.ndim)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.values.shape)


Tensor.__module__ = "torch"

BFLOAT16 = TypeError("Got unsupported ScalarType BFloat16")
GRADIENT = RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
CUDA = TypeError(
    "can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first."
)
SPARSE = TypeError("can't convert Sparse layout tensor to numpy. Use Tensor.to_dense() first.")


def sparse_tensor() -> Tensor:
    tensor = Tensor(VECTORS, SPARSE)
    tensor.layout = "torch.sparse_coo"
    return tensor


# --- the values


class Odd(NamedTuple):
    """A value, and the array that it means; None if it must be refused."""

    make: Callable[[], Any]
    meaning: Any


def unaligned(array: Any) -> Any:
    """The same numbers at an odd address."""
    view = np.frombuffer(b"\0" + array.tobytes(), np.uint8)[1:].view(array.dtype).reshape(array.shape)
    assert not view.flags.aligned
    return view


def objects(items: list[Any]) -> Any:
    array = np.empty(len(items), object)
    array[:] = items
    return array


MEANINGFUL = {
    "float32": Odd(lambda: VECTORS, VECTORS),
    "float64": Odd(lambda: VECTORS.astype(np.float64), VECTORS),
    "float16": Odd(lambda: VECTORS.astype(np.float16), VECTORS),
    "longdouble": Odd(lambda: VECTORS.astype(np.longdouble), VECTORS),
    "int8": Odd(lambda: VECTORS.astype(np.int8), VECTORS),
    "uint64": Odd(lambda: np.abs(VECTORS).astype(np.uint64), np.abs(VECTORS)),
    "bool": Odd(lambda: VECTORS > 0, (VECTORS > 0).astype(np.float32)),
    "big-endian": Odd(lambda: VECTORS.astype(">f4"), VECTORS),
    "fortran": Odd(lambda: np.asfortranarray(VECTORS), VECTORS),
    "unaligned": Odd(lambda: unaligned(VECTORS), VECTORS),
    "unaligned float64": Odd(lambda: unaligned(VECTORS.astype(np.float64)), VECTORS),
    "unaligned big-endian": Odd(lambda: unaligned(VECTORS.astype(">f4")), VECTORS),
    "reversed": Odd(lambda: VECTORS[::-1][::-1].copy()[::-1][::-1], VECTORS),
    "negative strides": Odd(lambda: np.ascontiguousarray(VECTORS[::-1, ::-1])[::-1, ::-1], VECTORS),
    "every other": Odd(lambda: np.repeat(VECTORS, 2, axis=1)[:, ::2], VECTORS),
    "broadcast": Odd(lambda: np.broadcast_to(VECTORS[0], (3, D)), np.tile(VECTORS[:1], (3, 1))),
    "unmasked": Odd(lambda: np.ma.masked_array(VECTORS), VECTORS),
    "matrix": Odd(lambda: VECTORS.view(np.matrix), VECTORS),
    "object numbers": Odd(lambda: VECTORS.astype(object), VECTORS),
    "tensor": Odd(lambda: Tensor(VECTORS), VECTORS),
    "no vectors": Odd(lambda: np.zeros((0, D)), np.zeros((0, D), np.float32)),
}
LISTS = {
    "lists": Odd(VECTORS.tolist, VECTORS),
    "tuples": Odd(lambda: tuple(map(tuple, VECTORS.tolist())), VECTORS),
    "list of arrays": Odd(lambda: list(VECTORS), VECTORS),
    "list of tensors": Odd(lambda: [Tensor(row) for row in VECTORS], VECTORS),
    "column of arrays": Odd(lambda: objects(list(VECTORS)), VECTORS),
    "one vector": Odd(lambda: VECTORS[0], VECTORS[:1]),
}
WIDTHS = {
    "another width": Odd(lambda: np.ones((3, D + 1)), np.ones((3, D + 1), np.float32)),
    "no width": Odd(lambda: np.ones((3, 0)), np.ones((3, 0), np.float32)),
}
REFUSED = {
    "None": lambda: None,
    "number": lambda: 3.5,
    "0-d": lambda: np.array(2.0),
    "str": lambda: "text",
    "bytes": lambda: b"text",
    "strings": lambda: ["one", "two"],
    "numbers as strings": lambda: [["1", "2", "3", "4"]],
    "array of str": lambda: np.array([["1", "2", "3", "4"]]),
    "array of bytes": lambda: np.array([[b"1", b"2", b"3", b"4"]]),
    "ragged": lambda: [[1.0, 2.0, 3.0, 4.0], [1.0]],
    "ragged arrays": lambda: [np.ones(4), np.ones(3)],
    "ragged column": lambda: objects([np.ones(4), np.ones(3)]),
    "ragged depth": lambda: [1.0, [2.0, 3.0]],
    "None within": lambda: [[1.0, None, 2.0, 3.0]],
    "column with None": lambda: objects([np.ones(4), None]),
    "dict": lambda: {"a": [1.0] * D},
    "dict of numbers": lambda: dict(enumerate(range(D))),
    "set": lambda: {1.0, 2.0},
    "object": object,
    "type": lambda: int,
    "function": lambda: len,
    "complex": lambda: VECTORS + 1j,
    "dates": lambda: np.zeros((2, D), "datetime64[s]"),
    "spans": lambda: np.zeros((2, D), "timedelta64[s]"),
    "records": lambda: np.zeros((2, D), [("x", "f4")]),
    "void": lambda: np.zeros((2, D), "V4"),
    "decimals": lambda: [[Decimal(1)] * D],
    "huge integers": lambda: [[2**200] * D],
    "beyond float32": lambda: np.full((2, D), 1e300),
    "masked": lambda: np.ma.masked_array(VECTORS, VECTORS > 0),
    "four dimensions": lambda: np.ones((1, 1, 2, D)),
    "bfloat16": lambda: Tensor(VECTORS, BFLOAT16),
    "gradient": lambda: Tensor(VECTORS, GRADIENT),
    "cuda": lambda: Tensor(VECTORS, CUDA),
    "sparse tensor": sparse_tensor,
    "list of bfloat16": lambda: [Tensor(row, BFLOAT16) for row in VECTORS],
    "list of gradients": lambda: [Tensor(row, GRADIENT) for row in VECTORS],
}
ONLY_DENSE = {
    "three dimensions": lambda: np.ones((1, 2, D)),
    "sparse": lambda: SparseVectors.from_dense(VECTORS),
    "token vectors": lambda: MultiVectors(VECTORS, [0, 1, 3]),
    "token vectors of one length": lambda: MultiVectors(VECTORS, [0, 1, 2, 3]),
}

DENSE = MEANINGFUL | LISTS | WIDTHS | {name: Odd(make, None) for name, make in (REFUSED | ONLY_DENSE).items()}
SPARSE_VALUES = (
    MEANINGFUL
    | WIDTHS
    | LISTS
    | {"sparse": Odd(lambda: SparseVectors.from_dense(VECTORS), VECTORS)}
    | {"one sparse": Odd(lambda: SparseVectors.from_dense(VECTORS[0]), VECTORS[:1])}
    | {name: Odd(make, None) for name, make in REFUSED.items()}
)
TOKENS = (
    MEANINGFUL
    | WIDTHS
    | {"list of one": Odd(lambda: [VECTORS.tolist()], VECTORS)}
    | {"token vectors": Odd(lambda: MultiVectors(VECTORS, [0, 3]), VECTORS)}
    | {"list of unaligned": Odd(lambda: [unaligned(VECTORS)], VECTORS)}
    | {"column of one": Odd(lambda: objects([VECTORS]), VECTORS)}
    | {"array of one": Odd(lambda: VECTORS[None], VECTORS)}
    | {name: Odd(make, None) for name, make in REFUSED.items()}
    | {"list of bfloat16": Odd(lambda: [Tensor(VECTORS, BFLOAT16)], None)}
    | {"list of gradients": Odd(lambda: [Tensor(VECTORS, GRADIENT)], None)}
)


# --- the functions


@pytest.fixture(scope="module")
def dense(tmp_path_factory: pytest.TempPathFactory) -> SentenceEncoder:
    return SentenceEncoder(sentence_folder("sentence_mean_normalize", tmp_path_factory.mktemp("dense")))


@pytest.fixture(scope="module")
def sparse() -> SparseEncoder:
    return SparseEncoder(MODELS / "splade_sum")


@pytest.fixture(scope="module")
def colbert() -> MultiVectorEncoder:
    return MultiVectorEncoder(MODELS / "colbert_st")


def outcome(call: Callable[[], Any]) -> Any:
    """What a call returns, as something that can be compared; a WordPieceError as such."""
    try:
        result = call()
    except WordPieceError as error:
        return error
    if isinstance(result, SparseVectors):
        return result.toarray()
    return np.asarray(result.vectors) if isinstance(result, MultiVectors) else result


def same(a: Any, b: Any) -> bool:
    if isinstance(a, WordPieceError) or isinstance(b, WordPieceError):
        return isinstance(a, WordPieceError) and isinstance(b, WordPieceError)
    return bool(np.array_equal(a, b)) if isinstance(a, np.ndarray) else a == b


def check(function: Callable[..., Any], values: dict[str, Odd], count: int) -> None:
    """Call a function with all combinations of `count` values."""
    wrong = []
    answers = 0
    for names in itertools.product(values, repeat=count):
        chosen = [values[name] for name in names]
        try:
            found = outcome(lambda chosen=chosen: function(*(one.make() for one in chosen)))
        except Exception as error:  # noqa: BLE001 - each is a finding
            wrong.append(f"{names}: {type(error).__name__}: {error}")
            continue
        if any(one.meaning is None for one in chosen):
            right = isinstance(found, WordPieceError)
        else:
            right = same(found, outcome(lambda chosen=chosen: function(*(one.meaning for one in chosen))))
            answers += not isinstance(found, WordPieceError)
        if not right:
            wrong.append(f"{names}: {found!r:.200}")
    assert not wrong, f"{len(wrong)} of {len(values) ** count}:\n" + "\n".join(wrong[:12])
    assert answers >= len(MEANINGFUL) - 1  # no vectors at all are refused by some


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_similarity(metric: str) -> None:
    check(lambda a, b: similarity(a, b, metric), DENSE, 2)


def test_pairwise_similarity() -> None:
    check(pairwise_similarity, DENSE, 2)


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_semantic_search(metric: str) -> None:
    dense = {name: one for name, one in DENSE.items() if name != "sparse"}
    check(lambda a, b: semantic_search(a, b, metric=metric), dense, 2)
    only_sparse = {name: one for name, one in SPARSE_VALUES.items() if "sparse" in name}
    corpus = SparseVectors.from_dense(VECTORS[::-1])
    check(lambda a: semantic_search(a, corpus, metric=metric), SPARSE_VALUES, 1)
    for name in only_sparse:
        if (odd := SPARSE_VALUES[name]).meaning is not None:
            found = semantic_search(odd.make(), VECTORS, metric=metric)
            expected = semantic_search(odd.meaning, VECTORS, metric=metric)
            for hits, others in zip(found, expected, strict=True):
                assert [hit["corpus_id"] for hit in hits] == [hit["corpus_id"] for hit in others]
                np.testing.assert_allclose([hit["score"] for hit in hits], [hit["score"] for hit in others], atol=1e-6)


def test_sparse_queries_that_are_not_finite_are_refused() -> None:
    for bad in (np.nan, np.inf):
        queries = VECTORS.copy()
        queries[1, 2] = bad
        with pytest.raises(InputError, match=f"query 1 has {bad} at index 2: a query must be finite numbers"):
            semantic_search(SparseVectors.from_dense(queries), SparseVectors.from_dense(VECTORS))


def test_search_of_quantized_vectors() -> None:
    quantized = quantize_embeddings(VECTORS, "int8", ranges := np.array([[-3.0] * D, [3.0] * D]))
    check(lambda a: semantic_search(a, quantized, corpus_precision="int8", ranges=ranges), DENSE, 1)
    for name in REFUSED | ONLY_DENSE:
        for one in (
            lambda name=name: semantic_search(VECTORS, DENSE[name].make(), corpus_precision="int8", ranges=ranges),
            lambda name=name: semantic_search(
                VECTORS, quantized, corpus_precision="int8", ranges=DENSE[name].make(), threads=1
            ),
        ):
            with pytest.raises(WordPieceError):
                one()


def test_paraphrase_mining_embeddings() -> None:
    check(paraphrase_mining_embeddings, DENSE, 1)


def test_quantize_embeddings() -> None:
    floats = {name: one for name, one in DENSE.items() if one.meaning is None}
    floats |= {name: DENSE[name] for name in ("float32", "float64", "float16", "big-endian", "unaligned", "lists")}
    for precision in ("float32", "ubinary", "uint8"):
        for name, one in (floats | MEANINGFUL | LISTS).items():
            found = outcome(lambda one=one, precision=precision: quantize_embeddings(one.make(), precision))
            if name.startswith("token vectors"):
                assert [x.ndim for x in found] == [2] * len(one.make())  # an array for each text
            elif one.meaning is None:
                assert isinstance(found, WordPieceError), name
            elif name in floats:
                assert same(found, outcome(lambda one=one, p=precision: quantize_embeddings(one.meaning, p))), name
    for name, one in DENSE.items():
        for more in ({"ranges": one.make()}, {"calibration_embeddings": one.make()}):
            if one.meaning is None and name != "None":  # the default of both
                with pytest.raises(WordPieceError):
                    quantize_embeddings(VECTORS, "uint8", **more)


@pytest.mark.parametrize("function", [maxsim, maxsim_pairwise])
def test_maxsim(function: Callable[..., Any]) -> None:
    check(function, TOKENS, 2)


def test_multi_vectors() -> None:
    accepted = {
        name: one for name, one in DENSE.items() if one.meaning is not None and name not in ("one vector", "no width")
    }
    refused = {name: one for name, one in DENSE.items() if one.meaning is None}
    check(lambda a: MultiVectors(a, [0, len(np.asarray(a))]), accepted, 1)
    for one in refused.values():
        for call in (
            lambda one=one: MultiVectors(one.make(), [0, 3]),
            lambda one=one: MultiVectors(VECTORS, one.make()),
            lambda one=one: MultiVectors.from_list([one.make()]),
        ):
            with pytest.raises(WordPieceError):
                call()
    for offsets in ([0, 1.5, 3], [0, np.nan, 3], [[0, 3]], [0, 2], [1, 3], [0, 2, 1, 3], [-1, 3]):
        with pytest.raises(WordPieceError):
            MultiVectors(VECTORS, offsets)
    assert MultiVectors(VECTORS, [0.0, 3.0]) == MultiVectors(VECTORS, [0, 3])
    assert np.array_equal(MultiVectors(unaligned(VECTORS), unaligned(np.array([0, 3]))).vectors, VECTORS)


def test_sparse_vectors() -> None:
    dense = {name: one for name, one in DENSE.items() if name != "one vector"}
    check(SparseVectors.from_dense, dense, 1)
    right = ([0, 2], [0, 3], [1.0, 2.0], (1, D))
    for name in REFUSED:
        for position in range(4):
            arguments: list[Any] = list(right)
            arguments[position] = REFUSED[name]()
            with pytest.raises(WordPieceError):
                SparseVectors(*arguments)
    for wrong in ([3, 0], [0, 0], [0, D], [-1, 0], [0, 2**40], [0.5, 1], [[0], [1]]):
        with pytest.raises(WordPieceError):
            SparseVectors([0, 2], wrong, [1.0, 2.0], (1, D))
    rows = SparseVectors([0, 0, 2, 2, 3], [1, 3, 0], [1.0, 2.0, 3.0], (4, D))
    assert rows.toarray().tolist() == [[0] * D, [0, 1, 0, 2], [0] * D, [3, 0, 0, 0]]


def test_a_scipy_matrix_with_two_numbers_for_one_place_is_their_sum(sparse: SparseEncoder) -> None:
    matrices = pytest.importorskip("scipy.sparse")
    twice = matrices.csr_array(([1.0, 2.0, 4.0], [2, 1, 2], [0, 3]), shape=(1, D))
    assert sparse.similarity(twice, np.eye(D)).tolist() == [[0, 2, 5, 0]]
    assert twice.nnz == 3  # it is not changed


@pytest.mark.parametrize("name", ["similarity", "similarity_pairwise"])
def test_methods_of_encoders(
    name: str, dense: SentenceEncoder, sparse: SparseEncoder, colbert: MultiVectorEncoder
) -> None:
    check(getattr(dense, name), DENSE, 2)
    check(getattr(sparse, name), SPARSE_VALUES, 2)
    check(getattr(colbert, name), TOKENS, 2)


def test_decode_and_rank(sparse: SparseEncoder, colbert: MultiVectorEncoder) -> None:
    width = colbert.dimension
    query = np.ones((2, width), np.float32)
    for name, make in REFUSED.items():
        with pytest.raises(WordPieceError):
            sparse.decode(make())
        if name not in ("str", "strings", "numbers as strings", "array of str"):  # texts
            with pytest.raises(WordPieceError):
                colbert.rank(make(), [query])
            with pytest.raises(WordPieceError):
                colbert.rank(query, make())
    assert colbert.rank(unaligned(query), [unaligned(query)]) == colbert.rank(query, [query])


def test_retrieve_and_rerank(dense: SentenceEncoder, sparse: SparseEncoder, colbert: MultiVectorEncoder) -> None:
    texts = ["a b", "c"]
    for encoder in (dense, sparse, colbert):
        vectors: Any = encoder.encode_document(texts)
        right = retrieve_and_rerank(["a"], texts, encoder, document_embeddings=vectors)
        assert retrieve_and_rerank(["a"], texts, encoder) == right
        if isinstance(vectors, np.ndarray):
            for odd in (unaligned(vectors), vectors.tolist(), vectors.astype(">f4"), objects(list(vectors))):
                assert retrieve_and_rerank(["a"], texts, encoder, document_embeddings=odd) == right
        for name, make in (REFUSED | {"of another encoder": lambda: np.ones((2, 3, 5))}).items():
            if name != "None":
                with pytest.raises(WordPieceError):
                    retrieve_and_rerank(["a"], texts, encoder, document_embeddings=make())


def test_views_heads_and_losses() -> None:
    labels = ["a", "b", "c"]
    finite = {
        name: one for name, one in DENSE.items() if one.meaning is not None and name not in ("no vectors", "no width")
    }
    refused = {name: one for name, one in DENSE.items() if one.meaning is None}
    for name, one in finite.items():
        if len(one.meaning) == 3 and one.make() is not None:
            shown = inspect.similarity(one.make(), labels).arrays["similarity"]
            assert np.array_equal(shown, inspect.similarity(one.meaning, labels).arrays["similarity"]), name
            fitted = LogisticRegression().fit(one.make(), labels)
            assert np.array_equal(fitted.coef_, LogisticRegression().fit(one.meaning, labels).coef_), name
    head = LogisticRegression().fit(VECTORS, labels)
    loss = losses.MultipleNegativesRankingLoss()
    for name, one in refused.items():
        assert isinstance(outcome(lambda one=one: inspect.similarity(one.make(), labels)), WordPieceError), name
        if name != "beyond float32":  # they compute in float64
            assert isinstance(outcome(lambda one=one: head.predict(one.make())), WordPieceError), name
            assert isinstance(outcome(lambda one=one: loss.value_and_grad([VECTORS, one.make()])), WordPieceError), name


@pytest.mark.parametrize(
    ("tensor", "advice"),
    [
        (lambda: Tensor(VECTORS, BFLOAT16), "Got unsupported ScalarType BFloat16 .pass tensor.detach().cpu().float()"),
        (
            lambda: Tensor(VECTORS, GRADIENT),
            "requires grad. Use tensor.detach().numpy() instead. .pass tensor.detach()",
        ),
        (lambda: [Tensor(VECTORS, CUDA)], "Use Tensor.cpu() to copy the tensor to host memory first. .pass tensor"),
        (sparse_tensor, ".pass tensor.detach().cpu().to_dense().float().$"),
    ],
)
def test_a_tensor_that_numpy_cannot_read_is_told_what_to_do(tensor: Callable[[], Any], advice: str) -> None:
    pattern = advice.replace("()", r"\(\)")
    for call in (
        lambda: similarity(tensor(), VECTORS),
        lambda: semantic_search(VECTORS, tensor()),
        lambda: maxsim(tensor(), VECTORS),
        lambda: quantize_embeddings(tensor(), "ubinary"),
    ):
        with pytest.raises(InputError, match=pattern):
            call()
