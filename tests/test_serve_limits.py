"""What a request can do to the server at most: memory, the time of others, and errors that are always JSON."""

from __future__ import annotations

import asyncio
import base64
import gzip
import importlib.util
import json
import re
import shutil
import sys
import threading
import time
import zlib
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from make_models import SPECIAL

import tiny_models
from hostile_bodies import HOSTILE, MB, PACKED, REQUESTS, filled, hostile_body, path_of
from model_files import MODELS, sentence_folder
from server_process import HEAD, Server, complaint_of, raw, start, stop
from wordpiece_bert import CrossEncoder, SentenceEncoder, Tokenizer
from wordpiece_bert._tokenizer import shared_core
from wordpiece_bert.errors import ConfigError, InputError
from wordpiece_bert.serve import ServerSettings, create_app, json_answers, requests
from wordpiece_bert.serve.errors import RequestError
from wordpiece_bert.serve.kinds import base
from wordpiece_bert.serve.loading import load_model
from wordpiece_bert.serve.pairs import PairEncoder
from wordpiece_bert.serve.requests import parse_object, unpacked
from wordpiece_bert.serve.routes import ROUTES
from wordpiece_bert.subword import tokenizer_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytest.importorskip("uvicorn", reason="uvicorn is not installed: pip install '.[serve]'")

