"""`GET` and `PUT /api/llm/settings` with valid objects, their history, and the rights that they need."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from django.db import connection
from rest_framework.test import APIClient

from core.models import Project
from gateway.models import GatewaySettings, SettingsChange
from gateway.project_settings.settings import ProjectSettings
from gateway.selectors import project_settings
from tests.factories.core import client_of, make_project
from tests.gateway.settings_objects import DEFAULTS, FULL, GUARDRAILS, PATH, without_warnings


def test_settings__never_set__are_the_defaults(api: APIClient) -> None:
    assert api.get(PATH).json() == DEFAULTS


def test_settings__empty_object__is_the_defaults_and_no_change(api: APIClient, project: Project) -> None:
    assert api.put(PATH, {}).json() == DEFAULTS
    assert project_settings(project.pk) == ProjectSettings()
    assert not SettingsChange.objects.exists()


def test_settings__put__come_back_and_what_is_left_out_next_time_is_default(api: APIClient) -> None:
    shown = api.put(PATH, FULL).json()
    assert without_warnings(shown) == FULL
    # The object can be written back as it was read.
    assert api.put(PATH, shown).json() == api.get(PATH).json() == shown
    assert api.put(PATH, {"retry_max_attempts": 3}).json() == {**DEFAULTS, "retry_max_attempts": 3}


def test_guardrails__in_part__have_the_rest_by_default(api: APIClient) -> None:
    shown = api.put(PATH, {"guardrails": {"trust_mode": "monitor"}}).json()["guardrails"]
    assert shown == {**GUARDRAILS, "trust_mode": "monitor"}


def test_project_id__in_the_body__has_to_be_the_header_s(api: APIClient, project: Project) -> None:
    assert api.put(PATH, {**FULL, "project_id": str(project.pk)}).status_code == 200
    other = make_project()
    answer = api.put(PATH, {**FULL, "project_id": str(other.pk)})
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "project_mismatch")
    assert not GatewaySettings.objects.filter(project=other).exists()


def test_history__says_who_changed_what_and_gives_it_back(api: APIClient, project: Project) -> None:
    api.put(PATH, {"retry_max_attempts": 5, "monthly_budget_usd": 10.5})
    api.put(PATH, {"monthly_budget_usd": 20})

    found = api.get(f"{PATH}/history").json()

    assert found["count"] == 2
    latest, first = found["results"]
    assert latest["changes"] == {"retry_max_attempts": [5, 2], "monthly_budget_usd": ["10.5", "20"]}
    assert first["changes"] == {"retry_max_attempts": [2, 5], "monthly_budget_usd": [None, "10.5"]}
    assert latest["actor"].startswith("key:")

    restored = api.post(f"{PATH}/history/{latest['id']}/restore").json()
    assert (restored["retry_max_attempts"], restored["monthly_budget_usd"]) == (5, 10.5)
    assert api.get(f"{PATH}/history").json()["count"] == 3


@pytest.mark.parametrize(
    ("field", "value"),
    [("fallback_order", ["gone_provider"]), ("retry_max_attempts", 99), ("guardrails", {"trust_mode": "strict"})],
)
def test_restore__of_what_is_not_taken_any_more__is_refused_by_name(
    api: APIClient, project: Project, field: str, value: Any
) -> None:
    api.put(PATH, {})
    change = SettingsChange.objects.create(project=project, changes={field: [value, None]})

    response = api.post(f"{PATH}/history/{change.pk}/restore")

    assert (response.status_code, response.json()["error"]["code"]) == (409, "cannot_be_restored")
    assert field in response.json()["error"]["message"]
    assert api.get(PATH).status_code == 200


@pytest.mark.django_db(transaction=True)
def test_put__several_at_once__one_row_and_a_history_that_joins_up() -> None:
    project = make_project()
    clients = [client_of(project) for _ in range(6)]
    barrier = Barrier(len(clients))

    def put(number: int) -> int:
        try:
            barrier.wait()
            status: int = clients[number].put(PATH, {"retention_days": number + 1}).status_code
            return status
        finally:
            connection.close()

    with ThreadPoolExecutor(len(clients)) as pool:
        assert list(pool.map(put, range(len(clients)))) == [200] * len(clients)
    row = GatewaySettings.objects.get(project=project)
    steps = [change.changes["retention_days"] for change in SettingsChange.objects.order_by("id")]
    assert len(steps) == len(clients)
    assert [before for before, _ in steps] == [400, *(after for _, after in steps[:-1])]
    assert steps[-1][1] == row.settings.retention_days
