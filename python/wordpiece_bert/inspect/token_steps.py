"""How a text became ids, step by step: clean-up, accents, ideographs, words, the longest match, special tokens.

The tokenizer's core does all steps: it normalizes a text, and each character by each step alone, it splits the
result into words, and the pieces of a word are the tokens of the encoding. Only of a word that is unknown are the
pieces found here, up to the one that the vocabulary does not have.
"""

from __future__ import annotations

import unicodedata
from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from wordpiece_bert import _core
from wordpiece_bert._internal.checks import checked_strings
from wordpiece_bert._internal.parts import core_of
from wordpiece_bert.inspect.sources import tokenizer_in
from wordpiece_bert.inspect.trace import about
from wordpiece_bert.inspect.view import View
from wordpiece_bert.tokenizer.tokenizer import Tokenizer

if TYPE_CHECKING:
    from wordpiece_bert._core import BertNormalizer
    from wordpiece_bert.inspect.sources import AnySource
    from wordpiece_bert.tokenizer.subword import AnyEncoding, AnyTokenizer

# The steps of BERT's normalizer, in its order, with what a step that changes a character did to it.
_STEPS = {
    "clean_text": "space",
    "tokenize_chinese_chars": "set apart",
    "strip_accents": "accent",
    "lowercase": "lower case",
}


def tokens(
    tokenizer: AnyTokenizer | AnySource,
    text: str,
    pair: str | None = None,
    *,
    beside: AnyTokenizer | AnySource | None = None,
    names: tuple[str, str] | None = None,
    max_length: int | None = None,
    title: str = "Tokens",
) -> View:
    """Show how a text becomes ids, step by step, in one tokenizer or in two side by side.

    Parameters
    ----------
    tokenizer : Tokenizer, Loaded, str, PathLike, SentenceEncoder or CrossEncoder
        The tokenizer, or a model whose tokenizer it is. Of one that is not WordPiece, as `tasks.load` returns for
        RoBERTa, the tokens are shown without the steps.
    text, pair : str
        The text, and the second text of a pair.
    beside : Tokenizer or model, optional
        A second tokenizer for the same text.
    names : tuple of str, optional
        What to call the two tokenizers.
    max_length : int, optional
        The most tokens, special tokens included: the rest is cut, and shown as cut. By default as the tokenizer is set.
    title : str, default "Tokens"
        A line above the view.

    Returns
    -------
    View
        No arrays. ``data["tokenizers"]`` has an entry for each tokenizer: ``tokens`` (with id, token, characters, text,
        word, segment, position and mask), ``cut`` (tokens that were truncated), ``agrees``, and ``sides``, one for
        each text: ``changes`` (characters that were removed or changed, and by which step) and ``words`` with their
        pieces. A piece that begins at character ``start`` and ends before ``end`` was tried with every longer end
        first; a piece without a token found none.

    Raises
    ------
    InputError
        An argument is not a Tokenizer or not a text.

    Examples
    --------
    >>> from wordpiece_bert import Tokenizer, inspect
    >>> tokenizer = Tokenizer.from_vocab(["[UNK]", "new", "york", "##er"])
    >>> inspect.tokens(tokenizer, "New Yorker").kind
    'tokens'
    """
    tokenizers = list(map(tokenizer_in, [tokenizer] if beside is None else [tokenizer, beside]))
    called = (
        ["first tokenizer", "second tokenizer"]
        if names is None
        else checked_strings("names", names, 2 if beside else None)
    )
    entries = [_entry(one, name, text, pair, max_length) for one, name in zip(tokenizers, called, strict=False)]
    data = {"texts": [text] if pair is None else [text, pair], "tokenizers": entries, "about": about(text, pair)}
    return View("tokens", title, data)


def _entry(tokenizer: AnyTokenizer, name: str, text: str, pair: str | None, max_length: int | None) -> dict[str, Any]:
    """Return everything about one tokenizer."""
    options: dict[str, Any] = {} if max_length is None else {"truncation": True, "max_length": max_length}
    final = tokenizer.encode(text, pair, **options)
    whole = tokenizer.encode(text, pair, truncation=False, padding=False)
    unknown, steps = tokenizer.unk_token, None
    facts: dict[str, Any] = {"settings": {}, "prefix": ""}
    if isinstance(tokenizer, Tokenizer):
        core = core_of(tokenizer)
        normalizer, unknown = core.bert_normalizer, core.unk_token
        facts = {"settings": _settings(normalizer), "prefix": core.continuing_subword_prefix}
        if normalizer is not None and core.pre_tokenizer_type == "BertPreTokenizer":
            steps = _Steps(tokenizer, core)
    texts = [text] if pair is None else [text, pair]
    sides = [] if steps is None else [_side(steps, whole, index, one) for index, one in enumerate(texts)]
    return {
        "name": name,
        "vocabulary": tokenizer.vocab_size,
        **facts,
        "unknown": unknown,
        "tokens": _rows(final, unknown),
        "cut": _cut(whole, final),
        "truncated": final.truncated,
        "sides": sides,
        "agrees": all(side["agrees"] for side in sides) if sides else None,
    }


