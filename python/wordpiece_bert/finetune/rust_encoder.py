"""The encoder's forward and backward pass in the Rust kernels, over the parameters' own arrays.

It computes what `finetune.encoder_pass` does, on all threads. The crate ``rust/kernels`` has the computation,
in its module ``training``; it reads the model's plan, and weights and gradients by their names.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from wordpiece_bert import _core
from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert.bert import functional
from wordpiece_bert.bert.disentangled import convolution_as_dense
from wordpiece_bert.bert.disentangled_gradients import convolution_of_dense
from wordpiece_bert.bert.plan.parts import Attention, Convolution, Distances, Table, weighted
from wordpiece_bert.bert.rotary import frequencies
from wordpiece_bert.errors import InputError
from wordpiece_bert.finetune.dropout import KeyedDropout
from wordpiece_bert.finetune.encoder_pass import EncoderPass
from wordpiece_bert.finetune.weights import EncoderWeights

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy.typing as npt

    from wordpiece_bert.bert.functional import Array, Ids
    from wordpiece_bert.bert.plan.parts import Plan, Residual
    from wordpiece_bert.finetune.network import Gradients, Network
    from wordpiece_bert.finetune.passes import PassOptions
    from wordpiece_bert.finetune.tokens import Tokens


def new_workspace(network: Network, instruction_set: str | None, dtype: str) -> _core.EncoderTraining:
    """Return the buffers of a pass over a model.

    Raises
    ------
    InputError
        The kernels do not compute a part of the model's plan, or its gradients.
    """
    plan = _each_once(network)
    for layer in plan.layers:
        for before, part in pairwise(layer):
            # The kernels keep what norms return, and have the input of a later sub-layer again from it.
            if not (part.body.reads_first or part.before or before.after or before.again):
                kind = type(part.body).__name__
                raise InputError(
                    f"the kernels have no gradients of a part {kind} without a norm before it: use backend='numpy'"
                )
    rotaries = dict.fromkeys(
        part.body.rotary for _, part in plan.bodies() if isinstance(part.body, Attention) and part.body.rotary
    )
    return _core.EncoderTraining(plan, [frequencies(*rotary) for rotary in rotaries], dtype, instruction_set)


def _each_once(network: Network) -> Plan:
    """Return the plan with layers that share their parameters, as in ALBERT, being equal."""
    layers: dict[str, tuple[Residual, ...]] = {}
    same = [layers.setdefault(network.layer(next(weighted(layer)).name), layer) for layer in network.plan.layers]
    return replace(network.plan, layers=tuple(same))


class _Tokens(NamedTuple):
    """The tokens of a batch, which the kernels read by the names of these fields."""

    starts: npt.NDArray[np.int64]
    visible: npt.NDArray[np.int64]
    ids: npt.NDArray[np.uint32] | None
    types: npt.NDArray[np.uint32]
    positions: npt.NDArray[np.uint32]
    tasks: npt.NDArray[np.uint32]
    vectors: Array | None
    columns: npt.NDArray[np.uint32]


class _Options(NamedTuple):
    """The options of a pass, which the kernels read by the names of these fields."""

    dropout: tuple[int, int, int] | None
    rates: Mapping[str, float]
    trained_from: int | None
    gradient_checkpointing: bool


@completed_by(EncoderPass)
class RustEncoderPass:
    """One forward pass over a batch, and its backward pass; as `encoder_pass.EncoderPass`.

    The parameters are float32, stored row by row, and dropout is None or keyed.

    Parameters
    ----------
    workspace
        From `new_workspace`; used by one pass at a time.
    threads : int, optional
        How many threads; None for the default. The bits do not depend on it.
    release : callable
        Called after the backward pass, when another pass may use `workspace`.

    Attributes
    ----------
    x : array
        The output x_L of the last layer, [M, H].
    """

    def __init__(
        self,
        workspace: _core.EncoderTraining,
        network: Network,
        parameters: Mapping[str, Array],
        tokens: Tokens,
        options: PassOptions,
        *,
        threads: int | None = None,
        release: Callable[[], None],
    ) -> None:
        self._workspace, self._threads, self._release = workspace, threads, release
        self._plan, self._tokens, self._trained_from = _each_once(network), tokens, options.trained_from
        dropout = options.dropout
        assert dropout is None or isinstance(dropout, KeyedDropout), "given masks are for NumPy"
        self._weights = EncoderWeights(network, parameters)
        self._vectors = None if tokens.vectors is None else np.ascontiguousarray(tokens.vectors, np.float32)
        self._arrays = self._borrowed()
        rates = network.rates if dropout else {}
        given = _Tokens(
            tokens.starts,
            tokens.visible,
            None if tokens.ids is None else _unsigned(tokens.ids),
            _unsigned(tokens.types),
            _unsigned(tokens.positions),
            _unsigned(tokens.tasks),
            self._vectors,
            _unsigned(tokens.columns),
        )
        key = None if dropout is None else dropout.key
        passed = _Options(key, rates, options.trained_from, options.gradient_checkpointing)
        self.x: Array = workspace.forward(self._arrays, given, passed, threads)

    def _borrowed(self) -> dict[str, Array]:
        """Return the weights as the kernels read them: convolutions as dense layers, biases of scores by distance."""
        names = self._plan.trained(None)
        found = {name: self._weights.get(name) for name in self._plan.shapes() if name in names}
        arrays = {name: weight for name, weight in found.items() if weight is not None}
        for part in self._plan.parts():
            if isinstance(part, Convolution):
                arrays[f"{part.name}.weight"] = convolution_as_dense(arrays[f"{part.name}.weight"])
        for table in self._biases():
            buckets = arrays[f"{table.name}.weight"]  # [32, N]
            arrays[f"{table.name}.by_distance"] = np.ascontiguousarray(buckets[self._buckets()].T)
        return arrays

    def _biases(self) -> set[Table]:
        """Return the tables of biases of scores."""
        bodies = (part.body for _, part in self._plan.bodies())
        return {body.bias.table for body in bodies if isinstance(body, Attention) and isinstance(body.bias, Distances)}

    def _buckets(self) -> Ids:
        """Return the bucket of each distance key − query, from 1 − S to S − 1."""
        longest = self._tokens.shape[1] - 1
        return functional.distance_buckets(-np.arange(-longest, longest + 1))

    def backward(self, dx: Array, gradient: Gradients) -> Array | None:
        """Add the gradients of all trained parameters of the encoder; as `encoder_pass.EncoderPass.backward`."""
        self._weights.gradient = gradient
        trains_embeddings = self._trained_from is None
        trained = self._plan.trained(self._trained_from)
        tables = {f"{table.name}.weight" for table in self._plan.embeddings.tables}
        if self._tokens.ids is None and (words := self._plan.embeddings.table("ids")) is not None:
            trained.discard(f"{words.name}.weight")
        found = {
            name: (np.zeros if name in tables else np.empty)(weight.shape, np.float32)
            for name, weight in self._arrays.items()
            if name in trained
        }
        biases = [table for table in self._biases() if f"{table.name}.weight" in found]
        for table in biases:
            del found[f"{table.name}.weight"]
            name = f"{table.name}.by_distance"
            found[name] = np.empty_like(self._arrays[name])
        dx = np.ascontiguousarray(dx, np.float32)
        de = self._workspace.backward(self._arrays, dx, found, self._vectors, trains_embeddings, self._threads)
        self._release()
        for table in biases:
            by_distance = found.pop(f"{table.name}.by_distance")
            count, buckets = len(self._arrays[f"{table.name}.weight"]), self._buckets()
            sums = [np.bincount(buckets, weights=head, minlength=count) for head in by_distance]
            found[f"{table.name}.weight"] = np.stack(sums, axis=1).astype(np.float32)
        for part in self._plan.parts():
            if isinstance(part, Convolution) and f"{part.name}.weight" in found:
                found[f"{part.name}.weight"] = convolution_of_dense(found[f"{part.name}.weight"], part.groups)
        for name, array in found.items():
            self._weights.add_one(name, array)
        return de


def _unsigned(ids: npt.NDArray[np.integer]) -> npt.NDArray[np.uint32]:
    return np.ascontiguousarray(ids, np.uint32)
