"""Losses of sentence encoders and their gradients, over vectors that have been pooled.

Names, keywords and defaults are as in sentence-transformers 6.2, without the model. A loss takes columns of vectors:
column k holds the vectors of the k-th text of each example. Comments denote shapes by B, the examples, and D, the
dimensions.

Stability: provisional.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np

from wordpiece_bert._internal.arrays import as_numbers
from wordpiece_bert._internal.checks import check_several, checked_choice, checked_strings, finite_number, whole_number
from wordpiece_bert.bert.functional import Array, normalize
from wordpiece_bert.bert.gradients import cross_entropy, linear_backward, normalize_backward
from wordpiece_bert.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy.typing as npt

__all__ = [
    "CoSENTLoss",
    "ContrastiveLoss",
    "CosineSimilarityLoss",
    "LossGradient",
    "MatryoshkaLoss",
    "MultipleNegativesRankingLoss",
    "SoftmaxLoss",
    "TripletLoss",
]

#: The least norm by which vectors are divided for a cosine in losses that use torch's cosine_similarity.
_COSINE_LEAST = 1e-8
#: What torch's pairwise_distance adds to each component of a difference.
_PAIRWISE = 1e-6


@dataclass(frozen=True, eq=False)
class LossGradient:
    """A loss over vectors and its gradients.

    Attributes
    ----------
    loss : float
        The loss of the batch.
    embeddings : list of array
        The gradient with respect to each column, float32 [B, D] each.
    gradients : dict of str to array
        The gradients of the loss's own parameters; empty for most losses.

    Examples
    --------
    >>> import numpy as np
    >>> from wordpiece_bert.finetune.losses import CosineSimilarityLoss
    >>> u, v = np.array([[1, 0]], np.float32), np.array([[0, 1]], np.float32)
    >>> found = CosineSimilarityLoss().value_and_grad([u, v], [1.0])
    >>> found.loss, found.embeddings
    (1.0, [array([[-0., -2.]], dtype=float32), array([[-2., -0.]], dtype=float32)])
    """

    loss: float
    embeddings: list[Array] = field(repr=False)
    gradients: dict[str, Array] = field(default_factory=dict, repr=False)


class Loss(Protocol):
    """A loss over columns of vectors."""

    def value_and_grad(self, columns: Sequence[npt.ArrayLike], labels: npt.ArrayLike | None = None) -> LossGradient:
        """Return the loss of a batch and its gradients.

        Parameters
        ----------
        columns : sequence of array_like
            Vectors [B, D] for each column.
        labels : array_like, optional
            One label for each example, [B]; None for losses without labels.
        """

    def state_dict(self) -> dict[str, Array]:
        """Return the loss's own parameters; empty for most losses."""

    def load_state_dict(self, state: Mapping[str, npt.ArrayLike]) -> None:
        """Set the loss's own parameters.

        Parameters
        ----------
        state : mapping of str to array_like
            Arrays by name, as `state_dict` returns them.
        """


class _Loss:
    """A loss without parameters of its own."""

    def state_dict(self) -> dict[str, Array]:
        """Return the loss's own parameters: none."""
        return {}

    def load_state_dict(self, state: Mapping[str, npt.ArrayLike]) -> None:
        """Set the loss's own parameters, of which there are none.

        Parameters
        ----------
        state : mapping of str to array_like
            An empty mapping.

        Raises
        ------
        InputError
            `state` is not empty.
        """
        if state:
            raise InputError(f"{type(self).__name__} has no parameters, but the state has {', '.join(state)}")


