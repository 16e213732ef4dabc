"""Sentence vectors for LanceDB's registry of embedding functions. Needs lancedb.

The function is registered under the name of this module, which a program that opens a table with vectors of it imports
first: without it LanceDB raises a KeyError of that name.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from wordpiece_bert.errors import InputError
from wordpiece_bert.integrations.loading import encoder_of, given_model, import_package

_embeddings = import_package("lancedb.embeddings", "lancedb")

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["WordPieceFunction"]

TextEmbeddingFunction: Any = _embeddings.TextEmbeddingFunction


class WordPieceFunction(TextEmbeddingFunction):  # type: ignore[misc]
    """The embedding function: ``WordPieceFunction.create(name="minilm")``.

    Parameters
    ----------
    name : str or os.PathLike, optional
        The name or folder of a model, which LanceDB stores with the table; by default ``"minilm"``.
    model_name : str or os.PathLike, optional
        Another name of `name`.
    max_retries : int, default 7
        How often LanceDB calls the function again after an error.
    """

    name: str = "minilm"

    def __init__(
        self,
        *,
        name: str | os.PathLike[str] | None = None,
        model_name: str | os.PathLike[str] | None = None,
        max_retries: int = 7,
    ) -> None:
        given = given_model(name, model_name)
        if not isinstance(given, str | os.PathLike):
            raise InputError(
                f"name must be the name or the folder of a model, which LanceDB stores, not {type(given).__name__}"
            )
        super().__init__(name=os.fspath(given), max_retries=max_retries)

    def ndims(self) -> int:
        """Return the dimension of the vectors."""
        return encoder_of(self.name).dimension

    def generate_embeddings(self, texts: Any, *args: Any) -> list[npt.NDArray[np.float32]]:
        """Return the vectors of documents.

        Parameters
        ----------
        texts : list of str
            The documents.
        *args : ignored
            Not used.
        """
        return list(encoder_of(self.name).encode_document(list(texts)))

    def compute_query_embeddings(self, query: str, *args: Any) -> list[npt.NDArray[np.float32]]:
        """Return the vector of a query.

        Parameters
        ----------
        query : str
            The query.
        *args : ignored
            Not used.
        """
        return [encoder_of(self.name).encode_query(query)]


_embeddings.register(__name__)(WordPieceFunction)
