"""The ASGI application: the paths of the table behind keys, limits and metrics, and a log without any text."""

from __future__ import annotations

import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from wordpiece_bert.errors import InputError
from wordpiece_bert.serve.exchange import Endpoint, logger
from wordpiece_bert.serve.metrics import Metrics
from wordpiece_bert.serve.models import Models
from wordpiece_bert.serve.operations import Service
from wordpiece_bert.serve.routes import METRICS, ROUTES
from wordpiece_bert.serve.settings import ServerSettings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from wordpiece_bert.serve.models import AnyModel

__all__ = ["create_app", "logger"]


def create_app(
    models: Mapping[str, AnyModel],
    settings: ServerSettings | None = None,
    *,
    model_settings: Mapping[str, ServerSettings] | None = None,
) -> Any:
    """Return the server as an application for uvicorn or another ASGI server.

    Parameters
    ----------
    models : mapping
        The models by the names that requests use: sentence, sparse, multi-vector and cross encoders, and what
        `tasks.load` returns for a token classifier or a masked-language model. A request without a name gets the first
        of the kind it needs.
    settings : ServerSettings, optional
        Limits and batching.
    model_settings : mapping, optional
        Settings of single models by name, instead of `settings`: their prompts, batches and queues.

    Returns
    -------
    starlette.applications.Starlette
        The application. It takes no more work once its ``state.service.draining`` is set.

    Raises
    ------
    InputError
        Starlette is not installed, there is no model, or one is of no kind that the server has.
    ConfigError
        The rows of a cross encoder have no room for texts.
    """
    try:
        from starlette.applications import Starlette
        from starlette.routing import Route
    except ImportError as cause:
        raise InputError("the server needs Starlette: pip install 'wordpiece-bert[serve]'") from cause
    settings = ServerSettings() if settings is None else settings
    metrics = Metrics()
    served = Models(models, settings, model_settings or {}, metrics)
    service = Service(served, settings, metrics, int(time.time()))

    @asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[None]:
        yield
        await served.close()

    free = () if settings.metrics_key else (METRICS,)
    routes = [Route(route.path, Endpoint(route, service, needs_key=route not in free)) for route in ROUTES]
    app = Starlette(routes=routes, lifespan=lifespan)
    app.router.redirect_slashes = False
    app.router.default = Endpoint(None, service)
    app.state.service = service
    return app
