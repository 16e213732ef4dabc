"""What the dialects share: fields that several have, and pieces of answers."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from wordpiece_bert.bert.functional import normalize
from wordpiece_bert.sentence.quantization import quantize_embeddings
from wordpiece_bert.serve.errors import RequestError
from wordpiece_bert.serve.fields import (
    TEXTS_ONLY,
    Choice,
    Field,
    Flag,
    Ignored,
    Refused,
    Strings,
    Text,
    Truncate,
    Whole,
    wrong,
)
from wordpiece_bert.serve.kinds.served_model import Options

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from wordpiece_bert.serve.kinds.served_model import Answer
    from wordpiece_bert.serve.operations import Service

MODEL = Field("model", Text(), about="The name of a model; by default the first of the kind that is needed.")
TRUNCATE = Field(
    "truncate",
    Truncate(),
    about="Whether texts that are too long are truncated; else the request is refused. By default the server's "
    "setting.",
)
#: Sides in the words of TEI, vLLM and Hugging Face's `truncate`: the end of a text is on the right.
_SIDES: dict[Any, Literal["left", "right"]] = {
    "Right": "right",
    "right": "right",
    "END": "right",
    "Left": "left",
    "left": "left",
    "START": "left",
}
_SIDE = "Where texts are truncated; another side than that of the model's tokenizer is refused."
#: The side of truncation has two spellings.
SIDE = Field(
    "truncation_direction",
    Choice("Right", "right", "Left", "left"),
    about=_SIDE,
)
PROMPT_NAME = Field("prompt_name", Text(), about="The name of the model's prompt to put before each text.")
RANKED_FIELDS = Field(
    "rank_fields",
    Strings(),
    about="The fields of documents that count, text by default; several are one text, in the order given.",
)
#: The forms of vectors, for `packed`.
FORMS = ("float", "base64", "int8", "uint8", "binary", "ubinary")
# The numbers of a vector of length 1 are about 1/√d; 8 bits reach up to so many times that. MiniLM's are at
# most 5 times as large.
_REACH = 8.0
#: Why the fields of chats are not served.
_NO_CHATS = "the models have no chats: send texts"
#: The schema of the indices of truncated texts.
INDICES = {"type": "array", "items": {"type": "integer"}, "description": "The indices of texts that were truncated."}


def list_of(item: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a list."""
    return {"type": "array", "items": item}


def object_of(**properties: Any) -> dict[str, Any]:
    """Return the schema of an object with properties by name, each a schema or the name of a type."""
    found = {name: {"type": kind} if isinstance(kind, str) else kind for name, kind in properties.items()}
    return {"type": "object", "properties": found}


def options_of(service: Service, fields: dict[str, Any], role: str | None = None) -> Options:
    """Return how the texts of a request are read: the fields of these names that its dialect has."""
    truncate = fields.get("truncate")
    names = ("truncation_direction", "truncation_side", "truncate")
    sides = {name: side for name in names if (side := _SIDES.get(fields.get(name))) is not None}
    wanted = one_of(sides, *sides)
    if isinstance(truncate, str):
        truncate = truncate != "NONE"
    max_length = fields.get("truncate_prompt_tokens")
    if max_length == 0:
        raise RequestError(400, "truncate_prompt_tokens must be -1, or 1 or more", param="truncate_prompt_tokens")
    return Options(
        truncate=service.settings.truncation == "report" if truncate is None else truncate,
        prompt_name=fields.get("prompt_name"),
        role=role,
        max_length=None if max_length is None or max_length < 0 else max_length,
        side=None if wanted is None else (next(iter(sides)), wanted),
    )


def one_of(fields: dict[str, Any], *names: str) -> Any:
    """Return what a request says by one of several names, None for nothing; refuse different values."""
    given = {name: fields[name] for name in names if fields.get(name) is not None}
    if any(value != next(iter(given.values())) for value in given.values()):
        raise RequestError(400, f"{' and '.join(given)} differ: send one of them", param=next(iter(given)))
    return next(iter(given.values()), None)


def truncated_rows(service: Service, answer: Answer, model: str) -> list[int]:
    """Return the indices of truncated texts, and count them."""
    indices: list[int] = answer.truncated.nonzero()[0].tolist()
    if indices:
        service.metrics.truncated.add(len(indices), model=model)
    return indices


def usage_of(answer: Answer) -> dict[str, int]:
    """Return the tokens of an answer, as OpenAI counts them."""
    return {"prompt_tokens": answer.tokens, "total_tokens": answer.tokens}


def ranked(scores: npt.NDArray[Any]) -> list[tuple[int, float]]:
    """Return indices and scores, the highest score first."""
    return [(index, float(scores[index])) for index in np.argsort(-scores, kind="stable").tolist()]


