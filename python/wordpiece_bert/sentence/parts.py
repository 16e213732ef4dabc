"""What encoders give to other modules of this package, besides `wordpiece_bert._internal.parts`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wordpiece_bert._internal.batching import ModelInputs
    from wordpiece_bert.bert.base_model import Model
    from wordpiece_bert.bert.config import BertConfig
    from wordpiece_bert.bert.functional import Array
    from wordpiece_bert.sentence.cross_encoder import CrossEncoder
    from wordpiece_bert.sentence.encoder_base import Encoder
    from wordpiece_bert.sentence.source import Source


def source_of(encoder: Encoder) -> Source | None:
    """Return where an encoder was loaded from; None for one that was made in memory."""
    return encoder._source


def settings_of(encoder: Encoder) -> Any:
    """Return the settings of an encoder's folder, as they are after the arguments with which it was made."""
    return encoder._folder


def threads_of(encoder: Encoder) -> int | None:
    """Return the number of threads of an encoder; None for the default."""
    return encoder._threads


def prompt_of(encoder: Encoder, prompt: str | None = None, name: str | None = None) -> str:
    """Return what is put before each text, given the arguments `prompt` and `prompt_name` of a call."""
    return encoder._prompt(prompt, name)


def late_vectors(
    encoder: Any, texts: list[str], chunks: Any, *, prompt: str, batch_size: int, **form: Any
) -> list[Array]:
    """Return the vectors of the chunks of each text, [chunks, d], for late chunking of texts of any length.

    A text of more tokens than a row has goes through the model in sections of entire chunks.
    """
    vectors: list[Array] = encoder._chunk_vectors(
        texts, chunks, prompt=prompt, batch_size=batch_size, sections=True, **form
    )
    return vectors


def logits_of(ranker: CrossEncoder, inputs: ModelInputs) -> Array:
    """Return what the model of a cross encoder makes of padded rows, before any activation, [B, labels]."""
    logits: Array = ranker._model.infer(**inputs, threads=ranker._threads)
    return logits


def config_of(ranker: CrossEncoder) -> BertConfig:
    """Return the configuration of a cross encoder's model."""
    return ranker._model.config


def model_of(ranker: CrossEncoder) -> Model:
    """Return the model of a cross encoder, with its head, or the encoder before its modules."""
    model: Any = ranker._model
    found: Model = getattr(model, "_encoder", model)
    return found


def scores_of(ranker: CrossEncoder, logits: Array) -> Array:
    """Return the scores of a cross encoder for logits, [B, labels]: after its activation."""
    return ranker._activation(logits)
