"""Invented answers and streams of Cohere, and the adapter's reading of them."""

from __future__ import annotations

import json
from typing import Any

from integrations.providers.base import ParsedResponse, StreamEvent
from integrations.providers.cohere import ADAPTER
from integrations.providers.usage import Usage
from tests.integrations.adapters.assembled import assembled
from tests.integrations.exchanges import chat_request, decoded, run, translator

REQUEST = chat_request("command-a-03-2025")
USAGE = {
    "billed_units": {"input_tokens": 5, "output_tokens": 3},
    "tokens": {"input_tokens": 20, "output_tokens": 4, "reasoning_tokens": 1},
    "cached_tokens": 16,
}
READ = Usage(20, 4, 16, 0, 1, billed_prompt_tokens=5, billed_completion_tokens=3)


def parsed(finish: str = "COMPLETE", usage: Any = USAGE, **message: Any) -> ParsedResponse:
    body = {"id": "i1", "message": {"role": "assistant", **message}, "finish_reason": finish, "usage": usage}
    return ADAPTER.parse_response(REQUEST, json.dumps(body).encode())


def choice_of(answer: ParsedResponse) -> dict[str, Any]:
    (choice,) = json.loads(answer.body)["choices"]
    found: dict[str, Any] = choice
    return found


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def event(kind: str, message: Any = None, **fields: Any) -> dict[str, Any]:
    delta = {} if message is None else {"delta": {"message": message}}
    return {"type": kind, **delta, **fields}


START = event("message-start", {"role": "assistant", "content": [], "tool_calls": [], "citations": []}, id="i1")


def text_delta(value: str, index: int = 0) -> dict[str, Any]:
    return event("content-delta", {"content": {"text": value}}, index=index)


def sse(*events: dict[str, Any] | str, done: bool = True) -> bytes:
    blocks = [
        f"data: {one}\n\n"
        if isinstance(one, str)
        else f"event: {one.get('type')}\ndata: {json.dumps(one, ensure_ascii=False)}\n\n"
        for one in events
    ]
    return "".join([*blocks, *(["data: [DONE]\n\n"] if done else [])]).encode()


def streamed(*events: dict[str, Any] | str) -> list[StreamEvent]:
    return run(translator("cohere"), [sse(*events)])


def streamed_choice(*events: dict[str, Any] | str) -> dict[str, Any]:
    return assembled(decoded(streamed(*events)))
