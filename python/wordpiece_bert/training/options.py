"""The options of counting and training: names, defaults, checks, and which exclude each other."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, TypedDict

from wordpiece_bert import _core
from wordpiece_bert._internal.checks import (
    check_function,
    checked_choice,
    checked_flag,
    checked_strings,
    finite_number,
    whole_number,
)
from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert.errors import InputError, TrainingError
from wordpiece_bert.tokenizer.parameters import NORMALIZING
from wordpiece_bert.training.parameters import (
    ALGORITHMS,
    COUNTING,
    MERGING,
    SPECIAL_TOKENS,
    TOP_DOWN,
    TRAINING,
    UNUSED,
)

#: Called as ``progress("counting" | "learning", done, total)`` about twenty times a second. `total` may be None.
Progress = Callable[[str, int, int | None], object]


def checked_progress(progress: Progress | None) -> Progress | None:
    """Check that an argument `progress` is a function, or None."""
    if progress is not None:
        check_function("progress", progress, "the phase, what is done, and the total")
    return progress


BadBytes = Literal["strict", "replace", "skip"]
BAD_BYTES: tuple[BadBytes, ...] = ("strict", "replace", "skip")


@completed_by(NORMALIZING)
class NormalizerOptions(TypedDict, total=False):
    """The options of the normalizer, by keyword, for a dict that holds some of them.

    The normalizer prepares texts before they are split into words.
    """

    lowercase: bool
    strip_accents: bool | None
    clean_text: bool
    tokenize_chinese_chars: bool


class AsCounted(TypedDict, total=False):
    """The options of the normalizer where words are counted already: None means the options of the counts."""

    lowercase: bool | None
    strip_accents: bool | None
    clean_text: bool | None
    tokenize_chinese_chars: bool | None


class CountingOptions(TypedDict, total=False):
    """The options of counting words besides the options of the normalizer."""

    errors: BadBytes
    max_distinct_words: int | None
    threads: int | None
    progress: Progress | None


@completed_by(NORMALIZING, COUNTING)
class CountOptions(NormalizerOptions, CountingOptions, total=False):
    """The options of counting words, by keyword, for a dict that holds some of them."""


@completed_by(TRAINING, NORMALIZING, COUNTING)
class TrainOptions(AsCounted, CountingOptions, total=False):
    """The options of `train_vocab` besides the source, the size and the algorithm, for a dict that holds some."""

    special_tokens: Iterable[str] | None
    reserved: Literal["bert"] | None
    unused: int
    base: Any
    fill_unused: bool
    max_word_chars: int | None
    min_frequency: int
    limit_alphabet: int | None
    initial_alphabet: Iterable[str]
    lower_thresh: int | None
    upper_thresh: int | None
    num_iterations: int
    slack_ratio: float
    max_token_length: int
    max_unique_chars: int
    max_input_words: int | None
    include_joiner: bool


@completed_by(NORMALIZING)
@dataclass(frozen=True, slots=True)
class NormalizerSettings:
    """The settings of BERT's normalizer, which prepares texts before they are split into words.

    Counts can be added, or used to extend a vocabulary, only if their settings are equal.

    Parameters
    ----------
    strip_accents : bool, default True
        Remove combining marks.

    Examples
    --------
    >>> from wordpiece_bert import WordCounts
    >>> from wordpiece_bert.training import NormalizerSettings
    >>> settings = NormalizerSettings(lowercase=False, strip_accents=False)
    >>> WordCounts.from_texts(["Der Käse"], **settings.as_dict()).to_dict()
    {'Der': 1, 'Käse': 1}
    """

    lowercase: bool = True
    strip_accents: bool = True
    clean_text: bool = True
    tokenize_chinese_chars: bool = True

    @property
    def pipeline(self) -> str:
        """All that determines the words of a text, as canonical JSON: normalizer, pre-tokenizer, Unicode versions."""
        content = {
            "normalizer": {"type": "BertNormalizer", **self.as_dict()},
            "pre_tokenizer": {"type": "BertPreTokenizer"},
            "unicode": _core.UNICODE_VERSIONS,
        }
        return json.dumps(content, sort_keys=True, separators=(",", ":"))

    @property
    def fingerprint(self) -> str:
        """SHA-256 of `pipeline`, in hex."""
        return hashlib.sha256(self.pipeline.encode()).hexdigest()

    def as_dict(self) -> NormalizerOptions:
        """Return the settings by name.

        Returns
        -------
        dict
            The settings, as keyword arguments of `WordCounts.from_files`.
        """
        return {
            "lowercase": self.lowercase,
            "strip_accents": self.strip_accents,
            "clean_text": self.clean_text,
            "tokenize_chinese_chars": self.tokenize_chinese_chars,
        }


def differences(one: NormalizerSettings, other: NormalizerSettings) -> str:
    """Return the settings that differ as text: ``lowercase True and False``."""
    both = ((field.name, getattr(one, field.name), getattr(other, field.name)) for field in fields(one))
    return ", ".join(f"{name} {mine} and {others}" for name, mine, others in both if mine != others)


#: The defaults of the options where they are not None.
COUNT_DEFAULTS = {"lowercase": True, "clean_text": True, "tokenize_chinese_chars": True, "errors": "strict"}
TRAIN_DEFAULTS = {"unused": UNUSED, "fill_unused": False, "errors": "strict", **MERGING, **TOP_DOWN}


def normalizer_settings(
    lowercase: bool = True,
    strip_accents: bool | None = None,
    clean_text: bool = True,
    tokenize_chinese_chars: bool = True,
) -> NormalizerSettings:
    """Return the settings that the options of a call stand for.

    Raises
    ------
    InputError
        A value has the wrong type.
    """
    lowercase = checked_flag("lowercase", lowercase)
    return NormalizerSettings(
        lowercase=lowercase,
        strip_accents=lowercase if strip_accents is None else checked_flag("strip_accents", strip_accents),
        clean_text=checked_flag("clean_text", clean_text),
        tokenize_chinese_chars=checked_flag("tokenize_chinese_chars", tokenize_chinese_chars),
    )


def settings_of(
    given: NormalizerSettings | None,
    *,
    lowercase: bool | None = None,
    strip_accents: bool | None = None,
    clean_text: bool | None = None,
    tokenize_chinese_chars: bool | None = None,
) -> NormalizerSettings:
    """Return the settings of a call whose words may be counted already.

    Parameters
    ----------
    given : NormalizerSettings or None
        The settings that the words were counted with.
    lowercase, strip_accents, clean_text, tokenize_chinese_chars : bool, optional
        The options of the call; None takes the value of `given`, or else the default. Without `strip_accents`,
        accents follow a `lowercase` that is given.

    Raises
    ------
    InputError
        A value has the wrong type.
    TrainingError
        An option contradicts `given`.
    """
    fallback = given or NormalizerSettings()
    if strip_accents is None and lowercase is None:
        strip_accents = fallback.strip_accents
    settings = normalizer_settings(
        lowercase=fallback.lowercase if lowercase is None else lowercase,
        strip_accents=strip_accents,
        clean_text=fallback.clean_text if clean_text is None else clean_text,
        tokenize_chinese_chars=(
            fallback.tokenize_chinese_chars if tokenize_chinese_chars is None else tokenize_chinese_chars
        ),
    )
    if given is not None and settings != given:
        raise TrainingError(
            f"the options contradict those that the words were counted with: {differences(settings, given)}; omit "
            "them, or count again"
        )
    return settings


def read_pipeline(pipeline: str) -> NormalizerSettings:
    """Parse `NormalizerSettings.pipeline`.

    Raises
    ------
    TrainingError
        The text is from another program, or from a version with other Unicode tables.
    """
    try:
        normalizer = json.loads(pipeline)["normalizer"]
        settings = NormalizerSettings(**{field.name: normalizer[field.name] for field in fields(NormalizerSettings)})
    except (ValueError, KeyError, TypeError):
        settings = None
    if settings is None or settings.pipeline != pipeline:
        raise TrainingError(
            f"the words were counted with settings that this version does not support, {pipeline}: count again"
        )
    return settings


def _optional_number(name: str, value: int | None, least: int = 0) -> int | None:
    """Check an option that must be a whole number of at least `least`, or None."""
    return None if value is None else whole_number(name, value, least)


def count_fields(
    settings: NormalizerSettings, errors: str = "strict", max_distinct_words: int | None = None
) -> dict[str, Any]:
    """Return the settings and options in the form that the core's counting functions accept."""
    return {
        **settings.as_dict(),
        "errors": checked_choice("errors", errors, BAD_BYTES),
        "max_distinct_words": _optional_number("max_distinct_words", max_distinct_words, 1),
    }