def _settings(normalizer: BertNormalizer | None) -> dict[str, bool | None]:
    if normalizer is None:
        return {}
    accents = normalizer.lowercase if normalizer.strip_accents is None else normalizer.strip_accents
    return {
        "clean_text": normalizer.clean_text,
        "tokenize_chinese_chars": normalizer.tokenize_chinese_chars,
        "strip_accents": accents,
        "lowercase": normalizer.lowercase,
    }


def _rows(encoding: AnyEncoding, unknown: str | None) -> list[dict[str, Any]]:
    """Return the tokens as rows of a table."""
    columns = zip(
        encoding.tokens,
        encoding.ids,
        encoding.offsets,
        encoding.sequence_ids,
        encoding.word_ids,
        encoding.token_type_ids,
        encoding.attention_mask,
        encoding.special_tokens_mask,
        strict=True,
    )
    return [
        {
            "token": token,
            "id": number,
            "start": start,
            "end": end,
            "text": text,
            "word": word,
            "segment": segment,
            "position": position,
            "mask": mask,
            "special": bool(special),
            "unknown": token == unknown and not special,
        }
        for position, (token, number, (start, end), text, word, segment, mask, special) in enumerate(columns)
    ]


def _cut(whole: AnyEncoding, final: AnyEncoding) -> list[dict[str, Any]]:
    """Return the tokens of the texts that are not in the final row."""
    kept = {(s, o, i) for s, o, i in zip(final.sequence_ids, final.offsets, final.ids, strict=True)}
    return [
        {"token": token, "id": number, "text": text, "start": span[0], "end": span[1]}
        for token, number, text, span in zip(whole.tokens, whole.ids, whole.sequence_ids, whole.offsets, strict=True)
        if text is not None and (text, span, number) not in kept
    ]


class _Word(NamedTuple):
    """The tokens of a word, or an added token."""

    ids: list[int]
    tokens: list[str]
    start: int
    end: int


class _Steps:
    """The steps of BERT's tokenization, with a record of what each did."""

    def __init__(self, tokenizer: Tokenizer, core: _core.Tokenizer) -> None:
        self.core = core
        self.settings = _settings(core.bert_normalizer)
        self.known: dict[str, tuple[str, list[str]]] = {}
        self.added = tokenizer.added_tokens
        self.prefix, self.unknown = core.continuing_subword_prefix, core.unk_token
        self.vocab = core.vocab(with_added_tokens=False)
        self.longest_token = max(map(len, self.vocab), default=0)

    def character(self, c: str) -> tuple[str, list[str]]:
        """Return what a character becomes, and the names of the steps that changed it."""
        found = self.known.get(c)
        if found is None:
            found = self.known[c] = self._character(c)
        return found

    def _character(self, c: str) -> tuple[str, list[str]]:
        done, now = [], c
        for step, name in _STEPS.items():
            after = _normalizer(step).words(now)[0] if self.settings[step] else now
            if after != now:
                removed = "removed" if step == "clean_text" else f"{name} removed"
                done.append(name if after else removed)
            now = after
        return now, done

    def pieces(self, tokens: list[str], word: str) -> tuple[list[dict[str, Any]], str]:
        """Return the pieces of a word with their characters in it, and why it is unknown, if it is."""
        if tokens == [self.unknown]:
            return self._tried(word)
        found, start = [], 0
        for token in tokens:
            end = start + len(token) - (len(self.prefix) if start else 0)
            found.append({"token": token, "start": start, "end": end})
            start = end
        return found, ""

    def _tried(self, word: str) -> tuple[list[dict[str, Any]], str]:
        """Return the pieces that an unknown word begins with, one without a token, and why the word is unknown."""
        if word == self.unknown:
            return [{"token": word, "start": 0, "end": len(word)}], ""
        if len(word) > self.core.max_input_chars_per_word:
            return [], f"it has {len(word)} characters, more than {self.core.max_input_chars_per_word}"
        found: list[dict[str, Any]] = []
        start = 0
        while True:
            prefix = self.prefix if start else ""
            # No token is longer than the longest, so a word of any length costs a bounded time per character.
            for end in range(min(len(word), start + self.longest_token), start, -1):
                if prefix + word[start:end] in self.vocab:
                    break
            else:
                found.append({"token": None, "start": start, "end": start})
                return found, f"no token of the vocabulary begins {prefix + word[start:]!r}"
            found.append({"token": prefix + word[start:end], "start": start, "end": end})
            start = end


