"""Token stores and examples of Arrow record batches, for ``DataFrame.mapInArrow`` of Spark. A partition is a shard."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from wordpiece_bert._internal.checks import check_instance, checked_choice
from wordpiece_bert._internal.owner import Owner
from wordpiece_bert._internal.parameters import completed_by, taking
from wordpiece_bert.errors import InputError
from wordpiece_bert.pretraining.document_ids import block_with_ids
from wordpiece_bert.pretraining.parameters import ERRORS, ROWS, RUN, SENTENCES, STORING
from wordpiece_bert.pretraining.row_options import ROW_DEFAULTS, RowArguments, RowOptions
from wordpiece_bert.pretraining.sinks.tables import arrow_schema, record_batch
from wordpiece_bert.pretraining.store import TokenStore
from wordpiece_bert.pretraining.store_writer import StoreWriter
from wordpiece_bert.pretraining.storing_options import StoringOptions
from wordpiece_bert.tokenizer.corpus.parquet import import_pyarrow
from wordpiece_bert.tokenizer.tokenizer import Tokenizer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from wordpiece_bert.pretraining.parameters import OnError, SentenceRule
    from wordpiece_bert.pretraining.schema import RowSchema

# Documents of a record batch of tokens.
_DOCUMENTS = 4096


@dataclass(frozen=True)
class StoreBatches:
    """Maps record batches of (id, text) to batches of (id, sentences); `store_batches` makes it."""

    tokenizer: Tokenizer
    sentences: str
    errors: str

    @property
    def schema(self) -> str:
        """The schema of the result, as Spark writes it."""
        return "id bigint, sentences array<array<int>>"

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Tokenize the documents of a partition."""
        pa = import_pyarrow("Arrow batches")
        with _store_of(self, batches) as store:
            for shard in () if store is None else store.shards:
                for first in range(0, shard.documents, _DOCUMENTS):
                    end = min(first + _DOCUMENTS, shard.documents)
                    documents = shard.document_offsets[first : end + 1]
                    sentences = shard.sentence_offsets[documents[0] : documents[-1] + 1]
                    ids = pa.array(shard.ids[sentences[0] : sentences[-1]].astype(np.int32))
                    inner = pa.ListArray.from_arrays(pa.array(sentences - sentences[0], pa.int32()), ids)
                    outer = pa.ListArray.from_arrays(pa.array(documents - documents[0], pa.int32()), inner)
                    names = pa.array(shard.document_ids[first:end].view(np.int64))
                    yield pa.RecordBatch.from_arrays([names, outer], names=["id", "sentences"])


