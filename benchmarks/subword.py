"""The command `subword`: what share of a call tokenizers of the package `tokenizers` take.

Models of MiniLM's width have random weights and one of two tokenizers: Unigram as XLM-RoBERTa's, its pieces the most
frequent beginnings and ends of words, and byte-level BPE as ModernBERT's, trained here. A static model has the first.
CPU time of all threads is counted, of a whole call and of the calls of the tokenizer in it; of several rounds, the one
with the least time counts.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import math
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

import wordpiece_bert as wb
from benchmarks import report
from benchmarks.texts import QUICK_BYTES, Source
from wordpiece_bert import CrossEncoder, SentenceEncoder, bert, tasks
from wordpiece_bert.bert.checkpoint.safetensors import write_safetensors
from wordpiece_bert.bert.parts import layout_of
from wordpiece_bert.serve import ServerSettings
from wordpiece_bert.serve.kinds.outputs import MakesVectors
from wordpiece_bert.serve.kinds.served_model import Options
from wordpiece_bert.serve.metrics import Metrics
from wordpiece_bert.serve.models import Models
from wordpiece_bert.tokenizer.subword import SubwordTokenizer

WIDTH = 384
LAYERS = 6
STATIC_WIDTH = 256
PIECES = {"unigram": 250_000, "bpe": 50_000}

_SPECIAL = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
#: The longest piece of the Unigram vocabulary, and the longest word that is counted, in characters.
_LONGEST_PIECE, _LONGEST_WORD = 12, 40
#: Calls of the tokenizer whose time is counted.
_CALLS = ("encode_batch", "encodings")
_QUERIES = 16
_LABELS = ("sport", "politics", "music", "science")


def main(arguments: list[str]) -> int:
    """Run the command; return 0."""
    parser = argparse.ArgumentParser(prog="benchmarks subword", description=__doc__)
    parser.add_argument("--corpora", type=Path, help="folder with multilingual.txt (default: the project's own texts)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument(
        "--texts", type=int, default=256, help="of a call of a model; a static model has 40 times as many"
    )
    parser.add_argument("--dtype", default="float32", help="of the models that are not static")
    parser.add_argument("--quick", action="store_true", help="little text and small models, to check that it works")
    parser.add_argument("--record", type=Path, nargs="?", const=report.RECORDS, help="save the results in this folder")
    options = parser.parse_args(arguments)
    wb.set_num_threads(options.threads)  # for tasks, which are loaded without a number
    try:
        return _measure(options)
    finally:
        wb.set_num_threads(None)


def _measure(options: argparse.Namespace) -> int:
    source = Source(options.corpora, QUICK_BYTES // 4 if options.quick else None)
    parts = [report.heading("Tokenizers that are not WordPiece: their share of a call", source.describe())]
    print(parts[0], flush=True)
    figures = []
    with tempfile.TemporaryDirectory() as parent, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for kind in PIECES:
            found = _Measured(Path(parent) / kind, kind, source, options)
            parts.append(found.report())
            figures.append(found.figures())
            print(parts[-1], flush=True)
    if options.record:
        print(report.save("subword", "\n".join(parts), {"tokenizers": figures}, options.record))
    return 0


class _Measured:
    """The measurements with one tokenizer."""

    def __init__(self, parent: Path, kind: str, source: Source, options: argparse.Namespace) -> None:
        self.kind = kind
        self.options = options
        lines = source.lines("many")
        order = np.random.default_rng(0).permutation(len(lines))
        texts = [lines[i][:600] for i in order]
        parent.mkdir()
        width, layers = (32, 1) if options.quick else (WIDTH, LAYERS)
        makers = {"unigram": unigram, "bpe": byte_level}
        tokenizer = makers[kind](lines, 500 if options.quick else PIECES[kind])
        self.pieces = tokenizer.get_vocab_size()
        folders = {name: model_folder(parent / name, kind, name, tokenizer, width, layers) for name in _heads(kind)}
        calls = paths(folders, kind, texts, options)
        if kind == "unigram":
            static = static_folder(parent / "static", tokenizer, width if options.quick else STATIC_WIDTH)
            calls |= static_paths(static, texts[: 40 * options.texts], options)
        self.rows = [(label, *_times(call, options.rounds)) for label, call in calls.items()]

    def report(self) -> str:
        """Return the table."""
        header = ["", "seconds", "CPU s", "tokenizer, CPU s", "share"]
        cells = [
            [label, f"{wall:.3f}", f"{cpu:.3f}", f"{own:.3f}", f"{own / cpu:.1%}"]
            for label, wall, cpu, own in self.rows
        ]
        threads = self.options.threads
        title = f"## {self.kind}, {self.pieces:,} tokens, {self.options.dtype}, {threads} thread{'s' * (threads != 1)}"
        return "\n".join([title, "", *report.markdown(header, cells), ""])

    def figures(self) -> dict[str, Any]:
        """Return the figures as JSON values."""
        names = ("path", "seconds", "cpu", "tokenizer_cpu")
        return {
            "tokenizer": self.kind,
            "tokens": self.pieces,
            "dtype": self.options.dtype,
            "threads": self.options.threads,
            "texts": self.options.texts,
            "rows": [dict(zip(names, row, strict=True)) for row in self.rows],
        }


def _heads(kind: str) -> dict[str, tuple[str, int]]:
    """Return the class and the number of labels of each model."""
    name = {"unigram": "XLMRoberta", "bpe": "ModernBert"}[kind]
    return {
        "encoder": (f"{name}Model", 2),
        "pairs": (f"{name}ForSequenceClassification", 3),
        "words": (f"{name}ForMaskedLM", 2),
        "tokens": (f"{name}ForTokenClassification", 9),
    }


def unigram(lines: list[str], size: int) -> Any:
    """Return a Unigram tokenizer with the pipeline of XLM-RoBERTa; NFKC stands for its table of characters."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    words = Counter(f"▁{word[:_LONGEST_WORD]}" for line in lines for word in line.split())
    parts: Counter[str] = Counter()
    for word, count in words.items():
        for length in range(1, min(len(word), _LONGEST_PIECE) + 1):
            parts[word[:length]] += count
            parts[word[-length:]] += count
    best = sorted(parts, key=lambda part: (-parts[part] * len(part), part))
    kept = dict.fromkeys([*sorted({letter for word in words for letter in word}), *best])
    pieces = sorted([*kept][:size], key=lambda part: -parts[part])
    total = sum(parts[part] for part in pieces)
    vocabulary = [(token, 0.0) for token in _SPECIAL]
    vocabulary += [(part, math.log(max(parts[part], 1) / total)) for part in pieces]
    tokenizer = Tokenizer(models.Unigram(vocabulary, unk_id=_SPECIAL.index("<unk>"), byte_fallback=False))
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    tokenizer.add_special_tokens(list(_SPECIAL))
    return tokenizer


