"""https://cloud.google.com/apis/design/errors"""

from __future__ import annotations

from typing import Any

import msgspec

from core.errors import ApplicationError

_STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    405: "UNIMPLEMENTED",
    408: "DEADLINE_EXCEEDED",
    409: "ABORTED",
    422: "INVALID_ARGUMENT",
    429: "RESOURCE_EXHAUSTED",
    499: "CANCELLED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
_TYPE = "type.googleapis.com/google.rpc."
_DOMAIN = "prompt-gateway"

_encode = msgspec.json.Encoder().encode


def error_body(error: ApplicationError, request_id: str) -> bytes:
    """`reason` in the details is the gateway's code, in capitals as Google has them."""
    return _encode({"error": error_object(error, request_id)})


def error_object(error: ApplicationError, request_id: str) -> dict[str, Any]:
    known = {name: value for name, value in error.envelope()["error"].items() if name not in ("message", "code")}
    texts = {name: value for name, value in known.items() if isinstance(value, str)}
    info = {
        "@type": f"{_TYPE}ErrorInfo",
        "reason": error.code.upper(),
        "domain": _DOMAIN,
        "metadata": {"code": error.code, "request_id": request_id, **texts},
    }
    details: list[dict[str, Any]] = [info]
    wait = error.headers.get("retry-after", "")
    if wait.isdecimal():
        details.append({"@type": f"{_TYPE}RetryInfo", "retryDelay": f"{wait}s"})
    others = {name: value for name, value in known.items() if name not in texts}
    return {
        "code": error.status,
        "message": error.message,
        "status": status_of(error.status),
        "details": details,
        **others,
    }


def status_of(status: int) -> str:
    return _STATUSES.get(status) or ("INVALID_ARGUMENT" if status < 500 else "INTERNAL")
