"""Which tokens the score of a classifier depends on: by occlusion, and by gradients.

The gradients are those of the label's logit, not of its probability: near 1 a probability hardly changes, and its
gradient vanishes (Simonyan et al. 2013, section 3).
"""

from __future__ import annotations

from dataclasses import replace as replaced
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from wordpiece_bert._internal.checks import checked_choice, whole_number
from wordpiece_bert._internal.choices import SALIENCY_METHODS, SaliencyMethod
from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert.bert.families import family_of, trainable
from wordpiece_bert.bert.functional import sigmoid, softmax
from wordpiece_bert.bert.heads.kinds import SequenceClassification
from wordpiece_bert.errors import InputError
from wordpiece_bert.finetune.gradient import compute
from wordpiece_bert.finetune.network import Network
from wordpiece_bert.inspect.language import BATCH
from wordpiece_bert.inspect.parameters import VIEWING
from wordpiece_bert.inspect.trace import encode
from wordpiece_bert.inspect.view import View
from wordpiece_bert.tasks.loading import loaded

if TYPE_CHECKING:
    from wordpiece_bert.bert.functional import Array, Ids
    from wordpiece_bert.subword import AnyEncoding, AnyTokenizer
    from wordpiece_bert.tasks.loading import Source

__all__ = ["saliency"]

Replace = Literal["mask", "remove"]

_REPLACE: tuple[Replace, ...] = get_args(Replace)
#: Tokens that go through the backward pass at once: 0.4 GB of activations for BERT-base.
GRADIENT_TOKENS = 1024

_SIGNED = "Blue tokens raise the logit, orange tokens lower it."


@completed_by(VIEWING)
def saliency(
    source: Source,
    text: str,
    pair: str | None = None,
    *,
    label: str | int | None = None,
    method: SaliencyMethod = "occlusion",
    replace: Replace = "mask",
    steps: int = 50,
    max_length: int | None = None,
    title: str = "Saliency",
) -> View:
    """Show how much each token matters to a classifier.

    With S the label's logit and e the word vectors of the text, the methods are, for each token:

    - ``"occlusion"``: the score minus the score without the token (Zeiler and Fergus 2014 for images; Li et al. 2016,
      "Understanding Neural Networks through Representation Erasure", for tokens). One run of the model for each token.
    - ``"gradient"``: ‖∂S/∂e‖, how strongly the logit reacts to a small change of the token, without a sign (Simonyan et
      al. 2013, "Deep Inside Convolutional Networks", who take the largest component; Li et al. 2016, "Visualizing and
      Understanding Neural Models in NLP"). One run.
    - ``"input_x_gradient"``: e · ∂S/∂e, what the token adds to the logit, to first order (Shrikumar et al. 2016). One
      run.
    - ``"integrated_gradients"``: (e − e') · ∫ ∂S/∂e along the line from e', where every token is replaced, to e
      (Sundararajan et al. 2017). The effects add up to S(e) − S(e'). `steps` runs.

    Parameters
    ----------
    source : Loaded, tuple, str or os.PathLike
        A model for sequence classification and its tokenizer, or the model's name or folder.
    text : str
        The text.
    pair : str, optional
        The second text of a pair.
    label : str or int, optional
        The name or the index of the label whose score is compared; by default the one with the highest score.
    method : {"occlusion", "gradient", "input_x_gradient", "integrated_gradients"}, default "occlusion"
        As above. All but occlusion need the model's backward pass, which BERT, DistilBERT, ELECTRA, MPNet, ALBERT,
        ModernBERT and DeBERTa have here.
    replace : {"mask", "remove"}, default "mask"
        What replaces a token in occlusion and in integrated gradients: the mask token, or nothing. Occlusion then
        leaves the token out; integrated gradients start from a word vector of zeros.
    steps : int, default 50
        The points of integrated gradients, by the Gauss-Legendre rule.
    title : str, default "Saliency"
        A line above the view.

    Returns
    -------
    View
        Arrays ``effect`` [S], one number for each token, and ``scores`` [labels], probabilities, or logits for a
        regression. Occlusion and integrated gradients do not replace special tokens: their effect is 0.

    Raises
    ------
    InputError
        The model is no classifier or has no backward pass here, the label or the method is unknown, or the tokenizer
        has no mask token.

    Examples
    --------
    >>> from wordpiece_bert import inspect
    >>> inspect.saliency("models/reviews", "a wonderful film").kind
    'saliency'
    """
    model, tokenizer = loaded(source)
    if not isinstance(model, SequenceClassification):
        raise InputError(f"saliency needs a model for sequence classification, not {type(model).__name__}")
    method = checked_choice("method", method, SALIENCY_METHODS)
    replace = checked_choice("replace", replace, _REPLACE)
    steps = whole_number("steps", steps, 1, 10_000)
    replaces = method in ("occlusion", "integrated_gradients")
    if replaces and replace == "mask" and tokenizer.mask_token_id is None:
        raise InputError("the tokenizer has no mask token: pass replace='remove'")
    if method != "occlusion" and family_of(model.config).training is None:
        raise InputError(
            f"method={method!r} needs a backward pass, which {type(model).__name__} does not have here, only models of "
            f"the types {', '.join(trainable())}: pass method='occlusion'"
        )
    encoding = encode(model, tokenizer, text, pair, max_length)
    scores = _class_scores(model, [(encoding.ids, encoding.token_type_ids)])[0]  # [labels]
    labels = [model.config.label(i) for i in range(len(scores))]
    chosen = _label_index(label, labels, scores)
    mask = tokenizer.mask_token_id if replace == "mask" else None
    if method == "occlusion":
        effect, heading, note = _occlusion(model, encoding, scores[chosen], chosen, mask)
    else:
        logit = _Logit(model, encoding, chosen)
        if method == "integrated_gradients":
            effect, heading, note = _integrated(logit, encoding, mask, tokenizer, steps)
        else:
            effect, heading, note = _first_order(logit, signed=method == "input_x_gradient")
    data = {
        "tokens": encoding.tokens,
        "labels": labels,
        "label": labels[chosen],
        "chosen": chosen,
        "method": method,
        "signed": method != "gradient",
        "heading": heading,
        "note": note,
        "probabilities": model.config.problem_type != "regression",
        "truncated": encoding.truncated,
    }
    return View("saliency", title, data, {"effect": effect, "scores": scores})


