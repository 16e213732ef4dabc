"""What a tokenizer gives to other modules of this package, besides `wordpiece_bert._internal.parts`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from wordpiece_bert.errors import InputError
from wordpiece_bert.tokenizer.tokenizer_base import TokenizerBase, word_core

if TYPE_CHECKING:
    from wordpiece_bert import _core
    from wordpiece_bert.tokenizer.model_rows import IdBounds
    from wordpiece_bert.tokenizer.vocabulary_calls import VocabularyCalls

AnyTokenizer = TypeVar("AnyTokenizer", bound=TokenizerBase)


def resolved_options(
    tokenizer: TokenizerBase, given: tuple[Any, ...], *, like_transformers: bool = False
) -> tuple[bool, _core.Options]:
    """Return whether texts are lists of words, and the core's options; `given` are the fields of `CallOptions`."""
    return tokenizer._resolve(given, like_transformers=like_transformers)


def id_bounds(tokenizer: Any) -> IdBounds:
    """Return the largest ids of a tokenizer of either kind, with their tokens."""
    bounds: IdBounds = tokenizer._id_bounds()
    return bounds


def plain_core(tokenizer: TokenizerBase, what: str) -> _core.Tokenizer:
    """Return the core of a tokenizer that finds words itself.

    Parameters
    ----------
    tokenizer : Tokenizer
        The tokenizer.
    what : str
        What needs it, for the message.

    Raises
    ------
    InputError
        A function of the caller finds the words.
    """
    if word_core(tokenizer._inner) is not None:
        raise InputError(f"{what} needs a tokenizer that finds words itself, not one with a word_splitter")
    return tokenizer._inner


def input_names(tokenizer: TokenizerBase) -> tuple[str, ...]:
    """Return the inputs that the model of a tokenizer's folder takes."""
    return tokenizer._settings.model_input_names


def marked_special_ids(tokenizer: VocabularyCalls) -> list[int]:
    """Return the ids of the tokens with a role and of all other added tokens that are special, ascending."""
    return sorted(tokenizer.convert_tokens_to_ids(tokenizer._marked_special_tokens()))


def with_core(tokenizer: AnyTokenizer, core: _core.Tokenizer) -> AnyTokenizer:
    """Return a tokenizer with another core and the same settings of its folder."""
    return tokenizer._build(core, tokenizer._settings)


def of_core(kind: type[AnyTokenizer], core: _core.Tokenizer) -> AnyTokenizer:
    """Return the tokenizer of a core that comes from no folder."""
    return kind._from_core(core)
