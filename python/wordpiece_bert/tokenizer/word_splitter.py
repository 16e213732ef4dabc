"""Tokenizers whose words a function of the caller finds, as Japanese BERT models need: `WordCore`.

Source: ``BertJapaneseTokenizer`` of transformers 5.23. Added tokens are cut out of a text; what is between them is
normalized, split into words by the function, and put into lower case if the folder says so. Then come the WordPiece
tokens of each word, or its characters. A `WordCore` makes the words, and passes them to a core that neither normalizes
nor splits.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from wordpiece_bert import _core
from wordpiece_bert._internal.checks import iterates
from wordpiece_bert._internal.texts import one_or_many
from wordpiece_bert.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from wordpiece_bert.tokenizer.option_types import PaddingSettings, TruncationSettings
    from wordpiece_bert.tokenizer.pretrained import WordRules

#: What finds the words of a text: their surface forms, in order.
WordSplitter = Callable[[str], list[str]]

#: What an encoding has without places in the text.
_DEFINED = frozenset(
    {"ids", "tokens", "sequence_ids", "token_type_ids", "type_ids", "attention_mask", "special_tokens_mask"}
    | {"truncated", "n_tokens", "n_sequences", "token_to_sequence"}
)
_PLACES = frozenset(
    {"offsets", "word_ids", "char_to_token", "char_to_word", "token_to_chars", "token_to_word"}
    | {"word_to_tokens", "word_to_chars"}
)
#: What a core with a splitter has of the one that it calls, as it is.
_SAME = frozenset(
    {"added_tokens", "bert_normalizer", "bert_options", "continuing_subword_prefix", "decode", "decode_batch"}
    | {"id_to_token", "is_single", "join_tokens", "largest_id", "max_input_chars_per_word", "memory_bytes_per_thread"}
    | {"normalizer_type", "padding", "pre_tokenizer_type", "roles", "snapshot", "special_tokens_added", "to_vocab_txt"}
    | {"state", "token_to_id", "truncation", "unk_id", "unk_token", "vocab", "vocab_size"}
)
_NO_PLACES = (
    "a tokenizer with a word_splitter has no offsets and no word ids, since tokens have no place in a text that was "
    "normalized and split"
)


class WordOptions(NamedTuple):
    """The options of a call: the core's options, and whether added tokens that occur in a text are ordinary text."""

    core: _core.Options
    encode_special_tokens: bool

    @property
    def truncation(self) -> TruncationSettings | None:
        """The truncation."""
        return self.core.truncation

    @property
    def padding(self) -> PaddingSettings | None:
        """The padding."""
        return self.core.padding


class WordEncoding:
    """An `Encoding` without offsets and word ids: reading them is an error, since tokens have no place in the text."""

    __slots__ = ("_encoding",)

    def __init__(self, encoding: _core.Encoding) -> None:
        self._encoding = encoding

    def __getattr__(self, name: str) -> Any:
        if name in _DEFINED:
            return getattr(self._encoding, name)
        if name in _PLACES:
            raise InputError(f"{name}: {_NO_PLACES}")
        raise AttributeError(f"'WordEncoding' object has no attribute {name!r}", name=name, obj=self)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *sorted(_DEFINED)]

    @property
    def overflowing(self) -> list[WordEncoding]:
        """The further windows of a truncated text."""
        return [WordEncoding(window) for window in self._encoding.overflowing]

    def __len__(self) -> int:
        return len(self._encoding)

    def __array__(self, dtype: object = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return self._encoding.__array__(dtype, copy)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WordEncoding) and self._encoding == other._encoding

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"WordEncoding(ids={self.ids}, tokens={self.tokens})"


