"""Heads and variants of BERT: equal to transformers; losses, labels, and errors."""

from __future__ import annotations

import dataclasses
import json
import math
import re
import shutil
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wordpiece_bert.bert as bert_package
from model_files import MODELS, check_equal, reference_cases
from wordpiece_bert.bert import (
    AutoModel,
    BertConfig,
    BertForMaskedLM,
    BertForMultipleChoice,
    BertForNextSentencePrediction,
    BertForPreTraining,
    BertForQuestionAnswering,
    BertForSequenceClassification,
    BertForTokenClassification,
    BertModel,
    Model,
)
from wordpiece_bert.bert.auto import read_config
from wordpiece_bert.bert.checkpoint import read_tensors
from wordpiece_bert.bert.family_table import FAMILIES
from wordpiece_bert.bert.losses import binary_cross_entropy, cross_entropy, mean_squared_error
from wordpiece_bert.errors import CheckpointError, CheckpointWarning, ConfigError, InputError

#: What the names of recorded folders begin with, and the names that some files have for classes.
RECORDED = {
    *("albert", "bert", "camembert", "data2vec", "deberta", "distilbert", "electra", "ernie", "gte", "jina"),
    *("megatron", "modernbert", "mpnet", "neobert", "nomic", "roberta", "xlmr"),
}
REMOTE = {
    "NewModel": "GteModel",
    "NeoBERT": "NeoBertModel",
    "NeoBERTLMHead": "NeoBertForMaskedLM",
    "NeoBERTForSequenceClassification": "NeoBertForSequenceClassification",
}


def classes() -> dict[str, str]:
    """The classes of recorded folders, as their configurations name them; encoders of BERT are in test_model.py."""
    folders = sorted(file.parent for file in MODELS.glob("*/reference.npz"))
    named = {
        folder.name: json.loads((folder / "config.json").read_text(encoding="utf-8"))["architectures"][0]
        for folder in folders
        if folder.name.partition("_")[0] in RECORDED
    }
    return {folder: REMOTE.get(name, name) for folder, name in named.items() if name != "BertModel"}


CLASSES = classes()
#: Other files of a model in another folder, whose numbers they must give: older names, what else files have in them.
OTHER_FILES = {
    "deberta_prefix": "deberta_model",
    "modernbert_old_config": "modernbert_model",
    "neobert_from_lm_head": "neobert_model",
}
USUAL = ("MaskedLM", "SequenceClassification", "TokenClassification", "QuestionAnswering")
CASES = [(folder, case) for folder in CLASSES for case in reference_cases(folder)]


# --- equal to the reference


@pytest.mark.parametrize(("folder", "case"), CASES)
def test_outputs_and_losses_equal_transformers(folder: str, case: str) -> None:
    model: Any = AutoModel.from_pretrained(MODELS / folder)
    inputs, expected = reference_cases(folder)[case]
    out = model(**inputs, output_hidden_states=True, output_attentions=True)
    check_equal(out, expected, inputs.get("attention_mask"))


@pytest.mark.parametrize("backend", ["rust", "numpy"])
@pytest.mark.parametrize("folder", OTHER_FILES)
def test_other_files_of_a_model_give_its_numbers(folder: str, backend: str) -> None:
    model = AutoModel.base_from_pretrained(MODELS / folder, backend)
    for inputs, expected in reference_cases(OTHER_FILES[folder]).values():
        out = model(**inputs, output_hidden_states=True, output_attentions=True)
        check_equal(out, expected, inputs.get("attention_mask"))


@pytest.mark.parametrize("folder", CLASSES)
def test_auto_model_loads_the_class_that_the_folder_names(folder: str) -> None:
    model = AutoModel.from_pretrained(MODELS / folder)
    assert type(model) is getattr(bert_package, CLASSES[folder])
    assert repr(model).startswith(f"{CLASSES[folder]}(")


@pytest.mark.parametrize("folder", [folder for folder, name in CLASSES.items() if not name.endswith("Model")])
def test_the_encoder_is_that_of_the_head(folder: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CheckpointWarning)  # the head is not used
        base = AutoModel.base_from_pretrained(MODELS / folder)
    model: Any = AutoModel.from_pretrained(MODELS / folder)
    ids = [[5, 17, 42, 9]]
    np.testing.assert_array_equal(base(ids).last_hidden_state, model.base_model(ids).last_hidden_state)


def test_every_kind_of_problem_and_label_is_in_the_reference() -> None:
    assert {"loss", "all_ignored"} <= set(reference_cases("bert_masked_lm"))
    assert math.isnan(reference_cases("bert_masked_lm")["all_ignored"][1]["loss"])
    assert (reference_cases("bert_masked_lm")["loss"][0]["labels"] == -100).any()


# --- outputs


HEADS = [folder for folder in CLASSES if folder.startswith("bert_") and "small" not in folder]


