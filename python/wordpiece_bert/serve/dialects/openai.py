"""OpenAI's embeddings and models, with the fields that Jina and vLLM add to them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from wordpiece_bert.bert.functional import normalize
from wordpiece_bert.serve.dialects.parts import (
    CALIBRATED,
    INDICES,
    MODEL,
    PROMPT_NAME,
    TRUNCATE,
    TRUNCATE_TOKENS,
    list_of,
    object_of,
    options_of,
    packed,
    refused,
    truncated_rows,
    usage_of,
)
from wordpiece_bert.serve.errors import OPENAI
from wordpiece_bert.serve.fields import Choice, Field, Flag, Ignored, Texts, Whole
from wordpiece_bert.serve.kinds.outputs import MakesVectors
from wordpiece_bert.serve.operations import Operation, Page, Route

if TYPE_CHECKING:
    from wordpiece_bert.serve.operations import Service

__all__ = ["ROUTES"]

#: What Jina calls tasks, and others types of input: the texts' role, whose prompt is put before them.
_ROLES = {
    "retrieval.query": "query",
    "retrieval.passage": "document",
    "query": "query",
    "passage": "document",
    "document": "document",
    "text-matching": "text-matching",
    "classification": "classification",
    "separation": "clustering",
    "clustering": "clustering",
}
_FORMS = ("float", "base64", "binary", "ubinary")

_FIELDS = (
    Field("input", Texts(objects=True, ids=True), required=True),
    MODEL,
    Field("encoding_format", Choice(*_FORMS, bytes="take base64", bytes_only="take base64")),
    Field("dimensions", Whole(1), about="How many numbers of each vector to keep."),
    Field("user", Ignored()),
    PROMPT_NAME,
    TRUNCATE,
    Field("task", Choice(*_ROLES), about="Jina's: what the texts are, for the model's prompt."),
    Field("input_type", Choice(*_ROLES), about="What the texts are, for the model's prompt."),
    Field("normalized", Flag(), about="Jina's: whether vectors have the length 1."),
    Field("normalize", Flag(), about="vLLM's: whether vectors have the length 1."),
    Field("embedding_type", Choice(*_FORMS, int8=CALIBRATED, uint8=CALIBRATED), about="Jina's encoding_format."),
    Field("encoding_type", Choice(*_FORMS), about="encoding_format, as LlamaIndex' client of Jina calls it."),
    TRUNCATE_TOKENS,
    Field("output_dimension", Whole(1), about="dimensions, as LiteLLM's client of Infinity calls it."),
    Field("modality", Choice("text", image="the models take texts", audio="the models take texts")),
    Field("request_id", Ignored()),
    Field("endianness", Choice("little", "native", big="numbers are little-endian")),
    Field("embed_dtype", Choice("float32", float16="numbers are float32", bfloat16="numbers are float32")),
    *refused("texts that were cut apart are not embedded in one row", "late_chunking", harmless=(False,)),
    *refused("requests are answered in the order in which they come", "priority", harmless=(0,)),
    *refused("special tokens are always added", "add_special_tokens", harmless=(True,)),
    *refused("vectors are those of texts, not of chats: send input", "messages", "chat_template"),
)


async def embeddings(service: Service, fields: dict[str, Any]) -> Any:
    """``/v1/embeddings``: vectors of texts; the answer also has ``truncated``."""
    model = service.models.of_kind(MakesVectors, fields["model"])
    form = fields["encoding_format"] or fields["embedding_type"] or fields["encoding_type"] or "float"
    purpose = fields["task"] or fields["input_type"]
    scales = [model.check_normalized(name, fields[name]) for name in ("normalized", "normalize")]
    answer = await model.embed(
        fields["input"],
        options_of(service, fields, _ROLES.get(purpose)),
        dimensions=fields["dimensions"] or fields["output_dimension"],
    )
    vectors = normalize(answer.values) if any(scales) else answer.values
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


def _described(service: Service, model: Any) -> dict[str, Any]:
    return {
        "id": model.name,
        "object": "model",
        "created": service.started,
        "owned_by": "wordpiece-bert",
        "max_model_len": model.longest,
        **model.described(),
    }


def _models(service: Service, _: str) -> str:
    """``/v1/models``: the list of models."""
    return json.dumps({"object": "list", "data": [_described(service, model) for model in service.models]})


def _model(service: Service, name: str) -> str:
    """``/v1/models/NAME``: one of them."""
    return json.dumps(_described(service, service.models.find(name)))


_VECTOR = {"oneOf": [list_of({"type": "number"}), {"type": "string", "format": "byte"}]}
_VECTORS = object_of(
    object={"const": "list"},
    model="string",
    usage="object",
    truncated=INDICES,
    data=list_of(object_of(object={"const": "embedding"}, index="integer", embedding=_VECTOR)),
)

ROUTES = (
    Route(
        "/v1/embeddings",
        OPENAI,
        (Operation(OPENAI, "Vectors of texts, as OpenAI and Jina have it", _FIELDS, embeddings, _VECTORS),),
    ),
    Route("/v1/models", OPENAI, page=Page("The models of this server", _models)),
    Route("/v1/models/{model:path}", OPENAI, page=Page("A model of this server", _model)),
)
