"""What token stores, data sets, masking and reports give to other modules of this package.

The classes are described by what is read of them, so that their own modules can use these functions, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wordpiece_bert import _core
    from wordpiece_bert._internal.safe_json import JsonObject
    from wordpiece_bert.tokenizer.tokenizer import Tokenizer

__all__ = [
    "check_offsets",
    "entries_of",
    "lines_of",
    "masked_rows",
    "masking_options",
    "options_of",
    "rules_of",
    "shards_of",
    "tokenizer_of",
]


class Masks(Protocol):
    """A `Masking`."""

    _options: dict[str, Any]
    _rules: _core.MaskingRules
    _tokenizer: Tokenizer

    def _ragged(self, ids: Any, lengths: Any, seed: int) -> Any: ...


class Store(Protocol):
    """A `TokenStore`."""

    _index: JsonObject


class Shard(Protocol):
    """A `StoreShard`."""

    def _check_offsets(self) -> None: ...


class Examples(Protocol):
    """A `PretrainingDataset`."""

    _shards: list[JsonObject]

    @property
    def masking(self) -> Masks | None: ...


class Report(Protocol):
    """An `ExamplesReport`."""

    def _lines(self) -> Iterator[tuple[str, str]]: ...


def entries_of(store: Store) -> list[JsonObject]:
    """Return the shards of a token store as its index has them."""
    entries: list[JsonObject] = store._index["shards"]
    return entries


def check_offsets(shard: Shard) -> None:
    """Check that the offsets of a shard ascend from 0 to the number of what they divide.

    Raises
    ------
    InputError
        They do not.
    """
    shard._check_offsets()


def shards_of(dataset: Examples) -> list[JsonObject]:
    """Return the shards of an example folder as its index has them: rows, pass and files, in the order of rows."""
    return dataset._shards


def masking_options(dataset: Examples) -> dict[str, Any] | None:
    """Return the options of the masks that are drawn on reading; None without such."""
    return None if dataset.masking is None else options_of(dataset.masking)


def options_of(masking: Masks) -> dict[str, Any]:
    """Return the options of the core's rules."""
    return masking._options


def rules_of(masking: Masks) -> _core.MaskingRules:
    """Return the core's rules."""
    return masking._rules


def tokenizer_of(masking: Masks) -> Tokenizer:
    """Return the tokenizer whose ids are masked."""
    return masking._tokenizer


def masked_rows(masking: Masks, ids: Any, lengths: Any, seed: int) -> Any:
    """Mask rows that lie one after the other; return their ids and labels."""
    return masking._ragged(ids, lengths, seed)


def lines_of(report: Report) -> Iterator[tuple[str, str]]:
    """Return the lines of a report: what they are about, and a number."""
    return report._lines()