@pytest.mark.parametrize("backend", ["rust", "numpy"])
@pytest.mark.parametrize("length", [0, 3])
@pytest.mark.parametrize(
    "folder",
    [*HEADS, "albert_model", "deberta_seqcls", "distilbert_masked_lm", "dpr_context_encoder", "dpr_reader",
     "electra_discriminator", "modernbert_seqcls", "modernbert_seqcls_mean", "mpnet_model", "neobert_seqcls",
     "xlmr_seqcls"],
)  # fmt: skip
def test_an_empty_batch_gives_empty_arrays(folder: str, length: int, backend: str) -> None:
    model: Any = AutoModel.from_pretrained(MODELS / folder, backend)
    choices = (3,) if "choice" in folder else ()
    ids = np.zeros((0, *choices, length), np.int64)
    out = model(ids, attention_mask=ids, output_hidden_states=True, output_attentions=True)
    for name, value in vars(out).items():
        if value is not None:
            for array in value if isinstance(value, tuple) else (value,):
                assert array.shape[0] == 0, name
    again = model(np.ones((1, *choices, 2), np.int64), output_hidden_states=True, output_attentions=True)
    assert len(again.hidden_states) == len(out.hidden_states)
    assert len(again.attentions) == len(out.attentions)


def test_predict_gives_the_logits_of_single_tokens() -> None:
    model = BertForMaskedLM.from_pretrained(MODELS / "bert_masked_lm")
    ids = [[5, 17, 42, 9]]
    x = model.base_model(ids).last_hidden_state
    np.testing.assert_allclose(model.predict(x[0, 2]), model(ids).logits[0, 2], atol=1e-6)


@pytest.mark.parametrize("backend", ["rust", "numpy"])
@pytest.mark.parametrize(
    "folder",
    ["bert_seqcls_multi", "bert_token_cls", "bert_question_answering", "bert_masked_lm", "electra_discriminator"],
)
def test_infer_gives_the_logits_of_visible_tokens(folder: str, backend: str) -> None:
    model: Any = AutoModel.from_pretrained(MODELS / folder, backend)
    inputs = reference_cases(folder)["pairs"][0]
    inputs = {name: inputs[name] for name in ("input_ids", "attention_mask", "token_type_ids")}
    out, found = model(**inputs), model.infer(**inputs, threads=2)
    if folder == "bert_question_answering":
        expected = np.stack([out.start_logits, out.end_logits], axis=-1)
    else:
        expected = out.logits
    if found.shape[:2] == inputs["attention_mask"].shape:
        visible = inputs["attention_mask"] != 0
        np.testing.assert_array_equal(found[~visible], 0)
        found, expected = found[visible], expected[visible]
    # NumPy's library adds up in an order that depends on the number of rows.
    tolerance = 0 if backend == "rust" else 1e-5
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)


# --- losses


def naive_cross_entropy(logits: Any, labels: Any, ignored: int = -100) -> float:
    losses = []
    for row, label in zip(logits.reshape(-1, logits.shape[-1]).tolist(), np.ravel(labels).tolist(), strict=True):
        if label != ignored:
            losses.append(-math.log(math.exp(row[label]) / sum(map(math.exp, row))))
    return sum(losses) / len(losses) if losses else math.nan


logits_of = st.lists(st.lists(st.floats(-20, 20, width=32), min_size=3, max_size=3), min_size=1, max_size=5)


@given(rows=logits_of, data=st.data())
def test_losses_equal_their_definitions(rows: list[list[float]], data: st.DataObject) -> None:
    logits = np.array(rows, np.float32)
    labels = np.array(data.draw(st.lists(st.sampled_from([0, 1, 2, -100]), min_size=len(rows), max_size=len(rows))))
    np.testing.assert_allclose(cross_entropy(logits, labels), naive_cross_entropy(logits, labels), atol=1e-5)
    targets = np.array(
        data.draw(st.lists(st.sampled_from([0.0, 1.0]), min_size=len(rows), max_size=len(rows))), np.float32
    )
    x = logits[:, 0].astype(float)
    naive = np.mean([math.log1p(math.exp(-v if t else v)) for v, t in zip(x, targets, strict=True)])
    np.testing.assert_allclose(binary_cross_entropy(logits[:, 0], targets), naive, atol=1e-5)
    np.testing.assert_allclose(
        mean_squared_error(logits[:, 0], targets), np.mean((x - targets) ** 2), rtol=1e-5, atol=1e-5
    )


def test_losses_do_not_overflow() -> None:
    big = np.array([[1e4, -1e4]], np.float32)
    assert cross_entropy(big, np.array([0])) == 0
    assert cross_entropy(big, np.array([1])) == 2e4
    assert binary_cross_entropy(big, np.array([[1.0, 0.0]], np.float32)) == 0
    assert np.isnan(mean_squared_error(big[:0], big[:0]))


