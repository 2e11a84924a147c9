from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from core.models import Project
from core.roles import Role
from gateway.models import GatewaySettings
from gateway.project_settings.guardrails import TrustMode
from gateway.services import replace_settings
from tests.console.conftest import sent, shown, signed_in, text_of
from tests.factories.analytics import make_entry, store
from tests.factories.core import client_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse")]

PATH = "/admin/guardrails/"
FORM = {"guardrails_trust_mode": "enforce", "guardrails_pii_block_on_detect": "on"}


@pytest.fixture
def found(tmp_path: Path, project: Project) -> list[str]:
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "mail ann@example.com"}]}).encode()
    entries = [_entry(project, body, action) for action in ("blocked", "blocked", "flagged")]
    store(tmp_path, *entries)
    return [entry.record.request_id for entry in entries]


def _entry(project: Project, body: bytes, action: str) -> Any:
    verdict = {"guardrail": "pii", "stage": "input", "action": action, "detail": "email-address-kind"}
    error = {"error_code": "pii_detected", "outcome": "error"} if action == "blocked" else {}
    # A range ends with the second that has passed.
    ts = int((time.time() - 60) * 1_000_000)
    return make_entry(
        body, b"{}", project_id=str(project.pk), ts=ts, attributes={"guardrails": json.dumps([verdict])}, **error
    )


def test_figures__of_the_range__are_the_api_s_and_lead_to_the_requests(
    administrator: Client, project: Project, found: list[str]
) -> None:
    text = shown(administrator, project, PATH)

    [entry] = client_of(project).get("/api/llm/metrics/guardrails").json()["results"]
    assert (entry["found_count"], entry["blocked_count"], entry["flagged_count"]) == (3, 2, 1)
    for label, value in (("Found", 3), ("Flagged", 1)):
        assert f'<td data-label="{label}" class="number">{value}</td>' in text
    assert "error_code=pii_detected" in text
    assert all(request_id in text for request_id in found)
    assert "Personal data" in text
    assert "email-address-kind" in text


def test_page__without_content__no_details(project: Project, found: list[str]) -> None:
    text = shown(signed_in(project, Role.READER_WITHOUT_CONTENT), project, PATH)

    assert "Personal data" in text
    assert "email-address-kind" not in text


def test_form__sent_for_review__shows_before_and_after_and_saves_nothing(
    administrator: Client, project: Project
) -> None:
    text = text_of(sent(administrator, project, PATH, **FORM, action="review"))

    assert "Refuse requests with personal data" in text
    assert '<td data-label="Before">off: look at nothing</td>' in text
    assert "<strong>on</strong>" in text
    assert not GatewaySettings.objects.exists()


def test_form__confirmed__saved_and_the_other_settings_stay(administrator: Client, project: Project) -> None:
    row = replace_settings(project_id=project.pk, values={"retry_max_attempts": 7}, actor="test")

    answer = sent(administrator, project, PATH, **FORM, action="save", seen=row.updated_at.isoformat())

    assert answer.status_code == 302
    row.refresh_from_db()
    guardrails = row.settings.guardrails
    assert (guardrails.trust_mode, guardrails.pii_block_on_detect) == (TrustMode.ENFORCE, True)
    assert row.settings.retry_max_attempts == 7


def test_form__settings_changed_meanwhile__shown_again_and_not_saved(administrator: Client, project: Project) -> None:
    replace_settings(project_id=project.pk, values={"retry_max_attempts": 7}, actor="test")

    text = text_of(sent(administrator, project, PATH, **FORM, action="save", seen="earlier"))

    assert "Somebody else changed the settings meanwhile" in text
    assert not GatewaySettings.objects.get().settings.guardrails.is_on


def test_form__bad_value__named_and_what_was_typed_stays(administrator: Client, project: Project) -> None:
    values = {**FORM, "guardrails_max_prompt_tokens": "0", "guardrails_blocked_tools": "shell_tool"}

    text = text_of(sent(administrator, project, PATH, **values, action="review"))

    assert "Nothing was saved" in text
    assert "shell_tool" in text
    assert not GatewaySettings.objects.exists()


def test_dry_run__of_the_sent_form__counts_and_names_examples_and_changes_nothing(
    administrator: Client, project: Project, found: list[str]
) -> None:
    text = text_of(sent(administrator, project, PATH, **FORM, action="dry_run"))

    assert "Of 3 requests looked at, <strong>3</strong> would have been refused: 100 %" in text
    assert "2 of them were refused by a guardrail at the time" in text
    assert "email 3" in text
    assert not GatewaySettings.objects.exists()


@pytest.mark.parametrize("role", Role)
def test_page__roles__readers_see_figures_and_administrators_the_form(project: Project, role: Role) -> None:
    client = signed_in(project, role)

    assert ("Review changes" in shown(client, project, PATH)) is (role is Role.ADMINISTRATOR)
    status = sent(client, project, PATH, **FORM, action="review").status_code
    assert status == (200 if role is Role.ADMINISTRATOR else 403)
