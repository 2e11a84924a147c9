from __future__ import annotations

import re
import time
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from analytics.clickhouse import client as store_client
from analytics.errors import AnalyticsUnavailableError
from console.usage import month as month_page
from console.usage import page as page
from core.models import Project
from core.ui import formats
from gateway.reports import limit_usage
from integrations.models import ModelPrice
from tests.console.pages import shown
from tests.factories.analytics import make_entry, store
from tests.factories.core import make_key
from tests.factories.prompts import make_config
from tests.factories.settings import make_settings
from tests.tables.cases import tabled

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse")]

PATH = "/admin/usage/"
DIMENSIONS = (
    "model", "provider", "deployment", "user", "api_key", "session", "prompt", "prompt_version", "source", "operation",
)  # fmt: skip


def spend(spool: Path, project: Project, cost: str = "2.5", *, seconds_ago: int = 5, **values: Any) -> None:
    ts = time.time_ns() // 1000 - seconds_ago * 1_000_000
    store(spool, make_entry(project_id=str(project.pk), ts=ts, cost_usd=cost, cost_output_usd=cost, **values))


def test_usage__each_dimension__the_figures_of_the_api(
    reader: Client, project: Project, spool: Path, api: APIClient
) -> None:
    config = make_config(project, "support")
    key, _ = make_key(project, name="shop")
    spend(spool, project, "2.5", user_id="ann", session_id="s-1", api_key_id=key.pk)
    spend(spool, project, "7.25", user_id="ben", model="o1", prompt_config_id=str(config.pk), prompt_version=3)
    spend(spool, project, "1", user_id="ann", seconds_ago=30 * 3600)
    names = {"api_key": "shop", "prompt": "support", "prompt_version": "support, version 3", "user": "ann"}

    for dimension in DIMENSIONS:
        text = shown(reader, PATH, project, group_by=dimension)

        found = api.get("/api/llm/metrics/cost", {"group_by": dimension, "start_date": _day_ago()}).json()
        assert "$9.75" in text
        assert found["total_cost_usd"] == 9.75
        for entry in found["results"]:
            assert formats.money(entry["total_cost_usd"]) in text, entry
            assert formats.share(entry["percentage"] / 100) in text, entry
        assert names.get(dimension, "") in text, dimension
        assert "$1.00 before" in text


def _day_ago() -> str:
    return datetime.fromtimestamp(time.time() - 86_400, UTC).isoformat()


def test_usage__rows__lead_to_the_requests(reader: Client, project: Project, spool: Path) -> None:
    spend(spool, project, model="<i>m</i>", user_id="a&b")

    by_model = shown(reader, PATH, project)
    by_user = shown(reader, PATH, project, group_by="user")

    assert "model=%3Ci%3Em%3C%2Fi%3E" in by_model
    assert "<i>m" not in by_model
    assert f"/admin/analytics/users/{project.pk}/a&b" in by_user.replace("&amp;", "&")
    assert 'data-id="a&amp;b"' in by_user


@tabled
def test_month__against_its_budget__what_the_api_forecasts(
    reader: Client,
    project: Project,
    spool: Path,
    api: APIClient,
    monkeypatch: pytest.MonkeyPatch,
    budget: str | None,
    spent: str,
    words: str,
) -> None:
    now = datetime(2026, 11, 11, tzinfo=UTC)
    make_settings(project, monthly_budget_usd=None if budget is None else Decimal(budget))
    found = limit_usage.usage_of(project.pk, "", now)
    expected = float(spent) * 3
    found["month"] |= {"spent_usd": float(spent), "forecast_usd": expected, "remaining_usd": 0.5}
    monkeypatch.setattr(month_page, "usage_of", lambda *_: found)
    spend(spool, project, spent)

    text = shown(reader, PATH, project)

    assert words in text
    assert f"{formats.money(expected)} by 30 Nov 2026" in text
    assert "forecast" in text
    assert ("over budget" in text) is (budget in ("1", "4"))


def test_month__plot__adds_up_the_days_and_goes_on_to_the_forecast() -> None:
    start, end = datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 12, 1, tzinfo=UTC)
    month = {"forecast_usd": 60.0, "budget_usd": 50.0}

    plot = month_page._plot(month, start, end, [1.0, 0.0, 5.0])

    spent, forecast = plot.series
    assert len(plot.times) == len(spent.values) == len(forecast.values) == 30
    assert spent.values[:4] == [1, 1, 6, None]
    assert forecast.values[:3] == [None, None, 6]
    assert forecast.values[-1] == 60
    assert plot.thresholds[0].value == 50.0


def test_gaps__model_without_a_price__named_with_the_way_to_its_price(
    reader: Client, project: Project, spool: Path
) -> None:
    spend(spool, project, "", model="made-up", cost_known=False)

    text = shown(reader, PATH, project)

    assert "made-up" in text
    assert "no price" in text
    assert "Every model of this range has a price." not in text


def test_usage__csv__is_what_is_shown(reader: Client, project: Project, spool: Path) -> None:
    spend(spool, project, user_id="=cmd")
    text = shown(reader, PATH, project, group_by="user")
    address = re.search(r'href="(/admin/usage/export/[^"]*)"', text)
    assert address is not None

    answer = reader.get(address[1].replace("&amp;", "&"))

    assert answer.status_code == 200
    lines = answer.content.decode().splitlines()
    assert lines[1].startswith("'=cmd,'=cmd,1,0,12,5,17,2.5,100.0,0")


def test_usage__many__page_by_page(
    reader: Client, project: Project, spool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "PAGE_ROWS", 2)
    for number in range(3):
        spend(spool, project, str(9 - number), user_id=f"user-{number}")

    first, second = (shown(reader, PATH, project, group_by="user", p=number) for number in ("1", "2"))

    assert ["data-id=" + f'"user-{number}"' in first for number in range(3)] == [True, True, False]
    assert ["data-id=" + f'"user-{number}"' in second for number in range(3)] == [False, False, True]


def test_usage__unknown_dimension__models(reader: Client, project: Project) -> None:
    assert "Cost by model" in shown(reader, PATH, project, group_by="'; DROP TABLE")


def test_usage__store_away__frame_and_messages(
    reader: Client, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: Any, **__: Any) -> Any:
        raise AnalyticsUnavailableError("The analytics store does not answer.")

    monkeypatch.setattr(store_client, "query", away)

    assert shown(reader, PATH, project).count("The analytics store does not answer.") >= 3


def test_usage__model_that_costs_nothing__is_listed_as_free_by_its_source(
    reader: Client, project: Project, spool: Path
) -> None:
    ModelPrice.objects.create(
        provider="sandbox", model="*", source="sandbox", input_cost_per_1m="0", output_cost_per_1m="0"
    )
    spend(spool, project, "0.0000000000", model="echo", provider="sandbox")

    row = shown(reader, PATH, project).partition("Models without a price, or free")[2]

    assert "free, says the sandbox, made up" in row
