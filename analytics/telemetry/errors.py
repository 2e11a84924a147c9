"""The failures of an OTLP body, and of single records in it.

ApplicationError
├── ValidationError
│   └── MalformedExportError     400
├── LargeExportError             413
├── UnsupportedExportError       415
├── MethodNotAllowedError        405
└── BusyError                    503, with Retry-After
"""

from __future__ import annotations

from core.errors import ApplicationError, ServiceUnavailableError, ValidationError


class MalformedExportError(ValidationError):
    code = "malformed_export"


class LargeExportError(ApplicationError):
    status = 413
    type = "invalid_request_error"
    code = "body_too_large"


class UnsupportedExportError(ApplicationError):
    status = 415
    type = "invalid_request_error"
    code = "unsupported_media_type"


class MethodNotAllowedError(ApplicationError):
    status = 405
    type = "invalid_request_error"
    code = "method_not_allowed"


class BusyError(ServiceUnavailableError):
    code = "telemetry_busy"


class RejectedRecord(Exception):
    """One span or log record cannot be stored, while the others are; the message says why."""


class RejectedPart(RejectedRecord):
    """A resource or scope cannot be parsed, so that the number of its records is unknown."""
