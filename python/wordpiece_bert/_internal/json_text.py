"""JSON of measured numbers, some of which may be NaN or infinite: these are null, since JSON has no such numbers."""

from __future__ import annotations

import json
import math
from typing import Any


def json_text(value: Any, **options: Any) -> str:
    """Return a value as JSON, with null in place of each number that is not finite.

    Parameters
    ----------
    value : object
        What `json.dumps` takes.
    **options
        Options of `json.dumps`.
    """
    try:
        return json.dumps(value, allow_nan=False, **options)
    except ValueError:
        return json.dumps(_finite(value), allow_nan=False, **options)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(part) for key, part in value.items()}
    return [_finite(part) for part in value] if isinstance(value, list | tuple) else value
