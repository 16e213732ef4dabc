"""The description of the server for programs: an OpenAPI document."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from wordpiece_bert import _core
from wordpiece_bert.serve.fields import object_schema

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wordpiece_bert.serve.operations import Operation, Page, Route
    from wordpiece_bert.serve.settings import ServerSettings

#: What a request may be refused with, by the status of HTTP.
REFUSALS = {
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
    asked, answered = (
        {"application/json": {"schema": one, "examples": _examples(operations, part)}}
        for one, part in ((bodies, "body"), (answers, "answer"))
    )
    content = {"required": True, "content": asked}
    responses: dict[str, Any] = {"200": {"description": "The answer", "content": answered}}
    responses |= {status: {"description": text} for status, text in REFUSALS.items()}
    return {"summary": "; ".join(summaries), "requestBody": content, "responses": responses}


def _examples(operations: Sequence[Operation], part: str) -> dict[str, Any]:
    """Return the bodies or the answers that the operations show, by what they do."""
    found = {}
    for one in operations:
        name = f"{one.summary} ({', '.join(sorted(one.required))})"
        found[name] = {"value": getattr(one.example, part)}
    return found


def _one_of(schemas: list[dict[str, Any]]) -> dict[str, Any]:
    different = [one for index, one in enumerate(schemas) if one not in schemas[:index]]
    return different[0] if len(different) == 1 else {"oneOf": different}


def _get(of_page: Page) -> dict[str, Any]:
    media_type = of_page.media_type.partition(";")[0]
    return {"summary": of_page.summary, "responses": {"200": {"description": "", "content": {media_type: {}}}}}
