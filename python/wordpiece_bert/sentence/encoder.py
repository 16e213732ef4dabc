"""Texts -> sentence vectors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Union, cast, overload

import numpy as np
import numpy.typing as npt

from wordpiece_bert._internal.batching import pad_rows, sorted_batches, token_runs, with_progress
from wordpiece_bert._internal.checks import whole_number
from wordpiece_bert._internal.texts import check_texts, check_tokens, warn_truncated
from wordpiece_bert.bert.auto import AutoModel
from wordpiece_bert.bert.engines import get_engine
from wordpiece_bert.bert.functional import Array, Mask, normalize
from wordpiece_bert.errors import ConfigError, InputError
from wordpiece_bert.hub import find_model
from wordpiece_bert.sentence.folder import Dense, Normalize, SentenceFolder, read_folder
from wordpiece_bert.sentence.metrics import pairwise_similarity, similarity
from wordpiece_bert.sentence.quantization import check_precision, quantize_embeddings
from wordpiece_bert.sentence.windows import COMBINATIONS, Combination, combine, cut_into_windows
from wordpiece_bert.tokenizer import Tokenizer

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable

    from wordpiece_bert.arrow import ArrowArray, ArrowStream
    from wordpiece_bert.bert.model import BertModel
    from wordpiece_bert.tokenizer import RaggedBatch

__all__ = ["SentenceEncoder", "TokenVectors"]

#: Tokens that go through the model in one call: about a second of work, after which Ctrl-C is heard.
TOKENS_PER_CALL = 16_384

OutputValue = Literal["sentence_embedding", "token_embeddings"]
Vectors = npt.NDArray[Any]
#: An iterable of texts, or a column of them.
Texts = Union["Iterable[str]", "ArrowArray", "ArrowStream"]

# The prompt that encode_document uses is the first of these that the model has.
_DOCUMENT_PROMPTS = ("document", "passage", "corpus")


@dataclass(frozen=True, eq=False)
class TokenVectors:
    """The vectors of one text's tokens."""

    #: float32 [tokens, H].
    vectors: Array
    #: Where each token stands in the text: characters (start, end); (0, 0) for special tokens.
    offsets: list[tuple[int, int]]
    tokens: list[str]
    #: Whether the text was cut.
    truncated: bool


