"""`SentenceEncoder`: from texts to sentence vectors, by a BERT model or by a table of token vectors."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack, overload

from wordpiece_bert._internal.checks import check_device
from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert._internal.peer_names import refusing_peer_arguments
from wordpiece_bert._internal.texts import check_texts
from wordpiece_bert.bert.loading import Loading
from wordpiece_bert.bert.parameters import LOADING
from wordpiece_bert.errors import InputError
from wordpiece_bert.sentence.arguments import OutputValue, Texts, Vectors, check_pool, one_of
from wordpiece_bert.sentence.dense.body import OF_MODEL, MaxLength, TokenVectors
from wordpiece_bert.sentence.dense.dense_encoder import DenseEncoder, Form
from wordpiece_bert.sentence.dense.table import load_table
from wordpiece_bert.sentence.dense.transformer import load_transformer
from wordpiece_bert.sentence.derived import encode_for, encode_in_thread
from wordpiece_bert.sentence.encoder_base import FromPretrained, Settings, engine_options
from wordpiece_bert.sentence.folders.content_files import content_states
from wordpiece_bert.sentence.folders.kinds import STATIC, kind_of
from wordpiece_bert.sentence.parameters import ENCODING, SETTINGS
from wordpiece_bert.sentence.source import Source
from wordpiece_bert.tokenizer.parameters import SPLITTING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from wordpiece_bert.bert.functional import Array, Mask
    from wordpiece_bert.sentence.dense.late_chunking import Chunks
    from wordpiece_bert.sentence.dense.windows import Combination
    from wordpiece_bert.tokenizer.word_splitter import WordSplitter

__all__ = ["SentenceEncoder", "sentence_encoder"]


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
class SentenceEncoder(DenseEncoder):
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
    """

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
        source = replace(source, files=content_states(found.absolute()))
        self._set_up(load(found, loading, settings, threads), source)

    from_pretrained = FromPretrained(__init__)

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
        form = Form(
            output_value=output_value,
            precision=precision,
            convert_to_numpy=convert_to_numpy,
            convert_to_tensor=convert_to_tensor,
            normalize_embeddings=normalize_embeddings,
            truncate_dim=truncate_dim,
        )
        call = self._call(
            prompt_name,
            prompt,
            batch_size=batch_size,
            windows=windows,
            stride=stride,
            max_length=max_length,
            progress=bool(show_progress_bar),
        )
        given = one_of(texts=texts, sentences=sentences, inputs=inputs)
        return self._encode(given, call, form, return_truncated=return_truncated)

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
        return self._named_tokens(texts, batch_size)

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
        return [
            self._shortened(vectors, truncate_dim, normalized=normalize_embeddings)
            for vectors in self._body.chunk_vectors(texts, chunks, call, sections=sections)
        ]


def sentence_encoder(model: DenseEncoder | str | os.PathLike[str], argument: str = "encoder") -> SentenceEncoder:
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
