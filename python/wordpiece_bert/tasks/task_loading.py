"""The model and the tokenizer of a task."""

from __future__ import annotations

import sys
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypeVar, cast

from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert.bert.auto import load_any
from wordpiece_bert.bert.base_model import Model
from wordpiece_bert.bert.loading import Loading
from wordpiece_bert.bert.parameters import LOADING
from wordpiece_bert.errors import InputError
from wordpiece_bert.hub import find_model
from wordpiece_bert.tokenizer.parameters import SPLITTING
from wordpiece_bert.tokenizer.subword import SubwordTokenizer, tokenizer_of
from wordpiece_bert.tokenizer.tokenizer import Tokenizer

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from wordpiece_bert.finetune.frozen_classifier import FrozenClassifier
    from wordpiece_bert.sentence.dense.static_classifier import StaticClassifier
    from wordpiece_bert.tokenizer.subword import AnyTokenizer
    from wordpiece_bert.tokenizer.word_splitter import WordSplitter

AnyModel = TypeVar("AnyModel", bound=Model)


class Loaded(NamedTuple):
    """A model with its tokenizer, which every task needs; `load` returns one.

    Examples
    --------
    >>> from wordpiece_bert.tasks import classify, load
    >>> loaded = load("models/reviews")
    >>> type(loaded.model).__name__, len(loaded.tokenizer)
    ('BertForSequenceClassification', 67)
    >>> classify(loaded, "A dull film.")[0]["label"]
    'negative'
    """

    #: The model, of the class that its folder names.
    model: Model
    #: Its tokenizer.
    tokenizer: AnyTokenizer


#: What a task accepts as its model: a model and its tokenizer, as `load` returns them, or a model's name or folder.
Source: TypeAlias = "Loaded | tuple[Model, AnyTokenizer] | str | os.PathLike[str]"

#: The file of a folder of `FrozenClassifier.save_pretrained`.
_FROZEN = "frozen_head.json"
#: The files of the head of a static model, in the present format and in an older one.
_STATIC = ("head.safetensors", "pipeline.skops")


@completed_by(LOADING, SPLITTING)
def load(
    name: str | os.PathLike[str],
    backend: str = "rust",
    dtype: str = "float32",
    *,
    revision: str | None = None,
    download: bool = False,
    check_finite: bool = False,
    new_head: int | None = None,
    calibrate: Sequence[str] | None = None,
    word_splitter: WordSplitter | None = None,
    instructions: str | None = None,
) -> Loaded:
    """Load a model, as the class that its folder names, and its tokenizer.

    Returns
    -------
    Loaded
        The model and the tokenizer, for the functions of this module.

    Raises
    ------
    ModelNotFoundError, ConfigError, CheckpointError, TokenizerFormatError
        As for `AutoModel.from_pretrained` and `Tokenizer.from_pretrained`.

    Examples
    --------
    >>> from wordpiece_bert.tasks import classify, load
    >>> reviews = load("models/reviews")
    >>> [
    ...     found[0]["label"]
    ...     for found in classify(reviews, ["A wonderful film!", "The story was dull."])
    ... ]
    ['positive', 'negative']
    """
    loading = Loading(
        backend, dtype, revision, download, check_finite, new_head, calibrate, word_splitter, instructions
    )
    folder = loading.find(name)
    tokenizer = tokenizer_of(folder, word_splitter=word_splitter)  # before the weights, which take longer to read
    return Loaded(load_any(folder, loading), tokenizer)


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
    return Loaded(model, tokenizer)


def with_head(source: object, head: type[AnyModel], task: str) -> tuple[AnyModel, AnyTokenizer]:
    """Return the model and the tokenizer of a source.

    Raises
    ------
    InputError
        The source is not a model with a tokenizer, or the model does not have the head that the task needs.
    """
    model, tokenizer = loaded(source)
    if not isinstance(model, head):
        message = f"{task} needs a model with a head for it, not {type(model).__name__}"
        if has_frozen_head(Path(model.source).parent):
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
    found = _given_or_folder(source, "wordpiece_bert.finetune.frozen_classifier", "FrozenClassifier")
    if not isinstance(found, Path):
        return cast("FrozenClassifier | None", found)
    if not has_frozen_head(found):
        return None
    from wordpiece_bert.finetune.frozen_classifier import FrozenClassifier

    return FrozenClassifier.from_pretrained(found)


def static_classifier(source: object) -> StaticClassifier | None:
    """Return the static model with a head that a source is or names, or None.

    Parameters
    ----------
    source : object
        What a task was given as its model.
    """
    found = _given_or_folder(source, "wordpiece_bert.sentence.dense.static_classifier", "StaticClassifier")
    if not isinstance(found, Path):
        return cast("StaticClassifier | None", found)
    if not any((found / name).is_file() for name in _STATIC):
        return None
    from wordpiece_bert.sentence.dense.static_classifier import StaticClassifier
    from wordpiece_bert.sentence.folders.kinds import STATIC, kind_of

    return StaticClassifier(found) if kind_of(found) is STATIC else None


def _given_or_folder(source: object, module: str, name: str) -> object:
    """Return a source that is an object of a class, the folder that it names, or None."""
    imported = sys.modules.get(module)  # imported if there is such an object
    if imported is not None and isinstance(source, getattr(imported, name)):
        return source
    return find_model(source) if isinstance(source, str | PathLike) else None


def has_frozen_head(folder: Path) -> bool:
    """Return whether a folder is one of `FrozenClassifier.save_pretrained`."""
    return (folder / _FROZEN).is_file()


def longest_row(model: Model, tokenizer: AnyTokenizer) -> int:
    """Return the longest row in tokens that both the model and the tokenizer allow."""
    most = tokenizer.model_max_length
    return model.config.usual_longest_row if most is None else min(model.config.longest_row, most)
