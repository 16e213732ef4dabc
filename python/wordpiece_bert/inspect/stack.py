"""The layers of an encoder one by one, of every family: in NumPy and float32, from any layer on, with changed heads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from wordpiece_bert.bert.base_model import read
from wordpiece_bert.bert.engines.numpy import NumpyEncoder, layer_heads
from wordpiece_bert.bert.half_precision import widen
from wordpiece_bert.bert.inputs import check_inputs
from wordpiece_bert.bert.outputs import BertOutput
from wordpiece_bert.bert.parts import name_in_checkpoint, weights_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from wordpiece_bert.bert.functional import Array, Ids
    from wordpiece_bert.bert.inputs import Inputs
    from wordpiece_bert.bert.model import BertModel
    from wordpiece_bert.tokenizer.subword import AnyEncoding

#: Tokens that go through the layers at once: 50 MB of activations for BERT-base.
TOKENS = 2048


class Stack:
    """The layers of an encoder.

    L layers, n rows of S tokens without padding, H hidden size. x_0 is the output of the embeddings, and x_L the
    output of the encoder, after its last norm.

    Parameters
    ----------
    encoder : BertModel
        The encoder; weights of any dtype and engine are used in float32.

    Attributes
    ----------
    layers : int
        L.
    heads : int
        The number of heads of a layer.
    """

    def __init__(self, encoder: BertModel) -> None:
        self._config = encoder.config
        self._plan = encoder.config.plan()
        stored = weights_of(encoder)
        named = {name: name_in_checkpoint(type(encoder), name, encoder.config) for name in self._plan.shapes()}
        # A weight with several names, as layers that share theirs have, is read once.
        arrays = {own: widen(read(stored[own])) for own in set(named.values()) if own in stored}
        self._encoder = NumpyEncoder(
            encoder.config, {name: arrays[own] for name, own in named.items() if own in arrays}
        )
        self.layers = len(self._plan.layers)
        self.heads = encoder.config.num_attention_heads

    @property
    def words(self) -> Array:
        """The table of word vectors, [V, E]."""
        table: Array = self._encoder.weights["embeddings.word_embeddings.weight"]
        return table

    def inputs(self, ids: Ids | None, types: Sequence[int], vectors: Array | None = None) -> Inputs:
        """Return rows [n, S] of ids, or of word vectors [n, S, E], as the model takes them."""
        rows = len(ids if ids is not None else vectors if vectors is not None else ())
        kinds: Ids = np.repeat(np.array(types, np.int64)[None], rows, axis=0)
        return check_inputs(self._config, ids, None, kinds, None, vectors)

    def row(self, encoding: AnyEncoding) -> Inputs:
        """Return an encoded text [1, S] as the model takes it."""
        return self.inputs(np.array([encoding.ids]), encoding.token_type_ids)

    def states(self, inputs: Inputs) -> Array:
        """Return x_0 to x_L of rows, [L + 1, n, S, H]."""
        found: list[Array] = [self._encoder.embedded(inputs)]
        for layer in range(self.layers):
            found.append(self.step(inputs, found[-1], layer))
        return np.stack(found)

    def output(
        self,
        inputs: Inputs,
        x: Array | None = None,
        layer: int = 0,
        replaced: Mapping[str, Array] | None = None,
    ) -> Array:
        """Return x_L of rows, [n, S, H]; from x_layer, [n, S, H], if it is given, and with changed weights."""
        if x is None:
            x = self._encoder.embedded(inputs)
        return self._run(inputs, x, layer, replaced, last=self.layers)

    def step(self, inputs: Inputs, x: Array, layer: int, replaced: Mapping[str, Array] | None = None) -> Array:
        """Return x_layer+1 for x_layer, [n, S, H]; the output of the last layer is after the last norm."""
        return self._run(inputs, x, layer, replaced, last=layer + 1)

    def contexts(self, inputs: Inputs, x: Array, layer: int) -> dict[int, Array]:
        """Return what each head of a layer gives for the input x_layer of one text [1, S, H]: [S, d] by head.

        It is the weighted sum of the values, before the output layer.
        """
        weights = self._encoder.run_layers(inputs, x, layer, layer + 1, attentions=True)[1][0]  # [1, N, S, S]
        with np.errstate(under="ignore"):
            _, _, values = layer_heads(
                layer, x, self._encoder.weights, self._config, inputs.position_ids
            )  # [1, N, S, d]
            return dict(enumerate(weights[0] @ values[0]))

    def bert_output(self, x: Array) -> BertOutput:
        """Return x_L [n, S, H] as an output of the encoder, which heads take."""
        return BertOutput(last_hidden_state=x, pooler_output=self._encoder.pooler(x))

    def with_heads(
        self, layer: int, heads: Sequence[int], contexts: Mapping[int, Array] | None = None
    ) -> dict[str, Array]:
        """Return a layer with some heads switched off, or with what they would give elsewhere.

        Parameters
        ----------
        layer : int
            The number of the layer.
        heads : sequence of int
            The heads whose columns of the output layer are 0.
        contexts : mapping of int to ndarray, optional
            For heads among them, what they give instead at each position, [S, d], before the output layer. The layer
            then takes one row.

        Returns
        -------
        dict
            The changed weights, by their names.
        """
        output = self._plan.attention(layer).output.name
        weight, bias = (
            None if (stored := self._encoder.weights.get(f"{output}.{name}")) is None else widen(stored)
            for name in ("weight", "bias")
        )
        assert weight is not None, "a checkpoint without it was refused"
        changed = {f"{output}.weight": weight.copy()}  # [H, N·d]
        columns = changed[f"{output}.weight"].reshape(len(weight), self.heads, -1)
        if contexts:
            # A constant for each position joins the bias, which is added to the rows of one text.
            parts = [context @ columns[:, head].T for head, context in contexts.items()]  # [S, H]
            given: Array = sum(parts[1:], parts[0])
            changed[f"{output}.bias"] = given if bias is None else given + bias
        columns[:, list(heads)] = 0
        return changed

    def _run(self, inputs: Inputs, x: Array, first: int, replaced: Mapping[str, Array] | None, last: int) -> Array:
        """Return x_last for x_first, a few rows at a time."""
        if first >= last:
            return x
        at_once = max(1, TOKENS // max(1, x.shape[1]))
        found = []
        for start in range(0, len(x), at_once):
            rows = slice(start, start + at_once)
            states, _ = self._encoder.run_layers(_rows(inputs, rows), x[rows], first, last, replaced=replaced)
            found.append(states[-1])
        return np.concatenate(found) if found else x


def _rows(inputs: Inputs, rows: slice) -> Inputs:
    """Return some rows of inputs."""
    count = len(range(*rows.indices(inputs.shape[0])))

    def part(array: Any) -> Any:
        return array if array is None or len(array) == 1 else array[rows]

    ids, vectors = inputs.input_ids, inputs.inputs_embeds
    return inputs._replace(
        shape=(count, inputs.shape[1]),
        input_ids=None if ids is None else ids[rows],
        inputs_embeds=None if vectors is None else vectors[rows],
        token_type_ids=part(inputs.token_type_ids),
        position_ids=part(inputs.position_ids),
        mask=part(inputs.mask),
    )
