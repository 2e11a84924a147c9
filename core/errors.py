"""The base of every failure the service reports, and the envelope it is reported in.

ApplicationError
├── ValidationError            400 invalid_request_error
│   ├── UnknownHostError           400 host_not_allowed
│   ├── BodyTooLargeError          413 body_too_large
│   └── CompressedBodyError        415 unsupported_media_type
├── AuthenticationError        401 authentication_error
├── PermissionDeniedError      403 permission_error
├── NotFoundError              404 not_found_error
├── ConflictError              409 conflict_error
└── ServiceUnavailableError    503 service_unavailable_error

Apps add their own below these. Statuses, types and codes are in docs/errors.md.
"""

from __future__ import annotations

import builtins
import errno
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

# The numbers of an OSError of a disk, or of a quota on it, that is full.
NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})


class ApplicationError(Exception):
    """A failure with an HTTP status and an `{"error": {message, type, code}}` envelope.

    `values` fill the kind's `text`; without a text, the single value is the message. `headers` go out with the
    response, `details` (field → messages) only on the management API.
    """

    status: ClassVar[int] = 500
    type: ClassVar[str] = "api_error"
    code: str = "internal_error"
    text: ClassVar[str] = "{}"
    field: ClassVar[str] = ""

    def __init__(
        self,
        *values: object,
        code: str | None = None,
        headers: Mapping[str, str] | None = None,
        details: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        problem = self.text.format(*values)
        if self.field:
            details = {self.field: [problem], **(details or {})}
        message = f"{self.field}: {problem}" if self.field else problem
        super().__init__(message)
        self.message = message
        if code is not None:
            self.code = code
        self.headers: Mapping[str, str] = headers or {}
        self.details = details

    @classmethod
    def of_field(cls, field: str, problem: str) -> Self:
        return cls(f"{field}: {problem}", details={field: [problem]})

    @classmethod
    def kind(cls, code: str, text: str = "{}", *, field: str = "", status: int | None = None) -> builtins.type[Self]:
        """Returns a subclass with its own code. `text` is the message with a place for each value; with `field` it is
        that field's problem, which message and details name."""
        name = f"{''.join(map(str.capitalize, code.split('_')))}Error"
        given = {"code": code, "text": text, "field": field, "status": status or cls.status}
        return builtins.type(name, (cls,), {**given, "__module__": cls.__module__})

    def envelope(self) -> dict[str, dict[str, Any]]:
        return {"error": {"message": self.message, "type": self.type, "code": self.code}}


class ValidationError(ApplicationError):
    status = 400
    type = "invalid_request_error"
    code = "invalid_value"


class UnknownHostError(ValidationError):
    code = "host_not_allowed"


class BodyTooLargeError(ValidationError):
    status = 413
    code = "body_too_large"
    text = "The body is larger than {} bytes."


class CompressedBodyError(ValidationError):
    status = 415
    code = "unsupported_media_type"


class AuthenticationError(ApplicationError):
    status = 401
    type = "authentication_error"
    code = "invalid_api_key"


class PermissionDeniedError(ApplicationError):
    status = 403
    type = "permission_error"
    code = "scope_missing"


class NotFoundError(ApplicationError):
    status = 404
    type = "not_found_error"
    code = "not_found"


class ConflictError(ApplicationError):
    status = 409
    type = "conflict_error"
    code = "conflict"


class ServiceUnavailableError(ApplicationError):
    status = 503
    type = "service_unavailable_error"
    code = "service_unavailable"
