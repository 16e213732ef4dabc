"""What all evaluators share: the call, names of measures, and files of results."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wordpiece_bert._internal.atomic_file import write_text
from wordpiece_bert._internal.checks import check_function, check_instance, check_several, checked_flag, whole_number
from wordpiece_bert._internal.parameters import Parameters, completed_by
from wordpiece_bert.errors import InputError

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence

#: What most evaluators are given besides their data.
EVALUATING = Parameters(
    """
    name : str, default ""
        The name of the data, which begins the keys of the results: ``NAME_``.
    batch_size : int
        The most texts that go through the NumPy engine at once.
    show_progress_bar : bool, default False
        Whether to show a progress bar on standard error.
    write_csv : bool, default True
        Whether a call with `output_path` adds a line to the file `csv_file` there.
    truncate_dim : int, optional
        How many of the first numbers of each vector to keep; by default the model's setting.
    similarity_fn_names : list of str, optional
        How vectors are compared: ``"cosine"``, ``"dot"``, ``"euclidean"``, ``"manhattan"``; by default as the model
        says. For several, there are also measures that begin with or end in ``max``.
    """
)


@dataclass
class Measured:
    """What an evaluator found: the measures, which of them is the primary one, and the columns of its file."""

    metrics: dict[str, float]
    primary: str
    columns: dict[str, float] = field(default_factory=dict)


class BaseEvaluator:
    """The base of evaluators: called with an encoder, one returns its measures by name.

    An evaluator of your own derives from it and defines ``__call__``, with these arguments; it sets `primary_metric`
    if it returns a dict.

    Attributes
    ----------
    name : str
        The name of the data.
    primary_metric : str or None
        The key of the measure by which models are compared; some evaluators know it only after a call.
    greater_is_better : bool
        Whether a higher value of it is better.
    csv_file : str
        The name of the file of results.

    Examples
    --------
    >>> from wordpiece_bert import SentenceEncoder
    >>> from wordpiece_bert.evaluation import BaseEvaluator
    >>> class Dimension(BaseEvaluator):
    ...     def __call__(self, model, output_path=None, epoch=-1, steps=-1):
    ...         self.primary_metric = "dimension"
    ...         return {"dimension": float(model.dimension)}
    >>> evaluator = Dimension()
    >>> evaluator(SentenceEncoder("models/sentences"))
    {'dimension': 67.0}
    """

    name: str = ""
    primary_metric: str | None = None
    greater_is_better: bool = True
    csv_file: str = ""
    _write_csv: bool = True

    def __call__(
        self, model: Any, output_path: str | os.PathLike[str] | None = None, epoch: int = -1, steps: int = -1
    ) -> dict[str, float]:
        """Evaluate an encoder.

        Parameters
        ----------
        model : SentenceEncoder, StaticEncoder, SparseEncoder or MultiVectorEncoder
            The encoder.
        output_path : str or os.PathLike, optional
            A folder in which a line is added to `csv_file`.
        epoch, steps : int, default -1
            How far a training has come, for that line; -1 outside of one.

        Returns
        -------
        dict of str to float
            The measures by name.

        Raises
        ------
        InputError
            The model does not fit the evaluator, or the file has other columns.
        OSError
            The file cannot be written.

        Examples
        --------
        >>> from pathlib import Path
        >>> from wordpiece_bert import SentenceEncoder
        >>> from wordpiece_bert.evaluation import TripletEvaluator
        >>> evaluator = TripletEvaluator(["bread"], ["bread dough"], ["a wheel"])
        >>> evaluator(SentenceEncoder("models/sentences"), "results", epoch=1)
        {'cosine_accuracy': 1.0}
        >>> (Path("results") / evaluator.csv_file).read_text().splitlines()
        ['epoch,steps,accuracy_cosine', '1,-1,1.0']
        """
        found = self._measured(model)
        prefix = f"{self.name}_" if self.name else ""
        self.primary_metric = prefix + found.primary
        if output_path is not None:
            if self._write_csv and self.csv_file:
                _add_line(Path(output_path) / self.csv_file, {"epoch": epoch, "steps": steps, **found.columns})
            self._write_more(Path(output_path))
        return {prefix + key: float(value) for key, value in found.metrics.items()}

    def _measured(self, model: Any) -> Measured:
        """Return what the evaluator finds."""
        raise NotImplementedError(f"{type(self).__name__} defines neither __call__ nor _measured")

    def _write_more(self, folder: Path) -> None:
        """Write what the last call found besides measures."""

    def _set_up(self, name: str, kind: str, end: str = "results.csv", *, write_csv: bool) -> None:
        """Set the name of the data and of the file: the kind of evaluator, the name and the end."""
        if not isinstance(name, str):
            raise InputError(f"name must be a str, not {type(name).__name__}: {name!r:.80}")
        self.name, self.csv_file = name, "_".join(part for part in (kind, name, end) if part)
        self._write_csv = checked_flag("write_csv", write_csv)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})" if self.name else f"{type(self).__name__}()"


class SequentialEvaluator(BaseEvaluator):
    """Several evaluators in one: their measures together, and a main score.

    Parameters
    ----------
    evaluators : iterable of evaluators
        What is called, each with the model.
    main_score_function : callable, optional
        Returns the main score, ``sequential_score``, given the list of the evaluators' primary measures; by default
        the last of them.

    Attributes
    ----------
    greater_is_better : bool
        Whether a higher main score is better: as the last evaluator says.

    Examples
    --------
    >>> from wordpiece_bert import SentenceEncoder
    >>> from wordpiece_bert.evaluation import SequentialEvaluator, TripletEvaluator
    >>> one = TripletEvaluator(["bread"], ["bread dough"], ["a wheel"], name="one")
    >>> two = TripletEvaluator(["bread"], ["a wheel"], ["bread dough"], name="two")
    >>> evaluator = SequentialEvaluator(
    ...     [one, two], main_score_function=lambda scores: sum(scores) / len(scores)
    ... )
    >>> evaluator(SentenceEncoder("models/sentences"))
    {'one_cosine_accuracy': 1.0, 'two_cosine_accuracy': 0.0, 'sequential_score': 0.5}
    """

    primary_metric = "sequential_score"

    def __init__(
        self,
        evaluators: Iterable[Callable[..., Any]],
        main_score_function: Callable[[Sequence[float]], float] | None = None,
    ) -> None:
        check_instance("evaluators", evaluators, Iterable, "a list of evaluators")
        self.evaluators = list(evaluators)
        if not self.evaluators:
            raise InputError("evaluators is empty: there is nothing to evaluate")
        for evaluator in self.evaluators:
            if not callable(evaluator):
                raise InputError(f"evaluators must be a list of evaluators, and {evaluator!r:.80} cannot be called")
        # The primary measure is a function of the evaluators' measures, by default the last one.
        self.greater_is_better = bool(getattr(self.evaluators[-1], "greater_is_better", True))
        self._main_score = (lambda scores: scores[-1]) if main_score_function is None else main_score_function
        check_function("main_score_function", self._main_score, "a list of scores")

    @completed_by(BaseEvaluator.__call__)
    def __call__(
        self, model: Any, output_path: str | os.PathLike[str] | None = None, epoch: int = -1, steps: int = -1
    ) -> dict[str, float]:
        """Evaluate an encoder with all evaluators.

        Returns
        -------
        dict of str to float
            The measures of all of them; of equal keys the last. The key of a single number is ``evaluator_0`` and so
            on. ``sequential_score`` is the main score.
        """
        metrics: dict[str, float] = {}
        scores = []
        for number, evaluator in enumerate(self.evaluators):
            found, primary = results_of(evaluator, evaluator(model, output_path, epoch, steps), f"evaluator_{number}")
            metrics |= found
            scores.append(found[primary])
        return metrics | {"sequential_score": float(self._main_score(scores))}


def results_of(evaluator: Any, found: Any, key: str) -> tuple[dict[str, float], str]:
    """Return the measures that an evaluator returned, and the key of the primary one.

    Parameters
    ----------
    evaluator : callable
        The evaluator, which may have a `primary_metric`.
    found : dict or float
        What it returned.
    key : str
        The key of a single number.

    Raises
    ------
    InputError
        It returned something else.
    """
    if isinstance(found, dict) and found:
        primary = getattr(evaluator, "primary_metric", None) or next(iter(found))
        if primary not in found:
            raise InputError(f"{evaluator!r} has the primary_metric {primary!r}, but it returned {list(found)}")
        return found, primary
    try:
        return {key: float(found)}, key
    except (TypeError, ValueError) as cause:
        raise InputError(f"{evaluator!r} must return a dict of measures or a number, not {found!r:.80}") from cause


def at_least_one(name: str, values: Iterable[int]) -> list[int]:
    """Return numbers of hits, checked."""
    check_several(name, values, "a list of whole numbers")
    found = [whole_number(name, value, 1) for value in values]
    if not found:
        raise InputError(f"{name} must have at least one number")
    return found


def _add_line(path: Path, line: dict[str, Any]) -> None:
    """Add a line to a file of results, which is created with its header."""
    text = ""
    header = _csv_line(list(line))
    if path.is_file():
        text = path.read_text(encoding="utf-8")
        first = text.partition("\n")[0].rstrip("\r") + "\n"
        if first != header:
            raise InputError(
                f"{path} has the columns {first.strip()}, not {header.strip()}: choose another folder. The line that "
                f"was not added: {_csv_line(list(line.values())).strip()}"  # it may have taken an hour
            )
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, (text or header) + _csv_line(list(line.values())))


def _csv_line(values: list[Any]) -> str:
    output = io.StringIO()
    csv.writer(output, lineterminator="\n").writerow(values)
    return output.getvalue()
