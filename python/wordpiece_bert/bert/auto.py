"""Loading a model as the class that its folder names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wordpiece_bert._internal.safe_json import quoted, read_object
from wordpiece_bert.bert.config import BertConfig, find_config
from wordpiece_bert.bert.families import FAMILIES, Family, class_named, family_named
from wordpiece_bert.bert.model import BertModel
from wordpiece_bert.errors import ConfigError
from wordpiece_bert.hub import find_model

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence
    from pathlib import Path

    from wordpiece_bert.bert.base import Model

__all__ = ["AutoModel", "base_class", "read_config"]


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
            raise ConfigError(
                f"{folder}: a model of type {kind!r} has no encoder of tokens; AutoModel.from_pretrained loads it"
            )
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
    return _base_class(_family(find_config(folder)))


def _base_class(family: Family) -> type[Model]:
    found = class_named(family.base_name)
    assert found is not None
    return found


def _family(file: Path) -> Family:
    """Return the family that a ``config.json`` names."""
    kind = read_object(file, ConfigError).get("model_type")
    if kind is None:
        named = class_named(_architecture(file) or "BertModel")
        kind = "bert" if named is None else named.config_class.model_type
    found = family_named(kind) if isinstance(kind, str) else None
    if found is None:
        raise ConfigError(f"{file}: model_type is {quoted(kind)}; supported are {', '.join(FAMILIES)}")
    return found


def _class_of(folder: str | os.PathLike[str]) -> type[Model]:
    """Return the class that ``architectures`` names, or the class without a head if it names none."""
    file = find_config(folder)
    family, name = _family(file), _architecture(file)
    base = _base_class(family)
    found = base if name is None else class_named(name)
    if found is None or found.__name__ not in family.modules:
        raise ConfigError(
            f"{file}: architectures names {quoted(name)}, which is not supported; {', '.join(family.modules)} are. "
            f"{base.__name__}.from_pretrained loads the encoder without its head"
        )
    return found


def _architecture(file: Path) -> str | None:
    """Return the first class that a configuration names; None if it names none."""
    names = read_object(file, ConfigError).get("architectures")
    return names[0] if isinstance(names, list) and names and isinstance(names[0], str) else None
