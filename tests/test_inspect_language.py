"""Predictions, the lens and saliency in `wordpiece_bert.inspect`, by their definitions."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from inspect_fixtures import blanks, folders, reviews
from wordpiece_bert import inspect
from wordpiece_bert.bert import BertConfig, BertForSequenceClassification
from wordpiece_bert.bert.checkpoint import bert_shapes
from wordpiece_bert.bert.families import (
    MegatronBertConfig,
    MegatronBertForSequenceClassification,
    NeoBertConfig,
    NeoBertForMaskedLM,
)
from wordpiece_bert.bert.family_table import FAMILIES
from wordpiece_bert.bert.functional import softmax
from wordpiece_bert.errors import InputError
from wordpiece_bert.tasks import Loaded


def test_predictions_are_the_softmax_of_the_head(blanks: Loaded) -> None:
    text = "[MASK] is the capital of france"
    view = inspect.predictions(blanks, text, top_k=3)
    encoding = blanks.tokenizer.encode(text)
    p = softmax(blanks.model([encoding.ids]).logits[0])
    order = np.argsort(-p, axis=-1, kind="stable")[:, :3]
    assert view.data["words"] == [[blanks.tokenizer.id_to_token(int(i)) for i in row] for row in order]
    np.testing.assert_allclose(view.arrays["probabilities"], np.take_along_axis(p, order, -1), rtol=1e-6)
    np.testing.assert_allclose(view.arrays["own"], p[np.arange(len(p)), encoding.ids], rtol=1e-6)


def test_each_position_is_masked_in_turn(blanks: Loaded) -> None:
    text = "the capital of france"
    view = inspect.predictions(blanks, text, top_k=1, mask_each=True)
    ids = blanks.tokenizer.encode(text).ids
    for i in range(1, len(ids) - 1):
        row = [*ids[:i], blanks.tokenizer.mask_token_id, *ids[i + 1 :]]
        p = softmax(blanks.model([row]).logits[0, i])
        assert view.arrays["own"][i] == pytest.approx(p[ids[i]], rel=1e-5)


def test_the_last_layer_of_the_lens_is_the_prediction(blanks: Loaded) -> None:
    text = "[MASK] is the capital of france"
    sizes = {"hidden_size": 24, "num_attention_heads": 2, "num_hidden_layers": 3, "intermediate_size": 48}
    config = NeoBertConfig(vocab_size=blanks.tokenizer.vocab_size, **sizes)  # its states are of the layers alone
    for model in (blanks.model, NeoBertForMaskedLM.from_config(config)):
        source = model, blanks.tokenizer
        lens, last = inspect.logit_lens(source, text), inspect.predictions(source, text, top_k=5)
        assert lens.arrays["probabilities"].shape[0] == model.config.num_hidden_layers + 1
        np.testing.assert_allclose(lens.arrays["probabilities"][-1], last.arrays["probabilities"], rtol=1e-6)
        assert lens.data["words"][-1] == last.data["words"]


@pytest.mark.parametrize("replace", ["mask", "remove"])
def test_saliency_is_the_score_without_the_token(reviews: Loaded, replace: Any) -> None:
    text = "a dull film"
    view = inspect.saliency(reviews, text, replace=replace)
    tokenizer, model = reviews.tokenizer, reviews.model
    ids = tokenizer.encode(text).ids
    whole = softmax(model([ids]).logits)[0]
    chosen = int(whole.argmax())
    assert view.data["label"] == model.config.label(chosen)
    assert view.arrays["effect"][0] == view.arrays["effect"][-1] == 0
    for i in range(1, len(ids) - 1):
        row = [*ids[:i], *([tokenizer.mask_token_id] if replace == "mask" else []), *ids[i + 1 :]]
        without = softmax(model([row]).logits)[0, chosen]
        assert view.arrays["effect"][i] == pytest.approx(whole[chosen] - without, abs=1e-6)
    assert int(view.arrays["effect"].argmax()) == view.data["tokens"].index("dull")


def drawn_classifier(cls: Any, config_class: Any, vocab_size: int) -> Any:
    """A classifier of two layers and three labels whose weights are drawn: its logits are smooth in the word vectors."""
    config = config_class(
        vocab_size=vocab_size,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=24,
        max_position_embeddings=32,
        id2label={0: "a", 1: "b", 2: "c"},
    )
    random = np.random.default_rng(5)
    weights = {}
    for name, shape in bert_shapes(config).items():
        sizes = [getattr(config, size) if isinstance(size, str) else size for size in shape]
        drawn = 0.3 * random.standard_normal(sizes)
        weights[f"bert.{name}"] = (drawn + name.endswith("LayerNorm.weight")).astype(np.float32)
    weights["classifier.weight"] = random.standard_normal((3, 16)).astype(np.float32)
    weights["classifier.bias"] = random.standard_normal(3).astype(np.float32)
    return cls(config, weights, backend="numpy")


@pytest.fixture(scope="module")
def drawn(reviews: Loaded) -> Loaded:
    tokenizer = reviews.tokenizer
    return Loaded(drawn_classifier(BertForSequenceClassification, BertConfig, len(tokenizer)), tokenizer)


def word_vectors(drawn: Loaded, text: str, pair: str | None = None) -> tuple[Any, Any]:
    """The word vectors of a text [S, E], and the logits as a function of them."""
    encoding = drawn.tokenizer.encode(text, pair)
    table = dict(drawn.model.named_parameters())["bert.embeddings.word_embeddings.weight"]

    def logits(vectors: Any) -> Any:
        return drawn.model(inputs_embeds=vectors[None], token_type_ids=[encoding.token_type_ids]).logits[0]

    return table[encoding.ids], logits


@pytest.mark.parametrize("label", [None, "a", 2])
def test_gradients_are_those_of_central_differences(drawn: Loaded, label: Any) -> None:
    text, pair = "a dull film", "the story was moving"
    plain = inspect.saliency(drawn, text, pair, label=label, method="gradient")
    product = inspect.saliency(drawn, text, pair, label=label, method="input_x_gradient")
    vectors, logits = word_vectors(drawn, text, pair)
    chosen = plain.data["chosen"]
    assert chosen == {None: int(logits(vectors).argmax()), "a": 0, 2: 2}[label]
    gradient = np.zeros_like(vectors)
    for index in np.ndindex(*vectors.shape):
        step = np.zeros_like(vectors)
        step[index] = 0.03
        gradient[index] = (logits(vectors + step) - logits(vectors - step))[chosen] / 0.06
    largest = float(np.abs(plain.arrays["effect"]).max())
    np.testing.assert_allclose(plain.arrays["effect"], np.linalg.norm(gradient, axis=-1), atol=0.01 * largest)
    np.testing.assert_allclose(product.arrays["effect"], (vectors * gradient).sum(axis=-1), atol=0.02 * largest)
    assert not plain.data["signed"]
    assert (product.arrays["effect"] < 0).any()


@pytest.mark.parametrize("replace", ["mask", "remove"])
def test_integrated_gradients_add_up_to_the_change_of_the_logit(drawn: Loaded, replace: Any) -> None:
    text = "a wonderful story and a dull film"
    view = inspect.saliency(drawn, text, label="b", method="integrated_gradients", replace=replace, steps=64)
    vectors, logits = word_vectors(drawn, text)
    start = vectors.copy()
    start[1:-1] = word_vectors(drawn, "[MASK]")[0][1] if replace == "mask" else 0
    change = float((logits(vectors) - logits(start))[1])
    effect = view.arrays["effect"]
    assert np.abs(effect).max() > 0.05
    assert float(effect.sum()) == pytest.approx(change, abs=2e-3)
    assert effect[0] == effect[-1] == 0  # special tokens are not replaced
    assert f"{float(effect.sum()):+.3f}" in view.data["note"]
    # One point of the Gauss-Legendre rule is the middle of the line: the gradient there times the difference.
    middle = inspect.saliency(drawn, text, label="b", method="integrated_gradients", replace=replace, steps=1)
    product = float(middle.arrays["effect"].sum())
    ahead, behind = (logits(start + (0.5 + a) * (vectors - start))[1] for a in (0.01, -0.01))
    assert product == pytest.approx(float(ahead - behind) / 0.02, rel=0.02, abs=1e-3)


def test_a_linear_score_has_the_same_effects_by_every_method(reviews: Loaded) -> None:
    """The words of praise and blame decide, whatever the method.

    Not so for word vector times gradient: a norm follows the word vectors, which have no positions added, so the score
    does not change with their length, and what that method measures is 0 up to rounding.
    """
    text = "a wonderful film and a dull film"
    product = inspect.saliency(reviews, text, label="positive", method="input_x_gradient").arrays["effect"]
    np.testing.assert_allclose(product, 0, atol=1e-4)
    assert "right angle" in inspect.attribute(reviews, text, label="positive", method="input_x_gradient").why_zero
    for method in ("occlusion", "integrated_gradients"):
        view = inspect.saliency(reviews, text, label="positive", method=method)  # type: ignore[arg-type]
        effect = dict(zip(view.data["tokens"], view.arrays["effect"].tolist(), strict=True))
        assert max(effect, key=effect.__getitem__) == "wonderful", method
        assert min(effect, key=effect.__getitem__) == "dull", method
    size = inspect.saliency(reviews, text, label="positive", method="gradient").arrays["effect"]
    assert (size >= 0).all()


def test_long_texts_are_differentiated_in_parts(drawn: Loaded, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = inspect.saliency(drawn, "a dull film", method="integrated_gradients", steps=7)
    monkeypatch.setattr(sys.modules["wordpiece_bert.inspect.effects"], "GRADIENT_TOKENS", 11)
    parts = inspect.saliency(drawn, "a dull film", method="integrated_gradients", steps=7)
    np.testing.assert_allclose(whole.arrays["effect"], parts.arrays["effect"], rtol=1e-4, atol=1e-5)


def test_saliency_refuses_what_it_does_not_know(drawn: Loaded, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="method must be one of 'occlusion', 'gradient'"):
        inspect.saliency(drawn, "a film", method="lime")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="replace must be one of"):
        inspect.saliency(drawn, "a film", replace="zero")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="steps must be a whole number"):
        inspect.saliency(drawn, "a film", steps=0)
    with pytest.raises(InputError, match="label must be one of a, b, c"):
        inspect.saliency(drawn, "a film", label=3)
    vocab_size = len(drawn.tokenizer)
    other = drawn_classifier(MegatronBertForSequenceClassification, MegatronBertConfig, vocab_size)
    monkeypatch.setitem(FAMILIES, "megatron-bert", replace(FAMILIES["megatron-bert"], training=None))
    with pytest.raises(
        InputError, match=r"MegatronBertForSequenceClassification does not have here.*method='occlusion'"
    ):
        inspect.saliency((other, drawn.tokenizer), "a film", method="gradient")


def test_a_view_refuses_a_model_without_its_head(reviews: Loaded, blanks: Loaded) -> None:
    with pytest.raises(InputError, match="masked-language head"):
        inspect.predictions(reviews, "a film")
    with pytest.raises(InputError, match="masked-language head"):
        inspect.logit_lens(reviews, "a film")
    with pytest.raises(InputError, match=r"no \[MASK\]"):
        inspect.saliency(blanks, "a film")
    with pytest.raises(InputError, match="label must be one of"):
        inspect.saliency(reviews, "a film", label="none such")
    with pytest.raises(InputError, match="a model and its tokenizer"):
        inspect.trace((1, 2), "a")  # type: ignore[arg-type]
