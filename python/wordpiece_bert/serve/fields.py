"""The fields of bodies: what each may be, declared once for the check of a request and for the description."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from wordpiece_bert.serve.errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wordpiece_bert.serve.settings import ServerSettings

#: Why images and the like are refused.
TEXTS_ONLY = "the models take texts"
# What Jina's objects may have in place of a text.
_MEDIA = frozenset(("image", "audio", "video", "pdf", "bytes", "content"))


class TokenRows(list[list[int]]):
    """Rows of token ids, as a request gives them instead of texts."""


class Kind(Protocol):
    """What the value of a field may be."""

    def read(self, name: str, value: Any, settings: ServerSettings) -> Any:
        """Return a value that is not null, checked and converted; or raise a `RequestError` that names the field."""

    def schema(self, settings: ServerSettings) -> dict[str, Any]:
        """Return the JSON schema of the values."""


@dataclass(frozen=True)
class Field:
    """A field of a body.

    Parameters
    ----------
    name : str
        Its name.
    kind : Kind
        What its value may be.
    required : bool, default False
        Whether it must be there.
    default : optional
        The value without it, and for null.
    about : str, default ""
        What it is for, in the description.
    """

    name: str
    kind: Kind
    required: bool = False
    default: Any = None
    about: str = ""

    @property
    def served(self) -> bool:
        """Whether it has a meaning here."""
        return not isinstance(self.kind, Refused)


class Form:
    """All fields that an object may have.

    Parameters
    ----------
    fields : sequence of Field
        The fields.
    """

    def __init__(self, fields: Sequence[Field]) -> None:
        self._fields = {field.name: field for field in fields}
        self._required = [field.name for field in fields if field.required]
        self._defaults = {field.name: field.default for field in fields if field.served}

    def read(self, values: Any, settings: ServerSettings, within: str = "") -> dict[str, Any]:
        """Check the fields of an object.

        Parameters
        ----------
        values
            The JSON value that should be the object.
        settings
            The limits.
        within
            The name of the field that the object is the value of, with a dot; empty for the body.

        Returns
        -------
        dict
            The values of all served fields by name.

        Raises
        ------
        RequestError
            With status 400: a field is unknown, missing, wrong, or not served.
        """
        if not isinstance(values, dict):
            name = within.rstrip(".") or "the body"
            raise RequestError(
                400, f"{name} must be an object, not {kind_of(values)}", param=within.rstrip(".") or None
            )
        if unknown := values.keys() - self._fields.keys():
            name = min(unknown)
            message = f"unknown field {within + name!r:.100}; the fields are {', '.join(self._defaults)}"
            raise RequestError(400, message, param=f"{within}{name:.100}", code="unknown_field")
        found = self._defaults.copy()
        for name in dict.fromkeys([*self._required, *values]):
            value = values.get(name)
            if value is None and name not in self._required:
                continue
            value = self._fields[name].kind.read(within + name, value, settings)
            if name in found:
                found[name] = value
        return found


def wrong(name: str, wanted: str, value: object) -> RequestError:
    """Return the error for a field of the wrong type, which does not quote the value."""
    return RequestError(400, f"{name} must be {wanted}, not {kind_of(value)}", param=name)


def kind_of(value: object) -> str:
    """Return the type of a JSON value in words."""
    if value is None:
        return "missing or null"
    names = {bool: "a boolean", int: "a number", float: "a number", str: "a string", list: "a list", dict: "an object"}
    return names.get(type(value), type(value).__name__)


@dataclass(frozen=True)
class Text:
    """A string."""

    def read(self, name: str, value: Any, _: ServerSettings) -> str:
        """Check it."""
        if not isinstance(value, str):
            raise wrong(name, "a string", value)
        return value

    def schema(self, _: ServerSettings) -> dict[str, Any]:
        """Return its schema."""
        return {"type": "string"}


@dataclass(frozen=True)
class Flag:
    """True or false."""

    def read(self, name: str, value: Any, _: ServerSettings) -> bool:
        """Check it."""
        if not isinstance(value, bool):
            raise wrong(name, "true or false", value)
        return value

    def schema(self, _: ServerSettings) -> dict[str, Any]:
        """Return its schema."""
        return {"type": "boolean"}


@dataclass(frozen=True)
class Whole:
    """A whole number of at least `least`."""

    least: int

    def read(self, name: str, value: Any, _: ServerSettings) -> int:
        """Check it."""
        if isinstance(value, bool) or not isinstance(value, int) or value < self.least:
            raise RequestError(400, f"{name} must be a whole number, {self.least} or more", param=name)
        return value

    def schema(self, _: ServerSettings) -> dict[str, Any]:
        """Return its schema."""
        return {"type": "integer", "minimum": self.least}


class Choice:
    """One of some strings; `others` are those that an API has and this server refuses, with the reason for each."""

    def __init__(self, *choices: str, **others: str) -> None:
        self.choices = choices
        self.others = others

    def read(self, name: str, value: Any, _: ServerSettings) -> str:
        """Check it."""
        if isinstance(value, str) and value in self.others:
            raise RequestError(400, f"{name} {value!r} is not served: {self.others[value]}", param=name)
        if not isinstance(value, str) or value not in self.choices:
            raise RequestError(400, f"{name} must be one of {', '.join(self.choices)}", param=name)
        return value

    def schema(self, _: ServerSettings) -> dict[str, Any]:
        """Return its schema."""
        return {"enum": list(self.choices)}


class Choices(Choice):
    """A list of some strings, each one of the choices."""

    def read(self, name: str, value: Any, settings: ServerSettings) -> Any:
        """Check each."""
        if not isinstance(value, list) or not value:
            raise wrong(name, "a list of strings", value)
        return [super(Choices, self).read(f"{name}[{index}]", item, settings) for index, item in enumerate(value)]

    def schema(self, settings: ServerSettings) -> dict[str, Any]:
        """Return its schema."""
        return {"type": "array", "items": super().schema(settings), "minItems": 1}


@dataclass(frozen=True)
class Truncate:
    """Whether texts may be truncated: true, "START" or "END", false or "NONE"."""

    def read(self, name: str, value: Any, _: ServerSettings) -> bool | str:
        """Check it."""
        if isinstance(value, bool) or (isinstance(value, str) and value in ("START", "END", "NONE")):
            return value
        raise RequestError(400, f'{name} must be true, false, "START", "END" or "NONE"', param=name)

    def schema(self, _: ServerSettings) -> dict[str, Any]:
        """Return its schema."""
        return {"oneOf": [{"type": "boolean"}, {"enum": ["START", "END", "NONE"]}]}


@dataclass(frozen=True)
class Strings:
    """A list of strings.

    Parameters
    ----------
    empty : bool, default False
        Whether there may be none.
    """

    empty: bool = False

    def read(self, name: str, value: Any, settings: ServerSettings) -> list[str]:
        """Check it."""
        items = value if self.empty and value == [] else listed(name, value, settings, "a list of strings")
        for index, item in enumerate(items):
            if not isinstance(item, str):
                raise wrong(f"{name}[{index}]", "a string", item)
        return items

    def schema(self, settings: ServerSettings) -> dict[str, Any]:
        """Return its schema."""
        least = 0 if self.empty else 1
        return {"type": "array", "items": {"type": "string"}, "minItems": least, "maxItems": settings.max_items}


@dataclass(frozen=True)
class Texts:
    """A text or a list of texts.

    Parameters
    ----------
    objects : bool, default False
        Whether a text may be ``{"text": ...}``.
    ids : bool, default False
        Whether token ids may stand for texts, where the server accepts them.
    """

    objects: bool = False
    ids: bool = False

    def read(self, name: str, value: Any, settings: ServerSettings) -> list[str] | TokenRows:
        """Return a list of texts, or rows of token ids."""
        if isinstance(value, str):
            return [value]
        items = listed(name, value, settings, "a string or a list of strings")
        if isinstance(items[0], int | list) and not isinstance(items[0], bool):
            if self.ids and settings.accept_token_ids:
                return _token_rows(name, items)
            message = (
                f"{name}[0] is {kind_of(items[0])}: token ids of another tokenizer would get wrong vectors; send texts "
                "(OpenAIEmbeddings of LangChain: check_embedding_ctx_length=False)"
            )
            raise RequestError(400, message, param=name, code="token_ids")
        if self.objects:
            items = [
                _text_of(f"{name}[{index}]", item) if isinstance(item, dict) else item
                for index, item in enumerate(items)
            ]
        for index, item in enumerate(items):
            if not isinstance(item, str):
                raise wrong(f"{name}[{index}]", "a string", item)
        return items

    def schema(self, settings: ServerSettings) -> dict[str, Any]:
        """Return its schema."""
        text: dict[str, Any] = {"type": "string"}
        ids = {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 1}
        of_object = {
            "type": "object",
            "properties": {"text": text},
            "required": ["text"],
            "additionalProperties": False,
        }
        item = {"oneOf": [text, of_object]} if self.objects else text
        choices = [text, {"type": "array", "items": item, "minItems": 1, "maxItems": settings.max_items}]
        if self.ids and settings.accept_token_ids:
            choices += [ids, {"type": "array", "items": ids, "minItems": 1, "maxItems": settings.max_items}]
        return {"oneOf": choices}


@dataclass(frozen=True)
class TokenIds:
    """Token ids of a text, or a list of these."""

    def read(self, name: str, value: Any, settings: ServerSettings) -> TokenRows:
        """Return rows of ids."""
        if not isinstance(value, list) or not value:
            raise wrong(name, "a list of token ids", value)
        if isinstance(value[0], list):
            listed(name, value, settings, "a list of token ids")
        return _token_rows(name, value)

    def schema(self, settings: ServerSettings) -> dict[str, Any]:
        """Return its schema."""
        ids = {"type": "array", "items": {"type": "integer", "minimum": 0}}
        return {"oneOf": [ids, {"type": "array", "items": ids, "minItems": 1, "maxItems": settings.max_items}]}


@dataclass(frozen=True)
class Documents:
    """A list of documents, each a text or an object whose fields are texts."""

    def read(self, name: str, value: Any, settings: ServerSettings) -> list[Any]:
        """Check it; a single text is one document."""
        if isinstance(value, str):
            return [value]
        items = listed(name, value, settings, "a list of documents")
        for index, item in enumerate(items):
            if not isinstance(item, str | dict):
                raise wrong(f"{name}[{index}]", "a string or an object with a text", item)
        return items

    def schema(self, settings: ServerSettings) -> dict[str, Any]:
        """Return its schema."""
        item = {"oneOf": [{"type": "string"}, {"type": "object"}]}
        return {"type": "array", "items": item, "minItems": 1, "maxItems": settings.max_items}


@dataclass(frozen=True)
class Sequences:
    """A text, a pair of texts, or a list of lists with a text or a pair each, as TEI's classifiers take them."""

    def read(self, name: str, value: Any, settings: ServerSettings) -> tuple[bool, list[str | tuple[str, str]]]:
        """Return whether it is a single item, and the items."""
        if isinstance(value, str):
            return True, [value]
        items = listed(name, value, settings, "a string, a pair of strings or a list of lists of these")
        if isinstance(items[0], str):
            if len(items) > 2:
                message = f"{name} has {len(items)} strings: a pair has 2; send texts as [[text], [text]]"
                raise RequestError(400, message, param=name)
            return True, [self._one(name, items)]
        return False, [self._one(f"{name}[{index}]", item) for index, item in enumerate(items)]

    def _one(self, name: str, item: Any) -> str | tuple[str, str]:
        if not isinstance(item, list) or len(item) not in (1, 2):
            raise wrong(name, "a list of one or two strings", item)
        for index, text in enumerate(item):
            if not isinstance(text, str):
                raise wrong(f"{name}[{index}]", "a string", text)
        return item[0] if len(item) == 1 else (item[0], item[1])

    def schema(self, settings: ServerSettings) -> dict[str, Any]:
        """Return its schema."""
        text = {"type": "string"}
        item = {"type": "array", "items": text, "minItems": 1, "maxItems": 2}
        many = {"type": "array", "items": item, "minItems": 1, "maxItems": settings.max_items}
        return {"oneOf": [text, item, many]}


