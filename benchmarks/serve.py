"""The command `serve`: servers under load, by the CPU time of a text beside the time of `SentenceEncoder.encode`.

The clients are coroutines of another process, which keep their connections and send the next request when they have the
answer. Plain calls and the servers take turns, and of several rounds the least CPU time counts, because other programs
may share the machine. Clients and server share its CPUs, too. `--worst` sends the worst bodies to each path and measures
how long `/health` waits meanwhile; `--soak` loads the server for long and watches its memory. `--mixed` sends single
texts at times that do not depend on the answers, at half of the rate that the server can answer, beside a client that
always has a request of 1,000 texts there, and counts those of the second half; a server without short batches takes
turns with it. `--single` sends one text after the other on one connection, in turn with plain calls of one text, so that
what the server adds is seen.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, NamedTuple

import numpy as np

from benchmarks import report
from benchmarks.hostile_bodies import HOSTILE, PACKED, REQUESTS, hostile_body, path_of
from benchmarks.texts import ROOT
from wordpiece_bert import SentenceEncoder
from wordpiece_bert.hub import find_model

TEXTS = ROOT / "examples" / "texts" / "sentences.txt"
#: The name of the model in requests.
NAME = "model"


class Load(NamedTuple):
    """What the clients have measured."""

    texts: int
    seconds: float
    #: Seconds of each request.
    latencies: list[float]

    @property
    def rate(self) -> float:
        return self.texts / self.seconds


class Fresh:
    """Texts with the lengths of given ones, of their words in a random order: an engine computes equal texts once."""

    def __init__(self, texts: list[str]) -> None:
        self._words = [word for text in texts for word in text.split()]
        self._lengths = [len(text.split()) for text in texts]
        self._chance = random.Random()

    def texts(self, count: int) -> list[str]:
        lengths = self._chance.choices(self._lengths, k=count)
        return [" ".join(self._chance.choices(self._words, k=length)) for length in lengths]

    def body(self, count: int) -> bytes:
        """Return a request with texts."""
        return json.dumps({"model": NAME, "input": self.texts(count), "encoding_format": "base64"}).encode()


async def _client(port: int, fresh: Fresh, size: int, end: float, latencies: list[float]) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    requests = 0
    while perf_counter() < end:
        body = fresh.body(size)
        start = perf_counter()
        await _answered(reader, writer, body)
        latencies.append(perf_counter() - start)
        requests += 1
    writer.close()
    await writer.wait_closed()
    return requests


def _clients(port: int, clients: int, size: int, seconds: float, texts: list[str]) -> Load:
    """Run the clients; the function of the other process."""

    async def run() -> Load:
        latencies: list[float] = []
        fresh = Fresh(texts)
        start = perf_counter()
        end = start + seconds
        counts = await asyncio.gather(*(_client(port, fresh, size, end, latencies) for _ in range(clients)))
        return Load(sum(counts) * size, perf_counter() - start, latencies)

    return asyncio.run(run())


def _one_by_one(port: int, bodies: list[bytes]) -> list[float]:
    """Send requests on one connection, each when the last is answered; return the seconds of each."""
    latencies = []
    with socket.create_connection(("127.0.0.1", port)) as connection, connection.makefile("rb") as answers:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for body in bodies:
            start = perf_counter()
            connection.sendall(_head(body) + body)
            head = b"".join(iter(answers.readline, b"\r\n"))
            answers.read(_length(head))
            latencies.append(perf_counter() - start)
    return latencies


def _head(body: bytes) -> bytes:
    return (
        f"POST /v1/embeddings HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    ).encode()


def _length(head: bytes) -> int:
    """Return the length of the answer after these headers."""
    assert head.startswith(b"HTTP/1.1 200"), head
    length = re.search(rb"content-length: (\d+)", head.lower())
    assert length, head
    return int(length[1])


async def _answered(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, body: bytes) -> None:
    writer.write(_head(body) + body)
    await reader.readexactly(_length(await reader.readuntil(b"\r\n\r\n")))


class Mixed(NamedTuple):
    """What single texts beside a bulk client have measured."""

    #: Seconds from when each text was due to its answer.
    latencies: list[float]
    bulk: float  # texts in a second


def _mixed(port: int, rate: float, seconds: float, texts: list[str]) -> Mixed:
    """Run a bulk client, and send single texts at a rate; the function of the other process."""

    async def run() -> Mixed:
        fresh = Fresh(texts)
        start = perf_counter()
        end = start + seconds
        latencies: list[float] = []
        idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

        async def bulk() -> float:
            connection = await asyncio.open_connection("127.0.0.1", port, limit=1 << 24)
            done, last = 0, start
            while perf_counter() < end:
                await _answered(*connection, fresh.body(1000))
                done, last = done + 1000, perf_counter()
            connection[1].close()
            return done / (last - start)

        async def single(due: float) -> None:
            connection = idle.pop() if idle else await asyncio.open_connection("127.0.0.1", port)
            await _answered(*connection, fresh.body(1))
            if due > start + seconds / 2:  # when the server knows that there are both kinds
                latencies.append(perf_counter() - due)
            idle.append(connection)

        together = asyncio.create_task(bulk())
        draw = np.random.default_rng(0)
        tasks = []
        due = start + min(seconds / 5, 1.0)  # the bulk request is there
        while due < end:
            await asyncio.sleep(max(0.0, due - perf_counter()))
            tasks.append(asyncio.create_task(single(due)))
            due += float(draw.exponential(1 / rate))
        await asyncio.gather(*tasks)
        found = Mixed(latencies, await together)
        for _, writer in idle:
            writer.close()
        return found

    return asyncio.run(run())


def ours(port: int, *models: str) -> list[str]:
    """Return the command of this package's server."""
    return [sys.executable, "-m", "wordpiece_bert", "serve", *models, "--port", str(port)]


