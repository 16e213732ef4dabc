"""OpenVINO over the plain graph of `onnx_graph.py`, or one that torch exported, in padded batches."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import Any

import model_worker
import numpy as np
from model_worker import Model
from padded import PaddedEngine, pooled


class OpenVino(PaddedEngine):
    """A compiled model. Kinds: "float32" and "bfloat16", the precision of its products, and "int8", quantized by NNCF.

    With streams it is compiled for throughput, and its own queue has a request for each (`AsyncInferQueue`).
    """

    def version(self) -> str:
        import openvino

        return str(openvino.__version__)

    def prepare(self, model: Model) -> None:
        import onnx_graph
        import openvino

        logging.disable(logging.WARNING)
        exported = model.place / "exported.onnx"
        source = exported if exported.exists() else onnx_graph.write(model.folder, model.place, "plain")
        graph = openvino.Core().read_model(source)
        if model.kind == "int8":
            graph = _quantized(graph, model)
        openvino.save_model(graph, _file(model), compress_to_fp16=False)

    def load(self, model: Model, threads: int) -> None:
        import openvino
        from openvino import properties

        # By default, products are rounded to bfloat16 where that is faster.
        precision = openvino.Type.bf16 if model.kind == "bfloat16" else openvino.Type.f32
        modes = properties.hint.PerformanceMode
        options = {
            properties.inference_num_threads: threads,
            properties.hint.inference_precision: precision,
            properties.hint.performance_mode: modes.THROUGHPUT if model.streams else modes.LATENCY,
            properties.hint.enable_hyper_threading: True,
        }
        if model.streams:
            self.streams = threads
            options[properties.num_streams] = threads
        compiled = openvino.Core().compile_model(_file(model), "CPU", options)
        self.request = compiled.create_infer_request()
        self.queue = openvino.AsyncInferQueue(compiled, self.streams)
        self.load_tokenizer(model.folder)

    def hidden(self, ids: Any, mask: Any) -> Any:
        return self.request.infer(_inputs(ids, mask), share_outputs=True)[0]

    def side_by_side(self, batches: Iterator[tuple[Any, Any]]) -> list[Any]:
        vectors: dict[int, Any] = {}

        def done(request: Any, batch: tuple[int, Any]) -> None:
            number, mask = batch
            vectors[number] = pooled(request.get_output_tensor().data, mask)

        self.queue.set_callback(done)
        for number, (ids, mask) in enumerate(batches):
            self.queue.start_async(_inputs(ids, mask), (number, mask))
        self.queue.wait_all()
        return [vectors[number] for number in range(len(vectors))]


def _inputs(ids: Any, mask: Any) -> dict[str, Any]:
    return {"input_ids": ids, "attention_mask": mask}


def _file(model: Model) -> Any:
    return model.place / f"openvino-{'int8' if model.kind == 'int8' else 'float32'}.xml"


def _quantized(graph: Any, model: Model) -> Any:
    """Return the graph in int8, calibrated on texts that are not measured, by NNCF's rules for transformers."""
    import nncf

    rows = [np.array([row], np.int64) for row in json.loads(model.calibration.read_text(encoding="utf-8"))]
    inputs = [{"input_ids": row, "attention_mask": np.ones_like(row)} for row in rows]
    return nncf.quantize(graph, nncf.Dataset(inputs), model_type=nncf.ModelType.TRANSFORMER, subset_size=len(inputs))


model_worker.serve(OpenVino())
