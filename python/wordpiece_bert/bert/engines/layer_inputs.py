"""How large the inputs of dense layers are, seen by running a model in float32: a few layers in memory at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from wordpiece_bert import _core
from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert.bert.engines.packing import DensePacker
from wordpiece_bert.bert.engines.rust_layers import LayerPacker, build_kernels, part_of, row_columns
from wordpiece_bert.bert.parameters import PREPARING
from wordpiece_bert.bert.plan.parts import Dense

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from wordpiece_bert.bert.config import BertConfig
    from wordpiece_bert.bert.engines.packing import Observations
    from wordpiece_bert.bert.functional import Array, Ids


@completed_by(PREPARING)
class LayerInputs:
    """Runs rows of ids through groups of layers, from the first on, and observes the inputs of their dense layers.

    A group is packed in float32, run over all rows, and dropped; what is kept is its output, float32 [tokens, H]. The
    observations are the same as in a run of the whole model, bit for bit.

    Parameters
    ----------
    packer
        What has packed the dense layers before the first layer, and lends its scratch memory.
    rows
        The rows of ids.
    """

    def __init__(
        self,
        config: BertConfig,
        weights: Mapping[str, Array],
        packer: DensePacker,
        rows: Sequence[Ids],
    ) -> None:
        self._config, self._weights = config, weights
        self._scratch = packer.scratch
        self._ids = np.concatenate(rows)
        self._ends = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
        self._x: Array | None = None

    def observe(self, layers: range) -> Observations:
        """Run the next layers, and return what their dense layers had as inputs."""
        packer = DensePacker(self._weights, "float32", None, observed=True, scratch=self._scratch)
        packed = LayerPacker(self._config, self._weights, packer)
        for index in layers:
            packed.pack(index)
        plan = part_of(self._config.plan(), layers, begun=self._x is not None)
        for part in plan.embeddings.then:
            if isinstance(part, Dense):
                packer.pack(part.name)
        kernels = build_kernels(plan, self._weights, packer.dense, self._config, None)
        tokens = row_columns(self._config, self._ids, self._ends)
        if self._x is not None:
            tokens = tokens._replace(ids=np.arange(len(self._ids), dtype=np.uint32), vectors=self._x)
        # On one thread, so that sums are added in the same order each time.
        self._x = _core.token_states(kernels, tokens, 1)
        return packer.observed()
