"""Sentence vectors for LanceDB's registry of embedding functions. Needs lancedb.

The function is registered under the name of this module, which a program that opens a table with vectors of it imports
first: without it LanceDB raises a KeyError of that name.

Stability: provisional.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert._internal.texts import one_or_many
from wordpiece_bert.errors import InputError
from wordpiece_bert.integrations.named_models import (
    check_contents,
    checked_options,
    contents_of,
    encoder_of,
    given_model,
    import_package,
    stored_contents,
)
from wordpiece_bert.integrations.options import NAMED
from wordpiece_bert.sentence.source import lasting_name

_embeddings = import_package("lancedb.embeddings", "lancedb")

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from wordpiece_bert.sentence.dense.sentence_encoder import SentenceEncoder

__all__ = ["WordPieceFunction"]

TextEmbeddingFunction: Any = _embeddings.TextEmbeddingFunction


@completed_by(NAMED)
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
    contents : dict, optional
        The digests of the model's contents that LanceDB has stored: a model that differs is refused when it is used.
    """

    name: str = "minilm"
    contents: dict[str, str] | None = None
    encoder_options: dict[str, Any] | None = None

    def __init__(
        self,
        *,
        name: str | os.PathLike[str] | None = None,
        model_name: str | os.PathLike[str] | None = None,
        max_retries: int = 7,
        contents: dict[str, str] | None = None,
        dtype: str | None = None,
        encoder_options: dict[str, Any] | None = None,
    ) -> None:
        given = given_model(name, model_name)
        if not isinstance(given, str | os.PathLike):
            raise InputError(
                f"name must be the name or the folder of a model, which LanceDB stores, not {type(given).__name__}"
            )
        options = checked_options(given, dtype, encoder_options) or None
        super().__init__(name=lasting_name(given), max_retries=max_retries, contents=contents, encoder_options=options)
        # Not a field of pydantic, which would validate and copy it.
        object.__setattr__(self, "_encoder", None)

    def _load(self) -> SentenceEncoder:
        """Return the encoder, which stays the same for the life of the function."""
        if self._encoder is None:
            encoder = encoder_of(self.name, encoder_options=self.encoder_options)
            if self.contents is not None:
                check_contents(self.name, contents_of(encoder), self.contents)
            object.__setattr__(self, "_encoder", encoder)
        found: SentenceEncoder = self._encoder
        return found

    def safe_model_dump(self) -> dict[str, Any]:
        """Return what LanceDB stores of the function: the model, and the digests of its contents."""
        given: dict[str, Any] = dict(super().safe_model_dump())
        if any(str(given.get(name)).startswith("$var:") for name in ("name", "model_name")):
            return given  # a variable of the registry, which each program sets
        for name in ("model_name", "dtype"):
            given.pop(name, None)
        contents = self.contents or stored_contents(self._load)
        return given | {"name": self.name, "contents": contents, "encoder_options": self.encoder_options}

    def ndims(self) -> int:
        """Return the dimension of the vectors."""
        return self._load().dimension

    def generate_embeddings(self, texts: Any, *args: Any) -> list[npt.NDArray[np.float32]]:
        """Return the vectors of documents.

        Parameters
        ----------
        texts : list of str
            The documents.
        *args : ignored
            Not used.
        """
        return list(self._load().encode_document(one_or_many(texts)[1]))

    def compute_query_embeddings(self, query: str, *args: Any) -> list[npt.NDArray[np.float32]]:
        """Return the vector of a query.

        Parameters
        ----------
        query : str
            The query.
        *args : ignored
            Not used.
        """
        return [self._load().encode_query(query)]


_embeddings.register(__name__)(WordPieceFunction)
