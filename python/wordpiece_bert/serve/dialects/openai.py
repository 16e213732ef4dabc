"""OpenAI's embeddings and models, with the fields that Jina and vLLM add to them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from wordpiece_bert.bert.functional import normalize
from wordpiece_bert.serve.dialects.parts import (
    ACTIVATION,
    FORMS,
    INDICES,
    MODEL,
    OF_VLLM,
    OUTPUT_OF_VLLM,
    PROMPT_NAME,
    TRUNCATE,
    list_of,
    object_of,
    one_of,
    options_of,
    packed,
    refused,
    truncated_rows,
    usage_of,
)
from wordpiece_bert.serve.errors import OPENAI, RequestError
from wordpiece_bert.serve.fields import TEXTS_ONLY, Choice, Field, Flag, Texts, TokenRows, Whole
from wordpiece_bert.serve.kinds.dense import DenseModel
from wordpiece_bert.serve.kinds.outputs import MakesVectors
from wordpiece_bert.serve.operations import Example, Operation, Page, Route, first_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from wordpiece_bert.serve.kinds.served_model import Answer
    from wordpiece_bert.serve.operations import Asked, Service

#: What Jina calls tasks, and others types of input: the texts' role, whose prompt is put before them; None for a task
#: of which only `prompt_name` says whether texts are queries.
_ROLES = {
    "retrieval": None,
    "retrieval.query": "query",
    "retrieval.passage": "document",
    **{
        f"{task}.{side}": role
        for task in ("code", "nl2code", "code2code", "code2nl", "code2completion", "qa")
        for side, role in (("query", "query"), ("passage", "document"))
    },
    "query": "query",
    "passage": "document",
    "document": "document",
    "text-matching": "text-matching",
    "classification": "classification",
    "separation": "clustering",
    "clustering": "clustering",
}
#: The fields that say whether vectors have the length 1.
_SCALING = ("normalized", "normalize", *(field.name for field in ACTIVATION))

_FIELDS = (
    Field("input", Texts(objects=True, ids=True), required=True, about="What to embed."),
    MODEL,
    Field(
        "encoding_format",
        Choice(*FORMS, bytes="take base64", bytes_only="take base64"),
        about="The form of vectors: numbers, base64 of little-endian float32, 8 bits for each number, or one.",
    ),
    Field("dimensions", Whole(1), about="How many numbers of each vector to keep."),
    PROMPT_NAME,
    TRUNCATE,
    Field("task", Choice(*_ROLES), about="Jina's: what the texts are, for the model's prompt."),
    Field("input_type", Choice(*_ROLES), about="What the texts are, for the model's prompt."),
    Field(
        "late_chunking",
        Flag(),
        about="Jina's: whether the texts are chunks of one text, whose vectors depend on all of it. A chunk without a "
        "token has a vector of zeros.",
    ),
    Field("normalized", Flag(), about="Jina's: whether vectors have the length 1."),
    Field("normalize", Flag(), about="vLLM's: whether vectors have the length 1."),
    Field("embedding_type", Choice(*FORMS), about="Jina's encoding_format."),
    Field("encoding_type", Choice(*FORMS), about="encoding_format, as LlamaIndex' client of Jina calls it."),
    Field("output_dimension", Whole(1), about="dimensions, as LiteLLM's client of Infinity calls it."),
    Field("modality", Choice("text", image=TEXTS_ONLY, audio=TEXTS_ONLY), about="Infinity's: what the input is."),
    *OF_VLLM,
    *OUTPUT_OF_VLLM,
    *ACTIVATION,
    *refused("ask /embed_all for the vectors of tokens", "return_multivector", harmless=(False,)),
    *refused("ask /tokenize for the tokens", "return_tokenized_input", harmless=(False,)),
)


async def embeddings(service: Service, fields: dict[str, Any]) -> Any:
    """``/v1/embeddings``: vectors of texts; the answer also has ``truncated``."""
    model = service.models.of_kind(MakesVectors, fields["model"])
    form = one_of(fields, "encoding_format", "embedding_type", "encoding_type") or "float"
    roles = {name: _ROLES[fields[name]] for name in ("task", "input_type") if fields[name] is not None}
    named = next((name for name in _SCALING if fields[name] is not None), "normalize")
    scales = model.check_normalized(named, one_of(fields, *_SCALING))
    embed = _chunked(model, fields["input"]) if fields["late_chunking"] else model.embed
    answer = await embed(
        fields["input"],
        options_of(service, fields, one_of(roles, *roles)),
        dimensions=one_of(fields, "dimensions", "output_dimension"),
    )
    vectors = normalize(answer.values) if scales else answer.values
    data = (
        {"object": "embedding", "index": index, "embedding": vector}
        for index, vector in enumerate(packed(vectors, form))
    )
    return {
        "object": "list",
        "data": data,
        "model": model.name,
        "usage": usage_of(answer),
        "truncated": truncated_rows(service, answer, model.name),
    }


def _chunked(model: MakesVectors, texts: list[str] | TokenRows) -> Callable[..., Awaitable[Answer]]:
    """Return what makes the vectors of chunks."""
    if not isinstance(model, DenseModel):
        message = f"late_chunking is not served by the model {model.name!r}, which makes vectors of other kinds, too"
        raise RequestError(400, message, param="late_chunking", code="not_served")
    if isinstance(texts, TokenRows):
        raise RequestError(400, "late_chunking takes texts, not token ids", param="late_chunking", code="token_ids")
    return model.embed_chunks


def _described(service: Service, model: Any) -> dict[str, Any]:
    described = model.described()
    return {
        "id": model.name,
        "object": "model",
        "created": service.started,
        "owned_by": "wordpiece-bert",
        "max_model_len": described["max_input_length"],
        **described,
    }


def _models(service: Service, _: Asked) -> str:
    """``/v1/models``: the list of models."""
    return json.dumps({"object": "list", "data": [_described(service, model) for model in service.models]})


def _model(service: Service, asked: Asked) -> str:
    """``/v1/models/NAME``: one of them."""
    return json.dumps(_described(service, service.models.find(asked.parameter)))


_VECTOR = {"oneOf": [list_of({"type": "number"}), {"type": "string", "format": "byte"}]}
_VECTORS = object_of(
    object={"const": "list"},
    model="string",
    usage="object",
    truncated=INDICES,
    data=list_of(object_of(object={"const": "embedding"}, index="integer", embedding=_VECTOR)),
)

EMBEDDINGS = Operation(
    OPENAI,
    "Vectors of texts, as OpenAI and Jina have it",
    _FIELDS,
    embeddings,
    _VECTORS,
    first_of(MakesVectors),
    Example(
        {"input": "A cat sat on the mat."},
        {
            "object": "list",
            "data": [{"object": "embedding", "index": 0, "embedding": [0.120813, -0.023536, -0.03669]}],
            "model": "minilm",
            "usage": {"prompt_tokens": 9, "total_tokens": 9},
            "truncated": [],
        },
    ),
)

ROUTES = (
    Route("/v1/embeddings", OPENAI, (EMBEDDINGS,)),
    Route("/v1/models", OPENAI, page=Page("The models of this server", _models)),
    Route("/v1/models/{model:path}", OPENAI, page=Page("A model of this server", _model)),
)
