"""The texts and vocabularies: from a folder of corpora, or by default a few of the project's own."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]

#: Corpora by the names in definitions, with one text per line; "sentence" is only SENTENCE.
CORPORA = {
    "english": "wiki_en.txt",
    "many": "multilingual.txt",
    "tweets": "tweets.txt",
    "chinese": "chinese.txt",
    "code": "code_logs.txt",
    "sentence": None,
}

#: Vocabularies by name: the file in the folder `vocab`, and whether its texts are lower-cased.
VOCABULARIES = {
    "uncased": ("bert-base-uncased.vocab.txt", True),
    "chinese": ("bert-base-chinese.vocab.txt", True),
    "multilingual-uncased": ("bert-base-multilingual-uncased.vocab.txt", True),
    "multilingual-cased": ("bert-base-multilingual-cased.vocab.txt", False),
}

SENTENCE = "How do I change the language of the keyboard?"

#: Without corpora, the project's own texts are repeated up to this size.
OWN_BYTES = 1_000_000
#: The quick mode reads this much of a corpus.
QUICK_BYTES = 1_000_000

#: A text, or a pair.
Item = str | tuple[str, str]


class Source:
    """The source of texts and vocabularies.

    Parameters
    ----------
    folder : Path or None
        A folder with the files of `CORPORA` and, in ``vocab``, of `VOCABULARIES`; None for the project's own texts.
    limit : int, optional
        Read at most this many bytes of a corpus.
    """

    def __init__(self, folder: Path | None, limit: int | None = None) -> None:
        self.folder = folder
        self.limit = limit

    def describe(self) -> str:
        """Return a description of the texts for reports."""
        limit = "" if self.limit is None else f", at most {self.limit:,} bytes of each"
        if self.folder is None:
            return f"the project's own small texts, repeated (no --corpora): caches hold every word{limit}"
        return f"the corpora given{limit}"

    def lines(self, corpus: str) -> list[str]:
        """Return all texts of a corpus, up to the limit."""
        if corpus == "sentence":
            return [SENTENCE]
        if self.folder is None:
            texts = itertools.cycle(_own_texts())
            return list(_first_bytes(texts, min(OWN_BYTES, self.limit or OWN_BYTES)))
        name = CORPORA[corpus]
        assert name is not None, "only the sentence has no file"
        # Only line feeds end a line; str.splitlines also splits at characters that occur in texts.
        texts = [line for line in self._read(name).split("\n") if line]
        return texts if self.limit is None else list(_first_bytes(texts, self.limit))

    def texts(self, definition: dict[str, Any]) -> list[Item]:
        """Return the texts of a definition."""
        lines = self.lines(definition["corpus"])[: definition.get("first")]
        if "total_bytes" in definition:
            lines = list(_first_bytes(itertools.cycle(lines), definition["total_bytes"]))
        if "document_bytes" in definition:
            lines = documents(lines, definition["document_bytes"])
        if definition.get("pairs"):
            return list(zip(lines[::2], lines[1::2], strict=False))
        return list(lines)

    def vocabulary(self, name: str) -> tuple[list[str], bool]:
        """Return the tokens of a vocabulary in the order of their ids, and whether texts are lower-cased."""
        file, lowercase = VOCABULARIES[name]
        if self.folder is None:
            return _own_vocabulary(), lowercase
        tokens = self._read(f"vocab/{file}").split("\n")
        return tokens[:-1] if tokens[-1] == "" else tokens, lowercase

    def _read(self, name: str) -> str:
        """Return the text of a file of the folder, or end the program with a message that names the missing file."""
        assert self.folder is not None, "the project's own texts have no folder"
        path = self.folder / name
        try:
            return path.read_bytes().decode("utf-8")
        except FileNotFoundError:
            raise SystemExit(
                f"{path} does not exist: docs/benchmarks.md lists the files of the folder that --corpora names"
            ) from None


def documents(texts: Iterable[str], size: int) -> list[str]:
    """Join texts into documents of about `size` bytes each."""
    found: list[str] = []
    part: list[str] = []
    length = 0
    for text in texts:
        part.append(text)
        length += len(text.encode())
        if length >= size:
            found.append(" ".join(part))
            part, length = [], 0
    if part:
        found.append(" ".join(part))
    return found


def write_texts(texts: list[Item], path: Path) -> int:
    """Write texts for the engines, and return their size in UTF-8 bytes."""
    path.write_text(json.dumps(texts, ensure_ascii=False), encoding="utf-8")
    return size_of(texts)


def size_of(texts: Iterable[Item]) -> int:
    """Return the size of texts in UTF-8 bytes."""
    return sum(len(text.encode()) if isinstance(text, str) else len("".join(text).encode()) for text in texts)


def _first_bytes(texts: Iterable[str], limit: int) -> Iterable[str]:
    """Yield texts until they have `limit` bytes together."""
    total = 0
    for text in texts:
        yield text
        total += len(text.encode())
        if total >= limit:
            return


def _own_texts() -> list[str]:
    files = (ROOT / "examples" / "texts" / "sentences.txt", ROOT / "tests" / "data" / "texts" / "mixed.txt")
    return [line for file in files for line in file.read_bytes().decode("utf-8").split("\n") if line]


def _own_vocabulary() -> list[str]:
    """Return half the words of the project's own texts, so that the others have pieces, and all characters in both forms."""
    texts = _own_texts()
    words = sorted({word.lower() for text in texts for word in text.split() if len(word) > 1})[::2]
    characters = sorted({character.lower() for text in texts for character in text if not character.isspace()})
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    made = [*special, *characters, *(f"##{character}" for character in characters), *words]
    return list(dict.fromkeys(made))
