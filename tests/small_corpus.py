"""A small made-up language with a grammar that a small model learns in seconds."""

from __future__ import annotations

import random
from pathlib import Path

# Each topic has its own nouns and places; verbs and colours are shared.
_TOPICS = {
    "garden": (["rose", "tulip", "apple tree", "hedge"], ["in the shade", "beside the pond", "under the old wall"]),
    "harbour": (["boat", "sail", "anchor", "net"], ["at low tide", "off the coast", "beside the quay"]),
}
_VERBS = ["stands", "waits", "rests", "belongs"]
_COLOURS = ["red", "white", "green", "small", "old"]


def sentence(topic: str, rng: random.Random) -> str:
    """A sentence about a topic."""
    nouns, places = _TOPICS[topic]
    return f"The {rng.choice(_COLOURS)} {rng.choice(nouns)} {rng.choice(_VERBS)} {rng.choice(places)}."


def write_corpus(path: Path, documents: int, seed: int = 0) -> Path:
    """Write documents of several sentences about one topic each, with blank lines between them."""
    rng = random.Random(seed)
    parts = []
    for _ in range(documents):
        topic = rng.choice(list(_TOPICS))
        parts.append("\n".join(sentence(topic, rng) for _ in range(rng.randrange(3, 9))))
    path.write_text("\n\n".join(parts) + "\n")
    return path
