"""`intervene`: heads switched off, or taken from another text, and what the model says then."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wordpiece_bert._internal.checks import checked_strings, whole_number
from wordpiece_bert._internal.notebook import fields_html
from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert.bert.functional import normalize
from wordpiece_bert.bert.heads.bert import BertForPreTraining
from wordpiece_bert.bert.heads.kinds import MaskedLM, QuestionAnswering, SequenceClassification
from wordpiece_bert.errors import InputError
from wordpiece_bert.inspect.alignment import align_tokens
from wordpiece_bert.inspect.outputs import outputs_of
from wordpiece_bert.inspect.parameters import VIEWING
from wordpiece_bert.inspect.sentence_vectors import Sentences
from wordpiece_bert.inspect.sources import as_sentence_encoder, resolve
from wordpiece_bert.inspect.stack import Stack
from wordpiece_bert.inspect.targets import word_token
from wordpiece_bert.inspect.trace import about, called, encoder_of
from wordpiece_bert.inspect.view import View

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wordpiece_bert.bert.functional import Array
    from wordpiece_bert.bert.inputs import Inputs
    from wordpiece_bert.inspect.sources import AnySource
    from wordpiece_bert.sentence.dense.sentence_encoder import SentenceEncoder
    from wordpiece_bert.tokenizer.subword import AnyEncoding

#: A head, (layer, head).
Head = tuple[int, int]


@dataclass(frozen=True, eq=False, kw_only=True)
class Interventions:
    """What a model says of a text, as it is and with some of its heads changed.

    R rows and C columns: the probabilities of labels (one row), of the labels of each token, of words at a token (one
    row; those that are among the best with any change), of the start and the end of an answer for each token, or the
    cosines of a sentence with others (one row; the first column is the sentence as it is without a change).

    Examples
    --------
    >>> from wordpiece_bert import inspect
    >>> found = inspect.intervene(
    ...     "models/words", "the capital of france is [MASK]", heads=[(0, 0), 0]
    ... )
    >>> len(found.after)
    2
    """

    #: The name of the model's class, and where it was loaded from.
    model: str
    #: The tokens of the text.
    tokens: list[str]
    #: ``"off"``, or the other text, from which the heads were taken.
    change: str
    #: The rows by name: tokens, or one empty name.
    rows: list[str]
    #: The columns by name.
    columns: list[str]
    #: ``"probability"``, ``"score"`` (of a regression) or ``"cosine"``.
    measure: str
    #: The heads that were changed together, (layer, head), one list for each of n interventions.
    heads: list[list[Head]]
    #: What the model says without a change, [R, C].
    before: Array
    #: What it says with each of them, [n, R, C].
    after: Array
    #: How far each moved it, [n]: the largest, over rows, of half the sum of the absolute differences of
    #: probabilities, or of scores; for sentences 1 less the cosine with the sentence as it is.
    moved: Array
    #: The numbers of layers and of heads of a layer.
    shape: tuple[int, int]
    #: Whether a text was truncated.
    truncated: bool
    #: The text, or the two texts of a pair.
    texts: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Interventions({len(self.heads)} of {self.change!r}, from {self.model})"

    def _repr_html_(self) -> str:
        return fields_html(repr(self), {one.name: getattr(self, one.name) for one in fields(self)})


@completed_by(VIEWING)
def intervene(
    source: AnySource,
    text: str,
    pair: str | None = None,
    *,
    heads: Sequence[Any] | None = None,
    other: str | None = None,
    other_pair: str | None = None,
    beside: Sequence[str] = (),
    token: int | None = None,
    top_k: int = 5,
    max_length: int | None = None,
) -> Interventions:
    """Switch heads off, or take them from another text, and compute what the model says.

    A head that is off gives nothing: the model is the one whose columns of the attention's output layer are 0 for it
    (Michel et al. 2019, "Are Sixteen Heads Really Better than One?"). One that is taken from another text gives, at
    each token that the texts have in common or at the place of another one, what it gives there (Vig et al. 2020,
    "Investigating Gender Bias in Language Models Using Causal Mediation Analysis"); tokens without a counterpart keep
    their own. Every layer above computes with what it is given.

    Parameters
    ----------
    source : Loaded, tuple, str, os.PathLike, SentenceEncoder or CrossEncoder
        A model with a head and its tokenizer, or the model's name or folder, or a ranker; or a sentence encoder. Every
        family can be changed; it is computed in NumPy in float32.
    text, pair : str
        The text, and the second text of a pair.
    heads : sequence, optional
        The interventions, each one of ``(layer, head)``, a layer for all of its heads, or a list of these together.
        By default each head alone, then each layer.
    other, other_pair : str, optional
        The text from which the heads are taken; without it they are off.
    beside : sequence of str, optional
        For a sentence encoder, the sentences whose cosines are computed.
    token : int, optional
        For masked words, the token that is looked at. By default the first mask.
    top_k : int, default 5
        For masked words, how many of the best with each intervention are kept.

    Returns
    -------
    Interventions
        What the model says before and after.

    Raises
    ------
    InputError
        The model has no such head, a head or a layer does not exist, or an argument is for other models.

    Examples
    --------
    >>> from wordpiece_bert import inspect
    >>> found = inspect.intervene(
    ...     "models/words", "the capital of france is [MASK]", heads=[(0, 0)]
    ... )
    >>> found.before.shape == found.after[0].shape
    True
    """
    top_k = whole_number("top_k", top_k, 1)
    if other_pair is not None and other is None:
        raise InputError("other_pair is the second text of other: pass other=, too")
    if (sentences := as_sentence_encoder(source)) is not None:
        if other_pair is not None:
            raise InputError("a SentenceEncoder takes one text: other_pair is for models of pairs")
        return _of_sentence(sentences, text, pair, heads, other, checked_strings("beside", beside), token, max_length)
    if beside:
        raise InputError("beside is for a SentenceEncoder")
    given = resolve(source)
    model, tokenizer = given.model, given.tokenizer
    stack = Stack(encoder_of(model))
    outputs = outputs_of(model, stack, tokenizer, "intervention")
    encoding = given.encode(text, pair, max_length)
    donor = None if other is None else given.encode(other, other_pair, max_length)
    sets, named = _heads(heads, stack), None
    one = isinstance(model, SequenceClassification)
    words = isinstance(model, MaskedLM | BertForPreTraining)
    if words:
        named = word_token(tokenizer, encoding, token)
    elif token is not None:
        raise InputError(f"token is for a model with a masked-language head, not {type(model).__name__}")
    places = [0] if one else list(range(len(encoding))) if named is None else [named]

    def said(x: Array) -> Array:
        found: Array = outputs.probabilities(outputs.logits(x, places))[0]  # [R, C]
        return found

    runs = _Runs(stack, encoding, donor)
    before = said(runs.output([]))
    after = np.stack([said(runs.output(changed)) for changed in sets])
    columns = list(range(before.shape[1]))
    if words:
        best = np.argsort(-np.concatenate([before, after[:, 0]]), axis=-1, kind="stable")[:, :top_k]
        columns = sorted(set(best.ravel().tolist()), key=lambda i: -float(before[0, i]))
    moved = _moved(before, after, by_column=isinstance(model, QuestionAnswering))
    return Interventions(
        model=f"{type(model).__name__} from {model.source}",
        tokens=encoding.tokens,
        change="off" if other is None else other,
        rows=[""] if one else [encoding.tokens[i] for i in places],
        columns=[outputs.column(i) for i in columns],
        measure="probability" if outputs.probable else "score",
        heads=sets,
        before=before[:, columns],
        after=after[:, :, columns],
        moved=moved,
        shape=(stack.layers, stack.heads),
        truncated=encoding.truncated or bool(donor and donor.truncated),
        texts=given.texts(text, pair),
    )


def _of_sentence(
    encoder: SentenceEncoder,
    text: str,
    pair: str | None,
    heads: Sequence[Any] | None,
    other: str | None,
    beside: list[str],
    token: int | None,
    max_length: int | None,
) -> Interventions:
    if pair is not None or token is not None:
        raise InputError("a SentenceEncoder takes one text: pass the other sentences as beside=")
    sentences = Sentences(encoder)
    stack = Stack(sentences.model)
    encoding = sentences.encode(text, max_length)
    donor = None if other is None else sentences.encode(other, max_length)
    runs = _Runs(stack, encoding, donor)
    own = normalize(sentences.vectors(runs.output([])))  # [1, D]
    encodings = [sentences.encode(one, max_length) for one in beside]
    others = [sentences.vectors(_Runs(stack, one, None).output([]))[0] for one in encodings]
    all_vectors = np.concatenate([own, normalize(np.array(others, np.float32))]) if others else own
    sets = _heads(heads, stack)
    before = own @ all_vectors.T  # [1, C]
    after = np.stack([normalize(sentences.vectors(runs.output(one))) @ all_vectors.T for one in sets])  # [n, 1, C]
    return Interventions(
        model=f"{type(sentences.model).__name__} from {sentences.model.source}",
        tokens=encoding.tokens,
        change="off" if other is None else other,
        rows=[""],
        columns=[text, *beside],
        measure="cosine",
        heads=sets,
        before=before,
        after=after,
        moved=1 - after[:, 0, 0],
        shape=(stack.layers, stack.heads),
        truncated=any(one.truncated for one in (encoding, donor, *encodings) if one),
        texts=(text,),
    )


def _moved(before: Array, after: Array, *, by_column: bool) -> Array:
    """[R, C] and [n, R, C] -> [n]: half the sum of the absolute differences, of the row that moved most."""
    far: Array = np.abs(after - before).sum(axis=1 if by_column else 2) / 2
    most: Array = far.max(axis=1)
    return most


def _heads(heads: Sequence[Any] | None, stack: Stack) -> list[list[Head]]:
    """Return the heads of each intervention."""
    if heads is None:
        each = [(layer, head) for layer in range(stack.layers) for head in range(stack.heads)]
        return [[one] for one in each] + [_whole(layer, stack) for layer in range(stack.layers)]
    if isinstance(heads, str) or not isinstance(heads, list | tuple | range) or not len(heads):
        raise InputError(f"heads must be a list, such as [(0, 1), 2] for a head and a layer, not {heads!r}")
    found = []
    for item in heads:
        parts = item if isinstance(item, list) else [item]
        found.append(sorted({head for part in parts for head in _named(part, stack)}))
    return found


def _whole(layer: int, stack: Stack) -> list[Head]:
    return [(layer, head) for head in range(stack.heads)]


def _named(part: Any, stack: Stack) -> list[Head]:
    if isinstance(part, tuple):
        if len(part) != 2:
            raise InputError(f"a head is (layer, head), not {part!r}")
        layer = whole_number("the layer of a head", part[0], 0, stack.layers - 1)
        return [(layer, whole_number("the head", part[1], 0, stack.heads - 1))]
    return _whole(whole_number("a layer", part, 0, stack.layers - 1), stack)


class _Donor(NamedTuple):
    """What the heads of another text give, and where it goes."""

    states: Array  # [L + 1, S', H]
    inputs: Inputs
    pairs: list[tuple[int, int]]  # the place here, and there


class _Runs:
    """One text through the layers with changed heads."""

    def __init__(self, stack: Stack, encoding: AnyEncoding, donor: AnyEncoding | None) -> None:
        self._stack = stack
        self._inputs = stack.row(encoding)
        self._states = stack.states(self._inputs)  # [L + 1, 1, S, H]
        self._donor = None
        if donor is not None:
            inputs = stack.row(donor)
            pairs = [(a[0], b[0]) for a, b in align_tokens(encoding.tokens, donor.tokens) if a and b]
            self._donor = _Donor(stack.states(inputs), inputs, pairs)

    def output(self, heads: Sequence[Head]) -> Array:
        """Return x_L with these heads changed, [1, S, H]."""
        if not heads:
            whole: Array = self._states[-1]
            return whole
        first = min(layer for layer, _ in heads)
        x: Array = self._states[first]
        for layer in range(first, self._stack.layers):
            changed = [head for at, head in heads if at == layer]
            replaced = self._changed(layer, changed, x) if changed else None
            x = self._stack.step(self._inputs, x, layer, replaced)
        return x

    def _changed(self, layer: int, heads: list[int], x: Array) -> dict[str, Array]:
        if self._donor is None:
            return self._stack.with_heads(layer, heads)
        here, there = [a for a, _ in self._donor.pairs], [b for _, b in self._donor.pairs]
        contexts: dict[int, Array] = self._stack.contexts(self._inputs, x, layer)
        given = self._stack.contexts(self._donor.inputs, self._donor.states[layer], layer)
        for head in heads:
            contexts[head] = contexts[head].copy()
            contexts[head][here] = given[head][there]
        return self._stack.with_heads(layer, heads, {head: contexts[head] for head in heads})


def interventions(found: Interventions, *, title: str = "Interventions") -> View:
    """Show what a model says with heads switched off, or taken from another text.

    Parameters
    ----------
    found : Interventions
        What `intervene` returned.
    title : str, default "Interventions"
        A line above the view.

    Returns
    -------
    View
        Arrays ``before`` [R, C], ``after`` [n, R, C] and ``moved`` [n], as `Interventions` has them.

    Raises
    ------
    InputError
        It is something else.

    Examples
    --------
    >>> from wordpiece_bert import inspect
    >>> found = inspect.intervene("models/words", "the capital of france is [MASK]")
    >>> inspect.interventions(found).kind
    'interventions'
    """
    if not isinstance(found, Interventions):
        raise InputError(f"interventions takes what intervene returns, not {type(found).__name__}")
    data = {
        "tokens": found.tokens,
        "change": found.change,
        "rows": found.rows,
        "columns": found.columns,
        "measure": found.measure,
        "heads": [[list(head) for head in one] for one in found.heads],
        "about": about(*found.texts),
        "model": called(found.model),
        "shape": list(found.shape),
        "truncated": found.truncated,
    }
    return View("interventions", title, data, {"before": found.before, "after": found.after, "moved": found.moved})
