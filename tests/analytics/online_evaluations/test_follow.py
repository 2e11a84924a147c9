"""The follower of the request log: each complete minute once, also when a worker dies or the store is away."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.utils import timezone

from analytics.models import EvaluationTask, OnlineEvaluation
from analytics.monitoring import EVALUATIONS
from analytics.online_evaluations import follow, reading
from analytics.online_evaluations.follow import follow_log
from analytics.online_evaluations.sampling import is_label_due, minute_of
from analytics.online_evaluations.selectors import backlog
from core.models import Project
from tests.factories.analytics import make_entry, store
from tests.factories.core import make_project
from tests.factories.evaluators import make_evaluator
from tests.factories.online_evaluations import make_online_evaluation

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("clickhouse")]


def evaluation(project: Project, **fields: Any) -> OnlineEvaluation:
    return make_online_evaluation(make_evaluator(project), **fields)


def stored(project: Project, folder: Path, count: int = 1, **values: Any) -> list[str]:
    entries = [make_entry(project_id=str(project.pk), **values) for _ in range(count)]
    store(folder, *entries)
    return [str(entry.record.request_id) for entry in entries]


def over() -> datetime:
    """Returns a time at which the minutes of all that is stored are over."""
    return timezone.now() + timedelta(minutes=1)


def due() -> list[str]:
    return sorted(str(one) for one in EvaluationTask.objects.values_list("request_id", flat=True))


def test_minute__that_is_not_over__is_left_for_later(project: Project, tmp_path: Path) -> None:
    row = evaluation(project)
    ids = stored(project, tmp_path)

    assert not follow_log(row.sampled_until)
    assert due() == []
    assert not follow_log(over())
    assert due() == ids


def test_store_clock__gives_the_complete_minutes(project: Project, tmp_path: Path) -> None:
    row = evaluation(project)
    stored(project, tmp_path)
    before = minute_of(timezone.now())

    follow_log()

    row.refresh_from_db()
    assert row.sampled_until in (before, before + timedelta(minutes=1))


def test_worker__that_dies_before_the_end__leaves_nothing_and_the_next_one_has_all(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = evaluation(project)
    ids = sorted(stored(project, tmp_path, 3))
    create = EvaluationTask.objects.bulk_create

    def dying(tasks: Any, **options: Any) -> None:
        create(tasks[:1], **options)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(EvaluationTask.objects, "bulk_create", dying)
        with pytest.raises(KeyboardInterrupt):
            follow_log(over())

    assert due() == []
    assert OnlineEvaluation.objects.get().sampled_until == row.sampled_until
    follow_log(over())
    assert due() == ids


def test_cursor__moved_by_another_worker__makes_no_task_twice(project: Project, tmp_path: Path) -> None:
    row = evaluation(project)
    ids = stored(project, tmp_path)
    follow_log(over())

    # This one had read the row before the other one moved it.
    assert not follow._advance(row, over(), [])
    assert due() == ids


def test_more_rows_than_are_read_at_once__are_taken_minute_by_minute(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "MAX_ROWS", 2)
    row = evaluation(project)
    OnlineEvaluation.objects.update(sampled_until=row.sampled_until - timedelta(minutes=3))
    ids = stored(project, tmp_path, 4)

    assert not follow_log(over())

    # Of a minute that is too full, a part is looked at.
    assert set(due()) < set(ids)
    assert len(due()) == 2


def test_late_record__is_sampled_in_the_minute_in_which_it_comes(project: Project, tmp_path: Path) -> None:
    evaluation(project)
    follow_log(minute_of(timezone.now()))
    three_minutes = timezone.now() - timedelta(minutes=3)

    ids = stored(project, tmp_path, ts=int(three_minutes.timestamp() * 1_000_000))
    follow_log(over())

    assert due() == ids
    task = EvaluationTask.objects.get()
    assert task.due_at - task.requested_at > timedelta(minutes=3)


def test_labels__are_decided_with_the_task_and_stay_when_the_share_changes(project: Project, tmp_path: Path) -> None:
    row = evaluation(project, label_share=0.5)
    ids = stored(project, tmp_path, 40)
    follow_log(over())
    expected = {one for one in ids if is_label_due(row.pk, row.evaluator_id, UUID(one), 0.5)}

    def labelled() -> set[str]:
        return {str(one) for one in EvaluationTask.objects.filter(label_due=True).values_list("request_id", flat=True)}

    assert labelled() == expected
    OnlineEvaluation.objects.update(label_share=None, sampled_until=row.sampled_until)
    stored(project, tmp_path, 3)
    follow_log(over())

    assert labelled() == expected
    shares = EvaluationTask.objects.order_by("pk").values_list("label_share", flat=True)
    assert (len(expected) in range(5, 36), list(shares)) == (True, [0.5] * 40 + [None] * 3)


def test_unreadable_filter__stops_nobody_else(project: Project, tmp_path: Path) -> None:
    OnlineEvaluation.objects.filter(pk=evaluation(project).pk).update(filter={"prompt_version": "two"})
    sound = evaluation(project)
    stored(project, tmp_path)

    follow_log(over())

    assert [task.evaluation_id for task in EvaluationTask.objects.all()] == [sound.pk]


def test_other_project__has_its_own_answers(project: Project, tmp_path: Path) -> None:
    evaluation(project)
    stored(make_project(), tmp_path)

    follow_log(over())

    assert due() == []


def test_backlog__is_a_metric(project: Project, tmp_path: Path) -> None:
    row = evaluation(project)
    stored(project, tmp_path, 2)
    follow_log(over())
    EvaluationTask.objects.update(due_at=timezone.now() - timedelta(seconds=90))

    ((project_id, evaluation_id, count, oldest),) = backlog(10)
    metrics = {metric.name: metric.samples for metric in EVALUATIONS.metrics(EVALUATIONS.ask())}

    assert (project_id, evaluation_id, count) == (project.pk, row.pk, 2)
    assert timezone.now() - oldest >= timedelta(seconds=90)
    (tasks,) = metrics["prompt_gateway_evaluation_tasks_due"]
    assert (UUID(tasks.labels["evaluation"]), tasks.value) == (row.pk, 2)
    (age,) = metrics["prompt_gateway_evaluation_oldest_due_seconds"]
    assert age.value >= 90
