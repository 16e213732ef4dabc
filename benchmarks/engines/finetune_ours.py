"""This package's trainer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import finetune_worker


class Ours:
    """A `Trainer` of a classifier."""

    def version(self) -> str:
        from wordpiece_bert import _core

        return f"{_core.__version__} ({_core.kernel_instruction_sets()[-1]})"

    def load(self, folder: Path, dtype: str, threads: int, backend: str) -> None:
        import wordpiece_bert as wb
        from wordpiece_bert.finetune import Trainer, TrainingArguments, model_for

        wb.set_num_threads(threads)
        model = model_for(folder, "SequenceClassification", labels=["0", "1"], backend=backend)
        self.trainer = Trainer(model, TrainingArguments("unused", max_steps=1000, bf16=dtype == "bfloat16"))

    def step(self, batch: dict[str, Any]) -> float:
        return self.trainer.training_step([batch]).loss


finetune_worker.serve(Ours())
