"""The model and the tokenizer of a task."""

from __future__ import annotations

import sys
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypeVar, cast

from wordpiece_bert.bert.auto import AutoModel
from wordpiece_bert.bert.base import Model
from wordpiece_bert.errors import InputError
from wordpiece_bert.hub import find_model
from wordpiece_bert.subword import SubwordTokenizer, tokenizer_of
from wordpiece_bert.tokenizer import Tokenizer

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from wordpiece_bert.finetune.frozen_classifier import FrozenClassifier

__all__ = ["Loaded", "Source", "frozen_classifier", "load", "loaded", "longest_row", "with_head"]

AnyModel = TypeVar("AnyModel", bound=Model)


class Loaded(NamedTuple):
    """A model with its tokenizer, which every task needs; `load` returns one."""

    model: Model
    tokenizer: Tokenizer


#: What a task accepts as its model: a model and its tokenizer, as `load` returns them, or a model's name or folder.
Source: TypeAlias = "Loaded | tuple[Model, Tokenizer] | str | os.PathLike[str]"

#: The file of a folder of `FrozenClassifier.save_pretrained`.
_FROZEN = "frozen_head.json"


def load(
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
) -> Loaded:
    """Load a model, as the class that its folder names, and its tokenizer.

    Parameters
    ----------
    name : str or os.PathLike
        ``"minilm"``, a folder with ``config.json`` and weights, or ``"org/name"`` in the local Hugging Face cache.
    backend : {"rust", "numpy"}, default "rust"
        The engine.
    dtype : {"float32", "bfloat16", "int8", "auto"}, default "float32"
        The type that the engine computes in, as for `Model`.
    revision : str, optional
        Branch, tag or commit of a model in the Hugging Face cache.
    download : bool, default False
        Download a model that is not in the cache, with huggingface_hub.
    keep_half : bool, default False
        Keep weights that the file stores in 16 bits in 16 bits in memory.
    check_finite : bool, default False
        Refuse weights that are NaN or infinite.
    new_head : int, optional
        A seed to draw the weights of the head with, if the file has none of them.
    calibrate : sequence of str, optional
        Texts for ``dtype="int8"``, as for `Model.from_pretrained`.

    Returns
    -------
    Loaded
        The model and the tokenizer, for the functions of this module.

    Raises
    ------
    ModelNotFoundError, ConfigError, CheckpointError, TokenizerFormatError
        As for `AutoModel.from_pretrained` and `Tokenizer.from_pretrained`.
    """
    folder = find_model(name, revision=revision, download=download)
    model = AutoModel.from_pretrained(
        folder, backend, dtype, keep_half=keep_half, check_finite=check_finite, new_head=new_head, calibrate=calibrate
    )
    return Loaded(model, tokenizer_of(folder))


def loaded(source: object) -> Loaded:
    """Return the model and the tokenizer of a source.

    Raises
    ------
    InputError
        The source is not a model with a tokenizer.
    """
    model, tokenizer = source if isinstance(source, tuple) and len(source) == 2 else load(source)  # type: ignore[arg-type]
    if not isinstance(tokenizer, Tokenizer | SubwordTokenizer) or not isinstance(model, Model):
        raise InputError(f"pass what tasks.load returns, a model and its tokenizer, not {model!r} and {tokenizer!r}")
    return Loaded(model, cast("Tokenizer", tokenizer))  # a SubwordTokenizer has the methods that are used


def with_head(source: object, head: type[AnyModel], task: str) -> tuple[AnyModel, Tokenizer]:
    """Return the model and the tokenizer of a source.

    Raises
    ------
    InputError
        The source is not a model with a tokenizer, or the model does not have the head that the task needs.
    """
    model, tokenizer = loaded(source)
    if not isinstance(model, head):
        message = f"{task} needs a model with a head for it, not {type(model).__name__}"
        if (Path(model.source).parent / _FROZEN).is_file():
            message += "; its folder has a head on frozen vectors, which classify takes by the folder's name"
        raise InputError(message)
    return model, tokenizer


def frozen_classifier(source: object) -> FrozenClassifier | None:
    """Return the classifier on frozen vectors that a source is or names, or None.

    Parameters
    ----------
    source : object
        What a task was given as its model.
    """
    module = sys.modules.get("wordpiece_bert.finetune.frozen_classifier")  # imported if there is such an object
    if module is not None and isinstance(source, module.FrozenClassifier):
        return cast("FrozenClassifier", source)
    if not isinstance(source, str | PathLike):
        return None
    folder = find_model(source)
    if not (folder / _FROZEN).is_file():
        return None
    from wordpiece_bert.finetune.frozen_classifier import FrozenClassifier

    return FrozenClassifier.from_pretrained(folder)


def longest_row(model: Model, tokenizer: Tokenizer) -> int:
    """Return the longest row in tokens that both the model and the tokenizer allow."""
    limit = tokenizer.model_max_length
    return model.config.usual_longest_row if limit is None else min(model.config.longest_row, limit)
