"""The command `serve`: the server under load, as a share of the throughput of `SentenceEncoder.encode`.

The clients are coroutines of another process, which keep their connections and send the next request when they have the
answer. Plain calls and the server take turns, and the best of several rounds counts, because other programs may share
the machine. Clients and server share its CPUs, too: the share is that of a machine that runs both.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import re
import signal
import subprocess
import sys
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from benchmarks import report
from benchmarks.texts import ROOT
from wordpiece_bert import SentenceEncoder

if TYPE_CHECKING:
    from collections.abc import Iterator

TEXTS = ROOT / "examples" / "texts" / "sentences.txt"


class Load(NamedTuple):
    """What the clients have measured."""

    texts: int
    seconds: float
    #: Seconds of each request.
    latencies: list[float]

    @property
    def rate(self) -> float:
        return self.texts / self.seconds


async def _client(port: int, bodies: list[bytes], end: float, latencies: list[float]) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    requests = 0
    while perf_counter() < end:
        body = bodies[requests % len(bodies)]
        start = perf_counter()
        head = f"POST /v1/embeddings HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        answer = await reader.readuntil(b"\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 200"), answer
        length = re.search(rb"content-length: (\d+)", answer.lower())
        assert length, answer
        await reader.readexactly(int(length[1]))
        latencies.append(perf_counter() - start)
        requests += 1
    writer.close()
    await writer.wait_closed()
    return requests


def _clients(port: int, clients: int, size: int, seconds: float, texts: list[str]) -> Load:
    """Run the clients; the function of the other process."""

    async def run() -> Load:
        latencies: list[float] = []
        start = perf_counter()
        all_bodies = []
        for client in range(clients):
            chosen = [[texts[(client * 7 + k * size + j) % len(texts)] for j in range(size)] for k in range(20)]
            all_bodies.append([json.dumps({"input": c, "encoding_format": "base64"}).encode() for c in chosen])
        start = perf_counter()
        counts = await asyncio.gather(*(_client(port, bodies, start + seconds, latencies) for bodies in all_bodies))
        return Load(sum(counts) * size, perf_counter() - start, latencies)

    return asyncio.run(run())


class Running:
    """A server in a process of its own, and a process for the clients."""

    def __init__(self, model: str) -> None:
        command = [sys.executable, "-m", "wordpiece_bert", "serve", f"model={model}", "--port", "0"]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, encoding="utf-8")
        assert self.process.stderr is not None
        line = self.process.stderr.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)", line)
        if not found:
            raise RuntimeError(f"the server did not start: {line}{self.process.stderr.read()}")
        self.port = int(found[1])
        # The server's log is not read, and must not fill the pipe.
        self._drain = subprocess.Popen(["cat"], stdin=self.process.stderr, stdout=subprocess.DEVNULL)
        self.process.stderr.close()
        self._pool = multiprocessing.get_context("spawn").Pool(1)

    def load(self, clients: int, size: int, seconds: float, texts: list[str]) -> Load:
        return self._pool.apply(_clients, (self.port, clients, size, seconds, texts))

    def memory(self) -> float:
        """Return the resident memory of the server in MB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024  # type: ignore[index]

    def close(self) -> None:
        self._pool.terminate()
        self._pool.join()
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)
        self._drain.wait(10)


def plain_rate(encoder: SentenceEncoder, texts: list[str], seconds: float) -> float:
    """Return the texts a second of plain calls with many texts each."""
    many = [texts[i % len(texts)] for i in range(512)]
    done, start = 0, perf_counter()
    while (passed := perf_counter() - start) < seconds or not done:
        encoder.encode(many)
        done += len(many)
    return done / passed if done > len(many) else done / (perf_counter() - start)


def rows(
    server: Running, encoder: SentenceEncoder, texts: list[str], options: argparse.Namespace
) -> Iterator[dict[str, Any]]:
    for size in options.sizes:
        for clients in options.clients:
            loads, plain = [], []
            for _ in range(options.rounds):
                plain.append(plain_rate(encoder, texts, options.seconds))
                loads.append(server.load(clients, size, options.seconds, texts))
            best = max(loads, key=lambda load: load.rate)
            p50, p99 = np.percentile(best.latencies, [50, 99]) * 1000
            yield {
                "clients": clients,
                "texts a request": size,
                "texts/s": round(best.rate, 1),
                "p50 ms": round(float(p50), 1),
                "p99 ms": round(float(p99), 1),
                "encode texts/s": round(max(plain), 1),
                "share": round(best.rate / max(plain), 3),
            }


def soak(server: Running, texts: list[str], seconds: float) -> list[dict[str, Any]]:
    """Load the server for some time, and return its memory now and then."""
    found = []
    start = perf_counter()
    while (passed := perf_counter() - start) < seconds:
        load = server.load(16, 4, min(seconds / 10, 60), texts)
        found.append({"seconds": round(passed), "texts": load.texts, "MB": round(server.memory(), 1)})
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
    parser.add_argument("--rounds", type=int, default=5, help="rounds, of which the best counts")
    parser.add_argument("--soak", type=float, default=0.0, help="seconds of load for which memory is reported")
    parser.add_argument("--record", type=Path, nargs="?", const=report.RECORDS, help="save the results in this folder")
    options = parser.parse_args(arguments)
    texts = [line for line in options.texts.read_text(encoding="utf-8").splitlines() if line]
    encoder = SentenceEncoder(options.model)
    parts = [report.heading("The server under load", f"{options.texts.name}, {options.model}")]
    server = Running(options.model)
    try:
        server.load(4, 4, 1.0, texts)
        measured = list(rows(server, encoder, texts, options))
        parts.append(table(measured))
        content: dict[str, Any] = {"rows": measured}
        if options.soak:
            content["soak"] = soak(server, texts, options.soak)
            parts.append(f"## Memory\n\n{table(content['soak'])}")
    finally:
        server.close()
    print("\n".join(parts))
    if options.record:
        print(report.save("serve", "\n".join(parts), content, options.record))
    return 0
