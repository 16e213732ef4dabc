"""Sentence vectors for Haystack, as components of a pipeline. Needs haystack-ai.

Stability: provisional.
"""

# Without "from __future__ import annotations": Haystack reads the types of `run`, and does not resolve strings.

import os
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from wordpiece_bert._internal.asynchronous import run_in_thread
from wordpiece_bert._internal.checks import checked_strings, whole_number
from wordpiece_bert._internal.parameters import completed_by
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
from wordpiece_bert.integrations.options import GIVEN, NAMED
from wordpiece_bert.sentence.dense.sentence_encoder import SentenceEncoder
from wordpiece_bert.sentence.source import lasting_name

_haystack = import_package("haystack", "haystack")
_serialization = import_package("haystack.core.serialization", "haystack")

if TYPE_CHECKING:
    Document = Any
else:
    Document = _haystack.Document

__all__ = ["WordPieceDocumentEmbedder", "WordPieceTextEmbedder"]


class _Embedder:
    """What both components share: the model, what surrounds each text, and how a pipeline is saved."""

    model: SentenceEncoder | str | os.PathLike[str]
    #: The name that means the same in another folder, and the digests with which a saved pipeline was made.
    _name: str = ""
    contents: dict[str, str] | None = None
    _encoder: SentenceEncoder | None = None

    def _take(
        self,
        model: SentenceEncoder | str | os.PathLike[str],
        dtype: str | None,
        encoder_options: Mapping[str, Any] | None,
    ) -> None:
        self.encoder_options = checked_options(model, dtype, encoder_options)
        self.model = model
        self._name = lasting_name(model) if isinstance(model, str | os.PathLike) else ""

    def _load(self) -> SentenceEncoder:
        """Return the encoder, which stays the same for the life of the component."""
        if self._encoder is None:
            encoder = encoder_of(self._name or self.model, encoder_options=self.encoder_options)
            if self.contents is not None:
                check_contents(self._name, contents_of(encoder), self.contents)
            self._encoder = encoder
        return self._encoder

    def warm_up(self) -> None:
        """Load the model, if it is named and not loaded.

        Raises
        ------
        InputError
            The model of a saved pipeline has other contents than when it was saved.
        """
        self._load()

    def to_dict(self) -> dict[str, Any]:
        """Return the component as a dict, for a saved pipeline: with the digests of the model's contents.

        Raises
        ------
        InputError
            The model is an object; only a name can be saved.
        """
        if isinstance(self.model, SentenceEncoder):
            raise InputError("only a component with the name of a model can be saved, not one with an encoder")
        options = {name: value for name, value in vars(self).items() if name in ("encoder_options", *self._saved)}
        contents = stored_contents(self._load) if self.contents is None else self.contents
        saved: dict[str, Any] = _haystack.default_to_dict(self, model=self._name, contents=contents, **options)
        return saved

    #: The options that a saved pipeline has besides the model.
    _saved: tuple[str, ...] = ()

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Any:
        """Create the component of a saved pipeline.

        Parameters
        ----------
        data : dict
            What `to_dict` returned.
        """
        parameters = dict(data.get("init_parameters", {}))
        contents = parameters.pop("contents", None)
        component: Any = _haystack.default_from_dict(cls, {**data, "init_parameters": parameters})
        component.contents = contents
        return component


