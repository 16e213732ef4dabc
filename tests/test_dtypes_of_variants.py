"""Every class of model, with and without a head, in every dtype of the Rust engine: generated models of each kind."""

from __future__ import annotations

import functools
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from model_files import MODELS
from wordpiece_bert.bert import AutoModel, BertModel, NeoBertModel
from wordpiece_bert.bert.auto import read_config
from wordpiece_bert.bert.checkpoint import non_finite, read_tensors
from wordpiece_bert.bert.engines import DTYPES, choose_dtype
from wordpiece_bert.bert.family_table import FAMILIES, class_named
from wordpiece_bert.bert.heads.head_model import HeadModel
from wordpiece_bert.errors import CheckpointError

#: A folder of each type of model, whose configuration the generated models have but for their sizes.
FOLDERS = {
    "bert": "bert_model",
    "albert": "albert_model",
    "camembert": "camembert_seqcls",
    "data2vec-text": "data2vec_masked_lm",
    "deberta-v2": "deberta_seqcls",
    "distilbert": "distilbert_model",
    "dpr": "dpr_reader",
    "electra": "electra_model",
    "ernie": "ernie_model",
    "gte": "gte_model",
    "jina_bert": "jina_model",
    "megatron-bert": "megatron_model",
    "modernbert": "modernbert_biases",
    "mpnet": "mpnet_model",
    "neobert": "neobert_model",
    "nomic_bert": "nomic_model",
    "roberta": "roberta_model",
    "xlm-roberta": "xlmr_model",
    "xlm-roberta-xl": "xlmr_xl_model",
}

#: Sizes that leave room for the weights beside the scales, by the names that a configuration may have.
SIZES = {
    "vocab_size": 640,
    "hidden_size": 128,
    "dim": 128,
    "n_embd": 128,
    "intermediate_size": 256,
    "hidden_dim": 256,
    "n_inner": 256,
    "num_attention_heads": 4,
    "n_heads": 4,
    "n_head": 4,
    "embedding_size": 64,
    "true_hidden_size": 64,
}

CLASSES = {name: class_named(name) for family in FAMILIES.values() for name in family.modules}


def test_the_folders_have_every_type_of_model() -> None:
    assert FOLDERS.keys() == FAMILIES.keys()
    for kind, folder in FOLDERS.items():
        assert read_config(MODELS / folder).model_type == kind


@functools.cache
def drawn(cls: type[Any]) -> tuple[Any, dict[str, np.ndarray[Any, Any]]]:
    """A configuration of a class, and random weights, which cannot be written to: all models of the class share them."""
    folder = MODELS / FOLDERS[cls.config_class.model_type]
    config = cls.config_class.from_folder(folder)
    sizes = {name: size for name, size in SIZES.items() if hasattr(config, name)}
    if config.model_type not in ("albert", "electra"):
        sizes.pop("embedding_size", None)
    config = replace(config, **{name: size for name, size in sizes.items() if name in config.__dataclass_fields__})
    layout = cls._layout(config)
    prefix = layout.prefix if layout.head or layout.prefixed else ""
    shapes = {prefix + name: shape for name, shape in layout.base.items()} | dict(layout.head)
    shapes = {name: shape for name, shape in shapes.items() if name not in layout.tied}
    weights = {}
    for name, shape in shapes.items():
        random = np.random.default_rng([8, zlib.crc32(name.encode())])  # in whatever order the names stand
        size = [getattr(config, n) if isinstance(n, str) else n for n in shape]
        scale = 0.1 if len(size) == 2 else 0.02
        is_norm = len(size) == 1 and name.endswith("weight")
        weights[name] = (random.normal(size=size) * scale + is_norm).astype(np.float32)
        weights[name].setflags(write=False)
    return config, weights


def generated(cls: type[Any], dtype: str = "float32", **weights: Any) -> Any:
    """A model of a class with random weights; the weights in `weights` replace them."""
    config, random = drawn(cls)
    return cls(config, random | weights, dtype=dtype)


def computed(model: Any) -> np.ndarray[Any, Any]:
    """What a model is for: vectors of tokens, logits, spans."""
    # A head that gives few numbers for each row has more rows.
    rows = 40 if type(model).__name__.endswith(("MultipleChoice", "SequenceClassification", "Prediction")) else 5
    ids = np.random.default_rng(6).integers(2, model.config.vocab_size, (rows, 21))
    if "MultipleChoice" in type(model).__name__:
        ids = ids[None]
    out = model(ids)
    for name in ("logits", "prediction_logits", "start_logits", "last_hidden_state", "pooler_output"):
        if getattr(out, name, None) is not None:
            return np.asarray(getattr(out, name))
    raise AssertionError(out)


