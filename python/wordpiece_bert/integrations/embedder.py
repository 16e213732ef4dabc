"""What the classes for BERTopic and KeyBERT share: both libraries take an object with the method `embed`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert._internal.texts import one_or_many
from wordpiece_bert.integrations.named_models import encoder_of, given_model
from wordpiece_bert.integrations.options import GIVEN, NAMED

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    import numpy as np
    import numpy.typing as npt

    from wordpiece_bert.sentence.dense.sentence_encoder import SentenceEncoder


@completed_by(GIVEN, NAMED)
class TextEmbedder:
    """Sentence vectors by the method `embed`; a class for a library also derives from its own base."""

    def __init__(
        self,
        model: SentenceEncoder | str | os.PathLike[str] | None = None,
        *,
        model_name: str | os.PathLike[str] | None = None,
        dtype: str | None = None,
        encoder_options: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        given = given_model(model, model_name)
        self.embedding_model = encoder_of(given, dtype=dtype, encoder_options=encoder_options)

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
