"""The six events of a chat's stream (docs/agent.md#a-chat)."""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

import msgspec

from gateway.protocol import sse


class Event(msgspec.Struct, frozen=True, tag_field="type"):
    """The base of the events, encoded as one `data:` line; `type` is the event's name."""

    last: ClassVar[bool] = False

    def framed(self) -> bytes:
        return sse.frame(msgspec.json.encode(self))


class ConversationCreated(Event, frozen=True, tag="conversation_created"):
    conversation_id: UUID


class TextDelta(Event, frozen=True, tag="text_delta"):
    content: str


class ToolStart(Event, frozen=True, tag="tool_start"):
    call_id: str
    name: str


class ToolResult(Event, frozen=True, tag="tool_result"):
    """The result of a tool call. `content` is JSON text; a failure's is `{"error": {type, code, message}}`."""

    call_id: str
    content: str


class Done(Event, frozen=True, tag="done"):
    last: ClassVar[bool] = True


class ErrorEvent(Event, frozen=True, tag="error"):
    content: str
    last: ClassVar[bool] = True


AnyEvent = ConversationCreated | TextDelta | ToolStart | ToolResult | Done | ErrorEvent
