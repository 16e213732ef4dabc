"""Token stores and examples of Arrow record batches, for ``DataFrame.mapInArrow`` of Spark. A partition is a shard."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from wordpiece_bert import _core
from wordpiece_bert._internal.checks import check_instance, checked_choice
from wordpiece_bert.corpus.parquet import import_pyarrow, strings_of
from wordpiece_bert.errors import InputError
from wordpiece_bert.pretraining.dataset import PAIR_LABELS
from wordpiece_bert.pretraining.document_ids import ids_of_column
from wordpiece_bert.pretraining.row_options import RowOptions
from wordpiece_bert.pretraining.store import TokenStore
from wordpiece_bert.pretraining.tables import example_schema, record_batch
from wordpiece_bert.tokenizer import Tokenizer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from wordpiece_bert.pretraining.masking import Masking

__all__ = ["ExampleBatches", "StoreBatches", "example_batches", "store_batches"]

# Documents of a record batch of tokens.
_DOCUMENTS = 4096
_TYPES = {"input_ids": "array<int>", "token_type_ids": "array<tinyint>", "labels": "array<int>"}


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
        packed = self.options.packing is not None
        label = PAIR_LABELS.get(self.options.objective)
        fields = [f"{name} {_TYPES[name]}" for name in ("input_ids", "token_type_ids")]
        if label is not None:
            fields.append(f"{label} {'array<tinyint>' if packed else 'tinyint'}")
        if self.options.masking is not None:
            fields.append("labels array<int>")
        if packed:
            fields += ["position_ids array<int>", "cu_seqlens array<int>"]
        return ", ".join(fields)

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Make the examples of a partition: its documents are one shard."""
        options = self.options
        label = PAIR_LABELS.get(options.objective)
        schema = example_schema(label=label, masked=options.masking is not None, packed=options.packing is not None)
        with _store_of(self, batches) as store:
            for pass_number in range(0 if store is None else options.dupe_factor):
                assert store is not None
                for shard in store.shards:
                    builder = options.builder(shard, pass_number, 1)
                    while (block := builder.next_block()) is not None:
                        yield record_batch(block, schema, label)


@contextmanager
def _store_of(mapper: StoreBatches | ExampleBatches, batches: Iterable[Any]) -> Iterator[TokenStore | None]:
    """Tokenize the documents of a partition into a temporary store of one shard; None if there are none with tokens."""
    pyarrow = import_pyarrow("Arrow batches")
    with TemporaryDirectory(prefix="wordpiece-bert-") as folder:
        path = Path(folder) / "tokens"
        writer = _core.TokenStoreWriter(
            mapper.tokenizer._inner,
            str(path),
            fingerprint="",
            vocab_size=len(mapper.tokenizer),
            options="{}",
            file_numbers=[0],
            documents="value",
            split=mapper.sentences == "split",
            abbreviations=None,
            dtype=None,
            shard_tokens=1 << 62,
            threads=1,
        )
        rows = 0
        for batch in batches:
            if batch.num_columns != 2:
                raise InputError(
                    f"the columns must be an id and a text, not {', '.join(batch.schema.names)}: select them"
                )
            ids, texts = ids_of_column(batch.column(0), "ids"), batch.column(1)
            block = _core.TextBlock.from_arrow("batch", rows, [strings_of(pyarrow, texts)], mapper.errors)
            if len(block) < len(ids):  # nulls were skipped
                ids = ids[np.asarray(texts.is_valid())]
            rows += batch.num_rows
            writer.add(block, input_index=0, ids=ids)
        # The last document is counted when the store is finished.
        if rows == 0:
            yield None
            return
        try:
            writer.finish()
        except InputError:
            if writer.counts["tokens"]:
                raise
            yield None
            return
        yield TokenStore(path)


def store_batches(
    tokenizer: Tokenizer,
    *,
    sentences: Literal["lines", "split"] = "lines",
    errors: Literal["strict", "replace", "skip"] = "strict",
) -> StoreBatches:
    """Return a function that tokenizes documents in Arrow record batches, for ``DataFrame.mapInArrow``.

    Parameters
    ----------
    tokenizer : Tokenizer
        The tokenizer.
    sentences : {"lines", "split"}, default "lines"
        What a sentence is, as in `build_token_store`.
    errors : {"strict", "replace", "skip"}, default "strict"
        What to do with a text that is null.

    Returns
    -------
    StoreBatches
        The function, and the `schema` of its result. It takes batches of two columns: ids, which are integers or
        strings, and texts.

    Raises
    ------
    InputError
        An argument is wrong.
    """
    check_instance("tokenizer", tokenizer, Tokenizer)
    checked_choice("sentences", sentences, ("lines", "split"))
    checked_choice("errors", errors, ("strict", "replace", "skip"))
    return StoreBatches(tokenizer, sentences, errors)


def example_batches(
    tokenizer: Tokenizer,
    *,
    objective: Literal["nsp", "sop", "full-sentences", "doc-sentences", "blocks", "text"] = "nsp",
    max_length: int = 128,
    short_seq_prob: float = 0.1,
    min_sentences: int = 1,
    packing: bool | int = False,
    packing_window: int = 4096,
    max_sequences_per_row: int | None = None,
    dupe_factor: int = 1,
    masking: Masking | None = None,
    seed: int = 0,
    sentences: Literal["lines", "split"] = "lines",
    errors: Literal["strict", "replace", "skip"] = "strict",
) -> ExampleBatches:
    """Return a function that makes examples of documents in Arrow record batches, for ``DataFrame.mapInArrow``.

    A partition is a shard: the rows and masks are those of `build_examples` for a store whose shard has the same
    documents in the same order. Repartition by id and sort within partitions, so that a retried task gives the same.
    Masks depend on the ids alone, random second segments on the partition, too.

    Parameters
    ----------
    tokenizer : Tokenizer
        The tokenizer.
    objective, max_length, short_seq_prob, min_sentences, packing, packing_window, max_sequences_per_row, dupe_factor, \
masking, seed
        As for `build_examples`.
    sentences, errors
        As for `store_batches`.

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
    >>> parts = frame.select("id", "text").repartition(64, "id").sortWithinPartitions("id")  # doctest: +SKIP
    >>> parts.mapInArrow(examples, examples.schema).write.parquet("examples")  # doctest: +SKIP
    """
    mapper = store_batches(tokenizer, sentences=sentences, errors=errors)
    options = RowOptions.checked(
        tokenizer,
        objective=objective,
        max_length=max_length,
        short_seq_prob=short_seq_prob,
        min_sentences=min_sentences,
        packing=packing,
        packing_window=packing_window,
        max_sequences_per_row=max_sequences_per_row,
        dupe_factor=dupe_factor,
        masking=masking,
        seed=seed,
    )
    return ExampleBatches(mapper.tokenizer, sentences, errors, options)
