"""BERT's names of weights -> a relative's."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["renamed"]


def renamed(name: str, names: Mapping[str, str]) -> str:
    """Rename the layers' place, if it is among the names, and then the first other part that is found.

    >>> renamed("encoder.layer.0.output.dense.bias", {"encoder.layer.": "layers.", ".output.dense.": ".out."})
    'layers.0.out.bias'
    """
    place = "encoder.layer."
    for part, other in names.items():
        if part != place and part in name:
            name = name.replace(part, other, 1)
            break
    return name.replace(place, names.get(place, place), 1)
