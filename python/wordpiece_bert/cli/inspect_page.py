"""The work of ``wordpiece-bert inspect``; apart from its options, so that ``--help`` needs no NumPy."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from wordpiece_bert._internal.same_file import refuse_input_as_output
from wordpiece_bert.bert.heads.bert import BertForPreTraining
from wordpiece_bert.bert.heads.kinds import MaskedLM, SequenceClassification
from wordpiece_bert.cli import arguments
from wordpiece_bert.cli.messages import print_summary
from wordpiece_bert.corpus.writers import check_output
from wordpiece_bert.errors import InputError, ModelNotFoundError
from wordpiece_bert.hub import find_model
from wordpiece_bert.inspect import (
    Page,
    attention,
    logit_lens,
    neurons,
    patterns,
    positions,
    predictions,
    saliency,
    tokens,
    trace,
)
from wordpiece_bert.subword import tokenizer_of
from wordpiece_bert.tasks.loading import load, longest_row

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from wordpiece_bert.inspect import View
    from wordpiece_bert.tasks.loading import Loaded
    from wordpiece_bert.tokenizer import Tokenizer

__all__ = ["run"]


def run(options: argparse.Namespace) -> None:
    """Write the page and report what it shows."""
    check_output(options.output, [".html", ".json"], "page")
    wanted = None if options.views is None else options.views.split(",")
    for name in wanted or ():
        if name not in arguments.VIEWS:
            raise InputError(f"--views: {name!r} is not one of {', '.join(arguments.VIEWS)}")
    text = sys.stdin.read() if options.text == "-" else options.text
    inputs = [path for name in (options.model, options.beside) for path in arguments.files_of(name)]
    refuse_input_as_output([options.output], inputs)
    loaded = _model(options.model, download=options.download)
    tokenizer = _tokenizer(options.model) if loaded is None else loaded.tokenizer
    possible = _possible(loaded)
    if wanted and (missing := [name for name in wanted if name not in possible]):
        raise InputError(f"{options.model} does not allow {', '.join(missing)}: it allows {', '.join(possible)}")
    if options.saliency and "saliency" not in (wanted or possible):
        raise InputError(f"--saliency {options.saliency}: the page has no view saliency, which needs a classifier")
    views = _views(options, text, tokenizer, loaded, wanted or possible)
    title = f"{text[:60]}{'…' * (len(text) > 60)} · {options.model}"
    path = Page(views, " ".join(title.split())).save(options.output)
    kinds = ", ".join(view.kind for view in views)
    size = path.stat().st_size
    print_summary(
        options, f"{path}: {kinds} ({size:,} bytes)", {"output": str(path), "views": kinds.split(", "), "bytes": size}
    )


def _model(name: str, *, download: bool) -> Loaded | None:
    """Return the model, or None for a vocabulary or a folder without weights."""
    if Path(name).is_file():
        return None
    folder = find_model(name, download=download)
    if (folder / "modules.json").exists():
        from wordpiece_bert.sentence.folder import read_folder

        folder = read_folder(folder).transformer
    try:
        return load(folder)
    except ModelNotFoundError:
        return None


def _tokenizer(name: str, *, download: bool = False) -> Tokenizer:
    """Return the tokenizer of a file, a folder or a model's name, also one that is not WordPiece."""
    if Path(name).is_file():
        return arguments.load_tokenizer(name)
    return tokenizer_of(find_model(name, download=download))


def _possible(loaded: Loaded | None) -> list[str]:
    """Return the views that a model allows."""
    if loaded is None:
        return ["tokens"]
    language = isinstance(loaded.model, (MaskedLM, BertForPreTraining))
    needs = {
        "predictions": language,
        "lens": language,
        "saliency": isinstance(loaded.model, SequenceClassification),
        "positions": loaded.model.config.has_position_table,
    }
    return [name for name in arguments.VIEWS if needs.get(name, True)]


def _views(
    options: argparse.Namespace, text: str, tokenizer: Tokenizer, loaded: Loaded | None, wanted: list[str]
) -> list[View]:
    views = []
    if "tokens" in wanted:
        beside = None if options.beside is None else _tokenizer(options.beside, download=options.download)
        names = (options.model, options.beside or "")
        limit = options.max_length
        if loaded is not None:  # as the other views cut
            longest = longest_row(*loaded)
            limit = longest if limit is None else min(limit, longest)
        views.append(tokens(tokenizer, text, options.pair, beside=beside, names=names, max_length=limit))
    if loaded is None or wanted == ["tokens"]:
        return views
    if {"attention", "neurons", "patterns"} & set(wanted):
        traced = trace(loaded, text, options.pair, max_length=options.max_length)
        parts: dict[str, Callable[..., View]] = {"attention": attention, "neurons": neurons, "patterns": patterns}
        views += [build(traced) for name, build in parts.items() if name in wanted]
    language: dict[str, Callable[..., View]] = {
        "predictions": predictions,
        "lens": logit_lens,
        "saliency": partial(saliency, method=options.saliency or "occlusion"),
    }
    views += [
        build(loaded, text, options.pair, max_length=options.max_length)
        for name, build in language.items()
        if name in wanted
    ]
    if "positions" in wanted:
        views.append(positions(loaded.model))
    return views
