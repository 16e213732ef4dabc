"""The names by which a request may call the server, in its header ``Host``.

A page in a browser can reach a server on the same machine under a name of its own site, whose address it changes after
it was loaded (DNS rebinding). The browser then takes the server for a part of the site, but the header has the name.
"""

from __future__ import annotations

import ipaddress
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

#: The name that is accepted wherever names are checked, and alone on an address of this machine.
LOCAL = "localhost"


def named_by(names: Sequence[str]) -> Callable[[bytes], bool]:
    """Return a function that takes a header ``Host``, and returns whether it names the server.

    Parameters
    ----------
    names : sequence of str
        The names; ``"*.example.org"`` stands for all that end so, and ``"*"`` for all. Besides these, ``localhost`` and
        IP addresses are accepted, which no site has as its name. If it is empty, every name is accepted.
    """
    if not names or "*" in names:
        return lambda _: True
    known = {LOCAL, *(name.lower() for name in names)}
    endings = (f".{LOCAL}", *(name[1:] for name in known if name.startswith("*.")))

    @lru_cache(64)
    def is_named(header: bytes) -> bool:
        name = _without_port(header.decode("latin-1").strip().lower()).removesuffix(".")
        return not name or name in known or name.endswith(endings) or _address(name) is not None

    return is_named


def is_loopback(host: str) -> bool:
    """Return whether an address is reachable from this machine only."""
    address = _address(host)
    return address is not None and address.is_loopback


def _without_port(host: str) -> str:
    if host.startswith("["):  # an address of version 6, which has colons
        return host[1:].partition("]")[0]
    return host.partition(":")[0] if host.count(":") == 1 else host


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
