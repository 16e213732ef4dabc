"""Infinity's rankings, whose documents are strings, where vLLM and Jina have objects on the path that it has."""

from __future__ import annotations

import time
import uuid
from typing import TYPE_CHECKING, Any

from wordpiece_bert.serve.dialects.cohere import RANK_FIELDS, rank
from wordpiece_bert.serve.dialects.openai import EMBEDDINGS
from wordpiece_bert.serve.dialects.parts import INDICES, list_of, object_of
from wordpiece_bert.serve.errors import OPENAI
from wordpiece_bert.serve.fields import Field, Flag
from wordpiece_bert.serve.operations import Operation, Route

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

ROUTES = (
    Route("/infinity/embeddings", OPENAI, (EMBEDDINGS,)),
    Route(
        "/infinity/rerank",
        OPENAI,
        (Operation(OPENAI, "Ranks documents, as Infinity has it", _FIELDS, rerank, _RANKED),),
    ),
)
