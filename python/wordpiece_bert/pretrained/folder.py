"""What a folder holds, as data: the one thing that reading and writing share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from wordpiece_bert import _core

if TYPE_CHECKING:
    from pathlib import Path

__all__ = [
    "ADDED_TOKENS_FILE",
    "CONFIG_FILE",
    "INPUT_NAMES",
    "NO_LIMIT",
    "SPECIAL_TOKENS_FILE",
    "SPECIAL_TOKEN_ROLES",
    "TOKENIZER_FILE",
    "VOCAB_FILE",
    "AddedTokenFields",
    "FolderSettings",
    "LoadedFolder",
    "Side",
    "VocabFile",
]

TOKENIZER_FILE = "tokenizer.json"
VOCAB_FILE = "vocab.txt"
CONFIG_FILE = "tokenizer_config.json"
SPECIAL_TOKENS_FILE = "special_tokens_map.json"
ADDED_TOKENS_FILE = "added_tokens.json"

#: The roles of BERT's special tokens with the tokens that usually have them, in the order of registration.
SPECIAL_TOKEN_ROLES = dict(_core.SPECIAL_TOKEN_ROLES)

#: What a BERT model takes.
INPUT_NAMES = ("input_ids", "token_type_ids", "attention_mask")

#: What transformers writes as model_max_length for "no limit".
NO_LIMIT = int(1e30)

Side = Literal["left", "right"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedTokenFields:
    """One token to add; the fields are those of `AddedToken` and may be passed on as keywords."""

    content: str
    single_word: bool = False
    lstrip: bool = False
    rstrip: bool = False
    normalized: bool = False
    special: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class VocabFile:
    """A ``vocab.txt`` and the options of `Tokenizer.from_vocab` that the folder sets for it.

    The role tokens (``cls_token`` and so on, all five) stand in `FolderSettings.special_tokens`.
    """

    path: Path
    lowercase: bool = True
    strip_accents: bool | None = None
    tokenize_chinese_chars: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderSettings:
    """What a folder says beside the tokenizer itself; a `Tokenizer` keeps it, and `write_folder` writes it back."""

    #: Longest row, special tokens included; None: no limit.
    model_max_length: int | None = None
    #: None: the folder says nothing, which means "right" unless tokenizer.json has its own.
    padding_side: Side | None = None
    truncation_side: Side | None = None
    #: Role (a key of SPECIAL_TOKEN_ROLES) -> content. A role that the folder does not have is absent.
    special_tokens: dict[str, str] = field(default_factory=dict)
    #: Which arrays ``tokenizer(...)`` gives by default (DistilBERT takes no "token_type_ids").
    model_input_names: tuple[str, ...] = INPUT_NAMES


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedFolder:
    """A folder's tokenizer, ready to be built.

    Exactly one of `json` and `vocab` is given. To build it: ``from_json(json)``, or ``from_vocab`` with the fields of
    `vocab` and with `FolderSettings.special_tokens` as keywords; then add `added_tokens` in this order (as
    ``with_added_tokens`` does: one that is there already only changes its flags). With `vocab`, a classifier or
    separator token that only `added_tokens` has is not in the template yet; the core's ``with_bert_template`` puts it
    there. Then warn (`UserWarning`) with each of `warnings` and with what `moved_tokens` returns.
    """

    #: The text of tokenizer.json.
    json: str | None
    vocab: VocabFile | None
    added_tokens: tuple[AddedTokenFields, ...]
    settings: FolderSettings
    warnings: tuple[str, ...]
    #: Added token -> the id that a file beside tokenizer.json states for it, and the name of that file.
    stated_ids: dict[str, int] = field(default_factory=dict)
    stated_in: str = CONFIG_FILE