def of_infinity(python: str, model: str, port: int) -> list[str]:
    """Return the command of infinity-emb, with torch."""
    options = (
        f"v2 --model-id {model} --served-model-name {NAME} --engine torch --device cpu --url-prefix /v1 --port {port}"
    )
    return [str(Path(python).with_name("infinity_emb")), *options.split()]


def of_fastembed(python: str, model: str, port: int) -> list[str]:
    """Return the command of a server of fastembed."""
    return [python, str(Path(__file__).parent / "engines" / "fastembed_server.py"), model, str(port)]


class Running:
    """A server in a process of its own, and a process for the clients."""

    def __init__(self, command: list[str], port: int, health: str = "/health") -> None:
        self.port = port
        # None of its lines is read.
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - `close` closes it
        settings = {"HF_HUB_OFFLINE": "1", "DO_NOT_TRACK": "1", "INFINITY_ANONYMOUS_USAGE_STATS": "0"}
        self.process = subprocess.Popen(
            command, stdout=self._log, stderr=subprocess.STDOUT, env={**os.environ, **settings}
        )
        deadline = perf_counter() + 300
        while not self._answers(health):
            if self.process.poll() is not None or perf_counter() > deadline:
                self._log.seek(0)
                raise RuntimeError(f"the server did not start: {self._log.read().decode(errors='replace')[-2000:]}")
            time.sleep(0.1)
        self._pool = multiprocessing.get_context("spawn").Pool(1)

    def _answers(self, path: str) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=5):
                return True
        except (OSError, urllib.error.URLError):
            return False

    def load(self, clients: int, size: int, seconds: float, texts: list[str]) -> Load:
        return self._pool.apply(_clients, (self.port, clients, size, seconds, texts))

    def mixed(self, rate: float, seconds: float, texts: list[str]) -> Mixed:
        return self._pool.apply(_mixed, (self.port, rate, seconds, texts))

    def memory(self) -> float:
        """Return the resident memory of the server in MB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024  # type: ignore[index]

    def cpu(self) -> float:
        """Return the CPU time of the server in seconds."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self) -> None:
        self._pool.terminate()
        self._pool.join()
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self._log.close()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


class Plain(NamedTuple):
    """What plain calls with many texts each cost."""

    rate: float
    #: CPU seconds of a thousand texts.
    cpu: float


def plain_calls(encoder: SentenceEncoder, texts: list[str], seconds: float) -> Plain:
    many = Fresh(texts).texts(512)
    done, start, before = 0, perf_counter(), process_time()
    while perf_counter() - start < seconds or not done:
        encoder.encode(many)
        done += len(many)
    return Plain(done / (perf_counter() - start), (process_time() - before) * 1000 / done)


def rows(
    servers: dict[str, Running], encoder: SentenceEncoder, texts: list[str], options: argparse.Namespace
) -> Iterator[dict[str, Any]]:
    for size in options.sizes:
        for clients in options.clients:
            loads: dict[str, list[tuple[float, Load]]] = {name: [] for name in servers}
            plain = []
            for _ in range(options.rounds):
                plain.append(plain_calls(encoder, texts, options.seconds))
                for name, server in servers.items():
                    before = server.cpu()
                    load = server.load(clients, size, options.seconds, texts)
                    # At least a tick of the clock, in quick runs.
                    used = max(server.cpu() - before, 1 / os.sysconf("SC_CLK_TCK"))
                    loads[name].append((used * 1000 / load.texts, load))
            for name, measured in loads.items():
                cpu = min(cpu for cpu, _ in measured)
                best = max((load for _, load in measured), key=lambda load: load.rate)
                p50, p99 = np.percentile(best.latencies, [50, 99]) * 1000
                yield {
                    "server": name,
                    "clients": clients,
                    "texts a request": size,
                    "CPU s/1000 texts": round(cpu, 2),
                    "encode's share": round(min(one.cpu for one in plain) / cpu, 3),
                    "texts/s": round(best.rate, 1),
                    "p50 ms": round(float(p50), 1),
                    "p99 ms": round(float(p99), 1),
                    "encode CPU s/1000": round(min(one.cpu for one in plain), 2),
                }


