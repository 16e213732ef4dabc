"""What comes in kinds is an entry in a table: a toy of each kind is added here, from outside the package."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pytest

from tiny_models import make_reviews, make_sentences
from wordpiece_bert import SentenceEncoder, tasks
from wordpiece_bert.bert import AutoModel, BertConfig, BertModel
from wordpiece_bert.bert.checkpoint import read_tensors, write_safetensors
from wordpiece_bert.bert.families import FAMILIES, Family, Training, register
from wordpiece_bert.bert.heads.kinds import SequenceClassification
from wordpiece_bert.cli import main
from wordpiece_bert.errors import CheckpointWarning, ConfigError
from wordpiece_bert.finetune import Trainer, TrainingArguments, model_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

# --- a family of models: BERT under other names of weights and settings, without token types


@dataclass(frozen=True, kw_only=True)
class ToyConfig(BertConfig):
    model_type: str = "toy"
    toy_dropout: float = 0.25

    _names_in_file: ClassVar[Mapping[str, str]] = {"hidden_size": "width"}


class ToyModel(BertModel):
    config_class = ToyConfig
    _prefix = "toy."

    @classmethod
    def _name_in_checkpoint(cls, name: str, config: BertConfig) -> str:
        del config
        return name.replace("encoder.layer.", "blocks.")


class ToyForSequenceClassification(SequenceClassification):
    _base_model_class = ToyModel
    _reads_pooler = True


TOY = Family(
    model_type="toy",
    module=__name__,
    name="Toy",
    heads=("SequenceClassification",),
    other_types=("toy_v0",),
    training=Training(sequence_rate=("toy_dropout",)),
)


@pytest.fixture
def toy_family() -> Iterator[None]:
    register(TOY)
    yield
    del FAMILIES["toy"]


def as_toy(folder: Path) -> Path:
    """Turn a folder with a BERT into one with a toy model of the same numbers."""
    config = json.loads((folder / "config.json").read_text())
    config |= {"model_type": "toy", "architectures": ["ToyForSequenceClassification"], "width": config["hidden_size"]}
    if "id2label" not in config:
        config["architectures"] = ["ToyModel"]
    del config["hidden_size"]
    tensors = read_tensors(folder / "model.safetensors")
    write_safetensors(
        folder / "model.safetensors",
        {
            name.replace("bert.", "toy.").replace("encoder.layer.", "blocks."): np.asarray(array)
            for name, array in tensors.items()
        },
    )
    (folder / "config.json").write_text(json.dumps(config))
    return folder


@pytest.mark.usefixtures("toy_family")
def test_a_family_is_loaded_by_every_way_in(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_reviews(tmp_path / "bert")
    folder = as_toy(make_reviews(tmp_path / "toy"))
    texts = ["a wonderful film", "boring actors"]
    expected = tasks.classify(str(tmp_path / "bert"), texts)
    assert tasks.classify(str(folder), texts) == expected
    model: Any = AutoModel.from_pretrained(folder, "numpy")
    assert type(model) is ToyForSequenceClassification
    with pytest.warns(CheckpointWarning, match="2 tensors are not used: 'classifier"):
        assert type(AutoModel.base_from_pretrained(folder)) is ToyModel
    model.save_pretrained(tmp_path / "saved")
    again: Any = AutoModel.from_pretrained(tmp_path / "saved")
    for (one, weight), (other, loaded) in zip(model.named_parameters(), again.named_parameters(), strict=True):
        assert one == other
        np.testing.assert_array_equal(weight, loaded)
    assert any(name.startswith("toy.blocks.0.") for name, _ in again.named_parameters())
    assert main(["info", str(folder)]) == 0
    assert "toy" in capsys.readouterr().out


@pytest.mark.usefixtures("toy_family")
def test_a_family_is_an_encoder_of_sentences(tmp_path: Path) -> None:
    make_sentences(tmp_path / "bert")
    folder = as_toy(make_sentences(tmp_path / "toy"))
    texts = ["to bake bread", "a bicycle"]
    expected = SentenceEncoder.from_pretrained(tmp_path / "bert").encode(texts)
    np.testing.assert_array_equal(SentenceEncoder.from_pretrained(folder).encode(texts), expected)
    (tmp_path / "texts.txt").write_text("\n".join(texts))
    assert main(["embed", "-m", str(folder), str(tmp_path / "texts.txt"), "-o", str(tmp_path / "v.npy"), "-q"]) == 0
    np.testing.assert_array_equal(np.load(tmp_path / "v.npy"), expected)


@pytest.mark.usefixtures("toy_family")
@pytest.mark.parametrize("backend", ["numpy", "rust"])
def test_a_family_is_trained_with_its_own_dropout(tmp_path: Path, backend: str) -> None:
    folder = as_toy(make_reviews(tmp_path / "toy"))
    model = model_for(folder, "SequenceClassification", backend=backend)
    rows = [{"input_ids": [1, 5, 6, 2], "labels": 0}, {"input_ids": [1, 9, 2], "labels": 1}] * 4
    args = TrainingArguments(str(tmp_path / "run"), max_steps=2, per_device_train_batch_size=4, save_strategy="no")
    trainer = Trainer(model, args, rows)
    trainer.train()
    before, after = dict(model.named_parameters()), dict(trainer.model.named_parameters())
    assert any(not np.array_equal(before[name], after[name]) for name in before if ".blocks.0." in name)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"toy_dropout": 2.0}))
    with pytest.raises(ConfigError, match="toy_dropout must be"):
        Trainer(model_for(folder, "SequenceClassification", backend=backend), args, rows).train()


def test_without_its_entry_the_family_is_refused(tmp_path: Path) -> None:
    folder = as_toy(make_reviews(tmp_path / "toy"))
    with pytest.raises(ConfigError, match="model_type is 'toy'; supported are bert, albert, "):
        AutoModel.from_pretrained(folder)
