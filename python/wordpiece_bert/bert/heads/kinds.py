"""The kinds of heads, for BERT and its variants: the logits of each kind, and its loss.

A class here defines what is computed. Classes that derive from it choose the encoder and name the weights.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from wordpiece_bert._internal.ignored_label import IGNORED
from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert.bert.checkpoint.names import Shape, dense_shapes, norm_shapes
from wordpiece_bert.bert.engines.engine_interface import HeadLayers
from wordpiece_bert.bert.functional import ACTIVATIONS, layer_norm, pool
from wordpiece_bert.bert.heads.head_model import HeadWeights, LabelledModel, LogitsModel, pooler_output
from wordpiece_bert.bert.inputs import as_array, as_classes, check_labels, check_positions, check_targets
from wordpiece_bert.bert.losses import binary_cross_entropy, cross_entropy, mean_squared_error, soft_cross_entropy
from wordpiece_bert.bert.outputs import BertOutput, HeadOutput, QuestionAnsweringOutput
from wordpiece_bert.bert.parameters import INPUTS
from wordpiece_bert.bert.poolings import first_token
from wordpiece_bert.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from wordpiece_bert.bert.config import BertConfig
    from wordpiece_bert.bert.engines.engine_interface import VocabularyHead
    from wordpiece_bert.bert.functional import Array


class MaskedLMNames(NamedTuple):
    """The names of a masked-language head's layers, and its activation."""

    #: The dense layer [H or E, H] before the activation; None for a head that is its decoder alone.
    dense: str | None
    #: The layer norm after the activation; None without a dense layer.
    norm: str | None
    #: The dense layer [V, H or E] that computes the logits.
    decoder: str
    #: The decoder's bias [V]; in some models it is also stored as ``decoder.bias``.
    bias: str
    #: A name in `ACTIVATIONS`; None for `head_activation` of the configuration.
    activation: str | None = None

    def shapes(self, config: BertConfig) -> dict[str, Shape]:
        """Return the names and shapes of the weights."""
        width = "embedding_size" if config.embedding_size != config.hidden_size else "hidden_size"
        shapes: dict[str, Shape] = {self.bias: ("vocab_size",)}
        if self.dense is not None and self.norm is not None:
            shapes |= dense_shapes(self.dense, "hidden_size", width) | norm_shapes(self.norm, width)
        return shapes | dense_shapes(self.decoder, width, "vocab_size")

    def tied(self) -> dict[str, str]:
        """Return the tied weights: the decoder's is the word table, and both names of its bias are one weight."""
        tied = {f"{self.decoder}.weight": "embeddings.word_embeddings.weight"}
        bias = f"{self.decoder}.bias"
        return tied if bias == self.bias else tied | {bias: self.bias}


class ScoreLayers(NamedTuple):
    """The layers between the token vectors and the scores of a head, and what it reads."""

    #: The dense layer that computes the scores.
    classifier: str
    #: A dense layer before it; None for none, or for the pooler in heads that read one vector of each sequence.
    dense: str | None = None
    #: The activation after that layer, a name in `ACTIVATIONS`.
    activation: str = "tanh"
    #: A layer norm after the activation.
    norm: str | None = None
    #: What heads for sequences read: ``"first"``, the first position; ``"cls"``, the first token, which is another
    #: position where rows are padded on the left; ``"mean"``, the mean of the tokens.
    pooling: str = "first"


class HiddenLayer:
    """h(x) = LN(activation(dense(x))), what some heads have before their scores; some of them without the norm."""

    def __init__(self, weights: HeadWeights, dense: str, activation: str, norm: str | None, eps: float) -> None:
        self._dense, self._activation, self._eps = weights.dense(dense), activation, eps
        self._norm = None if norm is None else weights.norm(norm)

    def __call__(self, x: Array) -> Array:
        """[..., H] -> [..., H], or E where the word table is narrower."""
        y = ACTIVATIONS[self._activation](self._dense(x))
        return y if self._norm is None else layer_norm(y, *self._norm, eps=self._eps)


