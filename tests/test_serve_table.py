"""The table of paths: what each lists, and its refusals in the form of its dialect."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from serve_client import Client
from serve_fixtures import KINDS, _closing, client, encoder, folders
from server_process import complaint_of
from wordpiece_bert.serve import ServerSettings, create_app
from wordpiece_bert.serve.fields import Refused
from wordpiece_bert.serve.routes import ROUTES

if TYPE_CHECKING:
    from wordpiece_bert import SentenceEncoder


def test_models_are_listed_with_their_kinds_and_limits(client: Client) -> None:
    listed = client.request("GET", "/v1/models")[1]["data"]
    assert {one["id"]: one["kind"] for one in listed} == KINDS
    assert client.request("GET", "/v1/models/ranker")[1] == listed[1]
    info = client.request("GET", "/info")[1]
    assert info["model_id"] == "sentences"
    assert info["model_type"] == {"embedding": {"pooling": "mean"}}
    assert (info["max_input_length"], info["max_client_batch_size"]) == (64, 20)
    assert {name: one["kind"] for name, one in info["models"].items()} == KINDS
    for path in ("/", "/health", "/ping", "/ready"):
        assert client.request("GET", path)[0] == 200


def test_the_fields_tell_the_dialect_of_a_shared_path(client: Client) -> None:
    assert "are none" in client.refused("/rerank", query="a")
    assert "are those of text-embeddings-inference and vLLM" in client.refused(
        "/rerank", query="a", texts=["b"], documents=["b"]
    )
    assert "are none" in client.refused("/score", text="a")
    _, found = client.request("POST", "/rerank", b'{"query": 1, "documents": ["a"]}')
    assert found["error"]["code"] == 400  # in vLLM's form
    _, found = client.request("POST", "/rerank", b'{"query": 1, "texts": ["a"]}')
    assert found["error_type"] == "Validation"


@pytest.mark.parametrize(
    ("path", "keys"),
    [("/v1/none", {"error", "detail"}), ("/v2/none", {"message", "detail"}), ("/none", {"error", "error_type"})],
)
def test_paths_that_do_not_exist_are_refused_in_the_dialect_and_counted(
    client: Client, path: str, keys: set[str]
) -> None:
    for method in ("GET", "POST", "DELETE"):
        status, found = client.request(method, path)
        assert (status, set(found)) == (404, keys)
    assert client.request("DELETE", "/v2/embed")[0] == 405
    metrics = client.request("GET", "/metrics")[1]
    assert 'requests_total{path="-",status="404"}' in metrics
    assert 'requests_total{path="/v2/embed",status="405"}' in metrics


def test_all_paths_are_behind_the_key(encoder: SentenceEncoder) -> None:
    client = Client(create_app({"a": encoder}, ServerSettings(api_keys=("key",))))
    for method, path in (
        ("GET", "/none"),
        ("DELETE", "/embed"),
        ("POST", "/embed"),
        ("POST", "/"),
        ("GET", "/metrics"),
    ):
        assert client.request(method, path)[0] == 401, path
    assert client.request("GET", "/none", **{"api-key": "key"})[0] == 404
    assert client.request("GET", "/metrics", authorization="bearer key")[0] == 200
    for path in ("/", "/health", "/ping", "/ready"):
        assert client.request("GET", path)[0] == 200
    free = Client(create_app({"a": encoder}, ServerSettings(api_keys=("key",), metrics_key=False)))
    assert (free.request("GET", "/metrics")[0], free.request("GET", "/info")[0]) == (200, 401)


@pytest.mark.parametrize("route", [route for route in ROUTES if route.operations], ids=lambda route: route.path)
def test_fields_that_are_not_served_are_refused_by_name(client: Client, route: Any) -> None:
    for operation in route.operations:
        if route.chooses is not None:
            continue
        required = {name: ["a"] for name in operation.required}
        for field in operation.fields:
            if isinstance(field.kind, Refused):
                message = client.refused(route.path, **required, **{field.name: "something"})
                # A required field that is wrong may come first.
                assert message.startswith(f"{field.name} is not served: ") or " must be " in message


def form_of(found: Any) -> str:
    """Return the API in whose form a refusal is, after a check of the form."""
    if set(found) == {"error", "error_type"}:
        assert isinstance(found["error"], str)
        assert found["error_type"] in ("Unhealthy", "Backend", "Overloaded", "Validation", "Tokenizer", "Empty")
        return "text-embeddings-inference"
    if set(found) == {"message", "detail"}:
        assert found["message"] == found["detail"]
        return "Cohere"
    error = found["error"]
    assert set(error) == {"message", "type", "param", "code"}
    if set(found) == {"error", "detail"}:
        assert error["message"] == found["detail"]
        assert error["type"] in ("invalid_request_error", "rate_limit_error", "server_error")
        return "OpenAI"
    assert set(found) == {"error"}
    assert isinstance(error["code"], int)
    return "vLLM"


FORMS = {"Jina": "Cohere"}


@pytest.mark.parametrize("route", [route for route in ROUTES if route.operations], ids=lambda route: route.path)
def test_errors_have_the_form_of_the_api_on_each_path(client: Client, route: Any) -> None:
    for operation in route.operations:
        path = route.path.replace("{model:path}", "reviews")
        required = {name: ["a"] for name in operation.required}
        asked = [
            ("POST", path, {**required, "no such field": 1}, 400),
            ("DELETE", path, {}, 405),
        ]
        if "model" in {field.name for field in operation.fields}:
            asked.append(("POST", route.path.replace("{model:path}", "gpt"), {**required, "model": "gpt"}, 404))
        for method, sent_to, fields, expected in asked:
            status, found = client.request(method, sent_to, json.dumps(fields).encode())
            if status == 400 and expected == 404:  # a required field is not a list: it is refused first
                assert " must be " in complaint_of(found)
                continue
            dialect = operation.dialect if method == "POST" else route.dialect
            assert (status, form_of(found)) == (expected, FORMS.get(dialect.name, dialect.name))
            if dialect.name == "vLLM":
                kinds = {400: "BadRequestError", 404: "NotFoundError", 405: "Method Not Allowed"}
                assert (found["error"]["type"], found["error"]["code"]) == (kinds[status], status)
            elif dialect.name == "OpenAI":
                codes = {400: "unknown_field", 404: "model_not_found", 405: "method_not_allowed"}
                assert (found["error"]["type"], found["error"]["code"]) == ("invalid_request_error", codes[status])
            elif dialect.name == "text-embeddings-inference":
                assert found["error_type"] == "Validation"


@pytest.mark.parametrize(
    ("path", "field", "more", "status"),
    [
        ("/embed", "inputs", {}, 413),
        ("/embed_all", "inputs", {}, 413),
        ("/embed_sparse", "inputs", {}, 413),
        ("/rerank", "texts", {"query": "a"}, 413),
        ("/models/sentences", "inputs", {}, 413),
        ("/rerank", "documents", {"query": "a"}, 400),
        ("/v1/embeddings", "input", {}, 400),
        ("/v2/embed", "texts", {}, 400),
        ("/v1/rerank", "documents", {"query": "a"}, 400),
        ("/pooling", "input", {}, 400),
    ],
)
def test_what_is_too_large_is_413_for_clients_of_tei(
    client: Client, path: str, field: str, more: dict[str, str], status: int
) -> None:
    many, long = {**more, field: ["a"] * 21}, {**more, field: ["bread " * 99], "truncate": False}
    assert "more than the server's limit of 20" in client.refused(path, status, **many)
    if path != "/pooling":  # which has no `truncate`
        assert "more than the model's" in client.refused(path, status, **long)


def test_an_error_inside_is_of_the_backend(encoder: SentenceEncoder, monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client(create_app({"a": encoder}))

    def fail(*_: object) -> None:
        raise RuntimeError

    monkeypatch.setattr(client.app.service.models.find("a").batcher, "_run", fail)
    for path, field, expected in (
        ("/embed", "inputs", "Backend"),
        ("/v1/embeddings", "input", "server_error"),
        ("/pooling", "input", "InternalServerError"),
    ):
        status, found = client.request("POST", path, json.dumps({field: "a"}).encode())
        assert (status, found.get("error_type") or found["error"]["type"]) == (500, expected)


def test_a_length_of_rows_is_refused_by_the_name_of_its_field(client: Client) -> None:
    status, found = client.request(
        "POST", "/v1/embeddings", b'{"input": "a", "model": "static", "truncate_prompt_tokens": 8}'
    )
    assert (status, found["error"]["param"]) == (400, "truncate_prompt_tokens")
    assert complaint_of(found).startswith("truncate_prompt_tokens (or max_tokens) is not served: ")
    assert "max_tokens" in client.refused("/v2/embed", texts=["a"], model="static", max_tokens=8)


BAD = ({"a": 1}, 1.5, True, [{}], [[[]]], [None], "\ud800", 10**400)


@pytest.mark.parametrize(
    "path", [route.path.replace("{model:path}", "reviews") for route in ROUTES if route.operations]
)
def test_bad_values_of_every_field_are_refused_in_json(client: Client, path: str) -> None:
    route = next(route for route in ROUTES if route.path.replace("{model:path}", "reviews") == path)
    for operation in route.operations:
        usual = {field.name: "a" for field in operation.fields if field.required}
        for field in operation.fields:
            for value in BAD:
                body = json.dumps({**usual, field.name: value}).encode()
                status, found = client.request("POST", path, body)
                assert status < 500, (field.name, value, found)
                if status != 200:
                    assert complaint_of(found)
    for body in (b"", b"[]", b'{"inputs": NaN}', b'{"inputs": Infinity}', b'{"inputs": 1e999}', b"[" * 100_000):
        status, found = client.request("POST", path, body)
        assert (status in (400, 413), bool(complaint_of(found))) == (True, True)
