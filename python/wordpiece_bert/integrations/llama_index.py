"""Sentence vectors for LlamaIndex. Needs llama-index-core."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any

from wordpiece_bert.integrations.loading import encoder_of, import_package
from wordpiece_bert.sentence.encoder import SentenceEncoder

BaseEmbedding: Any = import_package("llama_index.core.embeddings", "llama-index").BaseEmbedding

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["WordPieceEmbedding"]


class WordPieceEmbedding(BaseEmbedding):  # type: ignore[misc]
    """The embedding model of LlamaIndex: ``Settings.embed_model = WordPieceEmbedding("minilm")``.

    Parameters
    ----------
    model : SentenceEncoder, str or os.PathLike, default "minilm"
        The encoder, or its name or folder.
    embed_batch_size : int, default 256
        How many texts LlamaIndex passes at once.
    """

    def __init__(
        self, model: SentenceEncoder | str | os.PathLike[str] = "minilm", *, embed_batch_size: int = 256
    ) -> None:
        encoder = encoder_of(model)
        name = "wordpiece-bert" if isinstance(model, SentenceEncoder) else os.fspath(model)
        super().__init__(model_name=name, embed_batch_size=embed_batch_size)
        # Not a field of pydantic, which would validate and copy it.
        object.__setattr__(self, "_encoder", encoder)

    @classmethod
    def class_name(cls) -> str:
        """Return the name under which LlamaIndex stores the class."""
        return "WordPieceEmbedding"

    def _get_query_embedding(self, query: str) -> list[float]:
        found: list[float] = self._encoder.encode_query(query).tolist()
        return found

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_text_embeddings(self, texts: Sequence[str]) -> list[list[float]]:
        found: list[list[float]] = self._encoder.encode_document(list(texts)).tolist()
        return found

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return await asyncio.to_thread(self._get_query_embedding, query)

    async def _aget_text_embedding(self, text: str) -> list[float]:
        return await asyncio.to_thread(self._get_text_embedding, text)
