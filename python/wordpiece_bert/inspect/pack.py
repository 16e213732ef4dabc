"""Arrays as compact text, for a page that decodes each of them when it is first shown.

The last two axes of an array are one part; each part is compressed with zlib and written as text, five characters for
four bytes. Parts of few numbers are compressed together. Six encodings trade size for precision, and
`wordpiece_bert.inspect.scores` has others; what is ``computed`` by the page is not stored:

==========  ===================================================================  =============================
encoding    stored                                                               largest error of a value
==========  ===================================================================  =============================
``rows``    one byte for each weight, and the maximum of each row in float32     1/510 of the row's maximum; in
                                                                                 rows longer than 256, 1/256
``coarse``  the same with fewer steps                                            1/64 of the row's maximum
``unit``    thousandths of two, for each number between −1 and 1                 1/4,000
``columns`` steps of 1/16,383 of the column's largest absolute value             1/32,766 of that value
``half``    IEEE half precision                                                  1/2,048 of the value
``single``  IEEE single precision                                                none
==========  ===================================================================  =============================
"""

from __future__ import annotations

import math
import zlib
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from wordpiece_bert._internal.arrays import as_float32, as_numbers
from wordpiece_bert.bert.functional import softmax
from wordpiece_bert.errors import InputError

if TYPE_CHECKING:
    import numpy.typing as npt

Packable = Literal["rows", "coarse", "unit", "columns", "half", "single"]
#: With the encodings of `wordpiece_bert.inspect.scores`, and what a page computes.
Encoding = Packable | Literal["cosines", "coded", "computed"]
ENCODINGS: tuple[Packable, ...] = get_args(Packable)

#: A weight is stored as the nearest of this many steps between 0 and the maximum of its row.
LEVELS = 255
LEVELS_OF_LONG_ROWS = 128
LONG_ROW = 256
COARSE_LEVELS = 32
#: Numbers between −1 and 1 are stored as multiples of 1/UNIT.
UNIT = 2000
#: Numbers of a column are stored as multiples of their largest absolute value / STEPS.
STEPS = 16_383
#: Texts of no more tokens are few, and of at least so many tokens long: for these, other encodings take less room.
FEW, LONG = 16, 128
#: The parts of an array are compressed together if they have no more bytes than this.
JOINED = 100_000
#: An array with a larger number is stored in single precision instead of half.
LARGEST_HALF = 60_000


class Packed:
    """One array: how it is encoded, its shape, and the text of each part."""

    def __init__(
        self, encoding: Encoding | Literal["scores"], shape: tuple[int, ...], parts: list[bytes], joined: int = 0
    ) -> None:
        self.parts = list(map(_text, parts))
        #: What the page needs to decode the parts.
        self.spec: dict[str, Any] = {"encoding": encoding, "shape": list(shape), "lengths": list(map(len, parts))}
        if joined:  # the bytes of each of the parts that are compressed together
            self.spec["joined"] = joined
        if encoding in {"rows", "coarse"}:
            self.spec["levels"] = _levels(shape[-1], encoding)
        elif encoding == "unit":
            self.spec["unit"] = UNIT
        elif encoding == "columns":
            self.spec["steps"] = STEPS


def as_finite(name: str, values: npt.ArrayLike | None, dimensions: tuple[int, ...]) -> npt.NDArray[np.float32]:
    """Return an array of finite numbers as float32.

    Parameters
    ----------
    name : str
        What to call it in a message.
    values : array_like
        Numbers, or anything that `numpy.asarray` accepts, a CPU tensor among them.
    dimensions : tuple of int
        The allowed numbers of dimensions.

    Raises
    ------
    InputError
        It is not an array of numbers, has another number of dimensions, or has a value that is not finite.
    """
    array = as_numbers(name, values)
    if array.ndim not in dimensions:
        allowed = " or ".join(map(str, dimensions))
        raise InputError(f"{name} must have {allowed} dimensions, not the shape {list(array.shape)}")
    if not np.isfinite(array).all():
        index = np.argwhere(~np.isfinite(array))[0].tolist()
        raise InputError(f"{name}{index} is {array[tuple(index)]}: only finite numbers can be shown")
    return as_float32(name, array)


def pack(array: npt.NDArray[Any], encoding: Packable) -> Packed:
    """Encode an array, part by part.

    Parameters
    ----------
    array : ndarray
        Finite numbers, [..., rows, columns] or [columns]. For ``rows`` and ``coarse`` not negative; for ``unit``
        between −1 and 1.
    encoding : str
        One of `ENCODINGS`.
    """
    if encoding == "half" and np.abs(array).max(initial=0) > LARGEST_HALF:
        encoding = "single"
    rows = math.prod(array.shape[-2:])
    parts = array.reshape(-1, *array.shape[-2:]) if rows else array.reshape(0, 1)
    stored = [_bytes(part, encoding) for part in parts]
    if len(stored) > 1 and sum(map(len, stored)) <= JOINED:
        return Packed(encoding, array.shape, [_compressed(b"".join(stored))], len(stored[0]))
    return Packed(encoding, array.shape, [_compressed(one) for one in stored])


