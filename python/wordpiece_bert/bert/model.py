"""BERT: embeddings, a stack of encoder layers, a pooler.

Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers for Language Understanding" (2019). The formulas
are in `functional.py`, the engines that compute them in `backend.py`.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from wordpiece_bert.bert.backend import get_backend
from wordpiece_bert.bert.checkpoint import find_weights, listed, read_tensors, resolve
from wordpiece_bert.bert.config import BertConfig
from wordpiece_bert.bert.inputs import check_inputs
from wordpiece_bert.errors import CheckpointWarning
from wordpiece_bert.hub import find_model

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    import numpy.typing as npt

    from wordpiece_bert.bert.functional import Array, Mask, PoolingMode

__all__ = ["BertModel", "BertOutput"]


@dataclass(frozen=True, eq=False)
class BertOutput:
    """What a forward pass gives; all arrays float32. B sequences, S tokens, H hidden size, N heads, L layers.

    At padding places (where the mask is 0) the vectors are those of a query that attends to the visible tokens: finite,
    and of no meaning.
    """

    #: x_L, the output of the last layer, [B, S, H].
    last_hidden_state: Array
    #: tanh of a dense layer over the first token, [B, H]; None if the checkpoint has no pooler.
    pooler_output: Array | None = None
    #: x_0 (the embeddings) to x_L, L + 1 arrays [B, S, H]; None if not asked for.
    hidden_states: tuple[Array, ...] | None = None
    #: The weights after the softmax, L arrays [B, N, S, S], query by key; None if not asked for.
    attentions: tuple[Array, ...] | None = None


class BertModel:
    """The BERT encoder.

    It never changes after it is made, and may be shared by threads.

    Parameters
    ----------
    config
        Sizes and settings.
    weights
        Arrays by their names in a checkpoint, such as ``"encoder.layer.0.attention.self.query.weight"``; both forms of
        prefix are understood. Not copied if float32.
    backend
        The engine: ``"numpy"``.
    dtype
        What it computes in: ``"float32"``.

    Attributes
    ----------
    config : BertConfig
    backend : str
    dtype : str
    source : str
        Where the weights came from.
    has_pooler : bool
        Whether the weights have a pooler.

    Raises
    ------
    CheckpointError
        A weight is missing or has another shape than the configuration says.
    """

    config: BertConfig
    backend: str
    dtype: str
    source: str
    has_pooler: bool

    def __init__(
        self,
        config: BertConfig,
        weights: Mapping[str, npt.NDArray[np.generic]],
        *,
        backend: str = "numpy",
        dtype: str = "float32",
        source: str = "weights",
    ) -> None:
        engine = get_backend(backend, dtype)
        resolved = resolve(weights, config, source)
        if resolved.unused:
            message = f"{source}: {len(resolved.unused)} tensors are not used: {listed(resolved.unused)}"
            warnings.warn(message, CheckpointWarning, stacklevel=2)
        self.config = config
        self.backend = backend
        self.dtype = dtype
        self.source = source
        self.has_pooler = "pooler.dense.weight" in resolved.weights
        self._encoder = engine.prepare(config, resolved.weights)

    @classmethod
    def from_pretrained(
        cls,
        name: str | os.PathLike[str],
        backend: str = "numpy",
        dtype: str = "float32",
        *,
        revision: str | None = None,
    ) -> BertModel:
        """Load a model from this machine; nothing is ever downloaded, and no code of the model's is run.

        Parameters
        ----------
        name
            ``"minilm"``, a folder with ``config.json`` and ``model.safetensors``, or ``"org/name"`` in the local
            Hugging Face cache. A model with a head gives its encoder.
        backend, dtype
            As for the class.
        revision
            Of a model in the Hugging Face cache.

        Raises
        ------
        ModelNotFoundError
            It is not on this machine; the message says what to run.
        ConfigError
            Its configuration is broken, or asks for what is not computed here.
        CheckpointError
            Its weights are broken, in another format, or do not fit the configuration.
        """
        get_backend(backend, dtype)  # a wrong option is told before a hundred megabytes are read
        folder = find_model(name, revision=revision)
        config = BertConfig.from_folder(folder)
        file = find_weights(folder)
        return cls(config, read_tensors(file), backend=backend, dtype=dtype, source=str(file))

    def __call__(
        self,
        input_ids: npt.ArrayLike | None = None,
        attention_mask: npt.ArrayLike | None = None,
        token_type_ids: npt.ArrayLike | None = None,
        position_ids: npt.ArrayLike | None = None,
        inputs_embeds: npt.ArrayLike | None = None,
        *,
        output_hidden_states: bool = False,
        output_attentions: bool = False,
    ) -> BertOutput:
        """Run the encoder.

        Parameters
        ----------
        input_ids
            Token ids, integers [B, S].
        attention_mask
            [B, S]; where it is not 0 a token is visible. All are by default. Every row needs a visible token.
        token_type_ids
            0 for the first segment, 1 for the second, [B, S]; 0 by default.
        position_ids
            [B, S] or [1, S]; 0 to S − 1 by default, also where a row is padded on the left.
        inputs_embeds
            Word vectors in place of `input_ids`, floats [B, S, H].
        output_hidden_states, output_attentions
            Whether to keep the output of each layer, and its attention weights.

        Returns
        -------
        BertOutput
            An empty batch (B = 0) gives empty arrays.

        Raises
        ------
        InputError
            An array has the wrong shape or dtype, an id is outside its table, or a row is longer than
            `max_position_embeddings`; the message has the value and its place.
        """
        inputs = check_inputs(self.config, input_ids, attention_mask, token_type_ids, position_ids, inputs_embeds)
        if inputs.shape[0] == 0:
            return self._nothing(
                inputs.shape[1], output_hidden_states=output_hidden_states, output_attentions=output_attentions
            )
        # A masked key's weight underflows to the 0 that it should be, whatever the caller has told np.seterr.
        with np.errstate(under="ignore"):
            x = self._encoder.embeddings(
                inputs.input_ids, inputs.token_type_ids, inputs.position_ids, inputs.inputs_embeds
            )  # [B, S, H]
            hidden_states, attentions = [x], []
            for index in range(self.config.num_hidden_layers):
                x, p = self._encoder.encoder_layer(x, index, inputs.mask)  # [B, S, H], [B, N, S, S]
                if output_hidden_states:
                    hidden_states.append(x)
                if output_attentions:
                    attentions.append(p)
            return BertOutput(
                last_hidden_state=x,
                pooler_output=self._encoder.pooler(x),
                hidden_states=tuple(hidden_states) if output_hidden_states else None,
                attentions=tuple(attentions) if output_attentions else None,
            )

    def pool(self, x: Array, mask: Mask, mode: PoolingMode, skip: int = 0) -> Array:
        """Pool token vectors [B, S, H] to one vector a row, [B, H], as `functional.pool`."""
        return self._encoder.pool(x, mask, mode, skip)

    def __repr__(self) -> str:
        c = self.config
        return (
            f"BertModel({c.num_hidden_layers} layers, hidden size {c.hidden_size}, {c.num_attention_heads} heads, "
            f"vocabulary {c.vocab_size}, {self.backend} {self.dtype}, from {self.source})"
        )

    def _nothing(self, length: int, *, output_hidden_states: bool, output_attentions: bool) -> BertOutput:
        """Return the output for a batch of no rows."""
        c = self.config
        x = np.zeros((0, length, c.hidden_size), np.float32)
        p = np.zeros((0, c.num_attention_heads, length, length), np.float32)
        return BertOutput(
            last_hidden_state=x,
            pooler_output=np.zeros((0, c.hidden_size), np.float32) if self.has_pooler else None,
            hidden_states=(x,) * (c.num_hidden_layers + 1) if output_hidden_states else None,
            attentions=(p,) * c.num_hidden_layers if output_attentions else None,
        )
