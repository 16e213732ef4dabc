"""`BatchEncoding`: model inputs by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Never, Self, overload

from wordpiece_bert._internal.lazy import numpy as np
from wordpiece_bert._internal.notebook import arrays_html
from wordpiece_bert._internal.peer_arguments import BATCH_ENCODING_ARGUMENTS, refuse, without_others
from wordpiece_bert._internal.peer_names import INSTEAD_IN_BATCHES
from wordpiece_bert._internal.tensors import check_tensor_type, is_tensor, to_torch
from wordpiece_bert.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from wordpiece_bert._core import Encoding

# The type of the values of a `BatchEncoding`: arrays, unless a call asks for lists or tensors.
if TYPE_CHECKING:
    from typing_extensions import TypeVar  # the default makes BatchEncoding alone a type, too

    #: Ids, masks and the like.
    IdArray = npt.NDArray[np.integer[Any]]
    Value = TypeVar("Value", default=IdArray)
else:
    from typing import TypeVar

    Value = TypeVar("Value")


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

    ``inputs[0]`` is the `Encoding` of row 0, ``inputs.encodings`` the list for all rows, and `tokens`, `word_ids`,
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
    >>> tokenizer = Tokenizer.from_vocab(
    ...     ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "new", "york", "##er"]
    ... )
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

    @without_others
    def __init__(
        self,
        data: Mapping[str, Any] | None = None,
        truncated: npt.NDArray[np.bool_] | None = None,
        *,
        _encode: Callable[[], list[Encoding]] | None = None,
        **others: Never,
    ) -> None:
        if others:
            refuse("BatchEncoding", others, BATCH_ENCODING_ARGUMENTS)
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
        """Return the value of a name, or the `Encoding` of a row, or a list of them for a slice of the rows."""
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
            if name in INSTEAD_IN_BATCHES:
                raise AttributeError(f"BatchEncoding has no attribute {name!r}: {INSTEAD_IN_BATCHES[name]}") from None
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
        >>> tokenizer = Tokenizer.from_vocab(
        ...     ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "new", "york", "##er"]
        ... )
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
        >>> tokenizer = Tokenizer.from_vocab(
        ...     ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "new", "york", "##er"]
        ... )
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
            Put a dimension of 1 before the dimensions of each value.

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
        >>> tokenizer = Tokenizer.from_vocab(
        ...     ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "new", "york", "##er"]
        ... )
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
        >>> tokenizer = Tokenizer.from_vocab(
        ...     ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "new", "york", "##er"]
        ... )
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
        >>> tokenizer = Tokenizer.from_vocab(
        ...     ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "new", "york", "##er"]
        ... )
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
        >>> tokenizer = Tokenizer.from_vocab(
        ...     ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "new", "york", "##er"]
        ... )
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
        >>> tokenizer = Tokenizer.from_vocab(
        ...     ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "new", "york", "##er"]
        ... )
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
        >>> tokenizer = Tokenizer.from_vocab(
        ...     ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "new", "york", "##er"]
        ... )
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
        >>> tokenizer = Tokenizer.from_vocab(
        ...     ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "new", "york", "##er"]
        ... )
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
        >>> tokenizer = Tokenizer.from_vocab(
        ...     ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "new", "york", "##er"]
        ... )
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
        >>> tokenizer = Tokenizer.from_vocab(
        ...     ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "new", "york", "##er"]
        ... )
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
        >>> tokenizer = Tokenizer.from_vocab(
        ...     ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "new", "york", "##er"]
        ... )
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
        >>> tokenizer = Tokenizer.from_vocab(
        ...     ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "new", "york", "##er"]
        ... )
        >>> inputs = tokenizer(["New Yorker", "york"], padding=True)
        >>> inputs.word_to_chars(0, 1)
        CharSpan(start=4, end=10)
        """
        encoding, word = self._located(batch_or_word_index, word_index)
        span = encoding.word_to_chars(word, sequence_index)
        return None if span is None else CharSpan(*span)