class MultipleNegativesRankingLoss(_Loss):
    """Cross entropy of the right partner among all texts of the batch (Henderson et al. 2017).

    The columns are anchors, positives and any number of columns of hard negatives. The logits are scale·cosine of each
    anchor with every text of the other columns; the right one is its own positive.

    Parameters
    ----------
    scale : float, default 20.0
        The factor of the cosines, above 0: the inverse of a temperature.
    directions : sequence of str, optional
        ``"query_to_doc"``, always; ``"doc_to_query"`` adds the anchors as candidates for each positive;
        ``"query_to_query"`` and ``"doc_to_doc"`` add the other examples' anchors, for the anchor, and their other
        columns, for the positive.
    partition_mode : {"joint", "per_direction"}, default "joint"
        ``"joint"``: one normalizing sum over all candidates of an example; ``"per_direction"``: the mean over the
        directions of the logarithms of their sums.
    hardness_mode : {"in_batch_negatives", "hard_negatives", "all_negatives"}, optional
        None; or the candidates whose logits get hardness_strength·cosine in addition, as a constant:
        ``"in_batch_negatives"``, ``"hard_negatives"`` (the example's own) or ``"all_negatives"``.
    hardness_strength : float, default 0.0
        The factor of these cosines.

    Raises
    ------
    InputError
        An option is out of range, or no `directions` begin with ``"query_to_doc"``.

    Examples
    --------
    Two questions, each with its answer; the answer of the other is the wrong one:

    >>> import numpy as np
    >>> from wordpiece_bert.finetune.losses import MultipleNegativesRankingLoss
    >>> questions, answers = (
    ...     np.eye(2, dtype=np.float32),
    ...     np.array([[1, 0.2], [0.2, 1]], np.float32),
    ... )
    >>> loss = MultipleNegativesRankingLoss()
    >>> round(loss.value_and_grad([questions, answers]).loss, 6)
    0.0
    >>> round(
    ...     loss.value_and_grad([questions, answers[::-1]]).loss, 2
    ... )  # the wrong way round
    15.69
    """

    _DIRECTIONS = ("query_to_doc", "query_to_query", "doc_to_query", "doc_to_doc")
    _HARDNESS = ("in_batch_negatives", "hard_negatives", "all_negatives")

    def __init__(
        self,
        scale: float = 20.0,
        directions: Sequence[str] = ("query_to_doc",),
        partition_mode: Literal["joint", "per_direction"] = "joint",
        hardness_mode: Literal["in_batch_negatives", "hard_negatives", "all_negatives"] | None = None,
        hardness_strength: float = 0.0,
    ) -> None:
        self.scale = finite_number("scale", scale, above=0)
        self.directions = tuple(checked_strings("directions", directions))
        for direction in self.directions:
            checked_choice("directions", direction, self._DIRECTIONS)
        if "query_to_doc" not in self.directions:
            raise InputError(f"directions is {list(self.directions)}: 'query_to_doc' must be one of them")
        self.partition_mode = checked_choice("partition_mode", partition_mode, ("joint", "per_direction"))
        if hardness_mode is not None:
            checked_choice("hardness_mode", hardness_mode, self._HARDNESS, "None, ")
        self.hardness_mode = hardness_mode
        self.hardness_strength = finite_number("hardness_strength", hardness_strength)

    def value_and_grad(self, columns: Sequence[npt.ArrayLike], labels: npt.ArrayLike | None = None) -> LossGradient:
        """Return loss and gradients.

        Parameters
        ----------
        columns : sequence of array_like
            Vectors [B, D] for each column.
        labels : array_like, optional
            Ignored.

        Returns
        -------
        LossGradient
            The loss, and its gradient for each column and each parameter of the loss.
        """
        del labels
        vectors = _columns(columns, 2, None, type(self).__name__)
        batch = len(vectors[0])
        units = [normalize(v) for v in vectors]
        blocks, sources = self._blocks(units)
        positive = np.arange(batch)  # in the first block, example i's positive is candidate i
        parts = [np.concatenate(blocks, axis=1)] if self.partition_mode == "joint" else blocks  # [B, candidates]
        # The mean over the parts of ln Σ exp(logits), less the logit of the positive.
        at = positive, positive
        log_z = [_log_sum_exp(part) for part in parts]  # [B, 1] each
        mean = sum(log_z[1:], log_z[0])[:, 0] / np.float32(len(parts))  # [B]
        loss = float((mean - blocks[0][at]).mean(dtype=np.float64))
        dparts = [np.exp(part - z) / np.float32(batch * len(parts)) for part, z in zip(parts, log_z, strict=True)]
        widths = np.cumsum([block.shape[1] for block in blocks])[:-1]
        dblocks = np.split(dparts[0], widths, axis=1) if self.partition_mode == "joint" else dparts
        dblocks[0][at] -= np.float32(1 / batch)
        dunits = [np.zeros_like(u) for u in units]
        for dblock, (a, b) in zip(dblocks, sources, strict=True):
            # the block is scale·unit[a]·unit[b]ᵀ
            count = len(dblock)
            others = np.concatenate([units[k] for k in b])
            dunits[a] += self.scale * dblock @ others
            dothers = self.scale * dblock.T @ units[a]
            for j, k in enumerate(b):
                dunits[k] += dothers[j * count : (j + 1) * count]
        gradients = [normalize_backward(du, v) for du, v in zip(dunits, vectors, strict=True)]
        return LossGradient(loss, gradients)

    def _blocks(self, units: list[Array]) -> tuple[list[Array], list[tuple[int, list[int]]]]:
        """Return the logits of each direction, [B, candidates], and the columns that each is a product of."""
        documents = list(range(1, len(units)))
        blocks, sources = [], []
        for direction in ("query_to_doc", *(d for d in self.directions if d != "query_to_doc")):
            a, b = {
                "query_to_doc": (0, documents),
                "query_to_query": (0, [0]),
                "doc_to_query": (1, [0]),
                "doc_to_doc": (1, documents),
            }[direction]
            cosines = units[a] @ np.concatenate([units[k] for k in b]).T  # [B, candidates]
            logits = np.float32(self.scale) * cosines
            own = np.arange(len(logits))[:, None] == np.tile(np.arange(len(logits)), len(b))  # [B, candidates]
            if direction == "query_to_doc":
                logits = logits + self._hardness(cosines, len(documents))
            else:
                logits = logits + self._hardness(cosines, 0)
            if direction in ("query_to_query", "doc_to_doc"):
                logits[own] = -np.inf  # an example's own vectors are not candidates
            blocks.append(logits.astype(units[0].dtype))
            sources.append((a, b))
        return blocks, sources

    def _hardness(self, cosines: Array, documents: int) -> Array:
        """Return what is added to the logits of negatives; `documents` is 0 in directions without hard negatives."""
        batch, candidates = cosines.shape
        if self.hardness_mode is None or self.hardness_strength == 0:
            return np.zeros_like(cosines)
        own = np.zeros((batch, candidates), np.bool_)
        for k in range(max(documents, 1)):
            own[np.arange(batch), k * batch + np.arange(batch)] = True
        positive = np.zeros_like(own)
        positive[np.arange(batch), np.arange(batch)] = True
        chosen = {
            "in_batch_negatives": ~own,
            "hard_negatives": own & ~positive & (documents > 0),
            "all_negatives": ~positive,
        }[self.hardness_mode]
        return np.where(chosen, np.float32(self.hardness_strength) * cosines, np.float32(0))