def single_rows(
    server: Running, encoder: SentenceEncoder, texts: list[str], options: argparse.Namespace
) -> Iterator[dict[str, Any]]:
    """Measure one client of single texts, in turn with plain calls; texts have other words in each turn."""
    words = [word for text in texts for word in text.split()]
    size = -(-options.single // options.rounds)
    for count in (5, 12, 25):
        fresh = Fresh([" ".join(words[:count])])
        served: list[float] = []
        plain: list[float] = []
        for _ in range(options.rounds):
            served += _one_by_one(server.port, [fresh.body(1) for _ in range(size)])[size // 5 :]
            for text in fresh.texts(size):
                start = perf_counter()
                encoder.encode(text)
                plain.append(perf_counter() - start)
        p50, p99, encode = (float(x) * 1000 for x in (*np.percentile(served, [50, 99]), np.median(plain)))
        yield {
            "words": count,
            "requests/s": round(len(served) / sum(served)),
            "p50 ms": round(p50, 2),
            "p99 ms": round(p99, 2),
            "encode p50 ms": round(encode, 2),
            "the server adds": round(p50 - encode, 2),
        }


def mixed_rows(servers: dict[str, Running], texts: list[str], options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Measure single texts beside a bulk client; the servers take turns, and of the rounds the median counts."""
    rates = {name: server.load(16, 1, options.seconds, texts).rate / 2 for name, server in servers.items()}
    found: dict[str, list[Mixed]] = {name: [] for name in servers}
    for _ in range(options.rounds):
        for name, server in servers.items():
            found[name].append(server.mixed(min(rates.values()), options.seconds, texts))
    for name, measured in found.items():
        quantiles = np.median([np.percentile(one.latencies, [50, 99, 99.9]) for one in measured], axis=0) * 1000
        yield {
            "server": name,
            "single texts/s": round(min(rates.values()), 1),
            **{f"p{q} ms": round(float(x), 1) for q, x in zip((50, 99, 99.9), quantiles, strict=True)},
            "bulk texts/s": round(float(np.median([one.bulk for one in measured])), 1),
        }


def worst(seconds_between: float = 0.005) -> list[dict[str, Any]]:
    """Send all hostile bodies to all paths; for each path return those that hold up `/health` and itself longest."""
    sys.path.append(str(ROOT / "examples"))
    from make_models import make_all

    folders = make_all(Path(tempfile.mkdtemp()))
    names = ("sentences", "ranker", "reviews", "entities", "words", "splade", "colbert")
    port = free_port()
    server = Running(ours(port, *(str(folders / name) for name in names)), port)
    found = []
    try:
        for request in REQUESTS:
            measured = []
            # One path stands for all in unpacking bodies.
            for kind in [*HOSTILE, *(PACKED if request == "/embed" else ())]:
                is_packed = kind in PACKED
                body = PACKED[kind]() if is_packed else hostile_body(request, kind)
                waits: list[float] = []
                done = threading.Event()
                thread = threading.Thread(target=_ask_health, args=(port, done, waits, seconds_between))
                thread.start()
                begin = perf_counter()
                status = _post(port, path_of(request), body, is_packed=is_packed)
                took = perf_counter() - begin
                done.set()
                thread.join()
                measured.append((max(waits), took, kind, status))
            wait, took, kind, status = max(measured)
            slowest = max(measured, key=lambda one: one[1])
            found.append(
                {
                    "request": request,
                    "worst for /health": kind,
                    "status": status,
                    "/health ms": round(1000 * wait, 1),
                    "it took ms": round(1000 * took, 1),
                    "slowest": slowest[2],
                    "took ms": round(1000 * slowest[1], 1),
                    "MB": round(server.memory(), 1),
                }
            )
    finally:
        server.close()
    return found


def _post(port: int, path: str, body: bytes, *, is_packed: bool) -> int:
    headers = {"Content-Type": "application/json"} | ({"Content-Encoding": "gzip"} if is_packed else {})
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", body, headers, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            answer.read()
            return int(answer.status)
    except urllib.error.HTTPError as error:
        error.read()
        return error.code


def _ask_health(port: int, done: threading.Event, waits: list[float], pause: float) -> None:
    while True:
        begin = perf_counter()
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=120) as answer:
            answer.read()
        waits.append(perf_counter() - begin)
        if done.wait(pause):
            return


def soak(server: Running, texts: list[str], seconds: float) -> list[dict[str, Any]]:
    """Load the server for some time, and return its memory now and then; each answer must be a 200."""
    found = []
    start = perf_counter()
    while (passed := perf_counter() - start) < seconds or not found:
        load = server.load(16, 4, min(seconds / 10, 60), texts)
        if not load.latencies:  # a short time on a machine with much else to do
            continue
        p99 = float(np.percentile(load.latencies, 99)) * 1000
        found.append(
            {
                "seconds": round(passed),
                "requests": len(load.latencies),
                "texts": load.texts,
                "p99 ms": round(p99, 1),
                "MB": round(server.memory(), 1),
            }
        )
    return found


def table(found: list[dict[str, Any]]) -> str:
    """Return rows as a table in Markdown."""
    lines = [list(found[0]), ["---"] * len(found[0]), *([str(value) for value in row.values()] for row in found)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def main(arguments: list[str]) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="benchmarks serve", description=__doc__)
    parser.add_argument("--model", default="minilm", help="the model (default: minilm)")
    parser.add_argument("--texts", type=Path, default=TEXTS, help="a file with a text in each line")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 64], help="numbers of clients")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1, 16], help="texts in a request")
    parser.add_argument("--seconds", type=float, default=5.0, help="the length of a round")
    parser.add_argument("--rounds", type=int, default=5, help="rounds, of which the best counts; 0 for none")
    parser.add_argument("--mixed", action="store_true", help="measure single texts beside a bulk client")
    parser.add_argument("--single", type=int, metavar="N", default=0, help="measure one client of N single texts")
    parser.add_argument("--dtype", default="float32", help="the dtype of this package's server")
    parser.add_argument("--soak", type=float, default=0.0, help="seconds of load for which memory is reported")
    parser.add_argument("--worst", action="store_true", help="send the worst bodies to each path")
    parser.add_argument("--infinity", metavar="PYTHON", help="also measure infinity-emb, installed for this Python")
    parser.add_argument("--fastembed", metavar="PYTHON", help="also measure a server of fastembed, of this Python")
    parser.add_argument("--record", type=Path, nargs="?", const=report.RECORDS, help="save the results in this folder")
    options = parser.parse_args(arguments)
    if (options.mixed or options.single) and not options.rounds:
        parser.error("--mixed and --single need --rounds of at least 1")
    texts = [line for line in options.texts.read_text(encoding="utf-8").splitlines() if line]
    parts = [report.heading("The server under load", f"{options.texts.name}, {options.model}")]
    content: dict[str, Any] = {}
    if options.worst:
        content["worst"] = worst()
        parts.append(f"## The worst body of each path\n\n{table(content['worst'])}")
    if options.rounds or options.soak:
        measured(options, texts, parts, content)
    print("\n".join(parts))
    if options.record:
        print(report.save("serve", "\n".join(parts), content, options.record))
    return 0


def measured(options: argparse.Namespace, texts: list[str], parts: list[str], content: dict[str, Any]) -> None:
    """Measure the servers under load, and the memory of this package's."""
    encoder = SentenceEncoder(options.model, dtype=options.dtype)
    folder = str(find_model(options.model))
    servers: dict[str, Running] = {}
    try:
        port = free_port()
        served = f"{NAME}={options.model},dtype={options.dtype}"
        servers["wordpiece-bert"] = Running(ours(port, served), port)
        if options.infinity:
            port = free_port()
            servers["infinity-emb"] = Running(of_infinity(options.infinity, folder, port), port)
        if options.fastembed:
            port = free_port()
            servers["fastembed"] = Running(of_fastembed(options.fastembed, folder, port), port)
        if options.mixed:
            port = free_port()
            full = "without short batches"
            servers[full] = Running([*ours(port, served), "--batch-seconds", "0"], port)
        for server in servers.values():
            server.load(4, 4, 1.0, texts)
        if options.single:
            content["single"] = list(single_rows(servers["wordpiece-bert"], encoder, texts, options))
            parts.append(f"## One client of single texts\n\n{table(content['single'])}")
        elif options.mixed:
            content["mixed"] = list(mixed_rows(servers, texts, options))
            parts.append(f"## Single texts beside a bulk client\n\n{table(content['mixed'])}")
        elif options.rounds:
            content["rows"] = list(rows(servers, encoder, texts, options))
            parts.append(table(content["rows"]))
        if options.soak:
            content["soak"] = soak(servers["wordpiece-bert"], texts, options.soak)
            parts.append(f"## Memory\n\n{table(content['soak'])}")
    finally:
        for server in servers.values():
            server.close()
