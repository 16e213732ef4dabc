"""What scikit-learn asks of an estimator, without importing it: parameters by name, and whether it classifies."""

from __future__ import annotations

import inspect
from typing import Any, Self

from wordpiece_bert.errors import InputError

__all__ = ["Estimator"]


class Estimator:
    """Gives a class ``get_params`` and ``set_params``, with which `sklearn.base.clone` and searches work.

    The constructor keeps each argument, as it is, in the attribute of its name, or in that of its name with an
    underscore before it.

    Examples
    --------
    >>> from wordpiece_bert.finetune import LogisticRegression
    >>> head = LogisticRegression(C=10.0)
    >>> head.get_params()
    {'C': 10.0, 'class_weight': None}
    >>> head.set_params(C=0.1).C
    0.1
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
            The arguments by name, those of an argument as ``head__C``.

        Returns
        -------
        self
            This object.

        Raises
        ------
        InputError
            There is no such parameter, or a value is wrong.
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
        for name, values in inner.items():
            if not isinstance(own[name], Estimator):
                raise InputError(f"the parameter {name} of {type(self).__name__} has no parameters of its own")
            own[name] = own[name].set_params(**values)
        if params:
            vars(self).clear()
            self.__init__(**own)  # type: ignore[misc]
        return self

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
