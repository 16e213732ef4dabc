"""Heads on frozen features: multinomial logistic and ridge regression over vectors that were computed once.

The objectives and names are as in scikit-learn 1.9; everything is computed in double precision.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from wordpiece_bert._internal.arrays import as_numbers
from wordpiece_bert._internal.checks import finite_number
from wordpiece_bert.errors import InputError
from wordpiece_bert.finetune.estimator import Estimator
from wordpiece_bert.finetune.labels import class_labels

if TYPE_CHECKING:
    import numpy.typing as npt

#: The largest entry of the gradient, divided by C times the total weight of the rows, at which the solver stops.
_TOLERANCE = 1e-9
_MOST_STEPS = 200


class LogisticRegression(Estimator):
    """Multinomial logistic regression, fitted by a Newton method with conjugate gradients.

    It minimizes C·Σᵢ wᵢ·CEᵢ + ½‖W‖², where CEᵢ is the cross entropy of row i and wᵢ its weight. The intercept is not
    penalized. Two classes have one row of coefficients and the logistic function; more classes have one row each and
    the softmax.

    Parameters
    ----------
    C : float, default 1.0
        The inverse strength of the penalty, above 0.
    class_weight : {"balanced"}, optional
        ``"balanced"`` weights a row by n/(K·n_c), where its class has n_c of n rows and there are K classes; None
        weights all rows by 1.

    Attributes
    ----------
    classes_ : array
        The sorted labels, [K].
    coef_ : array
        float64 [K, D], or [1, D] for two classes.
    intercept_ : array
        float64 [K], or [1].
    n_iter_ : int
        Newton steps that were made.

    Raises
    ------
    InputError
        An option is out of range.

    Examples
    --------
    >>> from wordpiece_bert.finetune import LogisticRegression
    >>> x, y = [[0.0], [1.0], [3.0], [4.0]], ["low", "low", "high", "high"]
    >>> head = LogisticRegression(C=10).fit(x, y)
    >>> head.predict([[0.5], [3.5]])
    array(['low', 'high'], dtype='<U4')
    >>> head.predict_proba([[2.0]]).round(2)
    array([[0.5, 0.5]])
    >>> head.decision_function([[2.0], [4.0]]).round(1), head.score(x, y)
    (array([ 0. , -4.6]), 1.0)
    """

    C: float
    class_weight: Literal["balanced"] | None
    classes_: npt.NDArray[Any]
    coef_: npt.NDArray[np.float64]
    intercept_: npt.NDArray[np.float64]
    n_iter_: int

    def __init__(self, C: float = 1.0, class_weight: Literal["balanced"] | None = None) -> None:
        if class_weight not in (None, "balanced"):
            raise InputError(f"class_weight is {class_weight!r}: it must be None or 'balanced'")
        finite_number("C", C, above=0)
        self.C = C
        self.class_weight = class_weight

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Self:
        """Fit the coefficients.

        Parameters
        ----------
        X : array_like
            Features, numbers [n, D].
        y : array_like
            Labels [n] of at least two classes: strings, whole numbers or booleans.

        Returns
        -------
        LogisticRegression
            This object.

        Raises
        ------
        InputError
            Shapes do not fit, a feature is NaN or infinite, a label is missing or a fraction, or there is only one
            class.
        """
        x = _features(X)
        labels = class_labels(y)
        if labels.shape != (len(x),):
            raise InputError(f"y must have shape [{len(x)}], one label for each row of X, not {list(labels.shape)}")
        self.classes_, index = np.unique(labels, return_inverse=True)
        if len(self.classes_) < 2:
            raise InputError(f"all {len(x)} labels are {self.classes_[0].item()!r}: at least two classes are needed")
        count = len(self.classes_)
        weights = np.ones(len(x))
        if self.class_weight == "balanced":
            weights = (len(x) / (count * np.bincount(index)))[index]
        # The intercept is the coefficient of a constant feature.
        design = np.concatenate([x, np.ones((len(x), 1))], axis=1)  # [n, D + 1]
        targets = np.eye(count)[index]  # [n, K]
        if count == 2:
            targets = targets[:, 1:]
        theta, self.n_iter_ = _newton(design, targets, self.C * weights)  # [K, D + 1]
        self.coef_, self.intercept_ = theta[:, :-1].copy(), theta[:, -1].copy()
        return self

    def decision_function(self, X: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return the scores before the softmax, [n, K], or [n] for two classes.

        Parameters
        ----------
        X : array_like
            Features, numbers [n, D].

        Returns
        -------
        ndarray of float64
            The scores, [n, K], or [n] for two classes.
        """
        scores: npt.NDArray[np.float64] = _features(X, self._width()) @ self.coef_.T + self.intercept_
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict_proba(self, X: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return the probability of each class, float64 [n, K].

        Parameters
        ----------
        X : array_like
            Features, numbers [n, D].

        Returns
        -------
        ndarray of float64
            The probabilities, [n, K].
        """
        scores = self.decision_function(X)
        if scores.ndim == 1:
            positive = probabilities(scores[:, None])
            return np.concatenate([1 - positive, positive], axis=1)
        return probabilities(scores)

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """Return the most probable label of each row, [n].

        Parameters
        ----------
        X : array_like
            Features, numbers [n, D].

        Returns
        -------
        ndarray
            The labels, [n].
        """
        scores = self.decision_function(X)
        best = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        found: npt.NDArray[Any] = self.classes_[best]
        return found

    def _kind(self) -> str:
        return "classifier"

    def _width(self) -> int:
        if not hasattr(self, "coef_"):
            raise InputError("this LogisticRegression is not fitted yet: call fit first")
        return int(self.coef_.shape[1])


class Ridge(Estimator):
    """Linear regression with a penalty on the coefficients: minimizes ‖y − Xw − b‖² + alpha·‖w‖².

    Parameters
    ----------
    alpha : float, default 1.0
        The strength of the penalty, 0 or above; 0 is least squares.

    Attributes
    ----------
    coef_ : array
        float64 [D], or [targets, D] if `fit` got several targets.
    intercept_ : float or array
        float64, or [targets].

    Raises
    ------
    InputError
        `alpha` is negative or not finite.

    Examples
    --------
    >>> from wordpiece_bert.finetune import Ridge
    >>> head = Ridge(alpha=0).fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0])
    >>> head.predict([[10.0]]).round(6), head.coef_.round(6)
    (array([21.]), array([2.]))
    """

    alpha: float
    coef_: npt.NDArray[np.float64]
    intercept_: Any

    def __init__(self, alpha: float = 1.0) -> None:
        finite_number("alpha", alpha, least=0)
        self.alpha = alpha

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Self:
        """Fit the coefficients.

        Parameters
        ----------
        X : array_like
            Features, numbers [n, D].
        y : array_like
            Targets, numbers [n] or [n, targets].

        Returns
        -------
        Ridge
            This object.

        Raises
        ------
        InputError
            Shapes do not fit, or a number is NaN or infinite.
        """
        x = _features(X)
        try:
            targets = np.asarray(y, np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(f"y must be an array of numbers [n] or [n, targets]: {error}") from None
        if targets.ndim not in (1, 2) or len(targets) != len(x):
            raise InputError(f"y must have shape [{len(x)}] or [{len(x)}, targets], not {list(targets.shape)}")
        if not np.isfinite(targets).all():
            raise InputError(f"y[{int(np.argwhere(~np.isfinite(targets))[0][0])}] is NaN or infinite")
        x_mean, y_mean = x.mean(axis=0), targets.mean(axis=0)
        x, targets = x - x_mean, targets - y_mean
        solution = self._solution(x, targets)
        self.coef_ = np.ascontiguousarray(solution.T)
        intercept = y_mean - x_mean @ solution
        self.intercept_ = float(intercept) if np.ndim(intercept) == 0 else intercept
        return self

    def _solution(self, x: npt.NDArray[np.float64], targets: npt.NDArray[np.float64]) -> npt.NDArray[Any]:
        """[n, D] and [n] or [n, targets] -> [D] or [D, targets]."""
        width = x.shape[1]
        if self.alpha > 0:
            try:
                if len(x) >= width:
                    return np.linalg.solve(x.T @ x + self.alpha * np.eye(width), x.T @ targets)
                # Fewer rows than features: the same solution from a system of n equations.
                return np.asarray(x.T @ np.linalg.solve(x @ x.T + self.alpha * np.eye(len(x)), targets))
            except np.linalg.LinAlgError:  # alpha vanishes beside the squares of the features
                pass
        rows = np.concatenate([x, np.sqrt(self.alpha) * np.eye(width)])
        right = np.concatenate([targets, np.zeros((width, *targets.shape[1:]))])
        return np.asarray(np.linalg.lstsq(rows, right, rcond=None)[0])

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return the predictions, float64 [n] or [n, targets].

        Parameters
        ----------
        X : array_like
            Features, numbers [n, D].

        Returns
        -------
        ndarray of float64
            The predictions, [n] or [n, targets].

        Raises
        ------
        InputError
            It is not fitted yet, or the shape does not fit.
        """
        if not hasattr(self, "coef_"):
            raise InputError("this Ridge is not fitted yet: call fit first")
        y: npt.NDArray[np.float64] = _features(X, self.coef_.shape[-1]) @ self.coef_.T + self.intercept_
        return y

    def _kind(self) -> str:
        return "regressor"


