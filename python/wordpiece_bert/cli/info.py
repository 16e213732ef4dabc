"""``wordpiece-bert info``: the contents of a vocabulary, a tokenizer or a model folder."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from wordpiece_bert._internal.parts import core_of
from wordpiece_bert.cli import arguments
from wordpiece_bert.cli.messages import print_verbose
from wordpiece_bert.cli.parser import add_model_option
from wordpiece_bert.errors import ModelNotFoundError

if TYPE_CHECKING:
    import argparse

    from wordpiece_bert.sentence.folders.sparse import Route
    from wordpiece_bert.tokenizer.tokenizer import Tokenizer


def add_parser(commands: arguments.Commands, summary: str) -> None:
    """Declare the subcommand."""
    parser = commands.add_parser(
        "info",
        parents=[arguments.common_options()],
        help=summary,
        description="Show what a vocabulary, a tokenizer or a model contains, and which versions of what are here.",
    )
    parser.add_argument(
        "target",
        nargs="?",
        metavar="VOCAB|MODEL",
        help="a file, a folder, minilm, or org/name in the Hugging Face cache; without it, only versions and threads",
    )
    add_model_option(parser, "VOCAB|MODEL")
    arguments.add_running(parser, run, threads=False)


def run(options: argparse.Namespace) -> None:
    """Print the facts about the target and this machine, as text or JSON."""
    facts = {} if options.target is None else _target_facts(options, options.target)
    facts |= {"threads": _threads_facts(), "versions": _versions_facts()}
    if options.json:
        import json

        print(json.dumps(facts, indent=2))
        return
    width = 2 + max(len(name) for lines in facts.values() for name in lines)
    for title, lines in facts.items():
        print(title.replace("_", " "))
        for name, value in lines.items():
            print(f"  {name.replace('_', ' '):<{width}}{_shown(value)}")


def _target_facts(options: argparse.Namespace, source: str) -> dict[str, dict[str, object]]:
    """Return the facts about a vocabulary, a tokenizer or a model."""
    from wordpiece_bert.hub import check_packaged, find_model, packaged_model
    from wordpiece_bert.tokenizer.pretrained import words_found_by
    from wordpiece_bert.tokenizer.subword import SubwordTokenizer, is_subword

    facts: dict[str, dict[str, object]] = {}
    if not Path(source).is_file():
        folder = find_model(source, download=options.download)
        print_verbose(options, f"{source}: {folder}")
        if (packaged := packaged_model(source, folder)) is not None:
            check_packaged(source, folder)
            facts["package"] = {"answers_for": source, "package": packaged.distribution, "sha256": packaged.sha256}
        facts |= _m3(folder) | _classifier(folder)
        encoder, folder = _encoder_facts(folder)
        facts |= encoder
        if "static_encoder" not in facts and any(
            (folder / name).exists() for name in ("config.json", "bert_config.json")
        ):
            facts["model"] = _model_facts(folder)
            facts["engine"] = _engine_facts(folder)
        source = str(folder)
    if Path(source).is_dir() and is_subword(source):
        facts["tokenizer"] = SubwordTokenizer(source).facts()
    elif Path(source).is_dir() and (program := words_found_by(Path(source))) is not None:
        facts["tokenizer"] = {"words_found_by": program, "loaded_with": "word_splitter"}
    else:
        tokenizer = arguments.load_tokenizer(source)
        facts |= {"tokenizer": _tokenizer_facts(tokenizer), "contents": _contents_facts(tokenizer)}
    return facts


def _encoder_facts(folder: Path) -> tuple[dict[str, dict[str, object]], Path]:
    """Return the facts about the encoder that a folder is for, if any, and the folder of its model and tokenizer."""
    from wordpiece_bert.sentence.folders.kinds import MULTI_VECTOR, SENTENCE, SPARSE, STATIC, kind_of

    kind = kind_of(folder)
    describe = {SPARSE: _sparse, MULTI_VECTOR: _multi_vector, STATIC: _static, SENTENCE: _sentence}.get(kind)
    if describe is None or (kind is SENTENCE and not (folder / "modules.json").exists()):
        return {}, folder
    facts, home = describe(folder)
    return {kind.name.replace("-", " ").replace(" ", "_"): facts}, home


def _m3(folder: Path) -> dict[str, dict[str, object]]:
    """Return the facts about the heads of a folder of BGE-M3; none for another folder."""
    from wordpiece_bert.bert.auto import read_config
    from wordpiece_bert.bert.functional import linear
    from wordpiece_bert.sentence.m3.heads import SPARSE_FILE, VECTORS_FILE, read_heads

    if not all((folder / name).is_file() for name in (SPARSE_FILE, VECTORS_FILE)):
        return {}
    heads = read_heads(folder, read_config(folder).hidden_size, linear)
    return {"m3_encoder": {"outputs": ["dense", "sparse", "colbert"], "token_vector_width": len(heads.vectors[0])}}


def _classifier(folder: Path) -> dict[str, dict[str, object]]:
    """Return the facts about a head on the vectors of a folder's encoder; none without one."""
    from wordpiece_bert.sentence.dense.static_classifier import has_static_head, read_head
    from wordpiece_bert.sentence.folders.kinds import STATIC, kind_of
    from wordpiece_bert.tasks.task_loading import has_frozen_head

    if has_frozen_head(folder):
        from wordpiece_bert.finetune.frozen_classifier import read_settings

        settings = read_settings(folder)
        takes = "pairs of texts" if settings.get("pairs") else "texts"
        return {"classifier": {"head": settings.get("head"), "takes": takes, "labels": settings.get("labels")}}
    if has_static_head(folder) and kind_of(folder) is STATIC:
        layers, activation, classes = read_head(folder)
        labels = None if classes is None else list(map(str, classes.tolist()))
        return {"classifier": {"head": f"{len(layers)} layers", "activation": activation, "labels": labels}}
    return {}


