"""Padding of encoded rows to one length, for a collate function: the work of `Tokenizer.pad`.

The rules are as in `PreTrainedTokenizerBase.pad` of transformers 5.23.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Union

from wordpiece_bert._internal.checks import iterates, whole_number
from wordpiece_bert._internal.lazy import numpy as np
from wordpiece_bert._internal.tensors import check_tensor_type
from wordpiece_bert.errors import InputError
from wordpiece_bert.tokenizer.batch_encoding import BatchEncoding

if TYPE_CHECKING:
    from wordpiece_bert.tokenizer.option_types import PaddingSettings

#: One encoded text, encoded texts by name, or a list of encoded texts.
Encoded = Union["Mapping[str, Any]", "Sequence[Mapping[str, Any]]"]

# The names of values with one entry per token, and what they are padded with: None means the padding token's.
_PADDED: dict[str, int | None] = {
    "input_ids": None,
    "attention_mask": 0,
    "token_type_ids": None,
    "special_tokens_mask": 1,
}


def pad_inputs(
    encoded: Encoded,
    padding: PaddingSettings | None,
    *,
    return_attention_mask: bool,
    return_tensors: str | None,
) -> BatchEncoding[Any]:
    """Pad encoded rows, and return them under the same names.

    Parameters
    ----------
    encoded : mapping or sequence of mapping
        One row or several by name, or a list of rows. A value is a list, an array or a tensor.
    padding : PaddingSettings or None
        What to pad with and to which length; None for no padding. A length of None means the longest row.
    return_attention_mask : bool
        Add ``attention_mask`` if it is missing, and pad it.
    return_tensors : {"np", "pt"} or None
        The type of the result; None keeps lists as lists and arrays as arrays.

    Returns
    -------
    BatchEncoding
        ``input_ids`` and the mask, token types and special tokens mask, padded; other values as they are.

    Raises
    ------
    InputError
        There is no ``input_ids``, an item has several rows, a value has another number of rows or tokens, or rows of
        different lengths are to become an array.
    """
    check_tensor_type(return_tensors)
    data = _by_name(encoded)
    if "input_ids" not in data:
        raise InputError(
            "You should supply an encoding or a list of encodings to this method that includes input_ids, but you "
            f"provided {list(data)}"
        )
    ids = data["input_ids"]
    if len(ids) == 0:
        return BatchEncoding({**data, "attention_mask": []} if return_attention_mask else data)
    if return_tensors is None:
        return_tensors = _tensor_type(ids)
    data = {name: value if isinstance(value, list) else _listed(value) for name, value in data.items()}
    single = not isinstance(_listed(data["input_ids"][0]), list)
    if single:
        data = {name: [value] for name, value in data.items()}
    rows: list[list[int]] = [_listed(row) for row in data["input_ids"]]
    for index, row in enumerate(rows):
        if row and isinstance(_listed(row[0]), list):
            raise InputError(f"item {index} of input_ids has {len(row)} rows: pass each row as an item of its own")
    for name, value in data.items():
        if len(value) != len(rows):
            raise InputError(f"{name} has {len(value)} rows, and input_ids {len(rows)}")
    if return_attention_mask and "attention_mask" not in data:
        data["attention_mask"] = [[1] * len(row) for row in rows]
    padded = data if padding is None else _padded(data, rows, padding, return_attention_mask=return_attention_mask)
    result = {name: value[0] for name, value in padded.items()} if single else padded
    return BatchEncoding(result).convert_to_tensors(return_tensors)


def _by_name(encoded: object) -> dict[str, Any]:
    """Return the values by name; a list of rows becomes lists by name."""
    if isinstance(encoded, Mapping):
        return dict(encoded)
    if iterates(encoded) and not isinstance(encoded, str | bytes):
        rows = list(encoded)
        if rows and all(isinstance(row, Mapping) for row in rows):
            for index, row in enumerate(rows):
                if missing := [name for name in rows[0] if name not in row]:
                    raise InputError(f"item {index} has no {missing[0]!r}, which item 0 has")
            rows = [_single(row) for row in rows]
            return {name: [row[name] for row in rows] for name in rows[0]}
    raise InputError(
        f"pad takes a dict of encoded rows or a non-empty list of such dicts, not {type(encoded).__name__}"
    )


def _single(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the only row of arrays, which a call makes of one text; other values as they are."""
    ids: Any = row.get("input_ids")
    if getattr(ids, "ndim", 1) != 2 or len(ids) != 1:
        return row
    return {name: value[0] if getattr(value, "ndim", 0) and len(value) == 1 else value for name, value in row.items()}


def _tensor_type(ids: Any) -> str | None:
    """Return the type in which ids were given: ``"np"``, ``"pt"``, or None for lists."""
    for value in (ids, ids[0]):
        if type(value).__module__.partition(".")[0] == "torch":
            return "pt"
        if isinstance(value, np.ndarray):
            return "np"
    return None


def _listed(value: Any) -> Any:
    """Return an array or a tensor as nested lists, and a tuple as a list; other values as they are."""
    if isinstance(value, tuple):
        return list(value)
    return value.tolist() if hasattr(value, "tolist") else value


def _padded(
    data: dict[str, Any], rows: list[list[int]], padding: PaddingSettings, *, return_attention_mask: bool
) -> dict[str, Any]:
    length = padding["length"]
    if length is None:
        length = max(map(len, rows))
    multiple = padding["pad_to_multiple_of"]
    if multiple:
        length = -(-length // multiple) * multiple
    whole_number("the length to pad to", length, 0)
    fill = _PADDED | {"input_ids": padding["pad_id"], "token_type_ids": padding["pad_type_id"]}
    padded = {}
    for name, value in data.items():
        if name not in fill or (name == "attention_mask" and not return_attention_mask):
            padded[name] = value
            continue
        entries = [_listed(row) for row in value]
        padded[name] = []
        for index, (entry, row) in enumerate(zip(entries, rows, strict=True)):
            if len(entry) != len(row):
                raise InputError(f"item {index} of {name} has {len(entry)} entries, and its input_ids {len(row)}")
            more = [fill[name]] * (length - len(row))
            padded[name].append(entry + more if padding["direction"] == "right" else more + entry)
    return padded
