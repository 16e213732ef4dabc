"""A folder of vectors that is open for search: vectors stay in their files, and hits have ids and fields."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from wordpiece_bert._internal.answers import Answer, SearchResults
from wordpiece_bert._internal.arrays import as_float32, as_vectors
from wordpiece_bert._internal.checks import checked_choice, checked_flag, checked_strings, whole_number
from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert._internal.texts import check_texts
from wordpiece_bert._internal.warn import warn
from wordpiece_bert.errors import InputError, VectorsWarning
from wordpiece_bert.search.keywords import BM25Index, fused_rows
from wordpiece_bert.search.pair_scores import check_reranker, scores_of_pairs
from wordpiece_bert.sentence.cross_encoder import CrossEncoder
from wordpiece_bert.sentence.parameters import ENCODING
from wordpiece_bert.tokenizer.corpus.file_lists import listed_files
from wordpiece_bert.tokenizer.corpus.parquet import import_pyarrow
from wordpiece_bert.vectors.document_vectors import checked_encoder, contents_of, kind_of
from wordpiece_bert.vectors.fields import Fields
from wordpiece_bert.vectors.folder_search import (
    Group,
    check_queries_fit,
    nearest_bits,
    nearest_in_groups,
    nearest_int8,
    nearest_scored,
)
from wordpiece_bert.vectors.forms import form_of
from wordpiece_bert.vectors.layout import CHUNK, DENSE, END, HASH, PRECISIONS, START, read_listing
from wordpiece_bert.vectors.merging import joined_listing
from wordpiece_bert.vectors.part_files import MappedPart, opened_part
from wordpiece_bert.vectors.reloading import load_again

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy.typing as npt

    from wordpiece_bert.sentence.arguments import Texts
    from wordpiece_bert.sentence.encoder_loading import Encoder
    from wordpiece_bert.sentence.nearest_rows import Found
    from wordpiece_bert.vectors.layout import Listing

#: How `VectorFolder.search` finds candidates.
MODES = ("vectors", "bm25", "hybrid")

# So many queries are searched for at once where all their scores with a row group are computed.
_QUERIES = 256

# How often a folder is opened again whose parts are exchanged meanwhile.
_ATTEMPTS = 20


class VectorFolder:
    """The vectors of documents with their ids and fields, as ``wordpiece-bert embed`` and `write_vectors` write them.

    It shows the state at the time when it is opened: a folder that is brought up to date meanwhile is opened again to
    see the new one. The vectors stay in their files, and the system reads them when they are compared.

    Parameters
    ----------
    folder : str, os.PathLike or sequence of these
        The folder; or all folders that are parts of one, as ``write_vectors(part=...)`` writes them.
    allow_stale : bool, default False
        Whether queries may be encoded by another model of vectors of this kind and width, with a warning.
    threads : int, optional
        How many threads compare vectors; by default as many as this process may use.

    Attributes
    ----------
    path : Path
        The folder, or the first of several.
    model : str
        The name of the model that made the vectors.
    kind : {"dense", "sparse", "multi_vector"}
        What a text has: a vector, a vector of which the numbers other than 0 are stored, or one for each token.
    dimension : int
        The width of the vectors.
    precisions : tuple of str
        The precisions of dense vectors that are stored: ``"float32"``, ``"int8"``, ``"binary"``.
    similarity : str
        How vectors are compared.

    Examples
    --------
    >>> import pyarrow
    >>> import wordpiece_bert as wb
    >>> recipes = pyarrow.table(
    ...     {"number": [7, 8], "text": ["bread dough in the oven", "to repair a bicycle"]}
    ... )
    >>> _ = wb.write_vectors(
    ...     recipes,
    ...     "texts.vectors",
    ...     "models/static",
    ...     text_column="text",
    ...     id_column="number",
    ... )
    >>> folder = wb.open_vectors("texts.vectors")
    >>> folder.ids(), folder.vectors().shape
    ([7, 8], (2, 67))
    >>> [hit["id"] for hit in folder.search("a hot oven", top_k=1)]
    [7]
    >>> [
    ...     [hit["id"] for hit in hits]
    ...     for hits in folder.search_vectors(folder.vectors(), top_k=1)
    ... ]
    [[7], [8]]
    >>> [block.shape for block in folder.blocks()]
    [(2, 67)]
    >>> [batch.num_rows for batch in folder.batches(["number"])]
    [2]
    """

    def __init__(
        self,
        folder: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        *,
        allow_stale: bool = False,
        threads: int | None = None,
    ) -> None:
        folders = [Path(name) for name in listed_files(folder)]
        self.path = folders[0]
        self._allow_stale = checked_flag("allow_stale", allow_stale)
        self._threads = threads
        for one in folders:
            if not one.is_dir():
                raise InputError(f"{one}: is not a folder of vectors")
        for attempt in range(_ATTEMPTS):
            try:
                listing, files, self._replaced = _listed(folders)
                self._parts = [opened_part(*one) for one in zip(files, listing.parts, strict=True)]
                break
            except FileNotFoundError as cause:
                # A writer has replaced the list, and removed parts that the old one has.
                if attempt == _ATTEMPTS - 1:
                    raise InputError(f"{cause.filename}: is missing; restore it, or make the folder again") from cause
        own = listing.layout
        positions = (CHUNK, START, END) if own.chunks else ()
        stored = {*form_of(own).plain, own.id_column, *positions, *own.keep, HASH}
        for part in self._parts:
            if missing := stored - {*part.schema.names}:
                raise InputError(f"{part.path}: has no column {min(missing)!r}: make the folder again")
        self._layout, self._listing = own, listing
        self.model, self.kind = self._layout.model, self._layout.kind
        self.dimension, self.precisions = self._layout.dimension, self._layout.precisions
        self.similarity = self._layout.similarity
        self._form = form_of(self._layout)
        self._fields = Fields(self._parts)
        self._encoder: Encoder | None = None
        self._bm25: BM25Index | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The fields of a hit: for chunks ``chunk``, ``start`` and ``end``, and the columns that were kept."""
        return (*((CHUNK, START, END) if self._layout.chunks else ()), *self._layout.keep)

    @property
    def files(self) -> list[str]:
        """The Parquet files, as other programs take them: ``duckdb.read_parquet(folder.files)``.

        Raises
        ------
        InputError
            They have rows that an update has replaced or deleted.
        """
        if self._listing.replaced is not None:
            raise InputError(
                f"the files of {self.path} have {self._listing.replaced.rows:,} rows that updates have replaced or "
                "deleted: read batches(), which leaves them out, or update the folder with compact=True, which writes "
                "its files without them"
            )
        return [str(part.path) for part in self._parts]

    def __len__(self) -> int:
        return self._listing.rows

    def __repr__(self) -> str:
        what = ", ".join([self.kind, *self.precisions])
        return f"VectorFolder({str(self.path)!r}, {len(self):,} rows of {self.dimension}, {what})"

    @property
    def encoder(self) -> Encoder:
        """The encoder of queries, loaded when it is first needed, as the one was loaded that made the vectors."""
        if self._encoder is None:
            self._encoder = self._checked(self.model)
        return self._encoder

    def _checked(self, encoder: Any) -> Encoder:
        """Check that an encoder is the model of the vectors."""
        if isinstance(encoder, str | os.PathLike):
            encoder = load_again(encoder, self._layout.loading_of(encoder))
        found = checked_encoder(encoder)
        own = self._layout.fingerprint
        # The vectors of documents have another prompt than queries, and their lengths do not count for cosines.
        now = contents_of(found, own.prompt, normalize=None if self.similarity == "cosine" else bool(own.normalized))
        differences = own.differences(now)
        what = f"{self.path} has the vectors of another model; what differs: {'; '.join(differences)}"
        if differences and not self._allow_stale:
            raise InputError(f"{what}. Make them again, or search them all the same with allow_stale=True")
        if (kind_of(found), found.dimension) != (self.kind, self.dimension):
            raise InputError(
                f"{self.path} has {self.kind} vectors of {self.dimension} numbers, the encoder makes {kind_of(found)} "
                f"vectors of {found.dimension}: they cannot be compared"
            )
        if differences:
            warn(what, VectorsWarning)
        return found

    @completed_by(ENCODING)
    def search(
        self,
        queries: str | Texts,
        top_k: int = 10,
        *,
        mode: str = "vectors",
        precision: str | None = None,
        rescore_multiplier: int = 4,
        reranker: str | os.PathLike[str] | CrossEncoder | None = None,
        candidates: int = 100,
        fields: Sequence[str] | None = None,
        encoder: str | os.PathLike[str] | Encoder | None = None,
        prompt_name: str | None = None,
        prompt: str | None = None,
        batch_size: int = 32,
    ) -> SearchResults[Any]:
        """Find the documents, or chunks of them, that are nearest to queries.

        Parameters
        ----------
        queries : str, iterable of str or column of strings
            A query, or several.
        top_k : int, default 10
            How many hits a query has.
        mode : {"vectors", "bm25", "hybrid"}, default "vectors"
            Whether vectors are compared; or tokens by `BM25Index`, which is made of the kept texts when it is first
            needed; or both, and the `candidates` of each are joined by `reciprocal_rank_fusion`.
        precision : {"float32", "int8", "binary"}, optional
            The dense vectors that are compared; by default the first of these that is stored. With the last two,
            candidates are found by the quantized numbers, and sorted by their float32 vectors if these are stored.
        rescore_multiplier : int, default 4
            How many candidates there are then, as a multiple of `top_k`.
        reranker : str, PathLike or CrossEncoder, optional
            A cross encoder with one label that sorts the candidates by reading each with the query. The column of the
            texts must have been kept.
        candidates : int, default 100
            How many candidates it sorts, or a fusion joins, at least `top_k`.
        fields : sequence of str, optional
            The fields of a hit, of `columns`; by default all.
        encoder : str, PathLike or encoder, optional
            The model of the queries; by default `encoder`, loaded once. It must be the model of the vectors, with the
            same dtype and dimension; a name is loaded so.
        prompt_name, prompt : str, optional
            What is put before each query; by default the model's prompt for queries.

        Returns
        -------
        SearchResults
            For each query a list of dicts, the best first: ``id``, ``score``, and the fields; after a `reranker` the
            score is the cross encoder's, and ``retrieval_score`` the similarity. For a single query its list.

        Raises
        ------
        InputError
            The encoder is not the model of the vectors, the precision or a field is not stored, the texts were
            not kept, or an argument is wrong.
        """
        top_k = whole_number("top_k", top_k, 1)
        checked_choice("mode", mode, MODES)
        most = max(top_k, whole_number("candidates", candidates, 1))
        if isinstance(reranker, str | os.PathLike):
            reranker = CrossEncoder(reranker)
        if reranker is not None:
            check_reranker(reranker)
            self._check_texts_kept("reranker")
        count = top_k if reranker is None else most
        names = self._chosen(fields)
        single, asked = check_texts(queries)
        used = self.encoder if encoder is None else self._checked(encoder)
        found: list[list[tuple[int, float]]] = [[] for _ in asked]
        if asked and len(self):
            if mode != "bm25":
                vectors = used.encode_query(asked, prompt_name, prompt, batch_size)
                wanted = count if mode == "vectors" else most
                rows, scores = self._nearest(vectors, wanted, precision, rescore_multiplier, used)
                found = [list(zip(*one, strict=True)) for one in zip(rows.tolist(), scores.tolist(), strict=True)]
            if mode != "vectors":
                ranked = self._keywords(used).ranked(asked, most if mode == "hybrid" else count)
                numbers = self._counted_rows()
                words = [[(int(numbers[row]), score) for row, score in one] for one in ranked]
                found = words if mode == "bm25" else [one[:count] for one in fused_rows(found, words)]
        results = self._hits(found, names)
        if reranker is not None:
            results = self._reranked(asked, found, results, reranker, top_k, batch_size)
        return results[0] if single else results

    def _keywords(self, encoder: Encoder) -> BM25Index:
        """Return the index of the tokens of the kept texts, made when it is first needed."""
        if self._bm25 is None:
            self._check_texts_kept("BM25")
            column = self._layout.text_column
            self._bm25 = BM25Index(self._values_of(column), encoder.tokenizer)
        return self._bm25

    @completed_by(search)
    def search_vectors(
        self,
        queries: npt.ArrayLike,
        top_k: int = 10,
        *,
        precision: str | None = None,
        rescore_multiplier: int = 4,
        fields: Sequence[str] | None = None,
    ) -> SearchResults[Any]:
        """Find the documents nearest to query vectors, in a folder of dense vectors.

        Parameters
        ----------
        queries : array_like
            Vectors [n, d], or one [d].

        Returns
        -------
        SearchResults
            For each query a list of dicts, as from `search`.

        Raises
        ------
        InputError
            The folder has other vectors, or the queries do not fit them.
        """
        names = self._chosen(fields)
        asked = as_float32("queries", as_vectors("queries", queries))
        check_queries_fit(asked, self._layout)
        rows, scores = self._nearest(asked, whole_number("top_k", top_k, 1), precision, rescore_multiplier, None)
        return self._hits([list(zip(*one, strict=True)) for one in zip(rows, scores, strict=True)], names)

    def _nearest(
        self, queries: Any, count: int, precision: str | None, multiplier: int, encoder: Encoder | None
    ) -> Found:
        """Return the rows nearest to query vectors, and their scores."""
        groups = self._groups() if len(self) else []
        count = min(count, len(self))  # a multiple of it is searched for, which has to fit in 64 bits
        if self.kind != DENSE:
            if precision is not None:
                raise InputError(f"precision is for dense vectors; the folder has {self.kind} vectors")
            assert encoder is not None
            own = encoder
            return _in_steps(queries, lambda some: nearest_scored(some, groups, own, count))
        if precision is None:
            precision = self.precisions[0]
        elif checked_choice("precision", precision, tuple(PRECISIONS)) not in self.precisions:
            raise InputError(f"{self.path} has no vectors in {precision}; it has {', '.join(self.precisions)}")
        if not groups or not len(queries):
            return np.zeros((len(queries), 0), np.int64), np.zeros((len(queries), 0))
        if precision == "float32":
            return nearest_in_groups(queries, groups, self.similarity, count, self._threads)
        multiplier = min(whole_number("rescore_multiplier", multiplier, 1), len(self))
        if precision == "binary":
            return nearest_bits(queries, groups, self._layout, count, multiplier, self._threads)
        assert self._listing.ranges is not None
        ranges = np.array(self._listing.ranges, np.float32)
        return _in_steps(
            queries,
            lambda some: nearest_int8(some, groups, self._layout, ranges, count, multiplier, self._threads),
        )

    def _groups(self) -> list[Group]:
        """Return the row groups of all parts."""
        found: list[Group] = []
        before = 0
        for index, part in enumerate(self._parts):
            for number in range(part.groups):

                def read(column: str, part: MappedPart = part, number: int = number) -> Any:
                    return self._form.read(part, number, column)

                own = self._replaced_in(index, number)
                found.append(Group(before + int(part.starts[number]), read, own))
            before += part.rows
        return found

    def _replaced_in(self, index: int, number: int) -> npt.NDArray[np.int64]:
        """Return the numbers of the rows of a row group of a part that do not count."""
        rows, starts = self._replaced[index], self._parts[index].starts
        first, last = np.searchsorted(rows, starts[[number, number + 1]])
        return np.asarray(rows[first:last] - starts[number], np.int64)

    def _counted_rows(self) -> npt.NDArray[np.int64]:
        """Return the numbers of the rows that count, through all parts."""
        flags = [np.ones(part.rows, np.bool_) for part in self._parts]
        for own, rows in zip(flags, self._replaced, strict=True):
            own[rows] = False
        return np.flatnonzero(np.concatenate([np.zeros(0, np.bool_), *flags]))

    def _chosen(self, fields: Sequence[str] | None) -> list[str]:
        """Check names of fields."""
        if fields is None:
            return [*self.columns]
        chosen = checked_strings("fields", fields)
        for name in chosen:
            if name not in self.columns:
                raise InputError(
                    f"{self.path} has no field {name!r}; its fields are {', '.join(self.columns) or 'none'}"
                )
        return chosen

    def _check_texts_kept(self, what: str) -> None:
        if self._layout.text_column not in self._layout.keep:
            column = self._layout.text_column
            raise InputError(
                f"{what} needs the texts, and {self.path} does not have them: keep the column {column!r} when the "
                "folder is written"
            )

    def _hits(self, found: list[list[tuple[int, float]]], names: list[str]) -> SearchResults[Any]:
        """Return rows and scores as dicts."""
        own = self._layout.id_column
        results: SearchResults[Any] = SearchResults()
        for one in found:
            hits: SearchResults[Answer] = SearchResults()
            values_of_rows = self._fields.of_rows([row for row, _ in one], [own, *names])
            for (_, score), values in zip(one, values_of_rows, strict=True):
                fields = {name: values[name] for name in names if name != "id"}  # earlier versions kept such columns
                hits.append(Answer({"id": values[own], "score": float(score), **fields}))
            results.append(hits)
        return results

    def _reranked(
        self,
        queries: list[str],
        found: list[list[tuple[int, float]]],
        results: SearchResults[Any],
        reranker: CrossEncoder,
        top_k: int,
        batch_size: int,
    ) -> SearchResults[Any]:
        """Sort the hits of each query by the scores of a cross encoder."""
        column = self._layout.text_column
        texts = [[one[column] for one in self._fields.of_rows([row for row, _ in rows], [column])] for rows in found]
        pairs = [(query, text) for query, some in zip(queries, texts, strict=True) for text in some]
        scores, truncated = scores_of_pairs(reranker, pairs, batch_size=batch_size)
        sorted_results: SearchResults[Any] = SearchResults()
        start = 0
        for hits in results:
            own, cut = scores[start : start + len(hits)], truncated[start : start + len(hits)]
            start += len(hits)
            # Of equal scores the candidate that is nearer comes first: the sort is stable.
            order = np.argsort(-own, kind="stable")[:top_k].tolist()
            ranked: SearchResults[Answer] = SearchResults()
            for i in order:
                values = {"id": hits[i]["id"], "score": float(own[i]), "retrieval_score": hits[i]["score"]}
                ranked.append(Answer({**values, **{k: v for k, v in hits[i].items() if k not in values}},
                                     truncated=bool(cut[i])))  # fmt: skip
            sorted_results.append(ranked)
        return sorted_results

    def blocks(self, precision: str = "float32") -> Iterator[npt.NDArray[Any]]:
        """Yield the vectors in order, in blocks of some thousand rows [n, d].

        They are mapped from the files, except blocks with rows that an update has replaced.

        Parameters
        ----------
        precision : {"float32", "int8", "binary"}, default "float32"
            The precision. 8-bit numbers are int8, and bits are packed into uint8.

        Yields
        ------
        ndarray
            The vectors of the next rows, [n, d].

        Raises
        ------
        InputError
            The folder does not have these vectors.
        """
        if precision not in self.precisions:
            raise InputError(
                f"{self.path} has no vectors in {precision!r}; it has {', '.join(self.precisions) or 'others'}"
            )
        for group in self._groups():
            values = group.read(PRECISIONS[precision])
            if len(group.replaced):
                values = np.delete(values, group.replaced, axis=0)
            yield values.view(np.int8) if precision == "int8" else values

    def vectors(self) -> npt.NDArray[np.float32]:
        """Return the float32 vectors [n, d], in memory.

        Returns
        -------
        ndarray of float32
            The vectors, [n, d].

        Raises
        ------
        InputError
            The folder does not have them.
        """
        blocks = [*self.blocks()]
        return np.concatenate(blocks) if blocks else np.zeros((0, self.dimension), np.float32)

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[Any]:
        """Yield the rows as record batches of pyarrow, of some thousand rows each.

        Parameters
        ----------
        columns : sequence of str, optional
            The columns: the ids under their own name, the fields, and the vectors, such as ``vector``.
            By default all.

        Yields
        ------
        pyarrow.RecordBatch
            The next rows.

        Raises
        ------
        InputError
            There is no such column.
        """
        pyarrow = import_pyarrow("reading a folder of vectors")
        chosen = None if columns is None else checked_strings("columns", columns)
        names = self._parts[0].schema.names if self._parts else []
        if self._parts and (unknown := [name for name in chosen or () if name not in names]):
            raise InputError(f"{self.path} has no column {unknown[0]!r}; its columns are {', '.join(names)}")
        for index, part in enumerate(self._parts):
            for number in range(part.groups):
                table = part.group(number, chosen)
                if len(rows := self._replaced_in(index, number)):
                    table = table.take(pyarrow.array(np.delete(np.arange(len(table)), rows)))
                yield from table.to_batches()

    def ids(self) -> list[Any]:
        """Return the ids of all rows, in order.

        Returns
        -------
        list
            The ids, of the type that they were written with.
        """
        return self._values_of(self._layout.id_column)

    def _values_of(self, column: str) -> list[Any]:
        """Return the values of a column for all rows."""
        try:
            return [one for batch in self.batches([column]) for one in batch.column(0).to_pylist()]
        except UnicodeDecodeError as cause:
            raise InputError(f"{self.path}: is damaged: {cause}; make the folder again") from cause


