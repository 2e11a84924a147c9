from __future__ import annotations

import math
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from core.keys.last_use import LastUses
from core.keys.services import revoke_key
from core.models import Project
from tests.core.conftest import headers_for
from tests.factories.core import make_key, make_project

PATH = "/api/llm/keys"
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


def refusal(response: Any) -> tuple[int, str, str]:
    error = response.json()["error"]
    return response.status_code, error["type"], error["code"]


def test_key__manage_scope_of_the_project__admitted(api: APIClient, headers: dict[str, str]) -> None:
    assert api.get(PATH, headers=headers).status_code == 200


def test_key__scheme_in_any_case__admitted(api: APIClient, project: Project) -> None:
    _, key = make_key(project)
    assert api.get(PATH, headers=headers_for(project, key) | {"Authorization": f"bearer {key}"}).status_code == 200


def test_nothing_sent__any_call__missing_api_key(api: APIClient, project: Project) -> None:
    response = api.get(PATH, headers={"X-Project-Id": str(project.pk)})

    assert refusal(response) == (401, "authentication_error", "missing_api_key")
    assert response.headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize("value", ["Bearer", "Bearer ", "Basic YTpi", "svc_abc"])
def test_authorization__no_bearer_key__missing_api_key(api: APIClient, project: Project, value: str) -> None:
    response = api.get(PATH, headers={"Authorization": value, "X-Project-Id": str(project.pk)})
    assert refusal(response) == (401, "authentication_error", "missing_api_key")


def test_key__unknown_revoked_and_expired__same_answer(api: APIClient, project: Project) -> None:
    revoked, revoked_key = make_key(project)
    revoke_key(revoked)
    _, expired_key = make_key(project, expires_at=LONG_AGO)

    answers = [api.get(PATH, headers=headers_for(project, key)) for key in ("svc_nobody", revoked_key, expired_key)]

    assert {refusal(answer) for answer in answers} == {(401, "authentication_error", "invalid_api_key")}
    assert len({answer.content for answer in answers}) == 1


def test_key__odd_characters__invalid_api_key(api: APIClient, project: Project) -> None:
    response = api.get(PATH, headers=headers_for(project, "svc_\u00fc\x7f" * 300))
    assert refusal(response) == (401, "authentication_error", "invalid_api_key")


@pytest.mark.parametrize("named", [None, "", "nonsense", str(uuid.uuid4())])
def test_project_header__missing_malformed_or_unknown__invalid_project(
    api: APIClient, project: Project, named: str | None
) -> None:
    headers = {"Authorization": f"Bearer {make_key(project)[1]}"}
    if named is not None:
        headers["X-Project-Id"] = named

    assert refusal(api.get(PATH, headers=headers)) == (401, "authentication_error", "invalid_project")


def test_key__of_another_project__invalid_project(api: APIClient, project: Project) -> None:
    _, key = make_key(make_project())
    assert refusal(api.get(PATH, headers=headers_for(project, key))) == (401, "authentication_error", "invalid_project")


def test_key__gateway_scope_only__scope_missing(api: APIClient, project: Project) -> None:
    _, key = make_key(project, ["gateway"])
    assert refusal(api.get(PATH, headers=headers_for(project, key))) == (403, "permission_error", "scope_missing")


def test_use__many_requests__noted_with_one_write(
    api: APIClient, project: Project, django_assert_num_queries: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    uses = LastUses()
    monkeypatch.setattr("core.keys.last_use.FLUSH_SECONDS", math.inf)
    monkeypatch.setattr("core.api.authentication.note_use", uses.note)
    monkeypatch.setattr("core.api.authentication.flush_last_uses_when_due", uses.flush_when_due)
    row, key = make_key(project)
    before = timezone.now()
    api.get(PATH, headers=headers_for(project, key))
    with django_assert_num_queries(3):  # The queries read the key, the count and the page.
        api.get(PATH, headers=headers_for(project, key))

    row.refresh_from_db()
    assert row.last_used_at is not None and row.last_used_at >= before


@pytest.mark.parametrize("place", ["query", "body"])
def test_project_id__differs_from_header__project_mismatch(api: APIClient, headers: dict[str, str], place: str) -> None:
    other = str(make_project().pk)
    if place == "query":
        response = api.get(f"{PATH}?project_id={other}", headers=headers)
    else:
        response = api.post(PATH, {"project_id": other, "name": "x", "scopes": ["manage"]}, headers=headers)

    assert refusal(response) == (403, "permission_error", "project_mismatch")


def test_project_id__same_in_other_spelling__admitted(
    api: APIClient, headers: dict[str, str], project: Project
) -> None:
    assert api.get(f"{PATH}?project_id={project.pk.hex.upper()}", headers=headers).status_code == 200


@pytest.mark.parametrize("value", ["nonsense", 7, ["x"]])
def test_project_id__no_uuid__names_the_field(api: APIClient, headers: dict[str, str], value: object) -> None:
    response = api.post(PATH, {"project_id": value, "name": "x", "scopes": ["manage"]}, headers=headers)

    assert refusal(response) == (400, "invalid_request_error", "invalid_value")
    assert response.json()["error"]["details"] == {"project_id": ["Must be a UUID."]}


def test_staff_session__reads__admitted(as_staff: Callable[..., APIClient], project: Project) -> None:
    assert as_staff().get(PATH, headers={"X-Project-Id": str(project.pk)}).status_code == 200


def test_staff_session__unknown_project__invalid_project(as_staff: Callable[..., APIClient], db: None) -> None:
    response = as_staff().get(PATH, headers={"X-Project-Id": str(uuid.uuid4())})
    assert refusal(response) == (401, "authentication_error", "invalid_project")


def test_staff_session__no_project__invalid_project(as_staff: Callable[..., APIClient], db: None) -> None:
    assert refusal(as_staff().get(PATH)) == (401, "authentication_error", "invalid_project")


def test_staff_session__write_without_csrf_token__refused(as_staff: Callable[..., APIClient], project: Project) -> None:
    response = as_staff().post(PATH, {"name": "x", "scopes": ["manage"]}, headers={"X-Project-Id": str(project.pk)})
    assert refusal(response) == (403, "permission_error", "csrf_failed")


def test_staff_session__write_with_csrf_token__admitted(as_staff: Callable[..., APIClient], project: Project) -> None:
    client = as_staff()
    token = (
        client.get("/admin/login/").cookies.get("csrftoken")
        or client.get("/admin/password_change/").cookies["csrftoken"]
    )
    response = client.post(
        PATH,
        {"name": "x", "scopes": ["manage"]},
        headers={"X-Project-Id": str(project.pk), "X-CSRFToken": token.value},
    )
    assert response.status_code == 201


def test_session__not_of_staff__missing_api_key(as_staff: Callable[..., APIClient], project: Project) -> None:
    response = as_staff(is_staff=False).get(PATH, headers={"X-Project-Id": str(project.pk)})
    assert refusal(response) == (401, "authentication_error", "missing_api_key")
