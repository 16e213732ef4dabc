"""The options of counting and training: their names, their defaults, and what may be said together."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, TypedDict

from wordpiece_bert import _core
from wordpiece_bert._internal.checks import checked_flag, checked_strings, whole_number
from wordpiece_bert.errors import InputError, TrainingError

__all__ = ["Algorithm", "CountOptions", "NormalizerOptions", "NormalizerSettings", "TrainOptions"]

Algorithm = Literal["bpe", "top_down", "likelihood"]
#: Called as ``progress("counting" | "learning", done, total)``, about twenty times a second; total may be None.
Progress = Callable[[str, int, int | None], object]

ALGORITHMS: tuple[Algorithm, ...] = ("bpe", "top_down", "likelihood")
BAD_BYTES = ("strict", "replace", "skip")
SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


class NormalizerOptions(TypedDict, total=False):
    """What is done to a text before it is split into words, all by keyword.

    Raises
    ------
    InputError
        When used: a wrong value.
    """

    #: Lower-case texts; True by default.
    lowercase: bool
    #: Drop combining marks; None, the default: as `lowercase`.
    strip_accents: bool | None
    #: Drop control characters, make every white space a space; True by default.
    clean_text: bool
    #: Make every ideograph a word; True by default.
    tokenize_chinese_chars: bool


class CountOptions(NormalizerOptions, total=False):
    """The options of counting words, all by keyword.

    Raises
    ------
    InputError
        When used: a wrong value.
    """

    #: Bytes of a file that are not UTF-8: "strict" (an error, the default), "replace" (U+FFFD, which cleaning then
    #: removes) or "skip" (the line is left out).
    errors: Literal["strict", "replace", "skip"]
    #: A bound on memory for noisy texts: when more distinct words than this are known after 64 MiB of text, the rarest
    #: go until half as many are left. None, the default: no bound.
    max_distinct_words: int | None
    #: Threads; None, the default: as many as this process may use. The result does not depend on it.
    threads: int | None
    #: Called as ``progress(stage, done, total)`` about twenty times a second.
    progress: Progress | None


class TrainOptions(CountOptions, total=False):
    """The options of `train_vocab` beside the source, the size and the algorithm, all by keyword.

    Those of another algorithm are refused. Defaults are those of `BertWordPieceTokenizer.train` and, for
    ``"top_down"``, those of TensorFlow Text.

    Raises
    ------
    InputError
        When used: a wrong value, or an option that the algorithm does not have.
    """

    #: The tokens that come first, in this order; by default [PAD] [UNK] [CLS] [SEP] [MASK].
    special_tokens: Iterable[str]
    #: "bert": special tokens at the ids of bert-base-uncased, with slots [unused0], [unused1], … kept free.
    reserved: Literal["bert"] | None
    #: How many slots "bert" keeps free; 99 by default. Of more, [unused99] and on come after [MASK].
    unused: int
    #: A vocabulary to extend: its tokens keep their ids.
    base: Any
    #: New tokens take the [unusedN] slots of `base`, whose size stays.
    fill_unused: bool
    #: Words of more characters are left out before training. None, the default: none are.
    max_word_chars: int | None
    #: bpe, likelihood: pairs that occur less often are not merged; 2 by default.
    min_frequency: int
    #: bpe, likelihood: how many characters are kept, the most frequent; 1000 by default, None for all.
    limit_alphabet: int | None
    #: bpe, likelihood: characters that are kept before all others; of each string the first one.
    initial_alphabet: Iterable[str]
    #: top_down: the least threshold, 10 by default; None: the least count.
    lower_thresh: int | None
    #: top_down: the greatest threshold, 10,000,000 by default; None: the greatest count.
    upper_thresh: int | None
    #: top_down: rounds for each threshold, 4 by default.
    num_iterations: int
    #: top_down: how far below `vocab_size` the size may be, as a share of it; 0.05 by default.
    slack_ratio: float
    #: top_down: words of more characters are left out; 50 by default.
    max_token_length: int
    #: top_down: how many characters are kept; words with another are left out; 1000 by default.
    max_unique_chars: int
    #: top_down: how many words are kept, the most frequent; 5,000,000 by default, None or -1 for all.
    max_input_words: int | None
    #: top_down: whether pieces inside words bear ##; True by default.
    include_joiner: bool


MERGING = frozenset({"min_frequency", "limit_alphabet", "initial_alphabet"})
TOP_DOWN = frozenset(
    {
        "lower_thresh",
        "upper_thresh",
        "num_iterations",
        "slack_ratio",
        "max_token_length",
        "max_unique_chars",
        "max_input_words",
        "include_joiner",
    }
)


@dataclass(frozen=True, slots=True)
class NormalizerSettings:
    """What is done to a text before it is split into words: the options of BERT's normalizer.

    Two counts, or counts and a vocabulary, go together only where these are equal.

    Parameters
    ----------
    lowercase
        Lower-case texts.
    strip_accents
        Drop combining marks.
    clean_text
        Drop control characters, make every white space a space.
    tokenize_chinese_chars
        Make every ideograph a word.
    """

    lowercase: bool = True
    strip_accents: bool = True
    clean_text: bool = True
    tokenize_chinese_chars: bool = True

    @property
    def pipeline(self) -> str:
        """All that decides which words a text has, as canonical JSON: normalizer, splitter, versions of Unicode."""
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
        """The settings by name."""
        return {
            "lowercase": self.lowercase,
            "strip_accents": self.strip_accents,
            "clean_text": self.clean_text,
            "tokenize_chinese_chars": self.tokenize_chinese_chars,
        }


def differences(one: NormalizerSettings, other: NormalizerSettings) -> str:
    """What is not equal, in words."""
    both = ((field.name, getattr(one, field.name), getattr(other, field.name)) for field in fields(one))
    return ", ".join(f"{name} {mine} and {others}" for name, mine, others in both if mine != others)


def settings_of(options: Mapping[str, Any], given: NormalizerSettings | None = None) -> NormalizerSettings:
    """Read the settings that stand among the options of a call, which must not contradict those `given`."""
    for name in ("lowercase", "clean_text", "tokenize_chinese_chars"):
        if name in options:
            checked_flag(name, options[name])
    strip = options.get("strip_accents")
    if strip is not None:
        checked_flag("strip_accents", strip)
    before = given or NormalizerSettings()
    lowercase = options.get("lowercase", before.lowercase)
    if strip is None:
        asked = given is None or "strip_accents" in options or "lowercase" in options
        strip = lowercase if asked else before.strip_accents
    settings = NormalizerSettings(
        lowercase=lowercase,
        strip_accents=strip,
        clean_text=options.get("clean_text", before.clean_text),
        tokenize_chinese_chars=options.get("tokenize_chinese_chars", before.tokenize_chinese_chars),
    )
    if given is not None and settings != given:
        message = (
            f"the options contradict those that the words were counted with: {differences(settings, given)}; leave "
            "them out, or count again"
        )
        raise TrainingError(message)
    return settings


def read_pipeline(pipeline: str) -> NormalizerSettings:
    """Read `NormalizerSettings.pipeline`.

    Raises
    ------
    TrainingError
        It is of another program, or of a version with other tables.
    """
    try:
        normalizer = json.loads(pipeline)["normalizer"]
        settings = NormalizerSettings(**{field.name: normalizer[field.name] for field in fields(NormalizerSettings)})
    except (ValueError, KeyError, TypeError):
        settings = None
    if settings is None or settings.pipeline != pipeline:
        message = f"words that were counted in a way that this version does not know, {pipeline}: count again"
        raise TrainingError(message)
    return settings


def optional_number(options: Mapping[str, Any], name: str, default: int | None, least: int = 0) -> int | None:
    """Read an option that is a whole number or None."""
    value = options.get(name, default)
    return None if value is None else whole_number(name, value, least)


def count_fields(
    settings: NormalizerSettings, options: Mapping[str, Any]
) -> tuple[bool, bool, bool, bool, str, int | None]:
    """What the core is told about counting."""
    bad_bytes = options.get("errors", "strict")
    if bad_bytes not in BAD_BYTES:
        message = f"errors must be one of {', '.join(map(repr, BAD_BYTES))}, not {bad_bytes!r}"
        raise InputError(message)
    return (
        settings.lowercase,
        settings.strip_accents,
        settings.clean_text,
        settings.tokenize_chinese_chars,
        bad_bytes,
        optional_number(options, "max_distinct_words", None, 1),
    )


def known_options(options: Mapping[str, Any], known: Iterable[str], call: str) -> None:
    """Refuse options that a call does not have."""
    known = frozenset(known)
    unknown = [name for name in options if name not in known]
    if unknown:
        message = f"{call} has no option {unknown[0]!r}; it has {', '.join(sorted(known))}"
        raise InputError(message)


def merge_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of `bpe` and `likelihood`, complete."""
    return {
        "min_frequency": whole_number("min_frequency", options.get("min_frequency", 2), 0),
        "limit_alphabet": optional_number(options, "limit_alphabet", 1000),
        "initial_alphabet": checked_strings("initial_alphabet", options.get("initial_alphabet", ())),
    }


