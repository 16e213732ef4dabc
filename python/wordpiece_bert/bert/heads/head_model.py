"""The base class of all models with a head."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from wordpiece_bert._internal.ignored_label import IGNORED
from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert.bert.base_model import Model
from wordpiece_bert.bert.checkpoint import Layout, Resolved
from wordpiece_bert.bert.engines.packing import quantized_table
from wordpiece_bert.bert.inputs import check_labels
from wordpiece_bert.bert.losses import cross_entropy
from wordpiece_bert.bert.model import BertModel
from wordpiece_bert.bert.outputs import BertOutput, HeadOutput
from wordpiece_bert.bert.parameters import INPUTS
from wordpiece_bert.bert.parts import (
    as_written,
    config_of,
    fused_names,
    layout_of,
    place_of,
    prefix_of,
    renamed_weights,
    weights_of,
)
from wordpiece_bert.bert.stored_tensor import loaded

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import numpy.typing as npt

    from wordpiece_bert.bert.checkpoint.fused import Place
    from wordpiece_bert.bert.checkpoint.names import Shape
    from wordpiece_bert.bert.checkpoint.safetensors import AnyArray
    from wordpiece_bert.bert.config import BertConfig
    from wordpiece_bert.bert.engines import Dense, Engine
    from wordpiece_bert.bert.engines.engine_interface import HeadLayers, VocabularyHead
    from wordpiece_bert.bert.functional import Array, Mask
    from wordpiece_bert.bert.quantized import Int8Weight

#: The most tokens whose logits are computed before they are copied to the result: 125 MB for a vocabulary of 30,522.
_TOKENS_PER_HEAD = 1024


class HeadModel(Model):
    """An encoder and a head, created and loaded like every `Model`.

    Attributes
    ----------
    base_model : BertModel
        The encoder.

    Examples
    --------
    >>> from wordpiece_bert.bert import BertForSequenceClassification
    >>> from wordpiece_bert.bert.heads.head_model import HeadModel
    >>> model = BertForSequenceClassification.from_pretrained("models/reviews")
    >>> isinstance(model, HeadModel), type(model.base_model).__name__
    (True, 'BertModel')
    """

    _base_model_class: ClassVar[type[BertModel]] = BertModel
    _reads_pooler: ClassVar[bool] = False

    base_model: BertModel

    def __init_subclass__(cls) -> None:
        cls.config_class = cls._base_model_class.config_class
        cls._fused = fused_names(cls._base_model_class)
        super().__init_subclass__()

    @classmethod
    def _head_shapes(cls, config: BertConfig) -> dict[str, Shape]:
        """Return the names and shapes of the head's weights."""
        raise NotImplementedError

    @classmethod
    def _tied(cls) -> dict[str, str]:
        """Return the weights of the head that are tied: for each, the name of the weight that it equals."""
        return {}

    @classmethod
    def _renamed(
        cls, weights: Mapping[str, npt.NDArray[np.generic]], config: BertConfig, source: str
    ) -> Mapping[str, npt.NDArray[np.generic]]:
        return renamed_weights(cls._base_model_class, weights, config, source)

    @classmethod
    def _config_of(cls, config: BertConfig, names: Iterable[str], source: str) -> BertConfig:
        return config_of(cls._base_model_class, config, names, source)

    @classmethod
    def _as_written(
        cls, weights: Iterator[tuple[str, AnyArray | Int8Weight]], config: BertConfig
    ) -> Iterator[tuple[str, AnyArray | Int8Weight]]:
        return as_written(cls._base_model_class, weights, config)

    @classmethod
    def _place(cls, name: str, config: BertConfig) -> Place:
        return place_of(cls._base_model_class, name, config)

    @classmethod
    def _layout(cls, config: BertConfig) -> Layout:
        base = layout_of(cls._base_model_class, config)
        kept = {name: shape for name, shape in base.base.items() if cls._reads_pooler or name not in base.optional}
        return Layout(kept, base.prefix, head=cls._head_shapes(config), tied=cls._tied(), layers=base.layers)

    def _set_up(self, engine: Engine, resolved: Resolved) -> None:
        self.base_model = self._base_model_class(
            self.config,
            resolved.base,
            backend=self.backend,
            dtype=self._requested_dtype,
            source=self.source,
            calibrate=self._calibration,
            instructions=self.instructions,
        )
        prefix = prefix_of(self._base_model_class)
        base = weights_of(self.base_model)
        self._weights |= {prefix + name: weight for name, weight in base.items()}
        # A weight of the head that is the word table is the same array, or is quantized with it.
        stored: dict[int, Any] = {id(weight): base[name] for name, weight in resolved.base.items() if name in base}
        for name, weight in resolved.head.items():
            if id(weight) not in stored:
                stored[id(weight)] = self._stored(name, weight)
        head = {name: stored[id(weight)] for name, weight in resolved.head.items()}
        self._weights = {name: stored.get(id(weight), weight) for name, weight in self._weights.items()}
        self._set_up_head(HeadWeights(engine, resolved._replace(head=head)))

    def _stored(self, name: str, weight: AnyArray) -> AnyArray | Int8Weight:
        """Return a weight of the head that the encoder does not have, in memory; decoders of an int8 model as int8."""
        if self.dtype == "int8" and name.endswith(".weight") and name in self._tied():
            return quantized_table(weight, name.removesuffix(".weight"))
        stored: AnyArray = loaded(weight)
        return stored

    def _set_up_head(self, head: HeadWeights) -> None:
        """Prepare the layers of the head."""
        raise NotImplementedError


