"""ONNX Runtime over graphs of `onnx_graph.py`, in batches padded to their longest row, as fastembed runs it."""

# ruff: noqa: ANN401 (arrays of other packages, and JSON)

from __future__ import annotations

import hashlib
import logging
from pathlib import Path
from typing import Any

import model_worker
import numpy as np


class OnnxRuntime:
    """A session, with the tokenizer of Hugging Face."""

    def version(self) -> str:
        import onnxruntime

        return str(onnxruntime.__version__)

    def load(self, folder: Path, kind: str, threads: int) -> None:
        logging.disable(logging.WARNING)
        import onnx_graph
        import onnxruntime
        from tokenizers import Tokenizer

        place = (
            Path(__file__).parents[3] / "build" / "bench" / "onnx" / hashlib.sha1(str(folder).encode()).hexdigest()[:8]
        )
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        file = onnx_graph.write(folder, place, kind)
        self.session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
        if (folder / "tokenizer.json").exists():
            self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
            self.tokenizer.enable_truncation(256)
            self.tokenizer.enable_padding()

    def _pooled(self, ids: Any, mask: Any) -> Any:
        x = self.session.run(None, {"input_ids": ids, "attention_mask": mask})[0]
        return (x * mask[:, :, None]).sum(axis=1) / mask.sum(axis=1, keepdims=True)

    def forward(self, rows: list[list[int]], batch: int) -> Any:
        vectors = []
        for start in range(0, len(rows), batch):
            part = rows[start : start + batch]
            longest = max(map(len, part))
            ids, mask = np.zeros((2, len(part), longest), np.int64)
            for i, row in enumerate(part):
                ids[i, : len(row)], mask[i, : len(row)] = row, 1
            vectors.append(self._pooled(ids, mask))
        return np.concatenate(vectors)

    def texts(self, texts: list[str]) -> Any:
        vectors = []
        for start in range(0, len(texts), 32):
            encodings = self.tokenizer.encode_batch(texts[start : start + 32])
            ids = np.array([encoding.ids for encoding in encodings], np.int64)
            mask = np.array([encoding.attention_mask for encoding in encodings], np.int64)
            vectors.append(self._pooled(ids, mask))
        x = np.concatenate(vectors)
        return x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12)


model_worker.serve(OnnxRuntime())
