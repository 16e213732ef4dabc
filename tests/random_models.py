"""Models of random weights, and the comparison of the engines with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from hypothesis import strategies as st

from model_files import check_equal
from wordpiece_bert.finetune.engines import NumpyTraining

if TYPE_CHECKING:
    from wordpiece_bert.bert import BertConfig, BertModel
    from wordpiece_bert.bert.base_model import Model

__all__ = ["EVERYTHING", "LossOnly", "check_engines", "random_model"]

EVERYTHING = {"output_hidden_states": True, "output_attentions": True}


class LossOnly(NumpyTraining):
    """The reference for a loss without its gradient: central differences need two losses for each parameter."""

    def encode(self, *arguments: Any) -> Any:
        """Run the encoder forwards; backwards does nothing."""
        encoded: Any = super().encode(*arguments)
        encoded.backward = lambda *_: None
        return encoded


def random_model(cls: type[Model], config: BertConfig, backend: str, seed: int = 0, **options: Any) -> Any:
    """A model of random weights, with a head or without: norms about 1, everything else about 0."""
    random = np.random.default_rng(seed)
    weights = {}
    layout = cls._layout(config)
    prefix = layout.prefix if layout.head else ""
    shapes = {prefix + name: shape for name, shape in layout.base.items()} | dict(layout.head)
    for name, shape in shapes.items():
        if config.tie_word_embeddings and name in layout.tied:
            continue
        sizes = [getattr(config, size) if isinstance(size, str) else size for size in shape]
        weights[name] = random.normal(1.0 if len(sizes) == 1 and "weight" in name else 0.0, 0.15, sizes).astype("f4")
    return cls(config, weights, backend=backend, **options)


def check_engines(cls: type[BertModel], config: BertConfig, data: st.DataObject, **options: Any) -> None:
    """Both engines give the same numbers at visible positions, for any rows and any mask."""
    seed = data.draw(st.integers(0, 2**16))
    random = np.random.default_rng(seed)
    batch, length = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 40))
    ids = random.integers(0, config.vocab_size, (batch, length))
    mask = random.random((batch, length)) < 0.7
    mask[:, random.integers(0, length)] = True
    expected = random_model(cls, config, "numpy", seed)(ids, mask, **EVERYTHING, **options)
    found = random_model(cls, config, "rust", seed)(ids, mask, **EVERYTHING, **options)
    names = ["last_hidden_state", "hidden_states", "attentions"]
    names += [] if expected.pooler_output is None else ["pooler_output"]
    # Relative to the greatest number: without norms, vectors are long, and so are the errors before the pooler's tanh.
    scale = max(1.0, *(float(np.abs(state).max()) for state in expected.hidden_states))
    check_equal(found, {name: np.asarray(getattr(expected, name)) for name in names}, mask, 1e-5 * scale)
