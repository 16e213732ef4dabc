"""Hugging Face's inference API: one path for each model, whose answer depends on what the model does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wordpiece_bert.serve.dialects.parts import MODEL, TRUNCATE, options_of, truncated_rows
from wordpiece_bert.serve.dialects.tei import (
    CLIENT_OPTIONS,
    EMBED,
    EMBED_ALL,
    EMBED_SPARSE,
    HEALTH,
    PREDICT,
    RERANK,
    SIMILARITY,
)
from wordpiece_bert.serve.errors import TEI, RequestError
from wordpiece_bert.serve.fields import Choice, Field, Nested, Refused, Strings, TextOrTexts, Texts, Whole
from wordpiece_bert.serve.kinds.outputs import Classifies, MakesSparse, MakesVectors
from wordpiece_bert.serve.kinds.tokens import MaskModel, TokenModel
from wordpiece_bert.serve.operations import Example, Operation, Route, first_of

if TYPE_CHECKING:
    from wordpiece_bert.serve.operations import Service

_FILL_FIELDS = (
    Field("inputs", Texts(), required=True, about="Texts with [MASK], or the mask of the model's tokenizer."),
    Field(
        "parameters",
        Nested(
            (
                Field("top_k", Whole(1), default=5, about="How many tokens to return for a mask."),
                Field("targets", Strings(), about="The only tokens to choose from."),
            )
        ),
        about="What is returned.",
    ),
    MODEL,
    TRUNCATE,
    CLIENT_OPTIONS,
)
_STRATEGIES = ("simple", "none", "first", "average", "max")
_ENTITY_FIELDS = (
    Field("inputs", TextOrTexts(), required=True, about="The texts."),
    Field(
        "parameters",
        Nested(
            (
                Field(
                    "aggregation_strategy", Choice(*_STRATEGIES), default="simple", about="How tokens become entities."
                ),
                Field("ignore_labels", Strings(empty=True), default=("O",), about="The labels that are left out."),
                Field("stride", Refused("a text is one row, truncated to the model's length")),
            )
        ),
        about="What is returned.",
    ),
    MODEL,
    TRUNCATE,
    CLIENT_OPTIONS,
)


async def fill(service: Service, fields: dict[str, Any]) -> Any:
    """Tokens for the masks of texts."""
    model = service.models.of_kind(MaskModel, fields["model"])
    given = fields["parameters"] or {"top_k": 5, "targets": None}
    answer = await model.fill(
        fields["inputs"], options_of(service, fields), top_k=given["top_k"], targets=given["targets"]
    )
    truncated_rows(service, answer, model.name)
    return answer.values[0] if len(answer.values) == 1 else answer.values


async def entities(service: Service, fields: dict[str, Any]) -> Any:
    """Entities of texts."""
    model = service.models.of_kind(TokenModel, fields["model"])
    single, texts = fields["inputs"]
    given = fields["parameters"] or {"aggregation_strategy": "simple", "ignore_labels": ("O",)}
    answer = await model.entities(
        texts,
        options_of(service, fields),
        strategy=given["aggregation_strategy"],
        ignored=given["ignore_labels"],
    )
    truncated_rows(service, answer, model.name)
    return answer.values[0] if single else answer.values


def _chosen(service: Service, values: dict[str, Any]) -> Operation:
    """Return what the model of a body does with it."""
    name = values.get("model")
    if name is not None and not isinstance(name, str):
        raise RequestError(400, "model must be a string", param="model")
    model = service.models.find(name)
    if isinstance(model, MakesVectors):
        return SIMILARITY if isinstance(values.get("inputs"), dict) else EMBED
    if isinstance(model, MakesSparse):
        return EMBED_SPARSE
    if isinstance(model, TokenModel):
        return _ENTITIES
    if isinstance(model, MaskModel):
        return _FILL
    if "query" in values:
        return RERANK
    return PREDICT if isinstance(model, Classifies) else EMBED_ALL


_FILL = Operation(
    TEI,
    "Tokens for the masks of texts",
    _FILL_FIELDS,
    fill,
    {"type": "array"},
    first_of(MaskModel),
    Example(
        {"inputs": "The capital of France is [MASK].", "parameters": {"top_k": 1}},
        [{"score": 0.483484, "token": 20, "token_str": "paris", "sequence": "the capital of france is paris."}],
    ),
)
_ENTITIES = Operation(
    TEI,
    "Entities of texts",
    _ENTITY_FIELDS,
    entities,
    {"type": "array"},
    first_of(TokenModel),
    Example(
        {"inputs": "Ada Lovelace lived in London."},
        [
            {"entity_group": "PER", "score": 0.991958, "word": "ada lovelace", "start": 0, "end": 12},
            {"entity_group": "LOC", "score": 0.990881, "word": "london", "start": 22, "end": 28},
        ],
    ),
)
_OPERATIONS = (EMBED, SIMILARITY, EMBED_ALL, EMBED_SPARSE, RERANK, PREDICT, _ENTITIES, _FILL)

ROUTES = (
    Route("/", TEI, _OPERATIONS, page=HEALTH, chooses=_chosen),
    Route("/models/{model:path}", TEI, _OPERATIONS, chooses=_chosen),
)
