"""``wordpiece-bert serve``: models over HTTP."""

from __future__ import annotations

import contextlib
import os
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wordpiece_bert._internal.log import say
from wordpiece_bert.cli import arguments
from wordpiece_bert.cli.messages import PROGRAM, print_verbose, print_warning
from wordpiece_bert.cli.parser import add_model_option
from wordpiece_bert.errors import InputError
from wordpiece_bert.serve.settings import LIMITS, ServerSettings

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator

# The environment variable with keys, separated by white space or commas.
KEYS = "WORDPIECE_BERT_API_KEYS"

#: The options that one model may have of its own: of `load_model`, and of `ServerSettings`.
_LOADING: dict[str, Callable[[str], Any]] = {
    "kind": str,
    "dtype": str,
    "backend": str,
    "instructions": str,
    "threads": arguments.positive,
}
_SETTINGS: dict[str, Callable[[str], Any]] = {
    "prompt": str,
    "prompt_name": str,
    "truncation": str,
    "batch_tokens": arguments.positive,
    "queue_tokens": arguments.positive,
    "queue_requests": arguments.positive,
    "max_tokens": arguments.positive,
    "result_cache_bytes": arguments.natural,
}


def add_parser(commands: arguments.Commands, summary: str) -> None:
    """Declare the subcommand."""
    parser = commands.add_parser(
        "serve",
        parents=[arguments.common_options()],
        help=summary,
        description="Answer HTTP requests as OpenAI, Cohere, Jina, text-embeddings-inference, vLLM and Hugging Face's "
        "inference API do; /docs describes all paths. Needs the extra serve.",
    )
    parser.add_argument(
        "models",
        nargs="*",
        metavar="MODEL",
        help="minilm, a folder, or org/name in the Hugging Face cache (default: minilm); NAME=MODEL serves it under "
        "another name, NAME=MODEL,OPTION=VALUE,... with options of its own: "
        f"{', '.join([*_LOADING, *_SETTINGS])} (--max-items and --max-bytes are limits of the server, not of single "
        "models)",
    )
    add_model_option(parser, "MODEL")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)")
    parser.add_argument("--uds", type=Path, metavar="PATH", help="Unix socket to listen on instead")
    parser.add_argument("--port", type=arguments.natural, default=8000, help="port; 0 for a free one (default: 8000)")
    parser.add_argument(
        "--api-key-file",
        action="append",
        default=[],
        type=Path,
        metavar="FILE",
        help="a file with keys, separated by white space, one of which a request must have; may be given several times "
        f"(also: the variable {KEYS}, which is split at commas and white space)",
    )
    parser.add_argument(
        "--open-metrics", dest="metrics_key", action="store_false", default=None, help="/metrics needs no key"
    )
    parser.add_argument(
        "--allowed-host",
        dest="allowed_hosts",
        action="append",
        metavar="NAME",
        help="a name by which requests may call the server, besides localhost and IP addresses; *.NAME for all that "
        "end so, * for any; may be given several times (default: no other where it listens on this machine and has no "
        "keys, else any)",
    )
    parser.add_argument(
        "--accept-token-ids",
        action="store_true",
        default=None,
        help=arguments.described(LIMITS, "accept_token_ids"),
    )
    parser.add_argument(
        "--opentelemetry",
        action="store_true",
        default=None,
        help="send traces and metrics over OTLP, to where the variables OTEL_* say; needs the extra otel",
    )
    parser.add_argument("--backend", choices=["rust", "numpy"], default="rust", help="the engine (default: rust)")
    arguments.add_prompts(parser, "each text of a request that names no prompt")
    arguments.add_dtype(parser)
    _add_limits(parser)
    arguments.add_running(parser, run)


