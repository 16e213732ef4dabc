"""`inspect.attribute`: labels, entities, answers, masked words and cosines, beside central differences and single runs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import wordpiece_bert as wb
from model_files import MODELS
from test_inspect_trace import loaded
from wordpiece_bert import inspect
from wordpiece_bert.bert.functional import normalize, softmax
from wordpiece_bert.bert.poolings import POOLINGS
from wordpiece_bert.errors import InputError
from wordpiece_bert.sentence.dense.parts import encoder_of, transformer_of
from wordpiece_bert.sentence.dense.transformer import TransformerBody
from wordpiece_bert.sentence.folders.modules import Dense, Normalize, Pooling, SentenceFolder

if TYPE_CHECKING:
    from collections.abc import Callable

    from wordpiece_bert.tasks import Loaded

TEXT = "w5 w6 [MASK] w9 w8"

#: A folder with each kind of head, of each family that has a backward pass, and the options of a call.
HEADS = [
    ("bert_seqcls_single", {}),
    ("bert_seqcls_multi", {}),
    ("bert_seqcls_regression", {}),
    ("bert_token_cls", {"token": 2, "label": 1}),
    ("bert_question_answering", {"answer": (2, 3)}),
    ("bert_masked_lm", {"label": "w7"}),
    ("bert_pretraining", {"label": 9}),
    ("distilbert_seqcls", {}),
    ("electra_token_cls", {"token": 1, "label": 0}),
    ("modernbert_seqcls_mean", {}),
    ("modernbert_masked_lm", {}),
    ("mpnet_masked_lm", {}),
    ("deberta_seqcls", {}),
    ("deberta_masked_lm_new", {}),
]


def score_of(one: Loaded, found: Any, options: dict[str, Any]) -> Callable[[Any], float]:
    """The logit that is explained, as a function of word vectors [S, E], by the model's own call."""
    model, encoding = one.model, one.tokenizer.encode(TEXT)

    def score(vectors: Any) -> float:
        out: Any = model(inputs_embeds=vectors[None].astype(np.float32), token_type_ids=[encoding.token_type_ids])
        if "answer" in options:
            first, last = options["answer"]
            return float(out.start_logits[0, first]) + float(out.end_logits[0, last])
        logits = out.prediction_logits if hasattr(out, "prediction_logits") else out.logits
        if logits.ndim == 2:
            return float(logits[0, found.chosen])
        place = options.get("token", 3)
        column = options.get("label")
        if column is None or isinstance(column, str):
            column = one.tokenizer.token_to_id(found.choices[found.chosen])
        return float(logits[0, place, column])

    return score


def words_of(one: Loaded) -> Any:
    [table] = [
        array
        for name, array in one.model.named_parameters()
        if name.endswith(("word_embeddings.weight", "tok_embeddings.weight"))
    ][:1]
    return table


@pytest.mark.parametrize(("folder", "options"), HEADS)
def test_gradients_of_every_head_are_central_differences(folder: str, options: dict[str, Any]) -> None:
    one = loaded(folder, backend="numpy")
    found = inspect.attribute(one, TEXT, method="input_x_gradient", **options)
    vectors = words_of(one)[one.tokenizer.encode(TEXT).ids].astype(np.float64)
    score = score_of(one, found, options)
    assert found.score == pytest.approx(score(vectors), abs=1e-4)
    steps = [0.02 * vectors * (np.arange(len(vectors)) == i)[:, None] for i in range(len(vectors))]
    expected = np.array([(score(vectors + step) - score(vectors - step)) / 0.04 for step in steps])
    np.testing.assert_allclose(found.effect, expected, atol=2e-3 + 0.02 * float(np.abs(expected).max()))


