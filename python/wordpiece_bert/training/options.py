"""The options of counting and training: names, defaults, checks, and which exclude each other."""

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
#: Called as ``progress("counting" | "learning", done, total)`` about twenty times a second. `total` may be None.
Progress = Callable[[str, int, int | None], object]

ALGORITHMS: tuple[Algorithm, ...] = ("bpe", "top_down", "likelihood")
BAD_BYTES = ("strict", "replace", "skip")
SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


class NormalizerOptions(TypedDict, total=False):
    """The options of the normalizer, which prepares texts before they are split into words.

    Raises
    ------
    InputError
        When a function is called: a value has the wrong type.
    """

    #: Convert texts to lower case; True by default.
    lowercase: bool
    #: Remove combining marks after decomposition; None, the default, means the value of `lowercase`.
    strip_accents: bool | None
    #: Remove control characters, and replace every white space character by a space; True by default.
    clean_text: bool
    #: Treat every Chinese ideograph as a word; True by default.
    tokenize_chinese_chars: bool


class CountOptions(NormalizerOptions, total=False):
    """The options of counting words: those of the normalizer, and these.

    Raises
    ------
    InputError
        When a function is called: a value is wrong.
    """

    #: What to do with bytes of a file that are not UTF-8: "strict" (raise an error, the default), "replace" (by U+FFFD,
    #: which `clean_text` then removes) or "skip" (skip the line).
    errors: Literal["strict", "replace", "skip"]
    #: A bound on memory for noisy texts. After every 64 MiB of text, if there are more distinct words than this, the
    #: rarest are dropped until half as many remain. None, the default, means no bound.
    max_distinct_words: int | None
    #: Number of threads; None, the default, means all CPUs that this process may use. Results do not depend on it.
    threads: int | None
    #: Called as ``progress(stage, done, total)`` about twenty times a second.
    progress: Progress | None


class TrainOptions(CountOptions, total=False):
    """The options of `train_vocab` besides the source, the size and the algorithm.

    The defaults are those of `BertWordPieceTokenizer.train` in tokenizers, and for ``"top_down"`` those of TensorFlow
    Text.

    Raises
    ------
    InputError
        When `train_vocab` is called: a value is wrong, or the option belongs to another algorithm.
    """

    #: The first tokens of the vocabulary, in this order; by default [PAD] [UNK] [CLS] [SEP] [MASK].
    special_tokens: Iterable[str]
    #: "bert" gives the special tokens their ids of bert-base-uncased, and the ids between the tokens [unused0],
    #: [unused1], …
    reserved: Literal["bert"] | None
    #: Number of [unusedN] tokens with reserved="bert"; 99 by default. [unused99] and later ones come after [MASK].
    unused: int
    #: A vocabulary to extend: a `Vocab`, a `Tokenizer`, a vocab.txt or a list of tokens. Its tokens keep their ids.
    base: Any
    #: Put new tokens at the [unusedN] ids of `base`, without changing its size; False by default.
    fill_unused: bool
    #: Skip words of more characters. None, the default, means no limit.
    max_word_chars: int | None
    #: bpe, likelihood: merge only pairs that occur at least this often; 2 by default.
    min_frequency: int
    #: bpe, likelihood: keep this many characters, the most frequent ones; 1000 by default, None for all.
    limit_alphabet: int | None
    #: bpe, likelihood: characters to keep in any case; of each string the first character.
    initial_alphabet: Iterable[str]
    #: top_down: the lower end of the search for a threshold, 10 by default; None means the smallest count.
    lower_thresh: int | None
    #: top_down: the upper end of that search, 10,000,000 by default; None means the largest count.
    upper_thresh: int | None
    #: top_down: passes for each threshold, 4 by default.
    num_iterations: int
    #: top_down: the share of `vocab_size` by which the vocabulary may be smaller; 0.05 by default.
    slack_ratio: float
    #: top_down: skip words of more characters; 50 by default.
    max_token_length: int
    #: top_down: keep this many characters, the most frequent ones, and skip words with any other; 1000 by default.
    max_unique_chars: int
    #: top_down: keep this many words, the most frequent ones; 5,000,000 by default, None or -1 for all.
    max_input_words: int | None
    #: top_down: mark pieces inside words with ##; True by default.
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
    """The settings of BERT's normalizer, which prepares texts before they are split into words.

    Counts can be added, or used to extend a vocabulary, only if their settings are equal.

    Parameters
    ----------
    lowercase : bool, default True
        Convert texts to lower case.
    strip_accents : bool, default True
        Remove combining marks after decomposition.
    clean_text : bool, default True
        Remove control characters, and replace every white space character by a space.
    tokenize_chinese_chars : bool, default True
        Treat every Chinese ideograph as a word.
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
        """Return the settings by name."""
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


def settings_of(options: Mapping[str, Any], given: NormalizerSettings | None = None) -> NormalizerSettings:
    """Return the settings among the options of a call.

    Parameters
    ----------
    options : mapping
        The options; those that are not of the normalizer are ignored.
    given : NormalizerSettings, optional
        Settings that already apply, such as those of counts. Missing options take their values from here.

    Raises
    ------
    InputError
        A value has the wrong type.
    TrainingError
        An option contradicts `given`.
    """
    for name in ("lowercase", "clean_text", "tokenize_chinese_chars"):
        if name in options:
            checked_flag(name, options[name])
    strip = options.get("strip_accents")
    if strip is not None:
        checked_flag("strip_accents", strip)
    fallback = given or NormalizerSettings()
    lowercase = options.get("lowercase", fallback.lowercase)
    if strip is None:
        follows_lowercase = given is None or "strip_accents" in options or "lowercase" in options
        strip = lowercase if follows_lowercase else fallback.strip_accents
    settings = NormalizerSettings(
        lowercase=lowercase,
        strip_accents=strip,
        clean_text=options.get("clean_text", fallback.clean_text),
        tokenize_chinese_chars=options.get("tokenize_chinese_chars", fallback.tokenize_chinese_chars),
    )
    if given is not None and settings != given:
        message = (
            f"the options contradict those that the words were counted with: {differences(settings, given)}; omit "
            "them, or count again"
        )
        raise TrainingError(message)
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
        message = f"the words were counted with settings that this version does not support, {pipeline}: count again"
        raise TrainingError(message)
    return settings


def optional_number(options: Mapping[str, Any], name: str, default: int | None, least: int = 0) -> int | None:
    """Return an option that must be a whole number of at least `least`, or None."""
    value = options.get(name, default)
    return None if value is None else whole_number(name, value, least)


def count_fields(settings: NormalizerSettings, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings and options in the form that the core's counting functions accept."""
    bad_bytes = options.get("errors", "strict")
    if bad_bytes not in BAD_BYTES:
        message = f"errors must be one of {', '.join(map(repr, BAD_BYTES))}, not {bad_bytes!r}"
        raise InputError(message)
    return {
        "lowercase": settings.lowercase,
        "strip_accents": settings.strip_accents,
        "clean_text": settings.clean_text,
        "tokenize_chinese_chars": settings.tokenize_chinese_chars,
        "errors": bad_bytes,
        "max_distinct_words": optional_number(options, "max_distinct_words", None, 1),
    }


