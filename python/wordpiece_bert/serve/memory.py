"""The bytes of requests that are in memory: one number for all connections, with a bound."""

from __future__ import annotations

from wordpiece_bert.serve.errors import RequestError


class Memory:
    """How many bytes the bodies and answers of all requests have, and how many they may have.

    Parameters
    ----------
    most : int
        The bound.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.used = 0


class Held:
    """The bytes that one request holds of a memory.

    Parameters
    ----------
    memory : Memory
        The memory.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._size = 0

    def change(self, size: int) -> None:
        """Hold more bytes, or fewer.

        Raises
        ------
        RequestError
            With status 503: the server has no room for them.
        """
        if size > 0 and self._memory.used + size > self._memory.most:
            message = (
                f"the requests of all clients have {self._memory.used} bytes in bodies and answers, of the server's "
                f"limit of {self._memory.most}; try again in 1 s"
            )
            raise RequestError(503, message, code="out_of_memory", retry_after=1)
        self._memory.used += size
        self._size += size

    def release(self) -> None:
        """Hold nothing."""
        self.change(-self._size)