@dataclass(frozen=True)
class TextOrTexts:
    """A text or a list of texts, where the answer to a text is not a list."""

    def read(self, name: str, value: Any, settings: ServerSettings) -> tuple[bool, Any]:
        """Return whether it is a single text, and the list."""
        return isinstance(value, str), Texts().read(name, value, settings)

    def schema(self, settings: ServerSettings) -> dict[str, Any]:
        """Return its schema."""
        return Texts().schema(settings)


@dataclass(frozen=True)
class Nested:
    """An object with fields of its own."""

    fields: tuple[Field, ...]

    @cached_property
    def _form(self) -> Form:
        return Form(self.fields)

    def read(self, name: str, value: Any, settings: ServerSettings) -> dict[str, Any]:
        """Check its fields."""
        return self._form.read(value, settings, f"{name}.")

    def schema(self, settings: ServerSettings) -> dict[str, Any]:
        """Return its schema."""
        return object_schema(self.fields, settings)


@dataclass(frozen=True)
class Ignored:
    """Any value: a field that changes nothing here, such as the name of a user."""

    def read(self, _: str, value: Any, __: ServerSettings) -> Any:
        """Accept it."""
        return value

    def schema(self, _: ServerSettings) -> dict[str, Any]:
        """Return its schema."""
        return {}


