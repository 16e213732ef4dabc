"""`verify_tokenizer`: a tokenizer and the package ``tokenizers`` on the same texts."""

from __future__ import annotations

import time
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wordpiece_bert._internal.checks import whole_number
from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert._internal.progress import reading_progress
from wordpiece_bert.bert.parameters import LOADING
from wordpiece_bert.errors import InputError
from wordpiece_bert.hub import find_model
from wordpiece_bert.tokenizer.corpus.text_reader import TextReader
from wordpiece_bert.tokenizer.parameters import READING
from wordpiece_bert.tokenizer.subword import is_subword
from wordpiece_bert.tokenizer.tokenizer import Tokenizer
from wordpiece_bert.verify.tokenizer_peer import Columns, load_peer, padded_windows, peer_rows, peer_windows

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator

    from wordpiece_bert import _core
    from wordpiece_bert.tokenizer.corpus.text_reader import Errors, Fields, StrPath

#: Texts are compared in groups of at most so many, and of about so many tokens: theirs take 200 bytes for each.
_TEXTS, _TOKENS = 1024, 1 << 19
#: The tokens of a window, unless the model takes fewer or the call says otherwise.
_WINDOW = 128


@dataclass(frozen=True, kw_only=True)
class Difference:
    """Where two tokenizers first differ.

    Examples
    --------
    >>> from wordpiece_bert.verify import Difference
    >>> first = Difference(
    ...     place="a.txt line 3", text="Café", field="ids", token=1, ours=7668, theirs=100
    ... )
    >>> first.place, first.cut
    ('a.txt line 3', False)
    """

    #: The file and the line of the text.
    place: str
    #: The text, or both of a pair.
    text: str | tuple[str, str]
    #: What differs: ``"ids"``, ``"offsets"``, a mask, ``"windows"`` for their number, ``"tokens"`` for the number of
    #: tokens in a row, or ``"error"`` if ``tokenizers`` fails on the text.
    field: str
    #: What each has there.
    ours: Any
    theirs: Any
    #: Whether it is in the windows of the text, and the index of the window.
    cut: bool = False
    row: int = 0
    #: The index of the token in the row; None where numbers of rows or tokens differ.
    token: int | None = None
    #: Both tokens there.
    tokens: tuple[str | None, str | None] | None = None
    #: The first character of our token in the text.
    start: int | None = None


