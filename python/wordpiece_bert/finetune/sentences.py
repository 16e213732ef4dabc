"""The loss of a sentence encoder over columns of texts, and its gradient."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import numpy as np

from wordpiece_bert._internal.checks import check_instance
from wordpiece_bert._internal.parts import with_vocabulary, write_files
from wordpiece_bert.bert.functional import normalize, pool
from wordpiece_bert.bert.gradients import normalize_backward
from wordpiece_bert.bert.inputs import check_inputs
from wordpiece_bert.bert.poolings import POOLINGS
from wordpiece_bert.errors import ConfigError, InputError
from wordpiece_bert.finetune.batches import label_column
from wordpiece_bert.finetune.learnable import check_sentence_rows, columns_of
from wordpiece_bert.finetune.losses import check_loss
from wordpiece_bert.finetune.network import Gradients, Network, Parameters, refuse_int8
from wordpiece_bert.finetune.tokens import Tokens, lay_out
from wordpiece_bert.sentence.dense.parts import transformer_of
from wordpiece_bert.sentence.dense.sentence_encoder import SentenceEncoder
from wordpiece_bert.sentence.folders.modules import Normalize

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from wordpiece_bert._internal.atomic_folder import AtomicFolder
    from wordpiece_bert.bert.functional import Array, Mask
    from wordpiece_bert.bert.inputs import Inputs
    from wordpiece_bert.finetune.arguments import TrainingArguments
    from wordpiece_bert.finetune.batches import Dataset
    from wordpiece_bert.finetune.engines import TrainingEngine
    from wordpiece_bert.finetune.losses import Loss
    from wordpiece_bert.finetune.passes import PassOptions

#: The prefix of the names of a loss's own parameters, among the encoder's.
LOSS_PREFIX = "loss."


class SentenceProblem:
    """The loss of a sentence encoder over columns of texts.

    Parameters
    ----------
    encoder : SentenceEncoder
        The encoder to start from. After the pooling it may have a normalization, but no dense layers or norms with
        weights.
    loss : Loss
        The loss, whose own parameters are trained in place.

    Raises
    ------
    InputError
        `encoder` or `loss` is of another kind.
    ConfigError
        The encoder has a module whose gradient is not here, or int8 weights.
    """

    averages_tokens = False

    def __init__(self, encoder: SentenceEncoder, loss: Loss) -> None:
        check_instance("encoder", encoder, SentenceEncoder)
        check_loss(loss)
        body = transformer_of(encoder)
        folder = body.folder
        if folder.layers is not None:
            raise ConfigError("an encoder that pools a weighted mean of layers cannot be trained here")
        for mode in folder.pooling.modes:
            if POOLINGS[mode].gradient is None:
                raise ConfigError(f"an encoder with the pooling {mode} cannot be trained here")
        for module in folder.modules:
            if not isinstance(module, Normalize):
                raise ConfigError(f"an encoder with a module {type(module).__name__} cannot be trained here")
        self.start, self._loss = encoder, loss
        self._model = body.model
        refuse_int8(self._model)
        self._network = Network(self._model)
        self._normalizes, self._modes = len(folder.modules), folder.pooling.modes
        self.config, self.backend = self._model.config, self._model.backend
        self._trained_from: int | None = None
        #: The columns of rows in order, where they are known; otherwise the columns of the first row of a batch.
        self.columns: list[str] | None = None

    def parameters(self) -> Parameters:
        """Return copies of the encoder's parameters, and the loss's own ones."""
        copies = {name: array.copy() for name, array in self._network.parameters(self._model).items()}
        return copies | {LOSS_PREFIX + name: array for name, array in self._loss.state_dict().items()}

    def freeze(self, frozen: Collection[str]) -> None:
        """Set which parameters are not trained."""
        self._trained_from = self._network.lowest_trained(frozen)

    def batch(self, rows: Sequence[Any]) -> dict[str, Any]:
        """Return the columns of texts and the labels of rows."""
        known = self.columns if self.columns and set(self.columns) == set(rows[0]) else None
        columns = columns_of(rows, names=known)
        name = label_column(columns)
        labels = None if name is None else columns.pop(name)
        return {"columns": list(columns.values()), "labels": labels}

    def gradients(
        self, parameters: Parameters, batch: Any, options: PassOptions, engine: TrainingEngine
    ) -> tuple[float, Mapping[str, Array]]:
        """Return the loss of a batch, and the gradients of the encoder's and the loss's parameters.

        A batch is ``{"columns": lists of texts of one length, "labels": one for each example, or None}``.
        """
        if "columns" not in batch:
            raise InputError(f"a batch of texts must have columns, a list of texts each, but it has {', '.join(batch)}")
        columns = [list(column) for column in batch["columns"]]
        sizes = {len(column) for column in columns}
        if len(sizes) != 1 or sizes == {0}:
            raise InputError(
                f"columns must be lists of texts of one length above 0, not of {[len(c) for c in columns]}"
            )
        texts = [text for column in columns for text in column]
        inputs, mask = self._inputs(texts)
        tokens = lay_out(inputs, np.zeros(inputs.shape, np.bool_))
        encoder = engine.encode(self._network, parameters, tokens, options._replace(trained_from=self._trained_from))
        vectors = [pool_rows(encoder.x, tokens, mask, self._modes)]  # [rows, D]
        for _ in range(self._normalizes):
            vectors.append(normalize(vectors[-1]))
        found = self._loss.value_and_grad(np.split(vectors[-1], len(columns)), batch.get("labels"))
        gradient = Gradients({LOSS_PREFIX + name: array for name, array in found.gradients.items()})
        dvectors = np.concatenate(found.embeddings)  # [rows, D]
        for x in reversed(vectors[:-1]):
            dvectors = normalize_backward(dvectors, x)
        encoder.backward(pool_rows_backward(dvectors, encoder.x, tokens, self._modes), gradient)
        return found.loss, gradient

    def _inputs(self, texts: list[str]) -> tuple[Inputs, Mask]:
        """Return texts as padded rows of ids, and which places are tokens, [rows, S]."""
        rows = self.start.tokenizer.encode_batch(texts, truncation=True, max_length=self.start.max_seq_length)
        mask = np.arange(rows.lengths.max()) < rows.lengths[:, None]
        ids = np.zeros(mask.shape, np.int64)
        ids[mask] = rows.ids
        return check_inputs(self.config, ids, mask, None, None, None), mask

    def counts(self, batch: Any) -> None:
        """A loss over vectors is not computed from single tokens."""

    def check(self, dataset: Dataset, args: TrainingArguments | None) -> None:
        """Check that rows are complete, and that the loss can learn from them."""
        check_sentence_rows(dataset, self._loss, args)

    def model(self, parameters: Parameters) -> SentenceEncoder:
        """Return an encoder with copies of the parameters."""
        model = self._model
        weights = {name: array.copy() for name, array in parameters.items() if not name.startswith(LOSS_PREFIX)}
        trained = type(model)(
            model.config, weights, backend=model.backend, dtype=model.dtype, instructions=model.instructions
        )
        return with_vocabulary(self.start, lambda _: trained, lambda tokenizer: tokenizer)

    def write(self, model: SentenceEncoder, output: AtomicFolder) -> None:
        """Write the files of `SentenceEncoder.save_pretrained`."""
        write_files(model, output)

    def description(self) -> dict[str, Any]:
        """Return the configuration, the loss, and what makes vectors of a text."""
        return {
            "class": "SentenceEncoder",
            "config": self.config.to_dict(),
            "loss": _settings(self._loss),
            "pooling": list(self._modes),
            "normalizations": self._normalizes,
            "max_seq_length": self.start.max_seq_length,
        }

    def sizes(self, rows: Sequence[Any]) -> tuple[int, int]:
        """Return the tokens of rows; none has scores of the vocabulary."""
        encoder = self.start
        texts = [text for column in self.batch(rows)["columns"] for text in column]
        return len(encoder.tokenizer.encode_batch(texts, truncation=True, max_length=encoder.max_seq_length).ids), 0


def _settings(loss: Loss) -> dict[str, Any]:
    """Return the class of a loss and the arguments that it was made with, as far as it keeps them and JSON can."""
    found: dict[str, Any] = {"class": type(loss).__name__}
    arguments = inspect.signature(type(loss)).parameters
    for name, value in getattr(loss, "__dict__", {}).items():
        if name not in arguments:
            continue
        listed = list(value) if isinstance(value, list | tuple) else [value]
        if hasattr(value, "value_and_grad"):  # the loss in a MatryoshkaLoss
            found[name] = _settings(value)
        elif all(isinstance(one, int | float | str | None) for one in listed):
            found[name] = listed if isinstance(value, tuple) else value
    return found


def pool_rows(x: Array, tokens: Tokens, mask: Mask, modes: Sequence[str]) -> Array:
    """[M, H] -> [B, modes · H], as `functional.pool`."""
    padded = tokens.padded(x)  # [B, S, H]
    return np.concatenate([pool(padded, mask, mode) for mode in modes], axis=1)


def pool_rows_backward(dy: Array, x: Array, tokens: Tokens, modes: Sequence[str]) -> Array:
    """Gradients of `pool_rows`: [B, modes · H] -> [M, H]. The visible tokens of a row come first and in order."""
    dx = np.zeros_like(x)
    for mode, part in zip(modes, np.split(dy, len(modes), axis=1), strict=True):
        gradient = POOLINGS[mode].gradient
        assert gradient is not None
        for row, drow in enumerate(part):
            keys = tokens.keys(row)
            # Counted from the first visible place, over masked ones too.
            positions = tokens.columns[keys] - tokens.columns[keys.start] + 1
            dx[keys] += gradient(drow, x[keys], positions)
    return dx
