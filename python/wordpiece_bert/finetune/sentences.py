"""The loss of a sentence encoder over columns of texts, and its gradient."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from wordpiece_bert.bert.functional import normalize, pool
from wordpiece_bert.bert.gradients import normalize_backward
from wordpiece_bert.bert.inputs import check_inputs
from wordpiece_bert.errors import ConfigError, InputError
from wordpiece_bert.finetune.engines import NumpyTraining
from wordpiece_bert.finetune.network import Gradients, Network, Parameters
from wordpiece_bert.finetune.tokens import Tokens, lay_out
from wordpiece_bert.sentence.folder import Normalize

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from wordpiece_bert.bert.functional import Array, Mask, PoolingMode
    from wordpiece_bert.finetune.dropout import Dropout
    from wordpiece_bert.finetune.engines import TrainingEngine
    from wordpiece_bert.finetune.losses import Loss
    from wordpiece_bert.sentence.encoder import SentenceEncoder

__all__ = ["LOSS_PREFIX", "SentenceNetwork"]

#: The prefix of the names of a loss's own parameters, among those of the encoder.
LOSS_PREFIX = "loss."


class SentenceNetwork:
    """What training knows of a sentence encoder besides the numbers of its parameters.

    Parameters
    ----------
    encoder
        The encoder. After the pooling it may have a normalization, but no dense layers or norms with weights.

    Raises
    ------
    ConfigError
        The encoder has a module whose gradient is not here.
    """

    def __init__(self, encoder: SentenceEncoder) -> None:
        folder = encoder._folder
        if folder.layers is not None:
            raise ConfigError("an encoder that pools a weighted mean of layers cannot be trained here")
        self._normalizes = 0
        for module in folder.modules:
            if not isinstance(module, Normalize):
                raise ConfigError(f"an encoder with a module {type(module).__name__} cannot be trained here")
            self._normalizes += 1
        self.encoder = encoder
        self.network = Network(encoder._model)
        self._modes = folder.pooling.modes

    def parameters(self) -> Parameters:
        """Return the parameters of the encoder's model, read-only."""
        return self.network.parameters(self.encoder._model)

    def compute(
        self,
        parameters: Parameters,
        columns: Sequence[Sequence[str]],
        labels: npt.ArrayLike | None,
        loss: Loss,
        dropout: Dropout | None = None,
        *,
        gradient_checkpointing: bool = False,
        trained_from: int | None = None,
        engine: TrainingEngine | None = None,
    ) -> tuple[float, Gradients]:
        """Return the loss of a batch, and the gradients of the encoder's and the loss's parameters.

        Parameters
        ----------
        parameters
            The parameters of the model.
        columns
            Lists of texts of one length, one for each column.
        labels
            One for each example; None for losses without labels.
        loss
            The loss over the vectors.
        dropout, gradient_checkpointing, trained_from
            As for `EncoderPass`.
        engine
            What computes the encoder; by default NumPy.
        """
        columns = [list(column) for column in columns]
        sizes = {len(column) for column in columns}
        if len(sizes) != 1 or sizes == {0}:
            raise InputError(
                f"columns must be lists of texts of one length above 0, not of {[len(c) for c in columns]}"
            )
        (batch,) = sizes
        texts = [text for column in columns for text in column]
        inputs = self.encoder.tokenizer(texts, truncation=True, max_length=self.encoder.max_seq_length, padding=True)
        checked = check_inputs(
            self.network.config, inputs["input_ids"], inputs["attention_mask"], inputs["token_type_ids"], None, None
        )
        tokens = lay_out(checked, np.zeros(checked.shape, np.bool_))
        encoder = (engine or NumpyTraining()).encode(
            self.network,
            parameters,
            tokens,
            dropout,
            gradient_checkpointing=gradient_checkpointing,
            trained_from=trained_from,
        )
        mask = np.asarray(inputs["attention_mask"]) != 0  # [rows, S]
        vectors = [_pool(encoder.x, tokens, mask, self._modes)]  # [rows, D]
        for _ in range(self._normalizes):
            vectors.append(normalize(vectors[-1]))
        found = loss.value_and_grad([vectors[-1][k * batch : (k + 1) * batch] for k in range(len(columns))], labels)
        gradient = Gradients({LOSS_PREFIX + name: array for name, array in found.gradients.items()})
        dvectors = np.concatenate(found.embeddings)  # [rows, D]
        for x in reversed(vectors[:-1]):
            dvectors = normalize_backward(dvectors, x)
        encoder.backward(_pool_backward(dvectors, encoder.x, tokens, self._modes), gradient)
        return found.loss, gradient


def _pool(x: Array, tokens: Tokens, mask: Mask, modes: Sequence[PoolingMode]) -> Array:
    """[M, H] -> [B, modes · H], as `functional.pool`."""
    padded = tokens.padded(x)  # [B, S, H]
    return np.concatenate([pool(padded, mask, mode) for mode in modes], axis=1)


def _pool_backward(dy: Array, x: Array, tokens: Tokens, modes: Sequence[PoolingMode]) -> Array:
    """Gradients of `_pool`: [B, modes · H] -> [M, H].

    The visible tokens of a row come first and in order. The mean gives dy/n to each of n tokens, the weighted mean
    i·dy/Σi to the i-th; the first or last token gets dy, and the maximum gives each dimension to its largest token.
    """
    dx = np.zeros_like(x)
    for mode, part in zip(modes, np.split(dy, len(modes), axis=1), strict=True):
        for row, drow in enumerate(part):
            keys = tokens.keys(row)
            n = keys.stop - keys.start
            if mode == "cls":
                dx[keys.start] += drow
            elif mode == "lasttoken":
                dx[keys.stop - 1] += drow
            elif mode == "max":
                dx[keys.start + x[keys].argmax(axis=0), np.arange(x.shape[1])] += drow
            else:
                weights = np.ones(n, x.dtype)
                if mode == "weightedmean":  # counted from the first visible place, over masked ones too
                    weights = (tokens.columns[keys] - tokens.columns[keys.start] + 1).astype(x.dtype)
                divisor = np.sqrt(weights.sum()) if mode == "mean_sqrt_len_tokens" else weights.sum()
                dx[keys] += (weights / divisor)[:, None] * drow
    return dx
