"""Reads thinking in Mistral's answers: content parts of type `thinking`
(https://docs.mistral.ai/capabilities/reasoning)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

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
