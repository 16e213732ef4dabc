"""The folders of cross encoders: a model for sequence classification, or modules that end in scores.

The first is a folder without ``modules.json``, or one that lists a single Transformer. The modules are as in a
sentence encoder, a Transformer without a head, a Pooling, and any of Dense, LayerNorm and Normalize, but the last one
is a Dense that returns ``scores``. Names of Python classes are compared with names; they are never imported.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wordpiece_bert._internal.safe_json import JsonObject, quoted, read_object
from wordpiece_bert._internal.warn import warn
from wordpiece_bert.bert.auto import read_config
from wordpiece_bert.bert.config import find_config
from wordpiece_bert.errors import CheckpointWarning, ConfigError
from wordpiece_bert.sentence.activations import TORCH_ACTIVATIONS, ActivationFn
from wordpiece_bert.sentence.folders.modules import (
    Modules,
    Pooling,
    longest_row,
    read_modules_after,
    read_pooling,
    read_prompts,
    read_transformer_settings,
)
from wordpiece_bert.sentence.folders.reading import list_modules, refuse, setting

if TYPE_CHECKING:
    from pathlib import Path

_MODULES = ("Transformer", "Pooling", "Dense", "LayerNorm", "Normalize", "Dropout")


@dataclass(frozen=True, kw_only=True)
class ScoringModules:
    """What turns the token vectors of a Transformer into scores."""

    #: How token vectors are pooled.
    pooling: Pooling
    #: The modules after the pooling; the last one returns the scores.
    modules: Modules
    #: The number of scores.
    num_labels: int


@dataclass(frozen=True, kw_only=True)
class RankingFolder:
    """The settings of a cross encoder's folder."""

    #: The folder of the Transformer, with config.json, weights and tokenizer.
    transformer: Path
    #: The modules after it; None if it is a model for sequence classification.
    modules: ScoringModules | None
    #: The longest row in tokens, with special tokens.
    max_length: int
    #: Whether texts are converted to lower case before the tokenizer's normalizer.
    do_lower_case: bool
    #: Prompts by name.
    prompts: dict[str, str]
    #: The prompt that is used by default; None for none.
    default_prompt_name: str | None
    #: The function from logits to scores; None for the usual one.
    activation: ActivationFn | None


def read_ranking_folder(folder: Path) -> RankingFolder:
    """Read the settings of a cross encoder.

    Raises
    ------
    ConfigError
        A file is malformed, the modules are not a ranker's, or a setting is not supported; the message has the
        file and the name.
    CheckpointError
        The weights of a module are malformed or do not fit its configuration.

    Warns
    -----
    CheckpointWarning
        The activation is code of another package, which is never run: the usual one is taken.
    """
    transformer, modules, settings = _read_modules(folder)
    prompts, default = read_prompts(folder)
    return RankingFolder(
        transformer=transformer,
        modules=modules,
        max_length=longest_row(transformer, settings, read_config(transformer)),
        do_lower_case=setting(settings, "do_lower_case", bool, transformer, default=False),
        prompts=prompts,
        default_prompt_name=default,
        activation=_activation(folder, transformer),
    )


def _read_modules(folder: Path) -> tuple[Path, ScoringModules | None, JsonObject]:
    """Return the folder of the Transformer, the modules after it, and its settings."""
    listing = folder / "modules.json"
    if not listing.is_file():
        return folder, None, {}
    kinds = list_modules(listing, _MODULES)
    transformer = kinds[0][1] if kinds else folder
    if [kind for kind, _ in kinds] == ["Transformer"]:
        return transformer, None, read_transformer_settings(transformer, "sequence-classification", "scores")
    if [kind for kind, _ in kinds[:2]] != ["Transformer", "Pooling"]:
        refuse(listing, f"must begin with a Transformer and a Pooling, not with {[kind for kind, _ in kinds[:2]]}")
    kind, last = kinds[-1]
    if kind != "Dense" or read_object(last / "config.json", ConfigError).get("module_output_name") != "scores":
        refuse(listing, "does not end in a Dense whose module_output_name is 'scores': these modules are no ranker")
    settings = read_transformer_settings(transformer)
    hidden_size = read_config(transformer).hidden_size
    file = kinds[1][1] / "config.json"
    pooling = read_pooling(file, hidden_size)
    if not pooling.include_prompt:
        refuse(file, "include_prompt is false, which is not supported for pairs")
    modules, scores = read_modules_after("Pooling", kinds[2:], hidden_size * len(pooling.modes), listing, last="scores")
    return transformer, ScoringModules(pooling=pooling, modules=modules, num_labels=scores), settings


def _activation(folder: Path, transformer: Path) -> ActivationFn | None:
    """Return the activation that a file names, the first of its keys that is there; None if none is."""
    settings = folder / "config_sentence_transformers.json"
    found = [(settings, read_object(settings, ConfigError).get("activation_fn"))] if settings.is_file() else []
    file = find_config(transformer)
    config = read_object(file, ConfigError)
    newer = config.get("sentence_transformers")
    found.append((file, newer.get("activation_fn") if isinstance(newer, dict) else None))
    found.append((file, config.get("sbert_ce_default_activation_function")))
    for where, name in found:
        if name is None:
            continue
        if isinstance(name, str) and name in TORCH_ACTIVATIONS:
            return TORCH_ACTIVATIONS[name]
        if isinstance(name, str) and not name.startswith("torch."):
            what = f"the activation {quoted(name)} is code of another package, which is not run"
            warn(f"{where}: {what}; the usual activation is taken", CheckpointWarning)
            return None
        raise ConfigError(f"{where}: the activation is {quoted(name)}; supported are {', '.join(TORCH_ACTIVATIONS)}")
    return None
