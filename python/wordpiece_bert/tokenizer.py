"""The `Tokenizer` class: construction, encoding, decoding, the vocabulary, and saving. `_core` does the work."""

from __future__ import annotations

import contextlib
import json
import operator
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, SupportsIndex, Union, overload

import numpy as np

from wordpiece_bert import _core
from wordpiece_bert._core import Encoding
from wordpiece_bert._internal.atomic_file import write_text
from wordpiece_bert._internal.atomic_folder import AtomicFolder
from wordpiece_bert._internal.checks import checked_flag, checked_strings, whole_number
from wordpiece_bert._internal.texts import warn_file_truncated
from wordpiece_bert.added_token import AddedToken
from wordpiece_bert.batch import BatchEncoding, RaggedBatch, check_tensor_type, model_inputs
from wordpiece_bert.errors import InputError, ModelNotFoundError, TokenizerFormatError, VocabError, VocabWarning
from wordpiece_bert.hub import find_model
from wordpiece_bert.map_function import MapFunction
from wordpiece_bert.options import (
    CallOptions,
    Defaults,
    PaddingSettings,
    TruncationSettings,
    resolve,
    without_unknown_maximum,
)
from wordpiece_bert.pretrained import (
    SPECIAL_TOKEN_ROLES,
    FolderSettings,
    load_folder,
    moved_tokens,
    write_folder,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from wordpiece_bert.arrow import ArrowArray, ArrowStream
    from wordpiece_bert.corpus.encode import EncodeSummary, FileEncoder
    from wordpiece_bert.corpus.texts import Errors, Fields, ReadingOptions
    from wordpiece_bert.options import OffsetUnit, Side, Strategy
    from wordpiece_bert.padding import Encoded
    from wordpiece_bert.pretrained import AddedTokenFields, LoadedFolder

__all__ = ["AddedToken", "BatchEncoding", "Encoding", "RaggedBatch", "Tokenizer"]

StrPath = str | os.PathLike[str]
#: A text, or with ``is_split_into_words=True`` the words of one.
Text = Union[str, "Sequence[str]", "npt.NDArray[Any]"]
#: An item of a batch: a text, or a pair of texts.
Item = Union[Text, "tuple[Text, Text]"]
#: Items: an iterable, a NumPy array, or an Arrow column.
Batch = Union["Iterable[Item]", "ArrowArray", "ArrowStream"]
#: Token ids: a list, an array, or any iterable of integers.
Ids = Union["Iterable[SupportsIndex]", "npt.NDArray[Any]"]

# The options of a call that gives none.
_PLAIN = CallOptions()

# Size of the cache of checked options, in combinations of options.
_CACHED_OPTIONS = 64

_INT64 = np.dtype(np.int64)

# A text with more windows than this is reported.
_MANY_WINDOWS = 10_000

# A warning about a vocab.txt describes this many lines, and counts the rest.
_LINES_SHOWN = 5


class Tokenizer:
    """A WordPiece tokenizer: converts text to the inputs of BERT models, and token ids back to text.

    A tokenizer is immutable. Threads may share it, and results do not depend on the number of threads. It can be
    pickled, copied and compared; two tokenizers are equal if they have the same definition.

    Create one with `from_vocab`, `from_file`, `from_json` or `from_pretrained`. `encode` returns all details of one
    text, `encode_batch` flat arrays for many, and ``tokenizer(texts, padding=True)`` the same arrays as in
    transformers.

    Examples
    --------
    >>> from wordpiece_bert import Tokenizer
    >>> tokenizer = Tokenizer.from_vocab(["[UNK]", "[CLS]", "[SEP]", "un", "##afford", "##able"])
    >>> tokenizer.encode_ids("Unaffordable")
    array([1, 3, 4, 5, 2], dtype=uint32)
    >>> tokenizer.decode([1, 3, 4, 5, 2])
    'unaffordable'
    """

    __slots__ = ("_defaults", "_fingerprint", "_inner", "_plain", "_resolved", "_settings")

    _inner: _core.Tokenizer
    _settings: FolderSettings
    _defaults: Defaults
    # Computed on first use: the options of a call without keywords, those of other calls, and the fingerprint.
    _plain: _core.Options | None
    _resolved: dict[tuple[object, ...], tuple[bool, _core.Options]]
    _fingerprint: str | None

    def __init__(self) -> None:
        message = "create a Tokenizer with from_vocab, from_file, from_json or from_pretrained"
        raise TypeError(message)

    @classmethod
    def _build(cls, core: _core.Tokenizer, settings: FolderSettings) -> Self:
        self = object.__new__(cls)
        self._inner = core
        self._settings = settings
        self._defaults = _defaults(core, settings)
        self._plain = None
        self._resolved = {}
        self._fingerprint = None
        return self

    @classmethod
    def _from_core(cls, core: _core.Tokenizer) -> Self:
        """Wrap a core tokenizer that comes from no folder: its roles are inferred, and there are no other settings."""
        return cls._build(core, FolderSettings(special_tokens=core.roles()))

    # --- construction

    @classmethod
    def from_vocab(
        cls,
        vocab: StrPath | Sequence[str] | Mapping[str, int],
        *,
        lowercase: bool = True,
        strip_accents: bool | None = None,
        clean_text: bool = True,
        tokenize_chinese_chars: bool = True,
        unk_token: str = "[UNK]",
        cls_token: str = "[CLS]",
        sep_token: str = "[SEP]",
        pad_token: str = "[PAD]",
        mask_token: str = "[MASK]",
        continuing_subword_prefix: str = "##",
        max_input_chars_per_word: int = 100,
        strict: bool = False,
    ) -> Self:
        """Create a BERT tokenizer from a vocabulary.

        Those of the five special tokens that the vocabulary has are registered: they are matched in texts as they are,
        and `decode` omits them. If the vocabulary has both `cls_token` and `sep_token`, rows are ``[CLS] A [SEP]`` and
        ``[CLS] A [SEP] B [SEP]``; otherwise no special tokens are added.

        Parameters
        ----------
        vocab : path, sequence of str, or mapping of str to int
            A vocab.txt (one token per line, whose id is the line number from 0), the tokens in the order of their ids,
            or token -> id.
        lowercase : bool, default True
            Convert texts to lower case.
        strip_accents : bool, optional
            Remove combining marks after decomposition. Defaults to the value of `lowercase`.
        clean_text : bool, default True
            Remove control characters, and replace every white space character by a space.
        tokenize_chinese_chars : bool, default True
            Treat every Chinese ideograph as a word.
        unk_token, cls_token, sep_token, pad_token, mask_token : str
            The special tokens; by default ``[UNK]``, ``[CLS]``, ``[SEP]``, ``[PAD]`` and ``[MASK]``. The vocabulary
            must have `unk_token`, and may have the others.
        continuing_subword_prefix : str, default "##"
            The prefix of a piece that continues a word.
        max_input_chars_per_word : int, default 100
            A word of more characters becomes `unk_token`.
        strict : bool, default False
            Raise an error instead of a warning for a vocab.txt with blank or duplicate lines, white space at the end of
            a line, or a byte order mark.

        Returns
        -------
        Tokenizer
            The tokenizer, without truncation or padding.

        Raises
        ------
        VocabError
            The vocabulary is empty, has no `unk_token`, has two tokens with one id or a duplicate token in a list, or
            is not UTF-8. With `strict`, also for everything that would be a warning.
        ModelNotFoundError
            The file does not exist.
        InputError
            An option has the wrong type or is out of range.

        Warns
        -----
        VocabWarning
            Lines of a vocab.txt look like mistakes. Every id is still the number of its line.
        """
        flags = {
            "lowercase": lowercase,
            "clean_text": clean_text,
            "tokenize_chinese_chars": tokenize_chinese_chars,
            "strict": strict,
        } | ({} if strip_accents is None else {"strip_accents": strip_accents})
        for name, value in flags.items():
            checked_flag(name, value, or_none=name == "strip_accents")
        roles = dict(zip(SPECIAL_TOKEN_ROLES, (unk_token, sep_token, pad_token, cls_token, mask_token), strict=True))
        path = vocab if isinstance(vocab, str | os.PathLike) else None
        with _naming(path):
            core, oddities = _core.Tokenizer.from_vocab(
                _vocabulary(vocab),
                roles,
                _core.BertNormalizer(
                    lowercase=lowercase,
                    strip_accents=strip_accents,
                    clean_text=clean_text,
                    tokenize_chinese_chars=tokenize_chinese_chars,
                ),
                strict=strict,
                continuing_subword_prefix=continuing_subword_prefix,
                max_input_chars_per_word=whole_number("max_input_chars_per_word", max_input_chars_per_word, 0),
            )
        if oddities:
            more = len(oddities) - _LINES_SHOWN
            shown = oddities[:_LINES_SHOWN] + ([f"and {more:,} more such lines"] if more > 0 else [])
            warnings.warn(f"{path}: {'; '.join(shown)}", VocabWarning, stacklevel=2)
        return cls._build(core, FolderSettings(special_tokens=roles))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Create a tokenizer from the text of a tokenizer.json.

        All components that WordPiece files use are supported. The file's truncation and padding are the defaults of
        `encode`, `encode_batch` and `encodings`; `with_truncation` and `with_padding` make a tokenizer without them.

        Parameters
        ----------
        text : str
            The JSON text.

        Returns
        -------
        Tokenizer
            A tokenizer that returns the same ids as `tokenizers` does for the file.

        Raises
        ------
        TokenizerFormatError
            The text is not JSON, or a part of it is invalid or not supported; the message names the component and the
            field.
        VocabError
            The vocabulary is empty, has no unknown token, or has two tokens with one id.

        Warns
        -----
        UserWarning
            The padding has a pad_id that is not the id of its pad_token.
        """
        return cls._from_text(text, stacklevel=3)

    @classmethod
    def _from_text(cls, text: str, *, stacklevel: int) -> Self:
        """Create a tokenizer from the text of a tokenizer.json, and warn about its padding."""
        core = _core.Tokenizer.from_json(text)
        if contradiction := _pad_contradiction(core):
            pad_id = core.padding["pad_id"] if core.padding else 0
            warnings.warn(f"{contradiction}; rows are padded with {pad_id}", stacklevel=stacklevel)
        return cls._from_core(core)

    @classmethod
    def from_file(cls, path: StrPath) -> Self:
        """Create a tokenizer from a tokenizer.json file, as `from_json` does from its text.

        Parameters
        ----------
        path : str or os.PathLike
            The file.

        Returns
        -------
        Tokenizer
            The tokenizer.

        Raises
        ------
        ModelNotFoundError
            The file does not exist.
        TokenizerFormatError, VocabError
            As for `from_json`; the message begins with the path.
        """
        data = _read(path)
        with _naming(path):
            try:
                text = data.decode("utf-8")
            except UnicodeDecodeError as cause:
                message = f"not UTF-8: byte 0x{data[cause.start]:02x} at offset {cause.start}"
                raise TokenizerFormatError(message) from cause
            return cls._from_text(text, stacklevel=3)

    @classmethod
    def from_pretrained(cls, name: StrPath, *, revision: str | None = None, download: bool = False) -> Self:
        """Load the tokenizer of a model that is on this machine.

        The tokenizer.json of the model's folder is used as it is. If there is none, its vocab.txt is used with the
        options of tokenizer_config.json. Special and added tokens of the folder's other files are added. As in
        transformers, the truncation and padding that a tokenizer.json sets do not apply: pass them to the call, or use
        `from_file`, which keeps them.

        Parameters
        ----------
        name : str or os.PathLike
            ``"minilm"``, a folder, or ``"org/name"`` in the local Hugging Face cache.
        revision : str, optional
            Branch, tag or commit of a model in the Hugging Face cache; ``"main"`` by default.
        download : bool, default False
            Download a model that is not in the cache, with huggingface_hub.

        Returns
        -------
        Tokenizer
            The tokenizer.

        Raises
        ------
        ModelNotFoundError
            There is no such model on this machine, or its folder has neither tokenizer.json nor vocab.txt.
        TokenizerFormatError, VocabError
            A file is invalid, contradicts itself or is not supported.

        Warns
        -----
        UserWarning
            tokenizer_config.json contradicts tokenizer.json, or gives other ids for added tokens, or the padding of
            tokenizer.json has a pad_id that is not the id of its pad_token.
        """
        folder = find_model(name, revision=revision, download=download)
        loaded = load_folder(folder)
        tokenizer = cls._load(folder, loaded)
        messages = [*loaded.warnings, *moved_tokens(loaded, tokenizer.token_to_id)]
        if contradiction := _pad_contradiction(tokenizer._inner):
            messages.append(f"{folder}: {contradiction}; rows are padded with the id of the pad_token")
        for message in messages:
            warnings.warn(message, stacklevel=2)
        return tokenizer._without_file_settings()

    @classmethod
    def _load(cls, folder: Path, loaded: LoadedFolder) -> Self:
        """Build the tokenizer that a folder describes."""
        settings = loaded.settings
        if loaded.json is not None:
            with _naming(folder / "tokenizer.json"):
                tokenizer = cls._from_core(_core.Tokenizer.from_json(loaded.json))
        else:
            assert loaded.vocab is not None, "load_folder returns one of the two"
            roles: dict[str, Any] = dict(settings.special_tokens)
            tokenizer = cls.from_vocab(
                loaded.vocab.path,
                lowercase=loaded.vocab.lowercase,
                strip_accents=loaded.vocab.strip_accents,
                tokenize_chinese_chars=loaded.vocab.tokenize_chinese_chars,
                **roles,
            )
        core = tokenizer._inner
        adding = [_fields(token) for token in loaded.added_tokens]
        present = {fields[0]: fields for _, fields in core.added_tokens()}
        if any(present.get(fields[0]) != fields for fields in adding):  # else nothing would change
            core = core.with_added_tokens(adding)
        tokenizer = cls._build(core, settings)
        if loaded.vocab is not None and not core.special_tokens_added(pair=False):
            cls_id, sep_id = tokenizer.cls_token_id, tokenizer.sep_token_id
            if cls_id is not None and sep_id is not None:
                cls_token, sep_token = settings.special_tokens["cls_token"], settings.special_tokens["sep_token"]
                tokenizer = cls._build(core.with_bert_template(cls_token, sep_token), settings)
        return tokenizer

    def _without_file_settings(self) -> Self:
        """Return a tokenizer without the truncation and padding of its tokenizer.json.

        As in transformers, their sides stay the defaults of calls, and padding has token type 0.
        """
        truncation, padding = self._inner.truncation, self._inner.padding
        if truncation is None and padding is None:
            return self
        settings = self._settings
        if settings.truncation_side is None and truncation and truncation["direction"] == "left":
            settings = replace(settings, truncation_side="left")
        if settings.padding_side is None and padding and padding["direction"] == "left":
            settings = replace(settings, padding_side="left")
        return self._build(self._inner.with_settings(None, None), settings)

    def with_truncation(
        self,
        truncation: bool | str | None = True,  # noqa: FBT001, FBT002
        *,
        max_length: int | None = None,
        stride: int = 0,
        truncation_side: str | None = None,
    ) -> Self:
        """Return a tokenizer that truncates by default, or one that does not. This one does not change.

        The setting is the default of `encode`, `encode_batch`, `encodings` and `encode_files`, and is saved in the
        tokenizer.json. The call ``tokenizer(...)`` ignores it, as in transformers.

        Parameters
        ----------
        truncation : bool, str or None, default True
            True for "longest_first", or the name of a strategy; None or False for a tokenizer without truncation.
        max_length : int, optional
            The longest row in tokens, special tokens included. Defaults to `model_max_length`.
        stride : int, default 0
            How many tokens a window shares with the one before.
        truncation_side : {"right", "left"}, optional
            Where texts are cut. Defaults to `truncation_side`.

        Returns
        -------
        Tokenizer
            The new tokenizer.

        Raises
        ------
        InputError
            A value is wrong, or there is no maximum length.
        """
        options = resolve(
            self._inner,
            replace(self._defaults, truncation=None, padding=None),
            CallOptions(
                truncation=truncation or False, max_length=max_length, stride=stride, truncation_side=truncation_side
            ),
        )
        return self._build(self._inner.with_settings(options.truncation, self._inner.padding), self._settings)

    def with_padding(
        self,
        padding: bool | str | None = True,  # noqa: FBT001, FBT002
        *,
        max_length: int | None = None,
        pad_to_multiple_of: int | None = None,
        padding_side: str | None = None,
    ) -> Self:
        """Return a tokenizer that pads by default, or one that does not. This one does not change.

        The setting is the default of `encode`, `encode_batch` and `encodings`, and is saved in the tokenizer.json. The
        call ``tokenizer(...)`` ignores it, as in transformers.

        Parameters
        ----------
        padding : bool, str or None, default True
            True or "longest" for the longest row of the batch, "max_length" for `max_length`; None or False for a
            tokenizer without padding.
        max_length : int, optional
            The length for "max_length". Defaults to `model_max_length`.
        pad_to_multiple_of : int, optional
            Round lengths up to a multiple of this.
        padding_side : {"right", "left"}, optional
            Where padding is added. Defaults to `padding_side`.

        Returns
        -------
        Tokenizer
            The new tokenizer.

        Raises
        ------
        InputError
            A value is wrong, there is no length, or the vocabulary has no padding token.
        """
        options = resolve(
            self._inner,
            replace(self._defaults, truncation=None, padding=None),
            CallOptions(
                truncation=False,
                padding=padding or False,
                max_length=max_length,
                pad_to_multiple_of=pad_to_multiple_of,
                padding_side=padding_side,
            ),
        )
        return self._build(self._inner.with_settings(self._inner.truncation, options.padding), self._settings)

    def _file_truncates(self, given: CallOptions) -> bool:
        """Whether a call with these options truncates because the tokenizer's file says so, not the call."""
        return given.truncation is None and given.max_length is None and self._inner.truncation is not None

    def with_added_tokens(self, tokens: Iterable[str | AddedToken], *, special: bool = False) -> Self:
        """Return a tokenizer with more added tokens. This one does not change.

        A token that the vocabulary has keeps its id; a new one gets the next id after all others. For a token added
        before, the new flags replace the old ones.

        Parameters
        ----------
        tokens : iterable of str or AddedToken
            The tokens; `AddedToken` for tokens with flags.
        special : bool, default False
            Add all of them as special tokens: `decode` omits them, and they are matched in the original text.

        Returns
        -------
        Tokenizer
            The new tokenizer.

        Raises
        ------
        InputError
            A token is empty, or becomes empty by normalization, or is neither a str nor an `AddedToken`.
        """
        if isinstance(tokens, str | AddedToken):
            message = f"tokens must be a list of tokens, not the single token {str(tokens)!r}"
            raise InputError(message)
        added = []
        for index, token in enumerate(tokens):
            if isinstance(token, str):
                added.append(AddedToken(token, special=special))
            elif isinstance(token, AddedToken):
                made_special = special and not token.special
                added.append(replace(token, special=True, normalized=False) if made_special else token)
            else:
                message = f"token {index} must be a str or an AddedToken, not {type(token).__name__}: {token!r}"
                raise InputError(message)
        return self._build(self._inner.with_added_tokens([_fields(token) for token in added]), self._settings)

    # --- encoding

    def encode(
        self,
        text: Text,
        pair: Text | None = None,
        is_split_into_words: bool = False,  # noqa: FBT001, FBT002
        add_special_tokens: bool = True,  # noqa: FBT001, FBT002
        *,
        truncation: bool | Strategy | Literal["do_not_truncate"] | None = None,
        max_length: int | None = None,
        stride: int | None = None,
        truncation_side: Side | None = None,
        padding: bool | Literal["longest", "max_length", "do_not_pad"] | None = None,
        pad_to_multiple_of: int | None = None,
        padding_side: Side | None = None,
        offset_unit: OffsetUnit = "char",
        encode_special_tokens: bool = False,
    ) -> Encoding:
        """Encode one text, or a pair of texts, with all details.

        The first four arguments have the order of `tokenizers`, where the third is named ``is_pretokenized``.

        Parameters
        ----------
        text : str
            The text; with ``is_split_into_words=True`` a list of words.
        pair : str, optional
            The second text of a pair. An empty str makes a pair; None does not.
        is_split_into_words : bool, default False
            The text is a list of words. Word ids are then the indices of the list, and offsets are
            relative to the word.
        add_special_tokens : bool, default True
            Add the special tokens of the post-processor's template to each text.
        truncation : bool or {"longest_first", "only_first", "only_second", "do_not_truncate"}, optional
            Truncate texts: True means ``"longest_first"``. By default the setting of the tokenizer's file; if it has
            none, texts are truncated if `max_length` is given and `padding` is not.
        max_length : int, optional
            The maximum length of a row in tokens, special tokens included. By default the setting of the tokenizer's
            file, or else `model_max_length`.
        stride : int, optional
            How many tokens consecutive windows of a text share. By default the setting of the tokenizer's file, or 0.
        truncation_side : {"right", "left"}, optional
            The side on which tokens are removed. By default `Tokenizer.truncation_side`.
        padding : bool or {"longest", "max_length", "do_not_pad"}, optional
            Pad rows: True means ``"longest"``, the longest row of the batch. By default the setting of the tokenizer's
            file, or no padding.
        pad_to_multiple_of : int, optional
            Round the padded length up to a multiple of this. By default the setting of the tokenizer's file, or 1.
        padding_side : {"right", "left"}, optional
            The side of padding. By default `Tokenizer.padding_side`.
        offset_unit : {"char", "byte", "utf16"}, default "char"
            The unit of offsets: characters, UTF-8 bytes, or UTF-16 code units.
        encode_special_tokens : bool, default False
            Encode special tokens that occur in a text as ordinary text.

        Returns
        -------
        Encoding
            Ids, tokens, offsets, word ids, masks, and the further windows of a truncated text.

        Raises
        ------
        InputError
            An argument is not text, has a lone surrogate, or an option is wrong.

        Examples
        --------
        >>> from wordpiece_bert import Tokenizer
        >>> tokenizer = Tokenizer.from_vocab(["[UNK]", "[CLS]", "[SEP]", "new", "york", "##er"])
        >>> encoding = tokenizer.encode("New Yorker")
        >>> encoding.tokens
        ['[CLS]', 'new', 'york', '##er', '[SEP]']
        >>> encoding.offsets
        [(0, 0), (0, 3), (4, 8), (8, 10), (0, 0)]
        """
        given = CallOptions(
            is_split_into_words=is_split_into_words,
            add_special_tokens=add_special_tokens,
            truncation=truncation,
            max_length=max_length,
            stride=stride,
            truncation_side=truncation_side,
            padding=padding,
            pad_to_multiple_of=pad_to_multiple_of,
            padding_side=padding_side,
            offset_unit=offset_unit,
            encode_special_tokens=encode_special_tokens,
        )
        split, resolved = self._resolve(given)
        return self._inner.encode(text, pair, split, resolved)

    def encode_ids(self, text: str, pair: str | None = None) -> npt.NDArray[np.uint32]:
        """Encode one text, or a pair, to ids: the fastest way for single texts.

        Parameters
        ----------
        text : str
            The text.
        pair : str, optional
            The second text of a pair.

        Returns
        -------
        ndarray of uint32
            The ids of ``encode(text, pair)``, shape [n].

        Raises
        ------
        InputError
            An argument is not a str, or has a lone surrogate.
        """
        return self._inner.encode_ids(text, pair, self._plain or self._resolve(CallOptions())[1])

    def encode_batch(
        self,
        texts: Batch,
        is_split_into_words: bool = False,  # noqa: FBT001, FBT002
        add_special_tokens: bool = True,  # noqa: FBT001, FBT002
        *,
        truncation: bool | Strategy | Literal["do_not_truncate"] | None = None,
        max_length: int | None = None,
        stride: int | None = None,
        truncation_side: Side | None = None,
        padding: bool | Literal["longest", "max_length", "do_not_pad"] | None = None,
        pad_to_multiple_of: int | None = None,
        padding_side: Side | None = None,
        offset_unit: OffsetUnit = "char",
        encode_special_tokens: bool = False,
        return_offsets: bool = False,
        return_word_ids: bool = False,
        return_sequence_ids: bool = False,
        return_overflowing_tokens: bool = False,
        return_n_tokens: bool = False,
        threads: int | None = None,
    ) -> RaggedBatch:
        """Encode a batch to flat arrays: the fastest way for many texts.

        The first three arguments have the order of `tokenizers`, where the second is named ``is_pretokenized``.

        Parameters
        ----------
        texts : iterable, array or Arrow column
            Texts and pairs ``(text, pair)``; with ``is_split_into_words=True`` each text is a list of words. An Arrow
            column of any library is read in place: strings, a table or struct of two string columns for pairs, or
            lists of strings for words.
        is_split_into_words : bool, default False
            Each text is a list of words. Word ids are then the indices of the list, and offsets are
            relative to the word.
        add_special_tokens : bool, default True
            Add the special tokens of the post-processor's template to each text.
        truncation : bool or {"longest_first", "only_first", "only_second", "do_not_truncate"}, optional
            Truncate texts: True means ``"longest_first"``. By default the setting of the tokenizer's file; if it has
            none, texts are truncated if `max_length` is given and `padding` is not.
        max_length : int, optional
            The maximum length of a row in tokens, special tokens included. By default the setting of the tokenizer's
            file, or else `model_max_length`.
        stride : int, optional
            How many tokens consecutive windows of a text share. By default the setting of the tokenizer's file, or 0.
        truncation_side : {"right", "left"}, optional
            The side on which tokens are removed. By default `Tokenizer.truncation_side`.
        padding : bool or {"longest", "max_length", "do_not_pad"}, optional
            Pad rows: True means ``"longest"``, the longest row of the batch. By default the setting of the tokenizer's
            file, or no padding.
        pad_to_multiple_of : int, optional
            Round the padded length up to a multiple of this. By default the setting of the tokenizer's file, or 1.
        padding_side : {"right", "left"}, optional
            The side of padding. By default `Tokenizer.padding_side`.
        offset_unit : {"char", "byte", "utf16"}, default "char"
            The unit of offsets: characters, UTF-8 bytes, or UTF-16 code units.
        encode_special_tokens : bool, default False
            Encode special tokens that occur in a text as ordinary text.
        return_offsets, return_word_ids, return_sequence_ids : bool, default False
            Compute these fields of `RaggedBatch` too.
        return_overflowing_tokens : bool, default False
            Add the further windows of a truncated text as rows after its first.
        return_n_tokens : bool, default False
            Count the tokens of each text before truncation.
        threads : int, optional
            Number of threads. By default the number set with `set_num_threads`, or else all CPUs that this process may
            use.

        Returns
        -------
        RaggedBatch
            The rows in the order of the texts.

        Raises
        ------
        InputError
            As for `encode`, and for a null in a column. The message has the index of the item.

        Warns
        -----
        UserWarning
            With `return_overflowing_tokens`, one text has more than ten thousand windows. Those of a pair are all
            combinations of the windows of both texts, as in `tokenizers`.
        TruncationWarning
            The truncation of the tokenizer's file, which the call does not mention, cut texts.
        """
        given = CallOptions(
            is_split_into_words=is_split_into_words,
            add_special_tokens=add_special_tokens,
            truncation=truncation,
            max_length=max_length,
            stride=stride,
            truncation_side=truncation_side,
            padding=padding,
            pad_to_multiple_of=pad_to_multiple_of,
            padding_side=padding_side,
            offset_unit=offset_unit,
            encode_special_tokens=encode_special_tokens,
        )
        columns = _requested(
            offsets=return_offsets,
            word_ids=return_word_ids,
            sequence_ids=return_sequence_ids,
            overflow_to_sample=return_overflowing_tokens,
            n_tokens=return_n_tokens,
        )
        split, resolved = self._resolve(given)
        rows = self._inner.encode_batch(texts, None, split, resolved, columns, False, threads)  # noqa: FBT003
        _warn_many_windows(rows)
        if self._file_truncates(given) and not return_overflowing_tokens:
            warn_file_truncated(rows.truncated, resolved.truncation)
        return RaggedBatch(
            ids=rows.ids,
            row_offsets=rows.row_offsets,
            truncated=rows.truncated,
            offsets=rows.offsets,
            word_ids=rows.word_ids,
            sequence_ids=rows.sequence_ids,
            overflow_to_sample=rows.overflow_to_sample,
            n_tokens=rows.n_tokens,
        )

    def iter_files(
        self,
        files: StrPath | Iterable[StrPath],
        *,
        separator: str | None = "\n",
        field: Fields | None = None,
        column: Fields | None = None,
        errors: Errors = "strict",
        add_special_tokens: bool = True,
        truncation: bool | Strategy | Literal["do_not_truncate"] | None = None,
        max_length: int | None = None,
        stride: int | None = None,
        truncation_side: Side | None = None,
        padding: bool | Literal["longest", "max_length", "do_not_pad"] | None = None,
        pad_to_multiple_of: int | None = None,
        padding_side: Side | None = None,
        offset_unit: OffsetUnit = "char",
        encode_special_tokens: bool = False,
        return_offsets: bool = False,
        return_word_ids: bool = False,
        return_sequence_ids: bool = False,
        return_overflowing_tokens: bool = False,
        return_n_tokens: bool = False,
        threads: int | None = None,
    ) -> Iterator[RaggedBatch]:
        r"""Encode the texts of files block by block, in memory that does not grow with their size.

        Parameters
        ----------
        files : path, or iterable of paths
            The files; ``-`` is standard input. Gzip and Zstandard are decompressed.
        separator : str or None, default "\n"
            What texts end with. ``"\n"`` includes a ``\r`` before it, and no other character ends a line; any other
            separator is matched literally. None reads each file as one text.
        field : str or (str, str), optional
            The files are JSON lines with the text in this field: a key, or keys joined by dots (``meta.title``,
            ``answers.0``; a dot inside a key is written ``\.``). Two fields make pairs.
        column : str or (str, str), optional
            The files are Parquet with the texts in this column; two columns make pairs. Needs pyarrow.
        errors : {"strict", "replace", "skip"}, default "strict"
            What to do with a text that cannot be read: raise an error; replace invalid UTF-8 by U+FFFD, and raise for
            the rest; or skip and count such texts.
        add_special_tokens : bool, default True
            Add the special tokens of the post-processor's template to each text.
        truncation : bool or {"longest_first", "only_first", "only_second", "do_not_truncate"}, optional
            Truncate texts: True means ``"longest_first"``. By default the setting of the tokenizer's file; if it has
            none, texts are truncated if `max_length` is given and `padding` is not.
        max_length : int, optional
            The maximum length of a row in tokens, special tokens included. By default the setting of the tokenizer's
            file, or else `model_max_length`.
        stride : int, optional
            How many tokens consecutive windows of a text share. By default the setting of the tokenizer's file, or 0.
        truncation_side : {"right", "left"}, optional
            The side on which tokens are removed. By default `Tokenizer.truncation_side`.
        padding : bool or {"longest", "max_length", "do_not_pad"}, optional
            ``"max_length"`` pads rows to `max_length`. By default the setting of the tokenizer's file, or no padding.
            ``"longest"`` is an error, because a stream does not know its longest row.
        pad_to_multiple_of : int, optional
            Round the padded length up to a multiple of this. By default the setting of the tokenizer's file, or 1.
        padding_side : {"right", "left"}, optional
            The side of padding. By default `Tokenizer.padding_side`.
        offset_unit : {"char", "byte", "utf16"}, default "char"
            The unit of offsets: characters, UTF-8 bytes, or UTF-16 code units.
        encode_special_tokens : bool, default False
            Encode special tokens that occur in a text as ordinary text.
        return_offsets, return_word_ids, return_sequence_ids : bool, default False
            Compute these fields of `RaggedBatch` too.
        return_overflowing_tokens : bool, default False
            Add the further windows of a truncated text as rows after its first.
        return_n_tokens : bool, default False
            Count the tokens of each text before truncation.
        threads : int, optional
            Number of threads that encode, as for `encode_batch`; one more thread reads.

        Returns
        -------
        Iterator of RaggedBatch
            Batches of the rows of a few megabytes of text, in the order of the files. `overflow_to_sample` counts from
            the first text of its batch.

        Raises
        ------
        InputError
            As for `encode_batch`, and for a text that cannot be read; the message has the file, line and byte offset.
            Also for padding to the longest row, which a stream does not know: pad to a ``max_length``.
        OSError
            A file does not exist or cannot be read.

        Warns
        -----
        TruncationWarning
            The truncation of the tokenizer's file, which the call does not mention, cut texts. The warning comes with
            the end of the iteration.
        """
        given = CallOptions(
            add_special_tokens=add_special_tokens,
            truncation=truncation,
            max_length=max_length,
            stride=stride,
            truncation_side=truncation_side,
            padding=padding,
            pad_to_multiple_of=pad_to_multiple_of,
            padding_side=padding_side,
            offset_unit=offset_unit,
            encode_special_tokens=encode_special_tokens,
        )
        encoder = self._file_encoder(
            files,
            given,
            _requested(
                offsets=return_offsets,
                word_ids=return_word_ids,
                sequence_ids=return_sequence_ids,
                overflow_to_sample=return_overflowing_tokens,
                n_tokens=return_n_tokens,
            ),
            {"separator": separator, "field": field, "column": column, "errors": errors},
            threads,
        )
        return encoder.batches()

    def encode_files(
        self,
        files: StrPath | Iterable[StrPath],
        output: StrPath,
        *,
        dtype: npt.DTypeLike = "uint32",
        show_progress_bar: bool | None = None,
        separator: str | None = "\n",
        field: Fields | None = None,
        column: Fields | None = None,
        errors: Errors = "strict",
        add_special_tokens: bool = True,
        truncation: bool | Strategy | Literal["do_not_truncate"] | None = None,
        max_length: int | None = None,
        stride: int | None = None,
        truncation_side: Side | None = None,
        padding: bool | Literal["longest", "max_length", "do_not_pad"] | None = None,
        pad_to_multiple_of: int | None = None,
        padding_side: Side | None = None,
        offset_unit: OffsetUnit = "char",
        encode_special_tokens: bool = False,
        return_offsets: bool = False,
        return_word_ids: bool = False,
        return_sequence_ids: bool = False,
        return_overflowing_tokens: bool = False,
        return_n_tokens: bool = False,
        threads: int | None = None,
    ) -> EncodeSummary:
        r"""Encode the texts of files and write the rows to a file, in memory that does not grow with their size.

        The output is written atomically: it appears under its name when it is complete, and an interrupted call leaves
        nothing.

        Parameters
        ----------
        files : path, or iterable of paths
            As for `iter_files`.
        output : path
            The file to create or replace; its suffix determines the format.

            - ``X.npy``: the ids of all rows as one array [n], with the indices at which rows begin in
              ``X.row_offsets.npy``, int64 [rows + 1]; with ``padding="max_length"`` one array [rows, length]. Other
              requested fields are in ``X.offsets.npy`` and so on.
            - ``.arrow`` (a file), ``.arrows`` (a stream) and ``.parquet``: a table with the column ``ids`` and one for
              each other requested field. These need pyarrow.
            - ``.jsonl``: the same as JSON lines.

            With truncation there is a column ``truncated``.
        dtype : dtype_like, default "uint32"
            The type of ids: uint16 (if the vocabulary is small enough), uint32, int32 or int64.
        show_progress_bar : bool, optional
            By default a bar is shown if standard error is a terminal. True shows plain lines elsewhere.
        separator : str or None, default "\n"
            What texts end with. ``"\n"`` includes a ``\r`` before it, and no other character ends a line; any other
            separator is matched literally. None reads each file as one text.
        field : str or (str, str), optional
            The files are JSON lines with the text in this field: a key, or keys joined by dots (``meta.title``,
            ``answers.0``; a dot inside a key is written ``\.``). Two fields make pairs.
        column : str or (str, str), optional
            The files are Parquet with the texts in this column; two columns make pairs. Needs pyarrow.
        errors : {"strict", "replace", "skip"}, default "strict"
            What to do with a text that cannot be read: raise an error; replace invalid UTF-8 by U+FFFD, and raise for
            the rest; or skip and count such texts.
        add_special_tokens : bool, default True
            Add the special tokens of the post-processor's template to each text.
        truncation : bool or {"longest_first", "only_first", "only_second", "do_not_truncate"}, optional
            Truncate texts: True means ``"longest_first"``. By default the setting of the tokenizer's file; if it has
            none, texts are truncated if `max_length` is given and `padding` is not.
        max_length : int, optional
            The maximum length of a row in tokens, special tokens included. By default the setting of the tokenizer's
            file, or else `model_max_length`.
        stride : int, optional
            How many tokens consecutive windows of a text share. By default the setting of the tokenizer's file, or 0.
        truncation_side : {"right", "left"}, optional
            The side on which tokens are removed. By default `Tokenizer.truncation_side`.
        padding : bool or {"longest", "max_length", "do_not_pad"}, optional
            ``"max_length"`` pads rows to `max_length`. By default the setting of the tokenizer's file, or no padding.
            ``"longest"`` is an error, because a stream does not know its longest row.
        pad_to_multiple_of : int, optional
            Round the padded length up to a multiple of this. By default the setting of the tokenizer's file, or 1.
        padding_side : {"right", "left"}, optional
            The side of padding. By default `Tokenizer.padding_side`.
        offset_unit : {"char", "byte", "utf16"}, default "char"
            The unit of offsets: characters, UTF-8 bytes, or UTF-16 code units.
        encode_special_tokens : bool, default False
            Encode special tokens that occur in a text as ordinary text.
        return_offsets, return_word_ids, return_sequence_ids : bool, default False
            Compute these fields of `RaggedBatch` too.
        return_overflowing_tokens : bool, default False
            Add the further windows of a truncated text as rows after its first.
        return_n_tokens : bool, default False
            Count the tokens of each text before truncation.
        threads : int, optional
            Number of threads that encode, as for `encode_batch`; one more thread reads.

        Returns
        -------
        EncodeSummary
            Counts of texts, rows and tokens, and the texts that were truncated or skipped.

        Raises
        ------
        InputError, OSError
            As for `iter_files`, and for an output that cannot be created or is one of `files`, or an id that does not
            fit `dtype`.

        Warns
        -----
        TruncationWarning
            As for `iter_files`.
        """
        given = CallOptions(
            add_special_tokens=add_special_tokens,
            truncation=truncation,
            max_length=max_length,
            stride=stride,
            truncation_side=truncation_side,
            padding=padding,
            pad_to_multiple_of=pad_to_multiple_of,
            padding_side=padding_side,
            offset_unit=offset_unit,
            encode_special_tokens=encode_special_tokens,
        )
        encoder = self._file_encoder(
            files,
            given,
            _requested(
                offsets=return_offsets,
                word_ids=return_word_ids,
                sequence_ids=return_sequence_ids,
                overflow_to_sample=return_overflowing_tokens,
                n_tokens=return_n_tokens,
            ),
            {"separator": separator, "field": field, "column": column, "errors": errors},
            threads,
        )
        from wordpiece_bert.corpus.encode import write_encoded

        return write_encoded(
            encoder,
            output,
            vocabulary=len(self),
            dtype=dtype,
            show_progress_bar=show_progress_bar,
        )

    def encodings(
        self,
        texts: Batch,
        is_split_into_words: bool = False,  # noqa: FBT001, FBT002
        add_special_tokens: bool = True,  # noqa: FBT001, FBT002
        *,
        truncation: bool | Strategy | Literal["do_not_truncate"] | None = None,
        max_length: int | None = None,
        stride: int | None = None,
        truncation_side: Side | None = None,
        padding: bool | Literal["longest", "max_length", "do_not_pad"] | None = None,
        pad_to_multiple_of: int | None = None,
        padding_side: Side | None = None,
        offset_unit: OffsetUnit = "char",
        encode_special_tokens: bool = False,
        threads: int | None = None,
    ) -> list[Encoding]:
        """Encode a batch to one `Encoding` per text: complete, and slower than `encode_batch`.

        The first three arguments have the order of `encode_batch` in `tokenizers`, where the second is named
        ``is_pretokenized``.

        Parameters
        ----------
        texts : iterable, array or Arrow column
            As for `encode_batch`.
        is_split_into_words : bool, default False
            Each text is a list of words. Word ids are then the indices of the list, and offsets are
            relative to the word.
        add_special_tokens : bool, default True
            Add the special tokens of the post-processor's template to each text.
        truncation : bool or {"longest_first", "only_first", "only_second", "do_not_truncate"}, optional
            Truncate texts: True means ``"longest_first"``. By default the setting of the tokenizer's file; if it has
            none, texts are truncated if `max_length` is given and `padding` is not.
        max_length : int, optional
            The maximum length of a row in tokens, special tokens included. By default the setting of the tokenizer's
            file, or else `model_max_length`.
        stride : int, optional
            How many tokens consecutive windows of a text share. By default the setting of the tokenizer's file, or 0.
        truncation_side : {"right", "left"}, optional
            The side on which tokens are removed. By default `Tokenizer.truncation_side`.
        padding : bool or {"longest", "max_length", "do_not_pad"}, optional
            Pad rows: True means ``"longest"``, the longest row of the batch. By default the setting of the tokenizer's
            file, or no padding.
        pad_to_multiple_of : int, optional
            Round the padded length up to a multiple of this. By default the setting of the tokenizer's file, or 1.
        padding_side : {"right", "left"}, optional
            The side of padding. By default `Tokenizer.padding_side`.
        offset_unit : {"char", "byte", "utf16"}, default "char"
            The unit of offsets: characters, UTF-8 bytes, or UTF-16 code units.
        encode_special_tokens : bool, default False
            Encode special tokens that occur in a text as ordinary text.
        threads : int, optional
            As for `encode_batch`.

        Returns
        -------
        list of Encoding
            In the order of the texts. The encoding of a truncated text keeps a reference to its text, or to the entire
            column.

        Raises
        ------
        InputError
            As for `encode_batch`.

        Warns
        -----
        TruncationWarning
            As for `encode_batch`.
        """
        given = CallOptions(
            is_split_into_words=is_split_into_words,
            add_special_tokens=add_special_tokens,
            truncation=truncation,
            max_length=max_length,
            stride=stride,
            truncation_side=truncation_side,
            padding=padding,
            pad_to_multiple_of=pad_to_multiple_of,
            padding_side=padding_side,
            offset_unit=offset_unit,
            encode_special_tokens=encode_special_tokens,
        )
        split, resolved = self._resolve(given)
        encodings = self._inner.encodings(texts, split, resolved, threads)
        if self._file_truncates(given):
            truncated = np.fromiter((encoding.truncated for encoding in encodings), np.bool_, len(encodings))
            warn_file_truncated(truncated, resolved.truncation)
        return encodings

    @overload
    def __call__(
        self,
        text: Text | Batch | None = None,
        text_pair: Text | Batch | None = None,
        text_target: Text | Batch | None = None,
        text_pair_target: Text | Batch | None = None,
        add_special_tokens: bool = True,  # noqa: FBT001, FBT002
        padding: bool | Literal["longest", "max_length", "do_not_pad"] | None = None,  # noqa: FBT001
        truncation: bool | Strategy | Literal["do_not_truncate"] | None = None,  # noqa: FBT001
        max_length: int | None = None,
        stride: int | None = None,
        is_split_into_words: bool = False,  # noqa: FBT001, FBT002
        pad_to_multiple_of: int | None = None,
        padding_side: Side | None = None,
        return_tensors: Literal["np"] = "np",
        return_token_type_ids: bool | None = None,  # noqa: FBT001
        return_attention_mask: bool | None = None,  # noqa: FBT001
        return_overflowing_tokens: bool = False,  # noqa: FBT001, FBT002
        return_special_tokens_mask: bool = False,  # noqa: FBT001, FBT002
        return_offsets_mapping: bool = False,  # noqa: FBT001, FBT002
        return_length: bool = False,  # noqa: FBT001, FBT002
        verbose: bool = True,  # noqa: FBT001, FBT002
        tokenizer_kwargs: Mapping[str, Any] | None = None,
        *,
        truncation_side: Side | None = None,
        split_special_tokens: bool | None = None,
        encode_special_tokens: bool = False,
        offset_unit: OffsetUnit = "char",
        max_target_length: int | None = None,
        dtype: npt.DTypeLike = "int64",
        threads: int | None = None,
    ) -> BatchEncoding: ...

    @overload
    def __call__(
        self,
        text: Text | Batch | None = None,
        text_pair: Text | Batch | None = None,
        text_target: Text | Batch | None = None,
        text_pair_target: Text | Batch | None = None,
        add_special_tokens: bool = True,  # noqa: FBT001, FBT002
        padding: bool | Literal["longest", "max_length", "do_not_pad"] | None = None,  # noqa: FBT001
        truncation: bool | Strategy | Literal["do_not_truncate"] | None = None,  # noqa: FBT001
        max_length: int | None = None,
        stride: int | None = None,
        is_split_into_words: bool = False,  # noqa: FBT001, FBT002
        pad_to_multiple_of: int | None = None,
        padding_side: Side | None = None,
        return_tensors: Literal["np", "pt"] | None = "np",
        return_token_type_ids: bool | None = None,  # noqa: FBT001
        return_attention_mask: bool | None = None,  # noqa: FBT001
        return_overflowing_tokens: bool = False,  # noqa: FBT001, FBT002
        return_special_tokens_mask: bool = False,  # noqa: FBT001, FBT002
        return_offsets_mapping: bool = False,  # noqa: FBT001, FBT002
        return_length: bool = False,  # noqa: FBT001, FBT002
        verbose: bool = True,  # noqa: FBT001, FBT002
        tokenizer_kwargs: Mapping[str, Any] | None = None,
        *,
        truncation_side: Side | None = None,
        split_special_tokens: bool | None = None,
        encode_special_tokens: bool = False,
        offset_unit: OffsetUnit = "char",
        max_target_length: int | None = None,
        dtype: npt.DTypeLike = "int64",
        threads: int | None = None,
    ) -> BatchEncoding[Any]: ...

    def __call__(
        self,
        text: Text | Batch | None = None,
        text_pair: Text | Batch | None = None,
        text_target: Text | Batch | None = None,
        text_pair_target: Text | Batch | None = None,
        add_special_tokens: bool = True,  # noqa: FBT001, FBT002
        padding: bool | Literal["longest", "max_length", "do_not_pad"] | None = None,  # noqa: FBT001
        truncation: bool | Strategy | Literal["do_not_truncate"] | None = None,  # noqa: FBT001
        max_length: int | None = None,
        stride: int | None = None,
        is_split_into_words: bool = False,  # noqa: FBT001, FBT002
        pad_to_multiple_of: int | None = None,
        padding_side: Side | None = None,
        return_tensors: Literal["np", "pt"] | None = "np",
        return_token_type_ids: bool | None = None,  # noqa: FBT001
        return_attention_mask: bool | None = None,  # noqa: FBT001
        return_overflowing_tokens: bool = False,  # noqa: FBT001, FBT002
        return_special_tokens_mask: bool = False,  # noqa: FBT001, FBT002
        return_offsets_mapping: bool = False,  # noqa: FBT001, FBT002
        return_length: bool = False,  # noqa: FBT001, FBT002
        verbose: bool = True,  # noqa: FBT001, FBT002
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
        add_special_tokens : bool, default True
            Add the special tokens of the post-processor's template to each text.
        padding : bool or {"longest", "max_length", "do_not_pad"}, default False
            Pad rows: True means ``"longest"``, the longest row of the batch.
        truncation : bool or {"longest_first", "only_first", "only_second", "do_not_truncate"}, optional
            Truncate texts: True means ``"longest_first"``. By default texts are truncated if `max_length` is given and
            `padding` is not.
        max_length : int, optional
            The maximum length of a row in tokens, special tokens included; by default `model_max_length`.
        stride : int, default 0
            How many tokens consecutive windows of a text share.
        is_split_into_words : bool, default False
            Each text is a list of words.
        pad_to_multiple_of : int, optional
            Round the padded length up to a multiple of this. With truncation, `max_length` must be a multiple of it.
        padding_side, truncation_side : {"right", "left"}, optional
            The side of padding, and the side on which tokens are removed; by default those of the tokenizer's files.
        return_tensors : {"np", "pt", None}, default "np"
            ``"np"`` for arrays, ``"pt"`` for tensors of PyTorch, None for lists; for a single text, the lists of its
            row.
        return_token_type_ids, return_attention_mask : bool, optional
            By default those that the model accepts: both, unless its folder says otherwise.
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
        offset_unit : {"char", "byte", "utf16"}, default "char"
            The unit of offsets: characters, UTF-8 bytes, or UTF-16 code units.
        max_target_length : int, optional
            The `max_length` of `text_target`; by default that of `text`.
        dtype : dtype_like, default "int64"
            The type of the arrays, int64 or int32.
        threads : int, optional
            As for `encode_batch`.

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
            `model_max_length`: neither is done.

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
            own = {name: value for name, value in locals().items() if name not in ("self", "tokenizer_kwargs")}
            if unknown := sorted(tokenizer_kwargs.keys() - own.keys()):
                message = f"unknown option {unknown[0]!r} in tokenizer_kwargs; the options are {', '.join(own)}"
                raise InputError(message)
            return self(**{**own, **tokenizer_kwargs})
        if text is None and text_target is None:
            message = "You need to specify either `text` or `text_target`."
            raise InputError(message)
        if split_special_tokens is not None:
            encode_special_tokens = checked_flag("split_special_tokens", split_special_tokens)
        check_tensor_type(return_tensors)
        given = CallOptions(
            add_special_tokens=add_special_tokens,
            padding=padding,
            truncation=truncation,
            max_length=max_length,
            stride=stride,
            is_split_into_words=is_split_into_words,
            pad_to_multiple_of=pad_to_multiple_of,
            padding_side=padding_side,
            truncation_side=truncation_side,
            encode_special_tokens=encode_special_tokens,
            offset_unit=offset_unit,
        )
        given, off = without_unknown_maximum(self._defaults, given)
        if off and verbose:
            warnings.warn(off, stacklevel=2)
        names = self._settings.model_input_names
        columns = _requested(
            type_ids="token_type_ids" in names if return_token_type_ids is None else return_token_type_ids,
            attention_mask="attention_mask" in names if return_attention_mask is None else return_attention_mask,
            special_tokens_mask=return_special_tokens_mask,
            offsets=return_offsets_mapping,
            overflow_to_sample=return_overflowing_tokens,
        )
        array_type = None if return_tensors is None else _dtype(dtype)
        inputs: BatchEncoding[Any] | None = None
        if text is not None:
            inputs = self._inputs(text, text_pair, given, columns, array_type, threads, return_length=return_length)
        if text_target is not None:
            if max_target_length is not None:
                given = given._replace(max_length=max_target_length)
            labels = self._inputs(
                text_target, text_pair_target, given, columns, array_type, threads, return_length=return_length
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
        given: CallOptions,
        columns: list[str],
        array_type: np.dtype[Any] | None,
        threads: int | None,
        *,
        return_length: bool,
    ) -> BatchEncoding[Any]:
        """Encode texts and pairs to model inputs."""
        split, resolved = self._resolve(given, like_transformers=True)
        single = self._inner.is_single(text, split)
        texts: Any
        pairs: Any
        texts, pairs = (text, text_pair) if not single else ([text], None if text_pair is None else [text_pair])
        # The encodings of the result may read the texts later: an iterator can be read once, and a list may change.
        texts, pairs = _kept(texts), _kept(pairs)
        rows = self._inner.encode_batch(texts, pairs, split, resolved, columns, array_type == np.int64, threads)
        _warn_many_windows(rows)

        def encode() -> list[Encoding]:
            items: Any = texts if pairs is None else list(zip(_items(texts), _items(pairs), strict=True))
            encodings = self._inner.encodings(items, split, resolved, threads)
            if "overflow_to_sample" not in columns:
                return encodings
            return [window for encoding in encodings for window in (encoding, *encoding.overflowing)]

        return model_inputs(rows, dtype=array_type, single=single, return_length=return_length, encode=encode)

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
    ) -> MapFunction:
        """Return a function for ``Dataset.map(function, batched=True)`` of Hugging Face's datasets.

        It can be pickled, and its pickle depends on the tokenizer and the options alone, so that datasets finds results
        in its cache.

        Parameters
        ----------
        column : str, default "text"
            The column of texts.
        pair : str, optional
            The column of the second texts of pairs.
        add_special_tokens, padding, truncation, max_length, is_split_into_words, pad_to_multiple_of
            As for ``tokenizer(...)``.
        return_token_type_ids, return_attention_mask : bool, optional
            By default those that the model accepts.
        dtype : dtype_like, default "int64"
            The type of the arrays, int64 or int32.
        threads : int, optional
            As for `encode_batch`. Pass 1 together with ``num_proc``.

        Returns
        -------
        callable
            A function from the columns of a batch to ``input_ids``, ``token_type_ids`` and ``attention_mask``: arrays
            [rows, length] with padding, else lists of arrays.

        Raises
        ------
        InputError
            An option is wrong.
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
            warnings.warn(off, stacklevel=2)
        self._resolve(given, like_transformers=True)  # reports wrong options now, not in a worker
        columns = _requested(
            type_ids="token_type_ids" in names if return_token_type_ids is None else return_token_type_ids,
            attention_mask="attention_mask" in names if return_attention_mask is None else return_attention_mask,
        )
        return MapFunction(
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
        padding: bool | Literal["longest", "max_length", "do_not_pad"] = True,  # noqa: FBT001, FBT002
        max_length: int | None = None,
        pad_to_multiple_of: int | None = None,
        padding_side: Side | None = None,
        return_attention_mask: bool | None = None,  # noqa: FBT001
        return_tensors: Literal["np", "pt"] | None = None,
        verbose: bool = True,  # noqa: FBT001, FBT002
    ) -> BatchEncoding[Any]:
        """Pad rows that are encoded already, as in a collate function.

        Parameters
        ----------
        encoded_inputs : mapping or sequence of mapping
            One row or several by name (``{"input_ids": [[5, 6], [7]]}``), or a list of such dicts, one for each row.
        padding : bool or {"longest", "max_length", "do_not_pad"}, default True
            True means ``"longest"``, the longest row.
        max_length : int, optional
            The length for ``padding="max_length"``; by default `model_max_length`. Longer rows are not truncated.
        pad_to_multiple_of : int, optional
            Round the length up to a multiple of this.
        padding_side : {"right", "left"}, optional
            The side of padding; by default that of the tokenizer's files.
        return_attention_mask : bool, optional
            Add and pad ``attention_mask``; by default if the model accepts it.
        return_tensors : {"np", "pt"}, optional
            The type of the result. By default that of the input: lists, arrays or tensors.
        verbose : bool, default True
            Warn if padding needs a maximum length that is not known.

        Returns
        -------
        BatchEncoding
            ``input_ids``, ``attention_mask``, ``token_type_ids`` and ``special_tokens_mask`` padded, and other values
            unchanged.

        Raises
        ------
        InputError
            There is no ``input_ids``, values have different numbers of rows or tokens, an option is wrong, or the
            tokenizer has no padding token.

        Warns
        -----
        UserWarning
            ``padding="max_length"`` without a `max_length`, and the tokenizer has no `model_max_length`.
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
            warnings.warn(off, stacklevel=2)
        _, resolved = self._resolve(given, like_transformers=True)
        if return_attention_mask is None:
            return_attention_mask = "attention_mask" in self._settings.model_input_names
        from wordpiece_bert.padding import pad_inputs

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
        already_has_special_tokens: bool = False,  # noqa: FBT001, FBT002
    ) -> list[int]:
        """Return which tokens of a row are special, 1 or 0 for each.

        Parameters
        ----------
        token_ids_0 : ids
            The ids of a text without special tokens, or with `already_has_special_tokens` those of a row.
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
        """
        first = _id_list(token_ids_0)
        second = None if token_ids_1 is None else _id_list(token_ids_1)
        if already_has_special_tokens:
            if second is not None:
                message = (
                    "You should not supply a second sequence if the provided sequence of ids is already formatted with "
                    "special tokens for the model."
                )
                raise InputError(message)
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

    def _resolve(self, given: CallOptions, *, like_transformers: bool = False) -> tuple[bool, _core.Options]:
        """Return whether texts are lists of words, and the core's options, from the cache where possible."""
        # By identity: True equals 1, which is an error, and an array equals nothing.
        if not like_transformers and all(map(operator.is_, given, _PLAIN)):
            if self._plain is None:
                self._plain = resolve(self._inner, self._defaults, given)
            return False, self._plain
        # With the types of values, because True equals 1 but means something else.
        key = (like_transformers, *given, *map(type, given))
        try:
            known = self._resolved.get(key)
        except TypeError:  # an unhashable value, such as a list; the checks report it
            known = None
        if known is None:
            split = checked_flag("is_split_into_words", given.is_split_into_words)
            known = split, resolve(self._inner, self._defaults, given, like_transformers=like_transformers)
            if len(self._resolved) < _CACHED_OPTIONS:
                self._resolved[key] = known
        return known

    def _file_encoder(
        self,
        files: StrPath | Iterable[StrPath],
        given: CallOptions,
        columns: list[str],
        reading: ReadingOptions,
        threads: int | None,
    ) -> FileEncoder:
        """Return the encoder of `iter_files` and `encode_files`."""
        _, resolved = self._resolve(given)
        from wordpiece_bert.corpus.encode import FileEncoder  # only corpora need it

        return FileEncoder(
            self._inner,
            files,
            resolved,
            columns=columns,
            threads=threads,
            reading=reading,
            warns=self._file_truncates(given),
        )

    def tokenize(
        self,
        text: str,
        pair: str | None = None,
        add_special_tokens: bool = False,  # noqa: FBT001, FBT002
    ) -> list[str]:
        """Return the tokens of a text, or of a pair, without truncation and padding.

        Parameters
        ----------
        text : str
            The text.
        pair : str, optional
            The second text of a pair.
        add_special_tokens : bool, default False
            Add the special tokens of the template.

        Returns
        -------
        list of str
            The tokens in order.
        """
        return self.encode(text, pair, add_special_tokens=add_special_tokens, truncation=False, padding=False).tokens

    # --- decoding

    def decode(
        self,
        ids: Ids | SupportsIndex,
        skip_special_tokens: bool = True,  # noqa: FBT001, FBT002
        clean_up_tokenization_spaces: bool | None = None,  # noqa: FBT001
        *,
        strict: bool = False,
    ) -> str:
        """Convert ids to text.

        Parameters
        ----------
        ids : list, array or int
            Ids [n], or one id; any integer type of NumPy.
        skip_special_tokens : bool, default True
            Omit special added tokens.
        clean_up_tokenization_spaces : bool, optional
            Remove the spaces before punctuation and in contractions. Defaults to the setting of the tokenizer's
            decoder.
        strict : bool, default False
            Raise InputError for an id that has no token, instead of skipping it as `tokenizers` does.

        Returns
        -------
        str
            The text.

        Raises
        ------
        InputError
            A value is not an id; the message has its index.
        """
        if isinstance(ids, np.integer) or (isinstance(ids, np.ndarray) and ids.ndim == 0 and ids.dtype.kind in "iu"):
            ids = int(ids)
        return self._inner.decode(ids, skip_special_tokens, clean_up_tokenization_spaces, strict)

    def decode_batch(
        self,
        ids: Iterable[Ids],
        skip_special_tokens: bool = True,  # noqa: FBT001, FBT002
        clean_up_tokenization_spaces: bool | None = None,  # noqa: FBT001
        *,
        strict: bool = False,
    ) -> list[str]:
        """Convert rows of ids to texts.

        Parameters
        ----------
        ids : iterable of ids
            A list of lists, an array [rows, length], or a `RaggedBatch`.
        skip_special_tokens, clean_up_tokenization_spaces, strict
            As for `decode`.

        Returns
        -------
        list of str
            One text per row.

        Raises
        ------
        InputError
            A value is not an id; the message has its row and index.
        """
        return self._inner.decode_batch(ids, skip_special_tokens, clean_up_tokenization_spaces, strict)

    def batch_decode(
        self,
        sequences: Iterable[Ids],
        skip_special_tokens: bool = False,  # noqa: FBT001, FBT002
        clean_up_tokenization_spaces: bool | None = None,  # noqa: FBT001
    ) -> list[str]:
        """Convert rows of ids to texts, with the name and the default of transformers.

        `decode` and `decode_batch` have the default of `tokenizers`: they omit special tokens.

        Parameters
        ----------
        sequences : iterable of ids
            A list of lists, an array [rows, length], or a `RaggedBatch`.
        skip_special_tokens : bool, default False
            Omit special added tokens.
        clean_up_tokenization_spaces : bool, optional
            As for `decode`.

        Returns
        -------
        list of str
            One text per row.

        Raises
        ------
        InputError
            A value is not an id; the message has its row and index.
        """
        return self.decode_batch(sequences, skip_special_tokens, clean_up_tokenization_spaces)

    def convert_tokens_to_string(self, tokens: Iterable[str]) -> str:
        """Join tokens to a text, as `decode` does with the tokens of ids.

        Parameters
        ----------
        tokens : iterable of str
            The tokens; they need not be in the vocabulary.

        Returns
        -------
        str
            The text: the result of the decoder, or without one the tokens separated by spaces.

        Raises
        ------
        InputError
            A token is not a str.
        """
        return self._inner.join_tokens(checked_strings("tokens", tokens))

    # --- the vocabulary

    def token_to_id(self, token: str) -> int | None:
        """Return the id of a token, added tokens included, or None if there is no such token.

        Parameters
        ----------
        token : str
            The token.
        """
        return self._inner.token_to_id(token)

    def id_to_token(self, token_id: int) -> str | None:
        """Return the token of an id, added tokens included, or None if the id has no token.

        Parameters
        ----------
        token_id : int
            The id.
        """
        return self._inner.id_to_token(token_id)

    @overload
    def convert_tokens_to_ids(self, tokens: str) -> int: ...

    @overload
    def convert_tokens_to_ids(self, tokens: list[str] | tuple[str, ...]) -> list[int]: ...

    def convert_tokens_to_ids(self, tokens: str | list[str] | tuple[str, ...]) -> int | list[int]:
        """Return the id of a token, or of each in a list; an unknown one gets that of the unknown token.

        Parameters
        ----------
        tokens : str, or list of str
            A token, or several.
        """
        if isinstance(tokens, str):
            found = self._inner.token_to_id(tokens)
            return self._inner.unk_id if found is None else found
        return [self.convert_tokens_to_ids(token) for token in tokens]

    @overload
    def convert_ids_to_tokens(self, ids: int, skip_special_tokens: bool = False) -> str | None: ...  # noqa: FBT001, FBT002

    @overload
    def convert_ids_to_tokens(
        self,
        ids: Iterable[int],
        skip_special_tokens: bool = False,  # noqa: FBT001, FBT002
    ) -> list[str | None]: ...

    def convert_ids_to_tokens(
        self,
        ids: int | Iterable[int],
        skip_special_tokens: bool = False,  # noqa: FBT001, FBT002
    ) -> str | list[str | None] | None:
        """Return the token of an id, or of each in a list; None for an id without a token.

        With `skip_special_tokens`, special added tokens are omitted from a list.

        Parameters
        ----------
        ids : int, or iterable of int
            An id, or several.
        skip_special_tokens : bool, default False
            Omit special added tokens from a list.
        """
        if isinstance(ids, int | np.integer):
            return self._inner.id_to_token(ids)
        return [self._inner.id_to_token(i) for i in ids if not (skip_special_tokens and self._inner.is_special(i))]

    def get_vocab(self, with_added_tokens: bool = True) -> dict[str, int]:  # noqa: FBT001, FBT002
        """Return token -> id: the model's tokens by id, then the added tokens that the model does not have.

        Parameters
        ----------
        with_added_tokens : bool, default True
            Include the added tokens.
        """
        return self._inner.vocab(with_added_tokens)

    @property
    def vocab_size(self) -> int:
        """The number of tokens of the model, without added tokens; ``len(tokenizer)`` includes them."""
        return self._inner.vocab_size(False)  # noqa: FBT003

    @property
    def memory_bytes_per_thread(self) -> int:
        """The upper bound of the word cache, in bytes per thread.

        The cache holds the pieces of words seen before. When it is full, words are evicted and computed again when they
        recur, so the memory stays below this bound for any number of distinct words. 0 for a tokenizer without a cache.
        """
        return self._inner.memory_bytes_per_thread

    def __len__(self) -> int:
        return self._inner.vocab_size(True)  # noqa: FBT003

    def __contains__(self, token: object) -> bool:
        return isinstance(token, str) and self._inner.token_to_id(token) is not None

    @property
    def added_tokens(self) -> dict[int, AddedToken]:
        """Id -> added token, in the order in which they were added."""
        return {
            token_id: AddedToken(
                content,
                single_word=single_word,
                lstrip=lstrip,
                rstrip=rstrip,
                normalized=normalized,
                special=special,
            )
            for token_id, (content, single_word, lstrip, rstrip, normalized, special) in self._inner.added_tokens()
        }

    def num_special_tokens_to_add(self, pair: bool = False) -> int:  # noqa: FBT001, FBT002
        """Return how many special tokens the template adds to a text, or with `pair` to a pair.

        Parameters
        ----------
        pair : bool, default False
            Whether two texts make the row.
        """
        return self._inner.special_tokens_added(pair)

    # --- special tokens

    def _role(self, role: str) -> str | None:
        token = self._settings.special_tokens.get(role)
        return None if token is None or self._inner.token_to_id(token) is None else token

    def _role_id(self, role: str) -> int | None:
        token = self._settings.special_tokens.get(role)
        return None if token is None else self._inner.token_to_id(token)

    @property
    def unk_token(self) -> str | None:
        """The token for a word that the vocabulary cannot represent."""
        return self._role("unk_token")

    @property
    def cls_token(self) -> str | None:
        """The token at the start of a row; None if the vocabulary has none."""
        return self._role("cls_token")

    @property
    def sep_token(self) -> str | None:
        """The token at the end of each text; None if the vocabulary has none."""
        return self._role("sep_token")

    @property
    def pad_token(self) -> str | None:
        """The token that rows are padded with; None if the vocabulary has none."""
        return self._role("pad_token")

    @property
    def mask_token(self) -> str | None:
        """The token that replaces masked tokens; None if the vocabulary has none."""
        return self._role("mask_token")

    @property
    def unk_token_id(self) -> int | None:
        """The id of `unk_token`."""
        return self._role_id("unk_token")

    @property
    def cls_token_id(self) -> int | None:
        """The id of `cls_token`; None if the vocabulary has none."""
        return self._role_id("cls_token")

    @property
    def sep_token_id(self) -> int | None:
        """The id of `sep_token`; None if the vocabulary has none."""
        return self._role_id("sep_token")

    @property
    def pad_token_id(self) -> int | None:
        """The id of `pad_token`; None if the vocabulary has none."""
        return self._role_id("pad_token")

    @property
    def mask_token_id(self) -> int | None:
        """The id of `mask_token`; None if the vocabulary has none."""
        return self._role_id("mask_token")

    @property
    def all_special_tokens(self) -> list[str]:
        """The tokens with a role and all other special added tokens, without duplicates."""
        roles = [token for role in SPECIAL_TOKEN_ROLES if (token := self._role(role)) is not None]
        added = [token.content for token in self.added_tokens.values() if token.special]
        return list(dict.fromkeys([*roles, *added]))

    @property
    def all_special_ids(self) -> list[int]:
        """The ids of `all_special_tokens`."""
        return self.convert_tokens_to_ids(self.all_special_tokens)

    # --- settings

    @property
    def model_max_length(self) -> int | None:
        """The maximum length of a row for the model, special tokens included; None if no file states it."""
        return self._settings.model_max_length

    @property
    def truncation(self) -> TruncationSettings | None:
        """The truncation that applies by default, with the names that `tokenizers` uses; None for none.

        `from_file` and `from_json` take it from the tokenizer.json, `with_truncation` sets it, and `from_pretrained`
        leaves it out.
        """
        return self._inner.truncation

    @property
    def padding(self) -> PaddingSettings | None:
        """The padding that applies by default, with the names that `tokenizers` uses; None for none.

        `from_file` and `from_json` take it from the tokenizer.json, `with_padding` sets it, and `from_pretrained`
        leaves it out.
        """
        return self._inner.padding

    @property
    def truncation_side(self) -> Literal["left", "right"]:
        """The side on which texts are truncated by default."""
        return self._defaults.truncation_side

    @property
    def padding_side(self) -> Literal["left", "right"]:
        """The side on which rows are padded by default."""
        return self._defaults.padding_side

    # --- saving and comparing

    def to_json(self) -> str:
        """Return the text of a tokenizer.json, from which `tokenizers` makes a tokenizer with the same results.

        If the ids of the vocabulary have gaps (a vocab.txt with blank or repeated lines), `tokenizers` would give new
        added tokens other ids. They are then in the vocabulary as well.

        Raises
        ------
        InputError
            The ids have gaps, and an added token could be a piece of ordinary words if it were in the vocabulary.
        """
        return self._inner.to_json(True)  # noqa: FBT003

    def save(self, path: StrPath) -> None:
        """Write a tokenizer.json, atomically.

        Parameters
        ----------
        path : str or os.PathLike
            The file to create or replace.

        Raises
        ------
        InputError
            As for `to_json`.
        OSError
            The file cannot be written.
        """
        write_text(Path(path), self.to_json())

    def save_pretrained(self, folder: StrPath) -> None:
        """Write a model folder that transformers loads with the same ids.

        The files are tokenizer.json, tokenizer_config.json, special_tokens_map.json, and vocab.txt if that format can
        represent the vocabulary. Other files of an existing folder stay.

        The files appear, or replace older ones, only when all of them are complete. A folder in which the replacement
        was interrupted is refused by every load, until something is saved there again.

        Parameters
        ----------
        folder : path
            The folder; it is created if need be.

        Raises
        ------
        InputError
            There is a file of that name. Also as for `to_json`.
        OSError
            A file cannot be written; then nothing has changed.
        """
        with AtomicFolder(Path(folder)) as output:
            output.begin()
            self._write_files(output)
            output.commit()

    def _write_files(self, output: AtomicFolder) -> None:
        """Write the files of `save_pretrained`."""
        roles = {role: token for role in SPECIAL_TOKEN_ROLES if (token := self._role(role)) is not None}
        write_folder(output, self._inner, replace(self._settings, special_tokens=roles))

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the tokenizer's definition, in hex. It is the same in every process: a key for cached results."""
        if self._fingerprint is None:
            settings = self._settings
            other_settings = {
                "model_max_length": settings.model_max_length,
                "padding_side": self.padding_side,
                "truncation_side": self.truncation_side,
                "special_tokens": {role: self._role(role) for role in SPECIAL_TOKEN_ROLES},
                "model_input_names": settings.model_input_names,
            }
            try:
                definition = self.to_json()
            except InputError:  # no file holds it
                definition = self._inner.to_json(False)  # noqa: FBT003
            content = f"{definition}\n{json.dumps(other_settings, sort_keys=True)}"
            import hashlib

            self._fingerprint = hashlib.sha256(content.encode()).hexdigest()
        return self._fingerprint

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tokenizer):
            return NotImplemented
        return self is other or self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (type(self), self._inner.to_json(False), self._settings)  # noqa: FBT003

    def __repr__(self) -> str:
        about = [f"vocab_size={self.vocab_size}", self._inner.summary()]
        added = len(self) - self.vocab_size
        if added:
            about.append(f"added_tokens={added}")
        if self.model_max_length is not None:
            about.append(f"model_max_length={self.model_max_length}")
        if self.truncation is not None:
            about.append(f"truncation={self.truncation['max_length']}")
        if self.padding is not None:
            about.append(f"padding={self.padding['length'] or 'longest'}")
        return f"Tokenizer({', '.join(about)})"


