"""The command ``wordpiece-bert``: text files in, vectors or token ids out.

It is a thin face over the library: whatever it does, a few lines of Python do as well, and nothing in the package
imports it. Results go to a file or to standard output, everything else (progress, warnings, errors) to standard error.
Exit codes: 0 done, 2 an error of the caller, told in one line (``--debug`` shows the traceback), 130 interrupted.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import sys
import time
import warnings
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from wordpiece_bert import __version__
from wordpiece_bert.bert import BertConfig
from wordpiece_bert.bert.checkpoint import find_weights
from wordpiece_bert.errors import InputError, ModelNotFoundError, WordPieceError
from wordpiece_bert.files import NpyWriter, TextReader
from wordpiece_bert.hub import find_model
from wordpiece_bert.sentence import SentenceEncoder
from wordpiece_bert.sentence.folder import SentenceFolder, read_folder
from wordpiece_bert.tokenizer import Tokenizer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = ["main"]

PROGRAM = "wordpiece-bert"
# Texts go to the model in groups of this many batches: enough to sort by length within, few enough to show progress.
BATCHES_PER_GROUP = 16
# Places named in one report; the rest is counted.
PLACES_SHOWN = 20


# --- the front door


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    Parameters
    ----------
    argv
        The arguments after the program's name; by default those of the process.

    Returns
    -------
    int
        The exit code.
    """
    options = _parser().parse_args(argv)
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning  # type: ignore[assignment]
        try:
            options.run(options)
            sys.stdout.flush()
        except KeyboardInterrupt:
            if options.debug:
                raise
            print(f"{PROGRAM}: interrupted", file=sys.stderr)
            return 130
        except BrokenPipeError:
            # Whoever read our output has read enough (`… | head`); at exit Python must not flush into the closed pipe.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        except (WordPieceError, OSError) as error:
            if options.debug:
                raise
            print(f"{PROGRAM}: error: {_one_line(error)}", file=sys.stderr)
            return 2
    return 0


class _Parser(argparse.ArgumentParser):
    """An argument parser whose errors look like all other errors of the command."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{PROGRAM}: error: {message} (see {self.prog} --help)\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog=PROGRAM, description="WordPiece tokens and BERT vectors from text files, on the CPU.")
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    common = _Parser(add_help=False)
    common.add_argument("--debug", action="store_true", help="show the traceback of an error")

    texts = _Parser(add_help=False)
    texts.add_argument(
        "--whole",
        action="store_true",
        help="take each file as one text; otherwise each line is one (lines end at \\n or \\r\\n, empty lines count)",
    )

    embed = commands.add_parser(
        "embed",
        parents=[common, texts],
        help="text files to vectors",
        description="Turn every text into a vector, and write them as one NumPy array, float32 [texts, width].",
    )
    embed.add_argument("files", nargs="+", metavar="FILE", help="UTF-8 text file; - is standard input")
    embed.add_argument("-o", "--output", required=True, type=Path, metavar="VECTORS.npy", help="the file to write")
    embed.add_argument(
        "-m", "--model", default="minilm", help="minilm, a folder, or a cached org/name (default: minilm)"
    )
    embed.add_argument("--normalize", action="store_true", help="scale vectors to length 1 (minilm does so by itself)")
    embed.add_argument("--batch-size", type=_positive, default=32, metavar="N", help="texts per pass (default: 32)")
    embed.add_argument("--threads", type=_positive, metavar="N", help="threads (default: as many as there are)")
    embed.add_argument("-q", "--quiet", action="store_true", help="no progress, no summary; warnings and errors remain")
    embed.set_defaults(run=_embed)

    encode = commands.add_parser(
        "encode",
        parents=[common, texts],
        help="texts to token ids",
        description="Print one JSON object for each text: its token ids and what else is asked for. "
        "Nothing is cut unless --max-length is given.",
    )
    encode.add_argument("files", nargs="*", metavar="FILE", help="UTF-8 text file; - is standard input")
    encode.add_argument("-t", "--text", action="append", default=[], help="a text; may be repeated")
    encode.add_argument(
        "-v",
        "--vocab",
        default="minilm",
        help="vocab.txt, tokenizer.json, a folder, minilm, or a cached org/name (default: minilm)",
    )
    encode.add_argument("--cased", action="store_true", help="with a vocab.txt: keep upper case and accents")
    encode.add_argument("--tokens", action="store_true", help="add the tokens")
    encode.add_argument("--offsets", action="store_true", help="add where each token stands, in characters")
    encode.add_argument("--no-special-tokens", action="store_true", help="leave out [CLS] and [SEP]")
    encode.add_argument("--max-length", type=_positive, metavar="N", help="cut after N tokens and tell what was cut")
    encode.set_defaults(run=_encode)

    info = commands.add_parser(
        "info",
        parents=[common],
        help="what a vocabulary, tokenizer or model holds",
        description="Tell what a vocabulary, a tokenizer or a model holds.",
    )
    info.add_argument("target", metavar="VOCAB|MODEL", help="a file, a folder, minilm, or a cached org/name")
    info.add_argument("--json", action="store_true", help="print JSON")
    info.set_defaults(run=_info)
    return parser


def _positive(value: str) -> int:
    """Read a whole number above zero from the command line."""
    number = int(value) if value.isascii() and value.isdigit() else 0
    if number < 1:
        message = f"{value!r} is not a whole number above 0"
        raise argparse.ArgumentTypeError(message)
    return number


def _one_line(error: Exception) -> str:
    """Say what went wrong in one line, with the file's name where the operating system refused it."""
    if not isinstance(error, WordPieceError) and isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return " ".join(line.strip() for line in str(error).splitlines())


