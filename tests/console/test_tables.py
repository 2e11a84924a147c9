from __future__ import annotations

from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.test import Client, RequestFactory
from django.urls import reverse

from core.models import Project
from core.rights.table import MODELS
from core.roles import Role
from core.site.admin import RightsAdmin
from core.ui.registry import registered_pages
from prompts.services import activate_version
from tests.factories.core import make_key, make_staff
from tests.factories.everything import one_of_everything
from tests.factories.prompts import make_config
from tests.factories.rollouts import make_rollout

# What a superuser may write in a table: the fields of its forms, a deletion, and its actions. A plain save is right for
# each; anything that has to pass a service is on the page that the table names.
WRITTEN: dict[str, set[str]] = {
    # A project has a name, and the signal of a new one is sent by the form.
    "core_project": {"add name", "change name", "delete", "delete_selected"},
    # Accounts are Django's.
    "auth_user": {
        *("add username", "add usable_password", "add password1", "add password2"),
        *("change username", "change password", "change first_name", "change last_name", "change email"),
        *("change is_active", "change is_staff", "change is_superuser", "change last_login", "change date_joined"),
        *("delete", "delete_selected", "reset_second_factor"),
    },
    # The page revokes a key; its row, which names it in the log, may be deleted afterwards.
    "core_apikey": {"delete", "delete_selected"},
    "core_host": {"delete", "delete_selected"},
    # One that has ended; the console's page moves it.
    "rollouts_rollout": {"delete"},
    # The secret is made by the gateway, and the action makes another one.
    "gateway_alertsecret": {"rotate"},
    # A person's own conversations.
    "agent_conversation": {"delete", "delete_selected"},
}
# The tables whose changes pass a service, with what each of these changes is on the page: a field or an action.
BY_PAGE: dict[str, tuple[str, set[str]]] = {
    "core_apikey": ("api_keys", {"name", "scopes", "expires_at", "revoke"}),
    "core_membership": ("members", {"username", "role", "change", "remove"}),
    "integrations_providerintegration": (
        "provider_keys",
        {
            *("api_key", "base_url", "default_parameters", "forced_parameters", "extra_headers", "forward_headers"),
            *("test", "disable", "remove"),
        },
    ),
    "integrations_modelprice": (
        "prices",
        {"input_cost_per_1m", "output_cost_per_1m", "cache_read_cost_per_1m", "cache_write_cost_per_1m"},
    ),
    "integrations_priceperiod": ("prices", set()),
    "integrations_pricesynclog": ("prices", {"sync"}),
    "analytics_tracedestination": (
        "trace_destinations",
        {"name", "endpoint", "headers", "sampling_ratio", "include_content", "enabled", "test", "remove"},
    ),
    "analytics_evaluator": (
        "evaluators",
        {"definition-value", "definition-good_from", "save", "try", "name", "description", "rename", "archive"},
    ),
    "analytics_evaluatorversion": ("evaluators", set()),
    "prompts_promptconfig": ("prompts", {"name", "description", "activate", "undo", "delete"}),
    "prompts_promptversion": ("prompts", {"system_prompt", "model", "temperature", "max_tokens", "commit_message"}),
    "prompts_promptactivation": ("prompts", set()),
    "gateway_gatewaysettings": ("settings", {"review"}),
    "gateway_settingschange": ("settings", set()),
    "rollouts_rollout": ("rollouts", {"start", "pause", "promote", "roll_back", "complete"}),
}

pytestmark = pytest.mark.django_db


def _tables() -> dict[str, RightsAdmin]:
    tables = {
        f"{model._meta.app_label}_{model._meta.model_name}": table for model, table in admin.site._registry.items()
    }
    return {name: table for name, table in tables.items() if isinstance(table, RightsAdmin)}


