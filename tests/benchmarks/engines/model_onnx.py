"""ONNX Runtime over graphs of `onnx_graph.py`, in batches padded to their longest row, as fastembed runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import model_worker
from padded import PaddedEngine

if TYPE_CHECKING:
    from model_worker import Model


class OnnxRuntime(PaddedEngine):
    """A session. Kinds: those of `onnx_graph.GRAPHS`. With streams, each run of it has one thread."""

    def version(self) -> str:
        import onnxruntime

        return str(onnxruntime.__version__)

    def prepare(self, model: Model) -> None:
        import onnx_graph

        onnx_graph.write(model.folder, model.place, model.kind)

    def load(self, model: Model, threads: int) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        self.streams = threads if model.streams else 1
        options.intra_op_num_threads = threads // self.streams
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        file = str(model.place / f"{model.kind}.onnx")
        self.session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
        self.load_tokenizer(model.folder)

    def hidden(self, ids: Any, mask: Any) -> Any:
        return self.session.run(None, {"input_ids": ids, "attention_mask": mask})[0]


model_worker.serve(OnnxRuntime())
