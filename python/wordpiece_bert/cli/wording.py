"""The library's messages in the words of a command: arguments become its options, advice for Python code is left out.

A message says what is wrong and often, after ``;``, ``:`` or ``.``, what to do about it. What to do is written for
callers in Python: ``pass errors='skip'``. A command names its own option instead, and what it has no option for is not
advice to its user.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from wordpiece_bert.cli.training_options import SETTINGS

if TYPE_CHECKING:
    import argparse

# What the library calls an argument, or an argument with a value -> the option of commands, where the name differs.
_OPTIONS = {option.setting: f"--{name.replace('_', '-')}" for name, option in SETTINGS.items()} | {
    "field": "--jsonl-field",
    "column": "--text-column",
    "special_tokens": "--special-token",
    "masking": "--mask",
    "abbreviations": "--abbreviation",
    "resume_from_checkpoint=True": "--resume",
    "overwrite_output_dir=True": "--overwrite",
    "eval_strategy": "--eval",
    "lowercase=False": "--cased",
    "clean_text=False": "--no-clean-text",
    "tokenize_chinese_chars=False": "--no-chinese-chars",
    "strip_accents=True": "--strip-accents",
    "strip_accents=False": "--keep-accents",
    "include_joiner=False": "--no-joiner",
    "add_special_tokens=False": "--no-special-tokens",
    "separator=None": "--whole",
}
# What commands have no option for, and what it is for their user.
_WORDS = {
    "max_seq_length": "the model's maximum length",
    "load it with SentenceEncoder.from_pretrained": "the commands embed, search and serve take it",
    "load it with SparseEncoder.from_pretrained": "the commands embed and search take it",
    "load it with MultiVectorEncoder.from_pretrained": "the commands embed and search take it",
    "load it with CrossEncoder.from_pretrained": "the commands search and serve rank with it",
}

#: What only Python code can follow: an argument by keyword, a call, a constant, or a name of several words.
PYTHON = re.compile(
    r"(?<![\w./'\"-])(?:(?:\w+\.)*[A-Za-z_]\w*(?:=(?!=)|\()|(?:None|True|False)\b|[a-z]+(?:_[a-z]+)+\b(?!\.\w|[/'\"]))"
)

_VERBS = "add|build|choose|convert|draw|give|leave|load|name|pass|pip|raise|see|set|train|use"
# Between a problem and what to do about it, or two things to do.
_BEFORE_ADVICE = re.compile(rf"([;:.?]) (?=(?:or )?(?:{_VERBS})\b|[a-z_]+=)", re.IGNORECASE)
_BETWEEN_ALTERNATIVES = re.compile(r",? or |, ")


def in_words_of(message: str, parser: argparse.ArgumentParser) -> str:
    """Return a message of the library as one of a subcommand.

    A name of several words, such as ``vocab_size``, is replaced by the option anywhere; a single word only with ``=``,
    as in ``errors='skip'``. Parts of paths are left alone. Advice for which the subcommand has no option is left out.
    """
    for python, words in _WORDS.items():
        message = message.replace(python, words)
    problem, *rest = _BEFORE_ADVICE.split(_with_options(message, parser))
    for mark, advice in zip(rest[::2], rest[1::2], strict=True):
        if kept := _without_python(advice):
            problem += f"{mark} {kept}"
        elif mark in ".?":
            problem += mark
    return problem


def _with_options(message: str, parser: argparse.ArgumentParser) -> str:
    """Replace arguments that the subcommand has options for."""
    possible = [action for action in parser._actions if action.dest not in getattr(parser, "refused", ())]
    actions = {option: action for action in possible for option in action.option_strings}
    names = {name: option for name, option in _OPTIONS.items() if option in actions}
    for option, action in actions.items():
        if option.startswith("--"):
            names.setdefault(action.dest, option)
    for name, option in sorted(names.items(), key=lambda pair: -len(pair[0])):
        if "=" in name:
            needed = ""
        else:
            value = r"=(?:(?P<quote>['\"]?)(?P<value>[\w.+-]*\w)(?P=quote)|(?![\w'\"=(\[]))"
            needed = f"(?:{value})" + ("?" if "_" in name else "")
        takes_value = actions[option].nargs != 0

        def replaced(found: re.Match[str], option: str = option, *, takes_value: bool = takes_value) -> str:
            value = found.groupdict().get("value")
            if value in (None, "True"):
                return option
            return f"{option} {value}" if takes_value and value not in ("None", "False") else found[0]

        pattern = rf"(?<![\w/\\.'\"-]){re.escape(name)}{needed}(?![\w/\\='\"-]|\.\w)"
        message = re.sub(pattern, replaced, message)
    return message


def _without_python(advice: str) -> str:
    """Return the alternatives of an advice that are not for Python code; nothing if none is left."""
    if not PYTHON.search(advice):
        return advice
    first, *others = _BETWEEN_ALTERNATIVES.split(advice)
    kept = [one for one in others if not PYTHON.search(one)]
    if not PYTHON.search(first):
        return " or ".join([first, *kept])
    kept = [one for one in kept if re.match(rf"--|on\b|(?:{_VERBS})\b", one)]
    shown = " or ".join(kept)
    return f"use {shown}" if shown.startswith("--") else shown
