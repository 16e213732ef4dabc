"""A tokenizer of the package ``tokenizers`` for calls that run side by side, on as many threads as each asks for."""

from __future__ import annotations

import contextlib
import json
import os
import re
import threading
from typing import TYPE_CHECKING, Any, NamedTuple

from wordpiece_bert import _core
from wordpiece_bert._internal.safe_json import quoted
from wordpiece_bert.errors import InputError, TokenizerFormatError, WordPieceError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

#: Texts that are tokenized at once, and their characters, each of which takes up to 500 bytes meanwhile. Between two
#: such blocks Ctrl-C is obeyed.
_BLOCK = 1024
_BLOCK_CHARACTERS = 1 << 17


#: A setting of BPE, and how the files without it write it.
_PREFIX = "continuing_subword_prefix"
_NO_PREFIX = re.compile(rf'"{_PREFIX}"\s*:\s*(?:null|"")')
# A letter that is written as an escape, which the name of the setting may have.
_ESCAPED_LETTER = re.compile(r"\\u00[5-7]")


@contextlib.contextmanager
def package_errors(error: type[WordPieceError], what: Callable[[], str]) -> Iterator[None]:
    """Raise `error` for what the package ``tokenizers`` raises: bare exceptions, and panics, which are no `Exception`.

    Parameters
    ----------
    error : type of WordPieceError
        The error to raise.
    what : callable
        Returns the beginning of its message: what the package cannot do.
    """
    try:
        yield
    except WordPieceError:
        raise
    except BaseException as cause:
        if isinstance(cause, Exception) or type(cause).__name__ == "PanicException":
            raise error(f"{what()}: {cause}") from cause
        raise


def read_core(text: str, file: Path) -> Any:
    """Return the tokenizer that the package ``tokenizers`` makes of the text of a ``tokenizer.json``.

    Raises
    ------
    TokenizerFormatError
        It cannot read it.
    """
    import tokenizers

    if text.count(_PREFIX) != len(_NO_PREFIX.findall(text)) or _ESCAPED_LETTER.search(text):
        _check_merges(text, file)
    with package_errors(TokenizerFormatError, lambda: f"{file}: the package tokenizers cannot read it"):
        return tokenizers.Tokenizer.from_str(text)


def _check_merges(text: str, file: Path) -> None:
    """Refuse merges of BPE without the prefix of continuing tokens.

    The package cuts as many bytes as the prefix has, whatever they are. If half a character is left, version 0.23.3
    ends the process (its issue 2198, still open).
    """
    try:
        model = json.loads(text)["model"]
        prefix, merges = model.get(_PREFIX), model["merges"]
        pairs = [merge.split(" ") if isinstance(merge, str) else merge for merge in merges] if prefix else []
        wrong = next((pair for pair in pairs if not pair[1].startswith(prefix)), None)
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
        return  # not BPE, or what the package refuses
    if wrong is not None:
        what = f"the second token of the merge {quoted(wrong)} does not begin with {_PREFIX}, {quoted(prefix)}"
        raise TokenizerFormatError(f"{file}: {what}")


class Truncation(NamedTuple):
    """How a call truncates."""

    max_length: int
    stride: int
    strategy: str
    side: str

    @property
    def is_of_one_text(self) -> bool:
        """Whether the first or the last tokens of a single text are what is left of it."""
        return self.max_length > 0 and self.stride == 0 and self.strategy in ("longest_first", "only_first")

    def check(self, added: int) -> None:
        """Raise an `InputError` if rows have no room for this many special tokens, or then not for the stride."""
        room = self.max_length - added
        if room < 0 or self.stride >= max(room, 1):
            raise InputError(
                f"max_length is {self.max_length}, but {added} special tokens are added and stride is {self.stride}: "
                "pass a larger max_length, or a smaller stride"
            )


def _characters(item: Any) -> int:
    """Return how many characters a text, a pair or a list of words has."""
    if isinstance(item, str):
        return len(item)
    return sum(map(_characters, item)) if isinstance(item, list | tuple) else 0


