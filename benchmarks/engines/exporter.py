"""What the programs that export models as ONNX graphs have in common: they write files, and run nothing."""

from __future__ import annotations

import os
from typing import NoReturn

from model_worker import Model

os.environ |= {"TRANSFORMERS_VERBOSITY": "error", "TQDM_DISABLE": "1", "HF_HUB_OFFLINE": "1"}


class Exporter:
    """An engine that is asked to prepare a model only."""

    def load(self, model: Model, threads: int) -> NoReturn:
        raise NotImplementedError

    def forward(self, rows: list[list[int]], batch: int) -> NoReturn:
        raise NotImplementedError

    def texts(self, texts: list[str]) -> NoReturn:
        raise NotImplementedError
