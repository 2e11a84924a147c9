"""Cost by keys, teams and tags has their names; its CSV is safe to open, and price gaps name their models."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from core.models import Project, Team
from integrations.pricing.services import set_price
from tests.analytics.metrics.conftest import Api
from tests.factories.analytics import make_entry, store
from tests.factories.core import make_key

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse")]

Get = Callable[..., Any]


def test_cost__by_api_key__has_the_name_of_the_key(get: Get, api: Api, spool: Path) -> None:
    key, _ = make_key(Project.objects.get(pk=api[1]), name="shop")
    store(spool, make_entry(project_id=api[1], api_key_id=key.pk))

    assert [(one["key"], one["name"]) for one in get("cost", group_by="api_key")["results"]] == [(str(key.pk), "shop")]


def test_cost__by_team__is_the_sum_of_its_requests_whatever_key_they_had(get: Get, api: Api, spool: Path) -> None:
    team = Team.objects.create(project_id=api[1], name="Search")
    store(
        spool,
        *(
            make_entry(project_id=api[1], api_key_id=key, team_id=team_id, cost_known=True, cost_usd=cost)
            for key, team_id, cost in (
                (1, team.pk, "0.0000000001"), (2, team.pk, "0.2000000000"), (2, 0, "4.0000000000"), (3, 2**40, "9"),
            )
        ),
    )  # fmt: skip

    found = get("cost", group_by="team")["results"]
    series = get("cost/intervals", group_by="team")["series"]

    assert [(one["key"], one["name"], one["request_count"], one["total_cost_usd"]) for one in found] == [
        (str(2**40), str(2**40), 1, 9.0),
        ("", "", 1, 4.0),
        (str(team.pk), "Search", 2, 0.2000000001),
    ]
    assert {one["name"]: sum(one["total_cost_usd"]) for one in series}["Search"] == pytest.approx(0.2000000001)


def test_cost__by_metadata__has_the_values_of_the_tag(get: Get, api: Api, spool: Path) -> None:
    teams = ("search", "ads", "search", None)
    store(
        spool,
        *(
            make_entry(project_id=api[1], attributes={"metadata.team": team, "team": "x"} if team else {})
            for team in teams
        ),
    )

    found = get("cost", group_by="metadata", tag="team")["results"]
    series = get("cost/intervals", group_by="metadata", tag="team")["series"]

    assert {one["key"]: one["request_count"] for one in found} == {"search": 2, "ads": 1, "": 1}
    assert {one["key"] for one in series} == {"search", "ads", ""}
    assert {one["key"] for one in get("cost", group_by="metadata", tag="region")["results"]} == {""}


@pytest.mark.parametrize("query", [{"group_by": "metadata"}, {"tag": "team"}, {"group_by": "user", "tag": "team"}])
@pytest.mark.parametrize("path", ["cost", "cost/intervals", "cost/export"])
def test_tag__without_metadata_and_the_reverse__400_that_names_it(api: Api, path: str, query: dict[str, str]) -> None:
    answer = api[0].get(f"/api/llm/metrics/{path}", query)

    assert (answer.status_code, list(answer.json()["error"]["details"])) == (400, ["tag"])


def test_export__names_that_are_formulas__neutralised(api: Api, spool: Path) -> None:
    names = ["=1+1", "+1", "-1", "@SUM(A1)", " =1", "\tx", 'a"b,c', "plain"]
    store(spool, *(make_entry(project_id=api[1], user_id=name) for name in names))

    answer = api[0].get("/api/llm/metrics/cost/export", {"group_by": "user"})

    assert answer.headers["Content-Type"] == "text/csv; charset=utf-8"
    assert 'filename="cost-by-user.csv"' in answer.headers["Content-Disposition"]
    rows = list(csv.DictReader(io.StringIO(answer.content.decode(), newline="")))
    assert {row["key"] for row in rows} == {
        "'=1+1", "'+1", "'-1", "'@SUM(A1)", "' =1", "'\tx", 'a"b,c', "plain",
    }  # fmt: skip
    assert {row["request_count"] for row in rows} == {"1"}
    assert {Decimal(row["total_cost_usd"]) for row in rows} == {Decimal("0.0000048")}


def test_price_gaps__requests_without_a_price__the_models_and_whether_there_is_one_now(
    get: Get, api: Api, spool: Path
) -> None:
    unknown: dict[str, Any] = {"project_id": api[1], "provider": "openai", "cost_known": False, "cost_usd": ""}
    store(
        spool,
        *(make_entry(**unknown, model="made-up") for _ in range(2)),
        make_entry(**unknown, model="priced-since"),
        make_entry(**unknown | {"provider": ""}, model=""),
        make_entry(project_id=api[1], model="made-up"),
        make_entry(project_id=api[1], model="gpt-4o"),
    )
    set_price(
        project_id=Project.objects.get(pk=api[1]).pk,
        provider="openai",
        model="priced-since",
        costs={"input_cost_per_1m": Decimal(1), "output_cost_per_1m": Decimal(1)},
        actor="test",
    )

    found = get("cost/gaps")["results"]

    assert [
        (one["model"], one["unpriced_request_count"], one["request_count"], one["has_price_now"]) for one in found
    ] == [("made-up", 2, 3, False), ("priced-since", 1, 1, True)]
