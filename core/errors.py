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

import errno
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

# The numbers of an OSError of a disk, or of a quota on it, that is full.
NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})


class ApplicationError(Exception):
    """A failure with an HTTP status and the `{"error": {message, type, code}}` envelope.

    `headers` go out with the response; `details` (field → messages) only on the management API.
    """

    status: ClassVar[int] = 500
    type: ClassVar[str] = "api_error"
    code: str = "internal_error"

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        headers: Mapping[str, str] | None = None,
        details: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        if code is not None:
            self.code = code
        self.headers: Mapping[str, str] = headers or {}
        self.details = details

    def envelope(self) -> dict[str, dict[str, Any]]:
        return {"error": {"message": self.message, "type": self.type, "code": self.code}}


class ValidationError(ApplicationError):
    status = 400
    type = "invalid_request_error"
    code = "invalid_value"

    @classmethod
    def of_field(cls, field: str, problem: str) -> Self:
        """Returns the error of one field, which its message and its details name."""
        return cls(f"{field}: {problem}", details={field: [problem]})


class UnknownHostError(ValidationError):
    code = "host_not_allowed"


class BodyTooLargeError(ValidationError):
    status = 413
    code = "body_too_large"

    def __init__(self, limit: int) -> None:
        """Makes the error for a body that is larger than `limit` bytes."""
        super().__init__(f"The body is larger than {limit} bytes.")


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