def _newton(
    x: npt.NDArray[np.float64], targets: npt.NDArray[np.float64], weights: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.float64], int]:
    """Minimize Σ wᵢ·CEᵢ + ½‖θ without its last column‖², whose last column is the intercept.

    Each step solves the Newton equations by conjugate gradients to a tolerance that shrinks with the gradient, and is
    halved until the objective falls enough (Nocedal and Wright 2006, algorithms 7.1 and 3.1).

    x [n, D + 1], targets [n, K], weights [n] -> θ [K, D + 1], steps.
    """
    theta = np.zeros((targets.shape[1], x.shape[1]))
    penalty = np.ones(x.shape[1])
    penalty[-1] = 0
    scale = float(weights.sum())

    def objective(theta: npt.NDArray[np.float64]) -> tuple[float, npt.NDArray[np.float64]]:
        scores = x @ theta.T  # [n, K]
        return float(weights @ _losses(scores, targets)) + 0.5 * float((penalty * theta**2).sum()), scores

    value, scores = objective(theta)
    for step in range(_MOST_STEPS):
        p = probabilities(scores)  # [n, K]
        gradient = ((p - targets) * weights[:, None]).T @ x + penalty * theta
        largest = float(np.abs(gradient).max())
        if largest <= _TOLERANCE * scale:
            return theta, step

        def hessian(d: npt.NDArray[np.float64], p: npt.NDArray[np.float64] = p) -> npt.NDArray[np.float64]:
            a = x @ d.T  # [n, K]
            a = p * (a * (1 - p) if p.shape[1] == 1 else a - (p * a).sum(axis=1, keepdims=True))
            return (a * weights[:, None]).T @ x + penalty * d

        direction = _conjugate_gradients(hessian, -gradient, min(0.1, (largest / scale) ** 0.5) * 1e-1)
        slope = float((gradient * direction).sum())
        length = 1.0
        while True:
            candidate = theta + length * direction
            new_value, new_scores = objective(candidate)
            if new_value <= value + 1e-4 * length * slope or length < 1e-10:
                break
            length /= 2
        if new_value >= value and length < 1e-10:  # rounding: no further progress is possible
            return theta, step
        theta, value, scores = candidate, new_value, new_scores
    return theta, _MOST_STEPS


