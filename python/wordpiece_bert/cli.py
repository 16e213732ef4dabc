"""The command ``wordpiece-bert``: text files in, vectors or token ids out.

It is a thin face over the library: whatever it does, a few lines of Python do as well, and nothing in the package
imports it. Results go to a file or to standard output, everything else (progress, warnings, errors) to standard error.
Exit codes: 0 done, 2 an error of the caller, told in one line (``--debug`` shows the traceback), 130 interrupted, 143
ended by SIGTERM.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import sys
import threading
import time
import warnings
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from wordpiece_bert import __version__
from wordpiece_bert.bert.auto import read_config
from wordpiece_bert.bert.checkpoint import find_weights
from wordpiece_bert.corpus.progress import progress
from wordpiece_bert.corpus.table import ID_DTYPES, Table
from wordpiece_bert.corpus.texts import TextReader
from wordpiece_bert.corpus.writers import NpyWriter, check_output, json_lines
from wordpiece_bert.errors import InputError, ModelNotFoundError, WordPieceError
from wordpiece_bert.hub import find_model
from wordpiece_bert.sentence import SentenceEncoder
from wordpiece_bert.sentence.folder import SentenceFolder, read_folder
from wordpiece_bert.tokenizer import Tokenizer
from wordpiece_bert.training_cli import add_commands, contents_facts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import FrameType

    from wordpiece_bert.corpus import EncodeSummary
    from wordpiece_bert.corpus.texts import Fields, ReadingOptions
    from wordpiece_bert.options import EncodeOptions
    from wordpiece_bert.tokenizer import Item

__all__ = ["main"]

PROGRAM = "wordpiece-bert"
# Texts go to the model in groups of this many batches: enough to sort by length within, few enough to show progress.
BATCHES_PER_GROUP = 16
# Places named in one report; the rest is counted. Reasons take more room.
PLACES_SHOWN = 20
REASONS_SHOWN = 5
TEXTS_PRINTED_AT_ONCE = 1024


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
    with warnings.catch_warnings(), _ending_clean():
        warnings.showwarning = _show_warning  # type: ignore[assignment]
        try:
            options.run(options)
            sys.stdout.flush()
        except KeyboardInterrupt:
            if options.debug:
                raise
            print(f"{PROGRAM}: interrupted", file=sys.stderr)
            return 130
        except _EndedError as ended:
            print(f"{PROGRAM}: {ended}", file=sys.stderr)
            return 128 + ended.number
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


class _EndedError(BaseException):
    """The process was told to end. No error that somebody might catch on the way, like KeyboardInterrupt."""

    def __init__(self, number: int) -> None:
        super().__init__(f"ended by {signal.Signals(number).name}")
        self.number = number


@contextmanager
def _ending_clean() -> Iterator[None]:
    """Let signals that would end the process at once unwind it, so that no half-written file stays behind."""

    def end(number: int, _: FrameType | None) -> None:
        raise _EndedError(number)

    before = {}
    if threading.current_thread() is threading.main_thread():
        for name in ("SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) == signal.SIG_DFL:  # nohup stays nohup
                before[number] = signal.signal(number, end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


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
    reading = texts.add_argument_group("what is read")
    reading.add_argument("--whole", action="store_true", help="take each file as one text")
    reading.add_argument(
        "--separator",
        type=_separator,
        default="\n",
        metavar="S",
        help=r"what texts end with, such as \n\n or \0 (default: \n, and \r\n is one as well; empty lines count)",
    )
    reading.add_argument(
        "--jsonl-field",
        action="append",
        default=[],
        metavar="FIELD",
        help="files are JSON lines with the text in this field (text, meta.title); twice for pairs",
    )
    reading.add_argument(
        "--parquet-column",
        action="append",
        default=[],
        metavar="COLUMN",
        help="files are Parquet with the texts in this column; twice for pairs",
    )
    reading.add_argument(
        "--errors",
        choices=["strict", "replace", "skip"],
        default="strict",
        help="a text that cannot be read is an error, has wrong bytes replaced, or is left out (default: strict)",
    )

    embed = commands.add_parser(
        "embed",
        parents=[common, texts],
        help="text files to vectors",
        description="Turn every text into a vector, and write them as one NumPy array, float32 [texts, width].",
    )
    embed.add_argument(
        "files", nargs="+", metavar="FILE", help="UTF-8 text file, also .gz or .zst; - is standard input"
    )
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
        description="Turn texts into token ids: printed, one JSON object for each text, or with --output written to a "
        "file, of corpora that may be larger than memory. Nothing is cut unless --max-length is given.",
    )
    encode.add_argument(
        "files", nargs="*", metavar="FILE", help="UTF-8 text file, also .gz or .zst; - is standard input"
    )
    encode.add_argument("-t", "--text", action="append", default=[], help="a text; may be repeated")
    encode.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help="write to this .npy, .arrow, .parquet or .jsonl; it is there when all of it is",
    )
    encode.add_argument(
        "-v",
        "--vocab",
        default="minilm",
        help="vocab.txt, tokenizer.json, a folder, minilm, or a cached org/name (default: minilm)",
    )
    encode.add_argument("--cased", action="store_true", help="with a vocab.txt: keep upper case and accents")

    rows = encode.add_argument_group("what a row is")
    rows.add_argument("--tokens", action="store_true", help="add the tokens (printed only)")
    rows.add_argument("--offsets", action="store_true", help="add where each token stands, in characters")
    rows.add_argument("--word-ids", action="store_true", help="add which word each token belongs to")
    rows.add_argument("--no-special-tokens", action="store_true", help="leave out [CLS] and [SEP]")
    rows.add_argument("--max-length", type=_positive, metavar="N", help="cut after N tokens and tell what was cut")
    rows.add_argument("--padding", action="store_true", help="fill rows up to --max-length: .npy is then [rows, N]")
    rows.add_argument(
        "--dtype",
        choices=ID_DTYPES,
        default="uint32",
        help="number type of the ids in a file (default: uint32; uint16 holds vocabularies up to 65,536)",
    )
    encode.add_argument("--threads", type=_positive, metavar="N", help="threads (default: as many as there are)")
    encode.add_argument(
        "-q", "--quiet", action="store_true", help="no progress, no summary; warnings and errors remain"
    )
    encode.set_defaults(run=_encode)

    add_commands(commands, common=common, texts=texts, reading=_reading, load_tokenizer=_load_tokenizer)

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
    check_output(options.output, [".npy"], "vectors")
    if len(options.jsonl_field) > 1 or len(options.parquet_column) > 1:
        message = "a vector belongs to one text: give one --jsonl-field or --parquet-column"
        raise InputError(message)
    texts = TextReader(options.files, block_texts=BATCHES_PER_GROUP * options.batch_size, **_reading(options))
    encoder = SentenceEncoder.from_pretrained(options.model, threads=options.threads)
    places_cut: list[str] = []

    with (
        NpyWriter(options.output, (encoder.dimension,), np.float32) as rows,
        progress(texts, show=False if options.quiet else None) as show_progress,
    ):
        rows.begin()
        for block in texts:
            vectors, truncated = encoder.encode(
                block.texts(),
                batch_size=options.batch_size,
                normalize_embeddings=options.normalize,
                return_truncated=True,
            )
            rows.append(vectors)
            places_cut += map(block.place, np.flatnonzero(truncated).tolist())
            show_progress()
        rows.commit()
    _tell_left_out(texts.skipped_count, texts.skipped)
    _tell_cut(
        len(places_cut),
        places_cut,
        f" of {_counted(texts.count, 'text')} cut at the model's {encoder.max_seq_length} tokens",
    )
    if not options.quiet:
        seconds = time.perf_counter() - start
        print(
            f"{options.output}: {_counted(rows.shape[0], 'vector')} of {rows.shape[1]} {rows.dtype} ({seconds:.1f} s)",
            file=sys.stderr,
        )


def _tell_cut(count: int, places: Sequence[str], how: str = "") -> None:
    if count:
        shown = places[:PLACES_SHOWN]
        more = f" and {count - len(shown):,} more" * (count > len(shown))
        counted = f"{count:,}{how}" if how else f"{_counted(count, 'text')} cut"
        print(f"{PROGRAM}: warning: {counted}: {', '.join(shown)}{more}", file=sys.stderr)


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


# --- encode


def _encode(options: argparse.Namespace) -> None:
    if bool(options.files) == bool(options.text):
        message = "give either files or --text"
        raise InputError(message)
    if options.output and (options.text or options.tokens):
        message = "--output takes no --text and no --tokens: print them, or redirect what is printed into a file"
        raise InputError(message)
    if options.padding and options.max_length is None:
        message = "--padding fills rows up to --max-length: give that too"
        raise InputError(message)
    tokenizer = _load_tokenizer(options.vocab, cased=options.cased)
    asked: EncodeOptions = {
        "add_special_tokens": not options.no_special_tokens,
        "truncation": options.max_length is not None,
        "max_length": options.max_length,
        "padding": "max_length" if options.padding else False,
    }
    if options.text:
        places = [f"--text {options.text[i]!r}" for i in _print_rows(tokenizer, options.text, asked, options)]
        sys.stdout.flush()
        _tell_cut(len(places), places)
        return
    if options.output:
        summary = tokenizer.encode_files(
            options.files,
            options.output,
            dtype=options.dtype,
            show_progress_bar=False if options.quiet else None,
            return_offsets=options.offsets,
            return_word_ids=options.word_ids,
            threads=options.threads,
            **_reading(options),
            **asked,
        )
        _tell(summary, options)
        return
    texts = TextReader(options.files, block_texts=TEXTS_PRINTED_AT_ONCE, **_reading(options))
    places_cut: list[str] = []
    for block in texts:
        places_cut += map(block.place, _print_rows(tokenizer, block.texts(), asked, options))
    sys.stdout.flush()
    _tell_left_out(texts.skipped_count, texts.skipped)
    _tell_cut(len(places_cut), places_cut)


def _print_rows(
    tokenizer: Tokenizer, texts: list[Item], asked: EncodeOptions, options: argparse.Namespace
) -> list[int]:
    """Print a line of JSON for each text; returns which were cut."""
    batch = tokenizer.encode_batch(
        texts, return_offsets=options.offsets, return_word_ids=options.word_ids, threads=options.threads, **asked
    )
    table = Table.of(batch, dtype=np.dtype(options.dtype), first_text=0, truncated=options.max_length is not None)
    tokens = [row.tokens for row in tokenizer.encodings(texts, **asked)] if options.tokens else None
    # JSON lines are UTF-8, whatever the terminal's encoding is.
    sys.stdout.buffer.write("".join(json_lines(table, tokens)).encode())
    return np.flatnonzero(batch.truncated).tolist()


def _tell(summary: EncodeSummary, options: argparse.Namespace) -> None:
    """Say what became of the files."""
    _tell_left_out(summary.skipped, summary.skipped_reasons)
    _tell_cut(summary.truncated, summary.truncated_places)
    if not options.quiet:
        speed = summary.bytes / 1e6 / max(summary.seconds, 1e-9)
        print(
            f"{options.output}: {_counted(summary.tokens, 'token')} in {_counted(summary.rows, 'row')} of "
            f"{_counted(summary.texts, 'text')} ({summary.bytes / 1e6:,.1f} MB in {summary.seconds:.1f} s, "
            f"{speed:,.0f} MB/s)",
            file=sys.stderr,
        )


def _tell_left_out(count: int, reasons: Sequence[str]) -> None:
    if count:
        told = "; ".join(reasons[:REASONS_SHOWN]) + (f"; and {count - REASONS_SHOWN:,} more" * (count > REASONS_SHOWN))
        print(f"{PROGRAM}: warning: {_counted(count, 'text')} left out: {told}", file=sys.stderr)


def _reading(options: argparse.Namespace) -> ReadingOptions:
    """Say how files are read."""
    if options.whole and options.separator != "\n":
        message = "give either --whole or --separator"
        raise InputError(message)
    return {
        "separator": None if options.whole else options.separator,
        "field": _one_or_two(options.jsonl_field, "--jsonl-field"),
        "column": _one_or_two(options.parquet_column, "--parquet-column"),
        "errors": options.errors,
    }


def _one_or_two(names: list[str], option: str) -> Fields | None:
    """Read an option that names a field or column, or two for pairs."""
    if len(names) > 2:
        message = f"{option} is given {len(names)} times: once, or twice for pairs"
        raise InputError(message)
    return (names[0], names[1]) if len(names) == 2 else names[0] if names else None


def _separator(written: str) -> str:
    r"""Read a separator from the command line, where \n, \r, \t, \0 and \\ stand for what they usually do."""
    marks = {r"\n": "\n", r"\r": "\r", r"\t": "\t", r"\0": "\0", r"\\": "\\"}
    separator = re.sub(r"\\.", lambda mark: marks.get(mark[0], mark[0]), written)
    if not separator:
        message = "is empty; to take each file as one text, use --whole"
        raise argparse.ArgumentTypeError(message)
    return separator


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
    tokenizer = _load_tokenizer(source)
    facts |= {"tokenizer": _tokenizer_facts(tokenizer), "contents": contents_facts(tokenizer)}
    if options.json:
        print(json.dumps(facts, indent=2))
        return
    width = 2 + max(len(name) for lines in facts.values() for name in lines)
    for title, lines in facts.items():
        print(title.replace("_", " "))
        for name, value in lines.items():
            print(f"  {name.replace('_', ' '):<{width}}{_shown(value)}")


def _sentence_facts(sentence: SentenceFolder) -> dict[str, object]:
    return {
        "pooling": list(sentence.pooling.modes),
        "then": [type(module).__name__ for module in sentence.modules],
        "longest_text": sentence.max_seq_length,
        "vector_width": sentence.dimension,
    }


def _model_facts(folder: Path) -> dict[str, object]:
    """What the folder says about its model; the weights are named, not read."""
    config = read_config(folder)
    facts: dict[str, object] = {
        "architectures": list(config.architectures),
        "layers": config.encoder_layers,
        "hidden_size": config.hidden_size,
        "heads": config.num_attention_heads,
        "intermediate_size": config.intermediate_size,
        "activation": config.hidden_act,
        "longest_row": config.longest_row,
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
