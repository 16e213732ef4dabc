"""The description for people: its commands are run against a server, and the answers compared with those it shows."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from serve_client import Client, ask
from serve_fixtures import KINDS, TEXTS, _closing, client, encoder, folders, server
from wordpiece_bert.serve import ServerSettings, create_app
from wordpiece_bert.serve.description_page import page as page_of
from wordpiece_bert.serve.fields import Nested
from wordpiece_bert.serve.openapi import schema
from wordpiece_bert.serve.routes import DESCRIBED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from server_process import Server
    from wordpiece_bert import SentenceEncoder
    from wordpiece_bert.serve.fields import Field

pytest.importorskip("uvicorn", reason="uvicorn is not installed: pip install '.[serve]'")
OPERATIONS = {id(one): one for route in DESCRIBED for one in route.operations}.values()
needs_curl = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")


class Shown(NamedTuple):
    """A command of the page, and the answer that stands below it or where a link leads."""

    command: str
    answer: str


class Reader(HTMLParser):
    """The commands and answers of the page by the place of their heading, its links, and what it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.place = ""
        self.commands: dict[str, str] = {}
        self.answers: dict[str, str] = {}
        self.above: dict[str, str] = {}
        self.places: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self._into: dict[str, str] | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        if tag in ("h2", "h3"):
            self.place = found["id"]
            self.places.add(self.place)
        elif tag == "pre":
            self._into = self.answers if found.get("class") == "answer" else self.commands
            assert self.place not in self._into
            self._into[self.place] = ""
        elif tag == "a":
            self.links.append(found["href"])
            if self.place:
                self.above[self.place] = found["href"].removeprefix("#")
        self.loaded += [found[name] for name in ("src", "data", "poster") if name in found]

    def handle_endtag(self, tag: str) -> None:
        if tag == "pre":
            self._into = None

    def handle_data(self, data: str) -> None:
        if self._into is not None:
            self._into[self.place] += data

    def shown(self) -> Iterator[Shown]:
        for place, command in self.commands.items():
            yield Shown(command, self.answers[place if place in self.answers else self.above[place]])


def run(command: str, **environment: str) -> str:
    """Run a command as it is pasted into a shell."""
    pasted = re.sub(r"^curl ", "curl -sS --fail-with-body ", command)
    done = subprocess.run(["sh", "-c", pasted], capture_output=True, encoding="utf-8", env=environment, check=False)
    assert done.returncode == 0, (command, done.stdout, done.stderr)
    return done.stdout


def shape(value: Any) -> Any:
    """The names and types of a JSON value; of a list those of its first item."""
    if isinstance(value, dict):
        return {name: shape(one) for name, one in value.items()}
    if isinstance(value, list):
        return [shape(one) for one in value[:1]]
    return "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__


@needs_curl
def test_every_command_is_answered_as_shown(server: Server) -> None:
    status, headers, text = server.get("/docs")
    assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8")
    page = Reader(text)
    assert page.loaded == []
    assert {link.removeprefix("#") for link in page.links} <= {*page.places, "openapi.json"}
    examples = [*page.shown()]
    assert len(examples) == sum(len(route.operations) + (route.page is not None) for route in DESCRIBED)
    for command, answer in examples:
        found = run(command)
        if answer[0] in "[{":
            assert shape(json.loads(found)) == shape(json.loads(answer.replace(", …]", "]"))), (command, found)
        else:
            assert found.splitlines()[0] == answer.splitlines()[0], command


@needs_curl
def test_a_command_has_the_key(folders: Any) -> None:
    from server_process import start, stop

    found = start(folders / "static", WORDPIECE_BERT_API_KEYS="the-key")
    try:
        page = Reader(found.get("/docs", authorization="Bearer the-key")[2])
        assert "the-key" not in "".join(page.commands.values())
        for place in ("post-embed", "get-metrics", "get-health"):
            run(page.commands[place], API_KEY="the-key")
        assert "API_KEY" not in page.commands["get-health"]
    finally:
        stop(found)


def test_what_no_model_answers_is_said(encoder: SentenceEncoder) -> None:
    status, text = Client(create_app({"it's <one>": encoder})).request("GET", "/docs")
    assert status == 200
    page = Reader(text)
    assert {"post-predict", "post-rerank-0", "post-rerank-1", "post-embed_sparse"} & page.commands.keys() == set()
    assert "Not answered here: this server has no model that is a classifier of texts" in text
    assert "it&#x27;s &lt;one&gt;" in text
    assert "<one>" not in text
    assert "/models/it%27s%20%3Cone%3E" in page.commands["post-models-NAME-0"]
    # The fields are described all the same.
    assert "The fields: <code>inputs</code>" in text[text.index('id="post-predict"') :]


def test_the_address_is_the_one_that_was_called(client: Client) -> None:
    def command(host: str, **scope: str) -> str:
        found = client.runner.run(ask(lambda *a: client.app({**a[0], **scope}, *a[1:]), "GET", "/docs", host=host))
        return Reader(found.body.decode()).commands["get-health"]

    assert command("localhost:81") == "curl http://localhost:81/health"
    assert command("[::1]:81") == "curl http://[::1]:81/health"
    assert command("a.example", scheme="https") == "curl https://a.example/health"
    assert command("a.example", root_path="/bert", path="/bert/docs") == "curl http://a.example/bert/health"
    for wrong in ("", "a b", "a;ls", "$(ls)", "<b>", "é"):
        assert command(wrong) == "curl http://127.0.0.1:8000/health"


def described(fields: tuple[Field, ...]) -> Iterator[Field]:
    for field in fields:
        if field.served:
            yield field
            if isinstance(field.kind, Nested):
                yield from described(field.kind.fields)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda one: one.summary)
def test_fields_are_described_and_examples_are_read(operation: Any) -> None:
    assert [field.name for field in described(operation.fields) if not field.about.endswith(".")] == []
    assert operation.required <= operation.example.body.keys()
    operation.read(operation.example.body, ServerSettings())


def test_the_answers_are_as_the_schema_says(client: Client) -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed: it comes with check-jsonschema")
    for path, methods in schema(DESCRIBED, ServerSettings())["paths"].items():
        if "post" not in methods:
            continue
        for content in (methods["post"]["requestBody"]["content"], methods["post"]["responses"]["200"]["content"]):
            of_json = content["application/json"]
            assert of_json["examples"], path
            for example in of_json["examples"].values():
                of_schema = {"anyOf": of_json["schema"].get("oneOf", [of_json["schema"]])}
                jsonschema.validate(example["value"], of_schema)


def test_fields_are_in_words(client: Client) -> None:
    text = client.request("GET", "/docs")[1]
    assert "{&quot;" not in re.sub(r"<pre.*?</pre>", "", text, flags=re.DOTALL)
    assert "a string, or a list of at most 20, of which each is a string, or an object with" in text
    assert "a whole number, 1 or more" in text
    assert all(f"<code>{name}</code> ({kind})" in text for name, kind in KINDS.items())
    assert TEXTS[0] not in text.partition("<h2")[0]
    assert page_of(DESCRIBED, client.app.service, "http://a").count('<h2 id="post-') == sum(
        bool(route.operations) for route in DESCRIBED
    )
