"""Tests `/api/llm/pricing` over HTTP, as a project's client uses it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries
from rest_framework.test import APIClient

from integrations.models import ModelPrice, PricePeriod, PriceSyncLog
from integrations.pricing.services import set_price
from integrations.pricing.sync import sync_prices
from integrations.selectors import price_overrides
from tests.factories.core import make_key, make_project
from tests.integrations.pricing.catalog_server import CatalogServer
from tests.integrations.pricing.catalogs import catalog_b, model_a
from tests.tables.cases import tabled

pytestmark = pytest.mark.django_db

PATH = "/api/llm/pricing"
A = {"gpt-4o": model_a(2.5, 10, 1.25), "gpt-4.1": model_a(2, 8), "claude-x": model_a(3, 15, 0.3, 3.75, "anthropic")}
B = catalog_b(openai={"o9": (1, 4)}, openrouter={"Meta-Llama/llama_9": (0.1, 0.2)})
BODY = {
    "input_cost_per_1m": "1.50",
    "output_cost_per_1m": "6.00",
    "cache_read_cost_per_1m": "0.15",
    "cache_write_cost_per_1m": "1.875",
}
SHOWN = {
    "input_cost_per_1m": "1.5",
    "output_cost_per_1m": "6",
    "cache_read_cost_per_1m": "0.15",
    "cache_write_cost_per_1m": "1.875",
}


def new_client() -> tuple[APIClient, UUID]:
    project = make_project()
    _, key = make_key(project)
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {key}", HTTP_X_PROJECT_ID=str(project.pk))
    return client, project.pk


@pytest.fixture
def client() -> APIClient:
    return new_client()[0]


@pytest.fixture
def synced(server: CatalogServer) -> Iterator[CatalogServer]:
    server.serve("/a", A)
    server.serve("/b", B)
    sync_prices(trigger=PriceSyncLog.Trigger.COMMAND, actor="user:somebody")
    yield server


def names(client: APIClient, query: str = "", path: str = PATH) -> list[str]:
    response = client.get(f"{path}{query}")
    assert response.status_code == 200, response.json()
    return [f"{row['provider']}/{row['model']}" for row in response.json()["results"]]


ALL = [
    "anthropic/claude-x",
    "openai/gpt-4.1",
    "openai/gpt-4o",
    "openai/o9",
    "openrouter/Meta-Llama/llama_9",
    "sandbox/*",
]


@tabled
def test_list__filters_and_pages__applied(
    synced: CatalogServer, client: APIClient, query: str, found: list[str]
) -> None:
    assert names(client, query) == found


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("?search=a%00b", "search"),
        ("?search=" + "x" * 201, "search"),
    ],
)
def test_list__bad_query__400_that_names_it(client: APIClient, query: str, field: str) -> None:
    response = client.get(f"{PATH}{query}")
    assert response.status_code == 400
    assert field in response.json()["error"]["details"]


def test_list__entry__decimal_strings_and_where_they_are_from(synced: CatalogServer, client: APIClient) -> None:
    response = client.get(f"{PATH}?search=claude")
    (row,) = response.json()["results"]
    updated_at = row.pop("updated_at")
    assert updated_at.endswith("Z")
    assert row == {
        "provider": "anthropic",
        "model": "claude-x",
        "input_cost_per_1m": "3",
        "output_cost_per_1m": "15",
        "terms": {"rates": {}, "fees": {}, "tiers": []},
        "cache_read_cost_per_1m": "0.3",
        "cache_write_cost_per_1m": "3.75",
        "source": "catalog_a",
        "scope": "service",
    }


def test_list__any_number_of_rows__few_queries(
    synced: CatalogServer, client: APIClient, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_max_num_queries(5):
        client.get(PATH)


def test_provider__its_models__or_404(synced: CatalogServer, client: APIClient) -> None:
    assert names(client, path=f"{PATH}/openai") == ALL[1:4]
    assert names(client, "?search=o9", path=f"{PATH}/openai") == ["openai/o9"]
    assert names(client, path=f"{PATH}/groq") == []
    for unknown in ("nobody", "open%00ai", "x" * 500, "%27"):
        response = client.get(f"{PATH}/{unknown}")
        assert response.status_code == 404
        assert response.json()["error"]["code"] == "provider_not_found"


def test_put__known_model__overridden_for_this_project_alone(synced: CatalogServer) -> None:
    (mine, project), (other, _) = new_client(), new_client()
    response = mine.put(f"{PATH}/openai/gpt-4o", BODY)
    assert response.status_code == 200
    body = response.json()
    assert {name: body[name] for name in SHOWN} == SHOWN
    assert (body["source"], body["scope"]) == ("manual", "project")
    assert names(mine) == names(other) == ALL
    assert names(mine, "?source=manual") == ["openai/gpt-4o"]
    assert "openai/gpt-4o" not in names(mine, "?source=catalog_a")
    assert names(other, "?source=manual") == []
    assert other.get(f"{PATH}/openai/gpt-4o").json()["input_cost_per_1m"] == "2.5"
    assert other.delete(f"{PATH}/openai/gpt-4o").status_code == 404
    synced.serve("/a", {"gpt-4o": model_a(9, 9)})
    assert mine.post(f"{PATH}/sync").json()["status"] == "success"
    assert mine.get(f"{PATH}/openai/gpt-4o").json()["input_cost_per_1m"] == "1.5"
    assert price_overrides(project)["openai", "gpt-4o"].input == Decimal("1.5")
    assert other.get(f"{PATH}/openai/gpt-4o").json()["input_cost_per_1m"] == "9"


@pytest.mark.parametrize("model", ["meta-llama/Llama-9", "a/b/c:free", "*", "My Model@1", "modèle", "%E2%82%AC"])
def test_put__new_model_of_any_name__then_read_then_deleted(client: APIClient, model: str) -> None:
    path = f"{PATH}/openrouter/{model}"
    assert client.put(path, BODY).status_code == 200
    assert client.get(path).json()["input_cost_per_1m"] == "1.5"
    assert client.put(path, {**BODY, "input_cost_per_1m": "2"}).json()["input_cost_per_1m"] == "2"
    assert client.delete(path).status_code == 204
    assert client.get(path).status_code == client.delete(path).status_code == 404
    assert client.get(path).json()["error"]["code"] == "price_not_found"


def test_delete__override__back_to_the_catalogs(synced: CatalogServer, client: APIClient) -> None:
    client.put(f"{PATH}/openai/gpt-4o", BODY)
    assert client.delete(f"{PATH}/openai/gpt-4o").status_code == 204
    assert client.get(f"{PATH}/openai/gpt-4o").json()["source"] == "catalog_a"
    assert client.delete(f"{PATH}/openai/gpt-4o").status_code == 404
    assert ModelPrice.objects.filter(model="gpt-4o").count() == 1


@pytest.mark.parametrize("price", ["", None])
def test_put__price_emptied__400_or_unknown(client: APIClient, price: str | None) -> None:
    path = f"{PATH}/openai/gpt-4o"
    assert client.put(path, {**BODY, "input_cost_per_1m": price}).status_code == 400
    assert client.put(path, {**BODY, "cache_read_cost_per_1m": price}).json()["cache_read_cost_per_1m"] is None


def test_put__without_cache_prices__unknown(client: APIClient) -> None:
    body = client.put(f"{PATH}/vllm/own", {"input_cost_per_1m": "0", "output_cost_per_1m": 0.25}).json()
    assert (body["input_cost_per_1m"], body["output_cost_per_1m"]) == ("0", "0.25")
    assert body["cache_read_cost_per_1m"] is body["cache_write_cost_per_1m"] is None


@pytest.mark.parametrize("field", list(BODY))
@pytest.mark.parametrize(
    "value",
    [
        "-0.01",
        "-1",
        "10000.01",
        "1e30",
        "1e999999",
        "NaN",
        "Infinity",
        "-Infinity",
        "free",
        [],
        {},
        True,
        "0.00000000001",
        "9" * 2000,
        2**63,
        "1 2",
    ],
)
def test_put__bad_price__400_that_names_it(client: APIClient, field: str, value: Any) -> None:
    response = client.put(f"{PATH}/openai/gpt-4o", {**BODY, field: value})
    assert response.status_code == 400, response.json()
    assert list(response.json()["error"]["details"]) == [field]


@pytest.mark.parametrize("missing", ["input_cost_per_1m", "output_cost_per_1m"])
def test_put__price_left_out__400_that_names_it(client: APIClient, missing: str) -> None:
    response = client.put(f"{PATH}/openai/gpt-4o", {name: cost for name, cost in BODY.items() if name != missing})
    assert response.status_code == 400
    assert response.json()["error"]["code"] == "missing_field"
    assert list(response.json()["error"]["details"]) == [missing]


@pytest.mark.parametrize("body", [[], "text", 3, None, [BODY]])
def test_put__no_object__400(client: APIClient, body: Any) -> None:
    assert client.put(f"{PATH}/openai/gpt-4o", body, format="json").status_code == 400


@tabled
def test_put_and_delete__bad_name__400_that_names_it(client: APIClient, path: str, field: str) -> None:
    for response in (client.put(f"{PATH}/{path}", BODY), client.delete(f"{PATH}/{path}")):
        assert response.status_code == 400
        assert list(response.json()["error"]["details"]) == [field]
    assert client.get(f"{PATH}/{path}").status_code == 404


def test_get__version_the_list_lacks__entry_that_counts(synced: CatalogServer, client: APIClient) -> None:
    assert client.get(f"{PATH}/openai/gpt-4o-2024-08-06").json()["model"] == "gpt-4o"
    assert client.get(f"{PATH}/azure_openai/gpt-4o").json()["provider"] == "openai"
    assert client.get(f"{PATH}/sandbox/echo").json()["model"] == "*"
    assert client.get(f"{PATH}/openai/nothing").status_code == 404


def test_history__changes__every_price_with_its_time_and_who(synced: CatalogServer) -> None:
    (mine, _), (other, _) = new_client(), new_client()
    path = f"{PATH}/openai/gpt-4o"
    mine.put(path, BODY)
    synced.serve("/a", {**A, "gpt-4o": model_a(9, 9)})
    mine.post(f"{PATH}/sync")
    mine.delete(path)
    costs = {"input_cost_per_1m": Decimal(5), "output_cost_per_1m": Decimal(5)}
    set_price(project_id=None, provider="openai", model="gpt-4o", costs=costs, actor="user:root")

    rows = mine.get(f"{path}/history").json()["results"]
    assert [(row["scope"], row["source"], row["input_cost_per_1m"], row["valid_until"] is None) for row in rows] == [
        ("service", "manual", "5", True),
        ("service", "catalog_a", "9", False),
        ("project", "manual", "1.5", False),
        ("service", "catalog_a", "2.5", False),
    ]
    assert [row["changed_by"].split(":")[0] for row in rows] == ["operator", "sync", "key", "sync"]
    assert rows[1]["valid_from"] == rows[3]["valid_until"]
    seen_by_other = other.get(f"{path}/history").json()
    assert seen_by_other["count"] == 3
    assert {row["scope"] for row in seen_by_other["results"]} == {"service"}


def test_history__at_a_time__first_is_what_counted(synced: CatalogServer) -> None:
    client, project = new_client()
    path = f"{PATH}/openai/gpt-4o"
    client.put(path, BODY)
    now = timezone.now()
    PricePeriod.objects.filter(project=None).update(valid_from=now - timedelta(days=2))
    PricePeriod.objects.filter(project=project).update(
        valid_from=now - timedelta(days=1), valid_until=now - timedelta(hours=1)
    )

    def at(hours: int) -> list[str]:
        rows = client.get(f"{path}/history", {"at": (now - timedelta(hours=hours)).isoformat()}).json()["results"]
        return [row["input_cost_per_1m"] for row in rows]

    assert at(0) == ["2.5"]
    assert at(2) == ["1.5", "2.5"]
    assert at(30) == ["2.5"]
    assert at(50) == []
    assert client.get(f"{path}/history?source=manual").json()["count"] == 1


@pytest.mark.parametrize("at", ["yesterday", "0001-01-01T00:00:00+14:00", "10000-01-01", "9" * 40, "2026-01-01\x00"])
def test_history__bad_time__400_that_names_it(client: APIClient, at: str) -> None:
    response = client.get(f"{PATH}/openai/gpt-4o/history", {"at": at})
    assert response.status_code == 400
    assert list(response.json()["error"]["details"]) == ["at"]


def test_history__unknown_model__empty_and_bad_name_400(client: APIClient) -> None:
    assert client.get(f"{PATH}/openai/nothing/history").json()["count"] == 0
    assert client.get(f"{PATH}/openai/a%00b/history").status_code == 400


def test_sync__now__returns_the_outcome(server: CatalogServer, client: APIClient) -> None:
    server.serve("/a", {**A, "bad": {**model_a(1, 1), "input_cost_per_token": -1}})
    server.fail("/b", 500)
    response = client.post(f"{PATH}/sync")
    assert response.status_code == 200
    body = response.json()
    assert (body["status"], body["trigger"]) == ("partial", "api")
    assert (body["added"], body["updated"], body["removed"], body["skipped"]) == (4, 0, 0, 1)
    assert body["errors"] == [
        {"source": "catalog_b", "model": "", "message": "127.0.0.1: HTTP status 500"},
        {"source": "catalog_a", "model": "openai/bad", "message": "input_cost_per_token is negative"},
    ]
    assert body["catalogs"] == {
        "catalog_a": {"status": "read", "models": 3, "refused": 1},
        "catalog_b": {"status": "failed"},
    }
    assert client.get(f"{PATH}/sync-history").json()["results"] == [body]


def test_sync__running__409(client: APIClient) -> None:
    PriceSyncLog.objects.create(trigger="schedule", started_at=timezone.now())
    response = client.post(f"{PATH}/sync")
    assert response.status_code == 409
    assert response.json()["error"]["code"] == "sync_running"


def test_sync_history__more_than_fifty__the_last_fifty_and_nobody_named(client: APIClient) -> None:
    now = timezone.now()
    PriceSyncLog.objects.bulk_create(
        PriceSyncLog(
            status="success", trigger="api", started_by="key:77", started_at=now - timedelta(minutes=n), added=n
        )
        for n in range(60)
    )
    response = client.get(f"{PATH}/sync-history")
    body = response.json()
    assert (body["count"], len(body["results"]), body["next"]) == (50, 50, None)
    assert [row["added"] for row in body["results"]] == list(range(50))
    assert "key:77" not in response.content.decode()
    assert [row["added"] for row in client.get(f"{PATH}/sync-history?limit=2&offset=1").json()["results"]] == [1, 2]


@pytest.mark.parametrize("method", ["get", "put", "delete", "post"])
def test_pricing__without_key_or_with_a_gateway_key__refused(method: str) -> None:
    project = make_project()
    _, key = make_key(project, scopes=["gateway"])
    path = f"{PATH}/sync" if method == "post" else f"{PATH}/openai/gpt-4o"
    assert getattr(APIClient(), method)(path).status_code == 401
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {key}", HTTP_X_PROJECT_ID=str(project.pk))
    assert getattr(client, method)(path).status_code == 403
    assert not ModelPrice.objects.exists() and not PriceSyncLog.objects.exists()
