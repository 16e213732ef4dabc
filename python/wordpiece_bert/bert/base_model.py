"""The base class of all models: loading, saving and named parameters."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from wordpiece_bert._internal.atomic_folder import written_folder
from wordpiece_bert._internal.checks import whole_number
from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert._internal.peer_arguments import MODEL_CALL, MODEL_LOADING, MODEL_SAVING, refusing
from wordpiece_bert._internal.peer_names import add_peer_names, without_peer_names
from wordpiece_bert._internal.peer_names_of_models import INSTEAD_IN_MODELS
from wordpiece_bert._internal.warn import warn
from wordpiece_bert.bert.checkpoint import Layout, Resolved, listed, non_finite, resolve
from wordpiece_bert.bert.checkpoint.fused import joined, place, split
from wordpiece_bert.bert.checkpoint.names import drawn_weights
from wordpiece_bert.bert.checkpoint.safetensors import safetensors_chunks
from wordpiece_bert.bert.class_examples import with_example
from wordpiece_bert.bert.config import BertConfig
from wordpiece_bert.bert.engines import (
    AUTO,
    Engine,
    EngineInfo,
    PackedWeight,
    choose_dtype,
    describe_engine,
    get_engine,
)
from wordpiece_bert.bert.half_precision import widen
from wordpiece_bert.bert.loading import Loading
from wordpiece_bert.bert.parameters import LOADING
from wordpiece_bert.bert.quantized import QUANTIZATION, Int8Weight, split_tensors
from wordpiece_bert.bert.stored_tensor import StoredTensor, must_be_finite
from wordpiece_bert.errors import CheckpointWarning, ConfigError

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import numpy.typing as npt

    from wordpiece_bert._internal.atomic_folder import FileSink
    from wordpiece_bert.bert.checkpoint.fused import Place
    from wordpiece_bert.bert.checkpoint.safetensors import AnyArray
    from wordpiece_bert.bert.engines.engine_interface import Calibration
    from wordpiece_bert.bert.functional import Array


@completed_by(LOADING)
class Model:
    """A model: a configuration, weights, and an engine that computes with them.

    A model is immutable, so threads may share it.

    Parameters
    ----------
    config : BertConfig
        Sizes and settings.
    weights : mapping of str to ndarray
        Arrays by their names in a checkpoint, such as ``"encoder.layer.0.attention.self.query.weight"``, with or
        without the prefix that a model with a head has. float32 arrays are not copied, other floats are converted.
    source : str, default "weights"
        Where the weights came from, for messages.
    new_head : int, optional
        A seed to draw the weights of the head with, if `weights` has none of them.
    calibrate : sequence of ndarray of int64, or callable, optional
        For ``dtype="int8"``: rows of token ids that the model is run over once, in float32, to see how large the inputs
        of its layers are; or a function that returns them, called unless the weights are int8 already.
        By default rows of random ids; `from_pretrained` takes texts.

    Attributes
    ----------
    config : BertConfig
        Sizes and settings.
    backend, dtype : str
        The engine, and the dtype of its arithmetic; never ``"auto"``.
    instructions : str or None
        The instruction set that was asked for.
    engine : EngineInfo
        How the model computes on this machine: CPU, dtype, instructions, threads, and the reason.
    source : str
        Where the weights came from.

    Raises
    ------
    CheckpointError
        A weight is missing, or has a shape other than the configuration's.
    ConfigError
        The engine does not compute in this dtype, but another engine does.
    InputError
        There is no engine, or no dtype, of this name.

    Warns
    -----
    CheckpointWarning
        Tensors were not used, or weights of the head were drawn; the message has their names.

    Examples
    --------
    Every class of models is made from a configuration and weights, here those that another model has:

    >>> from wordpiece_bert import BertModel
    >>> model = BertModel.from_pretrained("models/sentences")
    >>> again = BertModel(model.config, dict(model.named_parameters()))
    >>> bool(
    ...     (
    ...         model([[2, 7, 3]]).last_hidden_state == again([[2, 7, 3]]).last_hidden_state
    ...     ).all()
    ... )
    True
    >>> model.backend, model.dtype, model.num_parameters()
    ('rust', 'float32', 27739)
    """

    config_class: ClassVar[type[BertConfig]] = BertConfig
    #: Parts of the names of tensors that hold several weights in a checkpoint, and what these have in their names.
    _fused: ClassVar[Mapping[str, tuple[str, ...]]] = {}

    config: BertConfig
    backend: str
    dtype: str
    instructions: str | None
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
        calibrate: Calibration | None = None,
        instructions: str | None = None,
    ) -> None:
        chosen = choose_dtype(backend, dtype, instructions)
        config = self._config_of(config, weights, source)
        layout = self._layout(config)
        resolved = resolve(self._renamed(weights, config, source), layout, config, source, new_head)
        if resolved.unused:
            message = f"{source}: {len(resolved.unused)} tensors are not used: {listed(resolved.unused)}"
            warn(message, CheckpointWarning)
        if resolved.drawn:
            message = f"{source}: {len(resolved.drawn)} weights of the head were drawn: {listed(resolved.drawn)}"
            warn(message, CheckpointWarning)
        is_quantized = any(weight.dtype == np.int8 for weight in resolved.base.values())
        if is_quantized and dtype == AUTO:
            chosen = choose_dtype(backend, "int8", instructions)
        engine = get_engine(backend, chosen, instructions)
        if chosen == "int8":
            resolved = _without_non_finite(resolved, source)
        elif is_quantized:
            raise ConfigError(
                f"{source} has int8 weights: load it with dtype='int8', not {dtype!r}; name the model that it was "
                "quantized from where float weights are needed"
            )
        self.config = config
        self.backend = backend
        self.dtype = chosen
        self._calibration = calibrate
        self._requested_dtype = dtype
        self.instructions = instructions
        self.source = source
        prefix = layout.prefix if layout.head or layout.prefixed else ""
        base: dict[str, AnyArray | PackedWeight] = {prefix + name: w for name, w in resolved.base.items()}
        self._weights = {**base, **resolved.head}
        for copy, original in layout.tied.items():  # keep a weight that is used twice under one name
            if self._weights[copy] is self._weights.get(prefix + original, self._weights.get(original)):
                del self._weights[copy]
        self._set_up(engine, resolved)
        self._calibration = None

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        with_example(cls, cls.config_class.__name__)
        if "__call__" in vars(cls):
            checked = refusing(MODEL_CALL, lambda model: type(model).__name__)(vars(cls)["__call__"])
            type.__setattr__(cls, "__call__", checked)

    def __dir__(self) -> list[str]:
        return without_peer_names(type(self), super().__dir__())

    if TYPE_CHECKING:
        # Runs the model; each class has its own arguments and its own output.
        __call__: Callable[..., Any]

    @classmethod
    def _config_of(cls, config: BertConfig, names: Iterable[str], source: str) -> BertConfig:
        """Return the configuration, completed by what only the names of the tensors say, in families with two forms."""
        del names, source
        return config

    @classmethod
    def _renamed(
        cls, weights: Mapping[str, npt.NDArray[np.generic]], config: BertConfig, source: str
    ) -> Mapping[str, npt.NDArray[np.generic]]:
        """Return the weights of a checkpoint by the names of the layout, for families that have other namings."""
        del config
        return split(weights, cls._fused, source) if cls._fused else weights

    @classmethod
    def _layout(cls, config: BertConfig) -> Layout:
        """Return the names and shapes of the weights in a checkpoint."""
        raise NotImplementedError

    def _set_up(self, engine: Engine, resolved: Resolved) -> None:
        """Prepare the engine's encoder and the layers of the head."""
        raise NotImplementedError

    @classmethod
    @refusing(MODEL_LOADING, lambda model: f"{model.__name__}.from_pretrained")
    @completed_by(LOADING)
    def from_pretrained(
        cls,
        name: str | os.PathLike[str],
        backend: str = "rust",
        dtype: str = "float32",
        *,
        revision: str | None = None,
        download: bool = False,
        check_finite: bool = False,
        new_head: int | None = None,
        calibrate: Sequence[str] | None = None,
        instructions: str | None = None,
    ) -> Self:
        """Load a model. Nothing is downloaded unless `download` says so, and no code of the model is run.

        Parameters
        ----------
        name : str or PathLike
            ``"minilm"``, a folder with ``config.json`` and weights, or ``"org/name"`` in the local Hugging Face cache.
            The weights are the first of ``model.safetensors``, ``model.safetensors.index.json``, ``pytorch_model.bin``,
            ``pytorch_model.bin.index.json`` and a TensorFlow checkpoint that the folder has. A class without a head
            also loads the encoder of a model with one.

        Returns
        -------
        Model
            The model, of the class that is called.

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

        Examples
        --------
        >>> from wordpiece_bert import BertModel
        >>> from wordpiece_bert.bert import BertForSequenceClassification
        >>> BertForSequenceClassification.from_pretrained("models/reviews").config.id2label
        {0: 'negative', 1: 'positive'}
        >>> BertModel.from_pretrained("models/sentences", backend="numpy").backend
        'numpy'
        """
        loading = Loading(
            backend, dtype, revision, download, check_finite, new_head, calibrate, instructions=instructions
        )
        return loading.load(cls, loading.find(name))

    @classmethod
    def from_config(cls, config: BertConfig, *, seed: int = 42, backend: str = "rust", dtype: str = "float32") -> Self:
        """Make a model with drawn weights, as one is before its training.

        Weights are N(0, initializer_range²), biases 0, norms 1, and the row of the padding token 0.

        Parameters
        ----------
        config : BertConfig
            Sizes and settings, of the class `config_class`.
        seed : int, default 42
            Determines the weights.
        backend : {"rust", "numpy"}, default "rust"
            What computes.
        dtype : str, default "float32"
            The dtype of the arithmetic, as for `from_pretrained`.

        Returns
        -------
        Model
            The model, of the class that is called.

        Raises
        ------
        ConfigError
            The configuration belongs to another family.

        Examples
        --------
        >>> from wordpiece_bert import BertModel
        >>> from wordpiece_bert.bert import BertConfig
        >>> config = BertConfig(
        ...     vocab_size=100, hidden_size=48, num_hidden_layers=2, intermediate_size=96
        ... )
        >>> model = BertModel.from_config(config)
        >>> model([[2, 17, 25, 3]]).last_hidden_state.shape
        (1, 4, 48)
        """
        if not isinstance(config, cls.config_class):
            needed = cls.config_class.__name__
            raise ConfigError(f"{cls.__name__} needs a {needed}, not a {type(config).__name__}")
        weights = drawn_weights(cls._layout(config), config, whole_number("seed", seed, 0))
        return cls(config, weights, backend=backend, dtype=dtype, source="new weights")

    @property
    def engine(self) -> EngineInfo:
        """How the model computes on this machine: CPU, dtype, instructions, threads, and the reason."""
        return describe_engine(
            self.backend, self.dtype, requested=self._requested_dtype, instruction_set=self.instructions
        )

    @refusing(MODEL_SAVING, lambda model: f"{type(model).__name__}.save_pretrained")
    def save_pretrained(self, folder: str | os.PathLike[str]) -> None:
        """Write ``config.json`` and ``model.safetensors`` into a folder that transformers can load.

        Weights that a model with ``dtype="bfloat16"`` has rounded are written so, and the weights of a model with
        ``dtype="int8"`` as int8 numbers, with scales: about a quarter of the size. Such a folder is loaded with
        ``dtype="int8"`` or ``"auto"``, by this package only, and computes the same bits. The tokenizer is not written:
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

        Examples
        --------
        >>> from pathlib import Path
        >>> from wordpiece_bert import BertModel
        >>> BertModel.from_pretrained("models/sentences").save_pretrained("saved")
        >>> sorted(file.name for file in Path("saved").iterdir())
        ['config.json', 'model.safetensors']
        """
        with written_folder(folder) as output:
            self._write_files(output)

    def _write_files(self, output: FileSink, **settings: object) -> None:
        """Write the files of `save_pretrained`, with more settings in the configuration."""
        weights = dict(self._read_weights())
        output.write("model.safetensors", safetensors_chunks(split_tensors(weights)))
        content = self.config.to_dict() | {"architectures": [type(self).__name__], "dtype": "float32"}
        if any(isinstance(weight, Int8Weight) for weight in weights.values()):
            content |= {"dtype": "int8", "quantization_config": QUANTIZATION}
        content |= settings
        output.write_text("config.json", json.dumps(content, indent=2, sort_keys=True, ensure_ascii=False) + "\n")

    def named_parameters(self) -> Iterator[tuple[str, Array]]:
        """Iterate over the parameters: their names in a checkpoint of this class, and read-only float32 arrays.

        As in torch, a weight that is used twice (the word table, in a masked-language decoder) is yielded once.

        Yields
        ------
        tuple of str and ndarray
            A name and its array.

        Examples
        --------
        >>> from wordpiece_bert import BertModel
        >>> model = BertModel.from_pretrained("models/sentences")
        >>> name, array = next(model.named_parameters())
        >>> name, array.shape, array.flags.writeable
        ('embeddings.word_embeddings.weight', (67, 67), False)
        """
        for name, weight in self._read_weights():
            array = widen(weight).view()
            array.flags.writeable = False
            yield name, array

    def _read_weights(self) -> Iterator[tuple[str, AnyArray | Int8Weight]]:
        """Iterate over the weights as arrays, by the names and in the tensors that a checkpoint has."""
        yield from self._as_written(self._joined_weights(), self.config)

    def _joined_weights(self) -> Iterator[tuple[str, AnyArray | Int8Weight]]:
        """Iterate over the weights as arrays, several of them joined to those tensors that hold several."""
        for name, parts in joined(self._weights, self._fused):
            arrays = [read(self._weights[part]) for part in parts]
            yield name, arrays[0] if len(arrays) == 1 else np.concatenate(arrays)

    @classmethod
    def _as_written(
        cls, weights: Iterator[tuple[str, AnyArray | Int8Weight]], config: BertConfig
    ) -> Iterator[tuple[str, AnyArray | Int8Weight]]:
        """Return weights in the order of rows that a checkpoint has, in families that compute with another one."""
        del config
        return weights

    @classmethod
    def _place(cls, name: str, config: BertConfig) -> Place:
        """Return where a checkpoint has the weight of a name."""
        del config
        return place(name, cls._fused)

    def num_parameters(self) -> int:
        """Return how many numbers the parameters have in total: 109,482,240 for BERT-base without a head.

        Returns
        -------
        int
            The number.

        Examples
        --------
        >>> from wordpiece_bert import BertModel
        >>> BertModel.from_pretrained("models/sentences").num_parameters()
        27739
        """
        return sum(math.prod(weight.shape) for weight in self._weights.values())

    def __repr__(self) -> str:
        c = self.config
        return (
            f"{type(self).__name__}({c.encoder_layers} layers, hidden size {c.hidden_size}, {c.num_attention_heads} "
            f"heads, vocabulary {c.vocab_size}, {self.backend} {self.dtype}, from {self.source})"
        )


add_peer_names(Model, INSTEAD_IN_MODELS)


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


def read(weight: AnyArray | PackedWeight) -> AnyArray | Int8Weight:
    """Return a weight as an array, unpacked if the engine stores it."""
    return weight if isinstance(weight, np.ndarray) else weight.unpack()
