"""The two ways to compute a training step: the formulas in NumPy, and the kernels in Rust.

Heads, losses and pooling call an engine for their dense layers only; the rest of them is NumPy, over vectors that are
few beside the products of the encoder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from wordpiece_bert import _core
from wordpiece_bert.bert import functional, gradients
from wordpiece_bert.errors import InputError
from wordpiece_bert.finetune.dropout import KeyedDropout
from wordpiece_bert.finetune.encoder_pass import EncoderPass
from wordpiece_bert.finetune.optimizer import AdamW, FusedAdamW, clip_grad_norm_, gradient_norm
from wordpiece_bert.finetune.rust_encoder import RustEncoderPass, new_workspace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wordpiece_bert.bert.functional import Array, Ids
    from wordpiece_bert.finetune.network import Gradients, Network
    from wordpiece_bert.finetune.passes import PassOptions
    from wordpiece_bert.finetune.tokens import Tokens


class Encoded(Protocol):
    """A forward pass of the encoder, whose backward pass can be run once."""

    x: Array  # [M, H]

    def backward(self, dx: Array, gradient: Gradients) -> Array | None:
        """Add the gradients of the encoder, as `encoder_pass.EncoderPass.backward`."""


class TrainingEngine(Protocol):
    """What computes a training step."""

    #: The class of the optimizer.
    optimizer: type[AdamW]

    def encode(
        self,
        network: Network,
        parameters: Mapping[str, Array],
        tokens: Tokens,
        options: PassOptions,
    ) -> Encoded:
        """Run the encoder; the arguments are as in `encoder_pass.EncoderPass`."""

    def linear(self, x: Array, weight: Array, bias: Array | None) -> Array:
        """Return x·Wᵀ + b: x [M, in], weight [out, in], bias [out] or None for none -> [M, out]."""

    def linear_backward(self, dy: Array, x: Array, weight: Array) -> tuple[Array, Array, Array]:
        """Return dx, dW and db, as `gradients.linear_backward`."""

    def cross_entropy(self, logits: Array, labels: Ids) -> tuple[float, Array]:
        """Return the mean cross entropy and its gradient, as `gradients.cross_entropy`; `logits` may be overwritten."""

    def norm(self, gradients: Mapping[str, Array]) -> float:
        """Return the norm of all gradients together, as `clip_grad_norm_`; it raises NonFiniteError."""


class NumpyTraining:
    """The formulas of `functional` and `gradients`, one after the other: the reference."""

    optimizer: type[AdamW] = AdamW

    def encode(
        self,
        network: Network,
        parameters: Mapping[str, Array],
        tokens: Tokens,
        options: PassOptions,
    ) -> Encoded:
        """Run the encoder, as `TrainingEngine.encode`."""
        return EncoderPass(network, parameters, tokens, options)

    linear = staticmethod(functional.linear)
    linear_backward = staticmethod(gradients.linear_backward)
    cross_entropy = staticmethod(gradients.cross_entropy)

    def norm(self, gradients: Mapping[str, Array]) -> float:
        """Return the norm of all gradients together."""
        return clip_grad_norm_(gradients, 0)


class RustTraining:
    """The kernels: packed rows on all threads, with the same bits for any number of them.

    Parameters
    ----------
    instruction_set : str, optional
        One of `_core.kernel_instruction_sets()`; None for the best that the CPU supports.
    threads : int, optional
        How many threads; None for the default.
    dtype : str, default "float32"
        ``"float32"``, or ``"bfloat16"`` for products of rounded numbers in the encoder; all else is float32.
    """

    optimizer: type[AdamW] = FusedAdamW

    def __init__(self, instruction_set: str | None = None, threads: int | None = None, dtype: str = "float32") -> None:
        self._instruction_set, self._threads, self._dtype = instruction_set, threads, dtype
        #: The buffers of the last pass over each model, which the next pass over it uses again.
        self._idle: dict[Network, _core.EncoderTraining] = {}

    def encode(
        self,
        network: Network,
        parameters: Mapping[str, Array],
        tokens: Tokens,
        options: PassOptions,
    ) -> Encoded:
        """Run the encoder, as `TrainingEngine.encode`; in NumPy with given masks."""
        if not (options.dropout is None or isinstance(options.dropout, KeyedDropout)):
            return EncoderPass(network, parameters, tokens, options)
        workspace = self._idle.pop(network, None) or new_workspace(network, self._instruction_set, self._dtype)

        def release() -> None:
            self._idle[network] = workspace

        return RustEncoderPass(workspace, network, parameters, tokens, options, threads=self._threads, release=release)

    def linear(self, x: Array, weight: Array, bias: Array | None) -> Array:
        """Return x·Wᵀ + b."""
        rows = np.ascontiguousarray(x)
        bias = np.zeros(len(weight), np.float32) if bias is None else bias
        return _core.dense(rows, weight, bias, "identity", self._threads, self._instruction_set)

    def linear_backward(self, dy: Array, x: Array, weight: Array) -> tuple[Array, Array, Array]:
        """Return dx, dW and db."""
        dy, x = np.ascontiguousarray(dy, np.float32), np.ascontiguousarray(x)
        return _core.linear_backward(dy, x, weight, self._threads, self._instruction_set)

    def cross_entropy(self, logits: Array, labels: Ids) -> tuple[float, Array]:
        """Return the mean cross entropy and its gradient, which takes the place of the logits."""
        return _core.cross_entropy(
            logits, np.ascontiguousarray(labels, np.int64), self._threads, self._instruction_set
        ), logits

    def norm(self, gradients: Mapping[str, Array]) -> float:
        """Return the norm of all gradients together."""
        return gradient_norm(gradients)


def engine_of(backend: str, *, bf16: bool = False) -> TrainingEngine:
    """Return the engine for the backend of a model, ``"numpy"`` or ``"rust"``.

    Raises
    ------
    InputError
        NumPy is to multiply bfloat16.
    """
    if backend != "numpy":
        return RustTraining(dtype="bfloat16" if bf16 else "float32")
    if bf16:
        raise InputError(
            "bf16=True: products in bfloat16 need a model with backend='rust', not 'numpy'; or use bf16=False"
        )
    return NumpyTraining()
