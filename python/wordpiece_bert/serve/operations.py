"""What a path does: for each dialect that shares it, the fields of the body and the function that answers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from wordpiece_bert.serve.errors import RequestError
from wordpiece_bert.serve.fields import Form

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from wordpiece_bert.serve.errors import Dialect
    from wordpiece_bert.serve.fields import Field
    from wordpiece_bert.serve.kinds.served_model import Served
    from wordpiece_bert.serve.memory import Memory
    from wordpiece_bert.serve.metrics import Metrics
    from wordpiece_bert.serve.models import Models
    from wordpiece_bert.serve.settings import ServerSettings


@dataclass
class Service:
    """What answers need."""

    models: Models
    settings: ServerSettings
    metrics: Metrics
    #: When the server began, in seconds since 1970.
    started: int
    #: The bytes of the requests in it.
    memory: Memory
    #: Whether the server ends, and so takes no more work.
    draining: bool = False


@dataclass(frozen=True)
class Example:
    """A request that the description shows, and an answer to it.

    Parameters
    ----------
    body : dict
        The fields of the body without the model, which the description names.
    answer : object
        The JSON value of an answer; of vectors the first three numbers.
    """

    body: dict[str, Any]
    answer: Any


def first_of(kind: type[Served]) -> Callable[[Models], Served]:
    """Return what finds the first model of a kind."""
    return lambda models: models.of_kind(kind, None)


def first_model(models: Models) -> Served:
    """Return the first model."""
    return models.find(None)


def first_ranker(models: Models) -> Served:
    """Return the first model that ranks."""
    return models.ranker(None)


@dataclass(frozen=True)
class Operation:
    """What a body asks for.

    Parameters
    ----------
    dialect : Dialect
        The API, for its errors.
    summary : str
        What it does, in the description.
    fields : tuple of Field
        The fields of the body.
    answer : callable
        Takes the service and the fields, and returns what `json_answers.encoded` takes.
    result : dict
        The JSON schema of the answer.
    finds : callable
        Takes the models of a server, and returns one that can answer; it refuses where there is none.
    example : Example
        A request and its answer, for the description.
    """

    dialect: Dialect
    summary: str
    fields: tuple[Field, ...]
    answer: Callable[[Service, dict[str, Any]], Awaitable[Any]]
    result: dict[str, Any]
    finds: Callable[[Models], Served]
    example: Example

    @property
    def required(self) -> set[str]:
        """The names of the fields that must be there."""
        return {field.name for field in self.fields if field.required}

    def read(self, values: dict[str, Any], settings: ServerSettings) -> dict[str, Any]:
        """Check the fields of a body."""
        return self._form.read(values, settings)

    @cached_property
    def _form(self) -> Form:
        return Form(self.fields)


class Asked(Protocol):
    """What a page may depend on of the request for it."""

    @property
    def parameter(self) -> str:
        """What the path has in place of its parameter."""

    @property
    def address(self) -> str:
        """The address by which the client calls the server, without a path."""


@dataclass(frozen=True)
class Page:
    """What a path shows without a body.

    Parameters
    ----------
    summary : str
        What it is, in the description.
    content : callable
        Takes the service and the request, and returns text.
    media_type : str
        The type of it.
    needs_key : bool, default True
        Whether a request must have a key, where the server has keys.
    """

    summary: str
    content: Callable[[Service, Asked], str]
    media_type: str = "application/json"
    needs_key: bool = True


@dataclass(frozen=True)
class Route:
    """A path.

    Parameters
    ----------
    path : str
        The path; ``{model:path}`` stands for a name.
    dialect : Dialect
        The dialect of errors that come before a body is read.
    operations : tuple of Operation
        What POST does; where there are several, the fields of a body say which.
    page : Page, optional
        What GET shows.
    chooses : callable, optional
        Takes the service and the JSON of a body, and returns which operation it asks for; by default the fields say.
    """

    path: str
    dialect: Dialect
    operations: tuple[Operation, ...] = ()
    page: Page | None = None
    chooses: Callable[[Service, dict[str, Any]], Operation] | None = None

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods of HTTP."""
        return ("GET", "HEAD") * (self.page is not None) + ("POST",) * bool(self.operations)


def chosen(operations: Sequence[Operation], values: dict[str, Any]) -> Operation:
    """Return the operation that a body asks for: the one whose own fields it has.

    Raises
    ------
    RequestError
        With status 400: it has the fields of none, or of two.
    """
    if len(operations) == 1:
        return operations[0]
    found = [one for one in operations if _signs(one, operations) & values.keys()]
    if len(found) == 1:
        return found[0]
    forms = "; ".join(f"{one.dialect.name} has {', '.join(sorted(one.required))}" for one in operations)
    what = "none" if not found else f"those of {' and '.join(dict.fromkeys(one.dialect.name for one in found))}"
    raise RequestError(400, f"the fields must be those of one API, and are {what}: {forms}", code="ambiguous_body")


def _signs(operation: Operation, operations: Sequence[Operation]) -> set[str]:
    """Return the required fields of an operation that no other on its path requires."""
    others = [one.required for one in operations if one is not operation]
    return operation.required.difference(*others)
