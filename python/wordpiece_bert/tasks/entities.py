"""Labels for tokens, and what they say together: named entities."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from wordpiece_bert.bert.functional import softmax
from wordpiece_bert.bert.heads.tasks import TokenClassification
from wordpiece_bert.errors import InputError
from wordpiece_bert.model_inputs import batches
from wordpiece_bert.results import Answers
from wordpiece_bert.tasks.common import encode, longest, one_or_many, with_head

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from wordpiece_bert._core import Encoding
    from wordpiece_bert.bert.functional import Array
    from wordpiece_bert.tasks.common import Source
    from wordpiece_bert.tokenizer import Tokenizer

__all__ = ["ner"]

Strategy = Literal["none", "simple", "first", "average", "max"]

_STRATEGIES = ("none", "simple", "first", "average", "max")


class _Piece(NamedTuple):
    """One token of a text, or several that were made one word of: its label's scores and its place in the text."""

    word: str
    scores: Array  # [labels]
    start: int
    end: int
    place: int
    continues: bool


class _Labelled(NamedTuple):
    """A token or a word with its label."""

    label: str
    score: float
    word: str
    start: int
    end: int
    place: int


def ner(
    source: Source,
    texts: Any,  # noqa: ANN401
    *,
    aggregation_strategy: Strategy = "simple",
    ignore_labels: Sequence[str] = ("O",),
    stride: int | None = None,
    is_split_into_words: bool = False,
    batch_size: int = 32,
) -> Any:  # noqa: ANN401
    """Find the named entities of texts, or whatever else a model labels tokens with.

    Parameters
    ----------
    source
        What `load` gives for a model that classifies tokens, or its name or folder.
    texts
        A text, or a list of texts.
    aggregation_strategy
        ``"none"``: a result for each token. ``"simple"``: neighbours of one label are joined. ``"first"``, ``"max"``,
        ``"average"``: first every word gets one label, that of its first piece, of its piece with the highest score, or
        of the mean over its pieces; then neighbours are joined.
    ignore_labels
        Labels to leave out.
    stride
        How many tokens the windows share into which a text that is too long is cut; of results that overlap the longer
        one stays. None cuts such a text at the model's longest row instead.
    is_split_into_words
        Whether each text is a list of words; spans are then those of the words joined by spaces.
    batch_size
        How many rows go through the model at once.

    Returns
    -------
    Answers
        Dicts with ``entity_group`` (the label without B- and I-), ``score`` (the mean of the members'), ``word``,
        ``start`` and ``end`` (characters of the text, so that ``text[start:end]`` is the entity). With ``"none"``:
        ``entity`` (the whole label), ``score``, ``index`` (of the token), ``word``, ``start``, ``end``. A list of such
        lists for a list of texts. ``truncated`` tells whether the text was cut.

    Raises
    ------
    InputError
        The model has another head, or an argument is wrong.

    Warns
    -----
    TruncationWarning
        Texts were cut; never with `stride`.
    """
    model, tokenizer = with_head(source, TokenClassification, "ner")
    if aggregation_strategy not in _STRATEGIES:
        message = f"aggregation_strategy must be one of {', '.join(_STRATEGIES)}, not {aggregation_strategy!r}"
        raise InputError(message)
    if stride is not None and aggregation_strategy == "none":
        message = (
            "stride needs an aggregation_strategy other than 'none': windows share tokens, and would give them twice"
        )
        raise InputError(message)
    limit = longest(model, tokenizer)
    single, items = _words(texts) if is_split_into_words else one_or_many(texts, str)
    sentences: list[str] = [" ".join(words) for words in items] if is_split_into_words else items
    if stride is None:
        encodings = encode(tokenizer, items, limit, is_split_into_words=is_split_into_words)
        windows = [[encoding] for encoding in encodings]
    else:
        options = {"truncation": True, "max_length": limit, "stride": stride, "padding": False}
        encodings = tokenizer.encodings(items, is_split_into_words=is_split_into_words, **options)  # type: ignore[arg-type]
        windows = [[encoding, *encoding.overflowing] for encoding in encodings]
    flat = [window for rows in windows for window in rows]
    scores: dict[int, Array] = {}
    for rows, inputs in batches(flat, batch_size):
        logits = model.logits(model.base_model(**inputs, visible_only=True))  # [B, S, labels]
        scores |= {row: softmax(logits[place, : len(flat[row])]) for place, row in enumerate(rows)}

    result = []
    number = 0
    for item, sentence, parts in zip(items, sentences, windows, strict=True):
        starts = np.cumsum([0, *(len(word) + 1 for word in item)]).tolist() if is_split_into_words else None
        found: list[dict[str, Any]] = []
        for window in parts:
            pieces = _pieces(tokenizer, window, sentence, scores[number], starts)
            found += _entities(pieces, aggregation_strategy, model.config.label, _joiner(tokenizer), set(ignore_labels))
            number += 1
        if len(parts) > 1:
            found = _without_overlaps(found)
        result.append(Answers(found, truncated=parts[0].truncated and stride is None))
    return result[0] if single else result


