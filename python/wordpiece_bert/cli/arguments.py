"""Options that several subcommands share: how they are declared, checked and converted."""

from __future__ import annotations

import argparse
import math
import os
import re
import stat
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from wordpiece_bert.bert.parameters import LOADING
from wordpiece_bert.errors import InputError
from wordpiece_bert.tokenizer.parameters import ENCODING, READING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from wordpiece_bert._internal.parameters import Parameters
    from wordpiece_bert._internal.progress import ReadingProgress
    from wordpiece_bert.tokenizer.corpus.text_reader import Fields, ReadingOptions, TextReader
    from wordpiece_bert.tokenizer.tokenizer import Tokenizer

    #: What ``ArgumentParser.add_subparsers`` returns.
    Commands: TypeAlias = argparse._SubParsersAction[argparse.ArgumentParser]

FILE_HELP = "UTF-8 text file, also .gz or .zst; - or none is standard input"
VOCAB_HELP = "vocab.txt, tokenizer.json, a folder, minilm, or org/name in the Hugging Face cache"

STDIN = "-"
#: The value of an option that means as many as there are.
ALL = "all"
#: The largest number that an option takes: products with it stay within 64 bits.
LARGEST = 1 << 40
# A progress bar is updated after this many texts that are read one by one.
TEXTS_PER_UPDATE = 256


# --- option types


def natural(value: str) -> int:
    """Convert an argument to a whole number of 64 bits, 0 or above."""
    if not (value.isascii() and value.isdigit() and len(value) <= 20 and int(value) < 1 << 64):
        raise argparse.ArgumentTypeError(f"{value!r} is not a whole number from 0 to 2**64 - 1")
    return int(value)


def positive(value: str) -> int:
    """Convert an argument to a whole number above 0."""
    number = int(value) if value.isascii() and value.isdigit() and len(value) <= 20 else 0
    if not 1 <= number <= LARGEST:
        raise argparse.ArgumentTypeError(f"{value!r} is not a whole number above 0, of at most 2**40")
    return number


def natural_or_all(value: str) -> int | None:
    """Convert an argument to a whole number, or ``all`` to None."""
    return None if value == "all" else natural(value)


def positive_or_all(value: str) -> int | str:
    """Convert an argument to a whole number above 0, or ``all`` to `ALL`."""
    return ALL if value == ALL else positive(value)


def separator(value: str) -> str:
    r"""Convert an argument to a separator, with the escapes \n, \r, \t, \0 and \\ replaced."""
    escapes = {r"\n": "\n", r"\r": "\r", r"\t": "\t", r"\0": "\0", r"\\": "\\"}
    text = re.sub(r"\\.", lambda escape: escapes.get(escape[0], escape[0]), value)
    if not text:
        raise argparse.ArgumentTypeError("is empty; to read each file as one text, use --whole")
    return text


# --- declarations


def described(table: Parameters, name: str, default: object = None, more: str = "") -> str:
    """Return the help text of an option for an argument of the library: its description's first sentence.

    Parameters
    ----------
    table : Parameters
        Where the library describes the argument.
    name : str
        The name of the argument. Other arguments in its description become options: ``--vocab-size``.
    default : optional
        The default of the option, if it is not the argument's, which is shown unless it is False.
    more : str, default ""
        What is added to the sentence.
    """
    sentence = re.sub(r"`(\w+)`", lambda found: "--" + found[1].replace("_", "-"), table.summary(name))
    shown = table.default(name) if default is None else str(default)
    return sentence + more + (f" (default: {shown})" if shown not in ("", "False") else "")


def common_options() -> argparse.ArgumentParser:
    """Return a parent parser with the options of every subcommand: ``--json`` and ``--debug``."""
    parent = argparse.ArgumentParser(add_help=False)
    parent.add_argument("--json", action="store_true", help="print the result or the summary as JSON")
    parent.add_argument("--debug", action="store_true", help="show the traceback of an error")
    return parent


def add_files(parser: argparse.ArgumentParser) -> None:
    """Declare the files to read."""
    parser.add_argument("files", nargs="*", metavar="FILE", help=FILE_HELP)


