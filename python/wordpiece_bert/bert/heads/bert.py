"""BERT with a head: the classes of BERT itself.

Source: Devlin et al. 2019, section 3.1 for pre-training, 4.1 for sequence classification, 4.2 and 4.3 for question
answering, 4.4 for multiple choice, 5.3 for token classification.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from wordpiece_bert._internal.ignored_label import IGNORED
from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert.bert.checkpoint.names import Shape, dense_shapes
from wordpiece_bert.bert.heads.head_model import HeadModel, HeadWeights, pooler_output
from wordpiece_bert.bert.heads.kinds import (
    MaskedLM,
    MaskedLMHead,
    MaskedLMNames,
    MultipleChoice,
    QuestionAnswering,
    SequenceClassification,
    SequenceModel,
    TokenClassification,
)
from wordpiece_bert.bert.inputs import check_labels
from wordpiece_bert.bert.losses import cross_entropy
from wordpiece_bert.bert.outputs import PreTrainingOutput
from wordpiece_bert.bert.parameters import INPUTS

if TYPE_CHECKING:
    import numpy.typing as npt

    from wordpiece_bert.bert.config import BertConfig
    from wordpiece_bert.bert.functional import Array

__all__ = [
    "BertForMaskedLM",
    "BertForMultipleChoice",
    "BertForNextSentencePrediction",
    "BertForPreTraining",
    "BertForQuestionAnswering",
    "BertForSequenceClassification",
    "BertForTokenClassification",
]

MASKED_LM = MaskedLMNames(
    dense="cls.predictions.transform.dense",
    norm="cls.predictions.transform.LayerNorm",
    decoder="cls.predictions.decoder",
    bias="cls.predictions.bias",
)
NEXT_SENTENCE = "cls.seq_relationship"


class BertForMaskedLM(MaskedLM):
    """BERT that predicts masked tokens: logits [B, S, V].

    labels: the correct ids, [B, S]; −100 is ignored. The decoder's weight is the word table, unless the checkpoint has
    another.

    Examples
    --------
    >>> from wordpiece_bert import Tokenizer
    >>> from wordpiece_bert.bert import BertForMaskedLM
    >>> model = BertForMaskedLM.from_pretrained("models/words")
    >>> tokenizer = Tokenizer.from_pretrained("models/words")
    >>> inputs = tokenizer(["The capital of France is [MASK]."])
    >>> logits = model(**inputs).logits  # [1, S, V]
    >>> at = inputs.input_ids[0].tolist().index(tokenizer.mask_token_id)
    >>> tokenizer.id_to_token(logits[0, at].argmax())
    'paris'
    """

    _names = MASKED_LM


class BertForNextSentencePrediction(SequenceModel):
    """BERT that predicts whether the second text follows the first: logits [B, 2] over the pooler.

    Class 0 means that it follows, class 1 that it is random. labels: integers [B]; cross entropy.

    Examples
    --------
    >>> from wordpiece_bert.bert import BertConfig, BertForNextSentencePrediction
    >>> config = BertConfig(
    ...     vocab_size=100, hidden_size=48, num_hidden_layers=2, intermediate_size=96
    ... )
    >>> model = BertForNextSentencePrediction.from_config(config)
    >>> output = model.base_model([[2, 17, 3, 25, 3]], token_type_ids=[[0, 0, 0, 1, 1]])
    >>> model.logits(output).shape
    (1, 2)
    """

    _reads_pooler = True
    _classifier = NEXT_SENTENCE
    _score_count = 2


class BertForPreTraining(HeadModel):
    """BERT as it is pre-trained, with the heads of `BertForMaskedLM` and `BertForNextSentencePrediction`.

    labels: the correct ids [B, S], −100 is ignored; next_sentence_label: 0 or 1, [B]. The loss is the sum of both cross
    entropies; it is computed only if both are passed.
    """

    _reads_pooler = True

    @classmethod
    def _head_shapes(cls, config: BertConfig) -> dict[str, Shape]:
        return MASKED_LM.shapes(config) | dense_shapes(NEXT_SENTENCE, "hidden_size", 2)

    @classmethod
    def _tied(cls) -> dict[str, str]:
        return MASKED_LM.tied()

    def _set_up_head(self, weights: HeadWeights) -> None:
        self._masked_lm = MaskedLMHead(weights, MASKED_LM, self.config)
        self._next_sentence = weights.dense(NEXT_SENTENCE)

    @completed_by(INPUTS)
    def __call__(
        self,
        input_ids: npt.ArrayLike | None = None,
        attention_mask: npt.ArrayLike | None = None,
        token_type_ids: npt.ArrayLike | None = None,
        position_ids: npt.ArrayLike | None = None,
        inputs_embeds: npt.ArrayLike | None = None,
        labels: npt.ArrayLike | None = None,
        next_sentence_label: npt.ArrayLike | None = None,
        *,
        output_hidden_states: bool = False,
        output_attentions: bool = False,
    ) -> PreTrainingOutput:
        """Run encoder and heads; the arguments are as in `BertModel`, and the labels as the class documents them.

        Parameters
        ----------
        labels, next_sentence_label : array_like, optional
            The labels of both heads, as the class documents them; with both the output has a loss.

        Returns
        -------
        PreTrainingOutput
            The logits of both heads, and with labels the loss.
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
            words = self.predict(out.last_hidden_state)  # [B, S, V]
            follows = self._next_sentence(pooler_output(out))  # [B, 2]
            loss = None
            if labels is not None and next_sentence_label is not None:
                ids = check_labels("labels", labels, words.shape[:-1], words.shape[-1], IGNORED)
                classes = check_labels("next_sentence_label", next_sentence_label, follows.shape[:1], 2, IGNORED)
                loss = np.float32(cross_entropy(words, ids) + cross_entropy(follows, classes))
        return PreTrainingOutput(
            prediction_logits=words,
            seq_relationship_logits=follows,
            loss=loss,
            hidden_states=out.hidden_states,
            attentions=out.attentions,
        )

    def predict(self, x: Array) -> Array:
        """Run the masked-language head only, over any token vectors, [..., H] -> [..., V].

        Parameters
        ----------
        x : ndarray of float32
            Token vectors [..., H].

        Returns
        -------
        ndarray of float32
            The logits, [..., V].

        Examples
        --------
        The scores of the vocabulary at one masked position, without the scores at all others:

        >>> from wordpiece_bert.bert import BertConfig, BertForPreTraining
        >>> config = BertConfig(
        ...     vocab_size=100, hidden_size=48, num_hidden_layers=2, intermediate_size=96
        ... )
        >>> model = BertForPreTraining.from_config(config)
        >>> x = model.base_model([[2, 17, 4, 3]]).last_hidden_state
        >>> model.predict(x[0, 2]).shape
        (100,)
        """
        return self._masked_lm(x)


