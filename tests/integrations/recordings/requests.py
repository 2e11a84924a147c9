"""The recorded requests: as a client of chat completions says them, and compared with what we send."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from integrations.providers.base import ChatRequest, Credentials
from integrations.providers.openai.parameters import OWN_FIELDS
from tests.integrations.bedrock_exchanges import KEYS
from tests.integrations.exchanges import credentials
from tests.integrations.reverse import anthropic, bedrock, cohere, google, mistral
from tests.recordings import OPENAI_DIALECT, Recording

Json = dict[str, Any]


def request_of(recording: Recording) -> ChatRequest:
    """Returns the request of a client for which the recorded one is to be sent."""
    model, stream = _model_of(recording), _is_stream(recording)
    fields = _fields_of(recording)
    return ChatRequest(model, stream, json.dumps(fields, ensure_ascii=False).encode(), fields)


def credentials_of(recording: Recording) -> Credentials:
    if recording.provider == "bedrock":
        return KEYS
    if recording.provider == "google_vertex":
        return credentials("google_vertex", key="ya29.recorded", project="PROJECT", location="LOCATION")
    is_openais = recording.api == OPENAI_DIALECT and recording.provider != "mistral"
    return credentials(recording.provider, "https://upstream.test/v1" if is_openais else "")


def path_of(recording: Recording) -> str:
    """Returns how the address ends."""
    if recording.api.startswith("google."):
        return recording.path.partition("?")[0].rpartition("/models/")[2] + ("?alt=sse" if recording.stream else "")
    if recording.provider == "bedrock":
        return recording.path.replace("v1:0", "v1%3A0")
    return (
        recording.path.partition("?")[0] if recording.api != OPENAI_DIALECT or recording.provider == "mistral" else ""
    )


def comparable(recording: Recording, body: Mapping[str, Any]) -> Json:
    """Returns a body, ours or the recorded one, without differences that have no effect at the vendor."""
    if recording.api.startswith("google."):
        return google.comparable(body, keep_ids=google.has_ids(recording.request))
    if recording.provider == "anthropic":
        return _plain_anthropic(body)
    if recording.provider == "bedrock":
        return _plain_bedrock(body)
    if recording.provider == "cohere":
        return {"stream": False, **body}  # The SDKs leave `stream` out of a call that does not stream.
    if recording.provider == "mistral":
        return dict(body)
    # OpenRouter's `models` and `provider` are also fields of the gateway, which has acted on them.
    plain = {name: value for name, value in body.items() if name not in OWN_FIELDS}
    if recording.stream:
        # The gateway always requests usage.
        plain["stream_options"] = {**(plain.get("stream_options") or {}), "include_usage": True}
    return plain


def _model_of(recording: Recording) -> str:
    return bedrock.model_id(recording) if recording.provider == "bedrock" else recording.model


def _is_stream(recording: Recording) -> bool:
    return recording.path.endswith("-stream") if recording.provider == "bedrock" else recording.stream


def _fields_of(recording: Recording) -> Json:
    request, model, stream = recording.request, _model_of(recording), _is_stream(recording)
    if recording.api.startswith("google."):
        return google.openai_request(request, model=model, stream=stream)
    match recording.provider:
        case "anthropic":
            return anthropic.openai_fields(request)
        case "bedrock":
            return bedrock.openai_fields(request, model=model, stream=stream)
        case "cohere":
            return cohere.as_openai(request)
        case "mistral":
            return mistral.as_openai(request)
    return dict(request)


def _plain_anthropic(body: Mapping[str, Any]) -> Json:
    plain = {name: value for name, value in body.items() if value is not None and value is not False}
    # One text may be a string or a list with one block.
    if "system" in plain:
        plain["system"] = anthropic_blocks(plain["system"])
    plain["messages"] = [{**one, "content": anthropic_blocks(one["content"])} for one in plain["messages"]]
    if "tools" in plain:
        # An empty description has no effect.
        plain["tools"] = [
            {k: v for k, v in tool.items() if v is not None and (k, v) != ("description", "")}
            for tool in plain["tools"]
        ]
    # The beta had the schema of the answer in a field of its own.
    if "output_format" in plain:
        plain["output_config"] = {**plain.get("output_config", {}), "format": plain.pop("output_format")}
    return plain


def anthropic_blocks(content: Any) -> list[Json]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    found = []
    for block in content:
        plain = {name: value for name, value in block.items() if (name, value) != ("is_error", False)}
        if block["type"] == "tool_result" and "content" in block:
            plain["content"] = anthropic_blocks(block["content"])
        found.append(plain)
    return found


def _plain_bedrock(body: Mapping[str, Any]) -> Json:
    """Returns the body with neighbours of one role merged and without empty objects and `status: success`."""
    plain = {name: value for name, value in json.loads(json.dumps(body)).items() if value not in ({}, [])}
    messages: list[Json] = []
    for message in plain["messages"]:
        if messages and messages[-1]["role"] == message["role"]:
            messages[-1]["content"] += message["content"]
        else:
            messages.append(message)
    for block in (block for message in messages for block in message["content"]):
        if block.get("toolResult", {}).get("status") == "success":
            del block["toolResult"]["status"]
    schema = plain.get("outputConfig", {}).get("textFormat", {}).get("structure", {}).get("jsonSchema")
    if schema:
        schema["schema"] = json.loads(schema["schema"])
    return {**plain, "messages": messages}
