from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from core.models import Project
from core.roles import Role
from core.ui.formats import money
from gateway.models import GatewaySettings
from gateway.project_settings.guardrails import GuardrailSettings, TrustMode
from gateway.selectors import project_settings
from gateway.services import replace_settings
from tests.console.conftest import sent, shown, signed_in, text_of
from tests.factories.analytics import make_entry, store
from tests.factories.core import client_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse")]

PATH = "/admin/limits/"
FORM = {"rate_limit_enabled": "on", "rate_limit_rpm": "60", "monthly_budget_usd": "12.5", "alert_emails": "a@x.example"}


@pytest.fixture
def spent(tmp_path: Path, project: Project) -> None:
    ts = int((time.time() - 60) * 1_000_000)
    refused = {"error_code": "requests_per_minute", "error_type": "rate_limit_error", "outcome": "error"}
    costs: list[dict[str, Any]] = [{"cost_usd": "1.0000000000"}] * 3 + [{**refused, "cost_usd": "0"}]
    store(tmp_path, *(make_entry(project_id=str(project.pk), ts=ts, **values) for values in costs))


def test_now__budget_set__spend_and_forecast_are_the_api_s(
    administrator: Client, project: Project, spent: None
) -> None:
    replace_settings(project_id=project.pk, values={"monthly_budget_usd": 4}, actor="test")

    text = shown(administrator, project, PATH)

    month = client_of(project).get("/api/llm/usage").json()["month"]
    assert f"{money(month['spent_usd'])} of $4.00" in text
    assert f"{money(month['remaining_usd'])} left" in text
    assert money(month["forecast_usd"]) in text
    assert "budget" in text


def test_refused__by_limit__counted_and_led_to(administrator: Client, project: Project, spent: None) -> None:
    text = shown(administrator, project, PATH)

    assert "error_code=requests_per_minute" in text
    assert '">1</a>' in text


def test_form__reviewed_and_saved__changes_only_what_was_shown(administrator: Client, project: Project) -> None:
    row = replace_settings(project_id=project.pk, values={"guardrails": {"trust_mode": "monitor"}}, actor="test")

    text = text_of(sent(administrator, project, PATH, **FORM, action="review"))
    assert '<td data-label="Before">no limit</td>' in text
    assert "<strong>$12.50</strong>" in text

    answer = sent(administrator, project, PATH, **FORM, action="save", seen=row.updated_at.isoformat())
    assert answer.status_code == 302
    found = project_settings(project.pk)
    assert (found.rate_limit_rpm, found.alert_emails) == (60, ("a@x.example",))
    assert found.guardrails == GuardrailSettings(trust_mode=TrustMode.MONITOR)


@pytest.mark.parametrize(
    ("values", "field"), [({"rate_limit_rpm": "0"}, "rate_limit_rpm"), ({"alert_emails": "nobody"}, "alert_emails")]
)
def test_form__bad_value__named_and_kept(
    administrator: Client, project: Project, values: dict[str, str], field: str
) -> None:
    text = text_of(sent(administrator, project, PATH, **{**FORM, **values}, action="save", seen=""))

    assert "Nothing was saved" in text
    assert f'name="{field}"' in text
    assert "12.5" in text
    assert not GatewaySettings.objects.exists()


@pytest.mark.parametrize("role", Role)
def test_page__roles__readers_see_use_and_administrators_the_form(project: Project, role: Role) -> None:
    client = signed_in(project, role)

    assert ("Review changes" in shown(client, project, PATH)) is (role is Role.ADMINISTRATOR)
    assert sent(client, project, PATH, **FORM).status_code == (200 if role is Role.ADMINISTRATOR else 403)
