"""The entry point: builds the parser, runs a subcommand, turns errors and signals into exit codes.

Results go to a file or to standard output; progress, warnings and errors go to standard error. The exit codes are 0 for
success, 2 for an error in the arguments or the input (reported in one line; ``--debug`` shows the traceback), 130 after
Ctrl-C, and 128 plus the signal's number after SIGTERM (143) or SIGHUP (129).
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

from wordpiece_bert import __version__
from wordpiece_bert.cli import count, embed, encode, info, inspect, report, train
from wordpiece_bert.cli.messages import PROGRAM
from wordpiece_bert.errors import WordPieceError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import FrameType

__all__ = ["main"]

COMMANDS = (embed, encode, train, count, report, info, inspect)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments after the program's name. Defaults to those of the process.

    Returns
    -------
    int
        The exit code.

    Raises
    ------
    SystemExit
        From argparse: after ``--help`` and ``--version`` with code 0, after a usage error with code 2.
    """
    options = _parser().parse_args(argv)
    with warnings.catch_warnings(), _unwind_on_signals():
        warnings.showwarning = _show_warning  # type: ignore[assignment]
        try:
            options.run(options)
            sys.stdout.flush()
        except KeyboardInterrupt:
            if options.debug:
                raise
            print(f"{PROGRAM}: interrupted", file=sys.stderr)
            return 130
        except _SignalError as error:
            print(f"{PROGRAM}: {error}", file=sys.stderr)
            return 128 + error.number
        except BrokenPipeError:
            # The reader has closed the pipe (`… | head`). At exit Python must not flush into it.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        except (WordPieceError, OSError) as error:
            if options.debug:
                raise
            print(f"{PROGRAM}: error: {_one_line(error)}", file=sys.stderr)
            return 2
    return 0


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


class _Parser(argparse.ArgumentParser):
    """An argument parser that reports errors in the same form as all other errors of the command."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{PROGRAM}: error: {message} (see {self.prog} --help)\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog=PROGRAM, description="WordPiece tokens and BERT vectors from text files, on the CPU.")
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in COMMANDS:
        command.add_parser(commands)
    return parser


def _one_line(error: Exception) -> str:
    """Return the message of an error in one line, with the file's name for an error of the operating system."""
    if not isinstance(error, WordPieceError) and isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return " ".join(line.strip() for line in str(error).splitlines())


def _show_warning(message: Warning | str, *_: object) -> None:
    print(f"{PROGRAM}: warning: {message}", file=sys.stderr)
