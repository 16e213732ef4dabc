"""Truncation, padding and the other options of a call: what is asked for, by whom, and what follows from it.

`Tokenizer.encode`, `encode_batch`, `encodings` and the call itself share this one way from their keywords to what the
core is told. Where a call says nothing the tokenizer's own settings hold, except for the call in the manner of
transformers, where they are off.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypedDict, TypeVar

from wordpiece_bert._internal.checks import checked_choice, checked_flag, whole_number
from wordpiece_bert.errors import InputError

if TYPE_CHECKING:
    from wordpiece_bert import _core

__all__ = ["Defaults", "EncodeOptions", "PaddingSettings", "TruncationSettings", "resolve"]

Side = Literal["left", "right"]
Strategy = Literal["longest_first", "only_first", "only_second"]
OffsetUnit = Literal["char", "byte", "utf16"]

SIDES: tuple[Side, ...] = ("right", "left")
STRATEGIES: tuple[Strategy, ...] = ("longest_first", "only_first", "only_second")
PADDINGS: tuple[Literal["longest", "max_length"], ...] = ("longest", "max_length")
OFFSET_UNITS: tuple[OffsetUnit, ...] = ("char", "byte", "utf16")

# No row of a model is near this. Longer padding is a slip (the 10**30 that stands for "no limit" in some files, say),
# and would end the process for want of memory.
LONGEST_PADDING = 1 << 24

T = TypeVar("T", bound=str)

#: Off (False), on (True), a choice, or left to the files (None).
Asked = bool | str | None


class EncodeOptions(TypedDict, total=False):
    """The options that every way of encoding takes, all by keyword.

    Raises
    ------
    InputError
        When used: a wrong value (the message has the argument, the value and the choices), `max_length` below the
        number of special tokens, a stride that is not smaller than a window, padding without a padding token.
    """

    #: Put the special tokens of the template around the texts; True by default.
    add_special_tokens: bool
    #: Each text is a list of words: `word_ids` are their indices, offsets begin anew in each. False by default.
    is_split_into_words: bool
    #: True means "longest_first", False off; None what the file or folder set, else off.
    truncation: bool | Strategy | None
    #: The length of a row, special tokens included; without truncation or padding="max_length" it changes nothing.
    max_length: int | None
    #: How many tokens two neighbouring windows share; None what the file set, else 0.
    stride: int | None
    #: Where texts are cut; None what the folder or file set, else "right".
    truncation_side: Side | None
    #: True means "longest" (of the batch), False off; None what the file set, else off.
    padding: bool | Literal["longest", "max_length"] | None
    #: Round the padded length up to a multiple; None what the file set, else not.
    pad_to_multiple_of: int | None
    #: Where rows are filled up; None what the folder or file set, else "right".
    padding_side: Side | None
    #: What offsets count: characters (the default), bytes of UTF-8, or units of UTF-16.
    offset_unit: OffsetUnit
    #: Take special tokens that stand in a text for text; False by default.
    encode_special_tokens: bool


class TruncationSettings(TypedDict):
    """Truncation, with the names of `tokenizers`."""

    max_length: int
    stride: int
    strategy: Strategy
    direction: Side


class PaddingSettings(TypedDict):
    """Padding, with the names of `tokenizers`; a length of None is the longest row of the batch."""

    length: int | None
    pad_to_multiple_of: int | None
    pad_id: int
    pad_token: str
    pad_type_id: int
    direction: Side


@dataclass(frozen=True, slots=True)
class Defaults:
    """What a tokenizer's files say, for where a call says nothing."""

    truncation: TruncationSettings | None
    padding: PaddingSettings | None
    truncation_side: Side
    padding_side: Side
    model_max_length: int | None
    #: The padding token with its id and segment id; without an id where the vocabulary does not have it.
    pad_token: str
    pad_id: int | None
    pad_type_id: int


