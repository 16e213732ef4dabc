"""Requests to an application of `wordpiece_bert.serve` in this process, and their answers."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from server_process import complaint_of

if TYPE_CHECKING:
    from collections.abc import Callable


class Answer(NamedTuple):
    status: int
    media_type: str
    body: bytes
    headers: dict[str, str]


async def ask(
    app: Any, method: str, path: str, body: bytes = b"", *, send: Callable[..., Any] | None = None, **more: str
) -> Answer:
    """Send a request to an application in this process; `send` may take the messages of its answer."""
    given_body = [{"type": "http.request", "body": body, "more_body": False}]
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return given_body.pop() if given_body else await asyncio.Event().wait()  # type: ignore[return-value]

    async def keep(message: dict[str, Any]) -> None:
        sent.append(message)

    headers = [(b"content-type", b"application/json"), (b"host", b"a")]
    headers += [(name.encode(), value.encode()) for name, value in more.items()]
    scope = {"type": "http", "method": method, "path": path, "headers": headers, "query_string": b"", "root_path": ""}
    await app(scope, receive, send or keep)
    found = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return Answer(sent[0]["status"], found["content-type"], b"".join(part.get("body", b"") for part in sent[1:]), found)


def assert_refused(status: int, media_type: str, found: Any) -> None:
    assert 400 <= status < 500, (status, found)
    assert media_type == "application/json"
    assert complaint_of(found)


class Client:
    """Requests to an application in this process, which one event loop answers."""

    opened: ClassVar[list[Client]] = []

    def __init__(self, app: Any) -> None:
        self.app = app
        self.runner = asyncio.Runner()
        self.opened.append(self)

    def close(self) -> None:
        self.opened.remove(self)
        self.runner.run(self.app.service.models.close())
        self.runner.close()

    def request(self, method: str, path: str, body: bytes = b"", **headers: str) -> tuple[int, Any]:
        answer = self.runner.run(ask(self.app, method, path, body, **headers))
        is_json = answer.media_type == "application/json"
        return answer.status, json.loads(answer.body) if is_json else answer.body.decode()

    def post(self, path: str, **fields: Any) -> Any:
        status, found = self.request("POST", path, json.dumps(fields).encode())
        assert status == 200, found
        return found

    def refused(self, path: str, status: int = 400, /, **fields: Any) -> str:
        found_status, found = self.request("POST", path, json.dumps(fields).encode())
        assert found_status == status, found
        return complaint_of(found)
