"""Whether the ids of a tokenizer are rows of its model's table of words, which is found out when they are loaded."""

from collections.abc import Iterable
from typing import Any, NamedTuple, Self

from wordpiece_bert._internal.warn import warn
from wordpiece_bert.errors import ConfigError


class IdBounds(NamedTuple):
    """The largest ids of a tokenizer, each with its token."""

    #: Of the vocabulary, without added tokens.
    vocabulary: tuple[int, str]
    #: Of added tokens.
    added: tuple[int, str]

    @classmethod
    def of(cls, vocabulary: tuple[int, str], added: Iterable[tuple[int, str]]) -> Self:
        """Return the bounds for a largest token of the vocabulary and any added tokens."""
        return cls(vocabulary, max(added, default=(-1, "")))


def require_rows(tokenizer: Any, bounds: IdBounds, rows: int, where: object) -> None:
    """Refuse a tokenizer with tokens that the table of words of its model does not have; a larger table is right.

    Added tokens that are in no text by themselves are a warning: a model works without them, and transformers loads it.

    Parameters
    ----------
    tokenizer : Tokenizer or SubwordTokenizer
        The tokenizer.
    bounds : IdBounds
        Its largest ids.
    rows : int
        The number of rows of the table.
    where : object
        The folder or the file, for the message.

    Raises
    ------
    ConfigError
        A token of the vocabulary, or one that is added to every text or pair, has no row.
    """
    row = tokenizer.encode("", "", truncation=False, padding=False)  # ids of the template are a file's own
    largest, token = max(bounds.vocabulary, *zip(row.ids, row.tokens, strict=True))
    added, content = bounds.added
    if largest < rows and added < rows:
        return
    owned = f"the model has {rows:,} rows of word vectors (vocab_size), for ids up to {rows - 1}"
    if largest >= rows:
        raise ConfigError(
            f"{where}: the token {token!r} has the id {largest}, but {owned}: tokenizer and model are not of one "
            "checkpoint, or the table was not enlarged when tokens were added"
        )
    warn(f"{where}: the added token {content!r} has the id {added}, but {owned}: texts with it are refused")
