"""Adds OTLP to the OpenAPI document, because its views are not REST framework's.

https://opentelemetry.io/docs/specs/otlp/#otlphttp has the messages, which are Google's protocol buffers or their JSON.
"""

from __future__ import annotations

from typing import Any, NotRequired

from typing_extensions import TypedDict

from analytics.telemetry.body import Encoding
from core.openapi.document import KEY_SECURITY, REQUEST_ID
from core.openapi.shapes import reference

_SIGNALS = {
    "traces": ("resourceSpans", "Send spans", "Stored, and shown with the session that their attributes name."),
    "logs": ("resourceLogs", "Send log records", "Stored, and shown with the session that their attributes name."),
    "metrics": ("resourceMetrics", "Send metrics", "Taken and counted as rejected: the service keeps none."),
}
_FAILURES = {
    400: "The body is not an export, or cannot be inflated.",
    401: "No usable key, or not of the project that `X-Project-Id` names.",
    403: "The key has none of the scopes `telemetry:write`, `gateway` and `manage`.",
    405: "Use POST.",
    413: "The body is too large.",
    415: "`Content-Type` or `Content-Encoding` is none of those supported.",
    500: "The service failed.",
    503: "The store does not answer; `Retry-After` says when to send the same again.",
}
_BINARY = {"type": "string", "contentMediaType": Encoding.PROTOBUF.value}


class ExportPartialSuccess(TypedDict):
    """The field that counts the refused records, and the reason. Numbers of 64 bits are text in OTLP's JSON."""

    rejectedSpans: NotRequired[str]
    rejectedLogRecords: NotRequired[str]
    rejectedDataPoints: NotRequired[str]
    errorMessage: str


class ExportAnswer(TypedDict):
    """The answer to an export, empty when all records were stored."""

    partialSuccess: NotRequired[ExportPartialSuccess]


class ExportFailure(TypedDict):
    """An error in the form of google.rpc.Status."""

    code: int
    message: str


def add_exports(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    for name, (field, summary, description) in _SIGNALS.items():
        result["paths"][f"/api/otlp/v1/{name}"] = {
            "post": {
                "operationId": f"export{name.capitalize()}",
                "summary": summary,
                "description": f"OTLP/HTTP. {description}",
                "tags": ["otlp"],
                "security": KEY_SECURITY,
                "parameters": [_CODING],
                "requestBody": {"required": True, "content": _content(_export(field))},
                "responses": {"200": _response("What was not taken.", ExportAnswer)}
                | {str(status): _response(text, ExportFailure) for status, text in _FAILURES.items()},
            }
        }
    return result


_CODING = {
    "name": "Content-Encoding",
    "in": "header",
    "required": False,
    "schema": {"type": "string", "enum": ["identity", "gzip", "deflate"]},
}


def _export(field: str) -> dict[str, Any]:
    return {"type": "object", "properties": {field: {"type": "array", "items": {"type": "object"}}}}


def _content(schema: dict[str, Any]) -> dict[str, Any]:
    return {Encoding.JSON.value: {"schema": schema}, Encoding.PROTOBUF.value: {"schema": _BINARY}}


def _response(description: str, shape: Any) -> dict[str, Any]:
    return {"description": description, "headers": REQUEST_ID, "content": _content(reference(shape))}
