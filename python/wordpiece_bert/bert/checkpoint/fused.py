"""Tensors of a checkpoint that hold several weights, one below the other, such as queries, keys and values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wordpiece_bert.errors import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import numpy.typing as npt

    #: For each part of a name that stands for several weights, what stands in its place in the names of these.
    Fused = Mapping[str, tuple[str, ...]]


class Place(NamedTuple):
    """Where a checkpoint has a weight."""

    #: The name of the tensor.
    tensor: str
    #: Which of the equal parts of its rows, and how many there are.
    part: int = 0
    parts: int = 1
    #: The rows of the part, where they are not one below the other.
    order: npt.NDArray[np.intp] | None = None

    def rows(self, count: int) -> slice | npt.NDArray[np.intp]:
        """Return the rows of the weight in a tensor that has `count` of them."""
        each = count // self.parts
        return slice(self.part * each, (self.part + 1) * each) if self.order is None else self.order


def split(tensors: Mapping[str, Any], fused: Fused, source: str) -> dict[str, Any]:
    """Return tensors with those that hold several weights divided: views of their rows.

    Parameters
    ----------
    tensors
        The tensors of a file, by name.
    fused
        The parts of names.
    source
        The file, for messages.

    Raises
    ------
    CheckpointError
        The rows of a tensor cannot be divided.
    """
    found: dict[str, Any] = {}
    for name, tensor in tensors.items():
        whole = _part(name, fused)
        if whole is None:
            found[name] = tensor
            continue
        parts = fused[whole]
        if not tensor.ndim or len(tensor) % len(parts):
            raise CheckpointError(
                f"{source}: {name} has shape {list(tensor.shape)}, but holds {len(parts)} weights of equally many rows"
            )
        rows = len(tensor) // len(parts)
        for i, part in enumerate(parts):
            found[_with(name, whole, part)] = tensor[i * rows : (i + 1) * rows]
    return found


def joined(weights: Mapping[str, Any], fused: Fused) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Iterate over the names of the tensors that hold some weights, and the names of the weights in each.

    Weights in int8 stay apart, since each has its own factors.

    Parameters
    ----------
    weights
        The weights by name.
    fused
        The parts of names.
    """
    first = {parts[0]: whole for whole, parts in fused.items()}
    others = {part for parts in fused.values() for part in parts[1:]}
    for name, weight in weights.items():
        part = _part(name, first)
        if weight.dtype == np.int8 or (part is None and _part(name, others) is None):
            yield name, (name,)
        elif part is not None:
            whole = first[part]
            yield _with(name, part, whole), tuple(_with(name, part, other) for other in fused[whole])


def place(name: str, fused: Fused) -> Place:
    """Return where a checkpoint has a weight: in a tensor of its own, or in one that holds several.

    Parameters
    ----------
    name
        The name of the weight.
    fused
        The parts of names.
    """
    for whole, parts in fused.items():
        part = _part(name, parts)
        if part is not None:
            return Place(_with(name, part, whole), parts.index(part), len(parts))
    return Place(name)


def _part(name: str, parts: Iterable[str]) -> str | None:
    """Return which of the parts a name has before its last component, if any."""
    module = "." + name.rpartition(".")[0]
    return next((part for part in parts if module.endswith("." + part)), None)


def _with(name: str, part: str, other: str) -> str:
    """Return a name with another part before its last component."""
    module, _, kind = name.rpartition(".")
    return f"{module.removesuffix(part)}{other}.{kind}"
