from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from gateway.models import GatewaySettings
from gateway.selectors import project_settings
from gateway.snapshot.settings import RoutingSettings
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
    ("changes", "said"),
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
def test_settings__out_of_range__are_refused_by_field(admin_client: Client, changes: dict[str, Any], said: str) -> None:
    project = make_project()

    response = admin_client.post(reverse(ADD), posted(str(project.pk), **changes))

    assert response.status_code == 200
    assert said in response.content.decode()
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
