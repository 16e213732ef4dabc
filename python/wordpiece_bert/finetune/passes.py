"""How a batch goes through an encoder, forward and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from wordpiece_bert.finetune.dropout import Dropout


class PassOptions(NamedTuple):
    """The options of a forward pass and its backward pass."""

    #: Masks of dropout; None for no dropout.
    dropout: Dropout | None = None
    #: Keep only the input of each layer and run the layer again in the backward pass: a third more work, a tenth of the
    #: memory, the same numbers.
    gradient_checkpointing: bool = False
    #: The lowest layer whose parameters are trained; None if the embeddings' are. Nothing is kept, and no
    #: backward pass runs, below it.
    trained_from: int | None = None
    #: What each part of the loss is multiplied by: its share of the items of a step, of which it is a mean. None for 1.
    weights: tuple[float, ...] | None = None
