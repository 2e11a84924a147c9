"""Reads the body of an answer of any operation as turns.

Answers are stored as chat completions, with streams assembled; operations without that form have their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from analytics.conversation.bodies import decode_body, text_of
from analytics.conversation.content import content_parts, fields, image_at, raw
from analytics.conversation.messages import item_turns, message_turn, unread
from analytics.conversation.turns import Part, PartKind, Turn

_ASSISTANT = "assistant"
_IN_CHOICE = frozenset({"index", "message", "text", "finish_reason", "delta"})


def read_response(body: str) -> tuple[Turn, ...]:
    value = decode_body(body) if body else None
    if value is None:
        return ()
    try:
        return tuple(_turns(value)) if isinstance(value, dict) else unread(_ASSISTANT, body)
    except RecursionError:
        return unread(_ASSISTANT, body)


def _turns(body: Mapping[str, Any]) -> Iterator[Turn]:
    if isinstance(body.get("choices"), list):
        for choice in body["choices"]:
            yield _choice(choice)
    elif isinstance(body.get("output"), list):
        yield from item_turns(body["output"])
    elif isinstance(body.get("content"), list) and isinstance(body.get("role"), str):
        yield Turn(text_of(body["role"]), tuple(content_parts(body["content"])))
    elif isinstance(body.get("data"), list):
        yield Turn(_ASSISTANT, tuple(part for item in body["data"] for part in _item(item)))
    elif isinstance(body.get("text"), str):
        yield Turn(_ASSISTANT, tuple(content_parts(body["text"])))
    elif body:
        yield Turn(_ASSISTANT, (raw(dict(body)),))


def _choice(choice: Any) -> Turn:
    if not isinstance(choice, dict):
        return Turn(_ASSISTANT, (raw(choice),))
    message = choice.get("message", choice.get("delta"))
    turn = message_turn(choice.get("text") if message is None else message, _ASSISTANT)
    return Turn(turn.role, (*turn.parts, *fields(choice, _IN_CHOICE)))


def _item(item: Any) -> Iterator[Part]:
    if not isinstance(item, dict):
        yield raw(item)
    elif isinstance(item.get("b64_json"), str):
        yield Part(PartKind.IMAGE, media_type="image/png", data=item["b64_json"])
        yield from content_parts(item.get("revised_prompt"))
    elif isinstance(item.get("url"), str):
        yield image_at(item["url"])
        yield from content_parts(item.get("revised_prompt"))
    elif "embedding" in item:
        yield Part(PartKind.RAW, _vector(item["embedding"]), name="embedding")
    else:
        yield raw(item)


def _vector(embedding: Any) -> str:
    return f"{len(embedding)} numbers" if isinstance(embedding, list) else "1 embedding in base64"