def _words(texts: Any) -> tuple[bool, list[Any]]:  # noqa: ANN401
    single, items = one_or_many(texts)
    if items and all(isinstance(item, str) for item in items):
        return True, [items]
    for index, item in enumerate(items):
        if not isinstance(item, list | tuple) or not all(isinstance(word, str) for word in item):
            message = f"texts[{index}] must be a list of words, not {item!r}"
            raise InputError(message)
    return single, [list(item) for item in items]


def _pieces(
    tokenizer: Tokenizer, encoding: Encoding, sentence: str, scores: Array, starts: list[int] | None
) -> list[_Piece]:
    """Return the tokens that are not special.

    A token continues a word if its text is not as long as what it stands for, as "##s" for "s"; [UNK] never does. This
    is how transformers tells, also where accents or signs change the length.
    """
    pieces = []
    for index, (token, (start, end), word, special) in enumerate(
        zip(encoding.tokens, encoding.offsets, encoding.word_ids, encoding.special_tokens_mask, strict=True)
    ):
        if special:
            continue
        if starts is not None and word is not None:
            start, end = start + starts[word], end + starts[word]
        text = sentence[start:end]
        unknown = encoding.ids[index] == tokenizer.unk_token_id
        continues = not unknown and len(token) != len(text)
        pieces.append(_Piece(text if unknown else token, scores[index], start, end, index, continues))
    return pieces


def _entities(
    pieces: list[_Piece],
    strategy: Strategy,
    label: Callable[[int], str],
    join: Callable[[list[str]], str],
    ignored: set[str],
) -> list[dict[str, Any]]:
    """Label the tokens of one window, and join neighbours of one label."""
    if strategy in ("none", "simple"):
        labelled = [_labelled(piece, piece.scores, piece.word, piece.end, label) for piece in pieces]
    else:
        labelled = [_word(word, strategy, label, join) for word in _grouped(pieces)]
    if strategy == "none":
        tokens = [
            {"entity": x.label, "score": x.score, "index": x.place, "word": x.word, "start": x.start, "end": x.end}
            for x in labelled
        ]
        return [token for token in tokens if token["entity"] not in ignored]
    groups: list[list[_Labelled]] = []
    for one in labelled:
        begins, tag = _tag(one.label)
        if groups and not begins and tag == _tag(groups[-1][-1].label)[1]:
            groups[-1].append(one)
        else:
            groups.append([one])
    found = []
    for group in groups:
        score = float(np.mean([one.score for one in group]))
        word = join([one.word for one in group])
        name = group[0].label.split("-", 1)[-1]
        found.append(
            {"entity_group": name, "score": score, "word": word, "start": group[0].start, "end": group[-1].end}
        )
    return [entity for entity in found if entity["entity_group"] not in ignored]


def _grouped(pieces: list[_Piece]) -> list[list[_Piece]]:
    """Put the pieces of each word together."""
    words: list[list[_Piece]] = []
    for piece in pieces:
        if words and piece.continues:
            words[-1].append(piece)
        else:
            words.append([piece])
    return words


def _word(
    pieces: list[_Piece], strategy: Strategy, label: Callable[[int], str], join: Callable[[list[str]], str]
) -> _Labelled:
    """Give one label to all pieces of a word."""
    if strategy == "first":
        scores = pieces[0].scores
    elif strategy == "max":
        scores = max(pieces, key=lambda piece: float(piece.scores.max())).scores
    else:
        scores = np.mean([piece.scores for piece in pieces], axis=0)
    return _labelled(pieces[0], scores, join([piece.word for piece in pieces]), pieces[-1].end, label)


def _labelled(piece: _Piece, scores: Array, word: str, end: int, label: Callable[[int], str]) -> _Labelled:
    best = int(scores.argmax())
    return _Labelled(label(best), float(scores[best]), word, piece.start, end, piece.place)


def _tag(label: str) -> tuple[bool, str]:
    """Return whether a label begins an entity, and its tag; one without B- or I- counts as I-."""
    return label.startswith("B-"), label[2:] if label.startswith(("B-", "I-")) else label


def _without_overlaps(entities: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of entities that overlap, from windows that share tokens, keep the longer one, on a tie the better one."""
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


# What the WordPiece decoder does to a token when it cleans up.
_CLEANED = {
    " .": ".",
    " ?": "?",
    " !": "!",
    " ,": ",",
    " ' ": "'",
    " n't": "n't",
    " 'm": "'m",
    " do not": " don't",
    " 's": "'s",
    " 've": "'ve",
    " 're": "'re",
}


@lru_cache(maxsize=8)
def _joiner(tokenizer: Tokenizer) -> Callable[[list[str]], str]:
    """Return what makes a text of tokens, as the tokenizer's decoder says."""
    decoder = json.loads(tokenizer.to_json()).get("decoder") or {}
    if decoder.get("type") != "WordPiece":
        return " ".join
    prefix, cleanup = decoder.get("prefix", "##"), decoder.get("cleanup", True)

    def join(tokens: list[str]) -> str:
        texts = []
        for place, token in enumerate(tokens):
            text = token if place == 0 else token.removeprefix(prefix) if token.startswith(prefix) else f" {token}"
            if cleanup:
                for found, clean in _CLEANED.items():
                    text = text.replace(found, clean)
            texts.append(text)
        return "".join(texts)

    return join
