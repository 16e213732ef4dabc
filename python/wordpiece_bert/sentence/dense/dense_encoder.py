"""What `SentenceEncoder` and `StaticEncoder` share: all but how they are made, and the arguments of their calls."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np
import numpy.typing as npt

from wordpiece_bert._internal.atomic_folder import written_folder
from wordpiece_bert._internal.checks import whole_number
from wordpiece_bert._internal.peer_names import INSTEAD_IN_ENCODERS, add_peer_names
from wordpiece_bert._internal.texts import check_texts, warn_truncated
from wordpiece_bert.bert.functional import Array, normalize
from wordpiece_bert.errors import InputError
from wordpiece_bert.sentence.arguments import OutputValue, as_given, check_tensors, tensors
from wordpiece_bert.sentence.dense.body import Call, MaxLength
from wordpiece_bert.sentence.dense.transformer import TransformerBody
from wordpiece_bert.sentence.encoder_base import VectorEncoder
from wordpiece_bert.sentence.metrics import pairwise_similarity, similarity
from wordpiece_bert.sentence.quantization import check_precision, quantize_embeddings

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from wordpiece_bert._internal.atomic_folder import AtomicFolder
    from wordpiece_bert.bert.engines import EngineInfo
    from wordpiece_bert.bert.model import BertModel
    from wordpiece_bert.sentence.dense.body import Body
    from wordpiece_bert.sentence.folders.modules import SentenceFolder
    from wordpiece_bert.sentence.source import Source
    from wordpiece_bert.tokenizer.subword import AnyTokenizer

__all__ = ["DenseEncoder", "Form", "body_of", "encoder_of", "transformer_of", "with_threads"]

AnyEncoder = TypeVar("AnyEncoder", bound="DenseEncoder")


@dataclass(frozen=True, kw_only=True)
class Form:
    """What a call of `encode` returns: its arguments of the same names.

    Raises
    ------
    MissingPackageError
        The result is to be tensors, and PyTorch is not installed.
    """

    output_value: OutputValue
    precision: str
    convert_to_numpy: bool
    convert_to_tensor: bool
    normalize_embeddings: bool
    truncate_dim: int | None

    def __post_init__(self) -> None:
        check_tensors(self.convert_to_tensor)


class DenseEncoder(VectorEncoder):
    """The base of encoders that make a vector for each text: `SentenceEncoder` and `StaticEncoder`.

    Examples
    --------
    >>> from wordpiece_bert import SentenceEncoder
    >>> encoder = SentenceEncoder("models/sentences")
    >>> x = encoder.encode(["bread dough", "a bicycle", "the bread"])
    >>> encoder.similarity(x[:1], x).round(1)
    array([[1. , 0.5, 0.7]], dtype=float32)
    >>> encoder.similarity_pairwise(x, x).round(1)
    array([1., 1., 1.], dtype=float32)
    >>> encoder.save_pretrained("saved")
    >>> encoder.save("saved")  # the same
    >>> SentenceEncoder("saved").dimension
    67
    """

    _body: Body
    _folder: SentenceFolder

    def _set_up(self, body: Body, source: Source | None) -> None:
        self._body = body
        self._folder = body.folder
        self._threads = body.threads
        self._source = source
        self._max_seq_length = body.folder.max_seq_length

    def save_pretrained(self, folder: str | os.PathLike[str]) -> None:
        """Write a folder that ``from_pretrained`` and sentence-transformers load, with the same vectors.

        It has the model, the tokenizer, the modules after it (pooling, normalization, dense layers), the prompts and
        `max_seq_length`. A static model has the layout from which it was loaded, so that it keeps its rules: the layout
        of model2vec leaves out unknown tokens, reads as many characters as `max_seq_length` usually needs, and has no
        place for prompts. All files appear, or replace older ones, only when they are complete; other files stay.

        Parameters
        ----------
        folder : str or os.PathLike
            The folder; it is created if need be.

        Raises
        ------
        InputError
            There is a file of that name, or the tokenizer cannot be written.
        OSError
            A file cannot be written; then nothing has changed.
        """
        with written_folder(folder) as output:
            self._write_files(output)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a folder, as `save_pretrained`.

        Parameters
        ----------
        path : str or os.PathLike
            The folder.
        """
        self.save_pretrained(path)

    def _write_files(self, output: AtomicFolder) -> None:
        """Write the files of `save_pretrained`."""
        self._body.write_files(output, self._max_seq_length)

    def _with_vocabulary(
        self, extend: Callable[[BertModel], BertModel], tokenizer: Callable[[AnyTokenizer], AnyTokenizer]
    ) -> Self:
        """Return this encoder with another model and tokenizer, for `extend_model`."""
        body = transformer_of(self)
        changed = TransformerBody(extend(body.model), tokenizer(body.tokenizer), body.folder, body.threads)
        other = encoder_of(type(self), changed)
        other.max_seq_length = self._max_seq_length
        return other

    @property
    def dimension(self) -> int:
        """Width of the vectors that `encode` returns by default."""
        return self._folder.truncate_dim or self._folder.dimension

    @property
    def engine(self) -> EngineInfo:
        """How the encoder computes on this machine: CPU, dtype, instructions, threads, and the reason."""
        return self._body.engine

    @property
    def tokenizer(self) -> AnyTokenizer:
        """The tokenizer."""
        return self._body.tokenizer

    @property
    def max_seq_length(self) -> int:
        """The longest row in tokens, including [CLS] and [SEP]; longer texts are truncated. It may be set.

        For a static model, the most tokens of a text that count; ``sys.maxsize`` if texts are not truncated.
        """
        return self._max_seq_length

    @max_seq_length.setter
    def max_seq_length(self, value: int) -> None:
        self._max_seq_length = self._body.checked_length("max_seq_length", value)

    @property
    def truncate_dim(self) -> int | None:
        """How many of the first numbers of each vector `encode` keeps by default; None for all."""
        return self._folder.truncate_dim

    def similarity(self, a: npt.ArrayLike, b: npt.ArrayLike) -> Array:
        """Compare every vector of `a` with every vector of `b`, by `similarity_fn_name`.

        Parameters
        ----------
        a, b : array_like
            Vectors [n, d] and [m, d].

        Returns
        -------
        ndarray of float32
            The similarities [n, m]; a tensor if an argument is one.
        """
        found: Array = as_given(similarity(a, b, self.similarity_fn_name), a, b)
        return found

    def similarity_pairwise(self, a: npt.ArrayLike, b: npt.ArrayLike) -> Array:
        """Compare the vectors of `a` and `b` pair by pair, by `similarity_fn_name`.

        Parameters
        ----------
        a, b : array_like
            Vectors [n, d] each.

        Returns
        -------
        ndarray of float32
            The similarities [n]; a tensor if an argument is one.
        """
        found: Array = as_given(pairwise_similarity(a, b, self.similarity_fn_name), a, b)
        return found

    def _encode(self, texts: Any, call: Call, form: Form, *, return_truncated: bool) -> Any:
        """Turn a text or texts into vectors, for `encode`."""
        single = isinstance(texts, str)
        given = [texts] if single else texts
        result: Any
        if form.output_value == "sentence_embedding":
            check_precision(form.precision)
            self._width(form.truncate_dim)
            vectors, truncated = self._body.vectors(given, call)
            result = self._presented(vectors, form)
        else:
            _check_token_output(form)
            items = check_texts(given)[1]
            tokens, truncated = self._body.token_vectors(items, call)
            result = [x for _, x in tokens]
            if form.output_value is None:
                vectors, truncated = self._body.vectors(items, call)
                result = [
                    {
                        "input_ids": ids,
                        "attention_mask": np.ones(len(ids), np.int64),
                        "token_embeddings": x,
                        "sentence_embedding": vector,
                    }
                    for (ids, x), vector in zip(tokens, vectors, strict=True)
                ]
        if single:
            result = result[0]
        if form.convert_to_tensor:
            result = tensors(result)
        if not return_truncated:
            warn_truncated(truncated, self._longest_row(call.max_length))
            return result
        return result, bool(truncated[0]) if single else truncated

    def _named_tokens(self, texts: Any, batch_size: int = 32) -> Any:
        """Turn the tokens of a text or texts into vectors, for `encode_tokens`."""
        single, items = check_texts(texts)
        found = self._body.named_tokens(items, self._call(None, "", batch_size=batch_size))
        return found[0] if single else found

    def __copy__(self) -> Self:
        # Nothing changes the parts, only `max_seq_length` can be set.
        copy = object.__new__(type(self))
        copy.__dict__ |= self.__dict__
        return copy

    def _changes(self) -> dict[str, object]:
        return {"max_seq_length": self._max_seq_length}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._body.described(self._max_seq_length)})"

    def _call(self, prompt_name: str | None, prompt: str | None, *, batch_size: int = 32, **options: Any) -> Call:
        """Return the checked arguments of a call."""
        return Call(
            prefix=self._prompt(prompt, prompt_name),
            max_seq_length=self._max_seq_length,
            batch_size=whole_number("batch_size", batch_size, 1),
            **options,
        )

    def _longest_row(self, max_length: MaxLength) -> int:
        """Return the most tokens of a text in a call, for the message that texts were truncated."""
        return self._body.longest_row(Call(max_seq_length=self._max_seq_length, max_length=max_length)) or 0

    def _width(self, truncate_dim: int | None) -> int:
        """Return how many numbers of each vector to keep."""
        width = self._folder.dimension
        if truncate_dim is None:
            return self._folder.truncate_dim or width
        return whole_number("truncate_dim", truncate_dim, 1, width, meaning="the width of a vector")

    def _presented(self, vectors: Array, form: Form) -> Any:
        """Convert vectors [n, d] to what a call returns: an array, or a list of arrays."""
        vectors = self._shortened(vectors, form.truncate_dim, normalized=form.normalize_embeddings)
        result = quantize_embeddings(vectors, form.precision)
        return result if form.convert_to_numpy or form.convert_to_tensor else list(result)

    def _shortened(self, vectors: Array, truncate_dim: int | None, *, normalized: bool) -> Array:
        """Return the first numbers of vectors [n, d], scaled to length 1 if they are to be normalized."""
        vectors = vectors[:, : self._width(truncate_dim)]
        return normalize(vectors) if normalized else vectors


