"""Loading a model as the class that its folder names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert._internal.peer_arguments import MODEL_LOADING, refusing
from wordpiece_bert._internal.safe_json import quoted, read_object
from wordpiece_bert.bert.config import BertConfig, find_config
from wordpiece_bert.bert.family_table import FAMILIES, Family, class_named, family_named
from wordpiece_bert.bert.loading import Loading
from wordpiece_bert.bert.model import BertModel
from wordpiece_bert.bert.parameters import LOADING
from wordpiece_bert.errors import ConfigError

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence
    from pathlib import Path

    from wordpiece_bert.bert.base_model import Model


class AutoModel:
    """Loads a folder as the class that its ``config.json`` names, head included.

    Examples
    --------
    >>> from wordpiece_bert.bert import AutoModel
    >>> type(AutoModel.from_pretrained("models/entities")).__name__
    'BertForTokenClassification'
    >>> type(AutoModel.base_from_pretrained("models/sentences")).__name__
    'BertModel'
    """

    @staticmethod
    @refusing(MODEL_LOADING)
    @completed_by(LOADING)
    def from_pretrained(
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
    ) -> Model:
        """Load a model as the class that ``architectures`` names, or without a head if it names none.

        Returns
        -------
        Model
            The model.

        Raises
        ------
        ConfigError
            The class, or the type of model, is not supported; the message has its name. The other errors and the
            warnings are as for `Model.from_pretrained`.
        """
        loading = Loading(
            backend, dtype, revision, download, check_finite, new_head, calibrate, instructions=instructions
        )
        return load_any(loading.find(name), loading)

    @staticmethod
    @refusing(MODEL_LOADING)
    @completed_by(LOADING)
    def base_from_pretrained(
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
    ) -> BertModel:
        """Load a model of any type without its head.

        Returns
        -------
        BertModel
            The encoder.

        Raises
        ------
        ConfigError
            The type of model is not supported. The other errors and the warnings are as for `Model.from_pretrained`.
        """
        loading = Loading(
            backend, dtype, revision, download, check_finite, new_head, calibrate, instructions=instructions
        )
        return load_base(loading.find(name), loading)


def load_any(folder: Path, loading: Loading) -> Model:
    """Load the model of a folder as the class that its configuration names, as `AutoModel.from_pretrained`."""
    return loading.load(_class_of(folder), folder)


def load_base(folder: Path, loading: Loading) -> BertModel:
    """Load the model of a folder without its head, as `AutoModel.base_from_pretrained`."""
    base = base_class(folder)
    if not issubclass(base, BertModel):
        kind = base.config_class.model_type
        raise ConfigError(
            f"{folder}: a model of type {kind!r} has no encoder of tokens; AutoModel.from_pretrained loads it"
        )
    return loading.load(base, folder)


def read_config(folder: str | os.PathLike[str]) -> BertConfig:
    """Read the configuration of a folder with a model of any type."""
    return read_config_file(find_config(folder))


def read_config_file(file: Path) -> BertConfig:
    """Read the configuration of a model of any type from a ``config.json``."""
    return _base_class(_family(file, read_object(file, ConfigError))).config_class.from_file(file)


def base_class(folder: str | os.PathLike[str]) -> type[Model]:
    """Return the class without a head, by ``model_type`` or, without one, by the class in ``architectures``."""
    file = find_config(folder)
    return _base_class(_family(file, read_object(file, ConfigError)))


def _base_class(family: Family) -> type[Model]:
    found = class_named(family.base_name)
    assert found is not None
    return found


def _family(file: Path, values: dict[str, Any]) -> Family:
    """Return the family that the values of a ``config.json`` name."""
    kind, named = values.get("model_type"), class_named(_architecture(values) or "BertModel")
    named_kind = "bert" if named is None else named.config_class.model_type
    if kind is None:
        kind = named_kind
    # Files of Jina-BERT say "bert" and leave the rest to remote code.
    if kind == "bert" and (named_kind == "jina_bert" or values.get("position_embedding_type") == "alibi"):
        kind = "jina_bert"
    found = family_named(kind) if isinstance(kind, str) else None
    if found is None:
        raise ConfigError(f"{file}: model_type is {quoted(kind)}; supported are {', '.join(FAMILIES)}")
    return found


def _class_of(folder: str | os.PathLike[str]) -> type[Model]:
    """Return the class that ``architectures`` names, or the class without a head if it names none."""
    file = find_config(folder)
    values = read_object(file, ConfigError)
    family, name = _family(file, values), _architecture(values)
    base = _base_class(family)
    found = base if name is None else class_named(name)
    if found is None or found.__name__ not in family.modules:
        raise ConfigError(
            f"{file}: architectures names {quoted(name)}, which is not supported; {', '.join(family.modules)} are. "
            f"{base.__name__}.from_pretrained loads the encoder without its head"
        )
    return found


def _architecture(values: dict[str, Any]) -> str | None:
    """Return the first class that a configuration names; None if it names none."""
    names = values.get("architectures")
    return names[0] if isinstance(names, list) and names and isinstance(names[0], str) else None
