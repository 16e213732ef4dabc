"""Objectives of fine-tuning: what a model learns from a labelled table."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert._internal.texts import text_problem
from wordpiece_bert.errors import InputError
from wordpiece_bert.finetune.objectives.columns import OPTIONAL_COLUMNS, Columns
from wordpiece_bert.finetune.parameters import FITTING
from wordpiece_bert.finetune.start import model_for
from wordpiece_bert.finetune.trainer import Trainer
from wordpiece_bert.hub import find_model
from wordpiece_bert.tokenizer.corpus.table_reader import RowErrors, read_table
from wordpiece_bert.tokenizer.subword import tokenizer_of

if TYPE_CHECKING:
    import os
    from collections.abc import Callable
    from pathlib import Path

    from wordpiece_bert.finetune.arguments import TrainingArguments
    from wordpiece_bert.finetune.batches import Dataset
    from wordpiece_bert.finetune.heads import Head
    from wordpiece_bert.finetune.labels import Problem
    from wordpiece_bert.finetune.loop import TrainingLoop
    from wordpiece_bert.finetune.network import Network
    from wordpiece_bert.finetune.start import ProblemType
    from wordpiece_bert.finetune.trainer import EvalPrediction
    from wordpiece_bert.tokenizer.subword import AnyTokenizer


@dataclass(frozen=True, kw_only=True)
class Tables:
    """Labelled tables, as `wordpiece_bert.finetune.data.read_columns` reads them.

    Attributes
    ----------
    train : path
        The table to train on.
    eval : path, optional
        The table to evaluate on.
    columns : Columns
        The names of its columns.
    max_length : int, optional
        Longer texts are truncated; by default those that are longer than the model's longest row.
    errors : {"strict", "skip"}, default "strict"
        What happens to a row whose text or label is missing or wrong: an error, or the row is left out and counted.

    Examples
    --------
    >>> from wordpiece_bert.finetune.objectives import Columns, Tables
    >>> tables = Tables(
    ...     train="train.csv",
    ...     eval="dev.csv",
    ...     columns=Columns(label="stars"),
    ...     max_length=128,
    ... )
    >>> tables.columns.text, tables.columns.label
    ('text', 'stars')
    """

    train: str | os.PathLike[str]
    eval: str | os.PathLike[str] | None = None
    columns: Columns = field(default_factory=Columns)
    max_length: int | None = None
    errors: RowErrors = "strict"


class FrozenFit(NamedTuple):
    r"""A head that was fitted to the vectors of a frozen encoder.

    Examples
    --------
    >>> from pathlib import Path
    >>> from wordpiece_bert.finetune.objectives import Tables, objective_class
    >>> lines = [
    ...     "text,label",
    ...     "a great film,good",
    ...     "a dull film,bad",
    ...     "a moving story,good",
    ...     "a poor story,bad",
    ... ]
    >>> _ = Path("reviews.csv").write_text("\n".join(lines))
    >>> objective = objective_class("classify", "tables")(
    ...     Tables(train="reviews.csv", eval="reviews.csv")
    ... )
    >>> fit = objective.fit_frozen("models/static", show_progress_bar=False)
    >>> fit.rows, fit.metrics["accuracy"]
    (4, 1.0)
    >>> fit.save(Path("classifier"))
    """

    #: How many rows it was fitted to.
    rows: int
    #: The metrics of the table to evaluate on; empty without one.
    metrics: dict[str, float]
    #: Writes the folder of the model.
    save: Callable[[Path], None]


class TableObjective:
    r"""What a model is fine-tuned for.

    Parameters
    ----------
    tables : Tables
        The tables.

    Attributes
    ----------
    tables : Tables
        As passed.
    skipped : dict of str to list of str
        For each table that was read, the place and the problem of each row that was left out.

    Examples
    --------
    >>> from pathlib import Path
    >>> from wordpiece_bert.finetune import TrainingArguments
    >>> from wordpiece_bert.finetune.objectives import Tables, objective_class
    >>> _ = Path("reviews.csv").write_text(
    ...     "text,label\na great film,good\na dull film,bad\n"
    ... )
    >>> objective = objective_class("classify", "tables")(Tables(train="reviews.csv"))
    >>> objective.read("reviews.csv")
    {'text': ['a great film', 'a dull film'], 'label': ['good', 'bad']}
    >>> trainer = objective.trainer("models/sentences", TrainingArguments("out"))
    >>> trainer.model.config.id2label
    {0: 'bad', 1: 'good'}
    >>> objective.fit_frozen("models/static", show_progress_bar=False).rows
    2
    """

    tables: Tables
    skipped: dict[str, list[str]]

    #: From a value in the column of texts to what is wrong with it, or None; None for texts, which are str.
    text_problem: ClassVar[Problem | None] = None
    #: From a label in a table to what is wrong with it, or None; None for labels that ``rows`` checks.
    label_problem: ClassVar[Problem | None] = None
    #: Which of `OPTIONAL_COLUMNS` it reads.
    optional_columns: ClassVar[tuple[str, ...]] = ("pair",)
    #: Whether `fit_frozen` is there.
    has_frozen_heads: ClassVar[bool] = False
    #: Whether `fit_frozen` keeps vectors for the next call.
    caches_vectors: ClassVar[bool] = False

    def __init__(self, tables: Tables) -> None:
        for name in OPTIONAL_COLUMNS:
            value = getattr(tables.columns, name)
            if name not in self.optional_columns and value != getattr(Columns(), name):
                raise InputError(f"{type(self).__name__} does not read the column {name}, {value!r}: leave it out")
        self.tables = tables
        self.skipped = {}

    @completed_by(FITTING)
    def trainer(
        self, model: str | os.PathLike[str], args: TrainingArguments, *, download: bool = False
    ) -> TrainingLoop[Any]:
        """Return a trainer over the tables."""
        raise NotImplementedError

    @completed_by(FITTING)
    def fit_frozen(
        self,
        model: str | os.PathLike[str],
        *,
        C: float = 1.0,
        cache: Path | None = None,
        download: bool = False,
        show_progress_bar: bool | None = None,
    ) -> FrozenFit:
        """Fit a head to the vectors of a model that is not trained."""
        raise NotImplementedError

    def read(
        self, file: str | os.PathLike[str], *others: str | None, label_problem: Problem | None = None
    ) -> dict[str, list[Any]]:
        """Return the columns of texts, second texts and labels of a table, and others.

        Parameters
        ----------
        file : path
            The table.
        *others : str
            Further columns.
        label_problem : callable, optional
            What finds a wrong label, instead of the attribute of that name.

        Returns
        -------
        dict of str to list
            The columns by name.

        Raises
        ------
        InputError
            A text or a label is missing or wrong; the message has the file and the line.
        """
        columns = self.tables.columns
        names = [name for name in (columns.text, columns.pair, columns.label, *others) if name]
        checks = self._checks() | ({} if label_problem is None else {columns.label: label_problem})
        found, self.skipped[str(file)] = read_table(file, names, checks=checks, errors=self.tables.errors)
        return found

    def _checks(self) -> dict[str, Problem]:
        """Return for columns by name what finds a value that is missing or wrong."""
        columns, own = self.tables.columns, type(self)
        of_texts = own.text_problem or text_problem
        checks = {columns.pair: text_problem, columns.text: of_texts, columns.label: own.label_problem}
        return {name: check for name, check in checks.items() if name and check}

    def lists(self, file: str | os.PathLike[str], column: str, values: list[Any]) -> list[list[str]]:
        """Return lists of words or labels; a string is divided at white space.

        Parameters
        ----------
        file : path
            The table, for messages.
        column : str
            The name of the column.
        values : list
            Its values.

        Returns
        -------
        list of list of str
            A list for each row.

        Raises
        ------
        InputError
            A value is neither a list of strings nor a string; the message has the file and the column.

        Examples
        --------
        >>> from wordpiece_bert.finetune.objectives import Tables, objective_class
        >>> objective = objective_class("tokens", "tables")(Tables(train="names.jsonl"))
        >>> objective.lists("names.jsonl", "text", ["Ada Lovelace", ["in", "London"]])
        [['Ada', 'Lovelace'], ['in', 'London']]
        """
        rows = [value.split() if isinstance(value, str) else value for value in values]
        if wrong := next((value for value in rows if not isinstance(value, list)), None):
            raise InputError(
                f"{file}: the column {column!r} must hold lists of strings, or strings of words, not {wrong!r:.40}"
            )
        return rows


class HeadObjective(TableObjective):
    r"""An objective of a model with a head.

    Examples
    --------
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from wordpiece_bert import Tokenizer
    >>> from wordpiece_bert.finetune import EvalPrediction
    >>> from wordpiece_bert.finetune.objectives import Tables, objective_class
    >>> _ = Path("reviews.csv").write_text(
    ...     "text,label\na great film,good\na dull film,bad\n"
    ... )
    >>> objective = objective_class("classify", "tables")(
    ...     Tables(train="reviews.csv", max_length=32)
    ... )
    >>> names = objective.label_names()
    >>> tokenizer = Tokenizer.from_pretrained("models/reviews")
    >>> rows = objective.rows("reviews.csv", tokenizer, names, objective.longest(512))
    >>> names, len(rows), objective.longest(512)
    (['bad', 'good'], 2, 32)
    >>> found = EvalPrediction(
    ...     predictions=np.array([[0.1, 0.9], [0.2, 0.8]]), label_ids=np.array([1, 0])
    ... )
    >>> objective.metrics(found, rows, names)["accuracy"]
    0.5
    """

    #: The head, as for `model_for`.
    head: ClassVar[str]
    #: The loss of a head for sequences.
    problem_type: ClassVar[ProblemType | None] = None

    def label_names(self) -> list[str] | None:
        """Return the names of the labels by id; None for the names in the model's configuration."""
        return None

    def rows(
        self, file: str | os.PathLike[str], tokenizer: AnyTokenizer, names: list[str] | None, max_length: int
    ) -> Dataset:
        """Return the rows of a table for a `Trainer`.

        Parameters
        ----------
        file : path
            The table.
        tokenizer : Tokenizer or SubwordTokenizer
            The tokenizer of the model.
        names : list of str, optional
            What `label_names` returned.
        max_length : int
            Longer rows are truncated, to this many tokens.
        """
        raise NotImplementedError

    def metrics(self, found: EvalPrediction, rows: Any, names: list[str] | None) -> dict[str, float]:
        """Return the metrics of an evaluation.

        Parameters
        ----------
        found : EvalPrediction
            The predictions and the labels.
        rows : Dataset
            The rows.
        names : list of str, optional
            What `label_names` returned.
        """
        raise NotImplementedError

    def loss_head(self, network: Network) -> Head:
        """Return the training side of the head, for a loss other than the model class's.

        Parameters
        ----------
        network : Network
            The model as training sees it.

        Examples
        --------
        An objective with a loss of its own overrides it; the others keep the model class's.

        >>> from wordpiece_bert.finetune.objectives import HeadObjective, objective_class
        >>> objective_class("classify", "tables").loss_head is HeadObjective.loss_head
        True
        """
        raise NotImplementedError

    @completed_by(FITTING)
    def trainer(
        self, model: str | os.PathLike[str], args: TrainingArguments, *, download: bool = False
    ) -> TrainingLoop[Any]:
        r"""Return a `Trainer` over the tables.

        Returns
        -------
        TrainingLoop
            The trainer.

        Examples
        --------
        >>> from pathlib import Path
        >>> from wordpiece_bert.finetune import TrainingArguments
        >>> from wordpiece_bert.finetune.objectives import Tables, objective_class
        >>> _ = Path("reviews.csv").write_text(
        ...     "text,label\na great film,good\na dull film,bad\n"
        ... )
        >>> objective = objective_class("classify", "tables")(Tables(train="reviews.csv"))
        >>> trainer = objective.trainer("models/sentences", TrainingArguments("out"))
        >>> len(trainer.train_dataset), trainer.model.config.id2label
        (2, {0: 'bad', 1: 'good'})
        """
        tokenizer = tokenizer_of(find_model(model, download=download))
        names = self.label_names()
        start = model_for(
            model,
            self.head,  # type: ignore[arg-type]
            labels=names,
            problem_type=self.problem_type,
            seed=args.seed,
            download=download,
        )
        train, held_out = (
            None if file is None else self.rows(file, tokenizer, names, self.longest(start.config.usual_longest_row))
            for file in (self.tables.train, self.tables.eval)
        )
        own_loss = type(self).loss_head is not HeadObjective.loss_head
        return Trainer(
            start,
            args,
            train,
            held_out,
            compute_metrics=None if held_out is None else lambda found: self.metrics(found, held_out, names),
            tokenizer=tokenizer,
            loss_head=self.loss_head if own_loss else None,
        )

    def longest(self, limit: int) -> int:
        """Return the longest row in tokens.

        Parameters
        ----------
        limit : int
            The longest row of the model.

        Returns
        -------
        int
            The length.
        """
        return min(self.tables.max_length or limit, limit)
