"""The routes of a sparse encoder: what turns texts into sparse vectors."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from wordpiece_bert._internal.progress import notify
from wordpiece_bert.bert.auto import load_any
from wordpiece_bert.bert.engines import describe_engine
from wordpiece_bert.bert.heads.kinds import MaskedLM
from wordpiece_bert.errors import ConfigError
from wordpiece_bert.sentence.folders.sparse import SpladeFolder, StaticWeights
from wordpiece_bert.sentence.rows import model_tokenizer, passes, rows_of
from wordpiece_bert.sentence.sparse.sparse_vectors import SparseVectors, joined

if TYPE_CHECKING:
    import numpy.typing as npt

    from wordpiece_bert.bert.engines import EngineInfo
    from wordpiece_bert.bert.engines.engine_interface import VocabularyHead
    from wordpiece_bert.bert.loading import Loading
    from wordpiece_bert.sentence.folders.sparse import Route
    from wordpiece_bert.tokenizer.subword import AnyTokenizer
    from wordpiece_bert.tokenizer.tokenizer import Tokenizer

__all__ = ["RunsRoute", "SpladeRoute", "load_route"]

#: The most tokens of one call of the Rust engine: half as many as in `SentenceEncoder`, because the head doubles the
#: work of a small model.
TOKENS_PER_CALL = 8192


class RunsRoute(Protocol):
    """Turns texts into vectors."""

    @property
    def tokenizer(self) -> AnyTokenizer:
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
    tokenizer: AnyTokenizer
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
        """The model's engine."""
        return self.model.engine

    def run(
        self, texts: list[str], batch_size: int, most: int | None, *, progress: bool
    ) -> tuple[SparseVectors, npt.NDArray[np.bool_]]:
        """Run the model over texts, as `RunsRoute.run`."""
        rows = rows_of(self.tokenizer, texts, self.folder.max_seq_length, self.threads)
        most = None if most is None or most >= self.dimension else most
        batches = passes(self.model.base_model, rows, batch_size, TOKENS_PER_CALL)
        parts: list[SparseVectors] = []
        for batch in batches.shown(show=progress):
            x, ends = self.model.base_model.token_states(rows, batch, threads=self.threads)  # [tokens, H]
            pooled = self.head.encode(
                x, ends, self.folder.pooling, twice=self.folder.twice, max_values=most, threads=self.threads
            )
            parts.append(SparseVectors(*pooled, (len(ends) - 1, self.dimension)))
        vectors = joined(parts, self.dimension)
        order = batches.order()
        return vectors if order is None else vectors[order], rows.truncated

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
        """The engine of a table of weights, which are copied and not multiplied."""
        engine = describe_engine("rust", "float32", requested="float32")
        return replace(engine, reason="the weights of tokens are read from a table in float32")

    def run(
        self, texts: list[str], batch_size: int, most: int | None, *, progress: bool
    ) -> tuple[SparseVectors, npt.NDArray[np.bool_]]:
        del batch_size, progress
        rows = self.tokenizer.encode_batch(
            texts,
            add_special_tokens=False,
            truncation=self.max_seq_length is not None,
            max_length=self.max_seq_length,
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


def load_route(route: Route, loading: Loading, threads: int | None) -> RunsRoute:
    """Load what computes a route."""
    if isinstance(route, StaticWeights):
        return StaticRoute(route, threads)
    # The tokenizer comes before the weights, which take longer to read.
    tokenizer = model_tokenizer(route.transformer, lowercase=route.do_lower_case, word_splitter=loading.word_splitter)
    model = load_any(route.transformer, loading)
    if not isinstance(model, MaskedLM):
        raise ConfigError(
            f"{route.transformer}: a sparse encoder is a masked-language model, not {type(model).__name__}"
        )
    return SpladeRoute(route, model, model.vocabulary_head(), tokenizer, threads)
