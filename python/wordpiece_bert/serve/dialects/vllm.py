"""vLLM's scores, rankings, classes and pooled vectors."""

from __future__ import annotations

import time
import uuid
from typing import TYPE_CHECKING, Any

import numpy as np

from wordpiece_bert.bert.functional import normalize
from wordpiece_bert.serve.dialects.cohere import RANKED_BODY, rank
from wordpiece_bert.serve.dialects.parts import (
    ACTIVATION,
    INDICES,
    MODEL,
    OF_VLLM,
    OUTPUT_OF_VLLM,
    RANKED_FIELDS,
    TRUNCATE,
    activation_of,
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
from wordpiece_bert.serve.operations import Example, Operation, Route, first_of, first_ranker

if TYPE_CHECKING:
    import numpy.typing as npt

    from wordpiece_bert.serve.kinds.served_model import Answer, Served
    from wordpiece_bert.serve.models import Models
    from wordpiece_bert.serve.operations import Service

_RANK_FIELDS = (
    Field("query", Text(), required=True, about="What the documents are compared with."),
    Field("documents", Documents(), required=True, about="What to rank; of an object the text."),
    MODEL,
    *OF_VLLM,
    *ACTIVATION,
    Field("top_n", Whole(0), about="How many documents to return; 0 or nothing for all."),
    Field("return_documents", Flag(), default=True, about="Whether to return the documents."),
    RANKED_FIELDS,
    Field("max_tokens_per_query", Whole(0), about="The most tokens of the query; 0 for as many as fit."),
    Field("max_tokens_per_doc", Whole(0), about="The most tokens of a document; 0 for as many as fit."),
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


def _scorer(models: Models, name: str | None = None) -> Any:
    """Return the model that compares texts and has a name; without a name a ranker, if there is one."""
    kinds: tuple[type[Served], ...] = (SequenceModel, MultiVectorModel, MakesVectors)
    if name is None:
        if any(isinstance(one, MultiVectorModel) or (isinstance(one, SequenceModel) and one.ranks) for one in models):
            return models.ranker(None)
        if any(isinstance(one, MakesVectors) for one in models):  # which a classifier does not hide
            kinds = (MakesVectors,)
    meaning = "a cross encoder, a multi-vector encoder or a sentence encoder, which compare texts"
    return models.find(name, kinds, meaning)


def _scoring(first: str, second: str) -> Operation:
    """Return the operation of scores whose texts have these names."""

    async def score(service: Service, fields: dict[str, Any]) -> Any:
        """``/score``: the score of each text of one list with its partner in the other, or of one with all."""
        model = _scorer(service.models, fields["model"])
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
        Field(first, Texts(), required=True, about=f"A text for each of {second}, or one for all."),
        Field(second, Texts(), required=True, about="What is compared with it."),
        MODEL,
        *OF_VLLM,
        *ACTIVATION,
        *refused("a row is truncated as a whole", "max_tokens_per_query", "max_tokens_per_doc", harmless=(0,)),
    )
    body = {first: "how to bake bread", second: ["to repair a bicycle", "bread dough in the oven"]}
    return Operation(VLLM, "Scores of pairs of texts", fields, score, _LIST, _scorer, Example(body, _SCORED))


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
        scales = dense.check_normalized(ACTIVATION[0].name, activation_of(fields))
        answer = await dense.embed(texts, options)
        if scales:
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
_SCORED = {
    "id": "score-65a9f2ae126f40aea8b7a15c45856a39",
    "object": "list",
    "created": 1795879183,
    "model": "ranker",
    "data": [{"index": 0, "object": "score", "score": 0.270862}, {"index": 1, "object": "score", "score": 0.730996}],
    "usage": {"prompt_tokens": 23, "total_tokens": 23, "completion_tokens": 0},
    "truncated": [],
}
_SCORES = tuple(
    _scoring(*names)
    for names in (("text_1", "text_2"), ("queries", "documents"), ("queries", "items"), ("data_1", "data_2"))
)
_INPUT = Field("input", Texts(), required=True, about="What to label.")
_CLASSIFY_FIELDS = (_INPUT, MODEL, *OF_VLLM, *ACTIVATION)
_POOLING_FIELDS = (
    Field("input", Texts(ids=True), required=True, about="The texts."),
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
        about="What to return: a vector of each text, of each token, or labels; by default what the model has.",
    ),
    MODEL,
    *OF_VLLM,
    *ACTIVATION,
    Field(
        "encoding_format",
        Choice("float", "base64", bytes="take base64", bytes_only="take base64"),
        about="The form of vectors: numbers, or base64 of little-endian float32.",
    ),
    *OUTPUT_OF_VLLM,
    *refused("ask /v1/embeddings", "dimensions", "normalize"),
)

_RERANK = Operation(
    VLLM,
    "Ranks documents, as vLLM and Jina have it",
    _RANK_FIELDS,
    rerank,
    _RANKED,
    first_ranker,
    Example(
        RANKED_BODY,
        {
            "id": "rerank-219ae1f449a14b2b998db8ab67a502dc",
            "model": "ranker",
            "usage": {"prompt_tokens": 23, "total_tokens": 23},
            "results": [
                {"index": 1, "relevance_score": 0.730996, "document": {"text": "bread dough in the oven"}},
                {"index": 0, "relevance_score": 0.270862, "document": {"text": "to repair a bicycle"}},
            ],
            "truncated": [],
        },
    ),
)
_CLASSIFY = Operation(
    VLLM,
    "Classes of texts",
    _CLASSIFY_FIELDS,
    classify,
    _LIST,
    first_of(Classifies),
    Example(
        {"input": ["A wonderful film!"]},
        {
            "id": "classify-35c9b5d4520444a2a9fe91c228f1f0bf",
            "object": "list",
            "created": 1795879183,
            "model": "reviews",
            "data": [{"index": 0, "label": "positive", "probs": [0.000417, 0.999583], "num_classes": 2}],
            "usage": {"prompt_tokens": 6, "total_tokens": 6, "completion_tokens": 0},
            "truncated": [],
        },
    ),
)
_POOL = Operation(
    VLLM,
    "Vectors of tokens",
    _POOLING_FIELDS,
    pooling,
    _LIST,
    first_of(MakesTokenVectors),
    Example(
        {"input": "Rain.", "task": "token_embed"},
        {
            "id": "pool-669a765c8cb84c90864d354dd4e0900d",
            "object": "list",
            "created": 1795879183,
            "model": "minilm",
            "data": [
                {
                    "index": 0,
                    "object": "pooling",
                    "data": [
                        [-0.116241, -0.08083, 0.600784],
                        [-0.548344, 0.091082, 1.034899],
                        [0.327554, 0.309905, -0.138867],
                        [0.158752, 0.259345, -0.273363],
                    ],
                }
            ],
            "usage": {"prompt_tokens": 4, "total_tokens": 4, "completion_tokens": 0},
            "truncated": [],
        },
    ),
)

ROUTES = (
    Route("/rerank", TEI, (RERANK, _RERANK)),
    Route("/score", VLLM, _SCORES),
    Route("/v1/score", VLLM, _SCORES),
    Route("/classify", VLLM, (_CLASSIFY, PREDICT)),
    Route("/pooling", VLLM, (_POOL,)),
)
