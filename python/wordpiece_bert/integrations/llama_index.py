"""Sentence vectors for LlamaIndex. Needs llama-index-core.

Stability: provisional.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from wordpiece_bert._internal.asynchronous import run_in_thread
from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert._internal.texts import one_or_many
from wordpiece_bert.errors import InputError
from wordpiece_bert.integrations.named_models import (
    check_contents,
    checked_options,
    contents_of,
    encoder_of,
    given_model,
    import_package,
)
from wordpiece_bert.integrations.options import GIVEN, NAMED
from wordpiece_bert.sentence.dense.sentence_encoder import SentenceEncoder
from wordpiece_bert.sentence.source import lasting_name

_loading = import_package("llama_index.core.embeddings.loading", "llama-index")
BaseEmbedding: Any = import_package("llama_index.core.embeddings", "llama-index").BaseEmbedding

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

__all__ = ["WordPieceEmbedding"]

#: What `model_name` is for an encoder that was not given by a name.
_UNNAMED = "wordpiece-bert"


@completed_by(GIVEN, NAMED)
class WordPieceEmbedding(BaseEmbedding):  # type: ignore[misc]
    """The embedding model of LlamaIndex: ``Settings.embed_model = WordPieceEmbedding("minilm")``.

    Parameters
    ----------
    embed_batch_size : int, default 256
        How many texts LlamaIndex passes at once.
    model_contents : dict, optional
        The digests of the model's contents that LlamaIndex has stored: a model that differs is refused.
    callback_manager, num_workers, embeddings_cache, rate_limiter : optional
        What LlamaIndex's `BaseEmbedding` is given.
    """

    #: Fields, so that LlamaIndex stores them.
    model_contents: dict[str, str] | None = None
    encoder_options: dict[str, Any] | None = None

    def __init__(
        self,
        model: SentenceEncoder | str | os.PathLike[str] | None = None,
        *,
        model_name: str | os.PathLike[str] | None = None,
        model_contents: dict[str, str] | None = None,
        dtype: str | None = None,
        encoder_options: dict[str, Any] | None = None,
        embed_batch_size: int = 256,
        callback_manager: Any = None,
        num_workers: int | None = None,
        embeddings_cache: Any = None,
        rate_limiter: Any = None,
    ) -> None:
        if model_name == _UNNAMED:
            raise InputError(
                "the embedding was made of an encoder, which a dict does not hold: make it of the name or the folder "
                "of a model, and it can be restored"
            )
        given = given_model(model, model_name)
        options = checked_options(given, dtype, encoder_options)
        encoder = encoder_of(given, encoder_options=options)
        name = _UNNAMED
        if not isinstance(given, SentenceEncoder):
            name = lasting_name(given)
            contents = contents_of(encoder)
            check_contents(name, contents, contents if model_contents is None else model_contents)
            model_contents = contents
        fields = {
            "callback_manager": callback_manager,
            "encoder_options": options or None,
            "num_workers": num_workers,
            "embeddings_cache": embeddings_cache,
            "rate_limiter": rate_limiter,
        }
        # Not every version has all of these fields.
        known = {field: value for field, value in fields.items() if value is not None}
        super().__init__(model_name=name, model_contents=model_contents, embed_batch_size=embed_batch_size, **known)
        # Not a field of pydantic, which would validate and copy it.
        object.__setattr__(self, "_encoder", encoder)

    @classmethod
    def class_name(cls) -> str:
        """Return the name under which LlamaIndex stores the class."""
        return "WordPieceEmbedding"

    def _get_query_embedding(self, query: str) -> list[float]:
        found: list[float] = self._encoder.encode_query(query).tolist()
        return found

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_text_embeddings(self, texts: Sequence[str]) -> list[list[float]]:
        found: list[list[float]] = self._encoder.encode_document(one_or_many(texts)[1]).tolist()
        return found

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return await run_in_thread(partial(self._get_query_embedding, query))

    async def _aget_text_embedding(self, text: str) -> list[float]:
        return await run_in_thread(partial(self._get_text_embedding, text))


# By this table LlamaIndex restores what `to_dict` wrote.
_loading.RECOGNIZED_EMBEDDINGS[WordPieceEmbedding.class_name()] = WordPieceEmbedding
