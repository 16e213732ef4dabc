"""ONNX Runtime over graphs of `onnx_graph.py` or of optimum, in batches padded to their longest row, as fastembed runs it."""

from __future__ import annotations

from typing import Any

import model_worker
import numpy as np
from model_worker import Model
from onnx_session import session
from padded import PaddedEngine


class OnnxRuntime(PaddedEngine):
    """A session. With streams, each run of it has one thread.

    Kinds: the ones in `onnx_graph.GRAPHS` and in `model_optimum.py`.
    """

    def version(self) -> str:
        import onnxruntime

        return str(onnxruntime.__version__)

    def prepare(self, model: Model) -> None:
        import onnx_graph

        onnx_graph.write(model.folder, model.place, model.kind)

    def load(self, model: Model, threads: int) -> None:
        self.streams = threads if model.streams else 1
        self.session = session(model.place / f"{model.kind}.onnx", threads // self.streams)
        self.has_types = any(one.name == "token_type_ids" for one in self.session.get_inputs())
        self.load_tokenizer(model.folder)

    def hidden(self, ids: Any, mask: Any) -> Any:
        inputs = {"input_ids": ids, "attention_mask": mask}
        if self.has_types:
            inputs["token_type_ids"] = np.zeros_like(ids)
        return self.session.run(None, inputs)[0]


model_worker.serve(OnnxRuntime())
