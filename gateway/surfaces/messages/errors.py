"""https://platform.claude.com/docs/en/api/errors"""

from __future__ import annotations

from typing import Any

import msgspec

from core.errors import ApplicationError
from gateway.errors import UnsupportedError

_TYPES = {
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
    529: "overloaded_error",
}
# These codes of the gateway say more than their status does.
_TYPES_OF_CODES = {
    "insufficient_quota": "billing_error",
    "monthly_budget_exceeded": "billing_error",
    "provider_timeout": "timeout_error",
    "session_budget_exceeded": "billing_error",
}
# By these words of Anthropic's own message Claude Code and other agents know that they have to shorten a conversation.
_TOO_LONG = "prompt is too long"
_CONTEXT_LENGTH = "context_length_exceeded"

# Anthropic's SDKs ask for a thread, a conversation that the vendor keeps, by themselves. They send all of the
# conversation instead after an error with this code in its details.
_NO_THREADS = "thread_unsupported_request"

_encode = msgspec.json.Encoder().encode


def error_body(error: ApplicationError, request_id: str) -> bytes:
    """The vendor's SDKs read the gateway's `code` as `details.error_code`, except for the one code that they act on."""
    fields: dict[str, Any] = {
        **error.envelope()["error"],
        "type": type_of(error),
        "message": _message(error),
        "details": {"error_code": _NO_THREADS if _is_about_threads(error) else error.code},
    }
    return _encode({"type": "error", "error": fields, "request_id": request_id})


def type_of(error: ApplicationError) -> str:
    known = _TYPES_OF_CODES.get(error.code) or _TYPES.get(error.status)
    return known or ("invalid_request_error" if error.status < 500 else "api_error")


def _is_about_threads(error: ApplicationError) -> bool:
    return isinstance(error, UnsupportedError) and error.parameter == "thread"


def _message(error: ApplicationError) -> str:
    if error.code == _CONTEXT_LENGTH and _TOO_LONG not in error.message.lower():
        return f"{_TOO_LONG}: {error.message}"
    return error.message
