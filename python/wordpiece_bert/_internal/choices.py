"""Choices of the library that commands offer too, in a module that imports nothing."""

from __future__ import annotations

from typing import Literal, get_args

#: How `wordpiece_bert.inspect.saliency` measures a token.
SaliencyMethod = Literal["occlusion", "gradient", "input_x_gradient", "integrated_gradients"]
SALIENCY_METHODS: tuple[SaliencyMethod, ...] = get_args(SaliencyMethod)

#: The views that the command `inspect` makes, in the order of its page: the views of `wordpiece_bert.inspect.views`.
VIEWS = ("tokens", "attention", "neurons", "patterns", "predictions", "lens", "saliency", "interventions", "positions")