def top_down_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of `top_down`, complete."""
    slack = options.get("slack_ratio", 0.05)
    if isinstance(slack, bool) or not isinstance(slack, int | float) or not math.isfinite(slack):
        message = f"slack_ratio must be a number, not {slack!r}"
        raise InputError(message)
    most = options.get("max_input_words", 5_000_000)
    return {
        "lower_thresh": optional_number(options, "lower_thresh", 10, 1),
        "upper_thresh": optional_number(options, "upper_thresh", 10_000_000, 1),
        "num_iterations": whole_number("num_iterations", options.get("num_iterations", 4), 0),
        "slack_ratio": float(slack),
        "max_token_length": whole_number("max_token_length", options.get("max_token_length", 50), 0),
        "max_unique_chars": whole_number("max_unique_chars", options.get("max_unique_chars", 1000), 0),
        "max_input_words": None if most is None or most == -1 else whole_number("max_input_words", most, 0),
        "include_joiner": checked_flag("include_joiner", options.get("include_joiner", True)),
    }


def refuse_options_of_other_algorithms(algorithm: str, options: Mapping[str, Any]) -> None:
    """Refuse what another algorithm alone understands."""
    foreign = sorted((MERGING if algorithm == "top_down" else TOP_DOWN) & options.keys())
    if foreign:
        whose = "bpe and likelihood" if algorithm == "top_down" else "top_down"
        message = f"algorithm {algorithm!r} has no {foreign[0]}: it is an option of {whose}"
        raise InputError(message)


def special_tokens(options: Mapping[str, Any]) -> list[str]:
    """The tokens that come first in a new vocabulary, each once."""
    reserved = options.get("reserved")
    if reserved not in (None, "bert"):
        message = f"reserved must be 'bert' or None, not {reserved!r}"
        raise InputError(message)
    if reserved is None and "unused" in options:
        message = "unused goes with reserved='bert'"
        raise InputError(message)
    given = checked_strings("special_tokens", options["special_tokens"]) if "special_tokens" in options else None
    if any(not token for token in given or ()):
        message = "special_tokens has an empty one"
        raise InputError(message)
    first = list(SPECIAL_TOKENS) if given is None else given
    if reserved == "bert":
        slots = [f"[unused{i}]" for i in range(whole_number("unused", options.get("unused", 99), 0, 1 << 24))]
        first = ["[PAD]", *slots[:99], "[UNK]", "[CLS]", "[SEP]", "[MASK]", *slots[99:], *(given or ())]
    return list(dict.fromkeys(first))
