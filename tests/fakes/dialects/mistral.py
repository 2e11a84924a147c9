"""A fake of Mistral's chat completions: close to OpenAI's, but unknown fields are refused
(https://docs.mistral.ai/api/)."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from integrations.providers.base import Credentials
from integrations.providers.usage import Usage
from tests.fakes.dialects.story import Call, Can, ReadRequest, Reply, Story, Streamed

SECRET = "mIsTrAlFaKeKeY0123456789abcdefGH"
CREATED = 1_760_000_000
_JSON = {"content-type": "application/json"}
_SSE = {"content-type": "text/event-stream; charset=utf-8"}
# These fields of OpenAI's get a 422. Undocumented fields may be documented later, and are let through.
_FORBIDDEN = {
    "audio", "function_call", "functions", "logit_bias", "max_completion_tokens", "modalities", "models",
    "prompt_cache_retention", "prompt_config", "prompt_variables", "provider", "safety_identifier", "seed", "store",
    "stream_options", "thinking", "user", "verbosity", "web_search_options",
}  # fmt: skip
_MESSAGE_FIELDS = {
    "system": {"role", "content"},
    "user": {"role", "content"},
    "assistant": {"role", "content", "tool_calls", "prefix"},
    "tool": {"role", "content", "tool_call_id", "name"},
}
_AFTER = {
    "": {"system", "user", "assistant"},
    "system": {"system", "user", "assistant"},
    "user": {"system", "user", "assistant"},
    "assistant": {"assistant", "user", "tool"},
    "tool": {"assistant", "tool"},
}
_PART_FIELDS = {
    "text": {"text"},
    "image_url": {"image_url"},
    "document_url": {"document_url", "document_name"},
    "input_audio": {"input_audio"},
    "file": {"file_id"},
    "thinking": {"thinking", "signature", "closed"},
}
_CALL_ID = re.compile(r"[a-zA-Z0-9]{9}\Z")
_TYPES = {400: "invalid_request_error", 429: "rate_limited", 503: "service_unavailable"}
_CODES = {429: "1300", 500: "1000"}


class MistralFake:
    provider = "mistral"
    can = Can(signatures=True)

    def credentials(self, base_url: str) -> Credentials:
        return Credentials(1, self.provider, f"{base_url}/v1", SECRET)

    def whole(self, story: Story) -> Reply:
        message: dict[str, Any] = {"role": "assistant", "content": _content(story)}
        if story.calls:
            message["tool_calls"] = [_call(call, index) for index, call in enumerate(story.calls)]
        choice = {"index": 0, "message": message, "finish_reason": story.finish}
        body = {**_head(story, "chat.completion"), "choices": [choice], "usage": _usage(story.usage)}
        return Reply(200, _JSON, _json(body))

    def stream(self, story: Story) -> Streamed:
        ended = _choice({"content": ""}, story.finish)
        if story.calls:
            # Mistral sends tool calls whole, in the chunk with the finish reason.
            ended = _choice({"tool_calls": [_call(call, i) for i, call in enumerate(story.calls)]}, story.finish)
        last = _event({**_head(story, "chat.completion.chunk"), "choices": [ended], "usage": _usage(story.usage)})
        return Streamed(_SSE, (*self._content_events(story), last, b"data: [DONE]\n\n"))

    def failure(self, status: int, message: str, *, retry_after: int | None = None) -> Reply:
        headers = _JSON if retry_after is None else {**_JSON, "Retry-After": str(retry_after)}
        if status == 422:
            detail = [{"type": "extra_forbidden", "loc": ["body", "oops"], "msg": message, "input": 1}]
            return Reply(status, headers, _json({"detail": detail}))
        if status == 401:
            return Reply(status, headers, _json({"detail": message}))
        return Reply(status, headers, _json(_error(status, message)))

    def stream_failure(self, story: Story, message: str) -> Streamed:
        return Streamed(_SSE, (*self._content_events(story), _event(_error(500, message))))

    def read(self, path: str, headers: Mapping[str, str], body: bytes) -> ReadRequest:
        assert path == "/v1/chat/completions", path
        scheme, _, secret = headers["authorization"].partition(" ")
        assert scheme == "Bearer"
        fields = json.loads(body)
        assert not set(fields) & _FORBIDDEN, f"extra_forbidden: {set(fields) & _FORBIDDEN}"
        _check(fields["messages"])
        return ReadRequest(
            **_conversation(fields["messages"]),
            model=fields["model"],
            stream=fields.get("stream") is True,
            tools=tuple(tool["function"]["name"] for tool in fields.get("tools") or ()),
            tool_choice=_tool_choice(fields.get("tool_choice")),
            schema=_schema(fields.get("response_format")),
            stop=_stop(fields.get("stop")),
            max_tokens=fields.get("max_tokens"),
            temperature=fields.get("temperature"),
            top_p=fields.get("top_p"),
            secret=secret,
        )

    def _content_events(self, story: Story) -> list[bytes]:
        head = _head(story, "chat.completion.chunk")
        deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
        deltas += [{"content": [_think(piece)]} for piece in _pieces(story.reasoning, story.pieces)]
        if story.reasoning and story.signature:
            deltas.append({"content": [{"type": "thinking", "thinking": [], "signature": story.signature}]})
        deltas += [{"content": piece} for piece in _pieces(story.text, story.pieces)]
        return [_event({**head, "choices": [_choice(delta)]}) for delta in deltas]


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def _event(value: Any) -> bytes:
    return b"data: " + _json(value) + b"\n\n"


def _head(story: Story, kind: str) -> dict[str, Any]:
    return {"id": "64f2f50dd61f42d68307c41440d34037", "object": kind, "created": CREATED, "model": story.model}


def _choice(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "finish_reason": finish}


def _error(status: int, message: str) -> dict[str, Any]:
    kind = _TYPES.get(status, "internal_server_error")
    return {
        "object": "error",
        "message": message,
        "type": kind,
        "param": None,
        "code": _CODES.get(status, "3000"),
        "raw_status_code": status,
    }


def _content(story: Story) -> Any:
    if not story.reasoning:
        return story.text or (None if story.calls else "")
    thinking = _think(story.reasoning)
    if story.signature:
        thinking["signature"] = story.signature
    return [thinking, *([{"type": "text", "text": story.text}] if story.text else [])]


def _think(text: str) -> dict[str, Any]:
    return {"type": "thinking", "thinking": [{"type": "text", "text": text}]}


def _call(call: Call, index: int) -> dict[str, Any]:
    arguments = json.dumps(call.arguments, ensure_ascii=False)
    return {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": arguments},
        "index": index,
    }


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.prompt_tokens,
        "total_tokens": usage.total_tokens,
        "completion_tokens": usage.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read_tokens},
        "service_tier": "standard",
    }


def _pieces(text: str, count: int) -> list[str]:
    size = max(1, -(-len(text) // max(1, count)))
    return [text[i : i + size] for i in range(0, len(text), size)]


def _check(messages: list[dict[str, Any]]) -> None:
    previous = ""
    for message in messages:
        role = message["role"]
        assert not set(message) - _MESSAGE_FIELDS[role], f"extra_forbidden: {role} {set(message)}"
        assert role in _AFTER[previous], f"Unexpected role '{role}' after role '{previous}'"
        for part in _parts(message):
            kind = part["type"]
            assert set(part) - {"type"} <= _PART_FIELDS[kind], f"extra_forbidden: {part}"
        for call in message.get("tool_calls") or ():
            assert _CALL_ID.match(call["id"]), f"Tool call id was {call['id']} but must be a-z, A-Z, 0-9, of length 9."
        assert role != "tool" or _CALL_ID.match(message["tool_call_id"])
        previous = role
    assert previous in ("user", "tool") or messages[-1].get("prefix"), "Expected last role User or Tool"


def _parts(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    assert content is None or isinstance(content, list)
    return content or []


def _text(parts: Iterable[Mapping[str, Any]]) -> str:
    return "".join(part["text"] for part in parts if part["type"] == "text")


def _conversation(messages: list[dict[str, Any]]) -> dict[str, Any]:
    turns: list[tuple[str, str]] = []
    calls: list[Call] = []
    results: list[tuple[str, str]] = []
    for message in messages:
        role, text = message["role"], _text(_parts(message))
        if role == "tool":
            results.append((message["tool_call_id"], text))
        elif role == "user" or (role == "assistant" and text):
            turns.append((role, text))
        for call in message.get("tool_calls") or ():
            function = call["function"]
            calls.append(Call(call["id"], function["name"], json.loads(function["arguments"])))
    parts = [part for message in messages for part in _parts(message)]
    return {
        "system": "\n".join(_text(_parts(message)) for message in messages if message["role"] == "system"),
        "turns": tuple(turns),
        "calls": tuple(calls),
        "results": tuple(results),
        "images": tuple(_media(part["image_url"]) for part in parts if part["type"] == "image_url"),
        "documents": tuple(_media(part["document_url"]) for part in parts if part["type"] == "document_url"),
        "signatures": tuple(part["signature"] for part in parts if part.get("signature")),
    }


def _media(holder: Any) -> tuple[str, bytes | str]:
    url = holder["url"] if isinstance(holder, Mapping) else holder
    if not url.startswith("data:"):
        return "url", url
    media_type, _, data = url[5:].partition(";base64,")
    return media_type, base64.b64decode(data)


def _tool_choice(choice: Any) -> str:
    if isinstance(choice, Mapping):
        return f"function:{choice['function']['name']}"
    return {"any": "required"}.get(choice, choice or "")


def _schema(response_format: Any) -> Mapping[str, Any] | None:
    if not isinstance(response_format, Mapping) or response_format["type"] != "json_schema":
        return None
    assert set(response_format["json_schema"]) <= {"name", "description", "schema", "strict"}
    schema: Mapping[str, Any] = response_format["json_schema"]["schema"]
    return schema


def _stop(stop: Any) -> tuple[str, ...]:
    return (stop,) if isinstance(stop, str) else tuple(stop or ())


FAKE = MistralFake()