class CosineSimilarityLoss(_Loss):
    """Mean squared error between the cosines of two columns and the labels (Reimers and Gurevych 2019).

    Labels are from −1 to 1: scores from 0 to 5 are divided by 5. `CoSENTLoss` takes labels of any scale.

    Examples
    --------
    >>> import numpy as np
    >>> from wordpiece_bert.finetune.losses import CosineSimilarityLoss
    >>> u = np.array([[1, 0], [1, 0]], np.float32)
    >>> v = np.array([[1, 0], [0, 1]], np.float32)  # cosines 1 and 0
    >>> CosineSimilarityLoss().value_and_grad([u, v], [1.0, 0.5]).loss
    0.125
    """

    def value_and_grad(self, columns: Sequence[npt.ArrayLike], labels: npt.ArrayLike | None = None) -> LossGradient:
        """Return loss and gradients.

        Parameters
        ----------
        columns : sequence of array_like
            Vectors [B, D] for each column.
        labels : array_like, optional
            Numbers [B], from −1 to 1.

        Returns
        -------
        LossGradient
            The loss, and its gradient for each column and each parameter of the loss.

        Raises
        ------
        InputError
            A label is out of range.
        """
        u, v = _columns(columns, 2, 2, type(self).__name__)
        y = checked_labels(self, labels, len(u))
        cosine, backward = _cosine(u, v, _COSINE_LEAST)
        difference = cosine - y
        du, dv = backward(difference * np.float32(2 / len(u)))
        return LossGradient(float(np.square(difference).mean(dtype=np.float64)), [du, dv])


