"""Bodies of requests that could cost a server much, for each of its paths: `serve` measures them, tests send them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from functools import lru_cache
from typing import Any

__all__ = ["HOSTILE", "MB", "PACKED", "REQUESTS", "filled", "hostile_body", "path_of"]

MB = 1 << 20

#: Requests by their path, and after a space which of several on that path; where the text or texts of a body stand, is
#: None. The models come from `examples/make_models.py`.
REQUESTS: dict[str, dict[str, Any]] = {
    "/v1/embeddings": {"input": None, "model": "sentences"},
    "/v1/embed": {"texts": None, "model": "sentences"},
    "/v2/embed": {"texts": None, "model": "sentences"},
    "/v1/rerank": {"query": "bread", "documents": None, "model": "ranker"},
    "/v2/rerank": {"query": "bread", "documents": None, "model": "ranker"},
    "/embed": {"inputs": None, "model": "sentences"},
    "/embed_all": {"inputs": None, "model": "sentences"},
    "/embed_all colbert": {"inputs": None, "model": "colbert"},
    "/embed_sparse": {"inputs": None, "model": "splade"},
    "/predict": {"inputs": None, "model": "reviews"},
    "/similarity": {"inputs": {"source_sentence": "bread", "sentences": None}, "model": "sentences"},
    "/similarity source": {"inputs": {"source_sentence": None, "sentences": ["bread"]}, "model": "sentences"},
    "/tokenize": {"inputs": None, "model": "sentences"},
    "/decode": {"ids": None, "model": "sentences"},
    "/rerank": {"query": "bread", "texts": None, "model": "ranker"},
    "/rerank documents": {"query": "bread", "documents": None, "model": "ranker"},
    "/rerank query": {"query": None, "texts": ["bread"], "model": "ranker"},
    "/score": {"text_1": "bread", "text_2": None, "model": "ranker"},
    "/score text_1": {"text_1": None, "text_2": ["a"] * 64, "model": "ranker"},
    "/score text_1 sentences": {"text_1": None, "text_2": ["a"] * 64, "model": "sentences"},
    "/score text_1 colbert": {"text_1": None, "text_2": ["a"] * 64, "model": "colbert"},
    "/classify": {"input": None, "model": "reviews"},
    "/pooling": {"input": None, "model": "sentences"},
    "/": {"inputs": None, "model": "sentences"},
    "/models/entities": {"inputs": None},
    "/models/words": {"inputs": None},
}


def path_of(request: str) -> str:
    """Return the path of a request."""
    return request.partition(" ")[0]


def hostile_body(request: str, kind: str) -> bytes:
    """Return the body of a kind for a request."""
    if kind == "names of the body":
        return _value(kind).encode()
    return json.dumps(REQUESTS[request]).replace("null", _value(kind), 1).encode()


def filled(request: str, value: Any) -> dict[str, Any]:
    """Return a request with a value in place of its texts."""
    found: dict[str, Any] = json.loads(json.dumps(REQUESTS[request]).replace("null", json.dumps(value), 1))
    return found


@lru_cache(maxsize=1)
def _value(kind: str) -> str:
    return HOSTILE[kind]()


def _of(size: int, item: str) -> str:
    """Repeat an item up to a size, with commas between."""
    return ",".join([item] * (size // (len(item.encode()) + 1)))


def _listed(item: str) -> Callable[[], str]:
    return lambda: f"[{_of(8 * MB - 999, item)}]"


def _written(text: str) -> Callable[[], str]:
    return lambda: f'"{text}"'


def _names() -> str:
    return "{" + ",".join(f'"{i:x}":0' for i in range(0x10000, 0x10000 + 790_000)) + "}"


#: The kinds of values: JSON of up to 8 MB.
HOSTILE: dict[str, Callable[[], str]] = {
    "lists": _listed("[]"),
    "objects": _listed("{}"),
    "small objects": _listed('{"":0}'),
    "strings": _listed('"ab"'),
    "empty strings": _listed('""'),
    "numbers": _listed("9"),
    "lists of numbers": lambda: f"[{_of(8 * MB - 999, f'[{_of(99_000, chr(57))}]')}]",
    "names": _names,
    "names of the body": _names,
    "deep lists": lambda: "[" * 30_000 + "]" * 30_000,
    "deep objects": lambda: '{"a":' * 20_000 + "0" + "}" * 20_000,
    "a number of many digits": lambda: "9" * (8 * MB - 999),
    "no number": lambda: f"[{_of(8 * MB - 999, 'NaN')}]",
    "brackets in a string": _written('\\"[' * (8 * MB // 3 - 999)),
    "words": _written("a " * (4 * MB - 999)),
    "a word": _written("a" * (8 * MB - 999)),
    "wide characters": _written("🤗" * (2 * MB - 999)),
    "escapes": _written("\\ud83e\\udd17" + "\\u4e2d" * (8 * MB // 6 - 999)),
    "surrogates": _written("\\ud83e" * (8 * MB // 6 - 999)),
    "as many texts as are allowed": lambda: f"[{_of(4 * 2048, chr(34) + 'a' + chr(34))}]",
    "as many pairs as are allowed": lambda: f"[{_of(10 * 2048, json.dumps(['a', 'a']))}]",
    "as many tokens as are allowed": lambda: f"[{_of(2048 * 122, json.dumps('a ' * 59))}]",
}


def _members(content: bytes) -> Callable[[], bytes]:
    """Repeat a member of gzip up to 8 MB."""
    member = gzip.compress(content, 9, mtime=0)
    return lambda: member * ((8 * MB - 999) // len(member))


#: The kinds of packed bodies: gzip of up to 8 MB, which is not JSON or not as long as it may be.
PACKED: dict[str, Callable[[], bytes]] = {
    "empty members": _members(b""),
    "members of a byte": _members(b" "),
    "members of many bytes": _members(b" " * 99),
    "a large member": lambda: gzip.compress(b" " * (64 * MB), 1),
    "no members": lambda: b"\x1f\x8b\x08" + bytes(8 * MB - 999),
}
