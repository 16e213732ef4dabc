"""`StaticEncoder`: a `SentenceEncoder` that loads static models only, without the arguments of others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert._internal.peer_names import refusing_peer_arguments
from wordpiece_bert.bert.loading import Loading
from wordpiece_bert.bert.parameters import LOADING
from wordpiece_bert.sentence.dense.sentence_encoder import SentenceEncoder
from wordpiece_bert.sentence.dense.table import TableBody, load_table
from wordpiece_bert.sentence.encoder_base import FromPretrained, Settings
from wordpiece_bert.sentence.parameters import SETTINGS
from wordpiece_bert.sentence.source import Source

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping


@completed_by(LOADING, SETTINGS)
class StaticEncoder(SentenceEncoder):
    """A static model: the vector of a text is the mean of its tokens' vectors, which do not depend on each other.

    It is a `SentenceEncoder` that is made without the options of other models, from folders of model2vec and folders
    with a StaticEmbedding of sentence-transformers. Texts become vectors in one call of Rust code; Arrow columns are
    read in place. Threads may share it.

    Parameters
    ----------
    model : str or os.PathLike
        The model's name or folder.

    Raises
    ------
    ModelNotFoundError, ConfigError, CheckpointError, TokenizerFormatError
        As for `SentenceEncoder`; a CheckpointError also if table and tokenizer do not fit together.
    InputError
        An argument is wrong.

    Examples
    --------
    >>> from wordpiece_bert.sentence import StaticEncoder
    >>> encoder = StaticEncoder("models/static")
    >>> x = encoder.encode(["the bread", "the dough", "a bicycle"])
    >>> x.shape
    (3, 67)
    >>> encoder.similarity(x[:1], x).round(1)
    array([[1. , 0.8, 0.8]], dtype=float32)
    """

    _body: TableBody

    @refusing_peer_arguments
    def __init__(
        self,
        model: str | os.PathLike[str],
        *,
        threads: int | None = None,
        revision: str | None = None,
        download: bool = False,
        prompts: Mapping[str, str] | None = None,
        default_prompt_name: str | None = None,
        similarity_fn_name: str | None = None,
        truncate_dim: int | None = None,
    ) -> None:
        settings = Settings(prompts, default_prompt_name, similarity_fn_name, truncate_dim)
        loading = Loading(revision=revision, download=download)
        found = loading.find(model)
        source = Source.of(model, found, revision, threads=threads, **settings.given())
        self._set_up(load_table(found, loading, settings, threads), source)

    from_pretrained = FromPretrained(__init__)  # type: ignore[assignment]
