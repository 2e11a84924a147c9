from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from analytics.conversation.bodies import text_of
from analytics.conversation.content import content_parts, fields, raw, thinking, tool_call, tool_calls, tool_result
from analytics.conversation.turns import Part, PartKind, Turn

UNKNOWN = "unknown"
_ASSISTANT = "assistant"
_OF_TOOLS = frozenset({"tool", "function"})
_KNOWN_FIELDS = frozenset({
    "role", "content", "refusal", "reasoning_content", "reasoning", "tool_calls", "tool_call_id", "function_call",
    # Fields of items and blocks that say nothing to a reader.
    "type", "id", "status", "index",
})  # fmt: skip
# Items of Responses that models make; an item of another type is the client's.
_ITEMS = {"function_call_output": "tool", "custom_tool_call_output": "tool", "reasoning": _ASSISTANT}


def message_turn(message: Any, role: str = UNKNOWN) -> Turn:
    if not isinstance(message, dict):
        return Turn(role, tuple(content_parts(message)))
    given = message.get("role")
    role = text_of(given) or role
    return Turn(role, (*_of_message(message, role), *fields(message, _KNOWN_FIELDS)))


def _of_message(message: Mapping[str, Any], role: str) -> Iterator[Part]:
    yield from thinking(message.get("reasoning_content") or message.get("reasoning"))
    if role in _OF_TOOLS:
        yield from tool_result(message.get("content"), message.get("tool_call_id"))
    else:
        yield from content_parts(message.get("content"))
    if message.get("refusal"):
        yield Part(PartKind.REFUSAL, text_of(message["refusal"]))
    if message.get("tool_calls"):
        yield from tool_calls(message["tool_calls"])
    function = message.get("function_call")
    if isinstance(function, dict):
        yield tool_call(function.get("name"), function.get("arguments"), "")
    elif function:
        yield raw(function, "function_call")


def item_turns(items: Iterable[Any]) -> list[Turn]:
    """Everything that a model made in a row, calls and texts, is one turn, as in the other protocols."""
    turns: list[Turn] = []
    for item in items:
        turn = _item_turn(item)
        if turns and turn.role == turns[-1].role == _ASSISTANT:
            turn = Turn(_ASSISTANT, (*turns.pop().parts, *turn.parts))
        turns.append(turn)
    return turns


def _item_turn(item: Any) -> Turn:
    if not isinstance(item, dict):
        return Turn("user", tuple(content_parts(item)))
    kind = item.get("type")
    if kind in (None, "message") or not isinstance(kind, str):
        return message_turn(item, "user")
    return Turn(_ITEMS.get(kind, _ASSISTANT if kind.endswith("_call") else UNKNOWN), tuple(content_parts(item)))


def unread(role: str, body: str) -> tuple[Turn, ...]:
    return (Turn(role, (raw(body),)),)