def _places(encoding: AnyEncoding) -> list[int]:
    """Return the positions of the tokens that are not special."""
    return [i for i, side in enumerate(encoding.sequence_ids) if side is not None]


# --- occlusion


def _occlusion(
    model: SequenceClassification, encoding: AnyEncoding, score: float, chosen: int, mask: int | None
) -> tuple[Array, str, str]:
    """Return the effects [S], a heading and a note; without a mask token the tokens are left out."""
    ids, types, places = encoding.ids, encoding.token_type_ids, _places(encoding)
    kept = [] if mask is None else [mask]
    rows = [
        ([*ids[:i], *kept, *ids[i + 1 :]], [*types[:i], *types[i : i + len(kept)], *types[i + 1 :]]) for i in places
    ]
    effect = np.zeros(len(encoding), np.float32)
    effect[places] = score - _class_scores(model, rows)[:, chosen]
    done = "removed" if mask is None else "masked"
    note = (
        f"The change of this score when a token is {done}. Blue tokens speak for the label: without them the score "
        "falls. Orange tokens speak against it."
    )
    return effect, f"change when a token is {done}", note


def _class_scores(model: SequenceClassification, rows: list[Any]) -> Array:
    """Return the scores of rows of equal length, each a pair of ids and token types: [rows, labels]."""
    found = []
    for start in range(0, len(rows), BATCH):
        ids, types = zip(*rows[start : start + BATCH], strict=True)
        logits = model.infer(np.array(ids), token_type_ids=np.array(types))  # [batch, labels]
        if model.config.problem_type == "regression":
            found.append(logits)
        elif model.config.problem_type == "multi_label_classification" or logits.shape[1] == 1:
            found.append(sigmoid(logits))
        else:
            found.append(softmax(logits))
    return np.concatenate(found) if found else np.zeros((0, model.config.num_labels), np.float32)


def _label_index(label: str | int | None, labels: list[str], scores: Array) -> int:
    if label is None:
        return int(np.argmax(scores))
    if isinstance(label, str) and label in labels:
        return labels.index(label)
    if isinstance(label, int) and not isinstance(label, bool) and 0 <= label < len(labels):
        return label
    raise InputError(f"label must be one of {', '.join(labels)}, or an index below {len(labels)}, not {label!r}")


