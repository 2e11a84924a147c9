"""Facets and the histogram of a filter, compared with the list of the same filter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from rest_framework.test import APIClient

from analytics.queries import request_facets
from analytics.request_log.record import AttemptRecord, Outcome
from core.models import Project
from tests.analytics.requests.entries import NOW, entry
from tests.factories.analytics import store
from tests.factories.core import make_project
from tests.kept import Keep
from tests.tables.cases import stored

pytestmark = pytest.mark.django_db

LIST, FACETS, HISTOGRAM = "/api/llm/requests", "/api/llm/requests/facets", "/api/llm/requests/histogram"
CONFIG = "019aa000-0000-7000-8000-00000000c0f1"
OUTCOMES = (Outcome.SUCCESS, Outcome.ERROR, Outcome.CANCELLED, Outcome.INTERRUPTED)
FILTERS: list[dict[str, Any]] = [
    *stored(__file__, "FILTERS"),
    {"start_date": (NOW - timedelta(hours=30)).isoformat(), "end_date": (NOW - timedelta(hours=3)).isoformat()},
]


@pytest.fixture(scope="module")
def kept_project(keep: Keep) -> Project:
    return keep(make_log)


@pytest.fixture
def project(kept_project: Project, db: None) -> Project:
    """The project of the requests, which no test changes."""
    return kept_project


def make_log(spool: Path) -> Project:
    project = make_project()
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
                api_key_id=number % 3,
                attributes=metadata_of(number),
                attempts=(AttemptRecord("openai", "m", deployment="eu" if number % 5 == 0 else ""),),
                contract_violation=number % 4 == 0 and number % 8 == 0,
                finish_reason="length" if number % 12 == 0 else "stop",
                other_used=number % 20 == 0,
                empty_answer=number % 16 == 4,
            )
        )
    store(spool, *entries, entry(make_project(), model="theirs", user_id="theirs"))
    return project


def ask(api: APIClient, path: str, **parameters: Any) -> Any:
    answer = api.get(path, parameters)
    assert answer.status_code == 200, answer.content
    return answer.json()


def metadata_of(number: int) -> dict[str, str]:
    """Returns the attributes of a request, of which the metadata are its key's."""
    team = ("blue", "red", "")[number % 3]
    return {"guardrails": "[]", "metadata.env": "prod" if number % 2 else "test"} | (
        {"metadata.team": team} if team else {}
    )


SIGNALS: dict[str, Callable[[dict[str, Any]], bool]] = {
    "contract": lambda item: item["contract_violation"],
    "truncated": lambda item: item["finish_reason"] == "length",
    "fallback": lambda item: item["other_used"],
    "empty": lambda item: item["empty_answer"],
}


