from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from core.keys.services import find_key, hash_key, project_keys
from core.models import ApiKey, AuditEntry, Project
from tests.core.conftest import headers_for
from tests.factories.core import make_key

PATH = "/api/llm/keys"
LIMITS: dict[str, Any] = {
    "monthly_budget_usd": 20.5,
    "total_budget_usd": 100.0,
    "rate_limit_rpm": 60,
    "rate_limit_tpm": 40_000,
    "max_concurrent_requests": 5,
    "allowed_models": ["gpt-*", "anthropic/*"],
    "allowed_providers": ["openai", "anth*"],
    "metadata": {"team": "search", "cost-centre": "42"},
}
UNLIMITED: dict[str, Any] = {
    **dict.fromkeys(LIMITS),
    "allowed_models": [],
    "allowed_providers": [],
    "metadata": {},
}


def test_post__with_limits__stores_and_shows_them(api: APIClient, headers: dict[str, str], project: Project) -> None:
    made = api.post(PATH, {"name": "ci", "scopes": ["gateway"], **LIMITS}, headers=headers)

    assert made.status_code == 201
    body = made.json()
    assert {name: body[name] for name in LIMITS} == LIMITS
    assert api.get(f"{PATH}/{body['id']}", headers=headers).json() == {
        name: value for name, value in body.items() if name != "key"
    }
    record = find_key(hash_key(body["key"]))
    assert record is not None
    assert record.limits is not None
    assert (record.limits.requests_per_minute, record.limits.concurrent_requests) == (60, 5)
    assert record.attributes == {"metadata.team": "search", "metadata.cost-centre": "42"}


def test_post__without_limits__has_none(api: APIClient, headers: dict[str, str]) -> None:
    body = api.post(PATH, {"name": "ci", "scopes": ["gateway"]}, headers=headers).json()

    assert {name: body[name] for name in UNLIMITED} == UNLIMITED
    record = find_key(hash_key(body["key"]))
    assert record is not None
    assert (record.limits, record.is_restricted) == (None, False)


@pytest.mark.parametrize(
    ("field", "value", "named"),
    [
        ("total_budget_usd", 10**9, "total_budget_usd"),
        ("allowed_models", ["a", "a"], "allowed_models"),
        ("metadata", {"team": 1}, "metadata.team"),
        ("metadata", {"team name": "x"}, "metadata"),
        ("metadata", {f"n{n}": "" for n in range(17)}, "metadata"),
    ],
)
def test_bad_value__names_its_field(
    api: APIClient, headers: dict[str, str], project: Project, field: str, value: Any, named: str
) -> None:
    row, _ = make_key(project)
    for response in (
        api.post(PATH, {"name": "ci", "scopes": ["gateway"], field: value}, headers=headers),
        api.patch(f"{PATH}/{row.pk}", {field: value}, headers=headers),
    ):
        assert response.status_code == 400
        assert list(response.json()["error"]["details"]) == [named]


def test_patch__some_fields__leaves_the_others_and_is_audited(
    api: APIClient, headers: dict[str, str], project: Project
) -> None:
    key_id = api.post(PATH, {"name": "ci", "scopes": ["gateway"], **LIMITS}, headers=headers).json()["id"]
    before = ApiKey.objects.get(pk=key_id).limits_changed_at

    changed = api.patch(f"{PATH}/{key_id}", {"rate_limit_rpm": None, "metadata": {"team": "ads"}}, headers=headers)

    assert changed.status_code == 200
    expected = {**LIMITS, "rate_limit_rpm": None, "metadata": {"team": "ads"}}
    assert {name: changed.json()[name] for name in LIMITS} == expected
    after = ApiKey.objects.get(pk=key_id).limits_changed_at
    assert before is not None
    assert after is not None
    assert after > before
    entry = AuditEntry.objects.for_project(project.pk).get(operation="changeApiKey")
    assert entry.changes["rate_limit_rpm"] == [60, None]
    # What was read can be written back.
    assert api.patch(f"{PATH}/{key_id}", changed.json(), headers=headers).json() == changed.json()
    assert ApiKey.objects.get(pk=key_id).limits_changed_at == after


