"""Facets and the histogram of a filter, compared with the list of the same filter."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from rest_framework.test import APIClient

from analytics.queries import request_facets
from analytics.request_log.record import Outcome
from core.models import Project
from tests.analytics.requests.entries import NOW, entry
from tests.factories.analytics import store
from tests.factories.core import make_project

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse")]

LIST, FACETS, HISTOGRAM = "/api/llm/requests", "/api/llm/requests/facets", "/api/llm/requests/histogram"
CONFIG = "019aa000-0000-7000-8000-00000000c0f1"
OUTCOMES = (Outcome.SUCCESS, Outcome.ERROR, Outcome.CANCELLED, Outcome.INTERRUPTED)
FILTERS = [
    {},
    {"user_id": "u1"},
    {"outcome": "error"},
    {"model": "m3"},
    {"operation": "chat"},
    {"min_latency_ms": "300"},
    {"user_id": "u1", "outcome": "error"},
    {"start_date": (NOW - timedelta(hours=30)).isoformat(), "end_date": (NOW - timedelta(hours=3)).isoformat()},
]


@pytest.fixture
def log(project: Project, spool: Path) -> None:
    entries = []
    for number in range(60):
        failed = number % 4 == 1
        entries.append(
            entry(
                project,
                minutes_ago=number * 70,
                outcome=OUTCOMES[number % 4],
                user_id=f"u{number % 5}" if number % 7 else "",
                model=f"m{number % 13}",
                operation="messages" if number % 3 else "chat",
                error_type="api_error" if failed else "",
                error_code="provider_timeout" if failed else "",
                prompt_config_id=CONFIG if number % 6 == 0 else "",
                latency_ms=10 * number,
            )
        )
    store(spool, *entries, entry(make_project(), model="theirs", user_id="theirs"))


def ask(api: APIClient, path: str, **parameters: Any) -> Any:
    answer = api.get(path, parameters)
    assert answer.status_code == 200, answer.content
    return answer.json()


def value_of(item: dict[str, Any], name: str) -> str:
    if name == "error_code":
        return str((item["error"] or {}).get("code", ""))
    return str(item[name] or "")


@pytest.mark.usefixtures("log")
@pytest.mark.parametrize("filters", FILTERS)
def test_facets__any_filter__count_the_values_of_its_list(api: APIClient, filters: dict[str, str]) -> None:
    listed = ask(api, LIST, limit=1000, **filters)["results"]

    facets = ask(api, FACETS, **filters)["facets"]

    assert [facet["name"] for facet in facets] == list(request_facets.FACETS)
    for facet in facets:
        counts = Counter(value for item in listed if (value := value_of(item, facet["name"])))
        ranked = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
        assert [(item["value"], item["request_count"]) for item in facet["values"]] == ranked[:10], facet["name"]
        assert facet["other_count"] == sum(count for _, count in ranked[10:]), facet["name"]
        assert facet["counted_since"] is None


@pytest.mark.usefixtures("log")
def test_facets__more_requests_than_are_counted__says_since_when(
    api: APIClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_facets, "MAX_COUNTED", 7)
    newest = ask(api, LIST, limit=7, min_latency_ms=0)["results"]

    outcome = ask(api, FACETS, min_latency_ms=0)["facets"][0]

    assert sum(item["request_count"] for item in outcome["values"]) == 7
    assert outcome["counted_since"] == newest[-1]["created_at"]


@pytest.mark.usefixtures("log")
@pytest.mark.parametrize("filters", FILTERS)
@pytest.mark.parametrize("interval", ["hour", "day"])
def test_histogram__any_filter__counts_the_requests_of_its_list(
    api: APIClient, filters: dict[str, str], interval: str
) -> None:
    range_of = {"start_date": (NOW - timedelta(days=4)).isoformat(), "end_date": NOW.isoformat()}
    given = {**range_of, **filters}
    listed = ask(api, LIST, limit=1000, **given)["results"]

    found = ask(api, HISTOGRAM, interval=interval, **given)

    beginnings = [datetime.fromisoformat(item["start"]) for item in found["results"]]
    length = timedelta(**{f"{interval}s": 1})
    assert all(later - earlier == length for earlier, later in pairwise(beginnings))
    for beginning, item in zip(beginnings, found["results"], strict=True):
        within = [
            one["outcome"]
            for one in listed
            if beginning <= datetime.fromisoformat(one["created_at"]) < beginning + length
        ]
        errors = sum(outcome in ("error", "interrupted") for outcome in within)
        cancelled = within.count("cancelled")
        assert item["request_count"] == len(within)
        assert (item["error_count"], item["cancelled_count"]) == (errors, cancelled)
        assert item["ok_count"] == len(within) - errors - cancelled
    assert found["request_count"] == len(listed)


@pytest.mark.usefixtures("log")
def test_histogram__no_interval__one_that_suits_the_range(api: APIClient) -> None:
    start = (NOW - timedelta(hours=1)).isoformat()

    found = ask(api, HISTOGRAM, start_date=start, end_date=NOW.isoformat())

    assert (found["interval"], len(found["results"])) == ("minute", 61)
    assert ask(api, HISTOGRAM)["interval"] == "day"


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"interval": "week"}, "interval"),
        ({"interval": "minute"}, "interval"),
        ({"start_date": "1990-01-01", "end_date": "2026-01-01"}, "start_date"),
    ],
)
def test_histogram__too_many_intervals_or_none__400_names_the_field(
    api: APIClient, query: dict[str, str], field: str
) -> None:
    answer = api.get(HISTOGRAM, query)

    assert answer.status_code == 400
    assert list(answer.json()["error"]["details"]) == [field]