@cache
def _normalizer(step: str) -> _core.Tokenizer:
    """Return a core that normalizes with one step of BERT's normalizer alone."""
    steps = dict.fromkeys(_STEPS, False) | {step: True}
    return _core.Tokenizer.from_vocab(
        ["[UNK]"],
        {"unk_token": "[UNK]"},
        _core.BertNormalizer(**steps),
        strict=False,
        continuing_subword_prefix="##",
        max_input_chars_per_word=1,
    )[0]


def _side(steps: _Steps, encoding: AnyEncoding, index: int, text: str) -> dict[str, Any]:
    """Return the steps of one text."""
    changes: list[dict[str, Any]] = []
    words: list[dict[str, Any]] = []
    normalized, cursor, agrees = "", 0, True
    waiting: list[_Word] = []
    for one in [*_encoded_words(encoding, index), None]:
        added = one is not None and _is_added(steps, one, text)
        if one is not None and not added:
            waiting.append(one)
            continue
        # The words up to an added token, or to the end, are normalized and split together.
        limit = len(text) if one is None else one.start
        # An added token that takes the spaces beside it also takes those that normalization puts around a Chinese
        # character, and then its place in the text is that of the character, too.
        start = min([cursor, *(word.start for word in waiting[:1])])
        end = max([limit, *(word.end for word in waiting[-1:])])
        changes += _changes(steps, text, start, end)
        part, split = steps.core.words(text[start:end])
        part = part.lstrip() if start < cursor else part
        normalized += part.rstrip() if end > limit else part
        agrees = agrees and len(split) == len(waiting)
        for word, found in zip(split, waiting, strict=False):
            pieces, why = steps.pieces(found.tokens, word)
            span = {"start": found.start, "end": found.end}
            words.append({"word": word, **span, "added": False, "pieces": pieces, "unknown": why})
            agrees = agrees and bool(why or (pieces and pieces[-1]["end"] == len(word)))
        waiting = []
        if one is not None:
            [token] = one.tokens
            span = {"start": one.start, "end": one.end}
            words.append({"word": token, **span, "added": True, "pieces": [], "unknown": ""})
            normalized += token
            cursor = max(one.end, cursor)
    return {"text": text, "normalized": normalized, "changes": changes, "words": words, "agrees": agrees}


def _encoded_words(encoding: AnyEncoding, index: int) -> list[_Word]:
    """Return the words of one text with their tokens, as they are in an encoding."""
    # Each attribute of an encoding makes a list anew: read once, not for each token.
    columns = zip(
        encoding.sequence_ids, encoding.word_ids, encoding.ids, encoding.tokens, encoding.offsets, strict=True
    )
    own = [column[1:] for column in columns if column[0] == index]
    found = []
    for _, group in groupby(own, key=lambda column: column[0]):
        _, ids, tokens, spans = zip(*group, strict=True)
        found.append(_Word(list(ids), list(tokens), min(start for start, _ in spans), max(end for _, end in spans)))
    return found


def _is_added(steps: _Steps, word: _Word, text: str) -> bool:
    """Return whether a token was found in the text as it is, before the text was split."""
    if len(word.ids) > 1 or word.ids[0] not in steps.added:
        return False
    # The token of unknown words is one itself.
    content = steps.added[word.ids[0]].content
    return content != steps.unknown or text[word.start : word.end].strip() == content


def _changes(steps: _Steps, text: str, start: int, end: int) -> list[dict[str, Any]]:
    """Return the characters that normalization changes."""
    changes = []
    for index in range(start, end):
        c = text[index]
        now, done = steps.character(c)
        if done:
            code = f"U+{ord(c):04X}"
            name = unicodedata.name(c, "") or code
            changes.append({"index": index, "from": c, "to": now, "steps": done, "name": name, "code": code})
    return changes
