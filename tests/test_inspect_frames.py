"""Frames of notebooks in Chromium: each as high as its content, and in the notebook's theme.

It needs what `test_inspect_browser` needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from chromium import browser, needs_chromium
from wordpiece_bert import inspect

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wordpiece_bert.inspect import View

pytestmark = needs_chromium

#: The height of a frame and the height of what is in it.
HEIGHTS = "() => [innerHeight, Math.ceil(app.getBoundingClientRect().height)]"
FITS = "() => innerHeight === Math.ceil(app.getBoundingClientRect().height) && !!document.querySelector('[data-ready]')"


def similarity(count: int) -> View:
    vectors = np.random.default_rng(1).normal(size=(count, 4))
    return inspect.similarity(vectors, [f"text {i}" for i in range(count)])


@pytest.fixture
def notebook(browser: Any) -> Iterator[Any]:
    """A function that opens a page with pieces of HTML, as a notebook has outputs."""
    contexts = []

    def start(*outputs: str, head: str = "", ground: str = "#ffffff", **more: Any) -> Any:
        contexts.append(browser.new_context(viewport={"width": 1000, "height": 800}, **more))
        page = contexts[-1].new_page()
        body = "".join(f'<div class="output">{one}</div>' for one in outputs)
        page.set_content(f"<!doctype html>{head}<style>body {{ background: {ground} }}</style><body>{body}</body>")
        return page

    yield start
    for context in contexts:
        context.close()


def test_frames_are_as_high_as_what_is_in_them(notebook: Any) -> None:
    views = [similarity(3), similarity(14)]
    page = notebook(*(view.frame()._repr_html_() for view in views), views[0].frame(300)._repr_html_())
    low, high, fixed = page.frames[1:]
    for frame in (low, high):
        frame.wait_for_function(FITS)
    assert low.evaluate(HEIGHTS)[0] < high.evaluate(HEIGHTS)[0]
    fixed.wait_for_selector("[data-ready]")
    assert fixed.evaluate(HEIGHTS)[0] == 300

    # A choice that makes the content higher, and a menu that lies above it.
    before = low.evaluate(HEIGHTS)[0]
    low.evaluate("() => document.querySelector('#panel').append(document.createElement('hr'))")
    low.wait_for_function(f"() => innerHeight > {before}")
    low.wait_for_function(FITS)
    low.evaluate("() => document.querySelector('hr').remove()")
    low.wait_for_function(f"() => innerHeight === {before}")
    page.set_viewport_size({"width": 420, "height": 800})
    for frame in (low, high):
        frame.wait_for_function(FITS)
    low.locator(".take > summary").click()
    low.wait_for_function("() => document.querySelector('.take > div').getBoundingClientRect().bottom <= innerHeight")
    assert fixed.evaluate(HEIGHTS)[0] == 300


def test_a_frame_that_was_there_before_the_script_fits_too(notebook: Any) -> None:
    frame, script = similarity(3).frame()._repr_html_().split("<script>")
    page = notebook(frame)
    page.frames[1].wait_for_selector("[data-ready]")
    assert page.frames[1].evaluate(HEIGHTS)[0] == 640
    page.add_script_tag(content=script.removesuffix("</script>"))
    page.frames[1].wait_for_function(FITS)


@pytest.mark.parametrize("is_allowed", [True, False])
def test_without_the_script_a_frame_has_a_height(notebook: Any, is_allowed: bool) -> None:
    """A policy of the notebook forbids the script beside the frame, or scripts are switched off."""
    policy = "<meta http-equiv='Content-Security-Policy' content=\"script-src 'none'\">" if is_allowed else ""
    page = notebook(similarity(14).frame()._repr_html_(), head=policy, java_script_enabled=is_allowed)
    assert page.locator("iframe").bounding_box()["height"] == 640


def test_other_pages_cannot_change_a_frame(notebook: Any) -> None:
    page = notebook(similarity(3).frame()._repr_html_(), "<iframe srcdoc='<p>other</p>'></iframe>")
    page.frames[1].wait_for_function(FITS)
    before = page.frames[1].evaluate(HEIGHTS)[0]
    for message in ("{ wordpieceBert: { height: 5000 } }", "{ wordpieceBert: { height: '9' } }", "null", "'text'"):
        page.frames[2].evaluate(f"() => parent.postMessage({message}, '*')")
        page.frames[1].evaluate(f"() => parent.postMessage({message.replace('5000', 'NaN')}, '*')")
    page.wait_for_timeout(300)
    assert page.frames[1].evaluate(HEIGHTS)[0] == before


def test_a_frame_has_the_theme_of_the_notebook(notebook: Any) -> None:
    """The notebook is dark on a light system: the page is dark; then the notebook changes."""
    page = notebook(similarity(3).frame()._repr_html_(), ground="#111111", color_scheme="light")
    frame = page.frames[1]
    themed = "(name) => document.documentElement.dataset.theme === name"
    frame.wait_for_function(themed, arg="dark")
    page.evaluate("() => document.body.setAttribute('style', 'background: rgb(250 250 250)')")
    frame.wait_for_function(themed, arg="light")
    page.evaluate("() => document.body.setAttribute('style', 'background: oklch(20% 0.02 250)')")
    frame.wait_for_function(themed, arg="dark")
    # What the reader chose stays.
    frame.get_by_label("Change between light and dark").click()
    page.evaluate("() => document.body.setAttribute('style', 'background: black')")
    page.wait_for_timeout(1000)
    assert frame.evaluate("() => document.documentElement.dataset.theme") == "light"


def test_without_a_ground_the_system_s_theme_counts(notebook: Any) -> None:
    page = notebook(similarity(3).frame()._repr_html_(), ground="transparent", color_scheme="dark")
    page.frames[1].wait_for_function(FITS)
    assert page.frames[1].evaluate("() => document.documentElement.dataset.theme") == "dark"