@dataclass(frozen=True)
class ExampleBatches:
    """Maps record batches of (id, text) to batches of examples; `example_batches` makes it."""

    tokenizer: Tokenizer
    sentences: str
    errors: str
    options: RowOptions

    @property
    def schema(self) -> str:
        """The schema of the result, as Spark writes it."""
        schema, fields = _schema_of(self.options), []
        for name in schema.columns:
            entry = "tinyint" if name in ("token_type_ids", schema.label) else "int"
            fields.append(f"{name} {entry if name == schema.label and not schema.packed else f'array<{entry}>'}")
        return ", ".join(fields)

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Make the examples of a partition: its documents are one shard."""
        options = self.options
        schema = _schema_of(options)
        arrow = arrow_schema(schema)
        with _store_of(self, batches) as store:
            for pass_number in range(0 if store is None else options.dupe_factor):
                assert store is not None
                for shard in store.shards:
                    builder = options.builder(shard, pass_number, 1)
                    while (block := builder.next_block()) is not None:
                        yield record_batch(block, schema, arrow)


def _schema_of(options: RowOptions) -> RowSchema:
    return options.schema(np.dtype(np.uint32))


@contextmanager
def _store_of(mapper: StoreBatches | ExampleBatches, batches: Iterable[Any]) -> Iterator[TokenStore | None]:
    """Tokenize the documents of a partition into a temporary store of one shard; None if there are none with tokens."""
    with ExitStack() as stack:
        folder = mkdtemp(prefix="wordpiece-bert-")
        stack.callback(Owner().do, rmtree, folder, ignore_errors=True)
        options = StoringOptions(column="text", sentences=mapper.sentences, shard_tokens=1 << 62)
        builder = options.builder(mapper.tokenizer, [0], 1)
        path, rows = Path(folder), 0
        with StoreWriter(path, builder, mapper.tokenizer, "", {}) as writer:
            for batch in batches:
                if batch.num_columns != 2:
                    raise InputError(
                        f"the columns must be an id and a text, not {', '.join(batch.schema.names)}: select them"
                    )
                block, ids = block_with_ids("batch", rows, batch.column(1), batch.column(0), mapper.errors, "ids")
                rows += batch.num_rows
                writer.add(block, input_index=0, ids=ids)
            if writer.counts["tokens"]:
                writer.finish()
                yield TokenStore(path)
            else:
                yield None


@completed_by(STORING, RUN)
def store_batches(
    tokenizer: Tokenizer,
    *,
    sentences: SentenceRule = "lines",
    errors: OnError = "strict",
) -> StoreBatches:
    r"""Return a function that tokenizes documents in Arrow record batches, for ``DataFrame.mapInArrow``.

    Parameters
    ----------
    errors : {"strict", "replace", "skip"}, default "strict"
        What to do with a text that is null or not UTF-8.

    Returns
    -------
    StoreBatches
        The function, and the `schema` of its result. It takes batches of two columns: ids, which are integers or
        strings, and texts.

    Raises
    ------
    InputError
        An argument is wrong.

    Examples
    --------
    >>> import pyarrow
    >>> from wordpiece_bert import Tokenizer
    >>> from wordpiece_bert.pretraining import store_batches
    >>> tokenize = store_batches(Tokenizer.from_pretrained("models/words"))
    >>> documents = pyarrow.record_batch(
    ...     {"id": [1], "text": ["she baked bread\nit was great"]}
    ... )
    >>> [batch.schema.names for batch in tokenize([documents])]
    [['id', 'sentences']]
    """
    check_instance("tokenizer", tokenizer, Tokenizer)
    checked_choice("sentences", sentences, SENTENCES)
    checked_choice("errors", errors, ERRORS)
    return StoreBatches(tokenizer, sentences, errors)


class BatchArguments(RowArguments, total=False):
    """The arguments of `example_batches` besides the tokenizer."""

    sentences: SentenceRule
    errors: OnError


@completed_by(ROWS, STORING, RUN)
@taking(RowArguments, ROW_DEFAULTS)
def example_batches(
    tokenizer: Tokenizer,
    *,
    sentences: SentenceRule = "lines",
    errors: OnError = "strict",
    **rows: Unpack[RowArguments],
) -> ExampleBatches:
    """Return a function that makes examples of documents in Arrow record batches, for ``DataFrame.mapInArrow``.

    A partition is a shard: the rows and masks are as from `build_examples` for a store whose shard has the same
    documents in the same order. Repartition by id and sort within partitions, so that a retried task gives the same.
    Masks depend on the ids alone, random second segments on the partition, too.

    Parameters
    ----------
    masking : Masking, optional
        Mask rows.
    errors : {"strict", "replace", "skip"}, default "strict"
        What to do with a text that is null or not UTF-8.

    Returns
    -------
    ExampleBatches
        The function, and the `schema` of its result. It takes batches of two columns: ids and texts.

    Raises
    ------
    InputError, ConfigError
        As for `build_examples`.

    Examples
    --------
    >>> examples = example_batches(tokenizer, masking=Masking(tokenizer))  # doctest: +SKIP
    >>> parts = (
    ...     frame.select("id", "text").repartition(64, "id").sortWithinPartitions("id")
    ... )  # doctest: +SKIP
    >>> parts.mapInArrow(examples, examples.schema).write.parquet(
    ...     "examples"
    ... )  # doctest: +SKIP
    """
    mapper = store_batches(tokenizer, sentences=sentences, errors=errors)
    options = RowOptions(**rows).checked(tokenizer)
    return ExampleBatches(mapper.tokenizer, sentences, errors, options)
