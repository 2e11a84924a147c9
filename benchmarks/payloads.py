"""The bytes that mock and load driver share: requests of a given size, the 1.5 KB answer, the stream's events."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

MODEL = "mock"
ANSWER_BYTES = 1536
# No request contains these texts: finding one in a gateway's answer proves that the mock's answer arrived.
ANSWER_END = b"the-answer-ends-here"
EVENT_WORD = b"streamedword"
STREAM_END = b"data: [DONE]"
PROMPT_TOKENS = 250
ANSWER_TOKENS = 300

_CREATED = 1_760_000_000


def answer() -> bytes:
    """Returns a chat completion of exactly ANSWER_BYTES bytes with usage."""
    filling = ANSWER_BYTES - len(_answer_with(""))
    return _answer_with(("The quick brown fox jumps over the lazy dog. " * 40)[:filling])


def _answer_with(text: str) -> bytes:
    message = {"role": "assistant", "content": text + ANSWER_END.decode(), "refusal": None}
    return _json(
        {
            "id": "chatcmpl-mock0000000000000000000000",
            "object": "chat.completion",
            "created": _CREATED,
            "model": MODEL,
            "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}],
            "usage": _usage(ANSWER_TOKENS),
        }
    )


def event(delta: dict[str, str], finish_reason: str | None = None) -> bytes:
    """Returns one server-sent event of a stream."""
    return _event([{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}])


def usage_event(completion_tokens: int) -> bytes:
    """Returns the event with usage and no choice, which `stream_options.include_usage` requests."""
    return _event([], usage=_usage(completion_tokens))


def anthropic_answer() -> bytes:
    """Returns the same answer, with the same text, in the form of Anthropic's Messages API."""
    text = json.loads(answer())["choices"][0]["message"]["content"]
    return _json(
        {
            "id": "msg_mock0000000000000000000000",
            "type": "message",
            "role": "assistant",
            "model": MODEL,
            "content": [{"type": "text", "text": text}],
            "stop_reason": "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": PROMPT_TOKENS, "output_tokens": ANSWER_TOKENS},
        }
    )


def anthropic_opening() -> bytes:
    """Returns the events before the first word."""
    message = json.loads(anthropic_answer()) | {"content": [], "stop_reason": None}
    block = {"type": "text", "text": ""}
    return _named_event("message_start", message=message) + _named_event(
        "content_block_start", index=0, content_block=block
    )


def anthropic_word() -> bytes:
    delta = {"type": "text_delta", "text": " " + EVENT_WORD.decode()}
    return _named_event("content_block_delta", index=0, delta=delta)


def anthropic_ending(completion_tokens: int) -> bytes:
    """Returns the events behind the last word, usage among them."""
    return (
        _named_event("content_block_stop", index=0)
        + _named_event(
            "message_delta",
            delta={"stop_reason": "end_turn", "stop_sequence": None},
            usage={"output_tokens": completion_tokens},
        )
        + _named_event("message_stop")
    )


def models() -> bytes:
    entry = {"id": MODEL, "object": "model", "created": _CREATED, "owned_by": "mock"}
    return _json({"object": "list", "data": [entry]})


def request_body(
    model: str, *, size: int = 1024, stream_events: int = 0, more: Mapping[str, Any] | None = None
) -> bytes:
    """Returns a chat completion request of `size` bytes; with `stream_events` it requests a stream of that many words.
    `more` are further fields; a `prompt_config` among them takes the place of the system message."""
    fields: dict[str, Any] = {"model": model, "temperature": 0.5, "max_tokens": stream_events or 256, **(more or {})}
    if stream_events:
        fields |= {"stream": True, "stream_options": {"include_usage": True}}
    filling = size - len(_request_with(fields, ""))
    return _request_with(fields, ("Tell me about the sea and the ships on it. " * (size // 43 + 1))[: max(filling, 1)])


def _request_with(fields: dict[str, Any], text: str) -> bytes:
    system = [] if "prompt_config" in fields else [{"role": "system", "content": "You are a helpful assistant."}]
    return _json({**fields, "messages": [*system, {"role": "user", "content": text}]})


def _event(choices: list[dict[str, Any]], **extra: Any) -> bytes:
    chunk = {
        "id": "chatcmpl-mock0000000000000000000000",
        "object": "chat.completion.chunk",
        "created": _CREATED,
        "model": MODEL,
        "system_fingerprint": "fp_mock",
        "choices": choices,
        **extra,
    }
    return b"data: " + _json(chunk) + b"\n\n"


def _named_event(name: str, **fields: Any) -> bytes:
    return b"event: " + name.encode() + b"\ndata: " + _json({"type": name, **fields}) + b"\n\n"


def _usage(completion_tokens: int) -> dict[str, int]:
    return {
        "prompt_tokens": PROMPT_TOKENS,
        "completion_tokens": completion_tokens,
        "total_tokens": PROMPT_TOKENS + completion_tokens,
    }


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
