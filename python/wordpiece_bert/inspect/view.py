"""`View`, one thing to look at, and `Page`, several of them in one HTML file."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wordpiece_bert._internal.atomic_file import write_bytes, write_text
from wordpiece_bert.errors import InputError
from wordpiece_bert.inspect.colours import CATEGORIES, HABIT_COLOURS, PALETTE
from wordpiece_bert.inspect.kinds import KINDS, kind_named
from wordpiece_bert.inspect.pack import Encoding, Packed, are_softmax_of, pack, pack_text

if TYPE_CHECKING:
    import os
    from collections.abc import Collection, Iterable, Mapping

    import numpy as np
    import numpy.typing as npt

    from wordpiece_bert._internal.drawing import Drawing

__all__ = ["Page", "View", "page", "page_file"]

#: The scripts of the page before and after those of the kinds of views. Each is readable by itself.
FIRST_SCRIPTS = ("core.js", "colours.js", "arrays.js", "widgets.js")
LAST_SCRIPT = "main.js"
SUFFIXES = (".html", ".json", ".png", ".svg")
#: Characters of Python's texts that UTF-8 does not have.
SURROGATE = re.compile("[\ud800-\udfff]")
_COLOURS = {"maps": PALETTE, "categories": CATEGORIES, "habits": HABIT_COLOURS}
#: A page without scripts shows pictures instead, unless they are larger than this, in characters.
LARGEST_FALLBACK = 400_000
#: The data of a view are compressed in the page if they are longer, in characters of JSON.
LARGE_DATA = 30_000


class View:
    """One thing to look at: values, and how they are shown.

    The functions of `wordpiece_bert.inspect` make views. In a notebook a view shows itself as a picture without
    scripts; `frame` is the interactive form.

    Parameters
    ----------
    kind : str
        How it is shown, such as ``"attention"``: the name of a registered `wordpiece_bert.inspect.kinds.Kind`.
    title : str
        A line above it.
    data : mapping of str to object
        What is shown besides the arrays: values that JSON has.
    arrays : mapping of str to ndarray of float32, optional
        Arrays by name; float32 unless a function documents another dtype.
    encodings : mapping of str to Encoding, optional
        How each array is stored in a page; ``"single"`` where nothing is given.

    Examples
    --------
    >>> import numpy as np
    >>> from wordpiece_bert import inspect
    >>> view = inspect.similarity(np.eye(2), ["a", "b"])
    >>> view.kind, list(view.arrays)
    ('similarity', ['similarity'])

    Attributes
    ----------
    kind, title : str
        As above.
    data : dict
        As above.
    arrays : dict of str to ndarray
        As above, at full precision.
    """

    kind: str
    title: str
    data: dict[str, Any]
    arrays: dict[str, npt.NDArray[np.float32]]

    def __init__(
        self,
        kind: str,
        title: str,
        data: Mapping[str, Any],
        arrays: Mapping[str, npt.NDArray[np.float32]] | None = None,
        encodings: Mapping[str, Encoding] | None = None,
    ) -> None:
        self.kind = kind
        self.title = title
        self.data = dict(data)
        self.arrays = dict(arrays or {})
        self._encodings = dict(encodings or {})

    def packed(self, without: Collection[str] = ()) -> dict[str, Packed]:
        """Return the arrays as they are stored in a page, except those that the page computes.

        Parameters
        ----------
        without : collection of str, default ()
            The names of the arrays that the page computes.

        Returns
        -------
        dict of str to Packed
            The arrays by name.
        """
        return {
            name: pack(array, self._encodings.get(name, "single"))
            for name, array in self.arrays.items()
            if name not in without
        }

    def drawing(self) -> Drawing:
        """Return the picture of this view, which `save` writes as SVG or PNG.

        Returns
        -------
        Drawing
            The picture.
        """
        return kind_named(self.kind).draw(self.title, self.data, self.arrays)

    def to_json(self) -> str:
        """Return the view as a JSON object: ``kind``, ``title``, ``data`` and ``arrays``, nested lists of numbers.

        Returns
        -------
        str
            The JSON text.

        Raises
        ------
        InputError
            `data` has a value that JSON does not have.

        Examples
        --------
        >>> import numpy as np
        >>> from wordpiece_bert import inspect
        >>> view = inspect.similarity(np.eye(2), ["a", "b"])
        >>> import json
        >>> json.loads(view.to_json())["kind"]
        'similarity'
        """
        arrays = {name: array.tolist() for name, array in self.arrays.items()}
        return _readable_json({"kind": self.kind, "title": self.title, "data": self.data, "arrays": arrays})

    def to_html(self) -> str:
        """Return the interactive page with this view only.

        Returns
        -------
        str
            The HTML.

        Examples
        --------
        >>> import numpy as np
        >>> from wordpiece_bert import inspect
        >>> view = inspect.similarity(np.eye(2), ["a", "b"])
        >>> view.to_html()[:15]
        '<!doctype html>'
        """
        return Page([self], self.title).to_html()

    def to_svg(self) -> str:
        """Return the picture as SVG.

        Returns
        -------
        str
            The SVG.

        Examples
        --------
        >>> import numpy as np
        >>> from wordpiece_bert import inspect
        >>> view = inspect.similarity(np.eye(2), ["a", "b"])
        >>> view.to_svg()[:4]
        '<svg'
        """
        return self.drawing().to_svg()

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the view to a file, atomically, and return its path.

        Parameters
        ----------
        path : str or PathLike
            The name's end chooses the format: ``.html``, the interactive page; ``.svg`` or ``.png``, a picture;
            ``.json``, the values. PNG needs matplotlib, the extra ``plot``.

        Returns
        -------
        Path
            The path of the file.

        Raises
        ------
        InputError
            The name ends otherwise, or matplotlib is not installed.
        OSError
            The file cannot be written.

        Examples
        --------
        >>> import numpy as np
        >>> from wordpiece_bert import inspect
        >>> view = inspect.similarity(np.eye(2), ["a", "b"])
        >>> view.save("view.html").name
        'view.html'
        """
        path = Path(path)
        suffix = _suffix(path, SUFFIXES)
        if suffix == ".png":
            return write_bytes(path, self.drawing().to_png())
        content = {".html": self.to_html, ".svg": self.to_svg, ".json": self.to_json}[suffix]
        return write_text(path, content())

    def frame(self, height: int = 640) -> Frame:
        """Return the interactive page for a notebook that runs scripts: a sandboxed frame, `height` pixels high.

        Parameters
        ----------
        height : int, default 640
            The height in pixels.

        Returns
        -------
        Frame
            What the notebook shows.
        """
        return Frame(self.to_html(), height)

    def _repr_html_(self) -> str:
        return _card(self.to_svg())

    def __repr__(self) -> str:
        arrays = "".join(f", {name} {list(array.shape)}" for name, array in self.arrays.items())
        return f"View({self.kind!r}, {self.title!r}{arrays})"


