"""Traces and metrics for OpenTelemetry: a span for each request, in it its waiting and its batches, and no text.

Nothing of OpenTelemetry is imported before a `Telemetry` is made. Names of attributes and of the duration of requests
follow its semantic conventions for HTTP, https://opentelemetry.io/docs/specs/semconv/http/.
"""

from __future__ import annotations

import contextlib
import os
import time
from time import perf_counter
from typing import TYPE_CHECKING, Any

from wordpiece_bert import _core
from wordpiece_bert.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

_NAME = "wordpiece_bert.serve"
_INSTALL = "OpenTelemetry is not installed: pip install 'wordpiece-bert[otel]'"
# The metrics of the server by their names here, with their names and units there. Counts and times of requests are
# one histogram of the conventions.
_METRICS = {
    "texts": ("wordpiece_bert.texts", "{text}"),
    "tokens": ("wordpiece_bert.tokens", "{token}"),
    "recent": ("wordpiece_bert.recent_results", "{text}"),
    "recent_bytes": ("wordpiece_bert.recent_results.size", "By"),
    "truncated": ("wordpiece_bert.truncated_texts", "{text}"),
    "queue_tokens": ("wordpiece_bert.queue.tokens", "{token}"),
    "queue_requests": ("wordpiece_bert.queue.requests", "{request}"),
    "queue_seconds": ("wordpiece_bert.queue.duration", "s"),
    "inference_seconds": ("wordpiece_bert.inference.duration", "s"),
    "batch_tokens": ("wordpiece_bert.batch.tokens", "{token}"),
}


class Telemetry:
    """What the server gives to the providers of traces and metrics that the program has set.

    Parameters
    ----------
    metrics : Metrics
        The metrics of the server, which are given on.

    Raises
    ------
    InputError
        OpenTelemetry is not installed.
    """

    def __init__(self, metrics: Any) -> None:
        try:
            from opentelemetry import context, propagate, trace
            from opentelemetry.metrics import Observation, get_meter
        except ImportError as cause:
            raise InputError(_INSTALL) from cause
        self.trace, self.context, self._propagate = trace, context, propagate
        self._tracer = trace.get_tracer(_NAME, _core.__version__)
        meter = get_meter(_NAME, _core.__version__)
        self.durations = meter.create_histogram(
            "http.server.request.duration",
            "s",
            metrics.seconds.description,
            explicit_bucket_boundaries_advisory=metrics.seconds.bounds,
        )
        for name, (shown, unit) in _METRICS.items():
            metric: Any = getattr(metrics, name)
            if metric.kind == "gauge":

                def read(_: object, metric: Any = metric) -> list[Any]:
                    return [Observation(value, dict(labels)) for labels, value in metric.values()]

                meter.create_observable_gauge(shown, [read], unit, metric.description)
            elif metric.kind == "counter":
                metric.given_on = _taking_labels(meter.create_counter(shown, unit, metric.description).add)
            else:
                histogram = meter.create_histogram(
                    shown, unit, metric.description, explicit_bucket_boundaries_advisory=metric.bounds
                )
                metric.given_on = _taking_labels(histogram.record)

    def request(self, method: str, route: str | None, headers: dict[bytes, bytes]) -> RequestSpan:
        """Begin the span of a request, which is the span of the current task until it ends."""
        carrier = {name.decode("latin-1"): value.decode("latin-1") for name, value in headers.items()}
        attributes = {"http.request.method": method} | ({} if route is None else {"http.route": route})
        span = self._tracer.start_span(
            method if route is None else f"{method} {route}",
            self._propagate.extract(carrier),
            kind=self.trace.SpanKind.SERVER,
            attributes=attributes,
        )
        return RequestSpan(self, span, attributes)

    def current(self) -> Any:
        """Return the context of the current request."""
        return self.context.get_current()

    def passed(self, name: str, within: Any, start: float, end: float, model: str, tokens: int) -> None:
        """Record what a request has passed: a span in its context, between two times of `perf_counter`."""
        attributes: dict[str, Any] = {"wordpiece_bert.model": model, "wordpiece_bert.tokens": tokens}
        begun, ended = _nanoseconds(start), _nanoseconds(end)
        self._tracer.start_span(name, within, attributes=attributes, start_time=begun).end(ended)


class RequestSpan:
    """The span of a request."""

    def __init__(self, telemetry: Telemetry, span: Any, attributes: dict[str, Any]) -> None:
        self._telemetry = telemetry
        self._span = span
        self._attributes = attributes
        self._token = telemetry.context.attach(telemetry.trace.set_span_in_context(span))

    @property
    def trace_id(self) -> bytes:
        """The id of the trace, in hexadecimal digits."""
        return b"%032x" % self._span.get_span_context().trace_id

    def end(self, status: int, seconds: float, request_id: str) -> None:
        """End the span, and count the request."""
        telemetry = self._telemetry
        telemetry.context.detach(self._token)
        self._attributes["http.response.status_code"] = status
        self._span.set_attribute("http.response.status_code", status)
        self._span.set_attribute("wordpiece_bert.request_id", request_id)
        if status >= 500:
            self._span.set_status(telemetry.trace.StatusCode.ERROR)
            self._attributes["error.type"] = str(status)
        self._span.end()
        telemetry.durations.record(seconds, self._attributes)


def _taking_labels(method: Any) -> Any:
    """Return a method of an instrument as a function of an amount and labels."""

    def give(amount: float, labels: tuple[tuple[str, str], ...]) -> None:
        method(amount, dict(labels))

    return give


def _nanoseconds(moment: float) -> int:
    """Return a time of `perf_counter` in nanoseconds since 1970."""
    return time.time_ns() - int((perf_counter() - moment) * 1e9)


@contextlib.contextmanager
def exported() -> Iterator[None]:
    """Send traces and metrics over OTLP and HTTP as the variables ``OTEL_*`` say, unless the program has set providers.

    Raises
    ------
    InputError
        OpenTelemetry is not installed, or a variable names another exporter.
    """
    try:
        from opentelemetry import metrics, trace
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
        from opentelemetry.sdk.resources import SERVICE_NAME, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as cause:
        raise InputError(_INSTALL) from cause
    resource = Resource.create()
    if str(resource.attributes[SERVICE_NAME]).startswith("unknown_service"):
        resource = resource.merge(Resource({SERVICE_NAME: "wordpiece-bert"}))
    made: list[Any] = []
    if _is_wanted("OTEL_TRACES_EXPORTER") and isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        tracers = TracerProvider(resource=resource)
        tracers.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        trace.set_tracer_provider(tracers)
        made.append(tracers)
    if _is_wanted("OTEL_METRICS_EXPORTER") and not isinstance(metrics.get_meter_provider(), MeterProvider):
        meters = MeterProvider([PeriodicExportingMetricReader(OTLPMetricExporter())], resource=resource)
        metrics.set_meter_provider(meters)
        made.append(meters)
    try:
        yield
    finally:
        for provider in made:
            provider.shutdown()  # sends what is left


def _is_wanted(variable: str) -> bool:
    """Return whether a variable leaves the exporter as it is by default, OTLP, and not ``none``."""
    value = os.environ.get(variable, "").strip() or "otlp"
    if value not in ("otlp", "none"):
        raise InputError(
            f"{variable} is {value!r}, and the server itself exports over OTLP: run it by opentelemetry-instrument"
        )
    return value == "otlp"
