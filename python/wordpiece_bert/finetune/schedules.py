"""Learning-rate schedules: functions from the number of a step to the factor of the learning rate."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from wordpiece_bert._internal.parameters import completed_by

if TYPE_CHECKING:
    from collections.abc import Callable


def get_constant_schedule() -> Callable[[int], float]:
    """Return the schedule whose factor is always 1.

    Returns
    -------
    callable
        A function from the number of the step, from 0, to the factor.

    Examples
    --------
    >>> from wordpiece_bert.finetune import get_constant_schedule
    >>> factor = get_constant_schedule()
    >>> [round(factor(step), 2) for step in (0, 2, 5, 10)]
    [1.0, 1.0, 1.0, 1.0]
    """
    return lambda _step: 1.0


def get_constant_schedule_with_warmup(num_warmup_steps: int) -> Callable[[int], float]:
    """Return the schedule that grows from 0 to 1 over the warm-up and then stays.

    Parameters
    ----------
    num_warmup_steps : int
        w, steps of the warm-up.

    Returns
    -------
    callable
        A function from the number of the step, from 0, to the factor.

    Examples
    --------
    >>> from wordpiece_bert.finetune import get_constant_schedule_with_warmup
    >>> factor = get_constant_schedule_with_warmup(5)
    >>> [round(factor(step), 2) for step in (0, 2, 5, 10)]
    [0.0, 0.4, 1.0, 1.0]
    """
    return lambda step: step / max(1, num_warmup_steps) if step < num_warmup_steps else 1.0


def get_linear_schedule_with_warmup(num_warmup_steps: int, num_training_steps: int) -> Callable[[int], float]:
    """Return the schedule of BERT's paper: a linear warm-up from 0 to 1, then a linear decay to 0.

    Parameters
    ----------
    num_warmup_steps : int
        w, steps of the warm-up.
    num_training_steps : int
        T, all steps.

    Returns
    -------
    function
        From the number of a step, counted from 0, to the factor of the learning rate: k/w during the warm-up, then
        (T − k)/(T − w), and 0 from T on. With a warm-up the first step has the factor 0.

    Examples
    --------
    >>> from wordpiece_bert.finetune import get_linear_schedule_with_warmup
    >>> factor = get_linear_schedule_with_warmup(5, 10)
    >>> [round(factor(step), 2) for step in (0, 2, 5, 10)]
    [0.0, 0.4, 1.0, 0.0]
    """
    w, total = num_warmup_steps, num_training_steps
    return lambda step: step / max(1, w) if step < w else max(0.0, (total - step) / max(1, total - w))


@completed_by(get_linear_schedule_with_warmup)
def get_cosine_schedule_with_warmup(num_warmup_steps: int, num_training_steps: int) -> Callable[[int], float]:
    """Return the schedule with a linear warm-up and then half a cosine, from 1 to 0.

    Returns
    -------
    callable
        A function from the number of the step, from 0, to the factor.

    Examples
    --------
    >>> from wordpiece_bert.finetune import get_cosine_schedule_with_warmup
    >>> factor = get_cosine_schedule_with_warmup(5, 10)
    >>> [round(factor(step), 2) for step in (0, 2, 5, 10)]
    [0.0, 0.4, 1.0, 0.0]
    """
    w, total = num_warmup_steps, num_training_steps

    def factor(step: int) -> float:
        if step < w:
            return step / max(1, w)
        return max(0.0, 0.5 * (1.0 + math.cos(math.pi * min(1.0, (step - w) / max(1, total - w)))))

    return factor
