"""The commands about vocabularies: ``train``, ``count``, ``report``, and what ``info`` says about one.

As all of the command, a thin face over the library: `wordpiece_bert.cli` takes these in and runs them.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wordpiece_bert._internal.atomic_file import write_text
from wordpiece_bert.corpus.texts import HOLDERS, STDIN, TextReader
from wordpiece_bert.errors import InputError, TrainingError
from wordpiece_bert.training import WordCounts, train_vocab, vocab_contents, vocab_report
from wordpiece_bert.training.options import ALGORITHMS, settings_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from wordpiece_bert.corpus.texts import ReadingOptions
    from wordpiece_bert.tokenizer import Tokenizer
    from wordpiece_bert.training import Vocab

__all__ = ["add_commands", "contents_facts"]

FILES = "UTF-8 text file, also .gz or .zst; - is standard input"
FORMATS = ("parquet", "arrow", "tsv")

#: What the command line lends: its way to read options about files, and to load a tokenizer by name.
Reading = "Callable[[argparse.Namespace], ReadingOptions]"


def add_commands(
    commands: Any,  # noqa: ANN401
    *,
    common: argparse.ArgumentParser,
    texts: argparse.ArgumentParser,
    reading: Callable[[argparse.Namespace], ReadingOptions],
    load_tokenizer: Callable[..., Tokenizer],
) -> None:
    """Add the commands to those of a parser.

    Parameters
    ----------
    commands
        What ``add_subparsers`` gave.
    common, texts
        Parsers of the options that all commands have, and of those about files.
    reading, load_tokenizer
        How the options about files are read, and how a tokenizer is found by its name.
    """
    normalizer = argparse.ArgumentParser(add_help=False)
    how = normalizer.add_argument_group("what is done to texts")
    how.add_argument("--cased", action="store_true", help="keep upper case, and accents")
    accents = how.add_mutually_exclusive_group()
    accents.add_argument("--strip-accents", action="store_true", default=None, help="drop accents, --cased or not")
    accents.add_argument("--keep-accents", dest="strip_accents", action="store_false", help="keep them")
    how.add_argument("--no-clean-text", action="store_true", help="keep control characters")
    how.add_argument("--no-chinese-chars", action="store_true", help="do not make every ideograph a word")
    how.add_argument(
        "--max-distinct-words",
        type=_positive,
        metavar="N",
        help="bound memory: when more words are known after 64 MiB, the rarest go (default: no bound)",
    )
    how.add_argument("--threads", type=_positive, metavar="N", help="threads (default: as many as there are)")
    how.add_argument("-q", "--quiet", action="store_true", help="no progress, no summary; warnings and errors remain")

    train = commands.add_parser(
        "train",
        parents=[common, texts, normalizer],
        help="text files to a vocabulary",
        description="Train a vocabulary from text files, or from counts of words.",
    )
    train.add_argument("files", nargs="+", metavar="FILE", help=FILES)
    train.add_argument(
        "-o", "--output", required=True, type=Path, metavar="FOLDER", help="the folder of a tokenizer, or a vocab.txt"
    )
    train.add_argument("--counts", action="store_true", help="the files are counts of words, made by the command count")
    train.add_argument(
        "-n", "--vocab-size", type=_positive, metavar="N", help="tokens, special ones included (default: 30522)"
    )
    train.add_argument(
        "-a",
        "--algorithm",
        choices=ALGORITHMS,
        default="bpe",
        help="bpe: as Hugging Face tokenizers; top_down: as TensorFlow Text; likelihood: Schuster & Nakajima's score "
        "(default: bpe)",
    )
    train.add_argument("--max-word-chars", type=_positive, metavar="N", help="leave out words of more characters")
    train.add_argument("--token-counts", type=Path, metavar="FILE.tsv", help="write how often each token is used")
    begin = train.add_argument_group("what it begins with")
    begin.add_argument(
        "--special-token", action="append", metavar="TOKEN", help="by default [PAD] [UNK] [CLS] [SEP] [MASK]"
    )
    begin.add_argument("--reserved", choices=["bert"], help="special tokens at BERT's ids, slots [unusedN] kept free")
    begin.add_argument("--unused", type=_natural, metavar="N", help="how many slots (default: 99)")
    begin.add_argument("--base", metavar="VOCAB", help="extend this vocabulary: its tokens keep their ids")
    begin.add_argument("--fill-unused", action="store_true", help="put new tokens into the [unusedN] slots of --base")
    begin.add_argument("--pieces", type=Path, metavar="FILE.tsv", help="write the pieces of new tokens under --base")
    joining = train.add_argument_group("bpe and likelihood")
    joining.add_argument("--min-frequency", type=_natural, metavar="N", help="join no rarer pairs (default: 2)")
    joining.add_argument(
        "--limit-alphabet",
        type=_natural_or_all,
        default=argparse.SUPPRESS,
        metavar="N|all",
        help="keep so many characters (default: 1000)",
    )
    joining.add_argument("--initial-alphabet", metavar="CHARS", help="characters that are kept before all others")
    down = train.add_argument_group("top_down")
    down.add_argument(
        "--lower-thresh",
        type=_natural_or_all,
        default=argparse.SUPPRESS,
        metavar="N|all",
        help="least threshold (default: 10)",
    )
    down.add_argument(
        "--upper-thresh",
        type=_natural_or_all,
        default=argparse.SUPPRESS,
        metavar="N|all",
        help="greatest (default: 10000000)",
    )
    down.add_argument("--num-iterations", type=_natural, metavar="N", help="rounds for each threshold (default: 4)")
    down.add_argument("--slack-ratio", type=float, metavar="X", help="share that may be missing (default: 0.05)")
    down.add_argument("--max-token-length", type=_natural, metavar="N", help="leave out longer words (default: 50)")
    down.add_argument("--max-unique-chars", type=_natural, metavar="N", help="keep so many characters (default: 1000)")
    down.add_argument(
        "--max-input-words",
        type=_natural_or_all,
        default=argparse.SUPPRESS,
        metavar="N|all",
        help="keep so many words (default: 5000000)",
    )
    down.add_argument("--no-joiner", action="store_true", help="do not mark pieces inside words with ##")
    train.set_defaults(run=partial(_train, reading=reading, load_tokenizer=load_tokenizer))

    count = commands.add_parser(
        "count",
        parents=[common, texts, normalizer],
        help="text files to counts of words",
        description="Count the words of text files. Counts add up, those of files, of machines, of days; train "
        "--counts learns from any number of them.",
    )
    count.add_argument("files", nargs="+", metavar="FILE", help=FILES)
    count.add_argument(
        "-o",
        "--output",
        required=True,
        type=Path,
        metavar="OUT",
        help="a .parquet, .arrow or .tsv for all files; or a folder with one for each, in which those that are there "
        "already are not counted again",
    )
    count.add_argument(
        "--format", choices=FORMATS, default="parquet", help="of the files in a folder (default: parquet)"
    )
    count.set_defaults(run=partial(_count, reading=reading))

    report = commands.add_parser(
        "report",
        parents=[common, texts],
        help="how well vocabularies fit texts",
        description="Measure how well vocabularies fit texts, side by side.",
    )
    report.add_argument("files", nargs="+", metavar="FILE", help=FILES)
    report.add_argument(
        "-v",
        "--vocab",
        action="append",
        required=True,
        metavar="VOCAB",
        help="vocab.txt, tokenizer.json, a folder, minilm, or a cached org/name; may be repeated",
    )
    report.add_argument("--cased", action="store_true", help="with a vocab.txt: keep upper case and accents")
    report.add_argument("--min-count", type=_positive, default=1, metavar="N", help="uses that make a token used")
    report.add_argument("--json", action="store_true", help="print JSON: a list of reports")
    report.add_argument("--plot", type=Path, metavar="PICTURE", help="draw them into a .svg, .png or .pdf")
    report.add_argument("--threads", type=_positive, metavar="N", help="threads (default: as many as there are)")
    report.set_defaults(run=partial(_report, reading=reading, load_tokenizer=load_tokenizer))


def _natural(value: str) -> int:
    """Read a whole number from the command line."""
    if not (value.isascii() and value.isdigit()):
        message = f"{value!r} is not a whole number"
        raise argparse.ArgumentTypeError(message)
    return int(value)


def _positive(value: str) -> int:
    number = _natural(value)
    if number < 1:
        message = f"{value!r} is not a whole number above 0"
        raise argparse.ArgumentTypeError(message)
    return number


def _natural_or_all(value: str) -> int | None:
    return None if value == "all" else _natural(value)


# --- train


def _train(
    options: argparse.Namespace,
    *,
    reading: Callable[[argparse.Namespace], ReadingOptions],
    load_tokenizer: Callable[..., Tokenizer],
) -> None:
    start = time.perf_counter()
    as_file = options.output.suffix == ".txt"
    if not as_file and options.output.exists() and not options.output.is_dir():
        message = f"{options.output}: is a file; name a folder, or a file that ends in .txt"
        raise InputError(message)
    learning = _learning_options(options, load_tokenizer)
    with _progress(quiet=options.quiet) as progress:
        counts = _counts_of(options, reading, progress)
        counted = time.perf_counter()
        vocab = train_vocab(counts, progress=progress, **learning)
    if as_file:
        vocab.save(options.output)
    else:
        vocab.save_pretrained(options.output, **_roles(vocab))
    if options.token_counts:
        rows = zip(vocab.tokens, vocab.counts, strict=True)
        write_text(options.token_counts, "".join(f"{token}\t{n}\n" for token, n in rows))
    if options.pieces:
        _write_pieces(options.pieces, vocab, learning["base"])
    if not options.quiet:
        _summary(options, vocab, counts, counted - start, time.perf_counter() - counted)


def _learning_options(options: argparse.Namespace, load_tokenizer: Callable[..., Tokenizer]) -> dict[str, Any]:
    """The options of `train_vocab` that were given."""
    given: dict[str, Any] = {"algorithm": options.algorithm}
    if options.vocab_size is not None:
        given["vocab_size"] = options.vocab_size
    if options.special_token is not None:
        given["special_tokens"] = options.special_token
    if options.initial_alphabet is not None:
        given["initial_alphabet"] = list(options.initial_alphabet)
    if options.no_joiner:
        given["include_joiner"] = False
    if options.fill_unused:
        given["fill_unused"] = True
    if options.base is not None:
        is_vocab_txt = Path(options.base).is_file() and not options.base.endswith(".json")
        given["base"] = load_tokenizer(options.base, cased=options.cased and is_vocab_txt)
    elif options.pieces:
        message = "--pieces are those of new tokens under --base: give that too"
        raise InputError(message)
    for name in (
        "max_word_chars",
        "reserved",
        "unused",
        "min_frequency",
        "num_iterations",
        "slack_ratio",
        "max_token_length",
        "max_unique_chars",
    ):
        if getattr(options, name) is not None:
            given[name] = getattr(options, name)
    # Of these None means all; they are there where they were given.
    for name in ("limit_alphabet", "lower_thresh", "upper_thresh", "max_input_words"):
        if hasattr(options, name):
            given[name] = getattr(options, name)
    return given


def _roles(vocab: Vocab) -> dict[str, str]:
    """The unknown token of a vocabulary whose special tokens have other names."""
    known = set(vocab.tokens)
    if "[UNK]" in known:
        return {}
    found = next((token for token in vocab.special_tokens if "unk" in token.lower()), None)
    return {} if found is None else {"unk_token": found}


def _write_pieces(path: Path, vocab: Vocab, base: Tokenizer) -> None:
    old = {number: token for token, number in base.get_vocab().items()}
    rows = ((vocab.tokens[new], " ".join(old[piece] for piece in pieces)) for new, pieces in vocab.pieces.items())
    write_text(path, "".join(f"{token}\t{pieces}\n" for token, pieces in rows))


def _summary(options: argparse.Namespace, vocab: Vocab, counts: WordCounts, counting: float, learning: float) -> None:
    used = sum(n > 0 for n in vocab.counts)
    size = f"{counts.bytes / 1e6:,.1f} MB, " if counts.bytes else ""
    print(
        f"{options.output}: {len(vocab):,} tokens by {vocab.algorithm}, {used:,} of them used, from "
        f"{len(counts):,} words that occur {counts.total:,} times ({size}{counts.texts:,} texts; "
        f"counted in {counting:.1f} s, learned in {learning:.1f} s)",
        file=sys.stderr,
    )


# --- counting


def _normalizer(options: argparse.Namespace) -> dict[str, Any]:
    given: dict[str, Any] = {
        "lowercase": not options.cased,
        "clean_text": not options.no_clean_text,
        "tokenize_chinese_chars": not options.no_chinese_chars,
    }
    if options.strip_accents is not None:
        given["strip_accents"] = options.strip_accents
    return given


def _counts_of(
    options: argparse.Namespace, reading: Callable[[argparse.Namespace], ReadingOptions], progress: Callable[..., None]
) -> WordCounts:
    """The counts that a vocabulary is learned from."""
    if not options.counts:
        return _counted(options.files, options, reading, progress)
    if options.max_distinct_words is not None:
        message = "--max-distinct-words is about counting, and these words are counted already"
        raise InputError(message)
    parts = [WordCounts.load(path) for path in options.files]
    counts = sum(parts[1:], parts[0])
    asked = _normalizer(options) if _asks_for_a_normalizer(options) else {}
    if counts.normalizer is not None:
        settings_of(asked, counts.normalizer)
    return counts


def _asks_for_a_normalizer(options: argparse.Namespace) -> bool:
    return options.cased or options.no_clean_text or options.no_chinese_chars or options.strip_accents is not None


def _counted(
    files: list[str],
    options: argparse.Namespace,
    reading: Callable[[argparse.Namespace], ReadingOptions],
    progress: Callable[..., None],
) -> WordCounts:
    """Count the words of files, whatever holds their texts."""
    how = reading(options)
    counting = _normalizer(options) | {
        "threads": options.threads,
        "max_distinct_words": options.max_distinct_words,
        "progress": progress,
    }
    plain = how == {"separator": "\n", "field": None, "column": None, "errors": how["errors"]}
    if plain and not any(_holds_texts(name) for name in files):
        return WordCounts.from_files(files, errors=how["errors"], **counting)
    texts = (text for block in TextReader(files, **how) for text in _single(block.texts()))
    return WordCounts.from_texts(texts, **counting)


def _single(texts: list[Any]) -> Iterator[str]:
    """The texts of a block; of pairs both."""
    for text in texts:
        if isinstance(text, str):
            yield text
        else:
            yield from text


def _holds_texts(name: str) -> bool:
    suffixes = Path(name).suffixes
    return any(suffix in HOLDERS for suffix in suffixes[-2:])


def _count(options: argparse.Namespace, *, reading: Callable[[argparse.Namespace], ReadingOptions]) -> None:
    start = time.perf_counter()
    one_file = options.output.suffix in (".parquet", ".arrow", ".feather", ".tsv")
    with _progress(quiet=options.quiet) as progress:
        if one_file:
            counts = _counted(options.files, options, reading, progress)
            counts.save(options.output)
            new, there = len(options.files), 0
        else:
            counts, new, there = _count_each(options, reading, progress)
    if not options.quiet:
        files = f"{new:,} files counted{f', {there:,} were there' if there else ''}"
        print(
            f"{options.output}: {len(counts):,} words that occur {counts.total:,} times in {counts.texts:,} texts "
            f"({files}; {time.perf_counter() - start:.1f} s)",
            file=sys.stderr,
        )


def _count_each(
    options: argparse.Namespace, reading: Callable[[argparse.Namespace], ReadingOptions], progress: Callable[..., None]
) -> tuple[WordCounts, int, int]:
    """Count file by file into a folder; what is there already and is of the same file stays."""
    folder: Path = options.output
    places: dict[Path, str] = {}
    for name in options.files:
        if name == STDIN:
            message = "standard input has no name to keep its counts under: give one file as the output"
            raise InputError(message)
        place = folder / f"{Path(name).name}.{options.format}"
        if place in places:
            message = f"{places[place]} and {name} have the same name, and so would their counts in {folder}"
            raise InputError(message)
        places[place] = name
    folder.mkdir(parents=True, exist_ok=True)
    parts, there = [], 0
    for place, name in places.items():
        counts = _already_counted(place, name, options)
        if counts is None:
            counts = _counted([name], options, reading, progress)
            counts.save(place)
        else:
            there += 1
        parts.append(counts)
    return sum(parts[1:], parts[0]), len(places) - there, there


def _already_counted(place: Path, name: str, options: argparse.Namespace) -> WordCounts | None:
    """The counts of a file that were made before, in the same way, when it had the same size."""
    try:
        counts = WordCounts.load(place)
    except (FileNotFoundError, TrainingError):
        return None
    same = counts.normalizer == settings_of(_normalizer(options))
    compressed = Path(name).suffix in (".gz", ".zst") or _holds_texts(name)
    return counts if same and (compressed or counts.bytes == Path(name).stat().st_size) else None


@contextmanager
def _progress(*, quiet: bool) -> Iterator[Callable[..., None]]:
    """A bar for each stage, where somebody looks and tqdm is installed."""
    if quiet or not sys.stderr.isatty() or importlib.util.find_spec("tqdm") is None:
        yield lambda *_: None
        return
    from tqdm import tqdm

    bar: Any = None
    now = ""

    def show(stage: str, done: int, total: int | None) -> None:
        nonlocal bar, now
        if stage != now or done < bar.n:
            if bar is not None:
                bar.close()
            unit = "B" if stage == "counting" else ("token" if total else "step")
            bar = tqdm(total=total, unit=unit, unit_scale=stage == "counting", desc=stage, leave=False, file=sys.stderr)
            now = stage
        bar.update(done - bar.n)

    try:
        yield show
    finally:
        if bar is not None:
            bar.close()


# --- report, info


def _report(
    options: argparse.Namespace,
    *,
    reading: Callable[[argparse.Namespace], ReadingOptions],
    load_tokenizer: Callable[..., Tokenizer],
) -> None:
    if STDIN in options.files and len(options.vocab) > 1:
        message = "standard input can be read once, and every vocabulary needs the texts: put them into a file"
        raise InputError(message)
    how = reading(options)
    reports = []
    for name in options.vocab:
        tokenizer = load_tokenizer(name, cased=options.cased)
        texts = (text for block in TextReader(options.files, **how) for text in _single(block.texts()))
        reports.append(vocab_report(tokenizer, texts, name=name, min_count=options.min_count, threads=options.threads))
    first, *others = reports
    if options.plot:
        first.plot(options.plot, *others)
    if options.json:
        print(f"[{', '.join(report.to_json() for report in reports)}]")
    else:
        print(first.text(*others))


def contents_facts(tokenizer: Tokenizer) -> dict[str, object]:
    """What ``info`` says about the tokens of a vocabulary."""
    contents = vocab_contents(tokenizer.get_vocab(with_added_tokens=False), tokenizer.all_special_tokens).to_dict()
    # A token and its id are shown and written as one entry.
    return {name: dict([value]) if isinstance(value, tuple) else value for name, value in contents.items()}
