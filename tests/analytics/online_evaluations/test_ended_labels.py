"""The tasks of a rollout with labels: a minute has ended when none of its labels can come or change any more."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest
from django.utils import timezone

from analytics.models import EvaluationTask, OnlineEvaluation
from analytics.online_evaluations.ended import Ended, ended_tasks
from analytics.reviews.due_labels import LABEL_PATIENCE
from tests.factories.core import make_project
from tests.factories.evaluators import make_evaluator
from tests.factories.online_evaluations import make_label_task, make_labelled_evaluation

pytestmark = pytest.mark.django_db
ROLLOUT, MINUTE = UUID(int=3), timedelta(minutes=1)
NOW = timezone.now().replace(second=0, microsecond=0)
DUE = NOW - timedelta(hours=1)


@pytest.fixture
def evaluation() -> OnlineEvaluation:
    return make_labelled_evaluation(make_evaluator(make_project()), label_share=0.5)


def ended(task: EvaluationTask, *, with_labels: bool = True) -> Ended:
    return ended_tasks(
        ROLLOUT, [task.version_id], DUE - MINUTE, NOW, with_labels=with_labels, now=NOW + timedelta(seconds=30)
    )


def test_minute__whose_label_may_come__has_not_ended_for_labels_alone(evaluation: OnlineEvaluation) -> None:
    task = make_label_task(evaluation, due_at=DUE, ended_at=DUE)

    assert ended(task) == Ended(DUE - MINUTE, ())
    [found] = ended(task, with_labels=False).tasks
    assert (found.label_due, found.label) == (True, None)


@pytest.mark.parametrize(("given", "has_ended"), [(0, False), (1, False), (2, True)])
def test_minute__whose_label_may_change__has_not_ended(
    evaluation: OnlineEvaluation, given: int, has_ended: bool
) -> None:
    """A label may be changed in its minute, and a minute later whoever wrote it is seen for certain."""
    task = make_label_task(evaluation, due_at=DUE, ended_at=DUE, label=0.25, labelled_at=NOW - given * MINUTE)

    tasks = ended(task).tasks

    assert [one.label for one in tasks] == ([0.25] if has_ended else [])


def test_label__that_nobody_gave_in_time_or_can_give__ends_the_minute(evaluation: OnlineEvaluation) -> None:
    long_ago = DUE - LABEL_PATIENCE
    late = make_label_task(evaluation, due_at=long_ago, ended_at=long_ago, label=1.0, labelled_at=NOW - 10 * MINUTE)
    never = make_label_task(evaluation, due_at=long_ago, ended_at=long_ago)
    failed = make_label_task(
        evaluation, due_at=long_ago, ended_at=long_ago, state="failed", score=None, reason="judge_failed"
    )
    plain = make_label_task(evaluation, due_at=long_ago, ended_at=long_ago, label_due=False)

    found = ended_tasks(ROLLOUT, [late.version_id], long_ago - MINUTE, long_ago, with_labels=True, now=NOW)

    by_request = {one.request_id: (one.label_due, one.label) for one in found.tasks}
    assert by_request == {
        late.request_id: (True, None),
        never.request_id: (True, None),
        failed.request_id: (True, None),
        plain.request_id: (False, None),
    }
    assert found.until == long_ago
