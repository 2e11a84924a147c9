"""The history of providers, and the failovers from one to the next."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from analytics.request_log.record import AttemptRecord
from core.models import Project
from integrations.access.credentials import store_secret
from integrations.models import ProviderIntegration
from tests.analytics.metrics.conftest import Api
from tests.analytics.metrics.reference import iso, microseconds
from tests.factories.analytics import make_entry, store

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse")]

Get = Callable[..., Any]
NOW = datetime(2026, 11, 20, 13, 37, 11, tzinfo=UTC)
START = NOW - timedelta(hours=24)


def failed(provider: str, model: str = "m", error: str = "unavailable", deployment: str = "") -> AttemptRecord:
    return AttemptRecord(provider=provider, model=model, status=503, error=error, deployment=deployment)


def served(provider: str, model: str = "m", deployment: str = "") -> AttemptRecord:
    return AttemptRecord(provider=provider, model=model, status=200, deployment=deployment)


def entry(api: Api, age: timedelta, *attempts: AttemptRecord, retries: int = 0, **values: Any) -> Any:
    last = attempts[-1]
    return make_entry(
        project_id=api[1],
        ts=microseconds(NOW - age),
        provider=last.provider,
        model=last.model,
        outcome="error" if last.error else "success",
        error_code="upstream_error" if last.error else "",
        retry_count=retries,
        attempts=attempts,
        **{"fallback_used": len({(one.provider, one.model) for one in attempts}) > 1, **values},
    )


@pytest.fixture
def traffic(api: Api, spool: Path) -> None:
    minute = timedelta(minutes=1)
    store(
        spool,
        *(entry(api, 5 * minute, served("openai")) for _ in range(9)),
        entry(api, 5 * minute, failed("openai"), failed("openai"), retries=1),
        *(entry(api, 40 * minute, failed("openai"), served("groq", "g")) for _ in range(3)),
        entry(api, 40 * minute, failed("openai"), failed("openai"), failed("groq", "g"), served("azure"), retries=1),
        entry(api, 40 * minute, failed("openai", error="timeout"), served("openai", "small")),
        entry(api, timedelta(days=8), served("old")),
    )


@pytest.mark.usefixtures("traffic")
def test_history__day__an_interval_each_quarter_of_an_hour_with_its_share_of_failures(get: Get) -> None:
    found = get("providers/history", start_date=START, end_date=NOW)

    assert found["interval_minutes"] == 15
    assert [one["provider"] for one in found["providers"]] == ["azure", "groq", "openai"]
    openai = found["providers"][2]
    assert len(openai["intervals"]) == 97
    assert openai["intervals"][0]["start"] == "2026-11-19T13:30:00Z"
    assert openai["intervals"][0]["status"] == "none"
    assert openai["intervals"][0]["error_rate"] is None
    assert openai["intervals"][-1] == {
        "start": "2026-11-20T13:30:00Z",
        "request_count": 10,
        "error_count": 1,
        "failover_count": 0,
        "error_rate": 0.1,
        "status": "degraded",
    }
    # Forty minutes ago, five requests went on from openai, one of them to another model of its own, which served it.
    assert openai["intervals"][-4] == {
        "start": "2026-11-20T12:45:00Z",
        "request_count": 1,
        "error_count": 0,
        "failover_count": 5,
        "error_rate": 5 / 6,
        "status": "down",
    }
    assert (openai["request_count"], openai["error_count"], openai["failover_count"]) == (11, 1, 5)
    assert found["providers"][1]["failover_count"] == 1


@pytest.mark.usefixtures("traffic")
@pytest.mark.parametrize(("query", "minutes"), [({"interval_minutes": 60}, 60), ({}, 15)])
def test_history__interval_minutes__sets_their_distance(get: Get, query: dict[str, int], minutes: int) -> None:
    found = get("providers/history", start_date=START, end_date=NOW, **query)

    starts = [datetime.fromisoformat(one["start"]) for one in found["providers"][0]["intervals"]]
    assert found["interval_minutes"] == minutes
    assert {later - earlier for earlier, later in pairwise(starts)} == {timedelta(minutes=minutes)}


@pytest.mark.usefixtures("traffic")
def test_failovers__pairs_of_attempts__counted_by_model_and_error(get: Get) -> None:
    found = get("providers/failovers", start_date=START, end_date=NOW)

    names = ("from_provider", "from_model", "to_provider", "to_model", "error", "request_count", "served_count")
    assert [tuple(one[name] for name in names) for one in found["results"]] == [
        ("openai", "m", "groq", "g", "unavailable", 4, 3),
        ("groq", "g", "azure", "m", "unavailable", 1, 1),
        ("openai", "m", "openai", "small", "timeout", 1, 1),
    ]
    assert (found["count"], found["total_failovers"]) == (3, 6)
    assert found["results"][0]["last_seen"] == iso(microseconds(NOW - timedelta(minutes=40)))


@pytest.fixture
def deployments(api: Api, spool: Path) -> None:
    """A project with two deployments of OpenAI, and requests from before they had names and since."""
    project = Project.objects.get(pk=api[1])
    for name in ("openai", "openai-eu"):
        row = ProviderIntegration(project=project, provider="openai", name=name)
        store_secret(row, "sk-test-0000")
        row.save()
    minute = timedelta(minutes=1)
    store(
        spool,
        *(entry(api, 5 * minute, served("openai", deployment="openai-eu")) for _ in range(3)),
        entry(api, 5 * minute, failed("openai", deployment="openai-eu")),
        *(
            entry(
                api,
                5 * minute,
                failed("openai", deployment="openai-eu"),
                served("openai", deployment="openai"),
                fallback_used=True,
            )
            for _ in range(2)
        ),
        entry(api, 5 * minute, served("openai")),
        entry(api, 5 * minute, failed("openai", deployment="openai"), served("groq", deployment="groq")),
    )


@pytest.mark.usefixtures("deployments")
def test_history__named_deployments__each_with_its_own_figures(get: Get) -> None:
    found = get("providers/history", start_date=START, end_date=NOW)

    groq, openai = found["providers"]
    names = ("request_count", "error_count", "failover_count")
    assert [tuple(openai[name] for name in names)] == [(7, 1, 3)]
    assert [(one["deployment"], *(one[name] for name in names)) for one in openai["deployments"]] == [
        ("openai", 3, 0, 1),
        ("openai-eu", 4, 1, 2),
    ]
    assert openai["deployments"][1]["error_rate"] == 3 / 6
    assert openai["deployments"][1]["intervals"][-1]["status"] == "down"
    assert (groq["request_count"], groq["deployments"]) == (1, [])


@pytest.mark.usefixtures("deployments")
def test_failovers__between_deployments__are_counted_by_their_names(get: Get) -> None:
    found = get("providers/failovers", start_date=START, end_date=NOW)

    names = ("from_provider", "from_deployment", "to_provider", "to_deployment", "request_count", "served_count")
    assert [tuple(one[name] for name in names) for one in found["results"]] == [
        ("openai", "openai-eu", "openai", "openai", 2, 2),
        ("openai", "openai", "groq", "groq", 1, 1),
    ]


def test_history_and_failovers__any_range__equal_plain_computation(api: Api, get: Get, spool: Path) -> None:
    chance = random.Random(7)
    calls = [*(failed(name) for name in "abc"), *(served(name) for name in "abc"), failed("a", "n"), served("b", "n")]
    entries = [
        entry(
            api,
            timedelta(seconds=chance.choice([3600, 86400, 9 * 86400]) * chance.random()),
            *chance.choices(calls, k=chance.randint(1, 4)),
            retries=1,
        )
        for _ in range(400)
    ]
    store(spool, *entries[:250])
    store(spool, *entries[250:])
    records = [one.record for one in entries]

    for minutes in (15, 60, 180):
        start = NOW - timedelta(seconds=7 * 86400 * chance.random())
        end = start + (NOW - start) * chance.random()
        history = get("providers/history", start_date=start, end_date=end, interval_minutes=minutes)
        failovers = get("providers/failovers", start_date=start, end_date=end, limit=1000)

        chosen = [one for one in records if microseconds(start) <= one.ts <= microseconds(end)]
        expected = [(one.ts, *pair) for one in chosen for pair in pairwise(one.attempts) if _goes_on(*pair)]
        counts = Counter(
            (iso(ts // (minutes * 60_000_000) * minutes * 60_000_000), first.provider) for ts, first, _ in expected
        )
        requests = Counter(
            (iso(one.ts // (minutes * 60_000_000) * minutes * 60_000_000), one.provider) for one in chosen
        )
        shown = {(one["start"], row["provider"]): one for row in history["providers"] for one in row["intervals"]}
        assert {place: one["failover_count"] for place, one in shown.items() if one["failover_count"]} == counts
        assert {place: one["request_count"] for place, one in shown.items() if one["request_count"]} == requests
        totals = Counter((a.provider, a.model, b.provider, b.model, a.error) for _, a, b in expected)
        ends = Counter((a.provider, a.model, b.provider, b.model, a.error) for _, a, b in expected if not b.error)
        names = ("from_provider", "from_model", "to_provider", "to_model", "error")
        for row in failovers["results"]:
            pair = tuple(row[name] for name in names)
            assert (row["request_count"], row["served_count"]) == (totals.pop(pair), ends[pair])
        assert not totals


def _goes_on(first: AttemptRecord, second: AttemptRecord) -> bool:
    return (first.provider, first.model) != (second.provider, second.model)


@pytest.mark.usefixtures("traffic")
@pytest.mark.parametrize("path", ["providers/history", "providers/failovers"])
def test_range__longer_than_a_week__the_last_week_of_it(get: Get, path: str) -> None:
    found = get(path, start_date=NOW - timedelta(days=30), end_date=NOW)

    assert found["start_date"] == "2026-11-13T13:37:11Z"


@pytest.mark.parametrize("path", ["providers/history", "providers/failovers"])
def test_history__nothing_stored__empty(get: Get, path: str) -> None:
    found = get(path)

    assert found.get("results", found.get("providers")) == []
