"""`M3Encoder`: dense, sparse and multi-vector outputs of BGE-M3 in one pass of its encoder."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wordpiece_bert._internal.batching import with_progress
from wordpiece_bert._internal.checks import check_device, whole_number
from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert._internal.texts import check_texts, warn_truncated
from wordpiece_bert.bert.auto import load_base
from wordpiece_bert.bert.engines import get_engine
from wordpiece_bert.bert.functional import normalize
from wordpiece_bert.bert.loading import Loading
from wordpiece_bert.bert.parameters import LOADING
from wordpiece_bert.errors import InputError
from wordpiece_bert.sentence.base import Encoder, FromPretrained, engine_options
from wordpiece_bert.sentence.m3.heads import greatest_weights, read_heads
from wordpiece_bert.sentence.multi_vector.late_interaction import maxsim_pairwise
from wordpiece_bert.sentence.multi_vector.vectors import MultiVectors
from wordpiece_bert.sentence.parameters import ENCODING
from wordpiece_bert.sentence.rows import model_tokenizer, order_of, passes, rows_of
from wordpiece_bert.sentence.source import Source
from wordpiece_bert.sentence.sparse.vectors import SparseVectors, joined, sparse_pairwise_similarity

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping, Sequence

    from wordpiece_bert.bert.engines import EngineInfo
    from wordpiece_bert.bert.functional import Array
    from wordpiece_bert.sentence.arguments import Texts
    from wordpiece_bert.subword import AnyTokenizer

__all__ = ["M3Encoder", "M3Vectors"]

#: The most tokens of a pass.
_TOKENS_PER_CALL = 16_384

#: Tokens that have no weight in sparse vectors.
_UNWEIGHED = ("<s>", "</s>", "<pad>", "<unk>")


class M3Vectors(NamedTuple):
    """The outputs of `M3Encoder.encode`: of n texts, or of one.

    Attributes
    ----------
    dense : ndarray
        Vectors of length 1, float32 [n, d], or [d] for one text.
    sparse : SparseVectors
        The weights of the tokens that a text has, [n, V], or [V].
    colbert : MultiVectors or ndarray
        The vectors of the tokens of each text but the first, of length 1: a sequence of arrays [tokens, c], or one.
    """

    dense: Array
    sparse: SparseVectors
    colbert: MultiVectors | Array


@dataclass(frozen=True)
class _Folder:
    """The settings that all encoders have: BGE-M3 has no prompts."""

    prompts: Mapping[str, str] = field(default_factory=dict)
    default_prompt_name: str | None = None


@completed_by(LOADING)
class M3Encoder(Encoder):
    """BGE-M3: one pass of an encoder gives a dense vector, weights of tokens and a vector for each token.

    The vectors are those of FlagEmbedding; a score does not depend on what else is scored. `SentenceEncoder` loads the
    same folder for dense vectors alone. Threads may share an encoder. A copy is the object itself, and its pickle has
    the path of its folder instead of the weights.

    Parameters
    ----------
    model : str or os.PathLike
        A folder, or ``"org/name"`` in the local Hugging Face cache, with ``sparse_linear.pt`` and
        ``colbert_linear.pt``.
    max_seq_length : int, optional
        The longest row in tokens; by default that of the tokenizer and the model.

    Raises
    ------
    ModelNotFoundError, ConfigError, CheckpointError, TokenizerFormatError
        As for `BertModel` and `Tokenizer`; a ModelNotFoundError also if one of the two files is missing.
    InputError
        The device is not the CPU, or an argument is wrong.
    """

    def __init__(
        self,
        model: str | os.PathLike[str],
        backend: str = "rust",
        dtype: str = "float32",
        *,
        max_seq_length: int | None = None,
        device: str | None = None,
        threads: int | None = None,
        revision: str | None = None,
        download: bool = False,
        keep_half: bool = False,
        calibrate: Sequence[str] | None = None,
    ) -> None:
        loading = Loading(backend, dtype, revision, download, keep_half, calibrate=calibrate)
        check_device(device)
        folder = loading.find(model)
        self._folder = _Folder()
        self._threads = threads
        self._model = load_base(folder, loading)
        engine = get_engine(self._model.backend, self._model.dtype)
        self._heads = read_heads(folder, self._model.config.hidden_size, engine.linear)
        self._tokenizer = model_tokenizer(folder, lowercase=False)
        limit = self._tokenizer.model_max_length
        longest = self._model.config.usual_longest_row if limit is None else limit
        longest = min(longest, self._model.config.longest_row)
        self._longest = longest
        if max_seq_length is not None:
            least = self._tokenizer.num_special_tokens_to_add() + 1
            most = self._model.config.longest_row
            self._longest = whole_number("max_seq_length", max_seq_length, least, most, meaning="the longest row")
        found = (self._tokenizer.token_to_id(token) for token in _UNWEIGHED)
        self._left_out = np.array([index for index in found if index is not None], np.int64)
        options = engine_options(loading) | {"max_seq_length": max_seq_length, "threads": threads}
        self._source = Source.of(model, folder, revision, **options)

    from_pretrained = FromPretrained(__init__)

    @property
    def dimension(self) -> int:
        """Width of the dense vectors."""
        return self._model.config.hidden_size

    @property
    def vocabulary_size(self) -> int:
        """Width of the sparse vectors, the entries of the vocabulary."""
        return self._model.config.vocab_size

    @property
    def token_dimension(self) -> int:
        """Width of the vectors of tokens."""
        return len(self._heads.vectors[0])

    @property
    def engine(self) -> EngineInfo:
        """How the encoder computes on this machine."""
        return self._model.engine.with_threads(self._threads)

    @property
    def tokenizer(self) -> AnyTokenizer:
        """The tokenizer."""
        return self._tokenizer

    @property
    def max_seq_length(self) -> int:
        """The longest row in tokens."""
        return self._longest

    @completed_by(ENCODING)
    def encode(
        self,
        texts: str | Texts,
        batch_size: int = 32,
        show_progress_bar: bool | None = None,
        *,
        return_truncated: bool = False,
    ) -> Any:
        """Turn texts into dense, sparse and multi-vector outputs.

        Returns
        -------
        M3Vectors
            ``dense``, ``sparse`` and ``colbert`` in the order of the texts, or those of a single text.
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
        size = whole_number("batch_size", batch_size, 1)
        rows = rows_of(self._tokenizer, items, self._longest, self._threads)
        parts = passes(self._model, rows, size, _TOKENS_PER_CALL)
        found = []
        for part in with_progress(parts, show=bool(show_progress_bar), lengths=rows.lengths):
            x, ends = self._model.token_states(rows, part, threads=self._threads)  # [tokens, H], [B + 1]
            numbers = np.arange(part.start, part.stop) if isinstance(part, slice) else part
            ids = np.concatenate([rows.ids[rows.row_offsets[i] : rows.row_offsets[i + 1]] for i in numbers])
            found.append(self._outputs(x, ends, ids))
        vectors = self._joined(found, order_of(parts))
        if single:
            vectors = M3Vectors(vectors.dense[0], vectors.sparse[0], vectors.colbert[0])
        if not return_truncated:
            warn_truncated(rows.truncated, self._longest)
            return vectors
        return vectors, bool(rows.truncated[0]) if single else rows.truncated

    def _outputs(self, x: Array, ends: Any, ids: Any) -> M3Vectors:
        """Return the outputs of rows whose last hidden states are x [tokens, H]."""
        width = self._model.config.vocab_size
        cells = greatest_weights(ids, self._heads.token_weights(x), ends, self._left_out, width)
        sparse = SparseVectors(*cells, (len(ends) - 1, width))
        later = np.ones(len(x), bool)
        later[ends[:-1]] = False
        colbert = MultiVectors(self._heads.token_vectors(x[later]), ends - np.arange(len(ends)))
        return M3Vectors(normalize(x[ends[:-1]]), sparse, colbert)

    def _joined(self, found: list[M3Vectors], order: Any) -> M3Vectors:
        """Return the outputs of all passes in the order of the texts."""
        sparse = joined([one.sparse for one in found], self._model.config.vocab_size)
        if not found:
            width = self.token_dimension
            empty = MultiVectors(np.zeros((0, width), np.float32), [0])
            return M3Vectors(np.zeros((0, self.dimension), np.float32), sparse, empty)
        dense = np.concatenate([one.dense for one in found])
        colbert = MultiVectors.from_list([vectors for one in found for vectors in one.colbert])
        if order is None:
            return M3Vectors(dense, sparse, colbert)
        return M3Vectors(dense[order], sparse[order], colbert[order])

    @completed_by(ENCODING)
    def score(
        self,
        pairs: Iterable[tuple[str, str]],
        weights: tuple[float, float, float] = (1.0, 1.0, 1.0),
        *,
        batch_size: int = 32,
        show_progress_bar: bool | None = None,
    ) -> dict[str, Array]:
        """Score pairs of a query and a passage in all ways; each text goes through the model once.

        Parameters
        ----------
        pairs : iterable of (str, str)
            The pairs.
        weights : (float, float, float), default (1, 1, 1)
            What the dense, the sparse and the multi-vector score count in their means.

        Returns
        -------
        dict of str to ndarray
            float32 [pairs]: ``"dense"``, the cosine; ``"sparse"``, the sum of the products of the weights of common
            tokens; ``"colbert"``, the mean over the vectors of the query of the greatest product with one of the
            passage; and the weighted means ``"sparse+dense"`` and ``"colbert+sparse+dense"``.

        Raises
        ------
        InputError
            A pair is not two texts (the message has its index), or the weights are not three numbers of at least 0
            whose first two do not sum to 0.
        """
        first, second, third = _checked_weights(weights)
        listed = _checked_pairs(pairs)
        texts = list(dict.fromkeys(text for pair in listed for text in pair))
        vectors = self.encode(texts, batch_size, show_progress_bar)
        number = {text: index for index, text in enumerate(texts)}
        a, b = (np.array([number[pair[side]] for pair in listed], np.int64) for side in (0, 1))
        dense = np.einsum("ij,ij->i", vectors.dense[a], vectors.dense[b])
        sparse = sparse_pairwise_similarity(vectors.sparse[a], vectors.sparse[b], "dot")
        queries = vectors.colbert[a]
        colbert = maxsim_pairwise(queries, vectors.colbert[b], threads=self._threads) / queries.lengths
        both = first * dense + second * sparse
        scores = {
            "dense": dense,
            "sparse": sparse,
            "colbert": colbert,
            "sparse+dense": both / (first + second),
            "colbert+sparse+dense": (both + third * colbert) / (first + second + third),
        }
        return {name: np.asarray(score, np.float32) for name, score in scores.items()}

    def __repr__(self) -> str:
        return f"M3Encoder({self._model!r})"


