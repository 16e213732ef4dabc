"""What the colours of an inspection page say: read through its scales, as a reader does with the bar of the legend."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from wordpiece_bert.inspect.colours import PALETTE

if TYPE_CHECKING:
    from browser_pages import Opened

#: Colours that differ by no more than this in any part are one: browsers blend and round.
NEAR = 4


def scale(theme: str, name: str) -> Any:
    """The 256 colours of a scale, between its published stops: [256, 3]."""
    stops = np.array([[int(stop[i : i + 2], 16) for i in (1, 3, 5)] for stop in PALETTE[theme][name]], float)
    places = np.linspace(0, len(stops) - 1, 256)
    return np.stack([np.interp(places, np.arange(len(stops)), channel) for channel in stops.T], axis=1)


def shares(theme: str, name: str, colours: Any) -> Any:
    """The places of colours [n, 3] in a scale: from 0 to 1 or −1 to 1; NaN for those that are not of the scale."""
    table, colours = scale(theme, name), np.array(colours, float).reshape(-1, 3)
    far = np.abs(table[None] - colours[:, None]).max(axis=-1)  # [n, 256]
    place = far.argmin(axis=1) / 255
    found = place if name == "sequential" else 2 * place - 1
    return np.where(far.min(axis=1) <= NEAR, found, np.nan)


def theme_of(one: Opened) -> str:
    """The theme that is shown."""
    return str(one.page.evaluate("document.documentElement.dataset.theme"))


def rgb(texts: list[str]) -> Any:
    """Computed colours as numbers, [n, 3]."""
    return np.array([[float(part) for part in re.findall(r"[\d.]+", text)[:3]] for text in texts]).reshape(-1, 3)


def check_shares(found: Any, expected: Any, *, root: bool = False, of: str = "", slack: float = 0.0) -> None:
    """Places in a scale are the places of the expected values; with `root` the places are their (signed) square roots.

    `slack` is how far what is stored may be from the values.
    """
    found, expected = np.asarray(found, float).ravel(), np.asarray(expected, float).ravel()
    assert found.shape == expected.shape, of
    assert np.isfinite(found).all(), (of, "a colour that is none of the scale", found)
    if root:
        found = np.sign(found) * found**2
    # Two steps of the scale, besides.
    np.testing.assert_allclose(found, np.clip(expected, -1, 1), atol=0.022 + slack, err_msg=of)


def check_grounds(
    one: Opened, selector: str, name: str, expected: Any, *, root: bool = False, slack: float = 0.0
) -> None:
    """The grounds of all elements have the colours of the expected values."""
    colours = one.page.locator(selector).evaluate_all("all => all.map((one) => getComputedStyle(one).backgroundColor)")
    check_shares(shares(theme_of(one), name, rgb(colours)), expected, root=root, of=selector, slack=slack)


#: What a canvas says at places, shares of its width and height: the line beside the pointer, and the colour there, null where
#: what is drawn is half transparent or more: a faint mark has the colour of a full one, and its text is not told.
PROBE = """
    ([selector, number, places]) => {
      const canvas = document.querySelectorAll(selector)[number];
      const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
      copy.drawImage(canvas, 0, 0);
      const tip = document.getElementById("tip");
      const box = canvas.getBoundingClientRect();
      const found = places.map(([a, b]) => {
        const place = { clientX: box.left + a * box.width, clientY: box.top + b * box.height, bubbles: true };
        tip.classList.add("hidden");
        canvas.dispatchEvent(new PointerEvent("pointermove", place));
        const [x, y] = [Math.floor(a * canvas.width), Math.floor(b * canvas.height)];
        const text = tip.classList.contains("hidden") ? null : tip.firstChild.data;
        const [red, green, blue, alpha] = copy.getImageData(x, y, 1, 1).data;
        return [text, alpha > 127 ? [red, green, blue] : null];
      });
      canvas.dispatchEvent(new PointerEvent("pointerleave"));
      return found;
    }
"""


def probe(one: Opened, selector: str, number: int = 0, count: int = 12, seed: int = 0) -> list[tuple[str, Any]]:
    """Texts and colours at random places of a canvas, those without a text left out; NaN for what is half transparent."""
    places = np.random.default_rng(seed).uniform(0.02, 0.98, (count, 2)).tolist()
    found = one.page.evaluate(PROBE, [selector, number, places])
    nothing = [np.nan] * 3
    return [
        (text.replace("\u2068", "").replace("\u2069", ""), colour or nothing)
        for text, colour in found
        if text is not None
    ]


def check_cells(
    one: Opened, selector: str, number: int, pattern: str, name: str, told: Any, drawn: Any, *, root: bool = False
) -> None:
    """At random places of a canvas the line says the value of its cell, and the colour too.

    `pattern` finds the cell (groups ``i`` and ``j``) and the value (``value``) in the line; `told` and `drawn` are arrays
    [rows, columns], the values that lines say and those that colours mean. A place on a frame or a name has another colour;
    most have the colour of their cell.
    """
    found = probe(one, selector, number)
    assert len(found) >= 3, selector
    hits = []
    for text, colour in found:
        match = re.search(pattern, text)
        assert match, (selector, text)
        i, j = int(match["i"]) if "i" in match.re.groupindex else 0, int(match["j"])
        np.testing.assert_allclose(float(match["value"]), told[i, j], atol=0.006 * max(1.0, np.abs(told).max()))
        hits.append((shares(theme_of(one), name, [colour])[0], drawn[i, j]))
    on_scale = [(share, value) for share, value in hits if np.isfinite(share)]
    assert len(on_scale) >= 0.5 * len(hits), (selector, hits)
    check_shares(*np.transpose(on_scale), root=root, of=f"{selector} {number}")


def check_legends(one: Opened) -> None:
    """The bars of the legends have the published colours, from end to end."""
    ramps = one.page.locator("#panel .legend .ramp").evaluate_all("""
        all => all.filter((one) => one.checkVisibility()).map((one) => {
          const copy = new OffscreenCanvas(one.width, 1).getContext("2d", { willReadFrequently: true });
          copy.drawImage(one, 0, 0);
          const { data } = copy.getImageData(0, 0, one.width, 1);
          return Array.from({ length: one.width }, (_, i) => [...data.slice(4 * i, 4 * i + 3)]);
        })
    """)
    for ramp in ramps:
        theme, ends = theme_of(one), np.linspace(0, 1, len(ramp))
        names = [name for name in PALETTE[theme] if np.abs(scale(theme, name)[0] - ramp[0]).max() <= NEAR]
        assert names, ("a bar that is none of the scales", theme, ramp[0])
        name = names[0]
        found = shares(theme, name, ramp)
        np.testing.assert_allclose(found, ends if name == "sequential" else 2 * ends - 1, atol=0.02)
