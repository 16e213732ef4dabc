"""Messages of the command line: what they advise is something that the command at hand can do."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import wordpiece_bert
from wordpiece_bert.cli.program import COMMANDS, _parser, _subparsers
from wordpiece_bert.cli.wording import PYTHON, in_words_of

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE = Path(wordpiece_bert.__file__).parent
BINDING = Path(__file__).parent.parent / "rust" / "python" / "src" / "error.rs"
PARSERS = {name: _subparsers(_parser([name]))[name] for name in COMMANDS}
PARSERS |= {f"{name} {kind}": one for name in COMMANDS for kind, one in _subparsers(PARSERS[name]).items()}
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")
#: Commands of other programs, and of this one, with options of their own.
OTHER_PROGRAMS = re.compile(rf"(?:pip install|hf download).*|\b(?:{'|'.join(COMMANDS)}) --[a-z-]+")
ADVICE = re.compile(
    r"[;:.?] (?=(?:or )?(?:add|build|choose|draw|give|leave|load|name|pass|raise|see|set|train|use)\b)", re.I
)


def literal(node: ast.AST) -> str | None:
    """Return a string that stands in the code, with X for what is filled in."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(part.value if isinstance(part, ast.Constant) else "X" for part in node.values)  # type: ignore[misc]
    return None


def strings(path: Path) -> Iterator[str]:
    """Yield the strings of a module that are not docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    skipped: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            skipped |= {one.value for one in node.body[:1] if isinstance(one, ast.Expr)}
        if isinstance(node, ast.JoinedStr):
            skipped |= set(ast.walk(node)) - {node}
        if node not in skipped and (text := literal(node)) is not None:
            yield text


@functools.cache
def library_messages() -> list[str]:
    """Return the messages of the library that advise something: those that the commands can meet, and others."""
    modules = [
        path
        for path in PACKAGE.rglob("*.py")
        if path.relative_to(PACKAGE).parts[0] not in ("cli", "integrations", "serve")
    ]
    found = [text for path in modules for text in strings(path) if " " in text and "<" not in text]
    # Messages of the core are a problem and what to do; the binding has what to do for callers in Python.
    found += [f"a problem; {text}" for text in re.findall(r'"((?:[^"\\]|\\.)* (?:[^"\\]|\\.)*)"', BINDING.read_text())]
    return sorted({text.replace('\\"', '"') for text in found if PYTHON.search(text) or FLAG.search(text)})


def test_there_are_messages_with_advice_for_python() -> None:
    messages = library_messages()
    assert len(messages) > 40
    for part in ("name the right one with unk_token=", "Pass download=True", 'errors="replace"'):
        assert any(part in message for message in messages), part


@pytest.mark.parametrize("command", PARSERS)
def test_a_command_advises_only_what_it_has_options_for(command: str) -> None:
    parser = PARSERS[command]
    wrong = []
    for message in library_messages():
        shown = OTHER_PROGRAMS.sub("", in_words_of(message, parser))
        advice = ADVICE.split(shown, maxsplit=1)[1:]
        foreign = set(FLAG.findall(shown)) - set(parser._option_string_actions)
        if foreign or any(map(PYTHON.search, advice)):
            wrong.append((message, shown))
    assert not wrong


@pytest.mark.parametrize("command", PARSERS)
def test_the_commands_own_messages_name_only_its_options(command: str) -> None:
    program, *_ = command.split()
    module = program.replace("-", "_")
    files = [path for path in (PACKAGE / "cli").glob("*.py") if path.stem in (module, *_PARTS.get(command, ()))]
    assert files
    known = {flag for name, one in PARSERS.items() if name.split()[0] == program for flag in one._option_string_actions}
    named = {flag for path in files for text in strings(path) for flag in FLAG.findall(OTHER_PROGRAMS.sub("", text))}
    assert named - known - {"--"} == set()


_PARTS = {
    "embed": ["embed_outputs"],
    "finetune": ["finetune_frozen", "finetune_run"],
    "inspect": ["inspect_page"],
    "train": ["train_arguments"],
}


@pytest.mark.parametrize("command", PARSERS)
def test_an_option_is_named_where_the_library_names_its_argument(command: str) -> None:
    for action in PARSERS[command]._actions:
        long = [option for option in action.option_strings if option.startswith("--")]
        if not long or action.dest in ("help", "strip_accents"):
            continue
        shown = in_words_of(f"what {action.dest}=8 does is wrong; pass {action.dest}=9", PARSERS[command])
        if action.nargs == 0:  # a number is none of its values
            assert "pass" not in shown
        else:
            assert shown == f"what {long[0]} 8 does is wrong; pass {long[0]} 9"


def test_flags_replace_the_names_of_arguments_but_not_in_paths() -> None:
    train = PARSERS["train"]
    assert in_words_of("vocab_size=7 is less than min_frequency", train) == (
        "--vocab-size 7 is less than --min-frequency"
    )
    assert in_words_of("pass errors='skip' or include_joiner=False", train) == "pass --errors skip or --no-joiner"
    for text in ("/data/vocab_size/x.txt", "vocab_size.txt: no", "'vocab_size' is no word", "errors happen"):
        assert in_words_of(text, train) == text


def test_advice_for_python_alone_is_left_out() -> None:
    encode, train = PARSERS["encode"], PARSERS["train"]
    for message, shown in [
        ("no unknown token; add it, or name the right one with unk_token=", "no unknown token; add it"),
        ('null, which is not text; errors="skip" omits it', "null, which is not text; --errors skip omits it"),
        ("ids are missing; strict=False skips such ids", "ids are missing"),
        ("too short: pass truncation=True, max_length=4, or padding=False", "too short: use --max-length 4"),
        ("no mask token. Add it with with_added_tokens(['[MASK]'], special=True)", "no mask token."),
        ("a/b=c.txt: no text; see d(e).txt", "a/b=c.txt: no text"),
        ("x=1.txt: is a folder", "x=1.txt: is a folder"),
    ]:
        assert in_words_of(message, encode) == shown
    assert in_words_of("'x' fits no slot; pass fill_unused=True or a base", train) == (
        "'x' fits no slot; pass --fill-unused or a base"
    )
