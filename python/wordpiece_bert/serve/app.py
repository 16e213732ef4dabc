"""The ASGI application: the paths of the table behind keys, limits and metrics, and a log without any text."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from wordpiece_bert._internal.checks import check_instance
from wordpiece_bert.serve.exchange import Endpoint, logger
from wordpiece_bert.serve.memory import Memory
from wordpiece_bert.serve.metrics import Metrics
from wordpiece_bert.serve.models import Models
from wordpiece_bert.serve.operations import Service
from wordpiece_bert.serve.routes import METRICS, ROUTES
from wordpiece_bert.serve.settings import ServerSettings
from wordpiece_bert.serve.telemetry import Telemetry

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wordpiece_bert.serve.exchange import Message, Receive, Send
    from wordpiece_bert.serve.models import AnyModel

__all__ = ["App", "create_app", "logger"]

# How a path of the table ends that any name may follow.
_ANY_NAME = "{model:path}"


class App:
    """The server as an ASGI application: call it with scope, receive and send.

    Attributes
    ----------
    service : Service
        What answers need. The application takes no more work once ``service.draining`` is set.
    """

    def __init__(self, service: Service) -> None:
        self.service = service
        free = () if service.settings.metrics_key else (METRICS,)
        endpoints = {route.path: Endpoint(route, service, needs_key=route not in free) for route in ROUTES}
        self._endpoints = endpoints
        self._with_names = {
            path.removesuffix(_ANY_NAME): endpoint for path, endpoint in endpoints.items() if path.endswith(_ANY_NAME)
        }
        self._others = Endpoint(None, service)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer a request, or start and end with the server."""
        if scope["type"] == "http":
            # Inside another application, its paths begin with the path of this one.
            path = scope["path"].removeprefix(scope.get("root_path", ""))
            endpoint = self._endpoints.get(path)
            if endpoint is not None:
                await endpoint(scope, receive, send)
                return
            for start, of_names in self._with_names.items():
                if path.startswith(start):
                    await of_names(scope, receive, send, name=path.removeprefix(start))
                    return
            await self._others(scope, receive, send)
        elif scope["type"] == "lifespan":
            await receive()
            await send({"type": "lifespan.startup.complete"})
            await receive()
            await self.service.models.close()
            await send({"type": "lifespan.shutdown.complete"})
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close"})


def create_app(
    models: Mapping[str, AnyModel],
    settings: ServerSettings | None = None,
    *,
    model_settings: Mapping[str, ServerSettings] | None = None,
) -> App:
    """Return the server as an application for uvicorn or another ASGI server.

    Parameters
    ----------
    models : mapping
        The models by the names that requests use: sentence, sparse, multi-vector, M3 and cross encoders, a
        `FrozenClassifier` or a `StaticClassifier`, and what `tasks.load` returns for a token classifier or a
        masked-language model. A request without a name gets the first of the kind it needs.
    settings : ServerSettings, optional
        Limits and batching.
    model_settings : mapping, optional
        Settings of single models by name, instead of `settings`: their prompts, batches and queues.

    Returns
    -------
    App
        The application. It takes no more work once its ``service.draining`` is set.

    Raises
    ------
    InputError
        There is no model, one is of no kind that the server has, or OpenTelemetry is asked for and not installed.
    ConfigError
        The rows of a cross encoder have no room for texts.

    Examples
    --------
    >>> from wordpiece_bert import SentenceEncoder
    >>> from wordpiece_bert.serve import create_app
    >>> app = create_app({"static": SentenceEncoder("models/static")})  # uvicorn module:app
    """
    settings = ServerSettings() if settings is None else settings
    check_instance("settings", settings, ServerSettings)
    metrics = Metrics()
    if settings.opentelemetry:
        metrics.telemetry = Telemetry(metrics)
    served = Models(models, settings, {} if model_settings is None else model_settings, metrics)
    memory = Memory(settings.inflight_bytes)
    metrics.inflight_bytes.read(lambda: memory.used)
    return App(Service(served, settings, metrics, int(time.time()), memory))
