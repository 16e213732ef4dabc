"""The entry point: builds the parser, runs a subcommand, turns errors and signals into exit codes.

Results go to a file or to standard output; progress, warnings and errors go to standard error. The exit codes are 0 for
success, 1 if ``verify`` does not pass, 2 for an error in the arguments or the input (reported in one line; ``--debug``
shows the traceback), 130 after Ctrl-C, and 128 plus the signal's number after SIGTERM (143) or SIGHUP (129).
"""

from __future__ import annotations

import argparse
import atexit
import gc
import importlib
import os
import re
import signal
import sys
import threading
import warnings
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from wordpiece_bert._internal.log import say
from wordpiece_bert.cli.messages import PROGRAM, closest, closest_file, print_error, print_warning
from wordpiece_bert.cli.parser import Parser
from wordpiece_bert.cli.wording import in_words_of
from wordpiece_bert.errors import ModelNotFoundError, WordPieceError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import FrameType

# Each subcommand, in the module of its name, with its line in the list. Only the given command's module is imported.
COMMANDS = {
    "embed": "text files to vectors",
    "encode": "texts to token ids",
    "merge": "outputs written in parts to one",
    "search": "texts nearest in meaning to queries",
    "predict": "texts to labels, entities or scores, by a trained model",
    "evaluate": "encoders on labelled data to measures",
    "distill": "an encoder to a static model",
    "train": "text files to a vocabulary",
    "count": "text files to word counts",
    "pretrain-data": "text files to pre-training examples",
    "pretrain": "pre-training examples to a model",
    "finetune": "labelled texts to a model for a task",
    "report": "how well vocabularies fit texts",
    "verify": "a tokenizer or a model beside the library that you come from",
    "info": "what a vocabulary, tokenizer or model contains",
    "inspect": "one offline page about a text: tokens, attention, predictions",
    "serve": "models over HTTP: vectors and rankings for other programs",
}
# An error that a model is not found names so many that are.
MODELS_SHOWN = 8


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments after the program's name. Defaults to the arguments of the process.

    Returns
    -------
    int
        The exit code.

    Raises
    ------
    SystemExit
        From argparse: after ``--help`` and ``--version`` with code 0, after a usage error with code 2.
    """
    debug = False
    parser = None
    if argv is None:  # at its end the process need not look for garbage, which takes 20 ms after an embedding
        atexit.register(gc.freeze)
    _set_up_streams()
    with warnings.catch_warnings(), _unwind_on_signals():
        warnings.showwarning = _show_warning  # type: ignore[assignment]
        try:
            options = _parse(argv)
            debug, parser = options.debug, options.parser
            warnings.showwarning = lambda message, *_: print_warning(in_words_of(str(message), parser))
            _import_extension()
            status = _run_verbosely(options) if getattr(options, "verbose", False) else options.run(options)
            sys.stdout.flush()
        except KeyboardInterrupt as error:
            if debug:
                raise
            say(f"{PROGRAM}: {_with_notes('interrupted', error, parser)}")
            return 130
        except _SignalError as error:
            say(f"{PROGRAM}: {_with_notes(str(error), error, parser)}")
            return 128 + error.number
        except BrokenPipeError:
            # The reader of standard output has enough (`… | head`). At exit Python must not flush into it.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        except (WordPieceError, OSError) as error:
            if debug:
                raise
            message = _one_line(error)
            print_error(in_words_of(message, parser) if parser is not None else message)
            return 2
        finally:
            try:
                sys.stderr.flush()
            except OSError:  # its reader is gone; at exit Python must not flush into it either
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
    return status or 0


def _set_up_streams() -> None:
    """Open closed standard streams as the null device, and set input and output that are not terminals to UTF-8."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode, encoding="utf-8"))
    streams: list[tuple[Any, str]] = [(sys.stdin, "surrogateescape"), (sys.stdout, "backslashreplace")]
    for stream, errors in streams:
        with suppress(AttributeError, ValueError):  # another program's stream, or one that has been read
            stream.reconfigure(encoding=None if stream.isatty() else "utf-8", errors=errors)


class _SignalError(BaseException):
    """A signal requested the process to end. Like KeyboardInterrupt, no ``except Exception`` catches it."""

    def __init__(self, number: int) -> None:
        super().__init__(f"ended by {signal.Signals(number).name}")
        self.number = number


