"""What objects of this package give to its other modules, and not to users: a function for each.

Modules named ``parts`` alone read attributes with a leading underscore of objects that are not their own: this one of
all kinds of objects, `wordpiece_bert.tokenizer.parts` of tokenizers, `wordpiece_bert.bert.parts` of models.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from wordpiece_bert._internal.atomic_folder import AtomicFolder, FileSink


Core = TypeVar("Core", covariant=True)


class Wrapper(Protocol[Core]):
    """An object of this package around one of the extension: a `Tokenizer`, `WordCounts`."""

    @property
    def _inner(self) -> Core: ...


class Written(Protocol):
    """What can be written into a folder together with others: a model, a tokenizer, an encoder."""

    def _write_files(self, output: AtomicFolder) -> None: ...


@runtime_checkable
class Extendable(Protocol):
    """An encoder of texts: a model with its tokenizer, of which both can be replaced."""

    def _with_vocabulary(self, extend: Callable[[Any], Any], tokenizer: Callable[[Any], Any]) -> Self: ...


Encoder = TypeVar("Encoder", bound=Extendable)


def core_of(wrapper: Wrapper[Core]) -> Core:
    """Return the object of the extension that does the work of another."""
    return wrapper._inner


class Subfolder:
    """A folder in the folder that another sink writes.

    Parameters
    ----------
    sink : FileSink
        What takes the files.
    name : str
        The name of the folder in it.
    """

    def __init__(self, sink: FileSink, name: str) -> None:
        self._sink, self._name = sink, name

    def write(self, name: str, chunks: Iterable[bytes | memoryview]) -> None:
        """Write a file, as the sink does."""
        self._sink.write(f"{self._name}/{name}", chunks)

    def write_text(self, name: str, text: str) -> None:
        """Write a file with a text as UTF-8."""
        self._sink.write_text(f"{self._name}/{name}", text)


def write_files(written: Written, output: AtomicFolder, folder: str = "", **settings: Any) -> None:
    """Write the files of a model, a tokenizer or an encoder into a folder that is committed later.

    Parameters
    ----------
    written : Model, Tokenizer or encoder
        What to write.
    output : AtomicFolder
        The folder.
    folder : str, default ""
        A folder in it.
    **settings
        For a model: fields of its ``config.json`` besides the fields of its configuration.
    """
    sink: Any = Subfolder(output, folder) if folder else output
    written._write_files(sink, **settings)


def with_vocabulary(encoder: Encoder, extend: Callable[[Any], Any], tokenizer: Callable[[Any], Any]) -> Encoder:
    """Return an encoder with another model and tokenizer, each made from its own."""
    return encoder._with_vocabulary(extend, tokenizer)
