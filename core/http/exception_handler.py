"""The one place where a failure of the management API becomes a response."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from math import ceil
from typing import Any

from django.conf import settings
from django.core.exceptions import (
    BadRequest,
    DisallowedHost,
    PermissionDenied,
    RequestDataTooBig,
    SuspiciousOperation,
)
from django.core.exceptions import ValidationError as DjangoValidationError
from django.db import InterfaceError, InternalError, OperationalError
from django.http import Http404
from rest_framework import exceptions, status
from rest_framework.response import Response
from rest_framework.views import set_rollback

from core.errors import (
    NO_ROOM,
    ApplicationError,
    AuthenticationError,
    BodyTooLargeError,
    NotFoundError,
    PermissionDeniedError,
    ServiceUnavailableError,
    UnknownHostError,
    ValidationError,
)
from core.http.tracebacks import class_and_place

logger = logging.getLogger("core.api")

# The seconds of Retry-After for a store that is unreachable.
_AWAY_SECONDS = 5
# https://www.postgresql.org/docs/current/errcodes-appendix.html
_READ_ONLY = "25006"


class ProtocolError(ApplicationError):
    type = "invalid_request_error"

    def __init__(self, message: str, *, status: int, code: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message, code=code, headers=headers)
        self.http_status = status


def handle_exception(error: Exception, context: Mapping[str, Any]) -> Response:
    set_rollback()
    known = translate(error)
    if known is None:
        log_unexpected(error, request_id(context))
        known = ApplicationError("The service failed unexpectedly.")
    return error_response(known)


def translate(error: Exception) -> ApplicationError | None:
    """Returns None for a defect of the product."""
    if isinstance(error, ApplicationError):
        return error
    if isinstance(error, exceptions.APIException):
        return _from_rest_framework(error)
    if isinstance(error, DjangoValidationError):
        return _from_validation(exceptions.ValidationError(detail=_django_messages(error)).detail)
    if isinstance(error, Http404):
        return NotFoundError("Not found.")
    if isinstance(error, PermissionDenied):
        return PermissionDeniedError("Not allowed.", code="forbidden")
    if isinstance(error, DisallowedHost):
        return UnknownHostError("The Host header is not a name of this service; ALLOWED_HOSTS lists its names.")
    if isinstance(error, RequestDataTooBig):
        return BodyTooLargeError(settings.DATA_UPLOAD_MAX_MEMORY_SIZE)
    if isinstance(error, SuspiciousOperation | BadRequest):
        return ValidationError("The request cannot be read.")
    return _unavailable(error)


def _unavailable(error: Exception) -> ApplicationError | None:
    if isinstance(error, OperationalError | InterfaceError) or _is_read_only(error):
        logger.error("database.unavailable error=%s", type(error).__name__)
        return ServiceUnavailableError("The database is not available.")
    if isinstance(error, OSError) and error.errno in NO_ROOM:
        logger.error("disk.full error=%s", class_and_place(error))
        return ServiceUnavailableError("The disk of this service is full.")
    return None


def _is_read_only(error: Exception) -> bool:
    return isinstance(error, InternalError) and getattr(error.__cause__, "sqlstate", "") == _READ_ONLY


def error_body(error: ApplicationError) -> dict[str, dict[str, Any]]:
    body: dict[str, dict[str, Any]] = {"error": dict(error.envelope()["error"])}
    if error.details is not None:
        body["error"]["details"] = {field: list(messages) for field, messages in error.details.items()}
    return body


def error_response(error: ApplicationError) -> Response:
    code = error.http_status if isinstance(error, ProtocolError) else error.status
    return Response(error_body(error), status=code, headers=error_headers(error, code))


def error_headers(error: ApplicationError, code: int) -> dict[str, str]:
    headers = {name.title(): value for name, value in error.headers.items()}
    if code == status.HTTP_401_UNAUTHORIZED:
        headers.setdefault("Www-Authenticate", "Bearer")
    if code == status.HTTP_503_SERVICE_UNAVAILABLE:
        headers.setdefault("Retry-After", str(_AWAY_SECONDS))
    return headers


def log_unexpected(error: BaseException, request: str) -> None:
    logger.error("request.failed request_id=%s error=%s", request, class_and_place(error))


def request_id(context: Mapping[str, Any]) -> str:
    return str(getattr(context.get("request"), "request_id", ""))


def _from_rest_framework(error: exceptions.APIException) -> ApplicationError:
    if isinstance(error, exceptions.ValidationError):
        return _from_validation(error.detail)
    message = _first_message(error.detail)[1]
    if isinstance(error, exceptions.ParseError):
        return ValidationError(message, code="invalid_json")
    if isinstance(error, exceptions.NotAuthenticated):
        return AuthenticationError("No API key was sent.", code="missing_api_key")
    if isinstance(error, exceptions.AuthenticationFailed):
        return AuthenticationError(message)
    if isinstance(error, exceptions.PermissionDenied):
        code = "csrf_failed" if message.startswith("CSRF") else "forbidden"
        return PermissionDeniedError(message, code=code)
    if isinstance(error, exceptions.NotFound):
        return NotFoundError("Not found.")
    return _from_protocol(error, message)


def _from_protocol(error: exceptions.APIException, message: str) -> ApplicationError:
    codes = error.get_codes()
    headers = {}
    wait: float | None = getattr(error, "wait", None)  # The attribute is in seconds, and only Throttled has it.
    if wait is not None:
        headers["Retry-After"] = str(max(1, ceil(wait)))
    return ProtocolError(
        message, status=error.status_code, code=codes if isinstance(codes, str) else "invalid_value", headers=headers
    )


def _from_validation(detail: Any) -> ValidationError:
    details = flat_details(detail)
    field, message = _first_message(details)
    codes = _codes(detail)
    return ValidationError(
        f"{field}: {message}" if field != _WHOLE else message,
        code="missing_field" if codes == {"required"} else "invalid_value",
        details=details,
    )


# DRF puts messages about the body as a whole under this name.
_WHOLE = "non_field_errors"


def flat_details(detail: Any, path: str = "") -> dict[str, list[str]]:
    """Flattens DRF's nested details to field path → messages, with paths such as `scores.0.score_value`."""
    if isinstance(detail, Mapping):
        nested = [flat_details(value, _join(path, str(key))) for key, value in detail.items()]
    elif isinstance(detail, list) and any(isinstance(item, Mapping | list) for item in detail):
        nested = [flat_details(value, _join(path, str(index))) for index, value in enumerate(detail) if value]
    else:
        messages = detail if isinstance(detail, list) else [detail]
        nested = [{path or _WHOLE: [str(message) for message in messages]}]
    return {field: messages for part in nested for field, messages in part.items()}


def _join(path: str, name: str) -> str:
    if name == _WHOLE:
        return path or _WHOLE
    return f"{path}.{name}" if path else name


def _first_message(details: Any) -> tuple[str, str]:
    flat = flat_details(details)
    field, messages = next(iter(flat.items()), (_WHOLE, []))
    return field, messages[0] if messages else "The request is invalid."


def _codes(detail: Any) -> set[str]:
    if isinstance(detail, Mapping):
        return {code for value in detail.values() for code in _codes(value)}
    if isinstance(detail, list):
        return {code for value in detail for code in _codes(value)}
    return {str(getattr(detail, "code", "invalid"))}


def _django_messages(error: DjangoValidationError) -> dict[str, list[str]] | list[str]:
    if hasattr(error, "error_dict"):
        return {_WHOLE if field == "__all__" else field: messages for field, messages in error.message_dict.items()}
    return error.messages
