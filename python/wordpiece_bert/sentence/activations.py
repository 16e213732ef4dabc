"""The activations that a configuration of sentence-transformers may name.

Names are the names of torch's classes, compared as entire strings; a name is never imported.
"""

from __future__ import annotations

from collections.abc import Callable

from wordpiece_bert.bert.functional import Array, gelu, relu, sigmoid, tanh

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
