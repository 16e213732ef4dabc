"""torch and transformers, with the loop of a fine-tuning in torch's documentation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import finetune_worker


class Torch:
    """`AutoModelForSequenceClassification`, `torch.optim.AdamW`, and autocast for bfloat16."""

    def version(self) -> str:
        import torch
        import transformers

        transformers.logging.set_verbosity_error()
        return f"torch {torch.__version__}, transformers {transformers.__version__}"

    def load(self, folder: Path, dtype: str, threads: int, backend: str) -> None:
        import torch
        from transformers import AutoModelForSequenceClassification

        del backend
        torch.set_num_threads(threads)
        self.bfloat16 = dtype == "bfloat16"
        self.model = AutoModelForSequenceClassification.from_pretrained(folder)
        self.model.train()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=5e-5, weight_decay=0.01)

    def step(self, batch: dict[str, Any]) -> float:
        import torch

        inputs = {name: torch.from_numpy(array) for name, array in batch.items()}
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=self.bfloat16):
            loss = self.model(**inputs).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return float(loss.detach())


finetune_worker.serve(Torch())
