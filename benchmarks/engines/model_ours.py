"""This package, with its Rust engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import model_worker
import numpy as np
from model_worker import Model


class Ours:
    """A sentence encoder, or a model without a tokenizer.

    A kind is a dtype, followed by an instruction set to force another one than the best, or by "stored" for the model
    that `save_pretrained` has written in that dtype.
    """

    def version(self) -> str:
        from wordpiece_bert import SentenceEncoder, _core  # noqa: F401 - imported before memory is measured

        return f"{_core.__version__} ({', '.join(_core.kernel_instruction_sets())})"

    def prepare(self, model: Model) -> None:
        dtype, option = _parts(model)
        if option == "stored":
            self._read(model.folder, dtype, 1)
            (self.encoder or self.model).save_pretrained(_stored(model))

    def load(self, model: Model, threads: int) -> dict[str, str]:
        from wordpiece_bert.bert.engines.rust import RustEncoder, RustEngine

        dtype, option = _parts(model)
        if option not in ("", "stored"):
            RustEngine.prepare = lambda _, config, weights, calibration=None: RustEncoder(  # type: ignore[method-assign]
                config, weights, option, dtype, calibration
            )
        self.threads = threads
        self._read(_stored(model) if option == "stored" else model.folder, dtype, threads)
        return {"engine": str(self.model.engine)} if not option else {}

    def _read(self, folder: Path, dtype: str, threads: int) -> None:
        from wordpiece_bert import SentenceEncoder
        from wordpiece_bert.bert import AutoModel
        from wordpiece_bert.sentence.dense.parts import transformer_of

        self.encoder: Any = None
        if (folder / "tokenizer.json").exists():
            self.encoder = SentenceEncoder.from_pretrained(folder, "rust", dtype, threads=threads)
            self.model = transformer_of(self.encoder).model
        else:
            self.model = AutoModel.base_from_pretrained(folder, "rust", dtype)

    def forward(self, rows: list[list[int]], batch: int) -> Any:
        ids, ends = np.concatenate(rows).astype(np.uint32), np.cumsum([0, *map(len, rows)])
        return self.model._encoder.pooled(ids, ends, ["mean"], 0, self.threads)

    def texts(self, texts: list[str]) -> Any:
        return self.encoder.encode(texts, return_truncated=True)[0]


def _parts(model: Model) -> tuple[str, str]:
    dtype, option = [*model.kind.split(), ""][:2]
    return dtype, option


def _stored(model: Model) -> Path:
    return model.place / f"ours-{_parts(model)[0]}"


model_worker.serve(Ours())
