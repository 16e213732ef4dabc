"""The options of an encoding call: their defaults, checks and effect.

`resolve` turns the keywords of a call into the options of the core; `Tokenizer.encode`, `encode_batch`, `encodings` and
``tokenizer(...)`` all use it. Keywords that a call does not give come from the tokenizer's files, except that
``tokenizer(...)`` ignores the files' truncation and padding, as transformers does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeVar

from wordpiece_bert._internal.checks import checked_choice, checked_flag, whole_number
from wordpiece_bert._internal.warn import warn
from wordpiece_bert.errors import InputError

if TYPE_CHECKING:
    from wordpiece_bert import _core
    from wordpiece_bert.tokenizer.option_types import (
        CallOptions,
        Defaults,
        OffsetUnit,
        PaddingSettings,
        Side,
        Strategy,
        Switch,
        TruncationSettings,
    )

SIDES: tuple[Side, ...] = ("right", "left")
STRATEGIES: tuple[Strategy, ...] = ("longest_first", "only_first", "only_second")
PADDINGS: tuple[Literal["longest", "max_length"], ...] = ("longest", "max_length")
OFFSET_UNITS: tuple[OffsetUnit, ...] = ("char", "byte", "utf16")

# Far above the row length of any model. A larger value is a mistake, such as the 10**30 that means "no limit" in some
# files, and would exhaust the memory.
LONGEST_ROW = 1 << 24

T = TypeVar("T", bound=str)


def resolve(
    core: _core.Tokenizer, defaults: Defaults, given: CallOptions, *, like_transformers: bool = False
) -> _core.Options:
    """Determine all options of a call, and check them against the tokenizer.

    Parameters
    ----------
    core : _core.Tokenizer
        The tokenizer to call.
    defaults : Defaults
        The settings of its files.
    given : CallOptions
        The options of the call.
    like_transformers : bool, default False
        Ignore the truncation and padding of the files, and require that a truncation length is a multiple of
        `pad_to_multiple_of`.

    Returns
    -------
    _core.Options
        The options for calls of `core`.

    Raises
    ------
    InputError
        A value is wrong, or the options contradict each other or the tokenizer.

    Warns
    -----
    UserWarning
        A `max_length` has no effect. Not with `like_transformers`: there, `without_unknown_maximum` returns it.
    """
    if given.max_length is not None:
        given = given._replace(max_length=whole_number("max_length", given.max_length, 0))
    if like_transformers:
        defaults = defaults._replace(truncation=None, padding=None)
    nothing_set = given.truncation is None and defaults.truncation is None and not given.padding
    if given.max_length is not None and nothing_set:
        given = given._replace(truncation=True)
    truncation = truncation_of(defaults, given)
    padding = _padding(defaults, given, truncation)
    if like_transformers:  # the call has warned, if it is to warn
        _check_multiple(truncation, padding)
    elif message := _without_effect(given):
        warn(message)
    return core.options(
        checked_flag("add_special_tokens", given.add_special_tokens),
        truncation,
        padding,
        checked_choice("offset_unit", given.offset_unit, OFFSET_UNITS),
        checked_flag("encode_special_tokens", given.encode_special_tokens),
    )


def without_unknown_maximum(defaults: Defaults, given: CallOptions) -> tuple[CallOptions, str | None]:
    """Switch off what needs a maximum length that no one gives, and find one that nothing needs, as transformers does.

    Parameters
    ----------
    defaults : Defaults
        The settings of the tokenizer's files.
    given : CallOptions
        The options of the call.

    Returns
    -------
    CallOptions
        The options, without truncation and padding to a maximum if there is none.
    str or None
        What was switched off or has no effect, and why, for a warning; None if nothing.
    """
    if given.max_length is not None:
        return given, _without_effect(given)
    if defaults.model_max_length is not None:
        return given, None
    off = []
    if given.truncation is True or given.truncation in STRATEGIES:
        off.append(f"truncation={given.truncation!r}")
        given = given._replace(truncation=False)
    if given.padding == "max_length":
        off.append("padding='max_length'")
        given = given._replace(padding=False)
    if not off:
        return given, None
    plural = "s" if len(off) == 1 else ""
    return given, (
        f"{' and '.join(off)} need{plural} a max_length: none is given, and the tokenizer has no model_max_length. "
        "Nothing is done, as in transformers; pass max_length"
    )


def _without_effect(given: CallOptions) -> str | None:
    """Return that a `max_length` has no effect, if rows are padded to the longest and the call does not truncate."""
    is_longest = given.padding is True or given.padding == "longest"
    if given.max_length is None or not is_longest or given.truncation not in (None, False, "do_not_truncate"):
        return None
    return (
        f"max_length={given.max_length!r:.80} has no effect with padding={given.padding!r} and without truncation, as "
        "in transformers: padding='max_length' pads to it, truncation=True truncates to it"
    )


def _check_multiple(truncation: TruncationSettings | None, padding: PaddingSettings | None) -> None:
    """Refuse a truncation length that is not a multiple of the padding's, as a call of transformers does."""
    multiple = padding["pad_to_multiple_of"] if padding else None
    if truncation and multiple and truncation["max_length"] % multiple:
        raise InputError(
            "Truncation and padding are both activated but truncation length "
            f"(max_length={truncation['max_length']}) is not a multiple of pad_to_multiple_of ({multiple}): use "
            f"max_length={-(-truncation['max_length'] // multiple) * multiple}"
        )


