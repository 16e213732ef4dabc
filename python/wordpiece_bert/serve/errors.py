"""The answer to a request that is refused, in the form of each API."""

from __future__ import annotations

import json
from http import HTTPStatus
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class RequestError(Exception):
    """A request is refused.

    Parameters
    ----------
    status : int
        The status of HTTP.
    message : str
        What is wrong and what to do.
    param : str, optional
        The field of the request that is wrong.
    code : str, optional
        A name of the error for programs.
    retry_after : int, optional
        Seconds after which to try again.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.param = param
        self.code = code
        self.retry_after = retry_after


class Dialect(NamedTuple):
    """An API that the server answers as."""

    name: str
    #: The fields of the body that refuses a request.
    fields: Callable[[RequestError], dict[str, Any]]
    #: The statuses of errors whose code has another one in this API.
    statuses: Mapping[str, int] = MappingProxyType({})

    def status(self, error: RequestError) -> int:
        """Return the status of HTTP that refuses a request."""
        return self.statuses.get(error.code or "", error.status)

    def refusal(self, error: RequestError) -> bytes:
        """Return the body, JSON, that refuses a request."""
        return json.dumps(self.fields(error)).encode()


def _kind(error: RequestError) -> str:
    """Return OpenAI's type of an error."""
    if error.status >= 500:
        return "server_error"
    return "rate_limit_error" if error.status == 429 else "invalid_request_error"


def _openai(error: RequestError) -> dict[str, Any]:
    inner = {"message": error.message, "type": _kind(error), "param": error.param, "code": error.code}
    return {"error": inner}


#: vLLM's types of errors; others have the phrase of their status.
_VLLM_KINDS = {400: "BadRequestError", 404: "NotFoundError", 413: "BadRequestError", 500: "InternalServerError"}


def _vllm(error: RequestError) -> dict[str, Any]:
    # Its code is the status.
    kind = _VLLM_KINDS.get(error.status) or HTTPStatus(error.status).phrase
    return {"error": {"message": error.message, "type": kind, "param": error.param, "code": error.status}}


def _tei(error: RequestError) -> dict[str, Any]:
    kind = {429: "Overloaded", 503: "Unhealthy"}.get(error.status, "Backend" if error.status >= 500 else "Validation")
    return {"error": error.message, "error_type": "Empty" if error.code == "empty_text" else kind}


# What text-embeddings-inference refuses with 413, on which its clients divide their requests. An error inside is 424
# there and 500 here, so that monitors count it as an error of the server.
_TOO_LARGE = ("too_many_items", "too_many_tokens", "text_too_long", "answer_too_large")


#: Of Jina, whose clients read ``detail``, and of Cohere, whose clients read ``message``: they share a path.
COHERE = Dialect("Cohere", lambda error: {"message": error.message, "detail": error.message})
JINA = Dialect("Jina", COHERE.fields)
#: OpenAI's error, with the field that clients of Jina read: they share the path of embeddings.
OPENAI = Dialect("OpenAI", lambda error: {**_openai(error), "detail": error.message})
TEI = Dialect("text-embeddings-inference", _tei, MappingProxyType(dict.fromkeys(_TOO_LARGE, 413)))
VLLM = Dialect("vLLM", _vllm)
