"""One request and its answer: the key, the body, the operation, errors in the dialect, metrics and the log."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import os
import re
import traceback
from time import perf_counter
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from wordpiece_bert.errors import InputError
from wordpiece_bert.serve.errors import RequestError
from wordpiece_bert.serve.hosts import named_by
from wordpiece_bert.serve.json_answers import encoded
from wordpiece_bert.serve.memory import Held
from wordpiece_bert.serve.operations import chosen
from wordpiece_bert.serve.requests import parse_object, unpacked
from wordpiece_bert.serve.routes import dialect_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping

    from wordpiece_bert.serve.errors import Dialect
    from wordpiece_bert.serve.operations import Operation, Route, Service

    #: The types of ASGI.
    Message = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[Message]]
    Send = Callable[[Message], Awaitable[None]]

#: One line for each request: method, path, status, milliseconds and the request's id.
logger = logging.getLogger("wordpiece_bert.serve")

# The status of a request whose client has gone, in nginx's numbering; nobody receives it.
_CLIENT_GONE = 499
# What the log has for a path that does not exist, which may be any text.
_NO_PATH = "-"
# The methods that the log has, and what it has for others.
_METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"))
_OTHER_METHOD = "_OTHER"
# Answers of more bytes are sent in parts, each when the client has taken most of the one before.
_SENT_AT_ONCE = 1 << 16
# Packed bodies of more bytes are unpacked in a thread.
_INLINE_BYTES = 1 << 14
# Ids of requests that are passed on; others are replaced, since the log has them.
_REQUEST_ID = re.compile(rb"[\w.:/+=-]{1,128}")
# A name or an address, and a port.
_ADDRESS = re.compile(rb"[\w.-]+(:\d+)?|\[[\d:a-fA-F]+\](:\d+)?")
# https://www.w3.org/TR/trace-context/#traceparent-header
_TRACE = re.compile(rb"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-.{0,128})?")
_ENDING = RequestError(
    503,
    "the server is shutting down, and had no time left for this request; send it again",
    code="shutting_down",
    retry_after=1,
)
_DRAINING = RequestError(
    503, "the server is shutting down, and takes no more requests; send it again", code="shutting_down", retry_after=1
)
# The statuses with which the connection ends, because a rest of the body may follow.
_CLOSING = (401, 403, 404, 405, 408, 413, 415, 503)
# Seconds after which a request that is computed is given up when its client has gone; most are answered before.
_PATIENCE = 0.1


class Endpoint:
    """An ASGI application for one path.

    Parameters
    ----------
    route : Route or None
        The entry of the table; None for paths that do not exist.
    service : Service
        What answers need.
    needs_key : bool, default True
        Whether a request must have a key, where the server has keys and the path is not free for all.
    """

    def __init__(self, route: Route | None, service: Service, *, needs_key: bool = True) -> None:
        self._route = route
        self._service = service
        self._settings = service.settings
        self._path = _NO_PATH if route is None else route.path
        is_open = route is not None and route.page is not None and not route.page.needs_key
        self._free_methods = ("GET", "HEAD") if is_open or not needs_key else ()
        self._keys = [_digest(key.encode()) for key in service.settings.api_keys]
        self._is_named = named_by(service.settings.allowed_hosts)

    async def __call__(self, scope: Message, receive: Receive, send: Send, *, name: str = "") -> None:
        """Answer a request; `name` is what its path has in place of the parameter."""
        start = perf_counter()
        dialect = dialect_of(scope["path"]) if self._route is None else self._route.dialect
        exchange = _Exchange(scope, self._service, dialect, name)
        telemetry = self._service.metrics.telemetry
        span = None
        if telemetry is not None:
            span = telemetry.request(
                exchange.shown_method, None if self._route is None else self._path, dict(scope["headers"])
            )
            exchange.trace_id = span.trace_id
        status, begun = _CLIENT_GONE, False
        try:
            parts, media_type = await self._content(exchange, receive)
            status = 200
            await send(exchange.head(200, media_type, sum(map(len, parts))))
            begun = True
            parts.reverse()
            while len(parts) > 1 or len(parts[0]) > _SENT_AT_ONCE:
                size = len(parts[-1])
                await send({"type": "http.response.body", "body": parts.pop(), "more_body": True})
                # The next call, with the next part or none, waits until the client has taken most of this one.
                if not parts:
                    parts.append(b"")
                await send({"type": "http.response.body", "body": b"", "more_body": True})
                exchange.held.change(-size)
            await send({"type": "http.response.body", "body": parts[0]})
        except RequestError as error:
            status = exchange.dialect.status(error)
            await _refuse(exchange, error, send)
        except InputError as error:
            status = 400
            await _refuse(exchange, RequestError(400, str(error)), send)
        except _GoneError:
            pass
        except asyncio.CancelledError:
            # The server ends, and the time for requests that have begun is over.
            _go_on()
            status = _ENDING.status
            if not begun:
                await _refuse(exchange, _ENDING, send)
        except Exception as error:  # noqa: BLE001 - an answer, and a log entry that leaves out the error's message
            status = 500
            _log_error(self._path, error)
            await _refuse(exchange, RequestError(500, "internal error; see the server's log"), send)
        finally:
            exchange.held.release()
            seconds = perf_counter() - start
            metrics = self._service.metrics
            metrics.requests.add(path=self._path, status=str(status))
            metrics.seconds.observe(seconds, path=self._path)
            if span is not None:
                span.end(status, seconds, exchange.id.decode())
            logger.info(
                "%s %s %d %.1f ms %s",
                exchange.shown_method,
                self._path,
                status,
                1000 * seconds,
                exchange.named.decode(),
            )

    async def _content(self, exchange: _Exchange, receive: Receive) -> tuple[list[bytes], str]:
        """Return the body of the answer, in parts, and its type."""
        route, method = self._route, exchange.method
        self._check_host(exchange)
        self._check_length(exchange)
        if method not in self._free_methods:
            self._check_key(exchange)
        if route is None:
            raise RequestError(404, "there is no such path; GET /docs lists them", code="not_found")
        if method not in route.methods:
            exchange.allowed = ", ".join(route.methods)
            raise RequestError(405, f"this path is for {exchange.allowed}", code="method_not_allowed")
        if method != "POST":
            assert route.page is not None, "the path has no other methods"
            content = route.page.content(self._service, exchange).encode()
            exchange.held.change(len(content))
            return [content], route.page.media_type
        came_late = self._service.draining
        body = await self._body(exchange, receive)
        if came_late:  # only now: a connection that is closed before all is read is reset, and its answer lost
            raise _DRAINING
        values = parse_object(body, self._settings.max_items, self._settings.max_tokens)
        if exchange.parameter:
            values["model"] = exchange.parameter
        operation = self._operation(route, values)
        exchange.dialect = operation.dialect
        fields = operation.read(values, self._settings)
        try:
            async with asyncio.timeout(self._settings.request_timeout or None):
                answer = await _unless_gone(receive, operation.answer(self._service, fields))
                parts = await encoded(answer, exchange.held.change)
        except TimeoutError:
            seconds = self._settings.request_timeout
            message = f"the request was not answered within {seconds:g} s; send it again, or divide it"
            raise RequestError(503, message, code="request_timeout", retry_after=1) from None
        exchange.held.change(-len(body))
        return parts, "application/json"

    def _operation(self, route: Route, values: dict[str, Any]) -> Operation:
        if route.chooses is not None:
            return route.chooses(self._service, values)
        return chosen(route.operations, values)

    def _check_host(self, exchange: _Exchange) -> None:
        """Refuse a request that calls the server by a name that is not its own."""
        host = exchange.header(b"host")
        if not self._is_named(host):
            shown = host.decode("latin-1")
            message = (
                f"the server does not answer to the host {shown!r:.100}: call it localhost or by its IP address, or "
                "allow the name with --allowed-host (allowed_hosts of ServerSettings)"
            )
            raise RequestError(403, message, code="host_not_allowed")

    def _check_key(self, exchange: _Exchange) -> None:
        """Compare the key of a request with all keys, in a time that depends on none of them."""
        if not self._keys:
            return
        scheme, _, bearer = exchange.header(b"authorization").partition(b" ")
        key = bearer.strip() if scheme.lower() == b"bearer" else exchange.header(b"api-key").strip()
        given = _digest(key)
        known = sum(hmac.compare_digest(given, one) for one in self._keys)
        if not key or not known:
            message = 'a key is needed: send the header "Authorization: Bearer KEY", or "api-key: KEY"'
            raise RequestError(401, message, code="invalid_api_key")

    def _check_length(self, exchange: _Exchange) -> None:
        """Refuse a body that says that it is too large; before the key is checked, since nothing of it is read."""
        length = exchange.header(b"content-length")
        if length.isdigit() and int(length[:20]) > self._settings.max_bytes:
            raise self._too_large

    @property
    def _too_large(self) -> RequestError:
        return RequestError(413, f"the body is larger than the server's limit of {self._settings.max_bytes} bytes")

    async def _body(self, exchange: _Exchange, receive: Receive) -> bytes:
        """Read the body, up to the limits of size and time."""
        media_type = exchange.header(b"content-type").partition(b";")[0].strip().lower()
        if media_type != b"application/json":
            # Another type could come from a page in a browser without the user's consent.
            raise RequestError(415, 'the body must be JSON: send the header "Content-Type: application/json"')
        packing = exchange.header(b"content-encoding").strip().lower()
        if packing not in (b"", b"identity", b"gzip"):
            raise RequestError(415, "the body must not be packed, or by gzip: Content-Encoding is gzip or nothing")
        parts: list[bytes] = []
        size, more = 0, True
        try:
            async with asyncio.timeout(self._settings.receive_timeout):
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise _GoneError
                    parts.append(message.get("body", b""))
                    more = message.get("more_body", False)
                    size += len(parts[-1])
                    if size > self._settings.max_bytes:
                        raise self._too_large
                    exchange.held.change(len(parts[-1]))
        except TimeoutError:
            seconds = self._settings.receive_timeout
            raise RequestError(408, f"the body did not arrive within {seconds:g} s") from None
        body = b"".join(parts)
        if packing != b"gzip":
            return body
        most = self._settings.max_bytes
        exchange.held.change(most)
        found = await asyncio.to_thread(unpacked, body, most) if size > _INLINE_BYTES else unpacked(body, most)
        exchange.held.change(len(found) - most - size)
        return found


class _Exchange:
    """A request, and what its answer's headers repeat of it."""

    def __init__(self, scope: Message, service: Service, dialect: Dialect, name: str) -> None:
        self.method: str = scope["method"]
        #: What the path has in place of its parameter.
        self.parameter = name
        #: The API whose errors refuse the request.
        self.dialect = dialect
        #: The methods of the path, for a refusal.
        self.allowed = ""
        self._scope = scope
        self._service = service
        #: The bytes of its body and of its answer.
        self.held = Held(service.memory)
        self._headers: dict[bytes, bytes] = dict(scope["headers"])
        given = self.header(b"x-request-id")
        #: The id of the request: its client's, or a new one.
        self.id = given if _REQUEST_ID.fullmatch(given) else os.urandom(16).hex().encode()
        trace = self.header(b"traceparent")
        self._trace = trace if trace and _TRACE.fullmatch(trace) else b""
        #: The id of the trace that the request is part of.
        self.trace_id = self._trace[3:35]

    @property
    def address(self) -> str:
        """The address by which the client calls the server; of a header ``Host`` that is none, the usual one."""
        found = self.header(b"host")
        host = found.decode() if _ADDRESS.fullmatch(found) else "127.0.0.1:8000"
        return f"{self._scope.get('scheme', 'http')}://{host}{quote(self._scope.get('root_path', ''))}"

    @property
    def shown_method(self) -> str:
        """The method, for the log; one that HTTP does not have could be any text."""
        return self.method if self.method in _METHODS else _OTHER_METHOD

    @property
    def named(self) -> bytes:
        """The id of the request and of the trace that it is part of, for the log."""
        return self.id + b" " + self.trace_id if self.trace_id else self.id

    def header(self, name: bytes) -> bytes:
        """Return a header; empty if there is none."""
        return self._headers.get(name, b"")

    def head(self, status: int, media_type: str, length: int, *more: tuple[bytes, bytes]) -> dict[str, Any]:
        """Return the message that begins an answer."""
        headers = [
            (b"content-type", media_type.encode()),
            (b"content-length", b"%d" % length),
            (b"x-request-id", self.id),
            *more,
        ]
        if self._trace:
            headers.append((b"traceparent", self._trace))
        if status in _CLOSING or self._service.draining:
            headers.append((b"connection", b"close"))
        return {"type": "http.response.start", "status": status, "headers": headers}