class CoSENTLoss(_Loss):
    """ln(1 + Σ exp(scale·(cᵢ − cⱼ))) over all pairs of examples whose labels satisfy yᵢ < yⱼ (Su 2022).

    c is the cosine of an example's two vectors. Examples with equal labels form no pair; the loss is not a mean.

    Parameters
    ----------
    scale : float, default 20.0
        The factor of the cosines, above 0.

    Examples
    --------
    The loss is small where the cosines have the order of the labels:

    >>> import numpy as np
    >>> from wordpiece_bert.finetune.losses import CoSENTLoss
    >>> u = np.array([[1, 0], [1, 0]], np.float32)
    >>> v = np.array([[1, 0], [0, 1]], np.float32)  # cosines 1 and 0
    >>> loss = CoSENTLoss()
    >>> [
    ...     round(loss.value_and_grad([u, v], labels).loss, 3)
    ...     for labels in ([0.9, 0.1], [0.1, 0.9])
    ... ]
    [0.0, 20.0]
    """

    def __init__(self, scale: float = 20.0) -> None:
        self.scale = finite_number("scale", scale, above=0)

    def value_and_grad(self, columns: Sequence[npt.ArrayLike], labels: npt.ArrayLike | None = None) -> LossGradient:
        """Return loss and gradients.

        Parameters
        ----------
        columns : sequence of array_like
            Vectors [B, D] for each column.
        labels : array_like, optional
            Numbers [B].

        Returns
        -------
        LossGradient
            The loss, and its gradient for each column and each parameter of the loss.
        """
        u, v = _columns(columns, 2, 2, type(self).__name__)
        y = checked_labels(self, labels, len(u))
        cosine, backward = _cosine(u, v, 1e-12)
        s = self.scale * cosine.astype(np.float64)  # [B]
        difference = np.where(y[:, None] < y[None, :], s[:, None] - s[None, :], -np.inf)  # [B, B]
        top = max(0.0, float(difference.max()))
        e = np.exp(difference - top)
        total = np.exp(-top) + e.sum()
        w = e / total  # [B, B]
        dcosine = self.scale * (w.sum(axis=1) - w.sum(axis=0))
        du, dv = backward(dcosine.astype(u.dtype))
        return LossGradient(float(top + np.log(total)), [du, dv])


