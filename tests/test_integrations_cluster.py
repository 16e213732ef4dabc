"""Dask's LocalCluster and Ray: the bytes of one process, one load of the model a process, no more threads than given."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tiny_models
from wordpiece_bert import SentenceEncoder, Tokenizer
from wordpiece_bert._core import default_threads
from wordpiece_bert.sentence.dense.parts import body_of

# Warnings of these programs, and what their processes leave open, are not errors of these tests.
pytestmark = pytest.mark.filterwarnings("ignore")

PAGE = Path(__file__).parents[1] / "docs" / "how-to" / "dask-and-ray.md"
TEXTS = [f"to bake bread {'and the oven ' * (i % 30)}{i}" for i in range(120)]
PARTS = [TEXTS[i : i + 10] for i in range(0, len(TEXTS), 10)]


def embedded(encoder: SentenceEncoder, texts: list[str]) -> tuple[bytes, int, int, int, int]:
    """The vectors, the process, its model, the default number of threads, and how many threads a call has started."""
    import wordpiece_bert._core as core

    before = len(os.listdir("/proc/self/task"))
    vectors = encoder.encode(texts)
    started = len(os.listdir("/proc/self/task")) - before
    return vectors.tobytes(), os.getpid(), id(body_of(encoder)), core.default_threads()[0], started


def tokenized(tokenizer: Tokenizer, texts: list[str]) -> list[list[int]]:
    return tokenizer.encode_batch(texts).to_list()


def check(encoder: SentenceEncoder, found: list[tuple[bytes, int, int, int, int]]) -> None:
    assert b"".join(one[0] for one in found) == encoder.encode(TEXTS).tobytes()
    models: dict[int, set[int]] = {}
    for _, process, model, threads, started in found:
        models.setdefault(process, set()).add(model)
        assert threads == 1
        assert started <= 0
    assert os.getpid() not in models
    assert all(len(one) == 1 for one in models.values()), models


@pytest.fixture(scope="module", params=["static", "sentences"])
def encoder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> SentenceEncoder:
    models = tiny_models.make_all(tmp_path_factory.mktemp("models"))
    return SentenceEncoder(models / request.param)


@pytest.fixture(scope="module", autouse=True)
def found_by_workers() -> Iterator[None]:
    """The workers find what this process does, and their number of threads is not the tests'."""
    before = dict(os.environ)
    os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])
    for name in ("WORDPIECE_BERT_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ.pop(name, None)
    yield
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture(scope="module")
def client(found_by_workers: None) -> Iterator[Any]:
    distributed = pytest.importorskip("distributed", reason="distributed is not installed: pip install distributed")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def ray(found_by_workers: None) -> Iterator[Any]:
    ray = pytest.importorskip("ray", reason="ray is not installed: pip install ray")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield ray
    ray.shutdown()


def test_dask_gives_the_bytes_of_one_process(client: Any, encoder: SentenceEncoder) -> None:
    check(encoder, client.gather(client.map(embedded, [encoder] * len(PARTS), PARTS, pure=False)))
    rows = client.gather(client.map(tokenized, [encoder.tokenizer] * len(PARTS), PARTS))
    assert [row for part in rows for row in part] == tokenized(encoder.tokenizer, TEXTS)


def test_ray_gives_the_bytes_of_one_process(ray: Any, encoder: SentenceEncoder) -> None:
    task = ray.remote(num_cpus=1)(embedded)
    check(encoder, ray.get([task.remote(encoder, part) for part in PARTS]))
    rows = ray.get([ray.remote(num_cpus=1)(tokenized).remote(encoder.tokenizer, part) for part in PARTS])
    assert [row for part in rows for row in part] == tokenized(encoder.tokenizer, TEXTS)


def test_set_num_threads_counts_in_a_worker_that_is_used_again(ray: Any) -> None:
    def threads(given: int | None) -> tuple[int, str]:
        from wordpiece_bert import set_num_threads

        set_num_threads(given)
        return default_threads()

    task = ray.remote(num_cpus=1)(threads)
    assert ray.get(task.remote(1)) == (1, "set_num_threads")
    number, decided = ray.get(task.remote(None))
    assert (number, decided) == (1, "OMP_NUM_THREADS")


def blocks(section: str) -> list[str]:
    text = PAGE.read_text(encoding="utf-8")
    (own,) = (part for part in re.split(r"^## ", text, flags=re.MULTILINE) if part.startswith(f"{section}\n"))
    return re.findall(r"^```py\n(.*?)^```$", own, re.MULTILINE | re.DOTALL)


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    tiny_models.make_all(tmp_path / "models")
    return tmp_path


def absolute(code: str, desk: Path) -> str:
    return code.replace('"models/', f'"{desk}/models/')


def test_the_page_of_dask(desk: Path) -> None:
    pytest.importorskip("distributed")
    session: dict[str, Any] = {}
    for code in blocks("Dask"):
        exec(compile(absolute(code, desk), str(PAGE), "exec"), session)
    np.testing.assert_array_equal(session["vectors"], session["encoder"].encode(session["texts"]))


def test_the_page_of_ray(ray: Any, desk: Path) -> None:
    session: dict[str, Any] = {"__name__": "__main__"}
    for code in [*blocks("Ray"), *blocks("Ray Data")]:
        exec(compile(absolute(code, desk), str(PAGE), "exec"), session)
    expected = session["encoder"].encode(session["texts"])
    np.testing.assert_array_equal(session["vectors"], expected)
    np.testing.assert_array_equal(np.stack([row["vector"] for row in session["rows"]]), expected)