class _GoneError(Exception):
    """The client has closed the connection."""


async def _refuse(exchange: _Exchange, error: RequestError, send: Send) -> None:
    """Send the answer that refuses a request."""
    more = []
    if error.retry_after is not None:
        more.append((b"retry-after", b"%d" % error.retry_after))
    if error.status == 401:
        more.append((b"www-authenticate", b"Bearer"))
    if error.status == 405:
        more.append((b"allow", exchange.allowed.encode()))
    body = exchange.dialect.refusal(error)
    await send(exchange.head(exchange.dialect.status(error), "application/json", len(body), *more))
    await send({"type": "http.response.body", "body": body})


async def _unless_gone(receive: Receive, answer: Awaitable[Any]) -> Any:
    """Wait for an answer, and cancel it when the client goes away.

    Raises
    ------
    _GoneError
        The client has gone.
    """
    task = asyncio.current_task()
    assert task is not None, "a request is answered in a task"
    left = False

    async def watch() -> None:
        nonlocal left
        while (await receive())["type"] != "http.disconnect":
            pass
        left = True
        task.cancel()

    watcher: asyncio.Task[None] | None = None

    def begin() -> None:
        nonlocal watcher
        watcher = asyncio.ensure_future(watch())

    # Cancelling this task instead of a second one for the answer saves a task and a wait for each request.
    timer = asyncio.get_running_loop().call_later(_PATIENCE, begin)
    try:
        return await answer
    except asyncio.CancelledError:
        if not left:
            raise
        task.uncancel()
        raise _GoneError from None
    finally:
        timer.cancel()
        if watcher is not None:
            watcher.cancel()


def _go_on() -> None:
    """Withdraw the cancellation of this task, so that it can still answer."""
    task = asyncio.current_task()
    assert task is not None, "a request is answered in a task"
    task.uncancel()


def _log_error(path: str, error: Exception) -> None:
    """Log the type and the places of an error, without its message, which may quote a text."""
    places = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in traceback.extract_tb(error.__traceback__)]
    logger.error("%s: %s at %s", path, type(error).__name__, "; ".join(places[-5:]))


def _digest(key: bytes) -> bytes:
    """Return a hash of a key: all have the same length, so that comparing them reveals nothing about it."""
    return hashlib.sha256(key).digest()
