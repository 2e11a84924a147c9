"""The model catalog over the API: which models it has, what it says of each, and how it is filtered and sorted."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from analytics.clickhouse import client as store_client
from analytics.request_log.record import Outcome
from core.models import ApiKey, Project
from gateway.models import ModelGroupRow
from integrations.capabilities.lookup import family_of
from integrations.models import ModelPrice
from integrations.pricing.services import set_price
from integrations.services import IntegrationChange, add_integration
from tests.factories.analytics import make_entry, store
from tests.factories.core import client_of, make_key
from tests.tables.cases import tabled

pytestmark = pytest.mark.django_db
URL = "/api/llm/models"


def add(project: Project, provider: str) -> None:
    change = IntegrationChange(secret="sk-1234567890", base_url="", options={}, secret_extra=None)
    add_integration(project_id=project.pk, provider=provider, change=change)


@pytest.fixture
def project(clickhouse: None, project: Project) -> Project:
    ModelPrice.objects.all().delete()
    costs = {"input_cost_per_1m": Decimal("2.5"), "output_cost_per_1m": Decimal(10)}
    set_price(project_id=None, provider="openai", model="gpt-4o", costs=costs, actor="test")
    add(project, "openai")
    add(project, "openrouter")
    return project


@pytest.fixture
def used(project: Project, spool: Path) -> None:
    """Ten requests to gpt-4o at OpenAI, of which two failed, and one to a model that is not there any more."""
    of_project: dict[str, Any] = {"project_id": str(project.pk), "provider": "openai"}
    timed: dict[str, Any] = {"latency_ms": 2_000, "ttft_ms": 500, "completion_tokens": 100, "cost_usd": "0.1000000000"}
    answered = [make_entry(**of_project, model="gpt-4o", **timed) for _ in range(8)]
    failed = [
        make_entry(**of_project, model="gpt-4o", **timed, outcome=Outcome.ERROR, status_code=500) for _ in range(2)
    ]
    store(spool, *answered, *failed, make_entry(**of_project, model="gpt-gone", **timed))


def found(api: APIClient, **query: Any) -> list[dict[str, Any]]:
    answer = api.get(URL, {"limit": 500, **query})
    assert answer.status_code == 200, answer.json()
    results: list[dict[str, Any]] = answer.json()["results"]
    return results


def named(models: list[dict[str, Any]], model: str, provider: str = "openai") -> dict[str, Any]:
    (one,) = [row for row in models if row["model"] == model and row["provider"] == provider]
    return one


@pytest.mark.usefixtures("used")
def test_catalog__used_models__come_first_with_own_figures(api: APIClient) -> None:
    models = found(api)

    first = models[0]
    assert (first["model"], first["provider"], first["id"], first["callable"]) == ("gpt-4o", "openai", "gpt-4o", True)
    assert (first["request_count"], first["error_rate"], first["total_cost_usd"]) == (10, 0.2, 1.0)
    assert (first["p50_latency_ms"], first["p95_latency_ms"], first["p50_ttft_ms"]) == (2000, 2000, 500)
    assert first["tokens_per_second"] == 50
    assert first["prices"]["input_cost_per_1m"] == "2.5" and first["prices"]["output_cost_per_1m"] == "10"
    assert first["context_window"] >= 100_000 and first["abilities"]["images"] and first["abilities"]["tools"]
    gone = models[1]
    assert (gone["model"], gone["callable"], gone["request_count"], gone["api_keys"]) == ("gpt-gone", False, 1, [])
    unused = named(models, "openai/gpt-4o", "openrouter")
    assert (unused["request_count"], unused["error_rate"], unused["p50_latency_ms"]) == (0, None, None)
    assert unused["family"] == first["family"] == "gpt-4o"


def test_catalog__providers_without_a_key__only_when_asked_for(api: APIClient) -> None:
    assert {row["provider"] for row in found(api)} <= {"openai", "openrouter", "sandbox"}

    others = found(api, include_others="true", provider="anthropic")

    assert others and all(not row["callable"] and row["provider"] == "anthropic" for row in others)
    assert any(row["context_window"] for row in others)


def test_catalog__filters_and_sorting__narrow_and_order(api: APIClient) -> None:
    able = found(api, abilities="images,tools", search="OPENAI gpt-4o")
    by_price = found(api, sort="-input_cost_per_1m")
    by_context = [row["context_window"] for row in found(api, sort="context_window", provider="openai")]

    assert able and all(row["abilities"]["images"] and row["abilities"]["tools"] for row in able)
    assert all("gpt-4o" in row["model"] for row in able)
    assert by_price[0]["prices"]["input_cost_per_1m"] == "2.5" and by_price[-1]["prices"] is None
    known = [count for count in by_context if count is not None]
    assert known == sorted(known) and by_context[len(known) :] == [None] * (len(by_context) - len(known))
    assert {row["provider"] for row in found(api, family="gpt-4o")} == {"openai", "openrouter"}


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"abilities": "images,flying"}, "abilities"),
        ({"provider": "nobody"}, "provider"),
    ],
)
def test_catalog__parameter_that_is_wrong__is_named(api: APIClient, query: dict[str, str], field: str) -> None:
    answer = api.get(URL, query)

    assert answer.status_code == 400
    assert field in answer.json()["error"]["details"]


def test_catalog__who_may_call_a_model__by_the_patterns_of_keys(project: Project) -> None:
    client = client_of(project, name="open")
    ApiKey.objects.filter(pk=make_key(project, name="mini only")[0].pk).update(allowed_models=["*-mini"])
    ApiKey.objects.filter(pk=make_key(project, name="router only")[0].pk).update(allowed_providers=["openrouter"])
    make_key(project, ["metrics:read"], name="no gateway")

    models = found(client, search="gpt-4o")

    def names(model: str, provider: str = "openai") -> list[str]:
        return list(named(models, model, provider)["api_keys"])

    assert names("gpt-4o") == ["open"]
    assert names("gpt-4o-mini") == ["mini only", "open"]
    assert names("openai/gpt-4o", "openrouter") == ["open", "router only"]
    assert not named(models, "gpt-4o")["all_api_keys"]
    assert named(models, "openai/gpt-4o-mini", "openrouter")["all_api_keys"]


def test_catalog__model_groups__are_named_and_are_no_models_themselves(project: Project, api: APIClient) -> None:
    members = [{"model": "gpt-4o", "weight": 1}, {"model": "openrouter/openai/gpt-4o", "weight": 1}]
    ModelGroupRow.objects.create(project=project, name="smart", strategy="ordered", members=members)

    models = found(api)

    assert named(models, "gpt-4o")["model_groups"] == ["smart"]
    assert named(models, "openai/gpt-4o", "openrouter")["model_groups"] == ["smart"]
    assert not [row for row in models if row["id"] in ("smart", "auto")]


@pytest.mark.usefixtures("used")
def test_catalog__of_many_models__needs_one_query_of_the_store_and_few_of_sql(
    api: APIClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    query = store_client.query

    def noted(*arguments: Any, **options: Any) -> Any:
        asked.append(options["name"])
        return query(*arguments, **options)

    monkeypatch.setattr(store_client, "query", noted)
    found(api)

    with CaptureQueriesContext(
        connection,
    ) as captured:
        models = found(api, include_others="true")

    assert len(models) == 500
    assert asked == ["models.page"] * 2
    assert len(captured) <= 20


@tabled
def test_family__names_of_providers__are_one(provider: str, model: str, family: str) -> None:
    assert family_of(provider, model) == family
