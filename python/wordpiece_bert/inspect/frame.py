"""A page in a frame of a notebook."""

from __future__ import annotations

import html

from wordpiece_bert.inspect.packed_page import page_file

#: The height of a frame until its page has said how high it is, and where no script may hear it, in pixels.
FIRST_HEIGHT = 640


class Frame:
    """A page for a notebook, in a frame that may run scripts, save files, copy and print, and nothing else.

    A script beside the frame gives it the height of its content and tells it whether the notebook is dark.

    Parameters
    ----------
    content : str
        The HTML of the page.
    height : int or None
        The height in pixels; None for the content's.
    """

    def __init__(self, content: str, height: int | None) -> None:
        self._content = content
        self._height = height

    def _repr_html_(self) -> str:
        source = html.escape(self._content, quote=True)
        fits, height = ("fits", FIRST_HEIGHT) if self._height is None else ("keeps", int(self._height))
        style = f"width:100%;height:{height}px;border:0"
        allowed = 'sandbox="allow-scripts allow-downloads allow-modals" allow="clipboard-write"'
        look = f'style="{style}" data-wordpiece-bert="{fits}" title="Inspection"'
        return f'<iframe {allowed} {look} srcdoc="{source}"></iframe><script>{page_file("frame.js")}</script>'