class MaskedLMHead:
    """logits = decoder(LN(activation(dense(x)))): Devlin et al. 2019, section 3.1, and Google's released code."""

    def __init__(self, weights: HeadWeights, names: MaskedLMNames, config: BertConfig) -> None:
        self._weights, self._names, self._eps = weights, names, config.layer_norm_eps
        self._activation = names.activation or config.head_activation
        self._hidden: HiddenLayer | None = None
        if names.dense is not None:
            self._hidden = HiddenLayer(weights, names.dense, self._activation, names.norm, self._eps)
        self._decoder = weights.decoder(names.decoder)

    def __call__(self, x: Array) -> Array:
        """[..., H] -> [..., V]."""
        return self._decoder(x if self._hidden is None else self._hidden(x))

    def pooled(self) -> VocabularyHead:
        """Return the head as the engine pools its logits over the tokens of a text."""
        weights, names = self._weights, self._names
        assert names.dense is not None and names.norm is not None, "a class without them refuses"  # noqa: PT018
        dense = weights.weight(f"{names.dense}.weight"), weights.bias(names.dense)
        decoder = weights.weight(f"{names.decoder}.weight"), weights.bias(names.decoder)
        return weights.vocabulary_head(
            HeadLayers(dense, self._activation, weights.norm(names.norm), self._eps, decoder)
        )


class MaskedLM(LabelledModel):
    """Scores of the vocabulary at each token, [B, S, V].

    The decoder's weight is the word table, unless the checkpoint has another. labels: the correct ids, [B, S]; −100 is
    ignored.

    Examples
    --------
    >>> from wordpiece_bert import Tokenizer
    >>> from wordpiece_bert.bert import BertForMaskedLM
    >>> model = BertForMaskedLM.from_pretrained("models/words")
    >>> tokenizer = Tokenizer.from_pretrained("models/words")
    >>> output = model.base_model(**tokenizer(["The capital of France is [MASK]."]))
    >>> model.logits(output).shape, model.predict(output.last_hidden_state[0, 6]).shape
    ((1, 9, 67), (67,))
    """

    _names: ClassVar[MaskedLMNames]

    @classmethod
    def _head_names(cls, config: BertConfig) -> MaskedLMNames:
        """Return the names of the head's layers."""
        del config  # used by DeBERTa
        return cls._names

    @classmethod
    def _head_shapes(cls, config: BertConfig) -> dict[str, Shape]:
        return cls._head_names(config).shapes(config)

    @classmethod
    def _tied(cls) -> dict[str, str]:
        return cls._names.tied()

    def _set_up_head(self, weights: HeadWeights) -> None:
        self._head = MaskedLMHead(weights, self._head_names(self.config), self.config)

    def predict(self, x: Array) -> Array:
        """Run the head only, over any token vectors, [..., H] -> [..., V].

        Parameters
        ----------
        x : ndarray of float32
            Token vectors [..., H].

        Returns
        -------
        ndarray of float32
            The logits, [..., V].
        """
        return self._head(x)

    def vocabulary_head(self) -> VocabularyHead:
        """Return the head as the engine pools its logits over the tokens of a text, for sparse vectors.

        Returns
        -------
        VocabularyHead
            Its method ``encode`` pools [tokens, H] to the rows of a sparse matrix [B, V].

        Examples
        --------
        The three tokens with the greatest weights for a text:

        >>> from wordpiece_bert import Tokenizer
        >>> from wordpiece_bert.bert import BertForMaskedLM
        >>> model = BertForMaskedLM.from_pretrained("models/splade")
        >>> tokenizer = Tokenizer.from_pretrained("models/splade")
        >>> x, ends = model.base_model.token_states(
        ...     tokenizer.encode_batch(["bread and flour"]), slice(0, 1)
        ... )
        >>> found = model.vocabulary_head().encode(
        ...     x, ends, "max", twice=False, max_values=3, threads=None
        ... )
        >>> indptr, tokens, weights = found
        >>> indptr, tokens, [round(float(weight), 5) for weight in weights]
        (array([0, 3]), array([29, 48, 53], dtype=int32), [1.62177, 1.33123, 1.33123])
        """
        return self._head.pooled()

    def logits(self, output: BertOutput, attention_mask: npt.ArrayLike | None = None) -> Array:
        """Run the head only, over an output of the encoder -> [B, S, V].

        Parameters
        ----------
        output : BertOutput
            The output of the encoder.
        attention_mask : array_like, optional
            Which positions are tokens, [B, S]; all by default.

        Returns
        -------
        ndarray of float32
            The logits, [B, S, V].
        """
        del attention_mask
        return self.predict(output.last_hidden_state)


