"""`M3Encoder`: dense, sparse and multi-vector outputs of BGE-M3 in one pass of its encoder."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from wordpiece_bert._internal.answers import Answer, SearchResults
from wordpiece_bert._internal.atomic_folder import written_folder
from wordpiece_bert._internal.checks import (
    check_device,
    check_flags,
    checked_flag,
    iterates,
    shows_progress,
    whole_number,
)
from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert._internal.parts import write_files
from wordpiece_bert._internal.texts import check_texts, warn_truncated
from wordpiece_bert.bert.auto import load_base
from wordpiece_bert.bert.engines import get_engine
from wordpiece_bert.bert.functional import normalize
from wordpiece_bert.bert.loading import Loading
from wordpiece_bert.bert.parameters import LOADING
from wordpiece_bert.errors import InputError
from wordpiece_bert.sentence.encoder_base import Encoder, FromPretrained, engine_options
from wordpiece_bert.sentence.folders.modules import Normalize, Pooling, SentenceFolder
from wordpiece_bert.sentence.folders.save import write_modules
from wordpiece_bert.sentence.m3.heads import SPARSE_FILE, VECTORS_FILE, greatest_weights, read_heads, write_heads
from wordpiece_bert.sentence.m3.m3_vectors import M3Rows, M3Vectors, rows_of_vectors
from wordpiece_bert.sentence.m3.scoring import Hits, best_documents, checked_weights, scores_of_pairs
from wordpiece_bert.sentence.multi_vector.multi_vectors import MultiVectors
from wordpiece_bert.sentence.parameters import ENCODING
from wordpiece_bert.sentence.rows import model_tokenizer, passes, rows_of
from wordpiece_bert.sentence.source import Source
from wordpiece_bert.sentence.sparse.sparse_vectors import SparseVectors, joined
from wordpiece_bert.tokenizer.parameters import SPLITTING
from wordpiece_bert.tokenizer.tokenizer import Tokenizer

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping, Sequence

    import numpy.typing as npt

    from wordpiece_bert.bert.engines import EngineInfo
    from wordpiece_bert.bert.functional import Array
    from wordpiece_bert.sentence.arguments import Texts
    from wordpiece_bert.tokenizer.subword import AnyTokenizer
    from wordpiece_bert.tokenizer.word_splitter import WordSplitter

#: The most tokens of a pass.
_TOKENS_PER_CALL = 16_384

#: Tokens of the tokenizer of XLM-RoBERTa that have no weight in sparse vectors.
_UNWEIGHED = ("<s>", "</s>", "<pad>", "<unk>")


@dataclass(frozen=True)
class _Folder:
    """The settings that all encoders have: BGE-M3 has no prompts."""

    prompts: Mapping[str, str] = field(default_factory=dict)
    default_prompt_name: str | None = None


@completed_by(LOADING, SPLITTING)
class M3Encoder(Encoder):
    """BGE-M3: one pass of an encoder gives a dense vector, weights of tokens and a vector for each token.

    The vectors equal FlagEmbedding's; a score does not depend on what else is scored. `SentenceEncoder` loads the
    same folder for dense vectors alone. Threads may share an encoder. A copy is the object itself, and its pickle has
    the path of its folder instead of the weights.

    Parameters
    ----------
    model : str or os.PathLike
        A folder, or ``"org/name"`` in the local Hugging Face cache, with ``sparse_linear.pt`` and
        ``colbert_linear.pt``.
    max_seq_length : int, optional
        The longest row in tokens; by default the limit of the tokenizer and the model.

    Raises
    ------
    ModelNotFoundError, ConfigError, CheckpointError, TokenizerFormatError
        As for `BertModel` and `Tokenizer`; a ModelNotFoundError also if one of the two files is missing.
    InputError
        The device is not the CPU, or an argument is wrong.

    Examples
    --------
    >>> from wordpiece_bert.sentence import M3Encoder
    >>> encoder = M3Encoder("models/m3")
    >>> hits = encoder.search("bread dough", ["a bicycle wheel", "bread and flour"])
    >>> [hit["corpus_id"] for hit in hits]
    [1, 0]
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
        calibrate: Sequence[str] | None = None,
        instructions: str | None = None,
        word_splitter: WordSplitter | None = None,
    ) -> None:
        loading = Loading(
            *(backend, dtype, revision, download),
            calibrate=calibrate,
            word_splitter=word_splitter,
            instructions=instructions,
        )
        check_device(device)
        folder = loading.find(model)
        options = engine_options(loading) | {"max_seq_length": max_seq_length, "threads": threads}
        self._source = Source.of(model, folder, revision, (SPARSE_FILE, VECTORS_FILE), **options)
        self._folder = _Folder()
        self._threads = threads
        # The tokenizer comes before the weights, which take longer to read.
        self._tokenizer = model_tokenizer(folder, lowercase=False, word_splitter=word_splitter)
        self._model = load_base(folder, loading)
        engine = get_engine(self._model.backend, self._model.dtype, self._model.instructions)
        self._heads = read_heads(folder, self._model.config.hidden_size, engine.linear)
        longest_row = self._model.config.longest_row
        if max_seq_length is None:
            most = self._tokenizer.model_max_length
            self._max_seq_length = self._model.config.usual_longest_row if most is None else min(most, longest_row)
        else:
            least = self._tokenizer.num_special_tokens_to_add() + 1
            self._max_seq_length = whole_number(
                "max_seq_length", max_seq_length, least, longest_row, meaning="the longest row"
            )
        self._left_out = _without_weight(self._tokenizer)

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
        return self._max_seq_length

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
            ``dense``, ``sparse`` and ``colbert`` in the order of the texts, or of a single text.
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
        >>> from wordpiece_bert.sentence import M3Encoder
        >>> encoder = M3Encoder("models/m3")
        >>> outputs = encoder.encode(["a bicycle wheel", "bread and flour"])
        >>> outputs.dense.shape
        (2, 67)
        >>> outputs.sparse, outputs.colbert
        (SparseVectors([2, 67], 4 values, 2.0 a row), MultiVectors(2 texts, 8 vectors of 67))
        """
        check_flags(return_truncated=return_truncated)
        single, items = check_texts(texts)
        size = whole_number("batch_size", batch_size, 1)
        rows = rows_of(self._tokenizer, items, self._max_seq_length, self._threads)
        parts = passes(self._model, rows, size, _TOKENS_PER_CALL)
        found = []
        for part in parts.shown(show=shows_progress(show_progress_bar)):
            x, ends = self._model.token_states(rows, part, threads=self._threads)  # [tokens, H], [B + 1]
            numbers = np.arange(part.start, part.stop) if isinstance(part, slice) else part
            ids = np.concatenate([rows.ids[rows.row_offsets[i] : rows.row_offsets[i + 1]] for i in numbers])
            found.append(self._outputs(x, ends, ids))
        vectors = self._joined(found, parts.order())
        if single:
            vectors = M3Vectors(vectors.dense[0], vectors.sparse[0], vectors.colbert[0])
        if not return_truncated:
            warn_truncated(rows.truncated, self._max_seq_length)
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

        Examples
        --------
        >>> from wordpiece_bert.sentence import M3Encoder
        >>> encoder = M3Encoder("models/m3")
        >>> pairs = [("bake bread", "bread and flour"), ("bake bread", "a bicycle wheel")]
        >>> encoder.score(pairs, (0.4, 0.2, 0.4))["colbert+sparse+dense"].round(2)
        array([0.78, 0.29], dtype=float32)
        """
        checked = checked_weights(weights, two=True)
        listed = _checked_pairs(pairs)
        texts = list(dict.fromkeys(text for pair in listed for text in pair))
        vectors = self.encode(texts, batch_size, show_progress_bar)
        number = {text: index for index, text in enumerate(texts)}
        a, b = (np.array([number[pair[side]] for pair in listed], np.int64) for side in (0, 1))
        queries, passages = (M3Rows(vectors.dense[i], vectors.sparse[i], vectors.colbert[i]) for i in (a, b))
        return scores_of_pairs(queries, passages, checked, self._threads)

    @completed_by(ENCODING)
    def search(
        self,
        queries: str | Texts | M3Vectors,
        documents: Texts | M3Vectors,
        weights: tuple[float, float, float] = (1.0, 1.0, 1.0),
        *,
        top_k: int = 10,
        retrieve_top_k: int | None = None,
        return_documents: bool = False,
        batch_size: int = 32,
        show_progress_bar: bool | None = None,
    ) -> SearchResults[Any]:
        """Find the documents with the highest weighted mean of the dense, the sparse and the multi-vector score.

        The scores are as from `score`. ``(1, 0, 0)`` ranks by dense vectors alone, ``(0, 1, 0)`` by weights of tokens,
        ``(0, 0, 1)`` by vectors of tokens.

        Parameters
        ----------
        queries : str, iterable of str, column of strings or M3Vectors
            A query, several, or what `encode` returned for them.
        documents : iterable of str, column of strings or M3Vectors
            The texts to search, or what `encode` returned for them; its arrays may be memory-mapped.
        weights : (float, float, float), default (1, 1, 1)
            What the dense, the sparse and the multi-vector score count in their mean.
        top_k : int, default 10
            How many documents to return for each query.
        retrieve_top_k : int, optional
            Of how many documents the vectors of tokens are compared with the query's: the best by the weighted
            mean of the other two scores. By default of all, so that the result is exact.
        return_documents : bool, default False
            Whether to return the texts, too, as ``text``; the documents must be texts.

        Returns
        -------
        SearchResults
            For each query a list of dicts, the highest score first, of equal scores the lower number first:
            ``corpus_id`` (the number of the document), ``score`` (the weighted mean), and ``dense``, ``sparse`` and
            ``colbert``, the scores of which it is the mean. For a single query its list. The attribute ``truncated`` of
            a dict is whether the query or the document was truncated in this call.

        Raises
        ------
        InputError
            A text is not a str, outputs are not this model's, the weights are not three numbers of at least 0
            that do not sum to 0, or another argument is wrong.

        Warns
        -----
        TruncationWarning
            Queries or documents were truncated.

        Examples
        --------
        >>> from wordpiece_bert.sentence import M3Encoder
        >>> encoder = M3Encoder("models/m3")
        >>> documents = encoder.encode(
        ...     ["a bicycle wheel", "bread and flour", "baking in the oven"]
        ... )
        >>> hits = encoder.search("bake bread", documents, (0.4, 0.2, 0.4), top_k=2)
        >>> [
        ...     (hit["corpus_id"], round(hit["score"], 2), round(hit["sparse"], 2))
        ...     for hit in hits
        ... ]
        [(1, 0.78, 0.15), (2, 0.71, 0.0)]
        """
        checked = checked_weights(weights, two=False)
        top_k = whole_number("top_k", top_k, 1)
        if retrieve_top_k is not None:
            retrieve_top_k = whole_number("retrieve_top_k", retrieve_top_k, 1, others="or None for all")
        if checked_flag("return_documents", return_documents) and isinstance(documents, M3Vectors):
            raise InputError("return_documents needs the texts of the documents, not their vectors")
        if isinstance(documents, str):
            raise InputError(f"documents must be a list of texts, not one text: {documents!r:.80}")
        texts = documents if isinstance(documents, M3Vectors) else check_texts(documents)[1]
        options = {"batch_size": batch_size, "show_progress_bar": show_progress_bar}
        single, asked, cut = self._searched("queries", queries, options)
        _, rows, cut_documents = self._searched("documents", texts, options)
        shown: SearchResults[Any] = SearchResults()
        for number, hits in enumerate(best_documents(asked, rows, checked, top_k, retrieve_top_k, self._threads)):
            answers: SearchResults[Answer] = SearchResults()
            for i, row in enumerate(hits.rows.tolist()):
                answer = {"corpus_id": row} | {name: float(getattr(hits, name)[i]) for name in Hits._fields[1:]}
                if return_documents:
                    answer["text"] = texts[row]
                answers.append(Answer(answer, truncated=bool(cut[number] or cut_documents[row])))
            shown.append(answers)
        return shown[0] if single else shown

    def save_pretrained(self, folder: str | os.PathLike[str]) -> None:
        """Write a folder as BGE-M3's, with the same outputs.

        It has the model, the tokenizer, ``sparse_linear.pt`` and ``colbert_linear.pt`` in the form of torch, which
        FlagEmbedding reads as well, and the modules with which `SentenceEncoder` and sentence-transformers make the
        dense vectors. `max_seq_length` is for these two; an `M3Encoder` has its tokenizer's unless it is
        given another one. All files appear, or replace older ones, only when they are complete; other files stay.

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

        Examples
        --------
        >>> from wordpiece_bert.sentence import M3Encoder
        >>> M3Encoder("models/m3").save_pretrained("build/m3")
        >>> M3Encoder("build/m3").dimension
        67
        """
        settings = SentenceFolder(
            transformer=Path(folder),
            pooling=Pooling(("cls",)),
            modules=(Normalize(),),
            dimension=self.dimension,
            max_seq_length=self._max_seq_length,
        )
        with written_folder(folder) as output:
            write_files(self._model, output)
            write_files(self._tokenizer, output)
            write_heads(output, self._heads)
            write_modules(output, settings, hidden_size=self.dimension, max_seq_length=self._max_seq_length)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a folder, as `save_pretrained`.

        Parameters
        ----------
        path : str or os.PathLike
            The folder.

        Examples
        --------
        >>> from wordpiece_bert.sentence import M3Encoder
        >>> M3Encoder("models/m3").save("saved")
        >>> M3Encoder("saved").dimension
        67
        """
        self.save_pretrained(path)

    def _searched(self, name: str, given: Any, options: dict[str, Any]) -> tuple[bool, M3Rows, npt.NDArray[np.bool_]]:
        """Return whether an argument of a search is one text, its outputs, and which texts were truncated now."""
        if not isinstance(given, M3Vectors):
            single, items = check_texts(given)
            found, truncated = self.encode(items, **options, return_truncated=True)
            warn_truncated(truncated, self._max_seq_length)
            return single, M3Rows(*found), truncated
        widths = (self.dimension, self.vocabulary_size, self.token_dimension)
        single, rows = rows_of_vectors(name, given, widths)
        return single, rows, np.zeros(len(rows.dense), np.bool_)

    def __repr__(self) -> str:
        return f"M3Encoder({self._model!r})"


def _without_weight(tokenizer: AnyTokenizer) -> npt.NDArray[np.int64]:
    """Return the ids without a weight in sparse vectors: of the first token, the last, padding and unknown words.

    A WordPiece tokenizer names no last token, so that its [SEP] has a weight, as in FlagEmbedding.
    """
    if isinstance(tokenizer, Tokenizer):
        found = [tokenizer.cls_token_id, tokenizer.pad_token_id, tokenizer.unk_token_id]
    else:
        found = [tokenizer.token_to_id(token) for token in _UNWEIGHED]
    return np.array([index for index in found if index is not None], np.int64)


def _checked_pairs(pairs: Any) -> list[tuple[str, str]]:
    if isinstance(pairs, str) or not iterates(pairs):
        raise InputError(f"pairs must be a list of (query, passage), not {type(pairs).__name__}")
    listed = list(pairs)
    for index, pair in enumerate(listed):
        if isinstance(pair, str) or not hasattr(pair, "__len__") or len(pair) != 2:
            raise InputError(f"pairs[{index}] must be a query and a passage, not {pair!r:.80}")
        if not all(isinstance(text, str) for text in pair):
            raise InputError(f"pairs[{index}] must be two texts, not {pair!r:.80}")
    return [(pair[0], pair[1]) for pair in listed]
