"""Reads answers of Mistral, whose content parts may be thoughts (https://docs.mistral.ai/capabilities/reasoning) and
references, which name the documents or results that a text is from (https://docs.mistral.ai/capabilities/citations).

`content` is the text alone, so an answer with references returns its parts unchanged and in order as
`provider_specific_fields.content`, and they go into the next request. The shared code of the OpenAI dialect turns the
text of thoughts into `reasoning_content`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from integrations.providers.common.completion import reasoning_text
from integrations.providers.common.surrogates import lenient

FORMAT = "mistral-thinking-v1"


def thinking_parts(message: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    content = message.get("content")
    for part in content if isinstance(content, list) else []:
        if isinstance(part, Mapping) and part.get("type") == "thinking":
            yield part


def read_part(part: Mapping[str, Any]) -> tuple[str, str]:
    """Returns the text and the signature of a part. References to tool results and documents have no text."""
    thinking, signature = part.get("thinking"), part.get("signature")
    pieces = thinking if isinstance(thinking, list) else [{"text": thinking}]
    texts = [piece.get("text") for piece in pieces if isinstance(piece, Mapping)]
    text = "".join(text for text in texts if isinstance(text, str))
    return text, signature if isinstance(signature, str) else ""


# Every answer that may have references contains the text `reference"`, in `reference` or `tool_reference`.
MARK = b'reference"'


class _Text(msgspec.Struct, tag_field="type", tag="text", forbid_unknown_fields=True):
    text: str


class _Reference(msgspec.Struct, tag_field="type", tag="reference", forbid_unknown_fields=True):
    reference_ids: list[int | str]


def parts_of(content: Any) -> list[dict[str, Any]]:
    """Returns the parts of an answer except its thoughts, which are sent separately; an empty list when all parts are
    text."""
    parts = [
        {"type": "text", "text": part} if isinstance(part, str) else dict(part)
        for part in (content if isinstance(content, list) else ())
        if isinstance(part, str) or (isinstance(part, Mapping) and part.get("type") != "thinking")
    ]
    return parts if any(part.get("type") != "text" for part in parts) else []


def original_parts(specific: Any, content: Any) -> list[dict[str, Any]] | None:
    """Returns the parts of an earlier answer, if they are Mistral's and match the message's text; else None."""
    own = specific.get("content") if isinstance(specific, Mapping) else None
    try:
        parts = msgspec.convert(own, list[_Text | _Reference])
    except msgspec.ValidationError:
        return None
    text = "".join(part.text for part in parts if isinstance(part, _Text))
    return own if own and isinstance(content, str) and text == content else None


class Parts:
    """Joins the parts of a streamed answer, whose texts come in pieces. Most streams have texts only."""

    __slots__ = ("_parts", "_text")

    def __init__(self) -> None:
        self._parts: list[dict[str, Any]] = []
        self._text: list[str] = []

    def add_text(self, text: str) -> None:
        self._text.append(text)

    def add(self, content: Any) -> None:
        """Adds the content of one delta: a text, or parts."""
        if isinstance(content, str):
            self.add_text(content)
        for part in content if isinstance(content, list) else ():
            if isinstance(part, str):
                self.add_text(part)
            elif isinstance(part, Mapping) and part.get("type") == "text":
                self.add_text(str(part.get("text") or ""))
            elif isinstance(part, Mapping) and part.get("type") != "thinking":
                self._end_text()
                self._parts.append(dict(part))

    def taken(self) -> list[dict[str, Any]]:
        """Returns all parts once; an empty list when the answer was text only."""
        if not self._parts:
            return []
        self._end_text()
        parts, self._parts = self._parts, []
        return parts

    def _end_text(self) -> None:
        if text := "".join(self._text):
            self._parts.append({"type": "text", "text": text})
        self._text = []


_decode = lenient(msgspec.json.Decoder(dict[str, Any]).decode)


def with_details(body: bytes) -> bytes:
    """Returns the same bytes if the answer has no thinking parts and no references."""
    if b'"thinking"' not in body and MARK not in body:
        return body
    try:
        answer = _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return body  # The body is no answer, which the parser reports.
    changed = False
    choices = answer.get("choices")
    for choice in choices if isinstance(choices, list) else []:
        message = choice.get("message") if isinstance(choice, Mapping) else None
        if not isinstance(message, dict):
            continue
        if details := list(_details(message)):
            message["reasoning_details"] = details
            changed = True
        if parts := parts_of(message.get("content")):
            message["provider_specific_fields"] = {"content": parts}
            changed = True
    return msgspec.json.encode(answer) if changed else body


def _details(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for index, part in enumerate(thinking_parts(message)):
        text, signature = read_part(part)
        yield reasoning_text(text, format=FORMAT, signature=signature, index=index)