def test_patch__without_the_expiry__keeps_it(api: APIClient, headers: dict[str, str], project: Project) -> None:
    until = timezone.now() + timedelta(days=1)
    row, _ = make_key(project, expires_at=until)

    assert api.patch(f"{PATH}/{row.pk}", {"rate_limit_rpm": 5}, headers=headers).status_code == 200

    row.refresh_from_db()
    assert (row.expires_at, row.rate_limit_rpm) == (until, 5)
    assert api.patch(f"{PATH}/{row.pk}", {"expires_at": None}, headers=headers).json()["expires_at"] is None


def test_rotate__with_grace__opens_by_both_secrets_until_it_is_over(
    api: APIClient, headers: dict[str, str], project: Project
) -> None:
    row, old = make_key(project)

    rotated = api.post(f"{PATH}/{row.pk}/rotate", {"grace_seconds": 3600}, headers=headers)

    assert rotated.status_code == 200
    new = rotated.json()["key"]
    assert rotated.json()["id"] == row.pk
    assert rotated.json()["prefix"] == new[:8]
    for key in (old, new):
        assert api.get(PATH, headers=headers_for(project, key)).status_code == 200
    records = [record for record in project_keys(project.pk) if record.id == row.pk]
    assert {record.key_hash for record in records} == {hash_key(old), hash_key(new)}
    ApiKey.objects.filter(pk=row.pk).update(previous_expires_at=timezone.now() - timedelta(seconds=1))
    assert api.get(PATH, headers=headers_for(project, old)).status_code == 401
    assert api.get(PATH, headers=headers_for(project, new)).status_code == 200


def test_rotate__key_that_ends_within_the_grace__both_secrets_end_with_it(
    api: APIClient, headers: dict[str, str], project: Project
) -> None:
    until = timezone.now() + timedelta(hours=1)
    row, _ = make_key(project, expires_at=until)
    assert api.post(f"{PATH}/{row.pk}/rotate", {"grace_seconds": 86_400}, headers=headers).status_code == 200
    assert [record.expires_at for record in project_keys(project.pk) if record.id == row.pk] == [until, until]


def test_rotate__without_grace_or_again__ends_earlier_secrets(
    api: APIClient, headers: dict[str, str], project: Project
) -> None:
    row, first = make_key(project)
    second = api.post(f"{PATH}/{row.pk}/rotate", {}, headers=headers).json()["key"]
    third = api.post(f"{PATH}/{row.pk}/rotate", {"grace_seconds": 60}, headers=headers).json()["key"]
    assert [find_key(hash_key(key)) is not None for key in (first, second, third)] == [False, True, True]

    fourth = api.post(f"{PATH}/{row.pk}/rotate", {"grace_seconds": 0}, headers=headers).json()["key"]

    assert [find_key(hash_key(key)) is not None for key in (second, third, fourth)] == [False, False, True]


def test_rotate__bad_grace_or_ended_key__refused(api: APIClient, headers: dict[str, str], project: Project) -> None:
    row, _ = make_key(project)
    for grace in (-1, 30 * 86_400 + 1, "60", None):
        refused = api.post(f"{PATH}/{row.pk}/rotate", {"grace_seconds": grace}, headers=headers)
        assert (refused.status_code, list(refused.json()["error"]["details"])) == (400, ["grace_seconds"])
    ended, _ = make_key(project, revoked_at=timezone.now())
    assert api.post(f"{PATH}/{ended.pk}/rotate", {}, headers=headers).json()["error"]["code"] == "key_ended"


def test_revoke__in_the_grace__ends_both_secrets(api: APIClient, headers: dict[str, str], project: Project) -> None:
    row, old = make_key(project)
    new = api.post(f"{PATH}/{row.pk}/rotate", {}, headers=headers).json()["key"]

    api.delete(f"{PATH}/{row.pk}", headers=headers)

    assert (find_key(hash_key(old)), find_key(hash_key(new))) == (None, None)
