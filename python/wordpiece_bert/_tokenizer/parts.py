"""What a tokenizer gives to other modules of this package, besides `wordpiece_bert._internal.parts`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from wordpiece_bert import _core
    from wordpiece_bert._tokenizer.base import TokenizerBase


AnyTokenizer = TypeVar("AnyTokenizer", bound="TokenizerBase")


def resolved_options(
    tokenizer: TokenizerBase, given: tuple[Any, ...], *, like_transformers: bool = False
) -> tuple[bool, _core.Options]:
    """Return whether texts are lists of words, and the core's options; `given` are the fields of `CallOptions`."""
    return tokenizer._resolve(given, like_transformers=like_transformers)


def with_core(tokenizer: AnyTokenizer, core: _core.Tokenizer) -> AnyTokenizer:
    """Return a tokenizer with another core and the same settings of its folder."""
    return tokenizer._build(core, tokenizer._settings)


def of_core(kind: type[AnyTokenizer], core: _core.Tokenizer) -> AnyTokenizer:
    """Return the tokenizer of a core that comes from no folder."""
    return kind._from_core(core)
