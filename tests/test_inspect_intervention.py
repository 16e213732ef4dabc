"""`inspect.intervene` beside models whose weights are 0 for a head, and beside what another text's heads give."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import wordpiece_bert as wb
from test_inspect_attribution import sentences
from test_inspect_trace import loaded
from wordpiece_bert import inspect
from wordpiece_bert.bert.functional import normalize, softmax
from wordpiece_bert.bert.heads.head_model import HeadModel
from wordpiece_bert.bert.parts import name_in_checkpoint, prefix_of
from wordpiece_bert.errors import InputError
from wordpiece_bert.inspect.alignment import align_tokens
from wordpiece_bert.inspect.stack import Stack
from wordpiece_bert.inspect.trace import encoder_of
from wordpiece_bert.sentence.dense.parts import encoder_of as sentence_encoder_of
from wordpiece_bert.sentence.dense.parts import transformer_of
from wordpiece_bert.sentence.dense.transformer import TransformerBody

if TYPE_CHECKING:
    from wordpiece_bert.bert.base_model import Model

FOLDERS = [
    "bert_seqcls_single",
    "bert_seqcls_multi",
    "bert_seqcls_regression",
    "bert_token_cls",
    "bert_question_answering",
    "bert_masked_lm",
    "camembert_seqcls",
    "data2vec_masked_lm",
    "deberta_seqcls",
    "deberta_masked_lm_new",
    "distilbert_seqcls",
    "electra_seqcls",
    "ernie_seqcls",
    "gte_seqcls",
    "jina_seqcls",
    "megatron_seqcls",
    "modernbert_seqcls_mean",
    "mpnet_masked_lm",
    "neobert_masked_lm",
    "nomic_seqcls",
    "roberta_seqcls",
    "xlmr_seqcls",
]


def without(model: Model, heads: list[tuple[int, int]]) -> Model:
    """The model whose columns of the attention's output layer are 0 for some heads."""
    encoder = encoder_of(model)
    prefix = prefix_of(type(encoder)) if isinstance(model, HeadModel) else ""
    weights = {name: array.copy() for name, array in model.named_parameters()}
    for layer, head in heads:
        name = prefix + name_in_checkpoint(
            type(encoder), f"encoder.layer.{layer}.attention.output.dense.weight", model.config
        )
        columns = weights[name].reshape(len(weights[name]), model.config.num_attention_heads, -1)
        columns[:, head] = 0
    return type(model)(model.config, weights)


def said(model: Model, ids: list[int], types: list[int], place: int) -> Any:
    """What the model says, [R, C], by its own call."""
    out: Any = model([ids], token_type_ids=[types])
    if hasattr(out, "start_logits"):
        return np.stack([softmax(out.start_logits)[0], softmax(out.end_logits)[0]], axis=-1)
    logits = out.logits
    if logits.ndim == 3:
        p = softmax(logits)[0]
        return p if "TokenClassification" in type(model).__name__ else p[place][None]
    problem = model.config.problem_type
    if problem == "regression":
        return logits
    return 1 / (1 + np.exp(-logits)) if problem == "multi_label_classification" else softmax(logits)


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_head_that_is_off_is_a_model_with_its_columns_at_zero(folder: str) -> None:
    one = loaded(folder)
    model, tokenizer = one.model, one.tokenizer
    text = "w5 w6 [MASK] w9" if tokenizer.token_to_id("w5") is not None else "the cat <mask> on"
    encoding = tokenizer.encode(text)
    place = encoding.ids.index(tokenizer.mask_token_id) if tokenizer.mask_token_id in encoding.ids else 0
    layers, heads = model.config.encoder_layers, model.config.num_attention_heads
    last = (layers - 1, heads - 1)
    found = inspect.intervene(one, text, heads=[(0, 0), last, 0, [(0, heads - 1), layers - 1]])
    everything = [(0, head) for head in range(heads)]
    assert found.heads[2] == everything
    whole = said(model, encoding.ids, encoding.token_type_ids, place)
    if "MaskedLM" in type(model).__name__:
        columns = [tokenizer.token_to_id(name) for name in found.columns]
    else:
        columns = list(range(whole.shape[1]))
        assert found.columns == (
            ["start", "end"] if "question" in folder else [model.config.label(i) for i in range(len(columns))]
        )
    np.testing.assert_allclose(found.before, whole[:, columns], atol=2e-5)
    for index, changed in enumerate(found.heads):
        other = said(without(model, changed), encoding.ids, encoding.token_type_ids, place)
        np.testing.assert_allclose(found.after[index], other[:, columns], atol=2e-5)
        axis = 0 if "question" in folder else 1
        assert found.moved[index] == pytest.approx(float(np.abs(other - whole).sum(axis=axis).max()) / 2, abs=2e-5)