class ScoreModel(LogitsModel):
    """A dense layer of scores over x_L or over one vector of each sequence, in some families with h(x) before it.

    Examples
    --------
    >>> from wordpiece_bert.bert import BertConfig, BertForTokenClassification
    >>> config = BertConfig(
    ...     vocab_size=100, hidden_size=48, num_hidden_layers=2, intermediate_size=96
    ... )
    >>> model = BertForTokenClassification.from_config(config)
    >>> model([[2, 17, 25, 3]]).logits.shape
    (1, 4, 2)
    """

    #: The dense layer that computes the scores.
    _classifier: ClassVar[str] = "classifier"
    #: The dense layer of h(x), and its activation: a name in `ACTIVATIONS`, or the field that has the name.
    _hidden: ClassVar[tuple[str, str] | None] = None
    #: The number of scores, or the field of the configuration that has it.
    _score_count: ClassVar[str | int] = "num_labels"

    @classmethod
    def _score_layers(cls, config: BertConfig) -> ScoreLayers:
        """Return the layers of the head, which inference and training run."""
        if cls._hidden is None:
            return ScoreLayers(cls._classifier)
        dense, name = cls._hidden
        return ScoreLayers(cls._classifier, dense, name if name in ACTIVATIONS else str(getattr(config, name)))

    @classmethod
    def _head_shapes(cls, config: BertConfig) -> dict[str, Shape]:
        layers = cls._score_layers(config)
        hidden = {} if layers.dense is None else dense_shapes(layers.dense, "hidden_size", "hidden_size")
        norm = {} if layers.norm is None else norm_shapes(layers.norm)
        return hidden | norm | dense_shapes(layers.classifier, "hidden_size", cls._score_count)

    def _set_up_head(self, weights: HeadWeights) -> None:
        classifier, dense, activation, norm, self._pooling = self._score_layers(self.config)
        self._hidden_layer: HiddenLayer | None = None
        if dense is not None:
            self._hidden_layer = HiddenLayer(weights, dense, activation, norm, self.config.layer_norm_eps)
        self._scores = weights.dense(classifier)

    def logits(self, output: BertOutput, attention_mask: npt.ArrayLike | None = None) -> Array:
        """Run the head only, over an output of the encoder.

        Parameters
        ----------
        output : BertOutput
            The output of the encoder.
        attention_mask : array_like, optional
            Which positions are tokens, [B, S]; all by default.

        Returns
        -------
        ndarray of float32
            The logits: of each token, [B, S, scores], or of each sequence, [B, scores].

        Examples
        --------
        >>> from wordpiece_bert.bert import BertConfig, BertForTokenClassification
        >>> config = BertConfig(
        ...     vocab_size=100, hidden_size=48, num_hidden_layers=2, intermediate_size=96
        ... )
        >>> model = BertForTokenClassification.from_config(config)
        >>> model.logits(model.base_model([[2, 17, 25, 3]])).shape
        (1, 4, 2)
        """
        return self._scores(self._classified(output, attention_mask))

    def _classified(self, output: BertOutput, attention_mask: npt.ArrayLike | None = None) -> Array:
        """Return what the classifier reads, [B, S, H] or [B, H]."""
        x = self._read(output, attention_mask)
        return x if self._hidden_layer is None else self._hidden_layer(x)

    def _read(self, output: BertOutput, attention_mask: npt.ArrayLike | None) -> Array:
        """Return what the head reads, [B, S, H] or [B, H]."""
        del attention_mask  # used by heads for sequences
        return output.last_hidden_state


