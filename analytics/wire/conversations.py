from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import count
from typing import Any, TypedDict
from uuid import UUID

from analytics.conversation.identity import SeenTurns
from analytics.conversation.images import sniff_part
from analytics.conversation.requests import read_request
from analytics.conversation.responses import read_response
from analytics.conversation.turns import Part, PartKind, Turn
from analytics.queries.bodies import BodiesRow
from analytics.queries.requests import Payload, RequestRow
from analytics.wire.requests import stored_body
from core.wire.shown import shown_as


class ConversationPart(TypedDict):
    """`characters` is the length of the whole text, of which `text` may be the beginning. `image` is the number of an
    image that is part of the bodies, `url` the address of one that is not."""

    kind: str
    text: str
    characters: int
    name: str
    call_id: str
    is_error: bool
    url: str | None
    media_type: str | None
    image: int | None


class ConversationTurn(TypedDict):
    role: str
    parts: list[ConversationPart]
    omitted_parts: int


class TextBounds:
    """Cuts texts to `each` characters, and to nothing once an answer has `total` characters."""

    def __init__(self, each: int, total: int, parts: int = 100) -> None:
        self.each = each
        self.parts = parts
        self._left = total

    def cut(self, text: str) -> str:
        shown = text[: max(min(self.each, self._left), 0)]
        self._left -= len(shown)
        return shown


def conversation_turns(turns: Iterable[Turn], bounds: TextBounds, images: Iterator[int]) -> list[ConversationTurn]:
    return [
        {
            "role": turn.role[: bounds.each],
            "parts": [_part(part, bounds, images) for part in turn.parts[: bounds.parts]],
            "omitted_parts": max(len(turn.parts) - bounds.parts, 0),
        }
        for turn in turns
    ]


def skip_images(turns: Sequence[Turn], images: Iterator[int]) -> None:
    """Counts the images of hidden turns, so that later ones keep their numbers."""
    for turn in turns:
        for part in turn.parts:
            if part.kind is PartKind.IMAGE and part.data:
                next(images)


def _part(part: Part, bounds: TextBounds, images: Iterator[int]) -> ConversationPart:
    return {
        "kind": str(part.kind),
        "text": bounds.cut(part.text),
        "characters": len(part.text),
        "name": part.name[:200],
        "call_id": part.call_id[:200],
        "is_error": part.is_error,
        "url": bounds.cut(part.url) or None,
        "media_type": sniff_part(part) or part.media_type[:200] or None,
        "image": next(images) if part.kind is PartKind.IMAGE and part.data else None,
    }


_MAX_TURNS = 200
_MAX_TOOLS = 100


class ToolDefinition(TypedDict):
    """A tool that the request offers: `definition` is its JSON, of which `characters` is the whole length."""

    name: str
    definition: str
    characters: int


class RequestConversation(TypedDict):
    """`omitted_turns` counts the first turns that are not shown. `answer` has a turn for each choice."""

    content_logged: bool
    omitted_turns: int
    turns: list[ConversationTurn]
    answer: list[ConversationTurn]
    tools: list[ToolDefinition]
    schema: Any
    parameters: dict[str, Any]


def request_conversation(payload: Payload | None, bounds: TextBounds) -> RequestConversation:
    request = read_request(payload.request if payload else "")
    answer = read_response(payload.response if payload else "")
    images = count()
    omitted = max(len(request.turns) - _MAX_TURNS, 0)
    skip_images(request.turns[:omitted], images)
    return {
        "content_logged": payload is not None,
        "omitted_turns": omitted,
        "turns": conversation_turns(request.turns[omitted:], bounds, images),
        "answer": conversation_turns(answer[:_MAX_TURNS], bounds, images),
        "tools": [
            {"name": tool.name[:200], "definition": bounds.cut(tool.text), "characters": len(tool.text)}
            for tool in request.tools[:_MAX_TOOLS]
        ],
        "schema": stored_body(bounds.cut(request.schema)),
        "parameters": {name: stored_body(bounds.cut(text)) for name, text in request.parameters},
    }


_MAX_NEW_TURNS = 100


class TranscriptEntry(TypedDict):
    """`turns` are those of the request that no earlier one of the session carried, `known_turns` counts the others.
    `note` says why there are none: `not_logged` or `too_large`; it is null for a request whose bodies were read."""

    request_id: UUID
    created_at: datetime
    operation: str
    provider: str
    model: str
    outcome: str
    status_code: int
    error_code: str | None
    latency_ms: int
    total_tokens: int
    cost_usd: float | None
    known_turns: int
    omitted_turns: int
    turns: list[ConversationTurn]
    answer: list[ConversationTurn]
    note: str | None


class SessionTranscript(TypedDict):
    results: list[TranscriptEntry]
    next_cursor: str | None


def transcript_entry(row: RequestRow, bodies: BodiesRow | None, seen: SeenTurns, bounds: TextBounds) -> TranscriptEntry:
    """Returns a request with its new turns, which become known to `seen`."""
    turns = read_request(bodies.request).turns if bodies else ()
    answer = read_response(bodies.response) if bodies else ()
    known = seen.add(turns, answer)
    images = count()
    skip_images(turns[:known], images)
    new = turns[known:]
    first = max(len(new) - _MAX_NEW_TURNS, 0)
    skip_images(new[:first], images)
    return shown_as(
        TranscriptEntry,
        row,
        created_at=row.ts,
        error_code=row.error_code or None,
        total_tokens=row.prompt_tokens + row.completion_tokens,
        cost_usd=float(row.cost_usd) if row.cost_known else None,
        known_turns=known,
        omitted_turns=first,
        turns=conversation_turns(new[first:], bounds, images),
        answer=conversation_turns(answer[:_MAX_NEW_TURNS], bounds, images),
        note=_note(bodies),
    )


def _note(bodies: BodiesRow | None) -> str | None:
    if bodies is None:
        return "not_logged"
    return "too_large" if bodies.is_left_out else None
