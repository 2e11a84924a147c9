"""Reads the body of a request of any operation: its turns, tools, schema and parameters.

The body's fields decide, not the operation it was stored with. So a wrong guess shows JSON, and no body fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from analytics.conversation.bodies import as_json, decode_body, text_of
from analytics.conversation.content import content_parts, raw
from analytics.conversation.messages import UNKNOWN, item_turns, message_turn, unread
from analytics.conversation.turns import Conversation, Part, PartKind, Turn

_SYSTEM, _USER = "system", "user"


def read_request(body: str) -> Conversation:
    """A body that is not a JSON object, or is nested too deeply, is one turn with its text."""
    value = decode_body(body) if body else None
    if value is None:
        return Conversation()
    try:
        return _conversation(value) if isinstance(value, dict) else Conversation(unread(UNKNOWN, body))
    except RecursionError:
        return Conversation(unread(UNKNOWN, body))


def _conversation(value: Mapping[str, Any]) -> Conversation:
    turns = tuple(turn for name, read in _TURNS.items() if value.get(name) is not None for turn in read(value[name]))
    schema, schema_field = _schema(value)
    known = {*_TURNS, "tools", "functions", schema_field}
    return Conversation(
        turns=turns,
        tools=tuple(_tools(value)),
        schema=schema,
        parameters=tuple((text_of(name), as_json(given)) for name, given in value.items() if name not in known),
    )


def _system(value: Any) -> Iterator[Turn]:
    yield Turn(_SYSTEM, tuple(content_parts(value)))


def _messages(value: Any) -> Iterator[Turn]:
    for message in value if isinstance(value, list) else [value]:
        yield message_turn(message)


def _input(value: Any) -> Iterator[Turn]:
    if isinstance(value, list) and any(isinstance(item, dict) for item in value):
        yield from item_turns(value)
    else:
        yield from _texts(value)


def _texts(value: Any) -> Iterator[Turn]:
    if isinstance(value, list) and value and not any(isinstance(item, (str, dict)) for item in value):
        yield Turn(_USER, (raw(value, "tokens"),))
    else:
        yield Turn(_USER, tuple(content_parts(value)))


def _documents(value: Any) -> Iterator[Turn]:
    yield Turn("documents", tuple(content_parts(value)))


# The order is that of the turns: what a model reads first comes first.
_TURNS: Mapping[str, Callable[[Any], Iterator[Turn]]] = {
    "system": _system,
    "instructions": _system,
    "messages": _messages,
    "prompt": _texts,
    "suffix": _texts,
    "input": _input,
    "query": _texts,
    "documents": _documents,
}


def _tools(body: Mapping[str, Any]) -> Iterator[Part]:
    for name in ("tools", "functions"):
        tools = body.get(name)
        for tool in tools if isinstance(tools, list) else [tools]:
            if tool is not None:
                yield Part(PartKind.RAW, as_json(tool), name=_tool_name(tool))


def _tool_name(tool: Any) -> str:
    if not isinstance(tool, dict):
        return ""
    function = tool.get("function")
    named = function if isinstance(function, dict) else tool
    return text_of(named.get("name") or tool.get("type"))


def _schema(body: Mapping[str, Any]) -> tuple[str, str]:
    for name in ("response_format", "output_config", "text"):
        value = body.get(name)
        if isinstance(value, dict) and (name == "response_format" or isinstance(value.get("format"), dict)):
            return as_json(value), name
    return "", ""