def _sentence(home: Path) -> tuple[dict[str, object], Path]:
    from wordpiece_bert.sentence.folders.modules import read_folder

    sentence = read_folder(home)
    facts: dict[str, object] = {
        "pooling": list(sentence.pooling.modes),
        "then": [type(module).__name__ for module in sentence.modules],
        "longest_text": sentence.max_seq_length,
        "vector_width": sentence.dimension,
    }
    return facts, sentence.transformer


def _static(home: Path) -> tuple[dict[str, object], Path]:
    from wordpiece_bert.sentence.folders.static import read_static_folder

    parts = read_static_folder(home)
    folder, (rows, width, tokens) = parts.folder, parts.embeddings.shape
    facts: dict[str, object] = {
        "layout": folder.layout,
        "tokens": tokens,
        "rows": rows,
        "row_width": width,
        "number_type": folder.dtype,
        "then": [type(module).__name__ for module in folder.modules],
        "longest_text": None if folder.max_seq_length == sys.maxsize else folder.max_seq_length,
        "vector_width": folder.dimension,
    }
    return facts, folder.transformer


def _sparse(home: Path) -> tuple[dict[str, object], Path]:
    from wordpiece_bert.sentence.folders.sparse import SpladeFolder, read_sparse_folder

    def described(route: Route) -> str:
        if isinstance(route, SpladeFolder):
            return f"model, {route.pooling} of the tokens"
        return "a weight for each token"

    sparse = read_sparse_folder(home)
    routes = sparse.routes
    models = [route.transformer for route in routes.values() if isinstance(route, SpladeFolder)]
    facts: dict[str, object] = {
        "routes": {name or "all texts": described(route) for name, route in routes.items()},
        "longest_text": {name or "all texts": route.max_seq_length for name, route in routes.items()},
        "similarity": sparse.similarity,
        "most_values": sparse.max_active_dims,
    }
    return facts, models[0] if models else home


def _multi_vector(home: Path) -> tuple[dict[str, object], Path]:
    from wordpiece_bert.sentence.folders.modules import Dense
    from wordpiece_bert.sentence.folders.multi_vector import read_multi_vector_folder

    multi = read_multi_vector_folder(home)
    widths = [len(module.weight) for module in multi.modules if isinstance(module, Dense)]
    facts: dict[str, object] = {
        "then": [type(module).__name__ for module in multi.modules],
        "longest_query": multi.query_length or multi.max_seq_length,
        "longest_document": multi.document_length or multi.max_seq_length,
        "similarity": multi.similarity,
    }
    return facts | ({"vector_width": widths[-1]} if widths else {}), multi.transformer


