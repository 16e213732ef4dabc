"""The dtypes of each engine, and which of them ``dtype="auto"`` takes on this CPU: the one place with this rule."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from wordpiece_bert import _core
from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert.bert.parameters import PREPARING
from wordpiece_bert.errors import ConfigError, InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

#: The dtype that stands for the fastest one.
AUTO = "auto"

#: The dtypes that each engine computes in, by its name; the first is the default.
DTYPES: Mapping[str, tuple[str, ...]] = {"numpy": ("float32",), "rust": ("float32", "bfloat16", "int8")}

#: The dtypes that "auto" may take, the preferred first: their vectors keep a cosine of at least 0.9999 to those in
#: float32. A dtype that keeps less is taken only where it is asked for.
_ACCURATE = ("bfloat16",)


@dataclass(frozen=True)
class EngineInfo:
    """How a model computes on this machine.

    Attributes
    ----------
    cpu : str
        The name of the CPU.
    backend : str
        The engine: ``"rust"`` or ``"numpy"``.
    dtype : str
        The dtype of the products, never ``"auto"``.
    instructions : str
        The instructions that multiply, such as ``"avx512-bf16"``; ``"blas"`` for the library that NumPy was built with.
    threads : int or None
        How many threads a call uses unless it gives another number; None for the number that NumPy's library uses.
    reason : str
        Why this dtype: that it was requested, or the rule that took it; and what the CPU does with it.
    """

    cpu: str
    backend: str
    dtype: str
    instructions: str
    threads: int | None
    reason: str

    def with_threads(self, threads: int | None) -> EngineInfo:
        """Return the same engine for calls that ask for so many threads; None for the default."""
        return self if self.threads is None else replace(self, threads=_core.num_threads(threads))

    def __str__(self) -> str:
        threads = "" if self.threads is None else f", {self.threads} thread{'s' * (self.threads != 1)}"
        return f"{self.dtype} by {self.instructions} on {self.cpu}{threads}: {self.reason}"


def choose_dtype(backend: str, dtype: str, instructions: str | None = None) -> str:
    """Return the dtype that an engine computes in.

    Parameters
    ----------
    backend : str
        ``"rust"`` or ``"numpy"``.
    dtype : str
        One of the engine's `DTYPES`, which is returned; or ``"auto"`` for the fastest that keeps a cosine of 0.9999 to
        float32: bfloat16 where this CPU multiplies it faster than float32, else float32. The rule depends on the CPU
        alone and measures nothing.
    instructions : str, optional
        The instruction set that is asked for, which decides in place of the best of the CPU.

    Raises
    ------
    ConfigError
        The engine does not compute in this dtype, but another engine does.
    InputError
        There is no engine, dtype or instruction set of this name, or the engine is NumPy, which has no choice of them.
    """
    offered = DTYPES.get(str(backend))  # anything may be given, a list too
    if offered is None:
        raise InputError(f"backend must be one of {', '.join(map(repr, DTYPES))}, not {backend!r}")
    if instructions is not None:
        if backend != "rust" or not isinstance(instructions, str):
            raise InputError(
                f"instructions must be the name of an instruction set, for backend='rust', not {instructions!r:.80}"
            )
        _core.describe_products("float32", instructions)
    if dtype == AUTO:
        faster = (name for name in _ACCURATE if name in offered and _core.describe_products(name, instructions)[2])
        return next(faster, offered[0])
    if dtype not in offered:
        known = ", ".join(map(repr, (*offered, AUTO)))
        if any(dtype in others for others in DTYPES.values()):
            raise ConfigError(f"dtype={dtype!r}: backend {backend!r} computes in {known} only")
        raise InputError(f"dtype must be one of {known}, not {dtype!r}")
    return dtype


@completed_by(PREPARING)
def describe_engine(backend: str, dtype: str, *, requested: str, instruction_set: str | None = None) -> EngineInfo:
    """Describe how an engine computes on this machine.

    Parameters
    ----------
    backend, dtype
        What `choose_dtype` accepted and returned.
    requested
        The dtype that the caller gave, which may be ``"auto"``.
    """
    name = _core.describe_products("float32", instruction_set)[0]
    if backend == "numpy":
        reason = "the NumPy engine computes in float32 only" if requested == AUTO else "requested"
        return EngineInfo(name, backend, dtype, "blas", None, reason)
    instructions = _core.describe_products(dtype, instruction_set)[1]
    faster, why = _core.describe_products("bfloat16", instruction_set)[2:]
    if requested == AUTO and dtype == "int8":
        reason = "the weights are stored in int8"
    elif requested == AUTO:
        reason = f"the fastest dtype within a cosine of 0.9999 of float32 ({why})"
    elif dtype == "bfloat16" and not faster:
        reason = f"requested; the products are those of float32 with rounded weights ({why})"
    elif dtype == "bfloat16":
        reason = f"requested ({why})"
    else:
        reason = "requested"
    return EngineInfo(name, backend, dtype, instructions, _core.num_threads(), reason)
