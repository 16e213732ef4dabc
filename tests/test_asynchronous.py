"""`aencode`: the vectors of `encode`, without blocking the event loop, and cancellable."""

from __future__ import annotations

import asyncio
import threading
import warnings
from typing import Any

import numpy as np
import pytest

from wordpiece_bert import SentenceEncoder
from wordpiece_bert._internal.asynchronous import run_in_thread
from wordpiece_bert._internal.progress import notify
from wordpiece_bert.errors import InputError, TruncationWarning
from wordpiece_bert.sentence.dense.transformer import TransformerBody

TEXTS = ["to bake bread", "a bicycle wheel", "", "the dough in the oven"]


def test_aencode_returns_what_encode_returns(encoder: SentenceEncoder) -> None:
    def both(texts: Any, **options: Any) -> tuple[Any, Any]:
        return asyncio.run(encoder.aencode(texts, **options)), encoder.encode(texts, **options)

    for options in ({}, {"normalize_embeddings": True, "truncate_dim": 5}, {"precision": "ubinary"}):
        found, expected = both(TEXTS, **options)
        np.testing.assert_array_equal(found, expected)
        assert found.dtype == expected.dtype
    found, expected = both("to bake")
    np.testing.assert_array_equal(found, expected)
    (found, cut), (expected, expected_cut) = both(["bread " * 99, "a"], return_truncated=True)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(cut, expected_cut)
    np.testing.assert_array_equal(*both("bread " * 99, windows="mean", stride=3))
    for found, expected in zip(*both(TEXTS, output_value="token_embeddings"), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_many_calls_at_once_get_their_own_vectors(encoder: SentenceEncoder) -> None:
    async def run() -> list[Any]:
        return await asyncio.gather(*(encoder.aencode([text]) for text in TEXTS * 10))

    expected = encoder.encode(TEXTS)
    for index, vectors in enumerate(asyncio.run(run())):
        np.testing.assert_array_equal(vectors[0], expected[index % len(TEXTS)])


def test_the_loop_runs_while_the_model_does(encoder: SentenceEncoder, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model waits for the loop: if it blocked the loop, the loop could never release it."""
    started, released = threading.Event(), threading.Event()
    compute = TransformerBody.pooled

    def wait(self: TransformerBody, *arguments: Any, **options: Any) -> Any:
        started.set()
        assert released.wait(30), "the event loop was blocked"
        return compute(self, *arguments, **options)

    monkeypatch.setattr(TransformerBody, "pooled", wait)

    async def run() -> Any:
        task = asyncio.create_task(encoder.aencode(TEXTS))
        while not started.is_set():
            await asyncio.sleep(0.001)
        released.set()
        return await task

    assert asyncio.run(run()).shape == (4, encoder.dimension)


def test_errors_and_warnings_reach_the_one_who_waits(encoder: SentenceEncoder) -> None:
    with pytest.raises(InputError, match=r"texts\[1\] must be a str"):
        asyncio.run(encoder.aencode(["a", 3]))  # type: ignore[list-item]

    async def run() -> None:
        await encoder.aencode(["a", "bread " * 99])

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        asyncio.run(run())
    assert [str(warning.category) for warning in caught] == [str(TruncationWarning)]
    assert "1 of 2 texts were truncated to 64 tokens, the first at index 1" in str(caught[0].message)
    assert caught[0].filename == __file__


def test_a_cancelled_call_ends_after_the_running_pass() -> None:
    passes = 0
    first, cancelled, ended = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        nonlocal passes
        try:
            for _ in range(1000):
                passes += 1
                first.set()
                assert cancelled.wait(30)
                notify(1, 1)
        finally:
            ended.set()

    async def run() -> None:
        task = asyncio.create_task(run_in_thread(work))
        while not first.is_set():
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        cancelled.set()

    asyncio.run(run())
    assert ended.wait(30)
    assert passes == 1


@pytest.mark.model
def test_a_cancelled_encode_leaves_its_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = SentenceEncoder("minilm")
    before = threading.active_count()
    started, cancelled = threading.Event(), threading.Event()
    compute = TransformerBody.pooled

    def wait(self: TransformerBody, *arguments: Any, **options: Any) -> Any:
        started.set()
        assert cancelled.wait(30)
        return compute(self, *arguments, **options)

    monkeypatch.setattr(TransformerBody, "pooled", wait)

    async def run() -> None:
        task = asyncio.create_task(encoder.aencode(["a long sentence about nothing at all " * 10] * 8))
        while not started.is_set():
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        cancelled.set()

    asyncio.run(run())  # joins the threads of its executor, so it ends only when the model has
    assert threading.active_count() <= before
