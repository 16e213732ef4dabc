"""What scikit-learn asks of an estimator, without importing it: parameters by name, and whether it classifies."""

from __future__ import annotations

import inspect
import math
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from wordpiece_bert._internal.arrays import as_numbers
from wordpiece_bert.errors import InputError
from wordpiece_bert.finetune.labels import class_labels

if TYPE_CHECKING:
    import numpy.typing as npt


class Estimator:
    """Gives a class ``get_params`` and ``set_params``, with which `sklearn.base.clone` and searches work.

    The constructor keeps each argument, as it is, in the attribute of its name, or in the attribute of its name with an
    underscore before it.

    Examples
    --------
    >>> from wordpiece_bert.finetune import LogisticRegression
    >>> head = LogisticRegression(C=10.0)
    >>> head.get_params()
    {'C': 10.0, 'class_weight': None}
    >>> head.set_params(C=0.1).C
    0.1
    >>> head.fit([[0.0], [1.0]], ["no", "yes"]).score([[-1.0], [2.0]], ["no", "yes"])
    1.0
    """

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the arguments of the constructor by name.

        Parameters
        ----------
        deep : bool, default True
            Whether the parameters of an argument that has ``get_params`` are returned too, as ``head__C``.

        Returns
        -------
        dict of str to object
            The arguments.
        """
        found: dict[str, Any] = {}
        for name in self._names():
            value = self._argument(name)
            found[name] = value
            if deep and isinstance(value, Estimator):
                found |= {f"{name}__{inner}": one for inner, one in value.get_params().items()}
        return found

    def set_params(self, **params: Any) -> Self:
        """Set arguments of the constructor; what was fitted is forgotten.

        Parameters
        ----------
        **params : object
            The arguments by name; ``head__C`` is the argument ``C`` of the argument ``head``.

        Returns
        -------
        self
            This object.

        Raises
        ------
        InputError
            There is no such parameter, or a value is wrong; nothing has changed.
        """
        own = self.get_params(deep=False)
        inner: dict[str, dict[str, Any]] = {}
        for key, value in params.items():
            name, _, rest = key.partition("__")
            if name not in own:
                raise InputError(f"{type(self).__name__} has no parameter {name!r}, only {', '.join(own)}")
            if rest:
                inner.setdefault(name, {})[rest] = value
            else:
                own[name] = value
        for name in inner:
            if not isinstance(own[name], Estimator):
                raise InputError(f"the parameter {name} of {type(self).__name__} has no parameters of its own")
        fresh = vars(type(self)(**own) if params else self)
        for name, values in inner.items():
            own[name].set_params(**values)
        self.__dict__ = fresh
        return self

    def score(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None) -> float:
        """Return how well predictions agree with what is right: the accuracy of labels, R² of numbers.

        Parameters
        ----------
        X : array_like
            Features, numbers [n, D].
        y : array_like
            The labels or numbers, [n].
        sample_weight : array_like, optional
            How much each row counts, [n].

        Returns
        -------
        float
            The share of labels that are predicted correctly, from 0 to 1; or R², the coefficient of determination, 1
            at best and 0 for the mean of `y`.

        Raises
        ------
        InputError
            It is not fitted, or there are not as many labels or weights as rows.
        """
        predicted = self.predict(X)  # type: ignore[attr-defined]  # each class has its own
        return agreement(self._kind(), predicted, y, sample_weight)

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, InputTags, RegressorTags, Tags, TargetTags  # it is the caller

        kind = self._kind()
        return Tags(
            estimator_type=kind,
            target_tags=TargetTags(required=True),
            classifier_tags=ClassifierTags() if kind == "classifier" else None,
            regressor_tags=RegressorTags() if kind == "regressor" else None,
            input_tags=InputTags(),
        )

    def _kind(self) -> str:
        """Return ``"classifier"`` or ``"regressor"``."""
        raise NotImplementedError

    @classmethod
    def _names(cls) -> list[str]:
        return [name for name in inspect.signature(cls.__init__).parameters if name != "self"]

    def _argument(self, name: str) -> Any:
        return vars(self).get(f"_{name}", vars(self).get(name))


def agreement(kind: str, predicted: npt.NDArray[Any], right: Any, weights: npt.ArrayLike | None = None) -> float:
    """Return the accuracy of a classifier or R² of a regressor, as `Estimator.score` does.

    Parameters
    ----------
    kind : {"classifier", "regressor"}
        What has predicted.
    predicted : ndarray
        The predictions, [n], or [n, targets].
    right : array_like
        What is right, as many.
    weights : array_like, optional
        How much each row counts, [n].

    Raises
    ------
    InputError
        The numbers of rows differ, or labels are of another type than the predictions.
    """
    if kind == "classifier":
        expected = class_labels(right)
        names = [array.dtype.kind in "UO" for array in (predicted, expected)]
        if names[0] != names[1] and len(expected):
            raise InputError(
                f"the label {expected.tolist()[0]!r:.80} is of another type than those of fit, such as "
                f"{predicted.tolist()[0]!r:.80}"
            )
    else:
        expected = _finite("y", right)
    if expected.shape != predicted.shape:
        raise InputError(f"y must have shape {list(predicted.shape)}, as the predictions, not {list(expected.shape)}")
    weight = np.ones(len(predicted)) if weights is None else _finite("sample_weight", weights)
    if weight.shape != predicted.shape[:1]:
        raise InputError(f"sample_weight must have shape {[len(predicted)]}, not {list(weight.shape)}")
    if not weight.sum():
        raise InputError("sample_weight sums to 0, so that no row counts")
    if kind == "classifier":
        return float(np.average(predicted == expected, weights=weight))
    right_numbers, found = (array.reshape(len(array), -1) for array in (expected, predicted))
    if len(found) < 2:
        return math.nan  # as scikit-learn: the numbers of one row do not vary
    missed = weight @ (right_numbers - found) ** 2
    spread = weight @ (right_numbers - np.average(right_numbers, axis=0, weights=weight)) ** 2
    # Numbers that do not vary are predicted perfectly or not at all, as in scikit-learn.
    scores = np.where(spread > 0, 1 - missed / np.where(spread > 0, spread, 1), missed == 0)
    return float(scores.mean())


def _finite(name: str, values: Any) -> npt.NDArray[np.float64]:
    found: npt.NDArray[np.float64] = as_numbers(name, values).astype(np.float64)
    if not np.isfinite(found).all():
        raise InputError(f"{name} has a number that is NaN or infinite")
    return found
