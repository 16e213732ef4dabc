"""Words and how often each occurs: the contract for corpora larger than one machine."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, Union, Unpack

import numpy as np

from wordpiece_bert import _core
from wordpiece_bert._internal.checks import whole_number
from wordpiece_bert.errors import InputError, TrainingError
from wordpiece_bert.training import counts_file
from wordpiece_bert.training.counts_file import Contents
from wordpiece_bert.training.options import CountOptions, NormalizerSettings, count_fields, known_options, settings_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wordpiece_bert.arrow import ArrowArray, ArrowStream

__all__ = ["WordCounts"]

StrPath = str | os.PathLike[str]
#: An iterable of texts, or a column of them.
Texts = Union["Iterable[str]", "ArrowArray", "ArrowStream"]


class WordCounts:
    """A multiset of words, with the way they were counted.

    Counted by file or by partition, added up, saved and loaded: whatever the order, the same words with the same counts
    come out, and a vocabulary learned from them is the same. Nothing ever changes one.

    `from_files`, `from_texts`, `from_dict` and `load` make one. What was counted with other settings of the normalizer
    has another `fingerprint`, and the two cannot be added.
    """

    __slots__ = ("_contents", "_inner")

    _inner: _core.WordCounts
    _contents: Contents

    def __init__(self) -> None:
        message = "make WordCounts with from_files, from_texts, from_dict or load"
        raise TypeError(message)

    @classmethod
    def _build(cls, inner: _core.WordCounts, contents: Contents) -> Self:
        self = object.__new__(cls)
        self._inner, self._contents = inner, contents
        return self

    # --- making one

    @classmethod
    def from_files(cls, files: StrPath | Iterable[StrPath], **options: Unpack[CountOptions]) -> Self:
        r"""Count the words of UTF-8 text files.

        A text is a line; it ends at ``\n``. A byte order mark at the start of a file is left out.

        Parameters
        ----------
        files
            A path or several; ``"-"`` is standard input.
        **options
            Those of `CountOptions`.

        Raises
        ------
        TrainingError
            A file is not UTF-8: the message has the file, the line and the byte offset.
        OSError
            A file cannot be read.
        InputError
            A wrong option.
        """
        known_options(options, CountOptions.__annotations__, "from_files")
        listed = [files] if isinstance(files, str | os.PathLike) else list(files)
        for path in listed:
            if not isinstance(path, str | os.PathLike):
                message = f"files are paths, not {type(path).__name__}; texts are counted with from_texts"
                raise InputError(message)
        settings = settings_of(options)
        counted = _core.WordCounts.from_files(
            [os.fspath(path) for path in listed],
            count_fields(settings, options),
            options.get("threads"),
            options.get("progress"),
        )
        return cls._counted(counted, settings)

    @classmethod
    def from_texts(cls, texts: Texts, **options: Unpack[CountOptions]) -> Self:
        """Count the words of texts.

        Parameters
        ----------
        texts
            Anything that yields `str`, which is read as it goes, not collected; or a column of Arrow, which is read
            where it stands.
        **options
            Those of `CountOptions`; `errors` is about files and changes nothing here.

        Raises
        ------
        InputError
            An item that is no `str` or has a lone surrogate; a wrong option.
        """
        known_options(options, CountOptions.__annotations__, "from_texts")
        if isinstance(texts, str | bytes | Mapping) or not (isinstance(texts, Iterable) or _passes_columns_on(texts)):
            hint = "; put one text into a list, read a file with from_files" if isinstance(texts, str) else ""
            message = f"texts are an iterable of str, not {type(texts).__name__}{hint}"
            raise InputError(message)
        settings = settings_of(options)
        fields = count_fields(settings, options)
        counted = _core.WordCounts.from_texts(texts, fields, options.get("threads"), options.get("progress"))
        return cls._counted(counted, settings)

    @classmethod
    def _counted(cls, counted: _core.Counted, settings: NormalizerSettings) -> Self:
        contents = Contents(
            settings=settings,
            texts=counted.texts,
            bytes=counted.bytes,
            undercount=counted.undercount,
            dropped=counted.dropped,
            replaced=counted.replaced,
            skipped=counted.skipped,
        )
        return cls._build(counted.words, contents)

    @classmethod
    def from_dict(cls, counts: Mapping[str, int]) -> Self:
        """Take words and their counts as they are, not split and not checked; words with count 0 are left out.

        The result has no `fingerprint`, nor has a sum with it.

        Raises
        ------
        InputError
            A word that is no `str`, a count that is no whole number.
        TrainingError
            A negative count, or one of more than 64 bits.
        """
        text = bytearray()
        ends, numbers = [], []
        for word, count in counts.items():
            number = whole_number(f"the count of {word!r}", count, -sys.maxsize, 1 << 128)
            if not 0 <= number < 1 << 64:
                message = f"the count of {word!r} is {number}; a count is from 0 to 2**64 - 1"
                raise TrainingError(message)
            try:
                text += word.encode()
            except (UnicodeEncodeError, AttributeError):
                message = f"a word is a str of characters (no lone surrogates), not {word!r}"
                raise InputError(message) from None
            ends.append(len(text))
            numbers.append(number)
        inner = _core.WordCounts.from_columns(bytes(text), np.array(ends, np.int64), np.array(numbers, np.uint64))
        return cls._build(inner, Contents())

    # --- files

    @classmethod
    def load(cls, path: StrPath, *, check_words: bool = False) -> Self:
        r"""Read what `save` wrote, or any file with the same columns.

        Parameters
        ----------
        path
            A name that ends in ``.parquet``, ``.arrow`` (Arrow's file format; ``.feather`` is the same) or ``.tsv``.
            Parquet and Arrow need pyarrow.
        check_words
            Make sure that each word is one word under the settings it was counted with; otherwise look at a sample.

        Raises
        ------
        TrainingError
            Not such a file, a word twice, a count that is not above 0, a word that the splitter would cut.
        InputError
            Another ending, or pyarrow is not installed.
        OSError
            The file cannot be read.
        """
        inner, contents = counts_file.read(Path(path))
        self = cls._build(inner, contents)
        self._check_words(Path(path), None if check_words else 1000)
        return self

    def _check_words(self, path: Path, most: int | None) -> None:
        """Cut words again: those that were counted here stay whole."""
        settings = self._contents.settings
        if settings is None:
            return
        items = self._inner.items(None)
        if most is not None:
            items = items[:: max(1, len(items) // most)]
        sample = [word for word, _ in items]
        # Each word as a text of its own comes back as it is, once.
        again = _core.WordCounts.from_texts(sample, count_fields(settings, {}), 1, None).words
        if len(again) != len(sample) or again.total != len(sample):
            wrong = next(word for word in sample if again.get(word) == 0)
            message = f"{path}: {wrong!r} is not a word under the settings that the file names; count again"
            raise TrainingError(message)

    def save(self, path: StrPath) -> None:
        r"""Write the counts, by count descending, then word ascending: the same counts make the same bytes.

        The columns are ``word`` (string) and ``count`` (uint64); what else is known stands in the metadata, in a .tsv
        in lines before the first word that begin with ``#`` and have no tab. Under its final name the file is whole or
        not there.

        Parameters
        ----------
        path
            A name that ends in ``.parquet``, ``.arrow``, ``.feather`` or ``.tsv``. All but the last need pyarrow.

        Raises
        ------
        InputError
            Another ending, or pyarrow is not installed.
        TrainingError
            A .tsv cannot hold a word, because there is a tab or a line feed in it.
        """
        counts_file.write(Path(path), self._inner, self._contents)

    # --- what it holds

    def __len__(self) -> int:
        """Return the number of distinct words."""
        return len(self._inner)

    def __getitem__(self, word: str) -> int:
        """Return the count of a word; 0 where it was not met."""
        return self._inner.get(word)

    def __contains__(self, word: object) -> bool:
        return isinstance(word, str) and self._inner.get(word) > 0

    def __iter__(self) -> Iterator[str]:
        return (word for word, _ in self._inner.items(None))

    def to_dict(self) -> dict[str, int]:
        """Return the words with their counts, by count descending, then word ascending."""
        return dict(self._inner.items(None))

    def most_common(self, n: int | None = None) -> list[tuple[str, int]]:
        """Return the `n` most frequent words with their counts; None: all."""
        return self._inner.items(None if n is None else whole_number("n", n, 0))

    @property
    def total(self) -> int:
        """The sum of all counts."""
        return self._inner.total

    @property
    def texts(self) -> int:
        """The number of texts: lines of files, or items."""
        return self._contents.texts

    @property
    def bytes(self) -> int:
        """The bytes of UTF-8 that were read."""
        return self._contents.bytes

    @property
    def undercount(self) -> int:
        """By how much the count of any word can be too small, at most, because of `max_distinct_words`."""
        return self._contents.undercount

    @property
    def dropped(self) -> int:
        """How many words were dropped because of `max_distinct_words`; one that came back and went counts twice."""
        return self._contents.dropped

    @property
    def replaced(self) -> int:
        """How many parts were not UTF-8 and were replaced."""
        return self._contents.replaced

    @property
    def skipped(self) -> int:
        """How many lines were not UTF-8 and were left out."""
        return self._contents.skipped

    @property
    def normalizer(self) -> NormalizerSettings | None:
        """What was done to the texts; None where that is not known."""
        return self._contents.settings

    @property
    def fingerprint(self) -> str | None:
        """SHA-256 of all that decides which words a text has; None where that is not known."""
        settings = self._contents.settings
        return None if settings is None else settings.fingerprint

    # --- adding, comparing

    def __add__(self, other: WordCounts) -> Self:
        """Return both together.

        Raises
        ------
        TrainingError
            They were counted with different settings; a count passes 64 bits.
        """
        if not isinstance(other, WordCounts):
            return NotImplemented
        contents = self._contents.merged(other._contents)
        return self._build(self._inner.merged(other._inner), contents)

    def __radd__(self, other: object) -> Self:
        """Let ``sum(parts)`` add counts up: it begins with 0."""
        return self if other == 0 else NotImplemented

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, WordCounts):
            return NotImplemented
        return self._contents == other._contents and self._inner.equals(other._inner)

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (type(self), *self._inner.columns(), self._contents)

    def __repr__(self) -> str:
        about = f"{len(self):,} words, {self.total:,} occurrences, {self.texts:,} texts"
        less = f", counts up to {self.undercount:,} too small" if self.undercount else ""
        return f"WordCounts({about}{less})"


def _restore(cls: type[WordCounts], text: bytes, ends: Any, counts: Any, contents: Contents) -> WordCounts:  # noqa: ANN401
    """Make counts of what their pickle holds."""
    return cls._build(_core.WordCounts.from_columns(text, ends, counts), contents)


def _passes_columns_on(texts: object) -> bool:
    return hasattr(texts, "__arrow_c_stream__") or hasattr(texts, "__arrow_c_array__")
