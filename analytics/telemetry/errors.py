from __future__ import annotations

from core.errors import ApplicationError, ServiceUnavailableError, ValidationError

MalformedExportError = ValidationError.kind("malformed_export")


class LargeExportError(ApplicationError):
    status = 413
    type = "invalid_request_error"
    code = "body_too_large"


UnsupportedExportError = ValidationError.kind("unsupported_media_type", status=415)
MethodNotAllowedError = ValidationError.kind("method_not_allowed", status=405)
TelemetryBusyError = ServiceUnavailableError.kind("telemetry_busy")


class RejectedRecord(Exception):
    """One span or log record cannot be stored, but the others can. The message says why."""


class RejectedPart(RejectedRecord):
    """A resource or scope cannot be parsed, so the number of its records is unknown."""
