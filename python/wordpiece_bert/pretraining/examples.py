"""`build_examples`: the rows of a token store for an objective, in a format of the caller's choice."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Unpack

from wordpiece_bert._internal.parameters import completed_by, taking
from wordpiece_bert._internal.progress import shown_progress
from wordpiece_bert._internal.warn import warn
from wordpiece_bert.errors import InputError
from wordpiece_bert.pretraining.build import fingerprint_of
from wordpiece_bert.pretraining.example_run import ExampleRun
from wordpiece_bert.pretraining.formats import format_of
from wordpiece_bert.pretraining.parameters import PAIR_LABELS, ROWS, RUN
from wordpiece_bert.pretraining.parts import tokenizer_of
from wordpiece_bert.pretraining.report import ExamplesReport
from wordpiece_bert.pretraining.row_options import ROW_DEFAULTS, RowArguments, RowOptions
from wordpiece_bert.pretraining.store import TokenStore
from wordpiece_bert.tokenizer.parameters import READING

if TYPE_CHECKING:
    from wordpiece_bert.tokenizer.tokenizer import Tokenizer


@completed_by(ROWS, RUN, READING)
@taking(RowArguments, ROW_DEFAULTS)
def build_examples(
    store: TokenStore | str | os.PathLike[str],
    output: str | os.PathLike[str],
    tokenizer: Tokenizer,
    *,
    format: Literal["npy", "arrow", "parquet", "jsonl", "mds", "tfrecord"] | None = None,  # noqa: A002
    threads: int | None = None,
    show_progress_bar: bool | None = None,
    **rows: Unpack[RowArguments],
) -> ExamplesReport:
    """Make pre-training examples of a token store, in bounded memory.

    The bytes depend on the store, the arguments and the seed, not on `threads`. What was interrupted is finished by the
    same call, with the same bytes: an example folder (``"npy"``) resumes after the last pass over a shard that is
    complete, MDS after its last shard, and JSON lines, Arrow and TFRecord after the last 64 MB. Such a file is
    ``OUTPUT.part`` until it is complete, beside ``OUTPUT.journal.jsonl``. Parquet begins anew, because what its end
    says of the rows is in the memory of its writer. What a journal names is checked before a run resumes after it.

    The same call after success writes nothing and returns the same report: MDS keeps its ``journal.jsonl``, and a file
    has a hidden record beside it, ``.OUTPUT.journal.jsonl``. A file that was changed since is made again.

    Memory is bounded, however long documents are; see ``rust/wordpiece/DESIGN.md`` for how much.

    Parameters
    ----------
    store : TokenStore or path
        The store.
    output : path
        A folder (``"npy"``, ``"mds"``) or a file.
    tokenizer : Tokenizer
        The tokenizer of the store.
    format : {"npy", "arrow", "parquet", "jsonl", "mds", "tfrecord"}, optional
        By default the format of the suffix of `output`, or ``"npy"``. TFRecord files have the features of BERT's own
        script, and need `masking` with `Masking.max_predictions`.

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

    Examples
    --------
    >>> from wordpiece_bert import Tokenizer
    >>> from wordpiece_bert.pretraining import build_examples, build_token_store
    >>> tokenizer = Tokenizer.from_pretrained("models/words")
    >>> _ = build_token_store(
    ...     tokenizer,
    ...     "examples/texts/documents.txt",
    ...     "corpus.tokens",
    ...     show_progress_bar=False,
    ... )
    >>> options = {"max_length": 32, "dupe_factor": 2, "show_progress_bar": False}
    >>> report = build_examples("corpus.tokens", "pairs", tokenizer, **options)
    >>> report.objective, report.rows
    ('nsp', 12)
    """
    start = time.perf_counter()
    opened = store if isinstance(store, TokenStore) else TokenStore(store)
    path = Path(output)
    options = RowOptions(**rows).checked(tokenizer)
    kind = format_of(path, format)
    kind.load().check(options)
    _check_store(opened, options, tokenizer, path)
    with shown_progress(opened.tokens * options.dupe_factor, "token", show_progress_bar) as bar:
        tally = ExampleRun(path, kind, opened, options).build(threads, bar.update)
    fields = tally.report(options) | {
        "output": str(path),
        "options": options.recorded(),
        "documents": opened.documents,
        "documents_empty": opened.documents_empty,
        "bytes": opened.bytes,
        "seconds": time.perf_counter() - start,
    }
    return ExamplesReport.from_dict(fields)


def _check_store(store: TokenStore, options: RowOptions, tokenizer: Tokenizer, path: Path) -> None:
    fingerprint = fingerprint_of(tokenizer)
    if store.fingerprint != fingerprint:
        raise InputError(
            f"{store.path}: was made with another tokenizer, or by a version of wordpiece-bert with other ids "
            f"(fingerprint {store.fingerprint[:12]}…, that of this "
            f"tokenizer is {fingerprint[:12]}…); pass the same, or make the store again"
        )
    masking = options.masking
    if (
        masking is not None
        and tokenizer_of(masking) is not tokenizer
        and fingerprint_of(tokenizer_of(masking)) != fingerprint
    ):
        raise InputError("masking has another tokenizer than the examples; make it with the same")
    if os.path.realpath(path) == os.path.realpath(store.path):
        raise InputError(f"{path}: is the token store itself; choose another output")
    if options.objective in PAIR_LABELS:
        _check_pairs(store, options.objective)


def _check_pairs(store: TokenStore, objective: str) -> None:
    """Check that there are pairs of sentences; if not, say all that is to be changed, by how the store was made."""
    rules = store.options
    splits = rules.get("sentences") == "split"
    by_lines = rules.get("documents") == "blank-line" and rules.get("field") is None and rules.get("column") is None
    if objective == "nsp" and store.documents == 1:
        if by_lines:
            why, advice = (
                ", because no blank line divides its text",
                "With a document of several sentences on each line, build the store with documents='line' and "
                "sentences='split'; with one sentence on each line, use objective='full-sentences', which needs no "
                "pairs; for one long text, use objective='sop'",
            )
        else:
            why = ""
            advice = (
                "Give texts of several documents, or use objective='sop', or objective='full-sentences', which needs "
                "no pairs"
            )
        raise InputError(
            f"{store.path}: has one document{why}, but a random second segment comes from another one. {advice}"
        )
    if store.sentences == store.documents:
        advice = "" if splits else "build the store with sentences='split', which divides lines into sentences, or "
        raise InputError(
            f"{store.path}: every document has one sentence, but {objective!r} needs pairs of them; {advice}use "
            "objective='full-sentences', which needs no pairs"
        )
    alone = sum(shard.documents == 1 for shard in store.shards)
    if objective == "nsp" and alone:
        warn(
            f"{store.path}: {alone} of {len(store.shards)} shards have one document, so no second segment is random "
            "there; larger shards (shard_tokens) have more"
        )
