"""The routes of a sparse encoder: what turns texts into sparse vectors."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from wordpiece_bert._internal.batching import sorted_batches, token_runs, with_progress
from wordpiece_bert._internal.progress import notify
from wordpiece_bert._internal.texts import check_tokens
from wordpiece_bert.bert.auto import AutoModel
from wordpiece_bert.bert.engines import describe_engine
from wordpiece_bert.bert.heads.kinds import MaskedLM
from wordpiece_bert.errors import ConfigError
from wordpiece_bert.sentence.encoder import with_lowercase
from wordpiece_bert.sentence.sparse_folder import SpladeFolder, StaticWeights
from wordpiece_bert.sentence.sparse_vectors import SparseVectors
from wordpiece_bert.subword import tokenizer_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from wordpiece_bert.bert.engines import EngineInfo
    from wordpiece_bert.bert.engines.base import VocabularyHead
    from wordpiece_bert.sentence.sparse_folder import Route
    from wordpiece_bert.tokenizer import Tokenizer

__all__ = ["RunsRoute", "SpladeRoute", "load_route"]

#: The most tokens of one call of the Rust engine: half as many as in `SentenceEncoder`, because the head doubles the
#: work of a small model.
TOKENS_PER_CALL = 8192


class RunsRoute(Protocol):
    """Turns texts into vectors."""

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer."""

    @property
    def dimension(self) -> int:
        """The width of the vectors."""

    @property
    def max_seq_length(self) -> int | None:
        """The longest row in tokens; None for no limit."""

    @property
    def engine(self) -> EngineInfo:
        """How the route computes on this machine."""

    def run(
        self, texts: list[str], batch_size: int, most: int | None, *, progress: bool
    ) -> tuple[SparseVectors, npt.NDArray[np.bool_]]:
        """Return the vectors of texts, and which were truncated."""


class SpladeRoute(NamedTuple):
    """A masked-language model whose logits are pooled over the tokens of a text."""

    folder: SpladeFolder
    model: MaskedLM
    head: VocabularyHead
    tokenizer: Tokenizer
    threads: int | None

    @property
    def dimension(self) -> int:
        """V."""
        return self.model.config.vocab_size

    @property
    def max_seq_length(self) -> int | None:
        """The longest row in tokens."""
        return self.folder.max_seq_length

    @property
    def engine(self) -> EngineInfo:
        """That of the model."""
        return self.model.engine

    def run(
        self, texts: list[str], batch_size: int, most: int | None, *, progress: bool
    ) -> tuple[SparseVectors, npt.NDArray[np.bool_]]:
        """Run the model over texts, as `RunsRoute.run`."""
        rows = self.tokenizer.encode_batch(
            texts,
            truncation=True,
            max_length=self.folder.max_seq_length,
            stride=0,
            padding=False,
            threads=self.threads,
        )
        check_tokens(texts, rows.lengths)
        most = None if most is None or most >= self.dimension else most
        takes_rows = self.model.base_model.takes_rows
        batches: list[slice | npt.NDArray[np.intp]]
        batches = [*(token_runs(rows, TOKENS_PER_CALL) if takes_rows else sorted_batches(rows.lengths, batch_size))]
        parts: list[SparseVectors] = []
        for batch in with_progress(batches, show=progress, lengths=rows.lengths):
            x, ends = self.model.base_model.token_states(rows, batch, threads=self.threads)  # [tokens, H]
            pooled = self.head.encode(
                x, ends, self.folder.pooling, twice=self.folder.twice, max_values=most, threads=self.threads
            )
            parts.append(SparseVectors(*pooled, (len(ends) - 1, self.dimension)))
        vectors = SparseVectors._joined(parts, self.dimension)
        order = [batch for batch in batches if not isinstance(batch, slice)]
        if order:
            vectors = vectors[np.argsort(np.concatenate(order))]
        return vectors, rows.truncated

    def __repr__(self) -> str:
        return f"{self.folder.pooling} of {self.model!r}"


class StaticRoute(NamedTuple):
    """A weight for each token that a text has."""

    weights: StaticWeights
    threads: int | None

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer."""
        return self.weights.tokenizer

    @property
    def dimension(self) -> int:
        """V."""
        return len(self.weights.weights)

    @property
    def max_seq_length(self) -> int | None:
        """The most tokens of a text that count."""
        return self.weights.max_seq_length

    @property
    def engine(self) -> EngineInfo:
        """That of a table of weights, which are copied and not multiplied."""
        engine = describe_engine("rust", "float32", requested="float32")
        return replace(engine, reason="the weights of tokens are read from a table in float32")

    def run(
        self, texts: list[str], batch_size: int, most: int | None, *, progress: bool
    ) -> tuple[SparseVectors, npt.NDArray[np.bool_]]:
        del batch_size, progress
        longest = self.max_seq_length
        rows = self.tokenizer.encode_batch(
            texts,
            add_special_tokens=False,
            truncation=longest is not None,
            max_length=longest,
            stride=0,
            padding=False,
            threads=self.threads,
        )
        notify(len(rows), len(rows.ids))
        row = np.repeat(np.arange(len(rows)), rows.lengths)
        present = np.unique(row * self.dimension + rows.ids.astype(np.int64))  # each token of a text once, in order
        row, columns = np.divmod(present, self.dimension)
        values = self.weights.weights[columns]
        kept = values != 0
        indptr = np.searchsorted(row[kept], np.arange(len(rows) + 1))
        vectors = SparseVectors(indptr, columns[kept], values[kept], (len(rows), self.dimension))
        return vectors if most is None else vectors.top(most), rows.truncated

    def __repr__(self) -> str:
        return f"weights of {self.dimension} tokens"


def load_route(
    route: Route,
    threads: int | None,
    backend: str,
    dtype: str,
    *,
    keep_half: bool,
    calibrate: Sequence[str] | None = None,
) -> RunsRoute:
    """Load what computes a route."""
    if isinstance(route, StaticWeights):
        return StaticRoute(route, threads)
    model = AutoModel.from_pretrained(route.transformer, backend, dtype, keep_half=keep_half, calibrate=calibrate)
    if not isinstance(model, MaskedLM):
        raise ConfigError(
            f"{route.transformer}: a sparse encoder is a masked-language model, not {type(model).__name__}"
        )
    tokenizer = tokenizer_of(route.transformer)
    if any(tokenizer.encode("a", truncation=False, padding=False).token_type_ids):
        raise ConfigError(f"{route.transformer}: the tokenizer assigns a token type other than 0 to a single text")
    tokenizer = with_lowercase(tokenizer) if route.do_lower_case else tokenizer
    return SpladeRoute(route, model, model.vocabulary_head(), tokenizer, threads)
