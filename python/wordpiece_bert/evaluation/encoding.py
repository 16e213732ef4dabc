"""The vectors of texts for evaluators, and their similarities, whatever kind of encoder makes them."""

from __future__ import annotations

from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from wordpiece_bert._internal.arrays import first_non_finite
from wordpiece_bert._internal.checks import check_several, checked_choice
from wordpiece_bert.errors import InputError
from wordpiece_bert.sentence.m3.m3_encoder import M3Encoder
from wordpiece_bert.sentence.metrics import METRICS, pairwise_similarity
from wordpiece_bert.sentence.multi_vector.multi_vectors import MultiVectors
from wordpiece_bert.sentence.sparse.sparse_vectors import SparseVectors, sparse_pairwise_similarity

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from wordpiece_bert.bert.functional import Array


def checked_names(names: Iterable[str] | None, main: Any = None) -> list[str]:
    """Return the names of measures of similarity, or the main one's; an empty list leaves them to the model."""
    check_several("similarity_fn_names", names, f"a list of {', '.join(METRICS)}", or_none=True)
    given = [getattr(name, "value", name) for name in (names or ([] if main is None else [main]))]
    for name in given:
        checked_choice("similarity_fn_names", name, METRICS)
    main = getattr(main, "value", main)
    if main is not None and main not in given:
        raise InputError(f"the main similarity, {main!r}, must be one of similarity_fn_names, which are {given}")
    return given


def own_similarity(model: Any) -> str:
    """Return the name of the similarity by which a model compares; an `InputError` if it is not an encoder."""
    name = getattr(model, "similarity_fn_name", None)
    if not isinstance(name, str):
        raise _no_encoder(model)
    return name


def _no_encoder(model: Any) -> InputError:
    kinds = "a SentenceEncoder, SparseEncoder or MultiVectorEncoder"
    return InputError(
        f"an evaluator needs a model that encodes texts, {kinds}, not {type(model).__name__}: {model!r:.80}"
    )


def encoded(
    model: Any,
    texts: Sequence[str],
    role: Literal["query", "document"] | None,
    *,
    batch_size: int,
    show_progress_bar: bool,
    truncate_dim: int | None,
    **options: Any,
) -> Any:
    """Return the vectors of texts as they are, or as queries or documents; an `InputError` if they are not finite."""
    if truncate_dim is not None:
        options["truncate_dim"] = truncate_dim
    encode = getattr(model, "encode" if role is None else f"encode_{role}", None)
    if encode is None or isinstance(model, M3Encoder):  # of which a text has vectors of three kinds
        raise _no_encoder(model)
    takes = signature(encode).parameters
    others = any(parameter.kind is Parameter.VAR_KEYWORD for parameter in takes.values())
    if unknown := [name for name in options if name not in takes and not others]:
        raise InputError(f"{type(model).__name__} encodes texts without {' and '.join(unknown)}: leave it out")
    found = encode(list(texts), batch_size=batch_size, show_progress_bar=show_progress_bar, **options)
    row = _row_not_finite(found)
    if row is not None:
        raise InputError(
            f"the model's vector of {texts[row]!r:.80} is not finite, so that nothing can be measured: its weights "
            "are damaged, or its training diverged"
        )
    return found


def _row_not_finite(vectors: Any) -> int | None:
    """Return the first text whose vector, or one of whose vectors, is not finite."""
    if isinstance(vectors, SparseVectors):
        numbers, starts = vectors.values[:, None], vectors.indptr
    elif isinstance(vectors, MultiVectors):
        numbers, starts = vectors.vectors, vectors.offsets
    elif getattr(vectors, "ndim", 0) == 2:
        numbers, starts = np.asarray(vectors), np.arange(len(vectors) + 1)
    else:
        return None
    bad = first_non_finite(numbers)
    return None if bad is None else int(np.searchsorted(starts, bad[0], side="right")) - 1


def distinct(*columns: Sequence[str]) -> tuple[list[str], list[np.ndarray[Any, np.dtype[np.intp]]]]:
    """Return the distinct texts of several columns, and the number of each text of each column among them."""
    numbers: dict[str, int] = {}
    rows = [np.array([numbers.setdefault(text, len(numbers)) for text in column], np.intp) for column in columns]
    return list(numbers), rows


def pair_scores(model: Any, a: Any, b: Any, name: str) -> Array:
    """Compare vectors pair by pair, float32 [n], by a measure of `METRICS` or the model's own."""
    found: Array
    if name in METRICS and isinstance(a, SparseVectors):
        found = sparse_pairwise_similarity(a, b, name)
    elif name in METRICS and not isinstance(a, MultiVectors):
        found = pairwise_similarity(a, b, name)
    elif name == model.similarity_fn_name:
        found = np.asarray(model.similarity_pairwise(a, b), np.float32)
    else:
        raise InputError(f"{type(model).__name__} compares by {model.similarity_fn_name}, not by {name}")
    if np.isnan(found).any():
        raise InputError(f"the {name} of pair {int(np.isnan(found).argmax())} is NaN: the numbers are too large")
    return found
