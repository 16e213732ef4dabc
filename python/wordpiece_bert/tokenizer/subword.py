"""Tokenizers that are not WordPiece, for models that need them: byte-level BPE and Unigram, through ``tokenizers``.

RoBERTa and XLM-RoBERTa have such tokenizers. Their folders are read with the package ``tokenizers``, which is imported
here when a folder needs it; a `SubwordTokenizer` has the calls of `Tokenizer` that encoders, rankers and tasks make.
"""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypedDict, TypeVar, Unpack, cast

from wordpiece_bert._internal.checks import checked_strings, whole_number
from wordpiece_bert._internal.lazy import numpy as np
from wordpiece_bert._internal.parameters import taking
from wordpiece_bert._internal.peer_arguments import SUBWORD_ENCODE
from wordpiece_bert._internal.peer_names import INSTEAD_IN_SUBWORD, add_peer_names
from wordpiece_bert._internal.safe_json import quoted, read_object
from wordpiece_bert.errors import InputError, ModelNotFoundError, TokenizerFormatError
from wordpiece_bert.tokenizer import pretrained
from wordpiece_bert.tokenizer.call_options import truncation_of
from wordpiece_bert.tokenizer.model_rows import IdBounds, require_rows
from wordpiece_bert.tokenizer.option_types import CallOptions, Defaults
from wordpiece_bert.tokenizer.parts import id_bounds, input_names, plain_core
from wordpiece_bert.tokenizer.pretrained.folder_contents import SUBWORD_MODELS
from wordpiece_bert.tokenizer.pretrained.folder_settings import Settings, read_optional_object
from wordpiece_bert.tokenizer.pretrained.special_tokens import declared_tokens
from wordpiece_bert.tokenizer.ragged_batch import RaggedBatch
from wordpiece_bert.tokenizer.shared_core import SharedCore, Truncation, blocks, package_errors, read_core
from wordpiece_bert.tokenizer.subword_arguments import check_text, checked_id, checked_ids, checked_items
from wordpiece_bert.tokenizer.token_roles import TokenRoles
from wordpiece_bert.tokenizer.tokenizer import Tokenizer
from wordpiece_bert.tokenizer.word_cache import WordCache

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Sequence

    import numpy.typing as npt

    from wordpiece_bert._core import Encoding
    from wordpiece_bert._internal.atomic_folder import AtomicFolder
    from wordpiece_bert.tokenizer.option_types import Side
    from wordpiece_bert.tokenizer.word_splitter import WordSplitter

#: The tokenizer of an encoder, a ranker or a task, and what it makes of a text. Both kinds have the calls that these
#: make; what needs more takes a `Tokenizer`, which `wordpiece` asks for.
AnyTokenizer: TypeAlias = "Tokenizer | SubwordTokenizer"
AnyEncoding: TypeAlias = "Encoding | SubwordEncoding"

#: Files of tokenizers that ``tokenizers`` cannot read.
_SENTENCEPIECE = (
    "sentencepiece.bpe.model",
    "spm.model",
    "spiece.model",
    "sentencepiece.model",
    "tokenizer.model",
    "merges.txt",
)

#: A ``tokenizer.json`` of 250,000 pieces has about 17 MB.
_LARGEST_FILE = 200_000_000

#: Limits above this mean none: transformers writes 1e30.
_NO_LIMIT = 2**31

#: The tokens of roles that a folder does not name, where the vocabulary has them; else the tokens of BERT.
_USUAL_TOKENS = dict(zip(pretrained.SPECIAL_TOKEN_ROLES, ("<unk>", "</s>", "<pad>", "<s>", "<mask>"), strict=True))

_Row = TypeVar("_Row")

_SETTINGS = ("tokenizer_config.json", "special_tokens_map.json")


