"""Sentence vectors for Chroma. Needs chromadb.

Stability: provisional.
"""

from __future__ import annotations

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
)
from wordpiece_bert.integrations.options import GIVEN, NAMED
from wordpiece_bert.sentence.dense.sentence_encoder import SentenceEncoder
from wordpiece_bert.sentence.parts import source_of
from wordpiece_bert.sentence.source import lasting_name

_chromadb = import_package("chromadb", "chroma")
_functions = import_package("chromadb.utils.embedding_functions", "chroma")

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    import numpy as np
    import numpy.typing as npt

__all__ = ["WordPieceEmbeddingFunction"]

EmbeddingFunction: Any = _chromadb.EmbeddingFunction


@completed_by(GIVEN, NAMED)
class WordPieceEmbeddingFunction(EmbeddingFunction):  # type: ignore[misc]
    """The embedding function of a collection of Chroma, which stores its name and model.

    A program that opens such a collection imports this module first; without it, Chroma raises an error that names the
    function, ``wordpiece_bert.integrations.chroma``.
    """

    def __init__(
        self,
        model: SentenceEncoder | str | os.PathLike[str] | None = None,
        *,
        model_name: str | os.PathLike[str] | None = None,
        dtype: str | None = None,
        encoder_options: Mapping[str, Any] | None = None,
    ) -> None:
        self.model = given_model(model, model_name)
        self._options = checked_options(self.model, dtype, encoder_options)
        self._encoder = encoder_of(self.model, encoder_options=self._options)
        self._name = "" if isinstance(self.model, SentenceEncoder) else lasting_name(self.model)

    def __call__(self, input: list[str]) -> list[npt.NDArray[np.float32]]:  # noqa: A002 - Chroma's name
        """Return the vectors of documents.

        Parameters
        ----------
        input : list of str
            The documents.
        """
        return list(self._encoder.encode_document(one_or_many(input, name="input")[1]))

    def embed_query(self, input: list[str]) -> list[npt.NDArray[np.float32]]:  # noqa: A002
        """Return the vectors of queries.

        Parameters
        ----------
        input : list of str
            The queries.
        """
        return list(self._encoder.encode_query(one_or_many(input, name="input")[1]))

    @staticmethod
    def name() -> str:
        """Return the name under which Chroma stores the function: the name of the module that a program must import."""
        return __name__

    def default_space(self) -> str:
        """Return the distance that the model was trained for, in Chroma's names."""
        return {"dot": "ip", "euclidean": "l2"}.get(self._encoder.similarity_fn_name, "cosine")

    def supported_spaces(self) -> list[str]:
        """Return the distances that fit the vectors."""
        return ["cosine", "l2", "ip"]

    def get_config(self) -> dict[str, Any]:
        """Return what Chroma stores of the function: the model, its options, and the digests of its contents.

        Raises
        ------
        InputError
            The encoder comes from no folder, so that Chroma could not make it again.
        """
        if isinstance(self.model, SentenceEncoder):
            source = source_of(self.model)
            if source is None:
                raise InputError("the encoder comes from no folder, which Chroma stores: save it, and pass the folder")
            name, options = source.folder, dict(source.sent(self.model.engine.dtype).options)
            options |= {"threads": None, "max_seq_length": self.model.max_seq_length}
        else:
            name, options = self._name, self._options
        stored = {name: value for name, value in options.items() if value is not None}
        return {"model": name, "contents": contents_of(self._encoder), "encoder_options": stored}

    @staticmethod
    def build_from_config(config: dict[str, Any]) -> WordPieceEmbeddingFunction:
        """Return the function of a stored collection.

        Parameters
        ----------
        config : dict
            What `get_config` returned.

        Raises
        ------
        InputError
            The model has other contents than when the collection was made.
        """
        function = WordPieceEmbeddingFunction(config["model"], encoder_options=config.get("encoder_options"))
        if (contents := config.get("contents")) is not None:
            check_contents(config["model"], contents_of(function._encoder), contents)
        return function


_functions.register_embedding_function(WordPieceEmbeddingFunction)
