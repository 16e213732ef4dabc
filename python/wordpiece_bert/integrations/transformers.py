"""Tokenizers of transformers with the speed of this package. Needs transformers 5.

Stability: provisional.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from wordpiece_bert.errors import InputError, TokenizerFormatError, VocabError
from wordpiece_bert.integrations.named_models import import_package
from wordpiece_bert.tokenizer.pretrained import SPECIAL_TOKEN_ROLES, FolderSettings
from wordpiece_bert.tokenizer.saving_calls import restored
from wordpiece_bert.tokenizer.tokenizer import Tokenizer

if TYPE_CHECKING:
    from wordpiece_bert.tokenizer.batch_encoding import BatchEncoding

__all__ = ["accelerate"]


def accelerate(tokenizer: Any) -> Any:
    """Return a copy of a tokenizer of transformers that encodes with this package.

    The copy is an instance of the class of `tokenizer` and has all its methods. Calls, ``tokenizer(texts, ...)``,
    return what transformers returns, with the `Encoding` objects of this package; its other methods are
    transformers' own. Token ids are the same as from `tokenizers` but for the differences that the documentation lists.
    Tokens may be added later.

    Parameters
    ----------
    tokenizer : transformers.PreTrainedTokenizerFast
        A WordPiece tokenizer, such as ``AutoTokenizer.from_pretrained("bert-base-uncased")``.

    Returns
    -------
    transformers.PreTrainedTokenizerFast
        The copy.

    Raises
    ------
    MissingPackageError
        transformers is not installed.
    InputError
        The tokenizer is not one of transformers' fast tokenizers, or pads with another token type than 0.
    TokenizerFormatError, VocabError
        It has a component that this package does not have, such as a BPE model; the message names it.

    Examples
    --------
    ``tokenizer = accelerate(AutoTokenizer.from_pretrained("bert-base-uncased"))``
    """
    import_package("transformers", "transformers")
    if getattr(tokenizer, "backend_tokenizer", None) is None:
        raise InputError(f"accelerate takes a fast tokenizer of transformers, not {type(tokenizer).__name__}")
    if getattr(tokenizer, "pad_token_type_id", 0) != 0:
        raise InputError(f"the tokenizer pads with the token type {tokenizer.pad_token_type_id}; only 0 is supported")
    cls: Any = type(tokenizer)
    accelerated = copy.deepcopy(tokenizer)
    accelerated.__class__ = cls if getattr(cls, "_is_accelerated", False) else _accelerated_class(cls)
    vars(accelerated).pop("_accelerator", None)
    accelerated.wordpiece_tokenizer()  # reports what is not supported now
    return accelerated


@lru_cache
def _accelerated_class(cls: Any) -> Any:
    """Return a subclass of a class of transformers that encodes with this package."""

    class Accelerated(cls):  # type: ignore[misc]
        _is_accelerated = True
        _accelerator: Tokenizer | None = None

        def wordpiece_tokenizer(self) -> Tokenizer:
            """Return the tokenizer of this package; it is made again after tokens were added."""
            if self._accelerator is None:
                self._accelerator = _convert(self)
            return self._accelerator

        def _add_tokens(self, new_tokens: Any, special_tokens: bool = False) -> Any:
            self._accelerator = None
            return super()._add_tokens(new_tokens, special_tokens)

        def update_post_processor(self) -> None:
            self._accelerator = None
            super().update_post_processor()

        @property
        def backend_tokenizer(self) -> Any:
            self._accelerator = None  # the caller may change it
            return self._tokenizer

        def __setattr__(self, name: str, value: Any) -> None:
            if name != "_accelerator":
                object.__setattr__(self, "_accelerator", None)
            super().__setattr__(name, value)

        def __reduce__(self) -> Any:
            plain = object.__new__(cls)
            plain.__dict__.update({name: value for name, value in vars(self).items() if name != "_accelerator"})
            return accelerate, (plain,)

        def _encode_plus(self, text: Any, text_pair: Any = None, **options: Any) -> Any:
            if options.get("sanitize_control_tokens") or not _is_plain(text, text_pair, options):
                return super()._encode_plus(text, text_pair, **options)
            return _encode(self, text, text_pair, options)

    Accelerated.__name__ = Accelerated.__qualname__ = cls.__name__
    return Accelerated


def _convert(tokenizer: Any) -> Tokenizer:
    """Return a tokenizer of transformers as one of this package."""
    # What the last call of theirs has set is not part of the tokenizer.
    content = json.loads(tokenizer.backend_tokenizer.to_str()) | {"truncation": None, "padding": None}
    roles = {role: getattr(tokenizer, role, None) for role in SPECIAL_TOKEN_ROLES}
    limit = tokenizer.model_max_length
    settings = FolderSettings(
        special_tokens={role: str(token) for role, token in roles.items() if token is not None},
        model_max_length=int(limit) if limit < 1 << 31 else None,
        padding_side=tokenizer.padding_side,
        truncation_side=tokenizer.truncation_side,
        model_input_names=tuple(tokenizer.model_input_names),
        clean_up_tokenization_spaces=bool(tokenizer.clean_up_tokenization_spaces),
    )
    try:
        return restored(Tokenizer, json.dumps(content), settings)
    except (TokenizerFormatError, VocabError) as error:
        raise type(error)(f"{type(tokenizer).__name__} cannot be accelerated: {error}") from error


def _is_plain(text: Any, text_pair: Any, options: dict[str, Any]) -> bool:
    """Whether the texts have the usual forms; others are left to transformers, which knows what it makes of them."""
    if options.get("is_split_into_words"):
        return False
    if isinstance(text, str):
        return text_pair is None or isinstance(text_pair, str)
    if not isinstance(text, list | tuple) or not text:
        return False
    if text_pair is None:
        return all(isinstance(one, str) for one in text)
    is_batch = isinstance(text_pair, list | tuple) and len(text) == len(text_pair)
    return is_batch and all(isinstance(one, str) for one in (*text, *text_pair))


def _encode(tokenizer: Any, text: Any, text_pair: Any, options: dict[str, Any]) -> Any:
    """Encode texts with this package, and return transformers' own result."""
    from transformers import BatchEncoding as TheirBatchEncoding

    single = isinstance(text, str)
    pair = text_pair or None if single else text_pair  # an empty second text counts as none, as in transformers
    tensors = options.get("return_tensors")
    tensors = getattr(tensors, "value", tensors)
    split = options.get("split_special_tokens")
    inputs: BatchEncoding = tokenizer.wordpiece_tokenizer()(
        text,
        pair,
        add_special_tokens=options.get("add_special_tokens", True),
        padding=_named(options.get("padding_strategy"), do_not="do_not_pad"),
        truncation=_named(options.get("truncation_strategy"), do_not="do_not_truncate"),
        max_length=options.get("max_length"),
        stride=options.get("stride", 0),
        pad_to_multiple_of=options.get("pad_to_multiple_of"),
        padding_side=options.get("padding_side"),
        return_tensors=tensors if tensors in ("np", "pt") else None,
        return_token_type_ids=options.get("return_token_type_ids"),
        return_attention_mask=options.get("return_attention_mask"),
        return_overflowing_tokens=options.get("return_overflowing_tokens", False),
        return_special_tokens_mask=options.get("return_special_tokens_mask", False),
        return_offsets_mapping=options.get("return_offsets_mapping", False),
        return_length=options.get("return_length", False),
        encode_special_tokens=tokenizer.split_special_tokens if split is None else split,
        verbose=options.get("verbose", True),
    )
    # Theirs logs that a row is longer than the model's maximum, once.
    rows = inputs["input_ids"]
    if tensors is None and rows:
        longest = rows if isinstance(rows[0], int) else max(rows, key=len)
        tokenizer._eventual_warn_about_too_long_sequence(
            longest, options.get("max_length"), options.get("verbose", True)
        )
    return TheirBatchEncoding(
        dict(inputs), _Encodings(inputs), tensor_type=tensors, n_sequences=1 if pair is None else 2
    )


def _named(strategy: Any, do_not: str) -> Any:
    """Return the name of a strategy, or False for none."""
    name = getattr(strategy, "value", strategy)
    return False if name is None or name == do_not else name


class _Encodings(Sequence[Any]):
    """The encodings of the rows of a batch, which are computed when the first is used."""

    def __init__(self, inputs: BatchEncoding) -> None:
        self._inputs = inputs

    def _all(self) -> list[Any]:
        found = self._inputs.encodings
        assert found is not None
        return found

    def __getitem__(self, index: Any) -> Any:
        return self._all()[index]

    def __len__(self) -> int:
        return len(self._all())

    def __iter__(self) -> Iterator[Any]:
        return iter(self._all())

    def __reduce__(self) -> Any:
        return list, (self._all(),)
