"""The versions of what is computed: integers that records of stored ids and vectors have, and that are compared.

A change of any bit of the ids of a tokenizer, or of vectors in a dtype, raises the integer here,
adds a row to docs/explanation/versions-of-vectors.md, and adds digests to tests/data/numerics.json.
"""

from __future__ import annotations

#: The version of the ids of texts.
IDS = 1
#: The version of vectors, by the dtype of the products.
VECTORS = {"float32": 2, "bfloat16": 2, "int8": 3}


def versions(dtype: str | None = None) -> dict[str, str]:
    """Return the versions as digests of a model's contents are stored: of the ids, and of vectors of a dtype."""
    return {"ids": str(IDS)} | ({} if dtype is None else {"numerics": str(VECTORS[dtype])})


def versioned(definition: str) -> str:
    """Return what the fingerprint of a tokenizer is made of: its definition; from the second version on, that, too."""
    return definition if IDS == 1 else f"{definition}\nids {IDS}"