def _add_limits(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `ServerSettings`; without one, its default holds."""
    group = parser.add_argument_group("limits")
    for field in fields(ServerSettings):
        if isinstance(field.default, int | float) and not isinstance(field.default, bool):
            is_whole = isinstance(field.default, int)
            group.add_argument(
                "--" + field.name.replace("_", "-"),
                type=_SETTINGS.get(field.name, arguments.positive) if is_whole else seconds,
                metavar="N" if is_whole else "S",
                help=arguments.described(LIMITS, field.name, f"{field.default:g}" if not is_whole else field.default),
            )
    group.add_argument("--truncation", choices=["report", "error"], help=arguments.described(LIMITS, "truncation"))


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
    with arguments.with_threads(options):  # models of some kinds have no number of their own
        _serve(options)


def _serve(options: argparse.Namespace) -> None:
    from wordpiece_bert.serve import run as serve
    from wordpiece_bert.serve.model_loading import load_model
    from wordpiece_bert.serve.telemetry import exported

    settings = _settings(options)
    models: dict[str, Any] = {}
    of_models: dict[str, ServerSettings] = {}
    loaded: dict[tuple[Any, ...], Any] = {}
    for given in options.models or ["minilm"]:
        name, model, own = _parsed(given)
        if name in models:
            raise InputError(f"two models are named {name!r}: give one another name, as in NAME={model}")
        loading = {"backend": options.backend, **arguments.loading_options(options), "threads": None}
        loading |= _of(own, _LOADING)
        key = (model, *((option, str(value)) for option, value in sorted(loading.items())))
        if key not in loaded:  # under several names it is loaded once
            loaded[key] = load_model(model, download=options.download, **loading)
        models[name] = loaded[key]
        if changes := _of(own, _SETTINGS):
            of_models[name] = replace(settings, **changes)
        print_verbose(options, f"{name}: {models[name]!r}")
    if options.uds is None and options.host not in ("127.0.0.1", "::1", "localhost") and not settings.api_keys:
        print_warning(f"{options.host} may be reachable from other machines, and no key is needed: see --api-key-file")

    def announce(url: str) -> None:
        if not options.quiet:
            say(f"{PROGRAM}: {', '.join(models)} at {url} (Ctrl-C ends it)")

    with (
        _log_on_standard_error(quiet=options.quiet),
        exported() if settings.opentelemetry else contextlib.nullcontext(),
    ):
        serve(
            models,
            settings,
            model_settings=of_models,
            host=options.host,
            port=options.port,
            uds=options.uds,
            on_start=announce,
        )


def _parsed(given: str) -> tuple[str, str, dict[str, str]]:
    """Return the name, the model and the options of ``[NAME=]MODEL[,OPTION=VALUE]...``."""
    if Path(given).exists():
        return _shown_name(given), given, {}
    first, *others = given.split(",")
    name, separator, model = first.partition("=")
    if not separator or Path(first).exists():
        name, model = _shown_name(first), first
    own = {}
    for other in others:
        option, separator, value = other.partition("=")
        if option not in {**_LOADING, **_SETTINGS} or not separator:
            known = ", ".join([*_LOADING, *_SETTINGS])
            raise InputError(f"{given}: {other!r} is no OPTION=VALUE; the options of a model are {known}")
        own[option] = value
    return name, model, own


def _of(own: dict[str, str], table: dict[str, Callable[[str], Any]]) -> dict[str, Any]:
    """Return those options of a model that a table has, converted."""
    import argparse

    found = {}
    for option in own.keys() & table.keys():
        try:
            found[option] = table[option](own[option])
        except argparse.ArgumentTypeError as cause:
            raise InputError(f"{option}: {cause}") from None
    return found


def _shown_name(model: str) -> str:
    """Return the name of a model for requests: the last part of a folder's path."""
    return Path(model).resolve().name if Path(model).is_dir() else model


def _settings(options: argparse.Namespace) -> ServerSettings:
    given = {field.name: getattr(options, field.name, None) for field in fields(ServerSettings)}
    keys = os.environ.get(KEYS, "").replace(",", " ").split()
    for file in options.api_key_file:
        found = " ".join(arguments.lines_of(file, "--api-key-file")).split()
        if not found:
            raise InputError(f"{file} has no key")
        keys += found
    return ServerSettings(**{name: value for name, value in given.items() if value is not None}, api_keys=tuple(keys))


@contextlib.contextmanager
def _log_on_standard_error(*, quiet: bool) -> Iterator[None]:
    """Print a line for each request, or with `quiet` only errors."""
    import logging

    from wordpiece_bert.serve.access_log import DelayedHandler, LineFormatter

    # None of this is in a line; finding it costs as much as the line itself.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    handler = DelayedHandler()
    handler.setFormatter(LineFormatter())
    log = logging.getLogger("wordpiece_bert.serve")
    log.addHandler(handler)
    log.setLevel(logging.ERROR if quiet else logging.INFO)
    log.propagate = False
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.propagate = True
        handler.close()
