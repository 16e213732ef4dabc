"""Lone surrogates, which are not text: the server refuses them in every place of every request."""

from __future__ import annotations

import asyncio
import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.hostile_bodies import REQUESTS, filled, path_of
from serve_client import ask, assert_refused
from serve_fixtures import folders
from wordpiece_bert import CrossEncoder, SentenceEncoder
from wordpiece_bert.errors import InputError
from wordpiece_bert.serve import create_app
from wordpiece_bert.serve.errors import RequestError
from wordpiece_bert.serve.requests import parse_object

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture(scope="module")
def app(folders: Path) -> Any:
    models = {"sentences": SentenceEncoder(folders / "sentences"), "ranker": CrossEncoder(folders / "ranker")}
    return create_app(models)


LONE = "\ud800"
FRAGMENTS = [
    "\\ud83e",
    "\\udd17",
    "\\uD800",
    "\\uDfff",
    "\\\\",
    "\\\\ud800",
    "\\u0041",
    '\\"',
    "\\n",
    "a",
    "🤗",
    "ud800",
]


def is_text(value: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in value)


@settings(deadline=None)
@given(st.lists(st.sampled_from(FRAGMENTS), max_size=12).map("".join))
def test_lone_surrogates_are_found(content: str) -> None:
    text = f'{{"a": "{content}"}}'
    value = json.loads(text)["a"]
    if not is_text(value):
        with pytest.raises(RequestError, match=r"lone surrogate \(at character (\d+)\)") as caught:
            parse_object(text.encode(), 10)
        at = int(re.search(r"character (\d+)", caught.value.message)[1])  # type: ignore[index]
        assert re.match(r"\\u[dD][89a-fA-F]", text[at:])
        assert is_text(json.loads(text[:at] + '"}')["a"])
    else:
        assert parse_object(text.encode(), 10) == {"a": value}


def places(value: Any) -> list[tuple[Any, ...]]:
    """Return the way to every string in a value; the name of a field ends with None."""
    if isinstance(value, str):
        return [()]
    if isinstance(value, dict):
        return [(name, None) for name in value] + [(n, *rest) for n, v in value.items() for rest in places(v)]
    return [(i, *rest) for i, v in enumerate(value) for rest in places(v)] if isinstance(value, list) else []


def changed(value: Any, way: tuple[Any, ...], change: Callable[[str], str]) -> Any:
    """Return a value in which one string is another."""
    if not way:
        return change(value)
    if way[1:] == (None,):
        return {change(name) if name == way[0] else name: item for name, item in value.items()}
    if isinstance(value, dict):
        return {**value, way[0]: changed(value[way[0]], way[1:], change)}
    return [changed(item, way[1:], change) if i == way[0] else item for i, item in enumerate(value)]


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_surrogate_is_refused_in_every_place_of_every_request(app: Any, data: st.DataObject) -> None:
    request = data.draw(st.sampled_from(list(REQUESTS)))
    path = path_of(request)
    nested = {"deep": [{"er": ["text"]}], "text": "a"}
    fields: dict[str, Any] = {**filled(request, ["bread"]), "encoding_format": "float", "user": "me", "other": nested}
    fields["documents" if "rank" in path else "other"] = ["a", nested]
    way = data.draw(st.sampled_from(places(fields)))
    at = data.draw(st.integers(0, 3))
    body = changed(fields, way, lambda text: text[:at] + LONE + text[at:])
    escaped = json.dumps(body).encode()
    bare = json.dumps(body, ensure_ascii=False).encode("utf-8", "surrogatepass")
    for sent in (escaped, bare):
        answer = asyncio.run(ask(app, "POST", path, sent))
        assert_refused(answer.status, answer.media_type, json.loads(answer.body))
        assert answer.status == 400


def test_models_have_names_that_can_be_shown(folders: Path) -> None:
    with pytest.raises(InputError, match="give the model another name"):
        create_app({"a\udc80": SentenceEncoder(folders / "sentences")})
