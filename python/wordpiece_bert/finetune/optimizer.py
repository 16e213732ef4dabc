"""AdamW and gradient clipping."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from wordpiece_bert import _core
from wordpiece_bert._internal.checks import check_instance, check_several, finite_number
from wordpiece_bert.errors import InputError, NonFiniteError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wordpiece_bert.bert.functional import Array


def decayed(name: str) -> bool:
    """Whether weight decay applies to a parameter: not to biases and norms, as in transformers' Trainer.

    Parameters
    ----------
    name : str
        The name of the parameter.

    Returns
    -------
    bool
        True if it applies.

    Examples
    --------
    >>> from wordpiece_bert.finetune.optimizer import decayed
    >>> (
    ...     decayed("encoder.layer.0.output.dense.weight"),
    ...     decayed("encoder.layer.0.output.LayerNorm.weight"),
    ... )
    (True, False)
    """
    # The norms of MegatronBERT are called ln.
    return "bias" not in name and "norm" not in name.lower() and ".ln." not in f".{name}"


class AdamW:
    """Adam with decoupled weight decay (Loshchilov and Hutter 2019), as in torch.

    For a gradient g at step t, counted from 1, with learning rate η and decay λ::

        p ← p·(1 − ηλ)        m ← m + (1 − β₁)(g − m)        v ← β₂v + (1 − β₂)g²
        p ← p − η/(1 − β₁ᵗ) · m / (√v/√(1 − β₂ᵗ) + ε)

    Without `correct_bias` it is the optimizer of Google's BERT: p ← p − η·(m/(√v + ε) + λp). Its first steps are
    larger, 3.2 times at t = 1, which makes fine-tuning less stable.

    A parameter without a gradient in a step is left as it is. One whose gradient is 0 decays and follows its momentum.

    Parameters
    ----------
    parameters : mapping of str to ndarray
        float32 arrays by name; `step` changes them in place.
    lr : float, default 5e-05
        Learning rate η.
    betas : tuple of float, optional
        β₁ and β₂.
    eps : float, default 1e-08
        ε.
    weight_decay : float, default 0.01
        λ, for the parameters that `decayed` names.
    correct_bias : bool, default True
        Whether the moments are divided by 1 − βᵗ.

    Attributes
    ----------
    steps : int
        How many steps have been made.

    Raises
    ------
    InputError
        An option is out of range; the message has its name and value.

    Examples
    --------
    One step moves each number against its gradient by about the learning rate:

    >>> import numpy as np
    >>> from wordpiece_bert.finetune import AdamW
    >>> parameters = {"dense.weight": np.array([1.0, 1.0], np.float32)}
    >>> optimizer = AdamW(parameters, lr=0.1, weight_decay=0.0)
    >>> optimizer.step({"dense.weight": np.array([2.0, -0.5], np.float32)})
    >>> parameters["dense.weight"].round(3)
    array([0.9, 1.1], dtype=float32)
    >>> again = AdamW(parameters, lr=0.1)
    >>> again.load_state_dict(optimizer.state_dict())
    >>> again.steps
    1
    """

    parameters: dict[str, Array]
    lr: float
    betas: tuple[float, float]
    eps: float
    weight_decay: float
    correct_bias: bool
    steps: int

    def __init__(
        self,
        parameters: Mapping[str, Array],
        lr: float = 5e-5,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.01,
        correct_bias: bool = True,
    ) -> None:
        self.lr = finite_number("lr", lr, least=0)
        check_several("betas", betas)
        if len(betas) != 2:
            raise InputError(f"betas must be two numbers, not {betas!r:.80}")
        beta1, beta2 = (finite_number(f"betas[{i}]", beta, least=0, below=1) for i, beta in enumerate(betas))
        self.betas = (beta1, beta2)
        self.eps = finite_number("eps", eps, least=0)
        self.weight_decay = finite_number("weight_decay", weight_decay, least=0)
        self.correct_bias = bool(correct_bias)
        check_instance("parameters", parameters, Mapping)
        self.parameters = dict(parameters)
        for name, parameter in self.parameters.items():
            check_instance(f"parameter {name!r}", parameter, np.ndarray, "an array")
            if not parameter.flags.writeable or parameter.dtype.kind != "f":
                raise InputError(f"parameter {name!r} must be a writable array of floats, not {parameter.dtype}")
        self.steps = 0
        self._moments: dict[str, tuple[Array, Array]] = {}

    def step(self, gradients: Mapping[str, Array], lr: float | None = None, *, scale: float = 1.0) -> None:
        """Make one step.

        Parameters
        ----------
        gradients : mapping of str to ndarray
            Arrays by the names of the parameters, of their shapes.
        lr : float, optional
            The learning rate of this step; by default the optimizer's.
        scale : float, default 1.0
            What the gradients are multiplied by first, such as the factor of clipping.

        Raises
        ------
        InputError
            A gradient has no parameter, or another shape.
        """
        for name, gradient in gradients.items():
            if name not in self.parameters:
                raise InputError(f"there is no parameter {name!r}, but a gradient of this name")
            if gradient.shape != self.parameters[name].shape:
                expected = list(self.parameters[name].shape)
                raise InputError(f"the gradient of {name!r} has shape {list(gradient.shape)}, the parameter {expected}")
        rate = self.lr if lr is None else finite_number("lr", lr, least=0)
        self.steps += 1
        for name in gradients:
            if name not in self._moments:
                p = self.parameters[name]
                self._moments[name] = np.zeros_like(p), np.zeros_like(p)
        self._update(gradients, rate, scale)

    def _update(self, gradients: Mapping[str, Array], lr: float, scale: float) -> None:
        # Moments that decay to denormal numbers are as good as 0.
        with np.errstate(under="ignore"):
            for name, g in gradients.items():
                self._update_one(name, g if scale == 1.0 else g * np.float32(scale), lr)

    def _update_one(self, name: str, g: Array, lr: float) -> None:
        p, (m, v) = self.parameters[name], self._moments[name]
        beta1, beta2 = self.betas
        decay = self.weight_decay if decayed(name) else 0.0
        m += (1 - beta1) * (g - m)
        v *= beta2
        v += (1 - beta2) * np.square(g)
        if self.correct_bias:
            p *= 1 - lr * decay
            divisor = np.sqrt(v) / math.sqrt(1 - beta2**self.steps) + self.eps
            p -= (lr / (1 - beta1**self.steps)) * m / divisor
        else:
            p -= lr * (m / (np.sqrt(v) + self.eps) + decay * p)

    def state_dict(self) -> dict[str, Any]:
        """Return the number of steps and both moments of each parameter, copied.

        Returns
        -------
        dict
            ``steps``, and ``moments``: both arrays of each parameter by its name.
        """
        moments = {name: (m.copy(), v.copy()) for name, (m, v) in self._moments.items()}
        return {"steps": self.steps, "moments": moments}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore what `state_dict` returned.

        Parameters
        ----------
        state : mapping of str to object
            The steps and the moments.

        Raises
        ------
        InputError
            A moment has no parameter, or another shape.
        """
        for name, (m, v) in state["moments"].items():
            if name not in self.parameters or not m.shape == v.shape == self.parameters[name].shape:
                raise InputError(f"the moments of {name!r} do not fit a parameter")
        self.steps = int(state["steps"])
        self._moments = {name: (m.copy(), v.copy()) for name, (m, v) in state["moments"].items()}


