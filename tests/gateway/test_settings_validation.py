"""`PUT /api/llm/settings`: the bounds of each setting, and bodies that are not valid."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings
from rest_framework.test import APIClient

from core.models import Project
from gateway.models import AGENT_SCOPES
from tests.factories.core import client_of, make_project
from tests.gateway.settings_objects import DEFAULTS, FULL, GUARDRAILS, PATH, without_warnings


@pytest.fixture
def project(db: None) -> Project:
    return make_project()


@pytest.fixture
def api(project: Project) -> APIClient:
    return client_of(project)


NUMBERS: list[tuple[str, Any, Any]] = [
    ("thinking_budget_tokens", 0, 1_000_000),
    ("retry_max_attempts", 1, 10),
    ("rate_limit_rpm", 1, 2_000_000_000),
    ("rate_limit_tpm", 1, 2_000_000_000),
    ("monthly_budget_usd", 0, 100_000_000),
    ("session_budget_usd", 0, 100_000_000),
    ("end_user_monthly_budget_usd", 0, 100_000_000),
    ("end_user_rpm", 1, 2_000_000_000),
    ("end_user_tpm", 1, 2_000_000_000),
    ("end_user_max_concurrent", 1, 100_000),
    ("cache_ttl_seconds", 0, 30 * 86_400),
    ("retention_days", 1, 3650),
]


@pytest.mark.parametrize(("name", "min_value", "max_value"), NUMBERS)
def test_number__at_its_bounds_and_beyond(api: APIClient, name: str, min_value: int, max_value: int) -> None:
    for value in (min_value, max_value):
        assert api.put(PATH, {name: value}).json()[name] == value
    for value in (min_value - 1, max_value + 1, 2**70, -(2**70)):
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
        ({"guardrails": {"document_delimiters": ["<doc>"]}}, "guardrails"),
        ({"guardrails": {"document_delimiters": ["<doc> and </doc>"]}}, "guardrails"),
        ({"guardrails": {"document_delimiters": ["--- ---"]}}, "guardrails"),
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
    assert api.put(PATH, content, content_type="application/json").status_code == 400


@pytest.mark.parametrize("content", [b'{"monthly_budget_usd": Infinity}', b'{"monthly_budget_usd": 1e400}'])
def test_number__beyond_all_numbers__is_refused(api: APIClient, content: bytes) -> None:
    assert api.put(PATH, content, content_type="application/json").status_code == 400


MONEY = st.none() | st.integers(0, 10**8) | st.integers(0, 10**14).map(lambda cents: cents / 10**8)
NAMES = st.lists(st.from_regex(r"[a-z][a-z0-9/-]{0,20}", fullmatch=True), unique=True, max_size=5)
OBJECTS = st.fixed_dictionaries(
    {},
    optional={
        **{name: st.booleans() for name, value in DEFAULTS.items() if isinstance(value, bool)},
        **{
            name: st.integers(min_value, max_value)
            for name, min_value, max_value in NUMBERS
            if not name.endswith("usd")
        },
        "monthly_budget_usd": MONEY,
        "session_budget_usd": MONEY,
        "end_user_monthly_budget_usd": MONEY,
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