class WordCore:
    """A core whose texts are split into words by a function; it has the methods of `_core.Tokenizer`.

    Parameters
    ----------
    core : _core.Tokenizer
        A core with a vocabulary, added tokens and a template. The rules replace its normalizer and pre-tokenizer.
    splitter : callable
        The function: text -> list of str.
    rules : WordRules
        How texts are normalized, and what becomes of the words.
    """

    def __init__(self, core: _core.Tokenizer, splitter: WordSplitter, rules: WordRules) -> None:
        definition = json.loads(core.snapshot())
        definition["normalizer"] = definition["pre_tokenizer"] = None
        # Added tokens are passed to the core as words, which are looked up in the vocabulary.
        definition["model"]["vocab"] = core.vocab(True)
        self._core = _core.Tokenizer.restore(json.dumps(definition))
        self.splitter = splitter
        self.rules = rules
        self._flags = {content: flags for _, (content, *flags) in core.added_tokens()}
        longest_first = sorted(self._flags, key=len, reverse=True)
        self._added = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None
        self._unchanged = {*rules.never_split, *(token for token, flags in self._flags.items() if flags[-1])}

    def __getattr__(self, name: str) -> Any:
        if name in _SAME:
            return getattr(self._core, name)
        raise AttributeError(f"'WordCore' object has no attribute {name!r}", name=name, obj=self)

    @property
    def pipeline(self) -> str:
        """How texts become words, as text."""
        return json.dumps(self.rules._asdict())

    # --- words

    def words(self, text: str, *, encode_special_tokens: bool = False) -> list[str]:
        """Return what the core gets for a text: its words, or their characters, and the added tokens between them.

        Raises
        ------
        InputError
            The splitter returned something else than a list of str.
        """
        if encode_special_tokens or self._added is None:
            return self._words_of(text)
        parts: list[str] = []
        start = 0
        for found in self._added.finditer(text):
            parts += [text[start : found.start()], found[0]]
            start = found.end()
        parts = self._with_flags([part for part in (*parts, text[start:]) if part])
        return [word for part in parts for word in ([part] if part in self._flags else self._words_of(part))]

    def _with_flags(self, parts: list[str]) -> list[str]:
        """Apply the flags of added tokens: white space beside them belongs to them, or they must be whole words.

        As in transformers, what stands beside a token may be another token, which is then no token any more.
        """
        for i, token in enumerate(parts):
            if token not in self._flags:
                continue
            single_word, strips_left, strips_right, *_ = self._flags[token]
            left, right = parts[i - 1] if i else "", parts[i + 1] if i + 1 < len(parts) else ""
            if strips_right and right:
                parts[i + 1] = right.lstrip()
            if strips_left and left:
                parts[i - 1] = left.rstrip()
            if single_word and left and left[-1] != " ":
                parts[i - 1 : i + 1] = [parts[i - 1] + token, ""]
            elif single_word and right and right[0] != " ":
                parts[i : i + 2] = ["", token + parts[i + 1]]
        return parts

    def _words_of(self, text: str) -> list[str]:
        """Return the words of a text without added tokens."""
        if not text:
            return []
        text = text.lower() if self.rules.lowercase_text else text
        text = unicodedata.normalize("NFKC", text) if self.rules.normalize else text
        found = self.splitter(text)
        if not isinstance(found, list):
            raise InputError(
                f"word_splitter must return a list of str, not {type(found).__name__}, as for the text {text!r:.80}"
            )
        for index, word in enumerate(found):
            if not isinstance(word, str):
                raise InputError(
                    f"word_splitter must return a list of str, but item {index} is {word!r:.80}, for the text "
                    f"{text!r:.80}"
                )
        if self.rules.lowercase:
            found = [word if word in self._unchanged else word.lower() for word in found]
        if self.rules.characters:
            return [character for word in found for character in unicodedata.normalize("NFKC", word)]
        return [part for word in found for part in word.split()]

    def _of_text(self, text: Any, split: bool, options: WordOptions, what: str) -> list[str]:
        """Return the words of a text, which with `split` is a list of texts."""
        if not split:
            return self.words(_checked(text, what), encode_special_tokens=options.encode_special_tokens)
        if isinstance(text, str | bytes) or not iterates(text):
            raise InputError(f"{what}: with is_split_into_words=True a text is a list of words, not {text!r:.80}")
        whole = options.encode_special_tokens
        parts = [_checked(part, f"{what}, word {i}") for i, part in enumerate(text)]
        return [word for part in parts for word in self.words(part, encode_special_tokens=whole)]

    def _of_item(self, item: Any, split: bool, options: WordOptions, index: int) -> Any:
        """Return an item of a batch, a text or a pair, as words."""
        what = f"item {index}"
        if isinstance(item, str) or not hasattr(item, "__len__"):
            return self._of_text(item, split, options, what)
        parts = list(item)
        if len(parts) == 2 and not (split and any(isinstance(part, str) for part in parts)):
            return tuple(self._of_text(part, split, options, what) for part in parts)
        if not split:
            raise InputError(
                f"{what}: a pair has two texts, (text, pair); for a list of words: is_split_into_words=True"
            )
        return self._of_text(parts, split, options, what)

    # --- the calls of a core

    def options(
        self,
        add_special_tokens: bool,
        truncation: TruncationSettings | None,
        padding: PaddingSettings | None,
        offset_unit: str,
        encode_special_tokens: bool,
    ) -> WordOptions:
        """Return the options of a call. The core gets added tokens as words, which it must not split."""
        options = self._core.options(add_special_tokens, truncation, padding, offset_unit, True)
        return WordOptions(options, encode_special_tokens)

    def encode(self, text: Any, pair: Any, split: bool, options: WordOptions) -> WordEncoding:
        """Encode one text or pair."""
        second = None if pair is None else self._of_text(pair, split, options, "pair")
        first = self._of_text(text, split, options, "text")
        return WordEncoding(self._core.encode(first, second, True, options.core))

    def encode_ids(self, text: Any, pair: Any, options: WordOptions) -> npt.NDArray[np.uint32]:
        """Encode one text or pair to ids."""
        rows = self.encode_batch([text if pair is None else (text, pair)], None, False, options, [], False, 1)
        return rows.ids

    def encodings(self, texts: Any, split: bool, options: WordOptions, threads: int | None) -> list[WordEncoding]:
        """Encode a batch to encodings."""
        items = [self._of_item(item, split, options, i) for i, item in enumerate(_items(texts))]
        return [WordEncoding(one) for one in self._core.encodings(items, True, options.core, threads)]

    def encode_batch(
        self,
        texts: Any,
        pairs: Any,
        split: bool,
        options: WordOptions,
        columns: list[str],
        wide: bool,
        threads: int | None,
    ) -> _core.Rows:
        """Encode a batch to rows."""
        if "offsets" in columns or "word_ids" in columns:
            raise InputError(f"return_offsets, return_word_ids: {_NO_PLACES}")
        if pairs is None:
            first: list[Any] = [self._of_item(item, split, options, i) for i, item in enumerate(_items(texts))]
            return self._core.encode_batch(first, None, True, options.core, columns, wide, threads)
        first = [self._of_text(text, split, options, f"text {i}") for i, text in enumerate(_items(texts))]
        second = [self._of_text(text, split, options, f"pair {i}") for i, text in enumerate(_items(pairs))]
        return self._core.encode_batch(first, second, True, options.core, columns, wide, threads)

    # --- cores with other settings

    def with_settings(self, truncation: TruncationSettings | None, padding: PaddingSettings | None) -> WordCore:
        """Return a core with other defaults."""
        return WordCore(self._core.with_settings(truncation, padding), self.splitter, self.rules)

    def with_added_tokens(self, tokens: list[tuple[str, bool, bool, bool, bool, bool]]) -> WordCore:
        """Return a core with more added tokens."""
        return WordCore(self._core.with_added_tokens(tokens), self.splitter, self.rules)

    def with_lowercase(self) -> WordCore:
        """Return a core that puts texts into lower case before their words are found; added tokens keep their case."""
        return WordCore(self._core, self.splitter, self.rules._replace(lowercase_text=True))

    def to_json(self) -> NoReturn:
        """Refuse: no tokenizer.json has a function.

        Raises
        ------
        InputError
            Always.
        """
        raise InputError(
            "no tokenizer.json has a word_splitter: save_pretrained writes vocab.txt and the settings, and "
            "Tokenizer.from_pretrained(folder, word_splitter=...) reads them"
        )

    def summary(self) -> str:
        """Return the settings in a few words."""
        kind = "characters" if self.rules.characters else "WordPiece"
        return f"word_splitter={self.splitter!r}, {kind}, lowercase={self.rules.lowercase}"


def _checked(text: object, what: str) -> str:
    """Return a text, if it is one that has a UTF-8 form."""
    if not isinstance(text, str):
        raise InputError(f"{what} must be a str, or a pair of them, not {type(text).__name__}: {text!r:.80}")
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as cause:
            raise InputError(f"{what} has a lone surrogate at character {cause.start}: {text!r:.80}") from cause
    return text


def _items(texts: Any) -> list[Any]:
    """Return the items of a batch: a list, another iterable, or a column."""
    single, items = one_or_many(texts, str, bytes)
    if single:
        raise InputError(f"a batch is a list of texts, each a str or a pair of them, not {texts!r:.80}")
    return items


def check_splitter(word_splitter: object) -> None:
    """Raise an `InputError` unless a `word_splitter` is a function, or None."""
    if word_splitter is not None and not callable(word_splitter):
        raise InputError(
            f"word_splitter must be a function from a text to the list of its words, not {word_splitter!r:.80}"
        )
