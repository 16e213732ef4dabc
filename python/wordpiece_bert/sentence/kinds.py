"""The class of the encoder that a folder has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wordpiece_bert.errors import ConfigError
from wordpiece_bert.hub import find_model
from wordpiece_bert.sentence.encoder import SentenceEncoder
from wordpiece_bert.sentence.folder import other_class
from wordpiece_bert.sentence.multi_vector import MultiVectorEncoder
from wordpiece_bert.sentence.sparse import SparseEncoder

if TYPE_CHECKING:
    import os

__all__ = ["load_encoder"]

_CLASSES: dict[str, type[SentenceEncoder | SparseEncoder | MultiVectorEncoder]] = {
    cls.__name__: cls for cls in (SentenceEncoder, SparseEncoder, MultiVectorEncoder)
}


def load_encoder(name: str | os.PathLike[str]) -> SentenceEncoder | SparseEncoder | MultiVectorEncoder:
    """Load the encoder of dense, sparse or many vectors that a name or a folder has.

    Raises
    ------
    ModelNotFoundError, ConfigError, CheckpointError, TokenizerFormatError
        As for `SentenceEncoder`; a ConfigError also for a cross encoder.
    """
    folder = find_model(name)
    kind = other_class(folder) or "SentenceEncoder"
    if kind not in _CLASSES:
        raise ConfigError(f"{folder} is a model for {kind}, which makes no vectors")
    return _CLASSES[kind](name)
