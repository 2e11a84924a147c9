"""Verdicts become scores, once for each request and guardrail."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.utils import timezone

from analytics.clickhouse import client
from analytics.errors import AnalyticsLimitError, AnalyticsUnavailableError
from analytics.models import Score
from analytics.queries.unscored import unscored_requests
from analytics.scores.sync.run import copy_due
from core.models import Project
from gateway.guardrails import verdict_scores as scores
from gateway.guardrails.verdict_scores import record_verdicts, score_verdicts, scores_of
from gateway.guardrails.verdicts import VERDICTS, Guardrail, GuardrailAction, GuardrailStage, GuardrailVerdict
from gateway.tasks import score_verdicts as task
from tests.factories.analytics import make_entry, store
from tests.factories.core import make_project
from tests.factories.settings import make_settings

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse")]

HOUR = timedelta(hours=1)
PII = {"guardrail": "pii", "stage": "output", "action": "masked", "detail": "email"}
CARD = {**PII, "detail": "card"}
POOR = {"guardrail": "low_quality", "stage": "output", "action": "blocked", "detail": "20 of 100", "score": 0.2}
GOOD = {**POOR, "action": "passed", "detail": "85 of 100", "score": 0.85}
UNJUDGED = {**POOR, "action": "skipped", "detail": "not judged: none"}


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    return tmp_path / "spool"


@pytest.fixture
def project() -> Project:
    made = make_project()
    make_settings(made, guardrails={"trust_mode": "monitor"})
    return made


def recorded_request(project: Project, spool: Path, *verdicts: dict[str, Any], **values: Any) -> str:
    attributes = {VERDICTS: json.dumps(verdicts)} if verdicts else {}
    entry = make_entry(project_id=str(project.pk), attributes=attributes, **values)
    store(spool, entry)
    return entry.record.request_id


def recorded_scores(project: Project) -> list[tuple[str, float, str, str]]:
    rows = Score.objects.for_project(project.pk).order_by("score_name")
    return [(row.score_name, row.score_value, row.score_type, row.score_label) for row in rows]


def test_each_guardrail_becomes_one_score(project: Project, spool: Path) -> None:
    request_id = recorded_request(project, spool, PII, CARD, POOR, GOOD)
    recorded_request(project, spool)
    assert score_verdicts(back=HOUR) == 2
    assert recorded_scores(project) == [
        ("guardrail.low_quality", 85.0, "number", "passed"),
        ("guardrail.pii", 1.0, "boolean", "masked"),
    ]
    score = Score.objects.get(project=project, score_name="guardrail.pii")
    assert (score.request_id, score.evaluator_type) == (request_id, "guardrail")
    assert score.reason == "output masked: email; output masked: card"


def test_nothing_is_scored_twice(project: Project, spool: Path) -> None:
    recorded_request(project, spool, PII)
    score_verdicts(back=HOUR)
    assert score_verdicts(back=HOUR) == 1  # The copy has not arrived yet, so the same score is written again.
    copy_due()
    assert score_verdicts(back=HOUR) == 0
    assert len(recorded_scores(project)) == 1
    assert Score.objects.get(project=project).revision == 1


def test_what_was_missed_is_found_by_a_longer_look(project: Project, spool: Path) -> None:
    two_hours_ago = make_entry().record.ts - 7200 * 1_000_000
    recorded_request(project, spool, PII, ts=two_hours_ago)
    assert score_verdicts(back=HOUR) == 0
    assert score_verdicts(back=3 * HOUR) == 1


def test_an_answer_that_could_not_be_judged_has_no_score(project: Project, spool: Path) -> None:
    recorded_request(project, spool, UNJUDGED)
    assert score_verdicts(back=HOUR) == 0
    assert recorded_scores(project) == []


def test_more_requests_than_one_page(project: Project, spool: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("analytics.queries.unscored._ROWS_AT_ONCE", 2)
    now = make_entry().record.ts
    for _ in range(5):
        recorded_request(project, spool, PII, ts=now)
    assert score_verdicts(back=HOUR) == 5


def test_a_verdict_nobody_can_read_stops_no_other(project: Project, spool: Path) -> None:
    entry = make_entry(project_id=str(project.pk), attributes={VERDICTS: '[{"guardrail":7}]'})
    store(spool, entry)
    recorded_request(project, spool, PII)
    assert score_verdicts(back=HOUR) == 1


def test_other_projects_are_left_alone(project: Project, spool: Path) -> None:
    stranger = make_project()
    recorded_request(stranger, spool, PII)
    assert score_verdicts(back=HOUR) == 0


def test_a_store_that_is_away_postpones(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*args: Any, **kwargs: Any) -> Any:
        raise AnalyticsUnavailableError("away")

    monkeypatch.setattr(client, "query", away)
    task(15)


@pytest.mark.parametrize(("minute", "minutes"), [(1, 15), (14, 15), (15, 360), (0, 360)])
def test_task__at_a_quarter_of_an_hour__finds_late_records_too(
    minute: int, minutes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[timedelta] = []
    monkeypatch.setattr(scores, "score_verdicts", lambda *, back: asked.append(back))
    monkeypatch.setattr(timezone, "now", lambda: datetime(2026, 11, 29, 12, minute, 30, tzinfo=UTC))

    task()
    assert asked == [timedelta(minutes=minutes)]


def test_project__too_busy_for_the_query__delays_no_other(
    project: Project, spool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy = make_project()
    make_settings(busy, guardrails={"trust_mode": "monitor"})
    recorded_request(project, spool, PII)

    def limited(project_id: UUID, *args: Any, **kwargs: Any) -> Any:
        if project_id == busy.pk:
            raise AnalyticsLimitError("too much")
        return unscored_requests(project_id, *args, **kwargs)

    monkeypatch.setattr(scores, "unscored_requests", limited)
    assert score_verdicts(back=HOUR) == 1


def test_scores_of_inputs() -> None:
    verdicts = [
        GuardrailVerdict(Guardrail.PROMPT_INJECTION, GuardrailStage.INPUT, GuardrailAction.FLAGGED, "override", 0.7),
        GuardrailVerdict(Guardrail.BLOCKED_TOPIC, GuardrailStage.INPUT, GuardrailAction.FLAGGED, "bombs"),
    ]
    made = [(score.score_name, score.score_value) for score in scores_of("r", verdicts)]
    assert made == [("guardrail.prompt_injection", 0.7), ("guardrail.blocked_topic", 1.0)]


def test_nothing_to_record(project: Project) -> None:
    assert record_verdicts(project.pk, {"r": []}) == 0
    assert scores.EVALUATOR == "guardrail"
