from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from integrations.sandbox import tokens
from integrations.sandbox.answers import Choice
from integrations.sandbox.behaviours import Behaviour

# A long answer streams in pieces of several tokens, so that the number of events stays readable.
_MAX_CONTENT_CHUNKS = 400
_ARGUMENT_CHARACTERS = 24


def usage(prompt: tuple[int, int], choices: Sequence[Choice]) -> dict[str, Any]:
    completion = sum(choice.tokens() for choice in choices)
    return {
        "prompt_tokens": prompt[0],
        "completion_tokens": completion,
        "total_tokens": prompt[0] + completion,
        "prompt_tokens_details": {"cached_tokens": prompt[1]},
        "completion_tokens_details": {"reasoning_tokens": sum(tokens.count(choice.reasoning) for choice in choices)},
    }


def error(message: str, error_type: str, code: str | None = None, param: str | None = None) -> dict[str, Any]:
    return {"error": {"message": message, "type": error_type, "param": param, "code": code}}


def failure(behaviour: Behaviour) -> dict[str, Any]:
    return error(behaviour.message, behaviour.error_type, behaviour.error_code)


def completion(request: Mapping[str, Any], choices: Sequence[Choice], used: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **_head(request, "chat.completion"),
        "choices": [
            {"index": index, "message": _message(choice), "logprobs": None, "finish_reason": choice.finish_reason}
            for index, choice in enumerate(choices)
        ],
        "usage": used,
    }


def chunks(
    request: Mapping[str, Any], choices: Sequence[Choice], used: Mapping[str, Any]
) -> Iterator[tuple[dict[str, Any], bool]]:
    """Yields (chunk, True if it carries output) for a stream, without `[DONE]`. With `stream_options.include_usage`
    every chunk has `usage`, null until an extra last one without choices, as OpenAI sends it."""
    with_usage = bool((request.get("stream_options") or {}).get("include_usage"))
    head = _head(request, "chat.completion.chunk")
    tail = {"usage": None} if with_usage else {}

    def chunk(index: int, delta: Mapping[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
        choice = {"index": index, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        return {**head, "choices": [choice], **tail}

    for index, choice in enumerate(choices):
        yield chunk(index, {"role": "assistant", "content": None if choice.tool_calls else "", "refusal": None}), False
        for delta in _deltas(choice):
            yield chunk(index, delta), True
        yield chunk(index, {}, choice.finish_reason), False
    if with_usage:
        yield {**head, "choices": [], "usage": used}, False


def _head(request: Mapping[str, Any], kind: str) -> dict[str, Any]:
    seed = request.get("seed")
    return {
        "id": f"chatcmpl-{uuid.uuid4().hex}",
        "object": kind,
        "created": int(time.time()),
        "model": str(request.get("model", "")),
        "system_fingerprint": "fp_sandbox" if seed is None else f"fp_sandbox_{seed}",
    }


def _message(choice: Choice) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": choice.text, "refusal": None}
    if choice.reasoning:
        message["reasoning_content"] = choice.reasoning
    if choice.tool_calls:
        message |= {"content": None, "tool_calls": choice.tool_calls}
    return message


def _deltas(choice: Choice) -> Iterator[dict[str, Any]]:
    for piece in tokens.pieces(choice.reasoning):
        yield {"reasoning_content": piece}
    parts = tokens.pieces(choice.text)
    size = len(parts) // _MAX_CONTENT_CHUNKS + 1
    for start in range(0, len(parts), size):
        yield {"content": "".join(parts[start : start + size])}
    for index, call in enumerate(choice.tool_calls):
        yield from _call_deltas(index, call)


def _call_deltas(index: int, call: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    kind = call["type"]
    body, text_key = call[kind], "arguments" if kind == "function" else "input"
    opening = {"index": index, "id": call["id"], "type": kind, kind: {"name": body["name"], text_key: ""}}
    yield {"tool_calls": [opening]}
    text = body[text_key]
    for start in range(0, len(text), _ARGUMENT_CHARACTERS):
        yield {"tool_calls": [{"index": index, kind: {text_key: text[start : start + _ARGUMENT_CHARACTERS]}}]}
