"""Questions with answers that are spans of a context: windows for a `Trainer`, and answers from its predictions.

Windows and their labels are as in BERT's ``run_squad.py`` and transformers' example: a window that does not
contain the answer is labelled with [CLS].

Stability: provisional.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wordpiece_bert._internal.checks import check_several, whole_number
from wordpiece_bert._internal.safe_json import read_object
from wordpiece_bert._internal.texts import row_texts, texts_problem
from wordpiece_bert._internal.warn import warn
from wordpiece_bert.bert.spans import allowed_spans
from wordpiece_bert.errors import InputError, TrainingWarning
from wordpiece_bert.tokenizer.dividing import first_tokens, token_counts
from wordpiece_bert.tokenizer.subword import check_tokenizer

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from wordpiece_bert._core import Encoding
    from wordpiece_bert.bert.functional import Array
    from wordpiece_bert.tokenizer.subword import AnyEncoding, AnyTokenizer

__all__ = ["QuestionWindows", "question_windows", "read_squad"]

#: As in transformers' example and in ``run_squad.py``.
MAX_LENGTH, STRIDE, LONGEST_QUESTION, LONGEST_ANSWER = 384, 128, 64, 30
#: Examples that are tokenized at once.
_BLOCK = 1000


class _Example(NamedTuple):
    """One question."""

    context: str
    answers: list[tuple[str, int]]  # text and first character; empty if there is no answer


class _Window(NamedTuple):
    """A part of a context, with its question."""

    example: int
    row: dict[str, Any]
    offsets: npt.NDArray[np.int32]  # [S, 2] of its tokens in the context; -1 for others


class QuestionWindows:
    """Windows over contexts, by number: a data set for a `Trainer`, as `question_windows` makes it.

    Parameters
    ----------
    contexts : list of str
        The context of each example.
    answers : list of list of str
        The accepted answers of each example; an empty list if there is none.
    windows : list
        The windows.

    Attributes
    ----------
    examples : list of int
        The example of each window.
    answers : list of list of str
        As passed.

    Examples
    --------
    >>> import numpy as np
    >>> from wordpiece_bert import Tokenizer
    >>> from wordpiece_bert.bert import BertForQuestionAnswering
    >>> from wordpiece_bert.finetune.questions import question_windows
    >>> tokenizer = Tokenizer.from_pretrained("models/answers")
    >>> model = BertForQuestionAnswering.from_pretrained("models/answers")
    >>> question, context = "Where did she work?", "She worked in Manchester."
    >>> windows = question_windows(tokenizer, [question], [context], ["Manchester"])
    >>> len(windows), windows.examples, windows.answers
    (1, [0], [['Manchester']])
    >>> output = model(
    ...     [windows[0]["input_ids"]], token_type_ids=[windows[0]["token_type_ids"]]
    ... )
    >>> windows.predicted(output.start_logits, output.end_logits)
    ['Manchester']
    """

    examples: list[int]
    answers: list[list[str]]

    def __init__(self, contexts: list[str], answers: list[list[str]], windows: list[_Window]) -> None:
        self.examples = [window.example for window in windows]
        self.answers = answers
        self._contexts = contexts
        self._rows = [window.row for window in windows]
        self._offsets = [window.offsets for window in windows]

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return self._rows[index]

    def predicted(self, start_logits: Array, end_logits: Array, *, max_answer_len: int = LONGEST_ANSWER) -> list[str]:
        """Return the best answer of each example, from the logits of all windows.

        The best span has the largest sum of its first token's start logit and its last token's end logit. If some
        example has no answer, "no answer" is one of the answers, by the rule of SQuAD 2.0: the smallest sum of the
        windows' [CLS] logits exceeds the best span's.

        Parameters
        ----------
        start_logits, end_logits : ndarray
            The predictions of a `Trainer` for these windows, [windows, S].
        max_answer_len : int, default 30
            The longest answer in tokens.

        Returns
        -------
        list of str
            The answers; "" for none.

        Raises
        ------
        InputError
            There are not as many rows as windows.
        """
        if len(start_logits) != len(self) or len(end_logits) != len(self):
            raise InputError(f"there are {len(self)} windows, but logits of {len(start_logits)} and {len(end_logits)}")
        max_answer_len = whole_number("max_answer_len", max_answer_len, 1)
        best = [(-np.inf, "")] * len(self.answers)
        null = [np.inf] * len(self.answers)
        for example, offsets, starts, ends in zip(self.examples, self._offsets, start_logits, end_logits, strict=True):
            size = len(offsets)
            sums = starts[:size, None] + ends[None, :size]  # [S, S]
            null[example] = min(null[example], float(sums[0, 0]))
            allowed = allowed_spans(offsets[:, 0] >= 0, max_answer_len)
            if allowed.any():
                flat = int(np.where(allowed, sums, -np.inf).argmax())
                first, last = divmod(flat, size)
                if sums[first, last] > best[example][0]:
                    context = self._contexts[example]
                    best[example] = float(sums[first, last]), context[offsets[first, 0] : offsets[last, 1]]
        may_be_none = any(not accepted for accepted in self.answers)
        return [
            "" if may_be_none and nothing > score else text for (score, text), nothing in zip(best, null, strict=True)
        ]


def _window(example: int, one: _Example, encoding: Encoding, *, opens: bool, closes: bool) -> _Window:
    """Return the window of an encoding, labelled by the first answer; it may open and close the context."""
    inside = np.array([side == 1 for side in encoding.sequence_ids])
    offsets = np.where(inside[:, None], np.array(encoding.offsets, np.int32).reshape(-1, 2), -1).astype(np.int32)
    start = end = 0  # [CLS]
    if one.answers:
        start, end = _answer_tokens(offsets, *one.answers[0], opens=opens, closes=closes)
    row = {
        "input_ids": np.array(encoding.ids, np.int32),
        "token_type_ids": np.array(encoding.token_type_ids, np.int32),
        "start_positions": start,
        "end_positions": end,
    }
    return _Window(example, row, offsets)


def _answer_tokens(
    offsets: npt.NDArray[np.int32], text: str, first: int, *, opens: bool, closes: bool
) -> tuple[int, int]:
    """Return the first and the last token of an answer; [CLS] twice if the window does not have all of it.

    The first and the last characters of an answer may belong to no token, such as a combining accent.
    """
    last = first + len(text) - 1  # its last character
    tokens = np.flatnonzero(offsets[:, 0] >= 0)
    own = tokens[(offsets[tokens, 0] <= last) & (first < offsets[tokens, 1])]
    if not len(own):
        return 0, 0
    start, end = int(own[0]), int(own[-1])
    has_start = opens or start > tokens[0] or offsets[start, 0] <= first
    has_end = closes or end < tokens[-1] or last < offsets[end, 1]
    return (start, end) if has_start and has_end else (0, 0)


def question_windows(
    tokenizer: AnyTokenizer,
    questions: Sequence[Any],
    contexts: Sequence[Any],
    answers: Sequence[Any],
    starts: Sequence[Any] | None = None,
    *,
    max_length: int = MAX_LENGTH,
    doc_stride: int = STRIDE,
) -> QuestionWindows:
    """Make windows over contexts, each with the whole question.

    Parameters
    ----------
    tokenizer : Tokenizer or SubwordTokenizer
        The tokenizer.
    questions, contexts : sequence of str
        The questions, and the texts that may contain their answers.
    answers : sequence
        For each question: the answer, a list of accepted answers, or a dict with lists ``text`` and ``answer_start`` as
        SQuAD has it. An empty one is a question without an answer.
    starts : sequence of int, optional
        The first character of each answer in its context. Without it, and without ``answer_start``, it is the first
        place where the answer occurs.
    max_length : int, default 384
        The longest window in tokens.
    doc_stride : int, default 128
        How many tokens of the context consecutive windows share, as in `wordpiece_bert.tasks.question_answering`.

    Returns
    -------
    QuestionWindows
        The windows.

    Raises
    ------
    InputError
        A question, a context or an answer is missing or no str, the context does not have the answer at its place, the
        columns have different lengths, or a window has no room. The message has the row.

    Warns
    -----
    TrainingWarning
        Questions were longer than 64 tokens, and were truncated.

    Examples
    --------
    The answer is in the second window, and the first is labelled with [CLS]:

    >>> from wordpiece_bert import Tokenizer
    >>> from wordpiece_bert.finetune.questions import question_windows
    >>> tokenizer = Tokenizer.from_pretrained("models/answers")
    >>> question, context = (
    ...     "Where was she born?",
    ...     "She lived in Paris, and she was born in London.",
    ... )
    >>> windows = question_windows(
    ...     tokenizer, [question], [context], ["London"], max_length=16, doc_stride=2
    ... )
    >>> for row in windows:
    ...     print(tokenizer.decode(row["input_ids"]))
    where was she born? she lived in paris, and she was
    where was she born? she was born in london.
    >>> [(row["start_positions"], row["end_positions"]) for row in windows]
    [(0, 0), (11, 11)]
    """
    check_tokenizer(tokenizer)
    questions, contexts = row_texts("questions", questions), row_texts("contexts", contexts)
    check_several("answers", answers)
    check_several("starts", starts, or_none=True)
    starts = None if starts is None else list(starts)
    sizes = {len(questions), len(contexts), len(answers), len(answers if starts is None else starts)}
    if len(sizes) != 1:
        raise InputError(f"there are {len(questions)} questions, {len(contexts)} contexts and {len(answers)} answers")
    special = tokenizer.num_special_tokens_to_add(pair=True)
    max_length = whole_number("max_length", max_length, special + 2)
    doc_stride = whole_number("doc_stride", doc_stride, 0)
    max_question_len = min(LONGEST_QUESTION, (max_length - special) // 2)
    asked, cut = _cut(tokenizer, questions, max_question_len)
    if cut:
        message = f"{cut:,} of {len(asked):,} questions are longer than {max_question_len} tokens and were truncated"
        warn(message, TrainingWarning)
    examples = [
        _Example(context, _answers(number, context, answer, None if starts is None else starts[number]))
        for number, (context, answer) in enumerate(zip(contexts, answers, strict=True))
    ]
    windows: list[_Window] = []
    least_room = max_length - special - max_question_len
    for first in range(0, len(examples), _BLOCK):
        block = examples[first : first + _BLOCK]
        encoded: Sequence[AnyEncoding] = tokenizer.encodings(
            [(question, one.context) for question, one in zip(asked[first : first + _BLOCK], block, strict=True)],
            truncation="only_second",
            max_length=max_length,
            stride=min(doc_stride, least_room - 1),
            padding=False,
            truncation_side="right",
        )
        for number, (one, encoding) in enumerate(zip(block, encoded, strict=True), first):
            parts = (encoding, *encoding.overflowing)
            windows += [_window(number, one, part, opens=part is parts[0], closes=part is parts[-1]) for part in parts]
    accepted = [[text for text, _ in one.answers] for one in examples]
    return QuestionWindows([one.context for one in examples], accepted, windows)


def read_squad(file: str | os.PathLike[str]) -> dict[str, list[Any]]:
    """Read a file in the format of SQuAD 1.1 or 2.0, a JSON object with ``data``, ``paragraphs`` and ``qas``.

    Parameters
    ----------
    file : str or os.PathLike
        The file.

    Returns
    -------
    dict of str to list
        The columns ``question``, ``context`` and ``answers``, for `question_windows`.

    Raises
    ------
    InputError
        The file has another form, no question, or one that is marked ``is_impossible`` and has an answer.

    Examples
    --------
    >>> import json
    >>> from pathlib import Path
    >>> from wordpiece_bert.finetune.questions import read_squad
    >>> asked = {
    ...     "question": "Where?",
    ...     "answers": [{"text": "in London", "answer_start": 9}],
    ... }
    >>> paragraph = {"context": "Born here in London.", "qas": [asked]}
    >>> _ = Path("squad.json").write_text(
    ...     json.dumps({"data": [{"paragraphs": [paragraph]}]})
    ... )
    >>> read_squad("squad.json")["answers"]
    [{'text': ['in London'], 'answer_start': [9]}]
    """
    path = Path(file)
    content = read_object(path, InputError, max_bytes=1 << 32)
    columns: dict[str, list[Any]] = {"question": [], "context": [], "answers": []}
    try:
        for article in content["data"]:
            for paragraph in article["paragraphs"]:
                for asked in paragraph["qas"]:
                    impossible = asked.get("is_impossible")
                    given = (asked.get("answers") or []) if impossible else asked["answers"]
                    if impossible and given:
                        raise InputError(
                            f"{path}: question {len(columns['question'])} {asked.get('question')!r:.80} is marked "
                            f"is_impossible, but has the answer {given[0]['text']!r:.80}: remove the mark or the answer"
                        )
                    texts, starts = [one["text"] for one in given], [one["answer_start"] for one in given]
                    columns["question"].append(asked["question"])
                    columns["context"].append(paragraph["context"])
                    columns["answers"].append({"text": texts, "answer_start": starts})
    except InputError:
        raise
    except (KeyError, TypeError, AttributeError) as error:
        number = len(columns["question"])
        raise InputError(
            f"{path}: question {number} is not as in SQuAD's files: {type(error).__name__}: {error}"
        ) from None
    if not columns["question"]:
        raise InputError(f"{path}: there are no questions")
    return columns


def _cut(tokenizer: AnyTokenizer, questions: list[str], max_length: int) -> tuple[list[str], int]:
    """Return the questions, truncated to `max_length` tokens, and how many were."""
    encoded: Sequence[AnyEncoding] = tokenizer.encodings(
        questions, add_special_tokens=False, truncation=False, padding=False
    )
    count = token_counts(tokenizer)
    cut = [
        first_tokens(question, encoding.offsets, max_length, count)
        for question, encoding in zip(questions, encoded, strict=True)
    ]
    return cut, sum(len(encoding) > max_length for encoding in encoded)


def _answers(row: int, context: str, value: Any, start: Any) -> list[tuple[str, int]]:
    """Return the accepted answers of a row, with their first characters; checked against the context."""
    texts, starts = _parts(row, value)
    if start is not None and texts:
        starts = [start] + [None] * (len(texts) - 1)
    found = []
    for text, given in zip(texts, starts, strict=True):
        if not text.strip():
            continue
        place = context.find(text) if given is None else _place(row, given)
        if place < 0 or context[place : place + len(text)] != text:
            where = "does not occur in its context" if given is None else f"is not at character {place} of its context"
            raise InputError(f"row {row}: the answer {text[:80]!r} {where}")
        found.append((text, place))
    return found


def _parts(row: int, value: Any) -> tuple[list[str], list[Any]]:
    if isinstance(value, dict):
        return _squad_parts(row, value)
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list | tuple) or not all(isinstance(text, str) for text in texts):
        raise InputError(
            f"row {row}: an answer is a str, a list of str or a dict with text and answer_start, not {value!r:.80}"
        )
    return list(texts), [None] * len(texts)


def _squad_parts(row: int, value: Mapping[str, Any]) -> tuple[list[str], list[Any]]:
    texts, starts = value.get("text"), value.get("answer_start")
    texts = [texts] if isinstance(texts, str) else texts
    starts = starts if isinstance(starts, list | tuple) or starts is None else [starts]
    if (
        not isinstance(texts, list | tuple)
        or texts_problem(texts)
        or (starts is not None and len(starts) != len(texts))
    ):
        raise InputError(
            f"row {row}: answers need a list text (of str) and a list answer_start of its length, not "
            f"{dict(value)!r:.80}"
        )
    return list(texts), list(starts) if starts is not None else [None] * len(texts)


def _place(row: int, value: Any) -> int:
    try:
        place = int(value)
    except (TypeError, ValueError):
        place = -1
    if place < 0:
        raise InputError(f"row {row}: the start of an answer is {value!r}, not a whole number of at least 0")
    return place
