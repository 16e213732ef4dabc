"""Sentence vectors for KeyBERT. Needs keybert."""

from __future__ import annotations

from typing import Any

from wordpiece_bert.integrations.embedder import TextEmbedder
from wordpiece_bert.integrations.loading import import_package

BaseEmbedder: Any = import_package("keybert.backend", "keybert").BaseEmbedder

__all__ = ["WordPieceEmbedder"]


class WordPieceEmbedder(TextEmbedder, BaseEmbedder):  # type: ignore[misc]
    """The model of KeyBERT: ``KeyBERT(model=WordPieceEmbedder("minilm"))``.

    Without it, KeyBERT does not know an encoder of this package and silently loads another model.

    Parameters
    ----------
    model : SentenceEncoder, str or os.PathLike, optional
        The encoder, or its name or folder; by default ``"minilm"``.
    model_name : str or os.PathLike, optional
        Another name of `model`.
    """
