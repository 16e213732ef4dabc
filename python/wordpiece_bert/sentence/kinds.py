"""The class of the encoder that a folder has."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, TypeAlias, cast

from wordpiece_bert.errors import ConfigError
from wordpiece_bert.hub import find_model
from wordpiece_bert.sentence.folder import other_class

if TYPE_CHECKING:
    import os
    from pathlib import Path

    from wordpiece_bert.sentence.encoder import SentenceEncoder
    from wordpiece_bert.sentence.multi_vector import MultiVectorEncoder
    from wordpiece_bert.sentence.sparse import SparseEncoder

    Encoder: TypeAlias = SentenceEncoder | SparseEncoder | MultiVectorEncoder

__all__ = ["encoder_class", "load_encoder"]

# The module of each class, imported when a folder needs it.
_MODULES = {"SentenceEncoder": "encoder", "SparseEncoder": "sparse", "MultiVectorEncoder": "multi_vector"}


def encoder_class(folder: Path) -> type[Encoder]:
    """Return the class of the encoder of dense, sparse or many vectors that a folder has.

    Raises
    ------
    ConfigError
        The model makes no vectors: it is a cross encoder.
    """
    kind = other_class(folder) or "SentenceEncoder"
    if kind not in _MODULES:
        raise ConfigError(f"{folder} is a model for {kind}, which makes no vectors")
    module = importlib.import_module(f"wordpiece_bert.sentence.{_MODULES[kind]}")
    return cast("type[Encoder]", getattr(module, kind))


def load_encoder(name: str | os.PathLike[str]) -> Encoder:
    """Load the encoder of dense, sparse or many vectors that a name or a folder has.

    Raises
    ------
    ModelNotFoundError, ConfigError, CheckpointError, TokenizerFormatError
        As for `SentenceEncoder`; a ConfigError also for a cross encoder.
    """
    return encoder_class(find_model(name))(name)
