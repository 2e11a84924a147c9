"""Builds requests to Cohere for the tests of its adapter. Every body has to fit the types of the vendor's SDK."""

from __future__ import annotations

import json
from typing import Any

from integrations.providers.base import ChatRequest
from integrations.providers.cohere import ADAPTER
from tests.integrations.cohere_sdk import assert_accepted
from tests.integrations.exchanges import chat_request, credentials

COMMAND_A = "command-a-03-2025"
REASONING = "command-a-reasoning-08-2025"


def build(request: ChatRequest) -> tuple[dict[str, Any], tuple[str, ...]]:
    upstream_request = ADAPTER.build_request(request, credentials("cohere"))
    body: dict[str, Any] = json.loads(upstream_request.body)
    assert_accepted(body)
    return body, upstream_request.warnings


def built(model: str = COMMAND_A, **fields: Any) -> dict[str, Any]:
    return build(chat_request(model, **fields))[0]
