"""Invented answers of Converse and ConverseStream, and the adapter's reading of them."""

from __future__ import annotations

import json
from typing import Any

from integrations.providers.base import ChatRequest, StreamEvent
from integrations.providers.bedrock import ADAPTER
from integrations.providers.usage import Usage
from tests.integrations.bedrock_exchanges import bedrock_request, event

USAGE = {
    "inputTokens": 10,
    "outputTokens": 4,
    "totalTokens": 44,
    "cacheReadInputTokens": 25,
    "cacheWriteInputTokens": 5,
}
COUNTS = Usage(prompt_tokens=40, completion_tokens=4, cache_read_tokens=25, cache_write_tokens=5)
START, STOP = event("messageStart", role="assistant"), event("messageStop", stopReason="end_turn")
METADATA = event("metadata", usage=USAGE, metrics={"latencyMs": 1})


def choice_of(body: bytes, request: ChatRequest | None = None) -> dict[str, Any]:
    parsed = ADAPTER.parse_response(request or bedrock_request(), body)
    (choice,) = json.loads(parsed.body)["choices"]
    assert choice["finish_reason"] == parsed.finish_reason
    found: dict[str, Any] = choice
    return found


def run(*frames: bytes, request: ChatRequest | None = None) -> list[dict[str, Any]]:
    stream = ADAPTER.stream(request or bedrock_request(stream=True))
    events: list[StreamEvent] = []
    for piece in frames:
        events += stream.feed(piece)
    return [json.loads(item.data) for item in events + stream.closing()]


def deltas(*frames: bytes, **more: Any) -> list[dict[str, Any]]:
    return [chunk["choices"][0]["delta"] for chunk in run(*frames, **more)]


def delta(index: int = 0, **fields: Any) -> bytes:
    return event("contentBlockDelta", contentBlockIndex=index, delta=fields)


def ended(index: int) -> bytes:
    return event("contentBlockStop", contentBlockIndex=index)
