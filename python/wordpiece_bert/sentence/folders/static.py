"""The folders of static models: model2vec's, and sentence-transformers' StaticEmbedding.

Both have a ``tokenizer.json`` and a table of token vectors. The name of the tensor decides which rules apply:
``embeddings`` is model2vec's, ``embedding.weight`` sentence-transformers'. A folder of model2vec also has a
``modules.json`` for sentence-transformers, which then follows its own rules; here model2vec's hold.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from wordpiece_bert import _core
from wordpiece_bert._internal.safe_json import JsonObject, quoted, read_object
from wordpiece_bert.bert.checkpoint import find_weights
from wordpiece_bert.bert.checkpoint.files import open_tensors
from wordpiece_bert.bert.checkpoint.safetensors import AnyArray, safetensors_chunks
from wordpiece_bert.bert.half_precision import BFLOAT16, is_half, to_bfloat16
from wordpiece_bert.bert.stored_tensor import StoredTensor, loaded_all
from wordpiece_bert.errors import CheckpointError, ConfigError
from wordpiece_bert.sentence.folders.kinds import is_model2vec
from wordpiece_bert.sentence.folders.modules import Normalize, SentenceFolder, read_model_settings, read_modules_after
from wordpiece_bert.sentence.folders.reading import list_modules, refuse, setting
from wordpiece_bert.tokenizer.subword import SubwordTokenizer, is_subword
from wordpiece_bert.tokenizer.tokenizer import Tokenizer

if TYPE_CHECKING:
    from pathlib import Path

    from wordpiece_bert._internal.atomic_folder import AtomicFolder
    from wordpiece_bert.tokenizer.subword import AnyTokenizer

Layout = Literal["model2vec", "sentence-transformers"]

_KIND = "StaticEmbedding"
_MODULES = (_KIND, "Dense", "LayerNorm", "Normalize", "Dropout")
# What model2vec uses if its config.json has no max_length.
_MAX_LENGTH = 512


@dataclass(frozen=True, kw_only=True)
class StaticFolder(SentenceFolder):
    """Everything in a folder of a static model except the table and the tokenizer.

    `max_seq_length` is ``sys.maxsize`` if texts are not cut.
    """

    #: Whose rules apply.
    layout: Layout
    #: The number type of the table in the file.
    dtype: str
    #: The table's tokens are divided by their length, or by this number if that is larger; None: they are not.
    least_length: float | None


class StaticParts(NamedTuple):
    """A static model."""

    folder: StaticFolder
    tokenizer: AnyTokenizer
    embeddings: _core.StaticEmbeddings


def list_static_modules(folder: Path) -> list[tuple[str, Path]]:
    """Return the kind and the folder of each module; the first has the table and the tokenizer."""
    listing = folder / "modules.json"
    modules = list_modules(listing, _MODULES) if listing.is_file() else [(_KIND, folder)]
    if not modules:
        raise ConfigError(f"{listing}: lists no modules: a static model begins with a module {_KIND}")
    return modules


def read_static_folder(folder: Path) -> StaticParts:
    """Read a static model.

    Raises
    ------
    ConfigError
        A file is malformed, or names a module or a setting that is not supported.
    CheckpointError
        The table is missing or malformed, or does not fit the tokenizer.
    TokenizerFormatError
        The tokenizer is not supported.
    ImportError
        The tokenizer is not WordPiece, and the package ``tokenizers`` is not installed.
    """
    modules = list_static_modules(folder)
    home = modules[0][1]
    weights = find_weights(home)
    with open_tensors(weights) as stored:
        dtypes = {name: _dtype(tensor) for name, tensor in stored.items()}
        tensors = loaded_all(stored)
    tokenizer = SubwordTokenizer(home) if is_subword(home) else Tokenizer.from_file(home / "tokenizer.json")
    name = next((name for name in ("embeddings", "embedding.weight") if name in tensors), None)
    if name is None:
        raise CheckpointError(f"{weights}: has no tensor embeddings or embedding.weight, only {quoted(list(tensors))}")
    mapping, factors = (tensors.get(key) if name == "embeddings" else None for key in ("mapping", "weights"))
    embeddings = _embeddings(weights, name, tensors[name], mapping, factors)
    _check_tokens(weights, name, embeddings, tokenizer, mapped=mapping is not None)
    read = _model2vec_settings if name == "embeddings" else _sentence_settings
    return StaticParts(read(folder, modules, dtypes[name], embeddings.shape[1], tokenizer), tokenizer, embeddings)


def write_static_folder(output: AtomicFolder, parts: StaticParts, information: JsonObject) -> None:
    """Write a static model in the layout it was read from, which keeps its rules.

    Parameters
    ----------
    output
        The folder.
    parts
        The model.
    information
        Fields of model2vec's config.json that have no effect.
    """
    folder = parts.folder
    table, mapping, factors = parts.embeddings.arrays()
    stored: AnyArray = to_bfloat16(table) if folder.dtype == "bfloat16" else table.astype(folder.dtype)
    output.write_text("tokenizer.json", _tokenizer_json(parts))
    if folder.layout == "sentence-transformers":
        output.write("model.safetensors", safetensors_chunks({"embedding.weight": stored}))
        return
    tensors = {"embeddings": stored}
    if mapping is not None:
        tensors["mapping"] = mapping.astype(np.int64)
    if factors is not None:
        tensors["weights"] = factors
    output.write("model.safetensors", safetensors_chunks(tensors))
    normalized = folder.least_length is not None
    config: dict[str, Any] = {
        **information,
        "model_type": "model2vec",
        "architectures": ["StaticModel"],
        "hidden_dim": folder.dimension,
        "normalize": normalized,
        "max_length": None if folder.max_seq_length == sys.maxsize else folder.max_seq_length,
        "embedding_dtype": folder.dtype,
    }
    if mapping is not None:
        config["vocabulary_quantization"] = len(table)
    output.write_text("config.json", json.dumps(config, ensure_ascii=False, indent=4) + "\n")
    kinds = [(".", _KIND), *([("1_Normalize", "Normalize")] if normalized else [])]
    modules = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (path, kind) in enumerate(kinds)
    ]
    output.write_text("modules.json", json.dumps(modules, indent=4) + "\n")


def _dtype(table: StoredTensor) -> str:
    """Return the number type that a table is saved in: that of its file, but float32 instead of float64."""
    stored = table.stored.newbyteorder("=")
    if stored == BFLOAT16:
        return "bfloat16"
    return (stored if is_half(stored) else table.dtype).name


def _tokenizer_json(parts: StaticParts) -> str:
    """Return the text of the tokenizer.json, with the longest text that sentence-transformers reads from it."""
    folder, tokenizer = parts.folder, parts.tokenizer
    if isinstance(tokenizer, Tokenizer):
        return tokenizer.to_json()
    definition = tokenizer.definition()
    if folder.layout == "sentence-transformers":
        limit = {"direction": "Right", "strategy": "LongestFirst", "stride": 0} | (definition.get("truncation") or {})
        is_cut = folder.max_seq_length != sys.maxsize
        definition["truncation"] = limit | {"max_length": folder.max_seq_length} if is_cut else None
    return json.dumps(definition, ensure_ascii=False)


def _embeddings(
    weights: Path, name: str, table: AnyArray, mapping: AnyArray | None, factors: AnyArray | None
) -> _core.StaticEmbeddings:
    """Pack the table and check what belongs to it."""
    if table.ndim != 2 or table.shape[1] == 0:
        raise CheckpointError(f"{weights}: {name} has shape {list(table.shape)}, expected [tokens, width]")
    if table.dtype.kind != "f" and table.dtype != np.int8:
        raise CheckpointError(f"{weights}: {name} has dtype {table.dtype}; supported are floats and int8")
    rows = len(table)
    of: npt.NDArray[np.uint32] | None = None
    if mapping is not None:
        if mapping.ndim != 1 or mapping.dtype.kind not in "iu":
            raise CheckpointError(
                f"{weights}: mapping has dtype {mapping.dtype} and shape {list(mapping.shape)}, expected integers "
                "[tokens]"
            )
        outside = (mapping.astype(np.int64) < 0) | (mapping.astype(np.int64) >= rows)
        if outside.any():
            token = int(outside.argmax())
            raise CheckpointError(
                f"{weights}: mapping sends token {token} to row {mapping[token]}, but {name} has {rows} rows"
            )
        of = mapping.astype(np.uint32)
    if factors is not None:
        tokens = rows if of is None else len(of)
        if factors.shape != (tokens,) or factors.dtype.kind != "f":
            raise CheckpointError(
                f"{weights}: weights has dtype {factors.dtype} and shape {list(factors.shape)}, expected floats "
                f"[{tokens}], one for each token"
            )
    return _core.StaticEmbeddings(
        np.ascontiguousarray(table, np.float32),
        of,
        None if factors is None else np.ascontiguousarray(factors, np.float32),
    )


def _check_tokens(
    weights: Path, name: str, embeddings: _core.StaticEmbeddings, tokenizer: AnyTokenizer, *, mapped: bool
) -> None:
    """Check that every token of the tokenizer has a vector and, in model2vec's layout, every vector a token."""
    vocab = tokenizer.get_vocab()
    count, tokens = embeddings.shape[2], len(vocab)
    what = "mapping" if mapped else name
    if max(vocab.values(), default=-1) >= count or (name == "embeddings" and not mapped and count != tokens):
        raise CheckpointError(f"{weights}: {what} has {count} rows, but tokenizer.json {tokens} tokens, with ids up to "
                        f"{max(vocab.values(), default=-1)}: they are not of one model")  # fmt: skip


