"""Models of random weights, and the comparison of the engines with them."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from kernel_paths import forced_path
from model_files import check_equal
from wordpiece_bert import _core
from wordpiece_bert.bert import BertConfig, BertModel
from wordpiece_bert.bert.base_model import Model
from wordpiece_bert.bert.plan.parts import Convolution
from wordpiece_bert.finetune.engines import NumpyTraining

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


def check_engines(cls: type[BertModel], config: BertConfig, data: st.DataObject) -> None:
    """Both engines give the same numbers at visible positions: for any rows and mask, on any instruction set."""
    seed = data.draw(st.integers(0, 2**16))
    random = np.random.default_rng(seed)
    batch, length = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 110))
    ids = random.integers(0, config.vocab_size, (batch, length))
    mask = random.random((batch, length)) < data.draw(st.sampled_from([0.1, 0.7, 1.0]))
    mask[:, random.integers(0, length)] = True
    numpy = random_model(cls, config, "numpy", seed)
    with forced_path(data.draw(st.sampled_from(_core.kernel_instruction_sets()))):
        rust = random_model(cls, config, "rust", seed)
    expected, found = numpy(ids, mask, **EVERYTHING), rust(ids, mask, **EVERYTHING)
    names = ["last_hidden_state", "hidden_states", "attentions"]
    names += [] if expected.pooler_output is None else ["pooler_output"]
    # Relative to the greatest number: without norms, vectors are long, and so are the errors before the pooler's tanh.
    tolerance = 1e-5 * max(1.0, *(float(np.abs(state).max()) for state in expected.hidden_states))
    # A convolution reads its neighbours, so what masked queries have in layers before it has a meaning.
    everywhere = any(isinstance(residual.body, Convolution) for _, residual in config.plan().bodies())
    compared = None if everywhere else mask
    check_equal(found, {name: np.asarray(getattr(expected, name)) for name in names}, compared, tolerance)
    # Layers with a window are computed in blocks where nobody asks for their attentions.
    last = {"last_hidden_state": expected.last_hidden_state}
    check_equal(numpy(ids, mask), last, compared, tolerance)
    # With visible_only, masked positions are 0; visible ones, and the first of each row, keep their bits.
    some, kept = rust(ids, mask, visible_only=True).last_hidden_state, mask.copy()
    kept[:, 0] = True
    np.testing.assert_array_equal(some, np.where(kept[:, :, None], found.last_hidden_state, 0))