def _restore(cls: type[Tokenizer], text: str, settings: FolderSettings) -> Tokenizer:
    """Create a tokenizer from the contents of its pickle."""
    return cls._build(_core.Tokenizer.from_json(text), settings)


def _pad_contradiction(core: _core.Tokenizer) -> str | None:
    """Return what is wrong with the padding of a tokenizer.json whose pad_id is not the id of its pad_token."""
    padding = core.padding
    if padding is None:
        return None
    actual = core.token_to_id(padding["pad_token"])
    if actual == padding["pad_id"]:
        return None
    has = f"has the id {actual}" if actual is not None else "is not in the vocabulary"
    return f"padding: pad_id is {padding['pad_id']}, but its pad_token {padding['pad_token']!r} {has}"


def _defaults(core: _core.Tokenizer, settings: FolderSettings) -> Defaults:
    """Return the settings of a folder, and where it has none, those of its tokenizer.json."""
    truncation, padding = core.truncation, core.padding
    pad_token = settings.special_tokens.get("pad_token", SPECIAL_TOKEN_ROLES["pad_token"])
    pad_id = core.token_to_id(pad_token)
    if pad_id is None and padding is not None:
        pad_token, pad_id = padding["pad_token"], padding["pad_id"]
    return Defaults(
        truncation=truncation,
        padding=padding,
        truncation_side=settings.truncation_side or (truncation["direction"] if truncation else "right"),
        padding_side=settings.padding_side or (padding["direction"] if padding else "right"),
        model_max_length=settings.model_max_length,
        pad_token=pad_token,
        pad_id=pad_id,
        pad_type_id=padding["pad_type_id"] if padding else 0,
    )


