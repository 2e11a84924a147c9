"""Error answers of providers that refuse a request, from `vendor_failures.json`: by kind, the provider, the status and
the body. The texts are the vendors' own, documented or recorded; a text alone is the message of OpenAI's shape."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from integrations.providers.errors import FailureKind

LONG, FILTER, QUOTA = FailureKind.CONTEXT_LENGTH, FailureKind.CONTENT_FILTER, FailureKind.QUOTA
REJECTED, LIMITED, REFUSED = FailureKind.REJECTED, FailureKind.RATE_LIMITED, FailureKind.CREDENTIALS

_ROWS = json.loads(Path(__file__).with_suffix(".json").read_bytes())


def openai(message: str, code: Any = None, type: Any = "invalid_request_error", **more: Any) -> dict[str, Any]:
    return {"error": {"message": message, "type": type, "param": "messages", "code": code, **more}}


def google(message: str, status: str = "INVALID_ARGUMENT", code: int = 400, *details: Any) -> dict[str, Any]:
    return {"error": {"code": code, "message": message, "status": status, "details": list(details)}}


def api_key_invalid(message: str) -> dict[str, Any]:
    """Returns Google's answer to a wrong or expired key
    (https://cloud.google.com/apis/docs/reference/rpc/google.api#errorreason)."""
    reason = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}
    return google(message, "INVALID_ARGUMENT", 400, {**reason, "domain": "googleapis.com"})


def _body(body: Any) -> Any:
    return body["text"].encode() if isinstance(body, Mapping) and set(body) == {"text"} else body


AZURE_FILTER = openai(
    "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
    "content_filter",
    None,
    status=400,
    innererror={
        "code": "ResponsibleAIPolicyViolation",
        "content_filter_result": {"violence": {"filtered": True, "severity": "medium"}},
    },
)
XAI_KEY = "Incorrect API key provided: xa***q1. You can obtain an API key from https://console.x.ai."
XAI = {"code": "Client specified an invalid argument", "error": XAI_KEY}
FAILURE_CASES: list[tuple[str, int, Any, FailureKind]] = [
    (provider, status, _body(body), kind) for kind in FailureKind for provider, status, body in _ROWS.get(kind, ())
]
# Vendors do not accept the credential, whatever status they say it with.
KEY_CASES: list[tuple[str, int, Any]] = [(provider, status, _body(body)) for provider, status, body in _ROWS["the key"]]
# These requests mention keys and credentials, and are at fault themselves.
NO_KEY_CASES: list[tuple[str, int, Any]] = [
    (provider, status, _body(body)) for provider, status, body in _ROWS["not the key"]
]
