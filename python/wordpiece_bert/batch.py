"""The results of encoding a batch: `RaggedBatch`, flat arrays, and `BatchEncoding`, model inputs by name."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Self, overload

import numpy as np
import numpy.typing as npt

from wordpiece_bert import _core
from wordpiece_bert._internal.notebook import arrays_html, rows_html
from wordpiece_bert.arrow import ArrowTable
from wordpiece_bert.errors import InputError, MissingPackageError

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow

    from wordpiece_bert._core import Encoding

__all__ = ["BatchEncoding", "CharSpan", "IdArray", "RaggedBatch", "TokenSpan"]

#: Ids, masks and the like.
IdArray = npt.NDArray[np.integer[Any]]
# The type of the values of a `BatchEncoding`: arrays, unless a call asks for lists or tensors.
if TYPE_CHECKING:
    from typing_extensions import TypeVar  # the default makes BatchEncoding alone a type, too

    Value = TypeVar("Value", default=IdArray)
else:
    from typing import TypeVar

    Value = TypeVar("Value")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RaggedBatch:
    """Rows of different lengths, stored one after the other in flat arrays.

    ``batch[i]`` is the ids of row *i*, ``ids[row_offsets[i]:row_offsets[i + 1]]``; the other arrays with one entry per
    token are sliced in the same way. ``batch[i:j]`` is a batch of these rows. Rows are in the order of the texts; with
    overflow, each text is followed by its further windows. An array of more than 4 KiB is the memory that the tokenizer
    wrote to, not a copy.

    Examples
    --------
    >>> import wordpiece_bert as wb
    >>> tokenizer = wb.Tokenizer.from_vocab(["[UNK]", "a", "cat", "##s"])
    >>> batch = tokenizer.encode_batch(["a cat", "cats"])
    >>> batch.ids, batch.row_offsets
    (array([1, 2, 2, 3], dtype=uint32), array([0, 2, 4]))
    >>> batch[1]
    array([2, 3], dtype=uint32)
    """

    #: Ids of all rows, uint32 [n].
    ids: npt.NDArray[np.uint32]
    #: Index in `ids` at which each row begins, followed by the end of the last row, int64 [rows + 1].
    row_offsets: npt.NDArray[np.int64]
    #: Whether each text was truncated, bool [texts].
    truncated: npt.NDArray[np.bool_]
    #: Start and end of each token in its text, in units of ``offset_unit``, int64 [n, 2]; None unless
    #: ``return_offsets``.
    offsets: npt.NDArray[np.int64] | None = None
    #: Index of each token's word in its text, −1 for none, int32 [n]; None unless ``return_word_ids``.
    word_ids: npt.NDArray[np.int32] | None = None
    #: Which text of a pair each token is from, 0 or 1, and −1 for special tokens and padding, int32 [n]; None unless
    #: ``return_sequence_ids``.
    sequence_ids: npt.NDArray[np.int32] | None = None
    #: Index of the text that each row comes from, int64 [rows]; None unless ``return_overflowing_tokens``.
    overflow_to_sample: npt.NDArray[np.int64] | None = None
    #: Number of tokens of each text before truncation and padding, special tokens included, int64 [texts]; None unless
    #: ``return_n_tokens``.
    n_tokens: npt.NDArray[np.int64] | None = None

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """The number of tokens of each row, int64 [rows]."""
        return self.row_offsets[1:] - self.row_offsets[:-1]  # a sixth of the time of np.diff for one row

    def __len__(self) -> int:
        return len(self.row_offsets) - 1

    @overload
    def __getitem__(self, row: int) -> npt.NDArray[np.uint32]: ...

    @overload
    def __getitem__(self, row: slice) -> RaggedBatch: ...

    def __getitem__(self, row: int | slice) -> npt.NDArray[np.uint32] | RaggedBatch:
        """Return the ids of a row as a view, uint32 [length], or a batch of the rows of a slice.

        Negative indices count from the end. The batch of a slice with step 1 has views of this batch's arrays, except
        for ``row_offsets``; with another step, copies.

        Raises
        ------
        IndexError
            There is no such row.
        """
        if isinstance(row, slice):
            return self._slice(range(*row.indices(len(self))))
        rows = len(self)
        row = operator.index(row)
        if not -rows <= row < rows:
            raise IndexError(f"index {row} is out of range for a batch of {rows} rows")
        row %= rows
        return self.ids[self.row_offsets[row] : self.row_offsets[row + 1]]

    def _slice(self, rows: range) -> RaggedBatch:
        """Return a batch of some rows. With overflow, the arrays with one entry per text keep all texts."""
        per_row: slice | npt.NDArray[np.intp]
        per_token: slice | npt.NDArray[np.int64]
        if rows.step == 1:
            stop = max(rows.stop, rows.start)
            per_row = slice(rows.start, stop)
            row_offsets = self.row_offsets[rows.start : stop + 1] - self.row_offsets[rows.start]
            per_token = slice(int(self.row_offsets[rows.start]), int(self.row_offsets[stop]))
        else:
            per_row = np.array(rows, np.intp)
            lengths = self.lengths[per_row]
            row_offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
            within_row = np.arange(row_offsets[-1]) - np.repeat(row_offsets[:-1], lengths)
            per_token = np.repeat(self.row_offsets[per_row], lengths) + within_row
        texts = per_row if self.overflow_to_sample is None else slice(None)
        return replace(
            self,
            ids=self.ids[per_token],
            row_offsets=row_offsets,
            truncated=self.truncated[texts],
            offsets=None if self.offsets is None else self.offsets[per_token],
            word_ids=None if self.word_ids is None else self.word_ids[per_token],
            sequence_ids=None if self.sequence_ids is None else self.sequence_ids[per_token],
            overflow_to_sample=None if self.overflow_to_sample is None else self.overflow_to_sample[per_row],
            n_tokens=None if self.n_tokens is None else self.n_tokens[texts],
        )

    def __iter__(self) -> Iterator[npt.NDArray[np.uint32]]:
        ends = self.row_offsets.tolist()
        return (self.ids[start:end] for start, end in pairwise(ends))

    def __repr__(self) -> str:
        optional = ("offsets", "word_ids", "sequence_ids", "overflow_to_sample", "n_tokens")
        more = "".join(f", {name}" for name in optional if getattr(self, name) is not None)
        return (
            f"RaggedBatch({len(self)} rows, {len(self.ids)} tokens, {int(self.truncated.sum())} texts truncated{more})"
        )

    def _repr_html_(self) -> str:
        return rows_html(repr(self), self.ids, self.row_offsets)

    def to_list(self) -> list[list[int]]:
        """Return the ids as a list of lists.

        Returns
        -------
        list of list of int
            A list for each row.

        Examples
        --------
        >>> import wordpiece_bert as wb
        >>> tokenizer = wb.Tokenizer.from_vocab(["[UNK]", "a", "cat", "##s"])
        >>> batch = tokenizer.encode_batch(["a cat", "cats"])
        >>> batch.to_list()
        [[1, 2], [2, 3]]
        """
        return _rows(self.ids, self.row_offsets)

    def __arrow_c_schema__(self) -> object:
        return _core._arrow_schema([("ids", self.ids)], self.row_offsets, single=True)

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        """Export the ids without a copy, as large_list<uint32>; `requested_schema` is ignored."""
        return _core._arrow_array([("ids", self.ids)], self.row_offsets, single=True)

    def to_arrow(self) -> pyarrow.LargeListArray:
        """Return the ids as a pyarrow array, large_list<uint32> [rows], without a copy.

        Other libraries accept the batch itself: ``polars.Series(batch)``.

        Returns
        -------
        pyarrow.LargeListArray
            One list for each row.

        Raises
        ------
        InputError
            pyarrow is not installed.

        Examples
        --------
        >>> import wordpiece_bert as wb
        >>> tokenizer = wb.Tokenizer.from_vocab(["[UNK]", "a", "cat", "##s"])
        >>> batch = tokenizer.encode_batch(["a cat", "cats"])
        >>> batch.to_arrow().type
        LargeListType(large_list<item: uint32>)
        """
        try:
            import pyarrow
        except ImportError as cause:
            raise InputError("to_arrow needs pyarrow: pip install 'wordpiece-bert[arrow]'") from cause
        return pyarrow.array(self)

    def to_arrow_table(self) -> ArrowTable:
        """Return the batch as a table for Arrow libraries. It needs no such library itself.

        Returns
        -------
        ArrowTable
            The columns ``ids``, large_list<uint32>; if requested ``offsets``,
            large_list<fixed_size_list<int64>[2]>, ``word_ids`` and ``sequence_ids``, large_list<int32> with null for
            none, ``overflow_to_sample`` and ``n_tokens``, int64; and ``truncated``, bool. Values of a text are repeated
            for each of its rows. Lists and int64 columns share the memory of the batch, except for ``n_tokens`` if
            windows are rows.

        Examples
        --------
        >>> import wordpiece_bert as wb
        >>> tokenizer = wb.Tokenizer.from_vocab(["[UNK]", "a", "cat", "##s"])
        >>> batch = tokenizer.encode_batch(["a cat", "cats"], return_offsets=True)
        >>> batch.to_arrow_table()
        ArrowTable(2 rows: ids, offsets, truncated)
        """
        per_row = {"n_tokens": self.n_tokens, "truncated": self.truncated}
        if self.overflow_to_sample is not None:
            per_row = {name: None if a is None else a[self.overflow_to_sample] for name, a in per_row.items()}
        columns = {
            "ids": self.ids,
            "offsets": self.offsets,
            "word_ids": self.word_ids,
            "sequence_ids": self.sequence_ids,
            "overflow_to_sample": self.overflow_to_sample,
            **per_row,
        }
        return ArrowTable({name: array for name, array in columns.items() if array is not None}, self.row_offsets)


#: What sets each field of a batch. `__init__` of a frozen dataclass calls ``object.__setattr__``, which looks up the
#: name again, for each field: a fifth of the instructions of encoding one text.
_FIELDS: tuple[tuple[str, Callable[[RaggedBatch, Any], None]], ...] = tuple(
    (field.name, vars(RaggedBatch)[field.name].__set__) for field in fields(RaggedBatch)
)


def ragged(rows: _core.Rows) -> RaggedBatch:
    """Return rows of the extension as a batch, without a copy."""
    batch = object.__new__(RaggedBatch)
    for name, put in _FIELDS:
        put(batch, getattr(rows, name))
    return batch


class CharSpan(NamedTuple):
    """The characters of a token or a word in its text."""

    start: int
    end: int


class TokenSpan(NamedTuple):
    """The tokens of a word in its row."""

    start: int
    end: int


# A mapping to Any, so that ``model(**inputs)`` is well-typed; what is read from it by name has the type of the values.
class BatchEncoding(MutableMapping[str, Any], Generic[Value]):
    """Model inputs by name, as in transformers: ``model(**inputs)``.

    A value is ``inputs["input_ids"]`` or ``inputs.input_ids``: a C-contiguous array [rows, length] (``offset_mapping``
    [rows, length, 2]; ``length`` and ``overflow_to_sample_mapping`` [rows]), or a list with ``return_tensors=None``.
    Values can be set, deleted and popped, as in a dict.

    ``inputs[0]`` is the `Encoding` of row 0, ``inputs.encodings`` those of all rows, and `tokens`, `word_ids`,
    `char_to_token` and so on ask one of them. They are computed when the first of these is used, from the texts, which
    the object keeps a reference to until then. A pickle or a copy has the values only.

    Parameters
    ----------
    data : mapping, optional
        The values by name.
    truncated : ndarray of bool, optional
        Whether the text of each row was truncated; none by default.

    Examples
    --------
    >>> from wordpiece_bert import Tokenizer
    >>> tokenizer = Tokenizer.from_vocab(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "new", "york", "##er"])
    >>> inputs = tokenizer(["New Yorker", "york"], padding=True)
    >>> list(inputs)
    ['input_ids', 'token_type_ids', 'attention_mask']
    >>> inputs["input_ids"]
    array([[2, 4, 5, 6, 3],
           [2, 5, 3, 0, 0]])
    >>> inputs[0].tokens
    ['[CLS]', 'new', 'york', '##er', '[SEP]']

    Attributes
    ----------
    truncated : ndarray of bool
        Whether the text of each row was truncated, [rows].
    """

    __slots__ = ("_data", "_encode", "_encodings", "truncated")

    truncated: npt.NDArray[np.bool_]
    _encode: Callable[[], list[Encoding]] | None
    _encodings: list[Encoding] | None

    def __init__(
        self,
        data: Mapping[str, Any] | None = None,
        truncated: npt.NDArray[np.bool_] | None = None,
        *,
        _encode: Callable[[], list[Encoding]] | None = None,
    ) -> None:
        self._data = dict(data or {})
        self.truncated = np.zeros(0, np.bool_) if truncated is None else truncated
        self._encode = _encode
        self._encodings = None

    @overload
    def __getitem__(self, name: str) -> Value: ...

    @overload
    def __getitem__(self, name: int) -> Encoding: ...

    @overload
    def __getitem__(self, name: slice) -> list[Encoding]: ...

    def __getitem__(self, name: str | int | slice) -> Any:
        """Return the value of a name, or the `Encoding` of a row, or those of a slice of the rows."""
        if isinstance(name, str):
            return self._data[name]
        return self._all_encodings()[name]

    def __setitem__(self, name: str, value: Any) -> None:
        if not isinstance(name, str):
            raise InputError(f"a name must be a str, not {name!r}")
        self._data[name] = value

    def __delitem__(self, name: str) -> None:
        del self._data[name]

    def __getattr__(self, name: str) -> Value:
        if name.startswith("_"):  # during unpickling _data does not exist yet
            raise AttributeError(name)
        try:
            value: Value = self._data[name]
        except KeyError:
            raise AttributeError(f"no {name!r} in this BatchEncoding, which has {', '.join(self._data)}") from None
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)

    def __contains__(self, name: object) -> bool:
        return name in self._data

    def __repr__(self) -> str:
        return f"BatchEncoding({self._data!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return BatchEncoding, (self._data, self.truncated)

    def _repr_html_(self) -> str:
        return arrays_html("BatchEncoding", self._data)

    def copy(self) -> BatchEncoding[Value]:
        """Return a copy with the same values.

        Returns
        -------
        BatchEncoding
            Another object over the same values.

        Examples
        --------
        >>> from wordpiece_bert import Tokenizer
        >>> tokenizer = Tokenizer.from_vocab(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "new", "york", "##er"])
        >>> inputs = tokenizer(["New Yorker", "york"], padding=True)
        >>> inputs.copy()["input_ids"] is inputs["input_ids"]
        True
        """
        return BatchEncoding(self._data, self.truncated)

    @property
    def data(self) -> dict[str, Any]:
        """The dict of the values."""
        return self._data

    def to(self, device: object, *, non_blocking: bool = False) -> Self:
        """Move the values that are tensors of PyTorch to a device, in place.

        Parameters
        ----------
        device : str, int or torch.device
            The device. Arrays and lists are always in the memory of the CPU.
        non_blocking : bool, default False
            What `torch.Tensor.to` is given.

        Returns
        -------
        BatchEncoding
            This object.

        Raises
        ------
        InputError
            A value is an array or a list, and the device is not the CPU.

        Examples
        --------
        >>> from wordpiece_bert import Tokenizer
        >>> tokenizer = Tokenizer.from_vocab(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "new", "york", "##er"])
        >>> inputs = tokenizer(["New Yorker", "york"], padding=True)
        >>> inputs.to("cpu") is inputs
        True
        """
        for name, value in self._data.items():
            if is_tensor(value):
                self._data[name] = value.to(device=device, non_blocking=non_blocking)
            elif str(device) != "cpu":
                raise InputError(
                    f"{name} is {type(value).__name__}, which is in the memory of the CPU and cannot be moved to "
                    f"{device!r}: use return_tensors='pt' for tensors of PyTorch"
                )
        return self

    def convert_to_tensors(self, tensor_type: str | None = None, prepend_batch_axis: bool = False) -> Self:
        """Convert the values, in place.

        Parameters
        ----------
        tensor_type : {"np", "pt"}, optional
            ``"np"`` for arrays, ``"pt"`` for tensors of PyTorch; None changes nothing.
        prepend_batch_axis : bool, default False
            Put a dimension of 1 before those of each value.

        Returns
        -------
        BatchEncoding
            This object.

        Raises
        ------
        InputError
            Another type, rows that differ in length, or ``"pt"`` without PyTorch.

        Examples
        --------
        >>> from wordpiece_bert import Tokenizer
        >>> tokenizer = Tokenizer.from_vocab(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "new", "york", "##er"])
        >>> inputs = tokenizer("york", return_tensors=None)
        >>> inputs["input_ids"]
        [2, 5, 3]
        >>> inputs.convert_to_tensors("np", prepend_batch_axis=True)["input_ids"]
        array([[2, 5, 3]])
        """
        if tensor_type is None:
            return self
        check_tensor_type(tensor_type)
        arrays: dict[str, Any] = {}
        for name, value in self._data.items():
            try:
                array = value if is_tensor(value) else np.asarray([value] if prepend_batch_axis else value)
            except ValueError as cause:
                raise InputError(
                    f"the rows of {name} differ in length and do not form an array: pass padding=True"
                ) from cause
            empty = isinstance(array, np.ndarray) and array.size == 0 and not isinstance(value, np.ndarray)
            arrays[name] = array.astype(np.int64) if empty else array
        self._data.update(to_torch(arrays) if tensor_type == "pt" else arrays)
        return self

    # --- the encodings of the rows

    def _all_encodings(self) -> list[Encoding]:
        if self._encodings is None:
            if self._encode is None:
                raise InputError(
                    "this BatchEncoding has no encodings: the result of a call, tokenizer(...), has them, and copies, "
                    "pickles and the results of pad do not"
                )
            self._encodings = self._encode()
            self._encode = None  # releases the texts
        return self._encodings

    def _located(self, index: int, inner: int | None) -> tuple[Encoding, int]:
        """Return the encoding and the position in it: ``(position)`` of row 0 or ``(row, position)``."""
        row, position = (0, index) if inner is None else (index, inner)
        return self._all_encodings()[row], position

    def _token(self, index: int, inner: int | None) -> tuple[Encoding, int]:
        """Like `_located`, for tokens, where a negative position counts from the end."""
        encoding, position = self._located(index, inner)
        return encoding, position + len(encoding) if position < 0 else position

    @property
    def encodings(self) -> list[Encoding] | None:
        """The `Encoding` of each row; None for a copy and for the result of `Tokenizer.pad`."""
        return None if self._encode is None and self._encodings is None else self._all_encodings()

    @property
    def is_fast(self) -> bool:
        """Whether there are encodings, as for the tokenizers of transformers that are written in Rust."""
        return self._encode is not None or self._encodings is not None

    @property
    def n_sequences(self) -> int | None:
        """1 for texts, 2 for pairs; None without encodings."""
        encodings = self.encodings
        return encodings[0].n_sequences if encodings else None

    def tokens(self, batch_index: int = 0) -> list[str]:
        """Return the tokens of a row.

        Parameters
        ----------
        batch_index : int, default 0
            The row.

        Returns
        -------
        list of str
            The tokens, special ones and padding included.

        Examples
        --------
        >>> from wordpiece_bert import Tokenizer
        >>> tokenizer = Tokenizer.from_vocab(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "new", "york", "##er"])
        >>> inputs = tokenizer(["New Yorker", "york"], padding=True)
        >>> inputs.tokens(1)
        ['[CLS]', 'york', '[SEP]', '[PAD]', '[PAD]']
        """
        return self._all_encodings()[batch_index].tokens

    def word_ids(self, batch_index: int = 0) -> list[int | None]:
        """Return the index of the word of each token of a row; None for special tokens and padding.

        Parameters
        ----------
        batch_index : int, default 0
            The row.

        Returns
        -------
        list of int or None
            An entry for each token.

        Examples
        --------
        >>> from wordpiece_bert import Tokenizer
        >>> tokenizer = Tokenizer.from_vocab(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "new", "york", "##er"])
        >>> inputs = tokenizer(["New Yorker", "york"], padding=True)
        >>> inputs.word_ids(0)
        [None, 0, 1, 1, None]
        """
        return self._all_encodings()[batch_index].word_ids

    def sequence_ids(self, batch_index: int = 0) -> list[int | None]:
        """Return for each token of a row which text of a pair it is from, 0 or 1; None for special tokens.

        Parameters
        ----------
        batch_index : int, default 0
            The row.

        Returns
        -------
        list of int or None
            An entry for each token.

        Examples
        --------
        >>> from wordpiece_bert import Tokenizer
        >>> tokenizer = Tokenizer.from_vocab(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "new", "york", "##er"])
        >>> inputs = tokenizer("New", "york")
        >>> inputs.sequence_ids()
        [None, 0, None, 1, None]
        """
        return self._all_encodings()[batch_index].sequence_ids

    def token_to_sequence(self, batch_or_token_index: int, token_index: int | None = None) -> int | None:
        """Return which text a token is from, 0 or 1: ``(token)`` of row 0, or ``(row, token)``.

        Parameters
        ----------
        batch_or_token_index : int
            The token; or the row, and then `token_index` is the token.
        token_index : int, optional
            The token, after the row.

        Returns
        -------
        int or None
            The number of the text, or None for special tokens.

        Examples
        --------
        >>> from wordpiece_bert import Tokenizer
        >>> tokenizer = Tokenizer.from_vocab(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "new", "york", "##er"])
        >>> inputs = tokenizer("New", "york")
        >>> inputs.token_to_sequence(3)
        1
        """
        encoding, token = self._token(batch_or_token_index, token_index)
        return encoding.token_to_sequence(token)

    def token_to_word(self, batch_or_token_index: int, token_index: int | None = None) -> int | None:
        """Return the index of a token's word: ``(token)`` of row 0, or ``(row, token)``.

        Parameters
        ----------
        batch_or_token_index : int
            The token; or the row, and then `token_index` is the token.
        token_index : int, optional
            The token, after the row.

        Returns
        -------
        int or None
            The index of the word, or None for special tokens.

        Examples
        --------
        >>> from wordpiece_bert import Tokenizer
        >>> tokenizer = Tokenizer.from_vocab(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "new", "york", "##er"])
        >>> inputs = tokenizer(["New Yorker", "york"], padding=True)
        >>> inputs.token_to_word(0, 3)
        1
        """
        encoding, token = self._token(batch_or_token_index, token_index)
        return encoding.token_to_word(token)

    def token_to_chars(self, batch_or_token_index: int, token_index: int | None = None) -> CharSpan | None:
        """Return the characters of a token: ``(token)`` of row 0, or ``(row, token)``; None for special tokens.

        Parameters
        ----------
        batch_or_token_index : int
            The token; or the row, and then `token_index` is the token.
        token_index : int, optional
            The token, after the row.

        Returns
        -------
        CharSpan or None
            The span of characters, ``start`` and ``end``.

        Examples
        --------
        >>> from wordpiece_bert import Tokenizer
        >>> tokenizer = Tokenizer.from_vocab(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "new", "york", "##er"])
        >>> inputs = tokenizer(["New Yorker", "york"], padding=True)
        >>> inputs.token_to_chars(0, 3)
        CharSpan(start=8, end=10)
        """
        encoding, token = self._token(batch_or_token_index, token_index)
        span = encoding.token_to_chars(token)
        return None if span is None else CharSpan(*span)

    def char_to_token(
        self, batch_or_char_index: int, char_index: int | None = None, sequence_index: int = 0
    ) -> int | None:
        """Return the token of a character: ``(char)`` of row 0, or ``(row, char)``; None if it is in no token.

        Parameters
        ----------
        batch_or_char_index : int
            The character; or the row, and then `char_index` is the character.
        char_index : int, optional
            The character, after the row.
        sequence_index : int, default 0
            Which text of a pair.

        Returns
        -------
        int or None
            The index of the token in its row.

        Examples
        --------
        >>> from wordpiece_bert import Tokenizer
        >>> tokenizer = Tokenizer.from_vocab(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "new", "york", "##er"])
        >>> inputs = tokenizer(["New Yorker", "york"], padding=True)
        >>> inputs.char_to_token(0, 4)
        2
        """
        encoding, char = self._located(batch_or_char_index, char_index)
        return encoding.char_to_token(char, sequence_index)

    def char_to_word(
        self, batch_or_char_index: int, char_index: int | None = None, sequence_index: int = 0
    ) -> int | None:
        """Return the index of the word of a character: ``(char)`` of row 0, or ``(row, char)``.

        Parameters
        ----------
        batch_or_char_index : int
            The character; or the row, followed by the character.
        char_index : int, optional
            The character, after the row.
        sequence_index : int, default 0
            Which text of a pair.

        Returns
        -------
        int or None
            The index of the word, or None outside of words.

        Examples
        --------
        >>> from wordpiece_bert import Tokenizer
        >>> tokenizer = Tokenizer.from_vocab(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "new", "york", "##er"])
        >>> inputs = tokenizer(["New Yorker", "york"], padding=True)
        >>> inputs.char_to_word(0, 4)
        1
        """
        encoding, char = self._located(batch_or_char_index, char_index)
        return encoding.char_to_word(char, sequence_index)

    def word_to_tokens(
        self, batch_or_word_index: int, word_index: int | None = None, sequence_index: int = 0
    ) -> TokenSpan | None:
        """Return the tokens of a word: ``(word)`` of row 0, or ``(row, word)``; None if there is no such word.

        Parameters
        ----------
        batch_or_word_index : int
            The word; or the row, and then `word_index` is the word.
        word_index : int, optional
            The word, after the row.
        sequence_index : int, default 0
            Which text of a pair.

        Returns
        -------
        TokenSpan or None
            The span of tokens, ``start`` and ``end``.

        Examples
        --------
        >>> from wordpiece_bert import Tokenizer
        >>> tokenizer = Tokenizer.from_vocab(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "new", "york", "##er"])
        >>> inputs = tokenizer(["New Yorker", "york"], padding=True)
        >>> inputs.word_to_tokens(0, 1)
        TokenSpan(start=2, end=4)
        """
        encoding, word = self._located(batch_or_word_index, word_index)
        span = encoding.word_to_tokens(word, sequence_index)
        return None if span is None else TokenSpan(*span)

    def word_to_chars(
        self, batch_or_word_index: int, word_index: int | None = None, sequence_index: int = 0
    ) -> CharSpan | None:
        """Return the characters of a word: ``(word)`` of row 0, or ``(row, word)``; None if there is no such word.

        Parameters
        ----------
        batch_or_word_index : int
            The word; or the row, and then `word_index` is the word.
        word_index : int, optional
            The word, after the row.
        sequence_index : int, default 0
            Which text of a pair.

        Returns
        -------
        CharSpan or None
            The span of characters, ``start`` and ``end``.

        Examples
        --------
        >>> from wordpiece_bert import Tokenizer
        >>> tokenizer = Tokenizer.from_vocab(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "new", "york", "##er"])
        >>> inputs = tokenizer(["New Yorker", "york"], padding=True)
        >>> inputs.word_to_chars(0, 1)
        CharSpan(start=4, end=10)
        """
        encoding, word = self._located(batch_or_word_index, word_index)
        span = encoding.word_to_chars(word, sequence_index)
        return None if span is None else CharSpan(*span)


def check_tensor_type(tensor_type: object) -> None:
    """Check a `return_tensors`; an `InputError` for anything but None, ``"np"`` and ``"pt"``."""
    if tensor_type is not None and not (isinstance(tensor_type, str) and tensor_type in ("np", "pt")):
        raise InputError(
            f"return_tensors must be 'np', 'pt' or None, not {tensor_type!r}; other libraries convert NumPy arrays"
        )


def to_torch(arrays: Mapping[str, Any], instead: str = "return_tensors='np'") -> dict[str, Any]:
    """Convert arrays to tensors of PyTorch that share their memory.

    Parameters
    ----------
    arrays : mapping
        The arrays by name; tensors among them stay as they are.
    instead : str
        The argument of the call that gives arrays, for the message.

    Raises
    ------
    MissingPackageError
        PyTorch is not installed.
    """
    try:
        import torch  # type: ignore[import-not-found, unused-ignore]
    except ImportError as cause:
        raise MissingPackageError(f"tensors need PyTorch: pip install torch, or use {instead} for arrays") from cause
    return {name: array if is_tensor(array) else torch.from_numpy(array) for name, array in arrays.items()}


def is_tensor(value: object) -> bool:
    """Whether a value is a tensor of PyTorch; without importing it."""
    return type(value).__module__.partition(".")[0] == "torch"


def model_inputs(
    rows: _core.Rows,
    *,
    dtype: np.dtype[Any] | None,
    single: bool,
    return_length: bool,
    encode: Callable[[], list[Encoding]],
) -> BatchEncoding:
    """Return rows under the names and in the shapes of transformers.

    Parameters
    ----------
    rows : _core.Rows
        The encoded rows.
    dtype : numpy.dtype or None
        int32 or int64 for arrays of that type; None for lists.
    single : bool
        The input was one text, not a batch: lists are then those of its row, unless windows are rows.
    return_length : bool
        Include the length of each row, padding included.
    encode : callable
        Computes the encodings of the rows.

    Raises
    ------
    InputError
        Arrays are requested and the rows differ in length, or a value does not fit int32.
    """
    per_token = (
        ("input_ids", rows.ids),
        ("token_type_ids", rows.type_ids),
        ("attention_mask", rows.attention_mask),
        ("special_tokens_mask", rows.special_tokens_mask),
        ("offset_mapping", rows.offsets),
    )
    per_row = {"length": np.diff(rows.row_offsets)} if return_length else {}
    truncated, samples = rows.truncated, rows.overflow_to_sample
    if samples is not None:
        per_row["overflow_to_sample_mapping"] = samples
        truncated = truncated[samples]
    data: dict[str, Any] = {}
    if dtype is None:
        for name, flat in per_token:
            if flat is not None:
                listed = _rows(flat, rows.row_offsets)
                data[name] = listed[0] if single and samples is None else listed
        data |= {name: array.tolist() for name, array in per_row.items()}
        return BatchEncoding(data, truncated, _encode=encode)
    shape = rows.shape
    if shape is None:
        lengths = np.diff(rows.row_offsets)
        raise InputError(
            f"rows of {lengths.min()} to {lengths.max()} tokens do not form an array: pass padding=True (and "
            "truncation=True if padding='max_length' leaves longer rows), or return_tensors=None for lists"
        )
    for name, flat in per_token:
        if flat is not None:
            # Without a call where nothing is to be done: one text takes a few microseconds in all.
            cast = flat if flat.dtype is dtype else _cast(name, flat, dtype)
            data[name] = cast.reshape(shape if flat.ndim == 1 else (*shape, 2))
    for name, array in per_row.items():
        data[name] = _cast(name, array, dtype)
    return BatchEncoding(data, truncated, _encode=encode)


def _cast(name: str, array: npt.NDArray[Any], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    if array.dtype == dtype:
        return array
    if dtype == np.int32 and array.size and array.max() > np.iinfo(np.int32).max:
        raise InputError(f"{name} has {array.max()}, which does not fit int32: use dtype='int64'")
    return array.astype(dtype, copy=False)


def _rows(flat: npt.NDArray[Any], row_offsets: npt.NDArray[np.int64]) -> list[list[Any]]:
    """Split a flat array [n] or [n, 2] into one list per row; pairs become tuples."""
    values = flat.tolist()
    if flat.ndim == 2:
        values = list(map(tuple, values))
    ends = row_offsets.tolist()
    return [values[start:end] for start, end in pairwise(ends)]
