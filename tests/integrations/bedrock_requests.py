"""Builds requests to Converse for the tests of its adapter, checked against botocore."""

from __future__ import annotations

import base64
from typing import Any

from botocore.session import Session
from botocore.validate import ParamValidator

from integrations.providers.base import ChatRequest
from integrations.providers.bedrock.request import build_body
from tests.integrations.bedrock_exchanges import CLAUDE, bedrock_request

SHAPE: Any = Session().get_service_model("bedrock-runtime").operation_model("Converse").input_shape
CLAUDE_3 = "anthropic.claude-3-haiku-20240307-v1:0"
OPUS_4_6 = "global.anthropic.claude-opus-4-6-v1"
SONNET_5 = "us.anthropic.claude-sonnet-5"
LLAMA = "us.meta.llama4-scout-17b-instruct-v1:0"
GPT_OSS = "openai.gpt-oss-120b-1:0"
OWN_PROFILE = "arn:aws:bedrock:eu-west-1:123456789012:application-inference-profile/abc123"
USER: dict[str, Any] = {"role": "user", "content": "Hi"}
TOOL: dict[str, Any] = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
PNG = "data:image/png;base64," + base64.b64encode(b"\x89PNG").decode()
PDF = "data:application/pdf;base64," + base64.b64encode(b"%PDF").decode()


def native(model: str = CLAUDE, **fields: Any) -> dict[str, Any]:
    return checked(bedrock_request(model, **fields))[0]


def checked(request: ChatRequest) -> tuple[dict[str, Any], tuple[str, ...]]:
    body, warnings = build_body(request)
    report = ParamValidator().validate({"modelId": request.model, **body}, SHAPE)
    assert not report.has_errors(), report.generate_report()
    return body, warnings


def contents(*messages: dict[str, Any], model: str = CLAUDE, **fields: Any) -> list[tuple[str, list[dict[str, Any]]]]:
    return [(m["role"], m["content"]) for m in native(model, messages=list(messages), **fields)["messages"]]