def _written(table: RightsAdmin, request: Any) -> set[str]:
    found = {
        name for name in table.get_actions(request) if name != "delete_selected" or table.has_delete_permission(request)
    }
    if table.has_add_permission(request):
        found |= {f"add {name}" for name in table.get_form(request, None, change=False).base_fields}
    if table.has_change_permission(request):
        row = table.model()
        found |= {f"change {name}" for name in table.get_form(request, row, change=True).base_fields}
    if table.has_delete_permission(request):
        found.add("delete")
    return found


def test_tables__what_a_superuser_may_write__is_listed_here() -> None:
    request = RequestFactory().get("/admin/")
    request.user = User.objects.create_superuser("root")

    written = {name: _written(table, request) for name, table in _tables().items()}

    assert {name: found for name, found in written.items() if found} == WRITTEN


def test_tables__page_of_changes__is_named_and_registered() -> None:
    pages = {page.name for page in registered_pages()}

    named = {name: table.page_of_changes for name, table in _tables().items() if table.page_of_changes}

    assert named == {name: page for name, (page, _) in BY_PAGE.items()}
    assert set(named.values()) <= pages


def test_pages__of_changes__offer_every_field_and_action(client: Client, project: Project, clickhouse: None) -> None:
    rows = one_of_everything(project)
    make_key(project)
    make_staff(Role.READER, project)
    client.force_login(User.objects.create_superuser("root"))
    config = make_config(project, "twice", versions=2)
    for version in config.versions.order_by("-number"):
        activate_version(project_id=project.pk, config_id=config.pk, version_id=version.pk, actor="test")
    rollouts = [
        make_rollout(make_config(project, name, versions=2), started=name == "busy") for name in ("new", "busy")
    ]
    integration = rows["integrations_providerintegration"]
    places = {
        "api_keys": ["keys/api/?"],
        "members": ["members/?"],
        "provider_keys": [f"keys/provider/?name={integration.name}&"],
        "prices": ["prices/?", "prices/model/?provider=openai&model=gpt-4o&"],
        "trace_destinations": [f"trace-export/?destination={rows['analytics_tracedestination'].pk}&"],
        "evaluators": [f"evaluators/{rows['analytics_evaluator'].pk}/?"],
        "prompts": [f"prompts/{config.pk}/?", f"prompts/{config.pk}/edit/?"],
        "settings": ["settings/?"],
        "rollouts": [f"rollouts/rollout/{rollout.pk}/change/?" for rollout in rollouts],
    }
    shown = {
        page: "".join(_text(client.get(f"/admin/{path}project={project.pk}")) for path in paths)
        for page, paths in places.items()
    }

    missing = {
        name: gone
        for name, (page, offered) in BY_PAGE.items()
        if (
            gone := {
                one for one in offered if f'name="{one}"' not in shown[page] and f'value="{one}"' not in shown[page]
            }
        )
    }

    assert missing == {}


def test_tables__read_only__lead_to_the_page_in_the_project_of_the_row(client: Client, project: Project) -> None:
    client.force_login(User.objects.create_superuser("root"))
    rows = one_of_everything(project)

    for name, (page, _) in BY_PAGE.items():
        place = f"/admin/{name.replace('_', '/', 1)}/"
        assert "the page of these rows" in client.get(place).content.decode(), name
        if name in rows and name not in ("rollouts_rollout", "integrations_pricesynclog"):
            text = client.get(f"{place}{rows[name].pk}/change/").content.decode()
            assert f'<a href="{reverse(f"admin:{page}")}?project={project.pk}">the page of these rows' in text, name


def test_tables__every_model__has_filters_and_a_search_or_says_why() -> None:
    """Pages in place of a table have neither."""
    without = {"agent_panel", "analytics_requests", "gateway_playground"}

    bare = {name for name, table in _tables().items() if not (table.search_fields or table.list_filter)}

    assert bare == without
    assert set(MODELS) == set(_tables())


def _text(answer: Any) -> str:
    assert answer.status_code == 200, answer
    return b"".join(answer.streaming_content).decode() if answer.streaming else answer.content.decode()
