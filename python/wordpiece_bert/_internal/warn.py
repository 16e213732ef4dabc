"""Warnings that name the line of the user, however deep in the package they arise."""

from __future__ import annotations

import sys
import warnings

from wordpiece_bert._internal.log import tell

#: This package, and one that wraps the methods of the classes that derive from its own.
_PASSED = (__name__.partition(".")[0], "sklearn")


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Emit a warning, and log it; it names the innermost line outside this package, the line of its user.

    A fixed ``stacklevel`` is right for one path of calls alone: the same warning arises in `encode`, in `encode_query`
    that calls it, and in an adapter that calls that.

    Parameters
    ----------
    message : str
        The message.
    category : type of Warning, default UserWarning
        The class.
    """
    tell("%s", message)
    level = 2
    frame = sys._getframe(1)
    while frame.f_back is not None and _is_inside(frame.f_globals.get("__name__")):
        frame = frame.f_back
        level += 1
    warnings.warn(message, category, stacklevel=level)


def _is_inside(module: object) -> bool:
    return isinstance(module, str) and module.partition(".")[0] in _PASSED
