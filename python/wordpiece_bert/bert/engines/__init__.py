"""The engines that run a model: NumPy, whose code follows the papers, and Rust, several times as fast.

A model calls only the methods of `engine_interface.Encoder`, which both engines have. Both compute the formulas of
`wordpiece_bert.bert.functional`; their results agree to 1e-6, relative to the largest number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wordpiece_bert.bert.engines.choice import DTYPES, EngineInfo, choose_dtype, describe_engine
from wordpiece_bert.bert.engines.engine_interface import Dense, Encoder, Engine, PackedWeight
from wordpiece_bert.bert.engines.numpy import NumpyEngine
from wordpiece_bert.bert.engines.rust import RustEngine

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
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

#: The engines, by name and by the dtype that they compute in.
_ENGINES: Mapping[str, Mapping[str, Engine]] = {
    "numpy": {"float32": NumpyEngine()},
    "rust": {dtype: RustEngine(dtype) for dtype in DTYPES["rust"]},
}


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
    return _ENGINES[name][chosen] if instructions is None else RustEngine(chosen, instructions)
