"""Sentence vectors for KeyBERT. Needs keybert."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wordpiece_bert.integrations.loading import encoder_of, import_package

BaseEmbedder: Any = import_package("keybert.backend", "keybert").BaseEmbedder

if TYPE_CHECKING:
    import os

    import numpy as np
    import numpy.typing as npt

    from wordpiece_bert.sentence.encoder import SentenceEncoder

__all__ = ["WordPieceEmbedder"]


class WordPieceEmbedder(BaseEmbedder):  # type: ignore[misc]
    """The model of KeyBERT: ``KeyBERT(model=WordPieceEmbedder("minilm"))``.

    Without it, KeyBERT does not know an encoder of this package and silently loads another model.

    Parameters
    ----------
    model : SentenceEncoder, str or os.PathLike, default "minilm"
        The encoder, or its name or folder.
    """

    def __init__(self, model: SentenceEncoder | str | os.PathLike[str] = "minilm") -> None:
        super().__init__()
        self.embedding_model = encoder_of(model)

    def embed(self, documents: Any, verbose: bool = False) -> npt.NDArray[np.float32]:  # noqa: ANN401, FBT001, FBT002
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
        return self.embedding_model.encode(list(documents), show_progress_bar=verbose)
