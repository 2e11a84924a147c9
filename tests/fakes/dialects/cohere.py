"""A fake of Cohere's chat, version 2 (https://docs.cohere.com/reference/chat)."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from typing import Any

from integrations.providers.base import Credentials
from integrations.providers.usage import Usage
from tests.fakes.dialects.story import Call, Can, ReadRequest, Reply, Story, Streamed

SECRET = "cOhErEfAkEkEy0123456789abcdefghijKLMNOPq"
PREAMBLE_TOKENS = 7  # The tokens of Cohere's own preamble, which the model reads and the customer does not pay.
_JSON = {"content-type": "application/json"}
_SSE = {"content-type": "text/event-stream"}
_FIELDS = {
    "model", "messages", "stream", "tools", "strict_tools", "documents", "citation_options", "response_format",
    "safety_mode", "max_tokens", "stop_sequences", "temperature", "seed", "frequency_penalty", "presence_penalty", "k",
    "p", "logprobs", "tool_choice", "thinking", "priority",
}  # fmt: skip
_MESSAGE_FIELDS = {
    "system": {"role", "content"},
    "user": {"role", "content"},
    "assistant": {"role", "content", "tool_calls", "tool_plan", "citations"},
    "tool": {"role", "content", "tool_call_id"},
}
_PART_TYPES = {
    "system": {"text"},
    "user": {"text", "image_url"},
    "assistant": {"text", "thinking"},
    "tool": {"text", "document"},
}
_REASONS = {"stop": "COMPLETE", "length": "MAX_TOKENS", "tool_calls": "TOOL_CALL", "content_filter": "ERROR_TOXIC"}
_ID = "46752333-4b62-4ac6-abe7-efc50c056c67"


class CohereFake:
    provider = "cohere"
    can = Can(documents=False)

    def credentials(self, base_url: str) -> Credentials:
        return Credentials(1, self.provider, base_url, SECRET)

    def whole(self, story: Story) -> Reply:
        content: list[dict[str, Any]] = []
        if story.reasoning:
            content.append({"type": "thinking", "thinking": story.reasoning})
        if story.text:
            content.append({"type": "text", "text": story.text})
        message: dict[str, Any] = {"role": "assistant"}
        if content:
            message["content"] = content
        if story.calls:
            message["tool_calls"] = [_call(call, json.dumps(call.arguments)) for call in story.calls]
        body = {
            "id": _ID,
            "message": message,
            "finish_reason": _REASONS[story.finish],
            "usage": _usage(story.usage),
        }
        return Reply(200, _JSON, _json(body))

    def stream(self, story: Story) -> Streamed:
        end = {"finish_reason": _REASONS[story.finish], "usage": _usage(story.usage)}
        last = _event("message-end", delta=end)
        return Streamed(_SSE, (*_content_events(story), *_called(story), last, b"data: [DONE]\n\n"))

    def failure(self, status: int, message: str, *, retry_after: int | None = None) -> Reply:
        headers = _JSON if retry_after is None else {**_JSON, "Retry-After": str(retry_after)}
        return Reply(status, headers, _json({"id": _ID, "message": message}))

    def stream_failure(self, story: Story, message: str) -> Streamed:
        """The error ends the message: https://docs.cohere.com/reference/chat-stream"""
        last = _event("message-end", delta={"finish_reason": "ERROR", "error": message})
        return Streamed(_SSE, (*_content_events(story), last, b"data: [DONE]\n\n"))

    def read(self, path: str, headers: Mapping[str, str], body: bytes) -> ReadRequest:
        assert path == "/v2/chat", path
        scheme, _, secret = headers["authorization"].partition(" ")
        assert scheme == "Bearer"
        fields = json.loads(body)
        assert not set(fields) - _FIELDS, f"unknown field: {set(fields) - _FIELDS}"
        tools = fields.get("tools") or ()
        assert fields.get("tool_choice") in (None, "REQUIRED", "NONE")
        assert tools or "tool_choice" not in fields
        _check(fields["messages"])
        return ReadRequest(
            **_conversation(fields["messages"]),
            model=fields["model"],
            stream=fields.get("stream") is True,
            tools=tuple(tool["function"]["name"] for tool in tools if tool["function"]["parameters"]),
            documents=tuple(_document(document) for document in fields.get("documents") or ()),
            tool_choice=(fields.get("tool_choice") or "").lower(),
            schema=_schema(fields.get("response_format")),
            stop=tuple(fields.get("stop_sequences") or ()),
            max_tokens=fields.get("max_tokens"),
            temperature=fields.get("temperature"),
            top_p=fields.get("p"),
            secret=secret,
        )


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def _event(kind: str, **fields: Any) -> bytes:
    return f"event: {kind}\ndata: ".encode() + _json({"type": kind, **fields}) + b"\n\n"


