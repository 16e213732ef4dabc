"""Check the built documentation: it is complete, its links lead somewhere, and it needs nothing from the network.

- Every link to a page and to a place in a page leads somewhere.
- No page loads a script, a font, a style or a picture from another host.
- Code has at most 88 columns, and a paragraph at most 120 words.
- No list of pages at the side is empty.
- The index of the search has a word that the documentation is about.
- Every public name that the reference lists has a page, and every member of a class a place in it.

Usage: ``check_site.py FOLDER``, the folder that `make docs` builds.
"""

from __future__ import annotations

import json
import re
import sys
import zlib
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent
#: Every public name and its members; a test compares it with the package.
LIST = ROOT / "tests" / "data" / "public_names.txt"
#: Elements whose address a browser fetches without being asked.
FETCHED = {"audio", "embed", "iframe", "img", "input", "link", "object", "script", "source", "video"}
#: Relations of a link element that name another page and load nothing.
NAMED = {"author", "canonical", "index", "next", "prev", "search"}
#: Places of an inspection page, whose addresses say what is chosen in it.
INSPECTION_PAGE = {"app", "content"}
#: The most columns of code, and the most words of a paragraph.
COLUMNS, WORDS = 88, 120
#: The search must find this word; the index has its stem.
KNOWN_WORD = "tokenize"


class Page(HTMLParser):
    """The places of a page, its addresses, its code and its paragraphs."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.code: list[str] = []
        self.paragraphs: list[str] = []
        #: What the text belongs to that is read now.
        self._open: list[str] | None = None
        self.places: set[str] = set()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect what an element has."""
        found = {name: value or "" for name, value in attrs}
        if tag in ("pre", "p"):
            self._open = self.code if tag == "pre" else self.paragraphs
            self._open.append("")
        self.places |= {found[name] for name in ("id", "name") if name in found}
        address = found.get("href") or found.get("src") or found.get("data") or ""
        if tag in FETCHED and not (tag == "link" and found.get("rel") in NAMED):
            self.fetched += [address] if address else []
        elif tag == "a" and address:
            self.links.append(address)

    def handle_data(self, data: str) -> None:
        """Collect text."""
        if self._open is not None:
            self._open[-1] += data

    def handle_endtag(self, tag: str) -> None:
        """End code or a paragraph."""
        if tag in ("pre", "p"):
            self._open = None


@cache
def read(path: Path) -> Page:
    """Read a page once."""
    return Page(path.read_text(encoding="utf-8"))


def dead_links(path: Path) -> Iterator[str]:
    """Yield the links of a page within the site that lead nowhere."""
    page = read(path)
    for address in [*page.links, *page.fetched]:
        parts = urlsplit(address)
        if parts.scheme or parts.netloc:
            continue
        target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
        if not target.is_file():
            yield f"{path}: {address}: there is no such file"
        elif parts.fragment and target.suffix == ".html":
            places = read(target).places
            # Of an inspection page the address has a selection, which tests/test_gallery.py opens.
            if not places >= INSPECTION_PAGE and unquote(parts.fragment) not in places:
                yield f"{path}: {address}: the page has no such place"


def unreadable(path: Path) -> Iterator[str]:
    """Yield code that is too wide, and paragraphs that are too long."""
    page = read(path)
    for line in "\n".join(page.code).splitlines():
        if len(line) > COLUMNS:
            yield f"{path}: code of {len(line)} columns, more than {COLUMNS}: {line.strip()[:60]}"
    for paragraph in page.paragraphs:
        if (words := len(paragraph.split())) > WORDS:
            yield f"{path}: a paragraph of {words} words, more than {WORDS}: {paragraph[:60]}"


def empty_lists(path: Path) -> Iterator[str]:
    """Yield a complaint if there is a list of pages at the side, and nothing in it."""
    lists = re.findall(r'aria-label="Section Navigation">(.*?)</nav>', path.read_text(encoding="utf-8"), re.DOTALL)
    yield from (f"{path}: the list of pages at the side is empty" for one in lists if "<a " not in one)


def requests(path: Path) -> Iterator[str]:
    """Yield what a page loads from other hosts."""
    for address in read(path).fetched:
        if urlsplit(address).netloc:
            yield f"{path}: {address}: loaded from another host"


def requests_of_styles(folder: Path) -> Iterator[str]:
    """Yield what styles load from other hosts."""
    for path in folder.rglob("*.css"):
        for address in re.findall(
            r"(?:url\(|@import)\s*[\"']?((?:https?:)?//[^\"')\s]+)", path.read_text(encoding="utf-8")
        ):
            yield f"{path}: {address}: loaded from another host"


def missing_in_search(folder: Path) -> Iterator[str]:
    """Yield a complaint if the index of the search does not have the known word."""
    text = (folder / "searchindex.js").read_text(encoding="utf-8")
    index = json.loads(text[text.index("(") + 1 : text.rindex(")")])
    if not any(KNOWN_WORD.startswith(term) and len(term) > 4 for term in index["terms"]):
        yield f"the index of the search has no {KNOWN_WORD!r}"


def listed_names() -> set[str]:
    """Return the names for which the reference has a page of its own."""
    found = set()
    for page in (ROOT / "docs" / "reference").glob("*.rst"):
        _, *parts = re.split(r"^\.\. currentmodule:: ([\w.]+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
        for module, text in zip(parts[::2], parts[1::2], strict=True):
            names = re.findall(r"^(?:   |\.\. py:data:: )(\w+)$", text, re.MULTILINE)
            found |= {f"{module}.{name}" for name in names}
    return found


def missing_names(folder: Path) -> Iterator[str]:
    """Yield the public names, and members of public classes, that no page describes."""
    content = (folder / "objects.inv").read_bytes().split(b"\n", 4)[4]
    described = {line.split(" ", 1)[0] for line in zlib.decompress(content).decode().splitlines()}
    expected = listed_names()
    for line in LIST.read_text(encoding="utf-8").splitlines():
        name = re.match(r"(?:class )?([\w.]+)", line)
        if name is not None and name[1].rpartition(".")[0] in expected:
            expected.add(name[1])
    yield from (f"{name} has no page" for name in sorted(expected - described))


#: What every page is checked for.
CHECKS = (dead_links, requests, unreadable, empty_lists)


def main(arguments: list[str]) -> int:
    """Print the complaints."""
    folder = Path(arguments[0]).resolve()
    pages = sorted(path for path in folder.rglob("*.html") if "_static" not in path.parts)
    complaints = [one for path in pages for check in CHECKS for one in check(path)]
    complaints += [*requests_of_styles(folder), *missing_in_search(folder), *missing_names(folder)]
    print(*complaints, sep="\n", end="\n" if complaints else "")
    print(f"{len(pages)} pages, {len(complaints)} complaints")
    return bool(complaints)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
