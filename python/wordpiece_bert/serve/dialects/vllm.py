"""vLLM's scores, rankings, classes and pooled vectors."""

from __future__ import annotations

import time
import uuid
from typing import TYPE_CHECKING, Any

import numpy as np

from wordpiece_bert.bert.functional import normalize
from wordpiece_bert.serve.dialects.cohere import rank
from wordpiece_bert.serve.dialects.parts import (
    ACTIVATION,
    INDICES,
    MODEL,
    OF_VLLM,
    OUTPUT_OF_VLLM,
    RANKED_FIELDS,
    TRUNCATE,
    is_activated,
    list_of,
    object_of,
    options_of,
    refused,
    truncated_rows,
    usage_of,
)
from wordpiece_bert.serve.dialects.tei import PREDICT, RERANK
from wordpiece_bert.serve.errors import TEI, VLLM, RequestError
from wordpiece_bert.serve.fields import Choice, Documents, Field, Flag, Text, Texts, Whole
from wordpiece_bert.serve.kinds.outputs import Classifies, MakesTokenVectors, MakesVectors
from wordpiece_bert.serve.kinds.sequences import SequenceModel
from wordpiece_bert.serve.kinds.vector_models import MultiVectorModel
from wordpiece_bert.serve.operations import Operation, Route

if TYPE_CHECKING:
    import numpy.typing as npt

    from wordpiece_bert.serve.kinds.served_model import Answer
    from wordpiece_bert.serve.operations import Service

_RANK_FIELDS = (
    Field("query", Text(), required=True),
    Field("documents", Documents(), required=True),
    MODEL,
    *OF_VLLM,
    *ACTIVATION,
    Field("top_n", Whole(0), about="How many documents to return; 0 or nothing for all."),
    Field("return_documents", Flag(), default=True),
    RANKED_FIELDS,
    Field("max_tokens_per_query", Whole(0)),
    Field("max_tokens_per_doc", Whole(0)),
    TRUNCATE,
    *refused("a document is one row, truncated to the model's length", "max_chunks_per_doc", harmless=(1,)),
    *refused("the models follow no instructions", "instruction"),
)


async def rerank(service: Service, fields: dict[str, Any]) -> Any:
    """``/rerank`` with ``documents``."""
    ranking = await rank(service, fields, return_documents=True)
    return {
        "id": f"rerank-{uuid.uuid4().hex}",
        "model": ranking.model,
        "usage": ranking.usage,
        "results": ranking.results,
        "truncated": ranking.truncated,
    }


def _scoring(first: str, second: str) -> Operation:
    """Return the operation of scores whose texts have these names."""

    async def score(service: Service, fields: dict[str, Any]) -> Any:
        """``/score``: the score of each text of one list with its partner in the other, or of one with all."""
        meaning = "a cross encoder, a multi-vector encoder or a sentence encoder, which compare texts"
        kinds = (SequenceModel, MultiVectorModel, MakesVectors)
        if fields["model"] is None and any(isinstance(one, kinds[:2]) for one in service.models):
            model: Any = service.models.ranker(None)
        else:
            model = service.models.find(fields["model"], kinds, meaning)
        left, right = fields[first], fields[second]
        if len(left) not in (1, len(right)):
            message = f"{first} must have one text, or as many as {second}: {len(right)}, not {len(left)}"
            raise RequestError(400, message, param=first)
        options = options_of(service, fields)
        if isinstance(model, SequenceModel):
            answer: Answer = await model.score(left, right, options, raw_scores=not is_activated(fields))
        else:
            answer = await model.score(left, right, options)
        data = (
            {"index": index, "object": "score", "score": score} for index, score in enumerate(answer.values.tolist())
        )
        return _listed(service, "score", model.name, data, answer)

    fields = (
        Field(first, Texts(), required=True),
        Field(second, Texts(), required=True),
        MODEL,
        *OF_VLLM,
        *ACTIVATION,
        *refused("a row is truncated as a whole", "max_tokens_per_query", "max_tokens_per_doc", harmless=(0,)),
    )
    return Operation(VLLM, "Scores of pairs of texts", fields, score, _LIST)


async def classify(service: Service, fields: dict[str, Any]) -> Any:
    """``/classify``: the probabilities of the labels of texts."""
    model = service.models.of_kind(Classifies, fields["model"])
    answer = await model.classify(fields["input"], options_of(service, fields), _function(fields))
    data = (
        {
            "index": index,
            "label": model.labels[int(scores.argmax())],
            "probs": scores.tolist(),
            "num_classes": len(scores),
        }
        for index, scores in enumerate(answer.values)
    )
    return _listed(service, "classify", model.name, data, answer)