add_peer_names(DenseEncoder, INSTEAD_IN_ENCODERS)


def with_threads(encoder: DenseEncoder, source: Source, threads: int) -> DenseEncoder:
    """Return an encoder, given where it was loaded from, of which the pickle computes on a number of threads."""
    again = copy(encoder)
    again._source = replace(source, options=tuple({**dict(source.options), "threads": threads}.items()))  # noqa: SLF001
    return again


def body_of(encoder: DenseEncoder) -> Body:
    """Return what makes the vectors of an encoder."""
    return encoder._body  # noqa: SLF001 - where it is kept


def transformer_of(encoder: DenseEncoder) -> TransformerBody:
    """Return the model of an encoder with what belongs to it.

    Raises
    ------
    InputError
        It is a static model, which has none.
    """
    body = body_of(encoder)
    if not isinstance(body, TransformerBody):
        raise InputError(f"{encoder!r} is a static model, which has no BERT model")
    return body


def encoder_of(kind: type[AnyEncoder], body: Body) -> AnyEncoder:
    """Make an encoder of what makes its vectors."""
    encoder = object.__new__(kind)
    encoder._set_up(body, None)
    return encoder


def _check_token_output(form: Form) -> None:
    """Check the arguments of `encode` for an output of token vectors."""
    if form.output_value not in ("token_embeddings", None):
        raise InputError(
            f"output_value must be 'sentence_embedding', 'token_embeddings' or None, not {form.output_value!r}"
        )
    if form.precision != "float32" or form.normalize_embeddings or form.truncate_dim is not None:
        raise InputError("precision, normalize_embeddings and truncate_dim are for sentence vectors, not token vectors")
