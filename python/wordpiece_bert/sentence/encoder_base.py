"""What the encoders of all kinds share: loading, settings, prompts, pickles, and names of their peers."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MethodType
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    NoReturn,
    ParamSpec,
    Protocol,
    Self,
    SupportsIndex,
    TypeVar,
    cast,
)

from wordpiece_bert._internal.checks import check_device, checked_choice, whole_number
from wordpiece_bert._internal.peer_names import without_peer_names
from wordpiece_bert.errors import InputError
from wordpiece_bert.sentence.arguments import prompt_text
from wordpiece_bert.sentence.metrics import METRICS
from wordpiece_bert.sentence.source import load

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wordpiece_bert.bert.engines import EngineInfo
    from wordpiece_bert.bert.loading import Loading
    from wordpiece_bert.sentence.source import Source

__all__ = ["Encoder", "FromPretrained", "Prompts", "Settings", "VectorEncoder", "engine_options"]

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


class VectorFolder(Folder, Protocol):
    """The settings that the folders of encoders have which make vectors."""

    @property
    def similarity(self) -> str: ...


AnyFolder = TypeVar("AnyFolder", bound=Folder)
Made = TypeVar("Made")
Arguments = ParamSpec("Arguments")


def engine_options(loading: Loading) -> dict[str, Any]:
    """Return the options that decide how a model computes, hashable, for a `Source`."""
    calibrate = None if loading.calibrate is None else tuple(loading.calibrate)
    return {
        "backend": loading.backend,
        "dtype": loading.dtype,
        "calibrate": calibrate,
        "word_splitter": loading.word_splitter,
        "instructions": loading.instructions,
    }


@dataclass(frozen=True)
class Settings:
    """The settings that were given when an encoder was made; None for the folder's settings.

    The table `wordpiece_bert.sentence.parameters.SETTINGS` describes the fields.

    Raises
    ------
    InputError
        The prompts are not texts by name.
    """

    prompts: Mapping[str, str] | None = None
    default_prompt_name: str | None = None
    similarity_fn_name: str | None = None
    truncate_dim: int | None = None

    def __post_init__(self) -> None:
        if self.prompts is not None:
            object.__setattr__(self, "prompts", _checked_prompts(self.prompts))
        # sentence-transformers has an enum of the names.
        name = getattr(self.similarity_fn_name, "value", self.similarity_fn_name)
        object.__setattr__(self, "similarity_fn_name", name)

    def given(self) -> dict[str, Any]:
        """Return those that are not None by name, hashable, for a `Source`."""
        return {name: value for name, value in vars(self).items() if value is not None}

    def of(self, folder: AnyFolder, similarities: tuple[str, ...] = METRICS) -> AnyFolder:
        """Return a folder with these settings; the others do not change.

        Parameters
        ----------
        folder : dataclass
            The folder, with a field for each setting. Prompts replace the folder's prompts of the same names, and
            the name of the default prompt is one of all of them.
        similarities : tuple of str
            The measures of this kind of encoder.

        Raises
        ------
        InputError
            A setting is wrong.
        """
        changes: dict[str, Any] = {}
        prompts = dict(folder.prompts)
        if self.prompts is not None:
            changes["prompts"] = prompts = prompts | dict(self.prompts)
        if self.default_prompt_name is not None:
            name = checked_choice("default_prompt_name", self.default_prompt_name, tuple(prompts))
            changes["default_prompt_name"] = name
        if self.similarity_fn_name is not None:
            changes["similarity"] = checked_choice("similarity_fn_name", self.similarity_fn_name, similarities)
        if self.truncate_dim is not None:
            width: int = folder.dimension  # type: ignore[attr-defined]
            changes["truncate_dim"] = whole_number(
                "truncate_dim", self.truncate_dim, 1, width, meaning="the width of a vector"
            )
        return replace(folder, **changes) if changes else folder  # type: ignore[type-var]


def _checked_prompts(prompts: object) -> Prompts:
    if not isinstance(prompts, Mapping):
        raise InputError(f"prompts must be a dict of name: text, not {prompts!r:.80}")
    for name, text in prompts.items():
        if not isinstance(name, str) or not isinstance(text, str):
            raise InputError(f"prompts must be a dict of name: text, both str, but has {name!r:.40}: {text!r:.40}")
    return Prompts(prompts)


class FromPretrained(Generic[Arguments]):
    """The class method `from_pretrained`, which is the class itself under the name that transformers has for loading.

    Parameters
    ----------
    init : callable
        The ``__init__`` of the class, from which type checkers take the arguments. At run time they come from the
        class that is called, which may be a subclass with others.
    """

    def __init__(self, init: Callable[Concatenate[Any, Arguments], None]) -> None:
        del init

    def __get__(self, instance: object, owner: type[Made]) -> Callable[Arguments, Made]:
        def from_pretrained(cls: type[Made], *arguments: Any, **options: Any) -> Made:
            return cls(*arguments, **options)

        of_class = inspect.signature(owner)
        first = inspect.Parameter("cls", inspect.Parameter.POSITIONAL_ONLY)
        from_pretrained.__signature__ = of_class.replace(  # type: ignore[attr-defined]
            parameters=[first, *of_class.parameters.values()], return_annotation=owner
        )
        from_pretrained.__qualname__ = f"{owner.__qualname__}.from_pretrained"
        from_pretrained.__module__ = owner.__module__
        described = inspect.getdoc(owner) or ""
        _, heading, sections = described.partition("Parameters\n----------\n")
        returned = f"Returns\n-------\n{owner.__name__}\n    The encoder.\n\nRaises\n------\n"
        sections = sections.replace("Raises\n------\n", returned, 1)
        from_pretrained.__doc__ = (
            f"Load a model from this machine, as ``{owner.__name__}(model)``.\n\n{heading}{sections}"
        )
        return cast("Callable[Arguments, Made]", MethodType(from_pretrained, owner))


class Encoder:
    """The base of all encoders: loading, prompts, pickles, the device, and what sentence-transformers' names are here.

    A copy is the encoder itself, which never changes; of `SentenceEncoder`, whose `max_seq_length` can be set, it is
    another one. A pickle has the path of the folder and digests of what is in it, instead of the weights. A process
    that unpickles equal encoders loads the model once; a folder with other contents is refused.

    Examples
    --------
    >>> import pickle
    >>> from wordpiece_bert import SentenceEncoder
    >>> encoder = SentenceEncoder("models/sentences")
    >>> encoder.to("cpu") is encoder, encoder.cpu() is encoder, encoder.eval() is encoder
    (True, True, True)
    >>> len(pickle.dumps(encoder)) < 1000  # the path of the folder, not the weights
    True
    """

    _folder: Folder
    _threads: int | None
    #: Where the encoder was loaded from; None for one that was made in memory.
    _source: Source | None

    if TYPE_CHECKING:

        @property
        def engine(self) -> EngineInfo:
            """How the encoder computes on this machine."""

    else:  # for type checkers a class that has it takes any attribute

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

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self.__copy__()

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        if self._source is None or (contents := self._source.contents()) is None:
            return super().__reduce_ex__(protocol)  # with the weights: no folder has them
        return load, (type(self), self._source.sent(self.engine.dtype), self._changes(), contents)

    def _changes(self) -> dict[str, object]:
        """Return the attributes that can be set, for a pickle."""
        return {}

    @property
    def prompts(self) -> Mapping[str, str]:
        """The model's prompts by name, read-only: ``prompts=`` gives others when the encoder is made."""
        return Prompts(self._folder.prompts)

    @property
    def default_prompt_name(self) -> str | None:
        """The name of the prompt that is used by default; None for none."""
        return self._folder.default_prompt_name

    def _prompt(self, prompt: str | None, name: str | None) -> str:
        """Return the text to put before each text, given the arguments of a call."""
        return prompt_text(prompt, name, self._folder.prompts, self._folder.default_prompt_name)

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

        Returns
        -------
        Self
            The encoder.

        Raises
        ------
        InputError
            It is another device, or a number type.
        """
        check_device(device)
        return self

    def cpu(self) -> Self:
        """Return the encoder itself, as `to`.

        Returns
        -------
        Self
            The encoder.
        """
        return self

    def eval(self) -> Self:
        """Return the encoder itself, which never trains; programs for sentence-transformers call this.

        Returns
        -------
        Self
            The encoder.
        """
        return self


class VectorEncoder(Encoder):
    """The base of encoders that make vectors.

    Examples
    --------
    >>> from wordpiece_bert import SentenceEncoder
    >>> encoder = SentenceEncoder("models/sentences")
    >>> (
    ...     encoder.dimension,
    ...     encoder.get_embedding_dimension(),
    ...     encoder.get_sentence_embedding_dimension(),
    ... )
    (67, 67, 67)
    """

    _folder: VectorFolder

    @property
    def dimension(self) -> int:
        """Width of the vectors that `encode` returns by default."""
        raise NotImplementedError

    def get_embedding_dimension(self) -> int:
        """Return `dimension`, under the name of sentence-transformers.

        Returns
        -------
        int
            The width.
        """
        return self.dimension

    def get_sentence_embedding_dimension(self) -> int:
        """Return `dimension`, under the older name of sentence-transformers.

        Returns
        -------
        int
            The width.
        """
        return self.dimension

    @property
    def similarity_fn_name(self) -> str:
        """How `similarity` compares vectors: as the model was trained for, or as was chosen."""
        return self._folder.similarity
