"""Loading a model as the class that its folder names."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from wordpiece_bert._internal.safe_json import quoted, read_object
from wordpiece_bert.bert import heads, variants
from wordpiece_bert.bert.config import BertConfig, find_config
from wordpiece_bert.bert.model import BertModel
from wordpiece_bert.errors import ConfigError
from wordpiece_bert.hub import find_model

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence
    from pathlib import Path

    from wordpiece_bert.bert.base import Model

__all__ = ["AutoModel", "base_class", "read_config"]

#: The class without a head of each type of model, imported when a folder needs it; for DPR the one that transformers
#: chooses.
_BASE_MODELS = {
    "bert": "BertModel",
    "albert": "AlbertModel",
    "distilbert": "DistilBertModel",
    "dpr": "DPRQuestionEncoder",
    "electra": "ElectraModel",
    "gte": "GteModel",
    "megatron-bert": "MegatronBertModel",
    "mobilebert": "MobileBertModel",
    "mpnet": "MPNetModel",
    "nomic_bert": "NomicBertModel",
    "roberta": "RobertaModel",
    "xlm-roberta": "XLMRobertaModel",
}

#: Names of types and classes in the remote code of models, and the classes here that compute the same.
_OTHER_TYPES = {"new": "gte"}
_OTHER_CLASSES = {
    "NewModel": "GteModel",
    "NewForMaskedLM": "GteForMaskedLM",
    "NewForSequenceClassification": "GteForSequenceClassification",
    "NewForTokenClassification": "GteForTokenClassification",
}

# The names of all classes.
_CLASSES = ("BertModel", *heads.__all__, *(name for name in variants.__all__ if not name.endswith("Config")))


class AutoModel:
    """Loads a folder as the class that its ``config.json`` names, head included."""

    @staticmethod
    def from_pretrained(
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
    ) -> Model:
        """Load a model as the class that ``architectures`` names, or without a head if it names none.

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
        Model
            The model.

        Raises
        ------
        ConfigError
            The class, or the type of model, is not supported; the message has its name. The other errors and the
            warnings are those of `Model.from_pretrained`.
        """
        folder = find_model(name, revision=revision, download=download)
        return _class_of(folder).from_pretrained(
            folder,
            backend,
            dtype,
            keep_half=keep_half,
            check_finite=check_finite,
            new_head=new_head,
            calibrate=calibrate,
        )

    @staticmethod
    def base_from_pretrained(
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
    ) -> BertModel:
        """Load a model of any type without its head.

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
        BertModel
            The encoder.

        Raises
        ------
        ConfigError
            The type of model is not supported. The other errors and the warnings are those of `Model.from_pretrained`.
        """
        folder = find_model(name, revision=revision, download=download)
        base = base_class(folder)
        if not issubclass(base, BertModel):
            kind = base.config_class.model_type
            message = f"{folder}: a model of type {kind!r} has no encoder of tokens; AutoModel.from_pretrained loads it"
            raise ConfigError(message)
        return base.from_pretrained(
            folder,
            backend,
            dtype,
            keep_half=keep_half,
            check_finite=check_finite,
            new_head=new_head,
            calibrate=calibrate,
        )


def read_config(folder: str | os.PathLike[str]) -> BertConfig:
    """Read the configuration of a folder with a model of any type."""
    return base_class(folder).config_class.from_folder(folder)


def base_class(folder: str | os.PathLike[str]) -> type[Model]:
    """Return the class without a head, by ``model_type`` or, without one, by the class in ``architectures``."""
    file = find_config(folder)
    values = read_object(file, ConfigError)
    kind = values.get("model_type")
    kind = _OTHER_TYPES.get(kind, kind) if isinstance(kind, str) else kind
    if kind is None:
        name = _architecture(file)
        kind = _class_named(name).config_class.model_type if name in _CLASSES else "bert"
    if not isinstance(kind, str) or kind not in _BASE_MODELS:
        known = ", ".join(_BASE_MODELS)
        message = f"{file}: model_type is {quoted(kind)}; supported are {known}"
        raise ConfigError(message)
    return _class_named(_BASE_MODELS[kind])


def _class_of(folder: str | os.PathLike[str]) -> type[Model]:
    """Return the class that ``architectures`` names, or the class without a head if it names none."""
    base = base_class(folder)
    file = find_config(folder)
    name = _architecture(file)
    if name is None:
        return base
    if name not in _CLASSES or _class_named(name).config_class is not base.config_class:
        known = ", ".join(other for other in _CLASSES if _class_named(other).config_class is base.config_class)
        message = (
            f"{file}: architectures names {quoted(name)}, which is not supported; {known} are. "
            f"{base.__name__}.from_pretrained loads the encoder without its head"
        )
        raise ConfigError(message)
    return _class_named(name)


def _class_named(name: str) -> type[Model]:
    """Return one of `_CLASSES`."""
    if name == "BertModel":
        return BertModel
    return cast("type[Model]", getattr(heads if name in heads.__all__ else variants, name))


def _architecture(file: Path) -> str | None:
    """Return the first class that a configuration names, by its name here; None if it names none."""
    names = read_object(file, ConfigError).get("architectures")
    name = names[0] if isinstance(names, list) and names and isinstance(names[0], str) else None
    return None if name is None else _OTHER_CLASSES.get(name, name)
