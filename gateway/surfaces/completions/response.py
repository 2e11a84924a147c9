"""Makes the completion of a text out of a chat completion."""

from __future__ import annotations

from typing import Any

import msgspec

from integrations.providers.common.surrogates import lenient

OBJECT = "text_completion"


class _Text(msgspec.Struct):
    content: str | None = None
    refusal: str | None = None


class Choice(msgspec.Struct):
    index: int = 0
    message: _Text | None = None
    delta: _Text | None = None
    finish_reason: str | None = None


class Completion(msgspec.Struct):
    """A chat completion, or a chunk of one."""

    model: str = ""
    created: int = 0
    choices: list[Choice] = []
    usage: dict[str, Any] | None = None


decode = lenient(msgspec.json.Decoder(Completion).decode)


def made_of(completion: Completion, request_id: str) -> dict[str, Any]:
    """Returns a completion, or a chunk of one. Calls of tools and reasoning have no place in it."""
    fields: dict[str, Any] = {
        "id": f"cmpl-{request_id}",
        "object": OBJECT,
        "created": completion.created,
        "model": completion.model,
        "choices": [_choice(choice) for choice in completion.choices],
    }
    return fields if completion.usage is None else {**fields, "usage": completion.usage}


def _choice(choice: Choice) -> dict[str, Any]:
    text = choice.message or choice.delta
    written = (text.content or text.refusal or "") if text is not None else ""
    return {"text": written, "index": choice.index, "logprobs": None, "finish_reason": choice.finish_reason}


def whole(completion: bytes, request_id: str) -> bytes:
    return msgspec.json.encode(made_of(decode(completion), request_id))