# --- gradients


class _Logit:
    """The logit of one label as a function of the word vectors of a text, and its gradient."""

    def __init__(self, model: SequenceClassification, encoding: AnyEncoding, chosen: int) -> None:
        self._model, self._types, self._chosen = model, np.array(encoding.token_type_ids), chosen
        self._network = Network(model)
        # The mean squared error of regression is the loss whose gradient with respect to the logits can be chosen.
        self._network.config = replaced(model.config, problem_type="regression")
        self._parameters = self._network.parameters(model)
        self.table = self._parameters[self._network.name("embeddings.word_embeddings.weight")]  # [V, E]
        self.vectors: Array = self.table[encoding.ids]  # [S, E]

    def values(self, vectors: Array) -> Array:
        """Return the logits of rows of word vectors: [n, S, E] -> [n]."""
        return self._logits(vectors)[:, self._chosen]

    def gradients(self, vectors: Array) -> Array:
        """Return the gradients of the logits of rows of word vectors: [n, S, E] -> [n, S, E]."""
        logits = self._logits(vectors)
        # d/dx of mean((x − t)²) over n · labels numbers is 2(x − t)/(n · labels): 1 for the label, 0 for the others.
        targets = logits.copy()
        targets[:, self._chosen] -= logits.size / 2
        batch = {"inputs_embeds": vectors, "token_type_ids": self._rows(len(vectors)), "labels": targets}
        found = compute(self._network, self._parameters, batch)
        assert found.de is not None, "the embeddings are trained"
        return found.tokens.padded(found.de)

    def _logits(self, vectors: Array) -> Array:
        return self._model(inputs_embeds=vectors, token_type_ids=self._rows(len(vectors))).logits

    def _rows(self, count: int) -> Ids:
        return np.repeat(self._types[None], count, axis=0)


def _first_order(logit: _Logit, *, signed: bool) -> tuple[Array, str, str]:
    """Return ‖∂S/∂e‖, or e · ∂S/∂e if signed, [S], a heading and a note."""
    (gradient,) = logit.gradients(logit.vectors[None])  # [S, E]
    if signed:
        effect: Array = (logit.vectors * gradient).sum(axis=-1)
        note = f"The gradient of the label's logit times each token's word vector. {_SIGNED}"
        return effect, "word vector times gradient of the logit", note
    note = (
        "The length of the gradient of the label's logit with respect to each token's word vector: how strongly the "
        "logit reacts to a small change of the token. It has no sign."
    )
    return np.sqrt(np.square(gradient).sum(axis=-1)), "length of the logit's gradient", note


def _integrated(
    logit: _Logit, encoding: AnyEncoding, mask: int | None, tokenizer: AnyTokenizer, steps: int
) -> tuple[Array, str, str]:
    """Return (e − e') · ∫₀¹ ∂S/∂e(e' + α(e − e')) dα, [S], a heading and a note."""
    vectors, places = logit.vectors, _places(encoding)
    start = vectors.copy()  # e' [S, E]
    start[places] = 0 if mask is None else logit.table[mask]
    nodes, weights = np.polynomial.legendre.leggauss(steps)  # on [-1, 1]
    total = np.zeros(vectors.shape, np.float64)
    at_once = max(1, GRADIENT_TOKENS // len(vectors))
    for first in range(0, steps, at_once):
        alpha = (nodes[first : first + at_once, None, None] + 1) / 2
        rows = start + alpha.astype(np.float32) * (vectors - start)  # [n, S, E]
        total += np.tensordot(weights[first : first + at_once] / 2, logit.gradients(rows), axes=1)
    effect = ((vectors - start) * total).sum(axis=-1).astype(np.float32)
    low, high = logit.values(np.stack([start, vectors]))
    origin = "zero vectors" if mask is None else f"{tokenizer.mask_token} in every place"
    note = (
        f"Integrated gradients of the label's logit from {origin} to the text. {_SIGNED} They add up to "
        f"{effect.sum():+.3f}; the logit is {high:.3f}, and {low:.3f} with {origin}."
    )
    return effect, f"integrated gradients of the logit, from {origin}", note
