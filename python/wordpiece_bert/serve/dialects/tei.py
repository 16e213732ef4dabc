"""text-embeddings-inference: vectors, rankings, labels and tokens, each on a path of its own."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from wordpiece_bert import _core
from wordpiece_bert.bert.functional import normalize
from wordpiece_bert.sentence.metrics import similarity as similarity_of
from wordpiece_bert.sentence.parts import prompt_of
from wordpiece_bert.serve.dialects.parts import (
    MODEL,
    PROMPT_NAME,
    SIDE,
    TRUNCATE,
    list_of,
    object_of,
    options_of,
    packed,
    ranked,
    truncated_rows,
)
from wordpiece_bert.serve.errors import TEI, RequestError
from wordpiece_bert.serve.fields import (
    Choice,
    Field,
    Flag,
    Ignored,
    Nested,
    Sequences,
    Strings,
    Text,
    Texts,
    TokenIds,
    Whole,
)
from wordpiece_bert.serve.kinds.outputs import Classifies, MakesSparse, MakesTokenVectors, MakesVectors, Prompted
from wordpiece_bert.serve.kinds.sequences import SequenceModel
from wordpiece_bert.serve.kinds.served_model import check_tokens, tokenized
from wordpiece_bert.serve.operations import Example, Operation, Page, Route, first_model, first_of, first_ranker

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from wordpiece_bert.serve.kinds.served_model import Answer, Served
    from wordpiece_bert.serve.operations import Asked, Service
    from wordpiece_bert.tokenizer.subword import AnyEncoding, AnyTokenizer

_INPUTS = Field("inputs", Texts(ids=True), required=True, about="The texts.")
_TEXTS = Field("inputs", Texts(), required=True, about="The texts.")
_OPTIONS = (MODEL, TRUNCATE, SIDE, PROMPT_NAME)
_NORMALIZE = Field("normalize", Flag(), default=True, about="Whether vectors have the length 1.")
#: Of Hugging Face's older clients; nothing here has to be waited for.
CLIENT_OPTIONS = Field("options", Ignored(), about="Changes nothing: Hugging Face's older clients send it.")


async def embed(service: Service, fields: dict[str, Any]) -> Any:
    """``/embed``: a list of vectors."""
    model = service.models.of_kind(MakesVectors, fields["model"])
    scales = model.check_normalized("normalize", fields["normalize"])
    answer = await model.embed(fields["inputs"], options_of(service, fields), dimensions=fields["dimensions"])
    truncated_rows(service, answer, model.name)
    return packed(normalize(answer.values) if scales else answer.values, fields["encoding_format"] or "float")


async def embed_all(service: Service, fields: dict[str, Any]) -> Any:
    """``/embed_all``: for each text the vectors of its tokens, special tokens included."""
    model = service.models.of_kind(MakesTokenVectors, fields["model"])
    answer = await model.embed_tokens(fields["inputs"], options_of(service, fields))
    truncated_rows(service, answer, model.name)
    return iter(answer.values)


async def embed_sparse(service: Service, fields: dict[str, Any]) -> Any:
    """``/embed_sparse``: for each text the indices and values of its vector."""
    model = service.models.of_kind(MakesSparse, fields["model"])
    answer = await model.embed_sparse(fields["inputs"], options_of(service, fields))
    truncated_rows(service, answer, model.name)
    return (
        [
            {"index": index, "value": value}
            for index, value in zip(row.indices.tolist(), row.values.tolist(), strict=True)
        ]
        for row in answer.values
    )


async def rerank(service: Service, fields: dict[str, Any]) -> Any:
    """``/rerank``: the scores of texts, the highest first."""
    model = service.models.ranker(fields["model"])
    texts, options = fields["texts"], options_of(service, fields)
    if isinstance(model, SequenceModel):
        answer = await model.rank(fields["query"], texts, options, raw_scores=bool(fields["raw_scores"]))
    else:
        answer = await model.rank(fields["query"], texts, options)
    truncated = set(truncated_rows(service, answer, model.name))
    return (
        {"index": index, "score": score}
        | ({"text": texts[index]} if fields["return_text"] else {})
        | ({"truncated": True} if index in truncated else {})
        for index, score in ranked(answer.values)[: fields["top_n"]]
    )


async def predict(service: Service, fields: dict[str, Any]) -> Any:
    """``/predict``: the labels of texts and pairs, the highest score first."""
    model = service.models.of_kind(Classifies, fields["model"])
    single, texts = fields["inputs"]
    given = fields["parameters"] or {}
    function = "none" if fields["raw_scores"] else given.get("function_to_apply")
    answer = await model.classify(texts, options_of(service, fields), function)
    truncated_rows(service, answer, model.name)
    rows = (_labelled(model, scores, given.get("top_k")) for scores in answer.values)
    # Hugging Face's clients, which send parameters, read a list for each text even if it is one.
    return next(rows) if single and fields["parameters"] is None else rows


def _labelled(model: Classifies, scores: Any, top_k: int | None = None) -> list[dict[str, Any]]:
    """Return the labels of a text with their scores, the highest first."""
    return [{"score": score, "label": model.labels[index]} for index, score in ranked(scores)[:top_k]]


async def similarity(service: Service, fields: dict[str, Any]) -> Any:
    """``/similarity``: the cosine of a sentence with each of others."""
    model = service.models.of_kind(MakesVectors, fields["model"])
    given = fields["inputs"]
    options = options_of(service, fields["parameters"] or {})
    answer: Answer = await model.embed([given["source_sentence"], *given["sentences"]], options)
    truncated_rows(service, answer, model.name)
    scores = await asyncio.to_thread(similarity_of, answer.values[:1], answer.values[1:])
    return scores[0].tolist()


async def tokenize(service: Service, fields: dict[str, Any]) -> Any:
    """``/tokenize``: the tokens of texts, without truncation."""
    model = service.models.find(fields["model"])
    texts, special = fields["inputs"], fields["add_special_tokens"]
    model.check_characters(texts)
    prefix = ""
    if fields["prompt_name"] is not None:
        if not isinstance(model, Prompted):
            raise RequestError(400, f"the model {model.name!r} has no prompts", param="prompt_name")
        prefix = prompt_of(model.encoder, name=fields["prompt_name"])
    most = service.settings.max_tokens
    rows = await asyncio.to_thread(
        _encodings, model.tokenizer, [prefix + text for text in texts], most, special=special
    )
    return (_tokens(row) for row in rows)


def _encodings(tokenizer: AnyTokenizer, texts: list[str], most: int, *, special: bool) -> Sequence[AnyEncoding]:
    """Tokenize texts, unless they have too many tokens in all."""
    added = 0 if special else tokenizer.num_special_tokens_to_add()
    # Ids alone take little memory, and of a longer text than the limit no more are made.
    rows = tokenizer.encode_batch(texts, truncation=True, max_length=most + added + 1, padding=False, threads=1)
    check_tokens(len(rows.ids) - added * len(rows), most)
    return tokenizer.encodings(texts, add_special_tokens=special, truncation=False, padding=False, threads=1)


def _tokens(encoding: AnyEncoding) -> Iterator[dict[str, Any]]:
    """Yield the tokens of a text."""
    columns = (encoding.ids, encoding.tokens, encoding.special_tokens_mask, encoding.offsets)
    for id_, token, mask, offsets in zip(*columns, strict=True):
        place = {} if mask else {"start": offsets[0], "stop": offsets[1]}
        yield {"id": id_, "text": token, "special": bool(mask), **place}


async def decode(service: Service, fields: dict[str, Any]) -> Any:
    """``/decode``: the texts of token ids."""
    model = service.models.find(fields["model"])
    rows, skip = fields["ids"], fields["skip_special_tokens"]
    check_tokens(sum(map(len, rows)), service.settings.max_tokens)
    # Each id is as much work as a character of a text.
    return await tokenized(lambda: _decoded(model.tokenizer, rows, skip=skip), sum(map(len, rows)))


def _decoded(tokenizer: AnyTokenizer, rows: list[list[int]], *, skip: bool) -> list[str]:
    for index, row in enumerate(rows):
        if None in tokenizer.convert_ids_to_tokens(row):
            raise RequestError(400, f"ids[{index}] has an id that is no token of the model", param="ids")
    return [tokenizer.decode(row, skip_special_tokens=skip) for row in rows]


def _info(service: Service, _: Asked) -> str:
    """``/info``: the first model in TEI's form, all models, and the limits."""
    first = next(iter(service.models))
    settings = service.settings
    content = {
        "model_id": first.name,
        "model_sha": None,
        "model_dtype": first.engine.dtype,
        "model_type": _model_type(first),
        "max_concurrent_requests": settings.queue_requests,
        "max_input_length": first.described()["max_input_length"],
        "max_batch_tokens": settings.batch_tokens,
        "max_batch_requests": None,
        "max_client_batch_size": settings.max_items,
        "auto_truncate": settings.truncation == "report",
        "tokenization_workers": 1,
        "version": _core.__version__,
        "sha": None,
        "docker_label": None,
        "max_request_tokens": settings.max_tokens,
        "max_request_bytes": settings.max_bytes,
        "models": {model.name: model.described() for model in service.models},
    }
    return json.dumps(content)