class SequenceModel(ScoreModel, LabelledModel):
    """Scores from one vector of each sequence: the pooler's output, or h(x) over what `ScoreLayers.pooling` names.

    Examples
    --------
    >>> from wordpiece_bert.bert import BertConfig, BertForSequenceClassification
    >>> config = BertConfig(
    ...     vocab_size=100, hidden_size=48, num_hidden_layers=2, intermediate_size=96
    ... )
    >>> model = BertForSequenceClassification.from_config(config)
    >>> model([[2, 17, 25, 3]]).logits.shape
    (1, 2)
    """

    _reads_tokens = False

    def _read(self, output: BertOutput, attention_mask: npt.ArrayLike | None) -> Array:
        if self._hidden_layer is None:
            return pooler_output(output)
        x = output.last_hidden_state
        if self._pooling == "first":
            return first_token(x)
        mask = np.ones(x.shape[:2], np.bool_) if attention_mask is None else np.asarray(attention_mask) != 0  # [B, S]
        return pool(x, mask, self._pooling)


class SequenceClassification(SequenceModel):
    """Scores of the labels for each sequence, [B, labels]: a dense layer over the pooled first token.

    labels, by the configuration's problem_type: for ``"single_label_classification"`` whole numbers or booleans [B],
    cross entropy; for ``"multi_label_classification"`` 0 or 1 for each label [B, labels], binary cross entropy; for
    ``"regression"`` numbers [B, labels], or [B] for a single label, mean squared error. If it is null, a model with a
    single label does regression; else one number for each text means single-label classification, and floats or
    booleans for each label multi-label classification.

    Examples
    --------
    The configuration's problem_type determines the loss, here of any number of labels for each text:

    >>> from wordpiece_bert.bert import BertConfig, BertForSequenceClassification
    >>> config = BertConfig(
    ...     vocab_size=100,
    ...     hidden_size=48,
    ...     num_hidden_layers=2,
    ...     problem_type="multi_label_classification",
    ... )
    >>> model = BertForSequenceClassification.from_config(config)
    >>> output = model([[2, 17, 25, 3]], labels=[[1.0, 1.0]])
    >>> output.logits.shape, round(float(output.loss), 1)
    ((1, 2), 0.7)
    """

    @classmethod
    def _targets(
        cls, config: BertConfig, labels: npt.ArrayLike, shape: tuple[int, ...]
    ) -> tuple[str, npt.NDArray[Any]]:
        """Return which loss labels have, and the labels, checked for logits of this shape, [B, labels]."""
        problem = problem_type(config, labels)
        if problem != "single_label_classification":
            return problem, check_targets("labels", labels, shape)
        return problem, check_labels("labels", as_classes("labels", labels), shape[:1], shape[1], IGNORED)

    def _loss(self, logits: Array, labels: npt.ArrayLike, attention_mask: npt.ArrayLike | None) -> np.float32:
        del attention_mask
        problem, targets = self._targets(self.config, labels, logits.shape)
        return _LOSSES[problem](logits, targets)


#: The losses of labels of sequences, by the problem that `SequenceClassification._targets` names.
_LOSSES: dict[str, Callable[[Array, npt.NDArray[Any]], np.float32]] = {
    "regression": mean_squared_error,
    "multi_label_classification": binary_cross_entropy,
    "single_label_classification": cross_entropy,
    "probabilities": soft_cross_entropy,
    "labels_or_none": lambda logits, labels: (
        np.float32(0.0) if (labels == IGNORED).all() else cross_entropy(logits, labels)
    ),
}


