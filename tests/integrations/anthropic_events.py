"""Invented events of the Messages API, and the chunks that the adapter makes of them."""

from __future__ import annotations

import json
from typing import Any

from integrations.providers.anthropic import ADAPTER
from integrations.providers.base import StreamTranslator
from tests.integrations.exchanges import chat_request

USAGE = {"input_tokens": 9, "output_tokens": 1}
END = {"stop_reason": "end_turn", "stop_sequence": None}
Json = dict[str, Any]


def event(kind: str, **fields: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields}, ensure_ascii=False)}\n\n".encode()


def head(**changes: Any) -> bytes:
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x", "content": []}
    return event("message_start", message={**message, "usage": USAGE, **changes})


def block(index: int, start: Json, *deltas: Json) -> bytes:
    middle = b"".join(event("content_block_delta", index=index, delta=delta) for delta in deltas)
    return event("content_block_start", index=index, content_block=start) + middle + stop(index)


def stop(index: int) -> bytes:
    return event("content_block_stop", index=index)


def text(index: int, *pieces: str) -> bytes:
    return block(index, {"type": "text", "text": ""}, *({"type": "text_delta", "text": piece} for piece in pieces))


def translator() -> StreamTranslator:
    return ADAPTER.stream(chat_request("claude-x", stream=True))