def blocks(items: list[Any]) -> Iterator[list[Any]]:
    """Yield consecutive texts that are tokenized at once: at least one, and not many characters."""
    start = characters = 0
    for index, item in enumerate(items):
        more = _characters(item)
        if index > start and (index - start == _BLOCK or characters + more > _BLOCK_CHARACTERS):
            yield items[start:index]
            start, characters = index, 0
        characters += more
    if start < len(items):
        yield items[start:]


class SharedCore:
    """A tokenizer whose calls run side by side.

    Truncation is a state of a tokenizer of the package. Calls with the same truncation share it; a call with another
    one waits until they are done, and those that come later wait for it.

    Parameters
    ----------
    core : tokenizers.Tokenizer
        The tokenizer. Its own truncation and padding are removed.
    """

    def __init__(self, core: Any) -> None:
        core.no_truncation()
        core.no_padding()
        self.core = core
        self._prepare()

    def _prepare(self) -> None:
        self._queue = threading.Lock()
        self._done = threading.Condition()
        self._users = 0
        self._state: Truncation | None = None

    def __getstate__(self) -> Any:
        with self.truncating(None):
            return self.core.__getstate__()

    def __setstate__(self, state: Any) -> None:
        import tokenizers

        self.core = tokenizers.Tokenizer.from_str(state.decode() if isinstance(state, bytes) else state)
        self._prepare()

    @contextlib.contextmanager
    def truncating(self, wanted: Truncation | None) -> Iterator[None]:
        """Truncate in this way meanwhile; None for no truncation.

        Raises
        ------
        InputError
            ``tokenizers`` cannot truncate so.
        """
        with self._queue, self._done:
            while self._users and self._state != wanted:
                self._done.wait()
            if self._state != wanted:
                self._set(wanted)
            self._users += 1
        try:
            yield
        finally:
            with self._done:
                self._users -= 1
                self._done.notify_all()

    def _set(self, wanted: Truncation | None) -> None:
        self._state = None
        self.core.no_truncation()
        if wanted is None:
            return
        length, stride, strategy, side = wanted
        try:
            self.core.enable_truncation(length, stride=stride, strategy=strategy, direction=side)
        except (ValueError, TypeError) as cause:
            raise InputError(f"cannot truncate to {length} tokens with truncation={strategy!r}: {cause}") from cause
        self._state = wanted

    def encode(
        self, items: list[Any], threads: int | None, *, special: bool, split: bool = False, offsets: bool = False
    ) -> list[Any]:
        """Tokenize texts or pairs; the caller has set the truncation.

        The package divides a batch among its own threads, of which there are as many as processors. A call with fewer
        threads has its own, each of which takes one text after the other.

        Parameters
        ----------
        items : list
            Texts, pairs or lists of words.
        threads : int or None
            The number of threads; None for the default of this package.
        special : bool
            Whether special tokens are added.
        split : bool
            Whether texts are lists of words.
        offsets : bool
            Whether offsets are in characters; without, they are in bytes.

        Returns
        -------
        list of tokenizers.Encoding

        Raises
        ------
        InputError
            The package cannot encode a text, such as one with an unknown character where no token stands for it.
        """

        def some(part: list[Any]) -> list[Any]:
            encode = self.core.encode
            rows: list[Any] = []
            with package_errors(InputError, lambda: f"the package tokenizers cannot encode {quoted(part[len(rows)])}"):
                for item in part:
                    texts = (item,) if split or isinstance(item, str) else item
                    rows.append(encode(*texts, is_pretokenized=split, add_special_tokens=special))
            return rows

        count = min(_core.num_threads(threads), len(items))
        if count >= (os.cpu_count() or 1):
            encode = self.core.encode_batch if offsets else self.core.encode_batch_fast
            with contextlib.suppress(InputError), package_errors(InputError, lambda: "one of the texts"):
                return list(encode(items, is_pretokenized=split, add_special_tokens=special))
            return some(items)  # which names the text that the package cannot encode

        if count <= 1:
            return some(items)
        size = -(-len(items) // (4 * count))
        parts = [items[start : start + size] for start in range(0, len(items), size)]
        from concurrent.futures import ThreadPoolExecutor  # which imports the package logging

        with ThreadPoolExecutor(count) as pool:
            return [row for rows in pool.map(some, parts) for row in rows]
