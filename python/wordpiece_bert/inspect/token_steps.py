"""How a text became ids, step by step: clean-up, accents, ideographs, words, the longest match, special tokens.

The steps are computed again here, character by character, from the settings and the vocabulary of a tokenizer; what
they give is compared with the tokenizer's own answer, and the view says whether they agree.
"""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, Any

from wordpiece_bert.errors import InputError
from wordpiece_bert.inspect.view import View
from wordpiece_bert.subword import SubwordTokenizer
from wordpiece_bert.tokenizer import Tokenizer

if TYPE_CHECKING:
    from wordpiece_bert._core import BertNormalizer, Encoding

__all__ = ["tokens"]

# The blocks of ideographs that BERT sets apart, as in Google's released code.
_IDEOGRAPHS = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)


def tokens(
    tokenizer: Tokenizer,
    text: str,
    pair: str | None = None,
    *,
    beside: Tokenizer | None = None,
    names: tuple[str, str] | None = None,
    max_length: int | None = None,
    title: str = "Tokens",
) -> View:
    """Show how a text becomes ids, step by step, in one tokenizer or in two side by side.

    Parameters
    ----------
    tokenizer
        The tokenizer. Of one that is not WordPiece, as `tasks.load` returns for RoBERTa, the tokens are shown without
        the steps.
    text, pair
        The text, and the second text of a pair.
    beside
        A second tokenizer for the same text.
    names
        What to call the two tokenizers.
    max_length
        The most tokens, special tokens included: the rest is cut, and shown as cut. By default as the tokenizer is set.
    title
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
    """
    tokenizers = [tokenizer] if beside is None else [tokenizer, beside]
    for one in tokenizers:
        if not isinstance(one, Tokenizer | SubwordTokenizer):
            raise InputError(f"tokens needs a Tokenizer, not {type(one).__name__}")
    called = names or ("first tokenizer", "second tokenizer")
    entries = [_entry(one, name, text, pair, max_length) for one, name in zip(tokenizers, called, strict=False)]
    return View("tokens", title, {"texts": [text] if pair is None else [text, pair], "tokenizers": entries})


def _entry(tokenizer: Tokenizer, name: str, text: str, pair: str | None, max_length: int | None) -> dict[str, Any]:
    """Return everything about one tokenizer."""
    options: dict[str, Any] = {} if max_length is None else {"truncation": True, "max_length": max_length}
    final = tokenizer.encode(text, pair, **options)
    whole = tokenizer.encode(text, pair, truncation=False, padding=False)
    unknown, steps = tokenizer.unk_token, None
    facts: dict[str, Any] = {"pipeline": None, "settings": {}, "prefix": ""}
    if isinstance(tokenizer, Tokenizer):
        core = tokenizer._inner
        normalizer, unknown = core.bert_normalizer, core.unk_token
        facts = {"pipeline": core.pipeline, "settings": _settings(normalizer), "prefix": core.continuing_subword_prefix}
        if normalizer is not None and core.pre_tokenizer_type == "BertPreTokenizer":
            steps = _Steps(tokenizer, normalizer)
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


def _rows(encoding: Encoding, unknown: str | None) -> list[dict[str, Any]]:
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


def _cut(whole: Encoding, final: Encoding) -> list[dict[str, Any]]:
    """Return the tokens of the texts that are not in the final row."""
    kept = {(s, o, i) for s, o, i in zip(final.sequence_ids, final.offsets, final.ids, strict=True)}
    return [
        {"token": token, "id": number, "text": text, "start": span[0], "end": span[1]}
        for token, number, text, span in zip(whole.tokens, whole.ids, whole.sequence_ids, whole.offsets, strict=True)
        if text is not None and (text, span, number) not in kept
    ]


