"""Sentence vectors for LanceDB's registry of embedding functions, under the name ``wordpiece-bert``. Needs lancedb."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wordpiece_bert.integrations.loading import encoder_of, import_package

_embeddings = import_package("lancedb.embeddings", "lancedb")

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["WordPieceFunction"]

TextEmbeddingFunction: Any = _embeddings.TextEmbeddingFunction


class WordPieceFunction(TextEmbeddingFunction):  # type: ignore[misc]
    """The embedding function: ``get_registry().get("wordpiece-bert").create(name="minilm")``.

    Parameters
    ----------
    name : str, default "minilm"
        The name or folder of a model, which LanceDB stores with the table.
    """

    name: str = "minilm"

    def ndims(self) -> int:
        """Return the dimension of the vectors."""
        return encoder_of(self.name).dimension

    def generate_embeddings(self, texts: Any, *args: Any) -> list[npt.NDArray[np.float32]]:  # noqa: ANN401
        """Return the vectors of documents.

        Parameters
        ----------
        texts : list of str
            The documents.
        *args : ignored
            Not used.
        """
        return list(encoder_of(self.name).encode_document(list(texts)))

    def compute_query_embeddings(self, query: str, *args: Any) -> list[npt.NDArray[np.float32]]:  # noqa: ANN401
        """Return the vector of a query.

        Parameters
        ----------
        query : str
            The query.
        *args : ignored
            Not used.
        """
        return [encoder_of(self.name).encode_query(query)]


_embeddings.register("wordpiece-bert")(WordPieceFunction)
