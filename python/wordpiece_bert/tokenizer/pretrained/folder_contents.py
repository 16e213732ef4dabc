"""The contents of a model folder as named tuples, shared by reading and writing."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from wordpiece_bert.tokenizer.pretrained.kept_settings import FolderSettings

TOKENIZER_FILE = "tokenizer.json"
VOCAB_FILE = "vocab.txt"
CONFIG_FILE = "tokenizer_config.json"
SPECIAL_TOKENS_FILE = "special_tokens_map.json"
ADDED_TOKENS_FILE = "added_tokens.json"

#: The types of models in a tokenizer.json that `tokenizer.subword` runs through the package ``tokenizers``.
SUBWORD_MODELS = ("BPE", "Unigram")

#: The value of model_max_length that transformers writes for "no limit".
NO_LIMIT = int(1e30)


class AddedTokenFields(NamedTuple):
    """A token to add. The fields are the parameters of `AddedToken`."""

    content: str
    single_word: bool = False
    lstrip: bool = False
    rstrip: bool = False
    normalized: bool = False
    special: bool = True


class WordRules(NamedTuple):
    """How a folder's tokenizer treats words that a function finds in a text (``word_splitter``)."""

    #: The program that found them when the model was trained: ``"mecab"``, ``"sudachi"`` or ``"jumanpp"``.
    program: str
    #: The settings of the program in ``tokenizer_config.json``, as they are there.
    program_settings: Mapping[str, Any] | None
    #: Whether texts are normalized to NFKC first.
    normalize: bool
    #: Whether words are put into lower case, and those that are not.
    lowercase: bool
    never_split: tuple[str, ...]
    #: Whether each character is a token, instead of the WordPiece tokens of a word.
    characters: bool
    #: Whether texts are put into lower case before anything else, as an encoder may say. No file of a tokenizer does.
    lowercase_text: bool = False


class VocabFile(NamedTuple):
    """A ``vocab.txt`` with the options of `Tokenizer.from_vocab` that the folder sets.

    The five role tokens (``cls_token`` and so on) are in `FolderSettings.special_tokens`.
    """

    path: Path
    lowercase: bool = True
    strip_accents: bool | None = None
    tokenize_chinese_chars: bool = True
    #: Whether no file says if texts are put into lower case, and lose their accents.
    options_are_defaults: bool = False
    #: Not None if a function of the caller finds the words; the other options then have no effect.
    words: WordRules | None = None


class LoadedFolder(NamedTuple):
    """Everything that is needed to create the tokenizer of a folder.

    Exactly one of `json` and `vocab` is given. To create the tokenizer:

    1. Call the core's ``from_bytes(json)``, or ``from_vocab`` with the fields of `vocab`, and
       `FolderSettings.special_tokens` as keywords.
    2. Add `added_tokens` in order. A token that exists only changes its flags.
    3. With `vocab`, a classifier or separator token that only `added_tokens` has is not in the template yet; the core's
       ``with_bert_template`` adds it.
    4. Warn (`UserWarning`) with each of `warnings`, and with the results of `moved_tokens`.
    """

    #: The bytes of tokenizer.json.
    json: bytes | None
    vocab: VocabFile | None
    added_tokens: tuple[AddedTokenFields, ...]
    settings: FolderSettings
    warnings: tuple[str, ...]
    #: Added token -> the id that a file other than tokenizer.json states for it, and the name of that file.
    stated_ids: Mapping[str, int] = MappingProxyType({})
    stated_in: str = CONFIG_FILE
