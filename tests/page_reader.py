"""The arrays of an inspection page, read by other means than the page's own script."""

from __future__ import annotations

import base64
import json
import re
import string
import zlib
from typing import Any

import numpy as np

from wordpiece_bert.bert.functional import softmax
from wordpiece_bert.inspect.pack import ALPHABET


def from_text(part: str) -> bytes:
    """The bytes of a part, by the decoder of the standard library, whose alphabet differs."""
    standard = string.digits + string.ascii_uppercase + string.ascii_lowercase + "!#$%&()*+-;<=>?@^_`{|}~"
    return base64.b85decode(part.translate(str.maketrans(ALPHABET, standard)))


def decoded(page: str) -> tuple[dict[str, Any], list[bytes]]:
    """The content of a page and its compressed parts, read by other means than the page's own script."""
    content = json.loads(re.search(r'<script type="application/json" id="content">(.*?)</script>', page, re.DOTALL)[1])
    blobs = re.findall(r'<script type="text/plain" id="b\d+">([^<]*)</script>', page)
    parts = [from_text(blob) for blob in blobs]
    for view in content["views"]:
        if "packed" in view["data"]:
            view["data"] = json.loads(zlib.decompress(parts[view["data"]["packed"]][: view["data"]["length"]]))
    return content, parts


def coded_columns(stored: bytes, rows: int, width: int) -> np.ndarray:
    """The columns of numbers that are stored as multiples of a step, bit by bit as `wordpiece_bert.inspect.scores` says."""
    step = np.frombuffer(stored[:4], "<f4")[0]
    means = np.frombuffer(stored[4 : 4 + 4 * width], "<f4")
    low = stored[4 + 4 * width : 4 + 5 * width]
    bits = iter("".join(f"{byte:08b}" for byte in stored[4 + 5 * width :]))
    columns = np.zeros((rows, width), np.float32)
    for column in range(width):
        for row in range(rows):
            high = 0
            while next(bits) == "1":
                high += 1
            u = high << low[column] | int("".join(next(bits) for _ in range(low[column])) or "0", 2)
            columns[row, column] = (u // 2 if u % 2 == 0 else -(u + 1) // 2) * step + means[column]
    return columns


def unpacked(spec: dict[str, Any], blobs: list[bytes]) -> np.ndarray:
    """An array of a page."""
    rows, columns = ([1, *spec["shape"]])[-2:]
    if spec["encoding"] == "softmax":
        q, k = (unpacked(spec[name], blobs) for name in ("queries", "keys"))
        return softmax(q @ k.swapaxes(-1, -2) / np.float32(np.sqrt(q.shape[-1])))
    parts: list[Any] = []
    stored = [blobs[spec["first"] + number][:length] for number, length in enumerate(spec["lengths"])]
    if spec["encoding"] != "scores":
        stored = list(map(zlib.decompress, stored))
    if joined := spec.get("joined"):
        [whole] = stored
        stored = [whole[start : start + joined] for start in range(0, len(whole), joined)]
    for raw in stored:
        if spec["encoding"] == "scores":
            both = coded_columns(raw, rows, 2 * spec["width"])
            parts.append(softmax(both[:, : spec["width"]] @ both[:, spec["width"] :].T))
            continue
        if spec["encoding"] in {"coded", "cosines"}:
            part = coded_columns(raw, rows, spec.get("width", columns))
            parts.append(part @ part.T if spec["encoding"] == "cosines" else part)
            continue
        if spec["encoding"] in {"rows", "coarse"}:
            most = np.frombuffer(raw[: 4 * rows], "<f4")
            part = np.frombuffer(raw[4 * rows :], np.uint8).reshape(rows, columns) * (most / spec["levels"])[:, None]
        elif spec["encoding"] == "columns":
            most = np.frombuffer(raw[: 4 * columns], "<f4")
            both = np.frombuffer(raw[4 * columns :], np.uint8).reshape(2, -1).T.tobytes()
            part = np.frombuffer(both, "<i2").reshape(columns, rows).T * (most / spec["steps"])
        elif spec["encoding"] == "single":
            part = np.frombuffer(raw, "<f4")
        else:
            both = np.frombuffer(raw, np.uint8).reshape(2, -1).T.tobytes()
            part = (
                np.frombuffer(both, "<f2") if spec["encoding"] == "half" else np.frombuffer(both, "<i2") / spec["unit"]
            )
        parts.append(part)
    return np.array(parts, np.float32).reshape(spec["shape"])
