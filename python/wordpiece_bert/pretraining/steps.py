"""The rows of one pass over one shard of a token store, counted while they are made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wordpiece_bert.pretraining.tally import Tally

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wordpiece_bert import _core
    from wordpiece_bert.pretraining.row_options import RowOptions
    from wordpiece_bert.pretraining.store import TokenStore

# Tokens of rows after which the mapped pages of a shard are released: 64 MB of 16-bit ids.
_RELEASED_AT_ONCE = 1 << 25


class Step:
    """One pass over one shard.

    Parameters
    ----------
    store : TokenStore
        The store.
    options : RowOptions
        What rows are made.
    pass_number, shard_number : int
        The pass and the shard.
    threads : int or None
        How many threads the work is done on; None for the default.

    Attributes
    ----------
    tally : Tally
        What the blocks so far consist of; complete after the last one.
    """

    def __init__(
        self, store: TokenStore, options: RowOptions, pass_number: int, shard_number: int, threads: int | None
    ) -> None:
        self._shard = store.shards[shard_number]
        self._builder = options.builder(self._shard, pass_number, threads)
        self.tally = Tally(options.row_length)

    def blocks(self) -> Iterator[_core.ExampleBlock]:
        """Yield the rows, block by block."""
        released = 0
        while (block := self._builder.next_block()) is not None:
            self.tally.add(block)
            yield block
            if self.tally.tokens - released >= _RELEASED_AT_ONCE:
                self._shard.release()
                released = self.tally.tokens
        self.tally.add_counts(self._builder.counts)
        self._shard.release()


def steps_of(store: TokenStore, options: RowOptions) -> list[tuple[int, int]]:
    """Return the passes and shards in the order of rows."""
    return [(pass_number, shard) for pass_number in range(options.dupe_factor) for shard in range(len(store.shards))]
