"""Claude's own blocks in an assistant's message, for other vendors: as text if possible, else named in a warning.

An answer of Claude may hold a summary of the conversation, and calls and results of the vendor's tools. Clients send
them back (`integrations/providers/anthropic/blocks.py`), also to other models.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from integrations.providers.base import ChatRequest
from integrations.providers.common.search import find

_FIELD = "provider_specific_fields"
OWN_BLOCKS = b'"provider_specific_fields"'
"""What stands in the body of every request that has such blocks."""
# The message itself has these; a boundary between two models says nothing to a third.
_EXPRESSED = frozenset({"text", "thinking", "redacted_thinking", "tool_use", "reference", "fallback"})
_CALLS = ("server_tool_use", "mcp_tool_use")
_RESULT = "_tool_result"
# The readable fields of results, in the order in which they are written.
_READABLE = ("title", "url", "text", "stdout", "stderr", "error_code", "content", "source", "data")
_BINARY = ("base64", "image")

_decode = msgspec.json.Decoder(dict[str, Any]).decode
_encode = msgspec.json.Encoder().encode

Json = Mapping[str, Any]


def summary_text(summary: str) -> str:
    return f"<summary_of_the_conversation_so_far>\n{summary}\n</summary_of_the_conversation_so_far>"


def carried(request: ChatRequest) -> ChatRequest:
    if find(request.body, OWN_BLOCKS) < 0:
        return request
    fields = _decode(request.body)
    names: dict[str, None] = {}
    messages = [_message(message, names) for message in fields["messages"]]
    if messages == fields["messages"]:
        return request
    body = _encode({**fields, "messages": messages})
    warnings = tuple(f"messages.content.{name}: dropped, only Claude knows blocks of this type" for name in names)
    return msgspec.structs.replace(
        request, body=body, fields=_decode(body), is_plain=False, warnings=request.warnings + warnings
    )


def _message(message: Any, names: dict[str, None]) -> Any:
    specific = message.get(_FIELD) if isinstance(message, Mapping) else None
    content = specific.get("content") if isinstance(specific, Mapping) else None
    own = [block for block in content if _is_own(block)] if isinstance(content, list) else []
    if not own:
        return message
    texts = []
    for block in own:
        if text := _text_of(block):
            texts.append(text)
        else:
            names[block["type"]] = None
    rest = {name: value for name, value in message.items() if name != _FIELD}
    return {**rest, "content": _before(texts, message.get("content"))}


def _is_own(block: Any) -> bool:
    return isinstance(block, Mapping) and isinstance(block.get("type"), str) and block["type"] not in _EXPRESSED


def _before(texts: list[str], content: Any) -> Any:
    if not texts:
        return content
    if isinstance(content, list):
        return [*({"type": "text", "text": text} for text in texts), *content]
    return "\n\n".join([*texts, content] if content else texts)


def _text_of(block: Json) -> str:
    kind, content = block["type"], block.get("content")
    if kind == "compaction":
        return summary_text(content) if isinstance(content, str) and content else ""
    if kind in _CALLS:
        return (
            f"<call_of_{block.get('name')}>{_encode(block.get('input') or {}).decode()}</call_of_{block.get('name')}>"
        )
    if kind.endswith(_RESULT):
        text = "\n".join(_readable(content))
        return f"<{kind}>\n{text}\n</{kind}>" if text else ""
    return ""


def _readable(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        if value:
            yield value
    elif isinstance(value, Mapping):
        if value.get("type") in _BINARY:
            return
        for name in _READABLE:
            yield from _readable(value.get(name))
    elif isinstance(value, Iterable):
        for one in value:
            yield from _readable(one)
