"""What all models share: they are loaded, saved, and have named parameters."""

from __future__ import annotations

import json
import math
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from wordpiece_bert._internal.atomic_file import write_text
from wordpiece_bert.bert.checkpoint import (
    Layout,
    Resolved,
    find_weights,
    listed,
    non_finite,
    read_tensors,
    resolve,
    write_safetensors,
)
from wordpiece_bert.bert.config import BertConfig
from wordpiece_bert.bert.engines import Engine, PackedWeight, get_engine
from wordpiece_bert.bert.half_precision import BFLOAT16, widen
from wordpiece_bert.errors import CheckpointError, CheckpointWarning
from wordpiece_bert.hub import find_model

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping

    import numpy.typing as npt

    from wordpiece_bert.bert.checkpoint.safetensors import AnyArray
    from wordpiece_bert.bert.functional import Array

__all__ = ["Model"]


class Model:
    """A model: a configuration, weights, and an engine that computes with them.

    It never changes after it is made, and may be shared by threads.

    Parameters
    ----------
    config
        Sizes and settings.
    weights
        Arrays by their names in a checkpoint, such as ``"encoder.layer.0.attention.self.query.weight"``; both forms of
        prefix are understood. Not copied if float32.
    backend
        The engine: ``"rust"``, or ``"numpy"``, which computes the same as plainly as can be and several times slower.
    dtype
        What it computes in: ``"float32"``.
    source
        Where the weights came from, for messages.
    new_head
        A seed, to draw the head's weights anew where there are none.

    Attributes
    ----------
    config : BertConfig
    backend : str
    dtype : str
    source : str
        Where the weights came from.

    Raises
    ------
    CheckpointError
        A weight is missing or has another shape than the configuration says.
    """

    config_class: ClassVar[type[BertConfig]] = BertConfig

    config: BertConfig
    backend: str
    dtype: str
    source: str

    def __init__(
        self,
        config: BertConfig,
        weights: Mapping[str, npt.NDArray[np.generic]],
        *,
        backend: str = "rust",
        dtype: str = "float32",
        source: str = "weights",
        new_head: int | None = None,
    ) -> None:
        engine = get_engine(backend, dtype)
        layout = self._layout(config)
        resolved = resolve(weights, layout, config, source, new_head)
        if resolved.unused:
            message = f"{source}: {len(resolved.unused)} tensors are not used: {listed(resolved.unused)}"
            warnings.warn(message, CheckpointWarning, stacklevel=2)
        if resolved.drawn:
            message = f"{source}: {len(resolved.drawn)} weights of the head were drawn anew: {listed(resolved.drawn)}"
            warnings.warn(message, CheckpointWarning, stacklevel=2)
        self.config = config
        self.backend = backend
        self.dtype = dtype
        self.source = source
        prefix = layout.prefix if layout.head else ""
        base: dict[str, AnyArray | PackedWeight] = {prefix + name: w for name, w in resolved.base.items()}
        self._weights = {**base, **resolved.head}
        for copy, original in layout.tied.items():  # a weight that is used in two places comes once
            if self._weights[copy] is self._weights.get(prefix + original, self._weights.get(original)):
                del self._weights[copy]
        self._set_up(engine, resolved)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        """Run the model; each class says what it takes and gives."""
        raise NotImplementedError

    @classmethod
    def _layout(cls, config: BertConfig) -> Layout:
        """Return what the weights are called in a checkpoint."""
        raise NotImplementedError

    def _set_up(self, engine: Engine, resolved: Resolved) -> None:
        """Hand the weights to the engine."""
        raise NotImplementedError

    @classmethod
    def from_pretrained(
        cls,
        name: str | os.PathLike[str],
        backend: str = "rust",
        dtype: str = "float32",
        *,
        revision: str | None = None,
        keep_half: bool = False,
        check_finite: bool = False,
        new_head: int | None = None,
    ) -> Self:
        """Load a model from this machine; nothing is ever downloaded, and no code of the model's is run.

        Parameters
        ----------
        name
            ``"minilm"``, a folder with ``config.json`` and weights, or ``"org/name"`` in the local Hugging Face cache.
            The weights are the first of ``model.safetensors``, ``model.safetensors.index.json``, ``pytorch_model.bin``,
            ``pytorch_model.bin.index.json``. A model with a head gives its encoder to a class without one.
        backend, dtype
            As for the class.
        revision
            Of a model in the Hugging Face cache.
        keep_half
            Whether weights that are stored in 16 bits stay so in memory. The arithmetic is float32 in any case, and the
            numbers are the same; it takes half the memory and a little more time.
        check_finite
            Whether to look for NaN and infinities among the weights, and to refuse them.
        new_head
            A seed to draw the head's weights with, where the file has none (a checkpoint of an encoder alone).

        Raises
        ------
        ModelNotFoundError
            It is not on this machine; the message says what to run.
        ConfigError
            Its configuration is broken, or asks for what is not computed here.
        CheckpointError
            Its weights are broken, in another format, or do not fit the configuration.

        Warns
        -----
        CheckpointWarning
            Tensors were not used, or weights were drawn; the message has their names.
        """
        get_engine(backend, dtype)  # a wrong option is told before a hundred megabytes are read
        folder = find_model(name, revision=revision)
        config = cls.config_class.from_folder(folder)
        file = find_weights(folder)
        tensors = read_tensors(file, keep_half=keep_half)
        if check_finite and (bad := non_finite(tensors)):
            worst = ", ".join(f"{count} in {listed([tensor])}" for tensor, count in list(bad.items())[:8])
            message = f"{file}: {sum(bad.values())} weights are NaN or infinite: {worst}"
            raise CheckpointError(message)
        return cls(config, tensors, backend=backend, dtype=dtype, source=str(file), new_head=new_head)

    def save_pretrained(self, folder: str | os.PathLike[str]) -> None:
        """Write ``config.json`` and ``model.safetensors`` into a folder, so that transformers loads them.

        Weights that are kept in half precision are written so. The tokenizer is saved by its own `save_pretrained`.
        """
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        write_safetensors(folder / "model.safetensors", {name: _read(weight) for name, weight in self._weights.items()})
        content = self.config.to_dict() | {"architectures": [type(self).__name__], "dtype": self._stored_dtype()}
        write_text(folder / "config.json", json.dumps(content, indent=2, sort_keys=True, ensure_ascii=False) + "\n")

    def named_parameters(self) -> Iterator[tuple[str, Array]]:
        """Go through the parameters: their names in a checkpoint of this class, and float32 arrays not to be changed.

        As in torch, a weight that is used in two places (the word table in a masked-language decoder) comes once.
        """
        for name, weight in self._weights.items():
            array = widen(_read(weight)).view()
            array.flags.writeable = False
            yield name, array

    def num_parameters(self) -> int:
        """Count the numbers in all parameters: 109,482,240 for BERT-base without a head."""
        return sum(math.prod(weight.shape) for weight in self._weights.values())

    def __repr__(self) -> str:
        c = self.config
        return (
            f"{type(self).__name__}({c.encoder_layers} layers, hidden size {c.hidden_size}, {c.num_attention_heads} "
            f"heads, vocabulary {c.vocab_size}, {self.backend} {self.dtype}, from {self.source})"
        )

    def _stored_dtype(self) -> str:
        dtypes = {weight.dtype for weight in self._weights.values()}
        if len(dtypes) != 1:
            return "float32"
        (dtype,) = dtypes
        return "bfloat16" if dtype == BFLOAT16 else dtype.name


def _read(weight: AnyArray | PackedWeight) -> AnyArray:
    """Return a weight as an array, whoever keeps it."""
    return weight if isinstance(weight, np.ndarray) else weight.unpack()
