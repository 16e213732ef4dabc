"""The view of what a model's answer depends on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert.errors import InputError
from wordpiece_bert.inspect.attribution import Attribution, attribute
from wordpiece_bert.inspect.trace import about, called
from wordpiece_bert.inspect.view import View

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wordpiece_bert._internal.choices import SaliencyMethod
    from wordpiece_bert.bert.functional import Array
    from wordpiece_bert.inspect.effects import Replace
    from wordpiece_bert.inspect.sources import AnySource

_SIGNED = "Blue tokens raise the {}, orange tokens lower it."


@completed_by(attribute)
def saliency(
    source: AnySource | Attribution | Sequence[Attribution],
    text: str | None = None,
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
    title: str = "Saliency",
) -> View:
    """Show how much each token matters to a label, an entity, an answer, a masked word or a cosine.

    Parameters
    ----------
    source : Loaded, tuple, str, os.PathLike, SentenceEncoder, CrossEncoder, Attribution or sequence of Attribution
        What `attribute` takes; or what it returned, several of them to choose from in the page.
    text : str, optional
        The text; not with an `Attribution`.
    title : str, default "Saliency"
        A line above the view.

    Returns
    -------
    View
        Arrays ``effect`` [S], one number for each token, ``scores``, probabilities of labels or words, or logits for a
        regression, and ``layers`` [L + 1, S], if asked for. Of the second of several `Attribution` they are
        ``effect2``, ``scores2`` and ``layers2``, and so on.

    Raises
    ------
    InputError
        An `Attribution` beside a text, or one of several is not an `Attribution`; otherwise as `attribute`.

    Examples
    --------
    >>> from wordpiece_bert import inspect
    >>> inspect.saliency("models/reviews", "a wonderful film").kind
    'saliency'
    """
    listed: list[Any] = [source] if isinstance(source, Attribution) else source if isinstance(source, list) else []
    if isinstance(source, tuple) and all(isinstance(one, Attribution) for one in source):
        listed = list(source)
    if listed:
        if wrong := [one for one in listed if not isinstance(one, Attribution)]:
            raise InputError(f"saliency takes what attribute returns, not {type(wrong[0]).__name__}")
        if text is not None:
            raise InputError("an Attribution has its text: leave text out")
    elif text is None:
        raise InputError("saliency needs a text, or what attribute returned")
    else:
        found = attribute(
            source,  # type: ignore[arg-type]
            text,
            pair,
            label=label,
            token=token,
            answer=answer,
            method=method,
            layers=layers,
            replace=replace,
            steps=steps,
            max_length=max_length,
        )
        listed = [found]
    arrays: dict[str, Array] = {}
    for number, one in enumerate(listed, 1):
        suffix = "" if number == 1 else str(number)
        arrays |= {f"effect{suffix}": one.effect, f"scores{suffix}": one.scores}
        if one.layers is not None:
            arrays[f"layers{suffix}"] = one.layers
    first, *others = (_entry(one) for one in listed)
    texts = [name for one in listed for name in about(*one.texts)] if all(one.texts for one in listed) else []
    return View("saliency", title, first | {"others": others, "about": texts, "model": called(listed[0].model)}, arrays)


def _entry(found: Attribution) -> dict[str, Any]:
    """Return what a view shows of one attribution besides the arrays."""
    heading, note = _words(found)
    return {
        "tokens": found.tokens,
        "sentences": [-1 if side is None else side for side in found.sentence_ids],
        "target": found.target,
        "measure": found.measure,
        "score": found.score,
        "labels": found.choices,
        "label": found.choices[found.chosen],
        "chosen": found.chosen,
        "method": found.method,
        "signed": found.method != "gradient",
        "heading": heading,
        "note": " ".join(filter(None, [note, found.why_zero])),
        "start": found.start.tolist(),
        "gap": found.gap.tolist(),
        "layer_gaps": None if found.layer_gaps is None else found.layer_gaps.tolist(),
        "probabilities": found.measure in ("logit", "probability"),
        "truncated": found.truncated,
    }


def _words(found: Attribution) -> tuple[str, str]:
    """Return a heading and a note."""
    measure = found.measure
    signed = _SIGNED.format(measure)
    if found.method == "occlusion":
        done = "removed" if found.replacement == "nothing" else "masked"
        note = (
            f"The change of the {measure} when a token is {done}. Blue tokens speak for it: without them the {measure} "
            "falls. Orange tokens speak against it."
        )
        return f"change when a token is {done}", note
    if found.method == "gradient":
        note = (
            f"The length of the gradient of the {measure} with respect to each token's word vector: how strongly the "
            f"{measure} reacts to a small change of the token. It has no sign."
        )
        return f"length of the gradient of the {measure}", note
    if found.method == "input_x_gradient":
        note = f"The gradient of the {measure} times each token's word vector. {signed}"
        return f"word vector times gradient of the {measure}", note
    origin = "zero vectors" if found.replacement == "zero" else f"{found.replacement} in every place"
    note = (
        f"Integrated gradients of the {measure} from {origin} to the text. {signed} They add up to "
        f"{_listed(_sums(found))}; the {measure} is {found.score:.3f}, and {_listed(found.start, '.3f')} with "
        f"{origin}; the gap of the integral is {_listed(found.gap, '+.1e')}."
    )
    return f"integrated gradients of the {measure}, from {origin}", note


def _sums(found: Attribution) -> Array:
    """Return the sum of the effects of each text."""
    if len(found.start) == 1:
        total: Array = found.effect.sum(keepdims=True)
        return total
    sums: Array = found.gap + np.float32(found.score) - found.start
    return sums


def _listed(values: Array, form: str = "+.3f") -> str:
    return " and ".join(f"{float(value):{form}}" for value in values)
