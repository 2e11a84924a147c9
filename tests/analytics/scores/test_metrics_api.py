from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import fmean
from typing import Any
from uuid import uuid4

import pytest
from rest_framework.test import APIClient

from analytics.models import Feedback, Score
from analytics.request_log.record import RequestRecord
from analytics.scores.services import record_feedback
from analytics.scores.sync.run import copy_due
from core.models import Project
from tests.factories.analytics import make_entry, store
from tests.factories.core import make_project
from tests.factories.scores import make_score
from tests.store_away import store_away

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse")]

URL = "/api/llm/metrics/scores"
FEEDBACK_URL = "/api/llm/metrics/feedback"


def made(project: Project, at: datetime | None = None, **values: Any) -> Score:
    score = make_score(project, **values)
    if at is not None:
        Score.objects.filter(pk=score.pk).update(created_at=at)
    return score


def results(answer: Any) -> list[dict[str, Any]]:
    assert answer.status_code == 200, answer.json()
    found: list[dict[str, Any]] = answer.json()["results"]
    return found


def test_scores__of_each_type__figures_and_distribution(api: APIClient, project: Project) -> None:
    for value in (10, 20, 45):
        made(project, score_name="quality", score_value=value)
    for truth in (1, 1, 0):
        made(project, score_name="safe", score_type="boolean", score_value=truth)
    for label, value in (("angry", 1), ("calm", 2), ("calm", 2), ("", 3)):
        made(project, score_name="tone", score_type="category", score_label=label, score_value=value)
    made(make_project(), score_name="quality", score_value=99)
    copy_due()

    answer = api.get(URL)

    assert (answer.json()["count"], answer.json()["group_by"]) == (3, "none")
    assert results(answer) == [
        {"score_name": "quality", "score_type": "number", "count": 3, "mean": 25, "min": 10, "max": 45,
         "distribution": None},
        {"score_name": "safe", "score_type": "boolean", "count": 3, "mean": pytest.approx(2 / 3), "min": 0, "max": 1,
         "distribution": [{"label": "true", "count": 2}, {"label": "false", "count": 1}]},
        {"score_name": "tone", "score_type": "category", "count": 4, "mean": 2, "min": 1, "max": 3,
         "distribution": [{"label": "calm", "count": 2}, {"label": "3", "count": 1}, {"label": "angry", "count": 1}]},
    ]  # fmt: skip


def test_scores__changed_and_deleted__figures_follow(api: APIClient, project: Project) -> None:
    made(project, score_id="mine", score_value=10)
    made(project, score_value=30)
    copy_due()
    made(project, score_id="mine", score_value=50)
    copy_due()

    (entry,) = results(api.get(URL))

    assert (entry["count"], entry["mean"], entry["max"]) == (2, 40, 50)


KEYS: dict[str, Callable[[RequestRecord | None, Score], tuple[Any, ...]]] = {
    "none": lambda request, score: (),
    "model": lambda request, score: (request.provider, request.model) if request else (None, None),
    "prompt_version": lambda request, score: (
        (request.prompt_config_id or None, request.prompt_version or None) if request else (None, None)
    ),
    "variant": lambda request, score: (
        (request.rollout_id or None, request.variant or None) if request else (None, None)
    ),
    "evaluator_type": lambda request, score: (score.evaluator_type,),
}
FIELDS = {
    "none": (),
    "model": ("provider", "model"),
    "prompt_version": ("prompt_config_id", "prompt_version"),
    "variant": ("rollout_id", "variant"),
    "evaluator_type": ("evaluator_type",),
}


def test_scores__grouped__equal_plain_arithmetic(api: APIClient, project: Project, spool: Path) -> None:
    chance = random.Random(7)
    configs, rollout = [str(uuid4()), str(uuid4())], str(uuid4())
    entries = [
        make_entry(
            project_id=str(project.pk),
            provider=chance.choice(["openai", "anthropic"]),
            model=chance.choice(["a", "b"]),
            prompt_config_id=(config := chance.choice([*configs, ""])),
            prompt_version=chance.randint(1, 3) if config else 0,
            rollout_id=(chosen := chance.choice([rollout, ""])),
            variant=chance.choice(["baseline", "target"]) if chosen else "",
        )
        for _ in range(40)
    ]
    store(spool, *entries)
    requests = {entry.record.request_id: entry.record for entry in entries}
    scores = [
        make_score(
            project,
            request_id=chance.choice([*requests, "unknown"]),
            score_name=chance.choice(["x", "y"]),
            score_value=chance.randint(0, 400) / 4,
            evaluator_type=chance.choice(["code", "human"]),
        )
        for _ in range(200)
    ]
    copy_due()

    for group_by in KEYS:
        expected: defaultdict[tuple[Any, ...], list[float]] = defaultdict(list)
        for score in scores:
            key = KEYS[group_by](requests.get(score.request_id), score)
            expected[score.score_name, *key].append(score.score_value)

        found: list[dict[str, Any]] = []
        while True:
            page = results(api.get(URL, {"group_by": group_by, "limit": "7", "offset": str(len(found))}))
            found += page
            if len(page) < 7:
                break

        assert api.get(URL, {"group_by": group_by}).json()["count"] == len(found) == len(expected), group_by
        for entry in found:
            values = expected.pop((entry["score_name"], *(entry[name] for name in FIELDS[group_by])))
            assert entry["count"] == len(values)
            assert entry["mean"] == pytest.approx(fmean(values), rel=1e-12)
            assert (entry["min"], entry["max"]) == (min(values), max(values))
        assert not expected, group_by


