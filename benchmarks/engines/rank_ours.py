"""This package's `CrossEncoder.rank`. A kind is a dtype."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import model_worker
import numpy as np
from ranking import Ranking

if TYPE_CHECKING:
    from model_worker import Model


class Ours(Ranking):
    """A ranker."""

    def version(self) -> str:
        from wordpiece_bert import _core

        return f"{_core.__version__} ({', '.join(_core.kernel_instruction_sets())})"

    def load(self, model: Model, threads: int) -> dict[str, str]:
        from wordpiece_bert import CrossEncoder

        self.ranker = CrossEncoder.from_pretrained(model.folder, dtype=model.kind, threads=threads)
        return {"engine": str(self.ranker.engine)}

    def texts(self, texts: list[Any]) -> Any:
        scores = np.empty(len(texts), np.float32)
        for answer in self.ranker.rank(texts[0][0], [document for _, document in texts]):
            scores[answer["corpus_id"]] = answer["score"]
        return scores


model_worker.serve(Ours())
