"""Loads the encoder of any folder, by the class that its kind has."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, TypeAlias, cast

from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert.errors import ConfigError
from wordpiece_bert.hub import find_model
from wordpiece_bert.sentence.folders.kinds import kind_of
from wordpiece_bert.tokenizer.parameters import SPLITTING

if TYPE_CHECKING:
    import os
    from pathlib import Path

    from wordpiece_bert.sentence.dense.sentence_encoder import SentenceEncoder
    from wordpiece_bert.sentence.multi_vector.multi_vector_encoder import MultiVectorEncoder
    from wordpiece_bert.sentence.sparse.sparse_encoder import SparseEncoder
    from wordpiece_bert.tokenizer.word_splitter import WordSplitter

    Encoder: TypeAlias = SentenceEncoder | SparseEncoder | MultiVectorEncoder


def encoder_class(folder: Path) -> type[Encoder]:
    """Return the class that loads the encoder of dense, sparse or many vectors of a folder.

    Raises
    ------
    ConfigError
        The model makes no vectors.
    """
    kind = kind_of(folder)
    if kind.vectors is None:
        raise ConfigError(f"{folder} is a model for {kind.class_name}, which makes no vectors")
    module = importlib.import_module(f"wordpiece_bert.sentence.{kind.module}")
    return cast("type[Encoder]", getattr(module, kind.class_name))


@completed_by(SPLITTING)
def load_encoder(name: str | os.PathLike[str], *, word_splitter: WordSplitter | None = None) -> Encoder:
    """Load the encoder of dense, sparse or many vectors that a name or a folder has.

    Parameters
    ----------
    name : str or os.PathLike
        The name or the folder.

    Raises
    ------
    ModelNotFoundError, ConfigError, CheckpointError, TokenizerFormatError
        As for `SentenceEncoder`; a ConfigError also for a cross encoder.
    """
    return encoder_class(find_model(name))(name, word_splitter=word_splitter)
