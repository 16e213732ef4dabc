"""Infinity's rankings, whose documents are strings, where vLLM and Jina have objects on the path that it has."""

from __future__ import annotations

import time
import uuid
from typing import TYPE_CHECKING, Any

from wordpiece_bert.serve.dialects.cohere import RANK_FIELDS, RANKED_BODY, rank
from wordpiece_bert.serve.dialects.openai import EMBEDDINGS
from wordpiece_bert.serve.dialects.parts import INDICES, list_of, object_of
from wordpiece_bert.serve.errors import OPENAI
from wordpiece_bert.serve.fields import Field, Flag
from wordpiece_bert.serve.operations import Example, Operation, Route, first_ranker

if TYPE_CHECKING:
    from wordpiece_bert.serve.operations import Service

_FIELDS = (*RANK_FIELDS, Field("raw_scores", Flag(), about="Whether scores are those before the activation."))


async def rerank(service: Service, fields: dict[str, Any]) -> Any:
    """``/infinity/rerank``."""
    if fields["raw_scores"] is not None:
        fields = {**fields, "use_activation": not fields["raw_scores"]}
    ranking = await rank(service, fields, return_documents=False, shown=lambda _, text: text)
    return {
        "object": "rerank",
        "results": ranking.results,
        "model": ranking.model,
        "usage": ranking.usage,
        "id": f"infinity-{uuid.uuid4()}",
        "created": int(time.time()),
        "truncated": ranking.truncated,
    }


_RANKED = object_of(
    object={"const": "rerank"},
    id="string",
    created="integer",
    model="string",
    usage="object",
    results=list_of(object_of(index="integer", relevance_score="number", document="string")),
    truncated=INDICES,
)

_RERANK = Operation(
    OPENAI,
    "Ranks documents, as Infinity has it",
    _FIELDS,
    rerank,
    _RANKED,
    first_ranker,
    Example(
        {**RANKED_BODY, "return_documents": True},
        {
            "object": "rerank",
            "results": [
                {"index": 1, "relevance_score": 0.730996, "document": "bread dough in the oven"},
                {"index": 0, "relevance_score": 0.270862, "document": "to repair a bicycle"},
            ],
            "model": "ranker",
            "usage": {"prompt_tokens": 23, "total_tokens": 23},
            "id": "infinity-926bb976-1e21-41f5-98e8-33edd3e6d65f",
            "created": 1795879183,
            "truncated": [],
        },
    ),
)

ROUTES = (
    Route("/infinity/embeddings", OPENAI, (EMBEDDINGS,)),
    Route("/infinity/rerank", OPENAI, (_RERANK,)),
)