@pytest.mark.parametrize(("folder", "options"), HEADS)
def test_integrated_gradients_of_every_layer_add_up(folder: str, options: dict[str, Any]) -> None:
    one = loaded(folder)
    found = inspect.attribute(one, TEXT, method="integrated_gradients", steps=24, layers=True, **options)
    assert found.layers is not None
    assert found.layer_gaps is not None
    vectors = words_of(one)
    ids = one.tokenizer.encode(TEXT).ids
    masked = [ids[0], *[one.tokenizer.mask_token_id] * (len(ids) - 2), ids[-1]]
    score = score_of(one, found, options)
    change = score(vectors[ids]) - score(vectors[masked])
    assert float(found.start[0]) == pytest.approx(score(vectors[masked]), abs=1e-4)
    # What the effects miss of the change is the gap that is shown.
    assert float(found.effect.sum()) - change == pytest.approx(float(found.gap[0]), abs=2e-4)
    sums = found.layers.sum(axis=-1)
    np.testing.assert_allclose(sums - change, found.layer_gaps[:, 0], atol=2e-4)
    assert np.abs(found.layer_gaps).max() <= 0.02 * max(1.0, abs(change))
    assert len(found.layers) == one.model.config.encoder_layers + 1


@pytest.mark.parametrize(
    "folder",
    [
        "bert_seqcls_single",
        "camembert_seqcls",
        "data2vec_masked_lm",
        "deberta_seqcls",
        "distilbert_token_cls",
        "electra_seqcls",
        "ernie_seqcls",
        "gte_seqcls",
        "jina_seqcls",
        "megatron_seqcls",
        "modernbert_token_cls",
        "mpnet_masked_lm",
        "neobert_seqcls",
        "nomic_token_cls",
        "roberta_token_cls",
        "xlmr_seqcls",
    ],
)
def test_occlusion_of_every_family_by_layer(folder: str) -> None:
    """Layer 0 is the same as masking the word, and the last layer reads what the head reads."""
    one = loaded(folder)
    text = "w5 w6 [MASK] w9 w8" if one.tokenizer.token_to_id("w5") is not None else "the cat <mask> on the mat"
    found = inspect.attribute(one, text, layers=True)
    assert found.layers is not None
    np.testing.assert_allclose(found.layers[0], found.effect, atol=1e-5)
    model, encoding = one.model, one.tokenizer.encode(text)
    ids = np.array(encoding.ids)
    out: Any = model([ids], token_type_ids=[encoding.token_type_ids])
    if out.logits.ndim == 2:
        chosen = int(softmax(out.logits)[0].argmax())
        for i in range(1, len(ids) - 1):
            row = ids.copy()
            row[i] = one.tokenizer.mask_token_id
            changed: Any = model([row], token_type_ids=[encoding.token_type_ids])
            expected = softmax(out.logits)[0, chosen] - softmax(changed.logits)[0, chosen]
            assert found.effect[i] == pytest.approx(expected, abs=2e-5)
        reads_first = model.config.model_type != "modernbert"
        if reads_first:
            np.testing.assert_allclose(found.layers[-1, 2:-1], 0, atol=1e-6)
    by_gradient = inspect.attribute(one, text, method="gradient").effect
    assert by_gradient.shape == found.effect.shape
    assert np.isfinite(by_gradient).all()


def test_occlusion_that_removes_tokens_moves_the_place_of_the_label() -> None:
    one = loaded("bert_token_cls")
    found = inspect.attribute(one, TEXT, token=4, label=1, replace="remove")
    ids = one.tokenizer.encode(TEXT).ids

    def score(row: list[int], place: int) -> float:
        out: Any = one.model([row])
        return float(softmax(out.logits)[0, place, 1])

    whole = score(ids, 4)
    assert found.score == pytest.approx(whole, abs=1e-5)
    for i in (1, 2, 3, 5):
        expected = whole - score([*ids[:i], *ids[i + 1 :]], 4 - (i < 4))
        assert found.effect[i] == pytest.approx(expected, abs=1e-5)
    assert found.effect[4] == 0  # its own label has no place without it
    with pytest.raises(InputError, match="replace='mask'"):
        inspect.attribute(one, TEXT, token=4, replace="remove", layers=True)


