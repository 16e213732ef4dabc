"""Sentence vectors for BERTopic. Needs bertopic.

Stability: provisional.
"""

from __future__ import annotations

from typing import Any

from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert.integrations.embedder import TextEmbedder
from wordpiece_bert.integrations.named_models import import_package

BaseEmbedder: Any = import_package("bertopic.backend", "bertopic").BaseEmbedder

__all__ = ["WordPieceEmbedder"]


@completed_by(TextEmbedder)
class WordPieceEmbedder(TextEmbedder, BaseEmbedder):  # type: ignore[misc]
    """The model of BERTopic: ``BERTopic(embedding_model=WordPieceEmbedder("minilm"))``.

    Without it, BERTopic does not know an encoder of this package and silently loads another model.
    """