@dataclass(frozen=True, eq=False)
class SubwordEncoding:
    """The tokens of one text or pair; the names are as in `Encoding`."""

    ids: list[int]
    token_type_ids: list[int]
    tokens: list[str]
    offsets: list[tuple[int, int]]
    special_tokens_mask: list[int]
    word_ids: list[int | None]
    sequence_ids: list[int | None]
    truncated: bool
    #: The further windows of a truncated text.
    overflowing: list[SubwordEncoding]

    @property
    def attention_mask(self) -> list[int]:
        """1 for all tokens: rows are not padded."""
        return [1] * len(self.ids)

    def __len__(self) -> int:
        return len(self.ids)

    def token_to_word(self, index: int) -> int | None:
        """Return the number of the word that a token belongs to, in its text; None for a special token."""
        return self.word_ids[index]

    def word_to_chars(self, word: int, sequence: int) -> tuple[int, int] | None:
        """Return the start and the end of a word of text 0 or 1, in characters; None if the row does not have it."""
        spans = [
            span
            for span, number, text in zip(self.offsets, self.word_ids, self.sequence_ids, strict=True)
            if number == word and text == sequence
        ]
        return (spans[0][0], spans[-1][1]) if spans else None


#: What a row of the package ``tokenizers`` has under the same names.
_SAME = ("ids", "tokens", "offsets", "special_tokens_mask", "word_ids", "sequence_ids")


def _encoding(row: Any, types: list[int] | None) -> SubwordEncoding:
    """Return a row of ``tokenizers``, or an `Encoding`, with its further windows; without token types, these are 0."""
    further = row.overflowing
    return SubwordEncoding(
        **{name: getattr(row, name) for name in _SAME},
        token_type_ids=[0] * len(row.ids) if types is None else types,
        truncated=getattr(row, "truncated", bool(further)),
        overflowing=[_encoding(one, None if types is None else one.type_ids) for one in further],
    )


class _Windows(NamedTuple):
    """The ids of a row, and of its further windows if they are wanted."""

    ids: list[npt.NDArray[np.uint32]]
    #: int64 [tokens, 2] each; none unless they are wanted.
    offsets: list[npt.NDArray[np.int64]]
    truncated: bool


def _windows(row: Any, *, all_: bool, offsets: bool) -> _Windows:
    """Return the ids of a row of the package ``tokenizers``."""
    further = row.overflowing
    wanted = [row, *further] if all_ else [row]
    return _Windows(
        [np.array(one.ids, np.uint32) for one in wanted],
        [np.array(one.offsets, np.int64).reshape(-1, 2) for one in wanted] if offsets else [],
        bool(further),
    )


def is_subword(folder: str | os.PathLike[str]) -> bool:
    """Return whether the tokenizer of a folder is one that `SubwordTokenizer` reads.

    Parameters
    ----------
    folder : str or os.PathLike
        A model folder.

    Raises
    ------
    ModelNotFoundError
        The folder has the files of a SentencePiece or BPE tokenizer, but no ``tokenizer.json``; the message says how to
        make one.
    TokenizerFormatError
        ``tokenizer.json`` cannot be read, or is not UTF-8. What it has is checked when it is loaded.
    """
    folder = Path(folder)
    file = folder / "tokenizer.json"
    if file.is_file():
        return pretrained.model_kind(file) in SUBWORD_MODELS
    found = [name for name in _SENTENCEPIECE if (folder / name).is_file()]
    if found and not (folder / "vocab.txt").is_file():
        raise ModelNotFoundError(
            f"{folder} has {found[0]}, but no tokenizer.json, which the package tokenizers needs. Make one where "
            f'transformers is installed:\n    python -c "from transformers import AutoTokenizer as T; '
            f'T.from_pretrained({str(folder)!r}).save_pretrained({str(folder)!r})"'
        )
    return False


def check_tokenizer(tokenizer: object) -> None:
    """Raise an `InputError` unless an argument is a tokenizer of this package."""
    if not isinstance(tokenizer, Tokenizer | SubwordTokenizer):
        kind = type(tokenizer).__name__
        raise InputError(f"tokenizer must be a Tokenizer, such as the tokenizer of an encoder, not {kind}")


