"""Sentence encoders behind a queue: a vector for each text, or for each of its tokens."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from wordpiece_bert.sentence.dense.body import Call
from wordpiece_bert.sentence.dense.late_chunking import tokens_of_texts
from wordpiece_bert.sentence.dense.parts import body_of, transformer_of
from wordpiece_bert.sentence.dense.table import TableBody
from wordpiece_bert.sentence.folders.modules import Normalize
from wordpiece_bert.serve.errors import RequestError
from wordpiece_bert.serve.fields import TokenRows
from wordpiece_bert.serve.kinds.outputs import MakesTokenVectors, MakesVectors
from wordpiece_bert.serve.kinds.served_model import Answer, Options, check_tokens, prefix_of
from wordpiece_bert.tokenizer.ragged_batch import RaggedBatch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wordpiece_bert.bert.engines import EngineInfo
    from wordpiece_bert.sentence.dense.sentence_encoder import SentenceEncoder
    from wordpiece_bert.serve.batching import Part
    from wordpiece_bert.serve.metrics import Metrics
    from wordpiece_bert.serve.settings import ServerSettings

# The most rows that go through the NumPy engine at once.
_ROWS = 32


class _Key(NamedTuple):
    """What rows of one batch have in common."""

    #: How many tokens at the start of each row are not pooled.
    skip: int
    #: Whether the results are the vectors of tokens.
    tokens: bool


class DenseModel(MakesVectors, MakesTokenVectors):
    """A sentence encoder behind a queue."""

    kind: ClassVar[str] = "embedding"

    def __init__(self, name: str, encoder: SentenceEncoder, settings: ServerSettings, metrics: Metrics) -> None:
        super().__init__(name, encoder.tokenizer, settings, metrics)
        self.encoder: SentenceEncoder = encoder
        folder = body_of(encoder).folder
        normalizes = bool(folder.modules) and isinstance(folder.modules[-1], Normalize)
        has_length_1 = normalizes or getattr(folder, "least_length", None) is not None
        self.normalizes = has_length_1 and encoder.truncate_dim is None  # what is cut is shorter
        prefix_of(encoder, settings)  # a prompt that the model does not have is found at the start

    @property
    def longest_row(self) -> int:
        """The longest row in tokens."""
        return self.encoder.max_seq_length

    @property
    def engine(self) -> EngineInfo:
        """How the encoder computes on this machine."""
        return self.encoder.engine

    @property
    def dimension(self) -> int:  # type: ignore[override]
        """The width of a vector."""
        return self.encoder.dimension

    @property
    def pooling(self) -> str:  # type: ignore[override]
        """How the vectors of tokens become one."""
        return ", ".join(body_of(self.encoder).folder.pooling.modes)

    async def embed(self, texts: list[str] | TokenRows, options: Options, *, dimensions: int | None = None) -> Answer:
        """Return the vectors of texts, [n, d], as `SentenceEncoder.encode` does.

        With fewer `dimensions` the vectors are truncated, and normalized again if the model normalizes them.
        """
        self.check_dimensions(dimensions)
        rows, skip = await self._rows(texts, options)
        vectors = await self._results(rows, rows.lengths, _Key(skip, tokens=False))
        return Answer(self.shortened(vectors, dimensions), rows.truncated, len(rows.ids))

    async def embed_tokens(self, texts: list[str] | TokenRows, options: Options) -> Answer:
        """Return the vectors of each text's tokens, [tokens, H] each, as with ``output_value="token_embeddings"``."""
        rows, _ = await self._rows(texts, options)
        self.check_numbers(len(rows.ids) * transformer_of(self.encoder).model.config.hidden_size)
        vectors = await self._results(rows, rows.lengths, _Key(0, tokens=True))
        return Answer(vectors, rows.truncated, len(rows.ids))

    async def embed_chunks(self, chunks: list[str], options: Options, *, dimensions: int | None = None) -> Answer:
        """Return the vectors of chunks of one text, [n, d], as `SentenceEncoder.encode_chunks` does.

        The text is all chunks, with a space between two. It is never truncated, since the last chunks would be missing.
        """
        self.check_dimensions(dimensions)
        body = transformer_of(self.encoder)
        body.check_pools_chunks()
        text = " ".join(chunks)
        rows, _ = await self._rows([text], options._replace(truncate=True))
        longest_row = self._longest_row_of(options)
        if rows.truncated.any():
            message = f"with late_chunking all texts are one row, and have more than {longest_row} tokens: send fewer"
            raise RequestError(400, message, param="late_chunking", code="text_too_long")
        prefix = prefix_of(self.encoder, self.settings, options)
        tokens = await self.tokenized(
            lambda: tokens_of_texts(self.tokenizer, [text], prefix, longest_row, 1), len(text)
        )
        [states] = await self._results(rows, rows.lengths, _Key(0, tokens=True))
        ends = np.cumsum([len(chunk) + 1 for chunk in chunks], dtype=np.int64)
        starts = np.concatenate([np.zeros(1, np.int64), ends[:-1]])
        spans = np.stack([starts, ends - 1], axis=1)
        vectors = await asyncio.to_thread(body.vectors_of_chunks, states, tokens.starts[0], spans)
        return Answer(
            self.shortened(vectors[:, : self.dimension], dimensions), np.zeros(len(chunks), np.bool_), len(rows.ids)
        )

    async def _rows(self, texts: list[str] | TokenRows, options: Options) -> tuple[RaggedBatch, int]:
        """Return the rows of texts, and how many tokens at the start of each are not pooled."""
        longest_row = self._longest_row_of(options)
        if isinstance(texts, TokenRows):
            return self._given(texts, longest_row, options), 0
        prefix = prefix_of(self.encoder, self.settings, options)
        body, call = transformer_of(self.encoder), Call(prefix=prefix, max_seq_length=longest_row)
        self.check_characters(texts)
        rows: RaggedBatch = await self.tokenized(lambda: body.rows(texts, call), sum(map(len, texts)))
        check_tokens(len(rows.ids), self.settings.max_tokens)
        self.check_truncated(rows.truncated, options, longest_row)
        return rows, body.skipped(call)

    def _longest_row_of(self, options: Options) -> int:
        if options.max_length is None:
            return self.longest_row
        added = self.tokenizer.num_special_tokens_to_add()
        if not added < options.max_length <= self.longest_row:
            message = f"a row of the model {self.name!r} has from {added + 1} to {self.longest_row} tokens"
            raise RequestError(400, f"{message}, not {options.max_length}")
        return options.max_length

    def _given(self, given: TokenRows, longest_row: int, options: Options) -> RaggedBatch:
        """Return rows whose ids are given, special tokens and a prompt's included."""
        if options.prompt_name is not None:
            raise RequestError(400, "a prompt is put before texts, not before token ids", param="prompt_name")
        if prefix_of(self.encoder, self.settings, options) != prefix_of(self.encoder, self.settings):
            message = (
                f"input_type (or task) chooses a prompt for {options.role!r}, which is put before texts, not before "
                "token ids: leave it out"
            )
            raise RequestError(400, message, param="input_type", code="not_served")
        size = transformer_of(self.encoder).model.config.vocab_size
        for index, row in enumerate(given):
            if not row or len(row) > longest_row:
                message = f"row {index} has {len(row)} token ids; a row of the model has from 1 to {longest_row}"
                raise RequestError(400, message, code="text_too_long")
            if not 0 <= min(row) <= max(row) < size:
                message = f"row {index} has token ids outside of the model's vocabulary, 0 to {size - 1}"
                raise RequestError(400, message, code="token_ids")
        check_tokens(sum(map(len, given)), self.settings.max_tokens)
        ends = np.cumsum([0, *map(len, given)], dtype=np.int64)
        ids = np.fromiter((id_ for row in given for id_ in row), np.uint32, int(ends[-1]))
        return RaggedBatch(ids=ids, row_offsets=ends, truncated=np.zeros(len(given), np.bool_))

    def _run(self, key: _Key, parts: Sequence[Part]) -> Any:
        rows = _joined([_rows_of(part) for part in parts])
        body = transformer_of(self.encoder)
        if key.tokens:
            return body.vectors_of_tokens(rows, _ROWS)
        return body.pooled(rows, _ROWS, key.skip)[:, : self.dimension]