def packed(vectors: npt.NDArray[Any], form: str) -> Iterator[Any]:
    """Return each vector in a form, for `json_answers.encoded`.

    Parameters
    ----------
    vectors
        Vectors [n, d].
    form
        ``"float"``; ``"base64"`` of little-endian float32; 8 bits for each number, ``"int8"`` or ``"uint8"``; or a bit,
        ``"binary"`` or ``"ubinary"``.
    """
    if form == "base64":
        return (base64.b64encode(np.ascontiguousarray(vector, "<f4").tobytes()).decode() for vector in vectors)
    if form in ("int8", "uint8"):
        vectors = _in_8_bits(vectors, 0 if form == "int8" else 128)
    elif form != "float":
        vectors = quantize_embeddings(vectors, form)
    return iter(vectors)


def _in_8_bits(vectors: npt.NDArray[Any], zero: int) -> npt.NDArray[np.int16]:
    """Return whole numbers of 8 bits, [n, d], in proportion to the numbers of vectors of length 1; `zero` stands for 0.

    Their step depends on d alone, so that vectors of different requests can be compared; ranges of each dimension, as
    `quantize_embeddings` takes them, would also change the angles between vectors.
    """
    step = min(_REACH / np.sqrt(vectors.shape[1]), 1.0) / 127
    steps: npt.NDArray[np.int16] = np.clip(np.rint(normalize(vectors) / step), -127, 127).astype(np.int16)
    return steps + np.int16(zero)


def texts_of(documents: Sequence[str | dict[str, Any]], fields: Sequence[str] | None) -> list[str]:
    """Return the texts of documents to rank: strings, or fields of objects, ``text`` unless a request names others.

    Of several fields, those that a document has are one text, in their order, with spaces between them.
    """
    places = {name: place for place, name in enumerate(fields or ["text"])}
    texts = []
    for index, document in enumerate(documents):
        if isinstance(document, str):
            texts.append(document)
            continue
        names = sorted(document.keys() & places.keys(), key=places.__getitem__)
        values = {name: document[name] for name in names if document[name] is not None}
        if not values:
            shown = " or ".join(f"{name!r:.50}" for name in list(places)[:3])
            raise RequestError(400, f"documents[{index}] has no {shown} that is a string", param="documents")
        for name, value in values.items():
            if not isinstance(value, str):
                raise wrong(f"documents[{index}].{name:.50}", "a string", value)
        texts.append(" ".join(values.values()))
    return texts


def refused(reason: str, *names: str, harmless: tuple[object, ...] = ()) -> tuple[Field, ...]:
    """Return fields that are known and refused for one reason."""
    return tuple(Field(name, Refused(reason, *harmless)) for name in names)


def is_activated(fields: dict[str, Any]) -> bool:
    """Return whether a body asks for scores after the activation: unless a field of `ACTIVATION` is false."""
    return activation_of(fields) is not False


def activation_of(fields: dict[str, Any]) -> bool | None:
    """Return what a body says by the fields of `ACTIVATION`; None for nothing."""
    said: bool | None = one_of(fields, *(field.name for field in ACTIVATION))
    return said


#: Whether scores are those after the activation; the names of older versions of vLLM, too.
ACTIVATION = tuple(
    Field(name, Flag(), about="vLLM's: whether scores are those after the activation, or vectors of length 1.")
    for name in ("use_activation", "activation", "softmax")
)
#: vLLM's fields of every request for a model that does not generate texts.
OF_VLLM = (
    Field("user", Ignored(), about="Changes nothing: the name of a user of yours."),
    Field("truncate_prompt_tokens", Whole(-1), about="The longest row in tokens; -1 for the longest of the model."),
    Field(
        "truncation_side",
        Choice("right", "left"),
        about=_SIDE,
    ),
    Field("padding", Choice("do_not_pad", "max_length"), about="Changes nothing: no token sees padding."),
    Field("request_id", Ignored(), about="Changes nothing: the id of a request is in the header X-Request-ID."),
    Field("cache_salt", Text(), about="Changes nothing: no request gets what another has left in a cache."),
    *refused("requests are answered in the order in which they come", "priority", harmless=(0,)),
    *refused("special tokens are always added", "add_special_tokens", harmless=(True,)),
    *refused(TEXTS_ONLY, "mm_processor_kwargs", "media_io_kwargs", harmless=({},)),
    *refused(_NO_CHATS, "messages", "chat_template"),
    *refused(_NO_CHATS, "chat_template_kwargs", harmless=({},)),
    *refused(_NO_CHATS, "add_generation_prompt", "continue_final_message", harmless=(False,)),
)
#: vLLM's fields about the form of vectors.
OUTPUT_OF_VLLM = (
    Field(
        "embed_dtype",
        Choice("float32", float16="numbers are float32", bfloat16="numbers are float32"),
        about="The type of the numbers.",
    ),
    Field(
        "endianness",
        Choice("little", "native", big="numbers are little-endian"),
        about="The order of the bytes of a number in base64.",
    ),
)
