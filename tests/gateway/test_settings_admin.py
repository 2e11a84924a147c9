from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from gateway.models import GatewaySettings
from gateway.project_settings.guardrails import GuardrailSettings, TrustMode
from gateway.project_settings.settings import RoutingSettings
from gateway.selectors import project_settings
from tests.factories.core import make_project

pytestmark = pytest.mark.django_db

ADD = "admin:gateway_gatewaysettings_add"


def posted(project_id: str, **changes: Any) -> dict[str, str]:
    given = {
        "preferred_models": ["gpt-4o", "claude-sonnet-4-5"],
        "fallback_order": ["anthropic"],
        **changes,
    }
    fields = {name: json.dumps(value) if isinstance(value, list) else str(value) for name, value in given.items()}
    plain = {"thinking_budget_tokens": "0", "cache_ttl_seconds": "0", "retention_days": "400"}
    return {"project": project_id, "retry_max_attempts": "3", "fallback_enabled": "on", **plain, **fields}


def test_settings__saved_in_the_admin__are_what_the_pipeline_reads(admin_client: Client) -> None:
    project = make_project()

    response = admin_client.post(reverse(ADD), posted(str(project.pk)))

    assert response.status_code == 302, response.content
    assert project_settings(project.pk).routing == RoutingSettings(
        retry_enabled=False,
        retry_max_attempts=3,
        fallback_enabled=True,
        fallback_order=("anthropic",),
        preferred_models=("gpt-4o", "claude-sonnet-4-5"),
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"fallback_order": ["nobody"]}, "Unknown provider: nobody."),
        ({"fallback_order": ["openai", "openai"]}, "A name stands there twice."),
        ({"preferred_models": [1]}, "Expected a list of names."),
        ({"preferred_models": [" "]}, "Expected a list of names."),
        ({"preferred_models": ["x" * 201]}, "A name has at most 200 characters."),
        ({"preferred_models": [f"m{n}" for n in range(51)]}, "At most 50 names are allowed."),
        ({"retry_max_attempts": 0}, "greater than or equal to 1"),
        ({"retry_max_attempts": 11}, "less than or equal to 10"),
    ],
)
def test_settings__out_of_range__are_refused_by_field(
    admin_client: Client, changes: dict[str, Any], message: str
) -> None:
    project = make_project()

    response = admin_client.post(reverse(ADD), posted(str(project.pk), **changes))

    assert response.status_code == 200
    assert message in response.content.decode()
    assert not GatewaySettings.objects.exists()


def test_settings__never_set__are_the_defaults() -> None:
    assert project_settings(make_project().pk).routing == RoutingSettings()


@pytest.mark.parametrize("emptied", ["", "null", "[]"])
def test_settings__lists_emptied_in_the_admin__are_empty_lists(admin_client: Client, emptied: str) -> None:
    project = make_project()
    fields = {**posted(str(project.pk)), "preferred_models": emptied, "fallback_order": emptied}

    response = admin_client.post(reverse(ADD), fields)

    assert response.status_code == 302, response.content
    assert project_settings(project.pk).routing.preferred_models == ()
    assert project_settings(project.pk).routing.fallback_order == ()


def test_guardrails__edited_as_fields__are_what_the_pipeline_reads(admin_client: Client) -> None:
    project = make_project()
    given = {
        "guardrails_trust_mode": "enforce",
        "guardrails_blocked_input_topics": "moon landing\r\n\r\n C++ \r\n",
        "guardrails_max_prompt_tokens": "5000",
        "guardrails_pii_block_on_detect": "on",
        "guardrails_min_quality_score": "62.5",
        "guardrails_blocked_tools": "delete_all",
    }

    response = admin_client.post(reverse(ADD), {**posted(str(project.pk)), **given})

    assert response.status_code == 302, response.content
    assert project_settings(project.pk).guardrails == GuardrailSettings(
        trust_mode=TrustMode.ENFORCE,
        blocked_input_topics=("moon landing", "C++"),
        max_prompt_tokens=5000,
        pii_block_on_detect=True,
        min_quality_score=62.5,
        blocked_tools=("delete_all",),
    )
    row = GatewaySettings.objects.get()
    shown = admin_client.get(reverse("admin:gateway_gatewaysettings_change", args=[row.pk])).content.decode()
    assert "moon landing\nC++</textarea>" in shown
    assert 'value="62.5"' in shown


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("trust_mode", "strict", "Select a valid choice."),
        ("blocked_input_topics", "a\nb\na", "A name stands there twice."),
        ("blocked_output_topics", "x" * 201, "A name has at most 200 characters."),
        ("blocked_tools", "\n".join(map(str, range(51))), "At most 50 names are allowed."),
        ("blocked_tools", "a\x00b", "Null characters are not allowed."),
        ("max_prompt_tokens", "0", "greater than or equal to 1"),
        ("max_prompt_tokens", "99999999999999999999", "less than or equal to 100000000"),
        ("min_quality_score", "101", "less than or equal to 100"),
        ("min_quality_score", "NaN", "Enter a number."),
    ],
)
def test_guardrails__out_of_range__are_refused_by_field(
    admin_client: Client, field: str, value: str, message: str
) -> None:
    fields = {**posted(str(make_project().pk)), f"guardrails_{field}": value}
    response = admin_client.post(reverse(ADD), fields)
    assert response.status_code == 200
    assert message in response.content.decode()
    assert not GatewaySettings.objects.exists()


def test_guardrails__left_alone_in_the_admin__stay_as_they_were(admin_client: Client) -> None:
    project = make_project()
    admin_client.post(reverse(ADD), posted(str(project.pk)))
    assert project_settings(project.pk).guardrails == GuardrailSettings()


@pytest.mark.parametrize("value", ['{"min_quality_score": NaN}', "[1", '"x"', '["\\u0000"]', '[{"a": 1}]', "1e400"])
def test_list__of_anything__is_a_message_and_no_failure(admin_client: Client, value: str) -> None:
    response = admin_client.post(reverse(ADD), {**posted(str(make_project().pk)), "preferred_models": value})
    assert response.status_code == 200
    assert not GatewaySettings.objects.exists()
