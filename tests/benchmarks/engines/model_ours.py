"""This package, with its Rust or its NumPy engine."""

# ruff: noqa: ANN401 (arrays of other packages, and JSON)

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import model_worker
import numpy as np

if TYPE_CHECKING:
    from pathlib import Path


class Ours:
    """A sentence encoder, or a model without a tokenizer."""

    def version(self) -> str:
        from wordpiece_bert import _core

        return f"{_core.__version__} ({_core.kernel_instruction_sets()[-1]})"

    def load(self, folder: Path, kind: str, threads: int) -> None:
        from wordpiece_bert import SentenceEncoder, _core
        from wordpiece_bert.bert import BertModel
        from wordpiece_bert.bert.engines.rust import RustEncoder, RustEngine

        backend, option = [*kind.split(), ""][:2]
        chosen = option
        if chosen in _core.kernel_instruction_sets():  # another instruction set than the best
            RustEngine.prepare = lambda _, config, weights: RustEncoder(config, weights, chosen)  # type: ignore[method-assign]
            option = ""
        self.threads = threads
        self.encoder: Any = None
        if (folder / "tokenizer.json").exists():
            self.encoder = SentenceEncoder.from_pretrained(folder, backend, option or "float32", threads=threads)
            self.model = self.encoder._model
        else:
            self.model = BertModel.from_pretrained(folder, backend, option or "float32")

    def forward(self, rows: list[list[int]], batch: int) -> Any:
        if self.model.takes_rows:
            ids, ends = np.concatenate(rows).astype(np.uint32), np.cumsum([0, *map(len, rows)])
            return self.model._encoder.pooled(ids, ends, ["mean"], 0, self.threads)
        vectors = []
        for start in range(0, len(rows), batch):
            part = rows[start : start + batch]
            mask = np.arange(max(map(len, part))) < np.array([len(row) for row in part])[:, None]
            ids = np.zeros(mask.shape, np.int64)
            ids[mask] = np.concatenate(part)
            vectors.append(self.model.pool(self.model(ids, mask).last_hidden_state, mask, "mean"))
        return np.concatenate(vectors)

    def texts(self, texts: list[str]) -> Any:
        return self.encoder.encode(texts, return_truncated=True)[0]


model_worker.serve(Ours())
