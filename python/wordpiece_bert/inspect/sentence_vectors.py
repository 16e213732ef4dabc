"""The vectors of sentences from the vectors of their tokens, for attribution and interventions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from wordpiece_bert._internal.checks import check_instance
from wordpiece_bert.bert.poolings import POOLINGS
from wordpiece_bert.errors import InputError
from wordpiece_bert.sentence.dense.parts import transformer_of
from wordpiece_bert.sentence.folders.modules import Normalize
from wordpiece_bert.sentence.parts import prompt_of

if TYPE_CHECKING:
    from wordpiece_bert.bert.functional import Array
    from wordpiece_bert.bert.model import BertModel
    from wordpiece_bert.sentence.dense.sentence_encoder import SentenceEncoder
    from wordpiece_bert.tokenizer.subword import AnyEncoding, AnyTokenizer


class Sentences:
    """How a sentence encoder makes a vector of the vectors of tokens.

    Parameters
    ----------
    encoder : SentenceEncoder
        The encoder.

    Raises
    ------
    InputError
        It has no BERT model, or pools several layers.
    """

    def __init__(self, encoder: SentenceEncoder) -> None:
        body = transformer_of(encoder)
        if body.folder.layers is not None:
            raise InputError("an encoder that pools a weighted mean of layers cannot be explained here")
        self._folder = body.folder
        self._longest_row = encoder.max_seq_length
        self._prefix = prompt_of(encoder)
        self.model: BertModel = body.model
        self.tokenizer: AnyTokenizer = body.tokenizer
        #: How many first tokens, the prompt's, are not pooled.
        self._skipped = self._unpooled()

    @property
    def modes(self) -> tuple[str, ...]:
        """The poolings."""
        return self._folder.pooling.modes

    def encode(self, text: str, max_length: int | None) -> AnyEncoding:
        """Encode a text with the default prompt, as `SentenceEncoder.encode` does."""
        check_instance("text", text, str)
        max_length = self._longest_row if max_length is None else min(max_length, self._longest_row)
        encoding = self.tokenizer.encode(self._prefix + text, truncation=True, max_length=max_length, padding=False)
        if not len(encoding):
            raise InputError(f"the text has no token: {text[:80]!r}")
        return encoding

    def vectors(self, x: Array) -> Array:
        """Return the vectors of texts for x_L of their tokens, [n, S, H] -> [n, D]."""
        mask = np.ones(x.shape[:2], np.bool_)
        y = np.concatenate([self.model.pool(x, mask, mode, self._skipped) for mode in self.modes], axis=1)
        for module in self._folder.modules:
            y = module(y)
        return y[:, : self._folder.truncate_dim]

    def check_gradient(self, method: str) -> None:
        """Raise InputError unless the gradient of the vectors is known."""
        other = next((m for m in self._folder.modules if not isinstance(m, Normalize)), None)
        unknown = next((mode for mode in self.modes if POOLINGS[mode].gradient is None), None)
        reason = (
            f"a module {type(other).__name__} after the pooling"
            if other is not None
            else f"the pooling {unknown}"
            if unknown is not None
            else "truncate_dim"
            if self._folder.truncate_dim is not None
            else "a prompt that is not pooled"
            if self._skipped
            else None
        )
        if reason is not None:
            raise InputError(f"method={method!r}: the gradient of {reason} is not here: pass method='occlusion'")

    def _unpooled(self) -> int:
        if self._folder.pooling.include_prompt or not self._prefix:
            return 0
        encoding = self.tokenizer.encode(self._prefix, truncation=True, max_length=self._longest_row, padding=False)
        return len(encoding) - int(sum(encoding.special_tokens_mask[-1:]))