def _checked_weights(weights: Any) -> tuple[float, float, float]:
    numbers = np.asarray(weights, dtype=object).reshape(-1).tolist()
    real = all(isinstance(x, int | float | np.number) and not isinstance(x, bool) for x in numbers)
    if len(numbers) != 3 or not real or not all(0 <= x < np.inf for x in numbers) or numbers[0] + numbers[1] == 0:
        raise InputError(
            "weights must be three finite numbers of at least 0, of dense, sparse and multi-vector scores, and the "
            f"first two not both 0; not {weights!r}"
        )
    return float(numbers[0]), float(numbers[1]), float(numbers[2])


def _checked_pairs(pairs: Any) -> list[tuple[str, str]]:
    if isinstance(pairs, str) or not hasattr(pairs, "__iter__"):
        raise InputError(f"pairs must be a list of (query, passage), not {type(pairs).__name__}")
    listed = list(pairs)
    for index, pair in enumerate(listed):
        if isinstance(pair, str) or not hasattr(pair, "__len__") or len(pair) != 2:
            raise InputError(f"pairs[{index}] must be a query and a passage, not {pair!r:.80}")
        if not all(isinstance(text, str) for text in pair):
            raise InputError(f"pairs[{index}] must be two texts, not {pair!r:.80}")
    return [(pair[0], pair[1]) for pair in listed]
