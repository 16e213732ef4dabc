"""Traces and metrics for OpenTelemetry: their contents, that they have no text, and that they cost nothing unasked."""

from __future__ import annotations

import asyncio
import http.server
import json
import os
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest

from processes import printed
from serve_client import Answer, ask
from serve_fixtures import folders
from server_process import start, stop
from wordpiece_bert import SentenceEncoder
from wordpiece_bert.cli import main
from wordpiece_bert.errors import InputError
from wordpiece_bert.serve import ServerSettings, create_app
from wordpiece_bert.serve.telemetry import Telemetry

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytest.importorskip("uvicorn", reason="uvicorn is not installed: pip install '.[serve]'")

SECRET = "xylophonesecret"
TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = "b7ad6b7169203331"
NOT_INSTALLED = "OpenTelemetry is not installed: pip install '.[otel]'"


@pytest.fixture(scope="module")
def exporters() -> tuple[Any, Any]:
    """Exporters in memory, of the providers that a program sets."""
    pytest.importorskip("opentelemetry.sdk", reason=NOT_INSTALLED)
    from opentelemetry import metrics, trace
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    spans, reader = InMemorySpanExporter(), InMemoryMetricReader()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    trace.set_tracer_provider(provider)
    metrics.set_meter_provider(MeterProvider([reader]))
    return spans, reader


@pytest.fixture
def app(exporters: tuple[Any, Any], folders: Path) -> Iterator[Any]:
    exporters[0].clear()
    settings = ServerSettings(opentelemetry=True, batch_tokens=8)
    return create_app({"a": SentenceEncoder(folders / "sentences")}, settings)


def asked(app: Any, *requests: tuple[str, str, Any], **headers: str) -> list[Answer]:
    """Send requests at the same time."""

    async def run() -> list[Answer]:
        bodies = (json.dumps(body).encode() if isinstance(body, dict) else body for *_, body in requests)
        answers = [ask(app, m, p, body, **headers) for (m, p, _), body in zip(requests, bodies, strict=True)]
        found = await asyncio.gather(*answers)
        await app.service.models.close()
        return list(found)

    return asyncio.run(run())


