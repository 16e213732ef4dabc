"""What the classes for BERTopic and KeyBERT share: both libraries take an object with the method `embed`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert._internal.texts import one_or_many
from wordpiece_bert.integrations.loading import encoder_of, given_model
from wordpiece_bert.integrations.options import GIVEN

if TYPE_CHECKING:
    import os

    import numpy as np
    import numpy.typing as npt

    from wordpiece_bert.sentence.dense.base import DenseEncoder

__all__ = ["TextEmbedder"]


@completed_by(GIVEN)
class TextEmbedder:
    """Sentence vectors by the method `embed`; a class for a library also derives from its own base."""

    def __init__(
        self,
        model: DenseEncoder | str | os.PathLike[str] | None = None,
        *,
        model_name: str | os.PathLike[str] | None = None,
    ) -> None:
        super().__init__()
        self.embedding_model = encoder_of(given_model(model, model_name))

    def embed(self, documents: Any, verbose: bool = False) -> npt.NDArray[np.float32]:
        """Return the vectors of documents or words.

        Parameters
        ----------
        documents : list of str
            The texts.
        verbose : bool, default False
            Whether to show a progress bar.

        Returns
        -------
        ndarray
            float32 [n, d].
        """
        return self.embedding_model.encode(one_or_many(documents, name="documents")[1], show_progress_bar=verbose)
