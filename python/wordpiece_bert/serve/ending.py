"""The end of the server: every request that a client has sent gets an answer, and then the connections are closed.

A connection that is closed while the kernel has bytes for it, or waits to be accepted, is reset, and the client cannot
know what became of its request. So the socket goes on listening until the requests that had begun are answered, and
every answer says that its connection ends. Then no new connection is let in, those that wait are accepted, and only
those that are idle for a moment are closed.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import selectors
import socket
import struct
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvicorn

if TYPE_CHECKING:
    from collections.abc import Callable

# Seconds after which a connection is idle: its client may be between two requests.
_IDLE = 1.0
# Seconds in which a connection that has begun is made, and the loop accepts it.
_HANDSHAKE = 0.1
# Seconds between looks at the connections.
_TICK = 0.02


class DrainingServer(uvicorn.Server):  # type: ignore[misc, unused-ignore]
    """A server of uvicorn that loses no request when it ends.

    Its protocol class has ``idle_since``, and its application answers with ``Connection: close`` when
    `uvicorn.Server.should_exit` is set.

    Parameters
    ----------
    config : uvicorn.Config
        The configuration.
    seconds : float
        How long requests have to finish.
    """

    def __init__(self, config: uvicorn.Config, seconds: float) -> None:
        super().__init__(config)
        self._seconds = seconds

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Answer what was sent, within the time that there is, and close."""
        listeners = sockets or []
        now = asyncio.get_running_loop().time
        end = now() + self._seconds
        begun = set(self.server_state.tasks)
        await self._wait(lambda: all(task.done() for task in begun), end - _HANDSHAKE - _IDLE)
        for listener in listeners:
            _let_nobody_in(listener)
        await self._wait(lambda: False, now() + _HANDSHAKE)
        await self._wait(lambda: not any(map(_has_visitors, listeners)), end)
        for server in self.servers:
            server.close()
        await self._wait(self._close_idle, end)
        # What is left is cancelled, and answered with 503.
        self.config.timeout_graceful_shutdown = max(0, end - now())  # type: ignore[assignment, unused-ignore]
        await super().shutdown(sockets)

    async def _wait(self, done: Callable[[], bool], end: float) -> None:
        """Wait until something is done, or for the end, or a second signal."""
        loop = asyncio.get_running_loop()
        while not self.force_exit and not done() and loop.time() < end:
            await asyncio.sleep(_TICK)

    def _close_idle(self) -> bool:
        """Close the connections that are idle, and return whether there were none."""
        before = asyncio.get_running_loop().time() - _IDLE
        connections: list[Any] = list(self.server_state.connections)
        for connection in connections:
            if connection.idle_since is not None and connection.idle_since <= before:
                connection.transport.close()
        return not connections


def _let_nobody_in(listener: socket.socket) -> None:
    """Let no new connection begin, while those that have begun are still made and accepted.

    When the socket is closed, clients learn that nobody listens, before they have sent anything.
    """
    if isinstance(path := listener.getsockname(), str):
        with contextlib.suppress(OSError):
            Path(path).unlink(missing_ok=True)
    elif sys.platform == "linux":
        # A filter for the packets of the socket, socket(7): TCP's flag SYN is bit 1 of byte 13.
        steps = [
            (0x30, 0, 0, 13),  # load the byte
            (0x45, 0, 1, 0x02),  # without the flag, skip a step
            (0x06, 0, 0, 0),  # drop the packet; the client tries again a second later
            (0x06, 0, 0, 0xFFFF_FFFF),  # accept it
        ]
        code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
        program = struct.pack("HP", len(steps), ctypes.addressof(code))
        attach = getattr(socket, "SO_ATTACH_FILTER", 26)
        with contextlib.suppress(OSError):
            listener.setsockopt(socket.SOL_SOCKET, attach, program)


def _has_visitors(listener: socket.socket) -> bool:
    """Whether connections wait to be accepted."""
    with selectors.DefaultSelector() as selector:
        selector.register(listener, selectors.EVENT_READ)
        return bool(selector.select(0))
