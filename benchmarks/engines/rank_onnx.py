"""ONNX Runtime over a ranker's graph of `onnx_graph.py`, with Hugging Face's tokenizer.

A kind is a graph, and the rows of a run: "fused 8", or "fused all". Rows are sorted by length, and padded to the longest
of their run. With streams, as many runs are side by side as there are threads, each on one thread.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import model_worker
import numpy as np
from onnx_session import session
from ranking import Ranking

if TYPE_CHECKING:
    from model_worker import Model

INPUTS = ("input_ids", "attention_mask", "token_type_ids")
LONGEST = 512


class OnnxRuntime(Ranking):
    """A session."""

    def version(self) -> str:
        import onnxruntime

        return str(onnxruntime.__version__)

    def prepare(self, model: Model) -> None:
        import onnx_graph

        onnx_graph.write(model.folder, model.place, model.kind.split()[0])

    def load(self, model: Model, threads: int) -> None:
        from tokenizers import Tokenizer

        graph, rows = model.kind.split()
        self.rows = None if rows == "all" else int(rows)
        self.streams = threads if model.streams else 1
        self.session = session(model.place / f"{graph}.onnx", threads // self.streams)
        self.tokenizer = Tokenizer.from_file(str(model.folder / "tokenizer.json"))
        self.tokenizer.enable_truncation(LONGEST)
        self.tokenizer.no_padding()

    def texts(self, texts: list[Any]) -> Any:
        found = self.tokenizer.encode_batch([tuple(pair) for pair in texts])
        order = sorted(range(len(found)), key=lambda i: -len(found[i].ids))
        size = self.rows or len(order)
        logits = np.empty(len(found), np.float32)

        def run(part: list[int]) -> None:
            inputs = np.zeros((len(INPUTS), len(part), len(found[part[0]].ids)), np.int64)
            for row, i in enumerate(part):
                one = found[i]
                inputs[:, row, : len(one.ids)] = one.ids, one.attention_mask, one.type_ids
            logits[part] = self.session.run(None, dict(zip(INPUTS, inputs, strict=True)))[0][:, 0]

        with ThreadPoolExecutor(self.streams) as pool:
            list(pool.map(run, [order[start : start + size] for start in range(0, len(order), size)]))
        return 1 / (1 + np.exp(-logits))


model_worker.serve(OnnxRuntime())
