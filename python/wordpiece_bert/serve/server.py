"""Runs the application with uvicorn until a signal ends it."""

from __future__ import annotations

import contextlib
import http
import signal
import socket
import threading
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wordpiece_bert._internal.checks import whole_number
from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert.errors import InputError, TruncationWarning
from wordpiece_bert.serve.app import create_app
from wordpiece_bert.serve.errors import OPENAI, RequestError
from wordpiece_bert.serve.settings import ServerSettings

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Mapping

    from wordpiece_bert.serve.models import AnyModel
    from wordpiece_bert.serve.operations import Service

__all__ = ["run"]

# Seconds that an idle connection is kept.
_KEEP_ALIVE = 75
# Bytes that the path and the headers of a request may have in all.
_HEADER_BYTES = 1 << 16

_BAD_REQUEST = RequestError(400, "the request is not valid HTTP", code="invalid_http")
_LARGE_HEADERS = RequestError(
    431,
    f"the path and the headers are larger than the server's limit of {_HEADER_BYTES} bytes",
    code="headers_too_large",
)


@completed_by(create_app)
def run(
    models: Mapping[str, AnyModel],
    settings: ServerSettings | None = None,
    *,
    model_settings: Mapping[str, ServerSettings] | None = None,
    host: str = "127.0.0.1",
    port: int = 8000,
    uds: str | os.PathLike[str] | None = None,
    on_start: Callable[[str], object] | None = None,
) -> None:
    """Serve models until SIGINT or SIGTERM; requests that have begun are answered first.

    Parameters
    ----------
    host : str, default "127.0.0.1"
        The address to listen on. The default is reachable from this machine only.
    port : int, default 8000
        The port; 0 for a free one.
    uds : str or os.PathLike, optional
        The path of a Unix socket to listen on instead. It is made, replaces one that nobody listens on, and is removed
        at the end.
    on_start : callable, optional
        Called with the URL when the server accepts connections.

    Raises
    ------
    InputError
        Starlette or uvicorn is not installed, or an argument is wrong.
    OSError
        The address cannot be listened on.
    """
    try:
        import uvicorn
    except ImportError as cause:
        raise InputError("the server needs uvicorn: pip install 'wordpiece-bert[serve]'") from cause
    whole_number("port", port, 0, 65_535)
    settings = ServerSettings() if settings is None else settings
    app = create_app(models, settings, model_settings=model_settings)
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        lifespan="on",
        ws="none",
        timeout_keep_alive=_KEEP_ALIVE,
        timeout_graceful_shutdown=max(1, round(settings.drain_timeout)),
    )
    config.load()
    protocol = _with_header_timeout(_with_json_refusals(config.http_protocol_class), settings.receive_timeout)
    # Of the two protocols, h11 limits headers itself, to as many bytes.
    config.http_protocol_class = _with_header_limit(protocol) if hasattr(protocol, "on_header") else protocol
    with _listening(host, port) if uds is None else _listening_on(Path(uds)) as listener:
        server = uvicorn.Server(config)
        if on_start is not None:
            on_start(_shown(listener))
        with _ended_by_signals(server, app.state.service), warnings.catch_warnings():
            # Answers and metrics say which texts are truncated.
            warnings.simplefilter("ignore", TruncationWarning)
            server.run(sockets=[listener])


def _shown(listener: socket.socket) -> str:
    """Return the address of a socket."""
    address = listener.getsockname()
    if isinstance(address, str):
        return f"unix:{address}"
    return f"http://{f'[{address[0]}]' if ':' in address[0] else address[0]}:{address[1]}"


@contextlib.contextmanager
def _listening(host: str, port: int) -> Iterator[socket.socket]:
    """Open the socket before the server starts, so that an address that is in use is an error at once."""
    family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
        except OSError as cause:
            raise OSError(f"cannot listen on {host}:{port}: {cause.strerror}") from cause
        listener.listen(2048)
        yield listener


@contextlib.contextmanager
def _listening_on(path: Path) -> Iterator[socket.socket]:
    """Open a Unix socket; one that an ended server has left is replaced."""
    if not hasattr(socket, "AF_UNIX"):
        raise InputError("this system has no Unix sockets: give host and port")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        try:
            if path.is_socket() and not _is_listened_on(path):
                path.unlink()
            listener.bind(str(path))
        except OSError as cause:
            raise OSError(f"cannot listen on {path}: {cause.strerror or cause}") from cause
        listener.listen(2048)
        try:
            yield listener
        finally:
            path.unlink(missing_ok=True)


def _is_listened_on(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        try:
            client.connect(str(path))
        except ConnectionRefusedError:
            return False
    return True


@contextlib.contextmanager
def _ended_by_signals(server: Any, service: Service) -> Iterator[None]:
    """Let SIGINT and SIGTERM end the server once its requests are answered; a second SIGINT ends it at once.

    uvicorn does so itself, but then raises the signal again, and the process would not end with exit code 0.
    """
    server.capture_signals = contextlib.nullcontext
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, _: object) -> None:
        service.draining = True
        server.force_exit = server.should_exit and number == signal.SIGINT
        server.should_exit = True

    previous = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _with_json_refusals(protocol: Any) -> Any:
    """Return a protocol class of uvicorn that answers what it cannot parse in JSON."""

    class JsonProtocol(protocol):  # type: ignore[misc, unused-ignore]
        refusal = _BAD_REQUEST

        def send_400_response(self, _: str) -> None:
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


def _with_header_timeout(protocol: Any, seconds: float) -> Any:
    """Return a protocol class of uvicorn that closes connections whose headers do not arrive in time.

    uvicorn limits how long an idle connection is kept, but not how long the headers of a request may take.
    """

    class TimedProtocol(protocol):  # type: ignore[misc, unused-ignore]
        _headers_due: Any = None

        def _waits_for_headers(self) -> bool:
            return self.cycle is None or self.cycle.response_complete

        def _check_headers(self) -> None:
            self._headers_due = None
            if self._waits_for_headers():
                self.transport.close()

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._headers_due = self.loop.call_later(seconds, self._check_headers)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if not self._waits_for_headers():
                self._stop_waiting()
            elif self._headers_due is None:
                self._headers_due = self.loop.call_later(seconds, self._check_headers)

        def connection_lost(self, error: Exception | None) -> None:
            self._stop_waiting()
            super().connection_lost(error)

        def _stop_waiting(self) -> None:
            if self._headers_due is not None:
                self._headers_due.cancel()
                self._headers_due = None

    return TimedProtocol
