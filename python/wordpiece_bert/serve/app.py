"""The ASGI application: paths, keys, limits of bodies, errors as answers, and a log without any text of a request."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import logging
import traceback
from contextlib import asynccontextmanager
from time import perf_counter
from typing import TYPE_CHECKING, Any

from wordpiece_bert.errors import InputError
from wordpiece_bert.serve.endpoints import Endpoints
from wordpiece_bert.serve.errors import RequestError
from wordpiece_bert.serve.json_answers import encoded
from wordpiece_bert.serve.metrics import CONTENT_TYPE, Metrics
from wordpiece_bert.serve.models import Models
from wordpiece_bert.serve.openapi import page, schema
from wordpiece_bert.serve.requests import parse_object
from wordpiece_bert.serve.settings import ServerSettings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

    from wordpiece_bert.sentence.cross_encoder import CrossEncoder
    from wordpiece_bert.sentence.encoder import SentenceEncoder

    Endpoint = Callable[[dict[str, Any]], Awaitable[Any]]

__all__ = ["create_app", "logger"]

#: One line for each request: method, path, status and milliseconds.
logger = logging.getLogger("wordpiece_bert.serve")

# The status of a request whose client has gone, in nginx's numbering; nobody receives it.
_CLIENT_GONE = 499


def create_app(models: Mapping[str, SentenceEncoder | CrossEncoder], settings: ServerSettings | None = None) -> Any:
    """Return the server as an application for uvicorn or another ASGI server.

    Parameters
    ----------
    models : mapping
        The models by the names that requests use. A request without a name gets the first of the kind it needs.
    settings : ServerSettings, optional
        Limits and batching.

    Returns
    -------
    starlette.applications.Starlette
        The application.

    Raises
    ------
    InputError
        Starlette is not installed, or there is no model.
    ConfigError
        A cross encoder has several labels.
    """
    try:
        from starlette.applications import Starlette
        from starlette.routing import Route
    except ImportError as cause:
        raise InputError("the server needs Starlette: pip install 'wordpiece-bert[serve]'") from cause
    settings = ServerSettings() if settings is None else settings
    metrics = Metrics()
    served = Models(models, settings, metrics)
    endpoints = Endpoints(served, settings, metrics)
    posts: dict[str, Endpoint] = {
        "/v1/embeddings": endpoints.embeddings,
        "/v1/rerank": endpoints.rerank_v1,
        "/v2/rerank": endpoints.rerank_v2,
        "/rerank": endpoints.rerank,
        "/tokenize": endpoints.tokenize,
    }
    texts: dict[str, tuple[str, Callable[[], str]]] = {
        "/health": ("application/json", lambda: json.dumps({"status": "ok", "models": served.names})),
        "/metrics": (CONTENT_TYPE, metrics.text),
        "/v1/models": ("application/json", lambda: json.dumps(endpoints.list_models())),
        "/openapi.json": ("application/json", lambda: json.dumps(schema(settings))),
        "/docs": ("text/html; charset=utf-8", lambda: page(settings)),
    }

    @asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[None]:
        yield
        await served.close()

    guard = _Guard(settings, metrics)
    routes = [Route(path, guard.posts(path, endpoint), methods=["POST"]) for path, endpoint in posts.items()]
    routes += [Route(path, guard.gets(path, *text), methods=["GET"]) for path, text in texts.items()]
    return Starlette(routes=routes, lifespan=lifespan, exception_handlers={404: _no_path, 405: _no_method})


class _Guard:
    """What is the same for every path: the key, the body, errors, metrics and the log."""

    def __init__(self, settings: ServerSettings, metrics: Metrics) -> None:
        self._settings = settings
        self._metrics = metrics
        self._keys = [_digest(key.encode()) for key in settings.api_keys]

    def gets(self, path: str, media_type: str, text: Callable[[], str]) -> Any:
        """Return the handler of a path that takes no body."""

        async def content(_: Any) -> bytes:
            return text().encode()

        return self._handler(path, media_type, content)

    def posts(self, path: str, endpoint: Endpoint) -> Any:
        """Return the handler of a path that takes a JSON object."""

        async def content(request: Any) -> bytes:
            fields = parse_object(await self._body(request), self._settings.max_items)
            return await encoded(await _unless_gone(request, endpoint(fields)))

        return self._handler(path, "application/json", content)

    def _handler(self, path: str, media_type: str, content: Callable[[Any], Awaitable[bytes]]) -> Any:
        from starlette.responses import Response

        async def handle(request: Any) -> Any:
            start = perf_counter()
            response = None
            status = _CLIENT_GONE
            try:
                if path != "/health":
                    self._check_key(request.headers.get("authorization"))
                response = Response(await content(request), media_type=media_type)
                status = 200
            except RequestError as error:
                response, status = _refusal(error), error.status
            except InputError as error:
                response, status = _refusal(RequestError(400, str(error))), 400
            except _GoneError:
                response = Response(status_code=_CLIENT_GONE)
            except asyncio.CancelledError:
                # The server ends, and the time for requests that have begun is over.
                _go_on()
                response, status = _refusal(_ENDING), _ENDING.status
            except Exception as error:  # noqa: BLE001 - an answer, and a log entry that leaves out the error's message
                _log_error(path, error)
                response, status = _refusal(RequestError(500, "internal error; see the server's log")), 500
            finally:
                self._count(request.method, path, status, perf_counter() - start)
            return response

        return handle

    def _count(self, method: str, path: str, status: int, seconds: float) -> None:
        self._metrics.requests.add(path=path, status=str(status))
        self._metrics.seconds.observe(seconds, path=path)
        logger.info("%s %s %d %.1f ms", method, path, status, 1000 * seconds)

    def _check_key(self, authorization: str | None) -> None:
        """Compare the bearer key with all keys, in a time that depends on none of them."""
        if not self._keys:
            return
        scheme, _, key = (authorization or "").partition(" ")
        given = _digest(key.strip().encode("latin-1", "replace"))
        known = sum(hmac.compare_digest(given, key) for key in self._keys)
        if scheme.lower() != "bearer" or not known:
            message = 'a key is needed: send the header "Authorization: Bearer KEY"'
            raise RequestError(401, message, code="invalid_api_key")

    async def _body(self, request: Any) -> bytes:
        """Read the body, up to the limits of size and time."""
        media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if media_type != "application/json":
            # Another type could come from a page in a browser without the user's consent.
            raise RequestError(415, 'the body must be JSON: send the header "Content-Type: application/json"')
        limit = self._settings.max_bytes
        too_large = RequestError(413, f"the body is larger than the server's limit of {limit} bytes")
        length = request.headers.get("content-length", "")
        if length.isascii() and length.isdigit() and int(length[:20]) > limit:
            raise too_large
        parts: list[bytes] = []
        size = 0

        from starlette.requests import ClientDisconnect

        try:
            async with asyncio.timeout(self._settings.receive_timeout):
                async for part in request.stream():
                    size += len(part)
                    if size > limit:
                        raise too_large
                    parts.append(part)
        except TimeoutError:
            seconds = self._settings.receive_timeout
            raise RequestError(408, f"the body did not arrive within {seconds:g} s") from None
        except ClientDisconnect:
            raise _GoneError from None
        return b"".join(parts)


_ENDING = RequestError(
    503, "the server is shutting down, and had no time left for this request; send it again", code="shutting_down"
)


def _go_on() -> None:
    """Withdraw the cancellation of this task, so that it can still answer."""
    task = asyncio.current_task()
    assert task is not None, "a request is answered in a task"
    task.uncancel()


async def _no_path(_: Any, __: Exception) -> Any:
    return _refusal(RequestError(404, "there is no such path; GET /docs lists them", code="not_found"))


async def _no_method(_: Any, error: Exception) -> Any:
    allowed = (getattr(error, "headers", None) or {}).get("Allow", "")
    response = _refusal(RequestError(405, f"this path is for {allowed}", code="method_not_allowed"))
    response.headers["Allow"] = allowed
    return response


class _GoneError(Exception):
    """The client has closed the connection."""


async def _unless_gone(request: Any, answer: Awaitable[Any]) -> Any:
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
        while (await request.receive())["type"] != "http.disconnect":
            pass
        left = True
        task.cancel()

    # Cancelling this task instead of a second one for the answer saves a task and a wait for each request.
    watcher = asyncio.ensure_future(watch())
    try:
        return await answer
    except asyncio.CancelledError:
        if not left:
            raise
        task.uncancel()
        raise _GoneError from None
    finally:
        watcher.cancel()


def _refusal(error: RequestError) -> Any:
    """Return the response that refuses a request. The connection ends, because a rest of the body may follow."""
    from starlette.responses import Response

    headers = {} if error.retry_after is None else {"Retry-After": str(error.retry_after)}
    if error.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if error.status in (408, 413, 415, 401, 503):
        headers["Connection"] = "close"
    return Response(error.body(), error.status, headers, "application/json")


def _log_error(path: str, error: Exception) -> None:
    """Log the type and the places of an error, without its message, which may quote a text."""
    places = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in traceback.extract_tb(error.__traceback__)]
    logger.error("%s: %s at %s", path, type(error).__name__, "; ".join(places[-5:]))


def _digest(key: bytes) -> bytes:
    """Return a hash of a key: all have the same length, so that comparing them reveals nothing about it."""
    return hashlib.sha256(key).digest()
