"""The figures of feedback by what was rated, and of the answers that were rated bad within a day."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import fmean
from typing import Any
from uuid import UUID, uuid4

import pytest
from rest_framework.test import APIClient

from analytics.models import Feedback
from analytics.request_log.record import RequestRecord, SpoolEntry
from analytics.scores.services import record_feedback
from analytics.scores.sync.run import copy_due
from core.models import Project
from tests.factories.analytics import make_entry, store
from tests.factories.core import make_project
from tests.tables.cases import tabled

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse")]

URL = "/api/llm/metrics/bad-ratings"
FEEDBACK_URL = "/api/llm/metrics/feedback"
FIRST, SECOND = sorted((str(uuid4()), str(uuid4())))
HOUR = timedelta(hours=1)


def entry(project: Project, age: timedelta, **values: Any) -> SpoolEntry:
    ts = int((datetime.now(UTC) - age).timestamp() * 1e6)
    given = {"prompt_config_id": FIRST, "prompt_version": 1, "session_id": "s", **values}
    return make_entry(project_id=str(project.pk), ts=ts, **given)


def rate(project: Project, record: RequestRecord, score: int | None, after: timedelta) -> None:
    """Stores feedback on the answer to a request, given so long after that."""
    row = record_feedback(
        project_id=project.pk,
        session_id=record.session_id,
        score=score,
        text="" if score else "said",
        actor="",
        request_id=UUID(record.request_id),
    )
    made_at = datetime.fromtimestamp(record.ts / 1e6, UTC)
    Feedback.objects.filter(pk=row.pk).update(created_at=made_at + after)


def results(api: APIClient, url: str = URL, **query: str) -> list[dict[str, Any]]:
    answer = api.get(url, query)
    assert answer.status_code == 200, answer.json()
    found: list[dict[str, Any]] = answer.json()["results"]
    return found


def counts(row: dict[str, Any]) -> tuple[int, int, int, int]:
    return row["answered_count"], row["bad_count"], row["open_answered_count"], row["open_bad_count"]


def test_bad_ratings__each_rule__counts_what_it_should(api: APIClient, project: Project, spool: Path) -> None:
    old, new = 30 * HOUR, 2 * HOUR
    rated = {
        "bad": (entry(project, old), 1, HOUR),
        "worse than good": (entry(project, old), 2, 23 * HOUR),
        "too late": (entry(project, old), 1, 25 * HOUR),
        "neither": (entry(project, old), 3, HOUR),
        "text alone": (entry(project, old), None, HOUR),
        "no answer": (entry(project, old, outcome="error", status_code=500), 1, HOUR),
        "client left": (entry(project, old, outcome="cancelled"), 1, HOUR),
        "playground": (entry(project, old, source="playground"), 1, HOUR),
        "experiment": (entry(project, old, source="experiment"), 1, HOUR),
        "no version": (entry(project, old, prompt_version=0), 1, HOUR),
        "open": (entry(project, new), 1, HOUR),
    }
    unrated = [entry(project, old), entry(project, new), entry(project, 40 * 24 * HOUR)]
    other = entry(project, old, prompt_config_id=SECOND, prompt_version=7)
    store(spool, *(made for made, _, _ in rated.values()), *unrated, other)
    for made, score, after in rated.values():
        rate(project, made.record, score, after)
    rate(project, rated["bad"][0].record, 2, 2 * HOUR)
    copy_due()

    first, second = results(api)

    assert counts(first) == (6, 2, 2, 1)
    assert first["bad_rate"] == pytest.approx(2 / 6)
    assert (second["prompt_config_id"], second["prompt_version"], counts(second)) == (SECOND, 7, (1, 0, 0, 0))
    assert results(api, prompt_config_id=SECOND) == [second]
    assert results(api, limit="1", offset="1") == [second]


def test_bad_ratings__no_day_over__no_rate(api: APIClient, project: Project, spool: Path) -> None:
    made = entry(project, HOUR)
    store(spool, made)
    rate(project, made.record, 1, timedelta(minutes=1))
    copy_due()

    (row,) = results(api)

    assert (counts(row), row["bad_rate"]) == ((0, 0, 1, 1), None)


def test_bad_ratings__any_range__equal_plain_arithmetic(api: APIClient, project: Project, spool: Path) -> None:
    chance = random.Random(11)
    entries = [
        entry(
            project,
            timedelta(minutes=chance.randint(1, 5 * 24 * 60)),
            prompt_version=chance.randint(1, 3),
            outcome=chance.choice(["success", "success", "success", "error"]),
        )
        for _ in range(150)
    ]
    store(spool, *entries)
    bad = {made.record.request_id for made in chance.sample(entries, 40)}
    for made in entries:
        if made.record.request_id in bad:
            rate(project, made.record, chance.choice([1, 2]), timedelta(minutes=5))
    copy_due()
    now = datetime.now(UTC)

    for begun, ended in ((5.0, 0.0), (3.3, 1.7), (0.9, 0.1), (2.0, 1.0), (4.0, 0.5)):
        start, end = now - timedelta(days=begun), now - timedelta(days=ended)
        expected: defaultdict[int, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
        for record in (made.record for made in entries):
            at = datetime.fromtimestamp(record.ts / 1e6, UTC)
            if start <= at <= end and record.outcome == "success":
                place = 0 if at < now - timedelta(days=1) else 2
                expected[record.prompt_version][place] += 1
                expected[record.prompt_version][place + 1] += record.request_id in bad
        found = results(api, start_date=start.isoformat(), end_date=end.isoformat())

        assert {row["prompt_version"]: list(counts(row)) for row in found} == expected


def test_bad_ratings__request_deleted__its_rating_goes_and_the_request_still_counts(
    api: APIClient, project: Project, spool: Path
) -> None:
    made, other = entry(project, 30 * HOUR), entry(project, 30 * HOUR)
    store(spool, made, other)
    for one in (made, other):
        rate(project, one.record, 1, HOUR)
    copy_due()
    assert [counts(row) for row in results(api)] == [(2, 2, 0, 0)]

    assert api.delete(f"/api/llm/requests/{made.record.request_id}").status_code == 204
    copy_due()

    assert [counts(row) for row in results(api)] == [(2, 1, 0, 0)]


@tabled
def test_feedback__by_what_it_is_about__equal_plain_arithmetic(
    api: APIClient, project: Project, spool: Path, group_by: str, fields: tuple[str, str]
) -> None:
    chance = random.Random(5)
    rollout = str(uuid4())
    entries = [
        entry(
            project,
            timedelta(hours=chance.randint(1, 60)),
            session_id=chance.choice(["a", "b"]),
            prompt_version=chance.randint(1, 2),
            model=chance.choice(["m", "n"]),
            rollout_id=rollout,
            variant=chance.choice(["target", "baseline"]),
        )
        for _ in range(20)
    ]
    store(spool, *entries)
    expected: defaultdict[tuple[Any, ...], list[tuple[RequestRecord, int | None]]] = defaultdict(list)
    for _ in range(60):
        record, score = chance.choice(entries).record, chance.choice([None, 1, 2, 3, 4, 5])
        rate(project, record, score, timedelta(minutes=1))
        expected[tuple(getattr(record, name) for name in fields)].append((record, score))
    record_feedback(project_id=project.pk, session_id="a", score=1, text="", actor="")
    record_feedback(project_id=make_project().pk, session_id="a", score=1, text="", actor="")
    copy_due()

    found = results(api, FEEDBACK_URL, group_by=group_by)

    assert [tuple(row[name] for name in fields) for row in found] == sorted(expected)
    for row in found:
        given = expected[tuple(row[name] for name in fields)]
        scores = [score for _, score in given if score]
        assert row["date"] is None
        assert row["count"] == len(given)
        assert row["text_count"] == len(given) - len(scores)
        assert row["session_count"] == len({record.session_id for record, _ in given})
        assert row["request_count"] == len({record.request_id for record, _ in given})
        assert row["mean_score"] == (pytest.approx(fmean(scores)) if scores else None)
        assert row["scores"] == {str(score): Counter(scores)[score] for score in range(1, 6)}
    page = api.get(FEEDBACK_URL, {"group_by": group_by, "limit": "1", "offset": "1"}).json()
    beyond = api.get(FEEDBACK_URL, {"group_by": group_by, "offset": "50"}).json()
    assert (page["results"], page["count"], page["group_by"]) == (found[1:2], len(found), group_by)
    assert (beyond["results"], beyond["count"]) == ([], len(found))