def test_scores__filters_and_range__keep_what_matches(api: APIClient, project: Project) -> None:
    now = datetime.now(UTC)
    made(project, now - timedelta(days=40), score_value=1)
    made(project, now - timedelta(days=2), score_value=2, evaluator_type="human")
    made(project, now, score_value=3, score_name="other")
    made(project, now, score_value=1, score_name="other", score_type="boolean")
    copy_due()

    def values(**parameters: str) -> list[float]:
        return [entry["mean"] for entry in results(api.get(URL, parameters))]

    assert values() == [1, 3, 2]
    assert values(evaluator_type="human") == [2]
    assert values(score_name="other") == [1, 3]
    assert values(score_name="other", score_type="number") == [3]
    assert values(score_name="%") == []
    assert values(
        start_date=(now - timedelta(days=41)).isoformat(), end_date=(now - timedelta(days=3)).isoformat()
    ) == [1]
    assert values(start_date="2020-01-01", end_date="2020-02-01") == []
    assert results(api.get(URL, {"offset": "5"})) == []
    assert api.get(URL, {"offset": "5"}).json()["count"] == 3


def test_scores__no_range__answer_says_the_last_thirty_days(api: APIClient) -> None:
    body = api.get(URL).json()

    start, end = datetime.fromisoformat(body["start_date"]), datetime.fromisoformat(body["end_date"])
    assert end - start == timedelta(days=30)
    assert (body["count"], body["results"]) == (0, [])


def test_scores__many_labels__the_most_frequent_are_shown(api: APIClient, project: Project) -> None:
    for n in range(60):
        for _ in range(1 + (n == 59)):
            made(project, score_type="category", score_value=1, score_label=f"l{n:02d}")
    copy_due()

    (entry,) = results(api.get(URL))

    assert entry["count"] == 61
    assert len(entry["distribution"]) == 50
    assert entry["distribution"][:2] == [{"label": "l59", "count": 2}, {"label": "l00", "count": 1}]


@pytest.mark.parametrize("url", [URL, FEEDBACK_URL])
def test_metrics__store_away__503_but_scores_are_still_taken(api: APIClient, project: Project, url: str) -> None:
    with store_away():
        answer = api.get(url)
        body = {"project_id": str(project.pk), "request_id": "r", "score_name": "n", "score_value": 1}
        assert api.post("/api/llm/scores", body).status_code == 201
        assert api.get("/api/llm/scores").json()["count"] == 1

    assert answer.status_code == 503
    assert answer.json()["error"]["type"] == "service_unavailable_error"


def test_feedback__by_day__equal_plain_arithmetic(api: APIClient, project: Project) -> None:
    chance = random.Random(3)
    expected: defaultdict[str, list[Feedback]] = defaultdict(list)
    for _ in range(80):
        row = record_feedback(
            project_id=project.pk,
            session_id=f"s{chance.randint(0, 9)}",
            score=(score := chance.choice([None, 1, 2, 3, 4, 5])),
            text="said" if score is None else chance.choice(["", "said"]),
            actor="",
        )
        at = datetime(2026, 5, chance.randint(1, 6), chance.randint(0, 23), tzinfo=UTC)
        Feedback.objects.filter(pk=row.pk).update(created_at=at)
        expected[at.date().isoformat()].append(row)
    record_feedback(project_id=make_project().pk, session_id="s", score=1, text="", actor="")
    copy_due()

    days = results(api.get(FEEDBACK_URL, {"start_date": "2026-05-01", "end_date": "2026-05-06"}))

    assert [day["date"] for day in days] == sorted(expected)
    for day in days:
        rows = expected[day["date"]]
        scores = [row.score for row in rows if row.score]
        assert day["count"] == len(rows)
        assert day["text_count"] == sum(bool(row.text) for row in rows)
        assert day["session_count"] == len({row.session_id for row in rows})
        assert day["mean_score"] == (pytest.approx(fmean(scores)) if scores else None)
        assert day["scores"] == {str(n): Counter(scores)[n] for n in range(1, 6)}
    page = api.get(FEEDBACK_URL, {"start_date": "2026-05-01", "end_date": "2026-05-06", "limit": "2", "offset": "1"})
    assert results(page) == days[1:3]
    assert page.json()["count"] == len(expected)