def test_a_problem_without_a_type_is_guessed_from_labels_as_in_transformers() -> None:
    with_type = BertForSequenceClassification.from_pretrained(MODELS / "bert_seqcls_multi")
    config = dataclasses.replace(with_type.config, problem_type=None)
    model = BertForSequenceClassification(config, dict(with_type.named_parameters()))
    inputs, expected = reference_cases("bert_seqcls_multi")["loss"]
    np.testing.assert_allclose(model(**inputs).loss, expected["loss"], atol=1e-5)  # floats: several labels
    inputs["labels"] = np.array([0, 4, 2, -100, 1])
    logits = model(**inputs).logits
    np.testing.assert_allclose(model(**inputs).loss, naive_cross_entropy(logits, inputs["labels"]), atol=1e-5)
    one = BertForSequenceClassification.from_pretrained(MODELS / "bert_seqcls_regression")
    untyped = BertForSequenceClassification(
        dataclasses.replace(one.config, problem_type=None), dict(one.named_parameters())
    )
    inputs, expected = reference_cases("bert_seqcls_regression")["loss"]
    np.testing.assert_allclose(untyped(**inputs).loss, expected["loss"], atol=1e-5)


@pytest.mark.parametrize("folder", ["bert_seqcls_single", "deberta_seqcls"])
@pytest.mark.parametrize("problem", ["single_label_classification", None])
@pytest.mark.parametrize("labels", [[1.0, 0.0], [True, False], [[1.0], [0.0]], np.array([1, 0], np.float32)])
def test_one_number_for_each_text_is_a_class_of_whatever_type(folder: str, problem: Any, labels: Any) -> None:
    loaded: Any = AutoModel.from_pretrained(MODELS / folder)
    weights = dict(loaded.named_parameters())
    # Two classes, as many as texts: labels [2] are not labels for [2, 2].
    weights |= {name: weights[name][:2] for name in ("classifier.weight", "classifier.bias")}
    config = dataclasses.replace(loaded.config, problem_type=problem, id2label={0: "no", 1: "yes"}, label2id=None)
    model = type(loaded)(config, weights)
    np.testing.assert_array_equal(model(IDS, labels=labels).loss, model(IDS, labels=[1, 0]).loss)
    with pytest.raises(InputError, match=r"labels\[1\] is 0\.5, but a class is a whole number"):
        model(IDS, labels=[1, 0.5])
    with pytest.raises(InputError, match=r"labels\[0\] is 1e\+300, but a class is a whole number of 64 bits"):
        model(IDS, labels=[1e300, 0])


def test_positions_outside_the_row_are_ignored() -> None:
    model = BertForQuestionAnswering.from_pretrained(MODELS / "bert_question_answering")
    ids = [[5, 17, 42], [9, 8, 7]]
    one = model(ids[:1], start_positions=[1], end_positions=[2]).loss
    both = model(ids, start_positions=[1, 3], end_positions=[2, 99]).loss
    np.testing.assert_allclose(one, both, atol=1e-6)
    assert np.isnan(model(ids, start_positions=[3, 3], end_positions=[3, 3]).loss)  # type: ignore[arg-type]
    assert model(ids, start_positions=[1, 1]).loss is None


def test_pre_training_has_a_loss_only_with_both_labels() -> None:
    model = BertForPreTraining.from_pretrained(MODELS / "bert_pretraining")
    assert model([[1, 2]], labels=[[1, 2]]).loss is None
    assert model([[1, 2]], next_sentence_label=[1]).loss is None
    assert model([[1, 2]], labels=[[1, 2]], next_sentence_label=[1]).loss is not None


IDS = [[5, 17, 42], [9, 8, 7]]


@pytest.mark.parametrize(
    ("folder", "labels", "message"),
    [
        ("bert_token_cls", [[0, 1, 7], [0, 0, 0]], r"labels\[0, 2\] is 7, outside 0 to 6 \(or -100"),
        ("bert_token_cls", [[0, 1, -1], [0, 0, 0]], r"labels\[0, 2\] is -1"),
        ("bert_token_cls", [[0, 1]], r"labels has shape \[1, 2\], expected \[2, 3\]"),
        ("bert_token_cls", [[0.0, 1.0, 2.0]] * 2, "labels must be integers, not float64"),
        ("bert_token_cls", [[0], [1, 2]], "labels is not an array"),
        ("bert_seqcls_single", [0, 3], r"labels\[1\] is 3, outside 0 to 2"),
        ("bert_seqcls_single", [[0], [1, 2]], "labels is not an array"),
        ("bert_seqcls_multi", [0, 1], r"labels has shape \[2\], expected \[2, 5\]"),
        ("bert_seqcls_multi", [["a"] * 5] * 2, "labels must be numbers"),
        ("bert_seqcls_regression", [1.0], r"labels has shape \[1\], expected \[2, 1\]"),
        ("bert_next_sentence", [0, 2], r"labels\[1\] is 2, outside 0 to 1"),
        ("electra_discriminator", [[0, 1]], r"labels has shape \[1, 2\], expected \[2, 3\]"),
    ],
)
def test_wrong_labels_are_reported_with_value_and_index(folder: str, labels: Any, message: str) -> None:
    model: Any = AutoModel.from_pretrained(MODELS / folder)
    with pytest.raises(InputError, match=message):
        model(IDS, labels=labels)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"input_ids": IDS}, r"input_ids must have 3 dimensions, \[batch, choices, length\]"),
        ({"input_ids": [[[1], [2, 3]]]}, "input_ids is not an array"),
        ({"input_ids": [IDS], "attention_mask": IDS}, "attention_mask has shape .* 1 rows of 2 choices"),
        ({"input_ids": [IDS], "labels": [2]}, r"labels\[0\] is 2, outside 0 to 1"),
        ({"inputs_embeds": np.zeros((1, 2, 3), np.float32)}, "inputs_embeds must have 4 dimensions"),
        ({}, "pass either input_ids or inputs_embeds"),
    ],
)
def test_wrong_choices_are_reported(inputs: dict[str, Any], message: str) -> None:
    model = BertForMultipleChoice.from_pretrained(MODELS / "bert_multiple_choice")
    with pytest.raises(InputError, match=message):
        model(**inputs)