def test_a_request_is_a_span_with_its_waiting_and_its_batches(
    app: Any, exporters: tuple[Any, Any], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO", "wordpiece_bert.serve"):
        [answer] = asked(
            app,
            ("POST", "/embed", {"inputs": ["bread"] * 6}),
            traceparent=f"00-{TRACE}-{PARENT}-01",
        )
    assert answer.status == 200
    spans = exporters[0].get_finished_spans()
    [request] = [span for span in spans if span.name == "POST /embed"]
    assert f"{request.context.trace_id:032x}" == TRACE
    assert f"{request.parent.span_id:016x}" == PARENT
    assert request.kind.name == "SERVER"
    assert {name: request.attributes[name] for name in ("http.request.method", "http.route")} == {
        "http.request.method": "POST",
        "http.route": "/embed",
    }
    assert request.attributes["http.response.status_code"] == 200
    assert request.attributes["wordpiece_bert.request_id"] == answer.headers["x-request-id"]
    inside = [span for span in spans if span is not request]
    assert [span.name for span in inside] == ["queue", "inference", "inference"]  # batches of 8 tokens and more
    for span in inside:
        assert span.parent.span_id == request.context.span_id
        assert span.attributes["wordpiece_bert.model"] == "a"
        assert request.start_time <= span.start_time + 10**6
        assert span.end_time <= request.end_time + 10**6
    assert inside[0].attributes["wordpiece_bert.tokens"] == 18
    assert [span.attributes["wordpiece_bert.tokens"] for span in inside[1:]] == [9, 9]
    assert TRACE in caplog.text


def test_requests_of_one_batch_keep_their_traces(app: Any, exporters: tuple[Any, Any]) -> None:
    requests = [("POST", "/embed", {"inputs": text}) for text in ("bread", "oven", "flour", "the")]
    assert {answer.status for answer in asked(app, *requests)} == {200}
    spans = exporters[0].get_finished_spans()
    traces: dict[int, list[str]] = {}
    for span in spans:
        traces.setdefault(span.context.trace_id, []).append(span.name)
    assert [sorted(names) for names in traces.values()] == [["POST /embed", "inference", "queue"]] * 4


def test_refusals_and_errors(app: Any, exporters: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError(SECRET)

    monkeypatch.setattr(app.service.models.find("a").batcher, "_run", fail)
    headers = {"x-request-id": "not an id"}
    asked(
        app,
        ("POST", "/embed", {"inputs": SECRET}),
        ("POST", "/embed", {SECRET: 1}),
        ("POST", "/models/" + SECRET, {"inputs": SECRET}),
        ("GET", "/" + SECRET, b""),
        (SECRET, "/health", b""),
        **headers,
    )
    spans = exporters[0].get_finished_spans()
    found = {(span.name, span.attributes["http.response.status_code"], span.status.status_code.name) for span in spans}
    assert found == {
        ("POST /embed", 500, "ERROR"),
        ("POST /embed", 400, "UNSET"),
        ("POST /models/{model:path}", 404, "UNSET"),
        ("GET", 404, "UNSET"),
        ("_OTHER /health", 405, "UNSET"),
    }
    assert SECRET not in "".join(span.to_json() for span in spans)


def test_metrics_are_those_of_the_server(app: Any, exporters: tuple[Any, Any]) -> None:
    def points() -> dict[str, list[Any]]:
        found: dict[str, list[Any]] = {}
        data = exporters[1].get_metrics_data()
        for resource in data.resource_metrics if data else []:
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    found.setdefault(metric.name, []).extend(metric.data.data_points)
        return found

    def total(name: str) -> float:
        return sum(getattr(point, "value", getattr(point, "count", 0)) for point in points().get(name, []))

    names = ("wordpiece_bert.texts", "wordpiece_bert.tokens", "wordpiece_bert.queue.duration")
    before = {name: total(name) for name in names}
    before["http.server.request.duration"] = total("http.server.request.duration")
    asked(app, ("POST", "/embed", {"inputs": ["bread", "oven"]}), ("GET", "/health", b""))
    grown = {name: total(name) - value for name, value in before.items()}
    assert grown == {
        "wordpiece_bert.texts": 2,
        "wordpiece_bert.tokens": 6,
        "wordpiece_bert.queue.duration": 1,
        "http.server.request.duration": 2,
    }
    durations = points()["http.server.request.duration"]
    assert {
        "http.request.method": "GET",
        "http.route": "/health",
        "http.response.status_code": 200,
    } in [dict(point.attributes) for point in durations]
    assert durations[0].explicit_bounds[0] == 0.001
    assert {"wordpiece_bert.queue.tokens", "wordpiece_bert.inference.duration", "wordpiece_bert.batch.tokens"} <= set(
        points()
    )


PROGRAM = """
import asyncio, sys
from serve_client import ask
from wordpiece_bert import SentenceEncoder
from wordpiece_bert.serve import create_app
app = create_app({"a": SentenceEncoder(sys.argv[1])})
assert asyncio.run(ask(app, "POST", "/embed", b'{"inputs": "bread"}')).status == 200
assert not [name for name in sys.modules if name.startswith("opentelemetry")]
"""


def test_nothing_is_imported_where_it_is_not_asked_for(folders: Path) -> None:
    printed(PROGRAM, folders / "sentences")


def test_without_the_packages(folders: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    app = create_app({"a": SentenceEncoder(folders / "sentences")})
    with pytest.raises(InputError, match=r"pip install 'wordpiece-bert\[otel\]'"):
        Telemetry(app.service.metrics)
    assert main(["serve", str(folders / "sentences"), "--opentelemetry"]) == 2
    assert "wordpiece-bert[otel]" in capsys.readouterr().err


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGTERM")
def test_the_command_exports_over_otlp_until_it_ends(folders: Path) -> None:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason=NOT_INSTALLED)
    received: dict[str, bytes] = {}

    class Collector(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            received[self.path] = received.get(self.path, b"") + body
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector) as collector:
        thread = threading.Thread(target=collector.serve_forever)
        thread.start()
        address = f"http://127.0.0.1:{collector.server_port}"
        variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": address, "OTEL_EXPORTER_OTLP_COMPRESSION": "none"}
        server = start(folders / "sentences", "--opentelemetry", **variables)
        try:
            assert server.post("/embed", {"inputs": SECRET})[0] == 200
        finally:
            stop(server)
            collector.shutdown()
            thread.join()
    assert b"POST /embed" in received["/v1/traces"]
    assert b"inference" in received["/v1/traces"]
    assert b"http.server.request.duration" in received["/v1/metrics"]
    for body in received.values():
        assert b"wordpiece-bert" in body
        assert SECRET.encode() not in body


def test_other_exporters_are_refused(
    folders: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason=NOT_INSTALLED)
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "zipkin")
    assert main(["serve", str(folders / "sentences"), "--opentelemetry", "--quiet"]) == 2
    assert "OTEL_TRACES_EXPORTER is 'zipkin'" in capsys.readouterr().err
