"""Sparse and multi-vector encoders behind a queue."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from wordpiece_bert.serve.kinds.outputs import MakesSparse, MakesTokenVectors, Prompted, SparseRow, sparse_rows
from wordpiece_bert.serve.kinds.served_model import Answer, Options, check_tokens, prefix_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wordpiece_bert.bert.engines import EngineInfo
    from wordpiece_bert.sentence.multi_vector.multi_vector_encoder import MultiVectorEncoder
    from wordpiece_bert.sentence.sparse.sparse_encoder import SparseEncoder
    from wordpiece_bert.serve.batching import Part
    from wordpiece_bert.serve.fields import TokenRows
    from wordpiece_bert.serve.metrics import Metrics
    from wordpiece_bert.serve.settings import ServerSettings


# Numbers of the vectors that a request compares, which take 128 MB.
_MOST_COMPARED = 1 << 25


class _VectorModel(Prompted):
    """An encoder whose `encode` takes the texts of a batch."""

    encoder: SparseEncoder | MultiVectorEncoder

    @property
    def longest_row(self) -> int | None:
        """The longest row in tokens."""
        return self.encoder.max_seq_length

    @property
    def engine(self) -> EngineInfo:
        """How the encoder computes on this machine."""
        return self.encoder.engine

    def described(self) -> dict[str, Any]:
        """Return what the list of models says of it."""
        return {
            **super().described(),
            "dimension": self.encoder.dimension,
            "prompts": sorted(self.encoder.prompts),
        }

    async def _embed(self, given: list[str] | TokenRows, options: Options, before: int | None = None) -> Answer:
        """Return the vectors of texts, a result for each, as from `encode`, or for a task.

        `before` are the tokens of the texts that these are compared with: the vectors of all are in memory together.
        """
        self.refuse_max_length(options)
        plain = self.texts_of(given, "its rows of queries and of documents differ")
        prefix = prefix_of(self.encoder, self.settings, options)
        texts = [prefix + text for text in plain]
        counted = await self._counted(texts, self.longest_row)
        if before is not None:
            tokens = before + len(counted.ids)
            check_tokens(tokens, self.settings.max_tokens)
            self.check_numbers(tokens * self.encoder.dimension, _MOST_COMPARED, "the vectors to compare have")
        task = options.task(self.settings.prompt_name)
        results = await self._results(texts, counted.lengths, task)
        truncated = np.array([cut for _, cut in results], np.bool_)
        self.check_truncated(truncated, options)
        return Answer([row for row, _ in results], truncated, len(counted.ids))

    def _run(self, task: str | None, parts: Sequence[Part]) -> list[tuple[Any, bool]]:
        texts = [text for part in parts for text in part.rows[part.start : part.stop]]
        vectors, truncated = self.encoder.encode(texts, prompt="", task=task, return_truncated=True)
        return list(zip(self._rows_of(vectors), truncated.tolist(), strict=True))

    def _rows_of(self, vectors: Any) -> list[Any]:
        raise NotImplementedError


class SparseModel(_VectorModel, MakesSparse):
    """A sparse encoder behind a queue."""

    kind: ClassVar[str] = "sparse"

    def __init__(self, name: str, encoder: SparseEncoder, settings: ServerSettings, metrics: Metrics) -> None:
        super().__init__(name, encoder.tokenizer, settings, metrics)
        self.encoder: SparseEncoder = encoder
        prefix_of(encoder, settings)

    async def embed_sparse(self, texts: list[str], options: Options) -> Answer:
        """Return the sparse vectors of texts, as from `SparseEncoder.encode`, or for a task."""
        answer = await self._embed(texts, options)
        self.check_numbers(2 * sum(len(row.values) for row in answer.values))
        return answer

    def _rows_of(self, vectors: Any) -> list[SparseRow]:
        return sparse_rows(vectors)


class MultiVectorModel(_VectorModel, MakesTokenVectors):
    """A multi-vector encoder behind a queue: the vectors of tokens, and late interaction."""

    kind: ClassVar[str] = "multi-vector"

    def __init__(self, name: str, encoder: MultiVectorEncoder, settings: ServerSettings, metrics: Metrics) -> None:
        super().__init__(name, encoder.tokenizer, settings, metrics)
        self.encoder: MultiVectorEncoder = encoder
        prefix_of(encoder, settings)

    async def embed_tokens(self, texts: list[str] | TokenRows, options: Options) -> Answer:
        """Return the vectors of each text's tokens, [tokens, d] each."""
        answer = await self._embed(texts, options)
        self.check_numbers(sum(row.size for row in answer.values))
        return answer

    async def rank(self, query: str, documents: list[str], options: Options) -> Answer:
        """Return the score of each document, [n], as `MultiVectorEncoder.rank` does."""
        return await self.score([query], documents, options)

    async def score(self, left: list[str], right: list[str], options: Options) -> Answer:
        """Return the score of each document of `right` with its query of `left`, or with the only one, [n]."""
        one = await self._embed(left, options._replace(role="query"))
        other = await self._embed(right, options._replace(role="document"), one.tokens)
        if len(left) == 1:
            scores = (await asyncio.to_thread(self.encoder.similarity, one.values, other.values))[0]
        else:
            scores = await asyncio.to_thread(self.encoder.similarity_pairwise, one.values, other.values)
        return Answer(scores, one.truncated | other.truncated, one.tokens + other.tokens)

    def _rows_of(self, vectors: Any) -> list[Any]:
        return [vectors[index] for index in range(len(vectors))]