def tokenizer_of(folder: str | os.PathLike[str], *, word_splitter: WordSplitter | None = None) -> AnyTokenizer:
    """Return the tokenizer of a model folder.

    Parameters
    ----------
    folder : str or os.PathLike
        A model folder.
    word_splitter : callable, optional
        What finds the words for a Japanese tokenizer: see `Tokenizer.from_pretrained`.

    Raises
    ------
    ImportError
        The tokenizer is not WordPiece, and the package ``tokenizers`` is not installed.
    ConfigError
        The tokenizer has tokens that the folder's model does not have.
    InputError, ModelNotFoundError, TokenizerFormatError
        As for `Tokenizer.from_pretrained` and `is_subword`.
    """
    tokenizer: AnyTokenizer
    if word_splitter is None and is_subword(folder):
        tokenizer = SubwordTokenizer(folder)
    else:
        tokenizer = Tokenizer.from_pretrained(folder, word_splitter=word_splitter)
    rows = (read_optional_object(Path(folder) / "config.json") or {}).get("vocab_size")
    if isinstance(rows, int) and rows > 0:
        require_rows(tokenizer, id_bounds(tokenizer), rows, folder)
    return tokenizer


def wordpiece(tokenizer: AnyTokenizer, what: str) -> Tokenizer:
    """Return a tokenizer that must be WordPiece.

    Parameters
    ----------
    tokenizer : Tokenizer or SubwordTokenizer
        The tokenizer.
    what : str
        What needs it, for the message.

    Raises
    ------
    InputError
        It is not WordPiece, or a ``word_splitter`` finds its words.
    """
    if not isinstance(tokenizer, Tokenizer):
        raise InputError(f"{what} needs a WordPiece tokenizer, not {tokenizer!r}")
    plain_core(tokenizer, what)
    return tokenizer


def model_encodings(tokenizer: AnyTokenizer, encodings: Sequence[AnyEncoding]) -> Sequence[AnyEncoding]:
    """Return encodings with the token types that a model is given, as transformers gives them.

    Parameters
    ----------
    tokenizer : Tokenizer or SubwordTokenizer
        The tokenizer that made them.
    encodings : sequence of Encoding or SubwordEncoding
        Texts or pairs.

    Returns
    -------
    sequence of Encoding or SubwordEncoding
        The same, or copies whose token types are 0 where ``model_input_names`` of tokenizer_config.json leaves them
        out. Encodings of a `SubwordTokenizer` are like this already.
    """
    if isinstance(tokenizer, SubwordTokenizer) or "token_type_ids" in input_names(tokenizer):
        return encodings
    return [_encoding(encoding, None) for encoding in encodings]


class _TruncationOptions(TypedDict, total=False):
    """How a call truncates, with the names of `Tokenizer`; rows are not padded."""

    truncation: bool | str | None
    max_length: int | None
    stride: int
    truncation_side: str | None
    padding: bool


_DEFAULTS = {"stride": 0, "padding": False}


