"""What the programs of rankers have in common: they are asked for the scores of pairs of texts only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import NoReturn

    from model_worker import Model


class Ranking:
    """An engine whose `texts` takes one query with each of its documents, [query, document], and returns scores [n]."""

    def prepare(self, model: Model) -> None:
        """Nothing is converted."""

    def forward(self, rows: list[list[int]], batch: int) -> NoReturn:
        raise NotImplementedError


def session(file: Any, threads: int) -> Any:
    """Return a session of ONNX Runtime with this number of threads."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
