"""The HTML of an inspection page: packed views, the scripts that show them, and the policy that allows nothing else."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any

from wordpiece_bert.errors import InputError
from wordpiece_bert.inspect.colours import CATEGORIES, HABIT_COLOURS, MARKS, PALETTE
from wordpiece_bert.inspect.kinds import KINDS

if TYPE_CHECKING:
    from collections.abc import Collection

#: The scripts of the page before and after the scripts of the kinds of views. Each is readable by itself.
FIRST_SCRIPTS = (
    *("core.js", "selection.js", "keyboard.js", "colours.js", "arrays.js", "widgets.js"),
    *("svg_context.js", "svg.js", "take.js"),
)
LAST_SCRIPT = "main.js"
#: Characters of Python's texts that UTF-8 does not have.
SURROGATE = re.compile("[\ud800-\udfff]")
#: A comment from the beginning of a line to the end of one.
COMMENT = re.compile(r"^[ ]*/\*.*?\*/$\n", re.MULTILINE | re.DOTALL)
_COLOURS = {"maps": PALETTE, "categories": CATEGORIES, "habits": HABIT_COLOURS, "marks": MARKS}


@dataclass
class PackedPage:
    """What a page shows, without the scripts and the style sheet that show it.

    Attributes
    ----------
    title : str
        The title of the page.
    views : list of dict
        The views: values that JSON has, which refer to `parts` by number.
    parts : list of str
        Compressed arrays and texts, in base 85.
    texts : list of str
        The texts that the views are about, to choose from: their beginnings. The views have their numbers.
    """

    title: str
    views: list[dict[str, Any]]
    parts: list[str]
    texts: list[str]

    def to_html(self, pictures: str = "") -> str:
        """Return the page: one file that needs no network, and whose content security policy allows none.

        Parameters
        ----------
        pictures : str, default ""
            What a browser without scripts shows, as HTML.

        Returns
        -------
        str
            The HTML.
        """
        content = _script_json({"title": self.title, "views": self.views, "texts": self.texts, "colours": _COLOURS})
        fallback = f"<h1>{escaped(self.title)}</h1><p>This page is interactive where scripts are allowed.</p>{pictures}"
        script, style = _spare(page_script({view["kind"] for view in self.views})), _spare(page_file("page.css"))
        policy = (
            f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; img-src data:; "
            "base-uri 'none'; form-action 'none'"
        )
        parts = "\n".join(f'<script type="text/plain" id="b{i}">{blob}</script>' for i, blob in enumerate(self.parts))
        return (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            '<meta name="color-scheme" content="light dark">\n<link rel="icon" href="data:,">\n'
            f"<title>{escaped(self.title)}</title>\n<style>{style}</style>\n</head>\n<body>\n"
            f'<div id="app"></div>\n<noscript>{fallback}</noscript>\n'
            f'<script type="application/json" id="content">{content}</script>\n{parts}\n<script>{script}</script>\n'
            "</body>\n</html>\n"
        )


def page_file(name: str) -> str:
    """Return a script or the style sheet of the page."""
    return resources.files("wordpiece_bert.inspect").joinpath("page", name).read_text(encoding="utf-8")


def page_script(shown: Collection[str] | None = None) -> str:
    """Return the script of a page: the scripts of the kinds of views that it shows, or of all, in one function."""
    wanted = (kind for name, kind in KINDS.items() if shown is None or name in shown)
    kinds = dict.fromkeys(kind.script for kind in wanted if kind.script)  # some have one in common
    parts = [*map(page_file, FIRST_SCRIPTS), *kinds, page_file(LAST_SCRIPT)]
    return '"use strict";\n(() => {\n' + "\n".join(parts) + "\n})();\n"


def _spare(text: str) -> str:
    """Return a script or a style sheet without the comments that have lines of their own, and without indentation."""
    lines = (line.strip() for line in COMMENT.sub("", text).split("\n"))
    return "\n".join(line for line in lines if line and not line.startswith("//"))


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")


def json_text(content: object, *, ascii_only: bool = True, separators: tuple[str, str] = (",", ":")) -> str:
    """Return JSON; every lone surrogate of a text, which UTF-8 does not have, is escaped as ASCII escapes it.

    Raises
    ------
    InputError
        JSON has no form for a value.
    """
    try:
        text = json.dumps(content, ensure_ascii=ascii_only, allow_nan=False, separators=separators)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"the data of a view must be values of JSON, finite numbers among them: {error}") from error
    return SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def readable_json(content: object) -> str:
    """Return JSON for a file: texts as they are, and a space after each comma and colon."""
    return json_text(content, ascii_only=False, separators=(", ", ": "))


def escaped(text: str) -> str:
    """Return a text as HTML; a lone surrogate, which no browser shows, as U+FFFD."""
    return html.escape(SURROGATE.sub("\ufffd", text))


def _script_json(content: object) -> str:
    """Return JSON that no text can end early: every character that HTML gives a meaning is escaped."""
    return json_text(content).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
