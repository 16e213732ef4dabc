"""llama.cpp, by the package xllamacpp, over a GGUF file written from the weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import checkpoint
import model_worker
import numpy as np
from model_worker import Model

#: BERT's layers -> llama.cpp's tensors.
LAYER = {
    "attention.self.query": "attn_q",
    "attention.self.key": "attn_k",
    "attention.self.value": "attn_v",
    "attention.output.dense": "attn_output",
    "attention.output.LayerNorm": "attn_output_norm",
    "intermediate.dense": "ffn_up",
    "output.dense": "ffn_down",
    "output.LayerNorm": "layer_output_norm",
}

#: Tokens computed at once. A batch's attention is computed over all its tokens, so many rows at once are slower.
TOKENS = 512


class LlamaCpp:
    """llama.cpp's server, called in the process. Kinds: "f16" and "q8_0", the type of the weights."""

    def version(self) -> str:
        import importlib.metadata

        import xllamacpp

        features = " ".join(part.strip() for part in xllamacpp.get_system_info().split("|") if "AVX" in part)
        return f"{importlib.metadata.version('xllamacpp')} ({features or 'no AVX'})"

    def prepare(self, model: Model) -> None:
        write(model.folder, _file(model), model.kind)

    def load(self, model: Model, threads: int) -> None:
        import xllamacpp

        options = xllamacpp.CommonParams()
        options.model.path = str(_file(model))
        options.embedding = True
        options.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
        options.embd_normalize = -1
        options.n_parallel, options.n_ctx = 8, 8 * TOKENS
        options.n_batch = options.n_ubatch = TOKENS
        options.cpuparams.n_threads = options.cpuparams_batch.n_threads = threads
        options.warmup, options.verbosity = False, 0
        self.server = xllamacpp.Server(options)

    def forward(self, rows: list[list[int]], batch: int) -> Any:
        return np.concatenate([self._vectors(rows[start : start + batch]) for start in range(0, len(rows), batch)])

    def texts(self, texts: list[str]) -> Any:
        x = self._vectors(texts)
        return x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12)

    def _vectors(self, inputs: list[Any]) -> Any:
        answer = self.server.handle_embeddings({"input": inputs})
        if "data" not in answer:
            raise ValueError(str(answer))
        found = sorted(answer["data"], key=lambda one: one["index"])
        return np.array([one["embedding"] for one in found], np.float32)


def _file(model: Model) -> Path:
    return model.place / f"{model.kind}.gguf"


def write(source: Path, file: Path, kind: str) -> None:
    """Write a model as GGUF, as llama.cpp's own script does: matrices of the kind, the rest in float32."""
    import gguf

    config = checkpoint.read_config(source)
    weights = checkpoint.read_weights(source / "model.safetensors")
    writer = gguf.GGUFWriter(file, "bert")
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_layer_norm_eps(config["layer_norm_eps"])
    writer.add_causal_attention(False)
    writer.add_pooling_type(gguf.PoolingType.MEAN)
    _write_vocabulary(writer, checkpoint.read_vocabulary(source, config["vocab_size"]))
    writer.add_token_type_count(config["type_vocab_size"])
    type_ = gguf.GGMLQuantizationType[kind.upper()]

    def add(name: str, weight: Any, *, matrix: bool = False) -> None:
        if matrix:
            writer.add_tensor(name, gguf.quants.quantize(weight, type_), raw_dtype=type_)
        else:
            writer.add_tensor(name, weight)

    add("token_embd.weight", weights["embeddings.word_embeddings.weight"], matrix=True)
    add("position_embd.weight", weights["embeddings.position_embeddings.weight"])
    add("token_types.weight", weights["embeddings.token_type_embeddings.weight"])
    for part in ("weight", "bias"):
        add(f"token_embd_norm.{part}", weights[f"embeddings.LayerNorm.{part}"])
        for index in range(config["num_hidden_layers"]):
            for name, theirs in LAYER.items():
                weight = weights[f"encoder.layer.{index}.{name}.{part}"]
                add(f"blk.{index}.{theirs}.{part}", weight, matrix=weight.ndim == 2)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _write_vocabulary(writer: Any, tokens: list[str]) -> None:
    """Write the tokens as llama.cpp has them: those that begin a word marked instead of those that continue one."""
    import gguf

    special = {token: tokens.index(token) if token in tokens else 0 for token in checkpoint.SPECIAL}
    marked = [
        token if token.startswith("[") and token.endswith("]") else token[2:] if token[:2] == "##" else f"\u2581{token}"
        for token in tokens
    ]
    writer.add_tokenizer_model("bert")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(marked)
    kinds = gguf.TokenType.CONTROL, gguf.TokenType.NORMAL
    writer.add_token_types([kinds[token not in special] for token in tokens])
    writer.add_unk_token_id(special["[UNK]"])
    writer.add_sep_token_id(special["[SEP]"])
    writer.add_pad_token_id(special["[PAD]"])
    writer.add_bos_token_id(special["[CLS]"])
    writer.add_eos_token_id(special["[SEP]"])
    writer.add_mask_token_id(special["[MASK]"])


model_worker.serve(LlamaCpp())
