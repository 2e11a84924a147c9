"""A project's settings as its pipeline reads them."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from django.core.exceptions import ValidationError

from gateway.models import GatewaySettings
from gateway.project_settings.guardrails import GuardrailSettings, TrustMode
from gateway.project_settings.settings import LimitSettings, LogSettings, ProjectSettings, ReasoningSettings
from gateway.selectors import project_settings
from tests.factories.core import make_project

pytestmark = pytest.mark.django_db


def saved(**values: Any) -> ProjectSettings:
    row = GatewaySettings(project=make_project(), **values)
    row.full_clean()
    row.save()
    return project_settings(row.project_id)


def test_settings__a_row_of_defaults__is_what_a_project_without_one_has() -> None:
    assert saved() == ProjectSettings()


def test_settings__of_each_stage__are_read() -> None:
    found = saved(
        rate_limit_enabled=True,
        rate_limit_rpm=60,
        rate_limit_tpm=1000,
        monthly_budget_usd=Decimal("12.5"),
        budget_hard_stop=True,
        session_budget_usd=Decimal("0.01"),
        log_content=False,
        retention_days=30,
        introspection_enabled=True,
        thinking_budget_tokens=2048,
        cache_ttl_seconds=60,
        judge_model="gpt-4o-mini",
        prompt_cache_markers=True,
        guardrails={"trust_mode": "enforce", "blocked_tools": ["rm"]},
    )

    assert found.limits == LimitSettings(60, 1000, Decimal("12.5"), True, False, Decimal("0.01"))
    assert found.logging == LogSettings(content=False, retention_days=30)
    assert found.reasoning == ReasoningSettings(True, 2048)
    assert (found.cache_ttl_seconds, found.judge_model, found.prompt_cache_markers) == (60, "gpt-4o-mini", True)
    assert found.guardrails == GuardrailSettings(trust_mode=TrustMode.ENFORCE, blocked_tools=("rm",))


def test_settings__rate_limit_switched_off__limits_nothing() -> None:
    assert saved(rate_limit_rpm=60, rate_limit_tpm=1000).limits == LimitSettings()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("guardrails", {"trust_mode": "strict"}),
        ("guardrails", {"unheard_of": True}),
        ("guardrails", {"blocked_tools": [""]}),
        ("guardrails", {"blocked_input_topics": ["a", "a"]}),
        ("guardrails", {"max_prompt_tokens": 0}),
        ("guardrails", {"min_quality_score": 101}),
        ("guardrails", {"min_quality_score": "high"}),
        ("guardrails", [1]),
        ("monthly_budget_usd", Decimal("-0.01")),
        ("session_budget_usd", Decimal("NaN")),
        ("rate_limit_rpm", 0),
        ("rate_limit_tpm", 2**31),
        ("agent_scopes", ["everything:write"]),
        ("alert_emails", ["nobody"]),
        ("alert_webhook_url", "ftp://example.org"),
        ("retention_days", 0),
        ("cache_ttl_seconds", 30 * 86_400 + 1),
        ("thinking_budget_tokens", 1_000_001),
    ],
)
def test_settings__out_of_range__are_refused_by_field(field: str, value: Any) -> None:
    with pytest.raises(ValidationError) as refused:
        saved(**{field: value})
    assert list(refused.value.message_dict) == [field]
