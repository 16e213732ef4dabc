"""The special and added tokens of a folder, from the three files that may state them.

The precedence of the files, the order in which new tokens are added (which determines their ids) and their flags are
exactly as in transformers 5.23, including its corner cases. For example, a token that is stated as an object in the
list of additional special tokens does not get the special flag.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from wordpiece_bert._internal.safe_json import quoted
from wordpiece_bert.errors import TokenizerFormatError
from wordpiece_bert.tokenizer.pretrained.folder_contents import (
    ADDED_TOKENS_FILE,
    CONFIG_FILE,
    SPECIAL_TOKENS_FILE,
    AddedTokenFields,
)
from wordpiece_bert.tokenizer.pretrained.folder_settings import Settings, read_optional_object
from wordpiece_bert.tokenizer.pretrained.kept_settings import SPECIAL_TOKEN_ROLES

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

#: The roles that transformers registers, in its order.
ROLES = ("bos_token", "eos_token", *SPECIAL_TOKEN_ROLES)

_FLAGS = ("single_word", "lstrip", "rstrip", "normalized", "special")
_MAX_ID = 2**32 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedToken:
    """A token as a file states it. A ``normalized`` of None means the opposite of ``special``."""

    content: str
    single_word: bool = False
    lstrip: bool = False
    rstrip: bool = False
    normalized: bool | None = None
    special: bool = False
    #: Whether it is stated as a plain string: as in transformers, it then differs from an object with the same flags.
    plain: bool = False

    def fields(self, *, special: bool = False) -> AddedTokenFields:
        """Return the token with all flags. It is special if the file or the argument says so."""
        special = special or self.special
        normalized = not special if self.normalized is None else self.normalized
        return AddedTokenFields(
            content=self.content,
            single_word=self.single_word,
            lstrip=self.lstrip,
            rstrip=self.rstrip,
            normalized=normalized,
            special=special,
        )


@dataclass(slots=True)
class DeclaredTokens:
    """The tokens that a folder states outside of tokenizer.json."""

    #: Name ("cls_token") -> token: the roles, and further names that are specific to the model.
    named: dict[str, StatedToken] = field(default_factory=dict)
    #: Additional special tokens, which have no name.
    extra: list[StatedToken] = field(default_factory=list)
    #: Stated id -> added token.
    by_id: dict[int, StatedToken] = field(default_factory=dict)
    #: Token -> stated id, and the file that states the ids.
    stated_ids: dict[str, int] = field(default_factory=dict)
    stated_in: str = CONFIG_FILE

    def ordered(self) -> list[StatedToken]:
        """Return the tokens with names: first with a role, then with names that are specific to the model."""
        names = [role for role in ROLES if role in self.named]
        return [self.named[name] for name in [*names, *(name for name in self.named if name not in ROLES)]]

    def listed(self, defaults: Mapping[str, str]) -> tuple[str, ...]:
        """Return what transformers lists as all special tokens: those with names, and then the extra ones.

        Parameters
        ----------
        defaults : mapping of str to str
            The tokens of the roles that no file names.
        """
        roles = {role: special_token(token) for role, token in defaults.items()}
        named = replace(self, named=roles | self.named).ordered()
        return tuple(dict.fromkeys(token.content for token in [*named, *self.extra]))


def declared_tokens(folder: Path, settings: Settings, present: dict[int, StatedToken]) -> DeclaredTokens:
    """Collect the special and added tokens of a folder.

    Parameters
    ----------
    folder : Path
        The folder.
    settings : Settings
        Its tokenizer_config.json.
    present : dict of int to StatedToken
        Id -> added token of its tokenizer.json.

    Returns
    -------
    DeclaredTokens
        The tokens with their names and stated ids.

    Raises
    ------
    TokenizerFormatError
        A file is invalid; the message has the file and the key.
    """
    map_path = folder / SPECIAL_TOKENS_FILE
    values = dict(settings.values)
    source = dict.fromkeys(values, settings.path)
    _check_lists(values, source)
    # Also if the list is empty: it overrides the list of special_tokens_map.json.
    if "additional_special_tokens" in values and not values.get("extra_special_tokens"):
        values["extra_special_tokens"] = values.pop("additional_special_tokens")
        source["extra_special_tokens"] = settings.path
    # Names that are specific to the model, such as "image_token", come after the roles. Flags such as add_bos_token are
    # skipped because they are not strings.
    own = {key: values.pop(key) for key in list(values) if _is_own_name(key) and isinstance(values[key], str)}
    own |= _names_of_extra(values, source)

    declared = DeclaredTokens()
    legacy = "added_tokens_decoder" not in values
    if legacy:
        _merge_map(values, source, map_path)
        own |= _names_of_extra(values, source)
    else:
        declared.by_id = _decoder(values["added_tokens_decoder"], settings.path)
        declared.stated_ids = {token.content: token_id for token_id, token in declared.by_id.items()}
    # The tokens that added_tokens.json treats as special: strings stated here, and objects in special_tokens_map.json.
    stated = [values.get(role) for role in ROLES]
    special = {value for value in [*stated, *(values.get("extra_special_tokens") or ())] if isinstance(value, str)}
    in_map = [values[role] for role in ROLES if source.get(role) == map_path]
    special |= {
        value["content"] for value in in_map if isinstance(value, dict) and isinstance(value.get("content"), str)
    }

    extra = "extra_special_tokens" if "extra_special_tokens" in values else "additional_special_tokens"
    tokens = [token for token in values.get(extra) or () if token != ""]
    declared.extra = [parse_token(token, f"{source[extra]}: {extra!r}") for token in tokens]
    late = {key: value for key, value in values.items() if _is_own_name(key) and _is_token(value)}
    for name, value in {**{role: values.get(role) for role in ROLES}, **late, **own}.items():
        if value is not None and value != "":
            declared.named[name] = parse_token(value, f"{source.get(name, settings.path)}: {name!r}")

    if legacy:
        tokens_of_file = _read_added_tokens(folder / ADDED_TOKENS_FILE, special, declared)
        # The token of a role has the flags that are stated among the added tokens; tokenizer.json takes precedence.
        flags = {token.content: token for token in [*tokens_of_file, *present.values()]}
        declared.named |= {
            role: flags.get(token.content, token) for role, token in declared.named.items() if role in ROLES
        }
        declared.by_id |= present
    return declared


def tokens_to_add(present: dict[int, StatedToken], declared: DeclaredTokens) -> list[AddedTokenFields]:
    """Return the tokens to add to the tokens of a tokenizer.json, in order.

    First the added tokens by stated id (tokenizer.json's again, because later flags replace earlier ones), then
    the roles, then names that are specific to the model, then additional special tokens.
    """
    adding = [token for _, token in sorted(declared.by_id.items())]
    known = {token.content for token in [*present.values(), *adding]}
    named = declared.ordered()
    for token in [*named, *declared.extra]:
        if token.content not in known and token not in adding:
            adding.append(token)
    # A token with a name is special, whatever its flag.
    contents = {token.content for token in named}
    return [token.fields(special=token.content in contents) for token in adding]


def special_token(content: str) -> StatedToken:
    """Return the token that a plain string states."""
    return StatedToken(content=content, special=True, plain=True)


def parse_token(value: object, where: str) -> StatedToken:
    """Parse a token: a string, or an object with ``content`` and flags."""
    if isinstance(value, str):
        return special_token(value)
    if not isinstance(value, dict) or not isinstance(value.get("content"), str):
        raise TokenizerFormatError(
            f"{where} is {quoted(value)}; expected a token: a string, or an object with its content and flags"
        )
    flags: dict[str, bool] = {}
    for flag in _FLAGS:
        if flag in value:
            if not isinstance(value[flag], bool):
                raise TokenizerFormatError(f"{where}: {flag!r} is {quoted(value[flag])}; expected true or false")
            flags[flag] = value[flag]
    return StatedToken(content=value["content"], **flags)


def _merge_map(values: dict[str, Any], source: dict[str, Path], path: Path) -> None:
    """Override tokenizer_config.json by special_tokens_map.json; lists of extra special tokens are concatenated."""
    stated = read_optional_object(path) or {}
    _check_lists(stated, dict.fromkeys(stated, path))
    for key, value in stated.items():
        if key == "extra_special_tokens" and isinstance(value, list):
            known = values.get(key) or []
            values[key] = [*known, *(token for token in value if token not in known)]
        elif key == "extra_special_tokens" or not isinstance(value, dict):
            values[key] = value
        else:
            values[key] = {**value, "special": True}
        source[key] = path


def _check_lists(values: dict[str, Any], source: dict[str, Path]) -> None:
    for key, expected in {"extra_special_tokens": list | dict, "additional_special_tokens": list}.items():
        value = values.get(key)
        if value is not None and not isinstance(value, expected):
            raise TokenizerFormatError(f"{source[key]}: {key!r} is {quoted(value)}; expected a list of tokens")


def _names_of_extra(values: dict[str, Any], source: dict[str, Path]) -> dict[str, Any]:
    """Remove and return the extra special tokens that have names, and record which file states them."""
    extra = values.get("extra_special_tokens")
    if not isinstance(extra, dict):
        return {}
    del values["extra_special_tokens"]
    source |= dict.fromkeys(extra, source["extra_special_tokens"])
    return extra


def _is_own_name(key: str) -> bool:
    return key.endswith("_token") and key not in ROLES


def _is_token(value: object) -> bool:
    return isinstance(value, str) or (isinstance(value, dict) and "content" in value)


def _decoder(value: object, path: Path) -> dict[int, StatedToken]:
    where = f"{path}: 'added_tokens_decoder'"
    if not isinstance(value, dict):
        raise TokenizerFormatError(f"{where} is {quoted(value)}; expected an object that maps ids to tokens")
    decoder = {}
    for key, token in value.items():
        if not (key.isascii() and key.isdecimal() and int(key[:11]) <= _MAX_ID):
            raise TokenizerFormatError(f"{where} has the key {quoted(key)}; expected an id, 0 to {_MAX_ID}")
        if not isinstance(token, dict):
            raise TokenizerFormatError(
                f"{where}: {key} is {quoted(token)}; expected an object with a token's content and flags"
            )
        decoder[int(key)] = parse_token(token, f"{where}: {key}")
    return decoder


def _read_added_tokens(path: Path, special: set[str], declared: DeclaredTokens) -> list[StatedToken]:
    """Read added_tokens.json, the older format: token -> id."""
    ids: dict[str, Any] | None = read_optional_object(path)
    if not ids:
        return []
    for content, token_id in ids.items():
        if isinstance(token_id, bool) or not isinstance(token_id, int) or not 0 <= token_id <= _MAX_ID:
            raise TokenizerFormatError(
                f"{path}: {quoted(content)} has {quoted(token_id)}; expected an id, 0 to {_MAX_ID}"
            )
        is_special = content in special
        declared.by_id[token_id] = StatedToken(content=content, special=is_special, normalized=not is_special)
    declared.stated_ids = dict(ids)
    declared.stated_in = ADDED_TOKENS_FILE
    return list(declared.by_id.values())