class BertForSequenceClassification(SequenceClassification):
    """BERT that classifies texts or pairs: logits [B, labels], a dense layer over the pooler.

    labels: as for `SequenceClassification`, by the configuration's problem_type: integers [B] (one label for each
    text), 0 and 1 [B, labels] (any number of labels), or numbers [B, labels] (regression).

    Examples
    --------
    >>> from wordpiece_bert import Tokenizer
    >>> from wordpiece_bert.bert import BertForSequenceClassification
    >>> model = BertForSequenceClassification.from_pretrained("models/reviews")
    >>> tokenizer = Tokenizer.from_pretrained("models/reviews")
    >>> logits = model(
    ...     **tokenizer(["A wonderful film!", "The story was dull."], padding=True)
    ... ).logits  # [2, labels]
    >>> [model.config.id2label[i] for i in logits.argmax(axis=-1)]
    ['positive', 'negative']
    """

    _reads_pooler = True


class BertForMultipleChoice(MultipleChoice):
    """BERT that picks one of C choices: logits [B, C] for inputs [B, C, S], a dense layer over each choice's pooler.

    labels: the correct choice, integers [B]; cross entropy over the choices.
    """

    _reads_pooler = True


class BertForTokenClassification(TokenClassification):
    """BERT that labels tokens: logits [B, S, labels], a dense layer over x_L.

    labels: integers [B, S], −100 is ignored; cross entropy.

    Examples
    --------
    >>> from wordpiece_bert import Tokenizer
    >>> from wordpiece_bert.bert import BertForTokenClassification
    >>> model = BertForTokenClassification.from_pretrained("models/entities")
    >>> tokenizer = Tokenizer.from_pretrained("models/entities")
    >>> logits = model(
    ...     **tokenizer(["Marie Curie was born in Warsaw"])
    ... ).logits  # [1, S, labels]
    >>> [model.config.id2label[i] for i in logits[0, 1:-1].argmax(axis=-1)]
    ['B-PER', 'I-PER', 'O', 'O', 'O', 'B-LOC']
    """


class BertForQuestionAnswering(QuestionAnswering):
    """BERT that finds the answer to a question in a text: start_logits and end_logits [B, S], a dense layer over x_L.

    start_positions and end_positions: integers [B]; positions outside the row are ignored.

    Examples
    --------
    >>> from wordpiece_bert import Tokenizer
    >>> from wordpiece_bert.bert import BertForQuestionAnswering
    >>> model = BertForQuestionAnswering.from_pretrained("models/answers")
    >>> tokenizer = Tokenizer.from_pretrained("models/answers")
    >>> inputs = tokenizer(
    ...     ["Where was Alan Turing born?"], ["Alan Turing was born in London."]
    ... )
    >>> output = model(**inputs)
    >>> start, end = output.start_logits[0].argmax(), output.end_logits[0].argmax()
    >>> tokenizer.decode(inputs.input_ids[0, start : end + 1])
    'london'
    """
