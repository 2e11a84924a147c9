"""`GET /api/llm/playground/models`: the models that a project can try."""

from __future__ import annotations

from typing import Any

import pytest

from core.models import Project
from gateway.playground.catalog import list_models
from integrations.models import ModelPrice, ProviderIntegration
from tests.factories.core import make_project
from tests.factories.settings import make_settings

pytestmark = pytest.mark.django_db


@pytest.fixture
def project() -> Project:
    """A project with provider openai enabled and mistral disabled; both have prices, and so has the embedding model."""
    ModelPrice.objects.all().delete()
    made = make_project()
    ProviderIntegration.objects.create(project=made, provider="openai", enabled=True)
    ProviderIntegration.objects.create(project=made, provider="mistral", enabled=False)
    prices = [("openai", "gpt-4o", "2.50", "10"), ("openai", "embed", "0.1", "0"), ("openai", "gpt-free", "0", "0")]
    prices.append(("openai", "*", "1", "1"))
    for provider, model, paid, earned in [*prices, ("mistral", "large", "2", "6")]:
        ModelPrice.objects.create(provider=provider, model=model, input_cost_per_1m=paid, output_cost_per_1m=earned)
    return made


def names(project: Project, search: str = "") -> list[str]:
    return [model["model"] for model in list_models(project.pk, search)]


def test_models__of_enabled_providers__with_their_prices(project: Project) -> None:
    assert names(project) == ["openai/gpt-4o", "openai/gpt-free"]
    assert list_models(project.pk, "4o") == [
        {
            "model": "openai/gpt-4o",
            "provider": "openai",
            "preferred": False,
            "input_cost_per_1m": "2.5",
            "output_cost_per_1m": "10",
        }
    ]


def test_models__preferred__come_first_and_auto_before_them(project: Project) -> None:
    make_settings(project, preferred_models=["openai/gpt-free", "openai/unknown"])
    assert names(project) == ["auto", "openai/gpt-free", "openai/unknown", "openai/gpt-4o"]
    assert [model["preferred"] for model in list_models(project.pk, "")] == [True, True, True, False]


@pytest.mark.parametrize(
    ("search", "found"),
    [("GPT 4o", ["openai/gpt-4o"]), ("openai/gpt-f", ["openai/gpt-free"]), ("%", []), ("'", []), ("o\x00", [])],
)
def test_models__search__takes_words_as_they_are(project: Project, search: str, found: list[str]) -> None:
    assert names(project, search) == found


def test_models__own_price__counts_for_its_project_only(project: Project) -> None:
    mine: dict[str, Any] = {"input_cost_per_1m": "1", "output_cost_per_1m": "2", "source": "manual"}
    ModelPrice.objects.create(project=project, provider="openai", model="gpt-4o", **mine)
    assert list_models(project.pk, "4o")[0]["input_cost_per_1m"] == "1"
    other = make_project()
    ProviderIntegration.objects.create(project=other, provider="openai", enabled=True)
    assert list_models(other.pk, "4o")[0]["input_cost_per_1m"] == "2.5"


def test_models__no_integration__are_none(project: Project) -> None:
    assert names(make_project()) == []
