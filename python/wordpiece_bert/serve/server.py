"""Runs the application with uvicorn until a signal ends it."""

from __future__ import annotations

import contextlib
import signal
import socket
import threading
import warnings
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wordpiece_bert._internal.checks import whole_number
from wordpiece_bert._internal.owner import Owner
from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert.errors import InputError, TruncationWarning
from wordpiece_bert.serve.app import create_app
from wordpiece_bert.serve.hosts import LOCAL, is_loopback
from wordpiece_bert.serve.protocols import limited
from wordpiece_bert.serve.settings import ServerSettings

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Mapping

    from wordpiece_bert.serve.models import AnyModel
    from wordpiece_bert.serve.operations import Service

# Seconds that an idle connection is kept.
_KEEP_ALIVE = 75


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
        The address to listen on. The default is reachable from this machine only. There, without keys, a request must
        call the server localhost, or by an IP address, unless the settings have ``allowed_hosts``.
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
        uvicorn is not installed, or an argument is wrong.
    OSError
        The address cannot be listened on.

    Examples
    --------
    >>> from wordpiece_bert import SentenceEncoder
    >>> from wordpiece_bert.serve import ServerSettings, run
    >>> run(
    ...     {"minilm": SentenceEncoder("minilm")}, ServerSettings(), port=8000
    ... )  # doctest: +SKIP
    """
    try:
        import uvicorn
    except ImportError as cause:
        raise InputError("the server needs uvicorn: pip install 'wordpiece-bert[serve]'") from cause
    from wordpiece_bert.serve.ending import DrainingServer

    whole_number("port", port, 0, 65_535)
    settings = ServerSettings() if settings is None else settings
    with _listening(host, port) if uds is None else _listening_on(Path(uds)) as listener:
        if _is_open(listener, settings):
            settings = replace(settings, allowed_hosts=(LOCAL,))
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
        )
        config.load()
        config.http_protocol_class = limited(config.http_protocol_class, settings)
        server = DrainingServer(config, settings.drain_timeout)
        if on_start is not None:
            on_start(_shown(listener))
        with _ended_by_signals(server, app.service), warnings.catch_warnings():
            # Answers and metrics say which texts are truncated.
            warnings.simplefilter("ignore", TruncationWarning)
            server.run(sockets=[listener])


def _is_open(listener: socket.socket, settings: ServerSettings) -> bool:
    """Return whether any page in a browser of this machine could send requests, unless names are checked."""
    address = listener.getsockname()
    is_local = not isinstance(address, str) and is_loopback(address[0])
    return is_local and not settings.api_keys and not settings.allowed_hosts


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
            owner = Owner()
            listener.bind(str(path))
        except OSError as cause:
            raise OSError(f"cannot listen on {path}: {cause.strerror or cause}") from cause
        listener.listen(2048)
        try:
            yield listener
        finally:
            owner.do(path.unlink, missing_ok=True)


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
