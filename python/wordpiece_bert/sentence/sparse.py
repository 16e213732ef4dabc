"""`SparseEncoder`: from texts to sparse vectors over the vocabulary."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from wordpiece_bert._internal.checks import check_device, whole_number
from wordpiece_bert._internal.peer_names import INSTEAD_IN_ENCODERS, NOT_WRITTEN, add_peer_names
from wordpiece_bert._internal.texts import check_texts, warn_truncated
from wordpiece_bert.bert.calibration import check_texts as check_calibration
from wordpiece_bert.bert.engines import choose_dtype
from wordpiece_bert.errors import ConfigError, InputError
from wordpiece_bert.hub import find_model
from wordpiece_bert.sentence.arguments import Texts, one_of, prompt_text, role_prompt_name
from wordpiece_bert.sentence.base import VectorEncoder, given_settings, with_settings
from wordpiece_bert.sentence.encoder import check_pool
from wordpiece_bert.sentence.source import PickledBySource, Source
from wordpiece_bert.sentence.sparse_folder import SparseFolder, SpladeFolder, read_sparse_folder
from wordpiece_bert.sentence.sparse_routes import RunsRoute, SpladeRoute, load_route
from wordpiece_bert.sentence.sparse_vectors import (
    SparseVectors,
    as_sparse,
    sparse_pairwise_similarity,
    sparse_similarity,
)

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from wordpiece_bert.bert.engines import EngineInfo
    from wordpiece_bert.bert.functional import Array
    from wordpiece_bert.tokenizer import Tokenizer

__all__ = ["SparseEncoder"]


class SparseEncoder(PickledBySource, VectorEncoder):
    """A sparse encoder: texts to vectors with a number for each token of the vocabulary, most of them 0.

    SPLADE models compute them with a masked-language model, and weigh tokens that a text does not have too. Queries of
    inference-free models have a fixed weight for each of their tokens. `from_pretrained` loads both. Threads may share
    an encoder. A copy is the object itself, and its pickle has the path of its folder instead of the weights.

    Parameters
    ----------
    model : str or os.PathLike
        The model's name or folder, as for `from_pretrained`.
    max_active_dims : int, optional
        How many values of a vector are kept, the greatest; by default those that the folder says, or all.
    backend, dtype, revision, download, keep_half, calibrate
        As for `BertModel.from_pretrained`; a model of token weights alone takes no `calibrate`.
    prompts : dict, optional
        Prompts by name. They replace those of the folder that have the same names.
    default_prompt_name : str, optional
        The name of the prompt that `encode` uses by default; by default that of the folder, if any.
    similarity_fn_name : {"cosine", "dot", "euclidean", "manhattan"}, optional
        How `similarity` compares vectors; by default as the folder says.
    device : {"cpu"}, optional
        The device of the model, which is always the CPU.
    threads : int, optional
        How many threads the tokenizer and the Rust engine use; by default as many as this process may use.

    Raises
    ------
    ModelNotFoundError, ConfigError, CheckpointError, TokenizerFormatError
        As for `from_pretrained`.
    InputError
        The device is not the CPU, or an argument is wrong.
    """

    def __init__(
        self,
        model: str | os.PathLike[str],
        *,
        max_active_dims: int | None = None,
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
    ) -> None:
        check_device(device)
        choose_dtype(backend, dtype)  # refuses an unknown one before anything is read
        check_calibration(calibrate, dtype)
        folder = find_model(model, revision=revision, download=download)
        given = given_settings(
            prompts=prompts, default_prompt_name=default_prompt_name, similarity_fn_name=similarity_fn_name
        )
        self._folder: SparseFolder = with_settings(read_sparse_folder(folder), given)
        self._threads = threads
        self._max_active_dims = self._folder.max_active_dims
        if max_active_dims is not None:
            self._max_active_dims = whole_number("max_active_dims", max_active_dims, 1)
        if calibrate is not None and not any(isinstance(route, SpladeFolder) for route in self._folder.routes.values()):
            raise InputError(f"{folder}: calibrate is for the layers of a model, and this one has token weights alone")
        routes = {
            name: load_route(route, threads, backend, dtype, keep_half=keep_half, calibrate=calibrate)
            for name, route in self._folder.routes.items()
        }
        self._routes: dict[str, RunsRoute] = routes
        widths = {name: route.dimension for name, route in self._routes.items()}
        if len(set(widths.values())) > 1:
            raise ConfigError(f"{folder}: the vectors of the routes differ in width: {widths}")
        options = {"backend": backend, "dtype": dtype, "keep_half": keep_half, "max_active_dims": max_active_dims}
        texts = None if calibrate is None else tuple(calibrate)
        self._source = Source.of(model, folder, revision, **options, threads=threads, calibrate=texts, **given)

    @classmethod
    def from_pretrained(
        cls,
        name: str | os.PathLike[str],
        backend: str = "rust",
        dtype: str = "float32",
        *,
        max_active_dims: int | None = None,
        threads: int | None = None,
        revision: str | None = None,
        download: bool = False,
        keep_half: bool = False,
        calibrate: Sequence[str] | None = None,
        prompts: Mapping[str, str] | None = None,
        default_prompt_name: str | None = None,
        similarity_fn_name: str | None = None,
    ) -> Self:
        """Load a sparse encoder from this machine.

        Parameters
        ----------
        name
            A folder, or ``"org/name"`` in the local Hugging Face cache: in the layout of sentence-transformers (SPLADE,
            inference-free queries behind a router, folders of version 5), or a masked-language model.
        backend, dtype, revision, download, keep_half, calibrate
            As for `BertModel.from_pretrained`.
        max_active_dims, threads, prompts, default_prompt_name, similarity_fn_name
            As for the class.

        Raises
        ------
        ModelNotFoundError, ConfigError, CheckpointError, TokenizerFormatError
            As for `BertModel` and `Tokenizer`; a ConfigError also for modules that are not supported.
        """
        return cls(
            name,
            max_active_dims=max_active_dims,
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
        )

    @property
    def dimension(self) -> int:
        """Width of the vectors: how many tokens the vocabulary has."""
        return next(iter(self._routes.values())).dimension

    @property
    def engine(self) -> EngineInfo:
        """How the encoder computes on this machine; with several routes, that of the first that runs a model."""
        routes = [*self._routes.values()]
        route = next((route for route in routes if isinstance(route, SpladeRoute)), routes[0])
        return route.engine.with_threads(self._threads)

    @property
    def max_active_dims(self) -> int | None:
        """How many values of a vector are kept by default; None for all."""
        return self._max_active_dims

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer, with several routes that of the default one."""
        name = self._folder.default_route
        return (next(iter(self._routes.values())) if name is None else self._routes[name]).tokenizer

    @property
    def max_seq_length(self) -> int | None:
        """The longest row in tokens, with several routes that of the default one; None for no limit."""
        name = self._folder.default_route
        return (next(iter(self._routes.values())) if name is None else self._routes[name]).max_seq_length

    @property
    def similarity_fn_name(self) -> str:
        """The metric that the model was trained for, or that was chosen: dot, cosine, euclidean or manhattan."""
        return self._folder.similarity

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
        """
        return sparse_pairwise_similarity(a, b, self.similarity_fn_name)

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
        texts
            A text, a list or another iterable of texts, an array, or an Arrow column.
        prompt_name
            The name of the model's prompt to put before each text; by default the model's default prompt, if any.
        prompt
            The prompt itself; `prompt_name` is then ignored.
        batch_size
            The most texts that go through the NumPy engine at once, sorted by length to reduce padding. The Rust engine
            ignores it: it runs texts without padding, in bounded memory.
        show_progress_bar
            Whether to show a progress bar on standard error: on a terminal a bar, elsewhere a line now and then.
        device
            None or ``"cpu"``: the model is always on the CPU.
        max_active_dims
            How many values of a vector to keep, the greatest, of equal ones those of lower columns; by default those of
            the encoder.
        pool
            None. sentence-transformers passes texts to a pool of processes; here one process uses all CPUs.
        sentences, inputs
            Other names of `texts`, of sentence-transformers.
        task
            The route of a model with several: ``"query"``, ``"document"``; by default the model's default route.
        return_truncated
            Whether to also return which texts were truncated.

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
        """
        check_device(device)
        check_pool(pool)
        vectors, truncated, longest = self._encoded(
            one_of(texts=texts, sentences=sentences, inputs=inputs),
            prompt_text(prompt, prompt_name, self._folder.prompts, self._folder.default_prompt_name),
            self._task_route(task),
            whole_number("batch_size", batch_size, 1),
            self._most(max_active_dims),
            progress=bool(show_progress_bar),
        )
        if not return_truncated:
            warn_truncated(np.atleast_1d(truncated), longest or 0)
            return vectors
        return vectors, truncated if truncated.ndim else bool(truncated)

    def encode_query(
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
        return_truncated: bool = False,
    ) -> Any:
        """Turn queries into sparse vectors: `encode` by the route and with the prompt for them.

        Parameters
        ----------
        texts, batch_size, show_progress_bar, device, max_active_dims, pool, sentences, inputs, return_truncated
            As for `encode`.
        prompt_name, prompt
            As for `encode`; by default the model's prompt ``query``, if it has one.

        Returns
        -------
        SparseVectors
            As from `encode`.
        """
        prompt_name = role_prompt_name("query", prompt, prompt_name, self.prompts)
        return self.encode(
            texts,
            prompt_name,
            prompt,
            batch_size,
            show_progress_bar,
            device,
            max_active_dims,
            pool,
            sentences=sentences,
            inputs=inputs,
            task="query",
            return_truncated=return_truncated,
        )

    def encode_document(
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
        return_truncated: bool = False,
    ) -> Any:
        """Turn documents into sparse vectors: `encode` by the route and with the prompt for them.

        Parameters
        ----------
        texts, batch_size, show_progress_bar, device, max_active_dims, pool, sentences, inputs, return_truncated
            As for `encode`.
        prompt_name, prompt
            As for `encode`; by default the first of the prompts ``document``, ``passage`` and ``corpus`` that the model
            has.

        Returns
        -------
        SparseVectors
            As from `encode`.
        """
        prompt_name = role_prompt_name("document", prompt, prompt_name, self.prompts)
        return self.encode(
            texts,
            prompt_name,
            prompt,
            batch_size,
            show_progress_bar,
            device,
            max_active_dims,
            pool,
            sentences=sentences,
            inputs=inputs,
            task="document",
            return_truncated=return_truncated,
        )

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
        return found[0] if len(getattr(vectors, "shape", (0, 0))) == 1 else found

    def _tokens(self, ids: npt.NDArray[np.int32]) -> list[str]:
        """Return the tokens of ids; a vocabulary may be larger than the tokenizer's."""
        known = self.tokenizer
        size = len(known)
        return [str(known.convert_ids_to_tokens(i)) if i < size else f"[{i}]" for i in ids.tolist()]

    def __repr__(self) -> str:
        parts = [f"{name}: {route!r}" if name else repr(route) for name, route in self._routes.items()]
        most = "" if self._max_active_dims is None else f", at most {self._max_active_dims} values"
        return f"SparseEncoder({self.dimension} tokens{most}, {', '.join(parts)})"

    def _task_route(self, task: str | None) -> RunsRoute:
        """Return the route of a task."""
        if len(self._routes) == 1 and "" in self._routes:
            return self._routes[""]
        name = self._folder.default_route if task is None else task
        if name not in self._routes:
            raise InputError(f"the model has no route for task {task!r}; its routes are {list(self._routes)}")
        return self._routes[name]

    def _most(self, max_active_dims: int | None) -> int | None:
        return self._max_active_dims if max_active_dims is None else whole_number("max_active_dims", max_active_dims, 1)

    def _encoded(
        self, given: object, prefix: str, route: RunsRoute, batch_size: int, most: int | None, *, progress: bool
    ) -> tuple[SparseVectors, npt.NDArray[np.bool_], int | None]:
        """Return the vectors of texts, which were truncated, and the longest row."""
        single, items = check_texts(given)
        vectors, truncated = route.run([prefix + item for item in items], batch_size, most, progress=progress)
        if single:
            return vectors[0], np.asarray(truncated[0]), route.max_seq_length
        return vectors, truncated, route.max_seq_length


add_peer_names(SparseEncoder, INSTEAD_IN_ENCODERS | NOT_WRITTEN)