def add_vocab(parser: argparse.ArgumentParser, more: str, **options: Any) -> None:
    """Declare ``--model``, also called ``--vocab``, for a command that needs no more of a model than its tokenizer."""
    names = ("-m", "--model", "-v", "--vocab")
    parser.add_argument(*names, dest="vocab", metavar="VOCAB|MODEL", help=f"{VOCAB_HELP} ({more})", **options)
    add_cased(parser)


def add_cased(parser: argparse.ArgumentParser) -> None:
    """Declare ``--cased``."""
    parser.add_argument("--cased", action="store_true", help="with a vocab.txt: keep upper case and accents")


def add_model(parser: argparse.ArgumentParser, what: str = "", default: str | None = "minilm") -> None:
    """Declare ``--model``, `what` with a colon in its help text; without a default, ``minilm`` stands in later."""
    help_text = f"{what}minilm, a folder, or org/name in the Hugging Face cache (default: minilm)"
    parser.add_argument("-m", "--model", metavar="MODEL", default=default, help=help_text)


def add_batch_size(parser: argparse.ArgumentParser) -> None:
    """Declare ``--batch-size``."""
    parser.add_argument("--batch-size", type=positive, default=32, metavar="N", help="texts per pass (default: 32)")


def add_masking(group: argparse._ArgumentGroup) -> None:
    """Declare which tokens are chosen to be masked."""
    units = group.add_mutually_exclusive_group()
    units.add_argument("--whole-words", action="store_true", help="choose all pieces of a word together")
    units.add_argument("--spans", action="store_true", help="choose runs of whole words")
    group.add_argument(
        "--mask-probability", type=share, default=0.15, metavar="P", help="share of tokens chosen (0.15)"
    )


def add_running(
    parser: argparse.ArgumentParser, run: Callable[[argparse.Namespace], int | None], *, threads: bool = True
) -> None:
    """Declare how a command runs that loads a model or a tokenizer, and the function that runs it."""
    if threads:
        add_threads(parser)
    add_download(parser)
    add_output_control(parser)
    parser.set_defaults(run=run)


def reading_arguments(twice: str | None = None) -> argparse.ArgumentParser:
    """Return a parent parser with the options on how texts are read from files.

    Parameters
    ----------
    twice : str, optional
        What a second field or column is for, such as ``"for pairs"``; without it a command takes one only.
    """
    parent = argparse.ArgumentParser(add_help=False)
    parent.set_defaults(most_columns=1 if twice is None else 2)
    more = "" if twice is None else f"; give it twice {twice}"
    group = parent.add_argument_group("reading")
    group.add_argument("--whole", action="store_true", help="read each file as one text")
    group.add_argument(
        "--separator",
        type=separator,
        default="\n",
        metavar="S",
        help=described(
            READING,
            "separator",
            "",
            r", such as \n\n or \0 (default: \n, which includes \r\n; an empty line is a text)",
        ),
    )
    group.add_argument(
        "--jsonl-field",
        action="append",
        default=[],
        metavar="FIELD",
        help=described(READING, "field", more=" (text, meta.title)" + more),
    )
    group.add_argument(
        "--text-column",
        "--parquet-column",
        action="append",
        default=[],
        metavar="COLUMN",
        help=described(READING, "column", more=more),
    )
    group.add_argument(
        "--errors",
        choices=["strict", "replace", "skip"],
        default="strict",
        help=described(READING, "errors", more=": stop with an error, replace the invalid bytes, or skip the text"),
    )
    return parent


def add_threads(parser: argparse._ActionsContainer) -> None:
    """Declare ``--threads``."""
    help_text = described(ENCODING, "threads", "all available CPUs")
    parser.add_argument("--threads", type=positive, metavar="N", help=help_text)


def add_row_errors(parser: Any) -> None:
    """Declare what happens to a row of a labelled table that lacks a text or a label."""
    parser.add_argument(
        "--errors",
        choices=("strict", "skip"),
        default="strict",
        help="what happens to a row whose text or label is missing or wrong: stop with an error, or leave out the row "
        "and count it (default: strict)",
    )


