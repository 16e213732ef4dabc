"""The command `pages`: the pages of `wordpiece_bert.inspect`, their sizes, what it takes to make them, and their clicks.

Each view is made in a process of its own, of a model of twelve layers and heads (the layers of MiniLM, twice), and its
page is opened afresh for each click in Chromium: once at full speed, once with the processor slowed six times. The pointer
comes a tenth of a second before the click, which is timed from its event, as the browser received it, to the task after
the frame in which what it asks for was drawn. The median counts; other programs slow it down, so the processor's time of
the page's thread stands beside it, the way of the pointer included. bertviz gets the weights of the same trace; it needs
three scripts from a server of its page.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks import page_views, report
from benchmarks.process import PROGRAMS, MissingError, python_of
from benchmarks.texts import ROOT

BUILD = ROOT / "build" / "bench" / "pages"
SLOWER = (1, 6)
#: Milliseconds from the arrival of the pointer to the click: people need 100 or more.
DWELL = 100
#: Seconds after which a page that does not open is given up, and seconds after which there are no more loads of a page.
PATIENCE, BUDGET = 120, 25
#: The scripts that pages of bertviz load from cdnjs.cloudflare.com, by a part of their addresses.
SCRIPTS = {"require": "require.js", "d3": "d3.js", "jquery": "jquery.js"}
MIB = 2**20

#: From the event of the next click to the task after the frame that shows it, in milliseconds.
MEASURE = """
    () => {
      window.measured = new Promise((done) => {
        addEventListener("click", (event) => {
          const painted = () => requestAnimationFrame(() => {
            const { port1, port2 } = new MessageChannel();
            port1.onmessage = () => done(performance.now() - event.timeStamp);
            port2.postMessage(null);
          });
          const panel = document.getElementById("panel");
          if (!panel) painted();
          else {
            const shown = new MutationObserver(() => { shown.disconnect(); painted(); });
            shown.observe(panel, { attributeFilter: ["data-shown"] });
          }
        }, { capture: true, once: true });
      });
    }
"""


@dataclass
class Measured:
    """A page: what it took to make it, and milliseconds of its clicks at each speed."""

    label: str
    tokens: int
    bytes: int
    seconds: float
    resident: int
    peak: int
    opened: float = 0.0
    clicks: dict[int, list[float]] = field(default_factory=dict)
    #: Milliseconds of the processor that the page's own thread took for the clicks at full speed.
    busy: list[float] = field(default_factory=list)
    note: str = ""

    def cells(self) -> list[str]:
        """Return a line of a table."""
        clicks = [f"{statistics.median(self.clicks[one]):.0f}" if self.clicks.get(one) else "" for one in SLOWER]
        more = (self.peak - self.resident) / MIB
        opened = f"{self.opened:.1f}" if self.opened else self.note
        busy = f"{statistics.median(self.busy):.0f}" if self.busy else ""
        counts = " and ".join(str(len(self.clicks.get(one, []))) for one in SLOWER)
        return [
            self.label,
            f"{self.bytes / 1e6:.1f}",
            f"{self.seconds:.1f}",
            f"{more:.0f}",
            opened,
            *clicks,
            busy,
            counts,
        ]


HEADER = [
    "",
    "page, MB",
    "made in, s",
    "memory, MB",
    "opened in, s",
    "first click, ms",
    "6 times slower, ms",
    "CPU, ms",
    "clicks",
]


def titled(title: str, pages: list[Measured]) -> str:
    """Return a heading and a table."""
    return "\n".join([f"## {title}", "", *report.markdown(HEADER, [one.cells() for one in pages]), ""])


def made(command: list[str | Path], label: str, tokens: int) -> Measured:
    """Run the program that makes a page."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    if command[0] != sys.executable:
        environment.pop("PYTHONPATH")
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        raise MissingError(f"{label}: {(done.stderr.strip() or 'ended').splitlines()[-1]}")
    found = json.loads(done.stdout.splitlines()[-1])
    return Measured(label, tokens, found["bytes"], found["seconds"], found["resident"], found["peak"])


def ours(kind: str, tokens: int) -> tuple[Measured, Path]:
    """Make a page of ours."""
    path = BUILD / f"{kind}-{tokens}.html"
    return made([sys.executable, "-m", "benchmarks.page_views", kind, str(tokens), path], kind, tokens), path


def theirs(view: str, tokens: int, python: Path) -> tuple[Measured, Path]:
    """Make a page of bertviz."""
    trace, stem = page_views.trace(tokens), BUILD / f"bertviz-{tokens}"
    weights, names, path = stem.with_suffix(".npy"), stem.with_suffix(".json"), BUILD / f"bertviz-{view}-{tokens}.html"
    np.save(weights, trace.attentions)
    names.write_text(json.dumps(trace.tokens), encoding="utf-8")
    command = [python, PROGRAMS / "bertviz_page.py", view, weights, names, path]
    return made(command, f"bertviz {view}", tokens), path


def answered_by(path: Path) -> Callable[[Any], None]:
    """Return a handler that answers a request with a file."""
    return lambda route: route.fulfill(path=path)  # Playwright passes as many arguments as a handler takes


