"""Answers to questions, found in texts."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wordpiece_bert.bert.functional import softmax
from wordpiece_bert.bert.heads.tasks import QuestionAnswering
from wordpiece_bert.errors import InputError, TruncationWarning
from wordpiece_bert.model_inputs import batches
from wordpiece_bert.results import Answer, Answers
from wordpiece_bert.tasks.common import longest, with_head

if TYPE_CHECKING:
    import numpy.typing as npt

    from wordpiece_bert._core import Encoding
    from wordpiece_bert.bert.functional import Array
    from wordpiece_bert.tasks.common import Source
    from wordpiece_bert.tokenizer import Tokenizer

__all__ = ["question_answering"]

# Of the pipeline in transformers 4.
_LONGEST_WINDOW = 384
_LARGEST_OVERLAP = 128
_HIDDEN = np.float32(-10_000.0)


class _Window(NamedTuple):
    """One window over the context: [CLS] question [SEP] a part of the context [SEP]."""

    encoding: Encoding
    start: Array  # [S] logits
    end: Array  # [S] logits
    context: npt.NDArray[np.bool_]  # [S] which tokens are the context's


def question_answering(
    source: Source,
    question: str,
    context: str,
    *,
    top_k: int = 1,
    max_answer_len: int = 15,
    max_seq_len: int | None = None,
    doc_stride: int | None = None,
    max_question_len: int = 64,
    align_to_words: bool = True,
    handle_impossible_answer: bool = False,
    null_score_diff_threshold: float | None = None,
    batch_size: int = 32,
) -> Answer | Answers:
    """Find the answer to a question in a text of any length.

    Parameters
    ----------
    source
        What `load` gives for a model that answers questions, or its name or folder.
    question, context
        The question, and the text that should have the answer.
    top_k
        How many answers to give.
    max_answer_len
        The longest answer, in tokens.
    max_seq_len
        Length of a window over the context, question and special tokens included; by default 384, or what the model
        takes if that is less.
    doc_stride
        How many tokens the windows share; by default 128, or half a window if that is less.
    max_question_len
        Where a question is cut, in tokens.
    align_to_words
        Whether an answer is widened to whole words.
    handle_impossible_answer
        Whether "no answer" (an empty string) is among the answers, with the probability of [CLS] as its score.
    null_score_diff_threshold
        The other habit, of SQuAD 2.0: "no answer" comes first when its logits exceed those of the best answer by more
        than this; else it does not come at all.
    batch_size
        How many windows go through the model at once.

    Returns
    -------
    Answer or Answers
        A dict with ``score``, ``start`` and ``end`` (characters of the context) and ``answer`` (the text between them);
        for a `top_k` above 1 a list of them, the best first. The same answer from several windows or spans comes once,
        with the sum of the scores. ``truncated`` tells whether the question was cut; a context never is.

    Raises
    ------
    InputError
        The model has another head, the context is empty, or an argument is wrong.

    Warns
    -----
    TruncationWarning
        The question was cut.
    """
    model, tokenizer = with_head(source, QuestionAnswering, "question_answering")
    _check_text("question", question)
    _check_text("context", context)
    whole = {"top_k": top_k, "max_answer_len": max_answer_len, "max_question_len": max_question_len}
    for name, number in whole.items():
        if type(number) is not int or number < 1:
            message = f"{name} must be an integer, 1 or more, not {number!r}"
            raise InputError(message)
    question, cut = _cut_question(tokenizer, question, max_question_len)
    encodings = _encode(tokenizer, question, context, longest(model, tokenizer), max_seq_len, doc_stride)
    windows: dict[int, _Window] = {}
    for rows, inputs in batches(encodings, batch_size):
        out = model(**inputs)
        for place, row in enumerate(rows):
            n = len(encodings[row])
            inside = np.array([sequence == 1 for sequence in encodings[row].sequence_ids])
            windows[row] = _Window(encodings[row], out.start_logits[place, :n], out.end_logits[place, :n], inside)

    # Spans that are widened to the same words are one answer: more are looked at, as in transformers.
    candidates = 2 * top_k + 10 if align_to_words else top_k
    answers: list[dict[str, Any]] = []
    null = np.inf
    for row in range(len(encodings)):
        null_here, spans = _spans(windows[row], candidates, max_answer_len)
        null = min(null, null_here)
        for start, end, score in spans:
            begin, stop = _characters(windows[row].encoding, start, end, align_to_words=align_to_words)
            _add(answers, context[begin:stop], begin, stop, score)
    answers.sort(key=lambda answer: -answer["score"])
    nothing = {"score": float(null), "start": 0, "end": 0, "answer": ""}
    if null_score_diff_threshold is not None:
        if _null_lead(windows, max_answer_len) > null_score_diff_threshold:
            answers.insert(0, nothing)
    elif handle_impossible_answer:
        answers.append(nothing)
        answers.sort(key=lambda answer: -answer["score"])
    answers = answers[:top_k]
    if top_k == 1:
        return Answer(answers[0], truncated=cut)
    return Answers((Answer(answer, truncated=cut) for answer in answers), truncated=cut)


def _check_text(name: str, value: object) -> None:
    if not isinstance(value, str) or not value.strip():
        message = f"{name} must be a text that is not empty, not {value!r}"
        raise InputError(message)


def _cut_question(tokenizer: Tokenizer, question: str, limit: int) -> tuple[str, bool]:
    encoding = tokenizer.encode(question, add_special_tokens=False, truncation=False, padding=False)
    if len(encoding) <= limit:
        return question, False
    message = f"the question has {len(encoding)} tokens and was cut at max_question_len, {limit}"
    warnings.warn(message, TruncationWarning, stacklevel=3)
    return question[: encoding.offsets[limit - 1][1]], True


def _encode(
    tokenizer: Tokenizer, question: str, context: str, limit: int, length: int | None, overlap: int | None
) -> list[Encoding]:
    """Cut the context into windows."""
    length = min(_LONGEST_WINDOW, limit) if length is None else length
    if type(length) is not int or not 1 <= length <= limit:
        message = f"max_seq_len must be an integer from 1 to {limit}, the model's longest row, not {length!r}"
        raise InputError(message)
    asked = tokenizer.encode(question, add_special_tokens=False, truncation=False, padding=False)
    room = length - len(asked) - tokenizer.num_special_tokens_to_add(pair=True)
    if room < 1:
        message = (
            f"a question of {len(asked)} tokens leaves no room for the context in windows of {length}: "
            "raise max_seq_len or lower max_question_len"
        )
        raise InputError(message)
    overlap = min(length // 2, _LARGEST_OVERLAP) if overlap is None else overlap
    if type(overlap) is not int or overlap < 0:
        message = f"doc_stride must be an integer, 0 or more, not {overlap!r}"
        raise InputError(message)
    encoding = tokenizer.encode(
        question,
        context,
        truncation="only_second",
        max_length=length,
        stride=min(overlap, room - 1),
        padding=False,
        truncation_side="right",
    )
    return [encoding, *encoding.overflowing]


def _spans(window: _Window, count: int, longest_answer: int) -> tuple[float, list[tuple[int, int, float]]]:
    """Return the probability of no answer, and the best spans: first token, last token, probability."""
    visible = window.context.copy()
    visible[0] = True  # [CLS] stands for no answer
    start = softmax(np.where(visible, window.start, _HIDDEN))  # [S]
    end = softmax(np.where(visible, window.end, _HIDDEN))  # [S]
    null = float(start[0] * end[0])
    start[0] = end[0] = 0.0
    allowed = _allowed(window.context, longest_answer)
    together = np.where(allowed, start[:, None] * end[None, :], np.float32(-1.0))  # [S, S]
    best = np.argsort(-together, axis=None, kind="stable")[: min(count, int(allowed.sum()))]
    first, last = np.unravel_index(best, together.shape)
    spans = [(int(one), int(other), float(together[one, other])) for one, other in zip(first, last, strict=True)]
    return null, spans


def _allowed(context: npt.NDArray[np.bool_], longest_answer: int) -> npt.NDArray[np.bool_]:
    """Return which spans [first, last] lie in the context and are not too long, [S, S]."""
    inside = context[:, None] & context[None, :]
    return np.tril(np.triu(inside), longest_answer - 1)


def _null_lead(windows: dict[int, _Window], longest_answer: int) -> float:
    """Return by how much the logits of no answer exceed those of the best answer: as in SQuAD's evaluation."""
    null = min(float(window.start[0] + window.end[0]) for window in windows.values())
    best = -np.inf
    for window in windows.values():
        sums = window.start[:, None] + window.end[None, :]  # [S, S]
        best = max(best, float(sums[_allowed(window.context, longest_answer)].max(initial=-np.inf)))
    return null - best


def _characters(encoding: Encoding, first: int, last: int, *, align_to_words: bool) -> tuple[int, int]:
    """Return where in the context a span of tokens begins and ends."""
    if align_to_words:
        words = encoding.token_to_word(first), encoding.token_to_word(last)
        if words[0] is not None and words[1] is not None:
            one, other = encoding.word_to_chars(words[0], 1), encoding.word_to_chars(words[1], 1)
            if one is not None and other is not None:
                return one[0], other[1]
    return encoding.offsets[first][0], encoding.offsets[last][1]


def _add(answers: list[dict[str, Any]], text: str, start: int, end: int, score: float) -> None:
    for answer in answers:
        if answer["answer"].lower() == text.lower():
            answer["score"] += score
            return
    answers.append({"score": score, "start": start, "end": end, "answer": text})
