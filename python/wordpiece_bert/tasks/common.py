"""What the tasks share: a model with its tokenizer, texts cut to its length, batches."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

from wordpiece_bert import _core
from wordpiece_bert.bert.auto import AutoModel
from wordpiece_bert.bert.base import Model
from wordpiece_bert.errors import InputError, TruncationWarning
from wordpiece_bert.hub import find_model
from wordpiece_bert.tokenizer import Tokenizer

if TYPE_CHECKING:
    import os

    from wordpiece_bert._core import Encoding

__all__ = ["Loaded", "Source", "encode", "load", "longest", "one_or_many", "with_head"]

AnyModel = TypeVar("AnyModel", bound=Model)
AnyTexts = TypeVar("AnyTexts")


class Loaded(NamedTuple):
    """A model with its tokenizer: what every task works with. `load` makes one."""

    model: Model
    tokenizer: Tokenizer


#: Where a task's model comes from: one that is loaded (a pair will do), or the name or folder of one.
Source: TypeAlias = "Loaded | tuple[Model, Tokenizer] | str | os.PathLike[str]"


def load(
    name: str | os.PathLike[str],
    backend: str = "rust",
    dtype: str = "float32",
    *,
    revision: str | None = None,
    **options: Any,  # noqa: ANN401
) -> Loaded:
    """Load a model, as the class that its folder names, and its tokenizer.

    The arguments are those of `AutoModel.from_pretrained`.
    """
    folder = find_model(name, revision=revision)
    return Loaded(AutoModel.from_pretrained(folder, backend, dtype, **options), Tokenizer.from_pretrained(folder))


def with_head(source: object, head: type[AnyModel], what: str) -> tuple[AnyModel, Tokenizer]:
    """Return model and tokenizer of a source, or an error if the model has not the head that a task needs."""
    model, tokenizer = source if isinstance(source, tuple) and len(source) == 2 else load(source)  # type: ignore[arg-type]
    if not isinstance(tokenizer, Tokenizer) or not isinstance(model, Model):
        message = f"a task takes what tasks.load gives, a model and a Tokenizer, not {model!r} and {tokenizer!r}"
        raise InputError(message)
    if not isinstance(model, head):
        message = f"{what} needs a model with a head for it, not {type(model).__name__}"
        raise InputError(message)
    return model, tokenizer


def longest(model: Model, tokenizer: Tokenizer) -> int:
    """Return the longest row in tokens: what the model takes, or less if its tokenizer says so."""
    limit = model.config.longest_row
    return limit if tokenizer.model_max_length is None else min(limit, tokenizer.model_max_length)


def one_or_many(texts: AnyTexts | Iterable[AnyTexts], *kinds: type) -> tuple[bool, list[Any]]:
    """Return whether it is one item, of these kinds, and the items as a list."""
    if isinstance(texts, kinds):
        return True, [texts]
    column = _core._column_texts(texts)
    if column is not None:
        return False, column
    if not isinstance(texts, Iterable) or isinstance(texts, bytes | bytearray | Mapping | AbstractSet):
        message = f"texts must be a str, a list of str or a column of strings, not {type(texts).__name__}"
        raise InputError(message)
    return False, list(texts)


def encode(tokenizer: Tokenizer, texts: list[Any], limit: int, **options: Any) -> list[Encoding]:  # noqa: ANN401
    """Tokenize texts or pairs, cut at a limit, without padding; warn of texts that were cut.

    Warns
    -----
    TruncationWarning
        How many were cut, and the index of the first.
    """
    encodings = tokenizer.encodings(texts, truncation=True, max_length=limit, stride=0, padding=False, **options)
    cut = [index for index, encoding in enumerate(encodings) if encoding.truncated]
    if cut:
        message = (
            f"{len(cut)} of {len(texts)} texts were cut at {limit} tokens, the first at index {cut[0]}; each result "
            "tells so in .truncated"
        )
        warnings.warn(message, TruncationWarning, stacklevel=3)
    for index, encoding in enumerate(encodings):
        if not encoding.ids:
            message = f"texts[{index}] is {texts[index]!r}: it has no token at all, and the tokenizer adds none"
            raise InputError(message)
    return encodings
