"""Where an encoder was loaded from, so that its pickle has the name of the folder instead of the weights."""

from __future__ import annotations

import os
from copy import copy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from wordpiece_bert.errors import InputError, WordPieceError
from wordpiece_bert.hub import PACKAGED_MODELS, find_model
from wordpiece_bert.sentence.kept_models import KeptModels

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from wordpiece_bert.sentence.folders.content_files import FileState

_pickled = KeptModels()


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
        The files that loading reads, as they were before it; none if that is not known.
    heads : tuple of str
        The names of files of weights in the folder that this kind of encoder alone reads.
    """

    name: str
    folder: str
    revision: str | None
    options: tuple[tuple[str, Any], ...]
    files: tuple[FileState, ...] = field(default=(), compare=False, repr=False)
    heads: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        name: str | os.PathLike[str],
        folder: Path,
        revision: str | None,
        heads: Iterable[str] = (),
        **options: object,
    ) -> Self:
        """Return the source of a model that was found in a folder, before it is loaded."""
        from wordpiece_bert.sentence.folders.content_files import loaded_states

        path, heads = folder.absolute(), tuple(heads)
        return cls(str(name), str(path), revision, tuple(options.items()), loaded_states(path, heads), heads)

    def contents(self) -> dict[str, str] | None:
        """Return digests of what was loaded by part; None if the folder no longer has it."""
        from wordpiece_bert.sentence.folders.content_files import loaded_states
        from wordpiece_bert.sentence.folders.contents import folder_contents

        folder = Path(self.folder)
        try:
            same = self.files and loaded_states(folder, self.heads) == self.files
            return folder_contents(folder, self.heads) if same else None
        except (OSError, WordPieceError):
            return None

    def check_contents(self) -> dict[str, str]:
        """Return digests of what was loaded by part.

        Raises
        ------
        InputError
            The files have changed since.
        """
        if (contents := self.contents()) is None:
            raise InputError(f"{self.folder}: the files have changed since the model was loaded: load it again")
        return contents

    def sent(self, dtype: str) -> Source:
        """Return the source as another process gets it, with the dtype that ``dtype="auto"`` took here."""
        options = {name: dtype if name == "dtype" else value for name, value in self.options}
        return replace(self, options=tuple(options.items()), files=())

    def arguments(self) -> tuple[str, dict[str, Any]]:
        """Return the name to load and the other arguments.

        The name is the folder where it exists. On another machine it may not: then the given name is searched for.
        """
        if Path(self.folder).is_dir():
            return self.folder, dict(self.options)
        return self.name, {**dict(self.options), "revision": self.revision}


def load(cls: Any, source: Source, attributes: Mapping[str, object], contents: Mapping[str, str] | None = None) -> Any:
    """Return the encoder of a pickle, which a process loads once for equal sources.

    Parameters
    ----------
    cls : type
        The class, whose `from_pretrained` loads it.
    source : Source
        Where it was loaded from.
    attributes : mapping
        Attributes that were changed.
    contents : mapping, optional
        The digests of the folder's contents when the encoder was pickled.

    Raises
    ------
    InputError
        The folder here has other contents.
    ModelNotFoundError
        There is no such model here.
    """
    from wordpiece_bert.sentence.folders.contents import folder_contents

    name, options = source.arguments()
    folder = find_model(name, revision=options.get("revision")).absolute()
    then = contents or {}
    now = folder_contents(folder, source.heads) if then else {}
    if different := [part for part, digest in then.items() if now.get(part) != digest]:
        raise InputError(
            f"{folder} is not the model of the pickled {cls.__name__}, which was loaded from {source.folder}: "
            + ", ".join(f"{part} {now.get(part)}, then {then[part]}" for part in different)
            + "; make the same files available here, or load the model from this folder by its name"
        )
    loaded = _pickled.get(folder, lambda: cls.from_pretrained(name, **options), cls, tuple(options.items()))
    encoder = copy(loaded)  # shares the weights
    for attribute, value in attributes.items():
        setattr(encoder, attribute, value)
    return encoder


def lasting_name(name: str | os.PathLike[str]) -> str:
    """Return a name of a model that means the same in another working directory: of a folder, its absolute path."""
    folder = Path(name).expanduser()
    if isinstance(name, str) and (name in PACKAGED_MODELS or not folder.is_dir()):
        return name
    return os.path.abspath(folder)
