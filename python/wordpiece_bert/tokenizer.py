"""The tokenizer's face: what it is made of, what it can be asked, how it is saved. The work is done in `_core`."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import warnings
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, SupportsIndex, Union, Unpack, overload

import numpy as np

from wordpiece_bert import _core
from wordpiece_bert._core import Encoding
from wordpiece_bert._internal.atomic_file import write_text
from wordpiece_bert._internal.checks import checked_flag, whole_number
from wordpiece_bert.added_token import AddedToken
from wordpiece_bert.batch import BatchEncoding, RaggedBatch, model_inputs
from wordpiece_bert.corpus.encode import EncodeSummary, FileEncoder, FileOptions, write_encoded
from wordpiece_bert.errors import InputError, ModelNotFoundError, TokenizerFormatError, VocabError, VocabWarning
from wordpiece_bert.hub import find_model
from wordpiece_bert.options import Defaults, EncodeOptions, PaddingSettings, TruncationSettings, resolve
from wordpiece_bert.pretrained import (
    SPECIAL_TOKEN_ROLES,
    FolderSettings,
    load_folder,
    moved_tokens,
    write_folder,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from wordpiece_bert.arrow import ArrowArray, ArrowStream
    from wordpiece_bert.pretrained import AddedTokenFields, LoadedFolder

__all__ = ["AddedToken", "BatchEncoding", "Encoding", "RaggedBatch", "Tokenizer"]

StrPath = str | os.PathLike[str]
#: A text; with ``is_split_into_words=True`` the words of one.
Text = Union[str, "Sequence[str]", "npt.NDArray[Any]"]
#: What becomes a row of a batch: a text, or a pair of texts.
Item = Union[Text, "tuple[Text, Text]"]
#: Many of them: an iterable, an array of NumPy, a column of Arrow.
Batch = Union["Iterable[Item]", "ArrowArray", "ArrowStream"]
#: A list of ids, an array, anything that yields whole numbers.
Ids = Union["Iterable[SupportsIndex]", "npt.NDArray[Any]"]

_OPTIONS = frozenset(EncodeOptions.__annotations__)

# Calls with different options that are kept ready.
_REMEMBERED = 64

# How many of a vocab.txt's oddities a warning tells; the rest it counts.
_ODDITIES_TOLD = 5


class Tokenizer:
    """A WordPiece tokenizer: text to BERT's inputs, and back.

    Nothing ever changes one: threads may share it, and the answer is the same whatever their number. It can be pickled,
    copied and compared; equal are those that answer the same because they are made of the same.

    `from_vocab`, `from_file`, `from_json` and `from_pretrained` make one; `encode` shows all about one text,
    `encode_batch` gives flat arrays, and the call, ``tokenizer(texts, padding=True)``, what transformers' does.
    """

    __slots__ = ("_defaults", "_fingerprint", "_inner", "_plain", "_resolved", "_settings")

    _inner: _core.Tokenizer
    _settings: FolderSettings
    _defaults: Defaults
    # Worked out when first needed: the options of a call that gives none, of calls with others, and the fingerprint.
    _plain: _core.Options | None
    _resolved: dict[tuple[object, ...], tuple[bool, _core.Options]]
    _fingerprint: str | None

    def __init__(self) -> None:
        message = "make a Tokenizer with from_vocab, from_file, from_json or from_pretrained"
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
        """Wrap a tokenizer that no folder describes: the roles are guessed, and no other setting is made."""
        return cls._build(core, FolderSettings(special_tokens=core.roles()))

    # --- making one

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
        """Make a BERT tokenizer of a vocabulary.

        The five special tokens are registered (found in a text as they are, left out by `decode`) where the vocabulary
        has them. With `cls_token` and `sep_token` rows are ``[CLS] A [SEP]`` and ``[CLS] A [SEP] B [SEP]``; without one
        of them nothing is put around texts.

        Parameters
        ----------
        vocab
            Path of a vocab.txt (one token a line, its id the line), tokens in the order of their ids, or token -> id.
        lowercase
            Lower-case texts.
        strip_accents
            Drop combining marks; None: as `lowercase`.
        clean_text
            Drop control characters, make every white space a space.
        tokenize_chinese_chars
            Make every ideograph a word.
        unk_token, cls_token, sep_token, pad_token, mask_token
            The special tokens. `unk_token` must be in the vocabulary, the others may be.
        continuing_subword_prefix
            What marks a piece that continues a word.
        max_input_chars_per_word
            A word of more characters is `unk_token`.
        strict
            A vocab.txt with blank or double lines, white space at the end of a line or a byte order mark is an error,
            not a warning.

        Raises
        ------
        VocabError
            An empty vocabulary, one without `unk_token`, two tokens with one id, a token twice in a list, not UTF-8;
            with `strict` whatever else would be a warning.
        ModelNotFoundError
            There is no such file.

        Warns
        -----
        VocabWarning
            Lines of a vocab.txt that are probably not meant. Every id remains the number of its line.
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
            more = len(oddities) - _ODDITIES_TOLD
            told = oddities[:_ODDITIES_TOLD] + ([f"and {more:,} more such lines"] if more > 0 else [])
            warnings.warn(f"{path}: {'; '.join(told)}", VocabWarning, stacklevel=2)
        return cls._build(core, FolderSettings(special_tokens=roles))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read the text of a tokenizer.json.

        Every component that WordPiece files use is supported; another is refused by its name. Truncation and padding
        that the file sets hold where `encode`, `encode_batch` and `encodings` say nothing.

        Raises
        ------
        TokenizerFormatError
            Not JSON, or something in it is wrong or not supported; the message names the component and the field.
        VocabError
            An empty vocabulary, one without its unknown token, two tokens with one id.
        """
        return cls._from_core(_core.Tokenizer.from_json(text))

    @classmethod
    def from_file(cls, path: StrPath) -> Self:
        """Read a tokenizer.json, as `from_json`.

        Raises
        ------
        ModelNotFoundError
            There is no such file.
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
            return cls.from_json(text)

    @classmethod
    def from_pretrained(cls, name: StrPath, *, revision: str | None = None) -> Self:
        """Load the tokenizer of a model that is on this machine; nothing is ever downloaded.

        The folder's tokenizer.json is followed as it is, and where there is none its vocab.txt with the options of
        tokenizer_config.json; special and added tokens of the other files come on top.

        Parameters
        ----------
        name
            ``"minilm"``, a folder, or ``"org/name"`` in the local Hugging Face cache.
        revision
            Of a model in the Hugging Face cache.

        Raises
        ------
        ModelNotFoundError
            No such model is here, or its folder has neither tokenizer.json nor vocab.txt.
        TokenizerFormatError, VocabError
            A file is broken, contradicts itself or is not supported.

        Warns
        -----
        UserWarning
            tokenizer_config.json contradicts tokenizer.json, or states other ids for added tokens.
        """
        folder = find_model(name, revision=revision)
        loaded = load_folder(folder)
        tokenizer = cls._load(folder, loaded)
        for message in (*loaded.warnings, *moved_tokens(loaded, tokenizer.get_vocab())):
            warnings.warn(message, stacklevel=2)
        return tokenizer

    @classmethod
    def _load(cls, folder: Path, loaded: LoadedFolder) -> Self:
        """Build what a folder describes."""
        settings = loaded.settings
        if loaded.json is not None:
            with _naming(folder / "tokenizer.json"):
                tokenizer = cls.from_json(loaded.json)
        else:
            assert loaded.vocab is not None, "a folder has one of the two"
            roles: dict[str, Any] = dict(settings.special_tokens)
            tokenizer = cls.from_vocab(
                loaded.vocab.path,
                lowercase=loaded.vocab.lowercase,
                strip_accents=loaded.vocab.strip_accents,
                tokenize_chinese_chars=loaded.vocab.tokenize_chinese_chars,
                **roles,
            )
        core = tokenizer._inner.with_added_tokens([_fields(token) for token in loaded.added_tokens])
        tokenizer = cls._build(core, settings)
        if loaded.vocab is not None and not core.special_tokens_added(pair=False):
            cls_id, sep_id = tokenizer.cls_token_id, tokenizer.sep_token_id
            if cls_id is not None and sep_id is not None:
                cls_token, sep_token = settings.special_tokens["cls_token"], settings.special_tokens["sep_token"]
                tokenizer = cls._build(core.with_bert_template(cls_token, sep_token), settings)
        return tokenizer

    def with_added_tokens(self, tokens: Iterable[str | AddedToken], *, special: bool = False) -> Self:
        """Make a tokenizer that has more added tokens; this one stays as it is.

        A token of the vocabulary keeps its id, a new one gets the next after all others. One that was added before
        takes the new flags.

        Parameters
        ----------
        tokens
            Strings, or `AddedToken` for those with flags.
        special
            All of them are special tokens: `decode` leaves them out, and they are searched for in the text as it is.

        Raises
        ------
        InputError
            An empty token, one that normalization turns into nothing, or something that is no token.
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

    def encode(self, text: Text, pair: Text | None = None, **options: Unpack[EncodeOptions]) -> Encoding:
        """Encode one text, or a pair of texts, with everything there is to know about the result.

        Parameters
        ----------
        text, pair
            Each a str; with ``is_split_into_words=True`` a list of words. An empty `pair` is one, None is none.
        **options
            As in `EncodeOptions`: truncation, max_length, padding and so on.

        Raises
        ------
        InputError
            Something else than text, a lone surrogate, or a wrong option.
        """
        split, resolved = self._resolve(options)
        return self._inner.encode(text, pair, split, resolved)

    def encode_ids(self, text: str, pair: str | None = None) -> npt.NDArray[np.uint32]:
        """Encode one text, or a pair, into ids, uint32 [n]: those of ``encode(text).ids``, the shortest way."""
        return self._inner.encode_ids(text, pair, self._plain or self._resolve({})[1])

    def encode_batch(
        self,
        texts: Batch,
        *,
        return_offsets: bool = False,
        return_word_ids: bool = False,
        return_sequence_ids: bool = False,
        return_overflowing_tokens: bool = False,
        return_n_tokens: bool = False,
        threads: int | None = None,
        **options: Unpack[EncodeOptions],
    ) -> RaggedBatch:
        """Encode a batch into flat arrays: the fastest way.

        Parameters
        ----------
        texts
            A list (or another iterable, an array) of texts and of pairs, ``(text, pair)``; with
            ``is_split_into_words=True`` each text is a list of words. Or a column of Arrow from any library, which is
            read in place: strings, a table or struct of two columns of strings for pairs, lists of strings for words.
        return_offsets, return_word_ids, return_sequence_ids
            What to work out beside ids.
        return_overflowing_tokens
            The windows that truncation cuts off become rows too, each after those of its text before it.
        return_n_tokens
            How many tokens each text had before it was cut.
        threads
            How many threads work; by default what `set_num_threads` set, else what this process may use.
        **options
            As for `encode`.

        Raises
        ------
        InputError
            As for `encode`, and a null in a column; the message has the index of the item.
        """
        columns = _chosen(
            offsets=return_offsets,
            word_ids=return_word_ids,
            sequence_ids=return_sequence_ids,
            overflow_to_sample=return_overflowing_tokens,
            n_tokens=return_n_tokens,
        )
        split, resolved = self._resolve(options)
        rows = self._inner.encode_batch(texts, None, split, resolved, columns, False, threads)  # noqa: FBT003
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

    def iter_files(self, files: StrPath | Iterable[StrPath], **options: Unpack[FileOptions]) -> Iterator[RaggedBatch]:
        """Encode texts out of files that may be larger than memory, block by block.

        Parameters
        ----------
        files
            A path, or paths; ``-`` is standard input. Gzip and Zstandard are decompressed.
        **options
            As in `FileOptions`: what stands between texts or holds them, what to do about bad ones, what to work out,
            and the options of `encode`.

        Returns
        -------
        Iterator of RaggedBatch
            The rows of some megabytes of text each, in the order of the files; `overflow_to_sample` counts from the
            first text of its batch.

        Raises
        ------
        InputError
            As for `encode_batch`, and for texts that cannot be read; the message has file, line and byte offset. Also
            padding to the longest row: a stream has none, pad to a ``max_length``.
        OSError
            A file that is not there or cannot be read.
        """
        return (batch for _, batch in FileEncoder(self._inner, files, self._resolve, options))

    def encode_files(
        self,
        files: StrPath | Iterable[StrPath],
        output: StrPath,
        *,
        dtype: npt.DTypeLike = "uint32",
        show_progress_bar: bool | None = None,
        **options: Unpack[FileOptions],
    ) -> EncodeSummary:
        """Encode texts out of files into a file, in memory that does not grow with them.

        Under its final name the output is whole or not there, whatever interrupts the work.

        Parameters
        ----------
        files, **options
            As for `iter_files`.
        output
            The file to make or to replace. ``X.npy``: the ids of all rows as one array [n], with the places where rows
            begin, int64 [rows + 1], in ``X.row_offsets.npy``; with ``padding="max_length"`` one array [rows, length].
            What else is asked for is in ``X.offsets.npy`` and so on. ``.arrow`` (``.arrows``: a stream) and
            ``.parquet``: a table with a row for each row and the columns ``ids`` and what else was asked for; they need
            pyarrow. ``.jsonl``: the same as JSON lines. With truncation there is a column ``truncated``.
        dtype
            Of the ids: uint16 (where the vocabulary allows it), uint32, int32 or int64.
        show_progress_bar
            None: where standard error is a terminal and tqdm is installed.

        Returns
        -------
        EncodeSummary
            How many texts, rows and tokens, what was cut, what was left out.

        Raises
        ------
        InputError, OSError
            As for `iter_files`; also for an output that cannot be made, and ids that `dtype` does not hold.
        """
        return write_encoded(
            FileEncoder(self._inner, files, self._resolve, options),
            output,
            vocabulary=len(self),
            dtype=dtype,
            show_progress_bar=show_progress_bar,
        )

    def encodings(
        self,
        texts: Batch,
        *,
        threads: int | None = None,
        **options: Unpack[EncodeOptions],
    ) -> list[Encoding]:
        """Encode a batch into an `Encoding` for each text: all about each, the complete and slower way.

        Parameters
        ----------
        texts, threads, **options
            As for `encode_batch`. Encodings of texts that were cut hold their text, of a column the whole column.
        """
        split, resolved = self._resolve(options)
        return self._inner.encodings(texts, split, resolved, threads)

    def __call__(
        self,
        text: Text | Batch,
        text_pair: Text | Batch | None = None,
        *,
        return_tensors: Literal["np"] | None = "np",
        dtype: npt.DTypeLike = "int64",
        return_token_type_ids: bool | None = None,
        return_attention_mask: bool | None = None,
        return_overflowing_tokens: bool = False,
        return_special_tokens_mask: bool = False,
        return_offsets_mapping: bool = False,
        return_length: bool = False,
        threads: int | None = None,
        **options: Unpack[EncodeOptions],
    ) -> BatchEncoding:
        """Encode texts into model inputs, as a tokenizer of transformers does when it is called.

        Unlike for `encode`, truncation and padding that the tokenizer's file sets do not hold, and `max_length` without
        padding truncates by itself.

        Parameters
        ----------
        text
            A text, or a list or column of texts and pairs as for `encode_batch`. One text makes a batch of one row.
        text_pair
            The second text, or a list or column of as many second texts.
        return_tensors
            ``"np"``: arrays; None: lists, for a single text those of its row.
        dtype
            Of the arrays, int64 or int32.
        return_token_type_ids, return_attention_mask
            By default what the model takes, which is both unless its folder says otherwise.
        return_overflowing_tokens
            The windows that truncation cuts off become rows too; ``overflow_to_sample_mapping`` has the text of each.
        return_special_tokens_mask, return_offsets_mapping, return_length
            With ``special_tokens_mask``, ``offset_mapping``, ``length`` (padding included).
        threads
            As for `encode_batch`.
        **options
            As for `encode`.

        Returns
        -------
        BatchEncoding
            ``input_ids``, ``token_type_ids``, ``attention_mask`` and what else was asked for, [rows, length] each.

        Raises
        ------
        InputError
            As for `encode_batch`; also rows of unequal length as arrays (pass ``padding=True``), and lists of texts and
            second texts of unequal length.
        """
        if return_tensors not in ("np", None):
            message = f"return_tensors must be 'np' or None, not {return_tensors!r}; np.asarray goes on from there"
            raise InputError(message)
        names = self._settings.model_input_names
        columns = _chosen(
            type_ids="token_type_ids" in names if return_token_type_ids is None else return_token_type_ids,
            attention_mask="attention_mask" in names if return_attention_mask is None else return_attention_mask,
            special_tokens_mask=return_special_tokens_mask,
            offsets=return_offsets_mapping,
            overflow_to_sample=return_overflowing_tokens,
        )
        split, resolved = self._resolve(options, like_transformers=True)
        single = self._inner.is_single(text, split)
        texts, pairs = (text, text_pair) if not single else ([text], None if text_pair is None else [text_pair])
        wanted = None if return_tensors is None else _dtype(dtype)
        rows = self._inner.encode_batch(texts, pairs, split, resolved, columns, wanted == np.int64, threads)
        return model_inputs(rows, dtype=wanted, single=single, return_length=return_length)

    def _resolve(self, options: EncodeOptions, *, like_transformers: bool = False) -> tuple[bool, _core.Options]:
        """Decide the options of a call: whether texts are lists of words, and the rest."""
        if not options and not like_transformers:
            if self._plain is None:
                self._plain = resolve(self._inner, self._defaults)
            return False, self._plain
        # Types too: True equals 1, and is another option.
        key = (like_transformers, *options, *options.values(), *map(type, options.values()))
        try:
            known = self._resolved.get(key)
        except TypeError:  # a list where no list is taken: what is wrong with it is told there
            return self._decide(options, like_transformers=like_transformers)
        if known is None:
            known = self._decide(options, like_transformers=like_transformers)
            if len(self._resolved) < _REMEMBERED:
                self._resolved[key] = known
        return known

    def _decide(self, options: EncodeOptions, *, like_transformers: bool) -> tuple[bool, _core.Options]:
        unknown = options.keys() - _OPTIONS
        if unknown:
            message = f"unknown option {min(unknown)!r}; the options are {', '.join(sorted(_OPTIONS))}"
            raise InputError(message)
        rest: dict[str, Any] = dict(options)
        split = checked_flag("is_split_into_words", rest.pop("is_split_into_words", False))
        return split, resolve(self._inner, self._defaults, like_transformers=like_transformers, **rest)

    def tokenize(self, text: str, pair: str | None = None, *, add_special_tokens: bool = False) -> list[str]:
        """Return the tokens of a text, or of a pair: not cut, not padded, by default nothing around them."""
        options = EncodeOptions(add_special_tokens=add_special_tokens, truncation=False, padding=False)
        return self.encode(text, pair, **options).tokens

    # --- decoding

    def decode(
        self,
        ids: Ids | int,
        *,
        skip_special_tokens: bool = True,
        clean_up_tokenization_spaces: bool | None = None,
        strict: bool = False,
    ) -> str:
        """Turn ids into text.

        Parameters
        ----------
        ids
            A list or an array of ids [n], or one id.
        skip_special_tokens
            Leave special added tokens out.
        clean_up_tokenization_spaces
            Drop the spaces before punctuation and in contractions; None: as the tokenizer's decoder says.
        strict
            An id without a token is an InputError; else it is passed over, as the reference does.

        Raises
        ------
        InputError
            Something that is no id; the message has its index.
        """
        return self._inner.decode(ids, skip_special_tokens, clean_up_tokenization_spaces, strict)

    def decode_batch(
        self,
        ids: Iterable[Ids],
        *,
        skip_special_tokens: bool = True,
        clean_up_tokenization_spaces: bool | None = None,
        strict: bool = False,
    ) -> list[str]:
        """Turn lists of ids (a list of lists, an array [rows, length], a `RaggedBatch`) into texts, as `decode`."""
        return self._inner.decode_batch(ids, skip_special_tokens, clean_up_tokenization_spaces, strict)

    # --- the vocabulary

    def token_to_id(self, token: str) -> int | None:
        """Return the id of a token, added ones included; None if there is no such token."""
        return self._inner.token_to_id(token)

    def id_to_token(self, token_id: int) -> str | None:
        """Return the token of an id, added ones included; None if the id has none."""
        return self._inner.id_to_token(token_id)

    @overload
    def convert_tokens_to_ids(self, tokens: str) -> int: ...

    @overload
    def convert_tokens_to_ids(self, tokens: list[str] | tuple[str, ...]) -> list[int]: ...

    def convert_tokens_to_ids(self, tokens: str | list[str] | tuple[str, ...]) -> int | list[int]:
        """Return the id of a token or of each of several; of one that does not exist that of the unknown token."""
        if isinstance(tokens, str):
            found = self._inner.token_to_id(tokens)
            return self._inner.unk_id if found is None else found
        return [self.convert_tokens_to_ids(token) for token in tokens]

    @overload
    def convert_ids_to_tokens(self, ids: int, *, skip_special_tokens: bool = False) -> str | None: ...

    @overload
    def convert_ids_to_tokens(self, ids: Iterable[int], *, skip_special_tokens: bool = False) -> list[str | None]: ...

    def convert_ids_to_tokens(
        self, ids: int | Iterable[int], *, skip_special_tokens: bool = False
    ) -> str | list[str | None] | None:
        """Return the token of an id or of each of several, None where there is none.

        With `skip_special_tokens` special added tokens are left out of a list.
        """
        if isinstance(ids, int | np.integer):
            return self._inner.id_to_token(ids)
        return [self._inner.id_to_token(i) for i in ids if not (skip_special_tokens and self._inner.is_special(i))]

    def get_vocab(self, *, with_added_tokens: bool = True) -> dict[str, int]:
        """Return all tokens with their ids, those of the model by id, then the added ones that it does not have."""
        return self._inner.vocab(with_added_tokens)

    @property
    def vocab_size(self) -> int:
        """The number of tokens of the model, without added ones; ``len(tokenizer)`` counts those too."""
        return self._inner.vocab_size(False)  # noqa: FBT003

    @property
    def memory_bytes_per_thread(self) -> int:
        """The most memory that words remembered between texts take, in bytes, for each thread at work.

        Words that were met are found again at once. However many different ones come, the memory stays below this: then
        words are forgotten, and worked out again when they come back. 0 for a tokenizer that remembers none.
        """
        return self._inner.memory_bytes_per_thread

    def __len__(self) -> int:
        return self._inner.vocab_size(True)  # noqa: FBT003

    def __contains__(self, token: object) -> bool:
        return isinstance(token, str) and self._inner.token_to_id(token) is not None

    @property
    def added_tokens(self) -> dict[int, AddedToken]:
        """The added tokens by id, in the order in which they were added."""
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

    def num_special_tokens_to_add(self, *, pair: bool = False) -> int:
        """Return how many special tokens are put around one text, or around two."""
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
        """What a word becomes that has no pieces."""
        return self._role("unk_token")

    @property
    def cls_token(self) -> str | None:
        """The token that begins a row; None if the vocabulary has none."""
        return self._role("cls_token")

    @property
    def sep_token(self) -> str | None:
        """The token that ends each text; None if the vocabulary has none."""
        return self._role("sep_token")

    @property
    def pad_token(self) -> str | None:
        """The token that fills rows up; None if the vocabulary has none."""
        return self._role("pad_token")

    @property
    def mask_token(self) -> str | None:
        """The token that hides a piece in training; None if the vocabulary has none."""
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
        """The tokens with a role and the other special added tokens, each once."""
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
        """The longest row that the model takes, special tokens included; None if no file says it."""
        return self._settings.model_max_length

    @property
    def truncation(self) -> TruncationSettings | None:
        """The truncation that the tokenizer.json sets, with the names of `tokenizers`; None for none."""
        return self._inner.truncation

    @property
    def padding(self) -> PaddingSettings | None:
        """The padding that the tokenizer.json sets, with the names of `tokenizers`; None for none."""
        return self._inner.padding

    @property
    def truncation_side(self) -> Literal["left", "right"]:
        """Where texts are cut if a call does not say it."""
        return self._defaults.truncation_side

    @property
    def padding_side(self) -> Literal["left", "right"]:
        """Where rows are filled up if a call does not say it."""
        return self._defaults.padding_side

    # --- saving, comparing

    def to_json(self) -> str:
        """Return the text of a tokenizer.json, which `tokenizers` reads with the same answers."""
        return self._inner.to_json()

    def save(self, path: StrPath) -> None:
        """Write a tokenizer.json; under its final name it is whole or not there."""
        write_text(Path(path), self.to_json())

    def save_pretrained(self, folder: StrPath) -> None:
        """Write a model folder, which transformers reads with the same ids.

        tokenizer.json, tokenizer_config.json, special_tokens_map.json, and vocab.txt where it can hold the vocabulary.
        """
        roles = {role: token for role in SPECIAL_TOKEN_ROLES if (token := self._role(role)) is not None}
        write_folder(
            Path(folder),
            self._inner,
            settings=replace(self._settings, special_tokens=roles),
        )

    @property
    def fingerprint(self) -> str:
        """SHA-256 in hex of all that the tokenizer is made of: the same in every process, for caches of its results."""
        if self._fingerprint is None:
            settings = self._settings
            beside = {
                "model_max_length": settings.model_max_length,
                "padding_side": self.padding_side,
                "truncation_side": self.truncation_side,
                "special_tokens": {role: self._role(role) for role in SPECIAL_TOKEN_ROLES},
                "model_input_names": settings.model_input_names,
            }
            content = f"{self.to_json()}\n{json.dumps(beside, sort_keys=True)}"
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
        return _restore, (type(self), self.to_json(), self._settings)

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
    """Make a tokenizer of what its pickle holds."""
    return cls._build(_core.Tokenizer.from_json(text), settings)


def _defaults(core: _core.Tokenizer, settings: FolderSettings) -> Defaults:
    """Collect what a folder says and, where it says nothing, its tokenizer.json."""
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
    """Put a file's path before what is wrong with it."""
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
        message = f"no file {os.fspath(path)!r}; it was looked for at {Path(path).absolute()}"
        raise ModelNotFoundError(message) from cause


def _vocabulary(vocab: object) -> bytes | list[Any] | dict[Any, Any]:
    if isinstance(vocab, str | os.PathLike):
        return _read(vocab)
    if isinstance(vocab, Mapping):
        return dict(vocab)
    if isinstance(vocab, Iterable) and not isinstance(vocab, bytes | bytearray | AbstractSet):
        return list(vocab)
    message = f"a vocabulary is a path, a list of tokens or a dict of tokens and ids, not {type(vocab).__name__}"
    raise InputError(message)


def _fields(token: AddedToken | AddedTokenFields) -> tuple[str, bool, bool, bool, bool, bool]:
    return token.content, token.single_word, token.lstrip, token.rstrip, token.normalized, token.special


def _chosen(**columns: bool) -> list[str]:
    return [column for column, wanted in columns.items() if wanted]


def _dtype(asked: npt.DTypeLike) -> np.dtype[Any]:
    with contextlib.suppress(TypeError):
        dtype = np.dtype(asked)
        if dtype in (np.dtype(np.int64), np.dtype(np.int32)):
            return dtype
    message = f"dtype must be 'int64' or 'int32', not {asked!r}"
    raise InputError(message)
