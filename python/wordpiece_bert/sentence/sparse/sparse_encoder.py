"""`SparseEncoder`: from texts to sparse vectors over the vocabulary."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from wordpiece_bert._internal.checks import check_device, check_flags, shows_progress, whole_number
from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert._internal.peer_names import (
    INSTEAD_IN_ENCODERS,
    NOT_WRITTEN,
    add_peer_names,
    refusing_peer_arguments,
)
from wordpiece_bert._internal.texts import check_texts, warn_truncated
from wordpiece_bert.bert.loading import Loading
from wordpiece_bert.bert.parameters import LOADING
from wordpiece_bert.errors import ConfigError, InputError
from wordpiece_bert.sentence.arguments import Texts, check_pool, one_of
from wordpiece_bert.sentence.derived import encode_for
from wordpiece_bert.sentence.encoder_base import FromPretrained, Settings, VectorEncoder, engine_options
from wordpiece_bert.sentence.folders.sparse import SparseFolder, SpladeFolder, read_sparse_folder
from wordpiece_bert.sentence.parameters import ENCODING, SETTINGS
from wordpiece_bert.sentence.source import Source
from wordpiece_bert.sentence.sparse.routes import RunsRoute, SpladeRoute, load_route
from wordpiece_bert.sentence.sparse.sparse_vectors import (
    SparseVectors,
    as_sparse,
    sparse_pairwise_similarity,
    sparse_similarity,
)
from wordpiece_bert.tokenizer.parameters import SPLITTING

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from wordpiece_bert.bert.engines import EngineInfo
    from wordpiece_bert.bert.functional import Array
    from wordpiece_bert.tokenizer.subword import AnyTokenizer
    from wordpiece_bert.tokenizer.word_splitter import WordSplitter


@completed_by(LOADING, SPLITTING, SETTINGS)
class SparseEncoder(VectorEncoder):
    """A sparse encoder: texts to vectors with a number for each token of the vocabulary, most of them 0.

    SPLADE models compute them with a masked-language model, and weigh tokens that a text does not have too. Queries of
    inference-free models have a fixed weight for each of their tokens. Threads may share an encoder. A copy is the
    object itself, and its pickle has the path of its folder instead of the weights.

    Parameters
    ----------
    model : str or os.PathLike
        A folder, or ``"org/name"`` in the local Hugging Face cache: in the layout of sentence-transformers (SPLADE,
        inference-free queries behind a router, folders of version 5), or a masked-language model.
    max_active_dims : int, optional
        How many values of a vector are kept, the greatest; by default those that the folder says, or all.

    Raises
    ------
    ModelNotFoundError, ConfigError, CheckpointError, TokenizerFormatError
        As for `BertModel` and `Tokenizer`; a ConfigError also for modules that are not supported.
    InputError
        The device is not the CPU, or an argument is wrong, as `calibrate` is for a model of token weights alone.

    Examples
    --------
    >>> from wordpiece_bert import SparseEncoder
    >>> encoder = SparseEncoder("models/splade")
    >>> x = encoder.encode(["bread and flour", "a bicycle"])
    >>> x
    SparseVectors([2, 67], 12 values, 6.0 a row)
    >>> sorted(token for token, _ in encoder.decode(x[0], 3))
    ['and', 'bread', 'flour']
    """

    _folder: SparseFolder

    @refusing_peer_arguments
    def __init__(
        self,
        model: str | os.PathLike[str],
        backend: str = "rust",
        dtype: str = "float32",
        *,
        max_active_dims: int | None = None,
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
        folder = loading.find(model)
        options = engine_options(loading) | {"max_active_dims": max_active_dims, "threads": threads}
        self._source = Source.of(model, folder, revision, **options, **settings.given())
        self._folder = settings.of(read_sparse_folder(folder, word_splitter))
        self._threads = threads
        self._max_active_dims = self._folder.max_active_dims
        if max_active_dims is not None:
            self._max_active_dims = whole_number("max_active_dims", max_active_dims, 1)
        if calibrate is not None and not any(isinstance(route, SpladeFolder) for route in self._folder.routes.values()):
            raise InputError(f"{folder}: calibrate is for the layers of a model, and this one has token weights alone")
        self._routes = {name: load_route(route, loading, threads) for name, route in self._folder.routes.items()}
        widths = {name: route.dimension for name, route in self._routes.items()}
        if len(set(widths.values())) > 1:
            raise ConfigError(f"{folder}: the vectors of the routes differ in width: {widths}")

    from_pretrained = FromPretrained(__init__)

    @property
    def dimension(self) -> int:
        """Width of the vectors: how many tokens the vocabulary has."""
        return next(iter(self._routes.values())).dimension

    @property
    def engine(self) -> EngineInfo:
        """How the encoder computes on this machine; with several routes, how the first that runs a model does."""
        routes = [*self._routes.values()]
        route = next((route for route in routes if isinstance(route, SpladeRoute)), routes[0])
        return route.engine.with_threads(self._threads)

    @property
    def max_active_dims(self) -> int | None:
        """How many values of a vector are kept by default; None for all."""
        return self._max_active_dims

    @property
    def _default_route(self) -> RunsRoute:
        name = self._folder.default_route
        return next(iter(self._routes.values())) if name is None else self._routes[name]

    @property
    def tokenizer(self) -> AnyTokenizer:
        """The tokenizer, with several routes the default route's."""
        return self._default_route.tokenizer

    @property
    def max_seq_length(self) -> int | None:
        """The longest row in tokens, with several routes the default route's; None for no limit."""
        return self._default_route.max_seq_length

    def similarity(self, a: Any, b: Any) -> Array:
        """Compare every vector of `a` with every vector of `b`, by `similarity_fn_name`.

        Parameters
        ----------
        a, b : SparseVectors, sparse matrix of scipy, or array_like
            Vectors [n, V] and [m, V]; one vector counts as one row.

        Returns
        -------
        ndarray of float32
            The similarities [n, m].

        Examples
        --------
        >>> from wordpiece_bert import SparseEncoder
        >>> encoder = SparseEncoder("models/splade")
        >>> x = encoder.encode(["bread and flour", "a bicycle"])
        >>> encoder.similarity(x, x).round(1)
        array([[8.8, 0. ],
               [0. , 7. ]], dtype=float32)
        """
        return sparse_similarity(a, b, self.similarity_fn_name)

    def similarity_pairwise(self, a: Any, b: Any) -> Array:
        """Compare the vectors of `a` and `b` pair by pair, by `similarity_fn_name`.

        Parameters
        ----------
        a, b : SparseVectors, sparse matrix of scipy, or array_like
            Vectors [n, V] each.

        Returns
        -------
        ndarray of float32
            The similarities [n].

        Examples
        --------
        >>> from wordpiece_bert import SparseEncoder
        >>> encoder = SparseEncoder("models/splade")
        >>> x = encoder.encode(["bread and flour", "a bicycle"])
        >>> encoder.similarity_pairwise(x, x).round(1)
        array([8.8, 7. ], dtype=float32)
        """
        return sparse_pairwise_similarity(a, b, self.similarity_fn_name)

    @completed_by(ENCODING)
    def encode(
        self,
        texts: str | Texts | None = None,
        prompt_name: str | None = None,
        prompt: str | None = None,
        batch_size: int = 32,
        show_progress_bar: bool | None = None,
        device: str | None = None,
        max_active_dims: int | None = None,
        pool: None = None,
        *,
        sentences: str | Texts | None = None,
        inputs: str | Texts | None = None,
        task: str | None = None,
        return_truncated: bool = False,
    ) -> Any:
        """Turn texts into sparse vectors.

        Parameters
        ----------
        max_active_dims : int, optional
            How many values of a vector to keep, the greatest, and of equal values the lower columns; by default the
            encoder's number.
        task : str, optional
            The route of a model with several: ``"query"``, ``"document"``; by default the model's default route.

        Returns
        -------
        SparseVectors
            The vectors [n, V] in the order of the texts, or one vector [V] for a single text.
        array
            Only with `return_truncated`: bool [n], or one bool for a single text.

        Raises
        ------
        InputError
            A text is not a str (the message has its index), the model has no such route, or an argument is wrong.

        Warns
        -----
        TruncationWarning
            Texts were truncated, and `return_truncated` is false. The message has their number and the index of the
            first.

        Examples
        --------
        >>> from wordpiece_bert import SparseEncoder
        >>> encoder = SparseEncoder("models/splade")
        >>> encoder.encode("bread and flour")
        SparseVectors([67], 7 values)
        >>> encoder.encode(["bread and flour", "a bicycle"], max_active_dims=2)
        SparseVectors([2, 67], 4 values, 2.0 a row)
        """
        check_device(device)
        check_pool(pool)
        check_flags(return_truncated=return_truncated)
        single, items = check_texts(one_of(texts=texts, sentences=sentences, inputs=inputs))
        prefix = self._prompt(prompt, prompt_name)
        route = self._task_route(task)
        most = self._max_active_dims
        if max_active_dims is not None:
            most = whole_number("max_active_dims", max_active_dims, 1)
        vectors, truncated = route.run(
            [prefix + item for item in items],
            whole_number("batch_size", batch_size, 1),
            most,
            progress=shows_progress(show_progress_bar),
        )
        result = vectors[0] if single else vectors
        if not return_truncated:
            warn_truncated(truncated, route.max_seq_length or 0)
            return result
        return result, bool(truncated[0]) if single else truncated

    encode_query = encode_for("query", encode, task="query")
    encode_document = encode_for("document", encode, task="document")

    def decode(self, vectors: Any, top_k: int | None = None) -> Any:
        """Return the tokens of sparse vectors with their values, the greatest first, of equal ones the lower id first.

        Parameters
        ----------
        vectors : SparseVectors, sparse matrix of scipy, or array_like
            Vectors [n, V], or one [V].
        top_k : int, optional
            How many tokens of a vector to return; by default all.

        Returns
        -------
        list of list of (str, float)
            The tokens and values of each vector; one such list for one vector.

        Raises
        ------
        InputError
            The vectors have another width than the vocabulary, or an argument is wrong.

        Examples
        --------
        >>> from wordpiece_bert import SparseEncoder
        >>> encoder = SparseEncoder("models/splade")
        >>> [
        ...     (token, round(value, 1))
        ...     for token, value in encoder.decode(encoder.encode("a bicycle"), 2)
        ... ]
        [('a', 1.6), ('bicycle', 1.4)]
        """
        if top_k is not None:
            top_k = whole_number("top_k", top_k, 1)
        matrix = as_sparse("vectors", vectors)
        if matrix.shape[1] != self.dimension:
            raise InputError(f"the vectors have {matrix.shape[1]} numbers, but the vocabulary {self.dimension} tokens")
        found = []
        for start, end in zip(matrix.indptr[:-1].tolist(), matrix.indptr[1:].tolist(), strict=True):
            order = np.argsort(-matrix.values[start:end], kind="stable")[:top_k] + start
            tokens = self._tokens(matrix.indices[order])
            found.append(list(zip(tokens, matrix.values[order].tolist(), strict=True)))
        return found[0] if _is_one(vectors) else found

    @staticmethod
    def sparsity(vectors: Any) -> dict[str, float]:
        """Return how many numbers of the vectors are not 0.

        Parameters
        ----------
        vectors : SparseVectors, sparse matrix of scipy, or array_like
            Vectors [n, V], or one [V].

        Returns
        -------
        dict of str to float
            ``active_dims``, the mean count of a vector, and ``sparsity_ratio``, the mean share of the others.

        Examples
        --------
        >>> from wordpiece_bert import SparseEncoder
        >>> encoder = SparseEncoder("models/splade")
        >>> found = encoder.sparsity(encoder.encode(["bread and flour", "a bicycle"]))
        >>> found["active_dims"]
        6.0
        """
        matrix = as_sparse("vectors", vectors)
        rows, width = matrix.shape
        mean = float(np.count_nonzero(matrix.values)) / rows if rows and width else 0.0
        return {"active_dims": mean, "sparsity_ratio": 1 - mean / width if width else 1.0}

    @staticmethod
    def intersection(vector: Any, vectors: Any) -> SparseVectors:
        """Return what a vector and others have in common: the products of their numbers, where these are positive.

        `decode` shows by which tokens a query and a document match.

        Parameters
        ----------
        vector : SparseVectors, sparse matrix of scipy, or array_like
            One vector [V].
        vectors : SparseVectors, sparse matrix of scipy, or array_like
            Vectors [n, V], or one [V].

        Returns
        -------
        SparseVectors
            The products, of the shape of `vectors`.

        Raises
        ------
        InputError
            The first argument is more than one vector, or the vectors differ in width.

        Examples
        --------
        >>> from wordpiece_bert import SparseEncoder
        >>> encoder = SparseEncoder("models/splade")
        >>> query, text = encoder.encode("dough"), encoder.encode("bread dough")
        >>> [token for token, _ in encoder.decode(encoder.intersection(query, text), 2)]
        ['dough', 'bread']
        """
        one, others = as_sparse("vector", vector), as_sparse("vectors", vectors)
        if len(one) != 1:
            raise InputError(f"vector must be one vector [V], not {len(one)}")
        if one.shape[1] != others.shape[1]:
            raise InputError(f"vector has {one.shape[1]} numbers, the vectors {others.shape[1]}: not from one model")
        products = one.toarray()[0][others.indices] * others.values
        kept = products > 0
        before = np.concatenate([[0], np.cumsum(kept)])
        shape = others.shape[1:] if _is_one(vectors) else others.shape
        return SparseVectors(before[others.indptr], others.indices[kept], products[kept], shape)

    def _tokens(self, ids: npt.NDArray[np.int32]) -> list[str]:
        """Return the tokens of ids; a vocabulary may be larger than the tokenizer's."""
        known = self.tokenizer
        return [f"[{i}]" if (token := known.id_to_token(i)) is None else token for i in ids.tolist()]

    def __repr__(self) -> str:
        parts = [f"{name}: {route!r}" if name else repr(route) for name, route in self._routes.items()]
        most = "" if self._max_active_dims is None else f", at most {self._max_active_dims} values"
        return f"SparseEncoder({self.dimension} tokens{most}, {', '.join(parts)})"

    def _task_route(self, task: str | None) -> RunsRoute:
        """Return the route of a task."""
        if len(self._routes) == 1 and "" in self._routes:
            if task not in (None, "query", "document"):
                raise InputError(f"task must be 'query', 'document' or None, not {task!r}")
            return self._routes[""]
        name = self._folder.default_route if task is None else task
        if name not in self._routes:
            raise InputError(f"the model has no route for task {task!r}; its routes are {list(self._routes)}")
        return self._routes[name]


add_peer_names(SparseEncoder, INSTEAD_IN_ENCODERS | NOT_WRITTEN)


def _is_one(vectors: Any) -> bool:
    """Return whether an argument that `as_sparse` takes is one vector [V]."""
    return len(vectors.shape if hasattr(vectors, "shape") else np.shape(vectors)) == 1
