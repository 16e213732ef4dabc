"""The ways in which the kernels multiply, and models that are made to use one of them."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pytest

from wordpiece_bert import _core
from wordpiece_bert.bert.engines.rust import RustEncoder, RustEngine
from wordpiece_bert.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from _pytest.mark import ParameterSet

    from wordpiece_bert.bert import BertConfig
    from wordpiece_bert.bert.checkpoint.safetensors import AnyArray
    from wordpiece_bert.bert.functional import Ids

__all__ = ["PATHS", "available", "each_path", "forced_path"]

#: Those that can be forced on some CPU.
PATHS = (
    *("scalar", "avx2-plain", "avx-vnni", "avx512-plain", "avx512-vnni", "amx", "amx-emulated"),
    *("neon-plain", "sdot", "smmla"),
)


def available(dtype: str) -> tuple[str, ...]:
    """Return the paths among `PATHS` that this CPU has."""
    found = []
    for path in PATHS:
        try:
            _core.describe_products(dtype, path)
        except InputError:
            continue
        found.append(path)
    return tuple(found)


def each_path(dtype: str) -> list[ParameterSet]:
    """Return the values of a parameter `path` of slow tests: `make test` runs the fastest path of this CPU only."""
    paths = available(dtype)
    fastest = next(path for path in reversed(paths) if not path.endswith("-emulated"))
    return [pytest.param(path, marks=() if path == fastest else pytest.mark.thorough) for path in paths]


@contextlib.contextmanager
def forced_path(path: str) -> Iterator[None]:
    """Let models that are made meanwhile multiply in this way, in their own dtype."""

    def prepare(
        engine: RustEngine,
        config: BertConfig,
        weights: Mapping[str, AnyArray],
        calibration: Sequence[Ids] | None = None,
    ) -> RustEncoder:
        return RustEncoder(config, weights, path, engine._dtype, calibration)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RustEngine, "prepare", prepare)
        yield
