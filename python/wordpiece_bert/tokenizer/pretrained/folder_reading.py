"""Reads the tokenizer files of a model folder."""

from __future__ import annotations

import json as json_module
from typing import TYPE_CHECKING, Any

from wordpiece_bert import _core
from wordpiece_bert._internal.safe_json import is_git_lfs_pointer, quoted
from wordpiece_bert.errors import InputError, ModelNotFoundError, TokenizerFormatError
from wordpiece_bert.tokenizer.pretrained.folder_contents import (
    SUBWORD_MODELS,
    TOKENIZER_FILE,
    VOCAB_FILE,
    LoadedFolder,
    VocabFile,
)
from wordpiece_bert.tokenizer.pretrained.folder_settings import Settings
from wordpiece_bert.tokenizer.pretrained.kept_settings import SPECIAL_TOKEN_ROLES, FolderSettings
from wordpiece_bert.tokenizer.pretrained.special_tokens import (
    StatedToken,
    declared_tokens,
    parse_token,
    special_token,
    tokens_to_add,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

# Real files of WordPiece models have at most about 10 MB.
_MAX_TOKENIZER_BYTES = 500_000_000


def load_folder(folder: Path, *, split_words: bool = False) -> LoadedFolder:
    """Read the tokenizer of a model folder.

    ``tokenizer.json`` is used as it is, or else ``vocab.txt`` with the options of ``tokenizer_config.json``. Special
    and added tokens of ``tokenizer_config.json``, ``special_tokens_map.json`` and ``added_tokens.json`` are added. The
    ids are as in transformers 5.23: of ``PreTrainedTokenizerFast`` for a tokenizer.json, of ``BertTokenizer`` for a
    vocab.txt.

    Parameters
    ----------
    folder : Path
        The model folder.
    split_words : bool, default False
        Whether the caller has a function that finds the words of a text. The tokenizer is then made from ``vocab.txt``,
        and must be one whose words another program finds.

    Returns
    -------
    LoadedFolder
        The contents of the files, checked, except for tokenizer.json, which the core checks.

    Raises
    ------
    ModelNotFoundError
        The folder has neither tokenizer.json nor vocab.txt.
    TokenizerFormatError
        A file is invalid; the message has the file and the key. Also if words must be found by a function of the
        caller, and there is none.
    InputError
        The caller has such a function, but the folder's tokenizer splits texts itself.
    """
    json_path, vocab_path = folder / TOKENIZER_FILE, folder / VOCAB_FILE
    if not json_path.is_file() and not vocab_path.is_file():
        what = "it has" if folder.is_dir() else "there is no such folder, so"
        raise ModelNotFoundError(
            f"no tokenizer in the folder {str(folder)!r}: {what} neither {TOKENIZER_FILE} nor {VOCAB_FILE}"
        )

    settings = Settings.read(folder)
    json: bytes | None = None
    vocab: VocabFile | None = None
    file: dict[str, Any] = {}
    if split_words and not (settings.is_japanese and vocab_path.is_file()):
        raise InputError(
            f"{folder}: word_splitter is for tokenizers whose words another program finds, with a {VOCAB_FILE} and the "
            "tokenizer_class BertJapaneseTokenizer; this one splits texts itself"
        )
    if json_path.is_file() and not split_words:
        json = _read_bytes(json_path)
        file = _outline(json)
        _refuse_other_models(json_path, file)
    else:
        vocab = _vocab_file(vocab_path, settings, split_words=split_words)

    present = _added_tokens(file)
    declared = declared_tokens(folder, settings, present)
    if vocab is not None:
        for role, usual in SPECIAL_TOKEN_ROLES.items():
            declared.named.setdefault(role, special_token(usual))
    padding = file.get("padding")
    pad_token = padding.get("pad_token") if isinstance(padding, dict) else None
    # A pad_token of null stays unregistered, even if the padding of tokenizer.json names a token.
    if isinstance(pad_token, str) and pad_token and "pad_token" not in settings.values:
        declared.named.setdefault("pad_token", special_token(pad_token))
    roles = {role: declared.named[role].content for role in SPECIAL_TOKEN_ROLES if role in declared.named}
    of_bert = _usual_roles(file, present)
    adding = tokens_to_add(present, declared)
    special = {token.content: token.special for token in present.values()}
    special |= {fields.content: fields.special for fields in adding}
    marked = {*(of_bert | roles).values(), *(content for content, is_special in special.items() if is_special)}
    listed = declared.listed({} if settings.names_all_special_tokens else of_bert)
    return LoadedFolder(
        json=json,
        vocab=vocab,
        added_tokens=tuple(adding),
        settings=FolderSettings(
            model_max_length=settings.limit(),
            padding_side=settings.side("padding_side"),
            truncation_side=settings.side("truncation_side"),
            special_tokens=of_bert | roles,
            listed_special_tokens=None if set(listed) == marked else listed,
            model_input_names=settings.input_names(),
            clean_up_tokenization_spaces=settings.optional_flag("clean_up_tokenization_spaces") or False,
        ),
        warnings=tuple(_contradictions(settings, file)),
        stated_ids=declared.stated_ids,
        stated_in=declared.stated_in,
    )


def model_kind(path: Path) -> str | None:
    """Return the type of the model of a tokenizer.json, None if the file is invalid, which its reader reports.

    Raises
    ------
    TokenizerFormatError
        It cannot be read.
    """
    model = _outline(_read_bytes(path)).get("model")
    if not isinstance(model, dict):
        return None
    kind = model.get("type", "BPE" if "merges" in model else None)  # files of old versions do not name it
    return kind if isinstance(kind, str) else None


def words_found_by(folder: Path) -> str | None:
    """Return the program that finds the words of a folder's tokenizer; None if the tokenizer splits texts itself.

    Parameters
    ----------
    folder : Path
        The model folder.

    Returns
    -------
    str or None
        ``"mecab"``, ``"sudachi"`` or ``"jumanpp"``.

    Raises
    ------
    TokenizerFormatError
        tokenizer_config.json is invalid.
    """
    settings = Settings.read(folder)
    if (folder / TOKENIZER_FILE).is_file() or not settings.is_japanese:
        return None
    rules = settings.word_rules()
    return None if rules is None else rules.program


def moved_tokens(loaded: LoadedFolder, token_to_id: Callable[[str], int | None]) -> list[str]:
    """Return a warning for each added token whose id differs from the one that the folder states.

    As in transformers, new tokens get the next ids after the vocabulary, whatever the folder states. But the model's
    embeddings were trained with the stated ids.

    Parameters
    ----------
    loaded : LoadedFolder
        The folder.
    token_to_id : callable
        Returns the id of a token of the tokenizer that was created from it; None if it has no such token.

    Returns
    -------
    list of str
        The messages.
    """
    return [
        f"{loaded.stated_in}: the added token {quoted(token)} has id {stated} there, but gets {actual}, the next "
        "after the vocabulary; the model's embeddings may not match"
        for token, stated in loaded.stated_ids.items()
        if (actual := token_to_id(token)) is not None and actual != stated
    ]


def _read_bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            data = stream.read(_MAX_TOKENIZER_BYTES + 1)
    except OSError as cause:
        raise TokenizerFormatError(f"{path}: cannot be read: {cause.strerror or cause}") from cause
    if len(data) > _MAX_TOKENIZER_BYTES:
        raise TokenizerFormatError(
            f"{path}: larger than {_MAX_TOKENIZER_BYTES:,} bytes, the limit for a file of this kind"
        )
    if is_git_lfs_pointer(data):
        raise TokenizerFormatError(f"{path}: is a Git LFS pointer, not the file itself; fetch it with `git lfs pull`")
    return data


def _refuse_other_models(path: Path, file: dict[str, Any]) -> None:
    """Refuse a tokenizer.json that is not of a WordPiece tokenizer."""
    model = file.get("model")
    if isinstance(model, dict) and model.get("type") in SUBWORD_MODELS:
        raise TokenizerFormatError(
            f'{path}: model: "{model["type"]}" is not supported by Tokenizer, which is for WordPiece; '
            "SentenceEncoder, CrossEncoder and wordpiece_bert.tasks run such models with the package tokenizers: "
            "pip install 'wordpiece-bert[tokenizers]'"
        )


def _vocab_file(path: Path, settings: Settings, *, split_words: bool) -> VocabFile:
    """Return the vocab.txt with the options of tokenizer_config.json."""
    if not settings.is_japanese:
        settings.check_vocab_class()
        return VocabFile(
            path=path,
            lowercase=settings.flag("do_lower_case", default=True),
            strip_accents=settings.optional_flag("strip_accents"),
            tokenize_chinese_chars=settings.flag("tokenize_chinese_chars", default=True),
            options_are_defaults=not settings.values.keys() & {"do_lower_case", "strip_accents"},
        )
    words = settings.word_rules()
    if words is not None and not split_words:
        settings.refuse_without_splitter(words)
    if words is None and split_words:
        settings.refuse_splitter()
    lowercase = settings.flag("do_lower_case", default=False)
    return VocabFile(path=path, lowercase=lowercase, tokenize_chinese_chars=False, words=words)


def _outline(json: bytes) -> dict[str, Any]:
    """Parse a tokenizer.json, and of its vocabulary only BERT's special tokens, to compare it with the other files.

    Nothing is checked and an invalid file yields an empty dict, because the core reports its errors in detail.
    """
    try:
        file: dict[str, Any] = json_module.loads(_core.Tokenizer.outline(json, list(SPECIAL_TOKEN_ROLES.values())))
    except (ValueError, RecursionError):
        return {}
    return file


def _added_tokens(file: dict[str, Any]) -> dict[int, StatedToken]:
    """Return the added tokens of a tokenizer.json by id."""
    try:
        return {int(token["id"]): parse_token(token, TOKENIZER_FILE) for token in file.get("added_tokens") or ()}
    except (TokenizerFormatError, KeyError, TypeError, ValueError):
        return {}  # the core reports the error


def _usual_roles(file: dict[str, Any], present: dict[int, StatedToken]) -> dict[str, str]:
    """Return the roles of BERT's usual special tokens that a tokenizer.json has."""
    model = file.get("model")
    model = model if isinstance(model, dict) else {}
    vocab = model.get("vocab")
    known = vocab if isinstance(vocab, dict) else {}
    added = {token.content for token in present.values()}
    roles = {role: usual for role, usual in SPECIAL_TOKEN_ROLES.items() if usual in known or usual in added}
    unk = model.get("unk_token")
    return roles | ({"unk_token": unk} if isinstance(unk, str) else {})


def _contradictions(settings: Settings, file: dict[str, Any]) -> Iterator[str]:
    """Yield a warning for each option of tokenizer_config.json that contradicts tokenizer.json."""
    if not file:
        return
    steps = list(_normalizers(file.get("normalizer")))
    bert = next((step for step in steps if step.get("type") == "BertNormalizer"), {})
    lowercase = any(step.get("type") == "Lowercase" or step.get("lowercase") is True for step in steps)
    actual = {
        "do_lower_case": lowercase,
        "strip_accents": bert.get("strip_accents"),
        "tokenize_chinese_chars": bert.get("handle_chinese_chars"),
    }
    for key, value in actual.items():
        stated = settings.values.get(key)
        if isinstance(stated, bool) and stated != value and (key == "do_lower_case" or bert):
            shown = json_module.dumps(value)
            yield (
                f"{settings.path}: {key!r} is {json_module.dumps(stated)}, but the normalizer of {TOKENIZER_FILE} has "
                f"{shown}; {TOKENIZER_FILE} is used"
            )


def _normalizers(normalizer: object) -> Iterator[dict[str, Any]]:
    """Yield a normalizer and those nested in it."""
    pending = [normalizer]
    while pending:
        step = pending.pop()
        if isinstance(step, dict):
            yield {"type": "BertNormalizer", **step} if "clean_text" in step else step
            inner = step.get("normalizers")
            pending += inner if isinstance(inner, list) else []
