"""Models for sequence classification behind a queue: scores of documents for a query, and labels of texts and pairs."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wordpiece_bert._internal.batching import encoding_batches
from wordpiece_bert.errors import ConfigError
from wordpiece_bert.sentence.parts import config_of, logits_of, prompt_of, scores_of
from wordpiece_bert.serve.errors import RequestError
from wordpiece_bert.serve.kinds.outputs import Classifies
from wordpiece_bert.serve.kinds.served_model import Answer, Options, check_tokens
from wordpiece_bert.serve.pair_encoder import PairEncoder
from wordpiece_bert.tasks.text_classification import FUNCTIONS, default_function

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from wordpiece_bert.bert.engines import EngineInfo
    from wordpiece_bert.sentence.cross_encoder import CrossEncoder
    from wordpiece_bert.serve.batching import Part
    from wordpiece_bert.serve.fields import TokenRows
    from wordpiece_bert.serve.metrics import Metrics
    from wordpiece_bert.serve.settings import ServerSettings

# The most rows that go through the model at once.
_ROWS = 32


class Limits(NamedTuple):
    """The most tokens of a query and of a document; None for no limit but the row's."""

    query: int | None = None
    document: int | None = None


NO_LIMITS = Limits()


class SequenceModel(Classifies):
    """A cross encoder behind a queue. One with a single label ranks; with several it labels texts and pairs."""

    def __init__(self, name: str, ranker: CrossEncoder, settings: ServerSettings, metrics: Metrics) -> None:
        super().__init__(name, ranker.tokenizer, settings, metrics)
        self.ranker = ranker
        self.labels = [config_of(ranker).label(index) for index in range(ranker.num_labels)]
        self._pairs = {ranker.max_length: PairEncoder(ranker.tokenizer, ranker.max_length)}

    @property
    def kind(self) -> str:  # type: ignore[override]
        """``"reranker"`` for a single label, else ``"classifier"``."""
        return "reranker" if self.ranks else "classifier"

    @property
    def ranks(self) -> bool:
        """Whether a score says how relevant a text is."""
        return len(self.labels) == 1

    @property
    def longest_row(self) -> int:
        """The longest row in tokens."""
        return self.ranker.max_length

    @property
    def engine(self) -> EngineInfo:
        """How the model computes on this machine."""
        return self.ranker.engine

    async def rank(
        self,
        query: str,
        documents: list[str],
        options: Options,
        limits: Limits = NO_LIMITS,
        *,
        raw_scores: bool = False,
    ) -> Answer:
        """Return the score of each document, [n], as `CrossEncoder.predict` does."""
        return await self._scored([query], documents, options, limits, raw_scores=raw_scores)

    async def score(self, left: list[str], right: list[str], options: Options, *, raw_scores: bool = False) -> Answer:
        """Return the score of each text of `right` with its text of `left`, or the only one, [n].

        The scores are as from `CrossEncoder.predict`, or before the activation.
        """
        return await self._scored(left, right, options, NO_LIMITS, raw_scores=raw_scores)

    async def _scored(
        self, queries: list[str], documents: list[str], options: Options, limits: Limits, *, raw_scores: bool
    ) -> Answer:
        self._check_ranks()
        prefix = prompt_of(self.ranker)
        encoder = self._pair_encoder(options)
        characters = sum(map(len, queries)) + sum(map(len, documents))
        self.check_characters(chain(queries, documents))
        rows = await self.tokenized(
            lambda: encoder.rows(
                [prefix + query for query in queries], documents, of_query=limits.query, of_document=limits.document
            ),
            characters,
        )
        tokens = int(rows.lengths.sum())
        check_tokens(tokens, self.settings.max_tokens)
        self.check_truncated(rows.truncated, options, encoder.longest_row)
        logits = await self._results(rows, rows.lengths)
        scores = logits if raw_scores else scores_of(self.ranker, logits)
        return Answer(scores[:, 0], rows.truncated, tokens)

    async def classify(
        self, texts: list[str | tuple[str, str]] | TokenRows, options: Options, function: str | None = None
    ) -> Answer:
        """Return the scores of the labels for each text or pair, [n, labels], as `tasks.classify`."""
        plain = self.texts_of(texts, "send the texts or pairs of which rows are made")
        self.check_numbers(2 * len(plain) * len(self.labels))  # scores, and the names of labels
        answer = await self._logits(plain, options)
        name = function or default_function(config_of(self.ranker))
        return answer._replace(values=FUNCTIONS[name](answer.values))

    async def _logits(self, texts: Sequence[str | tuple[str, str]], options: Options) -> Answer:
        encoder = self._pair_encoder(options)
        self.check_characters(chain.from_iterable([text] if isinstance(text, str) else text for text in texts))
        rows, lengths, truncated = await self.tokenized(
            lambda: _rows_of(encoder, texts),
            sum(len(text) if isinstance(text, str) else sum(map(len, text)) for text in texts),
        )
        tokens = int(lengths.sum())
        check_tokens(tokens, self.settings.max_tokens)
        self.check_truncated(truncated, options, encoder.longest_row)
        return Answer(await self._results(rows, lengths), truncated, tokens)

    def _pair_encoder(self, options: Options) -> PairEncoder:
        """Return what makes rows of at most as many tokens as a request allows."""
        wanted = self.longest_row if options.max_length is None else options.max_length
        if wanted > self.longest_row:
            message = f"a row of the model {self.name!r} has at most {self.longest_row} tokens, not {wanted}"
            raise RequestError(400, message)
        found = self._pairs.get(wanted)
        if found is None:
            try:
                found = PairEncoder(self.tokenizer, wanted)
            except ConfigError as cause:
                raise RequestError(400, str(cause)) from None
            self._pairs[wanted] = found  # as many at most as a row has tokens
        return found

    def _check_ranks(self) -> None:
        if not self.ranks:
            message = f"the model {self.name!r} has {len(self.labels)} labels, so its scores are no ranks: ask /predict"
            raise RequestError(400, message, param="model")

    def _run(self, _: None, parts: Sequence[Part]) -> npt.NDArray[Any]:
        rows = [row for part in parts for row in part.rows[part.start : part.stop]]
        logits = np.zeros((len(rows), len(self.labels)), np.float32)
        for batch in encoding_batches(rows, _ROWS):
            logits[batch.encodings] = logits_of(self.ranker, batch.inputs)[batch.rows]
        return logits


def _rows_of(
    encoder: PairEncoder, texts: Sequence[str | tuple[str, str]]
) -> tuple[list[Any], npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Return the rows of texts and pairs in their order, their lengths, and which are truncated."""
    singles = [index for index, text in enumerate(texts) if isinstance(text, str)]
    pairs = [index for index, text in enumerate(texts) if not isinstance(text, str)]
    rows: list[Any] = [None] * len(texts)
    truncated = np.zeros(len(texts), np.bool_)
    if singles:
        found, cut = encoder.singles([text for text in texts if isinstance(text, str)])
        truncated[singles] = cut
        for index, row in zip(singles, found, strict=True):
            rows[index] = row
    if pairs:
        of_pairs = encoder.pairs([text for text in texts if not isinstance(text, str)])
        truncated[pairs] = of_pairs.truncated
        for index, row in zip(pairs, of_pairs[0 : len(pairs)], strict=True):
            rows[index] = row
    return rows, np.array([len(row) for row in rows], np.int64), truncated
