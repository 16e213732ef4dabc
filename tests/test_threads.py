"""Threads and processes: results do not depend on their number, and nothing mutable or locked is shared."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import wordpiece_bert as wb
from processes import printed, python
from random_models import random_model
from small_tokenizer import TEXTS, fields, tokenizer
from wordpiece_bert import _core, bert, sentence

COLUMNS = ("ids", "row_offsets", "truncated", "offsets", "word_ids", "sequence_ids", "overflow_to_sample", "n_tokens")
EVERYTHING: dict[str, Any] = {f"return_{name}": True for name in ("offsets", "word_ids", "sequence_ids", "n_tokens")}
LINUX = sys.platform == "linux"


def many_texts(n: int = 3000) -> list[Any]:
    """Texts and pairs of all lengths, a few hundred kB: enough for several threads."""
    draw = random.Random(7)
    texts = [
        " ".join(draw.choices([*TEXTS[:6], "running cats", "\u00e9", "mat"], k=draw.randrange(12))) for _ in range(n)
    ]
    return [(text, texts[i // 2]) if i % 5 == 0 else text for i, text in enumerate(texts)]


@pytest.mark.parametrize(
    "options", [{}, {"truncation": True, "max_length": 9, "stride": 1}, {"padding": True}], ids=str
)
def test_results_do_not_depend_on_the_number_of_threads(options: dict[str, Any]) -> None:
    tok, texts = tokenizer(), many_texts()
    rows = [
        tok.encode_batch(texts, threads=threads, return_overflowing_tokens=True, **EVERYTHING, **options)
        for threads in (1, 2, 4, None)
    ]
    for other in rows[1:]:
        for name in COLUMNS:
            np.testing.assert_array_equal(getattr(other, name), getattr(rows[0], name), err_msg=name)
    assert tok.encodings(texts, threads=1, **options) == tok.encodings(texts, threads=4, **options)


def test_the_first_error_is_reported_for_any_number_of_threads() -> None:
    tok = tokenizer()
    items = [("a " * 40, "b")] * 2000
    items[700] = items[1500] = ("a", "b c d e f g")
    for threads in (1, 2, 4):
        with pytest.raises(wb.WordPieceError, match=r"^item 700: .*too short"):
            tok.encode_batch(items, truncation="only_first", max_length=6, threads=threads)


def test_eight_threads_share_one_tokenizer_each_with_its_own_options() -> None:
    tok = tokenizer()
    texts = [text for text in TEXTS if text] * 8
    options: list[dict[str, Any]] = [
        {
            "truncation": True,
            "max_length": 4 + 3 * i,
            "padding": "max_length" if i % 2 else "longest",
            "padding_side": "left" if i % 3 else "right",
            "truncation_side": "left" if i % 4 else "right",
            "threads": 1 + i % 3,
        }
        for i in range(8)
    ]
    expected = [tok(texts, **each) for each in options]
    singles = [[fields(tok.encode(text, **without_threads(each))) for text in texts[:7]] for each in options]
    start = threading.Barrier(len(options))

    def work(i: int) -> None:
        start.wait()
        for _ in range(30):
            found = tok(texts, **options[i])
            for name, array in expected[i].items():
                np.testing.assert_array_equal(found[name], array, err_msg=f"thread {i}, {name}")
            assert [fields(tok.encode(text, **without_threads(options[i]))) for text in texts[:7]] == singles[i]

    with ThreadPoolExecutor(len(options)) as pool:
        for done in [pool.submit(work, i) for i in range(len(options))]:
            done.result(timeout=120)


def without_threads(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name != "threads"}


@pytest.mark.parametrize("kind", ["list", "column"])
def test_other_threads_run_while_a_batch_is_encoded(kind: str) -> None:
    tok, texts = tokenizer(), many_texts(20_000)
    if kind == "column":
        texts = pytest.importorskip("pyarrow").array([text if isinstance(text, str) else text[0] for text in texts])
    ticks = 0
    stop = False

    def tick() -> None:
        nonlocal ticks
        while not stop:
            ticks += 1
            time.sleep(0.0005)

    interval = sys.getswitchinterval()
    thread = threading.Thread(target=tick)
    thread.start()
    try:
        sys.setswitchinterval(100)  # no forced switches: other threads run only while the GIL is released
        before = ticks
        tok.encode_batch(texts, threads=1)
        after = ticks
    finally:
        sys.setswitchinterval(interval)
        stop = True
        thread.join()
    assert after > before


def test_a_list_may_be_emptied_while_its_texts_are_encoded() -> None:
    tok = tokenizer()
    expected = tok.encode_batch(many_texts(2000)).ids
    done = threading.Event()
    texts: list[Any] = []

    def spoil() -> None:
        while not done.is_set():
            texts.clear()

    thread = threading.Thread(target=spoil)
    thread.start()
    try:
        for _ in range(20):
            texts[:] = many_texts(2000)
            ids = tok.encode_batch(texts).ids
            assert (ids == expected[: len(ids)]).all()
    finally:
        done.set()
        thread.join()


# --- processes

SHARED = tokenizer()


def encode_in_child(threads: int | None) -> list[list[int]]:
    return SHARED.encode_batch(many_texts(), threads=threads).to_list()


def encode_with(tok: wb.Tokenizer) -> list[list[int]]:
    return tok.encode_batch(many_texts(), threads=2).to_list()


def ids_of_encoding(encoding: wb.Encoding) -> list[int]:
    return encoding.ids


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_encoding_works_after_a_fork() -> None:
    expected = encode_in_child(2)  # the parent has thread pools
    assert encode_in_child(4) == expected  # of both sizes
    with multiprocessing.get_context("fork").Pool(2) as pool:
        for found in pool.map_async(encode_in_child, [2, 4, 1, None]).get(timeout=120):
            assert found == expected
    assert encode_in_child(2) == expected


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_while_other_threads_encode_does_not_block_the_child() -> None:
    expected = encode_in_child(2)
    stop = threading.Event()

    def busy() -> None:
        while not stop.is_set():
            encode_in_child(2)

    threads = [threading.Thread(target=busy) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(3):
            with multiprocessing.get_context("fork").Pool(1) as pool:
                assert pool.map_async(encode_in_child, [2]).get(timeout=120) == [expected]
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_spawned_processes_receive_tokenizers() -> None:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map_async(encode_with, [SHARED]).get(timeout=120) == [encode_with(SHARED)]
        encoding = SHARED.encode("the cat")
        assert pool.map_async(ids_of_encoding, [encoding]).get(timeout=120) == [encoding.ids]


# --- number of threads


def threads_used(before: str, arguments: str = "") -> int:
    """The number of threads that a large batch starts in a new process."""
    code = f"""
