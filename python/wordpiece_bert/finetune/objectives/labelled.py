"""The objectives of fine-tuning that the command ``finetune`` has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wordpiece_bert._internal.atomic_folder import written_folder
from wordpiece_bert._internal.checks import finite_number
from wordpiece_bert._internal.ignored_label import IGNORED
from wordpiece_bert._internal.parts import write_files
from wordpiece_bert._internal.texts import text_problem, texts_problem, words_problem
from wordpiece_bert.errors import InputError
from wordpiece_bert.finetune import metrics
from wordpiece_bert.finetune.arguments import TrainingArguments
from wordpiece_bert.finetune.choices import choice_rows
from wordpiece_bert.finetune.data import label_ids, label_names, sequence_rows, token_rows
from wordpiece_bert.finetune.frozen_classifier import FrozenClassifier
from wordpiece_bert.finetune.frozen_heads import LogisticRegression, Ridge
from wordpiece_bert.finetune.frozen_tokens import fit_token_head
from wordpiece_bert.finetune.labels import class_problem, class_problem_among, number_problem, tags_problem
from wordpiece_bert.finetune.losses import CoSENTLoss
from wordpiece_bert.finetune.objectives.tables import FrozenFit, HeadObjective, TableObjective
from wordpiece_bert.finetune.questions import MAX_LENGTH, QuestionWindows, question_windows, read_squad
from wordpiece_bert.finetune.sentence_trainer import SentenceTrainer
from wordpiece_bert.finetune.start import model_for
from wordpiece_bert.finetune.trainer import Trainer
from wordpiece_bert.hub import find_model
from wordpiece_bert.sentence import SentenceEncoder
from wordpiece_bert.tokenizer.subword import tokenizer_of

if TYPE_CHECKING:
    import os
    from pathlib import Path

    from wordpiece_bert.finetune.batches import Dataset
    from wordpiece_bert.finetune.labels import Problem
    from wordpiece_bert.finetune.trainer import EvalPrediction
    from wordpiece_bert.tokenizer.subword import AnyTokenizer


class _Texts(HeadObjective):
    """A label or a number for each text or pair."""

    head = "SequenceClassification"
    has_frozen_heads = True
    caches_vectors = True

    def rows(
        self, file: str | os.PathLike[str], tokenizer: AnyTokenizer, names: list[str] | None, max_length: int
    ) -> Dataset:
        """Return the rows of a table."""
        known, columns = None if self.problem_type == "regression" else names, self.tables.columns
        table = self.read(file, label_problem=None if known is None else class_problem_among(known))
        pairs = table[columns.pair] if columns.pair else None
        labels = table[columns.label]
        return sequence_rows(tokenizer, table[columns.text], pairs, labels, names=known, max_length=max_length)

    def fit_frozen(
        self,
        model: str | os.PathLike[str],
        *,
        C: float = 1.0,
        cache: Path | None = None,
        download: bool = False,
        show_progress_bar: bool | None = None,
    ) -> FrozenFit:
        """Fit logistic or ridge regression to the vectors of texts or pairs."""
        C = finite_number("C", C, above=0)
        head = Ridge(1 / C) if self.problem_type == "regression" else LogisticRegression(C=C)
        classifier = FrozenClassifier(SentenceEncoder(model, download=download), head)
        if self.tables.max_length:
            classifier.encoder.max_seq_length = min(self.tables.max_length, classifier.encoder.max_seq_length)
        texts, labels = self._examples(self.tables.train)
        known = None if classifier.is_regression else class_problem_among(label_names(labels))
        texts_too, right = self._examples(self.tables.eval, known) if self.tables.eval else ([], [])
        classifier.fit(texts, labels, cache=cache, show_progress_bar=show_progress_bar)
        found = _scores(classifier, classifier.predict(texts_too, cache=cache).tolist(), right) if right else {}
        return FrozenFit(len(labels), found, classifier.save_pretrained)

    def _examples(
        self, file: str | os.PathLike[str], label_problem: Problem | None = None
    ) -> tuple[list[Any], list[Any]]:
        table, columns = self.read(file, label_problem=label_problem), self.tables.columns
        texts: list[Any] = table[columns.text]
        if columns.pair:
            texts = list(zip(texts, table[columns.pair], strict=True))
        return texts, table[columns.label]


def _scores(classifier: FrozenClassifier, predicted: list[Any], right: list[Any]) -> dict[str, float]:
    if classifier.is_regression:
        return _correlations(predicted, [float(label) for label in right])
    # By name: a CSV file has the strings of the numbers that a Parquet file has.
    ids = {name: index for index, name in enumerate(classifier.labels)}
    return _class_scores(label_ids(ids, predicted), label_ids(ids, right), classifier.labels)


def _class_scores(predicted: Any, right: Any, names: list[str]) -> dict[str, float]:
    found = {"accuracy": metrics.accuracy(predicted, right)}
    if len(names) == 2:
        found["f1"] = metrics.f1(predicted, right)
    return found | metrics.f1_by_label(predicted, right, names)


def _correlations(predicted: Any, right: Any) -> dict[str, float]:
    return {"pearson": metrics.pearson(predicted, right), "spearman": metrics.spearman(predicted, right)}


class Classify(_Texts):
    """A label for each text or pair."""

    problem_type = "single_label_classification"
    label_problem = class_problem

    def label_names(self) -> list[str]:
        """Return the names of the labels of the table to train on."""
        return label_names(self.read(self.tables.train)[self.tables.columns.label])

    def metrics(self, found: EvalPrediction, rows: Any, names: list[str] | None) -> dict[str, float]:
        """Return the accuracy, for two labels the F1 of the second, and the F1 of each label, macro and micro."""
        del rows
        return _class_scores(found.predictions.argmax(axis=-1), found.label_ids, names or [])


class Regress(_Texts):
    """A number for each text or pair."""

    problem_type = "regression"
    label_problem = number_problem

    def label_names(self) -> list[str]:
        """Return the one name that a regression has."""
        return ["LABEL_0"]

    def metrics(self, found: EvalPrediction, rows: Any, names: list[str] | None) -> dict[str, float]:
        """Return the correlations with the numbers of the table."""
        del rows, names
        return _correlations(found.predictions[:, 0], found.label_ids)


class Tokens(HeadObjective):
    """A label for each word."""

    head = "TokenClassification"
    text_problem = words_problem
    label_problem = tags_problem
    optional_columns = ()
    has_frozen_heads = True

    def label_names(self) -> list[str]:
        """Return the names of the labels of the table to train on."""
        return label_names([tag for row in self._words(self.tables.train)[1] for tag in row])

    def rows(
        self, file: str | os.PathLike[str], tokenizer: AnyTokenizer, names: list[str] | None, max_length: int
    ) -> Dataset:
        """Return the rows of a table."""
        known = class_problem_among(names or ())
        words, tags = self._words(file, lambda value: tags_problem(value, known))
        return token_rows(tokenizer, words, tags, names=names or (), max_length=max_length)

    def _words(
        self, file: str | os.PathLike[str], label_problem: Problem | None = None
    ) -> tuple[list[list[str]], list[list[str]]]:
        table, columns = self.read(file, label_problem=label_problem), self.tables.columns
        words, tags = (self.lists(file, name, table[name]) for name in (columns.text, columns.label))
        return words, tags

    def metrics(self, found: EvalPrediction, rows: Any, names: list[str] | None) -> dict[str, float]:
        """Return the accuracy of tokens and the F1 of entities, also of each type."""
        del rows
        best, counted = found.predictions.argmax(axis=-1), found.label_ids != IGNORED
        tagged, right = (
            [[(names or ())[i] for i in row[keep]] for row, keep in zip(labels, counted, strict=True)]
            for labels in (best, found.label_ids)
        )
        scores = {"accuracy": metrics.accuracy(best, found.label_ids), "entity_f1": metrics.entity_f1(tagged, right)}
        return scores | metrics.entity_f1_by_type(tagged, right)

    def fit_frozen(
        self,
        model: str | os.PathLike[str],
        *,
        C: float = 1.0,
        cache: Path | None = None,
        download: bool = False,
        show_progress_bar: bool | None = None,
    ) -> FrozenFit:
        """Fit logistic regression to the vectors of tokens, which are not cached."""
        if cache is not None:
            raise InputError("cache keeps vectors of texts, and those of tokens are not kept: leave it out")
        names = self.label_names()
        start = model_for(model, "TokenClassification", labels=names, download=download)
        tokenizer = tokenizer_of(find_model(model, download=download))
        max_length = self.longest(start.config.usual_longest_row)
        data = self.rows(self.tables.train, tokenizer, names, max_length)
        fitted = fit_token_head(start, data, C=C, show_progress_bar=show_progress_bar)
        found: dict[str, float] = {}
        if self.tables.eval:
            rows = self.rows(self.tables.eval, tokenizer, names, max_length)
            args = TrainingArguments("", show_progress_bar=show_progress_bar)
            predicted = Trainer(fitted, args).predict(rows)
            found = {"loss": predicted.metrics["test_loss"]} | self.metrics(predicted, rows, names)

        def save(folder: Path) -> None:
            with written_folder(folder) as output:
                write_files(fitted, output)
                write_files(tokenizer, output)

        return FrozenFit(len(data), found, save)


class Answers(HeadObjective):
    """The part of a text that answers a question."""

    head = "QuestionAnswering"
    optional_columns = ("pair", "answer_start")

    def rows(
        self, file: str | os.PathLike[str], tokenizer: AnyTokenizer, names: list[str] | None, max_length: int
    ) -> Dataset:
        """Return the windows of a table, or of a file in the format of SQuAD."""
        del names
        length = max_length if self.tables.max_length else min(max_length, MAX_LENGTH)
        if str(file).lower().endswith(".json"):
            if self.tables.errors != "strict":
                raise InputError(f"{file}: errors='skip' leaves out rows of tables; a file of SQuAD is read as a whole")
            questions, contexts, answers = read_squad(file).values()
            return question_windows(tokenizer, questions, contexts, answers, max_length=length)
        columns = self.tables.columns
        table = self.read(file, columns.answer_start)
        starts = table[columns.answer_start] if columns.answer_start else None
        questions, contexts, answers = (table[name or ""] for name in (columns.pair, columns.text, columns.label))
        return question_windows(tokenizer, questions, contexts, answers, starts, max_length=length)

    def metrics(self, found: EvalPrediction, rows: Any, names: list[str] | None) -> dict[str, float]:
        """Return the metrics of SQuAD."""
        del names
        assert isinstance(rows, QuestionWindows)
        predicted = rows.predicted(*found.predictions)
        return {
            "exact_match": metrics.exact_match(predicted, rows.answers),
            "f1": metrics.answer_f1(predicted, rows.answers),
        }


def _choices_problem(value: Any) -> str | None:
    advice = "; name a column for each choice with choices=" if isinstance(value, str) else ""
    problem = texts_problem(value)
    return problem and problem + advice


class Choose(HeadObjective):
    """The right one of several continuations."""

    head = "MultipleChoice"
    optional_columns = ("pair", "choices")
    label_problem = class_problem

    def rows(
        self, file: str | os.PathLike[str], tokenizer: AnyTokenizer, names: list[str] | None, max_length: int
    ) -> Dataset:
        """Return the rows of a table."""
        del names
        columns = self.tables.columns
        table = self.read(file, *columns.choices)
        if len(columns.choices) == 1:
            choices = table[columns.choices[0]]
        else:
            choices = [list(row) for row in zip(*(table[name] for name in columns.choices), strict=True)]
        if columns.pair:  # SWAG: the beginning of the sentence that every choice continues
            begun = zip(table[columns.pair], choices, strict=True)
            choices = [[f"{begin} {choice}" for choice in row] for begin, row in begun]
        return choice_rows(tokenizer, table[columns.text], choices, table[columns.label], max_length=max_length)

    def _checks(self) -> dict[str, Problem]:
        columns = self.tables.columns
        one = len(columns.choices) == 1
        return super()._checks() | dict.fromkeys(columns.choices, _choices_problem if one else text_problem)

    def metrics(self, found: EvalPrediction, rows: Any, names: list[str] | None) -> dict[str, float]:
        """Return the accuracy."""
        del rows, names
        return {"accuracy": metrics.accuracy(found.predictions.argmax(axis=-1), found.label_ids)}


class Similar(TableObjective):
    """Vectors whose cosines follow the labels of pairs."""

    label_problem = number_problem

    def trainer(
        self, model: str | os.PathLike[str], args: TrainingArguments, *, download: bool = False
    ) -> SentenceTrainer:
        """Return a `SentenceTrainer` with `CoSENTLoss`."""
        if not self.tables.columns.pair:
            raise InputError(
                "similar texts are learned from pairs of texts; name the column of the second ones with pair="
            )
        encoder = SentenceEncoder(model, download=download)
        if self.tables.max_length:
            encoder.max_seq_length = min(self.tables.max_length, encoder.max_seq_length)
        held_out = self._rows(self.tables.eval) if self.tables.eval else None
        return SentenceTrainer(encoder, args, self._rows(self.tables.train), CoSENTLoss(), held_out)

    def _rows(self, file: str | os.PathLike[str]) -> list[dict[str, Any]]:
        table, columns = self.read(file), self.tables.columns
        triples = zip(table[columns.text], table[columns.pair or ""], table[columns.label], strict=True)
        return [{"a": a, "b": b, "label": float(label)} for a, b, label in triples]