def algorithm_options(algorithm: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the checked options of an algorithm.

    Parameters
    ----------
    algorithm : str
        One of `ALGORITHMS`.
    given : mapping
        The options of a call, all in `MERGING` and `TOP_DOWN` among them.

    Raises
    ------
    InputError
        The algorithm or a value is wrong, or an option that only another algorithm has is not its default.
    """
    checked_choice("algorithm", algorithm, ALGORITHMS)
    defaults = MERGING | TOP_DOWN
    changed = [name for name, usual in defaults.items() if type(given[name]) is not type(usual) or given[name] != usual]
    refuse_options_of_other_algorithms(algorithm, changed)
    return _top_down_options(given) if algorithm == "top_down" else _merge_options(given)


def refuse_options_of_other_algorithms(algorithm: str, names: Iterable[str]) -> None:
    """Raise InputError for the name of an option that only another algorithm has."""
    foreign, whose = (MERGING, "bpe and likelihood") if algorithm == "top_down" else (TOP_DOWN, "top_down")
    for name in names:
        if name in foreign:
            raise InputError(f"algorithm {algorithm!r} has no {name}: it is an option of {whose}")


def _merge_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Check the options of `bpe` and `likelihood`."""
    return {
        "min_frequency": whole_number("min_frequency", given["min_frequency"], 0),
        "limit_alphabet": _optional_number("limit_alphabet", given["limit_alphabet"]),
        "initial_alphabet": checked_strings("initial_alphabet", given["initial_alphabet"]),
    }


def _top_down_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Check the options of `top_down`."""
    most = given["max_input_words"]
    return {
        "lower_thresh": _optional_number("lower_thresh", given["lower_thresh"], 1),
        "upper_thresh": _optional_number("upper_thresh", given["upper_thresh"], 1),
        "num_iterations": whole_number("num_iterations", given["num_iterations"], 0),
        "slack_ratio": finite_number("slack_ratio", given["slack_ratio"]),
        "max_token_length": whole_number("max_token_length", given["max_token_length"], 0),
        "max_unique_chars": whole_number("max_unique_chars", given["max_unique_chars"], 0),
        "max_input_words": None if most is None or most == -1 else whole_number("max_input_words", most, 0),
        "include_joiner": checked_flag("include_joiner", given["include_joiner"]),
    }


def first_tokens(special_tokens: Iterable[str] | None, reserved: str | None, unused: int) -> list[str]:
    """Return the first tokens of a new vocabulary, without duplicates."""
    if reserved not in (None, "bert"):
        raise InputError(f"reserved must be 'bert' or None, not {reserved!r}")
    if reserved is None and unused != UNUSED:
        raise InputError("unused applies only with reserved='bert'")
    given = None if special_tokens is None else checked_strings("special_tokens", special_tokens)
    if any(not token for token in given or ()):
        raise InputError("special_tokens has an empty string")
    first = list(SPECIAL_TOKENS) if given is None else given
    if reserved == "bert":
        slots = [f"[unused{i}]" for i in range(whole_number("unused", unused, 0, 1 << 24))]
        first = ["[PAD]", *slots[:99], "[UNK]", "[CLS]", "[SEP]", "[MASK]", *slots[99:], *(given or ())]
    return list(dict.fromkeys(first))