def byte_level(lines: list[str], size: int) -> Any:
    """Return a byte-level BPE tokenizer with the pipeline of ModernBERT, trained on the texts."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=size, initial_alphabet=alphabet, special_tokens=list(_SPECIAL), show_progress=False
    )
    tokenizer.train_from_iterator(lines, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    return tokenizer


def model_folder(folder: Path, kind: str, name: str, tokenizer: Any, width: int, layers: int) -> Path:
    """Write a model with random weights."""
    cls_name, labels = _heads(kind)[name]
    cls: Any = getattr(bert, cls_name)
    config_class: Any = bert.XLMRobertaConfig if kind == "unigram" else bert.ModernBertConfig
    names = ["entailment", "neutral", "contradiction"] if name == "pairs" else [f"L{i}" for i in range(labels)]
    config = config_class(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=width,
        intermediate_size=4 * width if kind == "unigram" else 3 * width // 2,
        num_hidden_layers=layers,
        num_attention_heads=width // 32,
        pad_token_id=1,
        max_position_embeddings=514 if kind == "unigram" else 8192,
        id2label=dict(enumerate(names)),
    )
    random, weights = np.random.default_rng(0), {}
    layout = layout_of(cls, config)
    shapes = {f"{layout.prefix if layout.head else ''}{key}": shape for key, shape in layout.base.items()}
    for key, sizes in (shapes | dict(layout.head)).items():
        if key in layout.tied and config.tie_word_embeddings:
            continue
        shape = [getattr(config, size) if isinstance(size, str) else size for size in sizes]
        drawn = random.standard_normal((min(shape[0], 4 * width), *shape[1:]), np.float32) * np.float32(0.02)
        weights[key] = np.resize(drawn, shape)  # rows of the word table are repeated
        if len(shape) == 1 and key.endswith("weight"):
            weights[key] += 1
    cls(config, weights, backend="numpy").save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {"model_max_length": 512, "mask_token": "<mask>", "pad_token": "<pad>", "unk_token": "<unk>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder


def static_folder(folder: Path, tokenizer: Any, width: int) -> Path:
    """Write a model2vec folder with random vectors."""
    folder.mkdir()
    tokenizer.save(str(folder / "tokenizer.json"))
    table = np.random.default_rng(1).standard_normal((tokenizer.get_vocab_size(), width), np.float32)
    write_safetensors(folder / "model.safetensors", {"embeddings": table})
    (folder / "config.json").write_text(json.dumps({"model_type": "model2vec", "normalize": True}))
    modules = [{"idx": 0, "name": "0", "path": ".", "type": "sentence_transformers.models.StaticEmbedding"}]
    (folder / "modules.json").write_text(json.dumps(modules))
    return folder


def paths(
    folders: dict[str, Path], kind: str, texts: list[str], options: argparse.Namespace
) -> dict[str, Callable[[], Any]]:
    """Return a call of each path."""
    texts = texts[: options.texts]
    pairs = [(texts[i * min(_QUERIES, len(texts)) // len(texts)], text) for i, text in enumerate(texts)]
    masked = [f"{text[:200]} <mask>" for text in texts]
    loading: dict[str, Any] = {"dtype": options.dtype}
    encoder = SentenceEncoder(folders["encoder"], threads=options.threads, **loading)
    ranker = CrossEncoder(folders["pairs"], threads=options.threads, **loading)
    entailment, words, tokens = (tasks.load(folders[name], **loading) for name in ("pairs", "words", "tokens"))
    served = Models({"m": encoder}, ServerSettings(), {}, Metrics())

    async def embed() -> None:
        for text in texts:
            await served.of_kind(MakesVectors, None).embed([text], Options())

    few = texts[: max(1, len(texts) // len(_LABELS))]
    return {
        "SentenceEncoder.encode": lambda: encoder.encode(texts),
        f"CrossEncoder.predict, {_QUERIES} queries": lambda: ranker.predict(pairs),
        f"tasks.zero_shot, {len(_LABELS)} labels": lambda: tasks.zero_shot(entailment, few, list(_LABELS)),
        "tasks.fill_mask": lambda: tasks.fill_mask(words, masked),
        "tasks.ner": lambda: tasks.ner(tokens, texts),
        "server, one text a request": lambda: asyncio.run(embed()),
    }


def static_paths(folder: Path, texts: list[str], options: argparse.Namespace) -> dict[str, Callable[[], Any]]:
    """Return the calls of a static model."""
    encoder = SentenceEncoder(folder, threads=options.threads)
    return {"static model, SentenceEncoder.encode": lambda: encoder.encode(texts)}


def _times(call: Callable[[], Any], rounds: int) -> tuple[float, float, float]:
    """Return the seconds, the CPU seconds and the tokenizer's CPU seconds of the round with the least CPU seconds."""
    best = (math.inf, math.inf, math.inf)
    for _ in range(rounds):
        with _counted() as spent:
            wall, cpu = perf_counter(), process_time()
            call()
            cpu = process_time() - cpu
            best = min(best, (perf_counter() - wall, cpu, spent[0]), key=lambda times: times[1])
    return best


@contextlib.contextmanager
def _counted() -> Iterator[list[float]]:
    """Count the CPU seconds of the tokenizer's calls meanwhile."""
    spent = [0.0]
    originals = {name: getattr(SubwordTokenizer, name) for name in _CALLS}

    def counting(name: str) -> Callable[..., Any]:
        def run(*arguments: Any, **named: Any) -> Any:
            start = process_time()
            try:
                return originals[name](*arguments, **named)
            finally:
                spent[0] += process_time() - start

        return run

    for name in _CALLS:
        setattr(SubwordTokenizer, name, counting(name))
    try:
        yield spent
    finally:
        for name, original in originals.items():
            setattr(SubwordTokenizer, name, original)
