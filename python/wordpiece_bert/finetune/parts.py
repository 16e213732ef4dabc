"""What classifiers give to other modules of this package."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from wordpiece_bert.finetune.frozen_classifier import FrozenClassifier


def frozen_scores(
    classifier: FrozenClassifier, texts: list[Any], batch_size: int
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """Return the scores of texts [n, labels], and which texts were truncated, [n]."""
    return classifier._scored(texts, batch_size)


def frozen_logits(
    classifier: FrozenClassifier, vectors: npt.NDArray[np.float32], seconds: npt.NDArray[np.float32] | None
) -> npt.NDArray[np.float64]:
    """Return the scores [n, labels] for the vectors of texts [n, d], and of the second texts of pairs."""
    return classifier._head_scores(vectors, seconds)