@contextmanager
def _unwind_on_signals() -> Iterator[None]:
    """Raise on SIGTERM and SIGHUP, so that temporary files are removed before the process ends."""

    def unwind(number: int, _: FrameType | None) -> None:
        raise _SignalError(number)

    previous = {}
    if threading.current_thread() is threading.main_thread():
        for name in ("SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) == signal.SIG_DFL:  # under nohup SIGHUP stays ignored
                previous[number] = signal.signal(number, unwind)
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _import_extension() -> None:
    """Import NumPy and the extension, and let Ctrl-C end the process at once meanwhile.

    There is nothing to clean up yet, and an extension whose import is interrupted may replace the KeyboardInterrupt by
    an error of its own.
    """

    def end(*_: object) -> None:
        with suppress(OSError):  # not by sys.stderr, which may be in the middle of a line
            os.write(2, f"{PROGRAM}: interrupted\n".encode())
        os._exit(130)

    on_main_thread = threading.current_thread() is threading.main_thread()
    if not on_main_thread or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        importlib.import_module("wordpiece_bert._core")
        return
    signal.signal(signal.SIGINT, end)
    try:
        importlib.import_module("wordpiece_bert.tokenizer.tokenizer")
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _run_verbosely(options: argparse.Namespace) -> int | None:
    from wordpiece_bert._internal.progress import lines_every

    with lines_every(1.0):
        status: int | None = options.run(options)
    return status


class _Version(argparse.Action):
    """Prints the version, which the extension has; it is imported only then."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from wordpiece_bert import __version__

        print(f"{PROGRAM} {__version__}")
        parser.exit()


class _Completion(argparse.Action):
    """Prints the script with which a shell completes commands, options and files."""

    def __call__(self, parser: argparse.ArgumentParser, _: object, value: object, *__: object) -> None:
        try:
            import shtab
        except ImportError:
            parser.error("shell completion needs shtab: pip install 'wordpiece-bert[completion]'")
        parser = _parser(list(COMMANDS))
        for one in (parser, *_subparsers(parser).values()):
            for action in one._actions:
                if action.type is Path or action.metavar in ("FILE", "VOCAB", "MODEL", "VOCAB|MODEL"):
                    action.complete = shtab.FILE  # type: ignore[attr-defined]
        print(shtab.complete(parser, shell=str(value)))
        parser.exit()


def _subparsers(parser: argparse.ArgumentParser) -> dict[str, Parser]:
    """Return the parsers of a parser's commands by name; none if it has none."""
    found = [action.choices for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    return cast("dict[str, Parser]", found[0] if found else {})


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    arguments = sys.argv[1:] if argv is None else list(argv)
    parser = _parser(arguments[:1])
    commands = _subparsers(parser)
    if not arguments:
        parser.print_help()
        raise SystemExit(0)
    if (command := commands.get(arguments[0])) is not None:
        place = 1
        if (kinds := _subparsers(command)) and (kind := kinds.get("".join(arguments[1:2]))) is not None:
            command, place = kind, 2
        command.check_options(arguments[place:])
        arguments = [*arguments[:place], *command.with_model_in_place(arguments[place:])]
    elif arguments[0].startswith("-"):
        parser.check_options(arguments[:1])
    options = parser.parse_args(arguments)
    options.parser = commands[options.command]
    if hasattr(options, "verified"):
        options.parser = _subparsers(options.parser)[options.verified]
    return options


def _parser(needed: Sequence[str]) -> Parser:
    """Return the parser with the options of the commands `needed`, and only the names of the others."""
    parser = Parser(prog=PROGRAM, description="WordPiece tokens and BERT vectors from text files, on the CPU.")
    parser.add_argument("-V", "--version", action=_Version, nargs=0, help="print the version")
    parser.add_argument(
        "--print-completion",
        action=_Completion,
        choices=["bash", "zsh", "tcsh", "fish", "powershell"],
        metavar="SHELL",
        help="print the script for completion in bash, zsh, tcsh, fish or powershell (needs shtab)",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND", dest="command")
    for name, summary in COMMANDS.items():
        if name in needed:
            importlib.import_module(f"wordpiece_bert.cli.{name.replace('-', '_')}").add_parser(commands, summary)
        else:
            commands.add_parser(name, help=summary, add_help=False)
    return parser


def _with_notes(message: str, error: BaseException, parser: argparse.ArgumentParser | None) -> str:
    """Return a message with what the interrupted call has to say: what it keeps, and how to go on."""
    notes = getattr(error, "__notes__", [])
    return ": ".join([message, *(note if parser is None else in_words_of(note, parser) for note in notes)])


def _one_line(error: Exception) -> str:
    """Return the message of an error in one line, with the file's name for an error of the operating system."""
    if isinstance(error, FileNotFoundError) and isinstance(error.filename, str | bytes):
        name = os.fsdecode(error.filename)
        return f"{name}: {error.strerror}{closest_file(name)}"
    if not isinstance(error, WordPieceError) and isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    message = " ".join(line.strip() for line in str(error).splitlines())
    if isinstance(error, ModelNotFoundError) and (found := re.search(r"no model(?: folder)? '([^']+)'", message)):
        from wordpiece_bert.hub import models_here

        here = models_here()
        shown = ", ".join(here[:MODELS_SHOWN]) + (
            f" and {len(here) - MODELS_SHOWN} more" if here[MODELS_SHOWN:] else ""
        )
        message = message.rstrip(".") + (closest(found[1], here) or (f". Models here: {shown}" if here else ""))
    return message


def _show_warning(message: Warning | str, *_: object) -> None:
    print_warning(str(message))
