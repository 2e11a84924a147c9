"""Cost by every dimension, its intervals, its CSV and the price gaps are what plain Python computes."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from analytics.queries.dimension_costs import by_keys, of_sessions
from analytics.request_log.record import RequestRecord
from core.models import Project, Team
from integrations.pricing.services import set_price
from tests.analytics.metrics import reference
from tests.analytics.metrics.conftest import NOW, Api
from tests.analytics.metrics.test_figures import ranges
from tests.factories.analytics import make_entry, store
from tests.factories.core import make_key

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse")]

Get = Callable[..., Any]
_TICK = timedelta(microseconds=1)
_LENGTHS = {"minute": timedelta(minutes=1), "hour": timedelta(hours=1), "day": timedelta(days=1)}

KEYS: dict[str, Callable[[RequestRecord], str]] = {
    "model": lambda record: record.model,
    "provider": lambda record: record.provider,
    "deployment": lambda record: (record.attempts[-1].deployment if record.attempts else "") or record.provider,
    "user": lambda record: record.user_id,
    "api_key": lambda record: str(record.api_key_id) if record.api_key_id else "",
    "session": lambda record: record.session_id,
    "prompt": lambda record: record.prompt_config_id,
    "prompt_version": lambda record: (
        f"{record.prompt_config_id}/{record.prompt_version}" if record.prompt_config_id else ""
    ),
    "source": lambda record: record.source,
    "operation": lambda record: record.operation,
}


def groups_of(records: reference.Records, dimension: str) -> dict[str, reference.Records]:
    found = reference.grouped(records, KEYS[dimension])
    if dimension == "session":
        found.pop("", None)
    return found


def before(records: reference.Records, start: datetime, end: datetime) -> reference.Records:
    """Returns the requests of the range just before, which is as long as this one."""
    return reference.between(records, start - (end - start) - _TICK, start - _TICK)


def expected_costs(records: reference.Records, dimension: str, start: datetime, end: datetime) -> list[dict[str, Any]]:
    now, past = reference.between(records, start, end), before(records, start, end)
    groups, groups_before = groups_of(now, dimension), groups_of(past, dimension)
    spent = reference.cost(now)
    order = sorted(groups, key=lambda key: (-reference.cost(groups[key]), -len(groups[key]), key.encode()))
    return [
        {
            "key": key,
            "name": key,
            **reference.sums(groups[key]),
            "percentage": float(100 * reference.cost(groups[key]) / spent) if spent else 0.0,
            "previous": previous(groups_before.get(key, [])),
        }
        for key in order
    ]


def previous(records: reference.Records) -> dict[str, Any]:
    return {
        "request_count": len(records),
        "total_tokens": sum(record.prompt_tokens + record.completion_tokens for record in records),
        "total_cost_usd": float(reference.cost(records)),
    }


@pytest.mark.parametrize("dimension", KEYS)
def test_cost__any_range__equals_plain_computation(get: Get, records: list[RequestRecord], dimension: str) -> None:
    for start, end in ranges(records, 3):
        found = get("cost", group_by=dimension, start_date=start, end_date=end, limit=1000)

        expected = expected_costs(records, dimension, start, min(end, max(start, datetime.now(end.tzinfo))))
        assert found["results"] == expected, (start, end)
        assert found["count"] == len(expected)
        chosen = reference.between(records, start, end)
        assert {name: found[name] for name in previous(chosen)} == previous(chosen)


@pytest.mark.parametrize("dimension", KEYS)
def test_cost__page_by_page__all_keys_once(get: Get, records: list[RequestRecord], dimension: str) -> None:
    query = {"group_by": dimension, "start_date": NOW - timedelta(days=20), "end_date": NOW}
    whole = get("cost", **query, limit=1000)

    pages = [get("cost", **query, limit=7, offset=offset) for offset in range(0, whole["count"] + 7, 7)]

    assert [entry for page in pages for entry in page["results"]] == whole["results"]
    assert {page["count"] for page in pages} == {whole["count"]}


def test_cost__more_sessions_than_are_read__pages_are_those_of_the_whole_list(
    get: Get, records: list[RequestRecord], monkeypatch: pytest.MonkeyPatch
) -> None:
    query = {"group_by": "session", "start_date": NOW - timedelta(days=20), "end_date": NOW}
    whole = get("cost", **query, limit=1000)

    monkeypatch.setattr(of_sessions, "_SESSIONS_BEYOND", 1)
    pages = [get("cost", **query, limit=3, offset=offset) for offset in range(0, whole["count"] + 3, 3)]

    assert [entry for page in pages for entry in page["results"]] == whole["results"]
    assert {page["count"] for page in pages} == {whole["count"]}


@pytest.mark.parametrize("dimension", ["model", "api_key", "prompt_version"])
def test_cost__more_keys_before_than_are_read__previous_figures_are_the_same(
    get: Get, records: list[RequestRecord], dimension: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = {"group_by": dimension, "start_date": NOW - timedelta(days=9), "end_date": NOW, "limit": 1000}
    whole = get("cost", **query)

    monkeypatch.setattr(by_keys, "_KEYS_BEFORE", 1)
    found = get("cost", **query)

    assert sum(entry["previous"]["request_count"] > 0 for entry in whole["results"]) > 1
    assert found == whole


def test_cost__page_behind_the_last_key__has_the_sums_of_all(get: Get, records: list[RequestRecord]) -> None:
    for dimension in ("model", "user", "session"):
        query = {"group_by": dimension, "start_date": NOW - timedelta(days=9), "end_date": NOW}
        whole = get("cost", **query, limit=1000)

        beyond = get("cost", **query, limit=3, offset=whole["count"])

        assert beyond["results"] == []
        sums = ("count", "request_count", "total_tokens", "total_cost_usd", "previous")
        assert {name: beyond[name] for name in sums} == {name: whole[name] for name in sums}


def test_cost__of_one_operation__leaves_out_all_others(get: Get, records: list[RequestRecord]) -> None:
    chosen = [record for record in records if record.operation == "embeddings"]
    start, end = NOW - timedelta(days=9, minutes=7), NOW

    for dimension in KEYS:
        found = get("cost", group_by=dimension, start_date=start, end_date=end, operation="embeddings", limit=1000)

        assert found["results"] == expected_costs(chosen, dimension, start, end), dimension


@pytest.mark.parametrize("interval", _LENGTHS)
@pytest.mark.parametrize("dimension", KEYS)
def test_cost_intervals__top_and_other__equal_plain_computation(
    get: Get, records: list[RequestRecord], dimension: str, interval: str
) -> None:
    length = _LENGTHS[interval]
    start, end = NOW - 40 * length - timedelta(seconds=77), NOW
    chosen = reference.between(records, start, end)
    top = [entry["key"] for entry in expected_costs(records, dimension, start, end)][:3]
    unit = length // _TICK
    first, last = (reference.microseconds(moment) // unit for moment in (start, end))
    numbers = range(first, last + 1)

    found = get("cost/intervals", group_by=dimension, start_date=start, end_date=end, interval=interval, top=3)

    assert found["starts"] == [reference.iso(number * unit) for number in numbers]
    assert [one["key"] for one in found["series"]] == top
    for one in [*found["series"], found["other"]]:
        own = [
            record
            for record in chosen
            if (
                KEYS[dimension](record) == one["key"]
                if one is not found["other"]
                else KEYS[dimension](record) not in top
            )
        ]
        by_number = reference.grouped(own, lambda record: record.ts // unit)
        assert one["request_count"] == [len(by_number.get(number, [])) for number in numbers], one["key"]
        costs = [float(reference.cost(by_number.get(number, []))) for number in numbers]
        assert one["total_cost_usd"] == costs, one["key"]


def test_cost_intervals__too_many__400_that_names_the_interval(api: Api) -> None:
    query = {"start_date": "2026-01-01", "end_date": "2026-11-01", "interval": "hour"}

    answer = api[0].get("/api/llm/metrics/cost/intervals", query)

    assert answer.status_code == 400
    assert "interval" in answer.json()["error"]["details"]


@pytest.mark.parametrize("query", [{"group_by": "colour"}, {"top": "0"}, {"top": "21"}, {"interval": "week"}])
def test_cost_intervals__bad_value__400_that_names_the_field(api: Api, query: dict[str, str]) -> None:
    answer = api[0].get("/api/llm/metrics/cost/intervals", query)

    assert answer.status_code == 400
    assert next(iter(query)) in answer.json()["error"]["details"]


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