def _show_warning(message: Warning | str, *_: object) -> None:
    print(f"{PROGRAM}: warning: {message}", file=sys.stderr)


# --- embed


def _embed(options: argparse.Namespace) -> None:
    start = time.perf_counter()
    output = _output_path(options.output)
    texts = TextReader(options.files, whole=options.whole)
    encoder = SentenceEncoder.from_pretrained(options.model, threads=options.threads)
    places_cut: list[str] = []

    with NpyWriter(output) as rows, _progress(texts, quiet=options.quiet) as show_progress:
        rows.append(np.empty((0, encoder.dimension), np.float32))  # the width stands even where there is no text
        for group, places in texts.groups(BATCHES_PER_GROUP * options.batch_size):
            vectors, truncated = encoder.encode(
                group,
                batch_size=options.batch_size,
                normalize_embeddings=options.normalize,
                return_truncated=True,
            )
            rows.append(vectors)
            places_cut += [places[i] for i in np.flatnonzero(truncated)]
            show_progress()
    if places_cut:
        print(
            f"{PROGRAM}: warning: {len(places_cut):,} of {_counted(texts.count, 'text')} cut at the model's "
            f"{encoder.max_seq_length} tokens: {_listed(places_cut)}",
            file=sys.stderr,
        )
    if not options.quiet:
        seconds = time.perf_counter() - start
        print(
            f"{options.output}: {_counted(rows.shape[0], 'vector')} of {rows.shape[1]} {rows.dtype} ({seconds:.1f} s)",
            file=sys.stderr,
        )


def _output_path(path: Path) -> Path:
    """Check, before any work is done, that the result can be put there; links are followed, so that they stay links."""
    real = Path(os.path.realpath(path))
    if path.suffix != ".npy":
        message = f"{path}: vectors are written as .npy; give the output a name that ends in .npy"
    elif real.is_dir():
        message = f"{path}: is a folder; name a file in it"
    elif real.exists() and not real.is_file():
        message = f"{path}: is not an ordinary file, and the result would replace it"
    elif not real.parent.is_dir():
        message = f"{path}: the folder {real.parent} does not exist; make it first"
    else:
        return real
    raise InputError(message)


@contextmanager
def _progress(texts: TextReader, *, quiet: bool) -> Iterator[Callable[[], object]]:
    """Show how far the reader has come, where somebody looks and tqdm is installed."""
    if quiet or not sys.stderr.isatty() or importlib.util.find_spec("tqdm") is None:
        yield lambda: None
        return
    from tqdm import tqdm

    with tqdm(total=texts.size, unit="B", unit_scale=True, leave=False, file=sys.stderr) as bar:

        def show() -> None:
            bar.set_postfix_str(_counted(texts.count, "text"), refresh=False)
            bar.update(texts.bytes_read - bar.n)

        yield show


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _listed(places: list[str]) -> str:
    more = len(places) - PLACES_SHOWN
    return ", ".join(places[:PLACES_SHOWN]) + (f" and {more:,} more" if more > 0 else "")


# --- encode