def test_layers_that_share_their_weights_are_changed_one_by_one() -> None:
    """A head of all layers of an ALBERT is the model without it; of one layer, something between."""
    encoder = sentence_encoder("albert_model")
    heads = transformer_of(encoder).model.config.num_attention_heads
    layers = transformer_of(encoder).model.config.encoder_layers
    found = inspect.intervene(encoder, "w5 w6", heads=[(0, 0), [(layer, 0) for layer in range(layers)]])
    other = without(transformer_of(encoder).model, [(layer, 0) for layer in range(layers)])
    assert heads > 1
    body = transformer_of(encoder)
    changed = sentence_encoder_of(
        wb.SentenceEncoder,
        TransformerBody(other, body.tokenizer, body.folder, None),  # type: ignore[arg-type]
    )
    vectors = normalize(np.concatenate([encoder.encode(["w5 w6"]), changed.encode(["w5 w6"])]))
    assert found.after[1, 0, 0] == pytest.approx(float(vectors[0] @ vectors[1]), abs=1e-5)
    assert found.after[0, 0, 0] != pytest.approx(found.after[1, 0, 0], abs=1e-6)


def sentence_encoder(folder: str) -> wb.SentenceEncoder:
    one = loaded(folder)
    settings = replace(transformer_of(sentences()).folder, dimension=one.model.config.hidden_size)
    body = TransformerBody(one.model, one.tokenizer, settings, None)  # type: ignore[arg-type]
    return sentence_encoder_of(wb.SentenceEncoder, body)


def test_the_neighbours_of_a_sentence_move() -> None:
    encoder = sentences()
    text, beside = "w5 w6 w7", ["w5 w6 w9", "w8 w9", "w7"]
    found = inspect.intervene(encoder, text, beside=beside)
    layers, heads = found.shape
    assert found.heads == [[(i, j)] for i in range(layers) for j in range(heads)] + [
        [(i, j) for j in range(heads)] for i in range(layers)
    ]
    assert (found.columns, found.truncated) == ([text, *beside], False)
    assert inspect.intervene(encoder, text, beside=["w5 w6 w7 w8"], heads=[0], max_length=5).truncated
    vectors = normalize(encoder.encode([text, *beside]))
    np.testing.assert_allclose(found.before[0], vectors[0] @ vectors.T, atol=1e-5)
    body = transformer_of(encoder)
    for index, changed in enumerate(found.heads):
        other = TransformerBody(without(body.model, changed), body.tokenizer, body.folder, None)  # type: ignore[arg-type]
        vector = normalize(sentence_encoder_of(wb.SentenceEncoder, other).encode([text]))[0]
        np.testing.assert_allclose(found.after[index, 0], vector @ vectors.T, atol=1e-5)
        assert found.moved[index] == pytest.approx(1 - float(vector @ vectors[0]), abs=1e-5)


@pytest.mark.parametrize("folder", ["bert_seqcls_single", "deberta_seqcls", "nomic_seqcls", "mpnet_masked_lm"])
def test_heads_of_another_text(folder: str) -> None:
    """From the text itself nothing moves; all heads of the first layer give what they give there."""
    one = loaded(folder)
    text, other = "w5 w6 [MASK] w9", "w5 w7 [MASK] w9"
    np.testing.assert_allclose(inspect.intervene(one, text, other=text).moved, 0, atol=2e-6)
    found = inspect.intervene(one, text, other=other)
    assert found.change == other
    assert found.moved.max() > 1e-6


