"""Arguments that the encoders share."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Literal, Union

import numpy.typing as npt

from wordpiece_bert._internal.checks import check_instance, checked_flag
from wordpiece_bert._internal.tensors import is_tensor, to_torch
from wordpiece_bert.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from wordpiece_bert.tokenizer.arrow_table import ArrowArray, ArrowStream

OutputValue = Literal["sentence_embedding", "token_embeddings"] | None
Vectors = npt.NDArray[Any]
#: An iterable of texts, or a column of them.
Texts = Union["Iterable[str]", "ArrowArray", "ArrowStream"]

# Prompts that every model of sentence-transformers has; they are empty unless the model's folder has others.
_USUAL_PROMPTS = ("query", "document")

# The argument that gives arrays instead of tensors.
_ARRAYS = "convert_to_tensor=False"

#: The names of the prompt for each role; the first of them that the model has is used.
ROLE_PROMPTS = {"query": ("query",), "document": ("document", "passage", "corpus")}


def one_of(**arguments: Any) -> Any:
    """Return the one argument that is given, of several names for it; an `InputError` for none and for several."""
    given = {name: value for name, value in arguments.items() if value is not None}
    if len(given) == 1:
        return next(iter(given.values()))
    if not given:
        message = f"{next(iter(arguments))} must not be None"
    else:
        message = f"{' and '.join(given)} are names of one argument: give one of them"
    raise InputError(message)


def role_prompt_name(
    role: Literal["query", "document"], prompt: str | None, name: str | None, prompts: Mapping[str, str]
) -> str | None:
    """Return the name of the prompt for queries or documents: `name`, or without it and `prompt` the role's."""
    if prompt is not None or name is not None:
        return name
    return next((known for known in ROLE_PROMPTS[role] if known in prompts), None)


def prompt_text(prompt: str | None, name: str | None, prompts: Mapping[str, str], default: str | None) -> str:
    """Return the text to put before each text.

    Parameters
    ----------
    prompt : str or None
        The text itself.
    name : str or None
        The name of one of `prompts`.
    prompts : mapping
        The model's prompts by name.
    default : str or None
        The name of the prompt if neither is given.

    Raises
    ------
    InputError
        `prompt` is not a str, or there is no prompt of this name.
    """
    if prompt is not None:
        check_instance("prompt", prompt, str)
        return prompt
    name = default if name is None else name
    if name is None:
        return ""
    check_instance("prompt_name", name, str)
    if name in prompts:
        return prompts[name]
    if name in _USUAL_PROMPTS:
        return ""
    raise InputError(f"the model has no prompt {name!r}; its prompts are {list(prompts) or 'none'}")


def tensors(result: Any) -> Any:
    """Convert an array, or the arrays in a list or a dict, to tensors of PyTorch."""
    if isinstance(result, list):
        return [tensors(item) for item in result]
    if isinstance(result, dict):
        return to_torch(result, _ARRAYS)
    return to_torch({"result": result}, _ARRAYS)["result"]


def as_given(result: Any, *given: object) -> Any:
    """Return an array as a tensor if an argument that it comes from is one, or a list of them; otherwise as it is."""
    if "torch" not in sys.modules:
        return result
    firsts = [value[0] if isinstance(value, list | tuple) and value else value for value in given]
    return tensors(result) if any(map(is_tensor, firsts)) else result


def check_tensors(convert_to_tensor: object) -> None:
    """Check before anything is computed that PyTorch is there, if the result is to be tensors of it."""
    if checked_flag("convert_to_tensor", convert_to_tensor):
        to_torch({}, _ARRAYS)


def check_pool(pool: object) -> None:
    """Check that a `pool` argument is None: there are no pools of processes."""
    if pool is not None:
        raise InputError(
            "pool must be None: one process uses all CPUs; set their number with threads=... of the encoder"
        )