def test_positions_must_be_one_integer_for_each_row() -> None:
    model = BertForQuestionAnswering.from_pretrained(MODELS / "bert_question_answering")
    with pytest.raises(InputError, match=r"start_positions must be integers \[2\]"):
        model(IDS, start_positions=[1], end_positions=[1, 1])
    with pytest.raises(InputError, match=r"end_positions must be integers \[2\], not float64"):
        model(IDS, start_positions=[1, 1], end_positions=[1.0, 1.0])


# --- checkpoints without the head


def test_a_missing_head_is_an_error() -> None:
    with pytest.raises(
        CheckpointError, match=r"2 of 41 weights are missing: 'classifier\.weight', 'classifier\.bias'.*new_head"
    ):
        BertForSequenceClassification.from_pretrained(MODELS / "bert_small")


def test_a_head_is_drawn_on_request_with_a_warning() -> None:
    with pytest.warns(CheckpointWarning, match="2 weights of the head were drawn: 'classifier.weight'"):
        model = BertForSequenceClassification.from_pretrained(MODELS / "bert_small", new_head=7)
    with pytest.warns(CheckpointWarning):
        again = BertForSequenceClassification.from_pretrained(MODELS / "bert_small", new_head=7)
    weights = dict(model.named_parameters())
    assert weights["classifier.weight"].std() > 0.005
    assert (weights["classifier.bias"] == 0).all()
    np.testing.assert_array_equal(weights["classifier.weight"], dict(again.named_parameters())["classifier.weight"])
    with pytest.warns(CheckpointWarning, match="drawn: 'cls.predictions.bias'|'pooler.dense.bias'") as warned:
        words = BertForMaskedLM.from_pretrained(MODELS / "bert_small", new_head=1)
    assert len(warned) == 2  # the pooler is not used, the head was drawn
    with pytest.raises(InputError, match="new_head must be a whole number, 0 or more, not -1"):
        BertForMaskedLM.from_pretrained(MODELS / "bert_small", new_head=-1)
    with pytest.raises(InputError, match="seed must be a whole number, 0 or more, not -1"):
        BertForMaskedLM.from_config(words.config, seed=-1)
    assert words(IDS).logits.shape == (2, 3, 110)
    tensors = dict(BertModel.from_pretrained(MODELS / "bert_small").named_parameters())
    with pytest.warns(CheckpointWarning):
        wide = BertForSequenceClassification(
            dataclasses.replace(model.config, initializer_range=1.0), tensors, new_head=7
        )
    found = dict(wide.named_parameters())["classifier.weight"]
    np.testing.assert_allclose(found, 50 * weights["classifier.weight"], rtol=1e-6)


def test_an_incomplete_head_is_not_drawn() -> None:
    weights = dict(BertForSequenceClassification.from_pretrained(MODELS / "bert_seqcls_single").named_parameters())
    del weights["classifier.bias"]
    with pytest.raises(CheckpointError, match=r"1 of .* missing: 'classifier\.bias'"):
        BertForSequenceClassification(
            BertConfig.from_folder(MODELS / "bert_seqcls_single"), weights, source="file", new_head=1
        )


def test_a_head_that_reads_the_pooler_needs_it() -> None:
    weights = dict(BertForNextSentencePrediction.from_pretrained(MODELS / "bert_next_sentence").named_parameters())
    weights = {name: weight for name, weight in weights.items() if "pooler" not in name}
    with pytest.raises(CheckpointError, match=r"missing: 'bert\.pooler\.dense\.weight'"):
        BertForNextSentencePrediction(BertConfig.from_folder(MODELS / "bert_next_sentence"), weights)


# --- parameters


def test_bert_base_has_the_201_tensors_and_109_482_240_numbers_of_the_literature() -> None:
    """Counted from the layout, without making a model of this size."""
    config = BertConfig()
    base = BertModel._layout(config)
    sizes = {
        name: [getattr(config, size) if isinstance(size, str) else size for size in shape]
        for name, shape in base.base.items()
    }
    assert sum(math.prod(shape) for shape in sizes.values()) == 109_482_240
    layout = BertForSequenceClassification._layout(config)
    assert len(layout.base) + len(layout.head) == 201


