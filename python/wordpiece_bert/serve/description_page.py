"""The description of the server for people: one page, which loads nothing, of the table that the OpenAPI document has.

For each path: what it does, a command that asks for it with a model of this server, an answer, and the fields in words.
"""

from __future__ import annotations

import json
import shlex
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from wordpiece_bert import _core
from wordpiece_bert.serve.errors import RequestError
from wordpiece_bert.serve.fields import object_schema
from wordpiece_bert.serve.openapi import REFUSALS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from wordpiece_bert.serve.kinds.served_model import Served
    from wordpiece_bert.serve.operations import Operation, Page, Route, Service

_NAME = "{model:path}"
#: The widest line of JSON.
_COLUMNS = 88
#: The lines of an answer other than JSON that are shown.
_LINES = 6
_STYLE = """
:root { color-scheme: light dark; --line: #8886; --soft: #8882; }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h2 { margin: 2.5rem 0 0; padding-top: 1rem; border-top: 1px solid var(--line); overflow-wrap: anywhere; }
h3 { margin: 1.5rem 0 0; }
pre { background: var(--soft); padding: .6rem .8rem; overflow-x: auto; margin: .3rem 0; }
.example { position: relative; }
.example button { position: absolute; top: .3rem; right: .3rem; font: inherit; font-size: .8rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; }
td, th { border-bottom: 1px solid var(--line); padding: .25rem .8rem .25rem 0; text-align: left; vertical-align: top; }
summary { cursor: pointer; }
"""
_SCRIPT = """
// Behind a proxy the browser knows the address better than the server.
const given = document.body.dataset.address, here = new URL(".", location).href.slice(0, -1);
for (const code of document.querySelectorAll(".example code")) {
  if (location.protocol.startsWith("http")) code.textContent = code.textContent.replace(given, here);
  const button = code.closest(".example").appendChild(document.createElement("button"));
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    getSelection().selectAllChildren(code);
    const copied = await navigator.clipboard?.writeText(code.textContent).then(() => true, () => false);
    button.textContent = (copied ?? document.execCommand("copy")) ? "Copied" : "Press Ctrl+C";
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
}
"""


class _Asked(NamedTuple):
    """A request for a page that the description shows."""

    parameter: str
    address: str


