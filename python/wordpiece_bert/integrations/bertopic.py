"""Sentence vectors for BERTopic. Needs bertopic."""

from __future__ import annotations

from typing import Any

from wordpiece_bert.integrations.embedder import TextEmbedder
from wordpiece_bert.integrations.loading import import_package

BaseEmbedder: Any = import_package("bertopic.backend", "bertopic").BaseEmbedder

__all__ = ["WordPieceEmbedder"]


class WordPieceEmbedder(TextEmbedder, BaseEmbedder):  # type: ignore[misc]
    """The model of BERTopic: ``BERTopic(embedding_model=WordPieceEmbedder("minilm"))``.

    Without it, BERTopic does not know an encoder of this package and silently loads another model.

    Parameters
    ----------
    model : SentenceEncoder, str or os.PathLike, optional
        The encoder, or its name or folder; by default ``"minilm"``.
    model_name : str or os.PathLike, optional
        Another name of `model`.
    """
