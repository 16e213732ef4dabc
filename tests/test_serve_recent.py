"""Results of recent requests are answered without the model, with the same bits, in bounded memory."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest

from model_files import MODELS, sentence_folder, with_tokenizer
from wordpiece_bert.errors import InputError
from wordpiece_bert.sentence import CrossEncoder, M3Encoder, MultiVectorEncoder, SentenceEncoder, SparseEncoder
from wordpiece_bert.serve.kinds.served_model import USUAL
from wordpiece_bert.serve.metrics import Metrics
from wordpiece_bert.serve.models import Models
from wordpiece_bert.serve.recent_results import RecentResults
from wordpiece_bert.serve.settings import ServerSettings

TEXTS = ["the dog", "river", "the dog", "water"]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    parent = tmp_path_factory.mktemp("models")
    return {
        "dense": SentenceEncoder(sentence_folder("sentence_cls_dense_normalize", parent)),
        "sparse": SparseEncoder(MODELS / "splade_max"),
        "many": MultiVectorEncoder(MODELS / "colbert_st"),
        "m3": M3Encoder(MODELS / "m3_colbert_dim"),
        "pairs": CrossEncoder(with_tokenizer("cross_encoder_score", parent)),
    }


def flat(values: Any) -> list[Any]:
    """Numbers of any results, in order."""
    if isinstance(values, np.ndarray):
        return [values.dtype.name, values.tolist()]
    return [flat(one) for one in values] if isinstance(values, list | tuple) else [values]


def recent(metrics: Metrics, name: str) -> float:
    lines = [line for line in metrics.recent.lines() if f'"{name}"' in line]
    return float(lines[0].split()[-1]) if lines else 0.0


CALLS = {
    "dense": lambda model, texts: model.embed(texts, USUAL),
    "dense, tokens": lambda model, texts: model.embed_tokens(texts, USUAL),
    "sparse": lambda model, texts: model.embed_sparse(texts, USUAL),
    "many": lambda model, texts: model.embed_tokens(texts, USUAL),
    "m3": lambda model, texts: model.embed(texts, USUAL),
    "m3, sparse": lambda model, texts: model.embed_sparse(texts, USUAL),
    "m3, tokens": lambda model, texts: model.embed_tokens(texts, USUAL),
    "pairs": lambda model, texts: model.rank("a dog", texts, USUAL),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_text_that_comes_again_has_the_same_bits_and_is_counted(models: dict[str, Any], call: str) -> None:
    name = call.split(",")[0]
    ask = CALLS[call]

    async def run(settings: ServerSettings) -> tuple[list[Any], list[float]]:
        metrics = Metrics()
        served = Models({name: models[name]}, settings, {}, metrics)
        model = served.find(name)
        answers, counts = [], []
        for texts in (TEXTS, ["water"], ["the dog", "house", "river"], TEXTS, ["house"]):
            answer = await ask(model, texts)
            answers.append((flat(answer.values), answer.truncated.tolist(), answer.tokens))
            counts.append(recent(metrics, name))
        await served.close()
        return answers, counts

    kept, counts = asyncio.run(run(ServerSettings()))
    computed, none = asyncio.run(run(ServerSettings(result_cache_bytes=0)))
    assert kept == computed
    assert counts == [0, 1, 3, 7, 8]
    assert none == [0] * 5


def test_memory_is_bounded_and_what_other_requests_want_is_kept_apart() -> None:
    metrics = Metrics()
    results = RecentResults(ServerSettings(result_cache_bytes=10_000), metrics, "a")
    asked: list[Any] = []

    async def submit(rows: list[str], lengths: Any, key: Any) -> Any:
        asked.extend((row, key) for row in rows)
        assert len(rows) == len(lengths)
        return np.array([[len(row), hash(key) % 7] for row in rows], np.float32)

    async def run(rows: list[str], key: Any) -> Any:
        return await results.results(submit, rows, np.ones(len(rows), np.int64), key)

    for key in ("b", "c"):
        first = asyncio.run(run(["x", "xy"], key))
        again = asyncio.run(run(["xy", "x"], key))
        np.testing.assert_array_equal(again, first[::-1], strict=True)
    assert asked == [("x", "b"), ("xy", "b"), ("x", "c"), ("xy", "c")]
    again[:] = 0  # an answer is the request's own
    np.testing.assert_array_equal(asyncio.run(run(["x", "xy"], "c")), first)
    for number in range(100):
        asyncio.run(run([str(number)], "b"))
    size = next(line for line in metrics.recent_bytes.lines() if '"a"' in line)
    assert 0 < float(size.split()[-1]) <= 10_000
    asked.clear()
    asyncio.run(run(["99", "x"], "b"))
    assert asked == [("x", "b")]


@pytest.mark.parametrize("value", [-1, 1.5, "1"])
def test_a_wrong_size_is_refused(value: Any) -> None:
    with pytest.raises(InputError, match="result_cache_bytes"):
        ServerSettings(result_cache_bytes=value)
