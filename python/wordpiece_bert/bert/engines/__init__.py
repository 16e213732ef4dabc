"""The engines that run a model: NumPy, whose code follows the papers, and Rust, several times as fast.

A model calls only the methods of `engine_interface.Encoder`, which both engines have. Both compute the formulas of
`wordpiece_bert.bert.functional`; their results agree to 1e-6, relative to the largest number.
"""

from __future__ import annotations

from wordpiece_bert.bert.engines.choice import AUTO, DTYPES, EngineInfo, choose_dtype, describe_engine
from wordpiece_bert.bert.engines.engine_interface import Dense, Encoder, Engine, PackedWeight
from wordpiece_bert.bert.engines.rust import RustEngine

__all__ = [
    "AUTO",
    "DTYPES",
    "Dense",
    "Encoder",
    "Engine",
    "EngineInfo",
    "PackedWeight",
    "choose_dtype",
    "describe_engine",
    "get_engine",
]


def get_engine(name: str, dtype: str, instructions: str | None = None) -> Engine:
    """Return an engine by name and dtype.

    Parameters
    ----------
    name : str
        ``"rust"`` or ``"numpy"``.
    dtype : str
        One of its `DTYPES`, or ``"auto"``.
    instructions : str, optional
        The instruction set of the Rust engine; None for the default.

    Raises
    ------
    ConfigError, InputError
        As for `choose_dtype`.
    """
    chosen = choose_dtype(name, dtype, instructions)
    if name == "rust":
        return RustEngine(chosen, instructions)
    from wordpiece_bert.bert.engines.numpy import NumpyEngine  # a tenth of the time in which an encoder is imported

    return NumpyEngine()
