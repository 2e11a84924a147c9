"""Thinking in Mistral's answers: content parts of type `thinking` (https://docs.mistral.ai/capabilities/reasoning).

Their text becomes `reasoning_content` (the shared code of the dialect does that), and they leave as
`reasoning_details` too, so that a client can send them back whole, signature included.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from typing_extensions import override

from integrations.providers.completion import reasoning_text
from integrations.providers.openai_stream import OpenAIStream

FORMAT = "mistral-thinking-v1"
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class MistralStream(OpenAIStream):
    __slots__ = ()

    @override
    def _keep_choice(self, choice: dict[str, Any], position: int) -> bool:
        delta = choice.get("delta")
        if isinstance(delta, dict):
            _add_details(delta)
        return super()._keep_choice(choice, position)


def with_details(body: bytes) -> bytes:
    """The answer with `reasoning_details` beside its thinking parts; the same bytes when it has none."""
    if b'"thinking"' not in body:
        return body
    try:
        answer = _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return body  # not an answer: whoever parses it says so
    changed = False
    choices = answer.get("choices")
    for choice in choices if isinstance(choices, list) else []:
        message = choice.get("message") if isinstance(choice, Mapping) else None
        if isinstance(message, dict):
            changed = _add_details(message) or changed
    return msgspec.json.encode(answer) if changed else body


def _add_details(message: dict[str, Any]) -> bool:
    content = message.get("content")
    if not isinstance(content, list):
        return False
    details = [_detail(part) for part in content if isinstance(part, Mapping) and part.get("type") == "thinking"]
    if details:
        message["reasoning_details"] = details
    return bool(details)


def _detail(part: Mapping[str, Any]) -> dict[str, Any]:
    thinking, signature = part.get("thinking"), part.get("signature")
    pieces = thinking if isinstance(thinking, list) else [{"text": thinking}]
    texts = [piece.get("text") for piece in pieces if isinstance(piece, Mapping)]
    text = "".join(text for text in texts if isinstance(text, str))
    return reasoning_text(text, format=FORMAT, signature=signature if isinstance(signature, str) else "")