def _conjugate_gradients(product: Any, b: npt.NDArray[np.float64], tolerance: float) -> npt.NDArray[np.float64]:
    """Solve product(d) = b, to a residual of `tolerance`·‖b‖."""
    d = np.zeros_like(b)
    r = b.copy()
    direction = r.copy()
    square = float((r * r).sum())
    stop = tolerance**2 * square
    for _ in range(10 * b.size):
        if square <= stop or square == 0:
            break
        image = product(direction)
        curvature = float((direction * image).sum())
        if curvature <= 0:  # the intercepts' common shift, which changes nothing
            break
        length = square / curvature
        d += length * direction
        r -= length * image
        new_square = float((r * r).sum())
        direction = r + (new_square / square) * direction
        square = new_square
    return d


def _losses(scores: npt.NDArray[np.float64], targets: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the cross entropy of each row, [n]; scores [n, 1] are for a logistic function."""
    if scores.shape[1] == 1:
        z = scores[:, 0]
        return np.logaddexp(0, z) - z * targets[:, 0]
    top = scores.max(axis=1)
    softmax: npt.NDArray[np.float64] = (
        top + np.log(np.exp(scores - top[:, None]).sum(axis=1)) - (scores * targets).sum(axis=1)
    )
    return softmax


def probabilities(scores: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return σ of one column of scores, or the softmax of several, [n, K]."""
    if scores.shape[1] == 1:
        return np.exp(-np.logaddexp(0, -scores))
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    p: npt.NDArray[np.float64] = e / e.sum(axis=1, keepdims=True)
    return p


def _features(value: npt.ArrayLike, width: int | None = None) -> npt.NDArray[np.float64]:
    x = as_numbers("X", value, "an array of numbers [n, D]").astype(np.float64, copy=False)
    if x.ndim != 2 or x.size == 0:
        raise InputError(f"X must have shape [n, D] and at least one row, not {list(x.shape)}")
    if width is not None and x.shape[1] != width:
        raise InputError(f"X has {x.shape[1]} columns, but was fitted with {width}")
    if not np.isfinite(x).all():
        row, column = (int(i) for i in np.argwhere(~np.isfinite(x))[0])
        raise InputError(f"X[{row}, {column}] is {x[row, column]}: features must be finite")
    return x
