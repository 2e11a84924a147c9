from __future__ import annotations

import errno
import logging
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import pytest
from django.core.exceptions import DisallowedHost, PermissionDenied, SuspiciousOperation
from django.core.exceptions import ValidationError as DjangoValidationError
from django.db import IntegrityError, OperationalError
from django.http import Http404
from pytest_django import Settings
from rest_framework import exceptions
from rest_framework.test import APIClient

from core.errors import ConflictError, ServiceUnavailableError
from core.http.exception_handler import handle_exception

PATH = "/api/llm/keys"
JSON = "application/json"


def handled(error: Exception) -> tuple[int, dict[str, Any]]:
    response = handle_exception(error, {})
    return response.status_code, response.data["error"]


@pytest.mark.parametrize(
    ("error", "status", "type_", "code"),
    [
        (ConflictError("taken"), 409, "conflict_error", "conflict"),
        (Http404(), 404, "not_found_error", "not_found"),
        (exceptions.NotFound(), 404, "not_found_error", "not_found"),
        (PermissionDenied(), 403, "permission_error", "forbidden"),
        (exceptions.PermissionDenied(), 403, "permission_error", "forbidden"),
        (exceptions.NotAuthenticated(), 401, "authentication_error", "missing_api_key"),
        (exceptions.AuthenticationFailed(), 401, "authentication_error", "invalid_api_key"),
        (exceptions.ParseError(), 400, "invalid_request_error", "invalid_json"),
        (exceptions.MethodNotAllowed("PUT"), 405, "invalid_request_error", "method_not_allowed"),
        (exceptions.UnsupportedMediaType("text/x"), 415, "invalid_request_error", "unsupported_media_type"),
        (exceptions.Throttled(wait=0.2), 429, "invalid_request_error", "throttled"),
        (DisallowedHost(), 400, "invalid_request_error", "host_not_allowed"),
        (SuspiciousOperation(), 400, "invalid_request_error", "invalid_value"),
        (OperationalError("no server"), 503, "service_unavailable_error", "service_unavailable"),
        (OSError(errno.ENOSPC, "sk-secret"), 503, "service_unavailable_error", "service_unavailable"),
        (OSError(errno.EIO, "sk-secret"), 500, "api_error", "internal_error"),
        (IntegrityError("row (sk-secret)"), 500, "api_error", "internal_error"),
        (ZeroDivisionError("sk-secret"), 500, "api_error", "internal_error"),
    ],
)
def test_handle__each_kind__status_type_and_code(error: Exception, status: int, type_: str, code: str) -> None:
    found, body = handled(error)

    assert (found, body["type"], body["code"]) == (status, type_, code)
    assert body["message"]
    assert "sk-secret" not in str(body)
    assert "details" not in body


def test_handle__store_away__says_when_to_try_again() -> None:
    assert handle_exception(OperationalError("no server"), {}).headers["Retry-After"] == "5"
    busy = ServiceUnavailableError("busy", headers={"retry-after": "7"})
    assert handle_exception(busy, {}).headers["Retry-After"] == "7"


def test_handle__throttled__says_when() -> None:
    assert handle_exception(exceptions.Throttled(wait=1.2), {}).headers["Retry-After"] == "2"


def test_handle__database_locked_or_full__says_when_to_try_again() -> None:
    for message in ("database is locked", "database or disk is full"):
        assert int(handle_exception(OperationalError(message), {}).headers["Retry-After"]) > 0


def test_handle__nested_validation__paths_and_first_field_named() -> None:
    error = exceptions.ValidationError({"scores": [{}, {"score_value": ["Too high."]}], "name": ["Too long."]})

    status, body = handled(error)

    assert status == 400
    assert body["message"] == "scores.1.score_value: Too high."
    assert body["details"] == {"scores.1.score_value": ["Too high."], "name": ["Too long."]}


def test_handle__django_validation__same_shape() -> None:
    _, body = handled(DjangoValidationError({"__all__": ["Together impossible."], "name": ["Taken."]}))
    assert body["details"] == {"non_field_errors": ["Together impossible."], "name": ["Taken."]}
    _, body = handled(DjangoValidationError("Impossible."))
    assert (body["message"], body["details"]) == ("Impossible.", {"non_field_errors": ["Impossible."]})