def values_of(item: dict[str, Any], name: str) -> list[str]:
    if name == "error_code":
        return [str((item["error"] or {}).get("code", ""))]
    if name == "deployment":
        return [item["attempts"][-1].get("deployment") or item["provider"]]
    if name == "signal":
        return [signal for signal, holds in SIGNALS.items() if item["outcome"] == "success" and holds(item)]
    if name == "metadata":
        entries = metadata_of(item["latency_ms"] // 10).items()
        return [f"{key.removeprefix('metadata.')}:{value}" for key, value in entries if key != "guardrails"]
    return [str(item[name] or "")]


@pytest.mark.parametrize("filters", FILTERS)
def test_facets__any_filter__count_the_values_of_its_list(api: APIClient, filters: dict[str, Any]) -> None:
    listed = ask(api, LIST, limit=1000, **filters)["results"]

    facets = ask(api, FACETS, **filters)["facets"]

    assert [facet["name"] for facet in facets] == list(request_facets.FACETS)
    for facet in facets:
        counts = Counter(value for item in listed for value in values_of(item, facet["name"]) if value)
        if facet["name"] == "metadata":
            assert {one["value"]: one["request_count"] for one in facet["values"]} == counts
            continue
        ranked = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
        assert [(item["value"], item["request_count"]) for item in facet["values"]] == ranked[:10], facet["name"]
        assert facet["other_count"] == sum(count for _, count in ranked[10:]), facet["name"]
        assert facet["counted_since"] is None


@pytest.mark.parametrize("filters", FILTERS)
def test_list__several_values_and_not__requests_that_plain_python_chooses(
    api: APIClient, filters: dict[str, str | list[str]]
) -> None:
    everything = ask(api, LIST, limit=1000)["results"]
    chosen = {name: value for name, value in filters.items() if not name.endswith("_date")}
    expected = [
        item["request_id"]
        for item in everything
        if all(_holds(item, name, values) for name, values in chosen.items()) and _is_within(item, filters)
    ]

    found = ask(api, LIST, limit=1000, **filters)

    assert [item["request_id"] for item in found["results"]] == expected
    assert found["count"] == len(expected)


def _holds(item: dict[str, Any], name: str, given: str | list[str]) -> bool:
    values = set(given if isinstance(given, list) else [given])
    if name == "min_latency_ms":
        return bool(item["latency_ms"] >= int(values.pop()))
    own = set(values_of(item, name.removeprefix("not_")))
    if name.startswith("not_"):
        return not own & values
    names = {value.partition(":")[0] for value in values} if name == "metadata" else {""}
    return all(own & {value for value in values if value.startswith(one)} for one in names)


def _is_within(item: dict[str, Any], filters: dict[str, Any]) -> bool:
    if "start_date" not in filters:
        return True
    start, end = (datetime.fromisoformat(filters[name]) for name in ("start_date", "end_date"))
    return start <= datetime.fromisoformat(item["created_at"]) <= end


def test_facets__without_own__count_each_without_its_own_filter(api: APIClient) -> None:
    filters = {"outcome": "error", "user_id": ["u1", "u2"], "not_metadata": "team:blue"}

    facets = {one["name"]: one for one in ask(api, FACETS, without_own="true", **filters)["facets"]}

    for name, facet in facets.items():
        others = {key: value for key, value in filters.items() if key.removeprefix("not_") != name}
        [alone] = [one for one in ask(api, FACETS, **others)["facets"] if one["name"] == name]
        assert facet == alone


@pytest.mark.parametrize(
    ("query", "field", "problem"),
    [
        ({"outcome": ["error", "nonsense"]}, "outcome", '"nonsense" is not a valid choice.'),
        ({"metadata": "team"}, "metadata", "Must be a name and a value, such as team:search."),
        ({"user_id": [str(number) for number in range(101)]}, "user_id", "At most 100 values."),
    ],
)
def test_list__bad_value_of_several__400_names_the_field(
    api: APIClient, query: dict[str, Any], field: str, problem: str
) -> None:
    answer = api.get(LIST, query)

    assert answer.status_code == 400
    assert answer.json()["error"]["details"] == {field: [problem]}


def test_facets__more_requests_than_are_counted__says_since_when(
    api: APIClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_facets, "MAX_COUNTED", 7)
    newest = ask(api, LIST, limit=7, min_latency_ms=0)["results"]

    outcome = ask(api, FACETS, min_latency_ms=0)["facets"][0]

    assert sum(item["request_count"] for item in outcome["values"]) == 7
    assert outcome["counted_since"] == newest[-1]["created_at"]


@pytest.mark.parametrize("filters", FILTERS)
@pytest.mark.parametrize("interval", ["hour", "day"])
def test_histogram__any_filter__counts_the_requests_of_its_list(
    api: APIClient, filters: dict[str, Any], interval: str
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


def test_histogram__no_interval__one_that_suits_the_range(api: APIClient) -> None:
    start = (NOW - timedelta(hours=1)).isoformat()

    found = ask(api, HISTOGRAM, start_date=start, end_date=NOW.isoformat())

    assert (found["interval"], len(found["results"])) == ("minute", 61)
    assert ask(api, HISTOGRAM)["interval"] == "day"


@pytest.mark.parametrize(
    ("query", "field"),
    [
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
