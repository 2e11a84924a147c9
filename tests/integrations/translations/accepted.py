"""What the vendors' official SDKs say about a body of ours: their types know each field that they accept."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from botocore.session import Session
from botocore.validate import ParamValidator
from google.genai import types
from pydantic import TypeAdapter

from tests.integrations.cohere_sdk import assert_accepted as assert_accepted_by_cohere
from tests.integrations.mistral_sdk import assert_accepted as assert_accepted_by_mistral

_CONVERSE: Any = Session().get_service_model("bedrock-runtime").operation_model("Converse").input_shape
_BYTES = ("bytes", "redactedContent")
_GOOGLES: Mapping[str, Any] = {
    "contents": list[types.Content],
    "systemInstruction": types.Content,
    "tools": list[types.Tool],
    "toolConfig": types.ToolConfig,
    "generationConfig": types.GenerationConfig,
}


def assert_accepted_by_boto3(body: Mapping[str, Any]) -> None:
    """Asserts that boto3 would send the body; what it takes as bytes is base64 in ours."""
    report = ParamValidator().validate({"modelId": "m", **_with_bytes(body)}, _CONVERSE)
    assert not report.has_errors(), report.generate_report()


def assert_accepted_by_google(body: Mapping[str, Any]) -> None:
    """Asserts that each field of the body has a type of Google's SDK, which refuses unknown fields."""
    for name, kind in _GOOGLES.items():
        if name in body:
            TypeAdapter(kind).validate_json(json.dumps(body[name]), strict=None)
    rest = {name: value for name, value in body.items() if name not in _GOOGLES}
    TypeAdapter(types.GenerateContentConfig).validate_json(json.dumps(rest), strict=None)


ACCEPTED: Mapping[str, Callable[[Mapping[str, Any]], None]] = {
    "bedrock": assert_accepted_by_boto3,
    "cohere": assert_accepted_by_cohere,
    "google": assert_accepted_by_google,
    "mistral": assert_accepted_by_mistral,
}
"""The check of a body by provider."""


def _with_bytes(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _bytes(item) if name in _BYTES else _with_bytes(item) for name, item in value.items()}
    return [_with_bytes(item) for item in value] if isinstance(value, list) else value


def _bytes(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value
