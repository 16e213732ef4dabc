"""How models are found, loaded and run: the options that every function has which loads one, as one object."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

from wordpiece_bert._internal.checks import whole_number
from wordpiece_bert._internal.log import tell
from wordpiece_bert.bert.calibration import calibration_rows, check_texts
from wordpiece_bert.bert.checkpoint import find_weights, listed, non_finite
from wordpiece_bert.bert.checkpoint.files import open_tensors
from wordpiece_bert.bert.engines import choose_dtype
from wordpiece_bert.bert.quantized import Int8Weight, StoredInt8Weight, joined_tensors
from wordpiece_bert.errors import CheckpointError, InputError
from wordpiece_bert.hub import check_packaged, find_model
from wordpiece_bert.tokenizer.word_splitter import check_splitter

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    import numpy as np
    import numpy.typing as npt

    from wordpiece_bert.bert.config import BertConfig
    from wordpiece_bert.bert.engines import EngineInfo
    from wordpiece_bert.bert.engines.engine_interface import Calibration
    from wordpiece_bert.tokenizer.word_splitter import WordSplitter

__all__ = ["Loading"]


class Loadable(Protocol):
    """What a class of models has that `Loading.load` makes objects of; see `wordpiece_bert.bert.base_model.Model`."""

    config_class: ClassVar[type[BertConfig]]

    @property
    def engine(self) -> EngineInfo: ...

    def __init__(
        self,
        config: BertConfig,
        weights: Mapping[str, Any],
        *,
        backend: str = "rust",
        dtype: str = "float32",
        source: str = "weights",
        new_head: int | None = None,
        calibrate: Calibration | None = None,
        instructions: str | None = None,
    ) -> None: ...


LoadedModel = TypeVar("LoadedModel", bound=Loadable)


@dataclass(frozen=True)
class Loading:
    """How a model is found, loaded and run, checked: the parameters of `Model.from_pretrained`, in its order.

    `word_splitter` is for what has a tokenizer. The tables `wordpiece_bert.bert.parameters.LOADING` and
    `wordpiece_bert.tokenizer.parameters.SPLITTING` describe the fields. Public functions have them as parameters
    of their own; inside the package they travel as one object.

    Raises
    ------
    InputError, ConfigError
        There is no such engine, dtype or instruction set, `calibrate` has no texts or is not for this dtype,
        `word_splitter` is not a function, or `new_head` is not a seed.
    """

    backend: str = "rust"
    dtype: str = "float32"
    revision: str | None = None
    download: bool = False
    check_finite: bool = False
    new_head: int | None = None
    calibrate: Sequence[str] | None = None
    word_splitter: WordSplitter | None = None
    instructions: str | None = None

    def __post_init__(self) -> None:
        # Report wrong options before anything is downloaded, or hundreds of megabytes are read.
        choose_dtype(self.backend, self.dtype, self.instructions)
        check_texts(self.calibrate, self.dtype)
        check_splitter(self.word_splitter)
        if self.new_head is not None:
            whole_number("new_head", self.new_head, 0)

    def find(self, name: str | os.PathLike[str]) -> Path:
        """Return the folder of a model, as `find_model`, with the weights of a packaged model compared."""
        folder = find_model(name, revision=self.revision, download=self.download)
        check_packaged(name, folder)
        return folder

    def calibration_rows(self, folder: Path, config: BertConfig) -> Callable[[], list[npt.NDArray[np.int64]]]:
        """Return what makes the rows that a model is run over before it is quantized: one that is stored needs none."""
        return partial(calibration_rows, folder, config, self.calibrate, word_splitter=self.word_splitter)

    def load(self, kind: type[LoadedModel], folder: Path) -> LoadedModel:
        """Load the model of a folder as an object of a class; the errors are as for `Model.from_pretrained`."""
        config = kind.config_class.from_folder(folder)
        file = find_weights(folder)
        with open_tensors(file) as tensors:
            if self.check_finite and (bad := non_finite(tensors)):
                worst = ", ".join(f"{count} in {listed([tensor])}" for tensor, count in list(bad.items())[:8])
                raise CheckpointError(f"{file}: {sum(bad.values())} weights are NaN or infinite: {worst}")
            weights = joined_tensors(tensors, str(file))
            if self.calibrate is not None and any(
                isinstance(w, Int8Weight | StoredInt8Weight) for w in weights.values()
            ):
                raise InputError(
                    f"calibrate is for weights that are quantized when they are loaded, but {file} has int8 weights: "
                    "leave it out"
                )
            is_int8 = choose_dtype(self.backend, self.dtype, self.instructions) == "int8"
            model = kind(
                config,
                weights,
                backend=self.backend,
                dtype=self.dtype,
                source=str(file),
                new_head=self.new_head,
                calibrate=self.calibration_rows(folder, config) if is_int8 else None,
                instructions=self.instructions,
            )
        tell("loaded %s from %s: %s", kind.__name__, file, model.engine)
        return model
