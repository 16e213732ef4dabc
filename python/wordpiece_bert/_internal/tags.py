"""Labels of tokens: which begins an entity, and of which class."""

from __future__ import annotations

#: The label outside of entities.
OUTSIDE = "O"


def tag_of(label: str) -> tuple[bool, str]:
    """Return whether a label begins an entity, and the class, which is empty outside of entities.

    The class is what follows B- or I-. Another label is a class, and counts as I-: "X-RAY" and "GAMMA-RAY" are two.
    """
    if label.startswith(("B-", "I-")):
        return label[0] == "B", label[2:]
    return False, label if label != OUTSIDE else ""
