"""Writes a recorded request of any dialect as a client of OpenAI's dialect would."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

from tests.gateway.recorded import Recording
from tests.integrations.reverse import anthropic, bedrock, cohere, google


def openai_request(recording: Recording) -> dict[str, Any]:
    """Returns the request in OpenAI's dialect, with the model's name as the vendor knows it."""
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
