"""`write_vectors`: the vectors of documents into a folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from wordpiece_bert._internal.checks import check_path, checked_flag, checked_strings, whole_number
from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert._internal.warn import warn
from wordpiece_bert.errors import InputError, TruncationWarning
from wordpiece_bert.sentence.parameters import ENCODING
from wordpiece_bert.tokenizer.corpus.file_parts import checked_part, part_of_files
from wordpiece_bert.tokenizer.corpus.part_records import PartRecord, call_of, check_same
from wordpiece_bert.vectors.chunking import Chunking
from wordpiece_bert.vectors.document_vectors import checked_encoder, embedding, layout_of
from wordpiece_bert.vectors.documents import Documents
from wordpiece_bert.vectors.folder_update import TEXTS_FOR_RANGES, UpdatePlan, write_folder
from wordpiece_bert.vectors.layout import LISTING, PRECISIONS, read_listing
from wordpiece_bert.vectors.reloading import load_again
from wordpiece_bert.vectors.text_files import PATH, TEXT, TextFiles

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from wordpiece_bert.sentence.encoder_loading import Encoder
    from wordpiece_bert.vectors.layout import Layout


class WrittenVectors(NamedTuple):
    """What `write_vectors` did.

    Attributes
    ----------
    rows : int
        The number of rows that the folder has now: of documents, or of their chunks.
    plan : UpdatePlan
        How many documents were new, changed and so on.
    truncated : list
        The ids of documents whose texts, or chunks, were longer than the model accepts.
    skipped : dict
        The problems of files that were left out, by their paths.

    Examples
    --------
    >>> import pyarrow
    >>> import wordpiece_bert as wb
    >>> table = pyarrow.table({"number": [7, 8], "text": ["bread dough", "a bicycle"]})
    >>> found = wb.write_vectors(
    ...     table, "texts.vectors", "models/static", text_column="text", id_column="number"
    ... )
    >>> found.rows, found.truncated
    (2, [])
    """

    rows: int
    plan: UpdatePlan
    truncated: list[Any]
    skipped: dict[str, str]


@completed_by(ENCODING)
def write_vectors(
    documents: Any,
    folder: str | os.PathLike[str],
    encoder: str | os.PathLike[str] | Encoder | None = None,
    *,
    text_column: str | None = None,
    id_column: str | None = None,
    keep: Sequence[str] | None = None,
    precision: str | Sequence[str] | None = None,
    chunk_size: int | None = None,
    chunk_overlap: int = 0,
    chunk_by: str = "tokens",
    late_chunking: bool = False,
    whole: bool = False,
    errors: str = "strict",
    update: bool = False,
    prune: bool = False,
    compact: bool = False,
    part: tuple[int, int] | None = None,
    model: str | None = None,
    normalize_embeddings: bool | None = None,
    prompt_name: str | None = None,
    prompt: str | None = None,
    batch_size: int = 32,
    planned: Callable[[UpdatePlan], object] | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> WrittenVectors:
    """Write the vectors of documents with their ids and fields into a folder of Parquet files, or bring one up to date.

    With `update` only documents that are new, or whose texts have changed, are embedded; other rows are copied where a
    field has changed, and otherwise stay. The folder changes in one step, at the end. A run that is killed is continued
    by the same call. `open_vectors` searches the folder.

    Parameters
    ----------
    documents : path, iterable of paths, or table
        Parquet, .csv, .tsv or .jsonl files, or a table of pyarrow, polars, pandas or DuckDB; with `whole` text files.
    folder : str or os.PathLike
        The folder to write.
    encoder : str, PathLike or encoder, optional
        The model: dense, static, sparse or of many vectors for a text; with `update` by default the folder's. A model
        that is named is then loaded as the folder's was: dtype, ``truncate_dim``, prompts and so on.
    text_column, id_column : str, optional
        The columns of the texts and the ids: texts or whole numbers, all different. With `update` by default, as the
        arguments down to `late_chunking`, the folder's.
    keep : sequence of str, optional
        Columns that are kept as fields of the hits; the texts' column, too, if cross encoders are to read them.
    precision : str or sequence of str, optional
        ``"float32"`` (the default), ``"int8"`` or ``"binary"``, for dense vectors, or several of them. The ranges of
        8-bit numbers come from the first 4,096 texts, and stay.
    chunk_size : int, optional
        The most tokens of a chunk: long texts have a row for each of their chunks, with its number and its place in the
        text, in characters. By default a text has one row, and the model truncates what is longer than it accepts.
    chunk_overlap : int, default 0
        How many of the last tokens of a chunk the next one repeats; with sentences at most so many.
    chunk_by : {"tokens", "sentences"}, default "tokens"
        What chunks are made of.
    late_chunking : bool, default False
        Whether the vectors of a chunk's tokens are computed with the text around them; needs a model that pools by the
        mean.
    whole : bool, default False
        Whether each file is a document, the column ``"text"``, with its path as id, the column ``"path"``. A folder
        stands for the files in it and below it that are not hidden, and ``"docs/**/*.md"`` for those that match.
    errors : {"strict", "replace", "skip"}, default "strict"
        With `whole`: whether a file that is not UTF-8 is an error, has its invalid bytes replaced, or is left out.
    update : bool, default False
        Whether the folder may have vectors.
    prune : bool, default False
        With `update`: whether rows go whose id is not among the documents.
    compact : bool, default False
        With `update`: whether files are written again that have replaced rows, so that other programs can read them.
        By default such rows stay in their files, and are not counted, until they are a fifth of the folder.
    part : (int, int), optional
        Write one part of the files only, ``(0, 8)`` to ``(7, 8)``, for several processes or machines, each into a
        folder of its own. `merge_parts` puts the folders together. Parquet files are divided at row groups. A part that
        is complete already stays as it is.
    model : str, optional
        The name under which the folder's users load the model; by default the name of `encoder`.
    normalize_embeddings : bool, optional
        Whether to scale the vectors to length 1; by default no, or with `update` as the folder has them.
    prompt_name, prompt : str, optional
        What is put before each text; by default the model's prompt for documents.
    planned : callable, optional
        Called with the `UpdatePlan` before anything is embedded.
    progress : callable, optional
        Called with the numbers of documents embedded and to be embedded.

    Returns
    -------
    WrittenVectors
        The number of rows, the plan, and the ids of truncated documents.

    Raises
    ------
    InputError
        The folder has vectors and `update` is false, or vectors of something else; another process writes there; two
        documents have one id; or an argument is wrong.

    Warns
    -----
    TruncationWarning
        Documents were truncated.

    Examples
    --------
    >>> import pyarrow
    >>> import wordpiece_bert as wb
    >>> table = pyarrow.table(
    ...     {"number": [7, 8], "text": ["bread dough in the oven", "to repair a bicycle"]}
    ... )
    >>> columns = {"text_column": "text", "id_column": "number"}
    >>> wb.write_vectors(table, "kitchen.vectors", "models/static", **columns).rows
    2
    >>> more = pyarrow.table(
    ...     {"number": [7, 9], "text": ["bread dough in the oven", "flour and water"]}
    ... )
    >>> wb.write_vectors(more, "kitchen.vectors", update=True).plan
    UpdatePlan(new=1, changed=0, other_fields=0, unchanged=1, gone=1, prune=False)

    Files by their paths, with the text of each chunk:

    >>> _ = wb.write_vectors(
    ...     "examples/texts",
    ...     "files.vectors",
    ...     "models/static",
    ...     whole=True,
    ...     keep=["text"],
    ...     chunk_size=9,
    ... )
    >>> hit = wb.open_vectors("files.vectors").search("Ada lived in London", top_k=1)[0]
    >>> hit["id"], hit["text"]
    ('examples/texts/people.txt', 'Ada Lovelace was born in London in December 1815')
    """
    check_path("folder", folder)
    home = Path(folder)
    checked_flag("update", update)
    checked_flag("prune", prune)
    checked_flag("compact", compact)
    batch_size = whole_number("batch_size", batch_size, 1)
    for name, value in (("prune", prune), ("compact", compact)):
        if value and not update:
            raise InputError(f"{name} is for an update: pass update=True")
    if part is not None and update:
        raise InputError("part is for a new folder: leave out update")
    before: Layout | None = read_listing(home).layout if update and (home / LISTING).exists() else None
    source = _Source.of(documents, text_column, id_column, before, whole=whole, errors=errors)
    kept = checked_strings("keep", keep) if keep is not None else list(before.keep) if before else []
    chunking = _chunking(chunk_size, chunk_overlap, chunk_by, before, late_chunking=late_chunking)
    if before is not None and prompt is None and prompt_name is None:
        prompt = before.fingerprint.prompt
    if normalize_embeddings is None:
        normalize_embeddings = before is not None and before.settings.get("normalize", False)
    used = _encoder(encoder, before)
    layout = layout_of(
        used,
        model=model or (before.model if before else None),
        id_column=source.id_column,
        text_column=source.text_column,
        keep=kept,
        precisions=_precisions(precision, before),
        chunking=chunking,
        prompt=prompt,
        prompt_name=prompt_name,
        normalize=normalize_embeddings,
    )
    embed = embedding(
        used, chunking, prompt=prompt, prompt_name=prompt_name, normalize=normalize_embeddings, batch_size=batch_size
    )
    record = None if part is None else source.record(part, layout)
    first_texts = partial(source.first_texts, kept) if record is not None and "int8" in layout.precisions else None
    table = source.table(kept, part)
    if record is not None and (home / LISTING).exists():
        listed = read_listing(home)
        if listed.part is not None:
            check_same(listed.part, record, str(home))
            return WrittenVectors(listed.rows, UpdatePlan(0, 0, 0, table.count, 0, prune=False), [], {})
    plans: list[UpdatePlan] = []
    truncated: list[Any] = []

    def plan(made: UpdatePlan) -> None:
        plans.append(made)
        if planned is not None:
            planned(made)

    def done(count: int, cut: list[Any]) -> None:
        truncated.extend(cut)
        if progress is not None:
            progress(count, plans[0].to_embed)

    listing = write_folder(
        home, table, layout, embed, update=update, prune=prune, planned=plan, done=done, part=record,
        first_texts=first_texts, compact=compact,
    )  # fmt: skip
    if truncated:
        warn(f"{len(truncated):,} of {plans[0].to_embed:,} texts truncated, first {truncated[0]!r}", TruncationWarning)
    return WrittenVectors(listing.rows, plans[0], truncated, source.skipped)


@dataclass
class _Source:
    """The documents of a call: a table, files of tables, or files that are documents."""

    given: Any
    text_column: str
    id_column: str
    #: How files that are documents are read; None for tables.
    errors: str | None
    skipped: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls, given: Any, text_column: Any, id_column: Any, before: Layout | None, *, whole: bool, errors: str
    ) -> _Source:
        """Check what a call gives."""
        if isinstance(given, Iterator) and not hasattr(given, "__arrow_c_stream__"):
            given = list(given)  # it is read for the record of a part, too
        if checked_flag("whole", whole):
            if text_column is not None or id_column is not None:
                raise InputError("whole has the columns 'path' and 'text': leave out text_column and id_column")
            return cls(given, TEXT, PATH, errors)
        if errors != "strict":
            raise InputError(f"errors={errors!r} is for files that are documents: pass whole=True")
        text_column = _given("text_column", text_column, before.text_column if before else None)
        id_column = _given("id_column", id_column, before.id_column if before else None)
        return cls(given, text_column, id_column, None)

    def table(self, keep: Sequence[str], part: tuple[int, int] | None = None) -> Documents:
        """Return the documents, or a part of them."""
        given = self.given
        if self.errors is not None:
            given = TextFiles(given, self.errors)
            if part is not None:
                chosen = part_of_files(given.paths, part, tables=False)
                given.paths = [one.path for one in chosen if one.groups is None]
            self.skipped = given.skipped
        elif part is not None:
            given = part_of_files(given, part, tables=True)
        return Documents(given, self.text_column, self.id_column, keep)

    def record(self, part: tuple[int, int], layout: Layout) -> PartRecord:
        """Return the record of a part."""
        number, count = checked_part(part)
        if self.errors is None and hasattr(self.given, "__arrow_c_stream__"):
            raise InputError("part divides files: pass the paths of tables, or divide the table yourself")
        files = self.given if self.errors is None else TextFiles(self.given, self.errors).paths
        decides = {name: value for name, value in layout.to_json().items() if name != "model"}
        call = call_of(files, command="embed", format="vectors", errors=self.errors, **decides)
        return PartRecord(number, count, call)

    def first_texts(self, keep: Sequence[str]) -> list[str]:
        """Return the first texts of all documents, from which the ranges of 8-bit numbers come."""
        found: list[str] = []
        for table in self.table(keep).tables(texts=True):
            found += table.column("").to_pylist()
            if len(found) >= TEXTS_FOR_RANGES:
                break
        return found[:TEXTS_FOR_RANGES]


def _precisions(given: str | Sequence[str] | None, before: Layout | None) -> list[str]:
    if given is None:
        return list(before.precisions) if before and before.precisions else ["float32"]
    precisions = [given] if isinstance(given, str) else checked_strings("precision", given)
    unknown = [one for one in precisions if one not in PRECISIONS]
    if unknown or not precisions:
        raise InputError(f"precision must be of {', '.join(PRECISIONS)}, not {unknown or precisions!r}")
    return precisions


def _chunking(
    size: int | None, overlap: int, by: str, before: Layout | None, *, late_chunking: bool
) -> Chunking | None:
    if size is not None:
        return Chunking(size, overlap, by, late_chunking)
    if overlap or by != "tokens" or late_chunking:
        raise InputError("chunk_overlap, chunk_by and late_chunking need chunk_size")
    return Chunking(**before.chunks) if before and before.chunks else None


def _given(name: str, value: str | None, before: str | None) -> str:
    value = before if value is None else value
    if not isinstance(value, str):
        raise InputError(f"{name} must be the name of a column, not {value!r}")
    return value


def _encoder(given: Any, before: Layout | None) -> Encoder:
    if given is None:
        if before is None:
            raise InputError("encoder must be an encoder, or the name of a model: a new folder has none")
        given = before.model
    if isinstance(given, str | os.PathLike):
        return load_again(given, before.loading_of(given) if before else {})
    return checked_encoder(given)
