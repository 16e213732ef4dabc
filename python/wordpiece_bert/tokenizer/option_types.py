"""Truncation, padding and the other options of an encoding call, as types; `call_options` applies them."""

from typing import Literal, NamedTuple, TypedDict

from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert.tokenizer.parameters import ENCODING

Side = Literal["left", "right"]
Strategy = Literal["longest_first", "only_first", "only_second"]
OffsetUnit = Literal["char", "byte", "utf16"]

#: Off (False), on (True), one of several choices (str), or the setting of the files (None).
Switch = bool | str | None


class NamedOptions(TypedDict, total=False):
    """The options that all encoding methods accept by keyword only."""

    truncation: bool | Strategy | Literal["do_not_truncate"] | None
    max_length: int | None
    stride: int | None
    truncation_side: Side | None
    padding: bool | Literal["longest", "max_length", "do_not_pad"] | None
    pad_to_multiple_of: int | None
    padding_side: Side | None
    offset_unit: OffsetUnit
    encode_special_tokens: bool


@completed_by(ENCODING)
class EncodeOptions(NamedOptions, total=False):
    """The options that all encoding methods accept by keyword, for a dict that holds some of them.

    Raises
    ------
    InputError
        When a method is called: for a wrong value (the message has the option, the value and the choices), a
        `max_length` below the number of special tokens, a stride that is not smaller than a window, or padding without
        a padding token.
    """

    add_special_tokens: bool


class TruncationSettings(TypedDict):
    """Truncation settings, with the names that `tokenizers` uses."""

    max_length: int
    stride: int
    strategy: Strategy
    direction: Side


class PaddingSettings(TypedDict):
    """Padding settings, with the names that `tokenizers` uses. A length of None means the longest row of the batch."""

    length: int | None
    pad_to_multiple_of: int | None
    pad_id: int
    pad_token: str
    pad_type_id: int
    direction: Side


class Defaults(NamedTuple):
    """The settings of a tokenizer's files: the defaults for options that a call omits."""

    truncation: TruncationSettings | None
    padding: PaddingSettings | None
    truncation_side: Side
    padding_side: Side
    model_max_length: int | None
    #: The padding token with its id and token type id. The id is None if the vocabulary does not have the token.
    pad_token: str
    pad_id: int | None
    pad_type_id: int


class CallOptions(NamedTuple):
    """The options of one call, as its arguments give them and before any check; see `EncodeOptions`."""

    is_split_into_words: bool = False
    add_special_tokens: bool = True
    truncation: bool | str | None = None
    max_length: int | None = None
    stride: int | None = None
    truncation_side: str | None = None
    padding: bool | str | None = None
    pad_to_multiple_of: int | None = None
    padding_side: str | None = None
    offset_unit: str = "char"
    encode_special_tokens: bool = False


#: The defaults of the options, for the signatures of the methods that take them.
DEFAULTS = CallOptions._field_defaults