class HeadWeights:
    """The layers of a head, by name, prepared for the engine."""

    def __init__(self, engine: Engine, resolved: Resolved) -> None:
        self._engine = engine
        self._weights = resolved.head

    def dense(self, name: str) -> Dense:
        """Return a dense layer, run by the engine."""
        return self._engine.dense(self._weights[f"{name}.weight"], self.bias(name))

    def decoder(self, name: str) -> Dense:
        """Return a dense layer with an output for each token of the vocabulary, run by the engine."""
        return self._engine.decoder(self._weights[f"{name}.weight"], self.bias(name))

    def weight(self, name: str) -> Array:
        """Return a weight as the checkpoint stores it."""
        weight: Array = self._weights[name]
        return weight

    def bias(self, name: str) -> Array:
        """Return the bias of a layer as the checkpoint stores it; without one, 0 for each output."""
        bias: Array | None = self._weights.get(f"{name}.bias")
        return np.zeros(self._weights[f"{name}.weight"].shape[0], np.float32) if bias is None else bias

    def vocabulary_head(self, layers: HeadLayers) -> VocabularyHead:
        """Return a masked-language head that pools its logits, run by the engine."""
        return self._engine.vocabulary_head(layers)

    def norm(self, name: str) -> tuple[Array, Array]:
        """Return γ and β of a layer norm."""
        return self._weights[f"{name}.weight"], self.bias(name)


