"""Cohere's embeddings and rankings, in both versions; Jina has the first version of rankings, too."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from wordpiece_bert.serve.dialects.parts import (
    ACTIVATION,
    FORMS,
    INDICES,
    MODEL,
    OF_VLLM,
    RANKED_FIELDS,
    TRUNCATE,
    is_activated,
    list_of,
    object_of,
    one_of,
    options_of,
    packed,
    ranked,
    refused,
    texts_of,
    truncated_rows,
    usage_of,
)
from wordpiece_bert.serve.errors import COHERE, JINA, RequestError
from wordpiece_bert.serve.fields import TEXTS_ONLY, Choice, Choices, Documents, Field, Flag, Strings, Text, Whole
from wordpiece_bert.serve.kinds.outputs import MakesVectors
from wordpiece_bert.serve.kinds.sequences import NO_LIMITS, Limits, SequenceModel
from wordpiece_bert.serve.operations import Example, Operation, Route, first_of, first_ranker

if TYPE_CHECKING:
    from collections.abc import Callable

    from wordpiece_bert.serve.operations import Service

#: The types of input, and the texts' role, whose prompt is put before them.
_ROLES = {
    "search_document": "document",
    "search_query": "query",
    "classification": "classification",
    "clustering": "clustering",
}

_EMBED_FIELDS = (
    Field("texts", Strings(), required=True, about="What to embed."),
    MODEL,
    Field("input_type", Choice(*_ROLES, image=TEXTS_ONLY), about="What the texts are."),
    Field(
        "embedding_types",
        Choices(*FORMS),
        about="The forms of vectors; each is a field of the answer.",
    ),
    TRUNCATE,
    *refused(TEXTS_ONLY, "images"),
)
_V2_FIELDS = (
    *_EMBED_FIELDS,
    Field("output_dimension", Whole(1), about="How many numbers of each vector to keep."),
    Field("max_tokens", Whole(1), about="The longest row in tokens."),
    *refused("send texts", "inputs"),
    *refused("requests are answered in the order in which they come", "priority", harmless=(0,)),
)

#: The fields of rankings.
RANK_FIELDS = (
    Field("query", Text(), required=True, about="What the documents are compared with."),
    Field("documents", Documents(), required=True, about="What to rank; of an object the text."),
    MODEL,
    Field("top_n", Whole(0), about="How many documents to return; 0 or nothing for all."),
    Field("return_documents", Flag(), about="Whether to return the documents."),
    RANKED_FIELDS,
    Field("max_tokens_per_query", Whole(0), about="vLLM's: the most tokens of the query; 0 for as many as fit."),
    Field("max_tokens_per_doc", Whole(0), about="The most tokens of a document; by default, or 0, as many as fit."),
    TRUNCATE,
    Field("truncation", Flag(), about="Jina's truncate."),
    *OF_VLLM,
    *ACTIVATION,
    *refused("a document is one row, truncated to the model's length", "max_chunks_per_doc", harmless=(1,)),
    *refused("the models follow no instructions", "instruction"),
    *refused("vectors are not part of rankings", "return_embeddings", harmless=(False,)),
)


class Ranking:
    """The scores of documents, as Cohere, Jina and vLLM return them."""

    def __init__(self, model: str, results: Any, usage: dict[str, int], truncated: list[int]) -> None:
        self.model = model
        self.results = results
        self.usage = usage
        self.truncated = truncated


def _as_object(document: str | dict[str, Any], _: str) -> dict[str, Any]:
    return {"text": document} if isinstance(document, str) else document


async def rank(
    service: Service,
    fields: dict[str, Any],
    *,
    return_documents: bool,
    shown: Callable[[str | dict[str, Any], str], Any] = _as_object,
) -> Ranking:
    """Rank the documents of a body.

    Parameters
    ----------
    service
        What answers need.
    fields
        The fields of the body.
    return_documents
        Whether results have their documents, unless the body says it.
    shown
        Takes a document as it was given and its text, and returns what a result has of it.
    """
    model = service.models.ranker(fields["model"])
    documents = fields["documents"]
    texts = texts_of(documents, fields.get("rank_fields"))
    options = options_of(service, fields)
    if fields.get("truncation") is not None:
        truncate = None if fields.get("truncate") is None else options.truncate
        both = {"truncation": fields["truncation"], "truncate": truncate}
        options = options._replace(truncate=one_of(both, *both))
    limits = Limits(fields.get("max_tokens_per_query") or None, fields.get("max_tokens_per_doc") or None)
    if isinstance(model, SequenceModel):
        answer = await model.rank(fields["query"], texts, options, limits, raw_scores=not is_activated(fields))
    elif limits != NO_LIMITS:
        raise RequestError(400, f"the model {model.name!r} has its own limits of tokens", code="not_served")
    else:
        answer = await model.rank(fields["query"], texts, options)
    given = fields.get("return_documents")
    returns = return_documents if given is None else given
    results = (
        {"index": index, "relevance_score": score}
        | ({"document": shown(documents[index], texts[index])} if returns else {})
        for index, score in ranked(answer.values)[: fields["top_n"] or None]
    )
    return Ranking(model.name, results, usage_of(answer), truncated_rows(service, answer, model.name))


async def rerank_v1(service: Service, fields: dict[str, Any]) -> Any:
    """``/v1/rerank``."""
    return _ranking(await rank(service, fields, return_documents=True), "1")


async def rerank_v2(service: Service, fields: dict[str, Any]) -> Any:
    """``/v2/rerank``."""
    return _ranking(await rank(service, fields, return_documents=False), "2")


def _ranking(ranking: Ranking, version: str) -> dict[str, Any]:
    return {
        "id": str(uuid.uuid4()),
        "object": "list",
        "model": ranking.model,
        "results": ranking.results,
        "usage": ranking.usage,
        "meta": {"api_version": {"version": version}, "billed_units": {"search_units": 1}},
        "truncated": ranking.truncated,
    }


async def embed_v1(service: Service, fields: dict[str, Any]) -> Any:
    """``/v1/embed``: without types a list of vectors, else vectors by type."""
    return await _embed(service, fields, "1", by_type=fields["embedding_types"] is not None)


async def embed_v2(service: Service, fields: dict[str, Any]) -> Any:
    """``/v2/embed``: vectors by type."""
    return await _embed(service, fields, "2", by_type=True)


async def _embed(service: Service, fields: dict[str, Any], version: str, *, by_type: bool) -> Any:
    model = service.models.of_kind(MakesVectors, fields["model"])
    options = options_of(service, fields, _ROLES.get(fields["input_type"]))
    if fields.get("max_tokens") is not None:
        options = options._replace(max_length=min(fields["max_tokens"], model.longest_row))
    answer = await model.embed(fields["texts"], options, dimensions=fields.get("output_dimension"))
    forms = list(dict.fromkeys(fields["embedding_types"] or ["float"]))
    vectors = {form: packed(answer.values, form) for form in forms}
    return {
        "id": str(uuid.uuid4()),
        "response_type": "embeddings_by_type" if by_type else "embeddings_floats",
        "embeddings": vectors if by_type else vectors["float"],
        "texts": fields["texts"],
        "model": model.name,
        "meta": {"api_version": {"version": version}, "billed_units": {"input_tokens": answer.tokens}},
        "truncated": truncated_rows(service, answer, model.name),
    }


_RANKED = object_of(
    id="string",
    model="string",
    results=list_of(object_of(index="integer", relevance_score="number", document="object")),
    usage="object",
    meta="object",
    truncated=INDICES,
)
_VECTORS = object_of(id="string", response_type="string", embeddings={}, texts={}, meta="object", truncated=INDICES)
_EMBEDDED = {"texts": ["A cat sat on the mat."], "input_type": "search_document"}
#: The body of a ranking that the description shows.
RANKED_BODY = {"query": "how to bake bread", "documents": ["to repair a bicycle", "bread dough in the oven"]}

EMBED_V1 = Operation(
    COHERE,
    "Vectors of texts, as Cohere's first version has it",
    _EMBED_FIELDS,
    embed_v1,
    _VECTORS,
    first_of(MakesVectors),
    Example(
        _EMBEDDED,
        {
            "id": "e3fcde17-9d23-4426-b1d2-7cf071cab14a",
            "response_type": "embeddings_floats",
            "embeddings": [[0.120813, -0.023536, -0.03669]],
            "texts": ["A cat sat on the mat."],
            "model": "minilm",
            "meta": {"api_version": {"version": "1"}, "billed_units": {"input_tokens": 9}},
            "truncated": [],
        },
    ),
)
EMBED_V2 = Operation(
    COHERE,
    "Vectors of texts, as Cohere has it",
    _V2_FIELDS,
    embed_v2,
    _VECTORS,
    first_of(MakesVectors),
    Example(
        {**_EMBEDDED, "embedding_types": ["float"]},
        {
            "id": "5a5c5814-1430-4c0b-bf7c-b57263b3d8b7",
            "response_type": "embeddings_by_type",
            "embeddings": {"float": [[0.120813, -0.023536, -0.03669]]},
            "texts": ["A cat sat on the mat."],
            "model": "minilm",
            "meta": {"api_version": {"version": "2"}, "billed_units": {"input_tokens": 9}},
            "truncated": [],
        },
    ),
)
RERANK_V1 = Operation(
    JINA,
    "Ranks documents, as Jina and Cohere's first version have it",
    RANK_FIELDS,
    rerank_v1,
    _RANKED,
    first_ranker,
    Example(
        RANKED_BODY,
        {
            "id": "86b2bb1c-93af-40ef-94a5-d1b557f2ce54",
            "object": "list",
            "model": "ranker",
            "results": [
                {"index": 1, "relevance_score": 0.730996, "document": {"text": "bread dough in the oven"}},
                {"index": 0, "relevance_score": 0.270862, "document": {"text": "to repair a bicycle"}},
            ],
            "usage": {"prompt_tokens": 23, "total_tokens": 23},
            "meta": {"api_version": {"version": "1"}, "billed_units": {"search_units": 1}},
            "truncated": [],
        },
    ),
)
RERANK_V2 = Operation(
    COHERE,
    "Ranks documents, as Cohere has it",
    RANK_FIELDS,
    rerank_v2,
    _RANKED,
    first_ranker,
    Example(
        RANKED_BODY,
        {
            "id": "9f06f01b-98f1-4633-b3e9-1988547ff8ef",
            "object": "list",
            "model": "ranker",
            "results": [{"index": 1, "relevance_score": 0.730996}, {"index": 0, "relevance_score": 0.270862}],
            "usage": {"prompt_tokens": 23, "total_tokens": 23},
            "meta": {"api_version": {"version": "2"}, "billed_units": {"search_units": 1}},
            "truncated": [],
        },
    ),
)

ROUTES = (
    Route("/v1/embed", COHERE, (EMBED_V1,)),
    Route("/v2/embed", COHERE, (EMBED_V2,)),
    Route("/v1/rerank", JINA, (RERANK_V1,)),
    Route("/v2/rerank", COHERE, (RERANK_V2,)),
)
