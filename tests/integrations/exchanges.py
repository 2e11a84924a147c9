"""Invented exchanges of the OpenAI dialect, and helpers that run them through an adapter."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from integrations.capabilities.lookup import max_output_of
from integrations.providers.base import ChatRequest, Credentials, StreamEvent, StreamTranslator
from integrations.registry import adapter_for

USAGE = {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}


def credentials(provider: str = "openai", base_url: str = "", key: str = "sk-test", **extra: str) -> Credentials:
    return Credentials(integration_id=1, provider=provider, base_url=base_url, secret=key, extra=extra)


def chat_request(model: str = "gpt-4o", **fields: Any) -> ChatRequest:
    """Returns a request for `model` upstream; the client's own name for it is `fields["model"]`, by default the
    same."""
    body = {"model": model, "messages": [{"role": "user", "content": "Grüße 👋"}], **fields}
    return ChatRequest(
        model=model,
        stream=bool(body.get("stream")),
        body=json.dumps(body, ensure_ascii=False).encode(),
        fields=body,
    )


def listed_request(provider: str, model: str, **fields: Any) -> ChatRequest:
    """Returns a request for `model` with its largest output as the catalogs list it, as the pipeline fills it in."""
    return replace(chat_request(model, **fields), max_output=max_output_of(provider, model))


def completion(**changes: Any) -> dict[str, Any]:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1700000000,
        "model": "gpt-4o-2024-08-06",
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": "Hallo 👋"}, "finish_reason": "stop"},
        ],
        "usage": dict(USAGE),
        **changes,
    }


def chunk(
    delta: Mapping[str, Any] | None = None, *, index: int = 0, finish: str | None = None, **more: Any
) -> dict[str, Any]:
    choices = [] if delta is None else [{"index": index, "delta": dict(delta), "finish_reason": finish}]
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1700000000,
        "model": "gpt-4o-2024-08-06",
        "choices": choices,
        **more,
    }


def sse(*chunks: Mapping[str, Any] | str, done: bool = True) -> bytes:
    lines = [f"data: {item if isinstance(item, str) else json.dumps(item, ensure_ascii=False)}\n\n" for item in chunks]
    return "".join([*lines, *(["data: [DONE]\n\n"] if done else [])]).encode()


def translator(provider: str = "openai", model: str = "gpt-4o") -> StreamTranslator:
    return adapter_for(provider).stream(chat_request(model, stream=True))


def run(stream: StreamTranslator, pieces: Iterable[bytes]) -> list[StreamEvent]:
    events: list[StreamEvent] = []
    for piece in pieces:
        events += stream.feed(piece)
    return events + stream.closing()


def decoded(events: Iterable[StreamEvent]) -> list[dict[str, Any]]:
    return [json.loads(event.data) for event in events]
