"""DeBERTa, versions 2 and 3: the engines agree for any configuration, and with transformers where it is installed."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from model_files import MODELS, check_equal, copied, reference_cases
from random_models import random_model
from wordpiece_bert import CrossEncoder, SentenceEncoder, bert, tasks
from wordpiece_bert.bert import (
    AutoModel,
    DebertaV2Config,
    DebertaV2ForMaskedLM,
    DebertaV2ForSequenceClassification,
    DebertaV2Model,
)
from wordpiece_bert.bert.disentangled import relative_rows
from wordpiece_bert.errors import ConfigError, InputError, ModelNotFoundError
from wordpiece_bert.tokenizer.subword import SubwordTokenizer

EVERYTHING = {"output_hidden_states": True, "output_attentions": True}


@st.composite
def configs(draw: st.DrawFn) -> DebertaV2Config:
    """A configuration with any of the terms, with buckets or without, with a convolution or without."""
    heads, size = draw(st.integers(1, 3)), draw(st.sampled_from([2, 8, 16, 32, 36, 64]))
    buckets = draw(st.sampled_from([-1, 0, 2, 3, 4, 5, 8, 16]))
    return DebertaV2Config(
        vocab_size=50,
        hidden_size=heads * size,
        num_hidden_layers=2,
        num_attention_heads=heads,
        intermediate_size=draw(st.integers(1, 50)),
        max_position_embeddings=draw(st.integers(40, 60)),
        type_vocab_size=draw(st.sampled_from([0, 2])),
        embedding_size=draw(st.sampled_from([0, 12, 32])),
        relative_attention=draw(st.booleans()),
        max_relative_positions=draw(st.sampled_from([-1, 12, 30])),
        position_buckets=buckets,
        pos_att_type=draw(st.sampled_from([(), ("c2p",), ("p2c",), ("p2c", "c2p")])),
        position_biased_input=draw(st.booleans()),
        share_att_key=draw(st.booleans()),
        norm_rel_ebd=draw(st.sampled_from(["none", "layer_norm", "none|layer_norm"])),
        conv_kernel_size=draw(st.sampled_from([0, 1, 3, 5])),
        conv_groups=draw(st.sampled_from([1, heads])),
        conv_act=draw(st.sampled_from(["tanh", "gelu", "sigmoid"])),
        hidden_act=draw(st.sampled_from(["gelu", "relu"])),
    )


def random_weights(config: DebertaV2Config, seed: int) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    weights = {}
    for name, shape in DebertaV2Model._layout(config).base.items():
        sizes = [getattr(config, size) if isinstance(size, str) else size for size in shape]
        mean = 1.0 if len(sizes) == 1 and "weight" in name else 0.0
        deviation = 0.2 if len(sizes) == 1 else 1.0 / math.sqrt(sizes[1])  # outputs are about as large as inputs
        weights[name] = random.normal(mean, deviation, sizes).astype(np.float32)
    return weights


def random_rows(config: DebertaV2Config, draw: Any, seed: int) -> tuple[Any, Any]:
    """Ids [B, S], and a mask with padding on either side, or with holes."""
    random = np.random.default_rng(seed)
    longest = min(90, config.longest_row)
    batch, length = draw(st.integers(1, 3)), draw(st.integers(1, longest))
    ids = random.integers(0, config.vocab_size, (batch, length))
    lengths = random.integers(1, length + 1, (batch, 1))
    kind = draw(st.sampled_from(["none", "right", "left", "holes"]))
    if kind == "none":
        return ids, None
    mask = np.arange(length) < lengths
    if kind == "left":
        mask = mask[:, ::-1]
    if kind == "holes":
        mask = random.random(ids.shape) < 0.7
        mask[:, random.integers(0, length)] = True
    return ids, mask.astype(np.int64)


@given(st.integers(-3000, 3000), st.sampled_from([2, 3, 4, 7, 8, 64, 256, 512]), st.sampled_from([0, 300, 512, 1024]))
def test_rows_of_distances_by_their_definition(distance: int, span: int, longest: int) -> None:
    """One row a distance up to half the span, then logarithmic steps; symmetric about row K; 0 and 2K − 1 beyond."""
    found = int(relative_rows(np.array(distance), span, longest))
    row = distance
    if longest and abs(distance) > span // 2:
        middle = span // 2
        steps = math.log(abs(distance) / middle) / math.log((longest - 1) / middle) * (middle - 1)
        row = int(math.copysign(math.ceil(steps) + middle, distance))
    assert found == min(max(row + span, 0), 2 * span - 1)
    assert relative_rows(np.array(0), span, longest) == span


# --- files


def test_released_files_have_tensors_that_no_class_reads(recwarn: pytest.WarningsRecorder) -> None:
    """As in files on the Hub: position tables without use, the heads of pre-training, a pooler, the prefix."""
    model: Any = AutoModel.from_pretrained(MODELS / "deberta_conv_groups")
    weights = {f"deberta.{name}": array for name, array in model.named_parameters()}
    one = np.ones(1, np.float32)
    names = ("embeddings.position_embeddings.weight", "embeddings.position_ids")
    weights |= {f"deberta.{name}": one for name in names}
    weights |= dict.fromkeys(("lm_predictions.lm_head.bias", "mask_predictions.dense.bias", "pooler.dense.bias"), one)
    again = DebertaV2Model(model.config, weights)
    np.testing.assert_array_equal(again([[5, 9]]).last_hidden_state, model([[5, 9]]).last_hidden_state)
    assert not recwarn


@pytest.mark.parametrize("tied", [True, False])
def test_the_new_head_takes_the_word_table_whatever_is_tied(tied: bool, tmp_path: Path) -> None:
    folder = copied("deberta_masked_lm_new", tmp_path, "config.json", tie_word_embeddings=tied)
    model = DebertaV2ForMaskedLM.from_pretrained(folder)
    ((inputs, expected),) = [
        case for case in reference_cases("deberta_masked_lm_new").values() if "loss" not in case[1]
    ]
    check_equal(model(**inputs), expected, inputs["attention_mask"])
    assert "lm_predictions.lm_head.decoder.weight" not in dict(model.named_parameters())


def test_terms_are_named_by_a_string_or_a_list(tmp_path: Path) -> None:
    given = {"": (), "p2c|c2p": ("p2c", "c2p"), " C2P ": ("c2p",)}
    for text, expected in given.items():
        assert DebertaV2Config.from_dict({"pos_att_type": text}).pos_att_type == expected
    assert DebertaV2Config.from_dict({"pos_att_type": None}).pos_att_type == ()
    assert DebertaV2Config.from_dict({}).embedding_size == 1536
    config = DebertaV2Config.from_dict({"pos_att_type": "c2p", "relative_attention": False})
    attention = config.plan().attention(0)
    assert (attention.terms, attention.relative) == (2, None)
    assert DebertaV2Config.from_dict(config.to_dict()) == config


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"pos_att_type": ["p2p"]}, "pos_att_type"),
        ({"pos_att_type": 3}, "pos_att_type"),
        ({"pooler_hidden_size": 12}, "pooler_hidden_size is 12: it must be hidden_size, 32"),
        ({"attention_head_size": 12}, "attention_head_size is 12"),
        ({"norm_rel_ebd": "batch_norm"}, "norm_rel_ebd"),
        ({"norm_rel_ebd": None}, "norm_rel_ebd"),
        ({"conv_kernel_size": 4}, "conv_kernel_size is 4: it must be an odd number"),
        ({"conv_groups": 5}, "conv_groups is 5: it must divide hidden_size, 32"),
        ({"conv_act": "nothing"}, "conv_act"),
        ({"pooler_hidden_act": "nothing"}, "pooler_hidden_act"),
        ({"position_buckets": 1}, "position_buckets is 1"),
        ({"position_buckets": 8, "max_relative_positions": 5}, "position_buckets is 8"),
        ({"max_relative_positions": "many"}, "max_relative_positions"),
        ({"relative_attention": 1}, "relative_attention is 1: it must be true or false"),
        ({"legacy": "no"}, "legacy"),
        ({"model_type": "deberta"}, "deberta"),
    ],
)
def test_settings_that_are_not_supported_are_named(fields: dict[str, Any], message: str, tmp_path: Path) -> None:
    folder = copied("deberta_conv_groups", tmp_path, "config.json", **fields)
    with pytest.raises(ConfigError, match=message):
        AutoModel.from_pretrained(folder)


def test_rows_are_limited_by_a_table_of_positions_alone() -> None:
    model: Any = AutoModel.from_pretrained(MODELS / "deberta_conv_groups")
    assert model(np.ones((1, 300), np.int64)).last_hidden_state.shape == (1, 300, 32)
    with pytest.raises(InputError, match="longer than"):
        AutoModel.from_pretrained(MODELS / "deberta_own_keys")(np.ones((1, 300), np.int64))


@pytest.mark.parametrize("load", [CrossEncoder.from_pretrained, SentenceEncoder.from_pretrained, tasks.load])
def test_a_sentencepiece_model_alone_is_refused_by_its_name(load: Any, tmp_path: Path) -> None:
    folder = copied("deberta_seqcls", tmp_path)
    (folder / "spm.model").write_bytes(b"\n")
    with pytest.raises(ModelNotFoundError, match=r"(?s)spm\.model.*save_pretrained"):
        load(folder)


# --- the tokenizer


def with_compatibility_forms(folder: Path, tokenizer_class: str) -> Path:
    """A Unigram tokenizer whose normalizer makes IV of Ⅳ and fi of ﬁ, with a class that transformers rebuilds."""
    folder.mkdir()
    content = json.loads((MODELS / "rerank_deberta" / "tokenizer.json").read_text(encoding="utf-8"))
    content["normalizer"] = {"type": "NFKC"}
    content["model"]["vocab"] += [["▁IV", -2.0], ["▁five", -2.0]]
    (folder / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
    settings = json.loads((MODELS / "rerank_deberta" / "tokenizer_config.json").read_text(encoding="utf-8"))
    settings.pop("backend", None)
    (folder / "tokenizer_config.json").write_text(json.dumps(settings | {"tokenizer_class": tokenizer_class}))
    (folder / "config.json").write_text(json.dumps({"model_type": "deberta-v2"}))
    return folder


REBUILT = ("DebertaV2TokenizerFast", "XLMRobertaTokenizerFast", "CamembertTokenizerFast")


@pytest.mark.parametrize("tokenizer_class", REBUILT)
def test_ids_are_those_of_the_file_whatever_the_class(tokenizer_class: str, tmp_path: Path) -> None:
    """Row M27 of docs/differences.md."""
    tokenizers = pytest.importorskip("tokenizers")
    folder = with_compatibility_forms(tmp_path / "model", tokenizer_class)
    tokenizer = SubwordTokenizer(folder)
    by_itself = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    for text, piece in (("Ⅳ", "▁IV"), ("ﬁve", "▁five")):
        assert tokenizer.encode(text).ids == by_itself.encode(text).ids
        assert tokenizer.encode(text).tokens[1:-1] == [piece]


@pytest.mark.parametrize("tokenizer_class", REBUILT)
def test_transformers_rebuilds_the_pipeline_of_some_classes(tokenizer_class: str, tmp_path: Path) -> None:
    """Row M27 of docs/differences.md: what transformers does; should this fail, the row is out of date."""
    transformers: Any = pytest.importorskip("transformers", reason="transformers is not installed: make test-torch")
    folder = with_compatibility_forms(tmp_path / "model", tokenizer_class)
    theirs, ours = transformers.AutoTokenizer.from_pretrained(folder), SubwordTokenizer(folder)
    for text in ("Ⅳ", "ﬁve"):
        assert theirs(text)["input_ids"] != ours.encode(text).ids
    assert theirs("the city")["input_ids"] == ours.encode("the city").ids


# --- heads and tasks


def test_losses_of_sequences_without_a_problem_type() -> None:
    model = DebertaV2ForSequenceClassification.from_pretrained(MODELS / "deberta_seqcls")
    ids = [[1, 5, 9], [1, 7, 2]]
    logits = model(ids).logits.astype(np.float64)
    logs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    targets = np.array([[0.2, 0.3, 0.5], [1.0, 0.0, 0.0]])
    assert model(ids, labels=targets).loss == pytest.approx(-(targets * logs).sum(axis=1).mean(), abs=1e-6)
    assert model(ids, labels=[2, -1]).loss == pytest.approx(-logs[0, 2], abs=1e-6)
    assert model(ids, labels=[-1, -100]).loss == 0.0
    with pytest.raises(InputError, match="outside 0 to 2"):
        model(ids, labels=[3, 0])
    with pytest.raises(InputError, match="a class is a whole number"):
        model(ids, labels=[0.5, 0.5])


def test_logits_of_a_single_label_have_two_dimensions_with_labels_too() -> None:
    """Row M28 of docs/differences.md."""
    model = DebertaV2ForSequenceClassification.from_pretrained(MODELS / "deberta_seqcls_regression")
    ids = [[1, 5, 9], [1, 7, 2]]
    without, found = model(ids), model(ids, labels=[0.5, -1.0])
    assert found.logits.shape == without.logits.shape == (2, 1)
    np.testing.assert_array_equal(found.logits, without.logits)
    errors = found.logits[:, 0].astype(np.float64) - [0.5, -1.0]
    assert found.loss == pytest.approx((errors**2).mean(), abs=1e-6)


def test_transformers_returns_logits_of_another_shape_with_labels() -> None:
    """Row M28 of docs/differences.md: what transformers does; should this fail, the row is out of date."""
    torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed: make test-torch")
    transformers: Any = pytest.importorskip("transformers", reason="transformers is not installed: make test-torch")
    folder = MODELS / "deberta_seqcls_regression"
    theirs = transformers.DebertaV2ForSequenceClassification.from_pretrained(folder, dtype=torch.float32).eval()
    ids, labels = torch.tensor([[1, 5, 9], [1, 7, 2]]), torch.tensor([0.5, -1.0])
    with torch.no_grad():
        assert theirs(ids).logits.shape == (2, 1)
        out = theirs(ids, labels=labels)
    assert out.logits.shape == (2,)
    ours = DebertaV2ForSequenceClassification.from_pretrained(folder)(ids.numpy(), labels=labels.numpy())
    np.testing.assert_allclose(ours.logits[:, 0], out.logits.numpy(), rtol=0, atol=1e-5)
    assert ours.loss == pytest.approx(float(out.loss), abs=1e-5)


@pytest.mark.parametrize("backend", ["rust", "numpy"])
def test_zero_shot_labels_equal_those_of_transformers(backend: str) -> None:
    pytest.importorskip("tokenizers")
    source = tasks.load(MODELS / "zero_shot_deberta", backend)
    listing = json.loads((MODELS / "zero_shot_deberta" / "reference.json").read_text(encoding="utf-8"))
    for run in listing["runs"]:
        labels = run["options"].pop("candidate_labels")
        with pytest.warns(UserWarning, match="truncated"):
            found = tasks.zero_shot(source, run["texts"], labels, **run["options"])
        for one, expected in zip(found, run["results"], strict=True):
            scores = dict(zip(expected["labels"], expected["scores"], strict=True))
            assert dict(zip(one["labels"], one["scores"], strict=True)) == pytest.approx(scores, abs=1e-5)


# --- transformers


@given(config=configs(), data=st.data(), seed=st.integers(0, 2**16))
@settings(max_examples=25, deadline=None)
def test_both_engines_equal_transformers(config: DebertaV2Config, data: st.DataObject, seed: int) -> None:
    torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed: make test-torch")
    transformers: Any = pytest.importorskip("transformers", reason="transformers is not installed: make test-torch")
    ids, mask = random_rows(config, data.draw, seed)
    weights = random_weights(config, seed)
    theirs = transformers.DebertaV2Model(transformers.DebertaV2Config(**config.to_dict())).eval()
    loaded = theirs.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()}, strict=False)
    # A norm of relative positions that are not used has no effect.
    assert all(name.startswith("encoder.LayerNorm.") for name in loaded.missing_keys)
    assert not loaded.unexpected_keys
    with torch.no_grad():
        out = theirs(torch.from_numpy(ids), None if mask is None else torch.from_numpy(mask.copy()))
    for backend in ("rust", "numpy"):
        found = DebertaV2Model(config, weights, backend=backend)(ids, mask)
        check_equal(found, {"last_hidden_state": out.last_hidden_state.numpy()}, None, 2e-5)


HEADS = ("MaskedLM", "SequenceClassification", "TokenClassification", "QuestionAnswering", "MultipleChoice")


@pytest.mark.parametrize("head", HEADS)
@given(config=configs(), data=st.data(), seed=st.integers(0, 2**16))
@settings(max_examples=5, deadline=None)
def test_logits_of_heads_equal_those_of_transformers(
    head: str, config: DebertaV2Config, data: st.DataObject, seed: int
) -> None:
    torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed: make test-torch")
    transformers: Any = pytest.importorskip("transformers", reason="transformers is not installed: make test-torch")
    labels = {"QuestionAnswering": 2, "MultipleChoice": 1}.get(head, 3)
    legacy = data.draw(st.booleans())
    config = dataclasses.replace(
        config,
        # The new head for masked tokens multiplies with the word table, which then must be as wide as the layers.
        embedding_size=0 if head == "MaskedLM" and not legacy else config.embedding_size,
        legacy=legacy,
        pooler_hidden_act=data.draw(st.sampled_from(["gelu", "tanh"])),
        id2label={index: f"LABEL_{index}" for index in range(labels)},
    )
    ids, mask = random_rows(config, data.draw, seed)
    mask = np.ones_like(ids) if mask is None else mask
    if head == "MultipleChoice":
        ids, mask = np.stack([ids, ids[:, ::-1]], axis=1), np.stack([mask, mask[:, ::-1]], axis=1)
        mask[..., 0] = 1
    kind: Any = getattr(bert, f"DebertaV2For{head}")
    models = [random_model(kind, config, backend, seed) for backend in ("rust", "numpy")]
    theirs = getattr(transformers, f"DebertaV2For{head}")(transformers.DebertaV2Config(**config.to_dict())).eval()
    loaded = theirs.load_state_dict(
        {name: torch.from_numpy(np.array(array)) for name, array in models[0].named_parameters()}, strict=False
    )
    theirs.tie_weights()
    # A norm of relative positions that are not used has no effect; a decoder is the word table, or has a bias twice.
    assert all("encoder.LayerNorm." in name or "decoder." in name for name in loaded.missing_keys)
    assert not loaded.unexpected_keys
    with torch.no_grad():
        out = theirs(torch.from_numpy(ids.copy()), torch.from_numpy(mask.copy()))
    names = ("start_logits", "end_logits") if head == "QuestionAnswering" else ("logits",)
    for model in models:
        found = model(ids, mask)
        for name in names:
            expected = getattr(out, name).numpy()
            error = np.abs(getattr(found, name) - expected) / np.maximum(1.0, np.abs(expected))
            assert error.max() < 2e-5, name