def sentences(*modules: Any, modes: tuple[str, ...] = ("mean",)) -> wb.SentenceEncoder:
    one = loaded("bert_model")
    folder = SentenceFolder(
        transformer=MODELS / "bert_model",
        pooling=Pooling(modes),
        modules=tuple(modules),
        max_seq_length=16,
        dimension=one.model.config.hidden_size * len(modes),
    )
    return encoder_of(wb.SentenceEncoder, TransformerBody(one.model, one.tokenizer, folder, None))  # type: ignore[arg-type]


@pytest.mark.parametrize("modes", [("mean",), ("cls",), ("max", "mean")])
def test_cosines_of_two_sentences(modes: tuple[str, ...]) -> None:
    encoder = sentences(Normalize(), modes=modes)
    a, b = "w5 w6 w7", "w9 w5 w6 w8"
    model, tokenizer = transformer_of(encoder).model, encoder.tokenizer
    table = words_of(wb.tasks.Loaded(model, tokenizer))
    ids = [tokenizer.encode(text).ids for text in (a, b)]

    def vector(vectors: Any) -> Any:
        x = model(inputs_embeds=vectors[None].astype(np.float32)).last_hidden_state
        return np.concatenate([model.pool(x, np.ones(x.shape[:2], bool), mode) for mode in modes], axis=1)[0]

    u, v = vector(table[ids[0]]), vector(table[ids[1]])
    expected_cosine = float(normalize(u) @ normalize(v))
    product = inspect.attribute(encoder, a, b, method="input_x_gradient")
    assert product.score == pytest.approx(expected_cosine, abs=1e-5)
    assert product.score == pytest.approx(float(np.dot(*normalize(encoder.encode([a, b])))), abs=1e-5)
    assert product.tokens == [*tokenizer.encode(a).tokens, *tokenizer.encode(b).tokens]
    for vectors, other, part in ((table[ids[0]], v, slice(0, 5)), (table[ids[1]], u, slice(5, 11))):
        steps = [0.02 * vectors * (np.arange(len(vectors)) == i)[:, None] for i in range(len(vectors))]
        cosines = [
            [float(normalize(vector(vectors + sign * step)) @ normalize(other)) for step in steps] for sign in (1, -1)
        ]
        np.testing.assert_allclose(product.effect[part], (np.array(cosines[0]) - cosines[1]) / 0.04, atol=2e-3)
    whole = inspect.attribute(encoder, a, b, method="integrated_gradients", layers=True, steps=32)
    assert whole.layers is not None
    assert whole.start.shape == whole.gap.shape == (2,)
    for index, part in enumerate((slice(0, 5), slice(5, 11))):
        total = float(whole.effect[part].sum())
        assert total == pytest.approx(whole.score - float(whole.start[index]) + float(whole.gap[index]), abs=1e-5)
    np.testing.assert_allclose(whole.gap, 0, atol=0.02 if "max" in modes else 2e-3)
    one = inspect.attribute(encoder, a, b)
    masked = a.replace("w6", "[MASK]")
    assert one.effect[2] == pytest.approx(one.score - float(np.dot(*normalize(encoder.encode([masked, b])))), abs=1e-5)


