from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from core.keys.services import hash_key
from core.models import ApiKey, Project
from tests.core.conftest import headers_for
from tests.factories.core import make_key
from tests.tables.cases import tabled

PATH = "/api/llm/keys"


def test_post__valid__shows_the_key_once(api: APIClient, headers: dict[str, str]) -> None:
    expires_at = timezone.now() + timedelta(days=1)
    made = api.post(PATH, {"name": "ci", "scopes": ["gateway"], "expires_at": expires_at.isoformat()}, headers=headers)

    assert made.status_code == 201
    body = made.json()
    assert ApiKey.objects.get(pk=body["id"]).key_hash == hash_key(body["key"])
    listed = api.get(PATH, headers=headers)
    assert body["key"] not in listed.content.decode()
    assert body["prefix"] == body["key"][:8]
    assert hash_key(body["key"]) not in listed.content.decode()


def test_post__issued_key__opens_the_api(api: APIClient, headers: dict[str, str], project: Project) -> None:
    key = api.post(PATH, {"name": "ci", "scopes": ["manage"]}, headers=headers).json()["key"]
    assert api.get(PATH, headers=headers_for(project, key)).status_code == 200


@tabled
def test_post__bad_body__names_the_field(
    api: APIClient, headers: dict[str, str], body: Any, field: str | None, code: str
) -> None:
    response = api.post(PATH, body, headers=headers)

    error = response.json()["error"]
    assert (response.status_code, error["type"], error["code"]) == (400, "invalid_request_error", code)
    if field is not None:
        assert list(error["details"]) == [field]
        assert field in error["message"] or field == "non_field_errors"


def test_post__name_at_the_limit__accepted(api: APIClient, headers: dict[str, str]) -> None:
    assert api.post(PATH, {"name": "x" * 100, "scopes": ["manage"]}, headers=headers).status_code == 201


def test_delete__own_key__revoked_at_once_and_still_listed(
    api: APIClient, headers: dict[str, str], project: Project
) -> None:
    row, key = make_key(project)

    assert api.delete(f"{PATH}/{row.pk}", headers=headers).status_code == 204
    assert api.delete(f"{PATH}/{row.pk}", headers=headers).status_code == 204

    assert api.get(PATH, headers=headers_for(project, key)).status_code == 401
    listed = {item["id"]: item["revoked_at"] for item in api.get(PATH, headers=headers).json()["results"]}
    assert listed[row.pk] is not None


@pytest.mark.parametrize("key_id", ["0", "99999999999999999999999999", "abc"])
def test_delete__no_such_id__not_found(api: APIClient, headers: dict[str, str], key_id: str) -> None:
    response = api.delete(f"{PATH}/{key_id}", headers=headers)
    assert response.status_code == 404
    assert response.json()["error"]["code"] == "not_found"
