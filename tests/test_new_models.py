"""Models with drawn weights, of every family; and the examples that the docstrings of their classes have."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wordpiece_bert.bert import BertConfig, BertForMaskedLM, BertModel, ElectraConfig, Model, RobertaModel, families
from wordpiece_bert.bert.family_table import FAMILIES, class_named
from wordpiece_bert.errors import ConfigError

SIZES: dict[str, Any] = {
    "vocab_size": 40,
    "hidden_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 48,
    "initializer_range": 0.1,
}
CLASSES = sorted(name for family in FAMILIES.values() for name in family.modules)


def class_of(name: str) -> type[Model]:
    found = class_named(name)
    assert found is not None
    return found


@pytest.mark.parametrize("name", CLASSES)
def test_weights_are_drawn_as_before_a_training(name: str) -> None:
    kind = class_of(name)
    model = kind.from_config(kind.config_class(**SIZES, pad_token_id=3), seed=1)
    weights = dict(model.named_parameters())
    for weight, array in weights.items():
        if weight.endswith(".bias"):
            assert not array.any(), weight
        elif array.ndim == 1:
            assert (array == 1).all(), weight
        else:
            few = 4 / np.sqrt(2 * array.size)  # four standard deviations of a deviation
            assert abs(array.std() / 0.1 - 1) < few + 0.02, weight
    table = next(array for array in weights.values() if array.shape[0] == 40 and array.ndim == 2)
    assert not table[3].any()
    again = kind.from_config(model.config, seed=1)
    assert all((array == weights[weight]).all() for weight, array in again.named_parameters())
    other = dict(kind.from_config(model.config, seed=2).named_parameters())
    assert any((array != weights[weight]).any() for weight, array in other.items())


def test_a_decoder_of_its_own_is_drawn() -> None:
    model = BertForMaskedLM.from_config(BertConfig(**SIZES, tie_word_embeddings=False))
    weights = dict(model.named_parameters())
    decoder, table = weights["cls.predictions.decoder.weight"], weights["bert.embeddings.word_embeddings.weight"]
    assert decoder.shape == table.shape
    assert (decoder != table).any()


def test_the_configuration_of_another_family_is_refused() -> None:
    with pytest.raises(ConfigError, match="RobertaModel needs a RobertaConfig, not a BertConfig"):
        RobertaModel.from_config(BertConfig(**SIZES))
    with pytest.raises(ConfigError, match="not a ElectraConfig"):
        RobertaModel.from_config(ElectraConfig())


@pytest.mark.parametrize("name", CLASSES)
def test_the_example_of_a_class_is_about_it(name: str) -> None:
    """The examples themselves are run with the examples of its module (test_surface.py)."""
    kind = class_of(name)
    _, _, examples = inspect.cleandoc(kind.__doc__ or "").partition("Examples\n--------\n")
    assert re.search(rf"\b{name}\.from_(config|pretrained)\(", examples), examples


def test_type_checkers_see_every_family() -> None:
    """The names are imported when they are first used; for type checkers they stand in the source too."""
    source = Path(families.__file__).read_text(encoding="utf-8")
    modules = {family.module for family in FAMILIES.values() if family.module.startswith(f"{families.__name__}.")}
    assert modules == set(re.findall(r"^    from (\S+) import \*$", source, re.MULTILINE))


def test_a_class_of_another_package_has_its_own_docstring() -> None:
    class OwnModel(BertModel):
        """A model of one's own."""

    assert OwnModel.__doc__ == "A model of one's own."
