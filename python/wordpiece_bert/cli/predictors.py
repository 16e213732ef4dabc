"""The models of ``wordpiece-bert predict``: what each makes of texts, as rows of JSON."""

from __future__ import annotations

import json
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wordpiece_bert.bert.auto import read_config
from wordpiece_bert.bert.config import find_config
from wordpiece_bert.bert.heads.kinds import SequenceClassification, TokenClassification
from wordpiece_bert.cli import arguments
from wordpiece_bert.cli.messages import print_warning
from wordpiece_bert.errors import InputError, TruncationWarning
from wordpiece_bert.hub import find_model
from wordpiece_bert.sentence.cross_encoder import CrossEncoder
from wordpiece_bert.sentence.dense.parts import labels_of
from wordpiece_bert.sentence.folders.kinds import CROSS, SENTENCE, kind_of
from wordpiece_bert.sentence.parts import config_of
from wordpiece_bert.tasks import classify, ner
from wordpiece_bert.tasks.task_loading import frozen_classifier, load, longest_row, static_classifier
from wordpiece_bert.tasks.text_classification import FUNCTIONS, default_function
from wordpiece_bert.tokenizer.corpus.row_writer import RowWriter, open_output

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable
    from pathlib import Path

    import numpy.typing as npt

    from wordpiece_bert.finetune.frozen_classifier import FrozenClassifier
    from wordpiece_bert.sentence.dense.static_classifier import StaticClassifier
    from wordpiece_bert.tasks import Loaded

#: Rows of JSON, and which texts were truncated.
Predictions = tuple[list[dict[str, Any]], "npt.NDArray[np.bool_]"]


class JsonLines(RowWriter):
    """Writes objects as lines of JSON."""

    def __init__(self, path: Path | None) -> None:
        super().__init__(open_output(path, collect=False))
        self._encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode

    def append(self, rows: Iterable[dict[str, Any]]) -> None:
        """Write some objects; raise an `InputError` for a score that JSON has not."""
        lines: list[str] = []
        try:
            lines.extend(self._encode(row) + "\n" for row in rows)
        except ValueError as cause:
            which = f"prediction {self.rows + len(lines) + 1}"
            raise InputError(f"{which}: a score is not finite: weights are damaged, or training diverged") from cause
        with self._output.naming_errors():
            self._output.file.write("".join(lines).encode())
        self.rows += len(lines)


class Predictor(NamedTuple):
    """A model that says something of texts or pairs."""

    kind: str  # as the server calls it
    described: str
    longest_row: int  # in tokens
    predict: Callable[[list[Any]], Predictions]


def predictor_of(options: argparse.Namespace, *, pairs: bool) -> Predictor:
    """Load the model of a command.

    Parameters
    ----------
    options : argparse.Namespace
        The options of ``predict``.
    pairs : bool
        Whether the texts are pairs.

    Raises
    ------
    InputError
        The model is of another kind, or an option or the texts do not fit its kind.
    """
    folder = find_model(options.model, download=options.download)
    loading = arguments.loading_options(options)
    del loading["threads"]
    frozen = frozen_classifier(folder)
    static = None if frozen is not None else static_classifier(folder)
    if (frozen or static) and (options.dtype != "float32" or options.calibrate or options.instructions):
        raise InputError(f"--dtype, --calibrate and --instructions: {options.model} is a head on vectors, in float32")
    if frozen is not None:
        return _classifier(options, frozen, frozen.labels, frozen.encoder.max_seq_length)
    if static is not None:
        if pairs:
            raise InputError(f"{options.model} is a head on static vectors, of single texts: name one field or column")
        return _classifier(options, static, labels_of(static), static.encoder.max_seq_length)
    kind = kind_of(folder)
    if kind is CROSS or _ranks(folder, pairs=pairs):
        return _ranker(options, CrossEncoder(folder, **loading), pairs=pairs)
    if kind is not SENTENCE:
        raise InputError(f"{options.model} is a {kind.name}, which makes {kind.vectors}: use embed or search")
    loaded = load(folder, **loading)
    model = loaded.model
    most = longest_row(model, loaded.tokenizer)
    if isinstance(model, SequenceClassification):
        labels = list(map(model.config.label, range(model.config.num_labels)))
        if len(labels) == 1 and model.config.problem_type is None and not pairs:
            print_warning(
                f"{options.model} has a single label, for one score of each text; if it ranks texts for queries, name "
                "two columns, that of the queries first"
            )
        return _classifier(options, loaded, labels, most)
    if isinstance(model, TokenClassification):
        return _tagger(options, loaded, most, pairs=pairs)
    raise InputError(
        f"{options.model} is a {type(model).__name__}: predict needs a classifier of texts or of tokens, or a ranker"
    )


