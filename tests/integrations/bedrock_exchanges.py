"""Credentials, requests and frames of Bedrock for tests, and botocore's own reading of an answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from botocore.parsers import create_parser
from botocore.session import Session

from integrations.providers.base import ChatRequest, Credentials
from tests.fakes.dialects.bedrock import frame

CLAUDE = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
NOVA = "us.amazon.nova-lite-v1:0"

KEYS = Credentials(
    integration_id=1,
    provider="bedrock",
    base_url="",
    secret="",
    extra={
        "access_key_id": "AKIDEXAMPLE",
        "secret_access_key": "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
        "region": "us-east-1",
    },
)


def bedrock_request(model: str = CLAUDE, **fields: Any) -> ChatRequest:
    body = {"model": model, "messages": [{"role": "user", "content": "Grüße 👋"}], **fields}
    return ChatRequest(model, bool(body.get("stream")), json.dumps(body, ensure_ascii=False).encode(), body)


def event(kind: str, **payload: Any) -> bytes:
    return frame({":message-type": "event", ":event-type": kind, ":content-type": "application/json"}, payload)


def parsed_by_botocore(status: int, headers: Mapping[str, str], body: bytes) -> dict[str, Any]:
    """Returns the answer as boto3 returns it to its caller, including errors."""
    operation = Session().get_service_model("bedrock-runtime").operation_model("Converse")
    response = {"status_code": status, "headers": dict(headers), "body": body}
    parser = create_parser("rest-json")
    assert operation.output_shape is not None
    parsed: dict[str, Any] = parser.parse(response, operation.output_shape)
    return parsed
