from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from console.settings.page import SettingsPage
from console.settings_form.form import field_name, settings_of
from core.models import AuditEntry, Project
from gateway.models import GatewaySettings, SettingsChange
from gateway.project_settings.declaration import parts
from gateway.project_settings.guardrails import GuardrailSettings, TrustMode
from gateway.project_settings.settings import ProjectSettings
from gateway.selectors import project_settings
from gateway.services import replace_settings
from tests.console.conftest import sent, shown, text_of
from tests.factories.settings import make_settings
from tests.tables.cases import tabled

pytestmark = pytest.mark.django_db

PATH = "/admin/settings/"


def _posted(value: Any) -> Any:
    return "on" if value is True else str(value) if isinstance(value, int) else value


DEFAULTS = {
    field_name(one.path): _posted(one.default)
    for one in parts(ProjectSettings)
    if one.default not in (None, "", []) and one.default is not False
}


def test_sections__of_all_settings__each_field_once() -> None:
    shown_fields = [one for section in SettingsPage.sections for one in settings_of(section)]

    assert sorted(shown_fields, key=lambda one: one.path) == sorted(parts(ProjectSettings), key=lambda one: one.path)


@tabled
def test_form__out_of_range__refused_by_field(
    administrator: Client, project: Project, changes: dict[str, Any], message: str
) -> None:
    assert message in text_of(sent(administrator, project, PATH, **{**DEFAULTS, **changes}, action="save", seen=""))
    assert not GatewaySettings.objects.exists()


def test_form__guardrails_edited__are_what_the_pipeline_reads(administrator: Client, project: Project) -> None:
    given = {
        "guardrails_trust_mode": "enforce",
        "guardrails_blocked_input_topics": "moon landing\r\n\r\n C++ \r\n",
        "guardrails_max_prompt_tokens": "5000",
        "guardrails_min_quality_score": "62.5",
        "guardrails_document_delimiters": "<doc> </doc>",
    }

    assert sent(administrator, project, PATH, **{**DEFAULTS, **given}, action="save", seen="").status_code == 302

    assert project_settings(project.pk).guardrails == GuardrailSettings(
        trust_mode=TrustMode.ENFORCE,
        blocked_input_topics=("moon landing", "C++"),
        max_prompt_tokens=5000,
        min_quality_score=62.5,
        document_delimiters=("<doc> </doc>",),
    )
    text = shown(administrator, project, PATH)
    assert "moon landing\nC++</textarea>" in text
    assert 'value="62.5"' in text


def test_page__setting_without_effect__warning(administrator: Client, project: Project) -> None:
    make_settings(project, guardrails={"pii_block_on_detect": True})

    text = shown(administrator, project, PATH)

    assert 'Refuse requests with personal data</a>: Does nothing while <a href="#id_guardrails_trust_mode">' in text
    assert "guardrails.trust_mode" not in text


def test_table__row__is_read_only(administrator: Client, project: Project) -> None:
    row = make_settings(project, retention_days=77)

    assert administrator.get(f"/admin/gateway/gatewaysettings/{row.pk}/change/").status_code == 200
    assert administrator.get("/admin/gateway/gatewaysettings/add/").status_code == 403


def test_form__nothing_changed__says_so(administrator: Client, project: Project) -> None:
    assert "Nothing would change." in text_of(sent(administrator, project, PATH, **DEFAULTS, action="review"))

    changed = {**DEFAULTS, "preferred_models": "gpt-4o\nclaude-sonnet-4", "retry_max_attempts": "5"}
    text = text_of(sent(administrator, project, PATH, **changed, action="review"))
    assert "gpt-4o, claude-sonnet-4" in text
    assert sent(administrator, project, PATH, **changed, action="save", seen="").status_code == 302
    found = project_settings(project.pk)
    assert (found.preferred_models, found.retry_max_attempts) == (("gpt-4o", "claude-sonnet-4"), 5)
    [entry] = AuditEntry.objects.filter(object_kind="settings")
    assert (entry.operation, entry.via) == ("settings", "page")


def test_history__change__shown_and_restored(administrator: Client, project: Project) -> None:
    replace_settings(project_id=project.pk, values={"retry_max_attempts": 3}, actor="user:ann")
    replace_settings(project_id=project.pk, values={"guardrails": {"trust_mode": "monitor"}}, actor="user:bob")

    text = shown(administrator, project, PATH)
    assert "· ann ·" in text
    assert "monitor: record, refuse nothing" in text
    change = SettingsChange.objects.get(actor="user:ann")

    assert sent(administrator, project, PATH, restore=str(change.pk)).status_code == 302
    found = project_settings(project.pk)
    assert (found.retry_max_attempts, found.guardrails.trust_mode) == (2, TrustMode.MONITOR)


def test_restore__change_of_another_project__refused(administrator: Client, project: Project) -> None:
    from tests.factories.core import make_project

    other = make_project()
    replace_settings(project_id=other.pk, values={"retry_max_attempts": 3}, actor="x")
    change = SettingsChange.objects.get()

    sent(administrator, project, PATH, restore=str(change.pk))

    assert project_settings(other.pk).retry_max_attempts == 3


def test_notice__texts_are_kept__said_until_they_are_not(administrator: Client, project: Project) -> None:
    assert "whatever personal data they hold" in shown(administrator, project, PATH)
    replace_settings(project_id=project.pk, values={"log_content": False}, actor="x")
    assert "whatever personal data they hold" not in shown(administrator, project, PATH)
