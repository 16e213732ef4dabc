"""What a training minimizes: a loss as a function of parameters, and the model that the parameters make."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from wordpiece_bert._internal.ignored_label import IGNORED
from wordpiece_bert._internal.parts import write_files
from wordpiece_bert.bert.heads.kinds import problem_type
from wordpiece_bert.finetune.gradient import compute
from wordpiece_bert.finetune.head_kinds import head_of
from wordpiece_bert.finetune.heads import Head, HeadTraining
from wordpiece_bert.finetune.learnable import warn_of_one_label
from wordpiece_bert.finetune.memory import row_sizes
from wordpiece_bert.finetune.network import Network, refuse_int8

if TYPE_CHECKING:
    from collections.abc import Collection

    from wordpiece_bert._internal.atomic_folder import AtomicFolder
    from wordpiece_bert.bert.base_model import Model
    from wordpiece_bert.bert.config import BertConfig
    from wordpiece_bert.bert.functional import Array
    from wordpiece_bert.finetune.arguments import TrainingArguments
    from wordpiece_bert.finetune.batches import Dataset
    from wordpiece_bert.finetune.engines import TrainingEngine
    from wordpiece_bert.finetune.network import Parameters
    from wordpiece_bert.finetune.passes import PassOptions

#: What is trained: a model, two of them, or a sentence encoder.
Trained = TypeVar("Trained")

#: From rows to the batch that they make.
Collate = Callable[[Sequence[Any]], Mapping[str, Any]]
#: From a network to the training side of its head.
HeadFactory = Callable[[Network], Head]


class TrainingProblem(Protocol[Trained]):
    """What `TrainingLoop` trains: parameters, a loss with its gradients, and the files of the model."""

    #: What the training starts from; it does not change.
    start: Trained
    #: The configuration of the encoder, by which the memory of a step is estimated.
    config: BertConfig
    #: The engine that computes, ``"rust"`` or ``"numpy"``.
    backend: str
    #: Whether each token counts the same in the loss of a step with several micro-batches, unless the settings say it.
    averages_tokens: bool

    def parameters(self) -> Parameters:
        """Return the float32 arrays to train, by name: copies of the arrays of `start`."""

    def freeze(self, frozen: Collection[str]) -> None:
        """Set which parameters are not trained: backward passes may end above them."""

    def batch(self, rows: Sequence[Any]) -> Any:
        """Return the micro-batch of rows."""

    def gradients(
        self, parameters: Parameters, batch: Any, options: PassOptions, engine: TrainingEngine
    ) -> tuple[float, Mapping[str, Array]]:
        """Return the loss of a micro-batch, and its gradient with respect to the parameters."""

    def model(self, parameters: Parameters) -> Trained:
        """Return a new model with copies of the parameters."""

    def write(self, model: Trained, output: AtomicFolder) -> None:
        """Write the files with which a model is loaded."""

    def description(self) -> dict[str, Any]:
        """Return what a checkpoint must share with this training: the model and the loss."""

    def sizes(self, rows: Sequence[Any]) -> tuple[int, int]:
        """Return the tokens of rows, and for how many of them a head computes scores of the vocabulary."""

    def counts(self, batch: Any) -> tuple[int, ...] | None:
        """Return over how many tokens, or rows, each part of a micro-batch's loss is a mean.

        None if the loss is not computed from single tokens. With counts, `gradients` multiplies the parts by
        `PassOptions.weights`.
        """

    def check(self, dataset: Dataset, args: TrainingArguments | None) -> None:
        """Check before a training that rows are complete, and with settings that something can be learned from them.

        This reads a dataset once, apart from the steps: what cannot be learned is refused before the first of them. A
        dataset without a `fingerprint` is read once more for its digest, which goes with the checkpoints.
        """


def labelled_rows(batch: Mapping[str, Any], config: BertConfig) -> int:
    """Return how many rows of a batch count in its loss: all, but for classes that are ignored and answers cut off."""
    shape = np.shape(batch["input_ids"] if "input_ids" in batch else batch["inputs_embeds"])
    if "start_positions" in batch and "end_positions" in batch:
        places = np.array([batch["start_positions"], batch["end_positions"]])
        return int((places < shape[1]).all(axis=0).sum())
    labels = np.asarray(batch.get("labels", ()))
    if labels.ndim == 1 and labels.dtype.kind in "iu" and problem_type(config, labels) != "regression":
        return int((labels != IGNORED).sum())
    return int(shape[0])


class ModelProblem:
    """The loss of one model with a head.

    Parameters
    ----------
    model : Model
        The model to start from.
    collate : function
        From rows to a batch: the arguments of the model by name.
    head : function, optional
        From the network to the training side of its head, for a loss other than the model class's.

    Raises
    ------
    InputError
        The model has no head.
    ConfigError
        Its backward pass is not here, or its weights are int8.
    """

    def __init__(self, model: Model, collate: Collate, head: HeadFactory | None = None) -> None:
        self.start = model
        self.network = Network(model)
        refuse_int8(model)
        self.config, self.backend = model.config, model.backend
        self.batch = collate
        self._trained_from: int | None = None
        self.head = head_of(type(model), self.network) if head is None else head(self.network)
        self.averages_tokens = self.head.scores_vocabulary

    def parameters(self) -> Parameters:
        """Return float32 copies of the parameters."""
        return {name: array.copy() for name, array in self.network.parameters(self.start).items()}

    def freeze(self, frozen: Collection[str]) -> None:
        """Set which parameters are not trained."""
        self._trained_from = self.network.lowest_trained(frozen)

    def gradients(
        self, parameters: Parameters, batch: Any, options: PassOptions, engine: TrainingEngine
    ) -> tuple[float, Mapping[str, Array]]:
        """Return loss and gradients."""
        options = options._replace(trained_from=self._trained_from)
        found = compute(self.network, parameters, batch, options, engine=engine, head=self.head)
        return found.loss, found.gradients

    def model(self, parameters: Parameters) -> Model:
        """Return a model with copies of the parameters."""
        weights = {name: array.copy() for name, array in parameters.items()}
        start = self.start
        return self.network.model_class(
            self.config, weights, backend=self.backend, dtype=start.dtype, instructions=start.instructions
        )

    def write(self, model: Model, output: AtomicFolder) -> None:
        """Write the files of `Model.save_pretrained`."""
        write_files(model, output)

    def description(self) -> dict[str, Any]:
        """Return the class and the configuration."""
        return {"class": self.network.model_class.__name__, "config": self.config.to_dict()}

    def sizes(self, rows: Sequence[Any]) -> tuple[int, int]:
        """Return the tokens of rows, and how many of them have scores of the vocabulary."""
        return row_sizes(rows, scores=self.head.scores_vocabulary)

    def loss_parts(self, output: Any, batch: Any) -> list[tuple[float, int]]:
        """Return the parts of the loss in a model's output, and of how many tokens, or rows, each is the mean."""
        losses: tuple[float, ...] = (float(output.loss),)
        if isinstance(self.head, HeadTraining) and set(self.head.label_names) <= set(batch):
            losses = self.head.losses(output, batch)
        counts = self.counts(batch) or [labelled_rows(batch, self.config)] * len(losses)
        return list(zip(losses, counts, strict=True))

    def counts(self, batch: Any) -> tuple[int, ...] | None:
        """Return over how many tokens, or rows, each part of the head's loss is a mean."""
        if not isinstance(self.head, HeadTraining) or not set(self.head.label_names) <= set(batch):
            return None
        labels = {name: batch[name] for name in self.head.label_names}
        given = batch.get("attention_mask")
        shape = np.shape(batch["input_ids"]) if "input_ids" in batch else np.shape(batch["inputs_embeds"])[:-1]
        mask = np.ones(shape, np.bool_) if given is None else np.asarray(given) != 0
        return self.head.counts(mask, labels)

    def check(self, dataset: Dataset, args: TrainingArguments | None) -> None:
        """Warn if all rows to train on have one label."""
        if args is not None and not self.head.scores_vocabulary:
            warn_of_one_label(dataset)
