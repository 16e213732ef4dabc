"""Token classifiers and masked-language models behind a queue: entities of texts, and tokens for their masks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from wordpiece_bert.serve.errors import RequestError
from wordpiece_bert.serve.kinds.served_model import Answer, Options, Served
from wordpiece_bert.tasks import fill_mask, ner
from wordpiece_bert.tasks.mask_filling import target_id
from wordpiece_bert.tasks.task_loading import longest_row
from wordpiece_bert.tokenizer.shared_core import blocks
from wordpiece_bert.tokenizer.subword import SubwordTokenizer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wordpiece_bert.bert.engines import EngineInfo
    from wordpiece_bert.serve.batching import Part
    from wordpiece_bert.serve.metrics import Metrics
    from wordpiece_bert.serve.settings import ServerSettings
    from wordpiece_bert.tasks.task_loading import Loaded
    from wordpiece_bert.tokenizer.ragged_batch import RaggedBatch


class _TaskModel(Served):
    """A model with a head, whose function in `wordpiece_bert.tasks` takes the texts of a batch."""

    def __init__(self, name: str, loaded: Loaded, settings: ServerSettings, metrics: Metrics) -> None:
        super().__init__(name, loaded.tokenizer, settings, metrics)
        self.loaded = loaded

    @property
    def longest_row(self) -> int:
        """The longest row in tokens."""
        return longest_row(self.loaded.model, self.tokenizer)

    @property
    def engine(self) -> EngineInfo:
        """How the model computes on this machine."""
        return self.loaded.model.engine

    async def _tokens(self, texts: list[str], options: Options) -> RaggedBatch:
        """Return the tokens of texts, which are counted before the work."""
        self.refuse_max_length(options)
        rows = await self._counted(texts, self.longest_row)
        self.check_truncated(rows.truncated, options)
        return rows

    async def _answers(self, texts: list[str], rows: RaggedBatch, key: NamedTuple) -> Answer:
        return Answer(await self.batcher.submit(texts, rows.lengths, key), rows.truncated, len(rows.ids))

    def _run(self, key: Any, parts: Sequence[Part]) -> list[Any]:
        texts = [text for part in parts for text in part.rows[part.start : part.stop]]
        if not isinstance(self.tokenizer, SubwordTokenizer):
            return self._answer(texts, key)
        # What is cut off a text takes memory, too.
        return [answer for block in blocks(texts) for answer in self._answer(block, key)]

    def _answer(self, texts: list[str], key: Any) -> list[Any]:
        raise NotImplementedError


class _Entities(NamedTuple):
    strategy: Any
    ignored: tuple[str, ...]


class TokenModel(_TaskModel):
    """A token classifier behind a queue."""

    kind: ClassVar[str] = "token-classifier"

    def described(self) -> dict[str, Any]:
        """Return what the list of models says of it."""
        config = self.loaded.model.config
        return {**super().described(), "labels": [config.label(index) for index in range(config.num_labels)]}

    async def entities(
        self, texts: list[str], options: Options, *, strategy: str = "simple", ignored: Sequence[str] = ("O",)
    ) -> Answer:
        """Return the entities of each text, a list of dicts each, as `tasks.ner` does."""
        return await self._answers(texts, await self._tokens(texts, options), _Entities(strategy, tuple(ignored)))

    def _answer(self, texts: list[str], key: _Entities) -> list[Any]:
        return ner(self.loaded, texts, aggregation_strategy=key.strategy, ignore_labels=key.ignored)


class _Masks(NamedTuple):
    top_k: int
    targets: tuple[str, ...] | None


class MaskModel(_TaskModel):
    """A masked-language model behind a queue."""

    kind: ClassVar[str] = "fill-mask"

    async def fill(
        self, texts: list[str], options: Options, *, top_k: int = 5, targets: Sequence[str] | None = None
    ) -> Answer:
        """Return the tokens for the masks of each text, a list of dicts each, as `tasks.fill_mask` does."""
        rows = await self._tokens(texts, options)
        masks = [int(np.count_nonzero(ids == self.tokenizer.mask_token_id)) for ids in rows]
        if 0 in masks:
            message = (
                f"text {masks.index(0)} has no {self.tokenizer.mask_token} among its first {self.longest_row} tokens"
            )
            raise RequestError(400, message, code="no_mask")
        for index, target in enumerate(targets or ()):
            if target_id(self.tokenizer, target) is None:
                raise RequestError(400, f"targets[{index}] is no token of the model {self.name!r}", param="targets")
        self.check_numbers(sum(masks) * top_k * self.longest_row)
        return await self._answers(texts, rows, _Masks(top_k, None if targets is None else tuple(targets)))

    def _answer(self, texts: list[str], key: _Masks) -> list[Any]:
        return fill_mask(self.loaded, texts, top_k=key.top_k, targets=key.targets)
