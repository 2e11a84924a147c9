"""Runs the surface of the Messages API below Anthropic's official SDK, without a network."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import httpx2
from anthropic import Anthropic
from anthropic.types import Message

from core.errors import ApplicationError
from gateway.surfaces.messages.surface import SURFACE
from integrations.providers.base import ChatRequest

REQUEST_ID = "0192d1c4-5b5e-7a3c-9c1d-2f3a4b5c6d7e"
ASK: dict[str, Any] = {
    "model": "sandbox/echo",
    "max_tokens": 1024,
    "messages": [{"role": "user", "content": "Hello"}],
}

Json = dict[str, Any]


def ask(**fields: Any) -> bytes:
    return json.dumps({**ASK, **fields}, ensure_ascii=False).encode()


def chat(**fields: Any) -> Json:
    """Returns the request as a chat completion, decoded."""
    made: Json = json.loads(SURFACE.read(ask(**fields)).body)
    return made


def chat_messages(*messages: Json) -> list[Json]:
    made: list[Json] = chat(messages=list(messages))["messages"]
    return made


def chat_request(body: bytes) -> ChatRequest:
    fields = json.loads(body)
    return ChatRequest(fields["model"], bool(fields.get("stream")), body, fields)


def answer(message: Mapping[str, Any], finish: str = "stop", **more: Any) -> Json:
    """Returns the surface's answer to a chat completion with this message."""
    made: Json = json.loads(SURFACE.answer(SURFACE.read(ask()), completion(message, finish, **more), REQUEST_ID))
    return made


def completion(message: Mapping[str, Any], finish: str = "stop", **more: Any) -> bytes:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    head = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "gpt-4o"}
    usage = {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}
    return json.dumps({**head, "choices": [choice], "usage": usage, **more}, ensure_ascii=False).encode()


def chunk(delta: Mapping[str, Any] | None = None, finish: str | None = None, **more: Any) -> bytes:
    choices = [] if delta is None else [{"index": 0, "delta": dict(delta), "finish_reason": finish}]
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "gpt-4o"}
    return json.dumps({**head, "choices": choices, **more}, ensure_ascii=False).encode()


LAST = chunk({}, "stop", usage={"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13})


def streamed(chunks: Iterable[bytes], last: Iterable[bytes] = ()) -> bytes:
    """Returns the frames of a whole stream; the last of the chunks closes it unless `last` does."""
    encoder = SURFACE.stream(SURFACE.read(ask(stream=True)), REQUEST_ID)
    frames = [encoder.feed([one]) for one in chunks]
    return b"".join([*frames, encoder.close(list(last))])


def events_of(frames: bytes) -> list[Json]:
    """Returns the events, whose names are those of their frames."""
    events = []
    for frame in frames.decode().split("\n\n")[:-1]:
        name, data = frame.split("\n")
        event = json.loads(data.removeprefix("data: "))
        assert name == f"event: {event['type']}"
        events.append(event)
    return events


class _Line:
    """The official SDK with one prepared response. One client serves all tests, since a new one takes a while."""

    def __init__(self) -> None:
        self.response = httpx2.Response(200)
        transport = httpx2.Client(transport=httpx2.MockTransport(lambda _: self.response))
        base_url = "http://gateway.test"
        self.sdk = Anthropic(api_key="svc-test", base_url=base_url, http_client=transport, max_retries=0)


@cache
def _line() -> _Line:
    return _Line()


def client_of(status: int, body: bytes, content_type: str) -> Anthropic:
    line = _line()
    line.response = httpx2.Response(status, headers={"content-type": content_type}, content=body)
    return line.sdk


def read_whole(body: bytes, status: int = 200) -> Message:
    """Returns the message that the official SDK reads. Raises the SDK's errors."""
    message: Message = client_of(status, body, "application/json").messages.create(**ASK)
    return message


def read_stream(frames: bytes) -> Message:
    """Returns the message that the official SDK puts together from a stream. Raises the SDK's errors."""
    with client_of(200, frames, "text/event-stream").messages.stream(**ASK) as stream:
        message: Message = stream.get_final_message()
        return message


def failed(error: ApplicationError) -> Json:
    made: Json = json.loads(SURFACE.error(error, REQUEST_ID))
    return made