def truncation_of(defaults: Defaults, given: CallOptions) -> TruncationSettings | None:
    """Return how a call truncates, with an `InputError` for a wrong value; None if it does not."""
    max_length, stride, side = given.max_length, given.stride, given.truncation_side
    strategy = _strategy_of("truncation", given.truncation, STRATEGIES, "do_not_truncate")
    # Checked even where truncation is off: a wrong value is a mistake either way.
    steps = None if stride is None else whole_number("stride", stride, 0)
    direction = defaults.truncation_side if side is None else checked_choice("truncation_side", side, SIDES)
    file_setting = defaults.truncation
    if strategy is False or (strategy is None and file_setting is None):
        return None
    if steps is None:
        steps = file_setting["stride"] if file_setting else 0
    if strategy is None and file_setting is not None:
        # A max_length that is given for the padding leaves the file's truncation as it is.
        kept = file_setting["max_length"] if max_length is None or given.padding else max_length
        return {**file_setting, "max_length": kept, "stride": steps, "direction": direction}
    longest = max_length
    if longest is None:
        longest = file_setting["max_length"] if file_setting else defaults.model_max_length
    if longest is None:
        raise InputError(
            f"truncation={given.truncation!r} needs a max_length: none is given, and the tokenizer has no "
            "model_max_length"
        )
    return {"max_length": longest, "stride": steps, "strategy": strategy or STRATEGIES[0], "direction": direction}


def _padding(defaults: Defaults, given: CallOptions, truncation: TruncationSettings | None) -> PaddingSettings | None:
    multiple, side = given.pad_to_multiple_of, given.padding_side
    strategy = _strategy_of("padding", given.padding, PADDINGS, "do_not_pad")
    if multiple is not None:
        multiple = whole_number("pad_to_multiple_of", multiple, 1, LONGEST_ROW)
    direction = defaults.padding_side if side is None else checked_choice("padding_side", side, SIDES)
    file_setting = defaults.padding
    if strategy is False or (strategy is None and file_setting is None):
        return None
    if multiple is None and file_setting:
        multiple = file_setting["pad_to_multiple_of"]
    length = file_setting["length"] if file_setting and strategy is None else None
    if strategy == "max_length":
        fixed = file_setting["length"] if file_setting else None
        candidates = (
            given.max_length,
            fixed,
            truncation["max_length"] if truncation else None,
            defaults.model_max_length,
        )
        length = next((candidate for candidate in candidates if candidate is not None), None)
        if length is None:
            raise InputError(
                "padding='max_length' needs a max_length: none is given, and the tokenizer has no model_max_length"
            )
    if length is not None:
        whole_number("the length to pad to", length, 0, LONGEST_ROW)
    if file_setting is not None:
        return {**file_setting, "length": length, "pad_to_multiple_of": multiple, "direction": direction}
    if defaults.pad_id is None:
        raise InputError(
            f"Asking to pad but the tokenizer does not have a padding token: {defaults.pad_token!r} is not in its "
            "vocabulary. Add it to the vocabulary, choose another with from_vocab(..., pad_token=...), or use "
            "padding=False"
        )
    return {
        "length": length,
        "pad_to_multiple_of": multiple,
        "pad_id": defaults.pad_id,
        "pad_token": defaults.pad_token,
        "pad_type_id": defaults.pad_type_id,
        "direction": direction,
    }


def _strategy_of(name: str, switch: Switch, choices: tuple[T, ...], off: str) -> T | Literal[False] | None:
    """Resolve a switch: True to the first choice, False to off, None to the setting of the files."""
    if switch is None or switch is False:
        return switch
    if switch is True:
        return choices[0]
    if switch == off:
        return False
    return checked_choice(name, switch, choices, f"True, False, None, {off!r}, ")