class FusedAdamW(AdamW):
    """`AdamW` with one pass of the kernels over all numbers, on all threads; parameters are float32, row by row."""

    def _update(self, gradients: Mapping[str, Array], lr: float, scale: float) -> None:
        flat = []
        for name, g in gradients.items():
            p, (m, v) = self.parameters[name].reshape(-1), self._moments[name]
            decay = self.weight_decay if decayed(name) else 0.0
            flat.append((p, np.ascontiguousarray(g).reshape(-1), m.reshape(-1), v.reshape(-1), decay))
        _core.adamw_step(
            flat,
            factor=scale,
            betas=self.betas,
            eps=self.eps,
            rate=lr,
            step=self.steps if self.correct_bias else None,
        )


def gradient_norm(gradients: Mapping[str, Array]) -> float:
    """Return the norm of all gradients together, float32 arrays: the root of the sum of all squares, in float64.

    Parameters
    ----------
    gradients : mapping of str to ndarray
        Arrays by name. The sum is in the order of the names.

    Raises
    ------
    NonFiniteError
        A gradient is NaN or infinite.
    """
    squares = _core.sums_of_squares([np.ascontiguousarray(g) for g in gradients.values()])
    for name, square in zip(gradients, squares, strict=True):
        _check_finite(name, square)
    return math.sqrt(math.fsum(squares))


def clip_factor(norm: float, max_norm: float) -> float:
    """Return min(1, max_norm/(norm + 1e-6)); 1 where `max_norm` is 0."""
    return min(1.0, max_norm / (norm + 1e-6)) if max_norm > 0 else 1.0


def _check_finite(name: str, square: float) -> None:
    if not math.isfinite(square):
        raise NonFiniteError(f"the gradient of {name} is not finite")


def clip_grad_norm_(gradients: Mapping[str, Array] | Iterable[Array], max_norm: float) -> float:
    """Scale gradients in place so that their norm is at most `max_norm`, as in torch.

    The factor is min(1, max_norm/(norm + 1e-6)).

    Parameters
    ----------
    gradients : mapping of str to ndarray or iterable of ndarray
        Arrays, by name or not; writable.
    max_norm : float
        The largest norm; 0 for no clipping.

    Returns
    -------
    float
        The norm before clipping: the root of the sum of all squares, summed in double precision.

    Raises
    ------
    InputError
        `max_norm` is negative or not finite.
    NonFiniteError
        A gradient is NaN or infinite; no gradient has changed.

    Examples
    --------
    >>> import numpy as np
    >>> from wordpiece_bert.finetune import clip_grad_norm_
    >>> gradients = {"weight": np.array([3.0, 4.0], np.float32)}
    >>> clip_grad_norm_(gradients, max_norm=1.0)
    5.0
    >>> gradients["weight"].round(3)
    array([0.6, 0.8], dtype=float32)
    """
    largest = finite_number("max_norm", max_norm, least=0)
    check_several("gradients", gradients, "a dict or a list of arrays")
    named = dict(gradients) if isinstance(gradients, Mapping) else {str(i): g for i, g in enumerate(gradients)}
    total = 0.0
    for name, gradient in named.items():
        check_instance(f"gradient {name!r}", gradient, np.ndarray, "an array")
        flat = gradient.reshape(-1)
        square = float(np.einsum("i,i->", flat, flat, dtype=np.float64, casting="safe"))
        _check_finite(name, square)
        total += square
    norm = math.sqrt(total)
    factor = clip_factor(norm, largest)
    if factor < 1:
        for gradient in named.values():
            gradient *= np.float32(factor)
    return norm
