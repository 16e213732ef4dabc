"""What models make of texts: a vector, a sparse vector, many vectors, or labels. A model may make several of these."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wordpiece_bert.bert.functional import normalize
from wordpiece_bert.sentence.metrics import pairwise_similarity
from wordpiece_bert.serve.errors import RequestError
from wordpiece_bert.serve.kinds.served_model import Answer, Options, Served, check_tokens

if TYPE_CHECKING:
    import numpy.typing as npt

    from wordpiece_bert.sentence.encoder_base import Encoder
    from wordpiece_bert.sentence.sparse.sparse_vectors import SparseVectors
    from wordpiece_bert.serve.fields import TokenRows


class Prompted(Served):
    """A model whose encoder may have prompts."""

    encoder: Encoder


class MakesVectors(Prompted):
    """A model that makes a vector of a text."""

    #: Whether vectors have the length 1.
    normalizes: bool
    #: The width of a vector.
    dimension: int
    #: How the vectors of tokens become one.
    pooling: str

    def described(self) -> dict[str, Any]:
        """Return what the list of models says of it."""
        return {**super().described(), "dimension": self.dimension, "prompts": sorted(self.encoder.prompts)}

    async def embed(self, texts: list[str] | TokenRows, options: Options, *, dimensions: int | None = None) -> Answer:
        """Return the vectors of texts, [n, d].

        With fewer `dimensions` the vectors are truncated, and normalized again if the model normalizes them.
        """
        raise NotImplementedError

    async def score(self, left: list[str], right: list[str], options: Options) -> Answer:
        """Return the cosine of the vectors of each text of `right` with its text of `left`, or the only one, [n]."""
        one = await self.embed(left, options._replace(role="query"))
        other = await self.embed(right, options._replace(role="document"))
        check_tokens(one.tokens + other.tokens, self.settings.max_tokens)
        repeated = np.broadcast_to(one.values, other.values.shape)
        scores = await asyncio.to_thread(pairwise_similarity, repeated, other.values, "cosine")
        return Answer(scores, one.truncated | other.truncated, one.tokens + other.tokens)

    def check_normalized(self, name: str, wanted: bool | None) -> bool:
        """Return whether a request wants vectors of length 1 from a model that makes others.

        Raises
        ------
        RequestError
            With status 400: it wants vectors of any length, and the model's have length 1. `name` names the field.
        """
        if wanted is False and self.normalizes:
            message = f"{name} false is not served: the vectors of the model {self.name!r} have the length 1"
            raise RequestError(400, message, param=name, code="not_served")
        return wanted is True and not self.normalizes

    def check_dimensions(self, dimensions: int | None) -> None:
        """Refuse a number of dimensions that vectors do not have."""
        if dimensions is not None and not 1 <= dimensions <= self.dimension:
            message = f"dimensions must be from 1 to {self.dimension}, not {dimensions}"
            raise RequestError(400, message, param="dimensions")

    def shortened(self, vectors: npt.NDArray[Any], dimensions: int | None) -> npt.NDArray[Any]:
        """Return vectors [n, d] with fewer dimensions."""
        if dimensions is None or dimensions == vectors.shape[1]:
            return vectors
        return normalize(vectors[:, :dimensions]) if self.normalizes else vectors[:, :dimensions]


class SparseRow(NamedTuple):
    """The numbers of a sparse vector other than 0."""

    #: int32 [numbers].
    indices: npt.NDArray[np.int32]
    #: float32 [numbers].
    values: npt.NDArray[np.float32]


def sparse_rows(vectors: SparseVectors) -> list[SparseRow]:
    """Return the rows of sparse vectors."""
    ends = vectors.indptr.tolist()
    return [SparseRow(vectors.indices[start:end], vectors.values[start:end]) for start, end in pairwise(ends)]


class MakesSparse(Prompted):
    """A model that makes a sparse vector of a text."""

    async def embed_sparse(self, texts: list[str], options: Options) -> Answer:
        """Return the sparse vectors of texts, a `SparseRow` each."""
        raise NotImplementedError


class MakesTokenVectors(Prompted):
    """A model that makes a vector of each token of a text."""

    async def embed_tokens(self, texts: list[str] | TokenRows, options: Options) -> Answer:
        """Return the vectors of each text's tokens, [tokens, d] each."""
        raise NotImplementedError


class Classifies(Served):
    """A model that gives a text, or a pair of texts, a score for each of its labels."""

    #: The names of the labels.
    labels: list[str]

    def described(self) -> dict[str, Any]:
        """Return what the list of models says of it."""
        return {**super().described(), "labels": self.labels}

    async def classify(
        self, texts: list[str | tuple[str, str]] | TokenRows, options: Options, function: str | None = None
    ) -> Answer:
        """Return the scores of the labels for each text or pair, [n, labels], as `tasks.classify`.

        Parameters
        ----------
        texts
            Texts, and pairs of texts.
        options
            How they are read.
        function
            The function from logits to scores, ``"softmax"``, ``"sigmoid"`` or ``"none"``; by default the model's.
        """
        raise NotImplementedError
