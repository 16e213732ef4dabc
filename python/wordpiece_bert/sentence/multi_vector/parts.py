"""What token vectors of texts give to other modules of this package."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from wordpiece_bert._internal.arrays import first_non_finite
from wordpiece_bert._internal.mapped_files import require_whole
from wordpiece_bert.errors import InputError

if TYPE_CHECKING:
    from wordpiece_bert.sentence.multi_vector.multi_vectors import MultiVectors


def require_finite(name: str, texts: MultiVectors) -> None:
    """Refuse vectors with NaN or infinity, which a maximum passes over; vectors that were read before are known.

    Parameters
    ----------
    name : str
        The name of the argument, for messages.
    texts : MultiVectors
        The vectors, which never change: they are read once, in a sixth of the time that a query takes.

    Raises
    ------
    InputError
        A number is NaN or infinite, or the file that the vectors are mapped from was shortened.
    """
    if texts._is_finite:
        return
    require_whole(texts.vectors)
    bad = first_non_finite(texts.vectors)
    if bad is not None:
        text = int(np.searchsorted(texts.offsets, bad[0], side="right")) - 1
        raise InputError(f"{name}[{text}] is not finite: a vector has {texts.vectors[bad]} at index {bad[1]}")
    object.__setattr__(texts, "_is_finite", True)