def page(routes: Sequence[Route], service: Service, address: str) -> str:
    """Return the description of some routes as a page of HTML.

    Parameters
    ----------
    routes : sequence of Route
        The paths, in the order of the page.
    service : Service
        The server, whose models the commands name.
    address : str
        The address by which it is called.
    """
    listed, sections = [], []
    shown: dict[int, str] = {}
    for route in routes:
        path = escape(route.path.replace(_NAME, "NAME"))
        for method, of_page in (("GET", route.page), ("POST", None)):
            if method not in route.methods:
                continue
            place = f"{method.lower()}{path.replace('/', '-')}"
            summaries = [of_page.summary] if of_page else [one.summary for one in route.operations]
            does = "; ".join(dict.fromkeys(map(escape, summaries)))
            if method == "POST" and route.chooses is not None:
                does = "What the model does that the request names"
            listed.append(
                f'<tr><td>{method}</td><td><a href="#{place}"><code>{path}</code></a></td><td>{does}</td></tr>'
            )
            sections.append(f'<h2 id="{place}"><code>{method} {path}</code></h2>')
            if of_page:
                sections += _of_page(route, of_page, service, address)
            else:
                sections += _of_operations(route, place, service, address, shown)
    models = ", ".join(f"<code>{escape(model.name)}</code> ({escape(model.kind)})" for model in service.models)
    version = escape(_core.__version__)
    refusals = _table((f"<code>{status}</code>", escape(text)) for status, text in REFUSALS.items())
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>wordpiece-bert {version}: paths of the server</title><style>{_STYLE}</style></head>
<body data-address="{escape(address)}">
<h1>wordpiece-bert {version}</h1>
<p>The models of this server are {models}. A program reads the same description as
<a href="openapi.json">OpenAPI document</a>.</p>{_KEYS if service.settings.api_keys else ""}
<div class="wide"><table><tr><th></th><th>path</th><th>what it does</th></tr>{"".join(listed)}</table></div>
{"".join(sections)}
<h2 id="refusals">Refusals</h2><p>The body says what is wrong and what to do, in the form of the path's API.</p>
{refusals}
<script>{_SCRIPT}</script></body></html>"""


_KEYS = (
    "<p>This server asks for a key. The commands take it from a variable: "
    "<code>read -rs API_KEY &amp;&amp; export API_KEY</code>.</p>"
)


def _of_page(route: Route, of_page: Page, service: Service, address: str) -> Iterator[str]:
    """Yield what a path shows without a body, as it is now."""
    name = next(iter(service.models)).name
    yield f"<p>{escape(of_page.summary)}.</p>"
    yield _command(route.path.replace(_NAME, quote(name)), None, service, address, needs_key=of_page.needs_key)
    try:
        found = of_page.content(service, _Asked(name, address))
    except RequestError as error:
        found = error.message
    if of_page.media_type == "application/json":
        found = _json(json.loads(found))
    else:
        lines = found.splitlines()
        found = "\n".join(lines[:_LINES] + ["…"] * (len(lines) > _LINES))
    yield _answer(found)


def _of_operations(route: Route, place: str, service: Service, address: str, shown: dict[int, str]) -> Iterator[str]:
    """Yield what a path does with a body; `shown` has the places of operations that the page has already."""
    for index, one in enumerate(route.operations):
        own = place
        if len(route.operations) == 1:
            yield f"<p>{escape(one.summary)}.</p>"
        else:
            own = f"{place}-{index}"
            yield f'<h3 id="{own}">{escape(one.summary)}: {_names(sorted(one.required))}</h3>'
        name = ""
        try:
            name = _model_of(route, one, service)
            body = ({} if _NAME in route.path else {"model": name}) | one.example.body
            yield _command(route.path.replace(_NAME, quote(name)), body, service, address)
        except RequestError as error:
            yield f"<p>Not answered here: {escape(error.message)}.</p>"
        if (known := shown.setdefault(id(one), own)) != own:
            yield f'<p>The answer and the fields are as <a href="#{known}">above</a>.</p>'
            continue
        answer = one.example.answer
        if name and isinstance(answer, dict) and "model" in answer:
            answer = answer | {"model": name}
        yield _answer(_json(answer))
        yield _fields(one, service)


def _model_of(route: Route, operation: Operation, service: Service) -> str:
    """Return the name of a model that answers an operation on a path.

    Raises
    ------
    RequestError
        There is none.
    """
    found: Served = operation.finds(service.models)
    if route.chooses is None:
        return found.name
    candidates: list[Served] = [found, *service.models]
    for model in candidates:
        if route.chooses(service, {"model": model.name, **operation.example.body}) is operation:
            return model.name
    raise RequestError(400, "this server has no model that does this alone")


def _command(path: str, body: dict[str, Any] | None, service: Service, address: str, *, needs_key: bool = True) -> str:
    """Return a command that asks for a path."""
    parts = [f"curl {address}{path}"]
    if needs_key and service.settings.api_keys:
        parts.append('-H "Authorization: Bearer $API_KEY"')
    if body is not None:
        parts += ["-H 'Content-Type: application/json'", f"-d {shlex.quote(_json(body))}"]
    lines = escape(" \\\n    ".join(parts))
    return f'<div class="example"><pre tabindex="0"><code>{lines}</code></pre></div>'


def _answer(text: str) -> str:
    return f'<p>An answer:</p><pre class="answer" tabindex="0">{escape(text)}</pre>'


def _json(value: Any, indent: str = "") -> str:
    """Return JSON whose lines are narrow, and in which a vector has only its beginning."""
    if isinstance(value, list) and len(value) > 2 and all(isinstance(one, float) for one in value):
        return f"[{', '.join(map(json.dumps, value[:3]))}, …]"
    parts = []
    if isinstance(value, list):
        parts = [_json(one, indent + "  ") for one in value]
    elif isinstance(value, dict):
        parts = [f"{json.dumps(name)}: {_json(one, indent + '  ')}" for name, one in value.items()]
    else:
        return json.dumps(value, ensure_ascii=False)
    first, last = "[]" if isinstance(value, list) else "{}"
    line = f"{first}{', '.join(parts)}{last}"
    if "\n" not in line and len(indent) + len(line) <= _COLUMNS - 12:
        return line
    between = f",\n{indent}  "
    return f"{first}{between[1:]}{between.join(parts)}\n{indent}{last}"


def _fields(operation: Operation, service: Service) -> str:
    """Return the fields of a body in words."""
    properties = object_schema(operation.fields, service.settings)["properties"]
    rows = (
        (f"<code>{escape(name)}</code>{' (required)' * (name in operation.required)}", _words(field), _about(field))
        for name, field in properties.items()
    )
    others = len(properties) - len(operation.required)
    more = f" and {others} more" if others else ""
    return f"<details><summary>The fields: {_names(sorted(operation.required))}{more}</summary>{_table(rows)}</details>"


def _about(field: dict[str, Any]) -> str:
    default = f" By default {escape(json.dumps(field['default']))}." if "default" in field else ""
    return escape(field.get("description", "")) + default


def _words(schema: dict[str, Any]) -> str:
    """Return what a JSON schema allows, in words."""
    if "oneOf" in schema:
        return ", or ".join(map(_words, schema["oneOf"]))
    if "enum" in schema:
        values = [f"<code>{escape(json.dumps(one))}</code>" for one in schema["enum"]]
        return values[0] if len(values) == 1 else f"one of {', '.join(values)}"
    kind = schema.get("type")
    if kind == "array":
        most = f" of at most {schema['maxItems']}" if "maxItems" in schema else ""
        return f"a list{most}, of which each is {_words(schema.get('items', {}))}"
    if kind == "object":
        inner = [
            f"<code>{escape(name)}</code> ({'; '.join(filter(None, (_words(one), _about(one))))})"
            for name, one in schema.get("properties", {}).items()
        ]
        return f"an object with {', '.join(inner)}" if inner else "an object"
    if kind == "integer":
        return f"a whole number, {schema['minimum']} or more" if "minimum" in schema else "a whole number"
    return {"string": "a string", "boolean": "true or false", "number": "a number"}.get(kind or "", "anything")


def _names(names: Sequence[str]) -> str:
    return ", ".join(f"<code>{escape(name)}</code>" for name in names)


def _table(rows: Iterator[tuple[str, ...]]) -> str:
    cells = ("".join(f"<td>{cell}</td>" for cell in row) for row in rows)
    return f'<div class="wide"><table>{"".join(f"<tr>{row}</tr>" for row in cells)}</table></div>'
