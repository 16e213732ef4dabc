"""The best evaluation of a training so far."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


@dataclass
class BestEvaluation:
    """Which evaluation was the best so far, and how many have come since.

    Attributes
    ----------
    value : float or None
        The metric, with its sign changed if the lowest is best; None if none was finite.
    step : int or None
        The step of the evaluation.
    checkpoint : Path or None
        The folder in which its checkpoint is, if one was saved.
    evaluations_since : int
        How many evaluations have come without progress.
    """

    value: float | None = None
    step: int | None = None
    checkpoint: Path | None = None
    evaluations_since: int = 0

    def record(self, value: float, step: int, output: Path) -> bool:
        """Take note of an evaluation; return whether it is the best so far. A value that is not finite never is.

        Parameters
        ----------
        value : float
            The metric, with its sign changed if the lowest is best.
        step : int
            The step.
        output : Path
            The folder of the checkpoints.
        """
        if not math.isfinite(value) or (self.value is not None and value <= self.value):
            self.evaluations_since += 1
            return False
        self.value, self.step, self.evaluations_since = value, step, 0
        self.checkpoint = output / f"checkpoint-{step}"
        return True

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint stores."""
        name = None if self.checkpoint is None else self.checkpoint.name
        return {
            "value": self.value,
            "step": self.step,
            "checkpoint": name,
            "evaluations_since": self.evaluations_since,
        }

    @classmethod
    def from_state(cls, state: dict[str, Any] | None, folder: Path, step: int) -> BestEvaluation:
        """Return what the checkpoint of a step stored.

        Parameters
        ----------
        state : dict, optional
            What `state` returned.
        folder : Path
            The checkpoint; other ones are looked for beside it.
        step : int
            The step.
        """
        if not state:
            return cls()
        found = cls(**state)
        if found.step is not None:
            found.checkpoint = folder if found.step == step else folder.parent / state["checkpoint"]
        return found