def _listed(folders: Sequence[Path]) -> tuple[Listing, list[Path], list[npt.NDArray[np.int64]]]:
    """Return the list of a folder, or of what several are parts of; where its files are; and rows that do not count.

    A writer may exchange the list meanwhile, and remove files that the old one has: then a FileNotFoundError.
    """
    if len(folders) > 1:
        return joined_listing(folders)
    listing = read_listing(folders[0])
    return listing, [folders[0] / part.file for part in listing.parts], listing.replaced_rows(folders[0])


def _in_steps(queries: Any, search: Callable[[Any], Found]) -> Found:
    """Search for some queries at a time, whose scores with a row group are all in memory."""
    found = [search(queries[start : start + _QUERIES]) for start in range(0, len(queries), _QUERIES)]
    return np.concatenate([rows for rows, _ in found]), np.concatenate([scores for _, scores in found])


@completed_by(VectorFolder)
def open_vectors(
    folder: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    allow_stale: bool = False,
    threads: int | None = None,
) -> VectorFolder:
    """Open a folder of vectors that ``wordpiece-bert embed`` or `write_vectors` wrote, for search.

    Nothing is read but the list of its files. A search reads the vectors where they are, and the fields of the hits.

    Returns
    -------
    VectorFolder
        The folder.

    Raises
    ------
    InputError
        It is not such a folder, was not finished, or another program has changed its files; or pyarrow is not
        installed.

    Examples
    --------
    >>> import pyarrow
    >>> import wordpiece_bert as wb
    >>> recipes = pyarrow.table(
    ...     {"number": [7, 8], "text": ["bread dough in the oven", "to repair a bicycle"]}
    ... )
    >>> _ = wb.write_vectors(
    ...     recipes,
    ...     "recipes.vectors",
    ...     "models/static",
    ...     text_column="text",
    ...     id_column="number",
    ... )
    >>> folder = wb.open_vectors("recipes.vectors")
    >>> [hit["id"] for hit in folder.search("a hot oven", top_k=1)]
    [7]
    """
    return VectorFolder(folder, allow_stale=allow_stale, threads=threads)
