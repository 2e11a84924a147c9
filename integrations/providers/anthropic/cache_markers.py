"""Adds prompt-cache markers to a request of the Messages API
(https://platform.claude.com/docs/en/build-with-claude/prompt-caching)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from integrations.providers.anthropic.models import family_and_version
from integrations.providers.base import ChatRequest
from integrations.providers.common.cache_markers import claude_min_tokens, has_own_markers, is_long_enough

Json = dict[str, Any]

_MARKER = {"cache_control": {"type": "ephemeral"}}
_encode = msgspec.json.Encoder().encode
_decode_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_list = msgspec.json.Decoder(list[msgspec.Raw]).decode
# Thoughts and empty texts take no marker.
_MARKED_TYPES = frozenset({"text", "image", "document", "search_result", "tool_use", "tool_result"})


class _Block(msgspec.Struct):
    type: str = ""
    text: str = ""
    role: str = ""
    defer_loading: bool = False


_decode_block = msgspec.json.Decoder(_Block).decode
_decode_text = msgspec.json.Decoder(str).decode


def wants_markers(request: ChatRequest) -> bool:
    """Returns whether the project asks for markers, the client has set none, and the request is long enough."""
    if not request.cache_markers or has_own_markers(request.body):
        return False
    return is_long_enough(request.body, claude_min_tokens(*family_and_version(request.model)))


def add_markers(body: Json) -> None:
    """Marks tools, system and turns of a request, given as JSON's own types. Lists and blocks of the body are replaced
    and not changed, since they may be the client's."""
    tools, system, messages = body.get("tools"), body.get("system"), body["messages"]
    if tools and (place := _last(tools, _is_loaded)) is not None:
        body["tools"] = _replaced(tools, place, {**tools[place], **_MARKER})
    if system:
        body["system"] = _marked_content(system)
    for place in _turns([message["role"] for message in messages]):
        message = messages[place]
        messages = _replaced(messages, place, {**message, "content": _marked_content(message["content"])})
    body["messages"] = messages


def marked(request: ChatRequest) -> bytes:
    """Returns the body of a request in the client's own protocol with markers, in which everything else has the bytes
    that the client sent; the very body where none are added. A body that is not as the vendor takes it stays."""
    if not wants_markers(request):
        return request.body
    try:
        fields = _decode_fields(request.body)
        return _encode(_marked_fields(fields))
    except (msgspec.DecodeError, UnicodeDecodeError):
        return request.body


def _marked_fields(fields: dict[str, msgspec.Raw]) -> dict[str, object]:
    """Returns the fields with markers. Raises DecodeError for fields of other types than the vendor takes."""
    found: dict[str, object] = {**fields}
    if "tools" in fields:
        tools = _decode_list(fields["tools"])
        read = [_decode_block(tool) for tool in tools]
        place = next((index for index in reversed(range(len(read))) if not read[index].defer_loading), None)
        if place is not None:
            found["tools"] = _replaced(tools, place, {**_decode_fields(tools[place]), **_MARKER})
    if "system" in fields:
        found["system"] = _marked_raw(fields["system"])
    if "messages" in fields:
        messages = _decode_list(fields["messages"])
        marked_places = _turns([_decode_block(message).role for message in messages])
        found["messages"] = [
            _marked_message(message) if place in marked_places else message for place, message in enumerate(messages)
        ]
    return found


def _marked_message(message: msgspec.Raw) -> object:
    fields = _decode_fields(message)
    return {**fields, "content": _marked_raw(fields["content"])} if "content" in fields else message


def _turns(roles: Sequence[str]) -> list[int]:
    """Returns the places of the last message and of the user's message before it."""
    last = len(roles) - 1
    if last < 0:
        return []
    before = next((place for place in reversed(range(last)) if roles[place] == "user"), None)
    return [last] if before is None else [before, last]


def _marked_content(content: str | list[Json]) -> str | list[Json]:
    """Returns content whose last block is marked; the same content when no block takes a marker."""
    if isinstance(content, str):
        return [{"type": "text", "text": content, **_MARKER}] if content.strip() else content
    place = _last(content, _takes_marker)
    return content if place is None else _replaced(content, place, {**content[place], **_MARKER})


def _marked_raw(content: msgspec.Raw) -> object:
    """Returns what `_marked_content` does, of content whose bytes are kept."""
    if bytes(content).lstrip().startswith(b'"'):
        return [{"type": "text", "text": content, **_MARKER}] if _decode_text(content).strip() else content
    blocks = _decode_list(content)
    read = [_decode_block(block) for block in blocks]
    place = next((i for i in reversed(range(len(read))) if _is_markable(read[i].type, read[i].text)), None)
    return content if place is None else _replaced(blocks, place, {**_decode_fields(blocks[place]), **_MARKER})


def _last(blocks: Sequence[Mapping[str, Any]], suits: Any) -> int | None:
    return next((place for place in reversed(range(len(blocks))) if suits(blocks[place])), None)


def _is_loaded(tool: Mapping[str, Any]) -> bool:
    """Returns whether a tool is part of the prompt. One that is loaded when it is searched for takes no marker
    (https://platform.claude.com/docs/en/agents-and-tools/tool-use/tool-search-tool)."""
    return not tool.get("defer_loading")


def _takes_marker(block: Mapping[str, Any]) -> bool:
    return _is_markable(str(block.get("type")), str(block.get("text")))


def _is_markable(kind: str, text: str) -> bool:
    return kind in _MARKED_TYPES and (kind != "text" or bool(text.strip()))


def _replaced(items: Sequence[Any], place: int, item: object) -> list[Any]:
    return [*items[:place], item, *items[place + 1 :]]
