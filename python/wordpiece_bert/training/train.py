"""`train_vocab`: texts or counts in, a vocabulary out."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Unpack

from wordpiece_bert._internal.checks import checked_flag, whole_number
from wordpiece_bert.errors import InputError, TrainingError, TrainingWarning
from wordpiece_bert.tokenizer import Tokenizer
from wordpiece_bert.training.counts import StrPath, Texts, WordCounts
from wordpiece_bert.training.options import (
    ALGORITHMS,
    SPECIAL_TOKENS,
    Algorithm,
    CountOptions,
    NormalizerSettings,
    TrainOptions,
    differences,
    known_options,
    merge_options,
    refuse_options_of_other_algorithms,
    settings_of,
    special_tokens,
    top_down_options,
)
from wordpiece_bert.training.vocab import Vocab

if TYPE_CHECKING:
    from wordpiece_bert import _core

__all__ = ["train_vocab"]

DEFAULT_SIZE = 30_522

# Characters named in one note; the rest is counted.
_CHARS_TOLD = 20


def train_vocab(
    source: StrPath | Iterable[StrPath] | Texts | WordCounts,
    vocab_size: int = DEFAULT_SIZE,
    *,
    algorithm: Algorithm = "bpe",
    **options: Unpack[TrainOptions],
) -> Vocab:
    """Train a WordPiece vocabulary.

    Three things are called WordPiece training, and they give three vocabularies:

    - ``"bpe"`` joins the most frequent pair of neighbours, again and again: what Hugging Face `tokenizers` does.
    - ``"top_down"`` takes whole words that are frequent enough, then the endings that are left: what TensorFlow Text
      does. It may end above or below `vocab_size`, as there.
    - ``"likelihood"`` joins the pair with the highest count(ab) / (count(a) · count(b)): Schuster & Nakajima's score.
      It loves rare pairs: with ``min_frequency=2`` a noisy text fills the vocabulary with debris; 5 to 100 is the
      useful range.

    The same words with the same counts give the same vocabulary, whatever their order, the threads and the machine.

    Parameters
    ----------
    source
        Text files (a path, or a list of paths; a `str` in a list is a path where all of them name files), texts
        (anything that yields `str`), a column of Arrow, or `WordCounts`.
    vocab_size
        The size, special tokens included. With `fill_unused` it is that of `base`, and need not be given.
    algorithm
        ``"bpe"``, ``"top_down"`` or ``"likelihood"``.
    **options
        Those of `TrainOptions`: the normalizer, how files are read, special tokens and reserved slots, a vocabulary to
        extend, and the options of the algorithm.

    Returns
    -------
    Vocab
        The tokens, and how often each is used.

    Raises
    ------
    TrainingError
        No words, a size that a vocabulary to extend has already, options that contradict those that the words were
        counted with, a file that is not UTF-8.
    InputError
        A wrong option, one of another algorithm, an item that is no `str`.
    OSError
        A file cannot be read.

    Warns
    -----
    TrainingWarning
        The size is not what was asked for, or something was left out; the message says what, how much of the text that
        touches, and what to do.

    Notes
    -----
    Ctrl-C stops within a second. ``bpe`` equals tokenizers 0.23.3 as a list of ids, where the ids of the continuation
    characters, which are random there, are in the order of their code points.
    """
    known_options(options, TrainOptions.__annotations__, "train_vocab")
    if algorithm not in ALGORITHMS:
        message = f"algorithm must be one of {', '.join(map(repr, ALGORITHMS))}, not {algorithm!r}"
        raise InputError(message)
    refuse_options_of_other_algorithms(algorithm, options)
    how = top_down_options(options) if algorithm == "top_down" else merge_options(options)
    base, base_normalizer = _base(options.get("base"))
    specials = _specials(options, base)
    fill_unused = checked_flag("fill_unused", options.get("fill_unused", False))
    size = _size(vocab_size, base, fill_unused=fill_unused)
    longest = options.get("max_word_chars")
    longest = None if longest is None else whole_number("max_word_chars", longest, 1)

    counts = _counts(source, options)
    normalizer = _normalizer(counts, base_normalizer, options)
    notes = _counting_notes(counts)
    words = counts._inner
    if longest is not None:
        words, dropped, occurrences = words.without_longer(longest)
        if dropped:
            share = _share(occurrences, counts.total)
            notes.append(
                f"{dropped:,} words of more than {longest} characters were left out ({share} of all occurrences)"
            )
    threads, progress = options.get("threads"), options.get("progress")
    if algorithm == "top_down":
        trained = words.train_top_down(size, specials, base, fill_unused, threads, progress, **how)
    else:
        likelihood = algorithm == "likelihood"
        trained = words.train_joining(
            size, specials, base, fill_unused, threads, progress, likelihood=likelihood, **how
        )
    notes += _learning_notes(trained, size, algorithm, how)
    for note in notes:
        warnings.warn(note, TrainingWarning, stacklevel=2)
    known = frozenset(trained.tokens)
    return Vocab(
        tokens=trained.tokens,
        counts=trained.counts,
        algorithm=algorithm,
        special_tokens=[token for token in specials if token in known],
        normalizer=normalizer,
        pieces=dict(trained.pieces),
        base_size=None if base is None else len(base),
        notes=notes,
        threshold=trained.threshold,
    )


# --- what to learn from


def _counts(source: Any, options: TrainOptions) -> WordCounts:  # noqa: ANN401
    """Count the words of a source, unless they are counted already."""
    if isinstance(source, WordCounts):
        for name in ("errors", "max_distinct_words"):
            if name in options:
                message = f"{name} is about counting, and these words are counted already"
                raise InputError(message)
        return source
    counting: CountOptions = {name: options[name] for name in CountOptions.__annotations__ if name in options}  # type: ignore[assignment, literal-required]
    files = _files(source)
    return WordCounts.from_texts(source, **counting) if files is None else WordCounts.from_files(files, **counting)


def _files(source: Any) -> list[StrPath] | None:  # noqa: ANN401
    """The paths that a source is, or None for texts."""
    if isinstance(source, str | os.PathLike):
        return [source]
    if not isinstance(source, list | tuple) or not source:
        return None
    if all(isinstance(one, os.PathLike) for one in source):
        return list(source)
    if any(isinstance(one, os.PathLike) for one in source):
        message = "some items are paths and some are not; give paths, or texts"
        raise InputError(message)
    if not all(isinstance(one, str) for one in source):
        return None
    # Strings are texts unless they are names of files, all of them: where most are, the others are slips.
    tried = source[:1000]
    found = sum(os.path.isfile(one) for one in tried)  # no file either where the system takes a string for no name
    like_names = (re.fullmatch(r"\S+\.\w{1,8}", one) is not None for one in tried)
    if 2 * found > len(tried) or all(like_names):
        missing = next((one for one in source if not os.path.isfile(one)), None)
        if missing is None:
            return list(source)
        message = (
            f"no file {missing!r}, though other items look like files; for texts use WordCounts.from_texts(texts), for "
            "files WordCounts.from_files(files)"
        )
        raise InputError(message)
    return None


def _normalizer(
    counts: WordCounts, base: NormalizerSettings | None, options: Mapping[str, Any]
) -> NormalizerSettings | None:
    """What was done to the texts, which no option and no vocabulary to extend may contradict."""
    settings = settings_of(options, counts.normalizer)
    names = NormalizerSettings().as_dict()
    if counts.normalizer is None and not any(name in options for name in names):
        return base
    if base is not None and base != settings:
        message = (
            f"the words were made with other settings than the vocabulary to extend has: {differences(settings, base)}"
            "; count them with the same"
        )
        raise TrainingError(message)
    return settings


# --- what to begin with


def _base(base: Any) -> tuple[list[str] | None, NormalizerSettings | None]:  # noqa: ANN401
    """The tokens of a vocabulary to extend, and its normalizer where that is known."""
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
    elif isinstance(base, Iterable):
        listed = list(base)
        tokenizer = Tokenizer.from_vocab(listed) if "[UNK]" in listed else Tokenizer.from_vocab([*listed, "[UNK]"])
        if "[UNK]" not in listed:
            return listed, None
    else:
        message = f"base must be a Vocab, a Tokenizer, a vocab.txt or a list of tokens, not {type(base).__name__}"
        raise InputError(message)
    ids = sorted((number, token) for token, number in tokenizer.get_vocab().items())
    if [number for number, _ in ids] != list(range(len(ids))):
        message = "base: its ids have gaps, and a vocabulary that is trained has none"
        raise TrainingError(message)
    return [token for _, token in ids], settings


def _settings_of(tokenizer: Tokenizer) -> NormalizerSettings:
    """The settings of a tokenizer's normalizer, which must be BERT's."""
    core = tokenizer._inner
    normalizer = core.bert_normalizer
    if normalizer is None or core.pre_tokenizer_type != "BertPreTokenizer":
        message = (
            f"base: its normalizer is {core.normalizer_type} and its pre_tokenizer {core.pre_tokenizer_type}; counting "
            "and training split words with BertNormalizer and BertPreTokenizer"
        )
        raise TrainingError(message)
    strip = normalizer.strip_accents
    return NormalizerSettings(
        lowercase=normalizer.lowercase,
        strip_accents=normalizer.lowercase if strip is None else strip,
        clean_text=normalizer.clean_text,
        tokenize_chinese_chars=normalizer.tokenize_chinese_chars,
    )


def _specials(options: Mapping[str, Any], base: list[str] | None) -> list[str]:
    if base is None:
        if options.get("fill_unused"):
            message = "fill_unused goes with base, the vocabulary whose slots are to be filled"
            raise InputError(message)
        return special_tokens(options)
    for name in ("special_tokens", "reserved", "unused"):
        if name in options:
            message = f"{name} goes with a new vocabulary; the one to extend has its own"
            raise InputError(message)
    return [token for token in base if token in SPECIAL_TOKENS or re.fullmatch(r"\[unused\d+\]", token)]


def _size(vocab_size: int, base: list[str] | None, *, fill_unused: bool) -> int:
    size = whole_number("vocab_size", vocab_size, 1, (1 << 31) - 1)
    if not fill_unused or base is None:
        return size
    if size not in (DEFAULT_SIZE, len(base)):
        message = f"vocab_size is {size}, but with fill_unused the size stays that of base, {len(base)}"
        raise InputError(message)
    return len(base)


# --- what to say about it


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.2g} %" if whole else "0 %"


def _counting_notes(counts: WordCounts) -> list[str]:
    notes = []
    if counts.dropped:
        notes.append(
            f"{counts.dropped:,} rare words were dropped because of max_distinct_words; the count of a word may be up "
            f"to {counts.undercount:,} too small"
        )
    if counts.replaced:
        notes.append(f"{counts.replaced:,} parts of the files were not UTF-8 and were replaced")
    if counts.skipped:
        notes.append(f"{counts.skipped:,} lines were not UTF-8 and were left out")
    return notes


def _learning_notes(trained: _core.Trained, size: int, algorithm: Algorithm, how: dict[str, Any]) -> list[str]:
    notes = []
    if trained.dropped_chars:
        told = " ".join(trained.dropped_chars[:_CHARS_TOLD])
        more = len(trained.dropped_chars) - _CHARS_TOLD
        occurrences, of_characters, words, of_words = trained.dropped_shares
        notes.append(
            f"limit_alphabet={how['limit_alphabet']} leaves out {len(trained.dropped_chars):,} characters: {told}"
            f"{f' and {more:,} more' if more > 0 else ''}; they are {_share(occurrences, of_characters)} of the text, "
            f"and {_share(words, of_words)} of the words have one; raise it to keep them"
        )
    left_out, occurrences = trained.left_out
    if left_out:
        notes.append(
            f"{left_out:,} words ({occurrences:,} occurrences) were left out: too long (max_token_length), with a rare "
            "character (max_unique_chars), beyond max_input_words, or special tokens themselves"
        )
    found = len(trained.tokens)
    if algorithm == "top_down":
        slack = max(0.0, how["slack_ratio"] * size)
        if found > size:
            notes.append(
                f"{found:,} tokens, more than the {size:,} asked for: the search ended at threshold "
                f"{trained.threshold}, as TensorFlow Text's does; ask for another size, or raise slack_ratio"
            )
        elif size - found > slack:
            ended = (
                "no word is left" if trained.threshold is None else f"the search ended at threshold {trained.threshold}"
            )
            notes.append(
                f"{found:,} tokens, fewer than the {size:,} asked for: {ended}; lower lower_thresh, or give more text"
            )
    elif found > size:
        notes.append(
            f"{found:,} tokens, more than the {size:,} asked for: special tokens and the characters of the text alone "
            f"are {trained.least_size:,}; ask for at least as many, or lower limit_alphabet"
        )
    elif found < size:
        notes.append(
            f"{found:,} tokens, fewer than the {size:,} asked for: no pair occurs {max(1, how['min_frequency'])} times "
            "any more; lower min_frequency, or give more text"
        )
    return notes
