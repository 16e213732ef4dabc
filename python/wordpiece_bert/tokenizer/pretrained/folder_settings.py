"""The options of ``tokenizer_config.json``, each checked when it is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, cast

from wordpiece_bert._internal.safe_json import quoted, read_json
from wordpiece_bert.errors import InputError, TokenizerFormatError
from wordpiece_bert.tokenizer.pretrained.folder_contents import CONFIG_FILE, WordRules
from wordpiece_bert.tokenizer.pretrained.kept_settings import INPUT_NAMES

if TYPE_CHECKING:
    from pathlib import Path

    from wordpiece_bert.tokenizer.option_types import Side

# A limit from here on means no limit, as in transformers (which writes 1e30; older releases wrote 1e12 or 1e20).
_ANY_LIMIT = 10**12

# added_tokens_decoder may list thousands of tokens.
_MAX_BYTES = 50_000_000

# The classes of transformers (without "Tokenizer" and "Fast") that read a vocab.txt as BERT's does. Others use the name
# for files with other rules (Phobert, ...).
_WORDPIECE_CLASSES = frozenset(
    {"Bert", "DistilBert", "Electra", "MobileBert", "ConvBert", "LayoutLM", "SqueezeBert", "Lxmert", "RetriBert"}
    | {"DPRContextEncoder", "DPRQuestionEncoder", "DPRReader", "PreTrained", "TokenizersBackend"}
)

# The two of them that belong to no model, and those whose models have no token type embeddings.
_WITHOUT_MODEL = frozenset({"PreTrained", "TokenizersBackend"})
_WITHOUT_TYPE_IDS = _WITHOUT_MODEL | {"DistilBert"}

# The class whose words another program may find, and these programs.
_JAPANESE = "BertJapanese"
_WORD_PROGRAMS = ("mecab", "sudachi", "jumanpp")


def read_optional_object(path: Path) -> dict[str, Any] | None:
    """Read a JSON file that must hold an object. Return None if the file does not exist."""
    if not path.is_file():
        return None
    value = read_json(path, TokenizerFormatError, max_bytes=_MAX_BYTES)
    if not isinstance(value, dict):
        raise TokenizerFormatError(f"{path}: holds {quoted(value)}, expected a JSON object")
    return value


@dataclass(frozen=True, slots=True)
class Settings:
    """The options of a tokenizer_config.json; empty if the file does not exist.

    Every method raises TokenizerFormatError if its option has a wrong value.
    """

    path: Path
    values: dict[str, Any]

    @classmethod
    def read(cls, folder: Path) -> Settings:
        """Read the file of a folder, if it exists."""
        path = folder / CONFIG_FILE
        return cls(path, read_optional_object(path) or {})

    def flag(self, key: str, *, default: bool) -> bool:
        """Return an option that must be a boolean."""
        value = self.values.get(key, default)
        if not isinstance(value, bool):
            self.refuse(key, "true or false")
        return value

    def optional_flag(self, key: str) -> bool | None:
        """Return an option that must be a boolean or null; None if it is absent."""
        return None if self.values.get(key) is None else self.flag(key, default=False)

    def side(self, key: str) -> Side | None:
        """Return "left" or "right", or None if the option is absent."""
        value = self.values.get(key)
        if value not in (None, "left", "right"):
            self.refuse(key, '"left" or "right"')
        return cast("Side | None", value)

    def limit(self) -> int | None:
        """Return model_max_length (formerly max_len), or None for no limit."""
        key = "model_max_length" if "model_max_length" in self.values else "max_len"
        value = self.values.get(key)
        if value is None:
            return None
        # Some programs write 512.0.
        if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value) or value < 1:
            self.refuse(key, "a whole number, 1 or more")
        return None if value >= _ANY_LIMIT else int(value)

    def class_name(self) -> str | None:
        """Return the name of the class in transformers, without "Tokenizer" and "Fast"."""
        value = self.values.get("tokenizer_class")
        if value is not None and not isinstance(value, str):
            self.refuse("tokenizer_class", "a string")
        return value and value.removesuffix("Fast").removesuffix("Tokenizer")

    @property
    def names_all_special_tokens(self) -> bool:
        """Whether the file names all special tokens: its class belongs to no model, and has none by default."""
        return self.class_name() in _WITHOUT_MODEL

    def input_names(self) -> tuple[str, ...]:
        """Return the inputs of the model, by default the class's."""
        names = self.values.get("model_input_names")
        if names is not None:
            if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
                self.refuse("model_input_names", "a list of strings")
            return tuple(names)
        if self.class_name() in _WITHOUT_TYPE_IDS:
            return tuple(name for name in INPUT_NAMES if name != "token_type_ids")
        return INPUT_NAMES

    @property
    def is_japanese(self) -> bool:
        """Whether the class is ``BertJapaneseTokenizer``, which files of some models name in config.json."""
        name = self.class_name()
        if name is None:
            config = read_optional_object(self.path.with_name("config.json")) or {}
            return "word_tokenizer_type" in self.values or config.get("tokenizer_class") == f"{_JAPANESE}Tokenizer"
        return name == _JAPANESE

    def word_rules(self) -> WordRules | None:
        """Return how a Japanese tokenizer treats words that another program finds; None if BERT's rules find them."""
        program = self._one_of("word_tokenizer_type", ("basic", *_WORD_PROGRAMS))
        pieces = self._one_of("subword_tokenizer_type", ("wordpiece", "character"))
        for key in ("do_word_tokenize", "do_subword_tokenize"):
            if not self.flag(key, default=True):
                self.refuse(key, "true: others are not supported")
        if program == "basic":
            if pieces == "character":
                self.refuse("subword_tokenizer_type", 'wordpiece, where word_tokenizer_type is "basic"')
            return None
        own = self.values.get(f"{program}_kwargs")
        if own is not None and not isinstance(own, dict):
            self.refuse(f"{program}_kwargs", "an object or null")
        normalize = (own or {}).get("normalize_text", True)
        if not isinstance(normalize, bool):
            self.refuse(f"{program}_kwargs", "normalize_text to be true or false")
        kept = self.values.get("never_split")
        if kept is not None and (not isinstance(kept, list) or not all(isinstance(word, str) for word in kept)):
            self.refuse("never_split", "a list of strings or null")
        return WordRules(
            program=program,
            program_settings=own,
            normalize=normalize,
            lowercase=self.flag("do_lower_case", default=False),
            never_split=tuple(kept or ()),
            characters=pieces == "character",
        )

    def refuse_without_splitter(self, rules: WordRules) -> NoReturn:
        """Raise TokenizerFormatError for words that only a function of the caller can find."""
        raise TokenizerFormatError(
            f"{self.path}: 'word_tokenizer_type' is {quoted(rules.program)}: that program finds the words. Pass "
            "word_splitter=f, where f(text) returns the list of its words, to Tokenizer.from_pretrained, tasks.load or "
            "the encoder"
        )

    def refuse_splitter(self) -> NoReturn:
        """Raise InputError for a function that finds words, where BERT's rules find them."""
        raise InputError(
            f"{self.path}: word_splitter is for tokenizers whose words another program finds; 'word_tokenizer_type' is "
            '"basic" here, BERT\'s own rules'
        )

    def _one_of(self, key: str, choices: tuple[str, ...]) -> str:
        """Return an option that must be one of some names; the first by default."""
        value = self.values.get(key, choices[0])
        if value not in choices:
            self.refuse(key, f"one of {', '.join(choices)}")
        return cast("str", value)

    def check_vocab_class(self) -> None:
        """Raise for a class that does not read vocab.txt as BERT's does."""
        name = self.class_name()
        if name is not None and name not in _WORDPIECE_CLASSES:
            expected = "a WordPiece tokenizer (its vocab.txt may follow other rules; if not: Tokenizer.from_vocab)"
            self.refuse("tokenizer_class", expected)

    def refuse(self, key: str, expected: str) -> NoReturn:
        """Raise TokenizerFormatError for the value of an option."""
        raise TokenizerFormatError(f"{self.path}: {key!r} is {quoted(self.values[key])}; expected {expected}")
