"""`SentenceEncoder`: from texts to sentence vectors."""

from __future__ import annotations

import importlib
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, SupportsIndex, cast, overload

import numpy as np
import numpy.typing as npt

from wordpiece_bert._internal.asynchronous import run_in_thread
from wordpiece_bert._internal.atomic_folder import AtomicFolder
from wordpiece_bert._internal.batching import pad_rows, sorted_batches, token_runs, with_progress
from wordpiece_bert._internal.checks import check_device, whole_number
from wordpiece_bert._internal.notebook import arrays_text, vectors_html
from wordpiece_bert._internal.peer_names import INSTEAD_IN_ENCODERS, add_peer_names
from wordpiece_bert._internal.texts import check_texts, check_tokens, warn_truncated
from wordpiece_bert._internal.warn import warn
from wordpiece_bert.bert.auto import AutoModel
from wordpiece_bert.bert.engines import get_engine
from wordpiece_bert.bert.functional import Array, Mask, normalize
from wordpiece_bert.errors import ConfigError, InputError
from wordpiece_bert.hub import find_model
from wordpiece_bert.sentence.arguments import OutputValue, Texts, Vectors, check_tensors, one_of, prompt_text, tensors
from wordpiece_bert.sentence.base import given_settings, with_settings
from wordpiece_bert.sentence.content_files import content_states
from wordpiece_bert.sentence.folder import Dense, Normalize, SentenceFolder, read_folder
from wordpiece_bert.sentence.late_chunking import Chunks, check_chunks, mean_of_chunks, tokens_of_texts
from wordpiece_bert.sentence.metrics import pairwise_similarity, similarity
from wordpiece_bert.sentence.quantization import check_precision, quantize_embeddings
from wordpiece_bert.sentence.roles import QueryAndDocumentCalls
from wordpiece_bert.sentence.save import write_modules
from wordpiece_bert.sentence.source import Source, load
from wordpiece_bert.sentence.static_folder import is_static_folder
from wordpiece_bert.sentence.windows import COMBINATIONS, Combination, combine, cut_into_windows
from wordpiece_bert.subword import SubwordTokenizer, tokenizer_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from wordpiece_bert.bert.engines import EngineInfo
    from wordpiece_bert.bert.model import BertModel
    from wordpiece_bert.tokenizer import RaggedBatch, Tokenizer

__all__ = ["SentenceEncoder", "TokenVectors"]

#: The most tokens of one call of the Rust engine: up to a second of work, the longest until Ctrl-C has an effect.
TOKENS_PER_CALL = 16_384


@dataclass(frozen=True, eq=False, repr=False)
class TokenVectors:
    """The vectors of the tokens of one text."""

    #: float32 [tokens, H].
    vectors: Array
    #: The (start, end) of each token in the text, in characters; (0, 0) for special tokens.
    offsets: list[tuple[int, int]]
    #: The tokens.
    tokens: list[str]
    #: Whether the text was truncated.
    truncated: bool

    def __repr__(self) -> str:
        cut = ", truncated" * self.truncated
        return f"TokenVectors({len(self.tokens)} tokens, {arrays_text({'vectors': self.vectors})}{cut})"

    def _repr_html_(self) -> str:
        return vectors_html(repr(self), self.tokens, self.offsets, self.vectors)