# safetensors has no bfloat16 in NumPy; the other is an encoder under the names of a model with a head.
@pytest.mark.parametrize("folder", [name for name in CLASSES if name not in ("modernbert_bfloat16", "jina_heads_4")])
def test_parameters_are_those_that_transformers_saved(folder: str) -> None:
    from safetensors.numpy import load_file

    model = AutoModel.from_pretrained(MODELS / folder)
    # transformers saves NomicBERT and GTE under the names of their remote code; a tensor may hold several weights
    stored = model._renamed(load_file(MODELS / folder / "model.safetensors"), model.config, folder)
    own = dict(model.named_parameters())
    assert not any(array.flags.writeable for array in own.values())
    parameters = model._renamed(own, model.config, folder)
    assert set(parameters) == set(stored)
    assert model.num_parameters() == sum(array.size for array in stored.values())
    for name, array in parameters.items():
        np.testing.assert_array_equal(array, stored[name])


def test_parameters_come_in_the_order_of_torch() -> None:
    names = [name for name, _ in BertForMaskedLM.from_pretrained(MODELS / "bert_masked_lm").named_parameters()]
    assert names[:4] == [
        "bert.embeddings.word_embeddings.weight",
        "bert.embeddings.position_embeddings.weight",
        "bert.embeddings.token_type_embeddings.weight",
        "bert.embeddings.LayerNorm.weight",
    ]
    assert names[-5:] == [
        "cls.predictions.bias",
        "cls.predictions.transform.dense.weight",
        "cls.predictions.transform.dense.bias",
        "cls.predictions.transform.LayerNorm.weight",
        "cls.predictions.transform.LayerNorm.bias",
    ]


# --- tensors that are missing or unknown


#: A folder of each family that is newer than GTE, and of each form of it.
NEWER = [
    "camembert_seqcls",
    "data2vec_seqcls",
    "deberta_conv",
    "deberta_own_keys",
    "deberta_seqcls",
    "ernie_seqcls",
    "jina_qk_norm",
    "jina_model",
    "modernbert_biases",
    "modernbert_masked_lm_untied",
    "neobert_seqcls",
    "xlmr_xl_seqcls",
]


def kinds_of_tensors(tensors: Mapping[str, Any]) -> dict[str, str]:
    """The name of a tensor of each kind, by its name without the number of the layer: the tensor of the last layer."""
    return {re.sub(r"\.\d+\.", ".N.", name): name for name in tensors}


@pytest.mark.parametrize("folder", NEWER)
def test_each_tensor_is_needed(folder: str) -> None:
    config = read_config(MODELS / folder)
    kind: Any = getattr(bert_package, CLASSES[folder])
    tensors = dict(read_tensors(MODELS / folder / "model.safetensors"))
    #: Where some heads read the first token themselves, encoders may have no pooler.
    optional = {name for name in tensors if "pooler." in name and CLASSES[folder].endswith("Model")}
    kinds = kinds_of_tensors(tensors)
    assert len(kinds) > 8
    for name in kinds.values():
        if name in optional:
            continue
        without = {other: tensor for other, tensor in tensors.items() if other != name}
        own = re.escape(name.rpartition(".")[0])
        with pytest.raises(CheckpointError, match=rf"^the file: .*missing: '{own}") as caught:
            kind(config, without, source="the file")
        assert name.rpartition(".")[2] in str(caught.value)


@pytest.mark.parametrize("folder", NEWER)
def test_a_tensor_that_is_not_known_is_named(folder: str) -> None:
    """In a layer whose tensors depend on options it would change the results; elsewhere it is not used."""
    config = read_config(MODELS / folder)
    kind: Any = getattr(bert_package, CLASSES[folder])
    tensors = dict(read_tensors(MODELS / folder / "model.safetensors"))
    layer = next(match[0] for name in tensors if (match := re.match(r".*?\.?layers?\.0\.|.*encoder\.0\.", name)))
    extra = f"{layer}further_norm.weight"
    added = tensors | {extra: np.ones(32, np.float32)}
    if folder.startswith(("deberta", "jina", "modernbert", "neobert")):
        with pytest.raises(CheckpointError, match=rf"^the file: the tensor '{re.escape(extra)}'.*would be wrong"):
            kind(config, added, source="the file")
    else:
        with pytest.warns(CheckpointWarning, match=rf"^the file: 1 tensors are not used: '{re.escape(extra)}'"):
            kind(config, added, source="the file")
    beyond = extra.replace(".0.", f".{config.num_hidden_layers}.")
    buffers = [layer + "attn.rotary_emb.inv_freq"] if folder.startswith(("modernbert", "neobert")) else []
    if not folder.startswith("jina"):
        with pytest.warns(CheckpointWarning, match="are not used"):
            kind(config, tensors | dict.fromkeys([beyond, *buffers], np.ones(2, np.float32)), source="the file")


