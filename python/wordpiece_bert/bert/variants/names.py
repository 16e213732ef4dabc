"""Translation of BERT's names of weights into a variant's names."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["renamed"]


def renamed(name: str, names: Mapping[str, str]) -> str:
    """Rename a weight: replace the first part of `names` that occurs in it, and the prefix of the layers.

    >>> from wordpiece_bert.bert.variants.names import renamed
    >>> renamed("encoder.layer.0.output.dense.bias", {"encoder.layer.": "layers.", ".output.dense.": ".out."})
    'layers.0.out.bias'
    """
    layers = "encoder.layer."
    for part, other in names.items():
        if part != layers and part in name:
            name = name.replace(part, other, 1)
            break
    return name.replace(layers, names.get(layers, layers), 1)