class StaticModel(DenseModel):
    """A static encoder. A text takes microseconds, so nothing is gained by batches over requests."""

    async def embed(self, texts: list[str] | TokenRows, options: Options, *, dimensions: int | None = None) -> Answer:
        """Return the vectors of texts, [n, d], as `SentenceEncoder.encode` does."""
        self.check_dimensions(dimensions)
        self.refuse_max_length(options)
        plain = self.texts_of(texts, "its rows have no special tokens, and need no limit of its own")
        self.check_characters(plain)
        prefix = prefix_of(self.encoder, self.settings, options)
        tokenizer = self.tokenizer

        def encode() -> Answer:
            rows = tokenizer.encode_batch(
                [prefix + text for text in plain], add_special_tokens=False, truncation=False, padding=False, threads=1
            )
            tokens = int(np.minimum(rows.lengths, self.longest_row).sum())
            check_tokens(tokens, self.settings.max_tokens)
            vectors, truncated = self.encoder.encode(plain, prompt=prefix, return_truncated=True)
            self.check_truncated(truncated, options)
            return Answer(self.shortened(vectors, dimensions), truncated, tokens)

        answer = await asyncio.to_thread(encode)
        self.metrics.texts.add(len(plain), model=self.name)
        self.metrics.tokens.add(answer.tokens, model=self.name)
        return answer

    async def embed_chunks(self, chunks: list[str], options: Options, *, dimensions: int | None = None) -> Answer:
        """Refuse: the vector of a token does not depend on its text."""
        raise RequestError(400, f"the model {self.name!r} is static: it has no late_chunking", param="late_chunking")

    async def embed_tokens(self, texts: list[str] | TokenRows, options: Options) -> Answer:
        """Refuse: the vector of a token does not depend on its text."""
        raise RequestError(400, f"the model {self.name!r} is static: it has no vectors of tokens in a text")


def dense_model(name: str, encoder: SentenceEncoder, settings: ServerSettings, metrics: Metrics) -> DenseModel:
    """Return a sentence encoder, which may be static, behind a queue."""
    kind = StaticModel if isinstance(body_of(encoder), TableBody) else DenseModel
    return kind(name, encoder, settings, metrics)


def _rows_of(part: Part) -> RaggedBatch:
    rows: RaggedBatch = part.rows
    is_whole = part.start == 0 and part.stop == len(rows)
    return rows if is_whole else rows[part.start : part.stop]


def _joined(batches: Sequence[RaggedBatch]) -> RaggedBatch:
    """Return the rows of batches as one batch."""
    if len(batches) == 1:
        return batches[0]
    before = np.cumsum([0, *(len(batch.ids) for batch in batches)])
    ends = [batch.row_offsets[1:] + start for batch, start in zip(batches, before[:-1].tolist(), strict=True)]
    return RaggedBatch(
        ids=np.concatenate([batch.ids for batch in batches]),
        row_offsets=np.concatenate([before[:1], *ends]),
        truncated=np.concatenate([batch.truncated for batch in batches]),
    )
