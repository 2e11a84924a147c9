"""Reads the content of messages: texts, images, thinking, tool calls and their results, of all client protocols.

Chat completions: https://platform.openai.com/docs/api-reference/chat/create
Responses: https://platform.openai.com/docs/api-reference/responses/create
Messages: https://platform.claude.com/docs/en/api/messages
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from analytics.conversation.bodies import as_json, clean, text_of
from analytics.conversation.turns import Part, PartKind

_BASE64 = ";base64,"


def content_parts(content: Any) -> Iterator[Part]:
    for item in content if isinstance(content, list) else [content]:
        if isinstance(item, dict):
            yield from _part(item)
        elif item not in (None, ""):
            yield Part(PartKind.TEXT if isinstance(item, str) else PartKind.RAW, text_of(item))


def tool_calls(calls: Any) -> Iterator[Part]:
    for call in calls if isinstance(calls, list) else [calls]:
        function = call.get("function", call.get("custom")) if isinstance(call, dict) else None
        if isinstance(function, dict):
            yield tool_call(function.get("name"), function.get("arguments", function.get("input")), call.get("id"))
        elif call is not None:
            yield raw(call, "tool_call")


def tool_call(name: Any, arguments: Any, call_id: Any) -> Part:
    return Part(PartKind.TOOL_CALL, text_of(arguments), name=text_of(name), call_id=text_of(call_id))


def tool_result(content: Any, call_id: Any, *, is_error: bool = False) -> Iterator[Part]:
    parts = list(content_parts(content))
    text = "\n".join(part.text for part in parts if part.kind is PartKind.TEXT)
    yield Part(PartKind.TOOL_RESULT, text, call_id=text_of(call_id), is_error=is_error)
    yield from (part for part in parts if part.kind is not PartKind.TEXT)


def thinking(text: Any) -> Iterator[Part]:
    texts = [part.text for part in content_parts(text) if part.text]
    if texts:
        yield Part(PartKind.THINKING, "\n\n".join(texts))


def raw(value: Any, name: str = "") -> Part:
    return Part(PartKind.RAW, text_of(value), name=name)


def _part(part: Mapping[str, Any]) -> Iterator[Part]:
    kind = part.get("type")
    read = _READERS.get(kind) if isinstance(kind, str) else None
    found = list(read(part)) if read else []
    if found:
        yield from found
    elif not isinstance(kind, str) and isinstance(part.get("text"), str):
        yield Part(PartKind.TEXT, clean(part["text"]))
    elif read is None or not _is_empty(part):
        yield raw(dict(part), kind if isinstance(kind, str) else "")


def _is_empty(part: Mapping[str, Any]) -> bool:
    return all(value in ("", None, [], {}) for name, value in part.items() if name != "type")


def _text(part: Mapping[str, Any]) -> Iterator[Part]:
    text = part.get("text")
    if isinstance(text, str) and text:
        yield Part(PartKind.TEXT, clean(text))


def _refusal(part: Mapping[str, Any]) -> Iterator[Part]:
    if part.get("refusal"):
        yield Part(PartKind.REFUSAL, text_of(part["refusal"]))


def _thinking(part: Mapping[str, Any]) -> Iterator[Part]:
    found = [piece for field in ("thinking", "summary", "content", "reasoning") for piece in thinking(part.get(field))]
    yield from found or [raw(dict(part), str(part["type"]))]


def _image(part: Mapping[str, Any]) -> Iterator[Part]:
    source = part.get("image_url", part.get("source"))
    if isinstance(source, dict):
        if isinstance(source.get("data"), str):
            yield Part(PartKind.IMAGE, media_type=text_of(source.get("media_type")), data=source["data"])
            return
        source = source.get("url")
    if isinstance(source, str) and source:
        yield image_at(source)


def image_at(url: str) -> Part:
    head, found, data = url.partition(_BASE64)
    if found and head[:5].lower() == "data:":
        return Part(PartKind.IMAGE, media_type=clean(head[5:]), data=data)
    return Part(PartKind.IMAGE, url=clean(url))


def _tool_use(part: Mapping[str, Any]) -> Iterator[Part]:
    arguments = part.get("input", part.get("arguments"))
    yield tool_call(part.get("name"), arguments, part.get("call_id", part.get("id")))


def _tool_result(part: Mapping[str, Any]) -> Iterator[Part]:
    content = part.get("content", part.get("output"))
    call_id = part.get("tool_use_id", part.get("call_id"))
    yield from tool_result(content, call_id, is_error=part.get("is_error") is True)


def _document(part: Mapping[str, Any]) -> Iterator[Part]:
    yield raw({name: _without_data(value) for name, value in part.items()}, str(part["type"]))


def _without_data(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {
        name: f"{len(inner)} characters" if name in _DATA and isinstance(inner, str) else inner
        for name, inner in value.items()
    }


_DATA = frozenset({"data", "file_data"})
_READERS: Mapping[str, Callable[[Mapping[str, Any]], Iterator[Part]]] = {
    **dict.fromkeys(("text", "input_text", "output_text", "summary_text", "reasoning_text"), _text),
    "refusal": _refusal,
    **dict.fromkeys(("thinking", "redacted_thinking", "reasoning"), _thinking),
    **dict.fromkeys(("image_url", "input_image", "image"), _image),
    **dict.fromkeys(("tool_use", "server_tool_use", "function_call", "custom_tool_call"), _tool_use),
    **dict.fromkeys(("tool_result", "function_call_output", "custom_tool_call_output"), _tool_result),
    **dict.fromkeys(("document", "input_file", "file", "input_audio"), _document),
}


def fields(message: Mapping[str, Any], known: frozenset[str]) -> Iterator[Part]:
    for name, value in message.items():
        if name not in known and value not in (None, "", [], {}):
            yield Part(PartKind.FIELD, as_json(value), name=text_of(name))
