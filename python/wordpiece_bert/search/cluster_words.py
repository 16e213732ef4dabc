"""Names for groups of texts: the words that tell each group from the others."""

from __future__ import annotations

import math
import re
from collections import Counter
from itertools import groupby
from typing import TYPE_CHECKING

from wordpiece_bert._internal.checks import checked_strings, iterates, whole_number
from wordpiece_bert._internal.texts import check_texts
from wordpiece_bert.errors import InputError
from wordpiece_bert.tokenizer.subword import check_tokenizer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from wordpiece_bert.sentence.arguments import Texts
    from wordpiece_bert.tokenizer.subword import AnyEncoding, AnyTokenizer

#: From the first to the last letter or digit; words of SentencePiece have the punctuation that follows them.
_WORD = re.compile(r"[^\W_](?:.*[^\W_])?", re.DOTALL)

#: So many texts are tokenized at once.
_TEXTS = 1 << 14


def cluster_words(
    texts: Texts,
    clusters: Iterable[Iterable[int]],
    tokenizer: AnyTokenizer,
    *,
    top_k: int = 5,
    stop_words: Iterable[str] = (),
) -> list[list[str]]:
    """Name groups of texts by the words that are frequent in one and rare in the others.

    The weight of a word in a group is tf · log(1 + A / f): tf is how often the group has it, f how often all texts have
    it, and A the mean number of words of a group. This is class-based TF-IDF (Grootendorst, "BERTopic: Neural topic
    modeling with a class-based TF-IDF procedure", 2022). The texts in no group count as one more.

    Parameters
    ----------
    texts : iterable of str or Arrow column
        The texts.
    clusters : iterable of iterables of int
        The rows of the texts of each group, as `util.community_detection` returns them.
    tokenizer : Tokenizer
        The tokenizer whose words are compared, in lower case, such as `SentenceEncoder.tokenizer`. Punctuation does not
        count.
    top_k : int, default 5
        How many words to return for each group, at most.
    stop_words : iterable of str, optional
        Words that name nothing, in lower case. Those that all groups have get a low weight without it, but stand beside
        few others where the groups are small.

    Returns
    -------
    list of list of str
        The words of each group, those with the highest weight first, of equal ones in the order of the alphabet.

    Raises
    ------
    InputError
        A group has a row that is not a text's, or an argument is wrong.

    Examples
    --------
    >>> import wordpiece_bert as wb
    >>> from wordpiece_bert.sentence import cluster_words
    >>> tokenizer = wb.Tokenizer.from_pretrained("models/words")
    >>> texts = [
    ...     "bread in the oven",
    ...     "the bicycle",
    ...     "a bicycle wheel",
    ...     "bread dough",
    ...     "the city",
    ... ]
    >>> cluster_words(texts, [[0, 3], [1, 2]], tokenizer, top_k=1)
    [['bread'], ['bicycle']]
    """
    check_tokenizer(tokenizer)
    listed = check_texts(texts)[1]
    if not iterates(clusters):
        raise InputError(f"clusters must be a list of groups of rows, not {clusters!r:.80}")
    count = whole_number("top_k", top_k, 1)
    groups = [_rows(number, rows, len(listed)) for number, rows in enumerate(clusters)]
    ignored = frozenset(checked_strings("stop_words", stop_words))
    words = [Counter(word for word in found if word not in ignored) for found in _words(tokenizer, listed)]
    of_groups = [_total(words, rows) for rows in groups]
    rest = _total(words, sorted({*range(len(listed))}.difference(*groups)))
    classes = [*of_groups, *[rest] * bool(rest)]
    of_all = sum(classes, Counter[str]())
    mean = of_all.total() / max(1, len(classes))

    def weight(word: str, times: int) -> tuple[float, str]:
        return -times * math.log1p(mean / of_all[word]), word

    return [[word for _, word in sorted(weight(*item) for item in one.items())[:count]] for one in of_groups]


def _rows(number: int, rows: object, texts: int) -> list[int]:
    """Return the rows of a group, checked."""
    if not iterates(rows):
        raise InputError(f"clusters[{number}] must be a list of the rows of one group, not {rows!r:.80}")
    return [whole_number(f"clusters[{number}]", row, 0, texts - 1, meaning="the last text") for row in rows]


def _total(words: Sequence[Counter[str]], rows: Iterable[int]) -> Counter[str]:
    total = Counter[str]()
    for row in rows:
        total.update(words[row])
    return total


def _words(tokenizer: AnyTokenizer, texts: Sequence[str]) -> Iterator[list[str]]:
    """Yield the words of each text, as it has them but for the case, without punctuation at their ends."""
    for first in range(0, len(texts), _TEXTS):
        some = list(texts[first : first + _TEXTS])
        encodings: Sequence[AnyEncoding] = tokenizer.encodings(some, add_special_tokens=False, truncation=False)
        for text, encoding in zip(some, encodings, strict=True):
            places = groupby(zip(encoding.word_ids, encoding.offsets, strict=True), lambda one: one[0])
            spans = ([span for _, span in tokens] for _, tokens in places)
            words = (_WORD.search(text, own[0][0], own[-1][1]) for own in spans)
            yield [word[0].lower() for word in words if word]
