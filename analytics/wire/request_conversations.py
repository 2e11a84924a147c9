"""The JSON of what a request and its answer said, in one form for all client protocols."""

from __future__ import annotations

from itertools import count
from typing import Any, TypedDict

from analytics.conversation.requests import read_request
from analytics.conversation.responses import read_response
from analytics.queries.requests import Payload
from analytics.wire.conversations import ConversationTurn, TextBounds, conversation_turns, skip_images
from analytics.wire.requests import stored_body

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
