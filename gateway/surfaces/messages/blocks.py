from __future__ import annotations

from typing import Any

from gateway.protocol.marked_documents import MARK, UNTRUSTED
from gateway.protocol.message_sizes import check_file_size
from gateway.surfaces.checks import (
    Json,
    as_object,
    invalid,
    missing,
    optional_object,
    optional_text,
    required_name,
    required_object,
    required_text,
)

# A block of these types belongs to the answer of a model.
_OF_ASSISTANTS = frozenset({"tool_use", "thinking", "redacted_thinking"})


def type_of(block: Any, place: str) -> str:
    return required_name(as_object(block, place), "type", place)


def part_of(block: Json, place: str, untranslatable: list[str]) -> Json:
    """A block without a counterpart is returned unchanged, and `untranslatable` names it."""
    kind = type_of(block, place)
    match kind:
        case "text":
            return text_part(block, place)
        case "image":
            return _image(block, place, untranslatable)
        case "document":
            return _document(block, place, untranslatable)
        case "tool_reference":
            # Anthropic puts the tool's definition at this place, and other vendors get its name.
            required_name(block, "tool_name", place)
            return block
        case "tool_result":
            raise invalid(place, "a tool_result stands in the content of a message of the user")
    if kind in _OF_ASSISTANTS:
        raise invalid(place, f"a block of type {kind} belongs to a message of the assistant")
    untranslatable.append(f"{place}: a chat completion has no block of type {kind}")
    return block


def marked(made: Json, block: Json, place: str) -> Json:
    marker = optional_object(block, "cache_control", place)
    if marker is not None:
        made["cache_control"] = marker
    return made


def text_part(block: Json, place: str) -> Json:
    made: Json = {"type": "text", "text": required_text(block, "text", place)}
    if MARK in block:
        made[MARK] = block[MARK]
    return marked(made, block, place)


def content_of(parts: list[Json]) -> str | list[Json]:
    if not parts:
        return ""
    only = parts[0]
    return only["text"] if len(parts) == 1 and only["type"] == "text" and len(only) == 2 else parts


def _image(block: Json, place: str, untranslatable: list[str]) -> Json:
    source = required_object(block, "source", place)
    url = _address(source, f"{place}.source")
    if url is None:
        untranslatable.append(f"{place}.source: a chat completion has no source of type {source['type']}")
        return block
    return marked({"type": "image_url", "image_url": {"url": url}}, block, place)


def _document(block: Json, place: str, untranslatable: list[str]) -> Json:
    source = required_object(block, "source", place)
    citations = optional_object(block, "citations", place)
    title, context = optional_text(block, "title", place), optional_text(block, "context", place)
    url = _address(source, f"{place}.source")
    if citations is not None and citations.get("enabled"):
        untranslatable.append(f"{place}.citations: a chat completion has no citations of documents")
        return block
    if source["type"] == "text":
        text = required_text(source, "data", f"{place}.source")
        # The text is a document to guardrails, which a chat completion's text is not without this mark.
        part: Json = {"type": "text", "text": _with_head(text, title, context), MARK: UNTRUSTED}
        return marked(part, block, place)
    if url is None:
        untranslatable.append(f"{place}.source: a chat completion has no source of type {source['type']}")
        return block
    made: Json = {"type": "document_url", "document_url": {"url": url}}
    if title:
        made["name"] = title
    return marked(made, block, place)


def _with_head(text: str, title: str | None, context: str | None) -> str:
    return "\n\n".join([*(part for part in (title, context) if part), text])


def _address(source: Json, place: str) -> str | None:
    match required_name(source, "type", place):
        case "base64":
            media_type = required_name(source, "media_type", place)
            data = source.get("data")
            if data is None:
                raise missing(f"{place}.data")
            if not isinstance(data, str) or not data:
                raise invalid(f"{place}.data", "expected base64")
            check_file_size(f"{place}.data", len(data))
            return f"data:{media_type};base64,{data}"
        case "url":
            return required_name(source, "url", place)
    return None
