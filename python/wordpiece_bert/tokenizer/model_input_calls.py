"""The call of a tokenizer, and what belongs to it: model inputs as in transformers."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

from wordpiece_bert import _core
from wordpiece_bert._internal.checks import check_flags, check_instance, checked_flag, iterates, whole_number
from wordpiece_bert._internal.lazy import lazy_module
from wordpiece_bert._internal.lazy import numpy as np
from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert._internal.tensors import check_tensor_type
from wordpiece_bert._internal.warn import warn
from wordpiece_bert.errors import InputError
from wordpiece_bert.tokenizer.call_options import without_unknown_maximum
from wordpiece_bert.tokenizer.encoding_calls import EncodingCalls, warn_many_windows
from wordpiece_bert.tokenizer.option_types import CallOptions, EncodeOptions
from wordpiece_bert.tokenizer.parameters import CALLING, ENCODING
from wordpiece_bert.tokenizer.tokenizer_base import requested
from wordpiece_bert.tokenizer.vocabulary_calls import VocabularyCalls

if TYPE_CHECKING:
    import numpy.typing as npt

    from wordpiece_bert._core import Encoding
    from wordpiece_bert.tokenizer import map_function, named_arrays
    from wordpiece_bert.tokenizer.batch_encoding import BatchEncoding
    from wordpiece_bert.tokenizer.option_types import OffsetUnit, Side, Strategy
    from wordpiece_bert.tokenizer.padding import Encoded
    from wordpiece_bert.tokenizer.tokenizer_base import Batch, Ids, Text

    class _InputOptions(EncodeOptions, total=False):
        """The options of a call by keyword, besides the type of its result."""

        text_target: Text | Batch | None
        text_pair_target: Text | Batch | None
        is_split_into_words: bool
        return_token_type_ids: bool | None
        return_attention_mask: bool | None
        return_overflowing_tokens: bool
        return_special_tokens_mask: bool
        return_offsets_mapping: bool
        return_length: bool
        verbose: bool
        tokenizer_kwargs: Mapping[str, Any] | None
        split_special_tokens: bool | None
        max_target_length: int | None
        dtype: npt.DTypeLike
        threads: int | None

else:
    map_function = lazy_module("wordpiece_bert.tokenizer.map_function")
    named_arrays = lazy_module("wordpiece_bert.tokenizer.named_arrays")


class ModelInputCalls(EncodingCalls, VocabularyCalls):
    """The call ``tokenizer(...)``, and methods on its results."""

    __slots__ = ()

    # Type checkers know the arguments after the first two by name.
    @overload
    def __call__(
        self,
        text: Text | Batch | None = None,
        text_pair: Text | Batch | None = None,
        *others: Any,
        return_tensors: Literal["np"] = "np",
        **options: Unpack[_InputOptions],
    ) -> BatchEncoding: ...

    @overload
    def __call__(
        self,
        text: Text | Batch | None = None,
        text_pair: Text | Batch | None = None,
        *others: Any,
        return_tensors: Literal["np", "pt"] | None,
        **options: Unpack[_InputOptions],
    ) -> BatchEncoding[Any]: ...

    @completed_by(CALLING, ENCODING)  # type: ignore[misc] # the overloads leave the types of `others` open
    def __call__(
        self,
        text: Text | Batch | None = None,
        text_pair: Text | Batch | None = None,
        text_target: Text | Batch | None = None,
        text_pair_target: Text | Batch | None = None,
        add_special_tokens: bool = True,
        padding: bool | Literal["longest", "max_length", "do_not_pad"] | None = None,
        truncation: bool | Strategy | Literal["do_not_truncate"] | None = None,
        max_length: int | None = None,
        stride: int | None = None,
        is_split_into_words: bool = False,
        pad_to_multiple_of: int | None = None,
        padding_side: Side | None = None,
        return_tensors: Literal["np", "pt"] | None = "np",
        return_token_type_ids: bool | None = None,
        return_attention_mask: bool | None = None,
        return_overflowing_tokens: bool = False,
        return_special_tokens_mask: bool = False,
        return_offsets_mapping: bool = False,
        return_length: bool = False,
        verbose: bool = True,
        tokenizer_kwargs: Mapping[str, Any] | None = None,
        *,
        truncation_side: Side | None = None,
        split_special_tokens: bool | None = None,
        encode_special_tokens: bool = False,
        offset_unit: OffsetUnit = "char",
        max_target_length: int | None = None,
        dtype: npt.DTypeLike = "int64",
        threads: int | None = None,
    ) -> BatchEncoding[Any]:
        """Encode texts to model inputs, with the arguments and results of transformers' tokenizers.

        The truncation and padding of the tokenizer's file are ignored. `max_length` alone turns truncation on, as in
        `encode`.

        Parameters
        ----------
        text : str, iterable or Arrow column
            A text, or texts and pairs as for `encode_batch`. A single text makes a batch of one row.
        text_pair : str, iterable or Arrow column, optional
            The second text, or as many second texts as there are texts.
        text_target, text_pair_target : str, iterable or Arrow column, optional
            Texts whose ids become ``labels``. Without `text` they are encoded as if they were `text`.
        is_split_into_words : bool, default False
            Each text is a list of words.
        return_tensors : {"np", "pt", None}, default "np"
            ``"np"`` for arrays, ``"pt"`` for tensors of PyTorch, None for lists; for a single text, the lists of its
            row.
        return_overflowing_tokens : bool, default False
            Add the further windows of a truncated text as rows; ``overflow_to_sample_mapping`` has the index of each
            row's text.
        return_special_tokens_mask, return_offsets_mapping, return_length : bool, default False
            Add ``special_tokens_mask``, ``offset_mapping``, ``length`` (padding included).
        verbose : bool, default True
            Warn if truncation or padding needs a maximum length that is not known.
        tokenizer_kwargs : mapping, optional
            Further options by name. They replace the arguments of the same names.
        split_special_tokens, encode_special_tokens : bool, default False
            Two names of one option: encode special tokens that occur in a text as ordinary text.
        max_target_length : int, optional
            The `max_length` of `text_target`; by default the `max_length` of `text`.

        Returns
        -------
        BatchEncoding
            ``input_ids``, ``token_type_ids``, ``attention_mask`` and the other requested arrays, [rows, length] each.

        Raises
        ------
        InputError
            As for `encode_batch`; also if arrays are requested and rows differ in length (pass ``padding=True``), if
            there are more or fewer second texts than texts, and if the truncation length is not a multiple of
            `pad_to_multiple_of`.

        Warns
        -----
        UserWarning
            ``truncation=True`` or ``padding="max_length"`` without a `max_length`, and the tokenizer has no
            `model_max_length`: neither is done. Or a `max_length` with ``padding=True`` and no truncation: it has no
            effect.

        Examples
        --------
        >>> from wordpiece_bert import Tokenizer
        >>> tokenizer = Tokenizer.from_vocab(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "cat"])
        >>> inputs = tokenizer(["a cat", "cat"], padding=True)
        >>> inputs["input_ids"]
        array([[2, 4, 5, 3],
               [2, 5, 3, 0]])
        >>> inputs.attention_mask
        array([[1, 1, 1, 1],
               [1, 1, 1, 0]])
        """
        if tokenizer_kwargs is not None:
            check_instance("tokenizer_kwargs", tokenizer_kwargs, Mapping, "a dict of options")
            own = {name: value for name, value in locals().items() if name not in ("self", "tokenizer_kwargs")}
            if unknown := sorted(tokenizer_kwargs.keys() - own.keys()):
                raise InputError(f"unknown option {unknown[0]!r} in tokenizer_kwargs; the options are {', '.join(own)}")
            return self(**{**own, **tokenizer_kwargs})
        if text is None and text_target is None:
            raise InputError("You need to specify either `text` or `text_target`.")
        if split_special_tokens is not None:
            encode_special_tokens = checked_flag("split_special_tokens", split_special_tokens)
        check_tensor_type(return_tensors)
        given: tuple[Any, ...] = (
            is_split_into_words,
            add_special_tokens,
            truncation,
            max_length,
            stride,
            truncation_side,
            padding,
            pad_to_multiple_of,
            padding_side,
            offset_unit,
            encode_special_tokens,
        )
        targets = given
        if max_target_length is not None:
            targets = CallOptions._make(given)._replace(max_length=max_target_length)
        # Not for the usual call, with a length and truncation=True, of which nothing is to be said.
        if self._defaults.model_max_length is None if max_length is None else truncation is not True:
            off: str | None = None
            if text_target is not None:
                targets, off = without_unknown_maximum(self._defaults, CallOptions._make(targets))
            if text is not None:
                given, off = without_unknown_maximum(self._defaults, CallOptions._make(given))
            if off and checked_flag("verbose", verbose):
                warn(off)
        names = self._settings.model_input_names
        columns: list[str] = []
        for_types, for_mask = return_token_type_ids, return_attention_mask
        if "token_type_ids" in names if for_types is None else checked_flag("return_token_type_ids", for_types):
            columns.append("type_ids")
        if "attention_mask" in names if for_mask is None else checked_flag("return_attention_mask", for_mask):
            columns.append("attention_mask")
        if return_special_tokens_mask or return_offsets_mapping or return_overflowing_tokens:
            check_flags(
                return_special_tokens_mask=return_special_tokens_mask,
                return_offsets_mapping=return_offsets_mapping,
                return_overflowing_tokens=return_overflowing_tokens,
            )
            columns += requested(
                special_tokens_mask=return_special_tokens_mask,
                offsets=return_offsets_mapping,
                overflow_to_sample=return_overflowing_tokens,
            )
        array_type = None if return_tensors is None else _dtype(dtype)
        inputs: BatchEncoding[Any] | None = None
        if text is not None:
            inputs = self._inputs(text, text_pair, given, columns, array_type, threads, return_length=return_length)
        if text_target is not None:
            labels = self._inputs(
                text_target, text_pair_target, targets, columns, array_type, threads, return_length=return_length
            )
            if inputs is None:
                inputs = labels
            else:
                inputs["labels"] = labels["input_ids"]
        assert inputs is not None, "text or text_target is given"
        return inputs.convert_to_tensors("pt") if return_tensors == "pt" else inputs

    def _inputs(
        self,
        text: Text | Batch,
        text_pair: Text | Batch | None,
        given: tuple[Any, ...],
        columns: list[str],
        array_type: np.dtype[Any] | None,
        threads: int | None,
        *,
        return_length: bool,
    ) -> BatchEncoding[Any]:
        """Encode texts and pairs to model inputs."""
        split, resolved = self._resolve(given, like_transformers=True)
        single = self._inner.is_single(text, split) if split else isinstance(text, str)
        texts: Any
        pairs: Any
        if single:
            texts, pairs = [text], None if text_pair is None else [text_pair]
        else:
            # The encodings of the result may read the texts later: an iterator can be read once, and a list may change.
            texts, pairs = _kept(text), _kept(text_pair)
        wide = array_type is np.dtype(np.int64)
        rows = self._inner.encode_batch(texts, pairs, split, resolved, columns, wide, threads)
        if rows.overflow_to_sample is not None:
            warn_many_windows(rows)

        def encode() -> list[Encoding]:
            items: Any = texts if pairs is None else list(zip(_items(texts), _items(pairs), strict=True))
            encodings = self._inner.encodings(items, split, resolved, threads)
            if "overflow_to_sample" not in columns:
                return encodings
            return [window for encoding in encodings for window in (encoding, *encoding.overflowing)]

        return named_arrays.named_arrays(
            rows, dtype=array_type, single=single, return_length=return_length, encode=encode
        )

    @completed_by(CALLING, ENCODING)
    def map_function(
        self,
        column: str = "text",
        pair: str | None = None,
        *,
        add_special_tokens: bool = True,
        padding: bool | Literal["longest", "max_length", "do_not_pad"] | None = None,
        truncation: bool | Strategy | Literal["do_not_truncate"] | None = None,
        max_length: int | None = None,
        is_split_into_words: bool = False,
        pad_to_multiple_of: int | None = None,
        return_token_type_ids: bool | None = None,
        return_attention_mask: bool | None = None,
        dtype: npt.DTypeLike = "int64",
        threads: int | None = None,
    ) -> map_function.MapFunction:
        """Return a function for ``Dataset.map(function, batched=True)`` of Hugging Face's datasets.

        It can be pickled, and its pickle depends on the tokenizer and the options alone, so that datasets finds results
        in its cache. ``dataset.map(lambda row: tokenizer(row["text"]))`` makes nested rows instead, because a call
        returns arrays and one text is a batch of one row; with ``return_tensors=None`` it does not.

        Parameters
        ----------
        column : str, default "text"
            The column of texts.
        pair : str, optional
            The column of the second texts of pairs.
        threads : int, optional
            Number of threads; pass 1 together with ``num_proc``. By default the number set with `set_num_threads`, or
            else all CPUs.

        Returns
        -------
        callable
            A function from the columns of a batch to ``input_ids``, ``token_type_ids`` and ``attention_mask``: arrays
            [rows, length] with padding, else lists of arrays.

        Raises
        ------
        InputError
            An option is wrong.

        Examples
        --------
        >>> from wordpiece_bert import Tokenizer
        >>> tokenizer = Tokenizer.from_vocab(
        ...     ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "new", "york", "##er"]
        ... )
        >>> function = tokenizer.map_function("text", truncation=True, max_length=4)
        >>> function({"text": ["New Yorker", "york"]})["input_ids"]
        [array([2, 4, 5, 3]), array([2, 5, 3])]
        """
        names = self._settings.model_input_names
        given = CallOptions(
            add_special_tokens=add_special_tokens,
            padding=padding,
            truncation=truncation,
            max_length=max_length,
            is_split_into_words=is_split_into_words,
            pad_to_multiple_of=pad_to_multiple_of,
        )
        given, off = without_unknown_maximum(self._defaults, given)
        if off:
            warn(off)
        self._resolve(given, like_transformers=True)  # reports wrong options now, not in a worker
        columns = requested(
            type_ids="token_type_ids" in names if return_token_type_ids is None else return_token_type_ids,
            attention_mask="attention_mask" in names if return_attention_mask is None else return_attention_mask,
        )
        return map_function.MapFunction(
            tokenizer=self,
            column=column,
            pair=pair,
            columns=tuple(columns),
            options=given,
            dtype=_dtype(dtype).name,
            threads=threads,
        )

    def pad(
        self,
        encoded_inputs: Encoded,
        padding: bool | Literal["longest", "max_length", "do_not_pad"] = True,
        max_length: int | None = None,
        pad_to_multiple_of: int | None = None,
        padding_side: Side | None = None,
        return_attention_mask: bool | None = None,
        return_tensors: Literal["np", "pt"] | None = None,
        verbose: bool = True,
    ) -> BatchEncoding[Any]:
        """Pad rows that are encoded already, as in a collate function.

        Parameters
        ----------
        encoded_inputs : mapping or sequence of mapping
            One row or several by name (``{"input_ids": [[5, 6], [7]]}``), or a list of such dicts, one for each row,
            which may be results of calls with one text.
        padding : bool or {"longest", "max_length", "do_not_pad"}, default True
            True means ``"longest"``, the longest row.
        max_length : int, optional
            The length for ``padding="max_length"``; by default `model_max_length`. Longer rows are not truncated.
        pad_to_multiple_of : int, optional
            Round the length up to a multiple of this.
        padding_side : {"right", "left"}, optional
            The side of padding; by default the side in the tokenizer's files.
        return_attention_mask : bool, optional
            Add and pad ``attention_mask``; by default if the model accepts it.
        return_tensors : {"np", "pt"}, optional
            The type of the result. By default the type of the input: lists, arrays or tensors.
        verbose : bool, default True
            Warn if padding needs a maximum length that is not known, or has one without effect.

        Returns
        -------
        BatchEncoding
            ``input_ids``, ``attention_mask``, ``token_type_ids`` and ``special_tokens_mask`` padded, and other values
            unchanged.

        Raises
        ------
        InputError
            There is no ``input_ids``, an item has several rows, values have different numbers of rows or tokens, an
            option is wrong, or the tokenizer has no padding token.

        Warns
        -----
        UserWarning
            ``padding="max_length"`` without a `max_length`, and the tokenizer has no `model_max_length`. Or a
            `max_length` with ``padding=True``: it has no effect.

        Examples
        --------
        >>> from wordpiece_bert import Tokenizer
        >>> tokenizer = Tokenizer.from_vocab(
        ...     ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "new", "york", "##er"]
        ... )
        >>> inputs = tokenizer.pad({"input_ids": [[2, 4, 5, 3], [2, 5, 3]]})
        >>> inputs["input_ids"], inputs["attention_mask"]
        ([[2, 4, 5, 3], [2, 5, 3, 0]], [[1, 1, 1, 1], [1, 1, 1, 0]])
        """
        given = CallOptions(
            padding=padding,
            max_length=max_length,
            truncation=False,
            pad_to_multiple_of=pad_to_multiple_of,
            padding_side=padding_side,
        )
        given, off = without_unknown_maximum(self._defaults, given)
        if off and verbose:
            warn(off)
        _, resolved = self._resolve(given, like_transformers=True)
        if return_attention_mask is None:
            return_attention_mask = "attention_mask" in self._settings.model_input_names
        from wordpiece_bert.tokenizer.padding import pad_inputs

        return pad_inputs(
            encoded_inputs,
            resolved.padding,
            return_attention_mask=return_attention_mask,
            return_tensors=return_tensors,
        )

    def get_special_tokens_mask(
        self,
        token_ids_0: Ids,
        token_ids_1: Ids | None = None,
        already_has_special_tokens: bool = False,
    ) -> list[int]:
        """Return which tokens of a row are special, 1 or 0 for each.

        Parameters
        ----------
        token_ids_0 : ids
            The ids of a text without special tokens, or with `already_has_special_tokens` the ids of a row.
        token_ids_1 : ids, optional
            The ids of the second text of a pair.
        already_has_special_tokens : bool, default False
            `token_ids_0` is a complete row: the result is 1 where an id is in `all_special_ids`.

        Returns
        -------
        list of int
            One number for each token of the row, which without `already_has_special_tokens` is the row that the
            template makes of the ids.

        Raises
        ------
        InputError
            Second ids with `already_has_special_tokens`.

        Examples
        --------
        >>> from wordpiece_bert import Tokenizer
        >>> tokenizer = Tokenizer.from_vocab(
        ...     ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "new", "york", "##er"]
        ... )
        >>> tokenizer.get_special_tokens_mask([4, 5], [5])
        [1, 0, 0, 1, 0, 1]
        """
        first = _id_list(token_ids_0)
        second = None if token_ids_1 is None else _id_list(token_ids_1)
        if already_has_special_tokens:
            if second is not None:
                raise InputError(
                    "You should not supply a second sequence if the provided sequence of ids is already formatted with "
                    "special tokens for the model."
                )
            special = set(self.all_special_ids)
            return [int(token_id in special) for token_id in first]
        # The template's row for two texts of one word each, in which the words are replaced by the ids.
        word = self._inner.unk_token
        row = self.encode(
            [word], None if second is None else [word], is_split_into_words=True, truncation=False, padding=False
        )
        mask: list[int] = []
        before: int | None = None
        for sequence in row.sequence_ids:
            if sequence is None:
                mask.append(1)
            elif sequence != before:
                mask += [0] * len(first if sequence == 0 else second or [])
            before = sequence
        return mask


def _kept(texts: Any) -> Any:
    """Return texts that can be read again: a list or an iterator as a new list, a stream as a table, others as is."""
    if texts is None:
        return None
    if isinstance(texts, list):
        return texts.copy()
    # An Arrow stream, such as pyarrow's RecordBatchReader, is read once too, but its rows are texts only to the core.
    if hasattr(texts, "__arrow_c_stream__"):
        return texts.read_all() if hasattr(texts, "read_all") else texts
    return list(texts) if isinstance(texts, Iterator) else texts


def _items(texts: Any) -> Any:
    """Return the texts of a column as a list, and other texts as they are."""
    column = _core._column_texts(texts)
    return texts if column is None else column


def _id_list(ids: object) -> list[int]:
    """Return ids as a list; an `InputError` for anything else than whole numbers."""
    if iterates(ids) and not isinstance(ids, str | bytes):
        return [whole_number(f"id {index}", token_id, 0) for index, token_id in enumerate(ids)]
    raise InputError(f"ids must be a list or an array of whole numbers, not {ids!r}")


def _dtype(dtype_like: npt.DTypeLike) -> np.dtype[Any]:
    """Return NumPy's own object for int64 or int32, of which there is one each, so that `is` compares them."""
    int64 = np.dtype(np.int64)
    if isinstance(dtype_like, str) and dtype_like == "int64":
        return int64
    with contextlib.suppress(TypeError, ValueError):  # of a str with surrogates
        dtype = np.dtype(dtype_like)
        for known in (int64, np.dtype(np.int32)):
            if dtype == known:
                return known
    raise InputError(f"dtype must be 'int64' or 'int32', not {dtype_like!r}")
