"""Answers that users rated bad within a day score 0, and all others 1: no rating is no event, so nothing is missing."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db.models import F
from django.utils import timezone

from analytics.models import EvaluationTask, Feedback
from analytics.monitoring import EVALUATIONS
from analytics.online_evaluations import queue
from analytics.scores.services import record_feedback
from tests.factories.analytics import make_entry, store
from tests.fakes.scripted import completion
from tests.gateway.evaluations.conftest import Scene
from tests.gateway.evaluations.online import create, detail, ends, judge_all, scores, take_samples

pytestmark = pytest.mark.django_db(transaction=True)

DAY = timedelta(hours=24)


def ratings(scene: Scene) -> str:
    return create(scene, scene.evaluator("user_feedback"))


def answered(scene: Scene, session_id: str = "", *, with_texts: bool = True) -> str:
    """Stores an answer of a minute ago; returns its request's id."""
    bodies = [json.dumps({"messages": []}).encode(), json.dumps(completion("At seven.")).encode()] if with_texts else []
    entry = make_entry(
        *bodies, project_id=str(scene.project.pk), session_id=session_id, ts=time.time_ns() // 1000 - 60_000_000
    )
    store(scene.spool, entry)
    return str(entry.record.request_id)


def rate(scene: Scene, session_id: str, score: int, request_id: str = "", after: timedelta | None = None) -> None:
    """Rates an answer or a session, `after` the answer of a minute ago."""
    row = record_feedback(
        project_id=scene.project.pk,
        session_id=session_id,
        request_id=UUID(request_id) if request_id else None,
        score=score,
        text="",
        actor="user:ann",
    )
    if after is not None:
        Feedback.objects.filter(pk=row.pk).update(created_at=timezone.now() - timedelta(minutes=1) + after)


def a_day_later(evaluation_id: str) -> None:
    """Moves what is due a day back, as time would."""
    tasks = EvaluationTask.objects.filter(evaluation=UUID(evaluation_id))
    # The minute of their records may not be over yet.
    tasks.update(due_at=F("due_at") - DAY, not_before=None)


def values(scene: Scene, evaluation_id: str) -> dict[str, float]:
    """Judges a day later; returns the scores by request."""
    a_day_later(evaluation_id)
    judge_all()
    return {request_id: value for request_id, value, _ in scores("user_feedback@1")}


def test_answer__is_judged_a_day_later_without_a_model_and_without_texts(scene: Scene) -> None:
    evaluation_id = ratings(scene)
    with_texts, without = answered(scene), answered(scene, with_texts=False)
    take_samples()
    judge_all()

    assert ends(evaluation_id) == [("due", "")] * 2
    found = detail(scene, evaluation_id)
    assert datetime.fromisoformat(found["oldest_due_at"]) > datetime.now(UTC) + timedelta(hours=23)
    assert (found["tasks"]["due"], found["last_hour"]["due"]) == (2, 0)
    assert EVALUATIONS.ask()["backlog"] == []

    assert values(scene, evaluation_id) == {with_texts: 1, without: 1}
    assert ends(evaluation_id) == [("done", "")] * 2
    assert {one[2] for one in scores("user_feedback@1")} == {"user"}
    assert scene.script.received == []


def test_feedback__that_names_the_request__within_a_day__decides(scene: Scene) -> None:
    evaluation_id = ratings(scene)
    names = ("bad", "good", "both", "late", "text")
    found = {name: answered(scene, f"s-{name}") for name in names}
    rate(scene, "s-bad", 2, found["bad"])
    rate(scene, "s-good", 4, found["good"])
    # The session says another thing than the feedback that names the request.
    rate(scene, "s-good", 1)
    rate(scene, "s-both", 1, found["both"])
    rate(scene, "s-both", 5, found["both"])
    rate(scene, "s-late", 1, found["late"], after=DAY + timedelta(seconds=1))
    take_samples()

    given = values(scene, evaluation_id)

    assert {name: given[found[name]] for name in names} == {"bad": 0, "good": 1, "both": 0, "late": 1, "text": 1}


def test_feedback__on_the_session__counts_for_what_was_answered_before(scene: Scene) -> None:
    evaluation_id = ratings(scene)
    names = ("after", "before", "late")
    found = {name: answered(scene, f"s-{name}") for name in names}
    neighbour, stranger = answered(scene, "s-after"), answered(scene)
    rate(scene, "s-after", 1, after=timedelta(seconds=30))
    rate(scene, "s-before", 1, after=-timedelta(seconds=30))
    rate(scene, "s-late", 2, after=DAY + timedelta(seconds=1))
    take_samples()

    given = values(scene, evaluation_id)

    assert {name: given[found[name]] for name in names} == {"after": 0, "before": 1, "late": 1}
    assert (given[neighbour], given[stranger]) == (0, 1)


def test_patience__is_a_quarter_of_an_hour_after_the_day(scene: Scene) -> None:
    evaluation_id = ratings(scene)
    answered(scene)
    take_samples()
    EvaluationTask.objects.update(due_at=timezone.now() - queue.PATIENCE - timedelta(seconds=1), not_before=None)

    judge_all()

    assert ends(evaluation_id) == [("skipped", "too_old")]


def test_other_evaluations__are_judged_while_a_day_of_answers_waits(scene: Scene) -> None:
    waiting = ratings(scene)
    answered(scene)
    take_samples()
    rule = create(scene, scene.evaluator("contains", value="seven"))
    answered(scene)
    take_samples()

    judge_all()

    assert (ends(waiting), set(ends(rule))) == ([("due", "")] * 2, {("done", "")})


def test_experiment_and_dry_run__know_no_users(scene: Scene) -> None:
    evaluator_id = scene.evaluator("user_feedback")
    body: dict[str, Any] = {"candidates": [{}, {"temperature": 1}], "evaluators": [{"evaluator_id": evaluator_id}]}

    refused = scene.api.post("/api/llm/experiments", body, format="json")
    tried = scene.dry_run(evaluator_id, answered(scene))

    assert refused.status_code == 400
    assert list(refused.json()["error"]["details"]) == ["evaluators.0.evaluator_id"]
    assert [one["reason"] for one in tried["results"]] == ["needs_users"]
