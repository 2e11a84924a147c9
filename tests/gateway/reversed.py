"""A recorded request of any dialect as a client of OpenAI's dialect writes it."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

from tests.gateway.recorded import Recording
from tests.integrations.reverse import anthropic, bedrock, cohere, google


def openai_request(recording: Recording) -> dict[str, Any]:
    """With the model's name as the vendor knows it."""
    body = recording["request"]["body"] or {}
    api, stream = recording["api"], bool(recording["response"]["stream"])
    model = unquote(recording["model"])
    if api == "anthropic.messages":
        return anthropic.openai_fields(body)
    if api.startswith("bedrock."):
        return bedrock.openai_fields(body, model=model, stream=stream)
    if api.startswith("google."):
        return google.openai_request(body, model=model, stream=stream)
    if api == "cohere.v2_chat":
        return cohere.as_openai(body)
    raise AssertionError(f"no reverse translator for {api}")