class SentenceEncoder(QueryAndDocumentCalls):
    """A sentence encoder: a tokenizer, a BERT model, a pooling, and the modules after it.

    ``SentenceEncoder("minilm")`` and `SentenceEncoder.from_pretrained` load one. Threads may share it. A copy shares
    the weights, and the pickle of an encoder that was loaded has the path of its folder instead of them.

    Parameters
    ----------
    model : str or os.PathLike
        The model's name or folder, as for `from_pretrained`. A `BertModel` is deprecated.
    tokenizer, folder
        Deprecated: the tokenizer of a `BertModel`, and how token vectors become sentence vectors.
    backend, dtype, revision, download, keep_half, calibrate
        As for `BertModel.from_pretrained`.
    prompts : dict, optional
        Prompts by name. They replace those of the folder that have the same names.
    default_prompt_name : str, optional
        The name of the prompt that `encode` uses by default; by default that of the folder, if any.
    similarity_fn_name : {"cosine", "dot", "euclidean", "manhattan"}, optional
        How `similarity` compares vectors; by default as the folder says.
    truncate_dim : int, optional
        How many of the first numbers of each vector `encode` keeps by default; by default as the folder says, or all.
    device : {"cpu"}, optional
        The device of the model, which is always the CPU.
    threads
        How many threads the tokenizer and the Rust engine use; by default as many as this process may use. The NumPy
        engine uses the threads of its BLAS library.

    Raises
    ------
    ModelNotFoundError, ConfigError, CheckpointError, TokenizerFormatError
        As for `from_pretrained`; a ConfigError also if the tokenizer marks single texts with another token type than 0,
        which the pooling of rows does not support.
    InputError
        The device is not the CPU, or an argument is wrong.

    Warns
    -----
    DeprecationWarning
        The encoder is made of a model and a tokenizer, not loaded.
    """

    _folder: SentenceFolder

    @classmethod
    def _class_for(cls, model: object, revision: str | None, *, download: bool) -> type[Self]:
        if cls is SentenceEncoder and isinstance(model, str | os.PathLike):
            folder = find_model(model, revision=revision, download=download)
            if is_static_folder(folder):
                # By name: the module of the subclass imports this one.
                static: type[Self] = importlib.import_module("wordpiece_bert.sentence.static").StaticEncoder
                return static
        return cls

    def __init__(
        self,
        model: str | os.PathLike[str] | BertModel,
        tokenizer: Tokenizer | None = None,
        folder: SentenceFolder | None = None,
        *,
        backend: str = "rust",
        dtype: str = "float32",
        device: str | None = None,
        threads: int | None = None,
        revision: str | None = None,
        download: bool = False,
        keep_half: bool = False,
        calibrate: Sequence[str] | None = None,
        prompts: Mapping[str, str] | None = None,
        default_prompt_name: str | None = None,
        similarity_fn_name: str | None = None,
        truncate_dim: int | None = None,
    ) -> None:
        check_device(device)
        source = None
        if isinstance(model, str | os.PathLike):
            if tokenizer is not None or folder is not None:
                raise InputError(
                    "tokenizer and folder belong to a model object; a name has its own: pass the name alone"
                )
            found = find_model(model, revision=revision, download=download)
            given = given_settings(
                prompts=prompts,
                default_prompt_name=default_prompt_name,
                similarity_fn_name=similarity_fn_name,
                truncate_dim=truncate_dim,
            )
            folder = with_settings(read_folder(found), given)
            options = {"backend": backend, "dtype": dtype, "threads": threads, "keep_half": keep_half}
            name = model
            files = content_states(found.absolute())
            model = AutoModel.base_from_pretrained(
                folder.transformer, backend, dtype, keep_half=keep_half, calibrate=calibrate
            )
            texts = None if calibrate is None else tuple(calibrate)
            source = replace(Source.of(name, found, revision, **options, calibrate=texts, **given), files=files)
            tokenizer = tokenizer_of(folder.transformer)
        else:
            if tokenizer is None or folder is None:
                raise InputError(f"SentenceEncoder takes the name or the folder of a model, not {type(model).__name__}")
            message = "SentenceEncoder(model, tokenizer, folder) is deprecated: use SentenceEncoder(name)"
            warn(message, DeprecationWarning)
        self._set_up(model, tokenizer, folder, threads, source)

    @classmethod
    def _build(cls, model: BertModel, tokenizer: Tokenizer, folder: SentenceFolder, threads: int | None) -> Self:
        """Make an encoder of its parts."""
        self = object.__new__(cls)
        self._set_up(model, tokenizer, folder, threads)
        return self

    def _set_up(
        self,
        model: BertModel,
        tokenizer: Tokenizer,
        folder: SentenceFolder,
        threads: int | None,
        source: Source | None = None,
    ) -> None:
        if any(tokenizer.encode("a", truncation=False, padding=False).token_type_ids):
            raise ConfigError(f"{folder.transformer}: the tokenizer assigns a token type other than 0 to a single text")
        self._model = model
        self._tokenizer = with_lowercase(tokenizer) if folder.do_lower_case else tokenizer
        self._folder = folder
        self._threads = threads
        self._max_seq_length = folder.max_seq_length
        self._source = source
        engine = get_engine(model.backend, model.dtype)
        self._modules = [
            replace(module, linear=engine.linear) if isinstance(module, Dense) else module for module in folder.modules
        ]

    @classmethod
    def from_pretrained(
        cls,
        name: str | os.PathLike[str],
        backend: str = "rust",
        dtype: str = "float32",
        *,
        threads: int | None = None,
        revision: str | None = None,
        download: bool = False,
        keep_half: bool = False,
        calibrate: Sequence[str] | None = None,
        prompts: Mapping[str, str] | None = None,
        default_prompt_name: str | None = None,
        similarity_fn_name: str | None = None,
        truncate_dim: int | None = None,
    ) -> Self:
        """Load a sentence encoder from this machine.

        Parameters
        ----------
        name
            ``"minilm"``, a folder, or ``"org/name"`` in the local Hugging Face cache: in the layout of
            sentence-transformers, or a plain BERT model, whose token vectors are then averaged.
        backend, dtype, revision, download, keep_half, calibrate
            As for `BertModel.from_pretrained`.
        threads, prompts, default_prompt_name, similarity_fn_name, truncate_dim
            As for the class.

        Raises
        ------
        ModelNotFoundError, ConfigError, CheckpointError, TokenizerFormatError
            As for `BertModel` and `Tokenizer`; a ConfigError also for modules that are not supported.
        """
        return cls(
            name,
            backend=backend,
            dtype=dtype,
            threads=threads,
            revision=revision,
            download=download,
            keep_half=keep_half,
            calibrate=calibrate,
            prompts=prompts,
            default_prompt_name=default_prompt_name,
            similarity_fn_name=similarity_fn_name,
            truncate_dim=truncate_dim,
        )

    def save_pretrained(self, folder: str | os.PathLike[str]) -> None:
        """Write a folder that `from_pretrained` and sentence-transformers load, with the same vectors.

        It has the model, the tokenizer, the modules after it (pooling, normalization, dense layers), the prompts and
        `max_seq_length`. All files appear, or replace older ones, only when they are complete; other files stay.

        Parameters
        ----------
        folder
            The folder; it is created if need be.

        Raises
        ------
        InputError
            There is a file of that name, or the tokenizer cannot be written.
        OSError
            A file cannot be written; then nothing has changed.
        """
        with AtomicFolder(Path(folder)) as output:
            output.begin()
            self._write_files(output)
            output.commit()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a folder, as `save_pretrained`.

        Parameters
        ----------
        path
            The folder.
        """
        self.save_pretrained(path)

    def _write_files(self, output: AtomicFolder) -> None:
        """Write the files of `save_pretrained`."""
        self._model._write_files(output, **({} if self._folder.layers is None else {"output_hidden_states": True}))
        self._tokenizer._write_files(output)
        hidden_size = self._model.config.hidden_size
        write_modules(output, self._folder, hidden_size=hidden_size, max_seq_length=self._max_seq_length)

    def _with_vocabulary(
        self, extend: Callable[[BertModel], BertModel], tokenizer: Callable[[Tokenizer], Tokenizer]
    ) -> Self:
        """Return this encoder with another model and tokenizer, for `extend_model`."""
        other = self._build(extend(self._model), tokenizer(self._tokenizer), self._folder, self._threads)
        other._max_seq_length = self._max_seq_length
        return other

    @property
    def dimension(self) -> int:
        """Width of the vectors that `encode` returns by default."""
        return self._folder.truncate_dim or self._folder.dimension

    @property
    def engine(self) -> EngineInfo:
        """How the encoder computes on this machine: CPU, dtype, instructions, threads, and the reason."""
        return self._model.engine.with_threads(self._threads)

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer."""
        return self._tokenizer

    @property
    def max_seq_length(self) -> int:
        """The longest row in tokens, including [CLS] and [SEP]; longer texts are truncated. It may be set."""
        return self._max_seq_length

    @max_seq_length.setter
    def max_seq_length(self, value: int) -> None:
        limit = self._model.config.longest_row
        self._max_seq_length = whole_number("max_seq_length", value, 1, limit, meaning="the model's longest row")

    @property
    def truncate_dim(self) -> int | None:
        """How many of the first numbers of each vector `encode` keeps by default; None for all."""
        return self._folder.truncate_dim

    @property
    def similarity_fn_name(self) -> str:
        """The metric that the model was trained for, or that was chosen: cosine, dot, euclidean or manhattan."""
        return self._folder.similarity

    def similarity(self, a: npt.ArrayLike, b: npt.ArrayLike) -> Array:
        """Compare every vector of `a` with every vector of `b`, by `similarity_fn_name`.

        Parameters
        ----------
        a, b : array_like
            Vectors [n, d] and [m, d].

        Returns
        -------
        ndarray of float32
            The similarities [n, m].
        """
        return similarity(a, b, self.similarity_fn_name)

    def similarity_pairwise(self, a: npt.ArrayLike, b: npt.ArrayLike) -> Array:
        """Compare the vectors of `a` and `b` pair by pair, by `similarity_fn_name`.

        Parameters
        ----------
        a, b : array_like
            Vectors [n, d] each.

        Returns
        -------
        ndarray of float32
            The similarities [n].
        """
        return pairwise_similarity(a, b, self.similarity_fn_name)

    @overload
    def encode(
        self,
        texts: str | Texts | None = None,
        prompt_name: str | None = None,
        prompt: str | None = None,
        batch_size: int = 32,
        show_progress_bar: bool | None = None,
        output_value: Literal["sentence_embedding"] = "sentence_embedding",
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
        return_truncated: Literal[False] = False,
        windows: Combination | None = None,
        stride: int = 0,
    ) -> Vectors: ...

    @overload
    def encode(
        self,
        texts: str | Texts | None = None,
        prompt_name: str | None = None,
        prompt: str | None = None,
        batch_size: int = 32,
        show_progress_bar: bool | None = None,
        output_value: Literal["sentence_embedding"] = "sentence_embedding",
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
        return_truncated: Literal[True],
        windows: Combination | None = None,
        stride: int = 0,
    ) -> tuple[Vectors, Mask]: ...

    @overload
    def encode(
        self,
        texts: str | Texts | None = None,
        prompt_name: str | None = None,
        prompt: str | None = None,
        batch_size: int = 32,
        show_progress_bar: bool | None = None,
        output_value: OutputValue = ...,
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
    ) -> Any: ...

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
    ) -> Any:
        """Turn texts into vectors.

        Parameters
        ----------
        texts
            A text, a list or another iterable of texts, an array, or an Arrow column.
        prompt_name
            The name of the model's prompt to put before each text; by default the model's default prompt, if any.
        prompt
            The prompt itself; `prompt_name` is then ignored.
        batch_size
            The most texts that go through the NumPy engine at once, sorted by length to reduce padding. The Rust engine
            ignores it for sentence vectors: it runs texts without padding, in bounded memory.
        show_progress_bar
            Whether to show a progress bar on standard error: on a terminal a bar, elsewhere a line now and then.
        output_value
            ``"sentence_embedding"``, or ``"token_embeddings"`` for the vectors of all tokens, before the pooling. None
            for both and the ids: for each text a dict of ``input_ids`` and ``attention_mask`` [tokens],
            ``token_embeddings`` [tokens, H] and ``sentence_embedding`` [d].
        precision
            ``"float32"``, or ``"int8"``, ``"uint8"``, ``"binary"``, ``"ubinary"`` as in `quantize_embeddings`; the
            8-bit ranges are those of the returned vectors.
        convert_to_numpy
            Whether sentence vectors are one array [n, d], rather than a list of arrays [d].
        convert_to_tensor
            Whether to return tensors of PyTorch, which share the memory of the arrays.
        device
            None or ``"cpu"``: the model is always on the CPU.
        normalize_embeddings
            Whether to scale the vectors to length 1, after `truncate_dim`.
        truncate_dim
            How many of the first numbers of each vector to keep; by default the model's setting, or all.
        pool
            None. sentence-transformers passes texts to a pool of processes; here one process uses all CPUs, see
            `threads`.
        sentences, inputs
            Other names of `texts`, of sentence-transformers.
        return_truncated
            Whether to also return which texts were truncated to `max_seq_length`.
        windows
            None truncates texts that are too long. ``"mean"`` and ``"max"`` split them into windows instead, each with
            the prompt, and combine the vectors of the windows element by element. If the model normalizes its vectors,
            the result is normalized again.
        stride
            How many tokens a window shares with the one before.

        Returns
        -------
        array or list of arrays
            float32 [n, d] in the order of the texts, [d] for a single text, [0, d] for an empty list; with `precision`
            of another dtype and width. For token embeddings a list of float32 arrays [tokens, H], or one such array.
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
        """
        check_device(device)
        check_pool(pool)
        check_tensors(convert_to_tensor)
        single, items = check_texts(one_of(texts=texts, sentences=sentences, inputs=inputs))
        batch_size = whole_number("batch_size", batch_size, 1)
        prefix = self._prompt(prompt, prompt_name)
        rows = self._rows(items, prefix, windows, stride)
        progress = bool(show_progress_bar)
        if output_value != "sentence_embedding":
            self._check_token_output(output_value, precision, truncate_dim, normalized=normalize_embeddings)
            if windows is not None:
                raise InputError("windows are for sentence vectors; token vectors cannot be combined")
        result: Any
        if output_value == "token_embeddings":
            result = self._token_vectors(rows, batch_size, progress=progress)
        elif output_value is None:
            result = self._features(rows, batch_size, self._skipped(prefix), progress=progress)
        else:
            check_precision(precision)
            self._width(truncate_dim)
            vectors = self._sentence_vectors(rows, batch_size, self._skipped(prefix), progress=progress)
            if windows is not None:
                vectors = self._combined(vectors, rows, windows, len(items))
            arrays = convert_to_numpy or convert_to_tensor
            result = self._presented(vectors, precision, truncate_dim, normalized=normalize_embeddings, arrays=arrays)
        if single:
            result = result[0]
        if convert_to_tensor:
            result = tensors(result)
        if not return_truncated:
            warn_truncated(rows.truncated, self.max_seq_length)
            return result
        return result, bool(rows.truncated[0]) if single else rows.truncated

    @overload
    def encode_tokens(self, texts: str, *, batch_size: int = 32) -> TokenVectors: ...  # type: ignore[overload-overlap]

    @overload
    def encode_tokens(self, texts: Texts, *, batch_size: int = 32) -> list[TokenVectors]: ...

    def encode_tokens(self, texts: str | Texts, *, batch_size: int = 32) -> TokenVectors | list[TokenVectors]:
        """Turn the tokens of texts into vectors, with their offsets in the texts; without a prompt.

        Parameters
        ----------
        texts
            As for `encode`.
        batch_size
            The most texts that go through the model at once.

        Returns
        -------
        TokenVectors
            The vectors of all tokens, [CLS] and [SEP] among them, before the pooling; for a list of texts, a list of
            these. The attribute ``truncated`` is whether the text was truncated.

        Raises
        ------
        InputError
            A text is not a str, or an argument is wrong.

        Warns
        -----
        TruncationWarning
            Texts were truncated.
        """
        single, items = check_texts(texts)
        batch_size = whole_number("batch_size", batch_size, 1)
        rows = self._tokenize(items, return_offsets=True)
        assert rows.offsets is not None
        vectors = self._token_vectors(rows, batch_size, progress=False)
        warn_truncated(rows.truncated, self.max_seq_length)
        found = []
        for index, x in enumerate(vectors):
            start, end = rows.row_offsets[index : index + 2].tolist()
            offsets = [(first, last) for first, last in rows.offsets[start:end].tolist()]
            tokens = cast("list[str]", self._tokenizer.convert_ids_to_tokens(rows.ids[start:end]))  # every id has one
            found.append(TokenVectors(x, offsets, tokens, bool(rows.truncated[index])))
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
        text
            A text of at most `max_seq_length` tokens, or a list of texts.
        chunks
            The (start, end) of each chunk in the text, in characters; for a list of texts, a list of these. Chunks may
            overlap, be empty and leave gaps.
        prompt_name, prompt
            As for `encode`.
        batch_size
            The most texts that go through the model at once.
        normalize_embeddings, truncate_dim
            As for `encode`.

        Returns
        -------
        ndarray of float32
            The vectors [chunks, d], zeros for a chunk in which no token begins; for a list of texts, a list of these.

        Raises
        ------
        InputError
            The model's pooling is not the mean, a text is too long, or an argument is wrong.
        """
        single, items = check_texts(text)
        spans = check_chunks([chunks] if single else chunks, len(items))
        batch_size = whole_number("batch_size", batch_size, 1)
        if self._folder.pooling.modes != ("mean",):
            modes = ", ".join(self._folder.pooling.modes)
            raise InputError(
                f"late chunking takes the mean of tokens, but this model was trained with the pooling {modes}"
            )
        prefix = self._prompt(prompt, prompt_name)
        tokens = tokens_of_texts(self._tokenizer, items, prefix, self.max_seq_length, self._threads)
        found: dict[int, Array] = {}
        for batch in self._batches(tokens.rows, batch_size, progress=False):
            x, mask = self._token_states(tokens.rows, batch)  # [B, S, H], [B, S]
            for i, index in enumerate(batch.tolist()):
                means = mean_of_chunks(x[i, mask[i]], tokens.starts[index], spans[index])  # [chunks, H]
                found[index] = self._presented(
                    self._after_pooling(means), "float32", truncate_dim, normalized=normalize_embeddings, arrays=True
                )
        return found[0] if single else [found[index] for index in range(len(items))]

    async def aencode(
        self,
        texts: str | Texts,
        prompt_name: str | None = None,
        prompt: str | None = None,
        *,
        batch_size: int = 32,
        output_value: OutputValue = "sentence_embedding",
        precision: str = "float32",
        convert_to_numpy: bool = True,
        convert_to_tensor: bool = False,
        normalize_embeddings: bool = False,
        truncate_dim: int | None = None,
        return_truncated: bool = False,
        windows: Combination | None = None,
        stride: int = 0,
    ) -> Any:
        """Turn texts into vectors without blocking the event loop: `encode` in a thread.

        If the waiting task is cancelled, the model ends after the pass that is running, at most about a second later.

        Parameters
        ----------
        texts, prompt_name, prompt, batch_size, output_value, precision, convert_to_numpy, convert_to_tensor
            As for `encode`.
        normalize_embeddings, truncate_dim, return_truncated, windows, stride
            As for `encode`.

        Returns
        -------
        array or list of arrays
            What `encode` returns.

        Raises
        ------
        InputError
            As for `encode`.

        Warns
        -----
        TruncationWarning
            As for `encode`.
        """

        def encode() -> tuple[Any, Any]:
            return cast(
                "tuple[Any, Any]",
                self.encode(
                    texts,
                    prompt_name,
                    prompt,
                    batch_size,
                    output_value=output_value,
                    precision=precision,
                    convert_to_numpy=convert_to_numpy,
                    convert_to_tensor=convert_to_tensor,
                    normalize_embeddings=normalize_embeddings,
                    truncate_dim=truncate_dim,
                    return_truncated=True,
                    windows=windows,
                    stride=stride,
                ),
            )

        result, truncated = await run_in_thread(encode)
        if return_truncated:
            return result, truncated
        # Here and not in the thread, so that the warning names the line that waits.
        warn_truncated(np.atleast_1d(truncated), self.max_seq_length)
        return result

    def __copy__(self) -> Self:
        copy = object.__new__(type(self))
        copy.__dict__ |= self.__dict__
        return copy

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        # Nothing changes the parts, only `max_seq_length` can be set.
        return self.__copy__()

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        if self._source is None:
            return super().__reduce_ex__(protocol)
        return _restore, (type(self), self._source, self._max_seq_length)

    def __repr__(self) -> str:
        return f"SentenceEncoder(dimension {self.dimension}, at most {self.max_seq_length} tokens, {self._model!r})"

    def _prompt(self, prompt: str | None, name: str | None) -> str:
        """Return the text to put before each text."""
        return prompt_text(prompt, name, self._folder.prompts, self._folder.default_prompt_name)

    def _skipped(self, prompt: str) -> int:
        """Return how many tokens at the start of each row belong to the prompt and so are not pooled."""
        if self._folder.pooling.include_prompt or not prompt:
            return 0
        encoding = self._tokenizer.encode(prompt, truncation=True, max_length=self.max_seq_length, padding=False)
        closing = encoding.special_tokens_mask[-1:]  # [SEP], which in a row follows the text, not the prompt
        return len(encoding.ids) - int(sum(closing))

    def _width(self, truncate_dim: int | None) -> int:
        """Return how many numbers of each vector to keep."""
        width = self._folder.dimension
        if truncate_dim is None:
            return self._folder.truncate_dim or width
        return whole_number("truncate_dim", truncate_dim, 1, width, meaning="the width of a vector")

    def _presented(
        self, vectors: Array, precision: str, truncate_dim: int | None, *, normalized: bool, arrays: bool
    ) -> Any:
        """Convert vectors [n, d] to what the arguments of `encode` ask for: an array, or a list of arrays."""
        check_precision(precision)
        vectors = vectors[:, : self._width(truncate_dim)]
        if normalized:
            vectors = normalize(vectors)
        result = quantize_embeddings(vectors, precision)
        return result if arrays else list(result)

    @staticmethod
    def _check_token_output(
        output_value: object, precision: str, truncate_dim: int | None, *, normalized: bool
    ) -> None:
        """Check the arguments of `encode` for an output of token vectors."""
        if output_value not in ("token_embeddings", None):
            raise InputError(
                f"output_value must be 'sentence_embedding', 'token_embeddings' or None, not {output_value!r}"
            )
        if precision != "float32" or normalized or truncate_dim is not None:
            raise InputError(
                "precision, normalize_embeddings and truncate_dim are for sentence vectors, not token vectors"
            )

    def _rows(self, items: list[str], prefix: str, windows: Combination | None, stride: int) -> RaggedBatch:
        """Tokenize all texts: one row for each, or one for each of its windows."""
        if windows is None:
            return self._tokenize([prefix + item for item in items])
        if windows not in COMBINATIONS:
            raise InputError(f"windows must be None or one of {', '.join(COMBINATIONS)}, not {windows!r}")
        return cut_into_windows(self._tokenizer, items, prefix, self.max_seq_length, stride, self._threads)

    def _combined(self, vectors: Array, rows: RaggedBatch, how: Combination, texts: int) -> Array:
        """Vectors of windows [windows, d] -> vectors of texts [n, d]."""
        assert rows.overflow_to_sample is not None
        combined = combine(vectors, rows.overflow_to_sample, how, texts)
        modules = self._folder.modules
        return normalize(combined) if modules and isinstance(modules[-1], Normalize) else combined

    def _tokenize(self, texts: list[str], *, return_offsets: bool = False) -> RaggedBatch:
        """Tokenize texts, truncated to `max_seq_length`; settings of the tokenizer's file do not apply."""
        rows = self._tokenizer.encode_batch(
            texts,
            return_offsets=return_offsets,
            truncation=True,
            max_length=self.max_seq_length,
            stride=0,
            padding=False,
            threads=self._threads,
        )
        check_tokens(texts, rows.lengths)
        return rows

    def _sentence_vectors(self, rows: RaggedBatch, batch_size: int, skip: int, *, progress: bool) -> Array:
        """Run the model and all modules: a vector for each row, [rows, d]."""
        modes = self._folder.pooling.modes
        vectors = np.zeros((len(rows), self._folder.dimension), np.float32)  # [rows, d]
        if self._folder.layers is not None:
            for batch in self._batches(rows, batch_size, progress=progress):
                x, mask = self._token_states(rows, batch)  # [B, S, H], [B, S]
                y = np.concatenate([self._model.pool(x, mask, mode, skip) for mode in modes], axis=1)
                vectors[batch] = self._after_pooling(y)
            return vectors
        parts: Iterable[slice | npt.NDArray[np.intp]]
        if self._model.takes_rows:
            parts = with_progress(token_runs(rows, TOKENS_PER_CALL), show=progress, lengths=rows.lengths)
        else:
            parts = self._batches(rows, batch_size, progress=progress)
        for part in parts:
            y = self._model.pooled(rows, part, modes, skip, self._threads)  # [B, modes · H]
            vectors[part] = self._after_pooling(y)
        return vectors

    def _token_vectors(self, rows: RaggedBatch, batch_size: int, *, progress: bool) -> list[Array]:
        """Run the model: the vectors of each row's tokens, [tokens, H]."""
        vectors: dict[int, Array] = {}
        for batch in self._batches(rows, batch_size, progress=progress):
            x, mask = self._token_states(rows, batch)  # [B, S, H], [B, S]
            vectors |= {index: x[i, mask[i]] for i, index in enumerate(batch.tolist())}
        return [vectors[index] for index in range(len(rows))]

    def _features(
        self, rows: RaggedBatch, batch_size: int, skip: int, *, progress: bool
    ) -> list[dict[str, npt.NDArray[Any]]]:
        """Return for each row its ids and mask, the vectors of its tokens and that of the text."""
        tokens = self._token_vectors(rows, batch_size, progress=progress)
        vectors = self._sentence_vectors(rows, batch_size, skip, progress=progress)
        return [
            {
                "input_ids": rows[index].astype(np.int64),
                "attention_mask": np.ones(len(rows[index]), np.int64),
                "token_embeddings": tokens[index],
                "sentence_embedding": vectors[index],
            }
            for index in range(len(rows))
        ]

    def _batches(self, rows: RaggedBatch, size: int, *, progress: bool) -> Iterable[npt.NDArray[np.intp]]:
        batches = sorted_batches(rows.lengths, size, bound_padding=True)
        return with_progress(batches, show=progress, lengths=rows.lengths)

    def _token_states(self, rows: RaggedBatch, batch: npt.NDArray[np.intp]) -> tuple[Array, Mask]:
        """Run the model over some rows: the vectors to pool, [B, S, H], and which of them are tokens, [B, S]."""
        ids, mask = pad_rows(rows, batch)  # [B, S]
        layers = self._folder.layers
        if layers is None:
            return self._model(ids, mask, visible_only=True, threads=self._threads).last_hidden_state, mask
        states = self._model(
            ids, mask, output_hidden_states=True, visible_only=True, threads=self._threads
        ).hidden_states
        assert states is not None
        return layers(states), mask

    def _after_pooling(self, y: Array) -> Array:
        """[n, modes · H] -> [n, d]."""
        for module in self._modules:
            y = module(y)
        return y


add_peer_names(SentenceEncoder, INSTEAD_IN_ENCODERS)


def _restore(cls: type[SentenceEncoder], source: Source, max_seq_length: int) -> SentenceEncoder:
    """Load the encoder of a pickle."""
    encoder: SentenceEncoder = load(cls, source)
    encoder.max_seq_length = max_seq_length
    return encoder


def check_pool(pool: object) -> None:
    """Check that a `pool` argument is None: there are no pools of processes."""
    if pool is not None:
        raise InputError(
            "pool must be None: one process uses all CPUs; set their number with threads=... of the encoder"
        )


def with_lowercase(tokenizer: Tokenizer) -> Tokenizer:
    """Put a lower-casing step before the normalizer, unless it has one; special tokens keep their case."""
    if isinstance(tokenizer, SubwordTokenizer):
        return cast("Tokenizer", tokenizer.lowercased())
    core = tokenizer._inner
    lowered = core.with_lowercase()
    return tokenizer if lowered.pipeline == core.pipeline else tokenizer._build(lowered, tokenizer._settings)
