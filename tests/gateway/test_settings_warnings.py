"""Settings without an effect are accepted, as the API promises, and named in its answer."""

from __future__ import annotations

from typing import Any

import pytest
from rest_framework.test import APIClient

from core.models import Project, Team
from core.openapi.views import document
from gateway.reports.settings_warnings import WARNING_CODES
from integrations.services import IntegrationChange, add_integration
from tests.factories.core import make_key, make_project
from tests.tables.cases import stored

pytestmark = pytest.mark.django_db

PATH = "/api/llm/settings"

# Each case has the settings, and the warnings as (field, code).
# The codes that need rows beside the settings, and have tests of their own.
OF_ROWS = {"teams_above_project", "judge_has_no_schema"}
CASES: dict[str, tuple[dict[str, Any], list[list[str]]]] = stored(__file__, "CASES")


@pytest.fixture
def project() -> Project:
    """A project with one provider, whose models start with `gpt-`."""
    project = make_project()
    add_integration(project_id=project.pk, provider="openai", change=IntegrationChange(secret="sk-" + "a" * 40))
    return project


@pytest.fixture
def api(project: Project) -> APIClient:
    _, key = make_key(project)
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {key}", HTTP_X_PROJECT_ID=str(project.pk))
    return client


@pytest.mark.parametrize(("values", "expected"), CASES.values(), ids=CASES)
def test_settings__that_do_nothing__taken_and_named(
    api: APIClient, values: dict[str, Any], expected: list[list[str]]
) -> None:
    answer = api.put(PATH, values)

    assert answer.status_code == 200
    warnings = answer.json()["warnings"]
    assert [[warning["field"], warning["code"]] for warning in warnings] == expected
    assert all(warning["message"].endswith(".") for warning in warnings)
    assert api.get(PATH).json()["warnings"] == warnings


def test_budget__below_what_the_teams_have__named_until_it_is_raised(api: APIClient, project: Project) -> None:
    for name in ("Search", "Ads"):
        Team.objects.create(project=project, name=name, monthly_budget_usd="30.5")

    [warning] = api.put(PATH, {"monthly_budget_usd": 60}).json()["warnings"]

    assert (warning["field"], warning["code"]) == ("monthly_budget_usd", "teams_above_project")
    assert " 61 " in warning["message"]
    assert api.put(PATH, {"monthly_budget_usd": 61}).json()["warnings"] == []


def test_warnings__provider_added_later__gone(api: APIClient) -> None:
    assert api.put(PATH, {"preferred_models": ["claude-sonnet-4-5"]}).json()["warnings"]

    api.post("/api/llm/integrations", {"provider": "anthropic", "api_key": "sk-ant-" + "a" * 40})

    assert api.get(PATH).json()["warnings"] == []


def test_codes__all__in_the_document_and_each_in_a_case() -> None:
    named = document()["components"]["schemas"]["SettingsWarning"]["properties"]["code"]["enum"]

    assert sorted(named) == sorted(WARNING_CODES)
    assert {code for _, expected in CASES.values() for _, code in expected} | OF_ROWS == set(WARNING_CODES)


@pytest.mark.parametrize(
    ("model", "warned"),
    [
        ("openai/gpt-4o", []),
        ("openai/gpt-3.5-turbo", [("judge_model", "judge_has_no_schema")]),
        # These are asked by the shape in words, and by a tool.
        ("deepseek/deepseek-chat", []),
        ("anthropic/claude-3-haiku-20240307", []),
    ],
)
def test_judge__whose_model_takes_no_schema__is_named(
    api: APIClient, project: Project, model: str, warned: list[tuple[str, str]]
) -> None:
    for provider in ("deepseek", "anthropic"):
        add_integration(project_id=project.pk, provider=provider, change=IntegrationChange(secret="sk-" + "a" * 40))
    guardrails = {"trust_mode": "enforce", "min_quality_score": 50}

    answered = api.put(PATH, {"guardrails": guardrails, "judge_model": model}, format="json")

    assert [(one["field"], one["code"]) for one in answered.json()["warnings"]] == warned
