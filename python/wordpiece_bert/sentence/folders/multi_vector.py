"""The folders of multi-vector encoders: from sentence-transformers, from PyLate, and from ColBERT's own code.

- sentence-transformers (``model_type`` MultiVectorEncoder): ``modules.json`` lists a Transformer, whose settings have
  the lengths and the query expansion, then Dense, MultiVectorMask and Normalize for token vectors.
- PyLate up to version 3 (``model_type`` ColBERT): a Transformer and a Dense, all else in
  ``config_sentence_transformers.json``.
- ColBERT (``architectures`` HF_ColBERT): the projection is a tensor beside the encoder's, and the settings are in
  ``artifact.metadata``.

Names of Python classes are compared with these names; they are never imported.
"""

from __future__ import annotations

import string
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from wordpiece_bert._internal.safe_json import JsonObject, quoted, read_object
from wordpiece_bert.bert.auto import read_config
from wordpiece_bert.errors import ConfigError
from wordpiece_bert.sentence.folders.kinds import check_class
from wordpiece_bert.sentence.folders.modules import (
    Modules,
    Normalize,
    longest_row,
    read_modules_after,
    read_prompts,
    read_transformer_settings,
)
from wordpiece_bert.sentence.folders.reading import expect, list_modules, refuse, setting

if TYPE_CHECKING:
    from pathlib import Path

    from wordpiece_bert.bert.config import BertConfig

#: The sum over the query's tokens of the greatest dot product with a document's token, and its mean.
METRICS = ("maxsim", "meanmaxsim")

_MODULES = ("Transformer", "Dense", "MultiVectorMask", "Normalize")
_PYLATE_DENSE = "pylate.models.Dense.Dense"

#: What PyLate and ColBERT leave out of documents unless a file says otherwise.
_PUNCTUATION = tuple(string.punctuation)

#: The length of expanded queries unless a file has another.
_USUAL_EXPANSION = 32


@dataclass(frozen=True, kw_only=True)
class Expansion:
    """How queries are filled up with a token whose vectors count."""

    #: Whether queries have exactly this length, or at least this length.
    strategy: Literal["fixed", "min"] = "fixed"
    #: The length in tokens, with special tokens.
    length: int = _USUAL_EXPANSION
    #: Whether the other tokens attend to those that were filled in.
    attend: bool = False
    #: The token; None for the tokenizer's mask token.
    token: str | None = None


