"""`train_vocab`: trains a vocabulary from texts or word counts."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any, Unpack

from wordpiece_bert._internal.checks import checked_flag, iterates, whole_number
from wordpiece_bert._internal.parameters import completed_by, taking
from wordpiece_bert._internal.parts import core_of
from wordpiece_bert._internal.warn import warn
from wordpiece_bert.errors import InputError, TrainingError, TrainingWarning
from wordpiece_bert.tokenizer.tokenizer import Tokenizer
from wordpiece_bert.training.counts import StrPath, Texts, WordCounts
from wordpiece_bert.training.options import (
    TRAIN_DEFAULTS,
    AsCounted,
    CountingOptions,
    NormalizerSettings,
    TrainOptions,
    algorithm_options,
    checked_progress,
    differences,
    first_tokens,
    settings_of,
)
from wordpiece_bert.training.parameters import (
    AS_COUNTED,
    COUNTING,
    DEFAULT_SIZE,
    SPECIAL_TOKENS,
    TRAINING,
    UNUSED,
    Algorithm,
)
from wordpiece_bert.training.vocab import Vocab
from wordpiece_bert.training.vocab_summary import is_placeholder

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wordpiece_bert import _core

# A note lists this many characters, and counts the rest.
_CHARS_SHOWN = 20


@completed_by(TRAINING, AS_COUNTED, COUNTING)
@taking(TrainOptions, TRAIN_DEFAULTS)
def train_vocab(
    source: StrPath | Iterable[StrPath] | Texts | WordCounts,
    vocab_size: int = DEFAULT_SIZE,
    *,
    algorithm: Algorithm = "bpe",
    **options: Unpack[TrainOptions],
) -> Vocab:
    """Train a WordPiece vocabulary.

    Three different algorithms are known as WordPiece training:

    - ``"bpe"`` repeatedly merges the most frequent pair of adjacent tokens, as Hugging Face `tokenizers` does.
    - ``"top_down"`` selects words that are frequent enough, then the suffixes that remain, as TensorFlow Text does. As
      there, the vocabulary may be larger or smaller than `vocab_size`.
    - ``"likelihood"`` repeatedly merges the pair with the highest count(ab) / (count(a) · count(b)), the score of
      Schuster & Nakajima. This score favours rare pairs: with ``min_frequency=2``, a noisy text fills the vocabulary
      with fragments. Values from 5 to 100 work well.

    The same words with the same counts make the same vocabulary, for any order of the words, any number of threads and
    on any machine.

    Parameters
    ----------
    source : path, list of paths, iterable of str, Arrow column or WordCounts
        Text files, texts, or word counts. A list of `str` means files if all of them are names of existing files,
        and texts otherwise.

    Returns
    -------
    Vocab
        The tokens, and how often each is used.

    Raises
    ------
    TrainingError
        There are no words, the vocabulary to extend already has the requested size, an option contradicts the settings
        of the counts, or a file is not UTF-8.
    InputError
        An option is wrong, an option that only another algorithm has is not its default, or an item is not a str.
    OSError
        A file does not exist or cannot be read.

    Warns
    -----
    TrainingWarning
        The size is not the requested one, or something was skipped. The message says why, how much of the text is
        affected, and what to do.

    Notes
    -----
    The defaults are as in `BertWordPieceTokenizer.train` of tokenizers, and for ``"top_down"`` as in TensorFlow
    Text. ``bpe`` produces the ids of tokenizers 0.23.3, except that continuation characters, whose ids are random
    there, are sorted by code point. Ctrl-C stops within a second.

    Examples
    --------
    >>> from wordpiece_bert import train_vocab
    >>> vocab = train_vocab(["the cat sat", "the cats"] * 2, 20)
    >>> vocab.tokens[-4:]
    ['##at', 'cat', 'th', 'the']
    """
    given: dict[str, Any] = dict.fromkeys(TrainOptions.__annotations__) | TRAIN_DEFAULTS | options
    how = algorithm_options(algorithm, given)
    fill_unused, threads, progress = (
        checked_flag("fill_unused", given["fill_unused"]),
        given["threads"],
        checked_progress(given["progress"]),
    )
    base = given["base"]
    old, old_normalizer = _base(base)
    first = given["special_tokens"], given["reserved"], given["unused"]
    specials = _first_tokens(*first, fill_unused=fill_unused) if old is None else _kept_specials(base, old, *first)
    size = _size(vocab_size, old, fill_unused=fill_unused)
    max_word_chars = given["max_word_chars"]
    max_word_chars = None if max_word_chars is None else whole_number("max_word_chars", max_word_chars, 1)

    normalizing: AsCounted = {name: given[name] for name in AsCounted.__annotations__}  # type: ignore[assignment]
    counts = _counts(source, normalizing, {name: given[name] for name in CountingOptions.__annotations__})
    normalizer = _normalizer(counts, old_normalizer, normalizing)
    notes = _counting_notes(counts)
    words = core_of(counts)
    if max_word_chars is not None:
        words, dropped, occurrences = words.without_longer(max_word_chars)
        if dropped:
            share = _share(occurrences, counts.total)
            notes.append(
                f"{dropped:,} words of more than {max_word_chars} characters were skipped ({share} of all occurrences)"
            )
    target = {"vocab_size": size, "special_tokens": specials, "base": old, "fill_unused": fill_unused}
    trained = words.train(target, algorithm, how, threads, progress)
    notes += _learning_notes(trained, size, algorithm, how)
    for note in notes:
        warn(note, TrainingWarning)
    known = frozenset(trained.tokens)
    return Vocab(
        tokens=trained.tokens,
        counts=trained.counts,
        algorithm=algorithm,
        special_tokens=[token for token in specials if token in known],
        normalizer=normalizer,
        pieces=dict(trained.pieces),
        base_size=None if old is None else len(old),
        notes=notes,
        threshold=trained.threshold,
    )


# --- source


def _counts(source: Any, normalizing: AsCounted, counting: dict[str, Any]) -> WordCounts:
    """Return the word counts of a source."""
    if isinstance(source, WordCounts):
        for name, default in (("errors", "strict"), ("max_distinct_words", None)):
            if counting[name] != default:
                raise InputError(f"{name} applies to counting, but these words are counted already")
        return source
    settings = settings_of(None, **normalizing).as_dict()
    files = _files(source)
    if files is None:
        return WordCounts.from_texts(source, **settings, **counting)
    return WordCounts.from_files(files, **settings, **counting)


def _files(source: Any) -> list[StrPath] | None:
    """Return the paths of a source, or None if it is texts."""
    if isinstance(source, str | os.PathLike):
        return [source]
    if not isinstance(source, list | tuple) or not source:
        return None
    if all(isinstance(one, os.PathLike) for one in source):
        return list(source)
    if any(isinstance(one, os.PathLike) for one in source):
        raise InputError("some items are paths and some are not; pass only paths, or only texts")
    if not all(isinstance(one, str) for one in source):
        return None
    # Strings are texts unless all of them name files. If most do, the others are probably misspelt.
    tried = source[:1000]
    found = sum(os.path.isfile(one) for one in tried)  # also False for a string that cannot be a name of a file
    like_names = (re.fullmatch(r"\S+\.\w{1,8}", one) is not None for one in tried)
    if 2 * found > len(tried) or all(like_names):
        missing = next((one for one in source if not os.path.isfile(one)), None)
        if missing is None:
            return list(source)
        raise InputError(
            f"no file {missing!r}, but other items look like files; pass WordCounts.from_texts(texts) or "
            "WordCounts.from_files(files)"
        )
    return None


def _normalizer(
    counts: WordCounts, base: NormalizerSettings | None, normalizing: AsCounted
) -> NormalizerSettings | None:
    """Return the normalizer settings of the counts, and check the options and the vocabulary to extend against them."""
    settings = settings_of(counts.normalizer, **normalizing)
    if counts.normalizer is None and all(value is None for value in normalizing.values()):
        return base
    if base is not None and base != settings:
        raise TrainingError(
            "the words were counted with other settings than those of the vocabulary to extend: "
            f"{differences(settings, base)}; count them with the same settings"
        )
    return settings


# --- initial tokens


def _base(base: Any) -> tuple[list[str] | None, NormalizerSettings | None]:
    """Return the tokens of a vocabulary to extend, and its normalizer settings if they are known."""
    if base is None:
        return None, None
    if isinstance(base, Vocab):
        return base.tokens, base.normalizer
    settings = None
    if isinstance(base, Tokenizer):
        settings = _settings_of(base)
        tokenizer = base
    elif isinstance(base, str | os.PathLike):
        tokenizer = Tokenizer.from_vocab(base, strict=True)
    elif iterates(base):
        listed = list(base)
        tokenizer = Tokenizer.from_vocab(listed) if "[UNK]" in listed else Tokenizer.from_vocab([*listed, "[UNK]"])
        if "[UNK]" not in listed:
            return listed, None
    else:
        raise InputError(
            f"base must be a Vocab, a Tokenizer, a vocab.txt or a list of tokens, not {type(base).__name__}"
        )
    ids = sorted((number, token) for token, number in tokenizer.get_vocab().items())
    if [number for number, _ in ids] != list(range(len(ids))):
        raise TrainingError("base: its ids have gaps, which a trained vocabulary must not have")
    return [token for _, token in ids], settings


def _settings_of(tokenizer: Tokenizer) -> NormalizerSettings:
    """Return the settings of a tokenizer's normalizer, which must be BERT's."""
    core = core_of(tokenizer)
    normalizer = core.bert_normalizer
    if normalizer is None or core.pre_tokenizer_type != "BertPreTokenizer":
        raise TrainingError(
            f"base: its normalizer is {core.normalizer_type} and its pre_tokenizer {core.pre_tokenizer_type}; counting "
            "and training split words with BertNormalizer and BertPreTokenizer"
        )
    if (core.continuing_subword_prefix, core.unk_token) != ("##", "[UNK]"):
        raise TrainingError(
            f"base: its continuing_subword_prefix is {core.continuing_subword_prefix!r} and its unk_token "
            f"{core.unk_token!r}, but training extends '##' and '[UNK]'; rename them, and pass the list of tokens"
        )
    strip = normalizer.strip_accents
    return NormalizerSettings(
        lowercase=normalizer.lowercase,
        strip_accents=normalizer.lowercase if strip is None else strip,
        clean_text=normalizer.clean_text,
        tokenize_chinese_chars=normalizer.tokenize_chinese_chars,
    )


def _first_tokens(
    special_tokens: Iterable[str] | None, reserved: str | None, unused: int, *, fill_unused: bool
) -> list[str]:
    """Return the first tokens of a new vocabulary."""
    if fill_unused:
        raise InputError(
            "fill_unused applies only with base=, the vocabulary whose [unusedN] tokens are to be replaced"
        )
    return first_tokens(special_tokens, reserved, unused)


def _kept_specials(
    base: Any, old: list[str], special_tokens: Iterable[str] | None, reserved: str | None, unused: int
) -> list[str]:
    """Return the special tokens of a vocabulary to extend."""
    given = {
        "special_tokens": special_tokens is not None,
        "reserved": reserved is not None,
        "unused": unused != UNUSED,
    }
    for name, is_given in given.items():
        if is_given:
            raise InputError(f"{name} applies only to a new vocabulary; the one to extend keeps its own")
    own = base.special_tokens if isinstance(base, Vocab) else ()
    kept = {*SPECIAL_TOKENS, *(base.all_special_tokens if isinstance(base, Tokenizer) else own)}
    return [token for token in old if token in kept or is_placeholder(token)]


def _size(vocab_size: int, base: list[str] | None, *, fill_unused: bool) -> int:
    size = whole_number("vocab_size", vocab_size, 1, (1 << 31) - 1)
    if not fill_unused or base is None:
        return size
    if size not in (DEFAULT_SIZE, len(base)):
        raise InputError(f"vocab_size is {size}, but with fill_unused the size is that of base, {len(base)}")
    return len(base)


# --- notes about the result


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.2g} %" if whole else "0 %"


def _counting_notes(counts: WordCounts) -> list[str]:
    notes = []
    if counts.dropped:
        notes.append(
            f"{counts.dropped:,} rare words were dropped because of max_distinct_words; counts may be up to "
            f"{counts.undercount:,} too small"
        )
    if counts.replaced:
        notes.append(f"{counts.replaced:,} byte sequences in the files were not UTF-8 and were replaced")
    if counts.skipped:
        notes.append(f"{counts.skipped:,} texts could not be read and were skipped")
    return notes


def _learning_notes(trained: _core.Trained, size: int, algorithm: Algorithm, how: dict[str, Any]) -> list[str]:
    notes = []
    if trained.dropped_chars:
        shown = " ".join(trained.dropped_chars[:_CHARS_SHOWN])
        more = len(trained.dropped_chars) - _CHARS_SHOWN
        occurrences, of_characters, words, of_words = trained.dropped_shares
        notes.append(
            f"limit_alphabet={how['limit_alphabet']} drops {len(trained.dropped_chars):,} characters: {shown}"
            f"{f' and {more:,} more' if more > 0 else ''}; they are {_share(occurrences, of_characters)} of the text, "
            f"and occur in {_share(words, of_words)} of the words; raise it to keep them"
        )
    skipped, occurrences = trained.excluded
    if skipped:
        notes.append(
            f"{skipped:,} words ({occurrences:,} occurrences) were skipped: too long (max_token_length), with a rare "
            "character (max_unique_chars), beyond max_input_words, or special tokens themselves"
        )
    found = len(trained.tokens)
    if algorithm == "top_down":
        slack = max(0.0, how["slack_ratio"] * size)
        if found > size:
            notes.append(
                f"{found:,} tokens, more than the {size:,} requested: the search ended at threshold "
                f"{trained.threshold}, as in TensorFlow Text; request another size, or raise slack_ratio"
            )
        elif size - found > slack:
            ended = (
                "no words remain" if trained.threshold is None else f"the search ended at threshold {trained.threshold}"
            )
            notes.append(
                f"{found:,} tokens, fewer than the {size:,} requested: {ended}; lower lower_thresh, or add more text"
            )
    elif found > size:
        notes.append(
            f"{found:,} tokens, more than the {size:,} requested: the special tokens and the characters of the text "
            f"already make {trained.least_size:,}; request at least as many, or lower limit_alphabet"
        )
    elif found < size:
        notes.append(
            f"{found:,} tokens, fewer than the {size:,} requested: no remaining pair occurs "
            f"{max(1, how['min_frequency'])} times; lower min_frequency, or add more text"
        )
    return notes
