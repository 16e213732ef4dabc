"""What all parts of `Tokenizer` share: its state, its settings, and the options of a call."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal, Never, Self, TypeAlias

from wordpiece_bert import _core
from wordpiece_bert._core import _same_objects
from wordpiece_bert._internal.checks import checked_flag
from wordpiece_bert._internal.lazy import lazy_module
from wordpiece_bert._internal.peer_arguments import without_others
from wordpiece_bert._internal.peer_names import INSTEAD, INSTEAD_OF_MORE, add_peer_names, without_peer_names
from wordpiece_bert.tokenizer.call_options import resolve
from wordpiece_bert.tokenizer.option_types import CallOptions, Defaults, PaddingSettings, TruncationSettings
from wordpiece_bert.tokenizer.pretrained import SPECIAL_TOKEN_ROLES, FolderSettings
from wordpiece_bert.tokenizer.token_roles import TokenRoles

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import SupportsIndex

    import numpy.typing as npt

    from wordpiece_bert.tokenizer import word_splitter
    from wordpiece_bert.tokenizer.arrow_table import ArrowArray, ArrowStream
else:
    word_splitter = lazy_module("wordpiece_bert.tokenizer.word_splitter")

StrPath = str | os.PathLike[str]
#: A text, or with ``is_split_into_words=True`` the words of one.
Text: TypeAlias = "str | Sequence[str] | npt.NDArray[Any]"
#: An item of a batch: a text, or a pair of texts.
Item: TypeAlias = "Text | tuple[Text, Text]"
#: Items: an iterable, a NumPy array, or an Arrow column.
Batch: TypeAlias = "Iterable[Item] | ArrowArray | ArrowStream"
#: Token ids: a list, an array, or any iterable of integers.
Ids: TypeAlias = "Iterable[SupportsIndex] | npt.NDArray[Any]"

# The options of a call that gives none.
_PLAIN = CallOptions()

# Size of the cache of checked options, in combinations of options.
_CACHED_OPTIONS = 64


class TokenizerBase(TokenRoles):
    """The state and the settings of a tokenizer."""

    __slots__ = ("_defaults", "_fingerprint", "_inner", "_last", "_plain", "_resolved", "_settings")

    _inner: _core.Tokenizer
    _settings: FolderSettings
    _defaults: Defaults
    # Computed on first use: the options of a call without keywords, of the last call and of other calls, and the
    # fingerprint.
    _plain: _core.Options | None
    _last: tuple[bool, tuple[Any, ...], tuple[bool, _core.Options]] | None
    _resolved: dict[tuple[object, ...], tuple[bool, _core.Options]]
    _fingerprint: str | None

    @without_others
    def __init__(self, *arguments: Never, **others: Never) -> None:
        raise TypeError("create a Tokenizer with from_vocab, from_file, from_json or from_pretrained")

    @classmethod
    def _build(cls, core: _core.Tokenizer, settings: FolderSettings) -> Self:
        self = object.__new__(cls)
        self._inner = core
        self._settings = settings
        self._defaults = _defaults(core, settings)
        self._plain = None
        self._last = None
        self._resolved = {}
        self._fingerprint = None
        return self

    @classmethod
    def _from_core(cls, core: _core.Tokenizer) -> Self:
        """Wrap a core tokenizer that comes from no folder: its roles are inferred, and there are no other settings."""
        return cls._build(core, FolderSettings(special_tokens=core.roles()))

    def _resolve(self, given: tuple[Any, ...], *, like_transformers: bool = False) -> tuple[bool, _core.Options]:
        """Return whether texts are lists of words, and the core's options, from the cache where possible.

        `given` are the fields of `CallOptions`; a plain tuple of them is made in a tenth of the time.
        """
        if not like_transformers and _same_objects(given, _PLAIN):
            if self._plain is None:
                self._plain = resolve(self._inner, self._defaults, CallOptions._make(given))
            return False, self._plain
        last = self._last
        if last is not None and last[0] is like_transformers and _same_objects(given, last[1]):
            return last[2]
        # With the types of values, because True equals 1 but means something else.
        key = (like_transformers, *given, *map(type, given))
        try:
            known = self._resolved.get(key)
        except TypeError:  # an unhashable value, such as a list; the checks report it
            known, key = None, ()
        if known is None:
            options = CallOptions._make(given)
            split = checked_flag("is_split_into_words", options.is_split_into_words)
            known = split, resolve(self._inner, self._defaults, options, like_transformers=like_transformers)
            if key and len(self._resolved) < _CACHED_OPTIONS:
                self._resolved[key] = known
        self._last = like_transformers, given, known
        return known

    def _file_truncates(self, truncation: object, max_length: object) -> bool:
        """Whether a call with these options truncates because the tokenizer's file says so, not the call."""
        return truncation is None and max_length is None and self._defaults.truncation is not None

    def _role(self, role: str) -> str | None:
        token = self._settings.special_tokens.get(role)
        return None if token is None or self._inner.token_to_id(token) is None else token

    def _role_id(self, role: str) -> int | None:
        token = self._settings.special_tokens.get(role)
        return None if token is None else self._inner.token_to_id(token)

    def __dir__(self) -> list[str]:
        return without_peer_names(type(self), super().__dir__())

    # --- settings

    @property
    def model_max_length(self) -> int | None:
        """The maximum length of a row for the model, special tokens included; None if no file states it."""
        return self._settings.model_max_length

    @property
    def truncation(self) -> TruncationSettings | None:
        """The truncation that applies by default, with the names that `tokenizers` uses; None for none.

        `from_file` and `from_json` take it from the tokenizer.json, `with_truncation` sets it, and `from_pretrained`
        leaves it out.
        """
        return self._inner.truncation

    @property
    def padding(self) -> PaddingSettings | None:
        """The padding that applies by default, with the names that `tokenizers` uses; None for none.

        `from_file` and `from_json` take it from the tokenizer.json, `with_padding` sets it, and `from_pretrained`
        leaves it out.
        """
        return self._inner.padding

    @property
    def truncation_side(self) -> Literal["left", "right"]:
        """The side on which texts are truncated by default."""
        return self._defaults.truncation_side

    @property
    def padding_side(self) -> Literal["left", "right"]:
        """The side on which rows are padded by default."""
        return self._defaults.padding_side


add_peer_names(TokenizerBase, INSTEAD | INSTEAD_OF_MORE)


def _defaults(core: _core.Tokenizer, settings: FolderSettings) -> Defaults:
    """Return the settings of a folder, and where it has none, the settings of its tokenizer.json."""
    truncation, padding = core.truncation, core.padding
    pad_token = settings.special_tokens.get("pad_token", SPECIAL_TOKEN_ROLES["pad_token"])
    pad_id = core.token_to_id(pad_token)
    if pad_id is None and padding is not None:
        pad_token, pad_id = padding["pad_token"], padding["pad_id"]
    return Defaults(
        truncation=truncation,
        padding=padding,
        truncation_side=settings.truncation_side or (truncation["direction"] if truncation else "right"),
        padding_side=settings.padding_side or (padding["direction"] if padding else "right"),
        model_max_length=settings.model_max_length,
        pad_token=pad_token,
        pad_id=pad_id,
        pad_type_id=padding["pad_type_id"] if padding else 0,
    )


def word_core(core: object) -> word_splitter.WordCore | None:
    """Return a core whose words a function finds; None for another."""
    if isinstance(core, _core.Tokenizer):
        return None
    return core if isinstance(core, word_splitter.WordCore) else None


def requested(**columns: bool) -> list[str]:
    """Return the names of the columns that are True."""
    return [column for column, requested in columns.items() if requested]
