"""The activations that a configuration of sentence-transformers may name.

Names are the names of torch's classes, compared as entire strings; a name is never imported.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from wordpiece_bert.bert.functional import Array, gelu, relu, sigmoid, tanh
from wordpiece_bert.errors import InputError

ActivationFn = Callable[[Array], Array]


def identity(x: Array) -> Array:
    """Return x."""
    return x


TORCH_ACTIVATIONS: dict[str, ActivationFn] = {
    "torch.nn.modules.activation.Sigmoid": sigmoid,
    "torch.nn.modules.activation.Tanh": tanh,
    "torch.nn.modules.activation.ReLU": relu,
    "torch.nn.modules.activation.GELU": gelu,
    "torch.nn.modules.linear.Identity": identity,
}


def checked_activation(value: object) -> ActivationFn | None:
    """Check that an argument `activation_fn` is a function or None; a module of torch in the table is our function.

    Raises
    ------
    InputError
        It is something else.
    """
    if value is None:
        return None
    if not callable(value):
        raise InputError(
            "activation_fn must be a function from logits [B, labels] to scores, or None for the model's, not "
            f"{value!r:.80}"
        )
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    exact = getattr(value, "approximate", "none") == "none"  # torch's GELU has two formulas
    return TORCH_ACTIVATIONS.get(kind, value) if exact else value


def activated(activation: ActivationFn, logits: Array) -> Array:
    """Return the scores of logits [B, labels]: as many, or one for each pair, [B].

    Raises
    ------
    InputError
        The function does not take the logits, or returns another shape.
    """
    try:
        scores = np.asarray(activation(logits))
    except TypeError as cause:
        raise InputError(
            f"activation_fn does not take logits as a NumPy array [B, labels]: {cause}; for a function f of torch, "
            "pass lambda logits: f(torch.from_numpy(logits)).numpy()"
        ) from cause
    if scores.shape not in (logits.shape, logits.shape[:1]):
        raise InputError(
            f"activation_fn must return scores [B, labels] or [B], here {list(logits.shape)} or {len(logits)}, "
            f"not {list(scores.shape)}"
        )
    return scores
