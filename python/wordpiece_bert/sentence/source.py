"""Where an encoder was loaded from, so that its pickle has the name of the folder instead of the weights."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, SupportsIndex

if TYPE_CHECKING:
    import os

    from wordpiece_bert.sentence.content_files import FileState

__all__ = ["PickledBySource", "Source", "load"]


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
    def of(
        cls, name: str | os.PathLike[str], folder: str | os.PathLike[str], revision: str | None, **options: object
    ) -> Self:
        """Return the source of a model that was found in a folder."""
        return cls(str(name), str(Path(folder).absolute()), revision, tuple(options.items()))

    def arguments(self) -> tuple[str, dict[str, Any]]:
        """Return the name to load and the other arguments.

        The name is the folder where it exists. On another machine it may not: then the given name is searched for.
        """
        if Path(self.folder).is_dir():
            return self.folder, dict(self.options)
        return self.name, {**dict(self.options), "revision": self.revision}


class PickledBySource:
    """An encoder that never changes: a copy is the encoder itself, and its pickle has only where it was loaded from."""

    _source: Source

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        return load, (type(self), self._source)


def load(cls: Any, source: Source) -> Any:
    """Load the encoder of a pickle, with the `from_pretrained` of its class."""
    name, options = source.arguments()
    return cls.from_pretrained(name, **options)