@dataclass(frozen=True, kw_only=True)
class TokenizerReport:
    """What `verify_tokenizer` found.

    Examples
    --------
    >>> from wordpiece_bert.verify import verify_tokenizer
    >>> report = verify_tokenizer("minilm", "examples/texts/sentences.txt")
    >>> report.passed, report.texts, report.first
    (True, 60, None)
    """

    #: What was compared with, and its version.
    reference: str
    #: How many texts, tokens, and rows of cut texts were compared, and the bytes of text.
    texts: int
    tokens: int
    windows: int
    bytes: int
    #: The tokens of a window, and how many it shares with the one before.
    max_length: int
    stride: int
    #: How many texts differ, and where the first of them does.
    differing: int
    first: Difference | None
    #: How many texts could not be read and were skipped.
    skipped: int
    seconds: float

    @property
    def passed(self) -> bool:
        """Whether all texts have the same tokens."""
        return self.differing == 0

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, and whether the tokenizer passed, as JSON has them.

        Returns
        -------
        dict
            Numbers, texts, and a dict for the first difference.

        Examples
        --------
        >>> from wordpiece_bert.verify import verify_tokenizer
        >>> verify_tokenizer("minilm", "examples/texts/sentences.txt").to_dict()["differing"]
        0
        """
        return {"passed": self.passed, **asdict(self)}


@completed_by(READING, LOADING)
def verify_tokenizer(
    name: str | os.PathLike[str],
    files: StrPath | Iterable[StrPath],
    *,
    max_length: int | None = None,
    stride: int | None = None,
    lowercase: bool = True,
    separator: str | None = "\n",
    field: Fields | None = None,
    column: Fields | None = None,
    errors: Errors = "strict",
    show_progress_bar: bool | None = False,
    download: bool = False,
    threads: int | None = None,
) -> TokenizerReport:
    """Compare a tokenizer with the one that the installed package ``tokenizers`` makes of the same files.

    Each text is encoded whole, and in padded windows of `max_length` tokens. Ids, offsets, word ids, token types, the
    mask of special tokens, the attention mask, and the number of windows have to be equal. While ``tokenizers`` encodes
    one part of the texts, the part before is compared.

    Parameters
    ----------
    name : str or os.PathLike
        A folder, a ``tokenizer.json``, a ``vocab.txt``, ``"minilm"``, or ``"org/name"`` in the local Hugging Face
        cache.
    max_length : int, optional
        The tokens of a window, special tokens included; by default 128, or the longest row of the tokenizer if that is
        less.
    stride : int, optional
        How many tokens a window shares with the one before; by default a quarter of `max_length`, as far as the special
        tokens leave room for it.
    lowercase : bool, default True
        For a ``vocab.txt`` by itself: convert texts to lower case.

    Returns
    -------
    TokenizerReport
        Whether all texts have the same tokens, and the first difference.

    Raises
    ------
    MissingPackageError
        ``tokenizers`` is not installed.
    InputError
        The files have no text, or one cannot be read; or the tokenizer is not WordPiece, which ``tokenizers`` itself
        runs.
    ModelNotFoundError, TokenizerFormatError, VocabError
        As for `Tokenizer.from_pretrained`.

    Examples
    --------
    >>> from wordpiece_bert.verify import verify_tokenizer
    >>> verify_tokenizer(
    ...     "minilm", "examples/texts/sentences.txt", max_length=8, stride=2
    ... ).windows
    201
    """
    start = time.perf_counter()
    source = Path(name) if Path(name).is_file() else find_model(name, download=download)
    ours = _load(source, lowercase=lowercase)
    whole, reference = load_peer(source, ours)
    cut, _ = load_peer(source, ours)
    limit = ours.model_max_length or _WINDOW
    special = max(ours.num_special_tokens_to_add(), ours.num_special_tokens_to_add(pair=True))
    size = min(_WINDOW, limit) if max_length is None else whole_number("max_length", max_length, special + 1)
    most = size - special - 1
    shared = min(size // 4, most) if stride is None else whole_number("stride", stride, 0, most)
    both = _Both(ours, whole, cut, size, shared, threads)
    reader = TextReader(files, separator=separator, field=field, column=column, errors=errors, block_texts=_TEXTS)
    tokens = windows = size_of_texts = differing = 0
    first: Difference | None = None
    with reading_progress(reader, show=show_progress_bar) as show:
        for part, found in both.compare(part for block in reader for part in block.parts(1, 1, _TOKENS)):
            tokens += found.tokens
            windows += found.windows
            differing += len(found.differing)
            size_of_texts += part.bytes
            if first is None and found.differing:
                first = both.difference(part, min(found.differing))
            show(tokens)
    if not reader.count:
        raise InputError(
            f"{', '.join(reader.files)}: no text to compare{' could be read' * (reader.skipped_count > 0)}"
        )
    return TokenizerReport(
        reference=reference,
        texts=reader.count,
        tokens=tokens,
        windows=windows,
        bytes=size_of_texts,
        max_length=size,
        stride=shared,
        differing=differing,
        first=first,
        skipped=reader.skipped_count,
        seconds=time.perf_counter() - start,
    )


def _load(source: Path, *, lowercase: bool) -> Tokenizer:
    if source.is_file():
        if source.suffix == ".json":
            return Tokenizer.from_file(source)
        return Tokenizer.from_vocab(source, lowercase=lowercase)
    if is_subword(source):
        raise InputError(
            f"{source} has a tokenizer that is not WordPiece: the package tokenizers itself runs it, so that there is "
            "nothing to compare"
        )
    return Tokenizer.from_pretrained(source)


@dataclass(frozen=True)
class _Found:
    """What was found in a part of the texts."""

    tokens: int
    windows: int
    differing: list[int]  # the indices of texts


class _Both:
    """Both tokenizers, and how texts are cut."""

    def __init__(
        self, ours: Tokenizer, whole: Any, cut: Any, max_length: int, stride: int, threads: int | None
    ) -> None:
        self._ours, self._whole, self._cut = ours, whole, cut
        self._max_length, self._stride, self._threads = max_length, stride, threads
        self._padded = padded_windows(cut, ours, max_length, stride)

    def compare(self, parts: Iterable[_core.TextBlock]) -> Iterator[tuple[_core.TextBlock, _Found]]:
        """Yield each part of the texts with what was found; the next one is encoded by theirs meanwhile."""
        waiting: deque[tuple[_core.TextBlock, list[Any], Future[tuple[Any, Any]]]] = deque()
        with ThreadPoolExecutor(1) as other:
            try:
                for part in parts:
                    texts = part.texts()
                    waiting.append((part, texts, other.submit(self._theirs, texts)))
                    if len(waiting) > 1:
                        yield self._next(waiting)
                while waiting:
                    yield self._next(waiting)
            finally:
                other.shutdown(cancel_futures=True)

    def _next(self, waiting: deque[Any]) -> tuple[_core.TextBlock, _Found]:
        part, texts, future = waiting.popleft()
        whole, cut = future.result()
        return part, self._compared(texts, whole, cut)

    def _theirs(self, texts: list[Any]) -> tuple[Any, Any]:
        """Encode texts with theirs, whole and cut; None for both if it fails on one of them."""
        try:
            return self._whole.encode_batch(texts), self._cut.encode_batch(texts)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt | SystemExit):
                raise
            return None, None  # its panics are no Exception; the texts are then encoded one by one

    def _compared(self, texts: list[Any], whole: Any, cut: Any) -> _Found:
        if whole is None and len(texts) > 1:
            found = [self._compared([text], *self._theirs([text])) for text in texts]
            differing = [index for index, one in enumerate(found) if one.differing]
            return _Found(sum(one.tokens for one in found), sum(one.windows for one in found), differing)
        if whole is None:
            return _Found(0, 0, [0])
        our_rows, our_windows = self._rows(texts), self._windows(texts)
        unequal = _differing(our_rows, peer_rows(whole), len(texts))
        unequal |= _differing(our_windows, peer_windows(cut), len(texts))
        counts = np.bincount(our_windows["texts"], minlength=len(texts))
        return _Found(len(our_rows["ids"]), int(counts[counts > 1].sum()), sorted(unequal))

    def _rows(self, texts: list[Any]) -> Columns:
        batch = self._ours.encode_batch(
            texts,
            truncation=False,
            padding=False,
            return_offsets=True,
            return_word_ids=True,
            return_sequence_ids=True,
            threads=self._threads,
        )
        assert batch.offsets is not None
        assert batch.word_ids is not None
        assert batch.sequence_ids is not None
        return {
            "lengths": batch.lengths,
            "texts": np.arange(len(texts)),
            "ids": batch.ids,
            "offsets": batch.offsets,
            "word ids": batch.word_ids,
            "special tokens mask": batch.sequence_ids == -1,
        }

    def _windows(self, texts: list[Any]) -> Columns:
        # Arrays need rows of one length, which only padding makes.
        found = self._ours(
            texts,
            padding="max_length" if self._padded else False,
            truncation=True,
            max_length=self._max_length,
            stride=self._stride,
            return_tensors="np" if self._padded else None,
            return_token_type_ids=True,
            return_attention_mask=True,
            return_overflowing_tokens=True,
            return_special_tokens_mask=True,
            return_offsets_mapping=True,
            verbose=False,
            threads=self._threads,
        )
        rows = {name: list(found[name]) for name in found}
        return {
            "lengths": np.array([len(row) for row in rows["input_ids"]], np.int64),
            "texts": np.array(rows["overflow_to_sample_mapping"], np.int64),
            "ids": np.concatenate(rows["input_ids"]),
            "token type ids": np.concatenate(rows["token_type_ids"]),
            "attention mask": np.concatenate(rows["attention_mask"]),
            "special tokens mask": np.concatenate(rows["special_tokens_mask"]),
            "offsets": np.concatenate([np.reshape(row, (-1, 2)) for row in rows["offset_mapping"]]),
        }

    def difference(self, part: _core.TextBlock, index: int) -> Difference:
        """Return where a text that differs does so first, whole before cut, and in the order of the rows."""
        text = part.texts()[index]
        place = part.location(index)
        whole, cut = self._theirs([text])
        if whole is None:
            error = _error_of(self._whole, self._cut, text)
            return Difference(place=place, text=text, field="error", ours="no error", theirs=error)
        ours, theirs, is_cut = self._rows([text]), peer_rows(whole), False
        first = _first(ours, theirs)
        if first is None:
            ours, theirs, is_cut = self._windows([text]), peer_windows(cut), True
            first = _first(ours, theirs)
        assert first is not None, "a text that differs among others differs by itself"
        if first.token is None:
            return Difference(place=place, text=text, cut=is_cut, **first.named())
        at = first.at
        tokens = self._ours.id_to_token(int(ours["ids"][at])), self._whole.id_to_token(int(theirs["ids"][at]))
        start = int(ours["offsets"][at, 0])
        return Difference(place=place, text=text, cut=is_cut, tokens=tokens, start=start, **first.named())


class _Place(NamedTuple):
    """Where the rows of a text differ, and what each has there."""

    field: str
    row: int
    token: int | None
    ours: Any
    theirs: Any
    at: int = 0  # the index of the token in the columns

    def named(self) -> dict[str, Any]:
        return {name: value for name, value in self._asdict().items() if name != "at"}


def _error_of(*arguments: Any) -> str:
    *peers, text = arguments
    for peer in peers:
        try:
            peer.encode_batch([text])
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt | SystemExit):
                raise
            return f"{type(error).__name__}: {error}"
    raise AssertionError("it failed on this text")


def _differing(ours: Columns, theirs: Columns, texts: int) -> set[int]:
    """Return the indices of texts whose rows differ."""
    if all(np.array_equal(ours[name], theirs[name]) for name in ours):
        return set()
    mine, other = _of_texts(ours, texts), _of_texts(theirs, texts)
    return {index for index in range(texts) if _first(mine[index], other[index]) is not None}


def _of_texts(columns: Columns, texts: int) -> list[Columns]:
    """Divide columns by text."""
    rows = np.searchsorted(columns["texts"], np.arange(texts + 1))
    ends = np.concatenate([[0], np.cumsum(columns["lengths"])])
    divided = []
    for first, last in pairwise(rows):
        tokens = slice(int(ends[first]), int(ends[last]))
        named = {name: column[tokens] for name, column in columns.items() if name not in ("lengths", "texts")}
        divided.append({"lengths": columns["lengths"][first:last], "texts": columns["texts"][first:last], **named})
    return divided


def _first(ours: Columns, theirs: Columns) -> _Place | None:
    """Return the first difference in the rows of one text; None if there is none."""
    counts = len(ours["lengths"]), len(theirs["lengths"])
    start = 0
    for row in range(min(counts)):
        lengths = int(ours["lengths"][row]), int(theirs["lengths"][row])
        found: list[tuple[int, str]] = []
        for name in ours.keys() - {"lengths", "texts"}:
            a, b = (columns[name][start : start + min(lengths)] for columns in (ours, theirs))
            unequal = np.flatnonzero((a != b).reshape(len(a), -1).any(axis=1))
            found += [(int(unequal[0]), name)] if len(unequal) else []
        if found:
            # Other ids are the cause where other fields differ at the same token.
            token, name = min(found, key=lambda one: (one[0], list(ours).index(one[1])))
            mine, other = (columns[name][start + token].tolist() for columns in (ours, theirs))
            return _Place(name, row, token, mine, other, start + token)
        if lengths[0] != lengths[1]:
            return _Place("tokens", row, None, *lengths)
        start += lengths[0]
    return None if counts[0] == counts[1] else _Place("windows", min(counts), None, *counts)
