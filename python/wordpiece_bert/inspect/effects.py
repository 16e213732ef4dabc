"""The effect of each token on a score, by occlusion and by gradients, at the word vectors and in each layer.

The gradients are of logits, not of probabilities: near 1 a probability hardly changes, and its gradient vanishes
(Simonyan et al. 2013, section 3).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

import numpy as np

from wordpiece_bert.bert.functional import normalize
from wordpiece_bert.finetune.score_sums import input_gradients

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from wordpiece_bert._internal.choices import SaliencyMethod
    from wordpiece_bert.bert.functional import Array, Ids
    from wordpiece_bert.bert.inputs import Inputs
    from wordpiece_bert.finetune.score_sums import ScoreSums
    from wordpiece_bert.inspect.outputs import Outputs, Places
    from wordpiece_bert.inspect.sentence_vectors import Sentences
    from wordpiece_bert.inspect.stack import Stack
    from wordpiece_bert.tokenizer.subword import AnyEncoding

Replace = Literal["mask", "remove"]

#: Tokens that go through the backward pass at once: 0.4 GB of activations for BERT-base.
GRADIENT_TOKENS = 1024
#: A word vector is at a right angle to its gradient if their cosine is below this.
RIGHT_ANGLE = 1e-4

_WHY_ZERO = (
    "Every word vector is at a right angle to its gradient, so their product is 0. The norm after the embeddings takes "
    "away the length of a vector: where nothing is added to the word vectors before it, making one longer changes "
    "nothing. Integrated gradients and occlusion, which replace words, say more."
)
_WHY_FLAT = (
    "The gradient is 0: near these word vectors the score does not change. Occlusion, which replaces words, says more."
)


class Options(NamedTuple):
    """How effects are computed, as `attribute` takes it."""

    method: SaliencyMethod
    replace: Replace
    steps: int
    layers: bool

    @property
    def replaces(self) -> bool:
        """Whether the method replaces tokens."""
        return self.method in ("occlusion", "integrated_gradients")


# --- the score as a function of x_L


class _Score(Protocol):
    def __call__(self, x: Array, places: Places) -> Array:
        """Return the scores of rows for x_L, [n, S, H] -> [n]; places as in these rows."""


class HeadScore:
    """The sum of logits, or the product of probabilities."""

    def __init__(self, outputs: Outputs, *, probable: bool) -> None:
        self._outputs, self._probable = outputs, probable

    def __call__(self, x: Array, places: Places) -> Array:
        """Return the scores of rows, as `_Score` does."""
        of_tokens = self._outputs.of_tokens
        tokens = sorted({token for token, _ in places}) if of_tokens else [0]
        every = of_tokens and self._probable and len(places) > 1  # tokens compete for both ends of an answer
        if every:
            tokens = list(range(x.shape[1]))
        logits = self._outputs.logits(x, tokens)  # [n, tokens, C]
        values = self._outputs.probabilities(logits) if self._probable else logits
        picked = np.stack([values[:, tokens.index(token) if of_tokens else 0, column] for token, column in places])
        combined: Array = picked.prod(axis=0) if self._probable else picked.sum(axis=0)
        return combined


class CosineScore:
    """The cosine of a sentence with a vector."""

    def __init__(self, sentences: Sentences, other: Array) -> None:
        self._sentences, self._other = sentences, normalize(other)

    def __call__(self, x: Array, places: Places) -> Array:
        """Return the cosines of rows, as `_Score` does."""
        del places
        found: Array = normalize(self._sentences.vectors(x)) @ self._other
        return found


# --- effects


class ScoredText(NamedTuple):
    """One text, and the score as a function of its vectors."""

    stack: Stack
    encoding: AnyEncoding
    score: _Score
    places: Places
    sums: Callable[[], ScoreSums]
    mask: int | None  # the id that replaces a token; None for nothing

    @property
    def replaced(self) -> list[int]:
        """The positions of the tokens that may be replaced: those that are not special."""
        return [i for i, side in enumerate(self.encoding.sequence_ids) if side is not None]

    def inputs(self, ids: Ids | None, vectors: Array | None = None) -> Inputs:
        """Return rows of ids, or of word vectors, with the token types of the text."""
        return self.stack.inputs(ids, self.encoding.token_type_ids, vectors)


class Effects(NamedTuple):
    """The effects of S tokens, as `Attribution` has them for one text."""

    score: float
    effect: Array  # [S]
    layers: Array | None = None  # [L + 1, S]
    start: float | None = None
    gap: float | None = None
    layer_gaps: Array | None = None  # [L + 1]
    why_zero: str = ""


def effects_of(part: ScoredText, options: Options) -> Effects:
    """Compute the effect of each token on the score."""
    score = float(part.score(part.stack.output(part.stack.row(part.encoding)), part.places)[0])
    if options.method == "occlusion":
        return _occlusion(part, score, layers=options.layers)
    if options.method == "integrated_gradients":
        return _integrated(part, score, options)
    return _first_order(part, score, options)


def _occlusion(part: ScoredText, score: float, *, layers: bool) -> Effects:
    """The score minus the score without each token; by layer, with the vector that it has where it is masked."""
    stack, encoding = part.stack, part.encoding
    ids, types, replaced = encoding.ids, encoding.token_type_ids, part.replaced
    effect = np.zeros(len(ids), np.float32)
    if not replaced:
        return Effects(score, effect, np.zeros((stack.layers + 1, len(ids)), np.float32) if layers else None)
    if part.mask is None:
        for i in replaced:  # rows of one length, but with other token types
            places = [(token - (token > i), column) for token, column in part.places if token != i or not token]
            if part.places and len(places) < len(part.places):
                continue  # the token whose label is explained cannot be left out
            inputs = stack.inputs(np.array([[*ids[:i], *ids[i + 1 :]]]), [*types[:i], *types[i + 1 :]])
            effect[i] = score - float(part.score(stack.output(inputs), places)[0])
        return Effects(score, effect)
    rows = np.repeat(np.array([ids]), len(replaced), axis=0)
    rows[np.arange(len(replaced)), replaced] = part.mask
    masked = part.inputs(rows)
    if not layers:
        effect[replaced] = score - part.score(stack.output(masked), part.places)
        return Effects(score, effect)
    states = stack.states(masked)  # [L + 1, n, S, H]
    vectors = stack.states(stack.row(encoding))[:, 0]  # [L + 1, S, H]
    effect[replaced] = score - part.score(states[-1], part.places)
    by_layer = np.zeros((stack.layers + 1, len(ids)), np.float32)
    for layer in range(stack.layers + 1):
        x = np.repeat(vectors[layer][None], len(replaced), axis=0)  # [n, S, H]
        x[np.arange(len(replaced)), replaced] = states[layer][np.arange(len(replaced)), replaced]
        by_layer[layer, replaced] = score - part.score(stack.output(masked, x, layer), part.places)
    return Effects(score, effect, by_layer)


def _first_order(part: ScoredText, score: float, options: Options) -> Effects:
    """‖∂S/∂x‖, or x · ∂S/∂x."""
    sums, ids = part.sums(), np.array([part.encoding.ids])
    inputs = part.inputs(ids)
    de, dx = input_gradients(sums, inputs)
    gradient, each = de[0], dx[:, 0]  # [S, E], [L + 1, S, H]
    if options.method == "gradient":
        layers: Array | None = np.sqrt(np.square(each).sum(axis=-1)) if options.layers else None
        return Effects(score, np.sqrt(np.square(gradient).sum(axis=-1)), layers, why_zero=_flat(gradient))
    vectors = part.stack.words[ids[0]]
    layers = (part.stack.states(inputs)[:, 0] * each).sum(axis=-1) if options.layers else None
    effect: Array = (vectors * gradient).sum(axis=-1)
    return Effects(score, effect, layers, why_zero=_flat(gradient) or _right_angles(vectors, gradient))


def _flat(gradient: Array) -> str:
    return "" if gradient.any() else _WHY_FLAT


def _right_angles(vectors: Array, gradient: Array) -> str:
    """Return why the product of vectors and gradients [S, E] is 0 for every token, if it is."""
    lengths = np.sqrt(np.square(vectors).sum(axis=-1) * np.square(gradient).sum(axis=-1))  # [S]
    # float64, because the products cancel
    products = np.abs((vectors.astype(np.float64) * gradient).sum(axis=-1))
    most = float(lengths.max(initial=0))
    return _WHY_ZERO if most > 0 and float(products.max()) <= RIGHT_ANGLE * most else ""


def _integrated(part: ScoredText, score: float, options: Options) -> Effects:
    """(x − x') · ∫₀¹ ∂S/∂x(x' + α(x − x')) dα, at the word vectors and at x_0 to x_L."""
    stack, sums, ids = part.stack, part.sums(), np.array([part.encoding.ids])
    vectors = stack.words[ids[0]]  # [S, E]
    origin = vectors.copy()  # e' [S, E]
    origin[part.replaced] = 0 if part.mask is None else stack.words[part.mask]
    ends = part.inputs(None, np.stack([origin, vectors]))
    low, high = part.score(stack.output(ends), part.places)
    effect = _along(part, sums, options.steps, origin, vectors, None)
    start, gap = float(low), float(effect.sum(dtype=np.float64) - (high - low))
    if not options.layers:
        return Effects(score, effect, None, start, gap)
    states = stack.states(ends)  # [L + 1, 2, S, H]
    layers = np.stack(
        [
            _along(part, sums, options.steps, states[layer][0], states[layer][1], layer)
            for layer in range(stack.layers + 1)
        ]
    )
    gaps: Array = (layers.sum(axis=-1, dtype=np.float64) - (high - low)).astype(np.float32)
    return Effects(score, effect, layers, start, gap, gaps)


def _along(part: ScoredText, sums: ScoreSums, steps: int, origin: Array, end: Array, layer: int | None) -> Array:
    """Integrate along the line between vectors [S, D] of a layer, or of words: [S]."""
    nodes, weights = np.polynomial.legendre.leggauss(steps)  # on [-1, 1]
    total = np.zeros(end.shape, np.float64)
    for points in _at_once(steps, len(end)):
        alpha = (nodes[points, None, None] + 1) / 2
        rows = origin + alpha.astype(np.float32) * (end - origin)  # [n, S, D]
        if layer is None:
            found = input_gradients(sums, part.inputs(None, rows))[0]
        else:
            ids = np.repeat(np.array([part.encoding.ids]), len(rows), axis=0)
            found = input_gradients(sums, part.inputs(ids), (layer, rows))[0]
        total += np.tensordot(weights[points] / 2, found, axes=1)
    effect: Array = ((end - origin) * total).sum(axis=-1).astype(np.float32)
    return effect


def _at_once(rows: int, length: int) -> Iterator[slice]:
    count = max(1, GRADIENT_TOKENS // length)
    return (slice(first, min(rows, first + count)) for first in range(0, rows, count))
