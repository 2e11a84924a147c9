"""A request's messages and its answer as span attributes gen_ai.input.messages and gen_ai.output.messages.

https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-spans/
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from analytics.conversation.requests import read_request
from analytics.conversation.responses import read_response
from analytics.conversation.turns import Part, PartKind, Turn

# A longer text is cut, and of a longer conversation the latest messages are kept.
MAX_PART_CHARACTERS = 64 * 1024
MAX_CHARACTERS = 256 * 1024


def message_attributes(request: bytes, response: bytes, finish_reason: str) -> dict[str, str]:
    asked = read_request(request.decode("utf-8", "replace")).turns if request else ()
    answered = read_response(response.decode("utf-8", "replace")) if response else ()
    found = {
        "gen_ai.input.messages": _json(asked),
        "gen_ai.output.messages": _json(answered, {"finish_reason": finish_reason}),
    }
    return {name: text for name, text in found.items() if text}


def _json(turns: Iterable[Turn], fields: Mapping[str, str] | None = None) -> str:
    kept: list[str] = []
    size = 0
    for turn in reversed(list(turns)):
        value = {"role": turn.role, "parts": list(_parts(turn.parts)), **(fields or {})}
        message = json.dumps(value, ensure_ascii=False)
        size += len(message)
        if kept and size > MAX_CHARACTERS:
            break
        kept.append(message)
    return f"[{','.join(reversed(kept))}]" if kept else ""


def _parts(parts: Iterable[Part]) -> Iterator[Mapping[str, Any]]:
    for part in parts:
        match part.kind:
            case PartKind.TEXT | PartKind.REFUSAL:
                yield {"type": "text", "content": _cut(part.text)}
            case PartKind.THINKING:
                yield {"type": "reasoning", "content": _cut(part.text)}
            case PartKind.TOOL_CALL:
                yield {"type": "tool_call", "id": part.call_id, "name": part.name, "arguments": _arguments(part.text)}
            case PartKind.TOOL_RESULT:
                yield {"type": "tool_call_response", "id": part.call_id, "response": _cut(part.text)}
            case PartKind.IMAGE if part.url:
                yield {"type": "uri", "modality": "image", "uri": _cut(part.url)}
            case PartKind.IMAGE:
                # An image of megabytes is not sent along.
                yield {"type": "text", "content": f"[{part.media_type or 'image'}]"}


def _arguments(text: str) -> Any:
    cut = _cut(text)
    try:
        return json.loads(cut)
    except (ValueError, RecursionError):
        return cut


def _cut(text: str) -> str:
    return text if len(text) <= MAX_PART_CHARACTERS else f"{text[:MAX_PART_CHARACTERS]}…"