def _model_type(model: Served) -> dict[str, Any]:
    """Return TEI's type of a model; those that TEI does not have are named by their kind."""
    if isinstance(model, Classifies):
        of_id = {str(index): label for index, label in enumerate(model.labels)}
        labels = {"id2label": of_id, "label2id": {label: index for index, label in enumerate(model.labels)}}
        return {model.kind: labels}
    if isinstance(model, MakesVectors):
        return {"embedding": {"pooling": model.pooling}}
    return {"embedding": {"pooling": "splade"}} if isinstance(model, MakesSparse) else {model.kind: {}}


def _health(service: Service, _: Asked) -> str:
    return json.dumps({"status": "ok", "models": service.models.names})


def _ready(service: Service, _: Asked) -> str:
    """``/ready``: whether requests should be sent here, which `/health` does not say."""
    if service.draining:
        raise RequestError(503, "the server is shutting down", code="shutting_down", retry_after=1)
    return json.dumps({"status": "ready", "models": service.models.names})


_SCORED = list_of(object_of(index="integer", score="number", text="string", truncated="boolean"))
_VECTORS = list_of(list_of({"type": "number"}))
_LABELS = list_of(object_of(label="string", score="number"))
_TOKEN = object_of(id="integer", text="string", special="boolean", start="integer", stop="integer")