def _model_facts(folder: Path) -> dict[str, object]:
    """Return the facts in the configuration, with the path and size of the weights, which are not read."""
    from wordpiece_bert.bert.auto import read_config
    from wordpiece_bert.bert.checkpoint import find_weights

    config = read_config(folder)
    facts: dict[str, object] = {
        "architectures": list(config.architectures),
        "layers": config.encoder_layers,
        "hidden_size": config.hidden_size,
        "heads": config.num_attention_heads,
        "intermediate_size": config.intermediate_size,
        "activation": config.hidden_act,
        "longest_row": config.usual_longest_row,
        "weights": None,
    }
    with suppress(ModelNotFoundError):  # a folder without weights still has a configuration to show
        weights = find_weights(folder)
        facts |= {"weights": str(weights), "bytes": weights.stat().st_size}
    return facts


def _engine_facts(folder: Path) -> dict[str, object]:
    """Return the dtypes of the model, and how it computes on this machine with ``dtype="auto"``."""
    from dataclasses import asdict

    from wordpiece_bert._internal.safe_json import read_object
    from wordpiece_bert.bert.config import find_config
    from wordpiece_bert.bert.engines.choice import AUTO, DTYPES, choose_dtype, describe_engine
    from wordpiece_bert.bert.quantized import QUANTIZATION
    from wordpiece_bert.errors import ConfigError

    is_quantized = read_object(find_config(folder), ConfigError).get("quantization_config") == QUANTIZATION
    dtypes = ("int8",) if is_quantized else DTYPES["rust"]
    facts = asdict(describe_engine("rust", choose_dtype("rust", "int8" if is_quantized else AUTO), requested=AUTO))
    return {"dtypes": [*dtypes, AUTO], "auto": facts.pop("dtype"), **facts}


def _threads_facts() -> dict[str, object]:
    """Return how many threads a call uses by default, and what decided it."""
    from wordpiece_bert._core import default_threads

    return dict(zip(("default", "decided_by"), default_threads(), strict=True))


def _versions_facts() -> dict[str, object]:
    """Return the versions of what computes, which a report of an error needs."""
    import os
    import platform

    import numpy as np

    from wordpiece_bert import _core
    from wordpiece_bert._internal.numerics import IDS, VECTORS

    cpu, instructions, *_ = _core.describe_products("float32")
    variable = "WORDPIECE_BERT_INSTRUCTION_SET"
    return {
        "wordpiece_bert": _core.__version__,
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "numpy": np.__version__,
        "system": platform.platform(),
        "cpu": cpu,
        "instructions": instructions,
        "instructions_decided_by": variable if os.environ.get(variable, "").strip() else "the CPU",
        "instruction_sets": _core.kernel_instruction_sets(),
        "numerics": {"ids": IDS, **VECTORS},
    }


def _tokenizer_facts(tokenizer: Tokenizer) -> dict[str, object]:
    from wordpiece_bert.tokenizer.vocabulary_remarks import unreachable_tokens

    roles = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
    special = {token: tokenizer.token_to_id(token) for role in roles if (token := getattr(tokenizer, role)) is not None}
    core = core_of(tokenizer)
    normalizer = core.bert_normalizer
    facts: dict[str, object] = {
        "vocabulary": tokenizer.vocab_size,
        "with_added_tokens": len(tokenizer),
        "special_tokens": special,
        "special_tokens_of_a_row": tokenizer.num_special_tokens_to_add(),
    }
    if normalizer is not None:
        facts["lower_case"] = normalizer.lowercase
        if remarks := unreachable_tokens(core, normalizer):
            facts["remarks"] = remarks
    return facts | {"fingerprint": tokenizer.fingerprint}


def _contents_facts(tokenizer: Tokenizer) -> dict[str, object]:
    from wordpiece_bert.training import vocab_contents

    contents = vocab_contents(
        tokenizer.get_vocab(with_added_tokens=False),
        tokenizer.all_special_tokens,
        continuing_subword_prefix=core_of(tokenizer).continuing_subword_prefix,
    ).to_dict()
    # A (token, id) tuple is shown, and written as JSON, as a mapping with one entry.
    return {name: dict([value]) if isinstance(value, tuple) else value for name, value in contents.items()}


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_shown(one)}" for key, one in value.items())
    if isinstance(value, list):
        return ", ".join(_shown(one) for one in value) or "none"
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)
