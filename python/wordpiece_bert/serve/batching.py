"""Rows of concurrent requests, together through one model: a bounded queue and batches by tokens.

A batch starts when it is full, or when the model is idle and as many requests wait as there were when the last batch
ended, in it or in the queue: most clients send the next request when they have the answer. One that is alone waits for
nobody, and a short one runs in the event loop, since the way to the thread of the model and back takes as long as a
sentence; several wait while requests go on coming, each within the fill deadline of the one before. While the model
runs, rows collect. Waiting requests take turns, so that a long one does not hold up those behind it. While there are
short requests and long ones, a batch has only as many tokens of the long ones as take some milliseconds, and the short
ones come first.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from bisect import bisect_right
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from wordpiece_bert.serve.errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    import numpy.typing as npt

    from wordpiece_bert.serve.metrics import Metrics
    from wordpiece_bert.serve.settings import ServerSettings
    from wordpiece_bert.serve.telemetry import Telemetry

#: A result for each row: an array or a list.
Results: TypeAlias = Any

# A turn of a request is this share of a batch while others wait.
_TURNS = 4
# Seconds for which batches stay short after there was a long or a short request.
_MIXED = 1.0
# How many times as long a batch may be while there are requests of one kind only.
_ALONE = 12
# The weight of the last batch in the estimate of tokens per second.
_LATEST = 0.2
# A request that is alone runs in the event loop if it takes at most so many seconds, in which nothing else is answered.
_IN_LOOP = 0.005
# An idle model waits for requests for at most this share of the time that the last batch took.
_WAITING = 0.5


class Part(NamedTuple):
    """Some rows of a request, in a batch."""

    rows: Any
    start: int
    stop: int


class _Job:
    """A request: its rows, how many of them are in batches, and the results so far."""

    def __init__(self, rows: Any, lengths: npt.NDArray[np.int64], key: Hashable, future: asyncio.Future[Any]) -> None:
        self.rows = rows
        self.ends: list[int] = [0, *accumulate(lengths.tolist())]  # tokens before each row; most requests have one
        self.key = key
        self.future = future
        self.arrived = perf_counter()
        self.taken = 0
        self.results: list[Results] = []
        #: The context of the request, for its spans.
        self.context: Any = None

    @property
    def total(self) -> int:
        """The number of rows."""
        return len(self.ends) - 1

    @property
    def waiting_tokens(self) -> int:
        """The tokens of the rows that are in no batch yet."""
        return self.ends[-1] - self.ends[self.taken]

    def take(self, tokens: int) -> Part:
        """Take the next rows, of at most some tokens, but at least one row."""
        start = self.taken
        stop = bisect_right(self.ends, self.ends[start] + tokens) - 1
        self.taken = max(stop, start + 1)
        return Part(self.rows, start, self.taken)


class Batcher:
    """Puts rows of requests through one model.

    Parameters
    ----------
    run : callable
        Computes a batch in the thread of the model: ``run(key, parts)`` returns an array or a list with a result for
        each row of the parts, in their order.
    settings : ServerSettings
        The limits.
    metrics : Metrics
        Counts batches and tokens.
    name : str
        The name of the model, for the metrics.
    """

    def __init__(
        self,
        run: Callable[[Any, Sequence[Part]], Results],
        settings: ServerSettings,
        metrics: Metrics,
        name: str,
    ) -> None:
        self._run = run
        self._settings = settings
        self._metrics = metrics
        self._name = name
        self._jobs: deque[_Job] = deque()
        self._tokens = 0
        self._rate = 0.0  # tokens per second of the last full batches
        self._short = self._long = -_MIXED  # when there was a request last that takes less, or more, than a short batch
        self._without = 0  # batches since a long request was in one
        self._active = 1  # requests when the last batch ended, in it or in the queue: as many may come again
        self._ended = 0.0  # when it ended
        self._seconds = 0.0  # how long it took
        self._last_tokens = 0
        self._enough = asyncio.Event()
        self._thread = self._new_thread()
        self._task: asyncio.Task[None] | None = None
        metrics.queue_tokens.read(lambda: self._tokens, model=name)
        metrics.queue_requests.read(lambda: len(self._jobs), model=name)

    def _new_thread(self) -> ThreadPoolExecutor:
        """Return what computes batches; its thread begins with the first."""
        return ThreadPoolExecutor(1, thread_name_prefix=f"model {self._name}")

    async def submit(self, rows: Any, lengths: npt.NDArray[np.int64], key: Hashable = None) -> Results:
        """Put the rows of a request into the queue and wait for their results.

        Parameters
        ----------
        rows
            What `run` gets in the parts.
        lengths
            The number of tokens of each row, [rows]; at least one row.
        key
            Only rows with equal keys are in one batch.

        Raises
        ------
        RequestError
            With status 429: the queue is full, or what waits would take too long.
        """
        job = _Job(rows, lengths, key, asyncio.get_running_loop().create_future())
        if self._metrics.telemetry is not None:
            job.context = self._metrics.telemetry.current()
        tokens, settings = job.waiting_tokens, self._settings
        seconds = self._tokens / self._rate if self._rate else 1.0
        is_long = bool(settings.max_wait and self._rate and seconds > settings.max_wait)
        if is_long or self._tokens + tokens > settings.queue_tokens or len(self._jobs) >= settings.queue_requests:
            after = max(1, min(math.ceil(seconds), 600))
            message = f"the queue of {self._name} is full ({self._tokens} tokens wait); try again in {after} s"
            raise RequestError(429, message, code="queue_full", retry_after=after)
        if self._task is None or self._task.done():  # the event loop that ran it may have ended
            self._enough = asyncio.Event()
            self._task = asyncio.get_running_loop().create_task(self._work())
        if tokens > self._short_batch:
            self._long = job.arrived
        else:
            self._short = job.arrived
        self._jobs.append(job)
        self._tokens += tokens
        if len(self._jobs) == 1 or self._is_enough:  # other requests wake nobody
            self._enough.set()
        try:
            results: Results = await job.future
            return results
        finally:
            if job in self._jobs:  # the request was cancelled
                self._jobs.remove(job)
                self._tokens -= job.waiting_tokens

    async def close(self) -> None:
        """End the work; requests that still wait are cancelled."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        for job in self._jobs:
            job.future.cancel()
        # In another thread: refusals are sent while a batch ends.
        await asyncio.to_thread(self._thread.shutdown)
        self._thread = self._new_thread()  # the application may be started again

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._fill()
            if not self._jobs:
                continue
            most = self._most_tokens
            jobs, parts = self._take()
            tokens = sum(job.ends[part.stop] - job.ends[part.start] for job, part in zip(jobs, parts, strict=True))
            self._tokens -= tokens
            start = perf_counter()
            for job, part in zip(jobs, parts, strict=True):
                if part.start == 0:
                    self._metrics.queue_seconds.observe(start - job.arrived, model=self._name)
            is_alone = self._active == len(jobs) == 1 and not self._jobs
            try:
                # It takes as long as the last batch, or longer in proportion to its tokens.
                if is_alone and self._last_tokens and self._seconds * max(1.0, tokens / self._last_tokens) <= _IN_LOOP:
                    results = self._run(jobs[0].key, parts)
                else:
                    results = await loop.run_in_executor(self._thread, self._run, jobs[0].key, parts)
            except Exception as error:  # noqa: BLE001 - the requests of this batch get it, others are not affected
                self._fail(jobs, error)
                continue
            finally:
                self._ended = perf_counter()
                self._seconds = seconds = self._ended - start
                self._last_tokens = max(tokens, 1)
                self._active = len({*jobs, *self._jobs})
            if self._metrics.telemetry is not None:
                self._record(self._metrics.telemetry, jobs, parts, start, self._ended)
            self._metrics.inference_seconds.observe(seconds, model=self._name)
            rate = tokens / max(seconds, 1e-6)
            if 2 * tokens >= most:  # of fewer, the time is that of a call
                self._rate = rate if not self._rate else (1 - _LATEST) * self._rate + _LATEST * rate
            self._metrics.batch_tokens.observe(tokens, model=self._name)
            self._metrics.tokens.add(tokens, model=self._name)
            self._metrics.texts.add(len(results), model=self._name)
            self._hand_out(jobs, parts, results)

    async def _fill(self) -> None:
        """Wait for a first row, and then for enough requests, as long as they go on coming."""
        while not self._jobs:
            self._enough.clear()
            await self._enough.wait()
        latest = max(self._ended, self._jobs[0].arrived) + _WAITING * self._seconds
        while self._jobs and not self._is_enough:
            due = max(self._ended, self._jobs[-1].arrived) + self._settings.fill_deadline
            left = min(due, latest) - perf_counter()
            if left <= 0:
                return
            self._enough.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._enough.wait()

    @property
    def _is_enough(self) -> bool:
        """Whether a batch is full, or has as many requests as may come."""
        return len(self._jobs) >= self._active or self._tokens >= self._most_tokens

    @property
    def _most_tokens(self) -> int:
        """The tokens of the next batch: fewer than the setting while short requests wait for long ones."""
        is_mixed = perf_counter() - min(self._short, self._long) < _MIXED
        most = self._short_batch
        return most if is_mixed else min(self._settings.batch_tokens, _ALONE * most)

    @property
    def _short_batch(self) -> int:
        """The tokens of a batch that takes no longer than the setting."""
        most, seconds = self._settings.batch_tokens, self._settings.batch_seconds
        return max(1, min(most, int(self._rate * seconds))) if self._rate and seconds else most

    def _take(self) -> tuple[list[_Job], list[Part]]:
        """Take rows for a batch, in turns, from the requests with the key of the first.

        Short requests come before long ones, which have the times between them, and a share of each batch after
        `_TURNS` without one.
        """
        key, most = self._jobs[0].key, self._settings.batch_tokens
        chosen = [job for job in self._jobs if job.key == key]
        limit = self._most_tokens
        is_mixed = limit == self._short_batch
        long = [job for job in chosen if job.ends[-1] > self._short_batch]
        jobs: list[_Job] = []
        parts: list[Part] = []
        if is_mixed and len(long) < len(chosen):
            self._add_turns([job for job in chosen if job.ends[-1] <= self._short_batch], most, jobs, parts)
            if self._without < _TURNS:
                long = []
            chosen = long
        self._add_turns(chosen, limit, jobs, parts)
        self._without += 1
        if long:
            self._long, self._without = perf_counter(), 0
        # Those that had a turn in this batch go behind those that had none.
        served = set(jobs)
        waiting = [job for job in self._jobs if job.taken < job.total]
        self._jobs = deque(sorted(waiting, key=served.__contains__))
        return jobs, parts

    def _add_turns(self, chosen: list[_Job], left: int, jobs: list[_Job], parts: list[Part]) -> None:
        """Take rows from requests in turns, of at most so many tokens, but at least one row."""
        turn = max(left // min(max(len(chosen), 1), _TURNS), 1)
        while chosen and left > 0:
            for job in chosen:
                if left <= 0:
                    break
                part = job.take(min(turn, left))
                jobs.append(job)
                parts.append(part)
                left -= job.ends[part.stop] - job.ends[part.start]
            chosen = [job for job in chosen if job.taken < job.total]

    def _fail(self, jobs: Sequence[_Job], error: Exception) -> None:
        for job in dict.fromkeys(jobs):
            if job in self._jobs:
                self._jobs.remove(job)
                self._tokens -= job.waiting_tokens
            if not job.future.done():
                job.future.set_exception(error)

    def _record(
        self, telemetry: Telemetry, jobs: Sequence[_Job], parts: Sequence[Part], start: float, end: float
    ) -> None:
        """Record what the requests of a batch have passed."""
        tokens: dict[_Job, int] = {}
        for job, part in zip(jobs, parts, strict=True):
            if part.start == 0:
                telemetry.passed("queue", job.context, job.arrived, start, self._name, job.ends[-1])
            tokens[job] = tokens.get(job, 0) + job.ends[part.stop] - job.ends[part.start]
        for job, count in tokens.items():
            telemetry.passed("inference", job.context, start, end, self._name, count)

    def _hand_out(self, jobs: Sequence[_Job], parts: Sequence[Part], results: Results) -> None:
        """Divide the results of a batch among its requests; one whose rows are complete gets its answer."""
        at = 0
        for job, part in zip(jobs, parts, strict=True):
            count = part.stop - part.start
            job.results.append(results[at : at + count])
            at += count
            if sum(map(len, job.results)) == job.total and not job.future.done():
                job.future.set_result(_joined(job.results))


def _joined(results: list[Results]) -> Results:
    """Return the results of a request's parts together."""
    if len(results) == 1:
        return results[0]
    if isinstance(results[0], list):
        return [row for part in results for row in part]
    return np.concatenate(results)