def test_handle__unexpected__logs_place_but_no_content(caplog: pytest.LogCaptureFixture) -> None:
    try:
        raise ValueError("sk-secret in a row")
    except ValueError as error:
        with caplog.at_level(logging.ERROR, logger="core.api"):
            handle_exception(error, {})

    assert "ValueError" in caplog.text
    assert "test_exception_handler" in caplog.text
    assert "sk-secret" not in caplog.text.replace('raise ValueError("sk-secret in a row")', "")


@pytest.fixture
def failing_view() -> Iterator[None]:
    with patch("core.viewsets.ApiKeyViewSet.list", side_effect=ZeroDivisionError("inner detail")):
        yield


def test_view__fails_unexpectedly__internal_error_with_logged_request_id(
    api: APIClient, headers: dict[str, str], failing_view: None, caplog: pytest.LogCaptureFixture
) -> None:
    response = api.get(PATH, headers=headers)

    assert response.status_code == 500
    assert response.json()["error"]["code"] == "internal_error"
    assert "inner detail" not in response.content.decode()
    assert response.headers["x-request-id"] in caplog.text


def test_path__unknown_below_api__envelope(api: APIClient) -> None:
    response = api.get("/api/llm/nothing/here")
    assert response.status_code == 404
    assert response.json()["error"]["code"] == "not_found"
    assert response.headers["x-request-id"]


def test_path__right_but_for_a_slash__says_so(api: APIClient) -> None:
    assert "/api/llm/keys has no slash at its end" in api.get(f"{PATH}/").json()["error"]["message"]
    assert "slash" not in api.get("/api/llm/nothing/").json()["error"]["message"]


def test_method__not_allowed__envelope(api: APIClient, headers: dict[str, str]) -> None:
    response = api.put(PATH, {}, headers=headers)
    assert response.status_code == 405
    assert response.headers["Allow"]


@pytest.mark.parametrize(
    "body",
    [
        "{",
        "",
        '{"name": NaN}',
        b'{"name": "\xff"}',
        "[" * 100_000,
        '{"name": "\\ud800"}',
        '{"name": "\\u0000"}',
        '{"\\u0000": 1}',
        "{} {}",
    ],
    ids=["cut", "empty", "nan", "not-utf8", "deep", "surrogate", "nul", "nul-name", "two"],
)
def test_body__unreadable__400_and_never_500(api: APIClient, headers: dict[str, str], body: str | bytes) -> None:
    response = api.post(PATH, body, content_type=JSON, headers=headers)
    assert response.status_code == 400
    assert response.json()["error"]["code"] in ("invalid_json", "missing_field")


@pytest.mark.parametrize("text", ["\\\\u0000", "\\ud83d\\ude00"])
def test_body__harmless_escapes__accepted(api: APIClient, headers: dict[str, str], text: str) -> None:
    body = f'{{"name": "{text}", "scopes": ["manage"]}}'
    assert api.post(PATH, body, content_type=JSON, headers=headers).status_code == 201


def test_body__at_and_above_the_limit__413_above(api: APIClient, headers: dict[str, str], settings: Settings) -> None:
    body = '{"name": "x", "scopes": ["manage"]}'
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = len(body)
    assert api.post(PATH, body, content_type=JSON, headers=headers).status_code == 201

    response = api.post(PATH, body + " ", content_type=JSON, headers=headers)

    assert response.status_code == 413
    assert response.json()["error"]["code"] == "body_too_large"


def test_body__other_media_type__415(api: APIClient, headers: dict[str, str]) -> None:
    response = api.post(PATH, "a=b", content_type="text/csv", headers=headers)
    assert response.status_code == 415


def test_request_id__each_response__its_own(api: APIClient, headers: dict[str, str]) -> None:
    first, second = (api.get(PATH, headers=headers).headers["x-request-id"] for _ in range(2))
    assert first
    assert first != second


def test_health__database_there_and_away__200_and_503(api: APIClient, db: None) -> None:
    assert api.get("/healthz").json() == {"status": "ok"}
    with patch("core.views.connection.cursor", side_effect=OperationalError("gone")):
        response = api.get("/healthz")
    assert response.status_code == 503
    assert response.headers["Retry-After"]
    assert response.json()["error"]["code"] == "service_unavailable"
