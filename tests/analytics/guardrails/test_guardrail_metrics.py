"""The findings of guardrails: figures by rule and over time equal the records'; the newest verdicts are listed."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from rest_framework.test import APIClient

from core.models import Project
from tests.factories.analytics import make_entry, store

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse")]

NOW = datetime(2026, 11, 20, 13, 37, 11, tzinfo=UTC)
EMAIL = {"guardrail": "pii", "stage": "input", "action": "blocked", "detail": "email"}
CARD = {**EMAIL, "detail": "card"}
FLAGGED = {**EMAIL, "action": "flagged"}
MASKED = {**EMAIL, "stage": "output", "action": "masked"}
INJECTION = {
    "guardrail": "prompt_injection", "stage": "input", "action": "blocked", "detail": "ignore_previous", "score": 0.8
}  # fmt: skip
PASSED = {"guardrail": "low_quality", "stage": "output", "action": "passed", "score": 0.9}
KINDS: list[list[dict[str, Any]]] = [[EMAIL, CARD], [FLAGGED], [MASKED], [INJECTION], [PASSED], []]


@pytest.fixture
def found(spool: Path, project: Project) -> list[tuple[datetime, list[dict[str, Any]]]]:
    """Ninety requests within 30 hours, of which five of six have verdicts."""
    requests = [(NOW - timedelta(minutes=20 * index), KINDS[index % len(KINDS)]) for index in range(90)]
    store(spool, *(_entry(project, moment, verdicts) for moment, verdicts in requests))
    return requests


def _entry(project: Project, moment: datetime, verdicts: list[dict[str, Any]]) -> Any:
    attributes = {"guardrails": json.dumps(verdicts)} if verdicts else {}
    return make_entry(
        project_id=str(project.pk), ts=int(moment.timestamp() * 1_000_000), attributes=attributes, retention_days=4000
    )


def _get(api: APIClient, path: str, **query: Any) -> Any:
    values = {name: v.isoformat() if isinstance(v, datetime) else v for name, v in query.items()}
    answer = api.get(f"/api/llm/{path}", values)
    assert answer.status_code == 200, answer.json()
    return answer.json()


def _counted(requests: list[tuple[datetime, list[dict[str, Any]]]]) -> Counter[tuple[str, str, str]]:
    return Counter(
        verdict
        for _, verdicts in requests
        for verdict in {(one["guardrail"], one["stage"], one["action"]) for one in verdicts}
    )


@pytest.mark.parametrize("hours", [1, 5, 24, 29.5, 48])
def test_guardrails__any_range__equal_those_of_the_records(
    api: APIClient, found: list[tuple[datetime, list[dict[str, Any]]]], hours: float
) -> None:
    start = NOW - timedelta(hours=hours)
    expected = _counted([item for item in found if item[0] >= start])

    entries = _get(api, "metrics/guardrails", start_date=start, end_date=NOW)["results"]

    shown = Counter(
        {
            (entry["guardrail"], entry["stage"], action): entry[f"{action}_count"]
            for entry in entries
            for action in ("blocked", "flagged", "masked", "passed", "changed", "skipped")
            if entry[f"{action}_count"]
        }
    )
    assert shown == expected
    assert all(
        entry["found_count"] == entry["blocked_count"] + entry["flagged_count"] + entry["masked_count"]
        for entry in entries
    )


def test_usage__by_hour_and_by_day__adds_up_to_the_figures(
    api: APIClient, found: list[tuple[datetime, list[dict[str, Any]]]]
) -> None:
    start = NOW - timedelta(hours=40)
    whole = {
        (entry["guardrail"], entry["stage"]): entry["found_count"]
        for entry in _get(api, "metrics/guardrails", start_date=start, end_date=NOW)["results"]
    }

    for interval in ("hour", "day"):
        listed = _get(api, "metrics/guardrails/usage", start_date=start, end_date=NOW, interval=interval, limit=1000)[
            "results"
        ]
        added: Counter[tuple[str, str]] = Counter()
        for entry in listed:
            added[entry["guardrail"], entry["stage"]] += entry["found_count"]
        assert dict(added) == whole
        assert [entry["start"] for entry in listed] == sorted((entry["start"] for entry in listed), reverse=True)


def test_requests__of_one_guardrail__the_newest_first_with_their_details(
    api: APIClient, found: list[tuple[datetime, list[dict[str, Any]]]]
) -> None:
    listed = _get(api, "guardrails/requests", guardrail="pii", action="blocked", end_date=NOW, limit=5)["results"]

    assert [entry["detail"] for entry in listed] == ["card", "email", "card", "email", "card"]
    assert [entry["created_at"] for entry in listed] == sorted((e["created_at"] for e in listed), reverse=True)
    assert listed[0]["created_at"].startswith(found[0][0].strftime("%Y-%m-%dT%H:%M:%S"))
    assert {(entry["guardrail"], entry["action"]) for entry in listed} == {("pii", "blocked")}


def test_requests__certain_and_graded_findings__have_their_scores(
    api: APIClient, found: list[tuple[datetime, list[dict[str, Any]]]]
) -> None:
    listed = _get(api, "guardrails/requests", end_date=NOW, limit=200)["results"]

    scores = {(entry["guardrail"], entry["action"], entry["score"]) for entry in listed}
    assert ("prompt_injection", "blocked", 0.8) in scores
    assert ("pii", "blocked", 1.0) in scores
    assert len(listed) == sum(len(verdicts) for _, verdicts in found)


def test_guardrails__verdicts_of_another_project__not_seen(api: APIClient, spool: Path) -> None:
    from tests.factories.core import make_project

    store(spool, _entry(make_project(), NOW, [EMAIL]))

    assert _get(api, "metrics/guardrails", end_date=NOW)["results"] == []
    assert _get(api, "guardrails/requests", end_date=NOW)["results"] == []
