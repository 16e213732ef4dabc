"""The parser of a command: its errors have the form of all others, and its help has two lengths.

``--help`` shows what most calls need, on a screen or two; ``--help-all`` shows every option.
"""

from __future__ import annotations

import argparse
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from wordpiece_bert.cli.messages import closest, counted, print_error

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

#: The options that only ``--help-all`` shows, in every command that has them.
RARE = frozenset(
    """
    --abbreviation --accept-token-ids --allow-stale --answer-start --batch-seconds --batch-tokens --bf16 --cache
    --calibrate --candidates --checkpointing --chunk-by --chunk-overlap --compact --config --debug --document-prompt
    --documents --drain-timeout --dupe-factor --errors --eval-share --eval-steps --fields --fill-deadline
    --fill-unused --format --freeze --function --heads --id-field --identical-ids --ids-column --inflight-bytes
    --initial-alphabet --instructions --intermediate-size --inverse-penalty --keep --keep-accents --late-chunking
    --layers --limit-alphabet --lower-thresh --max-bytes --max-connections --max-distinct-words --max-grad-norm
    --max-input-words --max-items --max-positions --max-predictions --max-sequences-per-row --max-token-length
    --max-tokens --max-unique-chars --max-wait --max-word-chars --megatron --metric --min-sentences
    --no-chinese-chars --no-clean-text --no-joiner --num-iterations --open-metrics --opentelemetry --outputs --part
    --patience --pieces --plot --precision --prompt-name --prune --queue-requests --queue-tokens --receive-timeout
    --request-timeout --reserved --save-steps --schedule --seed --separator --shard-tokens --short-seq-prob
    --slack-ratio --spans --strip-accents --token-counts --uds --unused --upper-thresh --verbose --weight-decay
    --whole-words --word-ids
    """.split()  # noqa: SIM905
)


def _path(value: str) -> Path:
    """Convert an argument to a path; an empty one, of a variable that is not set, is not the current folder."""
    if not value:
        raise argparse.ArgumentTypeError("is empty: name a file or a folder")
    return Path(value)


class Parser(argparse.ArgumentParser):
    """An argument parser that reports errors in the form of all other errors, and suggests what was meant."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.register("type", Path, _path)
        if self.add_help:
            self.add_argument("--help-all", action=_HelpAll, nargs=0, help=argparse.SUPPRESS)

    def error(self, message: str) -> NoReturn:
        """Print an error in the arguments, and end."""
        print_error(f"{message} (see {self.prog} --help)")
        raise SystemExit(2)

    def format_help(self) -> str:
        """Return the help without the rare options."""
        rare = [action for action in self._actions if RARE.intersection(action.option_strings)]
        with _hidden(rare):
            shown = self.format_help_all()
        return f"{shown}\n{counted(len(rare), 'more option')}: {self.prog} --help-all\n" if rare else shown

    def format_help_all(self) -> str:
        """Return the help with every option."""
        self.usage = self._short_usage()
        try:
            return super().format_help()
        finally:
            self.usage = None

    def _short_usage(self) -> str:
        """Return the required options and the files: a line, where argparse would name every option."""
        formatter = self._get_formatter()
        needed = [action for action in self._actions if action.required and action.option_strings]
        options = [f"{action.option_strings[0]} {action.metavar or action.dest.upper()}" for action in needed]
        files = [formatter._format_args(action, action.dest) for action in self._get_positional_actions()]  # noqa: SLF001
        return " ".join(["%(prog)s [options]", *options, *files])

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            choices = list(action.choices)
            message = f"invalid choice: {value!r} (choose from {', '.join(choices)}){closest(str(value), choices)}"
            raise argparse.ArgumentError(action, message)

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> Any:
        value = super()._get_values(action, arg_strings)
        if action.nargs is None and value == []:  # Python before 3.13 drops the value of --option=--
            raise argparse.ArgumentError(action, "expected one argument")
        return value

    def _get_option_tuples(self, option_string: str) -> Any:
        # A text such as "-my name" is no model: with a space, argparse takes what is no option for a value.
        is_text = option_string.startswith("-m") and " " in option_string.partition("=")[0]
        return [] if is_text else super()._get_option_tuples(option_string)

    def _match_arguments_partial(self, actions: Sequence[argparse.Action], arg_strings_pattern: str) -> list[int]:
        # Python 3.11 takes no files at all where options stand between another argument and the files.
        counts: list[int] = super()._match_arguments_partial(actions, arg_strings_pattern)
        if counts and counts[-1] == 0 and "A" in arg_strings_pattern[sum(counts) :]:
            counts.pop()
        return counts

    def check_options(self, arguments: Sequence[str]) -> None:
        """Refuse long options that do not exist, before argparse complains of what is missing instead of them."""
        for argument in arguments:
            name = argument.partition("=")[0]
            if argument == "--":
                return
            known = self._option_string_actions
            if name.startswith("--") and " " not in name and not any(option.startswith(name) for option in known):
                self.error(f"unknown option {name}{closest(name, known)}")

    def with_model_in_place(self, arguments: Sequence[str]) -> list[str]:
        """Return the arguments with the models of ``-m`` before the files, where the command takes models by place."""
        if not isinstance(self._option_string_actions.get("--model"), _ModelInPlace):
            return list(arguments)
        models = Parser(self.prog, add_help=False, allow_abbrev=False, argument_default=argparse.SUPPRESS)
        models.add_argument("-m", "--model", action="append")
        given, rest = models.parse_known_args(arguments)
        return [*getattr(given, "model", []), *rest]


def add_model_option(parser: argparse.ArgumentParser, place: str) -> None:
    """Declare ``--model`` for a command that takes its model by place, so that all commands take it by one option."""
    parser.add_argument("-m", "--model", action=_ModelInPlace, metavar=place, help=f"another way to give {place}")


class _ModelInPlace(argparse.Action):
    """Declares an option that `Parser.with_model_in_place` replaces where it is written in full."""

    def __call__(self, *_: object) -> None:
        """Refuse the option."""
        raise argparse.ArgumentError(self, "write -m or --model by itself and in full")


class _HelpAll(argparse.Action):
    """Prints the help with every option."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        print(parser.format_help_all() if isinstance(parser, Parser) else parser.format_help(), end="")
        parser.exit()


@contextmanager
def _hidden(actions: Sequence[argparse.Action]) -> Iterator[None]:
    """Leave options out of the help and the usage."""
    before = [action.help for action in actions]
    for action in actions:
        action.help = argparse.SUPPRESS
    try:
        yield
    finally:
        for action, text in zip(actions, before, strict=True):
            action.help = text