def known_options(options: Mapping[str, Any], known: Iterable[str], call: str) -> None:
    """Raise InputError for an option that a function does not have."""
    known = frozenset(known)
    unknown = [name for name in options if name not in known]
    if unknown:
        message = f"{call} has no option {unknown[0]!r}; it has {', '.join(sorted(known))}"
        raise InputError(message)


def merge_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of `bpe` and `likelihood`, with defaults."""
    return {
        "min_frequency": whole_number("min_frequency", options.get("min_frequency", 2), 0),
        "limit_alphabet": optional_number(options, "limit_alphabet", 1000),
        "initial_alphabet": checked_strings("initial_alphabet", options.get("initial_alphabet", ())),
    }


def top_down_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of `top_down`, with defaults."""
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
    """Raise InputError for an option that only another algorithm has."""
    foreign = sorted((MERGING if algorithm == "top_down" else TOP_DOWN) & options.keys())
    if foreign:
        whose = "bpe and likelihood" if algorithm == "top_down" else "top_down"
        message = f"algorithm {algorithm!r} has no {foreign[0]}: it is an option of {whose}"
        raise InputError(message)


def special_tokens(options: Mapping[str, Any]) -> list[str]:
    """Return the first tokens of a new vocabulary, without duplicates."""
    reserved = options.get("reserved")
    if reserved not in (None, "bert"):
        message = f"reserved must be 'bert' or None, not {reserved!r}"
        raise InputError(message)
    if reserved is None and "unused" in options:
        message = "unused applies only with reserved='bert'"
        raise InputError(message)
    given = checked_strings("special_tokens", options["special_tokens"]) if "special_tokens" in options else None
    if any(not token for token in given or ()):
        message = "special_tokens has an empty string"
        raise InputError(message)
    first = list(SPECIAL_TOKENS) if given is None else given
    if reserved == "bert":
        slots = [f"[unused{i}]" for i in range(whole_number("unused", options.get("unused", 99), 0, 1 << 24))]
        first = ["[PAD]", *slots[:99], "[UNK]", "[CLS]", "[SEP]", "[MASK]", *slots[99:], *(given or ())]
    return list(dict.fromkeys(first))
