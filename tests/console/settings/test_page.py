"""The page of all settings: every one is there, what changes is reviewed, and a change can be taken back."""

from __future__ import annotations

import pytest
from django.test import Client

from console.settings.page import SettingsPage
from console.settings_form.wording import LABELS, flat
from core.models import AuditEntry, Project
from core.roles import Role
from gateway.models import GatewaySettings, SettingsChange
from gateway.services import replace_settings, settings_values
from tests.console.conftest import sent, shown, signed_in, text_of

pytestmark = pytest.mark.django_db

PATH = "/admin/settings/"


def test_sections__of_all_settings__each_field_once_with_a_label() -> None:
    shown_fields = [name for section in SettingsPage.sections for name in section.names]

    everything = flat(
        settings_values(GatewaySettings()) | {"guardrails": settings_values(GatewaySettings())["guardrails"]}
    )
    assert sorted(shown_fields) == sorted(everything)
    assert set(shown_fields) <= set(LABELS)


def test_form__nothing_changed__says_so(administrator: Client, project: Project) -> None:
    defaults = {
        "retry_enabled": "on", "retry_max_attempts": "2", "fallback_enabled": "on", "thinking_budget_tokens": "0",
        "cache_ttl_seconds": "0", "log_content": "on", "retention_days": "400", "agent_enabled": "on",
        "agent_scopes": GatewaySettings().agent_scopes, "guardrails_trust_mode": "off",
    }  # fmt: skip

    assert "Nothing would change." in text_of(sent(administrator, project, PATH, **defaults, action="review"))

    changed = {**defaults, "preferred_models": "gpt-4o\nclaude-sonnet-4", "retry_max_attempts": "5"}
    text = text_of(sent(administrator, project, PATH, **changed, action="review"))
    assert "gpt-4o, claude-sonnet-4" in text
    assert sent(administrator, project, PATH, **changed, action="save", seen="").status_code == 302
    row = GatewaySettings.objects.get()
    assert (row.preferred_models, row.retry_max_attempts) == (["gpt-4o", "claude-sonnet-4"], 5)
    [entry] = AuditEntry.objects.filter(object_kind="settings")
    assert (entry.operation, entry.via) == ("settings", "page")


def test_history__change__shown_and_restored(administrator: Client, project: Project) -> None:
    replace_settings(project_id=project.pk, values={"retry_max_attempts": 3}, actor="user:ann")
    replace_settings(project_id=project.pk, values={"guardrails": {"trust_mode": "monitor"}}, actor="user:bob")

    text = shown(administrator, project, PATH)
    assert "user:ann" in text
    assert "monitor: record, refuse nothing" in text
    change = SettingsChange.objects.get(actor="user:ann")

    assert sent(administrator, project, PATH, restore=str(change.pk)).status_code == 302
    row = GatewaySettings.objects.get()
    assert (row.retry_max_attempts, row.guardrails["trust_mode"]) == (2, "monitor")


def test_restore__change_of_another_project__refused(administrator: Client, project: Project) -> None:
    from tests.factories.core import make_project

    other = make_project()
    replace_settings(project_id=other.pk, values={"retry_max_attempts": 3}, actor="x")
    change = SettingsChange.objects.get()

    sent(administrator, project, PATH, restore=str(change.pk))

    assert GatewaySettings.objects.get(project=other).retry_max_attempts == 3


def test_notice__texts_are_kept__said_until_they_are_not(administrator: Client, project: Project) -> None:
    assert "whatever personal data they hold" in shown(administrator, project, PATH)
    replace_settings(project_id=project.pk, values={"log_content": False}, actor="x")
    assert "whatever personal data they hold" not in shown(administrator, project, PATH)


@pytest.mark.parametrize("role", [role for role in Role if role is not Role.ADMINISTRATOR])
def test_page__lower_roles__403(project: Project, role: Role) -> None:
    client = signed_in(project, role)

    assert client.get(PATH, {"project": str(project.pk)}).status_code == 403
    assert sent(client, project, PATH, action="review").status_code == 403
    assert sent(client, project, PATH, restore="1").status_code == 403