class Refused:
    """A field that an API has and this server does not serve.

    Parameters
    ----------
    reason : str
        Why, and what to do.
    *harmless : object
        The values that ask for nothing.
    """

    def __init__(self, reason: str, *harmless: object) -> None:
        self.reason = reason
        self.harmless = harmless

    def read(self, name: str, value: Any, _: ServerSettings) -> None:
        """Refuse every other value."""
        if not any(type(value) is type(one) and value == one for one in self.harmless):
            raise RequestError(400, f"{name} is not served: {self.reason}", param=name, code="not_served")

    def schema(self, _: ServerSettings) -> dict[str, Any]:
        """Return the schema of the harmless values."""
        return {"enum": [*self.harmless, None]}


def object_schema(fields: Sequence[Field], settings: ServerSettings) -> dict[str, Any]:
    """Return the JSON schema of an object with these fields, those that are served."""
    found: dict[str, Any] = {"type": "object", "additionalProperties": False, "properties": {}}
    for field in fields:
        if field.served:
            about = {"description": field.about} if field.about else {}
            default = {} if field.default is None else {"default": field.default}
            found["properties"][field.name] = field.kind.schema(settings) | about | default
    required = [field.name for field in fields if field.required]
    return found | ({"required": required} if required else {})


def listed(name: str, value: Any, settings: ServerSettings, wanted: str) -> list[Any]:
    """Check that a value is a list that is not empty and not too long."""
    if not isinstance(value, list):
        raise wrong(name, wanted, value)
    if not value:
        raise RequestError(400, f"{name} must not be empty", param=name)
    if len(value) > settings.max_items:
        message = f"{name} has {len(value)} items, more than the server's limit of {settings.max_items}"
        raise RequestError(400, message, param=name, code="too_many_items")
    return value


def _text_of(name: str, item: dict[str, Any]) -> Any:
    """Return what an object has as its text; refuse one that has, or is, something else."""
    for key in item.keys() - {"text"}:
        if key in _MEDIA:
            raise RequestError(400, f"{name}.{key} is not served: {TEXTS_ONLY}", param=name, code="not_served")
        message = f"unknown field {f'{name}.{key}'!r:.100}; the only field is text"
        raise RequestError(400, message, param=name, code="unknown_field")
    return item.get("text")


def _token_rows(name: str, items: list[Any]) -> TokenRows:
    rows = items if isinstance(items[0], list) else [items]
    for index, row in enumerate(rows):
        if not isinstance(row, list) or not all(type(id_) is int and 0 <= id_ < 1 << 31 for id_ in row):
            message = f"{name}[{index}] must be a list of token ids, whole numbers of 0 or more"
            raise RequestError(400, message, param=name, code="token_ids")
    return TokenRows(rows)
