"""The engines that run a model: NumPy, whose code follows the papers, and Rust, several times as fast.

A model calls only the methods of `base.Encoder`, which both engines have. Both compute the formulas of
`wordpiece_bert.bert.functional`; their results agree to 1e-6, relative to the largest number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wordpiece_bert.bert.engines.base import Dense, Encoder, Engine, PackedWeight
from wordpiece_bert.bert.engines.numpy import NumpyEngine
from wordpiece_bert.bert.engines.rust import RustEngine
from wordpiece_bert.errors import ConfigError, InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Dense", "Encoder", "Engine", "PackedWeight", "get_engine"]

#: The engines, by name and by the dtype that they compute in.
_ENGINES: Mapping[str, Mapping[str, Engine]] = {
    "numpy": {"float32": NumpyEngine()},
    "rust": {"float32": RustEngine(), "bfloat16": RustEngine("bfloat16")},
}


def get_engine(name: str, dtype: str) -> Engine:
    """Return an engine by name and dtype.

    Parameters
    ----------
    name
        ``"rust"`` or ``"numpy"``.
    dtype
        ``"float32"``; or ``"bfloat16"``, only in the Rust engine: the factors of each layer's matrix products are then
        rounded to bfloat16 (8 bits of precision), and summed in float32.

    Raises
    ------
    ConfigError
        The engine does not compute in this dtype, but another engine does.
    InputError
        There is no engine, or no dtype, of this name.
    """
    dtypes = _ENGINES.get(name)
    if dtypes is None:
        known = ", ".join(map(repr, _ENGINES))
        message = f"backend must be one of {known}, not {name!r}"
        raise InputError(message)
    engine = dtypes.get(dtype)
    if engine is None:
        known = ", ".join(map(repr, dtypes))
        if any(dtype in others for others in _ENGINES.values()):
            message = f"dtype={dtype!r}: backend {name!r} computes in {known} only"
            raise ConfigError(message)
        message = f"dtype must be one of {known}, not {dtype!r}"
        raise InputError(message)
    return engine
