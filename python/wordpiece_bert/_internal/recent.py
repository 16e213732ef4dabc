"""A table in bounded memory that keeps what was used last."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Hashable

# What an entry takes beside its key and its value: objects, and their places in the table.
_ENTRY_BYTES = 400


class Recent:
    """Values by key. When there are more bytes than allowed, the values that were not used for longest are dropped.

    Parameters
    ----------
    most : int
        The most bytes.

    Attributes
    ----------
    size : int
        The bytes of all entries.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.size = 0
        self._entries: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()  # what was used last comes last

    def get(self, key: Hashable) -> Any:
        """Return the value of a key, which is never None, or None."""
        if key not in self._entries:
            return None
        self._entries.move_to_end(key)
        return self._entries[key][0]

    def keep(self, key: Hashable, value: Any, size: int) -> None:
        """Keep a value, given the bytes of the key and the value; one that is larger than all entries may be is not."""
        size += _ENTRY_BYTES
        if key in self._entries or size > self.most:
            return
        self._entries[key] = value, size
        self.size += size
        while self.size > self.most:
            self.size -= self._entries.popitem(last=False)[1][1]