class _Steps:
    """The steps of BERT's tokenization, with a record of what each did."""

    def __init__(self, tokenizer: Tokenizer, normalizer: BertNormalizer) -> None:
        self.normalizer = normalizer
        self.settings = _settings(normalizer)
        self.vocab = tokenizer.get_vocab(with_added_tokens=False)
        self.known: dict[str, tuple[str, list[str]]] = {}
        self.longest_token = max(map(len, self.vocab), default=0)
        self.added = {token.content for token in tokenizer.added_tokens.values()}
        core = tokenizer._inner
        self.prefix, self.unknown = core.continuing_subword_prefix, core.unk_token
        self.longest_word = core.max_input_chars_per_word

    def character(self, c: str) -> tuple[str, list[str]]:
        """Return what a character becomes, and the names of the steps that changed it."""
        found = self.known.get(c)
        if found is None:
            found = self.known[c] = self._character(c)
        return found

    def _character(self, c: str) -> tuple[str, list[str]]:
        done, now = [], c
        if self.settings["clean_text"]:
            if c in "\0\ufffd" or _is_control(c):
                return "", ["removed"]
            if c != " " and _is_space(c):
                return " ", ["space"]
        if self.settings["tokenize_chinese_chars"] and _is_ideograph(c):
            now, done = f" {c} ", ["set apart"]
        if self.settings["strip_accents"]:
            bare = "".join(one for one in unicodedata.normalize("NFD", now) if unicodedata.category(one) != "Mn")
            if bare != now:
                now, done = bare, [*done, "accent" if bare else "accent removed"]
        if self.settings["lowercase"]:
            lower = "".join(one.lower() for one in now)
            if lower != now:
                now, done = lower, [*done, "lower case"]
        return now, done

    def pieces(self, word: str) -> tuple[list[dict[str, Any]], str]:
        """Return the pieces of a word by the longest match, with what was tried, and why it is unknown, if it is."""
        if len(word) > self.longest_word:
            return [], f"it has {len(word)} characters, more than {self.longest_word}"
        found: list[dict[str, Any]] = []
        start = 0
        while start < len(word):
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
        return found, ""


def _side(steps: _Steps, encoding: Encoding, index: int, text: str) -> dict[str, Any]:
    """Return the steps of one text."""
    # Each attribute of an encoding makes a list anew: read once, not for each token.
    columns = zip(encoding.sequence_ids, encoding.tokens, encoding.offsets, strict=True)
    spans = [(token, *span) for side, token, span in columns if side == index]
    added = [(s, e, t) for t, s, e in spans if t in steps.added and text[s:e].strip() == t]
    changes, words = [], []
    cursor = 0
    normalized = ""
    for start, end, token in [*added, (len(text), len(text), None)]:
        part, here = _normalize(steps, text, cursor, start)
        changes += here
        normalized += "".join(now for now, _ in part)
        words += _words(steps, part)
        if token is not None:
            words.append({"word": token, "start": start, "end": end, "added": True, "pieces": [], "unknown": ""})
            normalized += token
        cursor = max(end, cursor)
    expected: list[str] = []
    for word in words:
        if word["added"]:
            expected.append(word["word"])
        elif word["unknown"]:
            expected.append(steps.unknown)
        else:
            expected += [piece["token"] for piece in word["pieces"]]
    agrees = expected == [token for token, _, _ in spans]
    return {"text": text, "normalized": normalized, "changes": changes, "words": words, "agrees": agrees}


def _normalize(steps: _Steps, text: str, start: int, end: int) -> tuple[list[tuple[str, int]], list[dict[str, Any]]]:
    """Return the characters after normalization, each with the index it comes from, and the list of changes."""
    part, changes = [], []
    for index in range(start, end):
        c = text[index]
        now, done = steps.character(c)
        part += [(one, index) for one in now]
        if done:
            name = unicodedata.name(c, "") or f"U+{ord(c):04X}"
            code = f"U+{ord(c):04X}"
            changes.append({"index": index, "from": c, "to": now, "steps": done, "name": name, "code": code})
    return part, changes


def _words(steps: _Steps, part: list[tuple[str, int]]) -> list[dict[str, Any]]:
    """Split normalized characters at white space and around punctuation, and match each word."""
    groups: list[list[tuple[str, int]]] = []
    open_word = False
    for c, index in part:
        if _is_space(c):
            open_word = False
        elif _is_punctuation(c):
            groups.append([(c, index)])
            open_word = False
        elif open_word:
            groups[-1].append((c, index))
        else:
            groups.append([(c, index)])
            open_word = True
    words = []
    for group in groups:
        word = "".join(c for c, _ in group)
        pieces, why = steps.pieces(word)
        span = {"start": group[0][1], "end": group[-1][1] + 1}
        words.append({"word": word, **span, "added": False, "pieces": pieces, "unknown": why})
    return words


def _is_space(c: str) -> bool:
    return c in "\t\n\r" or (c.isspace() and unicodedata.category(c) in {"Zs", "Zl", "Zp", "Cc"})


def _is_control(c: str) -> bool:
    return c not in "\t\n\r" and unicodedata.category(c) in {"Cc", "Cf", "Cn", "Co", "Cs"}


def _is_punctuation(c: str) -> bool:
    return ("!" <= c <= "~" and not c.isalnum()) or unicodedata.category(c).startswith("P")


def _is_ideograph(c: str) -> bool:
    return any(first <= ord(c) <= last for first, last in _IDEOGRAPHS)
