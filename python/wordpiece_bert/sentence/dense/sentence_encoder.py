"""`SentenceEncoder`: from texts to sentence vectors, by a BERT model or by a table of token vectors."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal, Self, TypedDict, Unpack, overload

import numpy as np
import numpy.typing as npt

from wordpiece_bert._internal.atomic_folder import written_folder
from wordpiece_bert._internal.checks import check_device, check_flags, shows_progress, whole_number
from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert._internal.peer_names import INSTEAD_IN_ENCODERS, add_peer_names, refusing_peer_arguments
from wordpiece_bert._internal.texts import check_texts, warn_truncated
from wordpiece_bert.bert.functional import Array, normalize
from wordpiece_bert.bert.loading import Loading
from wordpiece_bert.bert.parameters import LOADING
from wordpiece_bert.errors import InputError
from wordpiece_bert.sentence.arguments import (
    OutputValue,
    Texts,
    Vectors,
    as_given,
    check_pool,
    check_tensors,
    one_of,
    tensors,
)
from wordpiece_bert.sentence.dense.body import OF_MODEL, Call, MaxLength, TokenVectors
from wordpiece_bert.sentence.dense.table import load_table
from wordpiece_bert.sentence.dense.transformer import TransformerBody, load_transformer
from wordpiece_bert.sentence.derived import encode_for, encode_in_thread
from wordpiece_bert.sentence.encoder_base import FromPretrained, Settings, VectorEncoder, engine_options
from wordpiece_bert.sentence.folders.kinds import STATIC, kind_of
from wordpiece_bert.sentence.metrics import pairwise_similarity, similarity
from wordpiece_bert.sentence.parameters import ENCODING, SETTINGS
from wordpiece_bert.sentence.quantization import check_precision, quantize_embeddings
from wordpiece_bert.sentence.source import Source
from wordpiece_bert.tokenizer.parameters import SPLITTING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from wordpiece_bert._internal.atomic_folder import AtomicFolder
    from wordpiece_bert.bert.engines import EngineInfo
    from wordpiece_bert.bert.functional import Mask
    from wordpiece_bert.bert.model import BertModel
    from wordpiece_bert.sentence.dense.body import Body
    from wordpiece_bert.sentence.dense.late_chunking import Chunks
    from wordpiece_bert.sentence.dense.windows import Combination
    from wordpiece_bert.sentence.folders.modules import SentenceFolder
    from wordpiece_bert.tokenizer.subword import AnyTokenizer
    from wordpiece_bert.tokenizer.word_splitter import WordSplitter


class _EncodeOptions(TypedDict, total=False):
    """The arguments of `SentenceEncoder.encode` by keyword, besides what decides the type of its result."""

    batch_size: int
    show_progress_bar: bool | None
    precision: str
    convert_to_numpy: bool
    convert_to_tensor: bool
    device: str | None
    normalize_embeddings: bool
    truncate_dim: int | None
    pool: None
    sentences: str | Texts | None
    inputs: str | Texts | None
    windows: Combination | None
    stride: int
    max_length: MaxLength


@completed_by(LOADING, SPLITTING, SETTINGS)
class SentenceEncoder(VectorEncoder):
    """A sentence encoder: a tokenizer, a BERT model, a pooling, and the modules after it; or a static model.

    ``SentenceEncoder("minilm")`` and `SentenceEncoder.from_pretrained` load one. Threads may share it. A copy shares
    the weights, and the pickle of an encoder that was loaded has the path of its folder instead of them.

    Parameters
    ----------
    model : str or os.PathLike
        ``"minilm"``, a folder, or ``"org/name"`` in the local Hugging Face cache: in the layout of
        sentence-transformers or of model2vec, or a plain BERT model, whose token vectors are then averaged.

    Raises
    ------
    ModelNotFoundError, ConfigError, CheckpointError, TokenizerFormatError
        As for `BertModel` and `Tokenizer`; a ConfigError also for modules that are not supported, and if the tokenizer
        marks single texts with another token type than 0, which the pooling of rows does not support.
    InputError
        The device is not the CPU, or an argument is wrong, as the NumPy engine, the dtypes other than float32
        and `calibrate` are for a static model.

    Examples
    --------
    >>> from wordpiece_bert import SentenceEncoder
    >>> encoder = SentenceEncoder("minilm")
    >>> x = encoder.encode(["The cat sleeps.", "A kitten naps.", "Rates rise."])
    >>> x.shape
    (3, 384)
    >>> encoder.similarity(x[:1], x).round(2)
    array([[ 1.  ,  0.69, -0.04]], dtype=float32)
    >>> encoder.similarity_pairwise(x, x).round(1)
    array([1., 1., 1.], dtype=float32)
    >>> encoder.save_pretrained("saved")
    >>> encoder.save("saved")  # the same
    >>> SentenceEncoder("saved").dimension
    384
    """

    _body: Body
    _folder: SentenceFolder

    @refusing_peer_arguments
    def __init__(
        self,
        model: str | os.PathLike[str],
        backend: str = "rust",
        dtype: str = "float32",
        *,
        device: str | None = None,
        threads: int | None = None,
        revision: str | None = None,
        download: bool = False,
        calibrate: Sequence[str] | None = None,
        instructions: str | None = None,
        word_splitter: WordSplitter | None = None,
        prompts: Mapping[str, str] | None = None,
        default_prompt_name: str | None = None,
        similarity_fn_name: str | None = None,
        truncate_dim: int | None = None,
    ) -> None:
        loading = Loading(
            *(backend, dtype, revision, download),
            calibrate=calibrate,
            word_splitter=word_splitter,
            instructions=instructions,
        )
        settings = Settings(prompts, default_prompt_name, similarity_fn_name, truncate_dim)
        check_device(device)
        found = loading.find(model)
        load = load_table if kind_of(found) is STATIC else load_transformer
        source = Source.of(model, found, revision, **engine_options(loading), threads=threads, **settings.given())
        self._set_up(load(found, loading, settings, threads), source)

    from_pretrained = FromPretrained(__init__)

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
        body = self._transformer()
        other = object.__new__(type(self))
        changed = TransformerBody(extend(body.model), tokenizer(body.tokenizer), body.folder, body.threads)
        other._set_up(changed, None)
        other.max_seq_length = self._max_seq_length
        return other

    def _transformer(self) -> TransformerBody:
        """Return the model with what belongs to it; an InputError if this is a static model, which has none."""
        if not isinstance(self._body, TransformerBody):
            raise InputError(f"{self!r} is a static model, which has no BERT model")
        return self._body

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

    # Type checkers know the arguments after the first three by name.
    @overload
    def encode(
        self,
        texts: str | Texts | None = None,
        prompt_name: str | None = None,
        prompt: str | None = None,
        *others: Any,
        output_value: Literal["sentence_embedding"] = "sentence_embedding",
        return_truncated: Literal[False] = False,
        **options: Unpack[_EncodeOptions],
    ) -> Vectors: ...

    @overload
    def encode(
        self,
        texts: str | Texts | None = None,
        prompt_name: str | None = None,
        prompt: str | None = None,
        *others: Any,
        output_value: Literal["sentence_embedding"] = "sentence_embedding",
        return_truncated: Literal[True],
        **options: Unpack[_EncodeOptions],
    ) -> tuple[Vectors, Mask]: ...

    @overload
    def encode(
        self,
        texts: str | Texts | None = None,
        prompt_name: str | None = None,
        prompt: str | None = None,
        *others: Any,
        output_value: OutputValue = ...,
        return_truncated: bool = False,
        **options: Unpack[_EncodeOptions],
    ) -> Any: ...

    @completed_by(ENCODING)  # type: ignore[misc] # the overloads leave the types of `others` open
    def encode(
        self,
        texts: str | Texts | None = None,
        prompt_name: str | None = None,
        prompt: str | None = None,
        batch_size: int = 32,
        show_progress_bar: bool | None = None,
        output_value: OutputValue = "sentence_embedding",
        precision: str = "float32",
        convert_to_numpy: bool = True,
        convert_to_tensor: bool = False,
        device: str | None = None,
        normalize_embeddings: bool = False,
        truncate_dim: int | None = None,
        pool: None = None,
        *,
        sentences: str | Texts | None = None,
        inputs: str | Texts | None = None,
        return_truncated: bool = False,
        windows: Combination | None = None,
        stride: int = 0,
        max_length: MaxLength = OF_MODEL,
    ) -> Any:
        """Turn texts into vectors.

        Parameters
        ----------
        output_value : {"sentence_embedding", "token_embeddings", None}, default "sentence_embedding"
            ``"sentence_embedding"``, or ``"token_embeddings"`` for the vectors of all tokens, before the pooling. None
            for both and the ids: for each text a dict of ``input_ids`` and ``attention_mask`` [tokens],
            ``token_embeddings`` [tokens, H] and ``sentence_embedding`` [d].
        precision : {"float32", "int8", "uint8", "binary", "ubinary"}, default "float32"
            The numbers of the result, as in `sentence.quantize_embeddings`; 8-bit ranges come from the returned
            vectors.
        windows : {"mean", "max"}, optional
            None truncates texts that are too long. ``"mean"`` and ``"max"`` split them into windows instead, each with
            the prompt, and combine the vectors of the windows element by element. If the model normalizes its vectors,
            the result is normalized again. Static models have no longest row, and no windows.
        stride : int, default 0
            How many tokens a window shares with the one before.
        max_length : int or None, optional
            The most tokens of a text that count, with special tokens; by default `max_seq_length`. Static models take
            None for all tokens.

        Returns
        -------
        array or list of arrays
            float32 [n, d] in the order of the texts, [d] for a single text, [0, d] for an empty list; with `precision`
            of another dtype and width. For token embeddings a list of float32 arrays [tokens, H], or one such array. A
            static model has a vector of zeros for a text without tokens.
        array
            Only with `return_truncated`: bool [n], or one bool for a single text.

        Raises
        ------
        InputError
            A text is not a str (the message has its index), or an argument is wrong.

        Warns
        -----
        TruncationWarning
            Texts were truncated, and `return_truncated` is false. The message has their number and the index of the
            first.

        Examples
        --------
        >>> from wordpiece_bert import SentenceEncoder
        >>> encoder = SentenceEncoder("minilm")
        >>> encoder.encode("The cat sleeps.").shape
        (384,)
        >>> encoder.encode(["A cat sleeps.", "Rain."], truncate_dim=64).shape
        (2, 64)
        """
        check_device(device)
        check_pool(pool)
        check_tensors(convert_to_tensor)
        if not (convert_to_numpy is True and normalize_embeddings is return_truncated is False):  # the usual call
            check_flags(
                convert_to_numpy=convert_to_numpy,
                normalize_embeddings=normalize_embeddings,
                return_truncated=return_truncated,
            )
        call = self._call(
            prompt_name,
            prompt,
            batch_size=batch_size,
            windows=windows,
            stride=stride,
            max_length=max_length,
            progress=shows_progress(show_progress_bar),
        )
        given = one_of(texts=texts, sentences=sentences, inputs=inputs)
        single = isinstance(given, str)
        items: Any = [given] if single else given
        result: Any
        if output_value == "sentence_embedding":
            check_precision(precision)
            self._width(truncate_dim)
            vectors, truncated = self._body.vectors(items, call)
            shortened = self._shortened(vectors, truncate_dim, normalized=normalize_embeddings)
            result = quantize_embeddings(shortened, precision)
            result = result if convert_to_numpy or convert_to_tensor else list(result)
        elif precision != "float32" or normalize_embeddings or truncate_dim is not None:
            _check_output_value(output_value)
            raise InputError(
                "precision, normalize_embeddings and truncate_dim are for sentence vectors, not token vectors"
            )
        else:
            _check_output_value(output_value)
            result, truncated = self._token_output(check_texts(items)[1], call, sentences=output_value is None)
        if single:
            result = result[0]
        if convert_to_tensor:
            result = tensors(result)
        if not return_truncated:
            warn_truncated(truncated, self._longest_row(max_length))
            return result
        return result, bool(truncated[0]) if single else truncated

    def _token_output(self, texts: list[str], call: Call, *, sentences: bool) -> tuple[list[Any], Mask]:
        """Return the vectors of the tokens of texts, and which were truncated; with `sentences` all that is known."""
        tokens, truncated = self._body.token_vectors(texts, call)
        if not sentences:
            return [x for _, x in tokens], truncated
        vectors, truncated = self._body.vectors(texts, call)
        everything = [
            {
                "input_ids": ids,
                "attention_mask": np.ones(len(ids), np.int64),
                "token_embeddings": x,
                "sentence_embedding": vector,
            }
            for (ids, x), vector in zip(tokens, vectors, strict=True)
        ]
        return everything, truncated

    encode_query = encode_for("query", encode)
    encode_document = encode_for("document", encode)
    aencode = encode_in_thread(encode)

    @overload
    def encode_tokens(self, texts: str, *, batch_size: int = 32) -> TokenVectors: ...  # type: ignore[overload-overlap]

    @overload
    def encode_tokens(self, texts: Texts, *, batch_size: int = 32) -> list[TokenVectors]: ...

    @completed_by(ENCODING)
    def encode_tokens(self, texts: str | Texts, *, batch_size: int = 32) -> Any:
        """Turn the tokens of texts into vectors, with their offsets in the texts; without a prompt.

        Returns
        -------
        TokenVectors
            The vectors of all tokens, [CLS] and [SEP] among them, before the pooling; for a list of texts, a list of
            these. The attribute ``truncated`` is whether the text was truncated. With a static model the tokens that
            count, without special tokens, of the entire text.

        Raises
        ------
        InputError
            A text is not a str, or an argument is wrong.

        Warns
        -----
        TruncationWarning
            Texts were truncated.

        Examples
        --------
        >>> from wordpiece_bert import SentenceEncoder
        >>> encoder = SentenceEncoder("minilm")
        >>> found = encoder.encode_tokens("The cat sleeps.")
        >>> found.tokens
        ['[CLS]', 'the', 'cat', 'sleeps', '.', '[SEP]']
        >>> found.vectors.shape
        (6, 384)
        """
        single, items = check_texts(texts)
        found = self._body.named_tokens(items, self._call(None, "", batch_size=batch_size))
        return found[0] if single else found

    @overload
    def encode_chunks(
        self,
        text: str,
        chunks: Chunks,
        prompt_name: str | None = None,
        prompt: str | None = None,
        *,
        batch_size: int = 32,
        normalize_embeddings: bool = False,
        truncate_dim: int | None = None,
    ) -> Array: ...

    @overload
    def encode_chunks(
        self,
        text: Texts,
        chunks: Iterable[Chunks],
        prompt_name: str | None = None,
        prompt: str | None = None,
        *,
        batch_size: int = 32,
        normalize_embeddings: bool = False,
        truncate_dim: int | None = None,
    ) -> list[Array]: ...

    @completed_by(ENCODING)
    def encode_chunks(
        self,
        text: str | Texts,
        chunks: Chunks | Iterable[Chunks],
        prompt_name: str | None = None,
        prompt: str | None = None,
        *,
        batch_size: int = 32,
        normalize_embeddings: bool = False,
        truncate_dim: int | None = None,
    ) -> Array | list[Array]:
        """Turn the chunks of a text into vectors that depend on the whole text: late chunking.

        The text goes through the model once. The vector of a chunk is the mean of the vectors of the tokens that begin
        in it, followed by the model's modules after the pooling. Special tokens and the prompt belong to no chunk.

        Parameters
        ----------
        text : str or iterable of str
            A text of at most `max_seq_length` tokens, or a list of texts.
        chunks : iterable of (int, int)
            The (start, end) of each chunk in the text, in characters; for a list of texts, a list of these. Chunks may
            overlap, be empty and leave gaps.

        Returns
        -------
        ndarray of float32
            The vectors [chunks, d], zeros for a chunk in which no token begins; for a list of texts, a list of these.

        Raises
        ------
        InputError
            The model's pooling is not the mean, it is a static model, a text is too long, or an argument is wrong.

        Examples
        --------
        >>> from wordpiece_bert import SentenceEncoder
        >>> encoder = SentenceEncoder("minilm")
        >>> encoder.encode_chunks("The cat sleeps. It is old.", [(0, 15), (16, 26)]).shape
        (2, 384)
        """
        single, items = check_texts(text)
        found = self._chunk_vectors(
            items,
            [chunks] if single else chunks,
            prompt_name=prompt_name,
            prompt=prompt,
            batch_size=batch_size,
            normalize_embeddings=normalize_embeddings,
            truncate_dim=truncate_dim,
        )
        return found[0] if single else found

    def _chunk_vectors(
        self,
        texts: list[str],
        chunks: Any,
        *,
        prompt_name: str | None = None,
        prompt: str | None = None,
        batch_size: int,
        normalize_embeddings: bool = False,
        truncate_dim: int | None = None,
        sections: bool = False,
    ) -> list[Array]:
        """Return the vectors of the chunks of each text; with `sections` texts may be longer than a row."""
        call = self._call(prompt_name, prompt, batch_size=batch_size)
        check_flags(normalize_embeddings=normalize_embeddings)
        return [
            self._shortened(vectors, truncate_dim, normalized=normalize_embeddings)
            for vectors in self._body.chunk_vectors(texts, chunks, call, sections=sections)
        ]

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

    def _shortened(self, vectors: Array, truncate_dim: int | None, *, normalized: bool) -> Array:
        """Return the first numbers of vectors [n, d], scaled to length 1 if they are to be normalized."""
        vectors = vectors[:, : self._width(truncate_dim)]
        return normalize(vectors) if normalized else vectors


add_peer_names(SentenceEncoder, INSTEAD_IN_ENCODERS)


def _check_output_value(value: object) -> None:
    if value not in ("token_embeddings", None):
        raise InputError(f"output_value must be 'sentence_embedding', 'token_embeddings' or None, not {value!r}")


def sentence_encoder(model: SentenceEncoder | str | os.PathLike[str], argument: str = "encoder") -> SentenceEncoder:
    """Return the sentence encoder that a function was given, or the one of a name.

    Parameters
    ----------
    model : SentenceEncoder, str or os.PathLike
        An encoder, or its name or folder.
    argument : str
        The name of the argument, for the message.

    Raises
    ------
    InputError
        It is something else.
    ModelNotFoundError, ConfigError, CheckpointError, TokenizerFormatError
        As for `SentenceEncoder`.
    """
    if isinstance(model, SentenceEncoder):
        return model
    if isinstance(model, str | os.PathLike):
        return SentenceEncoder(model)
    raise InputError(f"{argument} must be a SentenceEncoder or the name of a model, not {type(model).__name__}")
