"""Mistral's official SDK as a reference for the requests that it would send and the answers that it reads."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from mistralai.client.models import (
    ChatCompletionRequest,
    ChatCompletionResponse,
    ChatCompletionStreamRequest,
    CompletionChunk,
)


def assert_accepted(body: Mapping[str, Any]) -> None:
    """Asserts that every field belongs to the SDK's typed request, since unknown ones would not come out of its types
    again."""
    kind = ChatCompletionStreamRequest if body.get("stream") else ChatCompletionRequest
    again = kind.model_validate(body).model_dump(mode="json", by_alias=True, exclude_unset=True)
    assert again == body
    assert '"UNKNOWN"' not in json.dumps(again)


def read_answer(body: bytes) -> ChatCompletionResponse:
    return ChatCompletionResponse.model_validate_json(body)


def read_stream(body: bytes) -> list[CompletionChunk]:
    lines = body.decode().replace("\r\n", "\n").split("\n")
    payloads = [line[5:].strip() for line in lines if line.startswith("data:")]
    return [CompletionChunk.model_validate_json(payload) for payload in payloads if payload != "[DONE]"]
