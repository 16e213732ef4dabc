"""Writes a sentence encoder in the folder layout of sentence-transformers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from wordpiece_bert.bert.checkpoint.safetensors import safetensors_chunks
from wordpiece_bert.sentence.activations import TORCH_ACTIVATIONS
from wordpiece_bert.sentence.folders.modules import Dense, LayerNorm, Normalize, Pooling, old_poolings

if TYPE_CHECKING:
    from wordpiece_bert._internal.atomic_folder import AtomicFolder
    from wordpiece_bert.bert.functional import Array
    from wordpiece_bert.sentence.folders.modules import SentenceFolder


def write_modules(output: AtomicFolder, folder: SentenceFolder, *, hidden_size: int, max_seq_length: int) -> None:
    """Write everything of a sentence encoder except the weights, the configuration and the tokenizer of its model.

    Parameters
    ----------
    output
        The folder, which is the Transformer's as well.
    folder
        The modules and settings.
    hidden_size
        Width of the token vectors.
    max_seq_length
        The longest row in tokens.
    """
    modules: list[tuple[str, dict[str, Any], dict[str, Array]]] = []
    if folder.layers is not None:
        settings: dict[str, Any] = {
            "word_embedding_dimension": hidden_size,
            "layer_start": folder.layers.start,
            "num_hidden_layers": folder.layers.start + len(folder.layers.weights) - 1,
        }
        modules.append(("WeightedLayerPooling", settings, {"layer_weights": folder.layers.weights}))
    modules.append(("Pooling", _pooling(folder.pooling, hidden_size), {}))
    modules += map(_module, folder.modules)

    _write(output, "Transformer", modules, folder)
    row = {"max_seq_length": max_seq_length, "do_lower_case": folder.do_lower_case}
    output.write_text("sentence_bert_config.json", _dump(row))


def write_modules_after_static(output: AtomicFolder, folder: SentenceFolder, *, normalized: bool) -> None:
    """Write everything of a static model of sentence-transformers except the table and the tokenizer.

    Parameters
    ----------
    output
        The folder, which is the table's as well.
    folder
        The modules and settings.
    normalized
        Whether a Normalize comes before the modules.
    """
    first = [_module(Normalize())] if normalized else []
    _write(output, "StaticEmbedding", [*first, *map(_module, folder.modules)], folder)


def _write(
    output: AtomicFolder,
    first: str,
    modules: list[tuple[str, dict[str, Any], dict[str, Array]]],
    folder: SentenceFolder,
) -> None:
    """Write modules after the first, their list, and the settings of the model."""
    listing: list[dict[str, Any]] = [
        {"idx": 0, "name": "0", "path": "", "type": f"sentence_transformers.models.{first}"}
    ]
    for index, (kind, settings, arrays) in enumerate(modules, 1):
        path = f"{index}_{kind}"
        listing.append({"idx": index, "name": str(index), "path": path, "type": f"sentence_transformers.models.{kind}"})
        output.write_text(f"{path}/config.json", _dump(settings))
        if arrays:
            output.write(f"{path}/model.safetensors", safetensors_chunks(arrays))
    output.write_text("modules.json", _dump(listing))
    write_settings(output, folder)


def write_settings(output: AtomicFolder, folder: SentenceFolder) -> None:
    """Write the settings of a model: prompts, similarity and dimension."""
    model: dict[str, Any] = {
        "model_type": "SentenceTransformer",
        "prompts": folder.prompts,
        "default_prompt_name": folder.default_prompt_name,
        "similarity_fn_name": folder.similarity,
    }
    if folder.truncate_dim is not None:
        model["truncate_dim"] = folder.truncate_dim
    output.write_text("config_sentence_transformers.json", _dump(model))


def _pooling(pooling: Pooling, hidden_size: int) -> dict[str, Any]:
    """Return the configuration, in the old format unless only the new one has the order of the modes."""
    settings: dict[str, Any] = {"word_embedding_dimension": hidden_size, "include_prompt": pooling.include_prompt}
    old = old_poolings()
    if tuple(mode for mode in old.values() if mode in pooling.modes) != pooling.modes:
        return settings | {"pooling_mode": list(pooling.modes)}
    return settings | {name: mode in pooling.modes for name, mode in old.items()}


def _module(module: Dense | LayerNorm | Normalize) -> tuple[str, dict[str, Any], dict[str, Array]]:
    """Return the kind, the configuration and the weights of a module after the pooling."""
    if isinstance(module, Dense):
        size_out, size_in = module.weight.shape
        names = [name for name, function in TORCH_ACTIVATIONS.items() if function is module.activation]
        settings: dict[str, Any] = {
            "in_features": size_in,
            "out_features": size_out,
            "bias": True,
            "activation_function": names[0],
        }
        arrays = {"linear.weight": np.asarray(module.weight), "linear.bias": np.asarray(module.bias)}
        if module.use_residual:
            settings["use_residual"] = True
        if module.residual is not None:
            arrays["residual.weight"] = np.asarray(module.residual)
        return "Dense", settings, arrays
    if isinstance(module, LayerNorm):
        arrays = {"norm.weight": module.weight, "norm.bias": module.bias}
        return "LayerNorm", {"dimension": len(module.weight)}, arrays
    return "Normalize", {}, {}


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"