def _encode(options: argparse.Namespace) -> None:
    if bool(options.files) == bool(options.text):
        message = "give either files or --text"
        raise InputError(message)
    texts = TextReader(options.files, whole=options.whole)
    tokenizer = _load_tokenizer(options.vocab, cased=options.cased)
    groups = texts.groups(1024) if options.files else iter([(options.text, [f"--text {t!r}" for t in options.text])])
    places_cut: list[str] = []
    for group, places in groups:
        encodings = tokenizer.encodings(
            group,
            add_special_tokens=not options.no_special_tokens,
            truncation=options.max_length is not None,
            max_length=options.max_length,
            padding=False,
        )
        lines = []
        for encoding, place in zip(encodings, places, strict=True):
            record: dict[str, object] = {"ids": encoding.ids}
            if options.tokens:
                record["tokens"] = encoding.tokens
            if options.offsets:
                record["offsets"] = encoding.offsets
            if options.max_length is not None:
                record["truncated"] = encoding.truncated
                places_cut += [place] * encoding.truncated
            lines.append(json.dumps(record, ensure_ascii=False) + "\n")
        sys.stdout.buffer.write("".join(lines).encode())  # JSON lines are UTF-8, whatever the terminal's encoding is
    if places_cut:
        sys.stdout.flush()
        print(f"{PROGRAM}: warning: {_counted(len(places_cut), 'text')} cut: {_listed(places_cut)}", file=sys.stderr)


def _load_tokenizer(name: str, *, cased: bool = False) -> Tokenizer:
    """Load a tokenizer from a file, by its ending, or from a folder or a model's name."""
    is_file = Path(name).is_file()
    if is_file and not name.endswith(".json"):
        return Tokenizer.from_vocab(name, lowercase=not cased)
    if cased:
        message = f"--cased goes with a vocab.txt; {name} says by itself whether case is kept"
        raise InputError(message)
    return Tokenizer.from_file(name) if is_file else Tokenizer.from_pretrained(name)


# --- info


def _info(options: argparse.Namespace) -> None:
    facts: dict[str, dict[str, object]] = {}
    source = options.target
    if not Path(source).is_file():
        folder = find_model(source)
        if (folder / "modules.json").exists():
            sentence = read_folder(folder)
            folder = sentence.transformer
            facts["sentence_encoder"] = _sentence_facts(sentence)
        if any((folder / name).exists() for name in ("config.json", "bert_config.json")):
            facts["model"] = _model_facts(folder)
        source = str(folder)
    facts["tokenizer"] = _tokenizer_facts(_load_tokenizer(source))
    if options.json:
        print(json.dumps(facts, indent=2))
        return
    for title, lines in facts.items():
        print(title.replace("_", " "))
        for name, value in lines.items():
            print(f"  {name.replace('_', ' '):<18}{_shown(value)}")


def _sentence_facts(sentence: SentenceFolder) -> dict[str, object]:
    return {
        "pooling": list(sentence.pooling.modes),
        "then": [type(module).__name__ for module in sentence.modules],
        "longest_text": sentence.max_seq_length,
        "vector_width": sentence.dimension,
    }


def _model_facts(folder: Path) -> dict[str, object]:
    """What the folder says about its model; the weights are named, not read."""
    config = BertConfig.from_folder(folder)
    facts: dict[str, object] = {
        "architectures": list(config.architectures),
        "layers": config.num_hidden_layers,
        "hidden_size": config.hidden_size,
        "heads": config.num_attention_heads,
        "intermediate_size": config.intermediate_size,
        "activation": config.hidden_act,
        "longest_row": config.max_position_embeddings,
        "weights": None,
    }
    with suppress(ModelNotFoundError):  # a folder may have all but the weights
        weights = find_weights(folder)
        facts |= {"weights": str(weights), "bytes": weights.stat().st_size}
    return facts


def _tokenizer_facts(tokenizer: Tokenizer) -> dict[str, object]:
    roles = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
    special = {token: tokenizer.token_to_id(token) for role in roles if (token := getattr(tokenizer, role)) is not None}
    return {
        "vocabulary": tokenizer.vocab_size,
        "with_added_tokens": len(tokenizer),
        "special_tokens": special,
        "fingerprint": tokenizer.fingerprint,
    }


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_shown(one)}" for key, one in value.items())
    if isinstance(value, list):
        return ", ".join(_shown(one) for one in value) or "none"
    if value is None:
        return "none"
    return f"{value:,}" if isinstance(value, int) else str(value)