# --- AutoModel


def change_config(folder: Path, **changes: Any) -> None:
    content = json.loads((folder / "config.json").read_text()) | changes
    (folder / "config.json").write_text(json.dumps({k: v for k, v in content.items() if v is not ...}))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    import shutil

    return Path(shutil.copytree(MODELS / "bert_token_cls", tmp_path / "model"))


@pytest.mark.filterwarnings("ignore::wordpiece_bert.errors.CheckpointWarning")
def test_auto_model_without_a_class_is_the_encoder(folder: Path) -> None:
    change_config(folder, architectures=...)
    assert type(AutoModel.from_pretrained(folder)) is BertModel
    change_config(folder, model_type=...)
    assert type(AutoModel.from_pretrained(folder)) is BertModel


def test_auto_model_finds_the_model_type_by_the_class_too(folder: Path) -> None:
    change_config(folder, model_type=...)
    assert type(AutoModel.from_pretrained(folder)) is BertForTokenClassification


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"architectures": ["BertLMHeadModel"]},
            "architectures names 'BertLMHeadModel'.*BertForMaskedLM.*BertModel.from",
        ),
        ({"architectures": ["ElectraModel"]}, "architectures names 'ElectraModel'"),
        ({"architectures": ["os.system"]}, "architectures names 'os.system'"),
        ({"model_type": "gpt9"}, "model_type is 'gpt9'; supported are bert, albert, .*distilbert, .*mpnet"),
        ({"model_type": 3}, "model_type is 3"),
        ({"model_type": "electra"}, "ElectraForSequenceClassification|BertForTokenClassification"),
    ],
)
def test_auto_model_refuses_other_classes_by_name(folder: Path, changes: dict[str, Any], message: str) -> None:
    change_config(folder, **changes)
    with pytest.raises(ConfigError, match=message):
        AutoModel.from_pretrained(folder)


def test_a_class_refuses_another_type_of_model() -> None:
    with pytest.raises(ConfigError, match=r"model_type is 'electra': BertConfig is for 'bert'; AutoModel"):
        BertModel.from_pretrained(MODELS / "electra_model")
    with pytest.raises(ConfigError, match="model_type is 'bert': DistilBertConfig"):
        bert_package.DistilBertModel.from_pretrained(MODELS / "bert_small")


# --- variants


@pytest.mark.parametrize("folder", ["distilbert_model", "mpnet_model"])
def test_models_without_token_types_ignore_them(folder: str) -> None:
    model = AutoModel.base_from_pretrained(MODELS / folder)
    expected = model([[5, 17, 42]]).last_hidden_state
    np.testing.assert_array_equal(model([[5, 17, 42]], token_type_ids=[[0, 1, 1]]).last_hidden_state, expected)
    assert model([[5, 17, 42]]).pooler_output is None or folder == "mpnet_model"


def test_mpnet_reserves_two_positions() -> None:
    model = AutoModel.base_from_pretrained(MODELS / "mpnet_model")
    assert model(np.full((1, 46), 5)).last_hidden_state.shape == (1, 46, 32)
    with pytest.raises(InputError, match=r"rows of 47 tokens are longer than .* less the 2 that it reserves, 46"):
        model(np.full((1, 47), 5))


def test_layers_of_one_group_of_albert_are_the_same_arrays() -> None:
    model = AutoModel.base_from_pretrained(MODELS / "albert_model")
    assert isinstance(model, bert_package.AlbertModel)
    names = [name for name, _ in model.named_parameters()]
    assert len(names) == len(set(names))
    out = model([[1, 2]], output_hidden_states=True)
    assert out.hidden_states is not None
    assert len(out.hidden_states) == 9  # 4 layers of 2 inner ones, and the embeddings


@pytest.mark.parametrize(
    ("folder", "field", "value"),
    [
        ("distilbert_model", "dim", 33),
        ("distilbert_model", "n_layers", 0),
        ("distilbert_model", "activation", "os.system"),
        ("electra_model", "embedding_size", True),
        ("albert_model", "num_hidden_groups", -1),
        ("albert_model", "inner_group_num", 10**6),
        ("mpnet_model", "relative_attention_num_buckets", 64),
    ],
)
def test_fields_of_variants_are_refused_by_their_own_names(tmp_path: Path, folder: str, field: str, value: Any) -> None:
    content = json.loads((MODELS / folder / "config.json").read_text()) | {field: value}
    (tmp_path / "config.json").write_text(json.dumps(content))
    with pytest.raises(ConfigError, match=f"{field} is "):
        AutoModel.from_pretrained(tmp_path)


JUNK = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 70), st.integers(), st.just(10**400), st.floats(allow_nan=False), st.text(max_size=5),
    st.lists(st.integers(), max_size=2), st.dictionaries(st.text(max_size=2), st.text(max_size=2), max_size=2),
)  # fmt: skip


#: Models of all families.
WITH_WEIGHTS = sorted(
    path.parent for path in MODELS.glob("*/model.safetensors") if (path.parent / "config.json").is_file()
)


