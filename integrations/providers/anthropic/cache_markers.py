"""https://platform.claude.com/docs/en/build-with-claude/prompt-caching"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from integrations.providers.base import ChatRequest
from integrations.providers.common.cache_markers import has_own_markers, is_long_enough
from integrations.providers.common.claude import family_and_version, min_cached_tokens

Json = dict[str, Any]

_MARKER = {"cache_control": {"type": "ephemeral"}}
_encode = msgspec.json.Encoder().encode
# Thoughts and empty texts take no marker.
_MARKED_TYPES = frozenset({"text", "image", "document", "search_result", "tool_use", "tool_result"})


class _Block(msgspec.Struct):
    type: str = ""
    text: str = ""
    role: str = ""
    defer_loading: bool = False

    @property
    def takes_marker(self) -> bool:
        return self.type in _MARKED_TYPES and (self.type != "text" or bool(self.text.strip()))


class _Form(NamedTuple):
    """How the parts of a body are read. `text` returns None for a content of blocks."""

    items: Callable[[Any], Sequence[Any]]
    fields: Callable[[Any], Mapping[str, Any]]
    block: Callable[[Any], _Block]
    text: Callable[[Any], str | None]


def _block_of(fields: Mapping[str, Any]) -> _Block:
    kind, text, role = (str(fields.get(name)) for name in ("type", "text", "role"))
    return _Block(kind, text, role, bool(fields.get("defer_loading")))


_decode_text = msgspec.json.Decoder(str).decode
_OBJECTS = _Form(
    items=lambda items: items,
    fields=lambda fields: fields,
    block=_block_of,
    text=lambda content: content if isinstance(content, str) else None,
)
_BYTES = _Form(
    items=msgspec.json.Decoder(list[msgspec.Raw]).decode,
    fields=msgspec.json.Decoder(dict[str, msgspec.Raw]).decode,
    block=msgspec.json.Decoder(_Block).decode,
    text=lambda content: _decode_text(content) if bytes(content).lstrip().startswith(b'"') else None,
)


def wants_markers(request: ChatRequest) -> bool:
    """True if the project asks for markers, the client set none, and the request is long enough."""
    if not request.cache_markers or has_own_markers(request.body):
        return False
    return is_long_enough(request.body, min_cached_tokens(*family_and_version(request.model)))


def add_markers(body: Json) -> None:
    """Marks tools, system and turns of a request, given as JSON's own types. Lists and blocks of the body are replaced
    and not changed, since they may be the client's."""
    body.update(_marked(body, _OBJECTS))


def marked(request: ChatRequest) -> bytes:
    """Returns the body of a native request with markers; every other byte stays as the client sent it. Returns the same
    body if nothing is marked or the body is invalid."""
    if not wants_markers(request):
        return request.body
    try:
        return _encode(_marked(_BYTES.fields(request.body), _BYTES))
    except (msgspec.DecodeError, UnicodeDecodeError):
        return request.body


def _marked(fields: Mapping[str, Any], form: _Form) -> Json:
    found = {**fields}
    if "tools" in fields:
        tools = form.items(fields["tools"])
        # A tool that is loaded when it is searched for is no part of the prompt and takes no marker
        # (https://platform.claude.com/docs/en/agents-and-tools/tool-use/tool-search-tool).
        place = _last(tools, lambda tool: not form.block(tool).defer_loading)
        found["tools"] = fields["tools"] if place is None else _with_marker(tools, place, form)
    if "system" in fields:
        found["system"] = _marked_content(fields["system"], form)
    if "messages" in fields:
        messages = form.items(fields["messages"])
        for place in _turns([form.block(message).role for message in messages]):
            message = form.fields(messages[place])
            if "content" in message:
                made = {**message, "content": _marked_content(message["content"], form)}
                messages = _replaced(messages, place, made)
        found["messages"] = messages
    return found


def _marked_content(content: Any, form: _Form) -> Any:
    text = form.text(content)
    if text is not None:
        return [{"type": "text", "text": content, **_MARKER}] if text.strip() else content
    blocks = form.items(content)
    place = _last(blocks, lambda block: form.block(block).takes_marker)
    return content if place is None else _with_marker(blocks, place, form)


def _turns(roles: Sequence[str]) -> list[int]:
    last = len(roles) - 1
    before = [place for place in range(last) if roles[place] == "user"]
    return [*before[-1:], last] if roles else []


def _last(items: Sequence[Any], suits: Callable[[Any], bool]) -> int | None:
    return next((place for place in reversed(range(len(items))) if suits(items[place])), None)


def _with_marker(items: Sequence[Any], place: int, form: _Form) -> list[Any]:
    return _replaced(items, place, {**form.fields(items[place]), **_MARKER})


def _replaced(items: Sequence[Any], place: int, item: object) -> list[Any]:
    return [*items[:place], item, *items[place + 1 :]]