@_haystack.component
@completed_by(GIVEN, NAMED)
class WordPieceTextEmbedder(_Embedder):
    """The vector of a query.

    Parameters
    ----------
    prefix, suffix : str, default ""
        What is put before and after the text.
    """

    _saved = ("prefix", "suffix")

    def __init__(
        self,
        model: SentenceEncoder | str | os.PathLike[str] | None = None,
        *,
        model_name: str | os.PathLike[str] | None = None,
        dtype: str | None = None,
        encoder_options: Mapping[str, Any] | None = None,
        prefix: str = "",
        suffix: str = "",
    ) -> None:
        self._take(given_model(model, model_name), dtype, encoder_options)
        self.prefix = prefix
        self.suffix = suffix

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

        Raises
        ------
        InputError
            It is not a text.
        """
        if not isinstance(text, str):
            raise InputError(
                f"text must be a text, not {type(text).__name__}: documents go to WordPieceDocumentEmbedder"
            )
        return {"embedding": self._load().encode_query(f"{self.prefix}{text}{self.suffix}").tolist()}

    @_haystack.component.output_types(embedding=list[float])  # type: ignore[untyped-decorator]
    async def run_async(self, text: str) -> dict[str, Any]:
        """Return the vector of a text without blocking the event loop.

        Parameters
        ----------
        text : str
            The query.

        Returns
        -------
        dict
            As `run`.
        """
        return await run_in_thread(partial(self.run, text))


@_haystack.component
@completed_by(GIVEN, NAMED, SentenceEncoder.encode)
class WordPieceDocumentEmbedder(_Embedder):
    """Documents with their vectors.

    Parameters
    ----------
    prefix, suffix : str, default ""
        What is put before and after each text.
    progress_bar : bool, default True
        Whether to show a progress bar.
    meta_fields_to_embed : list of str, optional
        Fields of a document's ``meta`` whose values are put before its content, in this order. A field that a document
        does not have, or that is None, is left out.
    embedding_separator : str
        What separates these values and the content; by default a line feed.
    """

    _saved = ("prefix", "suffix", "batch_size", "progress_bar", "meta_fields_to_embed", "embedding_separator")

    def __init__(
        self,
        model: SentenceEncoder | str | os.PathLike[str] | None = None,
        *,
        model_name: str | os.PathLike[str] | None = None,
        dtype: str | None = None,
        encoder_options: Mapping[str, Any] | None = None,
        prefix: str = "",
        suffix: str = "",
        batch_size: int = 32,
        progress_bar: bool = True,
        meta_fields_to_embed: list[str] | None = None,
        embedding_separator: str = "\n",
    ) -> None:
        self._take(given_model(model, model_name), dtype, encoder_options)
        self.prefix = prefix
        self.suffix = suffix
        self.batch_size = whole_number("batch_size", batch_size, 1)
        self.progress_bar = progress_bar
        self.meta_fields_to_embed = checked_strings("meta_fields_to_embed", meta_fields_to_embed or [])
        self.embedding_separator = embedding_separator

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

        Raises
        ------
        InputError
            It is not a list of documents.
        """
        given: Any = documents
        if not isinstance(given, list) or not all(isinstance(one, _haystack.Document) for one in given):
            raise InputError("documents must be a list of Haystack's documents: a text goes to WordPieceTextEmbedder")
        vectors = self._load().encode_document(
            list(map(self._text, documents)), batch_size=self.batch_size, show_progress_bar=self.progress_bar
        )
        pairs = zip(documents, vectors.tolist(), strict=True)
        return {"documents": [replace(document, embedding=vector) for document, vector in pairs]}

    @_haystack.component.output_types(documents=list[Document])  # type: ignore[untyped-decorator]
    @completed_by(run)
    async def run_async(self, documents: list[Document]) -> dict[str, Any]:
        """Return copies of documents with vectors, without blocking the event loop.

        Returns
        -------
        dict
            As `run`.
        """
        return await run_in_thread(partial(self.run, documents))

    def _text(self, document: Document) -> str:
        """Return the text of which a document has its vector."""
        values = [document.meta.get(name) for name in self.meta_fields_to_embed]
        parts = [str(value) for value in values if value is not None]
        return self.prefix + self.embedding_separator.join([*parts, document.content or ""]) + self.suffix


# Without it, a saved pipeline is only loaded with allowed_modules=["wordpiece_bert"]; older versions have no such list.
if hasattr(_serialization, "allow_deserialization_module"):
    _serialization.allow_deserialization_module(__name__)
