"""`View`, one thing to look at, and `Page`, several of them in one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from wordpiece_bert._internal.atomic_file import write_bytes, write_text
from wordpiece_bert._internal.checks import checked_strings
from wordpiece_bert._internal.drawing import SOFT, text_width
from wordpiece_bert.errors import InputError
from wordpiece_bert.inspect.frame import Frame
from wordpiece_bert.inspect.kinds import kind_named
from wordpiece_bert.inspect.pack import Encoding, Packable, Packed, pack
from wordpiece_bert.inspect.packed_page import PackedPage, readable_json
from wordpiece_bert.inspect.page_data import packed_page
from wordpiece_bert.inspect.pictures import EDGE, short
from wordpiece_bert.inspect.scores import SHORTEST, pack_cosines, pack_factors, pack_scores, pack_table

if TYPE_CHECKING:
    import os
    from collections.abc import Collection, Iterable, Mapping, Sequence

    import numpy as np
    import numpy.typing as npt

    from wordpiece_bert._internal.drawing import Drawing

SUFFIXES = (".html", ".json", ".png", ".svg")
#: A page without scripts shows pictures instead, as many as have no more characters than this.
LARGEST_FALLBACK = 16_000


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
    factors : mapping of str to (ndarray, ndarray), optional
        Of arrays of attention weights, the queries and keys that they are the softmax of: a page stores the weights of
        long texts by these. Of the queries and keys themselves, both: a page keeps their products.

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
        factors: Mapping[str, tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]] | None = None,
    ) -> None:
        self.kind = kind
        self.title = title
        self.data = dict(data)
        self.arrays = dict(arrays or {})
        self._encodings = dict(encodings or {})
        self._factors = dict(factors or {})

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

        Examples
        --------
        >>> import numpy as np
        >>> from wordpiece_bert import inspect
        >>> view = inspect.similarity(np.eye(2), ["a", "b"])
        >>> list(view.packed())
        ['similarity']
        """
        left_out = {*checked_strings("without", without), *(n for n, e in self._encodings.items() if e == "computed")}
        return {name: self._packed(name, array) for name, array in self.arrays.items() if name not in left_out}

    def _packed(self, name: str, array: npt.NDArray[np.float32]) -> Packed:
        encoding = self._encodings.get(name, "single")
        packed = None
        if encoding == "cosines":
            packed = pack_cosines(array)
        elif encoding == "coded":
            packed = pack_factors(array, *self._factors[name]) if name in self._factors else pack_table(array)
        elif name in self._factors and encoding == "rows" and array.shape[-1] >= SHORTEST:
            packed = pack_scores(array, *self._factors[name])
        if packed is not None:
            return packed
        # What the forms that depend on the numbers do not keep closely enough.
        instead: dict[Encoding, Packable] = {"cosines": "unit", "coded": "columns"}
        return pack(array, instead.get(encoding, encoding))  # type: ignore[arg-type]

    def drawing(self) -> Drawing:
        """Return the picture of this view, which `save` writes as SVG or PNG.

        Returns
        -------
        Drawing
            The picture.

        Examples
        --------
        >>> import numpy as np
        >>> from wordpiece_bert import inspect
        >>> view = inspect.similarity(np.eye(2), ["a", "b"])
        >>> view.drawing().to_svg()[:4]
        '<svg'
        """
        drawing = kind_named(self.kind).draw(self.title, self.data, self.arrays)
        if subject := _subject([self]):
            start = EDGE + text_width(self.title, 18) + 24
            room = int((drawing.width - EDGE - start) / text_width("x", 12))
            if room > 8:
                drawing.text(start, 34, short(subject, room), size=12, fill=SOFT)
        return drawing

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
        return readable_json({"kind": self.kind, "title": self.title, "data": self.data, "arrays": arrays})

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
        subject = _subject([self])
        return Page([self], f"{self.title} · {subject}" if subject else self.title).to_html()

    def to_svg(self) -> str:
        """Return the picture as SVG.

        Up to 20,000 cells of matrices are rectangles, the smallest matrices first; larger ones are embedded as PNG.

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

    def frame(self, height: int | None = None) -> Frame:
        """Return the interactive page for a notebook that runs scripts: a sandboxed frame.

        Parameters
        ----------
        height : int, optional
            The height in pixels. By default the content's; 640 where the notebook lets no script measure it.

        Returns
        -------
        Frame
            What the notebook shows.

        Examples
        --------
        >>> import numpy as np
        >>> from wordpiece_bert import inspect
        >>> view = inspect.similarity(np.eye(2), ["a", "b"])
        >>> "<iframe" in view.frame(height=400)._repr_html_()  # a notebook shows it
        True
        """
        return Frame(self.to_html(), height)

    def _repr_html_(self) -> str:
        return _card(_compact(self))

    def __repr__(self) -> str:
        arrays = "".join(f", {name} {list(array.shape)}" for name, array in self.arrays.items())
        return f"View({self.kind!r}, {self.title!r}{arrays})"


class Page:
    """Several views in one HTML file, one tab for each.

    Parameters
    ----------
    views : iterable of View or of sequence of View
        At least one; a sequence is one tab, with a view for each of several texts.
    title : str, optional
        The title; `page` says what it is by default.

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
        The views, in the order of the tabs.
    title : str
        As above.
    """

    views: list[View]
    title: str

    def __init__(self, views: Iterable[View | Sequence[View]], title: str | None = None) -> None:
        tabs = [[one] if isinstance(one, View) else _of_several_texts(index, one) for index, one in enumerate(views)]
        self.views = [view for tab in tabs for view in tab]
        self.title = _subject(self.views) or "Looking inside" if title is None else title
        #: The number of the tab of each view.
        self._tabs = [number for number, tab in enumerate(tabs) for _ in tab]
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
        pictures = ""
        for view in self.views:
            picture = _compact(view)
            if len(pictures) + len(picture) <= LARGEST_FALLBACK:
                pictures += picture
        return self.packed().to_html(pictures)

    def packed(self) -> PackedPage:
        """Return what the page shows, without the scripts and the style sheet that show it.

        Returns
        -------
        PackedPage
            The views, as a page stores them.

        Examples
        --------
        >>> import numpy as np
        >>> from wordpiece_bert import inspect
        >>> packed = inspect.page(inspect.similarity(np.eye(2), ["a", "b"])).packed()
        >>> [view["kind"] for view in packed.views]
        ['similarity']
        """
        return packed_page(self.title, self.views, self._tabs)

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
        return f'{{"title": {readable_json(self.title)}, "views": [{views}]}}'

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

    def frame(self, height: int | None = None) -> Frame:
        """Return the page for a notebook that runs scripts: a sandboxed frame.

        Parameters
        ----------
        height : int, optional
            The height in pixels, as for `View.frame`.

        Returns
        -------
        Frame
            What the notebook shows.

        Examples
        --------
        >>> import numpy as np
        >>> from wordpiece_bert import inspect
        >>> page = inspect.page(inspect.similarity(np.eye(2), ["a", "b"]), title="Two vectors")
        >>> "<iframe" in page.frame(height=500)._repr_html_()  # a notebook shows it
        True
        """
        return Frame(self.to_html(), height)

    def _repr_html_(self) -> str:
        return "".join(view._repr_html_() for view in self.views)

    def __repr__(self) -> str:
        return f"Page({self.title!r}, {[view.kind for view in self.views]})"


def page(*views: View | Sequence[View], title: str | None = None) -> Page:
    """Return a page with these views, one tab for each.

    Parameters
    ----------
    *views : View or sequence of View
        The views, in the order of the tabs. A sequence is one tab, with views of one kind, each of another text; the
        page has a list of the texts, and a choice holds for all tabs.
    title : str, optional
        The title of the page; by default the text and the model of the views.

    Returns
    -------
    Page
        The page.

    Raises
    ------
    InputError
        There is no view, or the views of a sequence are of several kinds, or not each of another text.

    Examples
    --------
    >>> from wordpiece_bert import inspect, tasks
    >>> words = tasks.load("models/words")
    >>> traces = [
    ...     inspect.trace(words, text)
    ...     for text in ("the capital of france", "the capital of poland")
    ... ]
    >>> page = inspect.page(
    ...     [inspect.attention(one) for one in traces],
    ...     [inspect.neurons(one) for one in traces],
    ... )
    >>> len(page.views)
    4
    """
    return Page(views, title)


def _subject(views: Sequence[View]) -> str:
    """Return what views are about, as titles name it: the text, or how many, and the model; empty if not known."""
    texts = list(dict.fromkeys(text for view in views for text in view.data.get("about", [])))
    models = list(dict.fromkeys(name for view in views if (name := view.data.get("model"))))
    named = [" / ".join(texts[0].split("\n"))] if len(texts) == 1 else [f"{len(texts)} texts"] * bool(texts)
    return " · ".join([*(short(" ".join(text.split()), 60) for text in named), *models])


def _of_several_texts(index: int, views: object) -> list[View]:
    """Return the views of one tab.

    Raises
    ------
    InputError
        They are not views, or of several kinds, or not each of another text.
    """
    if not isinstance(views, (list, tuple)) or not views:
        raise InputError(f"views[{index}] must be a View or a list of them, not {type(views).__name__}: {views!r:.80}")
    listed: list[Any] = list(views)
    for number, view in enumerate(listed):
        if not isinstance(view, View):
            raise InputError(f"views[{index}][{number}] must be a View, not {type(view).__name__}")
    if kinds := sorted({view.kind for view in listed} - {listed[0].kind}):
        raise InputError(f"views[{index}] has views of the kinds {listed[0].kind} and {kinds[0]}: a tab has one kind")
    texts = [view.data.get("about", []) for view in listed]
    if len(listed) > 1 and any(len(one) != 1 for one in texts):
        place = next(number for number, one in enumerate(texts) if len(one) != 1)
        count = len(texts[place])
        raise InputError(f"views[{index}][{place}] is of {count} known texts, not of one: give it a tab of its own")
    named = [one[0] for one in texts if one]
    if repeated := next((text for text in named if named.count(text) > 1), None) if len(listed) > 1 else None:
        raise InputError(f"views[{index}] has two views of one text, {repeated!r:.80}: give them tabs of their own")
    return listed


def _suffix(path: Path, allowed: tuple[str, ...]) -> str:
    suffix = path.suffix.lower()
    if suffix not in allowed:
        raise InputError(f"{path}: the name must end in one of {', '.join(allowed)}")
    return suffix


def _compact(view: View) -> str:
    """Return the picture as SVG with its cells as PNG: notebooks and pages keep many pictures."""
    return view.drawing().to_svg(most_cells=0)


def _card(svg: str) -> str:
    """Return a picture on a white card that is never wider than the notebook."""
    return f'<div style="background:#fff;max-width:100%;overflow-x:auto;border-radius:8px">{svg}</div>'
