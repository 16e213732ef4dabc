"""What the encoders of all kinds share: settings that are given when one is made, and names of their peers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, Self, TypeVar

from wordpiece_bert._internal.checks import check_device, checked_choice, whole_number
from wordpiece_bert._internal.peer_names import refuse_peer_arguments, without_peer_names
from wordpiece_bert.errors import InputError
from wordpiece_bert.sentence.metrics import METRICS

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable

__all__ = ["Encoder", "Prompts", "VectorEncoder", "given_settings", "with_settings"]

#: Attributes that arguments of the same names give when an encoder is made, and nothing later.
_AT_CONSTRUCTION = ("prompts", "default_prompt_name", "similarity_fn_name", "truncate_dim")


class Prompts(dict[str, str]):
    """The prompts of an encoder by name. They cannot be changed; ``dict(prompts)`` is a copy that can."""

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise InputError(
            "the prompts of an encoder cannot be changed: pass prompts={name: text} when it is made, and "
            "default_prompt_name= for the one that encode uses by default; or prompt= to encode"
        )

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __hash__(self) -> int:  # type: ignore[override]  # it never changes
        return hash(frozenset(self.items()))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (dict(self),)


class Folder(Protocol):
    """The settings that the folders of all encoders have: a frozen dataclass."""

    @property
    def prompts(self) -> Mapping[str, str]: ...

    @property
    def default_prompt_name(self) -> str | None: ...


AnyFolder = TypeVar("AnyFolder", bound=Folder)


def given_settings(
    *,
    prompts: Mapping[str, str] | None = None,
    default_prompt_name: str | None = None,
    similarity_fn_name: str | None = None,
    truncate_dim: int | None = None,
) -> dict[str, Any]:
    """Return the settings that were given when an encoder was made, hashable, for `with_settings` and a `Source`.

    Raises
    ------
    InputError
        The prompts are not texts by name.
    """
    given = {
        "prompts": None if prompts is None else _checked_prompts(prompts),
        "default_prompt_name": default_prompt_name,
        # sentence-transformers has an enum of the names.
        "similarity_fn_name": getattr(similarity_fn_name, "value", similarity_fn_name),
        "truncate_dim": truncate_dim,
    }
    return {name: value for name, value in given.items() if value is not None}


def _checked_prompts(prompts: object) -> Prompts:
    if not isinstance(prompts, Mapping):
        raise InputError(f"prompts must be a dict of name: text, not {prompts!r:.80}")
    for name, text in prompts.items():
        if not isinstance(name, str) or not isinstance(text, str):
            raise InputError(f"prompts must be a dict of name: text, both str, but has {name!r:.40}: {text!r:.40}")
    return Prompts(prompts)


def with_settings(folder: AnyFolder, given: Mapping[str, Any], similarities: tuple[str, ...] = METRICS) -> AnyFolder:
    """Return a folder with the settings that were given; the others are those of the folder.

    Parameters
    ----------
    folder : dataclass
        The folder, with a field for each setting.
    given : mapping
        What `given_settings` returned. Prompts replace those of the folder that have the same names, and the name of
        the default prompt is one of all of them.
    similarities : tuple of str
        The measures of this kind of encoder.

    Raises
    ------
    InputError
        A setting is wrong.
    """
    changes: dict[str, Any] = {}
    prompts = dict(folder.prompts)
    if "prompts" in given:
        changes["prompts"] = prompts = prompts | given["prompts"]
    if "default_prompt_name" in given:
        changes["default_prompt_name"] = checked_choice(
            "default_prompt_name", given["default_prompt_name"], tuple(prompts)
        )
    if "similarity_fn_name" in given:
        changes["similarity"] = checked_choice("similarity_fn_name", given["similarity_fn_name"], similarities)
    if "truncate_dim" in given:
        width: int = folder.dimension  # type: ignore[attr-defined]
        changes["truncate_dim"] = whole_number(
            "truncate_dim", given["truncate_dim"], 1, width, meaning="the width of a vector"
        )
    return replace(folder, **changes) if changes else folder  # type: ignore[type-var]


class Encoder:
    """The base of all encoders: prompts, the device, and what sentence-transformers' names are here."""

    _folder: Folder

    def __new__(
        cls,
        model: Any = None,
        *_: object,
        revision: str | None = None,
        download: bool = False,
        **options: object,
    ) -> Self:
        """Refuse arguments that only sentence-transformers has, and choose the class for a folder."""
        if cls.__module__.startswith("wordpiece_bert."):  # a subclass of the user may take what it likes
            refuse_peer_arguments(cls, options)
        return object.__new__(cls._class_for(model, revision, download=download))

    @classmethod
    def _class_for(cls, model: str | os.PathLike[str] | None, revision: str | None, *, download: bool) -> type[Self]:
        """Return the class for a folder, this one or a subclass."""
        return cls

    if not TYPE_CHECKING:  # for type checkers a class that has it takes any attribute

        def __setattr__(self, name: str, value: object) -> None:
            if name in _AT_CONSTRUCTION and hasattr(type(self), name):
                kind = type(self).__name__
                raise AttributeError(
                    f"{name} of a {kind} cannot be set: pass {name}= when it is made, {kind}(model, {name}=...)",
                    name=name,
                    obj=self,
                )
            object.__setattr__(self, name, value)

    def __dir__(self) -> Iterable[str]:
        return without_peer_names(type(self), super().__dir__())

    @property
    def prompts(self) -> Mapping[str, str]:
        """The model's prompts by name, read-only: ``prompts=`` gives others when the encoder is made."""
        return Prompts(self._folder.prompts)

    @property
    def default_prompt_name(self) -> str | None:
        """The name of the prompt that is used by default; None for none."""
        return self._folder.default_prompt_name

    @property
    def device(self) -> str:
        """Where the model computes: ``"cpu"``."""
        return "cpu"

    def to(self, device: object) -> Self:
        """Return the encoder itself, which is on the CPU; programs for sentence-transformers call this.

        Parameters
        ----------
        device : {"cpu"}
            The device.

        Raises
        ------
        InputError
            It is another device, or a number type.
        """
        check_device(device)
        return self

    def cpu(self) -> Self:
        """Return the encoder itself, as `to`."""
        return self

    def eval(self) -> Self:
        """Return the encoder itself, which never trains; programs for sentence-transformers call this."""
        return self


class VectorEncoder(Encoder):
    """The base of encoders that make vectors."""

    @property
    def dimension(self) -> int:
        """Width of the vectors that `encode` returns by default."""
        raise NotImplementedError

    def get_embedding_dimension(self) -> int:
        """Return `dimension`, under the name of sentence-transformers."""
        return self.dimension

    def get_sentence_embedding_dimension(self) -> int:
        """Return `dimension`, under the older name of sentence-transformers."""
        return self.dimension