@pytest.mark.parametrize(
    ("model", "name", "value"),
    [
        ("mpnet_model", "relative_attention_num_buckets", None),  # as without it
        ("albert_model", "pad_token_id", -1),  # no token is padding
        ("albert_model", "pad_token_id", 2**70),
    ],
)
def test_fields_that_change_nothing(tmp_path: Path, model: str, name: str, value: object) -> None:
    content = json.loads((MODELS / model / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(content | {name: value}))
    shutil.copy(MODELS / model / "model.safetensors", tmp_path)
    changed, before = (AutoModel.from_pretrained(folder) for folder in (tmp_path, MODELS / model))
    for (one, x), (other, y) in zip(changed.named_parameters(), before.named_parameters(), strict=True):
        assert one == other
        np.testing.assert_array_equal(x, y)


def test_an_activation_that_is_no_name_is_refused(tmp_path: Path) -> None:
    content = json.loads((MODELS / "nomic_old_config" / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(content | {"activation_function": ["swiglu"]}))
    with pytest.raises(ConfigError, match="activation_function"):
        read_config(tmp_path)


@given(data=st.data())
def test_any_configuration_gives_a_model_or_one_of_our_errors(tmp_path_factory: Any, data: st.DataObject) -> None:
    source = data.draw(st.sampled_from(WITH_WEIGHTS))
    content = json.loads((source / "config.json").read_text())
    for name in data.draw(st.lists(st.sampled_from(sorted(content)), min_size=1, max_size=3)):
        content[name] = data.draw(JUNK)
    folder = tmp_path_factory.mktemp("junk")
    (folder / "config.json").write_text(json.dumps(content))
    shutil.copy(source / "model.safetensors", folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CheckpointWarning)
        try:
            AutoModel.from_pretrained(folder)
        except (ConfigError, CheckpointError):
            return


def test_the_inner_layers_of_albert_are_bounded_in_total() -> None:
    content = json.loads((MODELS / "albert_model" / "config.json").read_text())
    with pytest.raises(ConfigError, match="9999 layers of 9999 each are more than 10000"):
        bert_package.AlbertConfig.from_dict(content | {"num_hidden_layers": 9999, "inner_group_num": 9999})


def test_every_class_of_the_package_is_known_to_auto_model() -> None:
    models = {
        name
        for name in bert_package.__all__
        if isinstance(cls := getattr(bert_package, name), type) and issubclass(cls, Model)
    }
    assert models - {"Model"} == {name for family in FAMILIES.values() for name in family.modules}


# --- heads of variants without a reference: compared with their formulas over the encoder's output


def drawn(name: str, folder: str) -> Any:
    """A model of this class with random weights, in the sizes of a folder."""
    cls = getattr(bert_package, name)
    config = dataclasses.replace(cls.config_class.from_folder(MODELS / folder), id2label={i: str(i) for i in range(3)})
    layout = cls._layout(config)
    random = np.random.default_rng(5)
    weights = {}
    for prefix, shapes in ((layout.prefix, layout.base), ("", layout.head)):
        for key, shape in shapes.items():
            size = [getattr(config, n) if isinstance(n, str) else n for n in shape]
            weights[prefix + key] = random.normal(0, 0.2, size).astype(np.float32)
    return cls(config, weights), weights


FORMULAS: dict[str, tuple[str, Any]] = {
    "DistilBertForMultipleChoice": (
        "distilbert_model",
        lambda out, w: np.maximum(out.last_hidden_state[:, 0] @ w["pre_classifier.weight"].T + w["pre_classifier.bias"], 0)
        @ w["classifier.weight"].T
        + w["classifier.bias"],
    ),
    "MPNetForSequenceClassification": (
        "mpnet_model",
        lambda out, w: np.tanh(out.last_hidden_state[:, 0] @ w["classifier.dense.weight"].T + w["classifier.dense.bias"])
        @ w["classifier.out_proj.weight"].T
        + w["classifier.out_proj.bias"],
    ),
    "MPNetForMultipleChoice": ("mpnet_model", lambda out, w: out.pooler_output @ w["classifier.weight"].T + w["classifier.bias"]),
    "MPNetForTokenClassification": ("mpnet_model", lambda out, w: out.last_hidden_state @ w["classifier.weight"].T + w["classifier.bias"]),
    "MPNetForQuestionAnswering": ("mpnet_model", lambda out, w: out.last_hidden_state @ w["qa_outputs.weight"].T + w["qa_outputs.bias"]),
    "AlbertForSequenceClassification": ("albert_model", lambda out, w: out.pooler_output @ w["classifier.weight"].T + w["classifier.bias"]),
    "AlbertForMultipleChoice": ("albert_model", lambda out, w: out.pooler_output @ w["classifier.weight"].T + w["classifier.bias"]),
    "AlbertForTokenClassification": ("albert_model", lambda out, w: out.last_hidden_state @ w["classifier.weight"].T + w["classifier.bias"]),
    "AlbertForQuestionAnswering": ("albert_model", lambda out, w: out.last_hidden_state @ w["qa_outputs.weight"].T + w["qa_outputs.bias"]),
    "RobertaForQuestionAnswering": ("roberta_model", lambda out, w: out.last_hidden_state @ w["qa_outputs.weight"].T + w["qa_outputs.bias"]),
    "XLMRobertaForQuestionAnswering": ("xlmr_model", lambda out, w: out.last_hidden_state @ w["qa_outputs.weight"].T + w["qa_outputs.bias"]),
    "AlbertForMaskedLM": ("albert_model", lambda out, w: albert_words(out.last_hidden_state, w)),
}  # fmt: skip


def albert_words(x: Any, w: Any) -> Any:
    t = (x @ w["predictions.dense.weight"].T + w["predictions.dense.bias"]).astype(float)
    t = 0.5 * t * (1 + np.tanh(np.sqrt(2 / np.pi) * (t + 0.044715 * t**3)))
    t = (t - t.mean(axis=-1, keepdims=True)) / np.sqrt(t.var(axis=-1, keepdims=True) + 1e-12)
    t = t * w["predictions.LayerNorm.weight"] + w["predictions.LayerNorm.bias"]
    return t @ w["predictions.decoder.weight"].T + w["predictions.decoder.bias"]  # drawn apart from the word table


@pytest.mark.parametrize("name", FORMULAS)
def test_heads_without_a_reference_are_their_formulas(name: str, tmp_path: Path) -> None:
    folder, formula = FORMULAS[name]
    model, weights = drawn(name, folder)
    ids = np.array([[5, 17, 42], [9, 8, 7]])
    expected = formula(model.base_model(ids), weights)
    if name.endswith("MultipleChoice"):
        found, expected = model(ids[None]).logits, expected.reshape(1, 2)
    elif name.endswith("QuestionAnswering"):
        out = model(ids)
        found = np.stack([out.start_logits, out.end_logits], axis=-1)
    else:
        found = model(ids).logits
    np.testing.assert_allclose(found, expected, atol=2e-5)
    model.save_pretrained(tmp_path)
    again: Any = AutoModel.from_pretrained(tmp_path)
    assert type(again) is type(model)
    assert {key for key, _ in again.named_parameters()} == set(weights)


#: Heads that equal the heads of another family, over encoders that are tested by themselves: the folder for their
#: sizes.
KIN = {
    f"{family}For{head}": folder
    for family, folder, heads in (
        ("Ernie", "ernie_model", (*USUAL, "MultipleChoice", "NextSentencePrediction", "PreTraining")),
        ("Camembert", "camembert_seqcls", USUAL),
        ("Data2VecText", "data2vec_masked_lm", USUAL),
        ("XLMRobertaXL", "xlmr_xl_model", USUAL),
        ("JinaBert", "jina_model", ("TokenClassification",)),
    )
    for head in heads
}


@pytest.mark.parametrize("name", KIN)
def test_heads_of_kin_are_those_of_their_parent(name: str) -> None:
    model, weights = drawn(name, KIN[name])
    parent: Any = type(model).__bases__[-1]
    config = model.config
    sizes = ("vocab_size", "hidden_size", "num_attention_heads", "intermediate_size", "max_position_embeddings")
    values = {key: getattr(config, key) for key in (*sizes, "id2label", "type_vocab_size", "hidden_act")}
    theirs = parent.config_class(**values, num_hidden_layers=1, layer_norm_eps=config.layer_norm_eps)
    layout = parent._layout(theirs)
    shapes = {key: [getattr(theirs, n) if isinstance(n, str) else n for n in size] for key, size in layout.base.items()}
    base = {layout.prefix + key: np.zeros(size, np.float32) for key, size in shapes.items()}
    other = parent(theirs, base | {key: weights[key] for key in layout.head})
    out = model.base_model([[5, 17, 42], [9, 8, 7]])
    if name.endswith("PreTraining"):
        np.testing.assert_array_equal(model.predict(out.last_hidden_state), other.predict(out.last_hidden_state))
        found = model([[5, 17, 42], [9, 8, 7]])
        np.testing.assert_array_equal(found.prediction_logits, other.predict(out.last_hidden_state))
        expected = out.pooler_output @ weights["cls.seq_relationship.weight"].T + weights["cls.seq_relationship.bias"]
        np.testing.assert_allclose(found.seq_relationship_logits, expected, atol=2e-5)
        return
    np.testing.assert_array_equal(model.logits(out), other.logits(out))


def test_every_head_has_a_reference_or_a_formula() -> None:
    elsewhere = {"BertModel", "DPRContextEncoder", "DPRQuestionEncoder", "DPRReader"}  # test_model.py, test_variants.py
    assert {name for family in FAMILIES.values() for name in family.modules} == set(CLASSES.values()) | set(
        FORMULAS
    ) | set(KIN) | {"CamembertModel", "Data2VecTextModel"} | elsewhere