@contextlib.contextmanager
def _naming(path: StrPath | None) -> Iterator[None]:
    """Prefix errors about a file with its path."""
    try:
        yield
    except (VocabError, TokenizerFormatError) as error:
        if path is None:
            raise
        message = f"{os.fspath(path)}: {error}"
        raise type(error)(message) from error.__cause__


def _read(path: StrPath) -> bytes:
    try:
        return Path(path).read_bytes()
    except FileNotFoundError as cause:
        message = f"no file {os.fspath(path)!r}: there is nothing at {Path(path).absolute()}"
        raise ModelNotFoundError(message) from cause


def _vocabulary(vocab: object) -> bytes | list[Any] | dict[Any, Any]:
    if isinstance(vocab, str | os.PathLike):
        return _read(vocab)
    if isinstance(vocab, Mapping):
        return dict(vocab)
    if isinstance(vocab, Iterable) and not isinstance(vocab, bytes | bytearray | AbstractSet):
        return list(vocab)
    message = f"a vocabulary must be a path, a list of tokens or a dict of tokens and ids, not {type(vocab).__name__}"
    raise InputError(message)


def _fields(token: AddedToken | AddedTokenFields) -> tuple[str, bool, bool, bool, bool, bool]:
    return token.content, token.single_word, token.lstrip, token.rstrip, token.normalized, token.special


