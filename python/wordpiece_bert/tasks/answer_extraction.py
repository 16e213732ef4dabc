"""`question_answering`: the span of a text that answers a question.

Spans, their scores and the treatment of windows are as in the question-answering pipeline of transformers 4; version
5 has none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypedDict, Unpack, overload

import numpy as np

from wordpiece_bert._internal.answers import Answer, Answers
from wordpiece_bert._internal.checks import checked_flag, finite_number, whole_number
from wordpiece_bert._internal.warn import warn
from wordpiece_bert.bert.functional import softmax
from wordpiece_bert.bert.heads.kinds import QuestionAnswering
from wordpiece_bert.bert.spans import allowed_spans
from wordpiece_bert.errors import InputError, TruncationWarning
from wordpiece_bert.tasks.inference import infer
from wordpiece_bert.tasks.task_loading import longest_row, with_head
from wordpiece_bert.tokenizer.dividing import first_tokens, token_counts
from wordpiece_bert.tokenizer.subword import model_encodings

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from wordpiece_bert.bert.functional import Array
    from wordpiece_bert.tasks.task_loading import Source
    from wordpiece_bert.tokenizer.subword import AnyEncoding, AnyTokenizer

# Constants of the pipeline in transformers 4.
_MAX_LENGTH = 384
_LARGEST_OVERLAP = 128
_MASKED_LOGIT = np.float32(-10_000.0)


class _Window(NamedTuple):
    """One window over the context: [CLS] question [SEP] a part of the context [SEP]."""

    encoding: AnyEncoding
    start: Array  # [S] logits
    end: Array  # [S] logits
    context: npt.NDArray[np.bool_]  # [S] which tokens are of the context


class _Options(TypedDict, total=False):
    """The options of `question_answering` in its overloads."""

    max_answer_len: int
    max_seq_len: int | None
    doc_stride: int | None
    max_question_len: int
    align_to_words: bool
    handle_impossible_answer: bool
    null_score_diff_threshold: float | None
    batch_size: int


@overload
def question_answering(
    source: Source, question: str, context: str, *, top_k: Literal[1] = 1, **options: Unpack[_Options]
) -> Answer: ...


@overload
def question_answering(
    source: Source, question: str, context: str, *, top_k: int, **options: Unpack[_Options]
) -> Answers[Answer] | Any: ...


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
) -> Answer | Answers[Answer]:
    """Find the answer to a question in a text of any length.

    Parameters
    ----------
    source : Loaded, str or PathLike
        A model for question answering, as `load` returns it, or its name or folder.
    question, context : str
        The question, and the text that should contain the answer.
    top_k : int, default 1
        How many answers to return.
    max_answer_len : int, default 15
        The longest answer, in tokens.
    max_seq_len : int, optional
        Length of a window over the context in tokens, with the question and special tokens; by default 384, or the
        model's longest row if that is less.
    doc_stride : int, optional
        How many tokens consecutive windows share; by default 128, or half a window if that is less.
    max_question_len : int, default 64
        The longest question, in tokens; a longer one is truncated.
    align_to_words : bool, default True
        Whether to extend an answer to entire words.
    handle_impossible_answer : bool, default False
        Whether "no answer" (an empty string) is one of the answers, with the probability of [CLS] as its score.
    null_score_diff_threshold : float, optional
        The rule of SQuAD 2.0 instead: "no answer" comes first if the sum of its logits exceeds the best answer's
        by more than this, else it is not returned at all.
    batch_size : int, default 32
        The most windows that go through the model at once.

    Returns
    -------
    Answer or Answers
        A dict with ``score``, ``start`` and ``end`` (characters of the context) and ``answer`` (the text between them);
        for a `top_k` above 1 a list of these, the highest score first. Equal answers from several windows or spans are
        returned once, with the sum of their scores, at most 1. In a context without tokens there is no answer: an empty
        string with the score 0, or an empty list. The attribute ``truncated`` is whether the question was truncated;
        the context never is.

    Raises
    ------
    InputError
        The model has another head, the question or the context is empty, or an argument is wrong.

    Warns
    -----
    TruncationWarning
        The question was truncated.

    Examples
    --------
    >>> from wordpiece_bert.tasks import question_answering
    >>> question_answering(
    ...     "models/answers",
    ...     "Where was Alan Turing born?",
    ...     "Alan Turing was born in London.",
    ... )["answer"]
    'London'
    """
    model, tokenizer = with_head(source, QuestionAnswering, "question_answering")
    _check_text("question", question)
    _check_text("context", context)
    top_k = whole_number("top_k", top_k, 1)
    max_answer_len = whole_number("max_answer_len", max_answer_len, 1)
    max_question_len = whole_number("max_question_len", max_question_len, 1)
    batch_size = whole_number("batch_size", batch_size, 1)
    checked_flag("align_to_words", align_to_words)
    checked_flag("handle_impossible_answer", handle_impossible_answer)
    if null_score_diff_threshold is not None:
        null_score_diff_threshold = finite_number("null_score_diff_threshold", null_score_diff_threshold)
    question, cut = _cut_question(tokenizer, question, max_question_len)
    encodings = _encode(tokenizer, question, context, longest_row(model, tokenizer), max_seq_len, doc_stride)
    windows = [
        _Window(encoding, logits[:, 0], logits[:, 1], np.array([part == 1 for part in encoding.sequence_ids]))
        for encoding, logits in zip(encodings, infer(model, encodings, batch_size), strict=True)
    ]

    # Several spans may extend to the same words, so consider more of them than are returned, as transformers does.
    candidates = 2 * top_k + 10 if align_to_words else top_k
    answers: list[dict[str, Any]] = []
    null_score = np.inf
    for window in windows:
        null_here, spans = _spans(window, candidates, max_answer_len)
        null_score = min(null_score, null_here)
        for first, last, score in spans:
            start, end = _characters(window.encoding, first, last, align_to_words=align_to_words)
            _add(answers, context[start:end], start, end, score)
    answers.sort(key=lambda answer: -answer["score"])
    no_answer = {"score": float(null_score), "start": 0, "end": 0, "answer": ""}
    if null_score_diff_threshold is not None:
        if _null_lead(windows, max_answer_len) > null_score_diff_threshold:
            answers.insert(0, no_answer)
    elif handle_impossible_answer:
        answers.append(no_answer)
        answers.sort(key=lambda answer: -answer["score"])
    for answer in answers:  # several windows may be sure of one answer
        answer["score"] = min(answer["score"], 1.0)
    answers = answers[:top_k]
    if top_k == 1:
        return Answer(answers[0] if answers else {**no_answer, "score": 0.0}, truncated=cut)
    return Answers((Answer(answer, truncated=cut) for answer in answers), truncated=cut)


def _check_text(name: str, value: object) -> None:
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"{name} must be a text that is not empty, not {value!r}")


def _cut_question(tokenizer: AnyTokenizer, question: str, max_length: int) -> tuple[str, bool]:
    """Return the question, truncated to `max_length` tokens, and whether it was truncated; with a warning if so."""
    encoding = tokenizer.encode(question, add_special_tokens=False, truncation=False, padding=False)
    if len(encoding) <= max_length:
        return question, False
    message = f"the question has {len(encoding)} tokens and was truncated to max_question_len, {max_length}"
    warn(message, TruncationWarning)
    return first_tokens(question, encoding.offsets, max_length, token_counts(tokenizer)), True


def _encode(
    tokenizer: AnyTokenizer, question: str, context: str, longest_row: int, max_length: int | None, overlap: int | None
) -> Sequence[AnyEncoding]:
    """Tokenize the pair as windows of at most `max_length` tokens, each with the entire question."""
    max_length = min(_MAX_LENGTH, longest_row) if max_length is None else max_length
    max_length = whole_number("max_seq_len", max_length, 1, longest_row, meaning="the model's longest row")
    asked = tokenizer.encode(question, add_special_tokens=False, truncation=False, padding=False)
    room = max_length - len(asked) - tokenizer.num_special_tokens_to_add(pair=True)
    if room < 1:
        raise InputError(
            f"a question of {len(asked)} tokens leaves no room for the context in windows of {max_length}: "
            "raise max_seq_len or lower max_question_len"
        )
    overlap = min(max_length // 2, _LARGEST_OVERLAP) if overlap is None else whole_number("doc_stride", overlap, 0)
    encoding = tokenizer.encode(
        question,
        context,
        truncation="only_second",
        max_length=max_length,
        stride=min(overlap, room - 1),
        padding=False,
        truncation_side="right",
    )
    return model_encodings(tokenizer, [encoding, *encoding.overflowing])


def _spans(window: _Window, count: int, longest_answer: int) -> tuple[float, list[tuple[int, int, float]]]:
    """Return the probability of no answer, and the best `count` spans: first token, last token, probability."""
    visible = window.context.copy()
    visible[0] = True  # [CLS] represents no answer
    start = softmax(np.where(visible, window.start, _MASKED_LOGIT))  # [S]
    end = softmax(np.where(visible, window.end, _MASKED_LOGIT))  # [S]
    null_score = float(start[0] * end[0])
    start[0] = end[0] = 0.0
    allowed = allowed_spans(window.context, longest_answer)
    products = np.where(allowed, start[:, None] * end[None, :], np.float32(-1.0))  # [S, S]
    best = np.argsort(-products, axis=None, kind="stable")[: min(count, int(allowed.sum()))]
    firsts, lasts = np.unravel_index(best, products.shape)
    spans = [(int(i), int(j), float(products[i, j])) for i, j in zip(firsts, lasts, strict=True)]
    return null_score, spans


def _null_lead(windows: Sequence[_Window], longest_answer: int) -> float:
    """Return by how much the logits of no answer exceed the best answer's, as SQuAD's evaluation does."""
    null_sum = min(float(window.start[0] + window.end[0]) for window in windows)
    best = -np.inf
    for window in windows:
        sums = window.start[:, None] + window.end[None, :]  # [S, S]
        best = max(best, float(sums[allowed_spans(window.context, longest_answer)].max(initial=-np.inf)))
    return null_sum - best


def _characters(encoding: AnyEncoding, first: int, last: int, *, align_to_words: bool) -> tuple[int, int]:
    """Return the start and the end of a span of tokens in the context, in characters."""
    if align_to_words:
        words = encoding.token_to_word(first), encoding.token_to_word(last)
        if words[0] is not None and words[1] is not None:
            one, other = encoding.word_to_chars(words[0], 1), encoding.word_to_chars(words[1], 1)
            if one is not None and other is not None:
                return one[0], other[1]
    return encoding.offsets[first][0], encoding.offsets[last][1]


def _add(answers: list[dict[str, Any]], text: str, start: int, end: int, score: float) -> None:
    """Add an answer, or its score to the score of an equal one; case does not count."""
    for answer in answers:
        if answer["answer"].lower() == text.lower():
            answer["score"] += score
            return
    answers.append({"score": score, "start": start, "end": end, "answer": text})
