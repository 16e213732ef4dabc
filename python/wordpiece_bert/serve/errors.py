"""The answer to a request that is refused."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["RequestError"]


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

    def body(self) -> bytes:
        """Return the body, JSON in the form of OpenAI's errors."""
        kind = "rate_limit_error" if self.status == 429 else "invalid_request_error"
        kind = "server_error" if self.status >= 500 else kind
        error: dict[str, Any] = {"message": self.message, "type": kind, "param": self.param, "code": self.code}
        return json.dumps({"error": error}).encode()
