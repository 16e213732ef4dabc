"""Values of a context: what holds for the calls inside it, and for no others."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextvars import ContextVar

AnyValue = TypeVar("AnyValue")


@contextmanager
def value_within(variable: ContextVar[AnyValue], value: AnyValue) -> Iterator[None]:
    """Set a variable for the duration of the context."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)