class SentenceEncoder:
    """A sentence encoder: tokenizer, BERT, pooling, and what follows it.

    Threads may share it. `SentenceEncoder.from_pretrained` makes one.

    Parameters
    ----------
    model, tokenizer
        The Transformer and its tokenizer.
    folder
        How token vectors become sentence vectors, and the defaults of `encode`.
    threads
        How many threads the tokenizer and the engine use; by default what this process may. Those of the NumPy engine
        are its BLAS library's affair.
    """

    def __init__(
        self, model: BertModel, tokenizer: Tokenizer, folder: SentenceFolder, *, threads: int | None = None
    ) -> None:
        if any(tokenizer.encode("a", truncation=False, padding=False).token_type_ids):
            message = f"{folder.transformer}: the tokenizer gives a single text another token type than 0"
            raise ConfigError(message)
        self._model = model
        self._tokenizer = _with_lowercase(tokenizer) if folder.do_lower_case else tokenizer
        self._folder = folder
        self._threads = threads
        self._max_seq_length = folder.max_seq_length
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
        keep_half: bool = False,
    ) -> SentenceEncoder:
        """Load a sentence encoder from this machine.

        Parameters
        ----------
        name
            ``"minilm"``, a folder, or ``"org/name"`` in the local Hugging Face cache: in the layout of
            sentence-transformers, or a plain BERT, whose token vectors are then averaged.
        backend, dtype
            The engine, as for `BertModel`.
        threads
            As for the class.
        revision
            Of a model in the Hugging Face cache.
        keep_half
            Whether weights that are stored in 16 bits stay so in memory, as for `BertModel`.

        Raises
        ------
        ModelNotFoundError, ConfigError, CheckpointError, TokenizerFormatError
            As for `BertModel` and `Tokenizer`; also for modules which are not supported.
        """
        folder = read_folder(find_model(name, revision=revision))
        model = AutoModel.base_from_pretrained(folder.transformer, backend, dtype, keep_half=keep_half)
        return cls(model, Tokenizer.from_pretrained(folder.transformer), folder, threads=threads)

    @property
    def dimension(self) -> int:
        """Width of the vectors that `encode` gives by default."""
        return self._folder.truncate_dim or self._folder.dimension

    @property
    def max_seq_length(self) -> int:
        """Longest row in tokens, [CLS] and [SEP] included; longer texts are cut. It may be set."""
        return self._max_seq_length

    @max_seq_length.setter
    def max_seq_length(self, value: int) -> None:
        limit = self._model.config.longest_row
        self._max_seq_length = whole_number("max_seq_length", value, 1, limit, meaning="the model's longest row")

    @property
    def prompts(self) -> dict[str, str]:
        """The model's prompts by name."""
        return dict(self._folder.prompts)

    @property
    def similarity_fn_name(self) -> str:
        """The measure that the model was made for: cosine, dot, euclidean or manhattan."""
        return self._folder.similarity

    def similarity(self, a: npt.ArrayLike, b: npt.ArrayLike) -> Array:
        """Compare all vectors of `a` with all of `b` by the model's measure, [n, d] and [m, d] -> float32 [n, m]."""
        return similarity(a, b, self.similarity_fn_name)

    def similarity_pairwise(self, a: npt.ArrayLike, b: npt.ArrayLike) -> Array:
        """Compare the vectors of `a` and `b` pair by pair, [n, d] and [n, d] -> float32 [n]."""
        return pairwise_similarity(a, b, self.similarity_fn_name)

    @overload
    def encode(
        self,
        texts: str | Texts,
        prompt_name: str | None = None,
        prompt: str | None = None,
        batch_size: int = 32,
        *,
        show_progress_bar: bool | None = None,
        output_value: Literal["sentence_embedding"] = "sentence_embedding",
        precision: str = "float32",
        normalize_embeddings: bool = False,
        truncate_dim: int | None = None,
        return_truncated: Literal[False] = False,
        windows: Combination | None = None,
        stride: int = 0,
    ) -> Vectors: ...

    @overload
    def encode(
        self,
        texts: str | Texts,
        prompt_name: str | None = None,
        prompt: str | None = None,
        batch_size: int = 32,
        *,
        show_progress_bar: bool | None = None,
        output_value: Literal["sentence_embedding"] = "sentence_embedding",
        precision: str = "float32",
        normalize_embeddings: bool = False,
        truncate_dim: int | None = None,
        return_truncated: Literal[True],
        windows: Combination | None = None,
        stride: int = 0,
    ) -> tuple[Vectors, Mask]: ...

    @overload
    def encode(
        self,
        texts: str | Texts,
        prompt_name: str | None = None,
        prompt: str | None = None,
        batch_size: int = 32,
        *,
        show_progress_bar: bool | None = None,
        output_value: OutputValue,
        precision: str = "float32",
        normalize_embeddings: bool = False,
        truncate_dim: int | None = None,
        return_truncated: bool = False,
        windows: Combination | None = None,
        stride: int = 0,
    ) -> Any: ...  # noqa: ANN401

    def encode(
        self,
        texts: str | Texts,
        prompt_name: str | None = None,
        prompt: str | None = None,
        batch_size: int = 32,
        *,
        show_progress_bar: bool | None = None,
        output_value: OutputValue = "sentence_embedding",
        precision: str = "float32",
        normalize_embeddings: bool = False,
        truncate_dim: int | None = None,
        return_truncated: bool = False,
        windows: Combination | None = None,
        stride: int = 0,
    ) -> Any:
        """Turn texts into vectors.

        Parameters
        ----------
        texts
            Texts (a list or another iterable, an array, a column of Arrow), or one text.
        prompt_name
            A prompt of the model to put before each text; by default the model's own default, if it has one.
        prompt
            The prompt itself; `prompt_name` is then not looked at.
        batch_size
            How many texts go through the NumPy engine at once. They are sorted by length first, so little is padding.
            The Rust engine needs neither: it takes texts in any order, and what it needs of memory does not depend on
            their number.
        show_progress_bar
            Whether to show a bar; it needs tqdm.
        output_value
            ``"sentence_embedding"``, or ``"token_embeddings"`` for the vectors of all tokens, before the pooling.
        precision
            ``"float32"``, or ``"int8"``, ``"uint8"``, ``"binary"``, ``"ubinary"`` as in `quantize_embeddings`, where
            the 8-bit ranges are those of these very vectors.
        normalize_embeddings
            Whether to scale the vectors to length 1, after `truncate_dim`.
        truncate_dim
            How many of the first numbers of each vector to keep; by default the model's setting, or all.
        return_truncated
            Whether to return also which texts were cut at `max_seq_length`.
        windows
            What to do with texts that are too long. None cuts them; ``"mean"`` and ``"max"`` cut them into windows,
            each with the prompt before it, and combine the windows' vectors, number by number. Where the model
            normalizes, the result is normalized again. Nothing is then cut.
        stride
            How many tokens a window shares with the one before.

        Returns
        -------
        array or list of arrays
            float32 [n, d] in the order of the texts, [d] for one text, [0, d] for none; another dtype and width if
            `precision` says so. For token embeddings a list of float32 [tokens, H], or one such array.
        array
            With `return_truncated` only: bool [n], or one bool for one text.

        Raises
        ------
        InputError
            A text is no str (the message has its index), or an option is not known.

        Warns
        -----
        TruncationWarning
            Texts were cut, and `return_truncated` was not asked for: how many, and the index of the first.
        """
        single, items = check_texts(texts)
        batch_size = whole_number("batch_size", batch_size, 1)
        prefix = self._prompt(prompt, prompt_name)
        rows = self._rows(items, prefix, windows, stride)
        result: Vectors | list[Array]
        if output_value == "token_embeddings":
            if precision != "float32" or normalize_embeddings or truncate_dim is not None:
                message = "precision, normalize_embeddings and truncate_dim are for sentence vectors, not for tokens'"
                raise InputError(message)
            if windows is not None:
                message = "windows are for sentence vectors; those of tokens cannot be combined"
                raise InputError(message)
            result = self._token_vectors(rows, batch_size, progress=bool(show_progress_bar))
        elif output_value == "sentence_embedding":
            check_precision(precision)
            width = self._width(truncate_dim)
            vectors = self._sentence_vectors(rows, batch_size, self._skipped(prefix), progress=bool(show_progress_bar))
            if windows is not None:
                vectors = self._combined(vectors, rows, windows, len(items))
            vectors = vectors[:, :width]
            if normalize_embeddings:
                vectors = normalize(vectors)
            result = quantize_embeddings(vectors, precision)
        else:
            message = f"output_value must be 'sentence_embedding' or 'token_embeddings', not {output_value!r}"
            raise InputError(message)

        if not return_truncated:
            warn_truncated(rows.truncated, self.max_seq_length)
            return result[0] if single else result
        return (result[0], bool(rows.truncated[0])) if single else (result, rows.truncated)

    def encode_tokens(self, texts: str | Texts, *, batch_size: int = 32) -> Any:  # noqa: ANN401
        """Turn the tokens of texts into vectors, with their places in the texts; no prompt is put before them.

        Parameters
        ----------
        texts
            Texts, or one text.
        batch_size
            As for `encode`.

        Returns
        -------
        TokenVectors
            The vectors of all tokens, [CLS] and [SEP] included, before the pooling; a list of these for a list of
            texts. Its ``truncated`` tells whether the text was cut.
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

    def encode_query(
        self,
        texts: str | Texts,
        prompt_name: str | None = None,
        prompt: str | None = None,
        **options: Any,  # noqa: ANN401
    ) -> Any:  # noqa: ANN401
        """Turn queries into vectors: `encode` with the model's prompt ``query``, unless another is given."""
        if prompt is None and prompt_name is None and "query" in self._folder.prompts:
            prompt_name = "query"
        return self.encode(texts, prompt_name, prompt, **options)

    def encode_document(
        self,
        texts: str | Texts,
        prompt_name: str | None = None,
        prompt: str | None = None,
        **options: Any,  # noqa: ANN401
    ) -> Any:  # noqa: ANN401
        """Turn documents into vectors: `encode` with the model's prompt ``document``, unless another is given."""
        if prompt is None and prompt_name is None:
            prompt_name = next((name for name in _DOCUMENT_PROMPTS if name in self._folder.prompts), None)
        return self.encode(texts, prompt_name, prompt, **options)

    def __repr__(self) -> str:
        return (
            f"SentenceEncoder({self.dimension} numbers a text, {self.max_seq_length} tokens at most, {self._model!r})"
        )

    def _prompt(self, prompt: str | None, name: str | None) -> str:
        """Return the text to put before each text."""
        if prompt is not None:
            if not isinstance(prompt, str):
                message = f"prompt must be a str, not {type(prompt).__name__}: {prompt!r}"
                raise InputError(message)
            return prompt
        name = self._folder.default_prompt_name if name is None else name
        if name is None:
            return ""
        if name not in self._folder.prompts:
            message = f"the model has no prompt {name!r}; its prompts are {list(self._folder.prompts) or 'none'}"
            raise InputError(message)
        return self._folder.prompts[name]

    def _skipped(self, prompt: str) -> int:
        """Return how many tokens at the start of each row belong to the prompt and are not pooled."""
        if self._folder.pooling.include_prompt or not prompt:
            return 0
        encoding = self._tokenizer.encode(prompt, truncation=True, max_length=self.max_seq_length, padding=False)
        closing = encoding.special_tokens_mask[-1:]  # the [SEP] that ends the prompt alone does not follow it in a row
        return len(encoding.ids) - int(sum(closing))

    def _width(self, truncate_dim: int | None) -> int:
        width = self._folder.dimension
        if truncate_dim is None:
            return self._folder.truncate_dim or width
        return whole_number("truncate_dim", truncate_dim, 1, width, meaning="the width of a vector")

    def _rows(self, items: list[str], prefix: str, windows: Combination | None, stride: int) -> RaggedBatch:
        """Tokenize all texts, each a row, or as many rows as it has windows."""
        if windows is None:
            return self._tokenize([prefix + item for item in items])
        if windows not in COMBINATIONS:
            message = f"windows must be None or one of {', '.join(COMBINATIONS)}, not {windows!r}"
            raise InputError(message)
        return cut_into_windows(self._tokenizer, items, prefix, self.max_seq_length, stride, self._threads)

    def _combined(self, vectors: Array, rows: RaggedBatch, how: Combination, texts: int) -> Array:
        """One vector a window [windows, d] -> one a text [n, d]."""
        assert rows.overflow_to_sample is not None
        combined = combine(vectors, rows.overflow_to_sample, how, texts)
        modules = self._folder.modules
        return normalize(combined) if modules and isinstance(modules[-1], Normalize) else combined

    def _tokenize(self, texts: list[str], *, return_offsets: bool = False) -> RaggedBatch:
        """Tokenize texts, cut at `max_seq_length`; truncation and padding of the tokenizer's file do not apply."""
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
            parts = with_progress(token_runs(rows, TOKENS_PER_CALL), show=progress)
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

    def _batches(self, rows: RaggedBatch, size: int, *, progress: bool) -> Iterable[npt.NDArray[np.intp]]:
        return with_progress(sorted_batches(rows.lengths, size, bound_padding=True), show=progress)

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


def _with_lowercase(tokenizer: Tokenizer) -> Tokenizer:
    """Put a lower-casing step before the normalizer, unless it has one; special tokens keep their case."""
    core = tokenizer._inner
    lowered = core.with_lowercase()
    return tokenizer if lowered.pipeline == core.pipeline else Tokenizer._from_core(lowered)
