"""The table of routes: every path of the server, with what it takes and answers in which dialect."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wordpiece_bert.serve.description_page import page
from wordpiece_bert.serve.dialects import cohere, hugging_face, infinity, openai, tei, vllm
from wordpiece_bert.serve.errors import COHERE, OPENAI, TEI
from wordpiece_bert.serve.metrics import CONTENT_TYPE
from wordpiece_bert.serve.openapi import schema_text
from wordpiece_bert.serve.operations import Page, Route

if TYPE_CHECKING:
    from wordpiece_bert.serve.errors import Dialect
    from wordpiece_bert.serve.operations import Asked, Service


def _metrics(service: Service, _: Asked) -> str:
    return service.metrics.text()


def _schema(service: Service, _: Asked) -> str:
    return schema_text(DESCRIBED, service.settings)


def _page(service: Service, asked: Asked) -> str:
    return page(DESCRIBED, service, asked.address)


#: The path whose key an option switches off.
METRICS = Route("/metrics", TEI, page=Page("Metrics in Prometheus' text format", _metrics, CONTENT_TYPE))
#: The paths that the description of the server has.
DESCRIBED = (*openai.ROUTES, *cohere.ROUTES, *tei.ROUTES, *vllm.ROUTES, *infinity.ROUTES, *hugging_face.ROUTES, METRICS)
#: All paths.
ROUTES = (
    *DESCRIBED,
    Route("/openapi.json", TEI, page=Page("This description as an OpenAPI document", _schema)),
    Route("/docs", TEI, page=Page("This description as a page", _page, "text/html; charset=utf-8")),
)


def dialect_of(path: str) -> Dialect:
    """Return the dialect in which a path that does not exist is refused."""
    if path.startswith("/v2/"):
        return COHERE
    return OPENAI if path.startswith(("/v1/", "/infinity/")) else TEI
