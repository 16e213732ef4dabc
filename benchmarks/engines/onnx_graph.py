"""Writes a BERT encoder as ONNX graphs, as exporters do: plain, fused by ONNX Runtime's own optimizer, and in int8.

Graphs of other encoders are exported by `model_export.py`, and made int8 here.

Runs in the environment of ONNX Runtime. Inputs: input_ids and attention_mask, int64 [B, S]; output: [B, S, H]. A model
with a classifier also has token_type_ids, and logits [B, labels] instead.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import checkpoint
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

GRAPHS = ("plain", "fused", "int8", "fused-int8", "exported", "exported-int8")


class Graph:
    """A graph under construction: each operation is a call that returns the name of its result."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: dict[str, Any] = {}

    def constant(self, name: str, value: Any) -> str:
        self.constants.setdefault(name, np.asarray(value))
        return name

    def op(
        self, operation: str, *inputs: str, to: str | None = None, kind: int | None = None, **attributes: Any
    ) -> str:
        """Add an operation; `kind` is the target type of a Cast."""
        to = to or f"{operation}{len(self.nodes)}"
        if kind is not None:
            attributes["to"] = kind
        self.nodes.append(helper.make_node(operation, list(inputs), [to], name=f"node_{to}", **attributes))
        return to


def encoder(config: dict[str, Any], weights: dict[str, Any]) -> Any:
    """Return the complete graph."""
    hidden, heads = config["hidden_size"], config["num_attention_heads"]
    g = Graph()
    number = lambda name, value: g.constant(name, np.float32(value))  # noqa: E731
    numbers = lambda name, value: g.constant(name, np.array(value, np.int64))  # noqa: E731

    def dense(x: str, name: str) -> str:
        # MatMul and Add, the form in which exporters write torch's Linear.
        product = g.op("MatMul", x, g.constant(f"{name}.kernel", np.ascontiguousarray(weights[f"{name}.weight"].T)))
        return g.op("Add", g.constant(f"{name}.bias", weights[f"{name}.bias"]), product)

    def norm(x: str, name: str, to: str | None = None) -> str:
        parts = [g.constant(f"{name}.{part}", weights[f"{name}.{part}"]) for part in ("weight", "bias")]
        return g.op("LayerNormalization", x, *parts, to=to, axis=-1, epsilon=float(config["layer_norm_eps"]))

    def split(x: str, order: list[int]) -> str:
        shape = numbers("split", [0, 0, heads, hidden // heads])
        return g.op("Transpose", g.op("Reshape", x, shape), perm=order)

    def table(name: str) -> str:
        return g.constant(name, weights[f"embeddings.{name}_embeddings.weight"])

    visible = g.op("Unsqueeze", "attention_mask", numbers("axes", [1, 2]))
    hide = g.op("Sub", number("one", 1), g.op("Cast", visible, kind=TensorProto.FLOAT))
    mask = g.op("Mul", hide, number("lowest", np.finfo(np.float32).min))
    length = g.op("Gather", g.op("Shape", "input_ids"), numbers("second", 1))
    places = g.op(
        "Slice",
        numbers("places", [list(range(config["max_position_embeddings"]))]),
        numbers("start", [0]),
        g.op("Unsqueeze", length, numbers("axis", [0])),
        numbers("along", [1]),
    )
    is_classifier = "classifier.weight" in weights
    types = "token_type_ids" if is_classifier else g.op("Mul", "input_ids", numbers("zero", 0))
    x = g.op("Add", g.op("Gather", table("word"), "input_ids"), g.op("Gather", table("token_type"), types))
    x = norm(g.op("Add", x, g.op("Gather", table("position"), places)), "embeddings.LayerNorm")
    for index in range(config["num_hidden_layers"]):
        layer = f"encoder.layer.{index}"
        q = split(dense(x, f"{layer}.attention.self.query"), [0, 2, 1, 3])
        k = split(dense(x, f"{layer}.attention.self.key"), [0, 2, 3, 1])
        v = split(dense(x, f"{layer}.attention.self.value"), [0, 2, 1, 3])
        scores = g.op("Div", g.op("MatMul", q, k), number("root", (hidden // heads) ** 0.5))
        p = g.op("Softmax", g.op("Add", scores, mask), axis=-1)
        context = g.op("Transpose", g.op("MatMul", p, v), perm=[0, 2, 1, 3])
        context = g.op("Reshape", context, numbers("merge", [0, 0, hidden]))
        a = g.op("Add", dense(context, f"{layer}.attention.output.dense"), x)
        a = norm(a, f"{layer}.attention.output.LayerNorm")
        h = dense(a, f"{layer}.intermediate.dense")
        erf = g.op("Erf", g.op("Div", h, number("root2", 2**0.5)))
        h = g.op("Mul", g.op("Mul", h, g.op("Add", erf, number("one", 1))), number("half", 0.5))
        x = g.op("Add", dense(h, f"{layer}.output.dense"), a)
        last = "last_hidden_state" if index + 1 == config["num_hidden_layers"] else None
        x = norm(x, f"{layer}.output.LayerNorm", to=last)
    sides = ["batch", "length"]
    names = ["input_ids", "attention_mask", *["token_type_ids"] * is_classifier]
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, sides) for name in names]
    output = helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, [*sides, hidden])
    if is_classifier:
        first = g.op("Gather", x, numbers("zero", 0), axis=1)
        g.op("Identity", dense(g.op("Tanh", dense(first, "pooler.dense")), "classifier"), to="logits")
        output = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", len(weights["classifier.bias"])])
    constants = [numpy_helper.from_array(value, name) for name, value in g.constants.items()]
    graph = helper.make_graph(g.nodes, "bert", inputs, [output], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def write(folder: Path, place: Path, graph: str) -> Path:
    """Write one of `GRAPHS` of a model, unless it exists, and return the file."""
    file = place / f"{graph}.onnx"
    if file.exists():
        return file
    place.mkdir(parents=True, exist_ok=True)
    logging.disable(logging.WARNING)
    if graph.endswith("int8"):
        from onnxruntime.quantization import QuantType, quantize_dynamic

        source = write(folder, place, graph.removesuffix("-int8") if "-" in graph else "plain")
        # Quantize weights per channel: with one scale per tensor, the default, the median cosine is 0.95 instead of 0.99.
        quantize_dynamic(source, file, weight_type=QuantType.QInt8, per_channel=True)
        return file
    if graph == "exported":
        message = f"{file} is written by model_export.py, which has not run"
        raise FileNotFoundError(message)
    config = checkpoint.read_config(folder)
    if graph == "plain":
        model = encoder(config, checkpoint.read_weights(folder / "model.safetensors"))
        model = onnx.shape_inference.infer_shapes(model)
        onnx.save(model, file)
        return file
    from onnxruntime.transformers import optimizer

    source = write(folder, place, "plain")
    heads, hidden = config["num_attention_heads"], config["hidden_size"]
    optimizer.optimize_model(str(source), "bert", heads, hidden, opt_level=0).save_model_to_file(str(file))
    return file