def encoding_of_vectors(tokens: int) -> Encoding:
    """Return how a page stores the queries and keys of a text of so many tokens."""
    # The largest number of each column takes four bytes, which few tokens do not save.
    return "half" if tokens <= FEW else "columns" if tokens < LONG else "coded"


def are_softmax_of(
    weights: npt.NDArray[np.float32], queries: npt.NDArray[np.float32], keys: npt.NDArray[np.float32]
) -> bool:
    """Whether the stored queries and keys give the weights, to 1/255 of each row's maximum; of long texts to 1/40.

    Then a page can compute softmax(q·kᵀ/√d) when a head is shown, and need not store its weights.

    Parameters
    ----------
    weights : ndarray of float32
        [L, N, S, S].
    queries, keys : ndarray of float32
        [L, N, S, d], which the page stores by `encoding_of_vectors`.
    """
    if queries.shape[:3] != weights.shape[:3] or not queries.size:
        return False
    for head in np.ndindex(*weights.shape[:2]):
        q, k = (_rounded(array[head]) for array in (queries, keys))
        scores = q @ k.T / np.float32(math.sqrt(q.shape[-1]))  # [S, S]
        # A little less than 1/255, because the page adds the products in another order.
        if (np.abs(softmax(scores) - weights[head]) > weights[head].max(axis=-1, keepdims=True) / 260).any():
            return False
    return True


def _rounded(part: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return queries or keys [S, d] as a page has them; of long texts as they are: the page keeps their scores."""
    encoding = encoding_of_vectors(len(part))
    if encoding != "columns":
        return part if encoding == "coded" else part.astype(np.float16).astype(np.float32)
    most = np.abs(part).max(axis=0).astype(np.float32)
    scale = np.where(most > 0, most, 1)
    rounded: npt.NDArray[np.float32] = np.rint(part / scale * STEPS) * (most / np.float32(STEPS))
    return rounded


def pack_text(text: str) -> tuple[str, int]:
    """Return a text of ASCII characters in the form of a part, and the length of its compressed bytes."""
    compressed = zlib.compress(text.encode("ascii"), 9)
    return _text(compressed), len(compressed)


def _bytes(part: npt.NDArray[Any], encoding: Encoding) -> bytes:
    if encoding in {"rows", "coarse"}:
        maxima = part.max(axis=-1).astype("<f4")  # [rows]
        scale = np.where(maxima > 0, maxima, 1)[:, None]
        steps = np.rint(part / scale * _levels(part.shape[-1], encoding)).astype(np.uint8)
        return bytes(maxima.tobytes() + steps.tobytes())
    if encoding == "unit":
        return _shuffled(np.rint(np.clip(part, -1, 1) * UNIT).astype("<i2"))
    if encoding == "columns":
        part = np.atleast_2d(part)
        most = np.abs(part).max(axis=0).astype("<f4")  # [columns]
        steps = np.rint(part / np.where(most > 0, most, 1) * STEPS).astype("<i2")
        return bytes(most.tobytes() + _shuffled(steps.T))
    if encoding == "half":
        return _shuffled(part.astype("<f2"))
    return part.astype("<f4").tobytes()


def _levels(columns: int, encoding: str) -> int:
    if encoding == "coarse":
        return COARSE_LEVELS
    return LEVELS if columns <= LONG_ROW else LEVELS_OF_LONG_ROWS


def _shuffled(numbers: npt.NDArray[Any]) -> bytes:
    """Return first the low bytes of 16-bit numbers, then the high bytes, which repeat and compress well."""
    return np.ascontiguousarray(np.ascontiguousarray(numbers).reshape(-1).view(np.uint8).reshape(-1, 2).T).tobytes()


#: 85 characters that have no meaning in HTML. The page's decoder has the same.
ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%()*+-.:;=?@[]^_{|}~"


def _text(content: bytes) -> str:
    """Return bytes as text in base 85, padded with zeros to a multiple of four bytes: a quarter longer, not a third."""
    padded = content + bytes(-len(content) % 4)
    numbers = np.frombuffer(padded, ">u4").astype(np.uint32)
    letters = np.frombuffer(ALPHABET.encode("ascii"), np.uint8)
    places = np.stack([letters[numbers // np.uint32(85**power) % np.uint32(85)] for power in (4, 3, 2, 1, 0)], axis=1)
    return places.tobytes().decode("ascii")


def _compressed(content: bytes) -> bytes:
    # Weights and vectors have few repeated strings: the code of frequent bytes gains, not the search for matches.
    coder = zlib.compressobj(6, zlib.DEFLATED, zlib.MAX_WBITS, 9, zlib.Z_FILTERED)
    return coder.compress(content) + coder.flush()
