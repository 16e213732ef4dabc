"""Sentence vectors for KeyBERT. Needs keybert.

Stability: provisional.
"""

from __future__ import annotations

from typing import Any

from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert.integrations.embedder import TextEmbedder
from wordpiece_bert.integrations.named_models import import_package

BaseEmbedder: Any = import_package("keybert.backend", "keybert").BaseEmbedder

__all__ = ["WordPieceEmbedder"]


@completed_by(TextEmbedder)
class WordPieceEmbedder(TextEmbedder, BaseEmbedder):  # type: ignore[misc]
    """The model of KeyBERT: ``KeyBERT(model=WordPieceEmbedder("minilm"))``.

    Without it, KeyBERT does not know an encoder of this package and silently loads another model.
    """