def resolve(
    core: _core.Tokenizer,
    defaults: Defaults,
    *,
    like_transformers: bool = False,
    add_special_tokens: bool = True,
    truncation: bool | str | None = None,
    max_length: int | None = None,
    stride: int | None = None,
    truncation_side: str | None = None,
    padding: bool | str | None = None,
    pad_to_multiple_of: int | None = None,
    padding_side: str | None = None,
    offset_unit: str = "char",
    encode_special_tokens: bool = False,
) -> _core.Options:
    """Decide every option of a call and check it against the tokenizer.

    Parameters
    ----------
    core
        The tokenizer that will be called.
    defaults
        What its files say.
    like_transformers
        The files' truncation and padding do not hold, and `max_length` alone truncates.
    add_special_tokens, truncation, max_length, stride, truncation_side, padding, pad_to_multiple_of, padding_side, \
offset_unit, encode_special_tokens
        As in `EncodeOptions`.
    """
    if max_length is not None:
        max_length = whole_number("max_length", max_length, 0)
    if like_transformers:
        defaults = replace(defaults, truncation=None, padding=None)
        if truncation is None and max_length is not None and not padding:
            truncation = True
    cut = _truncation(defaults, truncation, max_length, stride, truncation_side)
    return core.options(
        checked_flag("add_special_tokens", add_special_tokens),
        cut,
        _padding(defaults, padding, max_length, cut, pad_to_multiple_of, padding_side),
        checked_choice("offset_unit", offset_unit, OFFSET_UNITS),
        checked_flag("encode_special_tokens", encode_special_tokens),
    )


def _truncation(
    defaults: Defaults, asked: Asked, max_length: int | None, stride: int | None, side: str | None
) -> TruncationSettings | None:
    strategy = _wanted("truncation", asked, STRATEGIES)
    # Checked whether or not they are used: a wrong value is a mistake either way.
    steps = None if stride is None else whole_number("stride", stride, 0)
    direction = defaults.truncation_side if side is None else checked_choice("truncation_side", side, SIDES)
    set_before = defaults.truncation
    if strategy is False or (strategy is None and set_before is None):
        return None
    if steps is None:
        steps = set_before["stride"] if set_before else 0
    if strategy is None and set_before is not None:
        return {**set_before, "stride": steps, "direction": direction}
    longest = max_length
    if longest is None:
        longest = set_before["max_length"] if set_before else defaults.model_max_length
    if longest is None:
        message = f"truncation={asked!r} needs a max_length: none is given, and there is no model_max_length"
        raise InputError(message)
    return {"max_length": longest, "stride": steps, "strategy": strategy or STRATEGIES[0], "direction": direction}


def _padding(
    defaults: Defaults,
    asked: Asked,
    max_length: int | None,
    cut: TruncationSettings | None,
    multiple: int | None,
    side: str | None,
) -> PaddingSettings | None:
    wanted = _wanted("padding", asked, PADDINGS)
    if multiple is not None:
        multiple = whole_number("pad_to_multiple_of", multiple, 1, LONGEST_PADDING)
    direction = defaults.padding_side if side is None else checked_choice("padding_side", side, SIDES)
    set_before = defaults.padding
    if wanted is False or (wanted is None and set_before is None):
        return None
    if multiple is None and set_before:
        multiple = set_before["pad_to_multiple_of"]
    length = set_before["length"] if set_before and wanted is None else None
    if wanted == "max_length":
        fixed = set_before["length"] if set_before else None
        candidates = (max_length, fixed, cut["max_length"] if cut else None, defaults.model_max_length)
        length = next((candidate for candidate in candidates if candidate is not None), None)
        if length is None:
            message = "padding='max_length' needs a max_length: none is given, and there is no model_max_length"
            raise InputError(message)
    if length is not None:
        whole_number("the length to pad to", length, 0, LONGEST_PADDING)
    if set_before is not None:
        return {**set_before, "length": length, "pad_to_multiple_of": multiple, "direction": direction}
    if defaults.pad_id is None:
        message = (
            f"Asking to pad but the tokenizer does not have a padding token: {defaults.pad_token!r} is not in its "
            "vocabulary. Add it to the vocabulary, name another (from_vocab(..., pad_token=...)), or use padding=False"
        )
        raise InputError(message)
    return {
        "length": length,
        "pad_to_multiple_of": multiple,
        "pad_id": defaults.pad_id,
        "pad_token": defaults.pad_token,
        "pad_type_id": defaults.pad_type_id,
        "direction": direction,
    }


def _wanted(name: str, asked: Asked, choices: tuple[T, ...]) -> T | Literal[False] | None:
    """Read an option that is off, on (the first choice), one of the choices, or left to the files."""
    if asked is None or asked is False:
        return asked
    if asked is True:
        return choices[0]
    return checked_choice(name, asked, choices, "True, False, None, ")