def add_dtype(parser: argparse.ArgumentParser, *, of_folders: bool = False) -> None:
    """Declare ``--dtype``, whose value the engine checks.

    Parameters
    ----------
    parser : argparse.ArgumentParser
        The parser.
    of_folders : bool, default False
        Whether a folder of vectors decides where the option is not given, which is None then.
    """
    help_text = described(LOADING, "dtype", "float32; that of a folder of vectors" if of_folders else None)
    parser.add_argument("--dtype", default=None if of_folders else "float32", metavar="DTYPE", help=help_text)
    parser.add_argument(
        "--calibrate",
        type=Path,
        metavar="FILE",
        help="for --dtype int8: a text file with a few dozen lines like the texts that the model is for (default: "
        "texts of the package)",
    )
    parser.add_argument("--instructions", metavar="NAME", help=described(LOADING, "instructions"))


def loading_options(options: argparse.Namespace) -> dict[str, Any]:
    """Return ``dtype``, ``calibrate``, ``instructions`` and ``threads`` for the classes that load a model.

    Raises
    ------
    InputError
        As for `calibration_texts`.
    """
    return {
        "dtype": options.dtype or "float32",
        "calibrate": calibration_texts(options),
        "instructions": options.instructions,
        "threads": options.threads,
    }


@contextmanager
def with_threads(options: argparse.Namespace) -> Iterator[None]:
    """Compute with ``--threads`` threads, or with the default number."""
    if options.threads is None:
        yield
        return
    from wordpiece_bert._core import set_num_threads

    set_num_threads(options.threads)
    try:
        yield
    finally:
        set_num_threads(None)


def calibration_texts(options: argparse.Namespace) -> list[str] | None:
    """Return the lines of the file of ``--calibrate`` that are not blank; None without the option.

    Raises
    ------
    InputError
        The file is not UTF-8.
    """
    if options.calibrate is None:
        return None
    return [line for line in lines_of(options.calibrate, "--calibrate") if line.strip()]


def lines_of(file: Path, option: str) -> list[str]:
    """Return the lines of the file of an option.

    Parameters
    ----------
    file : Path
        The file.
    option : str
        The option, for messages.

    Raises
    ------
    InputError
        The file is not UTF-8.
    """
    from wordpiece_bert.tokenizer.corpus.text_reader import TextReader

    try:
        return [line for block in TextReader(file) for line in block.texts()]
    except InputError as error:
        raise InputError(f"{option} {error}") from error.__cause__


def add_prompts(parser: argparse.ArgumentParser, before: str) -> None:
    """Declare ``--prompt`` and ``--prompt-name``, for what is put before `before`."""
    either = parser.add_mutually_exclusive_group()
    either.add_argument("--prompt", metavar="TEXT", help=f"put this text before {before}")
    either.add_argument("--prompt-name", metavar="NAME", help=f"put the model's prompt of this name before {before}")


def add_download(parser: argparse.ArgumentParser) -> None:
    """Declare ``--download``."""
    parser.add_argument("--download", action="store_true", help=described(LOADING, "download"))


def add_output_control(parser: argparse.ArgumentParser) -> None:
    """Declare ``--quiet`` and ``--verbose``."""
    either = parser.add_mutually_exclusive_group()
    either.add_argument(
        "-q", "--quiet", action="store_true", help="print no progress and no summary, only warnings and errors"
    )
    either.add_argument(
        "--verbose", action="store_true", help="print what is loaded, progress every second, and every warning in full"
    )


# --- checks


#: The options of `reading_arguments`.
READING_OPTIONS = ("whole", "separator", "jsonl_field", "text_column", "errors")


def refuse(options: argparse.Namespace, names: Iterable[str], why: str) -> None:
    """Refuse options that a call would ignore; no later message advises them.

    Parameters
    ----------
    options : argparse.Namespace
        The options.
    names : iterable of str
        The names that they have in it.
    why : str
        What the message says after the option.

    Raises
    ------
    InputError
        One of them has another value than by default.
    """
    options.parser.refused = {*getattr(options.parser, "refused", ()), *names}
    for name in names:
        if getattr(options, name) != options.parser.get_default(name):
            flags = next(action.option_strings for action in options.parser._actions if action.dest == name)
            raise InputError(f"{next(flag for flag in flags if flag.startswith('--'))} {why}")


# --- conversions


def share(value: str) -> float:
    """Return a number from 0 to 1."""
    number = _number(value)
    if not 0 <= number <= 1:
        raise argparse.ArgumentTypeError(f"{value!r} is not a number from 0 to 1")
    return number