def cosine(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> float:
    return float((x * y).sum() / np.linalg.norm(x) / np.linalg.norm(y))


@pytest.mark.parametrize("name", CLASSES)
def test_every_class_has_every_dtype(name: str, tmp_path: Path) -> None:
    cls = CLASSES[name]
    exact = generated(cls)
    expected = computed(exact)
    # The goals are 0.9999 and 0.999. The few scores of heads of random weights, and NeoBERT's vectors with weights of
    # this size, whose gates multiply the errors, are below.
    least = (0.9995, 0.998) if issubclass(cls, HeadModel) or cls is NeoBertModel else (0.9999, 0.999)
    bounds = {"float32": 1.0, "bfloat16": least[0], "int8": least[1]}
    assert {*bounds} == {*DTYPES["rust"]}
    for dtype, bound in bounds.items():
        model = generated(cls, dtype)
        assert (model.dtype, model.engine.dtype) == (dtype, dtype)
        found = computed(model)
        assert cosine(expected, found) >= bound - 1e-6, dtype
        assert np.array_equal(expected, found) == (dtype == "float32"), dtype
    model = generated(cls, "auto")
    assert model.dtype == choose_dtype("rust", "auto")
    assert model.engine.reason.startswith("the fastest dtype within a cosine of 0.9999")
    if isinstance(model, HeadModel):
        assert model.base_model.engine == model.engine
    np.testing.assert_array_equal(computed(model), computed(generated(cls, model.dtype)))


@pytest.mark.parametrize("name", CLASSES)
def test_an_int8_model_is_saved_in_a_quarter_and_loaded_with_the_same_bits(name: str, tmp_path: Path) -> None:
    cls = CLASSES[name]
    model = generated(cls, "int8")
    model.save_pretrained(tmp_path / "int8")
    generated(cls).save_pretrained(tmp_path / "float32")
    small, large = ((tmp_path / dtype / "model.safetensors").stat().st_size for dtype in ("int8", "float32"))
    # At this size, what stays in float32 counts: poolers, the third small table of ERNIE, the
    # layer over the first token of DeBERTa.
    assert small < (0.4 if cls.config_class.model_type in ("deberta-v2", "ernie") else 0.35) * large
    again: Any = AutoModel.from_pretrained(tmp_path / "int8", dtype="int8")
    assert type(again) is cls
    np.testing.assert_array_equal(computed(again), computed(model))
    for (one, weight), (other, loaded) in zip(model.named_parameters(), again.named_parameters(), strict=True):
        assert one == other
        np.testing.assert_array_equal(weight, loaded, err_msg=one)
    again.save_pretrained(tmp_path / "again")
    stored = read_tensors(tmp_path / "int8" / "model.safetensors")
    for tensor, numbers in read_tensors(tmp_path / "again" / "model.safetensors").items():
        np.testing.assert_array_equal(numbers, stored[tensor], err_msg=tensor)


@pytest.mark.parametrize("name", CLASSES)
def test_int8_names_the_tensor_that_is_not_finite(name: str) -> None:
    """Of the layers and of the head, whichever dtype its own products have."""
    cls = CLASSES[name]
    parameters = dict(generated(cls).named_parameters())
    layout = cls._layout(generated(cls).config)
    layer = next(
        n
        for n in parameters
        if n.removeprefix(layout.prefix) in layout.base  # a tensor of its own, not one of several weights
        and n.endswith("weight")
        and ("layer" in n or "ffn" in n)
        and "norm" not in n.lower()
    )
    for tensor in (layer, *(n for n in layout.head if n in parameters)):
        for bad in (np.nan, np.inf, -np.inf):
            broken = parameters[tensor].copy()
            broken.flat[0] = bad
            assert non_finite({tensor: broken})
            # A tensor that holds several weights is divided before it is read.
            shown = tensor.removeprefix(layout.prefix).replace("Wqkv.", "Wqkv.query.")
            with pytest.raises(CheckpointError, match=f"1 weights are NaN or infinite, which int8 has no.*{shown}"):
                generated(cls, "int8", **{tensor: broken})


def test_an_untied_decoder_is_quantized_like_the_table(tmp_path: Path) -> None:
    model: Any = AutoModel.from_pretrained(MODELS / "variant_untied", dtype="int8")
    exact: Any = AutoModel.from_pretrained(MODELS / "variant_untied")
    assert cosine(computed(exact), computed(model)) > 0.999
    model.save_pretrained(tmp_path)
    assert read_tensors(tmp_path / "model.safetensors")["cls.predictions.decoder.weight"].dtype == np.int8
    again: Any = AutoModel.from_pretrained(tmp_path, dtype="int8")
    np.testing.assert_array_equal(computed(again), computed(model))
    # The encoder of such a file is loaded without the head.
    base = BertModel.from_pretrained(tmp_path, dtype="int8")
    ids = np.arange(5, 15)[None]
    np.testing.assert_array_equal(base(ids).last_hidden_state, model.base_model(ids).last_hidden_state)
