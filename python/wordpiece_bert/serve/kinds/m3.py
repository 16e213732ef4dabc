"""BGE-M3 behind a queue: the vector, the sparse vector and the vectors of the tokens of a text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np

from wordpiece_bert.serve.kinds.outputs import MakesSparse, MakesTokenVectors, MakesVectors, sparse_rows
from wordpiece_bert.serve.kinds.served_model import Answer, Options, prefix_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wordpiece_bert.bert.engines import EngineInfo
    from wordpiece_bert.sentence.m3.m3_encoder import M3Encoder
    from wordpiece_bert.serve.batching import Part
    from wordpiece_bert.serve.fields import TokenRows
    from wordpiece_bert.serve.metrics import Metrics
    from wordpiece_bert.serve.settings import ServerSettings
    from wordpiece_bert.tokenizer.ragged_batch import RaggedBatch

_Output: TypeAlias = Literal["dense", "sparse", "colbert"]


class _Row(NamedTuple):
    """A text of a request, and what it wants of it; a batch may have requests of all three kinds."""

    text: str
    output: _Output


class M3Model(MakesVectors, MakesSparse, MakesTokenVectors):
    """BGE-M3 behind a queue: one pass makes what requests of all three kinds want."""

    kind: ClassVar[str] = "m3"
    normalizes = True
    pooling = "cls"

    def __init__(self, name: str, encoder: M3Encoder, settings: ServerSettings, metrics: Metrics) -> None:
        super().__init__(name, encoder.tokenizer, settings, metrics)
        self.encoder: M3Encoder = encoder
        self.dimension = encoder.dimension
        self._width = encoder.encode(["a"]).colbert.vectors.shape[1]  # of the vector of a token
        prefix_of(encoder, settings)

    @property
    def longest_row(self) -> int:
        """The longest row in tokens."""
        return self.encoder.max_seq_length

    @property
    def engine(self) -> EngineInfo:
        """How the encoder computes on this machine."""
        return self.encoder.engine

    async def embed(self, texts: list[str] | TokenRows, options: Options, *, dimensions: int | None = None) -> Answer:
        """Return the vectors of texts, [n, d]: ``dense`` of `M3Encoder.encode`."""
        self.check_dimensions(dimensions)
        given, rows = await self._counted_texts(texts, options)
        answer = await self._answer(given, rows, "dense")
        return answer._replace(values=self.shortened(np.stack(answer.values), dimensions))

    async def embed_sparse(self, texts: list[str], options: Options) -> Answer:
        """Return the weights of the tokens of each text: ``sparse`` of `M3Encoder.encode`."""
        given, rows = await self._counted_texts(texts, options)
        return await self._answer(given, rows, "sparse")

    async def embed_tokens(self, texts: list[str] | TokenRows, options: Options) -> Answer:
        """Return the vectors of each text's tokens but the first: ``colbert`` of `M3Encoder.encode`."""
        given, rows = await self._counted_texts(texts, options)
        self.check_numbers((len(rows.ids) - len(rows)) * self._width)
        return await self._answer(given, rows, "colbert")

    async def _counted_texts(self, texts: list[str] | TokenRows, options: Options) -> tuple[list[str], RaggedBatch]:
        self.refuse_max_length(options)
        plain = self.texts_of(texts, "a batch may also have its sparse vectors, which are of texts")
        prefix = prefix_of(self.encoder, self.settings, options)
        given = [prefix + text for text in plain]
        rows = await self._counted(given, self.longest_row)
        self.check_truncated(rows.truncated, options)
        return given, rows

    async def _answer(self, texts: list[str], rows: RaggedBatch, output: _Output) -> Answer:
        values = await self._results([_Row(text, output) for text in texts], rows.lengths)
        return Answer(values, rows.truncated, len(rows.ids))

    def _run(self, _: None, parts: Sequence[Part]) -> list[Any]:
        rows: list[_Row] = [row for part in parts for row in part.rows[part.start : part.stop]]
        vectors, _truncated = self.encoder.encode([row.text for row in rows], return_truncated=True)
        sparse = sparse_rows(vectors.sparse) if any(row.output == "sparse" for row in rows) else []
        found: list[Any] = []
        for index, row in enumerate(rows):
            if row.output == "dense":
                found.append(vectors.dense[index])
            elif row.output == "sparse":
                found.append(sparse[index])
            else:
                found.append(vectors.colbert[index].copy())  # a view would keep the vectors of all texts
        return found
