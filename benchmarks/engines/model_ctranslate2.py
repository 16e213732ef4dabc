"""CTranslate2 over a folder written from the weights, in batches padded to their longest row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import checkpoint
import model_worker
import numpy as np
from model_worker import Model
from padded import PaddedEngine


class CTranslate2(PaddedEngine):
    """An encoder. Kinds: "float32" and "int8", in which the weights are also stored. With streams, a worker for each."""

    def version(self) -> str:
        import ctranslate2

        return str(ctranslate2.__version__)

    def prepare(self, model: Model) -> None:
        folder = _folder(model)
        folder.mkdir(exist_ok=True)
        write(model.folder, folder, None if model.kind == "float32" else model.kind)

    def load(self, model: Model, threads: int) -> None:
        import ctranslate2

        self.view = ctranslate2.StorageView
        self.streams = threads if model.streams else 1
        self.encoder = ctranslate2.Encoder(
            str(_folder(model)),
            device="cpu",
            compute_type=model.kind,
            inter_threads=self.streams,
            intra_threads=threads // self.streams,
        )
        if model.kind not in self.encoder.compute_type.split("_"):  # "int8_float32": the rest in float32
            raise ValueError(f"computes in {self.encoder.compute_type} instead of {model.kind} on this CPU")
        self.load_tokenizer(model.folder)

    def hidden(self, ids: Any, mask: Any) -> Any:
        rows = self.view.from_array(ids.astype(np.int32))
        lengths = self.view.from_array(mask.sum(axis=1).astype(np.int32))
        return np.asarray(self.encoder.forward_batch(rows, lengths).last_hidden_state)


def _folder(model: Model) -> Path:
    return model.place / f"ctranslate2-{model.kind}"


def write(source: Path, target: Path, quantization: str | None) -> None:
    """Write a model in CTranslate2's format, as its own converter does from a model of transformers."""
    from ctranslate2.converters import utils
    from ctranslate2.specs import common_spec, transformer_spec

    config = checkpoint.read_config(source)
    weights = checkpoint.read_weights(source / "model.safetensors")

    def dense(spec: Any, name: str) -> None:
        spec.weight, spec.bias = weights[f"{name}.weight"], weights[f"{name}.bias"]

    def norm(spec: Any, name: str) -> None:
        spec.gamma, spec.beta = weights[f"{name}.weight"], weights[f"{name}.bias"]

    encoder = transformer_spec.TransformerEncoderSpec(
        config["num_hidden_layers"],
        config["num_attention_heads"],
        pre_norm=False,
        activation=common_spec.Activation.GELU,
        layernorm_embedding=True,
        num_source_embeddings=2,
        embeddings_merge=common_spec.EmbeddingsMerge.ADD,
    )
    encoder.scale_embeddings = False
    for embeddings, name in zip(encoder.embeddings, ("word", "token_type"), strict=True):
        embeddings.weight = weights[f"embeddings.{name}_embeddings.weight"]
    encoder.position_encodings.encodings = weights["embeddings.position_embeddings.weight"]
    norm(encoder.layernorm_embedding, "embeddings.LayerNorm")
    for index, layer in enumerate(encoder.layer):
        prefix = f"encoder.layer.{index}"
        parts = [common_spec.LinearSpec() for _ in range(3)]
        for part, name in zip(parts, ("query", "key", "value"), strict=True):
            dense(part, f"{prefix}.attention.self.{name}")
        utils.fuse_linear(layer.self_attention.linear[0], parts)
        dense(layer.self_attention.linear[1], f"{prefix}.attention.output.dense")
        norm(layer.self_attention.layer_norm, f"{prefix}.attention.output.LayerNorm")
        dense(layer.ffn.linear_0, f"{prefix}.intermediate.dense")
        dense(layer.ffn.linear_1, f"{prefix}.output.dense")
        norm(layer.ffn.layer_norm, f"{prefix}.output.LayerNorm")
    model = transformer_spec.TransformerEncoderModelSpec(encoder, pooling_layer=False)
    model.register_vocabulary(checkpoint.read_vocabulary(source, config["vocab_size"]))
    model.config.unk_token = "[UNK]"
    model.config.layer_norm_epsilon = config["layer_norm_eps"]
    model.validate()
    model.optimize(quantization=quantization)
    model.save(str(target))


model_worker.serve(CTranslate2())
