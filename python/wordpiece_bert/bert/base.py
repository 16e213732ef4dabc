"""The base class of all models: loading, saving and named parameters."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from wordpiece_bert._internal.atomic_folder import AtomicFolder
from wordpiece_bert._internal.warn import warn
from wordpiece_bert.bert.calibration import calibration_rows, check_texts
from wordpiece_bert.bert.checkpoint import (
    Layout,
    Resolved,
    find_weights,
    listed,
    non_finite,
    resolve,
)
from wordpiece_bert.bert.checkpoint.files import open_tensors
from wordpiece_bert.bert.checkpoint.safetensors import safetensors_chunks
from wordpiece_bert.bert.config import BertConfig
from wordpiece_bert.bert.engines import (
    Engine,
    EngineInfo,
    PackedWeight,
    choose_dtype,
    describe_engine,
    get_engine,
)
from wordpiece_bert.bert.half_precision import BFLOAT16, widen
from wordpiece_bert.bert.quantized import QUANTIZATION, Int8Weight, joined_tensors, split_tensors
from wordpiece_bert.bert.stored_tensor import StoredTensor, must_be_finite
from wordpiece_bert.errors import CheckpointError, CheckpointWarning, ConfigError
from wordpiece_bert.hub import find_model

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import numpy.typing as npt

    from wordpiece_bert.bert.checkpoint.safetensors import AnyArray
    from wordpiece_bert.bert.functional import Array

__all__ = ["Model"]


class Model:
    """A model: a configuration, weights, and an engine that computes with them.

    A model is immutable, so threads may share it.

    Parameters
    ----------
    config
        Sizes and settings.
    weights
        Arrays by their names in a checkpoint, such as ``"encoder.layer.0.attention.self.query.weight"``, with or
        without the prefix that a model with a head has. float32 arrays are not copied.
    backend
        The engine: ``"rust"``, or ``"numpy"``, which computes the same formulas in NumPy, several times slower.
    dtype
        The dtype of the matrix products, whose sums are float32: ``"float32"``; in the Rust engine also ``"bfloat16"``,
        which rounds the weights to 8 significant bits and, where the CPU multiplies such numbers faster than float32,
        the other factors as well; ``"int8"``, for which weights and inputs are int8 numbers with a scale for each 64 of
        them; or ``"auto"``, the fastest on this CPU that keeps a cosine of 0.9999 (`engine` has the reason).
    source
        Where the weights came from, for messages.
    new_head
        A seed to draw the weights of the head with, if `weights` has none of them.
    calibrate
        For ``dtype="int8"``: rows of token ids that the model is run over once, in float32, to see how large the inputs
        of its layers are. By default rows of random ids; `from_pretrained` takes texts.

    Attributes
    ----------
    config : BertConfig
        Sizes and settings.
    backend, dtype : str
        The engine, and the dtype of its arithmetic; never ``"auto"``.
    engine : EngineInfo
        How the model computes on this machine: CPU, dtype, instructions, threads, and the reason.
    source : str
        Where the weights came from.

    Raises
    ------
    CheckpointError
        A weight is missing, or its shape is not that of the configuration.
    ConfigError
        The engine does not compute in this dtype, but another engine does.
    InputError
        There is no engine, or no dtype, of this name.

    Warns
    -----
    CheckpointWarning
        Tensors were not used, or weights of the head were drawn; the message has their names.
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
        calibrate: Sequence[npt.NDArray[np.int64]] | None = None,
    ) -> None:
        chosen = choose_dtype(backend, dtype)
        engine = get_engine(backend, chosen)
        layout = self._layout(config)
        resolved = resolve(self._renamed(weights, config, source), layout, config, source, new_head)
        if resolved.unused:
            message = f"{source}: {len(resolved.unused)} tensors are not used: {listed(resolved.unused)}"
            warn(message, CheckpointWarning)
        if resolved.drawn:
            message = f"{source}: {len(resolved.drawn)} weights of the head were drawn: {listed(resolved.drawn)}"
            warn(message, CheckpointWarning)
        if chosen == "int8":
            resolved = _without_non_finite(resolved, source)
        elif any(weight.dtype == np.int8 for weight in resolved.base.values()):
            raise ConfigError(f"{source} has int8 weights: load it with dtype='int8', not {dtype!r}")
        self.config = config
        self.backend = backend
        self.dtype = chosen
        self._calibration = calibrate
        self._requested_dtype = dtype
        self.source = source
        prefix = layout.prefix if layout.head or layout.prefixed else ""
        base: dict[str, AnyArray | PackedWeight] = {prefix + name: w for name, w in resolved.base.items()}
        self._weights = {**base, **resolved.head}
        for copy, original in layout.tied.items():  # keep a weight that is used twice under one name
            if self._weights[copy] is self._weights.get(prefix + original, self._weights.get(original)):
                del self._weights[copy]
        self._set_up(engine, resolved)
        self._calibration = None

    if TYPE_CHECKING:
        # Runs the model; each class has its own arguments and its own output.
        __call__: Callable[..., Any]

    @classmethod
    def _renamed(
        cls, weights: Mapping[str, npt.NDArray[np.generic]], config: BertConfig, source: str
    ) -> Mapping[str, npt.NDArray[np.generic]]:
        """Return the weights of a checkpoint by the names of the layout, for families that have had several namings."""
        del config, source
        return weights

    @classmethod
    def _layout(cls, config: BertConfig) -> Layout:
        """Return the names and shapes of the weights in a checkpoint."""
        raise NotImplementedError

    def _set_up(self, engine: Engine, resolved: Resolved) -> None:
        """Prepare the engine's encoder and the layers of the head."""
        raise NotImplementedError

    @classmethod
    def from_pretrained(
        cls,
        name: str | os.PathLike[str],
        backend: str = "rust",
        dtype: str = "float32",
        *,
        revision: str | None = None,
        download: bool = False,
        keep_half: bool = False,
        check_finite: bool = False,
        new_head: int | None = None,
        calibrate: Sequence[str] | None = None,
    ) -> Self:
        """Load a model from this machine. Nothing is downloaded, and no code of the model is run.

        Parameters
        ----------
        name
            ``"minilm"``, a folder with ``config.json`` and weights, or ``"org/name"`` in the local Hugging Face cache.
            The weights are the first of ``model.safetensors``, ``model.safetensors.index.json``, ``pytorch_model.bin``,
            ``pytorch_model.bin.index.json`` and a TensorFlow checkpoint that the folder has. A class without a head
            also loads the encoder of a model with one.
        backend, dtype
            As for the class.
        download
            Whether to download a model that is not in the cache, with huggingface_hub.
        revision
            Branch, tag or commit of a model in the Hugging Face cache.
        keep_half
            Whether weights that the file stores in 16 bits stay in 16 bits in memory. They are widened when they are
            used, so results are the same; it saves half the memory and costs a little time.
        check_finite
            Whether to refuse weights that are NaN or infinite.
        new_head
            A seed to draw the weights of the head with, if the file has none of them (as that of an encoder only).
        calibrate
            For ``dtype="int8"``: texts that the model is run over once, in float32, to see how large the inputs of its
            layers are; a few dozen like those it is for. By default 32 texts in many languages that the package has.
            The result is the same each time.

        Raises
        ------
        ModelNotFoundError
            The model is not on this machine; the message says how to get it.
        ConfigError
            The configuration is malformed, or of a model that is not supported.
        CheckpointError
            The weights are malformed, in a format that is not supported, or do not fit the configuration; or, with
            ``dtype="int8"``, one is NaN or infinite.
        InputError
            An option is not one of those offered, or `calibrate` has no texts or is not for this dtype.

        Warns
        -----
        CheckpointWarning
            Tensors were not used, or weights of the head were drawn; the message has their names.
        """
        # Report wrong options before reading hundreds of megabytes.
        chosen = choose_dtype(backend, dtype)
        check_texts(calibrate, dtype)
        folder = find_model(name, revision=revision, download=download)
        config = cls.config_class.from_folder(folder)
        file = find_weights(folder)
        with open_tensors(file, keep_half=keep_half) as tensors:
            if check_finite and (bad := non_finite(tensors)):
                worst = ", ".join(f"{count} in {listed([tensor])}" for tensor, count in list(bad.items())[:8])
                raise CheckpointError(f"{file}: {sum(bad.values())} weights are NaN or infinite: {worst}")
            rows = calibration_rows(folder, config, calibrate) if chosen == "int8" else None
            weights = joined_tensors(tensors, str(file))
            return cls(
                config, weights, backend=backend, dtype=dtype, source=str(file), new_head=new_head, calibrate=rows
            )

    @property
    def engine(self) -> EngineInfo:
        """How the model computes on this machine: CPU, dtype, instructions, threads, and the reason."""
        return describe_engine(self.backend, self.dtype, requested=self._requested_dtype)

    def save_pretrained(self, folder: str | os.PathLike[str]) -> None:
        """Write ``config.json`` and ``model.safetensors`` into a folder that transformers can load.

        Weights that are in half precision in memory are written in half precision, and those of a model with
        ``dtype="int8"`` as int8 numbers, with scales: about a quarter of the size. Such a folder is loaded with
        ``dtype="int8"``, by this package only, and computes the same bits. The tokenizer is not written:
        `Tokenizer.save_pretrained` does that. Other files of an existing folder stay.

        Both files appear, or replace older ones, only when they are complete. A folder in which the replacement was
        interrupted is refused by every load, until something is saved there again.

        Parameters
        ----------
        folder : str or os.PathLike
            The folder; it is created if need be.

        Raises
        ------
        InputError
            There is a file of that name.
        OSError
            A file cannot be written; then nothing has changed.
        """
        with AtomicFolder(Path(folder)) as output:
            output.begin()
            self._write_files(output)
            output.commit()

    def _write_files(self, output: AtomicFolder, **settings: object) -> None:
        """Write the files of `save_pretrained`, with more settings in the configuration."""
        weights = {name: _read(weight) for name, weight in self._weights.items()}
        output.write("model.safetensors", safetensors_chunks(split_tensors(weights)))
        content = self.config.to_dict() | {"architectures": [type(self).__name__], "dtype": self._stored_dtype()}
        if any(isinstance(weight, Int8Weight) for weight in weights.values()):
            content |= {"dtype": "int8", "quantization_config": QUANTIZATION}
        content |= settings
        output.write_text("config.json", json.dumps(content, indent=2, sort_keys=True, ensure_ascii=False) + "\n")

    def named_parameters(self) -> Iterator[tuple[str, Array]]:
        """Iterate over the parameters: their names in a checkpoint of this class, and read-only float32 arrays.

        As in torch, a weight that is used twice (the word table, in a masked-language decoder) is yielded once.
        """
        for name, weight in self._weights.items():
            array = widen(_read(weight)).view()
            array.flags.writeable = False
            yield name, array

    def num_parameters(self) -> int:
        """Return how many numbers the parameters have in total: 109,482,240 for BERT-base without a head."""
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


def _without_non_finite(resolved: Resolved, source: str) -> Resolved:
    """Refuse weights that int8 cannot hold; those that are still in a file are checked when they are read."""
    weights = resolved.base | resolved.head
    first = {id(weight): name for name, weight in reversed(weights.items())}  # a tied weight is counted once
    arrays = {name: weights[name] for name in reversed(first.values()) if isinstance(weights[name], np.ndarray)}
    must_be_finite(non_finite(arrays), source)
    checked: dict[int, Any] = {}  # by identity: two names of one tensor stay one
    for name, weight in weights.items():
        if id(weight) not in checked:
            is_stored = isinstance(weight, StoredTensor)
            checked[id(weight)] = weight.required_finite(name, source) if is_stored else weight
    base, head = ({name: checked[id(w)] for name, w in part.items()} for part in (resolved.base, resolved.head))
    return resolved._replace(base=base, head=head)


def _read(weight: AnyArray | PackedWeight) -> AnyArray | Int8Weight:
    """Return a weight as an array, unpacked if the engine stores it."""
    return weight if isinstance(weight, np.ndarray) else weight.unpack()
