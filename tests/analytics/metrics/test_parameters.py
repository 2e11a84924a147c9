"""The parameters of metrics: ranges, pages, other projects and invalid values."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from analytics.clickhouse import client as store_client
from analytics.errors import AnalyticsLimitError
from tests.analytics.metrics.conftest import NOW, Api
from tests.factories.analytics import make_entry, store
from tests.tables.cases import tabled

LISTS = (
    "users", "models", "operations", "prompts", "cost/daily", "cost/by-model", "usage", "errors", "guardrails",
    "guardrails/usage", "cost", "cost/gaps", "errors/groups",
)  # fmt: skip
ALL = (*LISTS, "overview", "totals")

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse")]


@pytest.mark.parametrize("path", LISTS)
def test_lists__no_range__last_thirty_days_and_named_in_the_answer(get: Callable[..., Any], path: str) -> None:
    found = get(path)

    start, end = (datetime.fromisoformat(found[name]) for name in ("start_date", "end_date"))
    assert end - start == timedelta(days=30, microseconds=-1)
    assert start.timetz() == datetime.min.replace(tzinfo=UTC).timetz()
    assert datetime.now(UTC) - timedelta(days=1) < end
    assert {"count", "next", "previous", "results"} <= found.keys()


@tabled
@pytest.mark.parametrize("path", LISTS)
def test_lists__some_range__is_the_one_answered(
    get: Callable[..., Any], path: str, query: dict[str, str], start: str, end: str
) -> None:
    found = get(path, **query)

    assert (found["start_date"], found["end_date"]) == (start, end)


def test_overview__only_a_start__thirty_days_from_there(get: Callable[..., Any]) -> None:
    found = get("overview", start_date="2026-01-10")

    assert (found["start_date"], found["end_date"]) == ("2026-01-10T00:00:00Z", "2026-02-08T23:59:59.999999Z")


@pytest.mark.parametrize(
    ("hours", "interval"), [(1, "minute"), (3, "minute"), (4, "hour"), (24 * 7, "hour"), (24 * 8, "day")]
)
def test_usage__no_interval__one_that_suits_the_range(get: Callable[..., Any], hours: int, interval: str) -> None:
    found = get("usage", start_date=NOW - timedelta(hours=hours), end_date=NOW)

    assert found["interval"] == interval


def test_lists__page_by_page__all_entries_once(get: Callable[..., Any], records: Any) -> None:
    query = {"start_date": NOW - timedelta(days=20), "end_date": NOW}
    for path in LISTS:
        whole = get(path, **query, limit=1000)

        pages = [get(path, **query, limit=9, offset=offset) for offset in range(0, whole["count"] + 9, 9)]

        assert [entry for page in pages for entry in page["results"]] == whole["results"]
        assert {page["count"] for page in pages} == {len(whole["results"])}
        beyond = get(path, **query, offset=2**62)
        assert (beyond["results"], beyond["count"]) == ([], whole["count"])


def test_lists__nothing_stored__empty(get: Callable[..., Any]) -> None:
    for path in ("users", "models", "cost/by-model", "errors", "cost", "cost/gaps", "errors/groups"):
        assert get(path)["results"] == []
        assert get(path, offset=5)["count"] == 0
    assert get("users")["without_user_id"] is None
    daily = get("cost/daily", start_date="2026-11-01", end_date="2026-11-03")["results"]
    assert [(entry["date"], entry["request_count"], entry["total_cost_usd"]) for entry in daily] == [
        ("2026-11-03", 0, 0.0),
        ("2026-11-02", 0, 0.0),
        ("2026-11-01", 0, 0.0),
    ]


def test_costs__nothing_spent__no_percentages(get: Callable[..., Any], api: Api, spool: Path) -> None:
    store(spool, make_entry(project_id=api[1], cost_known=False, cost_usd=""))

    assert [entry["percentage"] for entry in get("cost/by-model")["results"]] == [0.0]


def test_users__names_of_every_kind__found_again(get: Callable[..., Any], api: Api, spool: Path) -> None:
    names = [
        "'",
        '"',
        "\\",
        "\\'",
        "a\tb",
        "a\nb",
        "\\N",
        "NULL",
        "[]",
        "%",
        "_",
        "😀",
        "名前",
        "a\x00b",
        " ",
        "x" * 1024,
        "{p:UUID}",
    ]
    store(spool, *(make_entry(project_id=api[1], user_id=name, session_id=name) for name in names))

    found = get("users")["results"]

    assert {entry["user_id"]: (entry["request_count"], entry["session_count"]) for entry in found} == dict.fromkeys(
        names, (1, 1)
    )


@pytest.mark.parametrize("path", ALL)
def test_metrics__query_over_its_limit__503(api: Api, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise AnalyticsLimitError("Not now.")

    monkeypatch.setattr(store_client, "query", fail)

    answer = api[0].get(f"/api/llm/metrics/{path}")

    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "analytics_limit")