class SoftmaxLoss(_Loss):
    """Cross entropy of a classifier over ``[u; v; |u − v|]``, as in Sentence-BERT (Reimers and Gurevych 2019).

    Parameters
    ----------
    embedding_dimension : int
        D.
    num_labels : int
        C, classes, 2 or more.
    concatenation_sent_rep, concatenation_sent_difference, concatenation_sent_multiplication : bool
        Whether u and v, ``|u − v|``, and u·v (elementwise) are features.
    seed : int, default 0
        The seed of the classifier's first weights: uniform in ±1/√features, as in torch's Linear.

    Raises
    ------
    InputError
        A size is too small, or there are no features.

    Examples
    --------
    >>> import numpy as np
    >>> from wordpiece_bert.finetune.losses import SoftmaxLoss
    >>> loss = SoftmaxLoss(embedding_dimension=2, num_labels=3)
    >>> u, v = np.array([[1, 0]], np.float32), np.array([[0, 1]], np.float32)
    >>> found = loss.value_and_grad([u, v], [2])
    >>> {name: array.shape for name, array in found.gradients.items()}
    {'classifier.weight': (3, 6), 'classifier.bias': (3,)}
    >>> again = SoftmaxLoss(embedding_dimension=2, num_labels=3, seed=1)
    >>> again.load_state_dict(loss.state_dict())
    >>> again.value_and_grad([u, v], [2]).loss == found.loss
    True
    """

    def __init__(
        self,
        embedding_dimension: int,
        num_labels: int,
        concatenation_sent_rep: bool = True,
        concatenation_sent_difference: bool = True,
        concatenation_sent_multiplication: bool = False,
        *,
        seed: int = 0,
    ) -> None:
        whole_number("embedding_dimension", embedding_dimension, 1)
        whole_number("num_labels", num_labels, 2)
        self.concatenation_sent_rep = concatenation_sent_rep
        self.concatenation_sent_difference = concatenation_sent_difference
        self.concatenation_sent_multiplication = concatenation_sent_multiplication
        parts = 2 * bool(concatenation_sent_rep) + bool(concatenation_sent_difference)
        parts += bool(concatenation_sent_multiplication)
        if parts == 0:
            raise InputError("SoftmaxLoss has no features: at least one concatenation must be True")
        self._dimension, self._labels = int(embedding_dimension), int(num_labels)
        width = parts * self._dimension
        bound = 1 / math.sqrt(width)
        random = np.random.default_rng(whole_number("seed", seed, 0))
        self._weight = random.uniform(-bound, bound, (self._labels, width)).astype(np.float32)
        self._bias = random.uniform(-bound, bound, self._labels).astype(np.float32)

    def value_and_grad(self, columns: Sequence[npt.ArrayLike], labels: npt.ArrayLike | None = None) -> LossGradient:
        """Return loss and gradients.

        Parameters
        ----------
        columns : sequence of array_like
            Vectors [B, D] for each column.
        labels : array_like, optional
            Classes, integers [B].

        Returns
        -------
        LossGradient
            The loss, and its gradient for each column and each parameter of the loss.

        Raises
        ------
        InputError
            The vectors have another width than the loss was made for.
        """
        u, v = _columns(columns, 2, 2, type(self).__name__)
        if u.shape[1] != self._dimension:
            raise InputError(f"vectors have {u.shape[1]} dimensions, but embedding_dimension is {self._dimension}")
        y = _classes(labels, len(u), self._labels)
        features = self._features(u, v)  # [B, width]
        logits = features @ self._weight.T + self._bias  # [B, C]
        loss, dlogits = cross_entropy(logits, y)
        dfeatures, dw, db = linear_backward(dlogits, features, self._weight)
        parts = np.split(dfeatures, dfeatures.shape[1] // self._dimension, axis=1)
        du, dv = np.zeros_like(u), np.zeros_like(v)
        if self.concatenation_sent_rep:
            du += parts.pop(0)
            dv += parts.pop(0)
        if self.concatenation_sent_difference:
            signed = parts.pop(0) * np.sign(u - v)  # the derivative of |x| counts as 0 at 0
            du += signed
            dv -= signed
        if self.concatenation_sent_multiplication:
            part = parts.pop(0)
            du += part * v
            dv += part * u
        return LossGradient(loss, [du, dv], {"classifier.weight": dw, "classifier.bias": db})

    def _features(self, u: Array, v: Array) -> Array:
        parts = [u, v] if self.concatenation_sent_rep else []
        if self.concatenation_sent_difference:
            parts.append(np.abs(u - v))
        if self.concatenation_sent_multiplication:
            parts.append(u * v)
        return np.concatenate(parts, axis=1)

    def state_dict(self) -> dict[str, Array]:
        """Return the classifier's weight and bias; they are not copied, so an optimizer may change them.

        Returns
        -------
        dict of str to ndarray
            The arrays by name.
        """
        return {"classifier.weight": self._weight, "classifier.bias": self._bias}

    def load_state_dict(self, state: Mapping[str, npt.ArrayLike]) -> None:
        """Set the classifier's weight and bias.

        Parameters
        ----------
        state : mapping of str to array_like
            Both arrays, as `state_dict` returns them.

        Raises
        ------
        InputError
            A name or a shape is wrong.
        """
        own = self.state_dict()
        if state.keys() != own.keys():
            raise InputError(f"the state has {', '.join(state) or 'nothing'}, not {', '.join(own)}")
        for name, value in state.items():
            array = np.asarray(value, np.float32)
            if array.shape != own[name].shape:
                raise InputError(f"{name} has shape {list(array.shape)}, not {list(own[name].shape)}")
            own[name][...] = array


class TripletLoss(_Loss):
    """Mean of relu(D(a, p) − D(a, n) + margin) for anchors a, positives p and negatives n (Schroff et al. 2015).

    Parameters
    ----------
    distance_metric : {"euclidean", "cosine", "manhattan"}, default "euclidean"
        ``"euclidean"``, ``"cosine"`` (1 − cosine) or ``"manhattan"``.
    triplet_margin : float, default 5.0
        The margin, 0 or above.

    Examples
    --------
    The negative is farther away than the positive, but by less than the margin:

    >>> import numpy as np
    >>> from wordpiece_bert.finetune.losses import TripletLoss
    >>> anchor, near, far = (np.array([[x, 0]], np.float32) for x in (0, 1, 3))
    >>> TripletLoss().value_and_grad([anchor, near, far]).loss
    3.0
    >>> TripletLoss(triplet_margin=2).value_and_grad([anchor, near, far]).loss
    0.0
    """

    def __init__(
        self,
        distance_metric: Literal["euclidean", "cosine", "manhattan"] = "euclidean",
        triplet_margin: float = 5.0,
    ) -> None:
        self._distance = _distance(distance_metric, 0.0, 1e-12)
        self.distance_metric = distance_metric
        self.triplet_margin = finite_number("triplet_margin", triplet_margin, least=0)

    def value_and_grad(self, columns: Sequence[npt.ArrayLike], labels: npt.ArrayLike | None = None) -> LossGradient:
        """Return loss and gradients.

        Parameters
        ----------
        columns : sequence of array_like
            Vectors [B, D] for each column.
        labels : array_like, optional
            Ignored.

        Returns
        -------
        LossGradient
            The loss, and its gradient for each column and each parameter of the loss.
        """
        del labels
        a, p, n = _columns(columns, 3, 3, type(self).__name__)
        near, near_back = self._distance(a, p)
        far, far_back = self._distance(a, n)
        terms = near - far + np.float32(self.triplet_margin)  # [B]
        weight = (terms > 0).astype(a.dtype) / a.dtype.type(len(a))
        da, dp = near_back(weight)
        da2, dn = far_back(-weight)
        return LossGradient(float(np.maximum(terms, 0).mean(dtype=np.float64)), [da + da2, dp, dn])


class ContrastiveLoss(_Loss):
    """½(y·D² + (1 − y)·relu(margin − D)²) for pairs that are similar (y = 1) or not (Hadsell et al. 2006).

    Parameters
    ----------
    distance_metric : {"cosine", "euclidean", "manhattan"}, default "cosine"
        ``"cosine"`` (1 − cosine), ``"euclidean"`` or ``"manhattan"``, the last two with 1e-6 added to each component
        of the difference, as in torch's pairwise_distance.
    margin : float, default 0.5
        The distance from which dissimilar pairs have no loss.
    size_average : bool, default True
        Whether the loss is the mean of the pairs, not the sum.

    Examples
    --------
    >>> import numpy as np
    >>> from wordpiece_bert.finetune.losses import ContrastiveLoss
    >>> u, v = np.array([[1, 0]], np.float32), np.array([[0, 1]], np.float32)
    >>> loss = ContrastiveLoss()
    >>> [
    ...     loss.value_and_grad([u, v], [label]).loss for label in (1, 0)
    ... ]  # similar: too far away; else: far enough
    [0.5, 0.0]
    """

    def __init__(
        self,
        distance_metric: Literal["cosine", "euclidean", "manhattan"] = "cosine",
        margin: float = 0.5,
        size_average: bool = True,
    ) -> None:
        self._distance = _distance(distance_metric, _PAIRWISE, _COSINE_LEAST)
        self.distance_metric = distance_metric
        self.margin = finite_number("margin", margin, least=0)
        self.size_average = bool(size_average)

    def value_and_grad(self, columns: Sequence[npt.ArrayLike], labels: npt.ArrayLike | None = None) -> LossGradient:
        """Return loss and gradients.

        Parameters
        ----------
        columns : sequence of array_like
            Vectors [B, D] for each column.
        labels : array_like, optional
            Numbers [B], from 0 to 1.

        Returns
        -------
        LossGradient
            The loss, and its gradient for each column and each parameter of the loss.

        Raises
        ------
        InputError
            A label is out of range.
        """
        u, v = _columns(columns, 2, 2, type(self).__name__)
        y = checked_labels(self, labels, len(u))
        d, backward = self._distance(u, v)
        inside = np.maximum(np.float32(self.margin) - d, 0)
        terms = 0.5 * (y * np.square(d) + (1 - y) * np.square(inside))
        share = np.float32(1 / len(u) if self.size_average else 1.0)
        du, dv = backward((y * d - (1 - y) * inside) * share)
        return LossGradient(float(terms.sum(dtype=np.float64)) * float(share), [du, dv])


class MatryoshkaLoss(_Loss):
    """Σ weight·loss(normalize(first d dimensions)) over several d (Kusupati et al. 2022).

    Parameters
    ----------
    loss : loss of sentence vectors
        The loss of the shortened vectors.
    matryoshka_dims : sequence of int
        The numbers of dimensions.
    matryoshka_weights : sequence of float, optional
        The weight of each; 1 by default.

    Raises
    ------
    InputError
        A number is not positive, or the lists have different lengths.

    Examples
    --------
    The first column alone tells the pairs apart less well than both:

    >>> import numpy as np
    >>> from wordpiece_bert.finetune.losses import CosineSimilarityLoss, MatryoshkaLoss
    >>> u, v = np.array([[1, 1]], np.float32), np.array([[1, -1]], np.float32)
    >>> CosineSimilarityLoss().value_and_grad([u, v], [0.0]).loss
    0.0
    >>> loss = MatryoshkaLoss(CosineSimilarityLoss(), matryoshka_dims=[2, 1])
    >>> round(loss.value_and_grad([u, v], [0.0]).loss, 3)
    1.0
    >>> loss.load_state_dict(loss.state_dict())  # of the inner loss: none here
    """

    def __init__(
        self, loss: Loss, matryoshka_dims: Sequence[int], matryoshka_weights: Sequence[float] | None = None
    ) -> None:
        check_loss(loss)
        check_several("matryoshka_dims", matryoshka_dims)
        check_several("matryoshka_weights", matryoshka_weights, or_none=True)
        weights = [1.0] * len(matryoshka_dims) if matryoshka_weights is None else [*matryoshka_weights]
        if len(weights) != len(matryoshka_dims) or not weights:
            raise InputError(f"{len(weights)} matryoshka_weights for {len(matryoshka_dims)} matryoshka_dims")
        for d in matryoshka_dims:
            whole_number("matryoshka_dims", d, 1)
        self.loss = loss
        order = sorted(range(len(weights)), key=lambda i: -int(matryoshka_dims[i]))
        self.matryoshka_dims = [int(matryoshka_dims[i]) for i in order]  # widest first
        self.matryoshka_weights = [finite_number("matryoshka_weights", weights[i]) for i in order]

    def value_and_grad(self, columns: Sequence[npt.ArrayLike], labels: npt.ArrayLike | None = None) -> LossGradient:
        """Return loss and gradients.

        Parameters
        ----------
        columns : sequence of array_like
            Vectors [B, D] for each column.
        labels : array_like, optional
            Labels of the inner loss.

        Returns
        -------
        LossGradient
            The loss, and its gradient for each column and each parameter of the loss.

        Raises
        ------
        InputError
            The vectors have fewer dimensions than the largest of `matryoshka_dims`.
        """
        vectors = _columns(columns, 1, None, type(self).__name__)
        width = vectors[0].shape[1]
        if self.matryoshka_dims[0] > width:
            raise InputError(f"matryoshka_dims has {self.matryoshka_dims[0]}, but vectors have {width} dimensions")
        total, dvectors = 0.0, [np.zeros_like(v) for v in vectors]
        gradients: dict[str, Array] = {}
        for d, weight in zip(self.matryoshka_dims, self.matryoshka_weights, strict=True):
            cut = [v[:, :d] for v in vectors]
            part = self.loss.value_and_grad([normalize(v) for v in cut], labels)
            total += weight * part.loss
            for dv, v, dunit in zip(dvectors, cut, part.embeddings, strict=True):
                dv[:, :d] += np.float32(weight) * normalize_backward(dunit, v)
            for name, gradient in part.gradients.items():
                gradients[name] = gradients.get(name, 0) + np.float32(weight) * gradient
        return LossGradient(total, dvectors, gradients)

    def state_dict(self) -> dict[str, Array]:
        """Return the parameters of the inner loss.

        Returns
        -------
        dict of str to ndarray
            The arrays by name.
        """
        return self.loss.state_dict()

    def load_state_dict(self, state: Mapping[str, npt.ArrayLike]) -> None:
        """Set the parameters of the inner loss.

        Parameters
        ----------
        state : mapping of str to array_like
            Arrays by name, as `state_dict` returns them.
        """
        self.loss.load_state_dict(state)


def _log_sum_exp(x: Array) -> Array:
    """Return ln Σ exp(x) over the last axis, [..., 1]."""
    top = x.max(axis=-1, keepdims=True)
    y: Array = top + np.log(np.exp(x - top).sum(axis=-1, keepdims=True))
    return y


# --- distances of pairs, with their gradients


def _cosine(u: Array, v: Array, least: float) -> tuple[Array, Callable[[Array], tuple[Array, Array]]]:
    """Return the cosines of u and v [B, D], with norms of at least `least`, and their backward pass."""

    def unit(x: Array) -> Array:
        y: Array = x / np.maximum(np.sqrt(np.square(x).sum(axis=1, keepdims=True)), least)
        return y

    a, b = unit(u), unit(v)

    def backward(dc: Array) -> tuple[Array, Array]:
        return normalize_backward(dc[:, None] * b, u, least), normalize_backward(dc[:, None] * a, v, least)

    return (a * b).sum(axis=1), backward


def _distance(
    metric: str, added: float, least: float
) -> Callable[[Array, Array], tuple[Array, Callable[[Array], tuple[Array, Array]]]]:
    """Return a function from u and v [B, D] to their distances [B] and the backward pass of these."""
    checked_choice("distance_metric", metric, ("euclidean", "cosine", "manhattan"))

    def cosine(u: Array, v: Array) -> tuple[Array, Callable[[Array], tuple[Array, Array]]]:
        c, backward = _cosine(u, v, least)
        return 1 - c, lambda dd: backward(-dd)

    def norm(u: Array, v: Array) -> tuple[Array, Callable[[Array], tuple[Array, Array]]]:
        difference = u - v + np.float32(added)
        if metric == "manhattan":
            d, slope = np.abs(difference).sum(axis=1), np.sign(difference)
        else:
            d = np.sqrt(np.square(difference).sum(axis=1))
            slope = np.divide(difference, d[:, None], out=np.zeros_like(difference), where=d[:, None] > 0)

        def backward(dd: Array) -> tuple[Array, Array]:
            du = dd[:, None] * slope
            return du, -du

        return d, backward

    return cosine if metric == "cosine" else norm


# --- checks of arguments


def check_loss(loss: object) -> None:
    """Check that an argument is a loss, and not its name or its class."""
    if isinstance(loss, type) or not hasattr(loss, "value_and_grad"):
        raise InputError(f"loss must be a loss of sentence vectors, such as CoSENTLoss(), not {loss!r:.80}")


def _columns(columns: Sequence[npt.ArrayLike], least: int, most: int | None, loss: str) -> list[Array]:
    vectors = [as_numbers(f"columns[{index}]", column) for index, column in enumerate(columns)]
    if len(vectors) < least or (most is not None and len(vectors) > most):
        wanted = f"{least}" if most == least else f"at least {least}"
        raise InputError(f"{loss} takes {wanted} columns, not {len(vectors)}")
    shape = vectors[0].shape
    for index, v in enumerate(vectors):
        if v.ndim != 2 or v.shape != shape or v.dtype.kind != "f":
            raise InputError(
                f"column {index} has {v.dtype} of shape {list(v.shape)}; all must be floats [B, D] of one shape"
            )
    if shape[0] == 0:
        raise InputError("the batch has no examples: the loss is not defined")
    return [v if v.dtype in (np.float32, np.float64) else v.astype(np.float32) for v in vectors]


#: The limits of labels; other losses have none.
_LABELS = {CosineSimilarityLoss: (-1.0, 1.0), ContrastiveLoss: (0.0, 1.0)}


def checked_labels(loss: Loss, labels: npt.ArrayLike | None, batch: int) -> Array:
    """Return the labels of examples for a loss, float32 [B], checked: as many as examples, finite, and in its range."""
    if labels is None:
        raise InputError("this loss needs labels, numbers [B]")
    y = np.asarray(labels)
    if y.shape != (batch,) or y.dtype.kind not in "fiub":
        raise InputError(f"labels must be numbers [{batch}], not {y.dtype} of shape {list(y.shape)}")
    if not np.isfinite(y).all():
        raise InputError(f"labels[{int(np.argmin(np.isfinite(y)))}] is not finite")
    limits = (limits for kind, limits in _LABELS.items() if isinstance(loss, kind))
    least, most = next(limits, (-math.inf, math.inf))
    inside = (y >= least) & (y <= most)
    if not inside.all():
        row = int(np.argmin(inside))
        raise InputError(
            f"labels[{row}] is {y[row]}, but this loss takes labels from {least:g} to {most:g}: scale them, such as "
            "scores from 0 to 5 by 1/5, or train with CoSENTLoss, for which only the order of labels counts"
        )
    return y.astype(np.float32)


def _classes(labels: npt.ArrayLike | None, batch: int, count: int) -> npt.NDArray[np.int64]:
    if labels is None:
        raise InputError("this loss needs labels, integers [B]")
    y = np.asarray(labels)
    if y.shape != (batch,) or y.dtype.kind not in "iu":
        raise InputError(f"labels must be integers [{batch}], not {y.dtype} of shape {list(y.shape)}")
    if ((y < 0) | (y >= count)).any():
        bad = int(np.argmax((y < 0) | (y >= count)))
        raise InputError(f"labels[{bad}] is {y[bad]}, outside 0 to {count - 1}")
    return y.astype(np.int64)
