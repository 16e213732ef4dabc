"""uvicorn's protocol of HTTP with limits, refusals in JSON that arrive, and the time since a connection is idle."""

from __future__ import annotations

import http
from typing import TYPE_CHECKING, Any

from wordpiece_bert.serve.errors import OPENAI, RequestError

if TYPE_CHECKING:
    from collections.abc import Callable

    from wordpiece_bert.serve.settings import ServerSettings

__all__ = ["limited"]

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


def limited(protocol: Any, settings: ServerSettings) -> Any:
    """Return a protocol class of uvicorn, of httptools or h11, within the limits of the server.

    Its instances have ``idle_since``: since when, in the time of the event loop, a connection waits for a request; None
    while one is answered.
    """
    found = _with_most_connections(_with_json_refusals(protocol), settings.max_connections)
    found = _with_timeouts(found, settings.receive_timeout)
    # Of the two protocols, h11 limits headers itself, to as many bytes.
    found = _with_header_limit(found) if hasattr(found, "on_header") else found
    return _with_lingering_close(found, settings.receive_timeout)


def _with_json_refusals(protocol: Any) -> Any:
    """Return a protocol class of uvicorn that answers what it cannot parse in JSON."""

    class JsonProtocol(protocol):  # type: ignore[misc, unused-ignore]
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

    return JsonProtocol


def _with_header_limit(protocol: Any) -> Any:
    """Return a class for uvicorn's protocol of httptools, which limits neither the path nor headers nor trailers."""

    class LimitedProtocol(protocol):  # type: ignore[misc, unused-ignore]
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

    return LimitedProtocol


def _with_most_connections(protocol: Any, most: int) -> Any:
    """Return a protocol class of uvicorn that answers a connection with 503 where there are too many."""
    refusal = RequestError(
        503, f"the server has {most} open connections, its limit; try again in 1 s", code="too_many_connections"
    )

    class CountedProtocol(protocol):  # type: ignore[misc, unused-ignore]
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            if len(self.connections) > most:
                self.refusal = refusal
                self.send_400_response("")
                self.connections.discard(self)
                self.loop.call_later(_LEAVING, self.transport.abort)

    return CountedProtocol


def _with_timeouts(protocol: Any, seconds: float) -> Any:
    """Return a protocol class of uvicorn that ends connections whose headers, or whose clients' reading, take too long.

    uvicorn limits how long an idle connection is kept, but not how long the headers of a request may take, nor how long
    a client may leave an answer in the buffer.
    """

    class TimedProtocol(protocol):  # type: ignore[misc, unused-ignore]
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
            self._headers_due = self.loop.call_later(seconds, self._check_headers)

        def data_received(self, data: bytes) -> None:
            self._last_used = self.loop.time()
            super().data_received(data)
            if not self._waits_for_headers():
                self._stop_waiting()
            elif self._headers_due is None:
                self._headers_due = self.loop.call_later(seconds, self._check_headers)

        def pause_writing(self) -> None:
            super().pause_writing()
            self._reading_due = self.loop.call_later(seconds, self.transport.abort)

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

    return TimedProtocol


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


def _with_lingering_close(protocol: Any, seconds: float) -> Any:
    """Return a protocol class of uvicorn whose refusals arrive, also if the client has not sent all of its request.

    If a connection is closed before all that came is read, it is reset, and the client loses the answer. So the answer
    is followed by the end of the stream, and what comes is read and dropped until the client closes, or for `seconds`.
    """

    class LingeringProtocol(protocol):  # type: ignore[misc, unused-ignore]
        _end: Any = None

        def connection_made(self, transport: Any) -> None:
            def linger() -> bool:
                is_unread = self.is_refused or (self.cycle is not None and self.cycle.more_body)
                if is_unread:
                    transport.write_eof()
                    self.flow.resume_reading()
                    self._end = self.loop.call_later(seconds, transport.close)
                return is_unread

            super().connection_made(_Transport(transport, linger))

        def data_received(self, data: bytes) -> None:
            if not self.transport.lingers:
                super().data_received(data)

        def connection_lost(self, error: Exception | None) -> None:
            if self._end is not None:
                self._end.cancel()
            super().connection_lost(error)

    return LingeringProtocol
