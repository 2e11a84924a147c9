"""A project's settings as its pipeline reads them."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import msgspec
import pytest

from core.caller_limits import CallerLimits
from gateway.project_settings.guardrails import GuardrailSettings, TrustMode
from gateway.project_settings.limits import ProjectLimits, limits_of, limits_of_every_user
from gateway.project_settings.settings import ProjectSettings
from gateway.selectors import project_settings
from gateway.services import replace_settings
from tests.factories.core import make_project
from tests.factories.settings import make_settings
from tests.tables.cases import tabled

pytestmark = pytest.mark.django_db


def saved(**values: Any) -> ProjectSettings:
    return project_settings(make_settings(make_project(), **values).project_id)


def test_settings__a_row_of_defaults__is_what_a_project_without_one_has() -> None:
    assert saved() == project_settings(make_project().pk) == ProjectSettings()


def test_settings__set__are_what_the_pipeline_reads() -> None:
    found = saved(
        rate_limit_enabled=True,
        rate_limit_rpm=60,
        rate_limit_tpm=1000,
        monthly_budget_usd=Decimal("12.5"),
        budget_hard_stop=True,
        session_budget_usd=Decimal("0.01"),
        end_user_rpm=5,
        retention_days=30,
        guardrails={"trust_mode": "enforce", "blocked_tools": ["rm"]},
    )

    assert limits_of(found) == ProjectLimits(60, 1000, Decimal("12.5"), True, Decimal("0.01"))
    assert limits_of_every_user(found) == CallerLimits(requests_per_minute=5)
    assert found.retention_days == 30
    assert found.guardrails == GuardrailSettings(trust_mode=TrustMode.ENFORCE, blocked_tools=("rm",))


def test_settings__rate_limit_switched_off__limits_nothing() -> None:
    assert limits_of(saved(rate_limit_rpm=60, rate_limit_tpm=1000)) == ProjectLimits()


def test_settings__values_of_another_version__are_left_alone() -> None:
    row = make_settings(make_project(), retention_days=30)
    row.values |= {"of_a_later_version": 1}
    row.save()

    replace_settings(project_id=row.project_id, values={"retry_max_attempts": 3}, actor="test")

    row.refresh_from_db()
    assert row.settings == ProjectSettings(retention_days=30, retry_max_attempts=3)
    assert row.values["of_a_later_version"] == 1


@tabled
def test_settings__out_of_range__are_not_stored(values: dict[str, Any]) -> None:
    project = make_project()

    with pytest.raises(msgspec.ValidationError):
        make_settings(project, **values)

    assert project_settings(project.pk) == ProjectSettings()
