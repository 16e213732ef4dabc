"""The kinds of folders: how the files of each are recognized, and the class that loads it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wordpiece_bert._internal.safe_json import JsonObject, read_object
from wordpiece_bert.errors import ConfigError
from wordpiece_bert.sentence.folders.reading import list_modules, refuse

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of folder."""

    #: What its model is called.
    name: str
    #: The class that loads it, and the module of the class in `wordpiece_bert.sentence`.
    class_name: str
    module: str
    #: What the model makes of a text; None if it makes no vectors.
    vectors: str | None
    #: The types under which sentence-transformers and PyLate save such models.
    saved_as: tuple[str, ...] = ()
    #: Whether other files of a folder say that it is of this kind.
    is_kind: Callable[[Path], bool] = lambda _: False


def _is_colbert(folder: Path) -> bool:
    """Return whether a folder is from ColBERT's own code, which has no modules."""
    return not (folder / "modules.json").is_file() and "HF_ColBERT" in _architectures(folder / "config.json")


def _is_static(folder: Path) -> bool:
    """Return whether the first module is a table; or without modules, whether the folder is one of model2vec."""
    listing = folder / "modules.json"
    if listing.is_file():
        modules = list_modules(listing, None)
        return bool(modules) and modules[0][0] == "StaticEmbedding"
    return is_model2vec(_read(folder / "config.json"))


def is_model2vec(config: JsonObject) -> bool:
    """Return whether a ``config.json`` belongs to a model of model2vec."""
    return config.get("model_type") == "model2vec" or config.get("architectures") == ["StaticModel"]


SPARSE = Kind(
    name="sparse encoder",
    class_name="SparseEncoder",
    module="sparse.sparse_encoder",
    vectors="sparse vectors",
    saved_as=("SparseEncoder",),
)
CROSS = Kind(
    name="cross encoder", class_name="CrossEncoder", module="cross_encoder", vectors=None, saved_as=("CrossEncoder",)
)
MULTI_VECTOR = Kind(
    name="multi-vector encoder",
    class_name="MultiVectorEncoder",
    module="multi_vector.multi_vector_encoder",
    vectors="many vectors for a text",
    saved_as=("MultiVectorEncoder", "ColBERT"),
    is_kind=_is_colbert,
)
STATIC = Kind(
    name="static encoder",
    class_name="SentenceEncoder",
    module="dense.sentence_encoder",
    vectors="vectors",
    is_kind=_is_static,
)
SENTENCE = Kind(
    name="sentence encoder",
    class_name="SentenceEncoder",
    module="dense.sentence_encoder",
    vectors="vectors",
    is_kind=lambda _: True,
)
#: All kinds, in the order in which they are tried; the last one is for any other folder.
KINDS = (SPARSE, CROSS, MULTI_VECTOR, STATIC, SENTENCE)


def kind_of(folder: Path) -> Kind:
    """Return the kind of a folder.

    Raises
    ------
    ConfigError
        A configuration is malformed.
    """
    saved_as = _read(folder / "config_sentence_transformers.json").get("model_type")
    return next(kind for kind in KINDS if saved_as in kind.saved_as or kind.is_kind(folder))


def makes_sentence_vectors(folder: Path) -> bool:
    """Return whether a folder has modules of a sentence encoder, or a model without a head.

    Raises
    ------
    ConfigError
        As for `kind_of`.
    """
    if kind_of(folder) is not SENTENCE:
        return False
    names = _architectures(folder / "config.json")
    return (folder / "modules.json").is_file() or not any("For" in str(name) for name in names)


def check_class(folder: Path, class_name: str, more: str = "") -> None:
    """Raise a `ConfigError` if a class does not load the kind of a folder; `more` ends the message."""
    right = kind_of(folder).class_name
    if right != class_name:
        refuse(folder, f"is a model for {right}: load it with {right}.from_pretrained{more}")


def _architectures(config: Path) -> list[Any]:
    names = _read(config).get("architectures")
    return names if isinstance(names, list) else []


def _read(file: Path) -> JsonObject:
    """Read an object of JSON; an empty one without the file."""
    return read_object(file, ConfigError) if file.is_file() else {}
