"""The settings of the server."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field, fields
from typing import Literal

from wordpiece_bert._internal.checks import checked_choice, checked_flag, checked_strings, real_number, whole_number
from wordpiece_bert._internal.parameters import Parameters, completed_by
from wordpiece_bert.errors import InputError

# A name, or what stands for several.
_HOST = re.compile(r"\*|(\*\.)?[\w-]+(\.[\w-]+)*", re.ASCII)


#: The limits of the server.
LIMITS = Parameters(
    """
    batch_tokens : int, default 4096
        Tokens that go through a model together.
    batch_seconds : float, default 0.005
        Seconds that the rows of long requests in a batch may take while there are, or were in the last second, requests
        that take less, so that these do not wait for more; a row is not divided. 0 for no such limit.
    fill_deadline : float, default 0.002
        Seconds that an idle model waits for more requests to join a batch, if fewer wait than its last batch and the
        queue had when that batch ended; in all at most half as long as that batch took.
    queue_tokens : int, default 524288
        Tokens that may wait for a model before requests get 429.
    queue_requests : int, default 1024
        Requests that may wait for a model before others get 429.
    result_cache_bytes : int, default 33554432
        Memory of each model for results of recent texts and pairs, which are answered without the model; 0 for none.
    max_wait : float, default 10.0
        Seconds of work that may wait for a model before requests get 429, by the speed of its last full batches; 0 for
        no such limit.
    request_timeout : float, default 60.0
        Seconds that a request may take from when it has arrived; then it is answered with 503, and what waits of it is
        not computed. 0 for no such limit.
    max_items : int, default 2048
        Texts in a request, or documents to rank.
    max_tokens : int, default 131072
        Tokens in a request. They count after truncation; for ``/tokenize``, which does not truncate, those of whole
        texts.
    max_bytes : int, default 8388608
        Bytes in the body of a request.
    inflight_bytes : int, default 268435456
        Bytes in all of the bodies that arrive or are answered, and of the answers that clients have not taken yet;
        beyond, requests get 503.
    max_connections : int, default 1024
        Open connections; beyond, a new one gets 503 and is closed.
    receive_timeout : float, default 30.0
        Seconds for a request to arrive, its headers first and then its body; and for a client to take a part of its
        answer, 256 kB, or its connection ends.
    drain_timeout : float, default 25.0
        Seconds that requests have to finish after SIGTERM.
    truncation : {"report", "error"}, default "report"
        Truncate texts that are too long and report it, or refuse them; a request can say ``truncate`` itself.
    prompt, prompt_name : str, optional
        What is put before each text to embed, or the name of the model's prompt for it, unless a request names another.
    api_keys : tuple of str, default ()
        Keys, one of which a request must have as ``Authorization: Bearer KEY`` or ``api-key: KEY``; none for no such
        check.
    metrics_key : bool, default True
        Whether ``/metrics`` needs a key, too.
    accept_token_ids : bool, default False
        Whether token ids may stand for texts: rows of this model's vocabulary with special tokens, as ``/tokenize``
        returns them. No prompt is put before them, nor that of this server.
    opentelemetry : bool, default False
        Whether traces and metrics go to the providers of OpenTelemetry, of the extra ``otel``.
    allowed_hosts : tuple of str, default ()
        Names by which requests may call the server in their header ``Host``, besides localhost and IP addresses, which
        are then always accepted. ``*.example.org`` stands for all names that end so, ``*`` for any. Without names,
        `run` accepts no others where it listens on this machine only and has no keys, and elsewhere any.
    """
)


@completed_by(LIMITS)
@dataclass(frozen=True)
class ServerSettings:
    """The limits of the server, and how it batches.

    Raises
    ------
    InputError
        A value is wrong, or a single request could never fit the queue.

    Examples
    --------
    >>> from wordpiece_bert.serve import ServerSettings
    >>> settings = ServerSettings(max_tokens=8192, truncation="error", api_keys=("secret",))
    >>> settings.batch_tokens, settings.truncation
    (4096, 'error')
    """

    batch_tokens: int = 4096
    batch_seconds: float = 0.005
    fill_deadline: float = 0.002
    queue_tokens: int = 524_288
    queue_requests: int = 1024
    result_cache_bytes: int = 32 << 20
    max_wait: float = 10.0
    request_timeout: float = 60.0
    max_items: int = 2048
    max_tokens: int = 131_072
    max_bytes: int = 8 << 20
    inflight_bytes: int = 256 << 20
    max_connections: int = 1024
    receive_timeout: float = 30.0
    drain_timeout: float = 25.0
    truncation: Literal["report", "error"] = "report"
    prompt: str | None = None
    prompt_name: str | None = None
    api_keys: tuple[str, ...] = field(default=(), repr=False)
    metrics_key: bool = True
    accept_token_ids: bool = False
    opentelemetry: bool = False
    allowed_hosts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for setting in fields(self):
            name, value = setting.name, getattr(self, setting.name)
            if setting.type == "int":
                whole_number(name, value, 0 if name == "result_cache_bytes" else 1)
            elif setting.type != "float":
                continue
            elif not 0 <= real_number(value) < math.inf:
                raise InputError(f"{name} must be a number of seconds, 0 or more, not {value!r}")
        for name in ("prompt", "prompt_name"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                raise InputError(f"{name} must be a str or None, not {value!r:.80}")
        for name in ("metrics_key", "accept_token_ids", "opentelemetry"):
            checked_flag(name, getattr(self, name))
        checked_choice("truncation", self.truncation, ("report", "error"))
        if self.max_tokens > self.queue_tokens:
            raise InputError(
                f"max_tokens is {self.max_tokens} and queue_tokens {self.queue_tokens}: a request of max_tokens would "
                "never fit the queue; make queue_tokens larger"
            )
        if self.max_bytes > self.inflight_bytes:
            raise InputError(
                f"max_bytes is {self.max_bytes} and inflight_bytes {self.inflight_bytes}: a request of max_bytes would "
                "never be taken; make inflight_bytes larger"
            )
        keys = tuple(checked_strings("api_keys", self.api_keys))
        if not all(key and key.isascii() and key.isprintable() and key == key.strip() for key in keys):
            raise InputError("api_keys must be non-empty printable ASCII without white space at either end")
        object.__setattr__(self, "api_keys", keys)
        hosts = tuple(checked_strings("allowed_hosts", self.allowed_hosts))
        for host in hosts:
            if not _HOST.fullmatch(host):
                raise InputError(
                    f"allowed_hosts has {host!r:.80}: give names without a port, such as 'bert.example.org'"
                )
        object.__setattr__(self, "allowed_hosts", hosts)
