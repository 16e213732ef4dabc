"""The help of the commands, how they name models, and what they suggest."""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path

import pytest

from wordpiece_bert._internal.progress import Progress
from wordpiece_bert.cli.parser import RARE
from wordpiece_bert.cli.program import COMMANDS, _parser, _subparsers, main

PARSERS = {name: _subparsers(_parser([name]))[name] for name in COMMANDS}
#: `verify` has commands of its own.
PARSERS |= {f"{name} {kind}": one for name in COMMANDS for kind, one in _subparsers(PARSERS[name]).items()}


def output_of(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("command", PARSERS)
def test_help_fits_a_screen_and_help_all_has_the_rest(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    short, whole = (output_of(capsys, *command.split(), option) for option in ("--help", "--help-all"))
    assert len(short.splitlines()) <= 60
    assert max(map(len, (short + whole).splitlines())) <= 80
    actions = [action for action in PARSERS[command]._actions if action.help != argparse.SUPPRESS]
    options = {action.option_strings[-1] for action in actions if action.option_strings}
    shown = {option for option in options if re.search(rf"^  (?! )(?:(?!  ).)*{option}\b", short, re.MULTILINE)}
    assert options - shown == options & RARE
    assert all(re.search(rf"^  (?! )(?:(?!  ).)*{option}\b", whole, re.MULTILINE) for option in options)
    assert (f"{len(options & RARE)} more option" in short) == bool(options & RARE)
    assert not any(action.required for action in PARSERS[command]._actions if RARE.intersection(action.option_strings))


def test_every_rare_option_belongs_to_a_command() -> None:
    known = {option for parser in PARSERS.values() for action in parser._actions for option in action.option_strings}
    assert known >= RARE


def test_without_arguments_the_program_prints_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert output_of(capsys) == output_of(capsys, "--help")


@pytest.mark.parametrize("command", PARSERS)
def test_every_command_that_takes_a_model_takes_it_by_one_option(command: str) -> None:
    # These make vocabularies or only join files, and `verify tokenizer` takes a vocabulary.
    if command not in ("train", "count", "merge", "verify"):
        assert {"-m", "--model"} <= set(PARSERS[command]._option_string_actions)


@pytest.mark.parametrize("given", [["-m", "minilm"], ["-mminilm"], ["--model=minilm"], ["minilm"]])
def test_a_model_by_place_and_by_option_is_the_same(given: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    serve, predict = PARSERS["serve"], PARSERS["predict"]
    assert serve.parse_args(serve.with_model_in_place([*given, "--port", "0", "-m", "b=x"])).models[-1] in (
        "b=x",
        "minilm",
    )
    options = predict.parse_args(predict.with_model_in_place([*given, "texts.txt", "-q"]))
    assert (options.model, options.files, options.quiet) == ("minilm", ["texts.txt"], True)
    verify = PARSERS["verify model"]
    options = verify.parse_args(verify.with_model_in_place([*given, "--dtype", "int8", "texts.txt"]))
    assert (options.model, options.files, options.dtype) == ("minilm", ["texts.txt"], "int8")
    if given != ["minilm"]:
        options = predict.parse_args(predict.with_model_in_place(["texts.txt", *given]))
        assert (options.model, options.files) == ("minilm", ["texts.txt"])


@pytest.mark.parametrize(
    ("arguments", "suggested"),
    [
        (["serve", "--modl", "x"], "--model"),
        (["embed", "--dtyp", "int8"], None),  # an abbreviation, as argparse takes it
        (["embed", "--xyz"], None),
        (["serve", "--vocabulary"], None),
    ],
)
def test_only_what_is_near_is_suggested(
    arguments: list[str], suggested: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(arguments)
    error = capsys.readouterr().err
    assert error.count("did you mean") == (suggested is not None)
    assert suggested is None or f"did you mean '{suggested}'?" in error


@pytest.mark.parametrize("command", ["embed", "encode", "info", "predict", "serve", "inspect", "report"])
def test_a_model_that_is_not_found_is_told_what_is_here(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder in ("mine", "cache/models--org--name/snapshots/0", "cache/models--org--empty/snapshots"):
        (tmp_path / folder).mkdir(parents=True)
    for folder in ("mine", "cache/models--org--name/snapshots/0"):
        (tmp_path / folder / "config.json").write_text("{}")
    (tmp_path / "texts.txt").write_text("a\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    files = {"serve": [], "info": [], "inspect": ["text", "-o", "page.html"], "embed": ["texts.txt", "-o", "v.npy"]}
    assert main([command, "-m", "nothing-like-it", *files.get(command, ["texts.txt"])]) == 2
    error = capsys.readouterr().err
    assert re.search(r"\. Models here: (minilm, )?mine, org/name$", error.rstrip()), error
    assert main([command, "-m", "mime", *files.get(command, ["texts.txt"])]) == 2
    assert "did you mean 'mine'?" in capsys.readouterr().err


def test_a_narrow_line_of_progress_keeps_rate_and_time(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal:
        text = ""

        def isatty(self) -> bool:
            return True

        def write(self, text: str) -> None:
            self.text = text

        def flush(self) -> None:
            pass

    shown = {}
    for columns in (120, 80, 60):
        monkeypatch.setenv("COLUMNS", str(columns))
        terminal = Terminal()
        progress = Progress(400_000_000, "B", "vectors.npy", stream=terminal)  # type: ignore[arg-type]
        progress._shown -= 1
        progress._start -= 60
        progress.update(123_456_789, texts=1_234_567, tokens=12_345_678)
        shown[columns] = terminal.text
        assert len(terminal.text) <= columns
        assert re.search(r"31%.*, 205,\d{3} tokens/s, 2:\d\d left$", terminal.text)
    assert "[###" in shown[120]
    assert "[" not in shown[80]
    assert "123.5 MB" in shown[80]


@pytest.mark.parametrize("given", [["--mod", "x"], ["--m", "x"], ["-qm", "x"]])
def test_a_model_by_an_abbreviated_option_is_refused_and_not_dropped(
    given: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["info", *given, "minilm"])
    assert capsys.readouterr().err.endswith(
        "write -m or --model by itself and in full (see wordpiece-bert info --help)\n"
    )


def test_an_option_without_its_model_is_an_error_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["info", "-m"])
    assert capsys.readouterr().err.startswith("wordpiece-bert: error: argument -m/--model: expected one argument")


@pytest.mark.model
def test_a_text_that_begins_as_the_option_of_the_model_is_a_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["encode", "--tokens", "--text", "-my text here"]) == 0
    assert json.loads(capsys.readouterr().out)["tokens"] == ["[CLS]", "-", "my", "text", "here", "[SEP]"]
