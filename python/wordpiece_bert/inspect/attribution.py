"""`attribute`: what a model's answer depends on, and the cosine of two sentences."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, get_args

import numpy as np

from wordpiece_bert._internal.checks import checked_choice, checked_flag, whole_number
from wordpiece_bert._internal.choices import SALIENCY_METHODS, SaliencyMethod
from wordpiece_bert._internal.notebook import fields_html
from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert.bert.family_table import family_of, trainable
from wordpiece_bert.bert.functional import normalize
from wordpiece_bert.errors import InputError
from wordpiece_bert.finetune.score_sums import CosineSum, ScoreSum
from wordpiece_bert.inspect.effects import CosineScore, HeadScore, Options, Replace, ScoredText, effects_of
from wordpiece_bert.inspect.outputs import outputs_of
from wordpiece_bert.inspect.parameters import VIEWING
from wordpiece_bert.inspect.sentence_vectors import Sentences
from wordpiece_bert.inspect.sources import as_sentence_encoder, resolve
from wordpiece_bert.inspect.stack import Stack
from wordpiece_bert.inspect.targets import chosen_target
from wordpiece_bert.inspect.trace import encoder_of

if TYPE_CHECKING:
    from wordpiece_bert.bert.base_model import Model
    from wordpiece_bert.bert.functional import Array
    from wordpiece_bert.inspect.sources import AnySource
    from wordpiece_bert.sentence.dense.sentence_encoder import SentenceEncoder
    from wordpiece_bert.tokenizer.subword import AnyTokenizer

_REPLACE: tuple[Replace, ...] = get_args(Replace)


@dataclass(frozen=True, eq=False, kw_only=True)
class Attribution:
    """How much each token matters to a number that a model computes.

    S tokens, L layers, T texts: 2 for the cosine of two sentences, else 1. Arrays are float32.

    Examples
    --------
    >>> from wordpiece_bert import inspect
    >>> found = inspect.attribute("models/reviews", "a wonderful film")
    >>> len(found.effect) == len(found.tokens)
    True
    """

    #: The name of the model's class, and where it was loaded from.
    model: str
    #: The tokens, S of them; of two sentences, the first one's, then the second one's.
    tokens: list[str]
    #: Which text each token is from, 0 or 1; None for special tokens.
    sentence_ids: list[int | None]
    #: What is explained: ``"positive"``, ``"B-PER at ada"``, ``"cosine"``.
    target: str
    #: ``"logit"``, ``"probability"``, ``"score"`` (of a regression) or ``"cosine"``: what `score` is.
    measure: str
    #: The number that is explained.
    score: float
    #: How it is explained, one of the methods of `attribute`.
    method: str
    #: The effect of each token, [S].
    effect: Array
    #: The effects of the vectors x_0 to x_L, [L + 1, S]; None unless asked for.
    layers: Array | None
    #: The score of the text in which every token is replaced, [T], for integrated gradients; else empty.
    start: Array
    #: What integrated gradients miss: the sum of the effects less (score − start), [T]; else empty.
    gap: Array
    #: The gap of each layer, [L + 1, T]; else None.
    layer_gaps: Array | None
    #: Why all effects are 0, or empty.
    why_zero: str
    #: What the model says of the target: labels or words with their probabilities, the highest first where they are
    #: words.
    choices: list[str]
    #: The probabilities, or scores, of `choices`.
    scores: Array
    #: Which of `choices` is explained.
    chosen: int
    #: What replaced a token: ``"[MASK]"``, ``"zero"`` or ``"nothing"``; empty if nothing did.
    replacement: str
    #: Whether a text was truncated.
    truncated: bool
    #: The text, or the two texts of a pair or of a cosine.
    texts: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return (
            f"Attribution({self.method} of {self.target}, {self.measure} {self.score:.3f}, {len(self.tokens)} tokens)"
        )

    def _repr_html_(self) -> str:
        return fields_html(repr(self), {one.name: getattr(self, one.name) for one in fields(self)})


@completed_by(VIEWING)
def attribute(
    source: AnySource,
    text: str,
    pair: str | None = None,
    *,
    label: str | int | None = None,
    token: int | None = None,
    answer: tuple[int, int] | None = None,
    method: SaliencyMethod = "occlusion",
    layers: bool = False,
    replace: Replace = "mask",
    steps: int = 50,
    max_length: int | None = None,
) -> Attribution:
    """Compute how much each token matters to a label, an entity, an answer, a masked word or a cosine.

    With S the number that is explained and e the word vectors of the text, the methods are, for each token:

    - ``"occlusion"``: the score minus the score without the token (Zeiler and Fergus 2014 for images; Li et al. 2016,
      "Understanding Neural Networks through Representation Erasure", for tokens). One run of the model for each token.
    - ``"gradient"``: ‖∂S/∂e‖, how strongly S reacts to a small change of the token, without a sign (Simonyan et al.
      2013, "Deep Inside Convolutional Networks", who take the largest component; Li et al. 2016, "Visualizing and
      Understanding Neural Models in NLP"). One run.
    - ``"input_x_gradient"``: e · ∂S/∂e, what the token adds to S, to first order (Shrikumar et al. 2016). One run.
    - ``"integrated_gradients"``: (e − e') · ∫ ∂S/∂e along the line from e', where every token is replaced, to e
      (Sundararajan et al. 2017). The effects add up to S(e) − S(e'), to the ``gap`` of the integral. `steps` runs.

    S is a logit, a cosine or the score of a regression; occlusion takes the probability instead of the logit, and for
    an answer the product of two.

    With `layers`, the same is done with the vectors x_l of each layer in place of e.
    Integrated gradients go from the vectors of the text in which every token is replaced, so that the effects of each
    layer add up to the same; occlusion puts the vector that a token has where it is masked, and leaves special tokens
    as they are: their effects are 0 in every layer, and so is the last layer of a head that reads ``[CLS]`` alone.

    Parameters
    ----------
    source : Loaded, tuple, str, os.PathLike, SentenceEncoder or CrossEncoder
        A model with its tokenizer, or the model's name or folder, or a ranker; or a sentence encoder or its name, whose
        cosine of `text` and `pair` is explained, the tokens of each text while the other is as it is.
    text : str
        The text; the question, for an answer.
    pair : str, optional
        The second text of a pair, the text that has the answer, or the second sentence.
    label : str or int, optional
        The label, or the word for a mask, by name or index. By default the most probable.
    token : int, optional
        The token whose label or word is explained. By default the first mask, or the entity with the highest
        probability.
    answer : (int, int), optional
        The first and the last token of an answer. By default the best of the second text.
    method : {"occlusion", "gradient", "input_x_gradient", "integrated_gradients"}, default "occlusion"
        As above. All but occlusion need the model's backward pass, which every family but DPR has here.
    layers : bool, default False
        Whether to do the same for each layer.
    replace : {"mask", "remove"}, default "mask"
        What replaces a token in occlusion and in integrated gradients: the mask token, or nothing. Occlusion then
        leaves the token out; integrated gradients start from a word vector of zeros.
    steps : int, default 50
        The points of integrated gradients, by the Gauss-Legendre rule.

    Returns
    -------
    Attribution
        The effects. Occlusion and integrated gradients do not replace special tokens: their effect at the word vectors
        is 0.

    Raises
    ------
    InputError
        The model has no such head or no backward pass here, the label, the token, the answer or the method is unknown,
        the second text is missing, or the tokenizer has no mask token.

    Examples
    --------
    >>> from wordpiece_bert import inspect
    >>> found = inspect.attribute(
    ...     "models/reviews", "a wonderful film", method="integrated_gradients"
    ... )
    >>> found.tokens[int(found.effect.argmax())]
    'wonderful'
    >>> bool(abs(found.gap[0]) < 1e-3)
    True
    """
    method = checked_choice("method", method, SALIENCY_METHODS)
    replace = checked_choice("replace", replace, _REPLACE)
    steps = whole_number("steps", steps, 1, 10_000)
    options = Options(method, replace, steps, checked_flag("layers", layers))
    if (sentences := as_sentence_encoder(source)) is not None:
        if pair is None:
            raise InputError("the cosine of two sentences needs the second: pass pair=")
        for name, value in (("label", label), ("token", token), ("answer", answer)):
            if value is not None:
                raise InputError(f"{name} is for models with a head: a SentenceEncoder has the cosine alone")
        return _of_cosine(sentences, text, pair, options, max_length)
    given = resolve(source)
    model, tokenizer = given.model, given.tokenizer
    encoder = encoder_of(model)
    stack = Stack(encoder)
    outputs = outputs_of(model, stack, tokenizer, "attribution")
    _check(model, tokenizer, options)
    encoding = given.encode(text, pair, max_length)
    x = stack.output(stack.row(encoding))  # [1, S, H]
    target = chosen_target(model, outputs, tokenizer, encoding, x, label, token, answer)
    part = ScoredText(
        stack,
        encoding,
        HeadScore(outputs, probable=method == "occlusion"),
        target.places,
        lambda: ScoreSum(model, target.places),
        tokenizer.mask_token_id if replace == "mask" else None,
    )
    found = effects_of(part, options)
    measure = "score" if not outputs.probable else "probability" if method == "occlusion" else "logit"
    return Attribution(
        model=f"{type(model).__name__} from {model.source}",
        tokens=encoding.tokens,
        sentence_ids=encoding.sequence_ids,
        target=target.name,
        measure=measure,
        score=found.score,
        method=method,
        effect=found.effect,
        layers=found.layers,
        start=_numbers(found.start),
        gap=_numbers(found.gap),
        layer_gaps=None if found.layer_gaps is None else found.layer_gaps[:, None],
        why_zero=found.why_zero,
        choices=target.choices,
        scores=target.scores,
        chosen=target.chosen,
        replacement=_replacement(options, tokenizer),
        truncated=encoding.truncated,
        texts=given.texts(text, pair),
    )


def _check(model: Model, tokenizer: AnyTokenizer, options: Options) -> None:
    """Raise InputError if the model or the tokenizer does not allow the method."""
    method, layers = options.method, options.layers
    if options.replaces and options.replace == "mask" and tokenizer.mask_token_id is None:
        raise InputError("the tokenizer has no mask token: pass replace='remove'")
    if method == "occlusion" and layers and options.replace == "remove":
        raise InputError("occlusion by layer needs a vector in place of each token: pass replace='mask'")
    if method != "occlusion" and family_of(model.config).training is None:
        raise InputError(
            f"method={method!r} needs a backward pass, which {type(model).__name__} does not have here, only models of "
            f"the types {', '.join(trainable())}: pass method='occlusion'"
        )


def _replacement(options: Options, tokenizer: AnyTokenizer) -> str:
    if not options.replaces:
        return ""
    if options.replace == "mask":
        return tokenizer.mask_token or "mask"
    return "nothing" if options.method == "occlusion" else "zero"


# --- the cosine of two sentences


def _of_cosine(encoder: SentenceEncoder, text: str, pair: str, options: Options, max_length: int | None) -> Attribution:
    sentences = Sentences(encoder)
    tokenizer, model = sentences.tokenizer, sentences.model
    _check(model, tokenizer, options)
    if options.method != "occlusion":
        sentences.check_gradient(options.method)
    stack = Stack(model)
    encodings = [sentences.encode(one, max_length) for one in (text, pair)]
    vectors = [sentences.vectors(stack.output(stack.row(one)))[0] for one in encodings]
    cosine = float(normalize(vectors[0]) @ normalize(vectors[1]))
    found = []
    for index, encoding in enumerate(encodings):
        other = vectors[1 - index]
        score = CosineScore(sentences, other)
        mask = tokenizer.mask_token_id if options.replace == "mask" else None
        part = ScoredText(stack, encoding, score, [], lambda v=other: CosineSum(model, sentences.modes, v), mask)  # type: ignore[misc]
        found.append(effects_of(part, options))
    sides = [index if side is not None else None for index, one in enumerate(encodings) for side in one.sequence_ids]
    layers = [one.layers for one in found if one.layers is not None]
    gaps = [one.layer_gaps for one in found if one.layer_gaps is not None]
    reasons = {one.why_zero for one in found}
    return Attribution(
        model=f"{type(model).__name__} from {model.source}",
        tokens=[token for one in encodings for token in one.tokens],
        sentence_ids=sides,
        target="cosine",
        measure="cosine",
        score=cosine,
        method=options.method,
        effect=np.concatenate([one.effect for one in found]),
        layers=np.concatenate(layers, axis=1) if layers else None,
        start=_numbers(*(one.start for one in found)),
        gap=_numbers(*(one.gap for one in found)),
        layer_gaps=np.stack(gaps, axis=1) if gaps else None,
        why_zero=reasons.pop() if len(reasons) == 1 else "",
        choices=["cosine"],
        scores=np.array([cosine], np.float32),
        chosen=0,
        replacement=_replacement(options, tokenizer),
        truncated=any(one.truncated for one in encodings),
        texts=(text, pair),
    )


def _numbers(*values: float | None) -> Array:
    return np.array([value for value in values if value is not None], np.float32)
