"""The work of ``wordpiece-bert inspect``; apart from its options, so that ``--help`` needs no NumPy."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from wordpiece_bert._internal.same_file import refuse_input_as_output
from wordpiece_bert.cli import arguments
from wordpiece_bert.cli.messages import print_summary
from wordpiece_bert.errors import InputError, ModelNotFoundError
from wordpiece_bert.hub import find_model
from wordpiece_bert.inspect import Page
from wordpiece_bert.inspect.kinds import KINDS, Inspected
from wordpiece_bert.inspect.sources import transformer_folder
from wordpiece_bert.tasks.task_loading import load
from wordpiece_bert.tokenizer.corpus.writers import check_output
from wordpiece_bert.tokenizer.subword import tokenizer_of

if TYPE_CHECKING:
    import argparse

    from wordpiece_bert.tasks.task_loading import Loaded
    from wordpiece_bert.tokenizer.subword import AnyTokenizer


def run(options: argparse.Namespace) -> None:
    """Write the page and report what it shows."""
    check_output(options.output, [".html", ".json"], "page")
    offered = {name: kind for name, kind in KINDS.items() if kind.make is not None}
    wanted = None if options.views is None else options.views.split(",")
    for name in wanted or ():
        if name not in offered:
            raise InputError(f"--views: {name!r} is not one of {', '.join(offered)}")
    text = sys.stdin.read() if options.text == "-" else options.text
    inputs = [path for name in (options.model, options.beside) for path in arguments.files_of(name)]
    refuse_input_as_output([options.output], inputs)
    loaded = _model(options.model, download=options.download)
    tokenizer = _tokenizer(options.model) if loaded is None else loaded.tokenizer
    possible = [name for name, kind in offered.items() if kind.allowed(loaded)]
    if wanted and (missing := [name for name in wanted if name not in possible]):
        raise InputError(f"{options.model} does not allow {', '.join(missing)}: it allows {', '.join(possible)}")
    chosen = wanted or [name for name in possible if not offered[name].on_request]
    if options.saliency and "saliency" not in chosen:
        raise InputError(
            f"--saliency {options.saliency}: the page has no view saliency, which needs a model with a head for "
            "labels, answers or masked words"
        )
    if options.beside and "tokens" not in chosen:
        raise InputError(f"--beside {options.beside}: the page has no view tokens; add it to --views")
    inspected = Inspected(
        tokenizer=tokenizer,
        loaded=loaded,
        text=text,
        pair=options.pair,
        beside=_tokenizer(options.beside, download=options.download) if options.beside else None,
        names=(options.model, options.beside or ""),
        max_length=options.max_length,
        saliency=options.saliency or "occlusion",
    )
    views = [kind.make(inspected) for name, kind in offered.items() if kind.make and name in chosen]
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
    try:
        return load(transformer_folder(find_model(name, download=download)))
    except ModelNotFoundError:
        return None


def _tokenizer(name: str, *, download: bool = False) -> AnyTokenizer:
    """Return the tokenizer of a file, a folder or a model's name, also one that is not WordPiece."""
    if Path(name).is_file():
        return arguments.load_tokenizer(name)
    return tokenizer_of(find_model(name, download=download))
