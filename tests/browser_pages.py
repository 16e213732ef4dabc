"""Pages of `wordpiece_bert.inspect` in Chromium: what the tests with a browser share."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import inspect_fixtures
import tiny_models
from test_inspect_attribution import sentences
from test_inspect_trace import loaded
from wordpiece_bert import inspect

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from wordpiece_bert.inspect import Page, View

HOSTILE = "</script><script>document.title='broken'</script><img src=x onerror=\"document.title='broken'\">"


#: Counts the arrays that are being unpacked, which happens beside the drawing.
READS = """
    {
      const read = Response.prototype.arrayBuffer;
      window.reads = 0;
      Response.prototype.arrayBuffer = async function () {
        window.reads++;
        try {
          return await read.call(this);
        } finally {
          window.reads--;
        }
      };
    }
"""


def wait_for_view(page: Any, tab: str | None = None) -> None:
    """Wait until the view of the tab with this id is shown, for the view before it stays until then; or any view."""
    panel = "#panel" if tab is None else f'#panel[aria-labelledby="{tab}"]'
    page.wait_for_selector(f"{panel} > [data-ready]")


class Opened:
    """A page in the browser, and what it complained about."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.problems: list[str] = []
        self.requests: list[str] = []
        page.on("console", lambda message: self.problems.append(message.text))
        page.on("pageerror", lambda error: self.problems.append(error.stack or str(error)))
        page.on("request", lambda request: self.requests.append(request.url))

    def tab(self, name: str) -> None:
        tab = self.page.get_by_role("tab", name=name, exact=True)
        tab.click()
        self.ready(tab.get_attribute("id"))

    def ready(self, tab: str | None = None) -> None:
        """Wait until a view is shown, with all that is stored of it."""
        wait_for_view(self.page, tab)
        self.drawn()

    def call(self, function: str, argument: Any = None) -> Any:
        """Call a function of JavaScript that returns a promise, and return what that resolves to.

        Whether it has ended is asked again and again. A promise that the debugger awaits may be collected between its end and
        the answer, whatever else refers to it: "Resulting promise was garbage collected".
        """
        self.page.evaluate(
            f"""
            (argument) => {{
              const call = (window.called = {{ ended: false }});
              const end = (results) => Object.assign(call, results, {{ ended: true }});
              ({function})(argument).then((value) => end({{ value }}), (error) => end({{ error: error.stack ?? `${{error}}` }}));
            }}
            """,
            argument,
        )
        while not (call := self.page.evaluate("window.called"))["ended"]:
            self.page.wait_for_timeout(10)
        assert "error" not in call, call["error"]
        return call["value"]

    def drawn(self) -> None:
        """Wait until what was last asked for is drawn: no array was being unpacked at the last two frames."""
        self.call("""
            () => new Promise((done) => {
              let calm = 0;
              const frame = () => {
                calm = window.reads ? 0 : calm + 1;
                if (calm === 2) done(null);
                else requestAnimationFrame(frame);
              };
              requestAnimationFrame(frame);
            })
        """)


@pytest.fixture
def open_page(browser: Any, tmp_path: Path) -> Iterator[Any]:
    """A function that opens views in the browser; afterwards there was no complaint and no request but for the page."""
    contexts, opened = [], []

    def start(
        shown: View | Page,
        width: int = 1280,
        scheme: str = "light",
        script: str = "",
        *,
        ready: bool = True,
        height: int = 900,
        **more: Any,
    ) -> Opened:
        file = shown.save(tmp_path / f"{len(contexts)}.html")
        context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme, **more)
        contexts.append(context)
        context.add_init_script(READS)
        if script:
            context.add_init_script(script)
        one = Opened(context.new_page())
        opened.append((one, file))
        one.page.goto(file.as_uri())
        if ready:
            one.ready()
        return one

    yield start
    for one, file in opened:
        assert one.problems == [], one.problems
        assert [url for url in one.requests if not url.startswith("data:")] == [file.as_uri()]
    for context in contexts:
        context.close()


some_attention = functools.partial(inspect_fixtures.some_attention, seed=3)


def ranking(one: Opened) -> dict[str, float]:
    """The tokens and weights that the list beside the lines shows."""
    names = one.page.locator(".ranking .bars .token").all_inner_texts()
    numbers = one.page.locator(".ranking .bars .number").all_inner_texts()
    return dict(zip(names, map(float, numbers), strict=True))


def settle(one: Opened, state: str) -> None:
    one.page.wait_for_selector(f'.view-attention[data-state="{state}"]')


@pytest.fixture(scope="module")
def every_view(tmp_path_factory: pytest.TempPathFactory) -> Page:
    from wordpiece_bert import tasks

    folder = tiny_models.make_all(tmp_path_factory.mktemp("models"))
    words, reviews = tasks.load(folder / "words"), tasks.load(folder / "reviews")
    text = f"the capital of france is [MASK] {HOSTILE}"
    trace = inspect.trace(words, text, "a wonderful city")
    rng = np.random.default_rng(6)
    labels = loaded("bert_token_cls")
    layers, count = labels.model.config.encoder_layers, labels.model.config.num_attention_heads
    heads = [*((layer, head) for layer in range(layers) for head in range(count)), *range(layers), [(0, 0), (1, 1)]]
    model = loaded("bert_model")
    traces = [inspect.trace(model, one) for one in (f"w5 w6 w7 w8 {HOSTILE}", "w5 w9 w7")]
    return inspect.page(
        inspect.tokens(words.tokenizer, text, HOSTILE, beside=reviews.tokenizer),
        inspect.attention(trace),
        inspect.neurons(trace),
        inspect.patterns(trace),
        inspect.predictions(words, text),
        inspect.logit_lens(words, text),
        inspect.saliency(reviews, text),
        inspect.similarity(rng.normal(size=(5, 7)), [HOSTILE, *"abcd"]),
        inspect.embedding_map(
            rng.normal(size=(3000, 4)), [f"{HOSTILE} {i}" for i in range(3000)], groups=[HOSTILE, "b", "c"] * 1000
        ),
        inspect.positions(words.model),
        inspect.interventions(inspect.intervene(labels, "w5 w6 [MASK] w9", heads=heads)),
        inspect.interventions(
            inspect.intervene(sentences(), "w5 w6 w7", other=f"w9 {HOSTILE}", beside=[HOSTILE, "w8 w9", "w7"])
        ),
        inspect.comparison(inspect.compare(*traces)),
        inspect.tokenizers(
            inspect.compare_tokenizers(words.tokenizer, reviews.tokenizer, text, names=(HOSTILE, "reviews"))
        ),
        title=HOSTILE,
    )
