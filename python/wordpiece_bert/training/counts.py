"""`WordCounts`: the words of a corpus with their counts, which can be computed in parts and added up."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, Union, Unpack

from wordpiece_bert import _core
from wordpiece_bert._internal.checks import iterates, whole_number
from wordpiece_bert._internal.lazy import numpy as np
from wordpiece_bert._internal.notebook import RECORDS, records_html
from wordpiece_bert._internal.parameters import completed_by, taking
from wordpiece_bert.errors import InputError, TrainingError
from wordpiece_bert.tokenizer.corpus.column_blocks import suffix_of
from wordpiece_bert.tokenizer.corpus.file_lists import listed_files, warn_repeated
from wordpiece_bert.tokenizer.corpus.text_reader import HOLDERS
from wordpiece_bert.tokenizer.parameters import NORMALIZING
from wordpiece_bert.training import counts_file
from wordpiece_bert.training.counts_file import CountsInfo
from wordpiece_bert.training.options import (
    COUNT_DEFAULTS,
    CountOptions,
    checked_progress,
    count_fields,
    normalizer_settings,
)
from wordpiece_bert.training.parameters import COUNTING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from wordpiece_bert.tokenizer.arrow_table import ArrowArray, ArrowStream
    from wordpiece_bert.training.options import BadBytes, NormalizerOptions, NormalizerSettings, Progress

StrPath = str | os.PathLike[str]
#: An iterable of texts, or an Arrow column.
Texts = Union["Iterable[str]", "ArrowArray", "ArrowStream"]


class WordCounts:
    """Word counts of a corpus, with the normalizer settings they were made with.

    Counts can be made by file, partition or machine, added up, saved and loaded. In whatever order, the result is the
    same, and so is a vocabulary trained from it. An object is immutable. Counts made with different normalizer
    settings have different fingerprints and cannot be added.

    Create one with `from_files`, `from_texts`, `from_dict` or `load`.

    Examples
    --------
    >>> from wordpiece_bert import WordCounts
    >>> counts = WordCounts.from_texts(["The cat sat."]) + WordCounts.from_texts(
    ...     ["the mat"]
    ... )
    >>> counts["the"], counts.total, counts.texts
    (2, 6, 2)
    """

    __slots__ = ("_info", "_inner")

    _inner: _core.WordCounts
    _info: CountsInfo

    def __init__(self) -> None:
        raise TypeError("create WordCounts with from_files, from_texts, from_dict or load")

    @classmethod
    def _build(cls, inner: _core.WordCounts, info: CountsInfo) -> Self:
        self = object.__new__(cls)
        self._inner, self._info = inner, info
        return self

    # --- construction

    @classmethod
    @completed_by(NORMALIZING, COUNTING)
    @taking(CountOptions, COUNT_DEFAULTS)
    def from_files(
        cls,
        files: StrPath | Iterable[StrPath],
        **options: Unpack[CountOptions],
    ) -> Self:
        r"""Count the words of UTF-8 text files.

        Each line is a text and ends at ``\n``. A byte order mark at the start of a file is skipped.

        Parameters
        ----------
        files : path, or iterable of paths
            The files; ``"-"`` is standard input.

        Returns
        -------
        WordCounts
            The counts of all files together.

        Raises
        ------
        TrainingError
            A file is not UTF-8; the message has the file, the line and the byte offset.
        OSError
            A file does not exist or cannot be read.
        InputError
            An option is wrong, or the name of a file ends like that of JSON lines or a table.

        Examples
        --------
        >>> from pathlib import Path
        >>> from wordpiece_bert import WordCounts
        >>> Path("texts.txt").write_text("The cat sat.\nThe mat\n")
        21
        >>> WordCounts.from_files("texts.txt").most_common(2)
        [('the', 2), ('.', 1)]
        """
        listed = listed_files(files, advice="; to count texts, use from_texts")
        for name in listed:
            if suffix_of(name) in HOLDERS:
                raise InputError(f"{name}: its lines are not texts; read those in it, and pass them to from_texts")
        warn_repeated(listed)
        return cls._counted(_core.WordCounts.from_files, listed, **options)

    @classmethod
    @completed_by(NORMALIZING, COUNTING)
    @taking(CountOptions, COUNT_DEFAULTS)
    def from_texts(
        cls,
        texts: Texts,
        **options: Unpack[CountOptions],
    ) -> Self:
        """Count the words of texts.

        Returns
        -------
        WordCounts
            The counts.

        Raises
        ------
        InputError
            An item is not a str or has a lone surrogate, or an option is wrong.

        Examples
        --------
        >>> from wordpiece_bert import WordCounts
        >>> counts = WordCounts.from_texts(["The cat sat.", "The mat"])
        >>> counts
        WordCounts(5 words, 6 occurrences, 2 texts)
        """
        if isinstance(texts, str | bytes | Mapping) or not (iterates(texts) or _exports_columns(texts)):
            hint = "; pass one text in a list, and a file to from_files" if isinstance(texts, str) else ""
            raise InputError(f"texts must be an iterable of str, not {type(texts).__name__}{hint}")
        return cls._counted(_core.WordCounts.from_texts, texts, **options)

    @classmethod
    def _counted(
        cls,
        count: Callable[..., _core.Counted],
        given: Any,
        *,
        errors: BadBytes = "strict",
        max_distinct_words: int | None = None,
        threads: int | None = None,
        progress: Progress | None = None,
        **normalizing: Unpack[NormalizerOptions],
    ) -> Self:
        settings = normalizer_settings(**normalizing)
        fields = count_fields(settings, errors, max_distinct_words)
        counted = count(given, fields, threads, checked_progress(progress))
        info = CountsInfo(
            settings=settings,
            texts=counted.texts,
            bytes=counted.bytes,
            undercount=counted.undercount,
            dropped=counted.dropped,
            replaced=counted.replaced,
            skipped=counted.skipped,
        )
        return cls._build(counted.words, info)

    @classmethod
    def from_dict(cls, counts: Mapping[str, int]) -> Self:
        """Create counts from words and numbers as they are, without splitting or checking the words.

        The normalizer settings are unknown: the result has no `fingerprint`, and neither does a sum with it.

        Parameters
        ----------
        counts : mapping of str to int
            Word -> count, from 0 to 2**64 - 1. Words with a count of 0 are skipped.

        Returns
        -------
        WordCounts
            The counts.

        Raises
        ------
        InputError
            A word is not a str or has a lone surrogate, or a count is not a whole number.
        TrainingError
            A count is negative or exceeds 64 bits.

        Examples
        --------
        >>> from wordpiece_bert import WordCounts
        >>> counts = WordCounts.from_dict({"cat": 3, "mat": 1})
        >>> counts["cat"], counts.fingerprint
        (3, None)
        """
        if not hasattr(counts, "items"):
            raise InputError(f"counts must be a dict of numbers by word, not {type(counts).__name__}: {counts!r:.80}")
        text = bytearray()
        ends, numbers = [], []
        for word, count in counts.items():
            number = whole_number(f"the count of {word!r}", count, -sys.maxsize, 1 << 128)
            if not 0 <= number < 1 << 64:
                raise TrainingError(f"the count of {word!r} is {number}; it must be from 0 to 2**64 - 1")
            try:
                text += word.encode()
            except (UnicodeEncodeError, AttributeError):
                raise InputError(f"a word must be a str without lone surrogates, not {word!r}") from None
            ends.append(len(text))
            numbers.append(number)
        inner = _core.WordCounts.from_columns(bytes(text), np.array(ends, np.int64), np.array(numbers, np.uint64))
        return cls._build(inner, CountsInfo())

    # --- files

    @classmethod
    def load(cls, path: StrPath, *, check_words: bool = False) -> Self:
        r"""Load counts that `save` wrote, or any file with the same columns.

        Parameters
        ----------
        path : path
            A file with the suffix ``.parquet``, ``.arrow`` or ``.feather`` (both Arrow's file format), or ``.tsv``. All
            but the last need pyarrow.
        check_words : bool, default False
            Check for every word that it is a single word under the settings it was counted with, instead of for a
            sample of about 1000.

        Returns
        -------
        WordCounts
            The counts.

        Raises
        ------
        TrainingError
            The file is invalid: a duplicate word, a count that is not above 0, or a word that would be split.
        InputError
            The suffix is not supported, or pyarrow is not installed.
        OSError
            The file does not exist or cannot be read.

        Examples
        --------
        >>> from wordpiece_bert import WordCounts
        >>> counts = WordCounts.from_texts(["The cat sat.", "The mat"])
        >>> counts.save("counts.tsv")
        >>> WordCounts.load("counts.tsv") == counts
        True
        """
        inner, info = counts_file.read(Path(path))
        self = cls._build(inner, info)
        self._check_words(Path(path), None if check_words else 1000)
        return self

    def _check_words(self, path: Path, limit: int | None) -> None:
        """Split about `limit` words again (all if None): words that were counted with these settings stay the same."""
        settings = self._info.settings
        if settings is None:
            return
        items = self._inner.items(None)
        if limit is not None:
            items = items[:: max(1, len(items) // limit)]
        sample = [word for word, _ in items]
        # Counted as a text, each word must yield itself, once.
        again = _core.WordCounts.from_texts(sample, count_fields(settings), 1, None).words
        if len(again) != len(sample) or again.total != len(sample):
            wrong = next(word for word in sample if again.get(word) == 0)
            raise TrainingError(f"{path}: {wrong!r} is not a single word under the settings in the file; count again")

    def save(self, path: StrPath) -> None:
        r"""Write the counts to a file, atomically.

        The columns are ``word`` (string) and ``count`` (uint64), sorted by count descending, then by word. Equal counts
        make equal files. The settings and totals are in the metadata; in a .tsv, in lines before the first word that
        begin with ``#`` and have no tab.

        Parameters
        ----------
        path : path
            A file with the suffix ``.parquet``, ``.arrow``, ``.feather`` or ``.tsv``. All but the last need pyarrow.

        Raises
        ------
        InputError
            The suffix is not supported, or pyarrow is not installed.
        TrainingError
            A word has a tab or a line break, which a .tsv cannot represent.
        OSError
            The file cannot be written.

        Examples
        --------
        >>> from wordpiece_bert import WordCounts
        >>> counts = WordCounts.from_texts(["The cat sat.", "The mat"])
        >>> counts.save("counts.tsv")
        >>> WordCounts.load("counts.tsv")["the"]
        2
        """
        counts_file.write(Path(path), self._inner, self._info)

    # --- contents

    def __len__(self) -> int:
        """Return the number of distinct words."""
        return len(self._inner)

    def __getitem__(self, word: str) -> int:
        """Return the count of a word, 0 if it does not occur."""
        return self._inner.get(word)

    def __contains__(self, word: object) -> bool:
        return isinstance(word, str) and self._inner.get(word) > 0

    def __iter__(self) -> Iterator[str]:
        return (word for word, _ in self._inner.items(None))

    def to_dict(self) -> dict[str, int]:
        """Return word -> count, sorted by count descending, then by word.

        Returns
        -------
        dict of str to int
            The counts by their words.

        Examples
        --------
        >>> from wordpiece_bert import WordCounts
        >>> counts = WordCounts.from_texts(["The cat sat.", "The mat"])
        >>> counts.to_dict()
        {'the': 2, '.': 1, 'cat': 1, 'mat': 1, 'sat': 1}
        """
        return dict(self._inner.items(None))

    def most_common(self, n: int | None = None) -> list[tuple[str, int]]:
        """Return the `n` most frequent words with their counts, or all if `n` is None.

        Parameters
        ----------
        n : int, optional
            How many; all by default.

        Returns
        -------
        list of tuple of str and int
            Words with their counts, the most frequent first.

        Examples
        --------
        >>> from wordpiece_bert import WordCounts
        >>> counts = WordCounts.from_texts(["The cat sat.", "The mat"])
        >>> counts.most_common(1)
        [('the', 2)]
        """
        return self._inner.items(None if n is None else whole_number("n", n, 0))

    @property
    def total(self) -> int:
        """The sum of all counts."""
        return self._inner.total

    @property
    def texts(self) -> int:
        """The number of texts: lines of files, or items of an iterable."""
        return self._info.texts

    @property
    def bytes(self) -> int:
        """The number of UTF-8 bytes that were read."""
        return self._info.bytes

    @property
    def undercount(self) -> int:
        """The largest amount by which a word's count may be too small because of ``max_distinct_words``."""
        return self._info.undercount

    @property
    def dropped(self) -> int:
        """How many words were dropped because of ``max_distinct_words``; a word that was dropped twice counts twice."""
        return self._info.dropped

    @property
    def replaced(self) -> int:
        """How many invalid UTF-8 sequences were replaced; those of JSON lines and tables are not counted."""
        return self._info.replaced

    @property
    def skipped(self) -> int:
        """How many texts were skipped because they cannot be read."""
        return self._info.skipped

    @property
    def normalizer(self) -> NormalizerSettings | None:
        """The normalizer settings used for counting; None if unknown."""
        return self._info.settings

    @property
    def fingerprint(self) -> str | None:
        """SHA-256 of everything that determines the words of a text; None if the settings are unknown."""
        settings = self._info.settings
        return None if settings is None else settings.fingerprint

    # --- addition and comparison

    def __add__(self, other: WordCounts) -> Self:
        """Return the sum of two counts.

        Raises
        ------
        TrainingError
            They were counted with different settings, or a count exceeds 64 bits.
        """
        if not isinstance(other, WordCounts):
            return NotImplemented
        info = self._info.merged(other._info)
        return self._build(self._inner.merged(other._inner), info)

    def __radd__(self, other: object) -> Self:
        """Return `self` for ``0 + self``, with which ``sum(parts)`` begins."""
        return self if other == 0 else NotImplemented

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, WordCounts):
            return NotImplemented
        return self._info == other._info and self._inner.equals(other._inner)

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return restored, (type(self), *self._inner.columns(), self._info)

    def __repr__(self) -> str:
        about = f"{len(self):,} words, {self.total:,} occurrences, {self.texts:,} texts"
        less = f", counts up to {self.undercount:,} too small" if self.undercount else ""
        return f"WordCounts({about}{less})"

    def _repr_html_(self) -> str:
        return records_html(repr(self), [{"word": word, "count": n} for word, n in self.most_common(RECORDS + 1)])


def restored(cls: type[WordCounts], text: bytes, ends: Any, counts: Any, info: CountsInfo) -> WordCounts:
    """Create counts from the columns of their core, as their pickle has them."""
    return cls._build(_core.WordCounts.from_columns(text, ends, counts), info)


def _exports_columns(texts: object) -> bool:
    """Return whether an object implements Arrow's PyCapsule interface."""
    return hasattr(texts, "__arrow_c_stream__") or hasattr(texts, "__arrow_c_array__")
