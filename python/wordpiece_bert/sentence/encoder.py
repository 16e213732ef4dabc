"""`SentenceEncoder`: from texts to sentence vectors."""

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

#: The most tokens of one call of the Rust engine: up to a second of work, the longest until Ctrl-C has an effect.
TOKENS_PER_CALL = 16_384

OutputValue = Literal["sentence_embedding", "token_embeddings"]
Vectors = npt.NDArray[Any]
#: An iterable of texts, or a column of them.
Texts = Union["Iterable[str]", "ArrowArray", "ArrowStream"]

# The prompt that encode_document uses is the first of these that the model has.
_DOCUMENT_PROMPTS = ("document", "passage", "corpus")


@dataclass(frozen=True, eq=False)
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


class SentenceEncoder:
    """A sentence encoder: a tokenizer, a BERT model, a pooling, and the modules after it.

    Use `SentenceEncoder.from_pretrained` to load one. Threads may share it.

    Parameters
    ----------
    model, tokenizer
        The Transformer and its tokenizer.
    folder
        How token vectors become sentence vectors, and the defaults of `encode`.
    threads
        How many threads the tokenizer and the Rust engine use; by default as many as this process may use. The NumPy
        engine uses the threads of its BLAS library.

    Raises
    ------
    ConfigError
        The tokenizer marks single texts with another token type than 0, which the pooling of rows does not support.
    """

    def __init__(
        self, model: BertModel, tokenizer: Tokenizer, folder: SentenceFolder, *, threads: int | None = None
    ) -> None:
        if any(tokenizer.encode("a", truncation=False, padding=False).token_type_ids):
            message = f"{folder.transformer}: the tokenizer assigns a token type other than 0 to a single text"
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
            sentence-transformers, or a plain BERT model, whose token vectors are then averaged.
        backend, dtype, revision, keep_half
            As for `BertModel.from_pretrained`.
        threads
            As for the class.

        Raises
        ------
        ModelNotFoundError, ConfigError, CheckpointError, TokenizerFormatError
            As for `BertModel` and `Tokenizer`; a ConfigError also for modules that are not supported.
        """
        folder = read_folder(find_model(name, revision=revision))
        model = AutoModel.base_from_pretrained(folder.transformer, backend, dtype, keep_half=keep_half)
        return cls(model, Tokenizer.from_pretrained(folder.transformer), folder, threads=threads)

    @property
    def dimension(self) -> int:
        """Width of the vectors that `encode` returns by default."""
        return self._folder.truncate_dim or self._folder.dimension

    @property
    def max_seq_length(self) -> int:
        """The longest row in tokens, including [CLS] and [SEP]; longer texts are truncated. It may be set."""
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
        """The metric that the model was trained for: cosine, dot, euclidean or manhattan."""
        return self._folder.similarity

    def similarity(self, a: npt.ArrayLike, b: npt.ArrayLike) -> Array:
        """Compare every vector of `a` with every vector of `b`, [n, d] and [m, d] -> float32 [n, m].

        The metric is `similarity_fn_name`.
        """
        return similarity(a, b, self.similarity_fn_name)

    def similarity_pairwise(self, a: npt.ArrayLike, b: npt.ArrayLike) -> Array:
        """Compare the vectors of `a` and `b` pair by pair, [n, d] and [n, d] -> float32 [n].

        The metric is `similarity_fn_name`.
        """
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
            A text, a list or another iterable of texts, an array, or an Arrow column.
        prompt_name
            The name of the model's prompt to put before each text; by default the model's default prompt, if any.
        prompt
            The prompt itself; `prompt_name` is then ignored.
        batch_size
            The most texts that go through the NumPy engine at once, sorted by length to reduce padding. The Rust engine
            ignores it for sentence vectors: it runs texts without padding, in bounded memory.
        show_progress_bar
            Whether to show a progress bar, which needs tqdm.
        output_value
            ``"sentence_embedding"``, or ``"token_embeddings"`` for the vectors of all tokens, before the pooling.
        precision
            ``"float32"``, or ``"int8"``, ``"uint8"``, ``"binary"``, ``"ubinary"`` as in `quantize_embeddings`; the
            8-bit ranges are those of the returned vectors.
        normalize_embeddings
            Whether to scale the vectors to length 1, after `truncate_dim`.
        truncate_dim
            How many of the first numbers of each vector to keep; by default the model's setting, or all.
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
        single, items = check_texts(texts)
        batch_size = whole_number("batch_size", batch_size, 1)
        prefix = self._prompt(prompt, prompt_name)
        rows = self._rows(items, prefix, windows, stride)
        result: Vectors | list[Array]
        if output_value == "token_embeddings":
            if precision != "float32" or normalize_embeddings or truncate_dim is not None:
                message = "precision, normalize_embeddings and truncate_dim are for sentence vectors, not token vectors"
                raise InputError(message)
            if windows is not None:
                message = "windows are for sentence vectors; token vectors cannot be combined"
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

    def encode_query(
        self,
        texts: str | Texts,
        prompt_name: str | None = None,
        prompt: str | None = None,
        **options: Any,  # noqa: ANN401
    ) -> Any:  # noqa: ANN401
        """Turn queries into vectors: `encode`, by default with the model's prompt ``query``."""
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
        """Turn documents into vectors: `encode`, by default with the model's prompt ``document``."""
        if prompt is None and prompt_name is None:
            prompt_name = next((name for name in _DOCUMENT_PROMPTS if name in self._folder.prompts), None)
        return self.encode(texts, prompt_name, prompt, **options)

    def __repr__(self) -> str:
        return f"SentenceEncoder(dimension {self.dimension}, at most {self.max_seq_length} tokens, {self._model!r})"

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

    def _rows(self, items: list[str], prefix: str, windows: Combination | None, stride: int) -> RaggedBatch:
        """Tokenize all texts: one row for each, or one for each of its windows."""
        if windows is None:
            return self._tokenize([prefix + item for item in items])
        if windows not in COMBINATIONS:
            message = f"windows must be None or one of {', '.join(COMBINATIONS)}, not {windows!r}"
            raise InputError(message)
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