import os
import wordpiece_bert as wb
from wordpiece_bert import _core
from small_tokenizer import tokenizer
{before}
small = tokenizer()
threads = len(os.listdir("/proc/self/task"))
small.encode_batch(["the cat sat on the mat"] * 20_000{arguments})
print(len(os.listdir("/proc/self/task")) - threads)
"""
    return int(*printed(code))


@pytest.mark.skipif(not LINUX, reason="reads /proc")
def test_the_requested_number_of_threads_is_used() -> None:
    # The calling thread counts as one, and there are no more than processors.
    processors = len(os.sched_getaffinity(0))
    assert threads_used("", ", threads=3") == min(3, processors) - 1
    assert threads_used("", ", threads=1") == 0
    assert threads_used("wb.set_num_threads(3)") == min(3, processors) - 1
    assert threads_used("wb.set_num_threads(3)", ", threads=2") == min(2, processors) - 1
    assert threads_used("wb.set_num_threads(1)") == 0


@pytest.mark.skipif(not LINUX, reason="sets the affinity")
def test_the_default_number_of_threads_respects_affinity() -> None:
    one = "os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})"
    assert threads_used(one) == 0
    assert threads_used(f"wb.set_num_threads(3); wb.set_num_threads(None); {one}") == 0
    assert threads_used(one, ", threads=8") == 0


def default_threads(code: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
    """The number of threads of a new process in which only these variables limit it, and what decided it."""
    names = ("WORDPIECE_BERT_NUM_THREADS", "OMP_NUM_THREADS")
    environment = {name: value for name, value in os.environ.items() if name not in names} | variables
    code = f"import os\n{code}\nfrom wordpiece_bert import _core, set_num_threads\nprint(*_core.default_threads())"
    return python(code, env=environment)


@pytest.mark.skipif(not LINUX, reason="sets the affinity")
def test_a_variable_limits_the_default_number_of_threads() -> None:
    # On one processor the affinity decides.
    unlimited = default_threads().stdout.split(maxsplit=1)
    assert unlimited[1].strip() in ("affinity", "quota of the control group")
    processors = int(unlimited[0])
    one = "os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})"
    for variables, found in (
        ({"OMP_NUM_THREADS": "1"}, "1 OMP_NUM_THREADS"),
        ({"OMP_NUM_THREADS": " 1,4"}, "1 OMP_NUM_THREADS"),
        ({"WORDPIECE_BERT_NUM_THREADS": "1", "OMP_NUM_THREADS": "2"}, "1 WORDPIECE_BERT_NUM_THREADS"),
        ({"WORDPIECE_BERT_NUM_THREADS": "1024", "OMP_NUM_THREADS": "1"}, " ".join(unlimited).strip()),
        ({"WORDPIECE_BERT_NUM_THREADS": "", "OMP_NUM_THREADS": "64"}, " ".join(unlimited).strip()),
    ):
        done = default_threads(**variables)
        assert (done.stdout.strip(), done.stderr) == (found if processors > 1 else " ".join(unlimited).strip(), "")
    assert default_threads(one, OMP_NUM_THREADS="2").stdout == "1 affinity\n"


@pytest.mark.skipif(not LINUX, reason="reads /proc")
def test_a_call_and_a_setting_win_over_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORDPIECE_BERT_NUM_THREADS", "1")
    helpers = min(2, len(os.sched_getaffinity(0))) - 1
    assert threads_used("") == 0
    assert threads_used("", ", threads=2") == helpers
    assert threads_used("wb.set_num_threads(2)") == helpers
    assert threads_used("wb.set_num_threads(2); wb.set_num_threads(None)") == 0


@pytest.mark.parametrize("value", ["0", "two", "-1", "1025", "1.5", "2,2"])
def test_a_wrong_variable_is_refused_or_ignored(value: str) -> None:
    done = default_threads(WORDPIECE_BERT_NUM_THREADS=value)
    assert done.returncode == 1
    message = f'InputError: the environment variable WORDPIECE_BERT_NUM_THREADS must be a whole number from 1 to 1024, not "{value}"'
    assert message in done.stderr
    retried = (
        "try:\n    import wordpiece_bert._core\nexcept ValueError:\n    del os.environ['WORDPIECE_BERT_NUM_THREADS']"
    )
    assert default_threads(retried, WORDPIECE_BERT_NUM_THREADS=value).stdout == default_threads().stdout
    shared = default_threads(OMP_NUM_THREADS=value)
    assert shared.stdout if value in ("1025", "2,2") else shared.stdout == default_threads().stdout
    warned = f'OMP_NUM_THREADS is "{value}", which does not begin with a whole number' in shared.stderr
    assert warned == (value not in ("1025", "2,2"))


def test_info_says_what_decides_the_number_of_threads() -> None:
    command = [sys.executable, "-m", "wordpiece_bert", "info", "minilm"]
    environment = {**os.environ, "WORDPIECE_BERT_NUM_THREADS": "two"}
    done = subprocess.run(command, env=environment, capture_output=True, encoding="utf-8")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "WORDPIECE_BERT_NUM_THREADS must be a whole number from 1 to 1024" in done.stderr
    environment["WORDPIECE_BERT_NUM_THREADS"] = "1"
    done = subprocess.run([*command, "--json"], env=environment, capture_output=True, encoding="utf-8", check=True)
    decided = "WORDPIECE_BERT_NUM_THREADS" if _core.num_threads() > 1 else "affinity"
    assert json.loads(done.stdout)["threads"] == {"default": 1, "decided_by": decided}


@pytest.mark.parametrize("threads", [0, -1, 1025, 10**30, "2", 1.5, True])
def test_a_wrong_number_of_threads_is_refused(threads: object) -> None:
    tok, two = tokenizer(), np.eye(2, dtype=np.float32)
    sizes = {"hidden_size": 4, "num_attention_heads": 1, "num_hidden_layers": 1, "intermediate_size": 4}
    model = random_model(wb.BertModel, bert.BertConfig(vocab_size=8, **sizes), "rust")
    for call in (
        lambda: tok.encode_batch(["a"], threads=threads),
        lambda: tok.encodings(["a"], threads=threads),
        lambda: tok(["a"], threads=threads),
        lambda: model([[1]], threads=threads),
        lambda: sentence.maxsim([two], [two], threads=threads),
    ):
        with pytest.raises(wb.WordPieceError, match="threads must be a whole number from 1 to 1024"):
            call()
    with pytest.raises(wb.WordPieceError, match="threads must be a whole number"):
        wb.set_num_threads(threads)