def problem_type(config: BertConfig, labels: npt.ArrayLike) -> str:
    """Return the problem type of labels, by the rule that `SequenceClassification` documents.

    Parameters
    ----------
    config : BertConfig
        The model's configuration.
    labels : array_like
        The labels of a call.

    Returns
    -------
    str
        ``"regression"``, ``"single_label_classification"`` or ``"multi_label_classification"``.

    Raises
    ------
    InputError
        There are several labels for each text, and the model has one.
    """
    found = as_array("labels", labels)
    problem = config.problem_type
    if problem is None:
        single = found.ndim < 2 or found.shape[1:] == (1,) or np.issubdtype(found.dtype, np.integer)
        problem = "single_label_classification" if single else "multi_label_classification"
        problem = "regression" if config.num_labels == 1 else problem
    if problem == "single_label_classification" and found.ndim > 1 and found.shape[1:] != (1,):
        raise InputError(
            f"labels has shape {list(found.shape)}, but the model's problem_type is 'single_label_classification', one "
            "integer for each text; with problem_type='multi_label_classification' a text has 0.0 or 1.0 for each label"
        )
    return problem


class TokenClassification(ScoreModel, LabelledModel):
    """Scores of the labels for each token, [B, S, labels]: a dense layer over x_L.

    labels: integers [B, S], −100 is ignored; cross entropy.

    Examples
    --------
    >>> from wordpiece_bert.bert import BertForTokenClassification
    >>> model = BertForTokenClassification.from_pretrained("models/entities")
    >>> output = model.base_model([[2, 7, 8, 3]])
    >>> model.logits(output).shape[:2], model.config.num_labels
    ((1, 4), 4)
    """


class MultipleChoice(SequenceModel):
    """A score for each of C choices, [B, C]: all inputs are [B, C, S], and each choice is a separate sequence.

    labels: the correct choice, integers [B]; cross entropy over the choices. hidden_states and attentions have B · C
    rows.

    Examples
    --------
    One question with two answers, a row each:

    >>> from wordpiece_bert.bert import BertConfig, BertForMultipleChoice
    >>> config = BertConfig(
    ...     vocab_size=100, hidden_size=48, num_hidden_layers=2, intermediate_size=96
    ... )
    >>> model = BertForMultipleChoice.from_config(config)
    >>> model([[[2, 17, 3, 25, 3], [2, 17, 3, 26, 3]]], labels=[1]).logits.shape
    (1, 2)
    """

    _score_count = 1

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
        """Run encoder and head; the arguments are as in `BertModel` with a dimension of choices, [B, C, S].

        Parameters
        ----------
        input_ids : array_like, optional
            Ids [B, C, S], or instead `inputs_embeds`.
        attention_mask : array_like, optional
            [B, C, S], 1 where a token is visible; by default all are.
        token_type_ids : array_like, optional
            [B, C, S], the index of each token's text; 0 by default.
        position_ids : array_like, optional
            Positions [B, C, S]; by default 0 to S − 1.
        inputs_embeds : array_like, optional
            Word vectors [B, C, S, E] in place of `input_ids`.

        Returns
        -------
        HeadOutput
            The logits, [B, C], and with labels the loss.

        Raises
        ------
        InputError
            There are neither ids nor word vectors, or both, or an array has the wrong shape.
        """
        if input_ids is not None:
            batch, choices = _rows_of_choices("input_ids", input_ids, 3)
        elif inputs_embeds is not None:
            batch, choices = _rows_of_choices("inputs_embeds", inputs_embeds, 4)
        else:
            raise InputError("pass either input_ids or inputs_embeds")
        out = super().__call__(
            _flat("input_ids", input_ids, (batch, choices), 3),
            _flat("attention_mask", attention_mask, (batch, choices), 3),
            _flat("token_type_ids", token_type_ids, (batch, choices), 3),
            _flat("position_ids", position_ids, (batch, choices), 3),
            _flat("inputs_embeds", inputs_embeds, (batch, choices), 4),
            output_hidden_states=output_hidden_states,
            output_attentions=output_attentions,
        )
        logits = out.logits.reshape(batch, choices)
        loss = None
        if labels is not None:
            loss = cross_entropy(logits, check_labels("labels", labels, (batch,), choices, IGNORED))
        return HeadOutput(logits=logits, loss=loss, hidden_states=out.hidden_states, attentions=out.attentions)


