"""`MultiVectorEncoder`: from texts to the vectors of their tokens, for late interaction (ColBERT)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wordpiece_bert._internal.answers import Answer, Results
from wordpiece_bert._internal.arrays import as_numbers
from wordpiece_bert._internal.checks import check_device, check_flags, checked_flag, shows_progress, whole_number
from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert._internal.peer_names import (
    INSTEAD_IN_ENCODERS,
    NOT_WRITTEN,
    add_peer_names,
    refusing_peer_arguments,
)
from wordpiece_bert._internal.texts import check_texts, warn_truncated
from wordpiece_bert.bert.engines import get_engine
from wordpiece_bert.bert.functional import Array, normalize
from wordpiece_bert.bert.loading import Loading
from wordpiece_bert.bert.parameters import LOADING
from wordpiece_bert.errors import InputError
from wordpiece_bert.sentence.arguments import Texts, check_pool, one_of
from wordpiece_bert.sentence.derived import encode_for
from wordpiece_bert.sentence.encoder_base import FromPretrained, Settings, VectorEncoder, engine_options
from wordpiece_bert.sentence.folders.modules import Dense
from wordpiece_bert.sentence.folders.multi_vector import METRICS, MultiVectorFolder, read_multi_vector_folder
from wordpiece_bert.sentence.multi_vector.late_interaction import maxsim, maxsim_pairwise
from wordpiece_bert.sentence.multi_vector.multi_vector_loading import load_encoder, marked_tokenizer, token_ids
from wordpiece_bert.sentence.multi_vector.multi_vectors import MultiVectors
from wordpiece_bert.sentence.parameters import ENCODING, SETTINGS
from wordpiece_bert.sentence.rows import check_token_types, passes, rows_of
from wordpiece_bert.sentence.source import Source
from wordpiece_bert.tokenizer.parameters import SPLITTING

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from wordpiece_bert.bert.engines import EngineInfo
    from wordpiece_bert.tokenizer.ragged_batch import RaggedBatch
    from wordpiece_bert.tokenizer.subword import AnyTokenizer
    from wordpiece_bert.tokenizer.word_splitter import WordSplitter

#: The most tokens of one call of the Rust engine: up to a second of work, the longest until Ctrl-C has an effect.
TOKENS_PER_CALL = 16_384

_TASKS = (None, "query", "document")
#: What the query of `rank` must be, in messages.
_QUERY = "one text or its vectors [tokens, d]"


@completed_by(LOADING, SPLITTING, SETTINGS)
class MultiVectorEncoder(VectorEncoder):
    """A multi-vector encoder: texts to the vectors of their tokens, which late interaction compares one by one.

    A query is compared with a document by MaxSim: for each vector of the query the greatest dot product with one of the
    document, summed. Threads may share an encoder. A copy is the object itself, and its pickle has the path of its
    folder instead of the weights.

    Parameters
    ----------
    model : str or os.PathLike
        A folder, or ``"org/name"`` in the local Hugging Face cache: in the layout of sentence-transformers, of PyLate,
        or of ColBERT's own code. An encoder without a projection that was trained for it is refused.
    similarity_fn_name : {"maxsim", "meanmaxsim"}, optional
        How `similarity` compares token vectors; by default as the folder says.

    Raises
    ------
    ModelNotFoundError, ConfigError, CheckpointError, TokenizerFormatError
        As for `BertModel` and `Tokenizer`; a ConfigError also for modules that are not supported.
    InputError
        The device is not the CPU, or an argument is wrong.

    Examples
    --------
    >>> from wordpiece_bert import MultiVectorEncoder
    >>> encoder = MultiVectorEncoder("models/colbert")
    >>> queries = encoder.encode_query(["bread"])
    >>> documents = encoder.encode_document(["bread dough", "a bicycle"])
    >>> encoder.similarity(queries, documents).round(1)
    array([[12. , 10.9]], dtype=float32)
    """

    _folder: MultiVectorFolder

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
    ) -> None:
        loading = Loading(
            *(backend, dtype, revision, download),
            calibrate=calibrate,
            word_splitter=word_splitter,
            instructions=instructions,
        )
        settings = Settings(prompts, default_prompt_name, similarity_fn_name)
        check_device(device)
        found = loading.find(model)
        self._source = Source.of(model, found, revision, **engine_options(loading), threads=threads, **settings.given())
        self._folder = settings.of(read_multi_vector_folder(found), METRICS)
        folder = self._folder
        self._threads = threads
        self._tokenizer = marked_tokenizer(folder, word_splitter)  # before the weights, which take longer to read
        self._model, projection = load_encoder(folder, loading)
        check_token_types(self._tokenizer, folder.transformer)
        engine = get_engine(self._model.backend, self._model.dtype, self._model.instructions)
        modules = (*projection, *folder.modules)
        self._modules = [replace(m, linear=engine.linear) if isinstance(m, Dense) else m for m in modules]
        widths = [len(module.weight) for module in modules if isinstance(module, Dense)]
        self._dimension = widths[-1] if widths else self._model.config.hidden_size
        self._skipped, self._filling = token_ids(folder, self._tokenizer)

    from_pretrained = FromPretrained(__init__)

    @property
    def dimension(self) -> int:
        """Width of the vectors."""
        return self._dimension

    @property
    def engine(self) -> EngineInfo:
        """How the encoder computes on this machine: CPU, dtype, instructions, threads, and the reason."""
        return self._model.engine.with_threads(self._threads)

    @property
    def tokenizer(self) -> AnyTokenizer:
        """The tokenizer, in which the markers of queries and documents are tokens if the vocabulary has them."""
        return self._tokenizer

    @property
    def max_seq_length(self) -> int:
        """The longest row in tokens, with special tokens, of texts that are neither queries nor documents."""
        return self._folder.max_seq_length

    @property
    def query_length(self) -> int:
        """The longest query in tokens, with special tokens and prompt; fixed for models that expand queries to it."""
        return self._longest_row("query")

    @property
    def document_length(self) -> int:
        """The longest document in tokens, with special tokens and prompt."""
        return self._longest_row("document")

    @completed_by(maxsim)
    def similarity(self, a: Any, b: Any) -> Array:
        """Score every query of `a` with every document of `b`, by `similarity_fn_name`.

        Returns
        -------
        ndarray of float32
            The scores [queries, documents].

        Examples
        --------
        >>> from wordpiece_bert import MultiVectorEncoder
        >>> encoder = MultiVectorEncoder("models/colbert")
        >>> x = encoder.encode_query(["bread"])
        >>> encoder.similarity(x, encoder.encode_document(["bread dough", "a bicycle"])).round(
        ...     1
        ... )
        array([[12. , 10.9]], dtype=float32)
        """
        return maxsim(a, b, length_normalize=self.similarity_fn_name == "meanmaxsim", threads=self._threads)

    @completed_by(maxsim)
    def similarity_pairwise(self, a: Any, b: Any) -> Array:
        """Score each query of `a` with the document of `b` of the same number, by `similarity_fn_name`.

        Returns
        -------
        ndarray of float32
            The scores [n].

        Examples
        --------
        >>> from wordpiece_bert import MultiVectorEncoder
        >>> encoder = MultiVectorEncoder("models/colbert")
        >>> x = encoder.encode_query(["bread", "tire"])
        >>> encoder.similarity_pairwise(
        ...     x, encoder.encode_document(["bread dough", "a bicycle"])
        ... ).round(1)
        array([12. , 11.8], dtype=float32)
        """
        return maxsim_pairwise(a, b, length_normalize=self.similarity_fn_name == "meanmaxsim", threads=self._threads)

    @completed_by(ENCODING)
    def rank(
        self,
        query: str | npt.ArrayLike,
        documents: Any,
        top_k: int | None = None,
        return_documents: bool = False,
        batch_size: int = 32,
        show_progress_bar: bool | None = None,
    ) -> Results[Answer]:
        """Sort documents by their score with a query.

        Parameters
        ----------
        query : str or array_like
            The query, or its vectors [tokens, d].
        documents : MultiVectors, list of array_like, list of str, or a column of strings
            The vectors of the documents, as `encode_document` returned them or `MultiVectors.load` maps them; or texts,
            which are encoded.
        top_k : int, optional
            How many to return; by default all.
        return_documents : bool, default False
            Whether the results have the texts, as ``text``; the documents must be texts.

        Returns
        -------
        list of dict
            Dicts with ``corpus_id`` (the number of the document) and ``score``, the highest score first; of equal
            scores the lower number first. The list shows itself as a table in a notebook.

        Raises
        ------
        InputError
            The vectors differ in width, or an argument is wrong.

        Warns
        -----
        TruncationWarning
            The query, or documents, were truncated.

        Examples
        --------
        >>> from wordpiece_bert import MultiVectorEncoder
        >>> encoder = MultiVectorEncoder("models/colbert")
        >>> found = encoder.rank("bread", ["a bicycle", "bread dough"], return_documents=True)
        >>> [answer["text"] for answer in found]
        ['bread dough', 'a bicycle']
        """
        top_k = None if top_k is None else whole_number("top_k", top_k, 1)
        texts: list[str] | None = None
        if not isinstance(documents, MultiVectors):
            listed = documents if isinstance(documents, list | tuple) else None
            if listed is None and not isinstance(documents, np.ndarray):
                listed = check_texts(documents)[1]
            if listed is not None and (not listed or isinstance(listed[0], str)):
                texts = check_texts(listed)[1]
        if checked_flag("return_documents", return_documents) and texts is None:
            raise InputError("return_documents needs the texts of the documents, not their vectors")
        if texts is not None:
            documents = self.encode_document(texts, batch_size=batch_size, show_progress_bar=show_progress_bar)
        vectors = self.encode_query(query) if isinstance(query, str) else as_numbers("query", query, _QUERY)
        if vectors.ndim != 2:
            raise InputError(f"query must be {_QUERY}, not an array of shape {list(vectors.shape)}")
        scores = self.similarity([vectors], documents)[0]
        order = np.argsort(-scores, kind="stable")[:top_k]
        found = Results(Answer({"corpus_id": int(i), "score": float(scores[i])}) for i in order)
        if return_documents and texts is not None:
            for result in found:
                result["text"] = texts[result["corpus_id"]]
        return found

    @completed_by(ENCODING)
    def encode(
        self,
        texts: str | Texts | None = None,
        prompt_name: str | None = None,
        prompt: str | None = None,
        batch_size: int = 32,
        show_progress_bar: bool | None = None,
        device: str | None = None,
        normalize_embeddings: bool = False,
        pool: None = None,
        *,
        sentences: str | Texts | None = None,
        inputs: str | Texts | None = None,
        task: str | None = None,
        return_truncated: bool = False,
    ) -> Any:
        """Turn texts into the vectors of their tokens.

        Parameters
        ----------
        normalize_embeddings : bool, default False
            Whether to scale each vector to length 1; most models do that anyway.
        task : {"query", "document"}, optional
            ``"query"`` expands queries and cuts them at `query_length`, ``"document"`` cuts documents at
            `document_length` and leaves out the tokens of the skip list; None leaves these out and cuts at
            `max_seq_length`. `encode_query` and `encode_document` also choose the prompt.

        Returns
        -------
        MultiVectors
            The vectors of all texts, a sequence of float32 arrays [tokens, d]; one such array for a single text. A
            document of which all tokens are left out has none.
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
        >>> from wordpiece_bert import MultiVectorEncoder
        >>> encoder = MultiVectorEncoder("models/colbert")
        >>> x = encoder.encode(["bread dough", "a bicycle wheel"])
        >>> len(x), x[0].shape[1]
        (2, 67)
        """
        check_device(device)
        check_pool(pool)
        check_flags(normalize_embeddings=normalize_embeddings, return_truncated=return_truncated)
        if task not in _TASKS:
            raise InputError(f"task must be 'query', 'document' or None, not {task!r}")
        single, items = check_texts(one_of(texts=texts, sentences=sentences, inputs=inputs))
        batch_size = whole_number("batch_size", batch_size, 1)
        prefix = self._prompt(prompt, prompt_name)
        rows = self._rows([prefix + item for item in items], task)
        vectors = self._vectors(rows, task, batch_size, progress=shows_progress(show_progress_bar))
        if normalize_embeddings:
            vectors = MultiVectors(normalize(vectors.vectors), vectors.offsets)
        result = vectors[0] if single else vectors
        if not return_truncated:
            warn_truncated(rows.truncated, self._longest_row(task))
            return result
        return result, bool(rows.truncated[0]) if single else rows.truncated

    encode_query = encode_for("query", encode, task="query")
    encode_document = encode_for("document", encode, task="document")

    def __repr__(self) -> str:
        lengths = f"queries of {self.query_length}, documents of at most {self.document_length} tokens"
        return f"MultiVectorEncoder(dimension {self.dimension}, {lengths}, {self._model!r})"

    def _longest_row(self, task: str | None) -> int:
        """Return the longest row of a task in tokens, before it is filled up."""
        folder = self._folder
        if task == "document":
            return folder.document_length or folder.max_seq_length
        if task != "query":
            return folder.max_seq_length
        longest_row = folder.query_length or folder.max_seq_length
        if folder.expansion is None:
            return longest_row
        return (
            folder.expansion.length
            if folder.expansion.strategy == "fixed"
            else max(longest_row, folder.expansion.length)
        )

    def _rows(self, texts: list[str], task: str | None) -> _Rows:
        """Tokenize texts, and fill queries up."""
        rows = rows_of(self._tokenizer, texts, self._longest_row(task), self._threads)
        expansion = self._folder.expansion
        if task != "query" or expansion is None:
            return _Rows(rows, rows.lengths, rows.truncated)
        lengths = rows.lengths
        filled = np.maximum(lengths, expansion.length)  # [n]
        ends = np.concatenate([[0], np.cumsum(filled)])
        ids = np.full(int(ends[-1]), self._filling, np.uint32)
        ids[np.arange(len(rows.ids)) + np.repeat(ends[:-1] - rows.row_offsets[:-1], lengths)] = rows.ids
        longer = replace(rows, ids=ids, row_offsets=ends)
        return _Rows(longer, filled if expansion.attend else lengths, rows.truncated)

    def _vectors(self, rows: _Rows, task: str | None, batch_size: int, *, progress: bool) -> MultiVectors:
        """Run the model and all modules over the tokens that count."""
        batch_rows, visible, _ = rows
        batches = passes(self._model, batch_rows, batch_size, TOKENS_PER_CALL, visible=visible)
        parts, counts = [np.zeros((0, self.dimension), np.float32)], [np.zeros(0, np.int64)]
        for batch in batches.shown(show=progress):
            x, ends = self._model.token_states(batch_rows, batch, visible[batch], self._threads)  # [tokens, H]
            counted = self._counted(batch_rows, batch, task)  # [tokens]
            x = x if counted.all() else x[counted]
            for module in self._modules:
                x = module(x)
            parts.append(x)
            counts.append(np.add.reduceat(counted, ends[:-1], dtype=np.int64))
        lengths = np.concatenate(counts)
        vectors = MultiVectors(np.concatenate(parts), np.concatenate([[0], np.cumsum(lengths)]))
        order = batches.order()
        return vectors if order is None else vectors[order.tolist()]

    def _counted(
        self, rows: RaggedBatch, batch: slice | npt.NDArray[np.intp], task: str | None
    ) -> npt.NDArray[np.bool_]:
        """Return which tokens of some rows have a vector, [tokens]."""
        if isinstance(batch, slice):
            ids = rows.ids[rows.row_offsets[batch.start] : rows.row_offsets[batch.stop]]
        else:
            ids = np.concatenate([rows[int(row)] for row in batch])
        mask = self._folder.mask
        counted = np.ones(len(ids), np.bool_)
        if (task or "document") in mask.skiplist_tasks and len(self._skipped):
            counted &= ~np.isin(ids, self._skipped)
        if task != "query" and mask.keep_only is not None:
            counted &= np.isin(ids, mask.keep_only)
        return counted


add_peer_names(MultiVectorEncoder, INSTEAD_IN_ENCODERS | NOT_WRITTEN)


class _Rows(NamedTuple):
    """The rows of texts."""

    #: The ids, those that queries are filled up with among them.
    rows: RaggedBatch
    #: How many tokens of each row, from the first on, may be attended to.
    visible: npt.NDArray[np.int64]
    truncated: npt.NDArray[np.bool_]
