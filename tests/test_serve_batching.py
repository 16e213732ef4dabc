"""The batches of the server, without a server: which requests come into one, and event loops that follow each other."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import numpy as np

from wordpiece_bert.serve import ServerSettings
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
