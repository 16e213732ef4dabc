"""``wordpiece-bert serve``: models over HTTP."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wordpiece_bert.cli import arguments
from wordpiece_bert.cli.messages import PROGRAM, print_verbose, print_warning
from wordpiece_bert.errors import InputError

if TYPE_CHECKING:
    import argparse

    from wordpiece_bert.serve import ServerSettings

__all__ = ["add_parser"]

# The environment variable with keys, separated by white space or commas.
KEYS = "WORDPIECE_BERT_API_KEYS"


def add_parser(commands: arguments.Commands, summary: str) -> None:
    """Declare the subcommand."""
    parser = commands.add_parser(
        "serve",
        parents=[arguments.common_options()],
        help=summary,
        description="Answer HTTP requests as OpenAI's /v1/embeddings, the rerankers of Cohere, Jina and "
        "text-embeddings-inference, /tokenize, /health and /metrics do; /docs describes them. Needs the extra serve.",
    )
    parser.add_argument(
        "models",
        nargs="*",
        metavar="MODEL",
        help="minilm, a folder, or org/name in the Hugging Face cache (default: minilm); NAME=MODEL serves it under "
        "another name. A model for sequence classification ranks",
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)")
    parser.add_argument("--port", type=arguments.natural, default=8000, help="port; 0 for a free one (default: 8000)")
    parser.add_argument(
        "--api-key-file",
        type=Path,
        metavar="FILE",
        help=f"keys, one per line, one of which a request must have (also: the variable {KEYS})",
    )
    parser.add_argument("--backend", choices=["rust", "numpy"], default="rust", help="the engine (default: rust)")
    arguments.add_prompts(parser, "each text of a request that names no prompt")
    arguments.add_dtype(parser)
    _add_limits(parser)
    arguments.add_threads(parser)
    arguments.add_download(parser)
    arguments.add_output_control(parser)
    parser.set_defaults(run=run)


def _add_limits(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `ServerSettings`; without one, its default holds."""
    group = parser.add_argument_group("limits")
    whole: dict[str, Any] = {"type": arguments.positive, "metavar": "N"}
    group.add_argument("--batch-tokens", **whole, help="tokens that go through a model together (4096)")
    group.add_argument("--fill-deadline", type=seconds, metavar="S", help="seconds to wait for a full batch (0.002)")
    group.add_argument("--queue-tokens", **whole, help="tokens that may wait, else 429 (524288)")
    group.add_argument("--queue-requests", **whole, help="requests that may wait, else 429 (1024)")
    group.add_argument("--max-items", **whole, help="texts in a request (2048)")
    group.add_argument("--max-tokens", **whole, help="tokens in a request (131072)")
    group.add_argument("--max-bytes", **whole, help="bytes of a request (8388608)")
    group.add_argument("--receive-timeout", type=seconds, metavar="S", help="seconds for a request to arrive (30)")
    group.add_argument("--drain-timeout", type=seconds, metavar="S", help="seconds to finish after SIGTERM (60)")
    group.add_argument(
        "--truncation", choices=["report", "error"], help="truncate texts that are too long and report it, or refuse"
    )


def seconds(value: str) -> float:
    """Convert an argument to a number of seconds."""
    import argparse

    try:
        number = float(value)
    except ValueError:
        number = -1.0
    if not 0 <= number < float("inf"):
        raise argparse.ArgumentTypeError(f"{value!r} is not a number of seconds")
    return number


def run(options: argparse.Namespace) -> None:
    """Load the models and serve them."""
    from wordpiece_bert.serve import run as serve
    from wordpiece_bert.serve.models import load_model

    settings = _settings(options)
    models = {}
    for given in options.models or ["minilm"]:
        name, separator, model = given.partition("=")
        name, model = (name, model) if separator and not Path(given).exists() else (_shown_name(given), given)
        if name in models:
            raise InputError(f"two models are named {name!r}: give one another name, as in NAME={model}")
        models[name] = load_model(
            model,
            backend=options.backend,
            download=options.download,
            **arguments.loading_options(options),
        )
        print_verbose(options, f"{name}: {models[name]!r}, {models[name].engine}")
    if options.host not in ("127.0.0.1", "::1", "localhost") and not settings.api_keys:
        print_warning(f"{options.host} may be reachable from other machines, and no key is needed: see --api-key-file")
    _log_to_standard_error(quiet=options.quiet)

    def announce(url: str) -> None:
        if not options.quiet:
            print(f"{PROGRAM}: {', '.join(models)} at {url} (Ctrl-C ends it)", file=sys.stderr, flush=True)

    serve(models, settings, host=options.host, port=options.port, on_start=announce)


def _shown_name(model: str) -> str:
    """Return the name of a model for requests: the last part of a folder's path."""
    return Path(model).resolve().name if Path(model).is_dir() else model


def _settings(options: argparse.Namespace) -> ServerSettings:
    from dataclasses import fields

    from wordpiece_bert.serve import ServerSettings

    given = {field.name: getattr(options, field.name, None) for field in fields(ServerSettings)}
    keys = os.environ.get(KEYS, "").replace(",", " ").split()
    if options.api_key_file is not None:
        keys += options.api_key_file.read_text(encoding="utf-8").split()
        if not keys:
            raise InputError(f"{options.api_key_file} has no key")
    return ServerSettings(**{name: value for name, value in given.items() if value is not None}, api_keys=tuple(keys))


def _log_to_standard_error(*, quiet: bool) -> None:
    """Print a line for each request, or with `quiet` only errors."""
    import logging

    from wordpiece_bert.serve.access_log import DelayedHandler

    # None of this is in a line; finding it costs as much as the line itself.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    handler = DelayedHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    log = logging.getLogger("wordpiece_bert.serve")
    log.addHandler(handler)
    log.setLevel(logging.ERROR if quiet else logging.INFO)
    log.propagate = False
