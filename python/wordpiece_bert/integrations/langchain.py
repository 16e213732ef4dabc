"""Sentence vectors for LangChain. Needs langchain-core.

Stability: provisional.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert._internal.texts import one_or_many
from wordpiece_bert.integrations.named_models import encoder_of, given_model, import_package
from wordpiece_bert.integrations.options import GIVEN, NAMED

Embeddings: Any = import_package("langchain_core.embeddings", "langchain").Embeddings

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from wordpiece_bert.sentence.dense.sentence_encoder import SentenceEncoder

__all__ = ["WordPieceEmbeddings"]


@completed_by(GIVEN, NAMED)
class WordPieceEmbeddings(Embeddings):  # type: ignore[misc]
    """The `Embeddings` of LangChain: for vector stores, retrievers and so on."""

    def __init__(
        self,
        model: SentenceEncoder | str | os.PathLike[str] | None = None,
        *,
        model_name: str | os.PathLike[str] | None = None,
        dtype: str | None = None,
        encoder_options: Mapping[str, Any] | None = None,
    ) -> None:
        self.model = given_model(model, model_name)
        self._encoder = encoder_of(self.model, dtype=dtype, encoder_options=encoder_options)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return the vectors of documents.

        Parameters
        ----------
        texts : list of str
            The documents.

        Returns
        -------
        list of list of float
            A vector for each.
        """
        found: list[list[float]] = self._encoder.encode_document(one_or_many(texts, name="texts")[1]).tolist()
        return found

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a query.

        Parameters
        ----------
        text : str
            The query.

        Returns
        -------
        list of float
            The vector.
        """
        found: list[float] = self._encoder.encode_query(text).tolist()
        return found
