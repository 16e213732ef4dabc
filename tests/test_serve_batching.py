"""The batches of the server, without a server: which requests come into one, and event loops that follow each other."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import numpy as np
import pytest

from wordpiece_bert.serve import ServerSettings, batching
from wordpiece_bert.serve.batching import Batcher
from wordpiece_bert.serve.metrics import Metrics


def test_clients_that_send_the_next_request_when_they_have_the_answer_come_into_one_batch() -> None:
    sizes = []

    def run(_: object, parts: Any) -> list[int]:
        sizes.append(len(parts))
        time.sleep(0.2)
        return [0] * len(parts)

    async def client(batcher: Batcher, start: float) -> None:
        await asyncio.sleep(start)
        for _ in range(8):
            await batcher.submit(None, np.ones(1, np.int64))
            await asyncio.sleep(0.005)

    async def clients() -> None:
        batcher = Batcher(run, ServerSettings(fill_deadline=1), Metrics(), "a")
        # The second and the third begin while the first is computed: without a wait, they would take turns with it.
        await asyncio.gather(*(client(batcher, start) for start in (0, 0.05, 0.1)))
        await batcher.close()

    asyncio.run(clients())
    assert sizes[0] == 1
    assert sum(sizes) == 24
    assert sizes.count(3) >= 5


def test_requests_of_a_second_event_loop_do_not_wait_for_the_task_of_the_first() -> None:
    batcher = Batcher(lambda _, parts: [7] * len(parts), ServerSettings(), Metrics(), "a")

    async def ask() -> Any:
        async with asyncio.timeout(30):
            return await batcher.submit(None, np.ones(1, np.int64))

    assert [asyncio.run(ask()) for _ in range(3)] == [[7], [7], [7]]


def test_a_batcher_that_was_closed_works_again() -> None:
    batcher = Batcher(lambda _, parts: [7] * len(parts), ServerSettings(), Metrics(), "a")

    async def ask() -> Any:
        async with asyncio.timeout(30):
            found = await batcher.submit(None, np.ones(1, np.int64))
        await batcher.close()
        return found

    assert [asyncio.run(ask()) for _ in range(2)] == [[7], [7]]


def test_short_requests_that_are_alone_run_in_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batching, "_IN_LOOP", 0.3)  # seconds, on a busy machine
    threads: list[tuple[int, bool]] = []

    def run(seconds: float, parts: Any) -> list[int]:
        threads.append((len(parts), threading.current_thread() is threading.main_thread()))
        time.sleep(seconds)
        return [0] * len(parts)

    async def clients() -> None:
        batcher = Batcher(run, ServerSettings(queue_tokens=1 << 50), Metrics(), "a")

        def ask(seconds: float, tokens: int = 1) -> Any:
            return batcher.submit(None, np.full(1, tokens, np.int64), seconds)

        await ask(0)  # nobody knows yet how long it takes
        await ask(0)
        await ask(0.4)  # with as many tokens as the one before
        await ask(0)
        await ask(0)
        await ask(0, 1 << 40)
        await ask(0)
        with pytest.raises(ValueError, match="non-negative"):  # of the sleep: an error is that of its request
            await ask(-1)
        await asyncio.gather(ask(0), ask(0))
        await ask(0)  # two may come again
        await ask(0, 0)  # a text without tokens
        await batcher.close()

    asyncio.run(clients())
    assert threads == [
        *((1, in_loop) for in_loop in (False, True, True, False, True, False, True, True)),
        (2, False),
        (1, False),
        (1, True),
    ]
