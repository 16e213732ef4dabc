"""Where an encoder was loaded from, so that its pickle has the name of the folder instead of the weights."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from wordpiece_bert.hub import PACKAGED_MODELS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wordpiece_bert.sentence.folders.content_files import FileState

__all__ = ["Source", "lasting_name", "load"]


@dataclass(frozen=True)
class Source:
    """The arguments with which an encoder was loaded.

    Attributes
    ----------
    name : str
        The name, as it was given.
    folder : str
        The folder that was found under this name, as an absolute path.
    revision : str or None
        The revision of a model in the Hugging Face cache.
    options : tuple of (str, value)
        The other arguments by name: they are hashable, so that a source can be the key of a cache.
    files : tuple of FileState
        The files that decide about the vectors, as they were before the model was loaded; none if that is not known.
    """

    name: str
    folder: str
    revision: str | None
    options: tuple[tuple[str, Any], ...]
    files: tuple[FileState, ...] = field(default=(), compare=False, repr=False)

    @classmethod
    def of(cls, name: str | os.PathLike[str], folder: Path, revision: str | None, **options: object) -> Self:
        """Return the source of a model that was found in a folder."""
        return cls(str(name), str(folder.absolute()), revision, tuple(options.items()))

    def arguments(self) -> tuple[str, dict[str, Any]]:
        """Return the name to load and the other arguments.

        The name is the folder where it exists. On another machine it may not: then the given name is searched for.
        """
        if Path(self.folder).is_dir():
            return self.folder, dict(self.options)
        return self.name, {**dict(self.options), "revision": self.revision}


def load(cls: Any, source: Source, attributes: Mapping[str, object]) -> Any:
    """Load the encoder of a pickle, with the `from_pretrained` of its class, and set attributes that were changed."""
    name, options = source.arguments()
    encoder = cls.from_pretrained(name, **options)
    for attribute, value in attributes.items():
        setattr(encoder, attribute, value)
    return encoder


def lasting_name(name: str | os.PathLike[str]) -> str:
    """Return a name of a model that means the same in another working directory: of a folder, its absolute path."""
    folder = Path(name).expanduser()
    if isinstance(name, str) and (name in PACKAGED_MODELS or not folder.is_dir()):
        return name
    return os.path.abspath(folder)
