"""The paths of kept responses. The gateway keeps none, and its answers say so."""

from __future__ import annotations

from typing import Any

from core.openapi.handwritten import failures
from gateway.openapi.parts import FAILURES, SECURITY

STORED = "/api/gateway/v1/responses/{response_id}"


def stored() -> dict[str, Any]:
    return {
        "get": _operation("getResponse", "Read a kept response"),
        "delete": _operation("deleteResponse", "Delete a kept response"),
    }


def _operation(operation_id: str, summary: str) -> dict[str, Any]:
    identifier = {"name": "response_id", "in": "path", "required": True, "schema": {"type": "string"}}
    return {
        "operationId": operation_id,
        "summary": summary,
        "description": "With a valid key always `not_found`: the gateway keeps no responses, it forwards them. A"
        " provider may keep one (`store`), and is asked for it without the gateway.",
        "tags": ["gateway"],
        "security": SECURITY,
        "parameters": [{**identifier, "description": "The id of a response."}],
        "responses": failures((401, 403, 404, 503), FAILURES),
    }
