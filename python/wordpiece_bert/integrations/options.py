"""The options of tokenizers and encoders that columns of texts have in other libraries, and what they mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wordpiece_bert._internal.parameters import Parameters
from wordpiece_bert.sentence.dense.parts import width_of

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from wordpiece_bert.sentence.dense.sentence_encoder import SentenceEncoder
    from wordpiece_bert.tokenizer.option_types import Strategy
    from wordpiece_bert.tokenizer.ragged_batch import RaggedBatch
    from wordpiece_bert.tokenizer.tokenizer import Tokenizer

#: What turns a column of texts into ids or vectors.
COLUMNS = Parameters(
    """
    column : str
        The column of texts. A null has null results.
    tokenizer : Tokenizer, str or os.PathLike
        The tokenizer, or the name or folder of a model.
    pair : str, optional
        The column of the second texts of pairs.
    ids_column : str, default "ids"
        The name of the ids in the result; datasets and transformers call them ``"input_ids"``.
    model : SentenceEncoder, str or os.PathLike, default "minilm"
        The encoder, or its name or folder.
    """
)

#: How a class for another library is given its model.
GIVEN = Parameters(
    """
    model : SentenceEncoder, str or os.PathLike, optional
        The encoder, or its name or folder; by default ``"minilm"``.
    model_name : str or os.PathLike, optional
        Another name of `model`.
    """
)

#: How an encoder is made that is given by its name.
NAMED = Parameters(
    """
    dtype : {"float32", "bfloat16", "int8", "auto"}, optional
        The numbers that a model multiplies that is given by its name, as for `SentenceEncoder`.
    encoder_options : dict, optional
        Other arguments of `SentenceEncoder` for such a model, as ``{"truncate_dim": 128}``, and ``max_seq_length``.
    """
)


@dataclass(frozen=True)
class EncodingOptions:
    """Those options of `Tokenizer.encode_batch` that a column of texts has."""

    max_length: int | None = None
    truncation: bool | Strategy | None = None
    add_special_tokens: bool = True
    threads: int | None = None

    def encode(self, tokenizer: Tokenizer, texts: Any) -> RaggedBatch:
        """Encode texts with these options."""
        return tokenizer.encode_batch(texts, **vars(self))


@dataclass(frozen=True)
class EmbeddingOptions:
    """Those options of `SentenceEncoder.encode` that a column of texts has."""

    prompt_name: str | None = None
    normalize_embeddings: bool = False
    truncate_dim: int | None = None

    def encode(self, encoder: SentenceEncoder, texts: Any) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
        """Return the vectors of texts with these options, and which texts were truncated."""
        vectors, truncated = encoder.encode(texts, **vars(self), return_truncated=True)
        return vectors, truncated

    def width(self, encoder: SentenceEncoder) -> int:
        """Return the dimension of the vectors."""
        return width_of(encoder, self.truncate_dim)