class Frame:
    """A page for a notebook, in a frame that may run scripts and nothing else."""

    def __init__(self, content: str, height: int) -> None:
        self._content = content
        self._height = int(height)

    def _repr_html_(self) -> str:
        source = html.escape(self._content, quote=True)
        style = f"width:100%;height:{self._height}px;border:0"
        return f'<iframe sandbox="allow-scripts" style="{style}" title="Inspection" srcdoc="{source}"></iframe>'


class Page:
    """Several views in one HTML file, one tab for each.

    Parameters
    ----------
    views : iterable of View
        At least one view.
    title : str, default "Looking inside"
        The title of the page.

    Examples
    --------
    >>> import numpy as np
    >>> from wordpiece_bert import inspect
    >>> page = inspect.page(inspect.similarity(np.eye(2), ["a", "b"]), title="Two vectors")
    >>> len(page.views)
    1

    Attributes
    ----------
    views : list of View
        As above.
    title : str
        As above.
    """

    views: list[View]
    title: str

    def __init__(self, views: Iterable[View], title: str = "Looking inside") -> None:
        self.views = list(views)
        self.title = title
        for index, view in enumerate(self.views):
            if not isinstance(view, View):
                raise InputError(f"views[{index}] must be a View, not {type(view).__name__}")
        if not self.views:
            raise InputError("a page needs at least one view")

    def to_html(self) -> str:
        """Return the page: one file that needs no network, and whose content security policy allows none.

        Returns
        -------
        str
            The HTML.

        Examples
        --------
        >>> import numpy as np
        >>> from wordpiece_bert import inspect
        >>> page = inspect.page(inspect.similarity(np.eye(2), ["a", "b"]), title="Two vectors")
        >>> "Two vectors" in page.to_html()
        True
        """
        blobs: list[str] = []
        shown: list[dict[str, Any]] = []
        computed = self._computed()
        for index, view in enumerate(self.views):
            kind = kind_named(view.kind)
            arrays = {}
            for name, packed in view.packed(without={"attention"} if index in computed else set()).items():
                arrays[name] = packed.spec | {"first": len(blobs)}
                blobs += packed.parts
            data: Any = view.data
            text = _json(data)
            if len(text) > LARGE_DATA:
                part, length = pack_text(text)
                data = {"packed": len(blobs), "length": length}
                blobs.append(part)
            named = {"kind": view.kind, "label": kind.label, "title": view.title}
            picture = {} if kind.script else {"picture": view.to_svg()}
            shown.append({**named, "data": data, "arrays": arrays, **picture})
        for index, source in computed.items():
            spec = {name: shown[source]["arrays"][name] for name in ("queries", "keys")}
            shape = list(self.views[index].arrays["attention"].shape)
            shown[index]["arrays"]["attention"] = {"encoding": "softmax", "shape": shape, **spec}
        content = _script_json({"title": self.title, "views": shown, "colours": _COLOURS})
        script, style = _script(), page_file("page.css")
        policy = (
            f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; img-src data:; "
            "base-uri 'none'; form-action 'none'"
        )
        parts = "\n".join(f'<script type="text/plain" id="b{i}">{blob}</script>' for i, blob in enumerate(blobs))
        return (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            '<meta name="color-scheme" content="light dark">\n<link rel="icon" href="data:,">\n'
            f"<title>{_escaped(self.title)}</title>\n<style>{style}</style>\n</head>\n<body>\n"
            f'<div id="app"></div>\n<noscript>{self._fallback()}</noscript>\n'
            f'<script type="application/json" id="content">{content}</script>\n{parts}\n<script>{script}</script>\n'
            "</body>\n</html>\n"
        )

    def _computed(self) -> dict[int, int]:
        """Return the views whose attention the page computes, with the view that has the queries and keys."""
        sources = [
            (index, view)
            for index, view in enumerate(self.views)
            if view.kind == "neurons"
            and "bias" not in view.arrays
            and view.data["layers"] == list(range(len(view.arrays["queries"])))
        ]
        found = {}
        for index, view in enumerate(self.views):
            if view.kind == "attention":
                for source, other in sources:
                    if are_softmax_of(view.arrays["attention"], other.arrays["queries"], other.arrays["keys"]):
                        found[index] = source
                        break
        return found

    def to_json(self) -> str:
        """Return the page as a JSON object with ``title`` and ``views``.

        Returns
        -------
        str
            The JSON text.

        Examples
        --------
        >>> import numpy as np
        >>> from wordpiece_bert import inspect
        >>> page = inspect.page(inspect.similarity(np.eye(2), ["a", "b"]), title="Two vectors")
        >>> import json
        >>> json.loads(page.to_json())["title"]
        'Two vectors'
        """
        views = ",".join(view.to_json() for view in self.views)
        return f'{{"title": {_readable_json(self.title)}, "views": [{views}]}}'

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page to a file, atomically, and return its path.

        Parameters
        ----------
        path : str or PathLike
            A name that ends in ``.html`` or ``.json``. Pictures are written view by view, by `View.save`.

        Returns
        -------
        Path
            The path of the file.

        Raises
        ------
        InputError
            The name ends otherwise.
        OSError
            The file cannot be written.

        Examples
        --------
        >>> import numpy as np
        >>> from wordpiece_bert import inspect
        >>> page = inspect.page(inspect.similarity(np.eye(2), ["a", "b"]), title="Two vectors")
        >>> page.save("page.html").name
        'page.html'
        """
        path = Path(path)
        suffix = _suffix(path, (".html", ".json"))
        return write_text(path, self.to_html() if suffix == ".html" else self.to_json())

    def frame(self, height: int = 720) -> Frame:
        """Return the page for a notebook that runs scripts: a sandboxed frame, `height` pixels high.

        Parameters
        ----------
        height : int, default 720
            The height in pixels.

        Returns
        -------
        Frame
            What the notebook shows.
        """
        return Frame(self.to_html(), height)

    def _repr_html_(self) -> str:
        return "".join(view._repr_html_() for view in self.views)

    def __repr__(self) -> str:
        return f"Page({self.title!r}, {[view.kind for view in self.views]})"

    def _fallback(self) -> str:
        """Return what a browser without scripts shows: the pictures, if they are small."""
        pictures = [view.to_svg() for view in self.views]
        shown = "".join(pictures) if sum(map(len, pictures)) <= LARGEST_FALLBACK else ""
        return f"<h1>{_escaped(self.title)}</h1><p>This page is interactive where scripts are allowed.</p>{shown}"


def page(*views: View, title: str = "Looking inside") -> Page:
    """Return a page with these views, one tab for each.

    Parameters
    ----------
    *views : View
        The views, in the order of the tabs.
    title : str, default "Looking inside"
        The title of the page.

    Returns
    -------
    Page
        The page.

    Examples
    --------
    >>> import numpy as np
    >>> from wordpiece_bert import inspect
    >>> page = inspect.page(inspect.similarity(np.eye(2), ["a", "b"]), title="Two vectors")
    >>> [view.kind for view in page.views]
    ['similarity']
    """
    return Page(views, title)


def _suffix(path: Path, allowed: tuple[str, ...]) -> str:
    suffix = path.suffix.lower()
    if suffix not in allowed:
        raise InputError(f"{path}: the name must end in one of {', '.join(allowed)}")
    return suffix


def page_file(name: str) -> str:
    """Return a script or the style sheet of the page."""
    return resources.files("wordpiece_bert.inspect").joinpath("page", name).read_text(encoding="utf-8")


def _script() -> str:
    kinds = dict.fromkeys(kind.script for kind in KINDS.values() if kind.script)  # some have one in common
    parts = [*map(page_file, FIRST_SCRIPTS), *kinds, page_file(LAST_SCRIPT)]
    return '"use strict";\n(() => {\n' + "\n".join(parts) + "\n})();\n"


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")


def _json(content: object, *, ascii_only: bool = True, separators: tuple[str, str] = (",", ":")) -> str:
    """Return JSON; every lone surrogate of a text, which UTF-8 does not have, is escaped as ASCII escapes it.

    Raises
    ------
    InputError
        A value is none that JSON has.
    """
    try:
        text = json.dumps(content, ensure_ascii=ascii_only, allow_nan=False, separators=separators)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"the data of a view must be values of JSON, finite numbers among them: {error}") from error
    return SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _readable_json(content: object) -> str:
    """Return JSON for a file: texts as they are, and a space after each comma and colon."""
    return _json(content, ascii_only=False, separators=(", ", ": "))


def _escaped(text: str) -> str:
    """Return a text as HTML; a lone surrogate, which no browser shows, as U+FFFD."""
    return html.escape(SURROGATE.sub("\ufffd", text))


def _script_json(content: object) -> str:
    """Return JSON that no text can end early: every character that HTML gives a meaning is escaped."""
    return _json(content).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _card(svg: str) -> str:
    """Return a picture on a white card that is never wider than the notebook."""
    return f'<div style="background:#fff;max-width:100%;overflow-x:auto;border-radius:8px">{svg}</div>'
