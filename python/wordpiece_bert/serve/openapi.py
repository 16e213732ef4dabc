"""The description of the server: an OpenAPI document, and the same as one offline page."""

from __future__ import annotations

import html
import json
from typing import TYPE_CHECKING, Any

from wordpiece_bert import _core

if TYPE_CHECKING:
    from wordpiece_bert.serve.settings import ServerSettings

__all__ = ["page", "schema"]

_TEXT = {"type": "string"}
_FLAG = {"type": "boolean"}
_WHOLE = {"type": "integer", "minimum": 1}
_TRUNCATE = {
    "description": "Whether texts that are too long are truncated; else the request is refused. "
    "By default the server's setting.",
    "oneOf": [_FLAG, {"enum": ["END", "NONE"]}],
}
_MODEL = {"type": "string", "description": "The name of a model; by default the first of the kind that is needed."}
_SCORE = {"type": "object", "properties": {"index": {"type": "integer"}, "relevance_score": {"type": "number"}}}
_INDICES = {"type": "array", "items": {"type": "integer"}, "description": "The indices of texts that were truncated."}


def _texts(most: int) -> dict[str, Any]:
    return {"oneOf": [_TEXT, {"type": "array", "items": _TEXT, "minItems": 1, "maxItems": most}]}


def schema(settings: ServerSettings) -> dict[str, Any]:
    """Return the OpenAPI document, with the server's limits."""
    texts = _texts(settings.max_items)
    embeddings = {
        "input": texts,
        "model": _MODEL,
        "encoding_format": {"enum": ["float", "base64"], "default": "float"},
        "dimensions": _WHOLE | {"description": "How many numbers of each vector to keep."},
        "user": _TEXT,
        "prompt_name": _TEXT | {"description": "The name of the model's prompt to put before each text."},
        "truncate": _TRUNCATE,
    }
    vector = {"oneOf": [{"type": "array", "items": {"type": "number"}}, {"type": "string", "format": "byte"}]}
    entry = _object({"object": {"const": "embedding"}, "index": {"type": "integer"}, "embedding": vector})
    vectors = _object({"object": {"const": "list"}, "model": _TEXT, "usage": {"type": "object"}, "truncated": _INDICES})
    vectors["properties"]["data"] = {"type": "array", "items": entry}
    documents = {"type": "array", "items": {"oneOf": [_TEXT, _object({"text": _TEXT}, "text")]}}
    ranking = {
        "query": _TEXT,
        "documents": documents,
        "model": _MODEL,
        "top_n": _WHOLE,
        "return_documents": _FLAG,
        "truncate": _TRUNCATE,
        "truncation": _FLAG,
    }
    ranked = _object({"id": _TEXT, "results": {"type": "array", "items": _SCORE}, "truncated": _INDICES})
    scored = _object({"index": {"type": "integer"}, "score": {"type": "number"}, "text": _TEXT, "truncated": _FLAG})
    scoring = {
        "query": _TEXT,
        "texts": texts,
        "model": _MODEL,
        "raw_scores": _FLAG,
        "return_text": _FLAG,
        "truncate": _TRUNCATE,
        "truncation_direction": {"enum": ["Right", "right"]},
    }
    tokenizing = {"inputs": texts, "model": _MODEL, "add_special_tokens": _FLAG}
    token = _object({"id": {"type": "integer"}, "text": _TEXT, "special": _FLAG, "start": {}, "stop": {}})
    lists_of = {"type": "array", "items": {"type": "array", "items": token}}
    paths = {
        "/v1/embeddings": _post("Vectors of texts, as OpenAI has it", _object(embeddings, "input"), vectors),
        "/v1/rerank": _post("Ranks documents, as Jina has it", _object(ranking, "query", "documents"), ranked),
        "/v2/rerank": _post("Ranks documents, as Cohere has it", _object(ranking, "query", "documents"), ranked),
        "/rerank": _post(
            "Scores texts, as text-embeddings-inference has it",
            _object(scoring, "query", "texts"),
            {"type": "array", "items": scored},
        ),
        "/tokenize": _post("Tokens of texts, with characters", _object(tokenizing, "inputs"), lists_of),
        "/v1/models": _get("The models of this server", "application/json"),
        "/health": _get("Whether the server runs; needs no key", "application/json"),
        "/metrics": _get("Metrics in Prometheus' text format", "text/plain"),
    }
    keys = {"components": {"securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}}, "security": [{"key": []}]}
    info = {"title": "wordpiece-bert", "version": _core.__version__}
    return {"openapi": "3.1.0", "info": info, "paths": paths} | (keys if settings.api_keys else {})


def _object(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    found: dict[str, Any] = {"type": "object", "properties": properties}
    return found | ({"required": list(required)} if required else {})


def _post(summary: str, body: dict[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
    answers = {"200": {"description": "The answer", "content": {"application/json": {"schema": answer}}}}
    refusals = {
        "400": "The request is wrong",
        "401": "A key is needed",
        "404": "There is no such model",
        "408": "The body did not arrive in time",
        "413": "The body is too large",
        "415": "The body is not JSON",
        "429": "The queue is full; the header Retry-After has the seconds to wait",
        "431": "The path and the headers are too large",
        "503": "The server is shutting down",
    }
    content = {"required": True, "content": {"application/json": {"schema": body | {"additionalProperties": False}}}}
    responses = answers | {status: {"description": text} for status, text in refusals.items()}
    return {"post": {"summary": summary, "requestBody": content, "responses": responses}}


def _get(summary: str, media_type: str) -> dict[str, Any]:
    return {"get": {"summary": summary, "responses": {"200": {"description": "", "content": {media_type: {}}}}}}


def page(settings: ServerSettings) -> str:
    """Return the description as one HTML page that loads nothing else."""
    document = schema(settings)
    parts = []
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            parts.append(f"<h2><code>{method.upper()} {html.escape(path)}</code></h2>")
            parts.append(f"<p>{html.escape(operation['summary'])}.</p>")
            body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
            if body is not None:
                required = body.get("required", [])
                rows = "".join(
                    f"<tr><td><code>{html.escape(name)}</code>{' *' * (name in required)}</td>"
                    f"<td><code>{html.escape(json.dumps(field))}</code></td></tr>"
                    for name, field in body["properties"].items()
                )
                parts.append(f"<table>{rows}</table>")
    style = (
        "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
        "td{border-bottom:1px solid #8884;padding:.2rem .6rem;vertical-align:top}"
        ":root{color-scheme:light dark}"
    )
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>wordpiece-bert</title><style>{style}</style>'
        f"<h1>wordpiece-bert {html.escape(document['info']['version'])}</h1>"
        '<p>The same as an OpenAPI document: <a href="openapi.json">openapi.json</a>. * means required.</p>'
        f"{''.join(parts)}</html>"
    )