class SubwordTokenizer(TokenRoles):
    """A byte-level BPE or Unigram tokenizer, with the calls of `Tokenizer` that encoders, rankers and tasks make.

    Truncation and padding of the file do not apply. Threads may share it; of their calls, those that truncate alike run
    side by side. Token types come from the file's template, or are 0 where ``model_input_names`` of
    tokenizer_config.json leaves them out, or the folder's model has a single one. Where the tokens of a word do not
    depend on its neighbours, `encode_batch` without special tokens keeps the ids of words.

    Parameters
    ----------
    folder : str or os.PathLike
        A folder with ``tokenizer.json``, for which `is_subword` is true.
    lowercase : bool, default False
        Whether texts are converted to lower case first.
    special_tokens : sequence of str, default ()
        Further tokens that are not split.
    definition : dict, optional
        The content of a ``tokenizer.json`` that was made from the folder's, whose settings do not apply then.

    Raises
    ------
    ImportError
        The package ``tokenizers`` is not installed; the message has the extra that installs it.
    TokenizerFormatError
        ``tokenizers`` cannot read the file, or a setting in another file of the tokenizer is wrong.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        lowercase: bool = False,
        special_tokens: Sequence[str] = (),
        definition: dict[str, Any] | None = None,
    ) -> None:
        try:
            import tokenizers
        except ImportError as cause:
            raise ImportError(
                f"{folder} has a tokenizer that is not WordPiece: it needs the package tokenizers: "
                "pip install 'wordpiece-bert[tokenizers]'"
            ) from cause
        self._folder = Path(folder)
        self._given = definition
        self.lowercase = lowercase
        file = self._folder / "tokenizer.json"
        try:
            text = file.read_text(encoding="utf-8-sig") if definition is None else json.dumps(definition)
        except (OSError, UnicodeDecodeError) as cause:
            raise TokenizerFormatError(f"{file}: cannot be read: {cause}") from cause
        core = read_core(text, file)
        self._special = tuple(checked_strings("special_tokens", special_tokens))
        if self._special:
            added = [tokenizers.AddedToken(token, normalized=False, special=True) for token in self._special]
            core.add_special_tokens(added)
        self._shared = SharedCore(core)
        config = self._folder / "tokenizer_config.json"
        has_settings = definition is None and config.is_file()
        self._settings = read_object(config, TokenizerFormatError) if has_settings else {}
        settings = Settings(config, self._settings)
        self._named = declared_tokens(self._folder, settings, {}).named if definition is None else {}
        self._has_types = "token_type_ids" in settings.input_names() and self._type_count() != 1

    def _type_count(self) -> object:
        """Return how many token types the folder's model has, as config.json says; None if it does not."""
        return (read_optional_object(self._folder / "config.json") or {}).get("type_vocab_size")

    @property
    def _core(self) -> Any:
        return self._shared.core

    @cached_property
    def _words(self) -> WordCache:
        """The words that texts had: when they are first asked for, because most models never do."""
        return WordCache(self._shared)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_words"}

    @property
    def folder(self) -> Path:
        """The folder that it was loaded from, or from whose tokenizer it was made."""
        return self._folder

    @property
    def model_max_length(self) -> int | None:
        """The longest row in tokens that the folder sets; None for no limit."""
        value = self._settings.get("model_max_length")
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < _NO_LIMIT:
            return None
        return int(value)

    @property
    def truncation_side(self) -> Side:
        """The side on which texts are truncated by default."""
        return Settings(self._folder / "tokenizer_config.json", self._settings).side("truncation_side") or "right"

    @property
    def vocab_size(self) -> int:
        """The number of tokens, without those that were added."""
        return cast("int", self._core.get_vocab_size(with_added_tokens=False))

    def get_vocab(self) -> dict[str, int]:
        """Return the ids of all tokens by token, added tokens included."""
        return cast("dict[str, int]", self._core.get_vocab(with_added_tokens=True))

    def _id_bounds(self) -> IdBounds:
        """Return the largest ids."""
        vocabulary = self._core.get_vocab(with_added_tokens=False)
        largest = max(((index, token) for token, index in vocabulary.items()), default=(-1, ""))
        added = self._core.get_added_tokens_decoder()
        return IdBounds.of(largest, ((index, token.content) for index, token in added.items()))

    @property
    def unknown_id(self) -> int | None:
        """The id that the tokenizer's model gives to what it does not know; None if it names none."""
        model = self.definition().get("model")
        model = model if isinstance(model, dict) else {}
        index, token = model.get("unk_id"), model.get("unk_token")
        if isinstance(index, int) and not isinstance(index, bool):
            return index
        return self.token_to_id(token) if isinstance(token, str) else None

    def definition(self) -> dict[str, Any]:
        """Return the content of the file ``tokenizer.json``; it may be changed."""
        if self._given is not None:
            return copy.deepcopy(self._given)
        return read_object(self._folder / "tokenizer.json", TokenizerFormatError, max_bytes=_LARGEST_FILE)

    def facts(self) -> dict[str, object]:
        """Return what the command ``info`` shows of the tokenizer."""
        roles = ("unk_token", "cls_token", "sep_token", "pad_token", "mask_token", "bos_token", "eos_token")
        special = {token: self.token_to_id(token) for role in roles if (token := self._role(role)) is not None}
        return {
            "model": type(self._core.model).__name__,
            "vocabulary": self.vocab_size,
            "with_added_tokens": int(self._core.get_vocab_size(with_added_tokens=True)),
            "special_tokens": special,
            "longest_row": self.model_max_length,
        }

    def _role(self, name: str) -> str | None:
        if name in self._named or name in self._settings:
            return self._named[name].content if name in self._named else None
        usual = [tokens[name] for tokens in (_USUAL_TOKENS, pretrained.SPECIAL_TOKEN_ROLES) if name in tokens]
        return next((token for token in usual if self.token_to_id(token) is not None), None)

    def _role_id(self, name: str) -> int | None:
        token = self._role(name)
        return None if token is None else self.token_to_id(token)

    def token_to_id(self, token: str) -> int | None:
        """Return the id of a token; None if there is no such token."""
        with package_errors(InputError, lambda: f"token {token!r:.80}"):
            return cast("int | None", self._core.token_to_id(token))

    def id_to_token(self, index: int) -> str | None:
        """Return the token of an id; None if there is no such id."""
        return cast("str | None", self._core.id_to_token(checked_id("token_id", index)))

    def convert_ids_to_tokens(self, ids: Iterable[int]) -> list[str | None]:
        """Return the tokens of ids."""
        return [self._core.id_to_token(index) for index in checked_ids(ids)]

    def decode(self, ids: Iterable[int], *, skip_special_tokens: bool = True) -> str:
        """Return the text of ids."""
        return cast("str", self._core.decode(checked_ids(ids), skip_special_tokens=skip_special_tokens))

    def join_tokens(self, tokens: list[str]) -> str:
        """Return the text of tokens, as the decoder of the tokenizer writes it."""
        tokens = checked_strings("tokens", tokens)
        decoder = self._core.decoder
        if decoder is None:
            return " ".join(tokens)
        with package_errors(InputError, lambda: f"tokens {tokens!r:.80}"):
            return cast("str", decoder.decode(tokens))

    def num_special_tokens_to_add(self, *, pair: bool = False) -> int:
        """Return how many special tokens a row of one text, or of a pair, has."""
        return int(self._core.num_special_tokens_to_add(pair))

    @taking(_TruncationOptions, _DEFAULTS, SUBWORD_ENCODE)
    def encode(
        self,
        text: str,
        pair: str | None = None,
        *,
        add_special_tokens: bool = True,
        **options: Unpack[_TruncationOptions],
    ) -> SubwordEncoding:
        """Tokenize one text or pair."""
        check_text("text", text)
        item: Any = text if pair is None else (text, pair)
        return self.encodings([item], add_special_tokens=add_special_tokens, **options)[0]

    @taking(_TruncationOptions, _DEFAULTS)
    def encodings(
        self,
        texts: Sequence[Any],
        *,
        add_special_tokens: bool = True,
        is_split_into_words: bool = False,
        threads: int | None = None,
        **options: Unpack[_TruncationOptions],
    ) -> list[SubwordEncoding]:
        """Tokenize texts or pairs, truncated as by `Tokenizer.encodings`."""
        return self._run(
            lambda row: _encoding(row, row.type_ids if self._has_types else None),
            texts,
            self._truncation(**options),
            threads,
            special=add_special_tokens,
            split=is_split_into_words,
            offsets=True,
        )

    @taking(_TruncationOptions, _DEFAULTS)
    def encode_batch(
        self,
        texts: Sequence[Any],
        *,
        add_special_tokens: bool = True,
        return_offsets: bool = False,
        return_overflowing_tokens: bool = False,
        threads: int | None = None,
        **options: Unpack[_TruncationOptions],
    ) -> RaggedBatch:
        """Tokenize texts or pairs, as `Tokenizer.encode_batch`."""
        wanted = self._truncation(**options)
        plain = not (add_special_tokens or return_offsets or return_overflowing_tokens)
        if plain and self._words.is_usable and (wanted is None or wanted.is_of_one_text):
            texts = checked_items(texts, split=False)
            if all(isinstance(item, str) for item in texts):
                return self._rows_of_words([self._prepared(text) for text in texts], wanted, threads)
        found = self._run(
            lambda row: _windows(row, all_=return_overflowing_tokens, offsets=return_offsets),
            texts,
            wanted,
            threads,
            special=add_special_tokens,
            offsets=return_offsets,
        )
        ids = [one for windows in found for one in windows.ids]
        samples: npt.NDArray[np.int64] | None = None
        if return_overflowing_tokens:
            samples = np.repeat(np.arange(len(found)), [len(windows.ids) for windows in found]).astype(np.int64)
        offsets: npt.NDArray[np.int64] | None = None
        if return_offsets:
            parts = [one for windows in found for one in windows.offsets]
            offsets = np.concatenate([np.zeros((0, 2), np.int64), *parts])
        return RaggedBatch(
            ids=np.concatenate([np.zeros(0, np.uint32), *ids]),
            row_offsets=np.cumsum([0, *map(len, ids)], dtype=np.int64),
            truncated=np.array([windows.truncated for windows in found], np.bool_),
            offsets=offsets,
            overflow_to_sample=samples,
        )

    def _rows_of_words(self, texts: list[str], truncation: Truncation | None, threads: int | None) -> RaggedBatch:
        """Return the ids of texts without special tokens, for pipelines whose words are tokenized one by one."""
        ids: list[npt.NDArray[np.uint32]] = []
        lengths: list[int] = []
        truncated: list[bool] = []
        most = None if truncation is None else truncation.max_length
        keeps_end = truncation is not None and truncation.side == "left"
        for block in blocks(texts):
            with self._shared.truncating(None):
                rows = self._words.rows(block, threads)
            truncated += [most is not None and len(row) > most for row in rows]
            if most is not None:
                rows = [row[max(len(row) - most, 0) :] if keeps_end else row[:most] for row in rows]
            lengths += map(len, rows)
            ids.append(np.array([index for row in rows for index in row], np.uint32))
        return RaggedBatch(
            ids=np.concatenate([np.zeros(0, np.uint32), *ids]),
            row_offsets=np.cumsum([0, *lengths], dtype=np.int64),
            truncated=np.array(truncated, np.bool_),
        )

    def _run(
        self,
        convert: Callable[[Any], _Row],
        texts: Sequence[Any],
        truncation: Truncation | None,
        threads: int | None,
        *,
        special: bool,
        split: bool = False,
        offsets: bool = False,
    ) -> list[_Row]:
        """Tokenize texts in blocks, and convert the rows of each, which take far more memory than what is kept."""
        found: list[_Row] = []
        items = checked_items(texts, split=split)
        if truncation is not None:
            pair = not split and not all(isinstance(item, str) for item in items)
            truncation.check(self.num_special_tokens_to_add(pair=pair) if special else 0)
        for block in blocks([self._prepared(text) for text in items]):
            with self._shared.truncating(truncation):
                rows = self._shared.encode(block, threads, special=special, split=split, offsets=offsets)
            found += map(convert, rows)
            del rows  # before the next block's are made
        return found

    def _truncation(self, *, padding: bool = False, **options: Any) -> Truncation | None:
        if padding:
            raise InputError("padding must be False: rows are padded by the model's call")
        given = CallOptions(**options)
        if given.max_length is not None:
            on = True if given.truncation is None else given.truncation
            given = given._replace(truncation=on, max_length=whole_number("max_length", given.max_length, 0))
        defaults = Defaults(None, None, self.truncation_side, "right", self.model_max_length, "", None, 0)
        found = truncation_of(defaults, given)
        return found and Truncation(found["max_length"], found["stride"], found["strategy"], found["direction"])

    def _prepared(self, item: Any) -> Any:
        if not self.lowercase:
            return item
        if isinstance(item, str):
            return item.lower()
        return type(item)(self._prepared(part) for part in item)

    def lowercased(self) -> SubwordTokenizer:
        """Return a tokenizer that converts texts to lower case first."""
        return SubwordTokenizer(self._folder, lowercase=True, special_tokens=self._special, definition=self._given)

    def with_special_tokens(self, tokens: Sequence[str]) -> SubwordTokenizer:
        """Return a tokenizer that does not split these tokens of its vocabulary."""
        special = (*self._special, *checked_strings("tokens", tokens))
        return SubwordTokenizer(self._folder, lowercase=self.lowercase, special_tokens=special, definition=self._given)

    def _write_files(self, output: AtomicFolder) -> None:
        """Write the files of the tokenizer as they are in its folder."""
        if self._given is not None:
            output.write_text("tokenizer.json", json.dumps(self._given, ensure_ascii=False))
            return
        for name in ("tokenizer.json", *_SETTINGS):
            if (self._folder / name).is_file():
                output.write_text(name, (self._folder / name).read_text(encoding="utf-8-sig"))

    def __repr__(self) -> str:
        kind = type(self._core.model).__name__
        tokens = self._core.get_vocab_size()
        return f"SubwordTokenizer({kind}, {tokens} tokens, from {quoted(str(self._folder))})"


add_peer_names(SubwordTokenizer, INSTEAD_IN_SUBWORD)
