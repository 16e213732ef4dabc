"""`build_examples`: the rows of a token store for an objective, in a format of the caller's choice."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from wordpiece_bert._internal.progress import Progress, shows_bars
from wordpiece_bert._internal.warn import warn
from wordpiece_bert.errors import InputError
from wordpiece_bert.pretraining.build import fingerprint_of
from wordpiece_bert.pretraining.dataset import PAIR_LABELS
from wordpiece_bert.pretraining.example_folder import ExampleFolder
from wordpiece_bert.pretraining.example_stream import ExampleStream
from wordpiece_bert.pretraining.report import ExamplesReport
from wordpiece_bert.pretraining.row_options import RowOptions
from wordpiece_bert.pretraining.store import TokenStore

if TYPE_CHECKING:
    from collections.abc import Callable

    from wordpiece_bert.pretraining.masking import Masking
    from wordpiece_bert.tokenizer import Tokenizer

__all__ = ["FORMATS", "build_examples"]

FORMATS = ("npy", "arrow", "parquet", "jsonl", "mds", "tfrecord")
_SUFFIXES = {
    ".arrow": "arrow",
    ".parquet": "parquet",
    ".jsonl": "jsonl",
    ".mds": "mds",
    ".tfrecord": "tfrecord",
    ".tfrecords": "tfrecord",
}


def build_examples(
    store: TokenStore | str | os.PathLike[str],
    output: str | os.PathLike[str],
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
    format: Literal["npy", "arrow", "parquet", "jsonl", "mds", "tfrecord"] | None = None,  # noqa: A002
    threads: int | None = None,
    show_progress_bar: bool | None = None,
) -> ExamplesReport:
    """Make pre-training examples of a token store, in bounded memory.

    The bytes depend on the store, the arguments and the seed, not on `threads`. What was interrupted is finished by the
    same call, with the same bytes: an example folder (``"npy"``) resumes after the last pass over a shard that is
    complete, MDS after its last shard, and JSON lines, Arrow and TFRecord after the last 64 MB. Such a file is
    ``OUTPUT.part`` until it is complete, beside ``OUTPUT.journal.jsonl``. Parquet begins anew, because what its end
    says of the rows is in the memory of its writer. What a journal names is checked before a run resumes after it.

    The same call after success writes nothing and returns the same report: MDS keeps its ``journal.jsonl``, and a file
    has a hidden record beside it, ``.OUTPUT.journal.jsonl``. A file that was changed since is made again.

    Memory is bounded, however long documents are; see ``rust/DESIGN.md`` for how much.

    Parameters
    ----------
    store : TokenStore or path
        The store.
    output : path
        A folder (``"npy"``, ``"mds"``) or a file.
    tokenizer : Tokenizer
        The tokenizer of the store.
    objective : {"nsp", "sop", "full-sentences", "doc-sentences", "blocks", "text"}, default "nsp"
        How rows are made: pairs of segments of which the second is random (BERT) or swapped with the first (ALBERT) in
        half of the rows; sentences that fill a row, across documents (RoBERTa) or of one document; rows of equal
        length; or a document a row, cut.
    max_length : int, default 128
        The largest number of tokens of a sequence, special ones included.
    short_seq_prob : float, default 0.1
        The share of pairs that aim at a random smaller number of tokens.
    min_sentences : int, default 1
        The sentences that a pair with a next-sentence label is made of at least, where the document has as many. With
        1, as in BERT, a long sentence alone forces a random second segment.
    packing : bool or int, default False
        Put several sequences in a row: of `max_length` tokens (True), or of this many.
    packing_window : int, default 4096
        The number of sequences that are packed together.
    max_sequences_per_row : int, optional
        The largest number of sequences in a packed row.
    dupe_factor : int, default 1
        The number of passes over the store, each with other random choices.
    masking : Masking, optional
        Mask rows now. By default `PretrainingDataset` masks them when they are read.
    seed : int, default 0
        The seed of all random choices, from 0 to 2⁶⁴ - 1.
    format : {"npy", "arrow", "parquet", "jsonl", "mds", "tfrecord"}, optional
        By default that of the suffix of `output`, or ``"npy"``. TFRecord files have the features of BERT's own script,
        and need `masking` with `max_predictions`.
    threads : int, optional
        Number of threads; by default all CPUs that this process may use.
    show_progress_bar : bool, optional
        By default a bar is shown if standard error is a terminal. True shows plain lines elsewhere.

    Returns
    -------
    ExamplesReport
        What was made.

    Raises
    ------
    InputError
        The store is of another tokenizer, not finished, or not enough for the objective; an argument is wrong; or
        `output` holds other examples, or is being written by another process.
    ConfigError
        The tokenizer has no [CLS] or no [SEP] token.
    OSError
        A file cannot be written.
    """
    start = time.perf_counter()
    opened = store if isinstance(store, TokenStore) else TokenStore(store)
    path = Path(output)
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
    kind = _format_of(path, format)
    _check_format(kind, options)
    _check_store(opened, options, tokenizer, path)
    with _progress(opened, options, show=show_progress_bar) as show:
        if kind == "npy":
            tally = ExampleFolder(path, opened, options).build(threads, show)
        else:
            tally = ExampleStream(path, kind, opened, options).build(threads, show)
    fields = tally.report(options) | {
        "output": str(path),
        "options": options.recorded(),
        "documents": opened.documents,
        "documents_empty": opened.documents_empty,
        "bytes": opened.bytes,
        "seconds": time.perf_counter() - start,
    }
    return ExamplesReport.from_dict(fields)


def _format_of(path: Path, given: object) -> str:
    if given is None:
        return _SUFFIXES.get(path.suffix, "npy")
    if given not in FORMATS:
        raise InputError(f"format must be one of {', '.join(map(repr, FORMATS))}, not {given!r:.80}")
    return str(given)


def _check_format(kind: str, options: RowOptions) -> None:
    if kind != "tfrecord":
        return
    if options.masking is None or options.masking._options["max_predictions"] is None:
        raise InputError(
            "format='tfrecord' has the features of BERT's own script, which are masked: pass "
            "masking=Masking(tokenizer, max_predictions=20), or choose another format"
        )
    if options.packing is not None:
        raise InputError("format='tfrecord' has one sequence a row: pass packing=False, or choose another format")


def _check_store(store: TokenStore, options: RowOptions, tokenizer: Tokenizer, path: Path) -> None:
    fingerprint = fingerprint_of(tokenizer)
    if store.fingerprint != fingerprint:
        raise InputError(
            f"{store.path}: was made with another tokenizer (fingerprint {store.fingerprint[:12]}…, that of this "
            f"tokenizer is {fingerprint[:12]}…); pass the same, or make the store again"
        )
    masking = options.masking
    if (
        masking is not None
        and masking._tokenizer is not tokenizer
        and fingerprint_of(masking._tokenizer) != fingerprint
    ):
        raise InputError("masking has another tokenizer than the examples; make it with the same")
    if os.path.realpath(path) == os.path.realpath(store.path):
        raise InputError(f"{path}: is the token store itself; choose another output")
    if options.objective not in PAIR_LABELS:
        return
    if store.sentences == store.documents:
        raise InputError(
            f"{store.path}: every document has one sentence, but {options.objective!r} needs pairs of them; build "
            "the store with sentences='split' or documents='blank-line', or use objective='doc-sentences'"
        )
    if options.objective == "nsp" and store.documents == 1:
        raise InputError(
            f"{store.path}: has one document, but a random second segment comes from another one; build "
            "the store with documents='line' or documents='file', or use objective='sop'"
        )
    alone = sum(shard.documents == 1 for shard in store.shards)
    if options.objective == "nsp" and alone:
        message = (
            f"{store.path}: {alone} of {len(store.shards)} shards have one document, so no second segment is random "
            "there; larger shards (shard_tokens) have more"
        )
        warn(message)


class _progress:  # noqa: N801 - a context manager
    """Shows the tokens written so far; its value is called with them."""

    def __init__(self, store: TokenStore, options: RowOptions, *, show: bool | None) -> None:
        self._bar = Progress(store.tokens * options.dupe_factor, "token")
        self._visible = show is not False and (show or shows_bars(sys.stderr))

    def __enter__(self) -> Callable[[int], None]:
        return self._bar.update if self._visible else lambda _: None

    def __exit__(self, *_: object) -> None:
        self._bar.close()
