"""The tokens of a static model that is made from an encoder, and its tokenizer where that is not WordPiece."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from wordpiece_bert.tokenizer.subword import SubwordTokenizer

if TYPE_CHECKING:
    import re

    from wordpiece_bert.tokenizer.subword import AnyTokenizer

#: The score of an added token that a Unigram vocabulary without pieces is given.
_LEAST_SCORE = -100.0


class Token(NamedTuple):
    """A token of the new vocabulary."""

    text: str
    #: Its row for the encoder, with special tokens.
    row: list[int]
    #: Whether it is an added token of several words.
    is_added: bool


def surroundings(tokenizer: AnyTokenizer) -> tuple[list[int], list[int]]:
    """Return the ids that the tokenizer puts before and after a text."""
    encoding = tokenizer.encode("a", truncation=False, padding=False)
    special = encoding.special_tokens_mask
    if 0 not in special:
        return list(encoding.ids), []
    first, last = special.index(0), len(special) - special[::-1].index(0)
    return list(encoding.ids[:first]), list(encoding.ids[last:])


def _kept(tokenizer: SubwordTokenizer) -> tuple[str | None, str | None]:
    """Return the unknown token and the padding token, the added tokens that a static model keeps."""
    unknown = tokenizer.unk_token
    if unknown is None and tokenizer.unknown_id is not None:
        unknown = tokenizer.id_to_token(tokenizer.unknown_id)
    return unknown, tokenizer.pad_token


def _added(definition: dict[str, Any]) -> list[dict[str, Any]]:
    added: list[dict[str, Any]] = definition.get("added_tokens") or []
    return added


def subword_tokens(tokenizer: SubwordTokenizer, pattern: re.Pattern[str] | None) -> list[Token]:
    """Return the tokens of the static model, in the order of their ids: without added ones, but for `_kept`.

    Parameters
    ----------
    tokenizer : SubwordTokenizer
        The tokenizer of the encoder.
    pattern : re.Pattern, optional
        What is left out.
    """
    before, after = surroundings(tokenizer)
    added = {token["content"] for token in _added(tokenizer.definition())} - set(_kept(tokenizer))
    return [
        Token(text, [*before, index, *after], is_added=False)
        for text, index in sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
        if text not in added and not (pattern and pattern.match(text))
    ]


def new_subword_tokenizer(tokenizer: SubwordTokenizer, tokens: list[Token], max_length: int) -> SubwordTokenizer:
    """Return a tokenizer with these tokens as ids 0, 1, …, and without special tokens around a text.

    Parameters
    ----------
    tokenizer : SubwordTokenizer
        The tokenizer of the encoder.
    tokens : list of Token
        The tokens, some of its own.
    max_length : int
        The longest text in tokens that the file names.
    """
    definition = tokenizer.definition()
    ids = {token.text: index for index, token in enumerate(tokens)}
    unknown, padding = _kept(tokenizer)
    unknown = unknown if unknown in ids else None
    model = definition["model"]
    if isinstance(model["vocab"], list):  # Unigram: pieces with their scores
        scores = dict(model["vocab"])
        least = min(scores.values(), default=_LEAST_SCORE)
        model["vocab"] = [[text, scores.get(text, least)] for text in ids]
        model["unk_id"] = None if unknown is None else ids[unknown]
    else:
        gone = model["vocab"].keys() - ids.keys()
        merges = [tuple(merge.split(" ", 1)) if isinstance(merge, str) else tuple(merge) for merge in model["merges"]]
        model["merges"] = [list(merge) for merge in merges if gone.isdisjoint((*merge, "".join(merge)))]
        model["vocab"] = ids
        model["unk_token"] = unknown
    definition["added_tokens"] = [
        token | {"id": ids[token["content"]]}
        for token in _added(definition)
        if token["content"] in (unknown, padding) and token["content"] in ids
    ]
    definition["added_tokens"].sort(key=lambda token: token["id"])
    _add_prefix_space(definition.get("pre_tokenizer"))
    definition["post_processor"] = definition["padding"] = None
    definition["truncation"] = {
        "direction": "Right",
        "max_length": max_length,
        "strategy": "LongestFirst",
        "stride": 0,
    }
    return SubwordTokenizer(tokenizer.folder, definition=definition)


def _add_prefix_space(pre_tokenizer: dict[str, Any] | None) -> None:
    """Let a byte-level pre-tokenizer put a space before the first word, so that its tokens are a word's."""
    for part in [] if pre_tokenizer is None else pre_tokenizer.get("pretokenizers", [pre_tokenizer]):
        if part["type"] == "ByteLevel":
            part["add_prefix_space"] = True
