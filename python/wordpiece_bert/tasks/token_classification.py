"""`ner`: labels for tokens, and the named entities that consecutive labels form.

The aggregation strategies are as in the token-classification pipeline of transformers, but words are the
tokenizer's, and classes may have hyphens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypedDict, Unpack, cast, overload

import numpy as np

from wordpiece_bert._internal.answers import Answers, Results
from wordpiece_bert._internal.checks import checked_choice, checked_strings, whole_number
from wordpiece_bert._internal.parts import core_of
from wordpiece_bert._internal.tags import OUTSIDE, tag_of
from wordpiece_bert._internal.texts import one_or_many
from wordpiece_bert.bert.functional import softmax
from wordpiece_bert.bert.heads.kinds import TokenClassification
from wordpiece_bert.errors import InputError
from wordpiece_bert.tasks.inference import encode, infer
from wordpiece_bert.tasks.task_loading import longest_row, with_head
from wordpiece_bert.tokenizer.subword import SubwordTokenizer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from wordpiece_bert.bert.functional import Array
    from wordpiece_bert.tasks.results import Entity
    from wordpiece_bert.tasks.task_loading import Source
    from wordpiece_bert.tokenizer.arrow_table import ArrowArray, ArrowStream
    from wordpiece_bert.tokenizer.subword import AnyEncoding, AnyTokenizer

Strategy = Literal["none", "simple", "first", "average", "max"]

_STRATEGIES = ("none", "simple", "first", "average", "max")


class _ScoredToken(NamedTuple):
    """A token that is not special, with the scores of all labels."""

    text: str  # the token; of an unknown one, its characters in the text
    scores: Array  # [labels]
    start: int  # characters of the text
    end: int
    position: int  # of the token in its encoding
    continues: bool  # whether it continues the word of the token before


class _Labelled(NamedTuple):
    """A token or a word with its best label."""

    label: str
    score: float
    text: str
    start: int  # characters of the text
    end: int
    position: int  # of the first token in its encoding


class _Options(TypedDict, total=False):
    """The options of `ner` in its overloads."""

    aggregation_strategy: Strategy
    ignore_labels: Sequence[str]
    stride: int | None
    batch_size: int


@overload
def ner(  # type: ignore[overload-overlap]
    source: Source, texts: str, *, is_split_into_words: Literal[False] = False, **options: Unpack[_Options]
) -> Answers[Entity]: ...


@overload
def ner(
    source: Source,
    texts: Iterable[str] | ArrowArray | ArrowStream,
    *,
    is_split_into_words: Literal[False] = False,
    **options: Unpack[_Options],
) -> list[Answers[Entity]]: ...


@overload
def ner(
    source: Source,
    texts: Iterable[str] | Iterable[Sequence[str]],
    *,
    is_split_into_words: bool,
    **options: Unpack[_Options],
) -> Answers[Entity] | list[Answers[Entity]] | Any: ...


def ner(
    source: Source,
    texts: str | Iterable[str] | Iterable[Sequence[str]] | ArrowArray | ArrowStream,
    *,
    aggregation_strategy: Strategy = "simple",
    ignore_labels: Sequence[str] = ("O",),
    stride: int | None = None,
    is_split_into_words: bool = False,
    batch_size: int = 32,
) -> Answers[Entity] | list[Answers[Entity]] | Any:
    """Find named entities in texts, or other spans, depending on the labels of the model.

    Parameters
    ----------
    source : Loaded, str or PathLike
        A model for token classification, as `load` returns it, or its name or folder.
    texts : str, iterable of str, iterable of sequence of str or Arrow column
        A text, or a list of texts.
    aggregation_strategy : {"none", "simple", "first", "average", "max"}, default "simple"
        ``"none"``: one result for each token. ``"simple"``: consecutive tokens of one label are grouped. ``"first"``,
        ``"max"``, ``"average"``: each word first gets one label: of its first piece, of the piece with the highest
        score, or of the mean over its pieces; then consecutive words of one label are grouped.
    ignore_labels : sequence of str, default ("O",)
        Labels that are not returned, or classes (the label without B- and I-). "O" is the label outside of entities,
        and not a class of this name, with the labels "B-O" and "I-O".
    stride : int, optional
        A text that is longer than the model accepts is split into windows that share this many tokens; of overlapping
        entities the longer one is kept. None cuts such a text instead.
    is_split_into_words : bool, default False
        Whether each text is a list of words; spans then count in the words joined by spaces.
    batch_size : int, default 32
        The most rows that go through the model at once.

    Returns
    -------
    Answers
        Dicts with ``entity_group`` (the label without B- and I-), ``score`` (the mean over the group), ``word``,
        ``start`` and ``end`` (characters: ``text[start:end]`` is the entity). With ``"none"``: ``entity`` (the complete
        label), ``score``, ``index`` (of the token), ``word``, ``start``, ``end``. For a list of texts, a list of these.
        The attribute ``truncated`` is whether the text was truncated.

    Raises
    ------
    InputError
        The model has another head, or an argument is wrong.

    Warns
    -----
    TruncationWarning
        Texts were longer than the model accepts, and were truncated; never with `stride`.

    Examples
    --------
    >>> from wordpiece_bert.tasks import ner
    >>> [
    ...     (one["entity_group"], one["word"])
    ...     for one in ner("models/entities", "Ada Lovelace lived in London")
    ... ]
    [('PER', 'ada lovelace'), ('LOC', 'london')]
    """
    model, tokenizer = with_head(source, TokenClassification, "ner")
    batch_size = whole_number("batch_size", batch_size, 1)
    checked_choice("aggregation_strategy", aggregation_strategy, tuple(_STRATEGIES))
    if stride is not None and aggregation_strategy == "none":
        raise InputError(
            "stride needs an aggregation_strategy other than 'none', which would return shared tokens of windows twice"
        )
    max_length = longest_row(model, tokenizer)
    single, items = _check_words(texts) if is_split_into_words else one_or_many(texts, str)
    sentences: list[str] = [" ".join(words) for words in items] if is_split_into_words else items
    if stride is None:
        encodings = encode(tokenizer, items, max_length, is_split_into_words=is_split_into_words)
        windows = [[encoding] for encoding in encodings]
    else:
        encodings = tokenizer.encodings(
            items,
            is_split_into_words=is_split_into_words,
            truncation=True,
            max_length=max_length,
            stride=stride,
            padding=False,
        )
        windows = [[encoding, *encoding.overflowing] for encoding in encodings]
    logits = iter(infer(model, [window for rows in windows for window in rows], batch_size))

    result: Results[Answers[Entity]] = Results()
    join = tokenizer.join_tokens if isinstance(tokenizer, SubwordTokenizer) else core_of(tokenizer).join_tokens
    groups = _group_names(list(map(model.config.label, range(model.config.num_labels))))
    ignored = set(checked_strings("ignore_labels", ignore_labels))
    for item, sentence, rows in zip(items, sentences, windows, strict=True):
        starts = np.cumsum([0, *(len(word) + 1 for word in item)]).tolist() if is_split_into_words else None
        found: list[dict[str, Any]] = []
        for window in rows:
            tokens = _scored_tokens(tokenizer, window, sentence, softmax(next(logits)), starts)
            found += _entities(tokens, aggregation_strategy, model.config.label, join, groups, ignored)
        if len(rows) > 1:
            found = _without_overlaps(found)
        result.append(Answers(cast("list[Entity]", found), truncated=rows[0].truncated and stride is None))
    return result[0] if single else result


def _check_words(texts: Any) -> tuple[bool, list[Any]]:
    """Return whether it is a single list of words, and the lists of words."""
    single, items = one_or_many(texts)
    if items and all(isinstance(item, str) for item in items):
        return True, [items]
    for index, item in enumerate(items):
        if not isinstance(item, list | tuple) or not all(isinstance(word, str) for word in item):
            raise InputError(f"texts[{index}] must be a list of words, not {item!r}")
    return single, [list(item) for item in items]


def _scored_tokens(
    tokenizer: AnyTokenizer, encoding: AnyEncoding, sentence: str, scores: Array, starts: list[int] | None
) -> list[_ScoredToken]:
    """Return the tokens of a window that are not special; `starts` are the words' starts, if texts are split.

    A token continues the word of the token before if it has the mark of such tokens, "##", and is in the same word. Of
    a tokenizer without a mark, a token continues a word unless there is white space between it and the token before, or
    at the border of either: the rule of transformers, whose white space is the space alone.
    """
    mark = None if isinstance(tokenizer, SubwordTokenizer) else core_of(tokenizer).continuing_subword_prefix
    tokens: list[_ScoredToken] = []
    word_before = None
    for position, (token, (start, end), word, special) in enumerate(
        zip(encoding.tokens, encoding.offsets, encoding.word_ids, encoding.special_tokens_mask, strict=True)
    ):
        if special:
            continue
        if starts is not None and word is not None:
            start, end = start + starts[word], end + starts[word]
        unknown = encoding.ids[position] == tokenizer.unk_token_id
        if mark is None:
            border = min(start, tokens[-1].end) if tokens else start
            between = sentence[max(border - 1, 0) : start + 1]
            continues = not unknown and start > 0 and not any(map(str.isspace, between))
        else:
            continues = not unknown and word == word_before and token.startswith(mark)
        word_before = word
        text = sentence[start:end] if unknown else token
        tokens.append(_ScoredToken(text, scores[position], start, end, position, continues))
    return tokens


def _entities(
    tokens: list[_ScoredToken],
    strategy: Strategy,
    label: Callable[[int], str],
    join: Callable[[list[str]], str],
    names: Mapping[str, str],
    ignored: set[str],
) -> list[dict[str, Any]]:
    """Label the tokens of one window, and group consecutive ones of one label; `names` are group names by label."""
    if strategy in ("none", "simple"):
        labelled = [_labelled(token, token.scores, token.text, token.end, label) for token in tokens]
    else:
        labelled = [_labelled_word(word, strategy, label, join) for word in _words(tokens)]
    if strategy == "none":
        return [
            {"entity": x.label, "score": x.score, "index": x.position, "word": x.text, "start": x.start, "end": x.end}
            for x in labelled
            if x.label not in ignored
        ]
    groups: list[list[_Labelled]] = []
    for one in labelled:
        begins, tag = tag_of(one.label)
        if groups and not begins and tag == tag_of(groups[-1][-1].label)[1]:
            groups[-1].append(one)
        else:
            groups.append([one])
    return [
        {
            "entity_group": names[group[0].label],
            "score": float(np.mean([one.score for one in group])),
            "word": join([one.text for one in group]),
            "start": group[0].start,
            "end": group[-1].end,
        }
        for group in groups
        if not _is_ignored(group[0].label, names[group[0].label], ignored)
    ]


def _words(tokens: list[_ScoredToken]) -> list[list[_ScoredToken]]:
    """Group the pieces of each word."""
    words: list[list[_ScoredToken]] = []
    for token in tokens:
        if words and token.continues:
            words[-1].append(token)
        else:
            words.append([token])
    return words


def _labelled_word(
    pieces: list[_ScoredToken], strategy: Strategy, label: Callable[[int], str], join: Callable[[list[str]], str]
) -> _Labelled:
    """Choose one label for all pieces of a word."""
    if strategy == "first":
        scores = pieces[0].scores
    elif strategy == "max":
        scores = max(pieces, key=lambda piece: float(piece.scores.max())).scores
    else:
        scores = np.mean([piece.scores for piece in pieces], axis=0)
    return _labelled(pieces[0], scores, join([piece.text for piece in pieces]), pieces[-1].end, label)


def _labelled(first: _ScoredToken, scores: Array, text: str, end: int, label: Callable[[int], str]) -> _Labelled:
    best = int(scores.argmax())
    return _Labelled(label(best), float(scores[best]), text, first.start, end, first.position)


def _group_names(labels: list[str]) -> dict[str, str]:
    """Return the class of each label: what follows B- or I-, and the like where other labels say that it is a class.

    So "S-PER" beside "B-PER" is of the class "PER", and "X-RAY" is a class.
    """
    classes = {label[2:] for label in labels if label.startswith(("B-", "I-"))}
    return {
        label: label[2:] if label.startswith(("B-", "I-")) or (label[1:2] == "-" and label[2:] in classes) else label
        for label in labels
    }


def _is_ignored(label: str, name: str, ignored: set[str]) -> bool:
    """Return whether a group is not returned; of the names of classes, "O" means the label outside of entities."""
    return label in ignored or (name != OUTSIDE and name in ignored)


def _without_overlaps(entities: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of overlapping entities, from windows that share tokens, keep the longest; of equally long ones the best."""
    kept: list[dict[str, Any]] = []
    for entity in sorted(entities, key=lambda entity: entity["start"]):
        last = kept[-1] if kept else None
        if last is None or not last["start"] <= entity["start"] < last["end"]:
            kept.append(entity)
            continue
        length, last_length = entity["end"] - entity["start"], last["end"] - last["start"]
        if length > last_length or (length == last_length and entity["score"] > last["score"]):
            kept[-1] = entity
    return kept
