"""A fake of the Messages API (https://docs.anthropic.com/en/api/messages), strict about what the vendor refuses."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from integrations.providers.base import Credentials
from integrations.providers.usage import Usage
from tests.fakes.dialects.rules import anthropic as rules
from tests.fakes.dialects.rules.table import Request
from tests.fakes.dialects.story import Call, Can, ReadRequest, Reply, Story, Streamed

_JSON = {"content-type": "application/json", "request-id": "req_fake"}
_SSE = {"content-type": "text/event-stream; charset=utf-8", "request-id": "req_fake"}
# Two versions are accepted; today's official SDK sends the newer one.
# In Microsoft Foundry the Messages API is at https://RESOURCE.services.ai.azure.com/anthropic
_PATHS = {"azure_anthropic": "/anthropic"}
_VERSIONS = ("2023-06-01", "2026-10-21")
_STOP_REASONS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal"}
_CHOICES = {"none": "none", "auto": "auto", "any": "required"}
_ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    422: "invalid_request_error",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}

Json = dict[str, Any]


class AnthropicFake:
    can = Can(signatures=True)

    def __init__(self, provider: str = "anthropic") -> None:
        self.provider = provider

    def credentials(self, base_url: str) -> Credentials:
        return Credentials(1, self.provider, base_url, "sk-ant-api03-canary-of-the-messages-api")

    def whole(self, story: Story) -> Reply:
        stop_reason = _STOP_REASONS[story.finish]
        answer = {**_head(story), "content": _content(story), "stop_reason": stop_reason, "usage": _usage(story.usage)}
        return Reply(200, _JSON, json.dumps(answer, ensure_ascii=False).encode())

    def stream(self, story: Story) -> Streamed:
        stop = {"stop_reason": _STOP_REASONS[story.finish], "stop_sequence": None}
        end = (
            _event("message_delta", delta=stop, usage=_usage(story.usage)),
            _event("message_stop"),
        )
        return Streamed(_SSE, (*_begin(story), *end))

    def failure(self, status: int, message: str, *, retry_after: int | None = None) -> Reply:
        waiting = {} if retry_after is None else {"retry-after": str(retry_after)}
        return Reply(status, {**_JSON, **waiting}, json.dumps(_error(status, message)).encode())

    def stream_failure(self, story: Story, message: str) -> Streamed:
        begun = tuple(_begin(story)) if story != Story() else ()
        return Streamed(_SSE, (*begun, _sse("error", _error(529, message))))

    def read(self, path: str, headers: Mapping[str, str], body: bytes) -> ReadRequest:
        assert path.partition("?")[0] == f"{_PATHS.get(self.provider, '')}/v1/messages", path
        assert headers.get("anthropic-version") in _VERSIONS, headers.get("anthropic-version")
        assert headers.get("content-type", "").startswith("application/json")
        # Today's official SDK sends the key as a bearer token; the vendor accepts both headers.
        secret = headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ")
        assert secret, "x-api-key header is required"
        fields: Json = json.loads(body)
        rules.MESSAGES.check(Request(fields, str(fields.get("model")), headers))
        return _understood(fields, secret)


def _head(story: Story) -> Json:
    return {
        "id": f"msg_01{story.id}",
        "type": "message",
        "role": "assistant",
        "model": story.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
    }


def _usage(usage: Usage) -> Json:
    """Tokens read from or written to the cache are not part of `input_tokens`."""
    return {
        "input_tokens": usage.prompt_tokens - usage.cache_read_tokens - usage.cache_write_tokens,
        "cache_read_input_tokens": usage.cache_read_tokens,
        "cache_creation_input_tokens": usage.cache_write_tokens,
        "output_tokens": usage.completion_tokens,
        "output_tokens_details": {"thinking_tokens": usage.reasoning_tokens},
    }


def _content(story: Story) -> list[Json]:
    content: list[Json] = []
    if story.reasoning or story.signature:
        rules.sign(story.signature, story.reasoning)
        content.append({"type": "thinking", "thinking": story.reasoning, "signature": story.signature})
    if story.text:
        content.append({"type": "text", "text": story.text})
    for position, call in enumerate(story.calls):
        call_id = call.id or f"toolu_{position}"
        content.append({"type": "tool_use", "id": call_id, "name": call.name, "input": dict(call.arguments)})
    return content


def _begin(story: Story) -> Iterator[bytes]:
    usage = {**_usage(story.usage), "output_tokens": 1}
    del usage["output_tokens_details"]
    yield _event("message_start", message={**_head(story), "usage": usage})
    yield _event("ping")
    for index, block in enumerate(_content(story)):
        yield _event("content_block_start", index=index, content_block=_empty(block))
        for delta in _deltas(block, story.pieces):
            yield _event("content_block_delta", index=index, delta=delta)
        yield _event("content_block_stop", index=index)


def _empty(block: Json) -> Json:
    match block["type"]:
        case "text":
            return {"type": "text", "text": ""}
        case "thinking":
            return {"type": "thinking", "thinking": "", "signature": ""}
    return {**block, "input": {}}


def _deltas(block: Json, pieces: int) -> Iterator[Json]:
    match block["type"]:
        case "text":
            yield from ({"type": "text_delta", "text": piece} for piece in _pieces(block["text"], pieces))
        case "thinking":
            yield from ({"type": "thinking_delta", "thinking": piece} for piece in _pieces(block["thinking"], pieces))
            if block["signature"]:
                yield {"type": "signature_delta", "signature": block["signature"]}
        case "tool_use":
            yield {"type": "input_json_delta", "partial_json": ""}
            if block["input"]:
                arguments = json.dumps(block["input"], ensure_ascii=False)
                for piece in _pieces(arguments, pieces):
                    yield {"type": "input_json_delta", "partial_json": piece}


def _pieces(text: str, count: int) -> list[str]:
    size = max(1, -(-len(text) // count))
    return [text[start : start + size] for start in range(0, len(text), size)]


def _event(kind: str, **fields: Any) -> bytes:
    return _sse(kind, {"type": kind, **fields})


def _sse(name: str, data: Json) -> bytes:
    return f"event: {name}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n".encode()


def _error(status: int, message: str) -> Json:
    return {
        "type": "error",
        "error": {"type": _ERRORS.get(status, "api_error"), "message": message},
        "request_id": "req_fake",
    }


def _blocks(message: Json) -> list[Json]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _understood(fields: Json, secret: str) -> ReadRequest:
    messages = fields["messages"]
    everything = [block for message in messages for block in _with_results(_blocks(message))]
    config = fields.get("output_config") or {}
    return ReadRequest(
        model=fields["model"],
        stream=fields.get("stream", False),
        system=_text(fields.get("system", "")),
        turns=tuple((message["role"], text) for message in messages if (text := _text(message["content"]))),
        images=tuple(_source(block) for block in everything if block["type"] == "image"),
        documents=tuple(_source(block) for block in everything if block["type"] == "document"),
        tools=tuple(tool.get("name", tool.get("type", "")) for tool in fields.get("tools", ())),
        calls=tuple(Call(b["id"], b["name"], b["input"]) for b in everything if b["type"] == "tool_use"),
        results=tuple(
            (b["tool_use_id"], _text(b.get("content", ""))) for b in everything if b["type"] == "tool_result"
        ),
        tool_choice=_choice(fields.get("tool_choice")),
        schema=(config.get("format") or {}).get("schema"),
        stop=tuple(fields.get("stop_sequences", ())),
        max_tokens=fields["max_tokens"],
        temperature=fields.get("temperature"),
        top_p=fields.get("top_p"),
        signatures=tuple(b["signature"] for b in everything if b["type"] == "thinking"),
        secret=secret,
    )


def _with_results(blocks: Iterable[Json]) -> Iterator[Json]:
    for block in blocks:
        yield block
        if block["type"] == "tool_result" and isinstance(block.get("content"), list):
            yield from block["content"]


def _text(content: str | list[Json]) -> str:
    if isinstance(content, str):
        return content
    return "".join(block["text"] for block in content if block["type"] == "text")


def _source(block: Json) -> tuple[str, bytes | str]:
    source = block["source"]
    match source["type"]:
        case "base64":
            return source["media_type"], base64.b64decode(source["data"], validate=True)
        case "text":
            return source["media_type"], source["data"].encode()
        case "url":
            return "url", source["url"]
    return "file", source["file_id"]


def _choice(choice: Json | None) -> str:
    if choice is None:
        return ""
    return f"function:{choice['name']}" if choice["type"] == "tool" else _CHOICES[choice["type"]]


FAKE = AnthropicFake()
FOUNDRY_FAKE = AnthropicFake("azure_anthropic")
