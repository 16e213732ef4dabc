"""What the programs of rankers have in common: they are asked for the scores of pairs of texts only."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import NoReturn

    from model_worker import Model


class Ranking:
    """An engine whose `texts` takes one query with each of its documents, [query, document], and returns scores [n]."""

    def prepare(self, model: Model) -> None:
        """Nothing is converted."""

    def forward(self, rows: list[list[int]], batch: int) -> NoReturn:
        raise NotImplementedError
