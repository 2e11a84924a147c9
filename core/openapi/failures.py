from __future__ import annotations

from functools import cache
from typing import Any, NotRequired

from drf_spectacular.utils import OpenApiResponse
from typing_extensions import TypedDict

from core.openapi.shapes import reference

ERRORS = {
    400: "Something in the request is wrong; `details` names the field.",
    401: "No usable key or session, or not of the project that `X-Project-Id` names.",
    403: "The key lacks a scope that opens this (`scope_missing`), the role of the person who is signed in"
    " does not allow it (`permission_denied`), the CSRF token is missing, or a `project_id` differs from the header's.",
    404: "There is no such thing in this project.",
    406: "`Accept` names nothing that this path answers with.",
    409: "The state it is in does not allow this.",
    413: "The body is too large.",
    415: "The body is not JSON, or is compressed.",
    422: "A template variable is missing or of the wrong type.",
    429: "Too many calls, where `Retry-After` says when the next one may come, or a budget is used up.",
    500: "The service failed. `x-request-id` finds it in the log.",
    503: "The database, the analytics store or the cache does not answer, or the query would pass its limits.",
}


class ProviderFailure(TypedDict):
    """A provider's failure: its HTTP status, null where it had none, and its own error object."""

    provider: str
    status: int | None
    error: dict[str, Any]


class Failure(TypedDict):
    message: str
    type: str
    code: str
    details: NotRequired[dict[str, list[str]]]
    provider_error: NotRequired[ProviderFailure]


class ErrorBody(TypedDict):
    error: Failure


def failures(*statuses: int) -> dict[int, OpenApiResponse]:
    return {status: _failure(status) for status in sorted(statuses)}


@cache
def _failure(status: int) -> OpenApiResponse:
    return OpenApiResponse(reference(ErrorBody), description=ERRORS[status])
