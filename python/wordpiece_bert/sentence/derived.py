"""Calls that are derived from `encode`: for queries, for documents, and without blocking an event loop."""

from __future__ import annotations

import functools
import inspect
import re
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, TypeVar, cast

import numpy as np

from wordpiece_bert._internal.asynchronous import run_in_thread
from wordpiece_bert._internal.parameters import changed_parameters
from wordpiece_bert._internal.texts import warn_truncated
from wordpiece_bert.sentence.arguments import ROLE_PROMPTS, role_prompt_name

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

Encode = TypeVar("Encode", bound="Callable[..., Any]")
Encoder = TypeVar("Encoder")
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def encode_for(role: Literal["query", "document"], encode: Encode, **fixed: object) -> Encode:
    """Return the method `encode_query` or `encode_document`: `encode`, by default with the model's prompt for the role.

    Parameters
    ----------
    role : {"query", "document"}
        What the texts are.
    encode : callable
        The method `encode` of a class; its first arguments are the texts, and the name and the text of the prompt.
    **fixed : object
        Arguments of `encode` that the role decides. The method does not have them.
    """

    @functools.wraps(encode)
    def method(
        self: Any, texts: Any = None, prompt_name: Any = None, prompt: Any = None, *arguments: Any, **options: Any
    ) -> Any:
        name = role_prompt_name(role, prompt, prompt_name, self.prompts)
        return self.encode(texts, name, prompt, *arguments, **fixed, **options)

    method.__name__ = f"encode_{role}"
    method.__qualname__ = f"{encode.__qualname__.rpartition('.')[0]}.{method.__name__}"
    signature = inspect.signature(encode)
    parameters = [one for name, one in signature.parameters.items() if name not in fixed]
    method.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    if encode.__doc__:  # None with python -OO
        method.__doc__ = _documentation(role, encode.__doc__, fixed)
    return cast("Encode", method)


def _documentation(role: str, docstring: str, fixed: dict[str, object]) -> str:
    """Return the docstring of `encode`, changed to a role's docstring."""
    first, *others = (f"``{name}``" for name in ROLE_PROMPTS[role])
    which = f"the first of {first}, {' and '.join(others)} that the model has" if others else f"{first}, if it has that"
    entry = (
        f"prompt_name : str, optional\n    The name of the model's prompt to put before each text; by default {which}."
    )
    text = changed_parameters(docstring, {"prompt_name": entry, **dict.fromkeys(fixed)})
    summary, blank, rest = text.partition("\n\n")
    texts = {"query": "queries", "document": "documents"}[role]
    rest = _with_call(rest, rf"\1.encode_{role}(\2)")
    return f"{summary.replace('texts', texts, 1).rstrip('.')}: `encode` for them{blank}{rest}"


def _with_call(docstring: str, call: str) -> str:
    """Return a docstring with another call instead of ``encoder.encode(...)`` in its examples."""
    before, heading, examples = docstring.partition("Examples\n--------\n")
    return before + heading + re.sub(r"(\w+)\.encode\((.*)\)", call, examples)


def encode_in_thread(
    encode: Callable[Concatenate[Encoder, Arguments], Result],
) -> Callable[Concatenate[Encoder, Arguments], Coroutine[Any, Any, Result]]:
    """Return the method `aencode`: `encode` in a thread, so that the event loop is not blocked.

    Parameters
    ----------
    encode : callable
        The method `encode` of a class, which has an argument `return_truncated`.
    """

    @functools.wraps(encode)
    async def aencode(self: Any, *arguments: Any, **options: Any) -> Any:
        wanted = options.pop("return_truncated", False)
        result, truncated = await run_in_thread(
            functools.partial(self.encode, *arguments, **options, return_truncated=True)
        )
        if wanted:
            return result, truncated
        # Here and not in the thread, so that the warning names the line that waits.
        warn_truncated(np.atleast_1d(truncated), self._longest_row(options.get("max_length", "model")))
        return result

    aencode.__name__ = "aencode"
    aencode.__qualname__ = f"{encode.__qualname__.rpartition('.')[0]}.aencode"
    if encode.__doc__:  # None with python -OO
        summary, blank, rest = inspect.cleandoc(encode.__doc__).partition("\n\n")
        rest = _with_call(rest, r"asyncio.run(\1.aencode(\2))").replace("\n>>> ", "\n>>> import asyncio\n>>> ", 1)
        aencode.__doc__ = (
            f"{summary.rstrip('.')} without blocking the event loop: `encode` in a thread.\n\nIf the waiting task is "
            f"cancelled, the model ends after the pass that is running, at most about a second later.{blank}{rest}"
        )
    return cast("Callable[Concatenate[Encoder, Arguments], Coroutine[Any, Any, Result]]", aencode)
