"""uvicorn's protocol of HTTP with limits, refusals in JSON that arrive, and the time since a connection is idle."""

from __future__ import annotations

import http
from typing import TYPE_CHECKING, Any

from wordpiece_bert.serve.errors import OPENAI, RequestError

if TYPE_CHECKING:
    from collections.abc import Callable

    from wordpiece_bert.serve.settings import ServerSettings

# Bytes that the path and the headers of a request may have in all.
_HEADER_BYTES = 1 << 16

# Seconds in which a client that is one too many may read so.
_LEAVING = 1.0

_BAD_REQUEST = RequestError(400, "the request is not valid HTTP", code="invalid_http")
_LARGE_HEADERS = RequestError(
    431,
    f"the path and the headers are larger than the server's limit of {_HEADER_BYTES} bytes",
    code="headers_too_large",
)


if TYPE_CHECKING:
    _Protocol: Any
else:
    #: What the parts extend: a protocol class of uvicorn comes after them in the order of the bases.
    _Protocol = object


class _JsonRefusals(_Protocol):  # type: ignore[misc]
    """Answers what uvicorn cannot parse in JSON."""

    refusal = _BAD_REQUEST
    # Whether it was sent.
    is_refused = False

    def send_400_response(self, _: str) -> None:
        self.is_refused = True
        error = self.refusal
        body = OPENAI.refusal(error)
        lines = [
            f"HTTP/1.1 {error.status} {http.HTTPStatus(error.status).phrase}".encode(),
            *(name + b": " + value for name, value in self.server_state.default_headers),
            b"content-type: application/json",
            b"content-length: %d" % len(body),
            b"connection: close",
        ]
        self.transport.write(b"\r\n".join(lines) + b"\r\n\r\n" + body)
        self.transport.close()


class _HeaderLimit(_Protocol):  # type: ignore[misc]
    """Limits path, headers and trailers, which uvicorn's protocol of httptools does not."""

    # Of this request so far.
    _header_bytes = 0
    # Of a line that goes on. The parser keeps it until it ends, and reports nothing meanwhile.
    _line_bytes = 0

    def data_received(self, data: bytes) -> None:
        self._line_bytes += len(data)
        super().data_received(data)
        if self._line_bytes > _HEADER_BYTES and not self.transport.is_closing():
            self.refusal = _LARGE_HEADERS
            self.send_400_response("")

    def _count(self, size: int) -> None:
        self._line_bytes = 0
        self._header_bytes += size
        if self._header_bytes > _HEADER_BYTES:
            self.refusal = _LARGE_HEADERS
            raise ValueError  # the parser ends, and uvicorn calls `send_400_response`

    def on_message_begin(self) -> None:
        self._header_bytes = 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(len(name) + len(value) + len(b": \r\n"))
        super().on_header(name, value)

    def on_chunk_header(self) -> None:
        self._line_bytes = 0

    def on_body(self, body: bytes) -> None:
        self._line_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._line_bytes = 0
        super().on_message_complete()


class _MostConnections(_Protocol):  # type: ignore[misc]
    """Answers a connection with 503 where there are too many."""

    most_connections: int

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if len(self.connections) > self.most_connections:
            self.refusal = RequestError(
                503,
                f"the server has {self.most_connections} open connections, its limit; try again in 1 s",
                code="too_many_connections",
            )
            self.send_400_response("")
            self.connections.discard(self)
            self.loop.call_later(_LEAVING, self.transport.abort)


class _Timeouts(_Protocol):  # type: ignore[misc]
    """Ends connections whose headers, or whose clients' reading, take too long.

    uvicorn limits how long an idle connection is kept, but not how long the headers of a request may take, nor how long
    a client may leave an answer in the buffer.
    """

    seconds: float
    _headers_due: Any = None
    _reading_due: Any = None
    _last_used = 0.0

    @property
    def idle_since(self) -> float | None:
        return self._last_used if self._waits_for_headers() else None

    def _waits_for_headers(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _check_headers(self) -> None:
        self._headers_due = None
        if self._waits_for_headers():
            self.transport.close()

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._last_used = self.loop.time()
        self._headers_due = self.loop.call_later(self.seconds, self._check_headers)

    def data_received(self, data: bytes) -> None:
        self._last_used = self.loop.time()
        super().data_received(data)
        if not self._waits_for_headers():
            self._stop_waiting()
        elif self._headers_due is None:
            self._headers_due = self.loop.call_later(self.seconds, self._check_headers)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._reading_due = self.loop.call_later(self.seconds, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_reading()

    def _stop_reading(self) -> None:
        if self._reading_due is not None:
            self._reading_due.cancel()
            self._reading_due = None

    def on_response_complete(self) -> None:
        self._last_used = self.loop.time()
        super().on_response_complete()

    def connection_lost(self, error: Exception | None) -> None:
        self._stop_waiting()
        self._stop_reading()
        super().connection_lost(error)

    def _stop_waiting(self) -> None:
        if self._headers_due is not None:
            self._headers_due.cancel()
            self._headers_due = None


class _Transport:
    """A transport whose ``close`` may wait for the rest of a request.

    Parameters
    ----------
    transport : asyncio.Transport
        The transport.
    linger : callable
        Called by ``close``: returns whether the connection stays open for a while, in which case it closes the
        transport itself.
    """

    def __init__(self, transport: Any, linger: Callable[[], bool]) -> None:
        self._transport = transport
        self._linger = linger
        self.write = transport.write  # without a look-up for each part of an answer
        #: Whether ``close`` was called, and the connection stays open for the rest of a request.
        self.lingers = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def is_closing(self) -> bool:
        """Whether nothing more is to be written."""
        return self.lingers or self._transport.is_closing()

    def close(self) -> None:
        """Close the connection, at once if it is called a second time."""
        if not self.is_closing() and self._linger():
            self.lingers = True
        else:
            self._transport.close()


class _LingeringClose(_Protocol):  # type: ignore[misc]
    """Lets refusals arrive, also if the client has not sent all of its request.

    If a connection is closed before all that came is read, it is reset, and the client loses the answer. So the answer
    is followed by the end of the stream, and what comes is read and dropped until the client closes, or for `seconds`.
    """

    seconds: float
    _end: Any = None

    def connection_made(self, transport: Any) -> None:
        def linger() -> bool:
            is_unread = self.is_refused or (self.cycle is not None and self.cycle.more_body)
            if is_unread:
                transport.write_eof()
                self.flow.resume_reading()
                self._end = self.loop.call_later(self.seconds, transport.close)
            return is_unread

        super().connection_made(_Transport(transport, linger))

    def data_received(self, data: bytes) -> None:
        if not self.transport.lingers:
            super().data_received(data)

    def connection_lost(self, error: Exception | None) -> None:
        if self._end is not None:
            self._end.cancel()
        super().connection_lost(error)


def limited(protocol: Any, settings: ServerSettings) -> Any:
    """Return a protocol class of uvicorn, of httptools or h11, within the limits of the server.

    Its instances have ``idle_since``: since when, in the time of the event loop, a connection waits for a request; None
    while one is answered.
    """
    # Of the two protocols, h11 limits headers itself, to as many bytes.
    limit = (_HeaderLimit,) if hasattr(protocol, "on_header") else ()
    parts = (_LingeringClose, *limit, _Timeouts, _MostConnections, _JsonRefusals, protocol)
    limits = {"seconds": settings.receive_timeout, "most_connections": settings.max_connections}
    return type("LimitedProtocol", parts, limits)
