"""The NumPy engine: the steps of a model's plan, over padded rows and the weights of a checkpoint.

Weights are used as they are. Threads are
started by the BLAS library that NumPy was built with, so the argument `threads` of a call has no effect.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from wordpiece_bert.bert import functional
from wordpiece_bert.bert.disentangled import convolution, disentangled_attention, disentangled_scores
from wordpiece_bert.bert.engines.vocabulary_heads import NumpyVocabularyHead
from wordpiece_bert.bert.inputs import Inputs
from wordpiece_bert.bert.plan.interpreter import Interpreter
from wordpiece_bert.bert.plan.parts import Distances, Slopes
from wordpiece_bert.bert.rotary import frequencies, rotate, rotation
from wordpiece_bert.bert.stored_tensor import loaded_all

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from wordpiece_bert.bert.config import BertConfig
    from wordpiece_bert.bert.engines.engine_interface import Calibration, HeadLayers
    from wordpiece_bert.bert.functional import Array, Ids, Mask, RelativeTerms
    from wordpiece_bert.bert.plan.parts import Attention, Convolution
    from wordpiece_bert.bert.rotary import Rotary, Rotation


class NumpyEncoder:
    """The weights of one model and the forward pass over them, in NumPy."""

    #: Rows are padded to the longest of a batch.
    takes_rows = False

    def __init__(self, config: BertConfig, weights: Mapping[str, Array]) -> None:
        #: The weights, in the layout of the checkpoint.
        self.weights = loaded_all(weights)
        self._config, self._plan = config, config.plan()
        # What depends on the weights alone, or on them and the length of a row: the relative positions of a layer, by
        # its number, and the bias of the scores for the last length. Threads may write it at once: equal keys give
        # equal arrays.
        self._terms: dict[int, RelativeTerms] = {}
        self._biases: dict[int, Array] = {}

    def forward(
        self,
        inputs: Inputs,
        *,
        hidden_states: bool,
        attentions: bool,
        visible_only: bool = False,
        threads: int | None = None,
    ) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
        """Run embeddings and all layers, as `Encoder.forward`; masked positions are computed in any case."""
        del visible_only, threads
        return self.run_layers(inputs, self.embedded(inputs), hidden_states=hidden_states, attentions=attentions)

    def embedded(self, inputs: Inputs) -> Array:
        """Return the input of the first layer, [B, S, H]."""
        with np.errstate(under="ignore"):
            return self._interpreter(inputs).embed().y.now

    def run_layers(
        self,
        inputs: Inputs,
        x: Array,
        first: int = 0,
        last: int | None = None,
        *,
        hidden_states: bool = False,
        attentions: bool = False,
        replaced: Mapping[str, Array] | None = None,
    ) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
        """Run the layers from number `first` on, to the norm after the last or up to layer `last`.

        Parameters
        ----------
        inputs
            The rows; their ids or word vectors are not read.
        x
            The input of that layer, [B, S, H].
        first
            The number of the layer.
        last
            The number of the first layer that is not run; by default all are, and the norm after them.
        hidden_states
            Whether to return the input of each of these layers too, and of the norm after them.
        attentions
            Whether to return the attention weights.
        replaced
            Weights by their names, in place of the model's own.

        Returns
        -------
        tuple of ndarray
            As `Encoder.forward`: hidden states, of which the last is the output, and attention weights.
        """
        interpreter = self._interpreter(inputs, attentions=attentions, replaced=replaced)
        end = len(self._plan.layers)
        states: list[Array] = []
        weights: list[Array] = []
        # The weight of a masked key underflows to the 0 that it should be, whatever np.seterr has been set to.
        with np.errstate(under="ignore"):
            for index in range(first, end if last is None else last):
                if hidden_states:
                    states.append(x)
                x = interpreter.layer(index, x).y.now  # [B, S, H]
                if attentions:
                    assert interpreter.attention_weights is not None, "wanted"
                    weights.append(interpreter.attention_weights)  # [B, N, S, S]
            if self._plan.last is not None and last in (None, end):
                if hidden_states:
                    states.append(x)
                x = interpreter.last(x).y.now
        return (*states, x), tuple(weights)

    def _interpreter(
        self, inputs: Inputs, *, attentions: bool = False, replaced: Mapping[str, Array] | None = None
    ) -> Interpreter:
        weights = self.weights if replaced is None else {**self.weights, **replaced}
        rows = _PaddedRows(inputs, self._biases, attentions=attentions)
        return Interpreter(self._plan, _StoredWeights(weights), rows, terms=self._terms)

    def pooler(self, x: Array) -> Array | None:
        """[B, S, H] -> [B, H], as `functional.pooler`; None for a model without one."""
        weight, bias = (self.weights.get(f"pooler.dense.{name}") for name in ("weight", "bias"))
        if weight is None or bias is None:
            return None
        with np.errstate(under="ignore"):
            return functional.pooler(x, {"weight": weight, "bias": bias})

    def pooled(self, ids: Ids, ends: Ids, modes: Sequence[str], skip: int, threads: int | None) -> Array:
        """Pad the rows, run all layers and pool each row, as `Encoder.pooled`."""
        x, mask = self._padded_states(ids, ends, np.diff(ends), threads)  # [B, S, H], [B, S]
        return np.concatenate([functional.pool(x, mask, mode, skip) for mode in modes], axis=1)

    def token_states(self, ids: Ids, ends: Ids, keys: Ids, threads: int | None) -> Array:
        """Pad the rows, run all layers and join the vectors of the tokens, as `Encoder.token_states`."""
        x, mask = self._padded_states(ids, ends, keys, threads)  # [B, S, H], [B, S]
        return x[mask]

    def _padded_states(self, ids: Ids, ends: Ids, keys: Ids, threads: int | None) -> tuple[Array, Mask]:
        """Pad the rows and run all layers: the last hidden state [B, S, H], and which of it are tokens [B, S]."""
        lengths = np.diff(ends)  # [B]
        columns = np.arange(lengths.max())  # [S]
        mask = columns < lengths[:, None]  # [B, S]
        visible = columns < keys[:, None]  # [B, S]
        padded = np.zeros(mask.shape, np.int64)  # [B, S]
        padded[mask] = ids
        inputs = Inputs(
            shape=mask.shape,
            input_ids=padded,
            inputs_embeds=None,
            token_type_ids=np.zeros((1, mask.shape[1]), np.int64),
            position_ids=self._config.default_positions(padded, mask.shape[1]),
            mask=None if visible.all() else visible,
        )
        (x,), _ = self.forward(inputs, hidden_states=False, attentions=False, threads=threads)  # [B, S, H]
        return x, mask


class _StoredWeights:
    """Weights as a model has them."""

    def __init__(self, weights: Mapping[str, Array]) -> None:
        self._weights = weights

    def get(self, name: str) -> Array | None:
        """Return a weight; None if there is none of this name."""
        return self._weights.get(name)

    def rows(self, name: str, ids: Ids) -> Array:
        """Return rows of a table."""
        rows: Array = self._weights[f"{name}.weight"][ids]
        return rows

    def add(self, name: str, weight: Array, bias: Array | None = None) -> None:
        """Fail: inference has no gradients."""
        raise AssertionError("inference asks for no gradients")


class _PaddedRows:
    """The tokens of a padded batch, [B, S]."""

    def __init__(self, inputs: Inputs, biases: dict[int, Array], *, attentions: bool) -> None:
        self._inputs, self._biases, self._attentions = inputs, biases, attentions
        self._rotations: dict[Rotary, Rotation] = {}
        self.vectors: Array | None = inputs.inputs_embeds
        self.seen: Mask | None = None if inputs.mask is None else inputs.mask[:, :, None]

    def column(self, reads: str) -> Ids:
        """Return the rows of the tables that tokens read, [B, S] or [1, S]."""
        inputs = self._inputs
        tasks = np.zeros((1, 1), np.int64) if inputs.task_type_ids is None else inputs.task_type_ids
        columns: dict[str, Any] = {
            "ids": inputs.input_ids,
            "types": inputs.token_type_ids,
            "positions": inputs.position_ids,
            "tasks": tasks,
        }
        found: Ids = columns[reads]
        return found

    def heads(self, part: Attention, q: Array, k: Array, v: Array) -> tuple[Array, Array, Array]:
        """Return queries, keys and values by head, rotated, [B, S, N·d] -> [B, N, S, d]."""
        q, k, v = (functional.split_heads(x, part.heads) for x in (q, k, v))
        if part.rotary is None:
            return q, k, v
        if part.rotary not in self._rotations:
            self._rotations[part.rotary] = rotation(self._inputs.position_ids, frequencies(*part.rotary))
        by = self._rotations[part.rotary]
        return rotate(q, by), rotate(k, by), v

    def attend(
        self, part: Attention, layer: int, q: Array, k: Array, v: Array, terms: RelativeTerms | None, bias: Array | None
    ) -> tuple[Array, Array | None]:
        """Return the context of all heads, [B, S, N·d], and the attention weights if they are wanted."""
        del layer
        q, k, v = self.heads(part, q, k, v)
        mask = self._inputs.mask
        if part.masked_sees_all:
            context, p = disentangled_attention(q, k, v, mask, terms, part)
        else:
            added = self._bias(part, bias)
            context, p = functional.attention(q, k, v, mask, added, part.window, not self._attentions)
        return context, p if self._attentions else None

    def _bias(self, part: Attention, table: Array | None) -> Array | None:
        """Return what is added to the scores of all pairs of places, [1, N, S, S]; None where nothing is."""
        if part.bias is None:
            return None
        length = self._inputs.shape[1]
        if length not in self._biases:
            self._biases.clear()
            self._biases[length] = position_bias(part, length, table)
        return self._biases[length]

    def convolve(self, part: Convolution, x: Array, weight: Array, bias: Array) -> Array:
        """Return the convolution over the tokens of each row, 0 for masked tokens, [B, S, H]."""
        return convolution(x, self._inputs.mask, weight, bias, part.groups)

    def dropped(self, rate: str, site: str, y: Array) -> Array:
        """Return the vectors: inference has no dropout."""
        del rate, site
        return y

    dropped_rows = dropped


def position_bias(part: Attention, length: int, table: Array | None) -> Array:
    """Return what a bias adds to the scores of all pairs of places, [1, N, S, S]; `table` belongs to `Distances`."""
    if isinstance(part.bias, Distances):
        assert table is not None, "given with the part"
        return functional.relative_position_bias(length, table)
    assert isinstance(part.bias, Slopes), "the only other kind"
    return functional.linear_bias(length, np.array(part.bias.slopes, np.float32))


def layer_heads(
    layer: int, x: Array, weights: Mapping[str, Array], config: BertConfig, position_ids: Ids
) -> tuple[Array, Array, Array]:
    """Return the queries, keys and values of each head of one layer: x [B, S, H] -> q, k, v [B, N, S, d].

    The scores of the layer are q·kᵀ/√d, and in MPNet and Jina-BERT a bias; in DeBERTa they are `disentangled_scores`.

    Parameters
    ----------
    layer : int
        The number of the layer.
    x : ndarray
        The input of the layer, [B, S, H].
    weights : mapping of str to ndarray
        The weights of the layer, by BERT's names.
    config : BertConfig
        The configuration of the model.
    position_ids : ndarray of int
        [B, S] or [1, S].
    """
    rows = _PaddedRows(_rows_of(x.shape[0], x.shape[1], position_ids), {}, attentions=False)
    interpreter, plan = Interpreter(config.plan(), _StoredWeights(weights), rows), config.plan()
    before = interpreter.norm(plan.attending(layer).before, x)
    attention = plan.attention(layer)
    q, k, v = (step.y.now for step in interpreter.projected(attention, before.y))
    return rows.heads(attention, q, k, v)


def added_scores(layer: int, q: Array, k: Array, weights: Mapping[str, Array], config: BertConfig) -> Array | None:
    """Return what the scores of a layer are more than q·kᵀ/√d, [N or 1, S, S]; None for nothing.

    q and k are as `layer_heads` returns them, [N, S, d] each; `weights` as there. Keys beyond a window have −∞.
    """
    part, length = config.plan().attention(layer), q.shape[1]
    if part.masked_sees_all:
        rows = _PaddedRows(_rows_of(1, length, np.zeros((1, length), np.int64)), {}, attentions=False)
        terms, _ = Interpreter(config.plan(), _StoredWeights(weights), rows).terms(part.relative, layer)
        scores: Array = disentangled_scores(q[None], k[None], terms, part)[0]
        return scores - q @ k.swapaxes(-1, -2) / np.float32(np.sqrt(q.shape[-1]))
    if part.bias is not None:
        name = f"{part.bias.table.name}.weight" if isinstance(part.bias, Distances) else ""
        bias: Array = position_bias(part, length, _StoredWeights(weights).get(name))[0]
        return bias
    if part.window is None or part.window >= length - 1:
        return None
    near = functional.visible_keys(length, None, part.window)  # [1, 1, S, S]
    assert near is not None, "there is a window"
    return np.where(near[0], np.float32(0), np.float32(-np.inf))


def _rows_of(batch: int, length: int, position_ids: Ids) -> Inputs:
    """Return rows of which only the positions are read."""
    types = np.zeros((1, length), np.int64)
    return Inputs((batch, length), None, None, types, position_ids, None)


class NumpyDense:
    """`functional.linear` over the weights of a checkpoint."""

    def __init__(self, weight: Array, bias: Array) -> None:
        self._weight, self._bias = weight, bias

    def __call__(self, x: Array) -> Array:
        """[..., in] -> [..., out]."""
        return functional.linear(x, self._weight, self._bias)


class NumpyEngine:
    """NumPy in float32."""

    def prepare(
        self, config: BertConfig, weights: Mapping[str, Array], calibration: Calibration | None = None
    ) -> NumpyEncoder:
        """Return an encoder over these weights; arrays are not copied."""
        del calibration
        return NumpyEncoder(config, weights)

    def dense(self, weight: Array, bias: Array) -> NumpyDense:
        """Return a dense layer over these weights, which are not copied."""
        return NumpyDense(weight, bias)

    def decoder(self, weight: Array, bias: Array) -> NumpyDense:
        """Return a dense layer over these weights, which are not copied."""
        return NumpyDense(weight, bias)

    def vocabulary_head(self, layers: HeadLayers) -> NumpyVocabularyHead:
        """Return a masked-language head that pools its logits."""
        return NumpyVocabularyHead(layers)

    def linear(self, x: Array, weight: Array, bias: Array) -> Array:
        """x·Wᵀ + b, as `functional.linear`."""
        return functional.linear(x, weight, bias)
