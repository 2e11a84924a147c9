"""`GET` and `PUT /api/llm/settings`: the whole object, and bodies that are not valid."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import hypothesis.strategies as st
import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from hypothesis import HealthCheck, given, settings
from rest_framework.test import APIClient

from core.models import Project
from gateway.models import AGENT_SCOPES, GatewaySettings, SettingsChange
from gateway.project_settings.settings import ProjectSettings
from gateway.selectors import project_settings
from tests.factories.core import client_of, make_project

PATH = "/api/llm/settings"
GUARDRAILS: dict[str, Any] = {
    "trust_mode": "off",
    "blocked_input_topics": [],
    "blocked_output_topics": [],
    "max_prompt_tokens": None,
    "pii_block_on_detect": False,
    "prompt_injection_detection": False,
    "spotlighting_enabled": False,
    "mask_output_pii": False,
    "min_quality_score": None,
    "blocked_tools": [],
    "block_exfiltration_urls": False,
}
DEFAULTS = {
    "introspection_enabled": False,
    "thinking_budget_tokens": 0,
    "fallback_enabled": True,
    "fallback_order": [],
    "preferred_models": [],
    "retry_enabled": True,
    "retry_max_attempts": 2,
    "rate_limit_enabled": False,
    "rate_limit_rpm": None,
    "rate_limit_tpm": None,
    "monthly_budget_usd": None,
    "budget_alert_enabled": False,
    "budget_hard_stop": False,
    "session_budget_usd": None,
    "guardrails": GUARDRAILS,
    "cache_ttl_seconds": 0,
    "log_content": True,
    "retention_days": 400,
    "judge_model": "",
    "agent_enabled": True,
    "agent_scopes": list(AGENT_SCOPES),
    "agent_model": "",
    "alert_webhook_url": "",
    "alert_emails": [],
    "warnings": [],
}
FULL = {
    "introspection_enabled": True,
    "thinking_budget_tokens": 2048,
    "fallback_enabled": False,
    "fallback_order": ["anthropic", "openai"],
    "preferred_models": ["gpt-4o", "claude-sonnet-4-5"],
    "retry_enabled": False,
    "retry_max_attempts": 5,
    "rate_limit_enabled": True,
    "rate_limit_rpm": 60,
    "rate_limit_tpm": 100_000,
    "monthly_budget_usd": 12.3456789012,
    "budget_alert_enabled": True,
    "budget_hard_stop": True,
    "session_budget_usd": 0.01,
    "guardrails": {
        "trust_mode": "enforce",
        "blocked_input_topics": ["stock tips"],
        "blocked_output_topics": ["Börse", "股票"],
        "max_prompt_tokens": 1000,
        "pii_block_on_detect": True,
        "prompt_injection_detection": True,
        "spotlighting_enabled": True,
        "mask_output_pii": True,
        "min_quality_score": 62.5,
        "blocked_tools": ["shell"],
        "block_exfiltration_urls": True,
    },
    "cache_ttl_seconds": 60,
    "log_content": False,
    "retention_days": 30,
    "judge_model": "gpt-4o-mini",
    "agent_enabled": False,
    "agent_scopes": ["llm:read"],
    "agent_model": "gpt-4o",
    "alert_webhook_url": "https://example.org/hook",
    "alert_emails": ["ops@example.org"],
}


@pytest.fixture
def project(db: None) -> Project:
    return make_project()


@pytest.fixture
def api(project: Project) -> APIClient:
    return client_of(project)


def without_warnings(shown: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in shown.items() if name != "warnings"}


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


NUMBERS: list[tuple[str, Any, Any]] = [
    ("thinking_budget_tokens", 0, 1_000_000),
    ("retry_max_attempts", 1, 10),
    ("rate_limit_rpm", 1, 2_000_000_000),
    ("rate_limit_tpm", 1, 2_000_000_000),
    ("monthly_budget_usd", 0, 100_000_000),
    ("session_budget_usd", 0, 100_000_000),
    ("cache_ttl_seconds", 0, 30 * 86_400),
    ("retention_days", 1, 3650),
]


@pytest.mark.parametrize(("name", "least", "most"), NUMBERS)
def test_number__at_its_bounds_and_beyond(api: APIClient, name: str, least: int, most: int) -> None:
    for value in (least, most):
        assert api.put(PATH, {name: value}).json()[name] == value
    for value in (least - 1, most + 1, 2**70, -(2**70)):
        refused(api, {name: value}, name)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"retry_enabled": "true"}, "retry_enabled"),
        ({"retry_enabled": 1}, "retry_enabled"),
        ({"retry_enabled": None}, "retry_enabled"),
        ({"retry_max_attempts": True}, "retry_max_attempts"),
        ({"retry_max_attempts": "2"}, "retry_max_attempts"),
        ({"retry_max_attempts": 2.0}, "retry_max_attempts"),
        ({"retry_max_attempts": None}, "retry_max_attempts"),
        ({"monthly_budget_usd": "12"}, "monthly_budget_usd"),
        ({"monthly_budget_usd": True}, "monthly_budget_usd"),
        ({"monthly_budget_usd": 0.00000000001}, "monthly_budget_usd"),
        ({"monthly_budget_usd": 1234567.1234567891}, "monthly_budget_usd"),
        ({"fallback_order": "openai"}, "fallback_order"),
        ({"fallback_order": ["nobody"]}, "fallback_order"),
        ({"fallback_order": {"a": 1}}, "fallback_order"),
        ({"preferred_models": ["a", "a"]}, "preferred_models"),
        ({"preferred_models": [" "]}, "preferred_models"),
        ({"preferred_models": [5]}, "preferred_models"),
        ({"preferred_models": ["x" * 201]}, "preferred_models"),
        ({"preferred_models": [f"m{n}" for n in range(51)]}, "preferred_models"),
        ({"agent_scopes": ["all:write"]}, "agent_scopes"),
        ({"agent_scopes": ["llm:read", "llm:read"]}, "agent_scopes"),
        ({"alert_emails": ["nobody"]}, "alert_emails"),
        ({"alert_webhook_url": "ftp://example.org"}, "alert_webhook_url"),
        ({"alert_webhook_url": 5}, "alert_webhook_url"),
        ({"judge_model": "x" * 201}, "judge_model"),
        ({"guardrails": []}, "guardrails"),
        ({"guardrails": None}, "guardrails"),
        ({"guardrails": {"trust_mode": "ENFORCE"}}, "guardrails"),
        ({"guardrails": {"unheard_of": 1}}, "guardrails"),
        ({"guardrails": {"blocked_tools": "shell"}}, "guardrails"),
        ({"guardrails": {"min_quality_score": 100.1}}, "guardrails"),
        ({"guardrails": {"max_prompt_tokens": 0}}, "guardrails"),
        ({"unheard_of": 1}, "unheard_of"),
    ],
)
def test_value__that_is_none__is_refused_by_name_and_changes_nothing(
    api: APIClient, body: dict[str, Any], field: str
) -> None:
    api.put(PATH, FULL)
    refused(api, body, field)
    assert without_warnings(api.get(PATH).json()) == FULL


def refused(api: APIClient, body: dict[str, Any], field: str) -> None:
    answer = api.put(PATH, body)
    assert answer.status_code == 400, answer.content
    (named,) = answer.json()["error"]["details"]
    assert named.split(".")[0] == field


@pytest.mark.parametrize("content", [b"[]", b"5", b"null", b'"x"', b"{", b"", b'{"retry_max_attempts": NaN}'])
def test_body__that_is_no_object__is_refused(api: APIClient, content: bytes) -> None:
    assert api.put(PATH, content, content_type="application/json").status_code == (200 if content == b"" else 400)


@pytest.mark.parametrize("content", [b'{"monthly_budget_usd": Infinity}', b'{"monthly_budget_usd": 1e400}'])
def test_number__beyond_all_numbers__is_refused(api: APIClient, content: bytes) -> None:
    assert api.put(PATH, content, content_type="application/json").status_code == 400


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


def test_history__of_another_project__is_out_of_reach(api: APIClient) -> None:
    other = client_of(make_project())
    other.put(PATH, FULL)
    change = other.get(f"{PATH}/history").json()["results"][0]["id"]
    assert api.get(f"{PATH}/history").json()["count"] == 0
    assert api.post(f"{PATH}/history/{change}/restore").status_code == 404


def test_admin__saves_and_history_names_the_person(admin_client: Client, project: Project) -> None:
    fields = {
        "thinking_budget_tokens": "0",
        "cache_ttl_seconds": "0",
        "retention_days": "77",
        "retry_max_attempts": "2",
    }
    path = "/admin/gateway/gatewaysettings/add/"
    response = admin_client.post(path, {"project": str(project.pk), "fallback_enabled": "on", **fields})
    assert response.status_code == 302, response.content
    change = SettingsChange.objects.get(project=project)
    assert change.actor == f"user:{User.objects.get().username}"
    assert change.changes["retention_days"] == [400, 77]
    listed = admin_client.get("/admin/gateway/settingschange/")
    assert b"retention_days" in listed.content
    assert admin_client.post(f"/admin/gateway/settingschange/{change.pk}/delete/").status_code == 403


def test_key__without_the_scope__may_not(project: Project) -> None:
    api = client_of(project, scopes=["gateway"])
    assert [api.get(PATH).status_code, api.put(PATH, FULL).status_code] == [403, 403]


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
    assert steps[-1][1] == row.retention_days


MONEY = st.none() | st.integers(0, 10**8) | st.integers(0, 10**14).map(lambda cents: cents / 10**8)
NAMES = st.lists(st.from_regex(r"[a-z][a-z0-9/-]{0,20}", fullmatch=True), unique=True, max_size=5)
OBJECTS = st.fixed_dictionaries(
    {},
    optional={
        **{name: st.booleans() for name, value in DEFAULTS.items() if isinstance(value, bool)},
        **{name: st.integers(least, most) for name, least, most in NUMBERS if not name.endswith("usd")},
        "monthly_budget_usd": MONEY,
        "session_budget_usd": MONEY,
        "preferred_models": NAMES,
        "agent_scopes": st.lists(st.sampled_from(AGENT_SCOPES), unique=True),
        "guardrails": st.fixed_dictionaries(
            {},
            optional={
                "trust_mode": st.sampled_from(["off", "monitor", "enforce"]),
                "blocked_tools": NAMES,
                "max_prompt_tokens": st.none() | st.integers(1, 10**6),
                "min_quality_score": st.none() | st.floats(0, 100),
                "mask_output_pii": st.booleans(),
            },
        ),
    },
)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(values=OBJECTS)
def test_settings__any_good_object__comes_back_equal(api: APIClient, values: dict[str, Any]) -> None:
    expected = {**DEFAULTS, **values, "guardrails": {**GUARDRAILS, **values.get("guardrails", {})}}
    answer = api.put(PATH, values)
    assert answer.status_code == 200, answer.content
    assert without_warnings(answer.json()) == without_warnings(expected)
    assert answer.json() == api.get(PATH).json()