#: What a request may add to the memory of the server, and how long it may hold up others on a busy machine.
MOST_MEGABYTES, MOST_SECONDS = 200, 5
NAMES = ("sentences", "ranker", "reviews", "entities", "words", "splade", "colbert")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_models.make_all(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module")
def server(folders: Path) -> Iterator[Server]:
    found = start(*(folders / name for name in NAMES))
    yield found
    stop(found)
    log = "".join(found.log)
    assert "POST /" in log
    assert "Traceback" not in log
    # The log has no text of a request.
    assert not re.search(r"bread|oven|[\[{🤗中]|a a|\\u", log.replace("{model:path}", ""))


@pytest.fixture(scope="module")
def app(folders: Path) -> Any:
    models = {"sentences": SentenceEncoder(folders / "sentences"), "ranker": CrossEncoder(folders / "ranker")}
    return create_app(models)


@pytest.fixture(scope="module")
def ranker(folders: Path) -> CrossEncoder:
    return CrossEncoder(folders / "ranker")


class Answer(NamedTuple):
    status: int
    media_type: str
    body: bytes
    headers: dict[str, str]


async def ask(
    app: Any, method: str, path: str, body: bytes = b"", *, send: Callable[..., Any] | None = None, **more: str
) -> Answer:
    """Send a request to an application in this process; `send` may take the messages of its answer."""
    given_body = [{"type": "http.request", "body": body, "more_body": False}]
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return given_body.pop() if given_body else await asyncio.Event().wait()  # type: ignore[return-value]

    async def keep(message: dict[str, Any]) -> None:
        sent.append(message)

    headers = [(b"content-type", b"application/json"), (b"host", b"a")]
    headers += [(name.encode(), value.encode()) for name, value in more.items()]
    scope = {"type": "http", "method": method, "path": path, "headers": headers, "query_string": b"", "root_path": ""}
    await app(scope, receive, send or keep)
    found = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return Answer(sent[0]["status"], found["content-type"], b"".join(part.get("body", b"") for part in sent[1:]), found)


def assert_refused(status: int, media_type: str, found: Any) -> None:
    assert 400 <= status < 500, (status, found)
    assert media_type == "application/json"
    assert complaint_of(found)


# --- memory, and the time of others


def megabytes(server: Server, key: str) -> float:
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return int(re.search(rf"{key}:\s+(\d+) kB", status)[1]) / 1024  # type: ignore[index]


@contextmanager
def bounded(server: Server) -> Iterator[None]:
    """Check that the server keeps within its memory, and answers others meanwhile."""
    if not sys.platform.startswith("linux"):
        yield
        return
    Path(f"/proc/{server.process.pid}/clear_refs").write_text("5")  # the peak begins anew
    before, done, waits = megabytes(server, "VmRSS"), threading.Event(), [0.0]

    def others() -> None:
        while not done.is_set():
            begin = time.monotonic()
            assert server.get("/health")[0] == 200
            waits.append(time.monotonic() - begin)
            time.sleep(0.02)

    thread = threading.Thread(target=others)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
    assert megabytes(server, "VmHWM") - before < MOST_MEGABYTES
    assert max(waits) < MOST_SECONDS


@pytest.mark.parametrize("request_", REQUESTS)
@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_body_takes_little_memory_and_holds_up_nobody(server: Server, request_: str, kind: str) -> None:
    body = hostile_body(request_, kind)
    assert len(body) <= 8 * MB
    with bounded(server):
        status, headers, found = server.post(path_of(request_), body)
    assert headers["content-type"] == "application/json"
    if status != 200:
        assert_refused(status, headers["content-type"], found)


@pytest.mark.parametrize("kind", PACKED)
def test_a_hostile_packed_body_takes_little_memory_and_holds_up_nobody(server: Server, kind: str) -> None:
    body = PACKED[kind]()
    assert len(body) <= 8 * MB
    with bounded(server):
        status, headers, found = server.post("/embed", body, **{"Content-Encoding": "gzip"})
    assert_refused(status, headers["content-type"], found)


@pytest.mark.parametrize("content", [b"", b" ", b"a" * 5000])
def test_the_work_of_unpacking_grows_with_the_body(content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    work, make = [0], zlib.decompressobj

    class Counted:
        """A member that counts the bytes it is given, and those that it copies from behind its end."""

        def __init__(self, **options: int) -> None:
            self._member = make(**options)

        def decompress(self, data: bytes, most: int) -> bytes:
            work[0] += len(data)
            found = self._member.decompress(data, most)
            work[0] += len(self._member.unused_data)
            return found

        def __getattr__(self, name: str) -> Any:
            return getattr(self._member, name)

    monkeypatch.setattr(requests.zlib, "decompressobj", Counted)
    member = gzip.compress(content, mtime=0)
    counts = []
    for members in (1000, 2000):
        work[0] = 0
        assert unpacked(member * members, 1 << 30) == content * members
        counts.append(work[0])
    assert counts[1] < 2.1 * counts[0]
    with pytest.raises(RequestError, match="more than 4096 members"):
        unpacked(member * 4097, 1 << 30)


@settings(deadline=None)
@given(st.lists(st.binary(max_size=3000), max_size=5), st.integers(0, 9), st.integers(1, 4))
def test_members_are_unpacked_as_gzip_unpacks_them(contents: list[bytes], level: int, times: int) -> None:
    packed = b"".join(gzip.compress(content * times, level) for content in contents)
    expected = gzip.decompress(packed)
    assert unpacked(packed, len(expected)) == expected
    if expected:
        with pytest.raises(RequestError, match="larger than the server's limit"):
            unpacked(packed, len(expected) - 1)
    if packed:
        with pytest.raises(RequestError, match="ends before its gzip data do"):
            unpacked(packed[:-1], 1 << 20)
        with pytest.raises(RequestError, match="not in the format of gzip"):
            unpacked(packed + b"rest of no member", 1 << 20)


def test_all_paths_have_hostile_bodies() -> None:
    paths = {route.path.replace("{model:path}", "words") for route in ROUTES if route.operations}
    assert {path_of(one) for one in REQUESTS} | {"/v1/score"} == paths | {"/models/entities"}  # /v1/score is /score


LONG = ["bread " * (4 * MB // 6), "a" * 4 * MB, "雨" * (4 * MB // 3)]


@pytest.mark.parametrize("query", LONG, ids=["words", "a word", "characters"])
@pytest.mark.parametrize("document", ["a", "bread " * 300])
def test_a_long_query_with_many_documents(server: Server, ranker: CrossEncoder, query: str, document: str) -> None:
    body = json.dumps({"query": query, "texts": [document] * 2048}, ensure_ascii=False).encode()
    assert len(body) <= 8 * MB
    with bounded(server):
        status, _, found = server.post("/rerank", body)
    if status == 200:
        expected, _ = ranker.predict((query, document), return_truncated=True)
        assert {item["score"] for item in found} == {float(expected)}
    else:
        assert "more than the server's limit of 131072 tokens" in complaint_of(found)


@pytest.mark.parametrize("model", ["ranker", "sentences", "colbert"])
@pytest.mark.parametrize("text", LONG, ids=["words", "a word", "characters"])
def test_a_long_text_scored_with_many_is_tokenized_once(server: Server, model: str, text: str) -> None:
    body = json.dumps({"text_1": text, "text_2": ["a"] * 2048, "model": model}, ensure_ascii=False).encode()
    assert len(body) <= 8 * MB
    with bounded(server):
        status, _, found = server.post("/score", body)
    if status == 200:
        # Of equal documents, with as many equal texts: what the server made when it repeated the first.
        few = {"text_1": [text[:4096]] * 2, "text_2": ["a"] * 2, "model": model}
        expected = server.post("/score", few)[2]["data"]
        assert {item["score"] for item in found["data"]} == {item["score"] for item in expected}
    else:
        assert "more than the server's limit of 131072 tokens" in complaint_of(found)


@pytest.mark.parametrize("model", ["ranker", "sentences", "colbert", "static"])
def test_one_text_is_scored_as_if_it_was_repeated(folders: Path, model: str) -> None:
    app = create_app({model: load_model(str(folders / model))})
    right = ["to bake bread", "the oven", "bread oven flour " * 40, "a"] * 10

    async def scores(left: object) -> list[Any]:
        answer = await ask(app, "POST", "/score", json.dumps({"text_1": left, "text_2": right}).encode())
        return [json.loads(answer.body)[name] for name in ("data", "truncated")]

    async def all_scores() -> None:
        for left in ("the bread", "the bread and the oven " * 40):
            assert await scores(left) == await scores([left] * len(right)) == await scores([left] * len(right))
        await app.service.models.close()

    asyncio.run(all_scores())


@pytest.mark.parametrize("model", ["ranker", "sentences", "colbert"])
def test_the_work_of_one_text_does_not_grow_with_the_others(
    folders: Path, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenized: list[int] = []
    for method in ("encode_batch", "encodings"):
        work = getattr(Tokenizer, method)

        def counted(self: Tokenizer, texts: list[str], *, work: Any = work, **options: Any) -> Any:
            tokenized.append(sum(map(len, texts)))
            return work(self, texts, **options)

        monkeypatch.setattr(Tokenizer, method, counted)
    text = "bread " * 10_000
    app = create_app({model: load_model(str(folders / model))}, ServerSettings(prompt="the "))

    async def characters(documents: int) -> int:
        tokenized.clear()
        body = {"text_1": text, "text_2": ["a"] * documents}
        assert (await ask(app, "POST", "/score", json.dumps(body).encode())).status == 200
        return sum(tokenized)

    async def both() -> list[int]:
        found = [await characters(1), await characters(500)]
        await app.service.models.close()
        return found

    few, many = asyncio.run(both())
    assert few >= len(text)
    assert many < 1.1 * few


def bert(side: str) -> Tokenizer:
    vocabulary = [*SPECIAL, "bread", "oven", "##s", "a"]
    core = json.loads(Tokenizer.from_vocab(vocabulary).to_json())
    core["truncation"] = {"direction": side.title(), "max_length": 512, "strategy": "LongestFirst", "stride": 0}
    return Tokenizer.from_json(json.dumps(core)).with_truncation(None, truncation_side=side)


PAIR_TOKENIZERS = {
    "right": lambda: bert("right"),
    "left": lambda: bert("left"),
    "byte-level": lambda: tokenizer_of(MODELS / "st_roberta"),
    "unigram": lambda: tokenizer_of(MODELS / "st_xlmr"),
}
words = st.lists(st.sampled_from(["bread", "ovens", "a", "zz", "é雨", "[SEP]"]), max_size=12).map(" ".join)


@pytest.mark.parametrize("kind", PAIR_TOKENIZERS)
def test_rows_of_pairs_are_those_of_the_tokenizer(kind: str) -> None:
    if kind in ("byte-level", "unigram"):
        pytest.importorskip("tokenizers", reason="tokenizers is not installed")
    tokenizer = PAIR_TOKENIZERS[kind]()

    @settings(deadline=None)
    @given(words, st.lists(words, min_size=1, max_size=4), st.integers(5, 24))
    def check(query: str, documents: list[str], max_length: int) -> None:
        pairs = [(query, document) for document in documents]
        expected = tokenizer.encodings(pairs, truncation="longest_first", max_length=max_length, padding=False)
        rows = PairEncoder(tokenizer, max_length).rows([query], documents)
        found = rows[0 : len(documents)]
        assert [row.ids.tolist() for row in found] == [list(one.ids) for one in expected]
        assert [row.token_type_ids.tolist() for row in found] == [list(one.token_type_ids) for one in expected]
        assert rows.lengths.tolist() == [len(one) for one in expected]
        assert rows.truncated.tolist() == [one.truncated for one in expected]

    check()


def test_rows_without_room_for_texts_are_refused() -> None:
    with pytest.raises(ConfigError, match="rows of 3 tokens have no room for texts: 3 tokens are special"):
        PairEncoder(bert("right"), 3)


def test_tokens_are_limited_for_every_path(folders: Path) -> None:
    server = start(*(folders / name for name in NAMES), "--max-tokens", 100)
    try:
        for count, status in [(98, 200), (99, 400)]:  # with two special tokens
            text = " ".join(["bread"] * count)
            assert server.post("/tokenize", {"inputs": text})[0] in (status, 413 if status == 400 else status)
            assert server.post("/tokenize", {"inputs": [text, ""], "add_special_tokens": False})[0] == 200
        status, _, found = server.post("/tokenize", {"inputs": ["bread"] * 101, "add_special_tokens": False})
        assert status in (400, 413)
        assert "server's limit of 100 tokens" in complaint_of(found)
        many = ["bread " * 20] * 50
        values: dict[str, Any] = {"/predict": [[text] for text in many], "/decode": [[2] * 60] * 2}
        one = {name for name in REQUESTS if name.endswith((" query", " source")) or " text_1" in name}
        for request in REQUESTS.keys() - one:  # of one text, a row
            status, _, found = server.post(path_of(request), filled(request, values.get(request, many)))
            assert status in (400, 413), request
            assert "server's limit of 100 tokens" in complaint_of(found), request
    finally:
        stop(server)


# --- tokenizers of the package `tokenizers`

#: Requests to models whose tokenizer is not WordPiece; where the texts stand, is None.
SUBWORD_REQUESTS: dict[str, dict[str, Any]] = {
    "/embed": {"inputs": None, "model": "xlmr"},
    "/embed bytes": {"inputs": None, "model": "bytes"},
    "/tokenize": {"inputs": None, "model": "bytes"},
    "/rerank": {"query": "a", "texts": None, "model": "ranker"},
    "/score text_1": {"text_1": None, "text_2": ["a"] * 2048, "model": "ranker"},
    "/score xlmr": {"text_1": None, "text_2": ["a"] * 2048, "model": "xlmr"},
    "/predict": {"inputs": None, "model": "classes"},
    "/models/entities": {"inputs": None},
}
LARGEST = 1 << 17
SUBWORD_TEXTS: dict[str, list[str]] = {
    "a text of many words": ["a " * (4 * MB - 9999)],
    "a text of many wide characters": ["雨" * (2 * MB)],
    "the longest text": ["🤗 " * (LARGEST // 2)],
    "many of the longest texts": ["a " * (LARGEST // 2)] * 4,
    "many of the longest wide texts": ["雨" * LARGEST] * 4,
}


def subword_folders(parent: Path) -> dict[str, Path]:
    """Return the folders of models with Unigram and byte-level tokenizers."""
    found = {"xlmr": sentence_folder("st_xlmr", parent), "bytes": sentence_folder("st_roberta", parent)}
    found["ranker"] = MODELS / "rerank_modernbert"
    for name, model in (("classes", "xlmr_seqcls"), ("entities", "xlmr_token_cls")):
        found[name] = parent / name
        found[name].mkdir()
        for file in ("tokenizer.json", "tokenizer_config.json"):
            shutil.copy(MODELS / "st_xlmr" / file, found[name])
        shutil.copytree(MODELS / model, found[name], dirs_exist_ok=True)
    return found


@pytest.fixture(scope="module")
def subword_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    pytest.importorskip("tokenizers", reason="tokenizers is not installed")
    folders = subword_folders(tmp_path_factory.mktemp("subword"))
    found = start(*(f"{name}={folder}" for name, folder in folders.items()))
    yield found
    stop(found)
    assert "Traceback" not in "".join(found.log)


@pytest.mark.parametrize("request_", SUBWORD_REQUESTS)
@pytest.mark.parametrize("kind", SUBWORD_TEXTS)
def test_long_texts_take_other_tokenizers_little_memory(subword_server: Server, request_: str, kind: str) -> None:
    texts = SUBWORD_TEXTS[kind]
    given: list[Any] = [[text] for text in texts] if request_ == "/predict" else texts
    if "score" in request_:
        given = given[:1]
    fields = {name: given if value is None else value for name, value in SUBWORD_REQUESTS[request_].items()}
    body = json.dumps(fields, ensure_ascii=False).encode()
    assert len(body) <= 8 * MB
    with bounded(subword_server):
        status, headers, found = subword_server.post(path_of(request_), body)
    if len(texts[0]) > LARGEST:
        assert_refused(status, headers["content-type"], found)
        assert "for a text where the tokenizer is not WordPiece" in complaint_of(found)
    elif status != 200:
        assert "server's limit of 131072 tokens" in complaint_of(found)


def test_a_long_query_is_scored_as_by_predict_with_other_tokenizers(subword_server: Server) -> None:
    ranker = CrossEncoder(MODELS / "rerank_modernbert")
    query, documents = "bread " * 300, ["the oven", "a " * 90, "雨"]
    found = subword_server.post("/score", {"text_1": query, "text_2": documents, "model": "ranker"})[2]
    expected, truncated = ranker.predict([(query, document) for document in documents], return_truncated=True)
    assert truncated.all()
    assert [item["score"] for item in found["data"]] == [float(score) for score in expected]


@pytest.mark.parametrize("kind", ["byte-level", "unigram"])
def test_blocks_of_texts_change_no_token(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tokenizers", reason="tokenizers is not installed")
    tokenizer = PAIR_TOKENIZERS[kind]()
    texts = ["", "bread oven", ("a", "雨 é"), "", "a " * 40, ("bread " * 30, "oven"), "雨🤗"]
    calls: dict[str, dict[str, Any]] = {
        "plain": {},
        "truncated": {"truncation": True, "max_length": 9},
        "windows": {"truncation": True, "max_length": 16, "stride": 1, "return_overflowing_tokens": True},
        "offsets": {"return_offsets": True, "truncation": True, "max_length": 9, "return_overflowing_tokens": True},
    }

    def all_calls() -> list[Any]:
        rows = [tokenizer.encode_batch(texts, **options) for options in calls.values()]
        rows.append(tokenizer.encode_batch([], return_offsets=True, return_overflowing_tokens=True))
        arrays = [[row.ids, row.row_offsets, row.truncated, row.offsets, row.overflow_to_sample] for row in rows]
        return [[None if one is None else (one.dtype, one.tolist()) for one in found] for found in arrays]

    expected = all_calls()
    assert [len(found[1][1]) - 1 for found in expected[:2]] == [len(texts)] * 2
    for characters in (1, 30):
        monkeypatch.setattr(shared_core, "_BLOCK_CHARACTERS", characters)
        assert all_calls() == expected
    monkeypatch.setattr(shared_core, "_BLOCK", 2)
    assert all_calls() == expected


# --- large answers


class Pieces:
    """Counts the numbers, items and characters of the largest piece of an answer that is made at once."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, numbers: int, items: int) -> None:
        monkeypatch.setattr(json_answers, "_NUMBERS", numbers)
        monkeypatch.setattr(json_answers, "_ITEMS", items)
        monkeypatch.setattr(json_answers, "_BYTES", 4 * numbers // 3 * 3)
        monkeypatch.setattr(json_answers, "_text", self._counted)
        self.largest, self.count = 0, 0

    def _counted(self, value: Any) -> str:
        self.largest = max(self.largest, self._size(value))
        self.count += 1
        return json.dumps(value, separators=(",", ":"), allow_nan=False)

    def _size(self, value: Any) -> int:
        if isinstance(value, list | dict):
            return sum(map(self._size, value.values() if isinstance(value, dict) else value))
        return 1 + len(value) // 4 if isinstance(value, str) else 1


LARGE = {
    "/embed": {"inputs": None},
    "/embed_all": {"inputs": None},
    "/embed_all colbert": {"inputs": None, "model": "colbert"},
    "/embed_sparse": {"inputs": None},
    "/pooling": {"input": None, "model": "sentences"},
    "/pooling base64": {"input": None, "model": "sentences", "encoding_format": "base64"},
    "/pooling colbert": {"input": None, "model": "colbert"},
    "/pooling embed": {"input": None, "task": "embed"},
    "/v1/embeddings": {"input": None},
    "/tokenize": {"inputs": None},
    "/predict": {"inputs": None},
    "/classify": {"input": None},
    "/score": {"text_1": "a", "text_2": None},
    "/rerank": {"query": "a", "texts": None},
    "/models/entities": {"inputs": None},
}


@pytest.fixture(scope="module")
def loaded(folders: Path) -> dict[str, Any]:
    return {name: load_model(str(folders / name)) for name in NAMES}


def test_the_numbers_of_answers_with_labels_are_limited(
    loaded: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    labels = loaded["reviews"].num_labels
    monkeypatch.setattr(base, "_MOST_NUMBERS", 6 * labels)

    async def check() -> None:
        app = create_app({"reviews": loaded["reviews"]})
        for path, name, item in (
            ("/predict", "inputs", ["a"]),
            ("/classify", "input", "a"),
            ("/pooling", "input", "a"),
        ):
            for texts in (3, 4):
                answer = await ask(app, "POST", path, json.dumps({name: [item] * texts}).encode())
                complaint = "" if texts == 3 else complaint_of(json.loads(answer.body))
                assert (answer.status == 200) == (texts == 3)
                assert ("more than the server's limit of" in complaint) == (texts == 4)
        await app.service.models.close()

    asyncio.run(check())


@pytest.mark.filterwarnings("ignore::wordpiece_bert.errors.TruncationWarning")
@pytest.mark.parametrize("request_", LARGE)
def test_no_piece_of_an_answer_is_large(loaded: dict[str, Any], request_: str, monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[Any] = ["bread oven flour the and a " * 20] * 20
    given = [[text] for text in texts] if request_ == "/predict" else texts
    fields = {name: given if value is None else value for name, value in LARGE[request_].items()}

    async def both() -> tuple[Any, Any, Pieces]:
        app = create_app(loaded)
        usual = await ask(app, "POST", path_of(request_), json.dumps(fields).encode())
        pieces = Pieces(monkeypatch, 16, 4)
        found = await ask(app, "POST", path_of(request_), json.dumps(fields).encode())
        await app.service.models.close()
        assert usual.status == found.status == 200
        return json.loads(usual.body), json.loads(found.body), pieces

    usual, found, pieces = asyncio.run(both())
    for answer in (usual, found):
        if isinstance(answer, dict):
            assert len(answer.pop("id", "")) < 99
            answer.pop("created", 0)
    assert found == usual
    # A vector of a whole text, or a token, a label or the usage with its names.
    assert pieces.largest <= 4 * 16
    assert pieces.count >= 5


numbers = st.floats(-1e6, 1e6, width=32)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(0, 5), min_size=1, max_size=3), st.integers(1, 20), st.data())
def test_arrays_and_lists_are_written_as_lists(shape: list[int], size: int, data: st.DataObject) -> None:
    count = int(np.prod(shape))
    array = np.array(data.draw(st.lists(numbers, min_size=count, max_size=count)), np.float32).reshape(shape)
    octets = data.draw(st.binary(max_size=40))
    plain = {"a": array.tolist(), "b": [1, {"c": array.tolist(), "d": "e"}], "f": [], "g": [0] * 12}

    async def text() -> bytes:
        value = {"a": array, "b": iter([1, {"c": array, "d": "e"}]), "f": iter(()), "g": [0] * 12}
        return b"".join(await json_answers.encoded({**value, "h": memoryview(octets)}))

    with pytest.MonkeyPatch.context() as patch:
        for name, most in (("_NUMBERS", size), ("_ITEMS", size), ("_BYTES", 3 * size), ("_PART", size)):
            patch.setattr(json_answers, name, most)
        found = asyncio.run(text())
    expected = {**plain, "h": base64.b64encode(octets).decode()}
    assert json.loads(found) == expected
    assert len(found) == len(json.dumps(expected, separators=(",", ":")))


def test_an_answer_is_sent_in_parts_and_begins_once(loaded: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_answers, "_PART", 1000)
    sent: list[dict[str, Any]] = []

    async def slow(message: dict[str, Any]) -> None:
        sent.append(message)
        if len(sent) == 3:  # a client that reads no more
            await asyncio.Event().wait()

    async def given_up() -> Answer:
        app = create_app({"sentences": loaded["sentences"]})
        body = json.dumps({"inputs": ["bread"] * 500}).encode()
        whole = await ask(app, "POST", "/embed", body)
        task = asyncio.create_task(ask(app, "POST", "/embed", body, send=slow))
        while len(sent) < 3:
            await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await app.service.models.close()
        return whole

    whole = asyncio.run(given_up())
    assert int(whole.headers["content-length"]) == len(whole.body)
    assert [message["type"] for message in sent] == ["http.response.start", *["http.response.body"] * 2]
    assert [message["more_body"] for message in sent[1:]] == [True, True]
    assert sent[1]["body"] + sent[2]["body"] == whole.body[: len(sent[1]["body"] + sent[2]["body"])]


# --- token ids

#: Every path that takes texts, and where they stand.
PLACES = {
    "/v1/embeddings": "input",
    "/v1/embed": "texts",
    "/v2/embed": "texts",
    "/embed": "inputs",
    "/embed_all": "inputs",
    "/embed_sparse": "inputs",
    "/predict": "inputs",
    "/tokenize": "inputs",
    "/rerank": "texts",
    "/v1/rerank": "documents",
    "/v2/rerank": "documents",
    "/score": "text_1",
    "/classify": "input",
    "/pooling": "input",
    "/pooling embed": "input",
    "/pooling token_embed": "input",
    "/pooling classify": "input",
    "/similarity": "inputs",
    "/": "inputs",
    "/models/{model}": "inputs",
}
MORE: dict[str, dict[str, Any]] = {
    "/v1/embed": {"input_type": "classification"},
    "/v2/embed": {"input_type": "classification"},
    "/rerank": {"query": "a"},
    "/v1/rerank": {"query": "a"},
    "/v2/rerank": {"query": "a"},
    "/score": {"text_2": ["a"]},
}
#: The requests that take rows of ids; all others are refused.
TAKES_IDS = {
    (path, "sentences")
    for path in ("/v1/embeddings", "/embed", "/embed_all", "/pooling", "/pooling embed", "/pooling token_embed")
} | {("/", "sentences"), ("/models/{model}", "sentences")}


@pytest.fixture(scope="module")
def all_kinds(loaded: dict[str, Any], folders: Path) -> dict[str, Any]:
    found = {**loaded, "static": load_model(str(folders / "static"))}
    if importlib.util.find_spec("tokenizers"):
        found["m3"] = load_model(str(MODELS / "m3_colbert_dim"))
    return found


def test_token_ids_are_taken_or_refused_on_every_path_by_every_kind(all_kinds: dict[str, Any]) -> None:
    taken, paths = set(), {path_of(name) for name in PLACES}
    assert paths >= {path_of(name) for name in REQUESTS} - {"/decode", "/models/entities", "/models/words"}

    async def ask_all() -> None:
        app = create_app(all_kinds, ServerSettings(accept_token_ids=True))
        for name, place in PLACES.items():
            task = {"task": name.partition(" ")[2]} if " " in name else {}
            for model in all_kinds:
                path = path_of(name).format(model=model)
                named = {} if "{model}" in name else {"model": model}
                for ids, good in (
                    ([2, 5, 3], True),
                    ([[2, 5, 3], [2, 3]], True),
                    ([[2, 1 << 30]], False),
                    ([[]], False),
                ):
                    body = {place: ids, **MORE.get(name, {}), **named, **task}
                    answer = await ask(app, "POST", path, json.dumps(body).encode())
                    if good and answer.status == 200:
                        taken.add((name, model))
                    else:
                        assert answer.status in (400, 413), (body, path, answer)
                        assert complaint_of(json.loads(answer.body))
        await app.service.models.close()

    asyncio.run(ask_all())
    assert taken == TAKES_IDS


def test_a_prompt_for_token_ids_is_refused_by_name(folders: Path) -> None:
    encoder = SentenceEncoder(folders / "sentences", prompts={"query": "the bread "})
    ids = list(encoder.tokenizer.encode("oven").ids)

    async def check() -> None:
        app = create_app({"a": encoder}, ServerSettings(accept_token_ids=True, prompt="a "))

        async def post(**fields: Any) -> tuple[int, Any]:
            answer = await ask(app, "POST", "/v1/embeddings", json.dumps({"input": [ids], **fields}).encode())
            return answer.status, json.loads(answer.body)

        for field, value in (("input_type", "query"), ("task", "retrieval.query")):
            status, found = await post(**{field: value})
            assert status == 400
            assert "input_type (or task) chooses a prompt for 'query'" in complaint_of(found)
        status, found = await post(prompt_name="query")
        assert (status, "a prompt is put before texts" in complaint_of(found)) == (400, True)
        for more in ({}, {"input_type": "document"}):  # for which the model has no prompt
            status, found = await post(**more)
            assert status == 200
            np.testing.assert_array_equal(np.float32(found["data"][0]["embedding"]), encoder.encode("oven", prompt=""))
        await app.service.models.close()

    asyncio.run(check())


# --- what uvicorn does not limit


def lines_of(size: int) -> list[bytes]:
    return [b"abcd: efgh\r\n" * (MB // 12)] * (size // MB)


CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    "parts",
    [
        [HEAD, *lines_of(36 * MB), b"\r\n"],
        [HEAD, b"x: ", *[b"a" * MB] * 36, b"\r\n\r\n"],
        [HEAD, *[b"x" * MB] * 36],
        [b"GET /", *[b"a" * MB] * 36, b" HTTP/1.1\r\nHost: a\r\n\r\n"],
        [b"GET /?q=" + b"a" * 70_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n"],
        [b"\r\n" * MB, *[b"\r\n" * MB] * 17],
        [CHUNKED, b"2\r\n{}\r\n0\r\n", *lines_of(36 * MB), b"\r\n"],
        [CHUNKED, b"2\r\n{}\r\n0\r\nx: ", *[b"a" * MB] * 36],
        [CHUNKED, b"2;", *[b"a" * MB] * 36],
    ],
    ids=["lines", "value", "name", "path", "query", "blank lines", "trailers", "trailer", "extension of a chunk"],
)
def test_headers_are_limited_before_the_key_is_checked(folders: Path, parts: list[bytes]) -> None:
    pytest.importorskip("httptools", reason="httptools is not installed: pip install '.[serve]'")
    server = start(folders / "sentences", WORDPIECE_BERT_API_KEYS="key")
    try:
        with bounded(server):
            received = raw(server, *parts)
        if received:  # a client that still sends may lose the answer
            head, _, body = received.partition(b"\r\n\r\n")
            assert head.split(b" ")[1] in (b"431", b"401"), head
            assert b"content-type: application/json" in head.lower()
            assert json.JSONDecoder().raw_decode(body.decode())[0]["error"]["code"] in (
                "headers_too_large",
                "invalid_api_key",
            )
    finally:
        stop(server)


def test_headers_and_chunks_of_ordinary_size_are_accepted(server: Server) -> None:
    connection = b"POST /tokenize HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
    body = json.dumps({"inputs": "bread " * 900}).encode()
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n"
    padding = b"x: " + b"a" * 60_000 + b"\r\n"
    request = connection + padding + b"Transfer-Encoding: chunked\r\n\r\n" + chunks
    received = raw(server, request, request, request + b"GET /health HTTP/1.1\r\nConnection: close\r\nHost: a\r\n\r\n")
    assert received.count(b"HTTP/1.1 200 OK") == 4


def test_what_is_not_http_is_refused_in_json(server: Server) -> None:
    received = raw(server, b"\x16\x03\x01\x02\x00 hello\r\n\r\n")
    head, _, body = received.partition(b"\r\n\r\n")
    assert b" 400 " in head.split(b"\r\n")[0]
    assert_refused(400, "application/json", json.loads(body))


def test_paths_and_methods_that_do_not_exist_are_refused_in_json(server: Server) -> None:
    for method, path, status in [("GET", "/elsewhere", 404), ("GET", "/tokenize", 405), ("DELETE", "/health", 405)]:
        found_status, headers, found = server.request(method, path, None, {})
        assert found_status == status
        assert_refused(status, headers["content-type"], found)
        assert (status == 405) == ("allow" in headers)


def test_numbers_and_commas_are_counted_outside_of_texts() -> None:
    def body(numbers: int, text: str = "") -> bytes:
        return json.dumps({"ids": [0] * numbers, "text": text}).encode()

    most = (1 << 16) + 1000
    assert len(parse_object(body(most, ',\\",[' * most), 10, 1000)["ids"]) == most
    with pytest.raises(RequestError, match=f"or {most} values in all"):
        parse_object(body(most + 1), 10, 1000)


# --- surrogates

LONE = "\ud800"
FRAGMENTS = [
    "\\ud83e",
    "\\udd17",
    "\\uD800",
    "\\uDfff",
    "\\\\",
    "\\\\ud800",
    "\\u0041",
    '\\"',
    "\\n",
    "a",
    "🤗",
    "ud800",
]


def is_text(value: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in value)


@settings(deadline=None)
@given(st.lists(st.sampled_from(FRAGMENTS), max_size=12).map("".join))
def test_lone_surrogates_are_found(content: str) -> None:
    text = f'{{"a": "{content}"}}'
    value = json.loads(text)["a"]
    if not is_text(value):
        with pytest.raises(RequestError, match=r"lone surrogate \(at character (\d+)\)") as caught:
            parse_object(text.encode(), 10)
        at = int(re.search(r"character (\d+)", caught.value.message)[1])  # type: ignore[index]
        assert re.match(r"\\u[dD][89a-fA-F]", text[at:])
        assert is_text(json.loads(text[:at] + '"}')["a"])
    else:
        assert parse_object(text.encode(), 10) == {"a": value}


def places(value: Any) -> list[tuple[Any, ...]]:
    """Return the way to every string in a value; the name of a field ends with None."""
    if isinstance(value, str):
        return [()]
    if isinstance(value, dict):
        return [(name, None) for name in value] + [(n, *rest) for n, v in value.items() for rest in places(v)]
    return [(i, *rest) for i, v in enumerate(value) for rest in places(v)] if isinstance(value, list) else []


def changed(value: Any, way: tuple[Any, ...], change: Callable[[str], str]) -> Any:
    """Return a value in which one string is another."""
    if not way:
        return change(value)
    if way[1:] == (None,):
        return {change(name) if name == way[0] else name: item for name, item in value.items()}
    if isinstance(value, dict):
        return {**value, way[0]: changed(value[way[0]], way[1:], change)}
    return [changed(item, way[1:], change) if i == way[0] else item for i, item in enumerate(value)]


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_surrogate_is_refused_in_every_place_of_every_request(app: Any, data: st.DataObject) -> None:
    request = data.draw(st.sampled_from(list(REQUESTS)))
    path = path_of(request)
    nested = {"deep": [{"er": ["text"]}], "text": "a"}
    fields: dict[str, Any] = {**filled(request, ["bread"]), "encoding_format": "float", "user": "me", "other": nested}
    fields["documents" if "rank" in path else "other"] = ["a", nested]
    way = data.draw(st.sampled_from(places(fields)))
    at = data.draw(st.integers(0, 3))
    body = changed(fields, way, lambda text: text[:at] + LONE + text[at:])
    escaped = json.dumps(body).encode()
    bare = json.dumps(body, ensure_ascii=False).encode("utf-8", "surrogatepass")
    for sent in (escaped, bare):
        answer = asyncio.run(ask(app, "POST", path, sent))
        assert_refused(answer.status, answer.media_type, json.loads(answer.body))
        assert answer.status == 400


def test_models_have_names_that_can_be_shown(folders: Path) -> None:
    with pytest.raises(InputError, match="give the model another name"):
        create_app({"a\udc80": SentenceEncoder(folders / "sentences")})


# --- the end


def test_a_request_beyond_the_drain_time_is_503_in_json_and_counted(folders: Path) -> None:
    texts = 20_000  # seconds of work, where the server has one
    limits = ["--max-items", texts, "--max-tokens", 100 * texts, "--queue-tokens", 300 * texts, "--drain-timeout", 1]
    server = start(folders / "sentences", "--backend", "numpy", *limits)
    answers: dict[str, bytes] = {}
    body = json.dumps({"input": ["the bread and the oven " * 12] * texts}).encode()
    requests = {
        "computing": [HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body],
        "waiting": [HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body],
        "arriving": [HEAD + b"Content-Length: 99\r\n\r\n{"],
    }
    threads = [
        threading.Thread(target=lambda name=name, parts=parts: answers.update({name: raw(server, *parts)}))
        for name, parts in requests.items()
    ]
    for thread in threads:
        thread.start()
    while not re.search(r"queue_requests\{.*\} 2\n", server.get("/metrics")[2]):
        time.sleep(0.01)
    stop(server)
    for thread in threads:
        thread.join()
    assert set(answers) == set(requests)
    for received in answers.values():
        head, _, found = received.partition(b"\r\n\r\n")
        assert b" 503 " in head.split(b"\r\n")[0]
        assert b"content-type: application/json" in head
        assert json.loads(found)["error"] == {
            "message": "the server is shutting down, and had no time left for this request; send it again",
            "type": "server_error",
            "param": None,
            "code": "shutting_down",
        }
    log = "".join(server.log)
    assert len(re.findall(r"POST /v1/embeddings 503 ", log)) == 3
    assert "Traceback" not in log


def test_a_request_that_the_server_gives_up_is_counted(folders: Path) -> None:
    app = create_app({"a": SentenceEncoder(folders / "sentences")}, ServerSettings(fill_deadline=30))
    batcher = app.service.models.find("a")._batcher
    batcher._active, batcher._seconds = 2, 60  # so that it waits for another request

    async def given_up() -> tuple[Answer, Answer]:
        task = asyncio.create_task(ask(app, "POST", "/v1/embeddings", b'{"input": "bread"}'))
        await asyncio.sleep(0.2)
        task.cancel()
        return await task, await ask(app, "GET", "/metrics")

    answer, metrics = asyncio.run(given_up())
    assert (answer.status, answer.media_type) == (503, "application/json")
    assert b'requests_total{path="/v1/embeddings",status="503"} 1\n' in metrics.body