def _model2vec_settings(
    folder: Path, modules: list[tuple[str, Path]], dtype: str, width: int, _: AnyTokenizer
) -> StaticFolder:
    others = [kind for kind, _ in modules[1:] if kind not in ("Normalize", "Dropout")]
    if others:
        refuse(folder / "modules.json", f"has a {others[0]} after the table of a model2vec model, which has none")
    file = modules[0][1] / "config.json"
    config = read_object(file, ConfigError) if file.is_file() else {}
    if not is_model2vec(config):
        refuse(file, f"model_type is {quoted(config.get('model_type'))}; a table named embeddings belongs to model2vec")
    max_length = _MAX_LENGTH
    if "max_length" in config:
        max_length = setting(config, "max_length", int, file, default=sys.maxsize)
        if max_length < 1:
            refuse(file, f"max_length is {max_length}; expected 1 or more, or null")
    return StaticFolder(
        transformer=modules[0][1],
        dimension=width,
        max_seq_length=max_length,
        layout="model2vec",
        dtype=dtype,
        least_length=1e-32 if setting(config, "normalize", bool, file, default=False) else None,
        **read_model_settings(folder / "config_sentence_transformers.json", width),
    )


def _sentence_settings(
    folder: Path, modules: list[tuple[str, Path]], dtype: str, width: int, tokenizer: AnyTokenizer
) -> StaticFolder:
    after, width = read_modules_after(_KIND, modules[1:], width, folder / "modules.json")
    least_length = None
    if after and isinstance(after[0], Normalize):  # with the means, in one pass
        after, least_length = after[1:], 1e-12
    truncation: Any = (
        tokenizer.truncation if isinstance(tokenizer, Tokenizer) else tokenizer.definition().get("truncation")
    )
    return StaticFolder(
        transformer=modules[0][1],
        dimension=width,
        modules=after,
        max_seq_length=sys.maxsize if truncation is None else truncation["max_length"],
        layout="sentence-transformers",
        dtype=dtype,
        least_length=least_length,
        **read_model_settings(folder / "config_sentence_transformers.json", width),
    )