RERANK = Operation(
    TEI,
    "Scores texts, as text-embeddings-inference has it",
    (
        Field("query", Text(), required=True, about="What the texts are compared with."),
        Field("texts", Texts(), required=True, about="What to rank."),
        MODEL,
        Field("raw_scores", Flag(), about="Whether scores are those before the activation."),
        Field("return_text", Flag(), about="Whether to return the texts."),
        Field("top_n", Whole(1), about="How many texts to return; by default all."),
        TRUNCATE,
        SIDE,
    ),
    rerank,
    _SCORED,
    first_ranker,
    Example(
        {"query": "how to bake bread", "texts": ["to repair a bicycle", "bread dough in the oven"]},
        [{"index": 1, "score": 0.730996}, {"index": 0, "score": 0.270862}],
    ),
)
_PARAMETERS = Nested(
    (
        Field("function_to_apply", Choice("softmax", "sigmoid", "none"), about="What makes scores of logits."),
        Field("top_k", Whole(1), about="How many labels to return; by default all."),
    )
)
_PREDICT_FIELDS = (
    Field("inputs", Sequences(), required=True, about="A text, a pair of texts, or several of either."),
    MODEL,
    TRUNCATE,
    SIDE,
    Field("raw_scores", Flag(), about="Whether scores are those before the activation."),
    Field("parameters", _PARAMETERS, about="Hugging Face's; the answer then is a list for each text."),
    CLIENT_OPTIONS,
)
_COMPARED = Nested(
    (
        Field("source_sentence", Text(), required=True, about="The text that is compared."),
        Field("sentences", Strings(), required=True, about="The texts with which it is compared."),
    ),
)
_SIMILARITY_FIELDS = (
    Field("inputs", _COMPARED, required=True, about="The texts."),
    Field("parameters", Nested((TRUNCATE, SIDE, PROMPT_NAME)), about="How the texts are read."),
    MODEL,
    CLIENT_OPTIONS,
)
_TOKENIZE_FIELDS = (
    _TEXTS,
    MODEL,
    Field("add_special_tokens", Flag(), default=True, about="Whether to add special tokens such as [CLS]."),
    PROMPT_NAME,
)
_DECODE_FIELDS = (
    Field("ids", TokenIds(), required=True, about="The ids of a text, or of several."),
    MODEL,
    Field("skip_special_tokens", Flag(), default=True, about="Whether to leave special tokens out."),
)
_EMBED_FIELDS = (
    _INPUTS,
    *_OPTIONS,
    _NORMALIZE,
    Field("dimensions", Whole(1), about="How many numbers of each vector to keep."),
    Field("encoding_format", Choice("float", "base64"), about="Of Hugging Face's client; base64 is that of OpenAI."),
    CLIENT_OPTIONS,
)
_EXAMPLE = {"inputs": "A cat sat on the mat."}
EMBED = Operation(
    TEI,
    "Vectors of texts",
    _EMBED_FIELDS,
    embed,
    _VECTORS,
    first_of(MakesVectors),
    Example(_EXAMPLE, [[0.120813, -0.023536, -0.03669]]),
)
EMBED_ALL = Operation(
    TEI,
    "Vectors of the tokens of texts",
    (_INPUTS, *_OPTIONS),
    embed_all,
    list_of(_VECTORS),
    first_of(MakesTokenVectors),
    Example(
        {"inputs": "Rain."},
        [
            [
                [-0.116241, -0.08083, 0.600784],
                [-0.548344, 0.091082, 1.034899],
                [0.327554, 0.309905, -0.138867],
                [0.158752, 0.259345, -0.273363],
            ]
        ],
    ),
)
EMBED_SPARSE = Operation(
    TEI,
    "Sparse vectors of texts",
    (_TEXTS, *_OPTIONS),
    embed_sparse,
    list_of(list_of(object_of(index="integer", value="number"))),
    first_of(MakesSparse),
    Example(
        {"inputs": "bread"},
        [
            [
                {"index": 48, "value": 1.33123},
                {"index": 49, "value": 0.805775},
                {"index": 50, "value": 0.805775},
                {"index": 51, "value": 0.805775},
                {"index": 52, "value": 0.805775},
                {"index": 53, "value": 0.805775},
            ]
        ],
    ),
)
PREDICT = Operation(
    TEI,
    "Labels of texts and pairs",
    _PREDICT_FIELDS,
    predict,
    _LABELS,
    first_of(Classifies),
    Example(
        {"inputs": "A wonderful film!"},
        [{"score": 0.999583, "label": "positive"}, {"score": 0.000417, "label": "negative"}],
    ),
)
SIMILARITY = Operation(
    TEI,
    "The cosine of a text with others",
    _SIMILARITY_FIELDS,
    similarity,
    list_of({"type": "number"}),
    first_of(MakesVectors),
    Example(
        {
            "inputs": {
                "source_sentence": "A cat sat on the mat.",
                "sentences": ["The kitten slept on a rug.", "Interest rates rose."],
            }
        },
        [0.602553, 0.032915],
    ),
)
_TOKENIZE = Operation(
    TEI,
    "Tokens of texts, with characters",
    _TOKENIZE_FIELDS,
    tokenize,
    list_of(list_of(_TOKEN)),
    first_model,
    Example(
        {"inputs": "bake bread"},
        [
            [
                {"id": 2, "text": "[CLS]", "special": True},
                {"id": 49, "text": "bake", "special": False, "start": 0, "stop": 4},
                {"id": 48, "text": "bread", "special": False, "start": 5, "stop": 10},
                {"id": 3, "text": "[SEP]", "special": True},
            ]
        ],
    ),
)
_DECODE = Operation(
    TEI,
    "Texts of token ids",
    _DECODE_FIELDS,
    decode,
    list_of({"type": "string"}),
    first_model,
    Example({"ids": [5, 6]}, ["wonderful great"]),
)
#: Whether the server runs.
HEALTH = Page("Whether the server runs; needs no key", _health, needs_key=False)

ROUTES = (
    Route("/embed", TEI, (EMBED,)),
    Route("/embed_all", TEI, (EMBED_ALL,)),
    Route("/embed_sparse", TEI, (EMBED_SPARSE,)),
    Route("/predict", TEI, (PREDICT,)),
    Route("/similarity", TEI, (SIMILARITY,)),
    Route("/tokenize", TEI, (_TOKENIZE,)),
    Route("/decode", TEI, (_DECODE,)),
    Route("/info", TEI, page=Page("The models and the limits", _info)),
    Route("/health", TEI, page=HEALTH),
    Route(
        "/ready",
        TEI,
        page=Page("Whether requests should be sent here: not while it ends; needs no key", _ready, needs_key=False),
    ),
    Route("/ping", TEI, page=HEALTH),
)
