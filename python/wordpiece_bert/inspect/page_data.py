"""What a page stores of its views: their data and arrays, and which texts they are about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from wordpiece_bert.inspect.kinds import kind_named
from wordpiece_bert.inspect.pack import are_softmax_of, pack_text
from wordpiece_bert.inspect.packed_page import PackedPage, json_text

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    import numpy as np
    import numpy.typing as npt

    from wordpiece_bert.inspect.pack import Packed

#: The data of a view are compressed in the page if they are longer, in characters of JSON.
LARGE_DATA = 30_000
#: Characters of a text in the list of texts.
SHOWN_OF_TEXT = 120


class Viewed(Protocol):
    """What is read of a `View`."""

    kind: str
    title: str
    data: dict[str, Any]
    arrays: dict[str, npt.NDArray[np.float32]]

    def packed(self, without: Collection[str] = ()) -> dict[str, Packed]:
        """Return the arrays as a page stores them."""

    def to_svg(self) -> str:
        """Return the picture."""


def packed_page(title: str, views: Sequence[Viewed], tabs: Sequence[int]) -> PackedPage:
    """Return what a page shows, without the scripts and the style sheet that show it.

    Parameters
    ----------
    title : str
        The title of the page.
    views : sequence of View
        The views.
    tabs : sequence of int
        The number of the tab of each view.

    Returns
    -------
    PackedPage
        The views, as a page stores them.
    """
    blobs: list[str] = []
    shown: list[dict[str, Any]] = []
    computed = _computed(views)
    # The numbers of the texts, in the order in which views are about them.
    texts = {text: 0 for view in views for text in view.data.get("about", [])}
    texts = {text: number for number, text in enumerate(texts)}
    for index, view in enumerate(views):
        kind = kind_named(view.kind)
        arrays = {}
        for name, packed in view.packed(without={"attention"} if index in computed else set()).items():
            arrays[name] = packed.spec | {"first": len(blobs)}
            blobs += packed.parts
        data: Any = {name: value for name, value in view.data.items() if name != "about"}
        text = json_text(data)
        if len(text) > LARGE_DATA:
            part, length = pack_text(text)
            data = {"packed": len(blobs), "length": length}
            blobs.append(part)
        named = {"kind": view.kind, "label": kind.label, "title": view.title, "tab": tabs[index]}
        picture = {} if kind.script else {"picture": view.to_svg()}
        # What is chosen at first, for all tabs.
        focus = {"focus": view.data["focus"]} if view.data.get("focus") else {}
        shown.append({**named, "data": data, "arrays": arrays, **_numbered(view, texts), **focus, **picture})
    for index, source in computed.items():
        spec = {name: shown[source]["arrays"][name] for name in ("queries", "keys")}
        shape = list(views[index].arrays["attention"].shape)
        shown[index]["arrays"]["attention"] = {"encoding": "softmax", "shape": shape, **spec}
    return PackedPage(title, shown, blobs, [_line(text) for text in texts])


def _computed(views: Sequence[Viewed]) -> dict[int, int]:
    """Return the views whose attention the page computes, with the view that has the queries and keys."""
    sources = [
        (index, view)
        for index, view in enumerate(views)
        if view.kind == "neurons"
        and "bias" not in view.arrays
        and view.data["layers"] == list(range(len(view.arrays["queries"])))
    ]
    found = {}
    for index, view in enumerate(views):
        if view.kind == "attention":
            for source, other in sources:
                if are_softmax_of(view.arrays["attention"], other.arrays["queries"], other.arrays["keys"]):
                    found[index] = source
                    break
    return found


def _numbered(view: Viewed, texts: Mapping[str, int]) -> dict[str, Any]:
    """Return the numbers of the texts that a view is about, and of those that its rows have, by the row."""
    found: dict[str, Any] = {"texts": [texts[text] for text in view.data.get("about", [])]}
    rows = view.data.get(kind_named(view.kind).rows, [])
    if known := {row: texts[text] for row, text in enumerate(rows) if text in texts}:
        found["rows"] = known
    return found


def _line(text: str) -> str:
    """Return a text, or the two of a pair, as a line of a list."""
    line = " · ".join(text.split("\n"))
    return line if len(line) <= SHOWN_OF_TEXT else line[: SHOWN_OF_TEXT - 1] + "…"
