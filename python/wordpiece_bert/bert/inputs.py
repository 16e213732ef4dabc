"""Checks of the arguments of a model's call; after them the arithmetic needs no further checks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from wordpiece_bert._internal.arrays import refuse_masked
from wordpiece_bert.bert.config import LARGEST_SIZE
from wordpiece_bert.errors import InputError

if TYPE_CHECKING:
    from wordpiece_bert.bert.config import BertConfig
    from wordpiece_bert.bert.functional import Array, Ids, Mask


class Inputs(NamedTuple):
    """The inputs of one forward pass, complete and within range.

    Exactly one of `input_ids` and `inputs_embeds` is not None.
    """

    shape: tuple[int, int]  # B, S
    input_ids: Ids | None  # [B, S]
    inputs_embeds: Array | None  # [B, S, E]; E is H except in some variants
    token_type_ids: Ids  # [B, S] or [1, S]
    position_ids: Ids  # [B, S] or [1, S]
    mask: Mask | None  # [B, S], true where a token is visible; None if all are
    task_type_ids: Ids | None = None  # [B, S], in ERNIE; None for 0


def check_inputs(
    config: BertConfig,
    input_ids: npt.ArrayLike | None,
    attention_mask: npt.ArrayLike | None,
    token_type_ids: npt.ArrayLike | None,
    position_ids: npt.ArrayLike | None,
    inputs_embeds: npt.ArrayLike | None,
    task_type_ids: npt.ArrayLike | None = None,
) -> Inputs:
    """Check the arguments of a model's call and fill in the defaults of arguments that are None.

    Raises
    ------
    InputError
        An argument is wrong; the message has its name, the value and its index.
    """
    if input_ids is not None and inputs_embeds is not None:
        raise InputError("pass either input_ids or inputs_embeds, not both")
    ids: Ids | None = None
    vectors: Array | None = None
    if input_ids is not None:
        ids = _ids("input_ids", input_ids, config.vocab_size, "vocab_size")
        batch, length = ids.shape
    elif inputs_embeds is not None:
        vectors = _vectors(inputs_embeds, config.embedding_size)
        batch, length = vectors.shape[:2]
    else:
        raise InputError("pass either input_ids or inputs_embeds")
    if length > config.longest_row:
        unused = config.max_position_embeddings - config.longest_row
        which = "the model's max_position_embeddings" + (f" less the {unused} that it reserves" if unused else "")
        raise InputError(
            f"rows of {length} tokens are longer than {which}, {config.longest_row}: truncate the texts to it"
        )
    if length == 0 and batch > 0:
        raise InputError(f"{batch} rows of 0 tokens: a row needs at least one token")

    types: Ids = np.zeros((1, length), np.int64)
    # A model without token types ignores them, as in transformers.
    if token_type_ids is not None and config.type_vocab_size:
        types = check_ids("token_type_ids", token_type_ids, config.type_vocab_size, "type_vocab_size", (batch, length))
    positions = config.default_positions(ids, length)
    if position_ids is not None:
        size = config.max_position_embeddings if config.has_position_table else LARGEST_SIZE
        field = "max_position_embeddings" if config.has_position_table else "the largest number"
        positions = _ids("position_ids", position_ids, size, field)
        if positions.shape != (1, length):  # [1, S] is the shape in which checkpoints store default positions
            _match("position_ids", positions.shape, (batch, length))
    mask = None if attention_mask is None else _mask(attention_mask, (batch, length))
    tasks: Ids | None = None
    if task_type_ids is not None and (table := config.plan().embeddings.table("tasks")) is not None:
        assert isinstance(table.rows, str), "a field of the configuration"
        size = getattr(config, table.rows)
        tasks = check_ids("task_type_ids", task_type_ids, size, table.rows, (batch, length))
    return Inputs((batch, length), ids, vectors, types, positions, mask, tasks)


def check_rows(config: BertConfig, ids: Ids, ends: Ids, numbers: Ids) -> None:
    """Check rows of ids from a tokenizer against the tables of a model.

    Parameters
    ----------
    config
        The model's configuration.
    ids
        The ids of all rows, one row after the other, [tokens].
    ends
        Row i is ``ids[ends[i]:ends[i + 1]]``, [B + 1].
    numbers
        What messages call the rows, [B].

    Raises
    ------
    InputError
        A row is too long, or an id is outside the word table; the message has the row and the value.
    """
    lengths = np.diff(ends)
    if lengths.size and int(lengths.max()) > config.longest_row:
        row = int(lengths.argmax())
        raise InputError(
            f"input_ids[{numbers[row]}] has {lengths[row]} tokens, the model's longest row {config.longest_row}"
        )
    if ids.size and int(ids.max()) >= config.vocab_size:
        position = int(ids.argmax())
        row = int(np.searchsorted(ends, position, side="right")) - 1
        where = f"input_ids[{numbers[row]}, {position - int(ends[row])}]"
        raise InputError(
            f"{where} is {ids[position]}, outside 0 to {config.vocab_size - 1} (vocab_size is {config.vocab_size})"
        )


def check_labels(
    name: str, value: npt.ArrayLike, shape: tuple[int, ...], count: int, ignored: int | None = None
) -> Ids:
    """Return labels as integers of this shape, checked to be from 0 to `count` − 1, or `ignored`.

    Raises
    ------
    InputError
        A label is wrong; the message has its value and its index.
    """
    labels = as_array(name, value)
    if labels.size == 0 and not isinstance(value, np.ndarray):
        labels = labels.astype(np.int64)
    if not np.issubdtype(labels.dtype, np.integer):
        raise InputError(f"{name} must be integers, not {labels.dtype}")
    if labels.shape != shape and labels.shape != (*shape, 1):
        raise InputError(f"{name} has shape {list(labels.shape)}, expected {list(shape)}")
    labels = labels.reshape(shape)
    wrong = (labels < 0) | (labels >= count)
    if ignored is not None:
        wrong &= labels != ignored
    if wrong.any():
        index = [int(i) for i in np.argwhere(wrong)[0]]
        also = "" if ignored is None else f" (or {ignored}, which is ignored)"
        raise InputError(f"{name}{index} is {labels[tuple(index)]}, outside 0 to {count - 1}{also}")
    return labels


def as_classes(name: str, value: npt.ArrayLike) -> npt.NDArray[Any]:
    """Return the numbers of classes as an array, of integers if they are booleans or whole numbers as floats.

    Raises
    ------
    InputError
        A number is a fraction, or beyond int64; the message has its value and its index.
    """
    found = as_array(name, value)
    if found.dtype.kind == "f":
        wrong = ~(np.abs(found) < 2.0**63) | (found != np.trunc(found))  # NaN is not below anything
        if wrong.any():
            index = [int(i) for i in np.argwhere(wrong)[0]]
            raise InputError(
                f"{name}{index} is {found[tuple(index)]}, but a class is a whole number of 64 bits; of several labels "
                "for a text, each is 0.0 or 1.0, and with problem_type='regression' labels are any numbers"
            )
    return found.astype(np.int64) if found.dtype.kind in "fb" else found


def check_positions(name: str, value: npt.ArrayLike, shape: tuple[int, ...]) -> Ids:
    """Return the positions of answers in rows [B, S] as integers [B] clipped to 0 … S, of which S is ignored.

    Raises
    ------
    InputError
        There is not one integer for each row.
    """
    batch, length = shape
    positions = as_array(name, value)
    if not np.issubdtype(positions.dtype, np.integer) or positions.shape not in ((batch,), (batch, 1)):
        raise InputError(f"{name} must be integers [{batch}], not {positions.dtype} of shape {list(positions.shape)}")
    clipped: Ids = np.clip(positions.reshape(batch), 0, length)
    return clipped


def check_targets(name: str, value: npt.ArrayLike, shape: tuple[int, ...]) -> Array:
    """Return the targets of a loss as float32 of this shape.

    Raises
    ------
    InputError
        They are not real numbers, or have another shape.
    """
    targets = as_array(name, value)
    if not (np.issubdtype(targets.dtype, np.number) or targets.dtype == np.bool_) or targets.dtype.kind == "c":
        raise InputError(f"{name} must be numbers, not {targets.dtype}")
    if targets.shape != shape and not (shape[1:] == (1,) and targets.shape == shape[:1]):
        raise InputError(f"{name} has shape {list(targets.shape)}, expected {list(shape)}")
    return targets.reshape(shape).astype(np.float32, copy=False)


def as_array(name: str, value: npt.ArrayLike) -> npt.NDArray[Any]:
    """Return an argument as an array.

    Raises
    ------
    InputError
        NumPy cannot convert it, or it has masked values.
    """
    refuse_masked(name, value, "numbers")
    try:
        return np.asarray(value)
    except (ValueError, TypeError) as cause:
        raise InputError(f"{name} is not an array: {cause}. Rows of different lengths must be padded") from cause


def _ids(name: str, value: npt.ArrayLike, size: int, field: str) -> Ids:
    """Return integers [B, S], all from 0 to size − 1."""
    ids = as_array(name, value)
    if ids.ndim != 2:
        raise InputError(f"{name} must have 2 dimensions, [batch, length], not {ids.ndim} (shape {list(ids.shape)})")
    if ids.size == 0 and not isinstance(value, np.ndarray):
        ids = ids.astype(np.int64)  # NumPy makes a float64 array of an empty list
    if not np.issubdtype(ids.dtype, np.integer):
        raise InputError(f"{name} must be integers, not {ids.dtype}")
    wrong = (ids < 0) | (ids >= size)
    if wrong.any():
        row, column = (int(i) for i in np.argwhere(wrong)[0])
        raise InputError(f"{name}[{row}, {column}] is {ids[row, column]}, outside 0 to {size - 1} ({field} is {size})")
    return ids


def check_ids(name: str, value: npt.ArrayLike, size: int, field: str, shape: tuple[int, int]) -> Ids:
    """Return integers of this shape, [B, S], all from 0 to `size` − 1; `field` is what messages call the size.

    Raises
    ------
    InputError
        A number or the shape is wrong; the message has its value and its index.
    """
    ids = _ids(name, value, size, field)
    _match(name, ids.shape, shape)
    return ids


def _vectors(value: npt.ArrayLike, hidden_size: int) -> Array:
    """Return float32 [B, S, H]."""
    vectors = as_array("inputs_embeds", value)
    if vectors.ndim != 3 or vectors.shape[2] != hidden_size:
        raise InputError(f"inputs_embeds must have shape [batch, length, {hidden_size}], not {list(vectors.shape)}")
    if not np.issubdtype(vectors.dtype, np.floating):
        raise InputError(f"inputs_embeds must be floating-point, not {vectors.dtype}")
    return vectors.astype(np.float32, copy=False)


def _mask(value: npt.ArrayLike, shape: tuple[int, int]) -> Mask | None:
    """Return booleans [B, S], true where a token is visible; None if all are."""
    mask = as_array("attention_mask", value)
    if mask.ndim > 2:
        raise InputError(
            f"attention_mask must have shape [batch, length], not {list(mask.shape)}: "
            "masks by query and key, and additive masks, are not supported"
        )
    _match("attention_mask", mask.shape, shape)
    if not (np.issubdtype(mask.dtype, np.number) or mask.dtype == np.bool_):
        raise InputError(f"attention_mask must be booleans or numbers, not {mask.dtype}")
    visible = mask != 0
    masked = ~visible.any(axis=1)  # [B]
    if masked.any():
        raise InputError(
            f"attention_mask[{int(masked.argmax())}] is all 0: a row with no visible token has no defined result"
        )
    return None if visible.all() else visible


def _match(name: str, shape: tuple[int, ...], expected: tuple[int, int]) -> None:
    if shape != expected:
        raise InputError(f"{name} has shape {list(shape)}, but the input has {list(expected)}, [batch, length]")