def visits(
    browser: Any, path: Path, ready: str, scripts: Path | None, slower: int
) -> Generator[tuple[Any, Any, float]]:
    """Open a page afresh, again and again: the page, what controls it, and the seconds until it was ready."""
    while True:
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        try:
            page = context.new_page()
            page.set_default_timeout(1000 * PATIENCE)
            if scripts is not None:
                for part, name in SCRIPTS.items():
                    address = f"**/cdnjs.cloudflare.com/**/{part}*"
                    page.route(address, answered_by(scripts / name))
            start = perf_counter()
            page.goto(path.as_uri(), wait_until="load")
            page.wait_for_selector(ready, state="attached")
            seconds = perf_counter() - start
            session = context.new_cdp_session(page)
            session.send("Performance.enable", {"timeDomain": "threadTicks"})
            quiet(page, session)
            if slower > 1:
                session.send("Emulation.setCPUThrottlingRate", {"rate": slower})
            yield page, session, seconds
        finally:  # a page whose processor is slowed down keeps one busy
            context.close()


def click(
    browser: Any, one: Measured, path: Path, selector: str, ready: str, rounds: int, scripts: Path | None
) -> None:
    """Measure the first click on an element of a page, after each of several fresh loads."""
    for slower in SLOWER:
        times: list[float] = []
        loads: list[float] = []
        start = perf_counter()
        with contextlib.closing(visits(browser, path, ready, scripts, slower)) as opened:
            for page, session, seconds in opened:
                loads.append(seconds)
                page.evaluate(MEASURE)
                before = busy(session)
                target = page.locator(selector).first
                target.hover(force=scripts is not None)
                page.wait_for_timeout(DWELL)
                target.click(force=scripts is not None)
                times.append(page.evaluate("window.measured"))
                if slower == 1:
                    one.busy.append(busy(session) - before)
                if len(times) == rounds or perf_counter() - start > BUDGET:
                    break
        one.clicks[slower] = times
        one.opened = one.opened or statistics.median(loads)


def quiet(page: Any, session: Any) -> None:
    """Wait until the page has nothing to do: thumbnails are drawn after it is ready."""
    before, after = -1.0, busy(session)
    while after - before > 10:
        page.wait_for_timeout(500)
        before, after = after, busy(session)


def busy(session: Any) -> float:
    """Return the milliseconds of the processor that the page's own thread has taken."""
    metrics = {one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]}
    return 1000 * float(metrics["TaskDuration"])


def main(arguments: list[str]) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="benchmarks pages", description=__doc__)
    parser.add_argument("--tokens", type=int, default=512)
    parser.add_argument("--only", nargs="+", choices=page_views.VIEWS, default=list(page_views.VIEWS))
    parser.add_argument("--beside", type=int, nargs="*", default=[64, 128, 512], help="tokens for bertviz")
    parser.add_argument("--bertviz", type=Path, help="a Python that has bertviz, instead of installing it")
    parser.add_argument("--scripts", type=Path, help=f"a folder with {', '.join(SCRIPTS.values())}, without a network")
    parser.add_argument("--rounds", type=int, default=20, help="fresh loads of each page (default: 20)")
    parser.add_argument("--record", type=Path, nargs="?", const=report.RECORDS)
    options = parser.parse_args(arguments)
    BUILD.mkdir(parents=True, exist_ok=True)
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    about = f"the documentation of two modules of Python, {options.tokens} tokens; twelve layers and heads"
    parts = [report.heading("Inspection pages", about)]
    print(parts[0], flush=True)
    with importlib.import_module("playwright.sync_api").sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        parts[0] += f"Chromium {browser.version}; median of {options.rounds} fresh loads, or of those of {BUDGET} s.\n"
        own = []
        for kind in options.only:
            one, path = ours(kind, options.tokens)
            click(browser, one, path, page_views.VIEWS[kind][2], "#panel > [data-ready]", options.rounds, None)
            print(one.cells(), flush=True)
            own.append(one)
        parts.append(titled("Each view", own))
        beside = list(compared(browser, options))
    parts += [
        titled(f"Beside bertviz, {tokens} tokens", [one for one in beside if one.tokens == tokens])
        for tokens in options.beside
    ]
    print("\n".join(parts))
    if options.record:
        content = {"views": [asdict(one) for one in own], "beside": [asdict(one) for one in beside]}
        print(report.save("pages", "\n".join(parts), content, options.record))
    return 0


def compared(browser: Any, options: argparse.Namespace) -> Iterator[Measured]:
    """Measure the view of attention beside bertviz's two."""
    for tokens in options.beside:
        one, path = ours("attention", tokens)
        one.label = "ours"
        click(browser, one, path, page_views.VIEWS["attention"][2], "#panel > [data-ready]", options.rounds, None)
        yield one
        for view, selector in (
            ("model_view", "#vis svg > g > rect:last-child >> nth=89"),
            ("head_view", "#vis svg > g:last-child > rect"),
        ):
            try:
                one, path = theirs(view, tokens, options.bertviz or python_of("bertviz"))
            except MissingError as error:
                print(error, flush=True)
                continue
            try:
                click(browser, one, path, selector, "#vis svg", options.rounds, options.scripts)
            except importlib.import_module("playwright.sync_api").Error as error:
                one.note = "never" if "Timeout" in str(error) else "crashes"
                print(error, flush=True)
            print(one.cells(), flush=True)
            yield one
