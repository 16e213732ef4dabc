"""BertConfig: the fields that it reads, and those that it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model_files import MODELS, SMALL
from wordpiece_bert.bert import BertConfig, DistilBertConfig, ModernBertConfig, MPNetConfig, NeoBertConfig
from wordpiece_bert.bert.functional import ACTIVATIONS
from wordpiece_bert.errors import ConfigError, ModelNotFoundError

SIZES = [name for name, value in SMALL.items() if isinstance(value, int)]


def write(folder: Path, content: object, name: str = "config.json") -> Path:
    file = folder / name
    file.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return file


def test_defaults_are_bert_base_uncased() -> None:
    config = BertConfig()
    assert (config.vocab_size, config.hidden_size, config.num_hidden_layers, config.num_attention_heads) == (
        30_522,
        768,
        12,
        12,
    )
    assert (config.intermediate_size, config.max_position_embeddings, config.type_vocab_size) == (3072, 512, 2)
    assert (config.hidden_act, config.layer_norm_eps, config.pad_token_id, config.head_size) == ("gelu", 1e-12, 0, 64)
    assert BertConfig.from_dict({}) == config


def test_reads_config_json_of_a_folder() -> None:
    config = BertConfig.from_folder(MODELS / "bert_small")
    assert config.architectures == ("BertModel",)
    assert {name: getattr(config, name) for name in SMALL} == SMALL
    assert BertConfig.from_pretrained(MODELS / "bert_small") == config


def test_bert_config_json_is_read_if_there_is_no_config_json(tmp_path: Path) -> None:
    write(tmp_path, {"hidden_size": 24, "num_attention_heads": 2}, "bert_config.json")
    assert BertConfig.from_folder(tmp_path).hidden_size == 24
    write(tmp_path, {"hidden_size": 36})
    assert BertConfig.from_folder(tmp_path).hidden_size == 36


def test_a_folder_without_configuration_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFoundError, match=r"config\.json"):
        BertConfig.from_folder(tmp_path)


def test_fields_without_effect_are_ignored() -> None:
    extra = {
        "auto_map": {"AutoModel": "evil.Model"},
        "use_cache": True,
        "hidden_dropout_prob": 0.1,
        "is_decoder": False,
    }
    assert BertConfig.from_dict({**SMALL, **extra, "position_embedding_type": "absolute"}) == BertConfig.from_dict(
        SMALL
    )


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("value", [-1, 0, "24", 24.5, 24.0, 2**62, None, True, [24]])
def test_a_size_is_an_integer_from_1(name: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=f"^{name} is "):
        BertConfig.from_dict({**SMALL, name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("num_attention_heads", 5),
        ("hidden_act", "os.system"),
        ("hidden_act", 3),
        ("hidden_act", ["gelu"]),
        ("layer_norm_eps", -1.0),
        ("layer_norm_eps", "1e-12"),
        ("layer_norm_eps", float("nan")),
        ("layer_norm_eps", float("inf")),
        ("layer_norm_eps", True),
        ("layer_norm_eps", 10**400),
        ("initializer_range", -1),
        ("initializer_range", "0.02"),
        ("initializer_range", None),
        ("model_type", "gpt9"),
        ("model_type", 1),
        ("is_decoder", True),
        ("add_cross_attention", True),
        ("position_embedding_type", "relative_key"),
        ("quantization_config", {"load_in_8bit": True}),
        ("id2label", {"x": "y"}),
        ("id2label", {"-1": "y"}),
        ("id2label", {"0": 1}),
        ("id2label", ["y"]),
        ("architectures", "BertModel"),
        ("architectures", [1]),
        ("pad_token_id", "0"),
        ("pad_token_id", 0.0),
        ("tie_word_embeddings", 1),
        ("problem_type", "guess"),
    ],
)
def test_other_fields_are_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=name if name != "num_attention_heads" else "hidden_size is 24.* 5 heads"):
        BertConfig.from_dict({**SMALL, name: value})


@pytest.mark.parametrize("kind", [DistilBertConfig, MPNetConfig, ModernBertConfig, NeoBertConfig])
def test_a_field_that_config_json_does_not_have_keeps_its_default(kind: Any) -> None:
    for value in (2, "2"):
        with pytest.raises(ConfigError, match=f"type_vocab_size is .?2.?: models of type '{kind.model_type}' have 0,"):
            kind(type_vocab_size=value)
    with pytest.raises(ConfigError, match=r"layer_norm_eps is 0\.01: models of type 'distilbert' have 1e-12,"):
        DistilBertConfig(layer_norm_eps=1e-2)


def test_scalars_of_numpy_are_written() -> None:
    config = BertConfig(hidden_size=np.int64(24), layer_norm_eps=np.float32(1e-6), label2id={"a": np.int64(0)})
    assert BertConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_every_activation_is_accepted_by_name(name: str) -> None:
    assert BertConfig.from_dict({"hidden_act": name}).hidden_act == name


def test_labels_may_have_huge_ids() -> None:
    config = BertConfig.from_dict({"id2label": {"0": "no", "999999999999": "yes"}})
    assert config.id2label == {0: "no", 999_999_999_999: "yes"}
    assert BertConfig(id2label={"0": "no"}).label(0) == "no"  # type: ignore[dict-item]
    with pytest.raises(ConfigError, match="id2label is"):
        BertConfig(id2label=["no"])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not JSON"),
        (b"{hello", "not JSON"),
        (b"[1, 2, 3]", "array, expected an object"),
        (b'{"model_type": "\xff\xfe"}', "not UTF-8: byte 0xff at offset 16"),
        (b'{"layer_norm_eps": NaN}', "NaN is not a JSON number"),
        (b'{"layer_norm_eps": -Infinity}', "-Infinity is not a JSON number"),
        (b'{"layer_norm_eps": 1e999}', "1e999"),
        (b'{"a":' + b"[" * 60_000 + b"]" * 60_000 + b"}", "60,001 levels deep"),
        (b'{"a":' + b'{"b":' * 60_000, "60,001 levels deep"),
        (b'{"hidden_size": 1' + b"0" * 5000 + b"}", "is too large for a float"),
        (b'{"other": -1' + b"0" * 309 + b"}", "is too large for a float"),
        (b'{"hidden_size": 24, "hidden_size": 24}', "'hidden_size' occurs twice"),
        (b'{"hidden_act": "\\ud800"}', "lone surrogate"),
        (b" " * 1_000_001, "larger than 1,000,000 bytes"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "git lfs pull"),
    ],
)
def test_a_broken_file_is_refused_with_its_name(tmp_path: Path, content: bytes, message: str) -> None:
    file = write(tmp_path, content)
    with pytest.raises(ConfigError, match=message) as caught:
        BertConfig.from_file(file)
    assert str(caught.value).startswith(f"{file}: ")


def test_the_message_about_a_wrong_field_names_the_file(tmp_path: Path) -> None:
    file = write(tmp_path, {"vocab_size": "many"})
    with pytest.raises(ConfigError, match="vocab_size is 'many'") as caught:
        BertConfig.from_file(file)
    assert str(caught.value).startswith(f"{file}: ")


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        BertConfig.from_file(tmp_path / "config.json")


def test_a_byte_order_mark_is_skipped(tmp_path: Path) -> None:
    assert BertConfig.from_file(write(tmp_path, b"\xef\xbb\xbf" + json.dumps(SMALL).encode())).hidden_size == 24


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from([*BertConfig.__dataclass_fields__, "is_decoder", "other"]), json_values))
def test_any_object_gives_a_configuration_or_a_config_error(values: dict[str, Any]) -> None:
    try:
        config = BertConfig.from_dict(values)
    except ConfigError:
        return
    assert config.hidden_size == config.num_attention_heads * config.head_size