def test_what_cannot_be_explained_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    width = loaded("bert_model").model.config.hidden_size
    dense = sentences(Dense(np.eye(width, dtype=np.float32), np.zeros(width, np.float32), np.tanh))
    assert inspect.attribute(dense, "w5 w6", "w6 w7").score > 0
    with pytest.raises(InputError, match="a module Dense after the pooling"):
        inspect.attribute(dense, "w5 w6", "w6 w7", method="gradient")
    monkeypatch.setitem(POOLINGS, "max", replace(POOLINGS["max"], gradient=None))
    with pytest.raises(InputError, match="the pooling max"):
        inspect.attribute(sentences(modes=("max",)), "w5", "w6", method="gradient")
    with pytest.raises(InputError, match="pass pair="):
        inspect.attribute(dense, "w5 w6")
    for folder in ("bert_next_sentence", "bert_multiple_choice", "electra_discriminator", "bert_model"):
        one = loaded(folder)
        with pytest.raises(InputError, match=f"not {type(one.model).__name__}"):
            inspect.attribute(one, "w5 w6")
    classifier, words, answers = (
        loaded(n) for n in ("bert_seqcls_single", "bert_masked_lm", "bert_question_answering")
    )
    with pytest.raises(InputError, match="answer is for a model for question answering"):
        inspect.attribute(classifier, "w5", answer=(0, 1))
    with pytest.raises(InputError, match="token is for a model with an output for each token"):
        inspect.attribute(classifier, "w5", token=1)
    with pytest.raises(InputError, match="no token 'none such'"):
        inspect.attribute(words, "[MASK] w5", label="none such")
    with pytest.raises(InputError, match="an answer has no label"):
        inspect.attribute(answers, "w5", "w6", label=0)
    with pytest.raises(InputError, match="first and the last token"):
        inspect.attribute(answers, "w5", "w6", answer=3)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="token must be"):
        inspect.attribute(words, "w5", token=9)
    for given in ({"label": "b"}, {"token": 1}, {"answer": (0, 1)}):
        with pytest.raises(InputError, match=f"{next(iter(given))} is for models with a head"):
            inspect.attribute(dense, "w5", "w6", **given)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="layers must be True or False"):
        inspect.attribute(classifier, "w5", layers="no")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="text must be a str, not NoneType"):
        inspect.attribute(classifier, None)  # type: ignore[arg-type]


def test_defaults_explain_what_the_model_answers() -> None:
    words = inspect.attribute(loaded("bert_masked_lm"), TEXT)
    assert words.target.endswith("at [MASK]")
    assert words.chosen == 0
    assert len(words.choices) == 5
    assert words.scores.tolist() == sorted(words.scores.tolist(), reverse=True)
    answers = loaded("bert_question_answering")
    found = inspect.attribute(answers, "w5 w6", "w7 w8 w9")
    out: Any = answers.model([answers.tokenizer.encode("w5 w6", "w7 w8 w9").ids], token_type_ids=[[0] * 4 + [1] * 4])
    spans = [(i, j) for i in range(4, 7) for j in range(i, 7)]
    first, last = max(spans, key=lambda s: float(out.start_logits[0, s[0]] + out.end_logits[0, s[1]]))
    assert found.target == " ".join(found.tokens[first : last + 1])
    assert found.score == pytest.approx(
        float(softmax(out.start_logits)[0, first] * softmax(out.end_logits)[0, last]), abs=1e-5
    )
    entity = inspect.attribute(loaded("bert_token_cls"), TEXT)
    assert entity.target.split(" at ")[1] in entity.tokens[1:-1]


def test_saliency_shows_several_attributions() -> None:
    one = loaded("bert_seqcls_single")
    found = [
        inspect.attribute(one, TEXT, method=method, layers=True)  # type: ignore[arg-type]
        for method in ("occlusion", "gradient", "input_x_gradient", "integrated_gradients")
    ]
    view = inspect.saliency(found)
    for number, each in enumerate(found, 1):
        suffix = "" if number == 1 else str(number)
        np.testing.assert_array_equal(view.arrays[f"effect{suffix}"], each.effect)
        assert each.layers is not None
        np.testing.assert_array_equal(view.arrays[f"layers{suffix}"], each.layers)
    assert [entry["method"] for entry in view.data["others"]] == [each.method for each in found[1:]]
    assert view.to_svg()
    with pytest.raises(InputError, match="leave text out"):
        inspect.saliency(found[0], "w5")
    with pytest.raises(InputError, match="needs a text"):
        inspect.saliency(one)
    with pytest.raises(InputError, match="takes what attribute returns"):
        inspect.saliency([found[0], "w5"])  # type: ignore[list-item]