def _function(fields: dict[str, Any]) -> str | None:
    """Return the name of the function from logits to scores that a body asks for; None for the model's."""
    return None if is_activated(fields) else "none"


def _refuse_activation(fields: dict[str, Any]) -> None:
    """Refuse to scale the vectors of tokens."""
    for field in ACTIVATION:
        if fields[field.name] is not None:
            message = f"{field.name} is not served for the vectors of tokens, which are those of the model"
            raise RequestError(400, message, param=field.name, code="not_served")


async def pooling(service: Service, fields: dict[str, Any]) -> Any:
    """``/pooling``: the vectors of the tokens of texts, or by task their vectors or classes."""
    texts, options, task = fields["input"], options_of(service, fields), fields["task"]
    if task in ("classify", None) and (task or isinstance(service.models.find(fields["model"]), Classifies)):
        classifier = service.models.of_kind(Classifies, fields["model"])
        answer = await classifier.classify(texts, options, _function(fields))
        name = classifier.name
    elif task == "embed":
        dense = service.models.of_kind(MakesVectors, fields["model"])
        scales = [dense.check_normalized(field.name, fields[field.name]) for field in ACTIVATION]
        answer = await dense.embed(texts, options)
        if any(scales):
            answer = answer._replace(values=normalize(answer.values))
        name = dense.name
    else:
        _refuse_activation(fields)
        encoder = service.models.of_kind(MakesTokenVectors, fields["model"])
        answer = await encoder.embed_tokens(texts, options)
        name = encoder.name
    is_packed = fields["encoding_format"] == "base64"
    data = (
        {"index": index, "object": "pooling", "data": _bytes_of(row) if is_packed else row}
        for index, row in enumerate(answer.values)
    )
    return _listed(service, "pool", name, data, answer)


def _bytes_of(row: npt.NDArray[Any]) -> memoryview:
    """Return numbers as little-endian float32."""
    return np.ascontiguousarray(row, "<f4").reshape(-1).data.cast("B")


def _listed(service: Service, kind: str, model: str, data: Any, answer: Answer) -> dict[str, Any]:
    return {
        "id": f"{kind}-{uuid.uuid4().hex}",
        "object": "list",
        "created": int(time.time()),
        "model": model,
        "data": data,
        "usage": usage_of(answer) | {"completion_tokens": 0},
        "truncated": truncated_rows(service, answer, model),
    }


_LIST = object_of(
    id="string", object="string", created="integer", model="string", data={}, usage="object", truncated=INDICES
)
_RANKED = object_of(
    id="string",
    model="string",
    usage="object",
    results=list_of(object_of(index="integer", relevance_score="number", document="object")),
    truncated=INDICES,
)
_SCORES = tuple(
    _scoring(*names)
    for names in (("text_1", "text_2"), ("queries", "documents"), ("queries", "items"), ("data_1", "data_2"))
)
_INPUT = Field("input", Texts(), required=True)
_CLASSIFY_FIELDS = (_INPUT, MODEL, *OF_VLLM, *ACTIVATION)
_POOLING_FIELDS = (
    Field("input", Texts(ids=True), required=True),
    Field(
        "task",
        Choice(
            "embed",
            "token_embed",
            "classify",
            token_classify="a token classifier answers POST / and /models/NAME",
            plugin="there are no plugins",
            score="ask /score",
        ),
    ),
    MODEL,
    *OF_VLLM,
    *ACTIVATION,
    Field("encoding_format", Choice("float", "base64", bytes="take base64", bytes_only="take base64")),
    *OUTPUT_OF_VLLM,
    *refused("ask /v1/embeddings", "dimensions", "normalize"),
)

ROUTES = (
    Route(
        "/rerank",
        TEI,
        (RERANK, Operation(VLLM, "Ranks documents, as vLLM and Jina have it", _RANK_FIELDS, rerank, _RANKED)),
    ),
    Route("/score", VLLM, _SCORES),
    Route("/v1/score", VLLM, _SCORES),
    Route("/classify", VLLM, (Operation(VLLM, "Classes of texts", _CLASSIFY_FIELDS, classify, _LIST), PREDICT)),
    Route("/pooling", VLLM, (Operation(VLLM, "Vectors of tokens", _POOLING_FIELDS, pooling, _LIST),)),
)
