"""Stored messages in the form for a model: every call with its result, data fenced, within the model's limit.

Works for any conversation, also one that broke off in the middle. Pure: takes rows, queries no database.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent.models import CALL_ID_CHARACTERS, Message, Role
from agent.turn.deltas import read_arguments
from agent.turn.fence import Fence

ChatMessage = dict[str, Any]

INTERRUPTED = json.dumps(
    {
        "error": {
            "type": "api_error",
            "code": "interrupted",
            "message": "The call was interrupted before it gave a result.",
        }
    }
)
LEFT_OUT = json.dumps({"left_out": "This result is no longer shown, to save room. Call the tool again if you need it."})
# OpenAI's pattern for names of functions; a model may have made up another name.
_NO_NAME = re.compile(r"[^a-zA-Z0-9_-]")
_NAME_CHARACTERS = 64


@dataclass(slots=True)
class Unit:
    message: ChatMessage
    results: list[ChatMessage] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)

    @property
    def is_user(self) -> bool:
        return bool(self.message["role"] == Role.USER)

    @property
    def size(self) -> int:
        return size_of(self.message) + sum(size_of(result) for result in self.results)

    def messages(self) -> list[ChatMessage]:
        return [self.message, *self.results]


def transcript(rows: Sequence[Message], fence: Fence, characters: int, *, with_calls: bool = True) -> list[ChatMessage]:
    """Returns at most `characters` of messages, unless the newest user's message alone is longer.

    `with_calls` False keeps only texts, for a request without tools: some providers then refuse a history of calls.
    """
    units = units_of(rows, fence)
    if not with_calls:
        units = [unit for unit in map(_without_calls, units) if unit is not None]
    units = trimmed(units, fence, characters)
    return [message for unit in units for message in unit.messages()]


def units_of(rows: Sequence[Message], fence: Fence) -> list[Unit]:
    units: list[Unit] = []
    given: dict[str, Message] = {}
    for row in reversed(rows):
        if row.role == Role.TOOL:
            given[row.tool_call_id] = row
        elif row.role == Role.USER:
            units.append(Unit(_user(row, fence)))
            given = {}
        else:
            if row.content or row.tool_calls:
                units.append(_answer(row, given, fence))
            given = {}
    units.reverse()
    return units


def trimmed(units: Sequence[Unit], fence: Fence, characters: int) -> list[Unit]:
    """Drops results of earlier questions first, oldest first, then whole units, then parts of the newest question. Its
    user's message always stays, and a user's message comes first."""
    newest = max((place for place, unit in enumerate(units) if unit.is_user), default=0)
    earlier, current = list(units[:newest]), list(units[newest:])
    over = sum(unit.size for unit in units) - characters
    over -= _shorten(earlier, fence, over)
    while earlier and (over > 0 or not earlier[0].is_user):
        over -= earlier.pop(0).size
    over -= _shorten(current, fence, over)
    while over > 0 and len(current) > 2:
        over -= current.pop(1).size
    return earlier + current


def _shorten(units: Iterable[Unit], fence: Fence, over: int) -> int:
    saved = 0
    for unit in units:
        for result, source in zip(unit.results, unit.sources, strict=True):
            if saved >= over:
                return saved
            short = fence.around(source, LEFT_OUT)
            if len(short) < len(result["content"]):
                saved += len(result["content"]) - len(short)
                result["content"] = short
    return saved


def size_of(message: ChatMessage) -> int:
    calls = sum(len(call["function"]["arguments"]) + 100 for call in message.get("tool_calls") or ())
    reasoning = len(json.dumps(message["reasoning_details"])) if "reasoning_details" in message else 0
    return len(message["content"] or "") + len(message.get("reasoning_content") or "") + reasoning + calls


def _without_calls(unit: Unit) -> Unit | None:
    if not unit.results:
        return unit
    if not unit.message["content"]:
        return None
    # A provider's signature covers the calls too, so it is removed with them.
    return Unit({"role": "assistant", "content": unit.message["content"]})


def _user(row: Message, fence: Fence) -> ChatMessage:
    content = row.content
    if row.page_context:
        shown = json.dumps(row.page_context, ensure_ascii=False)
        content = f"{content}\n\nThe page that I look at:\n{fence.around('page', shown)}"
    return {"role": "user", "content": content}


def _answer(row: Message, given: dict[str, Message], fence: Fence) -> Unit:
    message: ChatMessage = {"role": "assistant", "content": row.content or None, **(row.reasoning or {})}
    if row.tool_calls:
        message["tool_calls"] = [_call(call) for call in row.tool_calls]
    unit = Unit(message)
    for call in message.get("tool_calls", ()):
        result, source = given.get(call["id"][:CALL_ID_CHARACTERS]), f"tool:{call['function']['name']}"
        content = fence.around(source, result.content if result is not None else INTERRUPTED)
        unit.results.append({"role": "tool", "tool_call_id": call["id"], "content": content})
        unit.sources.append(source)
    return unit


def _call(call: dict[str, Any]) -> dict[str, Any]:
    name = _NO_NAME.sub("_", call["function"]["name"])[:_NAME_CHARACTERS] or "unnamed"
    arguments = call["function"]["arguments"] if read_arguments(call) is not None else ""
    return {**call, "function": {"name": name, "arguments": arguments or "{}"}}