class LogitsModel(HeadModel):
    """A model whose head computes one array of logits.

    Examples
    --------
    >>> from wordpiece_bert import Tokenizer
    >>> from wordpiece_bert.bert import BertForSequenceClassification
    >>> model = BertForSequenceClassification.from_pretrained("models/reviews")
    >>> tokenizer = Tokenizer.from_pretrained("models/reviews")
    >>> inputs = tokenizer(["A great film!", "It was a dull story."], padding=True)
    >>> logits = model.infer(inputs.input_ids, inputs.attention_mask)
    >>> output = model.base_model(**inputs)
    >>> bool((model.logits(output, inputs.attention_mask) == logits).all())
    True
    """

    #: Whether the head scores each token; otherwise it scores rows, and reads only the first position and the positions
    #: of tokens.
    _reads_tokens: ClassVar[bool] = True

    def logits(self, output: BertOutput, attention_mask: npt.ArrayLike | None = None) -> Array:
        """Run the head only, over an output of the encoder.

        Parameters
        ----------
        output : BertOutput
            The output of the encoder.
        attention_mask : array_like, optional
            Which positions are tokens, [B, S]; all by default. Only a head that pools tokens reads it.
        """
        raise NotImplementedError

    @completed_by(INPUTS)
    def infer(
        self,
        input_ids: npt.ArrayLike,
        attention_mask: npt.ArrayLike | None = None,
        token_type_ids: npt.ArrayLike | None = None,
        *,
        threads: int | None = None,
    ) -> Array:
        """Run encoder and head for the logits only, without a loss and without masked positions, whose logits are 0.

        The NumPy engine computes the encoder at masked positions all the same.

        Returns
        -------
        array
            float32, of the shape that the class documents.
        """
        out = self.base_model(input_ids, attention_mask, token_type_ids, visible_only=True, threads=threads)
        visible = None if attention_mask is None else np.asarray(attention_mask) != 0  # [B, S]
        with np.errstate(under="ignore"):
            if not self._reads_tokens or visible is None or visible.all():
                return self.logits(out, visible)
            return self._visible_logits(out.last_hidden_state, visible)

    def _visible_logits(self, x: Array, visible: Mask) -> Array:
        """[B, S, H] and [B, S] -> the logits [B, S, ...] of a head that reads tokens, 0 at masked positions."""
        tokens = np.flatnonzero(visible)
        rows = x.reshape(-1, x.shape[-1])
        logits: Array | None = None
        for start in range(0, max(len(tokens), 1), _TOKENS_PER_HEAD):
            part = tokens[start : start + _TOKENS_PER_HEAD]
            found = self.logits(BertOutput(last_hidden_state=rows[part][None]))[0]  # [tokens, ...]
            if logits is None:
                logits = np.zeros((len(rows), *found.shape[1:]), np.float32)
            logits[part] = found
        assert logits is not None, "the loop runs once at least"
        return logits.reshape(*visible.shape, *logits.shape[1:])


class LabelledModel(LogitsModel):
    """A model with one kind of logits and one kind of labels.

    Examples
    --------
    >>> from wordpiece_bert.bert import BertForSequenceClassification
    >>> model = BertForSequenceClassification.from_pretrained("models/reviews")
    >>> model([[2, 7, 3]]).loss is None, model([[2, 7, 3]], labels=[1]).loss.dtype
    (True, dtype('float32'))
    """

    @completed_by(INPUTS)
    def __call__(
        self,
        input_ids: npt.ArrayLike | None = None,
        attention_mask: npt.ArrayLike | None = None,
        token_type_ids: npt.ArrayLike | None = None,
        position_ids: npt.ArrayLike | None = None,
        inputs_embeds: npt.ArrayLike | None = None,
        labels: npt.ArrayLike | None = None,
        *,
        output_hidden_states: bool = False,
        output_attentions: bool = False,
    ) -> HeadOutput:
        """Run encoder and head; the arguments are as in `BertModel`, and `labels` as the class documents them.

        Returns
        -------
        HeadOutput
            The logits, and with `labels` the loss.

        Examples
        --------
        >>> from wordpiece_bert.bert import BertForTokenClassification
        >>> model = BertForTokenClassification.from_pretrained("models/entities")
        >>> output = model([[2, 7, 8, 3]], labels=[[-100, 1, 0, -100]])  # -100: no label
        >>> output.logits.shape, output.loss.dtype
        ((1, 4, 4), dtype('float32'))
        """
        out = self.base_model(
            input_ids,
            attention_mask,
            token_type_ids,
            position_ids,
            inputs_embeds,
            output_hidden_states=output_hidden_states,
            output_attentions=output_attentions,
            visible_only=not (self._reads_tokens or output_hidden_states or output_attentions),
        )
        with np.errstate(under="ignore"):
            logits = self.logits(out, attention_mask)
            loss = None if labels is None else self._loss(logits, labels, attention_mask)
        return HeadOutput(logits=logits, loss=loss, hidden_states=out.hidden_states, attentions=out.attentions)

    def _loss(self, logits: Array, labels: npt.ArrayLike, attention_mask: npt.ArrayLike | None) -> np.float32:
        """Return the mean loss: cross entropy, unless a class overrides it. The mask has been checked."""
        del attention_mask
        *shape, classes = logits.shape
        return cross_entropy(logits, check_labels("labels", labels, tuple(shape), classes, IGNORED))


def pooler_output(output: BertOutput) -> Array:
    """Return the pooled first token, [B, H], for a class with `_reads_pooler`, whose layout requires a pooler."""
    assert output.pooler_output is not None, "the layout requires the pooler's weights"
    return output.pooler_output
