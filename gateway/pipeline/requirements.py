from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from gateway.protocol.wire import ChatCompletionRequest, Message
from integrations.capabilities.lookup import RequestNeeds
from integrations.providers.usage import estimated_tokens

_KINDS = {
    "image_url": "images",
    "document_url": "documents",
    "file": "documents",
    "input_audio": "audio",
    "video_url": "video",
}


def needs_of(request: ChatCompletionRequest) -> RequestNeeds:
    """Tokens are estimated from texts and tools: an image's bytes say nothing about its tokens."""
    media: dict[str, Any] = dict.fromkeys(_kinds(request.messages), True)
    size = sum(_text_bytes(message) for message in request.messages)
    if request.tools:
        size += len(msgspec.json.encode(request.tools))
    response_format = request.response_format
    return RequestNeeds(
        **media,
        tools=bool(request.tools),
        schema=response_format is not None and response_format.type == "json_schema",
        tokens=estimated_tokens(size) + (request.max_completion_tokens or request.max_tokens or 0),
    )


def _kinds(messages: list[Message]) -> Mapping[str, bool]:
    found = {}
    for message in messages:
        if isinstance(message.content, list):
            for part in message.content:
                if part.type in _KINDS:
                    found[_KINDS[part.type]] = True
    return found


def _text_bytes(message: Message) -> int:
    content = message.content
    if isinstance(content, str):
        return len(content.encode())
    return sum(len((part.text or "").encode()) for part in content or ())