def above_zero(value: str) -> float:
    """Return a finite number above 0."""
    number = _number(value)
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"{value!r} is not a number above 0")
    return number


def not_negative(value: str) -> float:
    """Return a finite number of at least 0."""
    number = _number(value)
    if not 0 <= number < math.inf:
        raise argparse.ArgumentTypeError(f"{value!r} is not a number of at least 0")
    return number


def _number(value: str) -> float:
    try:
        return float(value)
    except ValueError:
        return math.nan


def input_files(given: list[str]) -> list[str]:
    """Return the files to read; standard input if none is given and something is connected to it.

    Raises
    ------
    InputError
        No file is given, and standard input is a terminal or a device such as /dev/null.
    """
    if given:
        return given
    try:
        mode = os.fstat(sys.__stdin__.fileno() if sys.__stdin__ is not None else 0).st_mode
    except (OSError, ValueError):  # standard input is closed
        mode = 0
    if stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode):
        return [STDIN]
    raise InputError("no text to read: give files, or - for standard input, or pipe texts in")


def reading_options(options: argparse.Namespace) -> ReadingOptions:
    """Return the arguments of `TextReader` for what `reading_arguments` declared.

    Raises
    ------
    InputError
        ``--whole`` is given with ``--separator``, or a field or column more often than the command takes.
    """
    if options.whole and options.separator != "\n":
        raise InputError("give either --whole or --separator")
    return {
        "separator": None if options.whole else options.separator,
        "field": _one_or_two(options.jsonl_field, "--jsonl-field", options.most_columns),
        "column": _one_or_two(options.text_column, "--text-column", options.most_columns),
        "errors": options.errors,
    }


def _one_or_two(names: list[str], option: str, most: int) -> Fields | None:
    if len(names) > most:
        times = "once, as a vector belongs to one text" if most == 1 else "once or twice"
        raise InputError(f"{option} is given {len(names)} times: give it {times}")
    return (names[0], names[1]) if len(names) == 2 else names[0] if names else None


def single_texts(reader: TextReader, show: ReadingProgress | None = None) -> Iterator[str]:
    """Yield the texts of files one by one; of a pair, both."""
    for block in reader:
        texts: list[Any] = block.texts()
        for number, text in enumerate(texts):
            if show is not None and number % TEXTS_PER_UPDATE == 0:
                show(of_block=number)
            if isinstance(text, str):
                yield text
            else:
                yield from text
        if show is not None:
            show()


def files_of(name: str | None) -> list[Path]:
    """Return the files of a vocabulary or model that is on this machine; none for another name or None."""
    from wordpiece_bert.errors import WordPieceError
    from wordpiece_bert.hub import find_model

    if name is None or Path(name).is_file():
        return [] if name is None else [Path(name)]
    try:
        folder = find_model(name)
    except WordPieceError:  # reported when it is loaded, or it is downloaded then
        return []
    return [path for path in folder.rglob("*") if path.is_file()]


def is_vocabulary(name: str) -> bool:
    """Return whether a name is a vocabulary file, which says nothing about case."""
    return Path(name).is_file() and not name.endswith(".json")


def check_cased(name: str, *, cased: bool) -> None:
    """Raise an `InputError` if ``--cased`` is given for anything but a vocabulary file."""
    if cased and not is_vocabulary(name):
        raise InputError(f"--cased applies to a vocab.txt; {name} has its own setting for case")


def load_tokenizer(name: str, *, cased: bool = False, download: bool = False) -> Tokenizer:
    """Load a tokenizer from a ``vocab.txt``, a ``tokenizer.json``, a folder or a model's name.

    Parameters
    ----------
    name : str
        A file (JSON if its name ends in ``.json``, otherwise a vocabulary), a folder, or a name `find_model` knows.
    cased : bool, default False
        For a ``vocab.txt``: keep upper case and accents.
    download : bool, default False
        Download a model that is not in the Hugging Face cache.

    Raises
    ------
    InputError
        `cased` is given for anything but a vocabulary file.
    """
    from wordpiece_bert.tokenizer.tokenizer import Tokenizer

    check_cased(name, cased=cased)
    if is_vocabulary(name):
        return Tokenizer.from_vocab(name, lowercase=not cased)
    return Tokenizer.from_file(name) if Path(name).is_file() else Tokenizer.from_pretrained(name, download=download)
