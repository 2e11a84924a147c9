from __future__ import annotations

import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from rest_framework.test import APIClient

from analytics.request_log.record import Outcome, RequestRecord
from tests.analytics.request_counts import count_requests
from tests.factories.analytics import make_entry, store
from tests.factories.core import make_key, make_project
from tests.tables.cases import tabled

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse")]

NOW = datetime(2026, 11, 20, 13, 37, 11, 123456, tzinfo=UTC)


@pytest.fixture
def records(spool: Path, api: tuple[APIClient, str]) -> list[RequestRecord]:
    """Eight hundred requests over 50 days, most of them in the last three days."""
    chance = random.Random(7)
    entries = []
    for _ in range(800):
        age = timedelta(seconds=chance.choice([3 * 86400, 50 * 86400]) * chance.random())
        outcome = chance.choice([Outcome.SUCCESS] * 6 + [Outcome.ERROR, Outcome.CANCELLED])
        known = chance.random() < 0.9
        entries.append(
            make_entry(
                project_id=api[1],
                ts=int((NOW - age).timestamp() * 1_000_000),
                outcome=outcome,
                model=chance.choice(["a", "b", "c", "d", "e", "f", "g"]),
                session_id=chance.choice(["", *(f"s{i}" for i in range(40))]),
                user_id=chance.choice(["", *(f"u{i}" for i in range(15))]),
                prompt_tokens=chance.randrange(4000),
                completion_tokens=chance.randrange(900),
                latency_ms=chance.randrange(60_000),
                cost_known=known,
                cost_usd=f"{Decimal(chance.randrange(10**9)) / 10**10:.10f}" if known else "",
            )
        )
    store(spool, *entries)
    return [entry.record for entry in entries]


@pytest.fixture
def api() -> tuple[APIClient, str]:
    project = make_project()
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {make_key(project)[1]}", HTTP_X_PROJECT_ID=str(project.pk))
    return client, str(project.pk)


def expected(records: list[RequestRecord], start: datetime, end: datetime) -> dict[str, Any]:
    low, high = (int(t.timestamp() * 1_000_000) for t in (start, end))
    chosen = [r for r in records if low <= r.ts <= high]
    models = Counter(r.model for r in chosen)
    top = sorted(models, key=lambda model: (-models[model], model))[:5]
    return {
        "total_requests": len(chosen),
        "total_sessions": len({r.session_id for r in chosen} - {""}),
        "total_users": len({r.user_id for r in chosen} - {""}),
        "total_tokens": sum(r.prompt_tokens + r.completion_tokens for r in chosen),
        "total_cost_usd": float(sum(Decimal(r.cost_usd or 0) for r in chosen)),
        "unpriced_request_count": sum(not r.cost_known for r in chosen),
        "error_rate": sum(r.outcome == Outcome.ERROR for r in chosen) / len(chosen),
        "average_latency_ms": sum(r.latency_ms for r in chosen) / len(chosen),
        "top_models": [
            {
                "model": model,
                "request_count": models[model],
                "total_tokens": sum(r.prompt_tokens + r.completion_tokens for r in chosen if r.model == model),
                "total_cost_usd": float(sum(Decimal(r.cost_usd or 0) for r in chosen if r.model == model)),
            }
            for model in top
        ],
    }


@tabled
def test_overview__any_range__equals_plain_computation(
    api: tuple[APIClient, str], records: list[RequestRecord], start: datetime, end: datetime
) -> None:
    client, _ = api
    answer = client.get("/api/llm/metrics/overview", {"start_date": start.isoformat(), "end_date": end.isoformat()})

    assert answer.status_code == 200, answer.json()
    found = answer.json()
    assert {name: found[name] for name in expected(records, start, end)} == expected(records, start, end)


def test_overview__range_beyond_30_days__capped_and_named_in_the_answer(
    api: tuple[APIClient, str], records: list[RequestRecord]
) -> None:
    client, _ = api
    answer = client.get("/api/llm/metrics/overview", {"start_date": "2026-01-01", "end_date": NOW.isoformat()}).json()

    assert answer["start_date"] == (NOW - timedelta(days=30)).isoformat().replace("+00:00", "Z")
    assert answer["total_requests"] == expected(records, NOW - timedelta(days=30), NOW)["total_requests"]


def test_overview__nothing_there__zeros(api: tuple[APIClient, str]) -> None:
    answer = api[0].get("/api/llm/metrics/overview")

    assert answer.status_code == 200
    assert answer.json()["total_requests"] == 0
    assert answer.json()["error_rate"] == 0
    assert answer.json()["top_models"] == []


def test_counts__random_records__rollups_equal_rows(api: tuple[APIClient, str], records: list[RequestRecord]) -> None:
    counts = count_requests(UUID(api[1]))

    assert counts.requests == len(records)
    assert counts.consistent
