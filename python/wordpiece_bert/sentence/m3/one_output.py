"""One of the outputs of BGE-M3, with the calls of an encoder that makes nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from wordpiece_bert.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wordpiece_bert.bert.engines import EngineInfo
    from wordpiece_bert.sentence.m3.m3_encoder import M3Encoder

#: The outputs whose vectors are not dense.
OutputName = Literal["sparse", "colbert"]


class OneOutput:
    """An `M3Encoder` of which one output is wanted, for the command that writes it.

    Parameters
    ----------
    encoder : M3Encoder
        The encoder.
    name : {"sparse", "colbert"}
        The field of `M3Vectors`.
    """

    def __init__(self, encoder: M3Encoder, name: OutputName) -> None:
        self._encoder = encoder
        self.name = name

    @property
    def dimension(self) -> int:
        """The entries of the vocabulary, or the width of the vectors of tokens."""
        return self._encoder.vocabulary_size if self.name == "sparse" else self._encoder.token_dimension

    @property
    def engine(self) -> EngineInfo:
        """How the encoder computes on this machine."""
        return self._encoder.engine

    def encode(
        self,
        texts: Sequence[str],
        prompt: str | None = None,
        prompt_name: str | None = None,
        batch_size: int = 32,
        *,
        return_truncated: bool = True,
    ) -> Any:
        """Return the output of texts, and which of them were truncated.

        Raises
        ------
        InputError
            A prompt is given: the model has been trained without any.
        """
        if prompt is not None or prompt_name is not None:
            raise InputError("BGE-M3 has no prompts, so none is put before a text: leave it out")
        vectors, truncated = self._encoder.encode(texts, batch_size, return_truncated=True)
        found = getattr(vectors, self.name)
        return (found, truncated) if return_truncated else found

    encode_document = encode
