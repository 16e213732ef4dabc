"""Sentence vectors for Haystack, as components of a pipeline. Needs haystack-ai."""

# Without "from __future__ import annotations": Haystack reads the types of `run`, and does not resolve strings.

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from wordpiece_bert.errors import InputError
from wordpiece_bert.integrations.loading import encoder_of, import_package
from wordpiece_bert.sentence.encoder import SentenceEncoder

_haystack = import_package("haystack", "haystack")

if TYPE_CHECKING:
    Document = Any
else:
    Document = _haystack.Document

__all__ = ["WordPieceDocumentEmbedder", "WordPieceTextEmbedder"]


class _Embedder:
    """What both components share: the model, and how a pipeline is saved."""

    def __init__(self, model: SentenceEncoder | str | os.PathLike[str] = "minilm") -> None:
        self.model = model

    def warm_up(self) -> None:
        """Load the model, if it is named and not loaded."""
        encoder_of(self.model)

    def to_dict(self) -> dict[str, Any]:
        """Return the component as a dict, for a saved pipeline.

        Raises
        ------
        InputError
            The model is an object; only a name can be saved.
        """
        if not isinstance(self.model, str):
            message = "only a component with the name of a model can be saved, not one with an encoder"
            raise InputError(message)
        saved: dict[str, Any] = _haystack.default_to_dict(self, model=self.model)
        return saved

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Any:  # noqa: ANN401
        """Create the component of a saved pipeline.

        Parameters
        ----------
        data : dict
            What `to_dict` returned.
        """
        return _haystack.default_from_dict(cls, data)


@_haystack.component
class WordPieceTextEmbedder(_Embedder):
    """The vector of a query.

    Parameters
    ----------
    model : SentenceEncoder, str or os.PathLike, default "minilm"
        The encoder, or its name or folder.
    """

    def __init__(self, model: SentenceEncoder | str | os.PathLike[str] = "minilm") -> None:
        _Embedder.__init__(self, model)  # Haystack makes a new class of this one, which super() does not know

    @_haystack.component.output_types(embedding=list[float])  # type: ignore[untyped-decorator]
    def run(self, text: str) -> dict[str, Any]:
        """Return the vector of a text.

        Parameters
        ----------
        text : str
            The query.

        Returns
        -------
        dict
            ``embedding``, a list of float.
        """
        return {"embedding": encoder_of(self.model).encode_query(text).tolist()}


@_haystack.component
class WordPieceDocumentEmbedder(_Embedder):
    """Documents with their vectors.

    Parameters
    ----------
    model : SentenceEncoder, str or os.PathLike, default "minilm"
        The encoder, or its name or folder.
    """

    def __init__(self, model: SentenceEncoder | str | os.PathLike[str] = "minilm") -> None:
        _Embedder.__init__(self, model)  # Haystack makes a new class of this one, which super() does not know

    @_haystack.component.output_types(documents=list[Document])  # type: ignore[untyped-decorator]
    def run(self, documents: list[Document]) -> dict[str, Any]:
        """Return copies of documents with vectors.

        Parameters
        ----------
        documents : list of haystack.Document
            The documents; one without content is a text without words.

        Returns
        -------
        dict
            ``documents``, with the vector of each in ``embedding``.
        """
        texts = [document.content or "" for document in documents]
        vectors = encoder_of(self.model).encode_document(texts).tolist()
        return {"documents": [replace(d, embedding=vector) for d, vector in zip(documents, vectors, strict=True)]}