def _delta(kind: str, message: dict[str, Any], **fields: Any) -> bytes:
    return _event(kind, delta={"message": message}, **fields)


def _content_events(story: Story) -> list[bytes]:
    start = {"role": "assistant", "content": [], "tool_plan": "", "tool_calls": [], "citations": []}
    events = [_delta("message-start", start, id=_ID)]
    index = 0
    for kind, text in (("thinking", story.reasoning), ("text", story.text)):
        if not text:
            continue
        events.append(_delta("content-start", {"content": {"type": kind, kind: ""}}, index=index))
        for piece in _pieces(text, story.pieces):
            events.append(_delta("content-delta", {"content": {kind: piece}}, index=index))
        events.append(_event("content-end", index=index))
        index += 1
    return events


def _called(story: Story) -> list[bytes]:
    events = []
    for index, call in enumerate(story.calls):
        events.append(_delta("tool-call-start", {"tool_calls": _call(call, "")}, index=index))
        for piece in _pieces(json.dumps(call.arguments) if call.arguments else "", story.pieces):
            fragment = {"tool_calls": {"function": {"arguments": piece}}}
            events.append(_delta("tool-call-delta", fragment, index=index))
        events.append(_event("tool-call-end", index=index))
    return events


def _call(call: Call, arguments: str) -> dict[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def _usage(usage: Usage) -> dict[str, Any]:
    billed = {
        "input_tokens": max(0, usage.prompt_tokens - PREAMBLE_TOKENS),
        "output_tokens": usage.completion_tokens - usage.reasoning_tokens,
    }
    tokens = {"input_tokens": usage.prompt_tokens, "output_tokens": usage.completion_tokens}
    if usage.reasoning_tokens:
        tokens["reasoning_tokens"] = usage.reasoning_tokens
    return {"billed_units": billed, "tokens": tokens, "cached_tokens": usage.cache_read_tokens}


def _pieces(text: str, count: int) -> list[str]:
    size = max(1, -(-len(text) // max(1, count)))
    return [text[i : i + size] for i in range(0, len(text), size)]


def _check(messages: list[dict[str, Any]]) -> None:
    for message in messages:
        role = message["role"]
        assert not set(message) - _MESSAGE_FIELDS[role], f"unknown field: {role} {set(message)}"
        for part in _parts(message):
            assert part["type"] in _PART_TYPES[role], f"{part['type']} in a message of role {role}"
        for call in message.get("tool_calls") or ():
            assert isinstance(call["function"]["arguments"], str)


def _parts(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    assert content is None or isinstance(content, list)
    return content or []


def _text(parts: Iterable[Mapping[str, Any]]) -> str:
    return "".join(_part_text(part) for part in parts)


def _part_text(part: Mapping[str, Any]) -> str:
    if part["type"] == "document":
        return str(part["document"]["data"]["text"])
    return str(part.get("text") or "")


def _conversation(messages: list[dict[str, Any]]) -> dict[str, Any]:
    turns: list[tuple[str, str]] = []
    calls: list[Call] = []
    results: list[tuple[str, str]] = []
    for message in messages:
        role, text = message["role"], _text(_parts(message))
        if role == "tool":
            results.append((message["tool_call_id"], text))
        elif role in ("user", "assistant") and text:
            turns.append((role, text))
        for call in message.get("tool_calls") or ():
            calls.append(Call(call["id"], call["function"]["name"], json.loads(call["function"]["arguments"])))
    parts = [part for message in messages for part in _parts(message)]
    return {
        "system": "\n".join(_text(_parts(message)) for message in messages if message["role"] == "system"),
        "turns": tuple(turns),
        "calls": tuple(calls),
        "results": tuple(results),
        "images": tuple(_image(part["image_url"]["url"]) for part in parts if part["type"] == "image_url"),
    }


def _image(url: str) -> tuple[str, bytes | str]:
    if not url.startswith("data:"):
        return "url", url
    media_type, _, data = url[5:].partition(";base64,")
    return media_type, base64.b64decode(data)


def _document(document: Any) -> tuple[str, bytes | str]:
    text = document if isinstance(document, str) else document["data"]["text"]
    return "text/plain", text.encode()


def _schema(response_format: Any) -> Mapping[str, Any] | None:
    if not isinstance(response_format, Mapping) or response_format["type"] != "json_object":
        return None
    schema: Mapping[str, Any] | None = response_format.get("json_schema")
    return schema


FAKE = CohereFake()
