"""The encoder of a folder of vectors, loaded as it was when the vectors were made."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from wordpiece_bert.hub import find_model
from wordpiece_bert.sentence.dense.sentence_encoder import SentenceEncoder
from wordpiece_bert.sentence.encoder_loading import encoder_class
from wordpiece_bert.sentence.parts import settings_of, source_of

if TYPE_CHECKING:
    import os

    from wordpiece_bert.sentence.encoder_loading import Encoder

#: The arguments of encoders, and the attribute `max_seq_length`, that decide about vectors and queries.
LOADING = (
    *("dtype", "calibrate", "word_splitter", "prompts", "default_prompt_name", "similarity_fn_name"),
    *("truncate_dim", "max_active_dims", "max_seq_length", "revision"),
)


def loading_of(encoder: Encoder) -> dict[str, Any]:
    """Return the arguments among `LOADING` with which an encoder was made, as JSON has them, without defaults."""
    source = source_of(encoder)
    options: dict[str, Any] = {} if source is None else dict(source.options)
    found = {name: options[name] for name in LOADING if options.get(name) is not None}
    if source is not None and source.revision is not None:
        found["revision"] = source.revision  # of a model in the Hugging Face cache
    found["dtype"] = str(encoder.engine.dtype)  # another machine may take another one for "auto"
    if found["dtype"] == "float32":
        del found["dtype"]
    if found.get("dtype") != "int8":
        found.pop("calibrate", None)
    if not isinstance(found.get("word_splitter"), str):
        found.pop("word_splitter", None)  # an object of the user's, who gives it again
    if isinstance(encoder, SentenceEncoder) and encoder.max_seq_length != settings_of(encoder).max_seq_length:
        found["max_seq_length"] = encoder.max_seq_length
    return {name: list(value) if isinstance(value, tuple) else value for name, value in found.items()}


def load_again(
    name: str | os.PathLike[str], loading: dict[str, Any], *, download: bool = False, **given: Any
) -> Encoder:
    """Load the encoder of a name as one was loaded before.

    Parameters
    ----------
    name : str or os.PathLike
        The name or the folder.
    loading : dict
        What `loading_of` returned.
    download : bool, default False
        Whether to download a model that is not on this machine.
    **given : optional
        Arguments of the encoder that count instead of the earlier ones; None for these.

    Raises
    ------
    InputError
        An argument is wrong.
    ModelNotFoundError, ConfigError, CheckpointError, TokenizerFormatError
        As for `SentenceEncoder`.
    """
    options = loading | {argument: value for argument, value in given.items() if value is not None}
    cls = encoder_class(find_model(name, revision=options.get("revision"), download=download))
    length = options.pop("max_seq_length", None)
    if options.get("dtype") != "int8" and given.get("calibrate") is None:
        options.pop("calibrate", None)
    # A model of another kind, which the caller refuses, has other arguments.
    known = inspect.signature(cls).parameters
    encoder: Encoder = cls(name, **{argument: value for argument, value in options.items() if argument in known})
    if length is not None and isinstance(encoder, SentenceEncoder):
        encoder.max_seq_length = length
    return encoder
