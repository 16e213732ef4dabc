"""The description of the server: an OpenAPI document, and the same as one offline page."""

from __future__ import annotations

import html
import json
from typing import TYPE_CHECKING, Any

from wordpiece_bert import _core
from wordpiece_bert.serve.fields import object_schema

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wordpiece_bert.serve.operations import Operation, Page, Route
    from wordpiece_bert.serve.settings import ServerSettings

_REFUSALS = {
    "400": "The request is wrong",
    "401": "A key is needed",
    "403": "The header Host has a name that the server does not answer to",
    "404": "There is no such model",
    "408": "The body did not arrive in time",
    "413": "The body is too large; on the paths of text-embeddings-inference also its texts or tokens",
    "415": "The body is not JSON, or packed otherwise than by gzip",
    "429": "The queue is full; the header Retry-After has the seconds to wait",
    "431": "The path and the headers are too large",
    "503": "The server is shutting down; the header Retry-After has the seconds to wait",
}


def schema(routes: Sequence[Route], settings: ServerSettings) -> dict[str, Any]:
    """Return the OpenAPI document of some routes, with the server's limits."""
    paths: dict[str, Any] = {}
    for route in routes:
        path = route.path.replace(":path}", "}")
        methods: dict[str, Any] = {}
        if route.page is not None:
            methods["get"] = _get(route.page)
        if route.operations:
            methods["post"] = _post(route.operations, settings)
        if "{model}" in path:
            of_path = {"name": "model", "in": "path", "required": True, "schema": {"type": "string"}}
            methods["parameters"] = [of_path]
        paths[path] = methods
    schemes = {
        "bearer": {"type": "http", "scheme": "bearer"},
        "header": {"type": "apiKey", "in": "header", "name": "api-key"},
    }
    keys = {"components": {"securitySchemes": schemes}, "security": [{"bearer": []}, {"header": []}]}
    info = {"title": "wordpiece-bert", "version": _core.__version__}
    return {"openapi": "3.1.0", "info": info, "paths": paths} | (keys if settings.api_keys else {})


def schema_text(routes: Sequence[Route], settings: ServerSettings) -> str:
    """Return the OpenAPI document as JSON."""
    return json.dumps(schema(routes, settings))


def _post(operations: Sequence[Operation], settings: ServerSettings) -> dict[str, Any]:
    summaries = list(dict.fromkeys(operation.summary for operation in operations))
    bodies = _one_of([object_schema(operation.fields, settings) for operation in operations])
    answers = _one_of([operation.result for operation in operations])
    content = {"required": True, "content": {"application/json": {"schema": bodies}}}
    responses: dict[str, Any] = {
        "200": {"description": "The answer", "content": {"application/json": {"schema": answers}}}
    }
    responses |= {status: {"description": text} for status, text in _REFUSALS.items()}
    return {"summary": "; ".join(summaries), "requestBody": content, "responses": responses}


def _one_of(schemas: list[dict[str, Any]]) -> dict[str, Any]:
    different = [one for index, one in enumerate(schemas) if one not in schemas[:index]]
    return different[0] if len(different) == 1 else {"oneOf": different}


def _get(of_page: Page) -> dict[str, Any]:
    media_type = of_page.media_type.partition(";")[0]
    return {"summary": of_page.summary, "responses": {"200": {"description": "", "content": {media_type: {}}}}}


def page(routes: Sequence[Route], settings: ServerSettings) -> str:
    """Return the description as one HTML page that loads nothing else."""
    document = schema(routes, settings)
    parts = []
    for path, methods in document["paths"].items():
        for method in ("get", "post"):
            if method not in methods:
                continue
            operation = methods[method]
            parts.append(f"<h2><code>{method.upper()} {html.escape(path)}</code></h2>")
            parts.append(f"<p>{html.escape(operation['summary'])}.</p>")
            body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
            parts += [_table(one) for one in body.get("oneOf", [body] if body else [])]
    style = (
        "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
        "table{margin-bottom:1rem}td{border-bottom:1px solid #8884;padding:.2rem .6rem;vertical-align:top}"
        ":root{color-scheme:light dark}"
    )
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>wordpiece-bert</title><style>{style}</style>'
        f"<h1>wordpiece-bert {html.escape(document['info']['version'])}</h1>"
        '<p>The same as an OpenAPI document: <a href="openapi.json">openapi.json</a>. * means required.</p>'
        f"{''.join(parts)}</html>"
    )


def _table(body: dict[str, Any]) -> str:
    required = body.get("required", [])
    rows = "".join(
        f"<tr><td><code>{html.escape(name)}</code>{' *' * (name in required)}</td>"
        f"<td><code>{html.escape(json.dumps(field))}</code></td></tr>"
        for name, field in body["properties"].items()
    )
    return f"<table>{rows}</table>"
