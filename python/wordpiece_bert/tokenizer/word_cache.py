"""Ids of texts by the ids of their words, for pipelines in which the tokens of a word do not depend on its neighbours.

These are Unigram and BPE models whose pre-tokenizer is ``Metaspace``, alone or after ``WhitespaceSplit``, as in
XLM-RoBERTa and static multilingual models. A word is what a space bounds. Words with characters that may act on
what is beside a space, or bring a space themselves, are not kept: a text that has one is tokenized as a whole.
"""

from __future__ import annotations

import json
import re
import unicodedata
from itertools import chain
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wordpiece_bert.tokenizer.shared_core import SharedCore

#: The most words that are kept, and the longest in characters: some 20 MB.
_MOST_WORDS = 1 << 16
_LONGEST_WORD = 32
#: Words that are tokenized as one text.
_WORDS_PER_TEXT = 32

#: Normalizers that change a character, or a grapheme, without regard to what is beyond a space.
_LOCAL = {"NFC", "NFD", "NFKC", "NFKD", "Lowercase", "Precompiled", "Strip"}
#: What replaces runs of spaces, of which texts with words bounded by single spaces have none.
_RUNS = ({"Regex": " {2,}"}, {"Regex": r" {2,}|[\n\r\t]"})


def _state(part: Any) -> Any:
    """Return the definition of a part of a tokenizer, as tokenizer.json has it."""
    return None if part is None else json.loads(part.__getstate__())


def _is_local(normalizer: Any) -> bool:
    """Return whether normalizing words and then joining them by spaces is normalizing their text."""
    if normalizer is None:
        return True
    kind = normalizer["type"]
    if kind == "Sequence":
        return all(map(_is_local, normalizer["normalizers"]))
    return kind in _LOCAL or (kind == "Replace" and normalizer["pattern"] in _RUNS and normalizer["content"] == " ")


def _splits_words(pre_tokenizer: Any) -> tuple[bool, bool]:
    """Return whether each word is tokenized by itself, and whether empty ones, from runs of spaces, are nothing."""
    parts = [] if pre_tokenizer is None else pre_tokenizer.get("pretokenizers", [pre_tokenizer])
    kinds = [part["type"] for part in parts]
    if kinds not in (["Metaspace"], ["WhitespaceSplit", "Metaspace"]):
        return False, False
    last = parts[-1]
    return (last["replacement"], last["prepend_scheme"], last["split"]) == ("▁", "always", True), len(parts) == 2


class WordCache:
    """The ids of words that texts had.

    Threads may share it. It is emptied when it is full.

    Parameters
    ----------
    core : SharedCore
        The tokenizer.
    """

    def __init__(self, core: SharedCore) -> None:
        self._shared = core
        added = [
            (token.content, token.normalized)
            for token in core.core.get_added_tokens_decoder().values()
            if token.content
        ]
        words, self._nothing_is_a_word = _splits_words(_state(core.core.pre_tokenizer))
        #: Whether the pipeline is one of those for which words are kept.
        self.is_usable = (
            words
            and _is_local(_state(core.core.normalizer))
            and not getattr(core.core.model, "dropout", None)
            and not any(normalized or re.search(r"\s", content) for content, normalized in added)
        )
        self._added = re.compile("|".join(re.escape(content) for content, _ in added) or "(?!)")
        self._normalize = core.core.normalizer.normalize_str if core.core.normalizer is not None else str
        #: Whether a character may be in a word, and whether it may begin one.
        self._inside: dict[str, bool] = {}
        self._first: dict[str, bool] = {}
        self._forget()

    def _forget(self) -> None:
        # None stands for a word whose tokens may depend on its neighbours.
        self._ids: dict[str, tuple[int, ...] | None] = {"": () if self._nothing_is_a_word else None}

    def rows(self, texts: list[str], threads: int | None) -> list[list[int]]:
        """Return the ids of texts, without special tokens.

        Parameters
        ----------
        texts : list of str
            The texts.
        threads : int or None
            The number of threads for words that are not known yet.
        """
        words = [text.split(" ") for text in texts]
        if len(self._ids) > _MOST_WORDS:
            self._forget()
        known = self._ids  # another thread may replace it
        self._learn(known, [word for word in dict.fromkeys(chain.from_iterable(words)) if word not in known], threads)
        rows: list[list[int]] = []
        whole = []
        for index, some in enumerate(words):
            try:
                rows.append(list(chain.from_iterable(map(known.get, some))))  # type: ignore[arg-type]
            except TypeError:  # a word is not kept, and None has no ids
                whole.append(index)
                rows.append([])
        encodings = self._encode([texts[index] for index in whole], threads)
        for index, encoding in zip(whole, encodings, strict=True):
            rows[index] = encoding.ids
        return rows

    def _encode(self, texts: list[str], threads: int | None, *, offsets: bool = False) -> list[Any]:
        return self._shared.encode(texts, threads, special=False, offsets=offsets) if texts else []

    def _learn(self, known: dict[str, tuple[int, ...] | None], new: list[str], threads: int | None) -> None:
        """Add words; several are tokenized as one text, which takes less time than each by itself."""
        able = []
        for word in new:
            if len(word) > _LONGEST_WORD:
                continue
            if self._is_able(word):
                able.append(word)
            else:
                known[word] = None
        groups = [able[start : start + _WORDS_PER_TEXT] for start in range(0, len(able), _WORDS_PER_TEXT)]
        alone = []
        for group, row in zip(groups, self._encode(list(map(" ".join, groups)), threads, offsets=True), strict=True):
            parts: dict[int, list[int]] = {}
            for index, token in zip(row.word_ids, row.ids, strict=True):
                parts.setdefault(index, []).append(token)
            if len(parts) == len(group):
                known.update(zip(group, map(tuple, parts.values()), strict=True))
            else:
                alone += group
        for word, row in zip(alone, self._encode(alone, threads, offsets=True), strict=True):
            known[word] = tuple(row.ids) if len(set(row.word_ids)) == 1 else None

    def _is_able(self, word: str) -> bool:
        """Return whether the tokens of a word do not depend on its neighbours."""
        if self._added.search(word):
            return False
        inside = self._inside
        try:
            able = all(map(inside.__getitem__, word))
        except KeyError:
            for character in set(word) - inside.keys():
                self._classify(character)
            able = all(map(inside.__getitem__, word))
        return able and self._first[word[0]]

    def _classify(self, character: str) -> None:
        """Decide whether a character may be in a word, and whether it may begin one.

        It must not become or bring a space, vanish, or be read together with the space after it or before it, as
        combining marks, joiners and signs that are put before others are.
        """
        normalize = self._normalize
        kind = unicodedata.category(character)
        form = normalize(character)
        able = (
            kind[0] not in "CZ"
            and form.strip() == form != ""
            and not any(one.isspace() or one == "▁" for one in form)
            and normalize(f"a{character} a") == normalize(f"a{character}") + " a"
        )
        self._first[character] = able and kind[0] != "M" and normalize(f"a {character}") == f"a {form}"
        self._inside[character] = able