def _ranks(folder: Path, *, pairs: bool) -> bool:
    """Return whether a folder has a model of pairs with a single label, which is not called a regression."""
    if not pairs or not find_config(folder).is_file():
        return False
    config = read_config(folder)
    is_sequence = any(name.endswith("ForSequenceClassification") for name in config.architectures or ())
    return is_sequence and config.num_labels == 1 and config.problem_type != "regression"


def _refuse(options: argparse.Namespace, names: tuple[str, ...], kind: str) -> None:
    """Refuse options for models of other kinds."""
    arguments.refuse(options, names, f"does not fit {options.model}, which is {kind}")


def _classifier(
    options: argparse.Namespace, source: Loaded | FrozenClassifier | StaticClassifier, labels: list[str], most: int
) -> Predictor:
    _refuse(options, ("aggregation_strategy", "stride"), "a classifier of texts")
    single = len(labels) == 1
    if single:
        _refuse(options, ("top_k",), "a model with a single label")
    top_k = None if options.top_k == arguments.ALL else options.top_k or 1

    def predict(texts: list[Any]) -> Predictions:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TruncationWarning)  # reported with the places in the files
            found = classify(
                source, texts, top_k=top_k, function_to_apply=options.function, batch_size=options.batch_size
            )
        rows: list[dict[str, Any]] = []
        for answers in found:
            if single:
                rows.append({"score": answers[0]["score"]})
            elif options.top_k is None:
                rows.append(dict(answers[0]))
            else:
                names, scores = [one["label"] for one in answers], [one["score"] for one in answers]
                rows.append({"labels": names, "scores": scores})
        return rows, np.array([answers.truncated for answers in found], np.bool_)

    described = "a model with a single label" if single else f"a classifier of {len(labels)} labels"
    return Predictor("classifier", described, most, predict)


def _tagger(options: argparse.Namespace, loaded: Loaded, most: int, *, pairs: bool) -> Predictor:
    _refuse(options, ("top_k", "function"), "a classifier of tokens")
    if pairs:
        raise InputError(f"{options.model} classifies tokens, of single texts: name one field or column")
    strategy: Any = options.aggregation_strategy or "simple"

    def predict(texts: list[Any]) -> Predictions:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TruncationWarning)
            found = ner(
                loaded, texts, aggregation_strategy=strategy, stride=options.stride, batch_size=options.batch_size
            )
        cut = np.array([entities.truncated for entities in found], np.bool_)
        return [{"entities": list(entities)} for entities in found], cut

    return Predictor("token-classifier", "a classifier of tokens", most, predict)


def _ranker(options: argparse.Namespace, ranker: CrossEncoder, *, pairs: bool) -> Predictor:
    if not pairs:
        raise InputError(
            f"{options.model} scores pairs of a query and a text: name two columns, --text-column QUERY --text-column "
            "TEXT, or --jsonl-field twice"
        )
    _refuse(options, ("aggregation_strategy", "stride"), "a cross encoder")
    names = [config_of(ranker).label(index) for index in range(ranker.num_labels)]
    single = len(names) == 1
    if single:
        _refuse(options, ("top_k",), "a model with a single label")
    chosen = options.function if single or options.function else default_function(config_of(ranker))
    function = None if chosen is None else FUNCTIONS[chosen]

    def predict(texts: list[Any]) -> Predictions:
        scores, cut = ranker.predict(texts, options.batch_size, activation_fn=function, return_truncated=True)
        if single:
            return [{"score": score} for score in scores.tolist()], cut
        return [_labelled(row, names, options.top_k) for row in scores], cut

    described = "a ranker" if single else f"a cross encoder of {len(names)} labels"
    return Predictor("reranker" if single else "classifier", described, ranker.max_length, predict)


def _labelled(scores: npt.NDArray[np.float32], names: list[str], top_k: Any) -> dict[str, Any]:
    """Return the best label of a text and its score, or with `top_k` several."""
    order = np.argsort(-scores, kind="stable").tolist()[: len(names) if top_k == arguments.ALL else top_k or 1]
    if top_k is None:
        return {"label": names[order[0]], "score": float(scores[order[0]])}
    return {"labels": [names[i] for i in order], "scores": [float(scores[i]) for i in order]}
