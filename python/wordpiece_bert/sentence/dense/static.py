"""`StaticEncoder`: from texts to vectors by a table of token vectors, with the options that a table has."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, overload

from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert._internal.peer_names import refusing_peer_arguments
from wordpiece_bert.bert.loading import Loading
from wordpiece_bert.bert.parameters import LOADING
from wordpiece_bert.sentence.dense.body import OF_MODEL, MaxLength, TokenVectors
from wordpiece_bert.sentence.dense.dense_encoder import DenseEncoder, Form
from wordpiece_bert.sentence.dense.sentence_encoder import SentenceEncoder
from wordpiece_bert.sentence.dense.table import TableBody, load_table
from wordpiece_bert.sentence.derived import encode_for, encode_in_thread
from wordpiece_bert.sentence.encoder_base import FromPretrained, Settings
from wordpiece_bert.sentence.folders.content_files import content_states
from wordpiece_bert.sentence.parameters import ENCODING, SETTINGS
from wordpiece_bert.sentence.source import Source

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from wordpiece_bert.bert.functional import Mask
    from wordpiece_bert.sentence.arguments import OutputValue, Texts, Vectors

__all__ = ["StaticEncoder"]


@completed_by(LOADING, SETTINGS)
class StaticEncoder(DenseEncoder):
    """A static model: the vector of a text is the mean of its tokens' vectors, which do not depend on each other.

    It has the options that such a model has. `SentenceEncoder` loads the same folders, model2vec's and folders
    with a StaticEmbedding of sentence-transformers, with the same vectors and the arguments of sentence-transformers.
    Texts become vectors in one call of Rust code; Arrow columns are read in place. Threads may share it.

    Parameters
    ----------
    model : str or os.PathLike
        The model's name or folder.

    Raises
    ------
    ModelNotFoundError, ConfigError, CheckpointError, TokenizerFormatError
        As for `SentenceEncoder`; a CheckpointError also if table and tokenizer do not fit together.
    InputError
        An argument is wrong.

    Examples
    --------
    >>> from wordpiece_bert.sentence import StaticEncoder
    >>> encoder = StaticEncoder("models/static")
    >>> x = encoder.encode(["the bread", "the dough", "a bicycle"])
    >>> x.shape
    (3, 67)
    >>> encoder.similarity(x[:1], x).round(1)
    array([[1. , 0.8, 0.8]], dtype=float32)
    """

    _body: TableBody

    @refusing_peer_arguments
    def __init__(
        self,
        model: str | os.PathLike[str],
        *,
        threads: int | None = None,
        revision: str | None = None,
        download: bool = False,
        prompts: Mapping[str, str] | None = None,
        default_prompt_name: str | None = None,
        similarity_fn_name: str | None = None,
        truncate_dim: int | None = None,
    ) -> None:
        settings = Settings(prompts, default_prompt_name, similarity_fn_name, truncate_dim)
        loading = Loading(revision=revision, download=download)
        found = loading.find(model)
        source = Source.of(model, found, revision, threads=threads, **settings.given())
        source = replace(source, files=content_states(found.absolute()))
        self._set_up(load_table(found, loading, settings, threads), source)

    from_pretrained = FromPretrained(__init__)

    @overload
    def encode(
        self,
        texts: str | Texts,
        prompt_name: str | None = None,
        prompt: str | None = None,
        *,
        show_progress_bar: bool | None = None,
        output_value: Literal["sentence_embedding"] = "sentence_embedding",
        precision: str = "float32",
        convert_to_numpy: bool = True,
        convert_to_tensor: bool = False,
        normalize_embeddings: bool = False,
        truncate_dim: int | None = None,
        return_truncated: Literal[False] = False,
        max_length: MaxLength = ...,
    ) -> Vectors: ...

    @overload
    def encode(
        self,
        texts: str | Texts,
        prompt_name: str | None = None,
        prompt: str | None = None,
        *,
        show_progress_bar: bool | None = None,
        output_value: Literal["sentence_embedding"] = "sentence_embedding",
        precision: str = "float32",
        convert_to_numpy: bool = True,
        convert_to_tensor: bool = False,
        normalize_embeddings: bool = False,
        truncate_dim: int | None = None,
        return_truncated: Literal[True],
        max_length: MaxLength = ...,
    ) -> tuple[Vectors, Mask]: ...

    @overload
    def encode(
        self,
        texts: str | Texts,
        prompt_name: str | None = None,
        prompt: str | None = None,
        *,
        show_progress_bar: bool | None = None,
        output_value: OutputValue = ...,
        precision: str = "float32",
        convert_to_numpy: bool = True,
        convert_to_tensor: bool = False,
        normalize_embeddings: bool = False,
        truncate_dim: int | None = None,
        return_truncated: bool = False,
        max_length: MaxLength = ...,
    ) -> Any: ...

    @completed_by(ENCODING, SentenceEncoder.encode)
    def encode(
        self,
        texts: str | Texts,
        prompt_name: str | None = None,
        prompt: str | None = None,
        *,
        show_progress_bar: bool | None = None,
        output_value: OutputValue = "sentence_embedding",
        precision: str = "float32",
        convert_to_numpy: bool = True,
        convert_to_tensor: bool = False,
        normalize_embeddings: bool = False,
        truncate_dim: int | None = None,
        return_truncated: bool = False,
        max_length: MaxLength = OF_MODEL,
    ) -> Any:
        """Turn texts into vectors.

        Parameters
        ----------
        max_length : int or None, optional
            The most tokens of a text that count, None for all; by default `max_seq_length`.

        Returns
        -------
        array or list of arrays
            float32 [n, d] in the order of the texts, [d] for a single text, [0, d] for an empty list; with `precision`
            of another dtype and width. A text without tokens has a vector of zeros. For token embeddings a list of
            float32 arrays [tokens, H], or one such array.
        array
            Only with `return_truncated`: bool [n], or one bool for a single text.

        Raises
        ------
        InputError
            A text is not a str (the message has its index), or an argument is wrong.

        Warns
        -----
        TruncationWarning
            Texts were truncated, and `return_truncated` is false.

        Examples
        --------
        >>> from wordpiece_bert.sentence import StaticEncoder
        >>> encoder = StaticEncoder("models/static")
        >>> encoder.encode("the bread").shape
        (67,)
        >>> encoder.encode(["the bread", "a bicycle"], truncate_dim=16).shape
        (2, 16)
        """
        form = Form(
            output_value=output_value,
            precision=precision,
            convert_to_numpy=convert_to_numpy,
            convert_to_tensor=convert_to_tensor,
            normalize_embeddings=normalize_embeddings,
            truncate_dim=truncate_dim,
        )
        call = self._call(prompt_name, prompt, max_length=max_length, progress=bool(show_progress_bar))
        return self._encode(texts, call, form, return_truncated=return_truncated)

    encode_query = encode_for("query", encode)
    encode_document = encode_for("document", encode)
    aencode = encode_in_thread(encode)

    @overload
    def encode_tokens(self, texts: str) -> TokenVectors: ...  # type: ignore[overload-overlap]

    @overload
    def encode_tokens(self, texts: Texts) -> list[TokenVectors]: ...

    @completed_by(ENCODING)
    def encode_tokens(self, texts: str | Texts) -> Any:
        """Turn the tokens of texts that count into vectors, with their offsets in the texts; without a prompt.

        Returns
        -------
        TokenVectors
            The vectors of all tokens of the entire text, without special tokens; for a list of texts, a list of these.

        Raises
        ------
        InputError
            A text is not a str.

        Examples
        --------
        >>> from wordpiece_bert.sentence import StaticEncoder
        >>> encoder = StaticEncoder("models/static")
        >>> encoder.encode_tokens("The breads").tokens
        ['the', 'bread', '##s']
        """
        return self._named_tokens(texts)