def test_taking_a_head_is_adding_the_difference_of_what_it_gives() -> None:
    """By hand for one head of the first layer: attention output + (z' − z)·Wₕᵀ, through the layer's own norms."""
    one = loaded("bert_seqcls_single")
    text, other = "w5 w6 w7", "w8 w6 w5 w9 w6 w7"
    parameters = {name.removeprefix("bert."): array for name, array in one.model.named_parameters()}
    traces = [inspect.trace(one, t) for t in (text, other)]
    heads = traces[0].attentions.shape[1]
    prefix = "encoder.layer.0.attention"

    def given(trace: Any) -> Any:
        v = (
            trace.hidden_states[0] @ parameters[f"{prefix}.self.value.weight"].T
            + parameters[f"{prefix}.self.value.bias"]
        )
        return trace.attentions[0, 1] @ np.split(v, heads, axis=1)[1]

    pairs = [(i[0], j[0]) for i, j in align_tokens(traces[0].tokens, traces[1].tokens) if i and j]
    assert len(pairs) == 5  # of eight tokens there, three have no counterpart
    z, there = given(traces[0]), given(traces[1])[[j for _, j in pairs]]
    columns = np.split(parameters[f"{prefix}.output.dense.weight"], heads, axis=1)[1]
    stack = Stack(encoder_of(one.model))
    inputs = stack.inputs(np.array([traces[0].ids]), [0] * len(traces[0].ids))
    bias = f"{prefix}.output.dense.bias"
    x = stack.output(inputs, None, 0, {bias: parameters[bias] + (there - z) @ columns.T})
    expected = softmax(one.model.logits(stack.bert_output(x)))  # type: ignore[attr-defined]
    found = inspect.intervene(one, text, heads=[(0, 1)], other=other)
    np.testing.assert_allclose(found.after[0], expected, atol=1e-5)


def test_wrong_interventions_are_refused() -> None:
    classifier, words = loaded("bert_seqcls_single"), loaded("bert_masked_lm")
    for heads, message in (
        ([], "heads must be a list"),
        ("all", "heads must be a list"),
        ([(0, 99)], "the head must be"),
        ([(9, 0)], "the layer of a head must be"),
        ([9], "a layer must be"),
        ([(0, 0, 0)], re.escape("a head is (layer, head)")),
    ):
        with pytest.raises(InputError, match=message):
            inspect.intervene(classifier, "w5", heads=heads)
    with pytest.raises(InputError, match="beside is for a SentenceEncoder"):
        inspect.intervene(classifier, "w5", beside=["w6"])
    with pytest.raises(InputError, match="token is for"):
        inspect.intervene(classifier, "w5", token=1)
    with pytest.raises(InputError, match=r"no \[MASK\]"):
        inspect.intervene(words, "w5")
    with pytest.raises(InputError, match="takes one text"):
        inspect.intervene(sentences(), "w5", "w6")
    with pytest.raises(InputError, match="other_pair is the second text of other"):
        inspect.intervene(classifier, "w5", other_pair="w6")
    with pytest.raises(InputError, match="other_pair is for models of pairs"):
        inspect.intervene(sentences(), "w5", other="w6", other_pair="w7")
    with pytest.raises(InputError, match="not BertModel"):
        inspect.intervene(loaded("bert_model"), "w5")
    with pytest.raises(InputError, match="takes what intervene returns"):
        inspect.interventions("w5")  # type: ignore[arg-type]


def test_words_that_come_up_with_any_head_are_columns() -> None:
    one = loaded("bert_masked_lm")
    found = inspect.intervene(one, "w5 [MASK] w7", top_k=2)
    assert found.rows == ["[MASK]"]
    assert 2 <= len(found.columns) <= 2 * (len(found.heads) + 1)
    assert found.before[0].tolist() == sorted(found.before[0].tolist(), reverse=True)
    view = inspect.interventions(found)
    np.testing.assert_array_equal(view.arrays["after"], found.after)
    assert view.to_svg()
    assert view.to_html()
