"""What each path answers: functions from the fields of a request to a body."""

from __future__ import annotations

import asyncio
import base64
import time
import uuid
from typing import TYPE_CHECKING, Any

import numpy as np

from wordpiece_bert.serve.models import check_tokens
from wordpiece_bert.serve.requests import Fields

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from wordpiece_bert._core import Encoding
    from wordpiece_bert.serve.metrics import Metrics
    from wordpiece_bert.serve.models import Answer, Models
    from wordpiece_bert.serve.settings import ServerSettings
    from wordpiece_bert.tokenizer import Tokenizer

__all__ = ["Endpoints"]


class Endpoints:
    """The paths that take texts.

    Parameters
    ----------
    models : Models
        The models.
    settings : ServerSettings
        The limits.
    metrics : Metrics
        Counts truncated texts.
    """

    def __init__(self, models: Models, settings: ServerSettings, metrics: Metrics) -> None:
        self._models = models
        self._settings = settings
        self._metrics = metrics
        self._started = int(time.time())

    async def embeddings(self, body: dict[str, Any]) -> Any:
        """``/v1/embeddings``, as OpenAI has it, with ``prompt_name`` and ``truncate``; the answer has ``truncated``."""
        names = ("input", "model", "encoding_format", "dimensions", "user", "prompt_name", "truncate")
        fields = Fields(body, *names)
        model = self._models.encoder(fields.optional_text("model"))
        fields.optional_text("user")
        form = fields.choice("encoding_format", "float", "base64")
        answer = await model.embed(
            fields.texts("input", self._settings.max_items),
            dimensions=fields.whole("dimensions", 1),
            prompt_name=fields.optional_text("prompt_name"),
            truncate=self._truncates(fields),
        )
        data = (
            {"object": "embedding", "index": i, "embedding": _base64(vector) if form == "base64" else vector.tolist()}
            for i, vector in enumerate(answer.values)
        )
        usage = {"prompt_tokens": answer.tokens, "total_tokens": answer.tokens}
        return {
            "object": "list",
            "data": data,
            "model": model.name,
            "usage": usage,
            "truncated": self._truncated(answer, model.name),
        }

    async def rerank_v1(self, body: dict[str, Any]) -> Any:
        """``/v1/rerank``, as Jina and the first version of Cohere's API have it."""
        return await self._rerank(body, return_documents=True, version="1")

    async def rerank_v2(self, body: dict[str, Any]) -> Any:
        """``/v2/rerank``, as Cohere has it."""
        return await self._rerank(body, return_documents=False, version="2")

    async def _rerank(self, body: dict[str, Any], *, return_documents: bool, version: str) -> Any:
        names = ("query", "documents", "model", "top_n", "return_documents", "truncate", "truncation")
        fields = Fields(body, *names)
        model = self._models.ranker(fields.optional_text("model"))
        documents = fields.texts("documents", self._settings.max_items, objects=True)
        top_n = fields.whole("top_n", 1)
        returns = fields.flag("return_documents", default=return_documents)
        truncate = fields.flag("truncation", default=self._truncates(fields))
        answer = await model.rank(fields.text("query"), documents, raw_scores=False, truncate=truncate)
        results = (
            {"index": index, "relevance_score": score} | ({"document": {"text": documents[index]}} if returns else {})
            for index, score in _ranked(answer.values)[:top_n]
        )
        return {
            "id": str(uuid.uuid4()),
            "object": "list",
            "model": model.name,
            "results": results,
            "usage": {"prompt_tokens": answer.tokens, "total_tokens": answer.tokens},
            "meta": {"api_version": {"version": version}, "billed_units": {"search_units": 1}},
            "truncated": self._truncated(answer, model.name),
        }

    async def rerank(self, body: dict[str, Any]) -> Any:
        """``/rerank``, as text-embeddings-inference has it."""
        names = ("query", "texts", "model", "raw_scores", "return_text", "truncate", "truncation_direction")
        fields = Fields(body, *names)
        model = self._models.ranker(fields.optional_text("model"))
        texts = fields.texts("texts", self._settings.max_items)
        fields.choice("truncation_direction", "Right", "right")
        returns = fields.flag("return_text", default=False)
        answer = await model.rank(
            fields.text("query"),
            texts,
            raw_scores=fields.flag("raw_scores", default=False),
            truncate=self._truncates(fields),
        )
        truncated = set(self._truncated(answer, model.name))
        return (
            {"index": index, "score": score}
            | ({"text": texts[index]} if returns else {})
            | ({"truncated": True} if index in truncated else {})
            for index, score in _ranked(answer.values)
        )

    async def tokenize(self, body: dict[str, Any]) -> Any:
        """``/tokenize``, as text-embeddings-inference has it: the tokens of texts, without truncation."""
        fields = Fields(body, "inputs", "model", "add_special_tokens")
        model = self._models.any(fields.optional_text("model"))
        texts = fields.texts("inputs", self._settings.max_items)
        special = fields.flag("add_special_tokens", default=True)

        rows = await asyncio.to_thread(self._encodings, model.tokenizer, texts, special=special)
        return (_tokens(row) for row in rows)

    def _encodings(self, tokenizer: Tokenizer, texts: list[str], *, special: bool) -> list[Encoding]:
        """Tokenize texts, unless they have too many tokens in all."""
        most = self._settings.max_tokens
        added = 0 if special else tokenizer.num_special_tokens_to_add()
        # Ids alone take little memory, and of a longer text than the limit no more are made.
        rows = tokenizer.encode_batch(texts, truncation=True, max_length=most + added + 1, padding=False, threads=1)
        check_tokens(len(rows.ids) - added * len(rows), most)
        return tokenizer.encodings(texts, add_special_tokens=special, truncation=False, padding=False, threads=1)

    def list_models(self) -> dict[str, Any]:
        """``/v1/models``, as OpenAI has it."""
        return {
            "object": "list",
            "data": [
                {"id": name, "object": "model", "created": self._started, "owned_by": "wordpiece-bert"}
                for name in self._models.names
            ],
        }

    def _truncates(self, fields: Fields) -> bool:
        return fields.truncate(default=self._settings.truncation == "report")

    def _truncated(self, answer: Answer, model: str) -> list[int]:
        """Return the indices of truncated texts, and count them."""
        indices = np.flatnonzero(answer.truncated).tolist()
        if indices:
            self._metrics.truncated.add(len(indices), model=model)
        return indices


def _base64(vector: npt.NDArray[Any]) -> str:
    """Return a vector as the base64 of its little-endian float32."""
    return base64.b64encode(vector.astype("<f4", copy=False).tobytes()).decode()


def _tokens(encoding: Encoding) -> Iterator[dict[str, Any]]:
    """Yield the tokens of a text."""
    columns = (encoding.ids, encoding.tokens, encoding.special_tokens_mask, encoding.offsets)
    for id_, token, mask, offsets in zip(*columns, strict=True):
        place = {} if mask else {"start": offsets[0], "stop": offsets[1]}
        yield {"id": id_, "text": token, "special": bool(mask), **place}


def _ranked(scores: npt.NDArray[Any]) -> list[tuple[int, float]]:
    """Return indices and scores, the highest score first."""
    return [(index, float(scores[index])) for index in np.argsort(-scores, kind="stable").tolist()]
