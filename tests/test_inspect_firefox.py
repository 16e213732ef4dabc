"""The pages of `wordpiece_bert.inspect` in Firefox: no error, no request, and a click shows the values.

The tests need ``firefox-esr`` or ``firefox`` and the package websocket-client, through which they speak WebDriver BiDi with
the browser: ``apt-get install firefox-esr`` and ``pip install websocket-client``.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from wordpiece_bert import inspect
from wordpiece_bert.bert.functional import softmax

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FIREFOX = os.environ.get("FIREFOX") or shutil.which("firefox-esr") or shutil.which("firefox")
websocket = pytest.importorskip("websocket", reason="websocket-client is not installed: pip install websocket-client")
pytestmark = pytest.mark.skipif(FIREFOX is None, reason="there is no Firefox: apt-get install firefox-esr")


class Firefox:
    """A headless Firefox, driven by WebDriver BiDi."""

    def __init__(self, profile: Path) -> None:
        assert FIREFOX is not None
        command = [FIREFOX, "--headless", "--no-remote", "--profile", str(profile), "--remote-debugging-port", "0"]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        assert self.process.stderr is not None
        address = next(found[0] for line in self.process.stderr if (found := re.search(r"ws://[\w.]+:\d+", line)))
        self.socket = websocket.create_connection(f"{address}/session", timeout=60, suppress_origin=True)
        self.events: list[dict[str, Any]] = []
        self.count = 0
        self.ask("session.new", capabilities={})
        self.ask("session.subscribe", events=["log.entryAdded", "network.beforeRequestSent"])
        self.context = self.ask("browsingContext.getTree")["contexts"][0]["context"]

    def ask(self, method: str, **parameters: Any) -> Any:
        self.count += 1
        self.socket.send(json.dumps({"id": self.count, "method": method, "params": parameters}))
        while True:
            message = json.loads(self.socket.recv())
            if message.get("id") == self.count:
                assert message["type"] == "success", message
                return message["result"]
            self.events.append(message)

    def open(self, file: Path) -> None:
        self.events.clear()
        self.ask("browsingContext.navigate", context=self.context, url=file.as_uri(), wait="complete")

    def run(self, script: str) -> Any:
        """The value of an async function's body, as JSON."""
        answer = self.ask(
            "script.evaluate",
            expression=f"(async () => JSON.stringify(await (async () => {{ {script} }})()) ?? null)()",
            target={"context": self.context},
            awaitPromise=True,
        )
        assert answer["type"] == "success", answer
        return json.loads(answer["result"].get("value") or "null")

    def close(self) -> None:
        self.socket.close()
        self.process.terminate()
        self.process.wait(timeout=30)
        if self.process.stderr is not None:
            self.process.stderr.close()


@pytest.fixture(scope="module")
def firefox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Firefox]:
    browser = Firefox(tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


WAIT = """
    const until = async (found) => {
      for (let i = 0; i < 1000; i++) { if (found()) return true; await new Promise((done) => setTimeout(done, 20)); }
      throw new Error("not found: " + found);
    };
    await until(() => document.querySelector("#panel > [data-ready]"));
"""


def test_every_view_opens_in_firefox(firefox: Firefox, tmp_path: Path) -> None:
    rng = np.random.default_rng(8)
    q, k = rng.normal(size=(2, 2, 3, 9, 16)).astype(np.float32)
    weights, names = softmax(q @ k.swapaxes(-1, -2) / np.float32(4)), [f"t{i}" for i in range(9)]
    page = inspect.page(
        inspect.attention(weights, names),
        inspect.neurons(None, names, queries=q, keys=k),
        inspect.patterns(weights, names),
        inspect.similarity(rng.normal(size=(5, 7)), ["</script>", *"abcd"]),
        inspect.embedding_map(rng.normal(size=(300, 4)), [f"text {i}" for i in range(300)]),
        inspect.positions(rng.normal(size=(40, 8))),
    )
    file = page.save(tmp_path / "page.html")
    firefox.open(file)
    kinds = firefox.run(
        WAIT
        + """
        const kinds = [];
        for (const tab of document.querySelectorAll("[role=tab]")) {
          tab.click();
          await until(() => tab.getAttribute("aria-selected") === "true" && document.querySelector("#panel > [data-ready]"));
          kinds.push(document.querySelector("#panel").dataset.view);
        }
        return kinds;
        """
    )
    assert kinds == [view.kind for view in page.views]
    shown = firefox.run(
        WAIT
        + """
        document.querySelector("[role=tab]").click();
        await until(() => document.querySelector('[data-head="1.2"]'));
        document.querySelector('[data-head="1.2"]').click();
        document.querySelector('button[aria-label="t4, position 4"]').click();
        await until(() => document.querySelector('.view-attention[data-state="weights 1 2 4"]'));
        const text = (selector) => [...document.querySelectorAll(selector)].map((element) => element.textContent);
        return [text(".ranking .bars .token"), text(".ranking .bars .number")];
        """
    )
    assert shown[0]
    for name, number in zip(*shown, strict=True):
        expected = weights[1, 2, 4, int(name[1:])]
        assert float(number) == pytest.approx(expected, abs=float(weights[1, 2, 4].max()) / 255 + 5e-4)
    problems = [event["params"] for event in firefox.events if event["method"] == "log.entryAdded"]
    assert [entry["text"] for entry in problems if entry["level"] in ("error", "warn")] == []
    urls = [event["params"]["request"]["url"] for event in firefox.events if event["method"].startswith("network.")]
    assert {url for url in urls if not url.startswith("data:")} <= {file.as_uri()}