@dataclass(frozen=True, kw_only=True)
class TokenMask:
    """Which tokens have no vector."""

    #: Tokens that are left out, by their text.
    skiplist_words: tuple[str, ...] = ()
    #: Of which texts they are left out; texts of no task count as documents.
    skiplist_tasks: tuple[str, ...] = ("document",)
    #: The ids that are kept in texts that are not queries; None for all.
    keep_only: tuple[int, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class MultiVectorFolder:
    """Everything in a folder of a multi-vector encoder except the weights and the tokenizer of its encoder."""

    #: The folder of the encoder.
    transformer: Path
    #: Whether the encoder's file has the projection, as a tensor ``linear.weight``.
    own_projection: bool = False
    #: The modules after the encoder, in order.
    modules: Modules = ()
    #: Which tokens have no vector.
    mask: TokenMask = TokenMask()
    #: How queries are filled up; None if they are not.
    expansion: Expansion | None = None
    #: The longest query and document in tokens, with special tokens; None for `max_seq_length`.
    query_length: int | None = None
    document_length: int | None = None
    #: The longest row in tokens, with special tokens.
    max_seq_length: int
    #: Whether texts are converted to lower case before the tokenizer's normalizer.
    do_lower_case: bool = False
    #: Prompts by name.
    prompts: dict[str, str] = field(default_factory=dict)
    #: The prompt that is used by default; None for none.
    default_prompt_name: str | None = None
    #: Prompts that the tokenizer must not split, if it has them as tokens.
    markers: tuple[str, ...] = ()
    #: One of `METRICS`.
    similarity: str = "maxsim"


def read_multi_vector_folder(folder: Path) -> MultiVectorFolder:
    """Read the settings of a multi-vector encoder.

    Raises
    ------
    ConfigError
        A file is malformed, names a module or a setting that is not supported, or the folder is for another kind of
        model; the message has the file and the name.
    CheckpointError
        The weights of a module are malformed or do not fit its configuration.
    """
    more = ". A multi-vector encoder needs a projection that was trained for it"
    check_class(folder, "MultiVectorEncoder", more)
    listing = folder / "modules.json"
    if not listing.is_file():
        return _read_colbert(folder)
    file = folder / "config_sentence_transformers.json"
    settings = read_object(file, ConfigError)
    read = _read_pylate if settings["model_type"] == "ColBERT" else _read_modules
    return read(folder, listing, settings, file)


def _read_modules(folder: Path, listing: Path, settings: JsonObject, file: Path) -> MultiVectorFolder:
    """Read a folder of sentence-transformers."""
    kinds = list_modules(listing, _MODULES)
    if [kind for kind, _ in kinds].count("Transformer") != 1 or kinds[0][0] != "Transformer":
        refuse(listing, f"must begin with a Transformer, and have no other, not {[kind for kind, _ in kinds]}")
    transformer = kinds[0][1]
    config = read_config(transformer)
    options = read_transformer_settings(transformer)
    masks = [_mask(path / "config.json") for kind, path in kinds if kind == "MultiVectorMask"]
    if len(masks) > 1:
        refuse(listing, "has two MultiVectorMask modules; one is supported")
    changing = [(kind, path) for kind, path in kinds[1:] if kind != "MultiVectorMask"]
    modules, _ = read_modules_after("Transformer", changing, config.hidden_size, listing, "token_embeddings")
    prompts, default = read_prompts(folder)
    return MultiVectorFolder(
        transformer=transformer,
        modules=modules,
        mask=masks[0] if masks else TokenMask(),
        prompts=prompts,
        default_prompt_name=default,
        similarity=_metric(settings, file),
        **_lengths(options, transformer, config, expansion=_expansion(options, transformer)),
    )


def _read_pylate(folder: Path, listing: Path, settings: JsonObject, file: Path) -> MultiVectorFolder:
    """Read a folder of PyLate."""
    kinds = list_modules(listing, ("Transformer", "Dense"), others=(_PYLATE_DENSE,))
    if not kinds or kinds[0][0] != "Transformer" or any(kind != "Dense" for kind, _ in kinds[1:]):
        refuse(listing, f"must have a Transformer and Dense modules, not {[kind for kind, _ in kinds]}")
    transformer = kinds[0][1]
    config = read_config(transformer)
    modules, _ = read_modules_after("Transformer", kinds[1:], config.hidden_size, listing, None)
    if not modules:
        refuse(listing, "has no Dense: a multi-vector encoder needs a projection that was trained for it")
    prompts, default = read_prompts(folder)
    markers = {}
    for name in ("query", "document"):
        marker = setting(settings, f"{name}_prefix", str, file)
        if marker is not None:
            markers[name] = marker
            prompts[name] = marker + prompts[name].removeprefix(marker)
    words = settings.get("skiplist_words")
    expansion: Expansion | None = None
    if setting(settings, "do_query_expansion", bool, file, default=True):
        attend = setting(settings, "attend_to_expansion_tokens", bool, file, default=False)
        length = _positive(settings, "query_length", file) or _USUAL_EXPANSION
        expansion = Expansion(length=length, attend=attend)
    lengths = {
        "document_length": settings.get("document_length"),
        "query_length": None if expansion else settings.get("query_length"),
    }
    return MultiVectorFolder(
        transformer=transformer,
        modules=(*modules, Normalize()),
        mask=TokenMask(skiplist_words=_PUNCTUATION if words is None else _words(words, "skiplist_words", file)),
        prompts=prompts,
        default_prompt_name=default,
        markers=tuple(markers.values()),
        similarity=_metric(settings, file),
        **_lengths(read_transformer_settings(transformer) | lengths, transformer, config, expansion=expansion),
    )


def _read_colbert(folder: Path) -> MultiVectorFolder:
    """Read a folder of ColBERT's own code."""
    file = folder / "artifact.metadata"
    settings = read_object(file, ConfigError) if file.is_file() else {}
    expect(settings, "similarity", "cosine", file)
    markers = {
        "query": (setting(settings, "query_token_id", str, file) or "[unused0]") + " ",
        "document": (setting(settings, "doc_token_id", str, file) or "[unused1]") + " ",
    }
    expansion = Expansion(
        length=_positive(settings, "query_maxlen", file) or _USUAL_EXPANSION,
        attend=setting(settings, "attend_to_mask_tokens", bool, file, default=False),
    )
    masked = setting(settings, "mask_punctuation", bool, file, default=True)
    lengths = {"document_length": settings.get("doc_maxlen")}
    return MultiVectorFolder(
        transformer=folder,
        own_projection=True,
        modules=(Normalize(),),
        mask=TokenMask(skiplist_words=_PUNCTUATION if masked else ()),
        prompts=markers,
        markers=tuple(markers.values()),
        **_lengths(lengths, folder, read_config(folder), expansion=expansion),
    )


def _mask(file: Path) -> TokenMask:
    config = read_object(file, ConfigError)
    tasks = config.get("skiplist_tasks")
    if isinstance(tasks, str):
        tasks = [tasks]
    kept = setting(config, "keep_only_token_ids", list, file)
    if kept is not None and not all(type(i) is int and i >= 0 for i in kept):
        refuse(file, f"keep_only_token_ids is {quoted(kept)}, expected ids")
    return TokenMask(
        skiplist_words=_words(config.get("skiplist_words") or [], "skiplist_words", file),
        skiplist_tasks=("document",) if tasks is None else _words(tasks, "skiplist_tasks", file),
        keep_only=tuple(kept) if kept else None,
    )


def _expansion(options: JsonObject, transformer: Path) -> Expansion | None:
    """Read the query expansion of a Transformer's settings."""
    chosen = setting(options, "query_expansion", dict, transformer)
    if chosen is None:
        return None
    unknown = sorted(set(chosen) - {"strategy", "attend", "token", "length"})
    if unknown:
        refuse(transformer, f"query_expansion has the keys {quoted(unknown)}, which are not supported")
    strategy = chosen.get("strategy")
    if strategy not in ("fixed", "min"):
        refuse(transformer, f"query_expansion has the strategy {quoted(strategy)}; supported are fixed and min")
    length = _positive(chosen, "length", transformer)
    if length is None:
        refuse(transformer, "query_expansion has no length")
    return Expansion(
        strategy=strategy,
        length=length,
        attend=setting(chosen, "attend", bool, transformer, default=False),
        token=setting(chosen, "token", str, transformer),
    )


def _lengths(
    options: JsonObject, transformer: Path, config: BertConfig, *, expansion: Expansion | None
) -> dict[str, Any]:
    """Return the lengths of rows, checked and limited to those that the encoder can run."""
    max_seq_length = longest_row(transformer, options, config)
    lengths = {name: _positive(options, name, transformer) for name in ("query_length", "document_length")}
    if expansion is not None:
        if expansion.length > config.longest_row:
            most = f"the model's longest row has {config.longest_row} tokens"
            refuse(transformer, f"queries are expanded to {expansion.length} tokens, but {most}")
        shortest = lengths["query_length"]
        if shortest is not None and shortest < expansion.length:
            refuse(transformer, f"query_length is {shortest}, less than the length of expanded queries")
    return {
        "expansion": expansion,
        "max_seq_length": max_seq_length,
        "do_lower_case": setting(options, "do_lower_case", bool, transformer, default=False),
        **{name: None if n is None else min(n, config.longest_row) for name, n in lengths.items()},
    }


def _metric(settings: JsonObject, file: Path) -> str:
    """Return the similarity; PyLate spells it MaxSim, and names of other kinds of models mean the default."""
    name = setting(settings, "similarity_fn_name", str, file) or "maxsim"
    if name.lower() not in METRICS and settings.get("model_type") != "ColBERT":
        refuse(file, f"similarity_fn_name is {quoted(name)}; supported are {', '.join(METRICS)}")
    return name.lower() if name.lower() in METRICS else "maxsim"


def _positive(options: JsonObject, key: str, file: Path) -> int | None:
    value: int | None = setting(options, key, int, file)
    if value is not None and value < 1:
        refuse(file, f"{key} is {value}; it must be 1 or more")
    return value


def _words(value: object, key: str, file: Path) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        refuse(file, f"{key} is {quoted(value)}, expected a list of strings")
    return tuple(value)