class QuestionAnswering(ScoreModel):
    """Scores of each token as the first and as the last of the answer, [B, S] each: a dense layer over x_L.

    start_positions and end_positions: integers [B]; positions at or beyond S are ignored. The loss is the mean of two
    cross entropies over the tokens.

    Examples
    --------
    >>> from wordpiece_bert.bert import BertForQuestionAnswering
    >>> model = BertForQuestionAnswering.from_pretrained("models/answers")
    >>> model(
    ...     [[2, 7, 3, 9, 8, 3]], start_positions=[3], end_positions=[4]
    ... ).start_logits.shape
    (1, 6)
    >>> model.logits(model.base_model([[2, 7, 3, 9, 8, 3]])).shape
    (1, 6, 2)
    """

    _classifier = "qa_outputs"
    _score_count = 2

    @completed_by(INPUTS)
    def __call__(
        self,
        input_ids: npt.ArrayLike | None = None,
        attention_mask: npt.ArrayLike | None = None,
        token_type_ids: npt.ArrayLike | None = None,
        position_ids: npt.ArrayLike | None = None,
        inputs_embeds: npt.ArrayLike | None = None,
        start_positions: npt.ArrayLike | None = None,
        end_positions: npt.ArrayLike | None = None,
        *,
        output_hidden_states: bool = False,
        output_attentions: bool = False,
    ) -> QuestionAnsweringOutput:
        """Run encoder and head; the arguments are as in `BertModel`, and positions as the class documents them.

        Parameters
        ----------
        start_positions, end_positions : array_like, optional
            The first and the last token of each answer [B], as the class documents them; with them the output has a
            loss.

        Returns
        -------
        QuestionAnsweringOutput
            The logits of the first and the last token, [B, S] each, and with positions the loss.
        """
        out = self.base_model(
            input_ids,
            attention_mask,
            token_type_ids,
            position_ids,
            inputs_embeds,
            output_hidden_states=output_hidden_states,
            output_attentions=output_attentions,
        )
        with np.errstate(under="ignore"):
            scores = self.logits(out, attention_mask)  # [B, S, 2]
            start, end = np.ascontiguousarray(scores[..., 0]), np.ascontiguousarray(scores[..., 1])
            loss = None
            if start_positions is not None and end_positions is not None:
                start_loss = _position_loss("start_positions", start_positions, start)
                end_loss = _position_loss("end_positions", end_positions, end)
                loss = np.float32((start_loss + end_loss) / 2)
        return QuestionAnsweringOutput(
            start_logits=start,
            end_logits=end,
            loss=loss,
            hidden_states=out.hidden_states,
            attentions=out.attentions,
        )


def _position_loss(name: str, value: npt.ArrayLike, logits: Array) -> np.float32:
    """Cross entropy over the tokens; positions are clipped to 0 … S, of which S is ignored."""
    positions = check_positions(name, value, logits.shape)
    return cross_entropy(logits, positions, ignored=logits.shape[1])


def _rows_of_choices(name: str, value: npt.ArrayLike, dimensions: int) -> tuple[int, int]:
    """Return B and C of an input [B, C, ...]."""
    shape = as_array(name, value).shape
    if len(shape) != dimensions:
        expected = "batch, choices, length" if dimensions == 3 else "batch, choices, length, hidden size"
        raise InputError(f"{name} must have {dimensions} dimensions, [{expected}], not {list(shape)}")
    return shape[0], shape[1]


def _flat(name: str, value: npt.ArrayLike | None, rows: tuple[int, int], dimensions: int) -> npt.NDArray[Any] | None:
    """[B, C, ...] -> [B · C, ...]."""
    if value is None:
        return None
    array = as_array(name, value)
    if array.ndim != dimensions or array.shape[:2] != rows:
        raise InputError(f"{name} has shape {list(array.shape)}, but the input has {rows[0]} rows of {rows[1]} choices")
    return array.reshape(rows[0] * rows[1], *array.shape[2:])