def _kept(texts: Any) -> Any:  # noqa: ANN401
    """Return texts such that they can be read again: an iterator or a list as a new list, others as they are."""
    if texts is None:
        return None
    if isinstance(texts, list):
        return texts.copy()
    # An Arrow stream, such as pyarrow's RecordBatchReader, is an iterator too, but its rows are texts only to the core.
    is_iterator = isinstance(texts, Iterator) and not hasattr(texts, "__arrow_c_stream__")
    return list(texts) if is_iterator else texts


def _items(texts: Any) -> Any:  # noqa: ANN401
    """Return the texts of a column as a list, and other texts as they are."""
    column = _core._column_texts(texts)
    return texts if column is None else column


def _id_list(ids: object) -> list[int]:
    """Return ids as a list; an `InputError` for anything else than whole numbers."""
    if isinstance(ids, Iterable) and not isinstance(ids, str | bytes):
        return [whole_number(f"id {index}", token_id, 0) for index, token_id in enumerate(ids)]
    message = f"ids must be a list or an array of whole numbers, not {ids!r}"
    raise InputError(message)


def _warn_many_windows(rows: _core.Rows) -> None:
    """Warn if a text has very many windows."""
    if rows.overflow_to_sample is None or len(rows.overflow_to_sample) <= _MANY_WINDOWS:
        return
    counts = np.bincount(rows.overflow_to_sample)
    index = int(counts.argmax())
    if counts[index] > _MANY_WINDOWS:
        message = (
            f"texts[{index}] has {counts[index]:,} windows. Those of a pair are all combinations of the windows of "
            "both texts; truncation='only_first' or 'only_second' divides one of them"
        )
        warnings.warn(message, stacklevel=4)


def _requested(**columns: bool) -> list[str]:
    """Return the names of the columns that are True."""
    return [column for column, requested in columns.items() if requested]


def _dtype(dtype_like: npt.DTypeLike) -> np.dtype[Any]:
    if isinstance(dtype_like, str) and dtype_like == "int64":
        return _INT64
    with contextlib.suppress(TypeError):
        dtype = np.dtype(dtype_like)
        if dtype in (_INT64, np.dtype(np.int32)):
            return dtype
    message = f"dtype must be 'int64' or 'int32', not {dtype_like!r}"
    raise InputError(message)
