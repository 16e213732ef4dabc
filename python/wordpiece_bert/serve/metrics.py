"""Counters, gauges and histograms in Prometheus' text format. All updates are made by the event loop's thread."""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from wordpiece_bert.serve.telemetry import Telemetry

#: The media type of the format.
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

#: The bounds of histograms of times.
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)

#: Names and values.
Labels: TypeAlias = tuple[tuple[str, str], ...]


class Counter:
    """A number that grows, one for each combination of labels."""

    kind = "counter"

    def __init__(self, name: str, description: str) -> None:
        self.name = name
        self.description = description
        #: Called with each amount and its labels.
        self.given_on: Callable[[float, Labels], object] | None = None
        self._values: dict[Labels, float] = {}

    def add(self, amount: float = 1, **labels: str) -> None:
        """Add to the number with these labels."""
        key = tuple(labels.items())
        self._values[key] = self._values.get(key, 0) + amount
        if self.given_on is not None:
            self.given_on(amount, key)

    def lines(self) -> list[str]:
        """Return the lines of the text format, without the header."""
        return [f"{self.name}{_labels(key)} {_number(value)}" for key, value in (self._values or {(): 0}).items()]


class Gauge:
    """A number that is read when it is asked for."""

    kind = "gauge"

    def __init__(self, name: str, description: str) -> None:
        self.name = name
        self.description = description
        self._readers: dict[Labels, Callable[[], float]] = {}

    def read(self, reader: Callable[[], float], **labels: str) -> None:
        """Set the function that returns the number with these labels."""
        self._readers[tuple(labels.items())] = reader

    def values(self) -> list[tuple[Labels, float]]:
        """Return the numbers with their labels."""
        return [(labels, reader()) for labels, reader in self._readers.items()]

    def lines(self) -> list[str]:
        """Return the lines of the text format, without the header."""
        return [f"{self.name}{_labels(labels)} {_number(value)}" for labels, value in self.values()]


class Histogram:
    """How often values fell into ranges, for each combination of labels."""

    kind = "histogram"

    def __init__(self, name: str, description: str, bounds: Sequence[float]) -> None:
        self.name = name
        self.description = description
        self.bounds = list(bounds)
        #: Called with each value and its labels.
        self.given_on: Callable[[float, Labels], object] | None = None
        self._counts: dict[Labels, list[int]] = {}
        self._sums: dict[Labels, float] = {}

    def observe(self, value: float, **labels: str) -> None:
        """Count a value."""
        key = tuple(labels.items())
        counts = self._counts.setdefault(key, [0] * (len(self.bounds) + 1))
        counts[bisect_left(self.bounds, value)] += 1
        self._sums[key] = self._sums.get(key, 0.0) + value
        if self.given_on is not None:
            self.given_on(value, key)

    def lines(self) -> list[str]:
        """Return the lines of the text format, without the header."""
        found = []
        for key, counts in self._counts.items():
            bounds = [*map(_number, self.bounds), "+Inf"]
            for bound, total in zip(bounds, accumulate(counts), strict=True):
                found.append(f"{self.name}_bucket{_labels((*key, ('le', bound)))} {total}")
            found.append(f"{self.name}_sum{_labels(key)} {_number(self._sums[key])}")
            found.append(f"{self.name}_count{_labels(key)} {sum(counts)}")
        return found


class Metrics:
    """The metrics of the server.

    Attributes
    ----------
    telemetry : Telemetry or None
        What gives them on, and takes spans.
    """

    def __init__(self) -> None:
        self.telemetry: Telemetry | None = None
        prefix = "wordpiece_bert_"
        self.requests = Counter(f"{prefix}requests_total", "Requests by path and status.")
        self.texts = Counter(f"{prefix}texts_total", "Texts, or pairs of texts, that went through a model.")
        self.tokens = Counter(f"{prefix}tokens_total", "Tokens that went through a model.")
        self.recent = Counter(
            f"{prefix}recent_results_total", "Texts, or pairs of texts, whose results were kept from earlier ones."
        )
        self.truncated = Counter(f"{prefix}truncated_texts_total", "Texts that were truncated.")
        self.queue_tokens = Gauge(f"{prefix}queue_tokens", "Tokens that wait for a model.")
        self.queue_requests = Gauge(f"{prefix}queue_requests", "Requests that wait for a model.")
        self.recent_bytes = Gauge(f"{prefix}recent_results_bytes", "Memory of the results that are kept.")
        self.inflight_bytes = Gauge(
            f"{prefix}inflight_bytes", "Bytes of bodies that arrive or are answered, and of answers not taken yet."
        )
        self.seconds = Histogram(
            f"{prefix}request_duration_seconds", "Time from the headers of a request to its answer.", _SECONDS
        )
        self.queue_seconds = Histogram(
            f"{prefix}queue_duration_seconds", "Time that a request waits for a model.", _SECONDS
        )
        self.inference_seconds = Histogram(
            f"{prefix}inference_duration_seconds", "Time that a batch takes in a model.", _SECONDS
        )
        self.batch_tokens = Histogram(
            f"{prefix}batch_tokens", "Tokens of the batches that went through a model.", [4**k for k in range(2, 10)]
        )

    def text(self) -> str:
        """Return all metrics in Prometheus' text format."""
        lines = []
        for metric in vars(self).values():
            if not isinstance(metric, Counter | Gauge | Histogram):
                continue
            lines += [f"# HELP {metric.name} {metric.description}", f"# TYPE {metric.name} {metric.kind}"]
            lines += metric.lines()
        return "\n".join(lines) + "\n"


def _labels(labels: Labels) -> str:
    """Return labels in braces, with the characters escaped that the format escapes."""
    if not labels:
        return ""
    escaped = ((name, value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")) for name, value in labels)
    return "{" + ",".join(f'{name}="{value}"' for name, value in escaped) + "}"


def _number(value: float) -> str:
    return repr(int(value)) if float(value).is_integer() else repr(float(value))
