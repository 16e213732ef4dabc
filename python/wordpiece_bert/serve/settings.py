"""The settings of the server."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass, field
from typing import Literal

from wordpiece_bert._internal.checks import checked_choice, checked_strings, whole_number
from wordpiece_bert.errors import InputError

__all__ = ["ServerSettings"]


@dataclass(frozen=True)
class ServerSettings:
    """The limits of the server, and how it batches.

    Raises
    ------
    InputError
        A value is wrong, or a single request could never fit the queue.
    """

    #: Tokens of rows that go through a model together.
    batch_tokens: int = 4096
    #: Seconds that an idle model waits for more rows after the first, unless a batch is full.
    fill_deadline: float = 0.002
    #: Tokens that may wait for a model; a request beyond this is answered with 429.
    queue_tokens: int = 524_288
    #: Requests that may wait for a model.
    queue_requests: int = 1024
    #: Texts, or documents to rank, in a request.
    max_items: int = 2048
    #: Tokens in a request, after truncation; for ``/tokenize``, which does not truncate, of whole texts.
    max_tokens: int = 131_072
    #: Bytes in the body of a request.
    max_bytes: int = 8 << 20
    #: Seconds in which the headers, and then the body, of a request must arrive.
    receive_timeout: float = 30.0
    #: Seconds that requests have to finish after SIGTERM.
    drain_timeout: float = 60.0
    #: Whether a text that is too long is truncated and reported, or refused; a request can say ``truncate`` itself.
    truncation: Literal["report", "error"] = "report"
    #: What is put before each text to embed, or the name of the model's prompt for it, unless a request names another.
    prompt: str | None = None
    prompt_name: str | None = None
    #: Keys, one of which a request must have as ``Authorization: Bearer KEY``; none for no such check.
    api_keys: tuple[str, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        for name in ("batch_tokens", "queue_tokens", "queue_requests", "max_items", "max_tokens", "max_bytes"):
            whole_number(name, getattr(self, name), 1)
        for name in ("fill_deadline", "receive_timeout", "drain_timeout"):
            value = getattr(self, name)
            number = float(value) if isinstance(value, numbers.Real) and not isinstance(value, bool) else math.nan
            if not 0 <= number < math.inf:
                raise InputError(f"{name} must be a number of seconds, 0 or more, not {value!r}")
        for name in ("prompt", "prompt_name"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                raise InputError(f"{name} must be a str or None, not {value!r:.80}")
        checked_choice("truncation", self.truncation, ("report", "error"))
        if self.max_tokens > self.queue_tokens:
            raise InputError(
                f"max_tokens is {self.max_tokens} and queue_tokens {self.queue_tokens}: a request of max_tokens would "
                "never fit the queue; make queue_tokens larger"
            )
        keys = tuple(checked_strings("api_keys", self.api_keys))
        if not all(key and key.isascii() and key.isprintable() and key == key.strip() for key in keys):
            raise InputError("api_keys must be non-empty printable ASCII without white space at either end")
        object.__setattr__(self, "api_keys", keys)
