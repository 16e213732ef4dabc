"""Kinds of views: one entry for each, which pictures, pages and the command ``inspect`` read.

The functions of `wordpiece_bert.inspect` make views; the entry here says how a view of a kind is shown, and how the
command makes one of a text. `wordpiece_bert.inspect.views` has the entries of this package.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

from wordpiece_bert.errors import InputError
from wordpiece_bert.inspect.trace import Trace, trace

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy as np
    import numpy.typing as npt

    from wordpiece_bert._internal.choices import SaliencyMethod
    from wordpiece_bert._internal.drawing import Drawing
    from wordpiece_bert.tasks.task_loading import Loaded
    from wordpiece_bert.tokenizer.subword import AnyTokenizer

    Draw: TypeAlias = Callable[[str, Mapping[str, Any], Mapping[str, npt.NDArray[np.float32]]], Drawing]


@dataclass(frozen=True, kw_only=True)
class Inspected:
    """A text in a tokenizer or a model, of which the command makes views.

    Attributes
    ----------
    tokenizer : Tokenizer
        The tokenizer.
    loaded : Loaded or None
        The model with its tokenizer; None for a tokenizer alone.
    text : str
        The text.
    pair : str or None
        The second text of a pair.
    beside : Tokenizer or None
        A second tokenizer for the same text.
    names : (str, str)
        What the two tokenizers are called.
    max_length : int or None
        The most tokens.
    saliency : str
        How saliency is measured.
    """

    tokenizer: AnyTokenizer
    loaded: Loaded | None
    text: str
    pair: str | None = None
    beside: AnyTokenizer | None = None
    names: tuple[str, str] = ("first tokenizer", "second tokenizer")
    max_length: int | None = None
    saliency: SaliencyMethod = "occlusion"

    @property
    def model(self) -> Loaded:
        """The model; views that need one are not offered without."""
        assert self.loaded is not None
        return self.loaded

    @cached_property
    def trace(self) -> Trace:
        """The text through the model, once for all views."""
        return trace(self.model, self.text, self.pair, max_length=self.max_length)


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of views.

    Attributes
    ----------
    name : str
        `View.kind`, and the name after ``--views``.
    label : str
        The name of its tab in a page.
    draw : callable
        Makes the picture of the title, the data and the arrays of a view.
    script : str
        The script that shows the view in a page: it sets ``builders.NAME`` to a function of the view, as the scripts in
        ``inspect/page`` do. Without one, a page shows the picture. Kinds may have a script in common.
    make : callable, optional
        Makes the `View` of an `Inspected` for the command; None for a kind that the command does not offer.
    allowed : callable
        Whether the command can make the view with a model, or with None for a tokenizer alone. By default, with any
        model.
    rows : str
        The name in ``data`` of the texts that rows or points stand for, if there are any: choosing one chooses its
        text in the other tabs.
    on_request : bool
        Whether the command makes the view only if it is named, because it takes long.
    """

    name: str
    label: str
    draw: Draw
    script: str = ""
    make: Callable[[Inspected], Any] | None = None
    allowed: Callable[[Loaded | None], bool] = lambda loaded: loaded is not None
    rows: str = ""
    on_request: bool = False


#: The kinds by name, in the order of the command's page.
KINDS: dict[str, Kind] = {}


def register(kind: Kind) -> None:
    """Add a kind of views. Pictures, pages and the command ``inspect`` then know it.

    Parameters
    ----------
    kind : Kind
        The entry. One of the same `name` is replaced.
    """
    KINDS[kind.name] = kind


def kind_named(name: str) -> Kind:
    """Return a kind.

    Raises
    ------
    InputError
        There is none of this name.
    """
    if name not in KINDS:
        raise InputError(f"there is no kind of views {name!r}: there are {', '.join(KINDS)}")
    return KINDS[name]
