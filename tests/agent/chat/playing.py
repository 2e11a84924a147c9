"""Steps of a scripted model that calls tools, and a client of the chat that reads its stream strictly."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx2

from tests.fakes.scripted import DONE, FINISH, ROLE, USAGE_CHUNK, Step, chunk
from tests.fakes.upstream import Connection, Received
from tests.gateway.service import Gateway

PATH = "/api/agent/chat"
MODEL = "openai/gpt-4o"

_FIELDS = {
    "conversation_created": {"conversation_id"},
    "text_delta": {"content"},
    "tool_start": {"call_id", "name"},
    "tool_result": {"call_id", "content"},
    "done": set[str](),
    "error": {"content"},
}

Request = dict[str, Any]
Made = tuple[str, dict[str, Any] | str]


def says(text: str | Callable[[Request], str]) -> Step:
    async def step(received: Received, connection: Connection) -> None:
        content = text if isinstance(text, str) else text(json.loads(received.body))
        words = content.split(" ")
        pieces = [words[0], *(f" {word}" for word in words[1:])]
        await _stream(connection, [chunk({"content": piece}) for piece in pieces], FINISH)

    return step


def calls(*made: Made, text: str = "", ids: tuple[str, ...] = ()) -> Step:
    async def step(received: Received, connection: Connection) -> None:
        events = [chunk({"content": text})] if text else []
        for index, (name, given) in enumerate(made):
            arguments = given if isinstance(given, str) else json.dumps(given)
            call_id = ids[index] if ids else f"call_{len(json.loads(received.body)['messages'])}_{index}"
            begin = {"index": index, "id": call_id, "type": "function", "function": {"name": name, "arguments": ""}}
            events.append(chunk({"tool_calls": [begin]}))
            for piece in (arguments[:3], arguments[3:]):
                events.append(chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}))
        await _stream(connection, events, chunk({}, "tool_calls"))

    return step


async def _stream(connection: Connection, events: list[bytes], finish: bytes) -> None:
    await connection.start_stream()
    for event in [ROLE, *events, finish, USAGE_CHUNK, DONE]:
        await connection.send_chunk(event)
    await connection.end_stream()


@dataclass
class ChatReply:
    events: list[dict[str, Any]] = field(default_factory=list)
    comments: int = 0

    @property
    def types(self) -> list[str]:
        found: list[str] = []
        for event in self.events:
            if event["type"] != "text_delta" or found[-1:] != ["text_delta"]:
                found.append(event["type"])
        return found

    @property
    def text(self) -> str:
        return "".join(event["content"] for event in self.events if event["type"] == "text_delta")

    @property
    def error(self) -> str:
        (found,) = [event["content"] for event in self.events if event["type"] == "error"]
        return str(found)

    @property
    def conversation_id(self) -> str:
        (found,) = [event["conversation_id"] for event in self.events if event["type"] == "conversation_created"]
        return str(found)

    @property
    def results(self) -> list[dict[str, Any]]:
        return [json.loads(event["content"]) for event in self.events if event["type"] == "tool_result"]


def read_events(raw: bytes, *, ended: bool = True) -> ChatReply:
    """Every block is a comment or one `data:` line with a known event; `done` or `error` comes once and last."""
    reply = ChatReply()
    assert not ended or raw.endswith(b"\n\n"), raw[-80:]
    for block in raw.split(b"\n\n")[:-1]:
        if block.startswith(b":"):
            reply.comments += 1
            continue
        assert block.startswith(b"data: ") and b"\n" not in block, block
        event = json.loads(block[6:])
        assert set(event) == {"type"} | _FIELDS[event["type"]], event
        assert all(isinstance(value, str) for value in event.values()), event
        reply.events.append(event)
    last = [event["type"] in ("done", "error") for event in reply.events]
    assert sum(last) == int(ended) and (not ended or last[-1]), reply.events
    return reply


def headers_of(gateway: Gateway, key: str = "") -> dict[str, str]:
    return {"authorization": f"Bearer {key or gateway.key}", "x-project-id": gateway.project_id}


def post(gateway: Gateway, body: Any, *, port: int | None = None, headers: dict[str, str] | None = None) -> Any:
    given = headers if headers is not None else headers_of(gateway)
    return gateway.service.client.post(gateway.service.base_url(port) + PATH, json=body, headers=given, timeout=60)


def chat(gateway: Gateway, message: str = "What did we spend?", *, port: int | None = None, **fields: Any) -> ChatReply:
    response = post(gateway, {"message": message, **fields}, port=port)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert response.headers["cache-control"] == "no-cache"
    assert response.headers["x-request-id"]
    return read_events(response.content)


def agent(gateway: Gateway, method: str, path: str, **options: Any) -> httpx2.Response:
    url = f"{gateway.service.base_url()}/api/agent/{path}"
    return gateway.service.client.request(method, url, headers=headers_of(gateway), **options)


def messages(gateway: Gateway, conversation_id: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = agent(gateway, "GET", f"conversations/{conversation_id}/messages").json()["results"]
    return found


def running(gateway: Gateway, conversation_id: str) -> bool:
    rows = agent(gateway, "GET", "conversations").json()["results"]
    (row,) = [row for row in rows if row["conversation_id"] == conversation_id]
    return bool(row["running"])
