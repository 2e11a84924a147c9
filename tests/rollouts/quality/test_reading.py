"""The tasks of a rollout as its verdict takes them: each once, in order, when their minute has ended."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from uuid import UUID

import pytest
from django.utils import timezone

from analytics.models import EvaluationTask, OnlineEvaluation
from analytics.models.online_evaluations import TaskState
from analytics.online_evaluations.ended import counts_by_arm
from analytics.online_evaluations.services import forget_tasks_of
from analytics.reviews.due_labels import free_labels
from core.models import Project
from rollouts.allocation import AllocationType
from rollouts.evaluation import from_json
from rollouts.evaluation.quality import QualityMinute, QualityState, replay_quality
from rollouts.models import Rollout, RolloutEvaluation, RolloutQuality, RolloutQualityMinute
from rollouts.quality.entries import QualityEntry, evaluators_of
from rollouts.states import Stage
from rollouts.verdicts import evaluate
from rollouts.verdicts.evaluate import evaluate_rollout
from rollouts.verdicts.quality import reading
from tests.factories.evaluators import make_evaluator
from tests.factories.online_evaluations import MINUTE
from tests.factories.prompts import make_config
from tests.rollouts.automatic import automatic
from tests.rollouts.quality.tasks import matched, sampled
from tests.rollouts.replay import minutes_of_tasks
from tests.rollouts.request_log import RequestLog, this_minute

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("still_clock", "log")]

STAGES = (Stage(50, 600, 0), Stage(100, 0, 0))


@pytest.fixture
def evaluation(project: Project) -> OnlineEvaluation:
    return matched(project)


@pytest.fixture
def rollout(project: Project, evaluation: OnlineEvaluation) -> Rollout:
    return running(project, evaluation)


def running(project: Project, *evaluations: OnlineEvaluation, minutes_ago: int = 60, **fields: object) -> Rollout:
    config = make_config(project, versions=2)
    entries = [QualityEntry(one.evaluator_id, label_share=one.label_share) for one in evaluations]
    return automatic(*STAGES, config=config, quality=entries, minutes_ago=minutes_ago, **fields)


def look(rollout: Rollout) -> None:
    """Evaluates the rollout as if another minute had closed."""
    RolloutEvaluation.objects.filter(rollout=rollout).update(through=this_minute() - MINUTE)
    assert evaluate_rollout(rollout.pk) is not None


def minutes(rollout: Rollout) -> list[QualityMinute]:
    rows = RolloutQualityMinute.objects.filter(rollout=rollout).values_list("tasks", flat=True)
    return [from_json(QualityMinute, one) for one in rows]


def taken(rollout: Rollout) -> list[tuple[int, int, int, int]]:
    """Returns the minutes that were taken, as minutes ago, the stage, and how many tasks either arm had of all
    evaluators."""
    now = int(this_minute().timestamp()) // 60
    return [
        (
            now - one.minute,
            one.stage,
            sum(len(tasks.target.tasks) for tasks in one.evaluators.values()),
            sum(len(tasks.baseline.tasks) for tasks in one.evaluators.values()),
        )
        for one in minutes(rollout)
    ]


def scores(rollout: Rollout) -> list[float | None]:
    return [
        task.score
        for one in minutes(rollout)
        for tasks in one.evaluators.values()
        for task in (*tasks.target.tasks, *tasks.baseline.tasks)
    ]


def through(rollout: Rollout) -> datetime:
    return datetime.fromisoformat(RolloutQuality.objects.get(pk=rollout.pk).through["scores"])


def replayed(rollout: Rollout) -> QualityState:
    """Returns the state that follows from the stored minutes, which is the stored one to the last digit."""
    row = RolloutQuality.objects.get(pk=rollout.pk)
    found = replay_quality(from_json(QualityState, row.initial), minutes(rollout))
    assert found == from_json(QualityState, row.state)
    return found


def test_minutes__that_ended__taken_once_and_replayed(rollout: Rollout, evaluation: OnlineEvaluation) -> None:
    sampled(rollout, evaluation, 30, target=[1.0, 0.5], baseline=[1.0, None])
    sampled(rollout, evaluation, 28, target=[0.25], baseline=[1.0])
    look(rollout)
    look(rollout)
    assert taken(rollout) == [(30, 1, 2, 2), (28, 1, 1, 1)]
    assert through(rollout) == this_minute()
    [one] = replayed(rollout).bases.values()
    [state] = one.evaluators.values()
    assert len(state.open_target) + len(state.open_baseline) == 6
    assert one.last_minute == int(this_minute().timestamp()) // 60 - 28


def test_minutes__of_requests_that_are_erased__follow_from_what_is_left_of_their_tasks(
    rollout: Rollout, evaluation: OnlineEvaluation
) -> None:
    taken_before = sampled(rollout, evaluation, 30, target=[1.0, 0.5, None], baseline=[1.0, None, 0.25])
    waiting = sampled(rollout, evaluation, 12, target=[1.0, 0.5], baseline=[0.75])
    [due] = sampled(rollout, evaluation, 12, baseline=[None], state=TaskState.DUE, reason="", ended_at=None)
    look(rollout)
    first = minutes(rollout)
    assert taken(rollout) == [(30, 1, 3, 3)]

    erased = [one.request_id for one in (*taken_before[::2], waiting[0], due)]
    assert forget_tasks_of(rollout.project_id, erased) == 5
    look(rollout)

    assert not EvaluationTask.objects.filter(request_id__in=erased).exists()
    assert minutes(rollout)[:1] == first
    assert sorted(scores(rollout)[6:], key=str) == [0.5, 0.75, 1.0, None]
    assert minutes_of_tasks(rollout, this_minute()) == minutes(rollout)
    replayed(rollout)
    [version] = evaluators_of(rollout)
    counts = counts_by_arm(rollout.pk, [version.version_id], timezone.now())[version.version_id, "baseline"]
    assert (counts.due, counts.done, counts.missing) == (5, 3, {"no_text": 2})


def test_label__of_a_request_that_is_erased__is_missing_at_once_and_one_that_was_given_stays(project: Project) -> None:
    sample = matched(project, label_share=1.0)
    rollout = running(project, sample, minutes_ago=3 * 24 * 60)
    two_days_ago = 2 * 24 * 60
    given, waiting = sampled(
        rollout, sample, two_days_ago, target=[1.0], baseline=[1.0], label_due=True, label_share=1.0
    )
    labelled_at = given.due_at + MINUTE
    EvaluationTask.objects.filter(pk=given.pk).update(label=0.0, labelled_at=labelled_at)
    look(rollout)
    assert minutes(rollout) == []

    forget_tasks_of(project.pk, [given.request_id, waiting.request_id])
    look(rollout)

    [found] = minutes(rollout)
    [tasks] = found.evaluators.values()
    [own], [other] = tasks.target.tasks, tasks.baseline.tasks
    assert (own.label_due, own.label, other.label_due, other.label) == (True, 0.0, True, None)
    assert minutes_of_tasks(rollout, this_minute()) == [found]
    assert not free_labels(project.pk, timezone.now()).exists()


def test_task_that_is_due__its_minute_and_those_after_it_wait(rollout: Rollout, evaluation: OnlineEvaluation) -> None:
    sampled(rollout, evaluation, 12, target=[1.0], baseline=[1.0])
    [due] = sampled(rollout, evaluation, 10, target=[None], state=TaskState.DUE, reason="", ended_at=None)
    sampled(rollout, evaluation, 8, target=[1.0], baseline=[1.0])
    look(rollout)
    assert taken(rollout) == [(12, 1, 1, 1)]
    assert through(rollout) == this_minute() - timedelta(minutes=10)
    EvaluationTask.objects.filter(pk=due.pk).update(state=TaskState.DONE, score=0.5, ended_at=timezone.now())
    look(rollout)
    assert taken(rollout) == [(12, 1, 1, 1), (10, 1, 1, 0), (8, 1, 1, 1)]
    assert scores(rollout)[2] == 0.5
    replayed(rollout)


def test_task_that_never_ended__missing_once_patience_is_over(rollout: Rollout, evaluation: OnlineEvaluation) -> None:
    sampled(rollout, evaluation, 18, target=[None], state=TaskState.DUE, reason="", ended_at=None)
    sampled(rollout, evaluation, 17, target=[1.0])
    look(rollout)
    assert taken(rollout) == [(18, 1, 1, 0), (17, 1, 1, 0)]
    assert scores(rollout) == [None, 1.0]


def test_score__later_than_patience__shown_and_not_judged(rollout: Rollout, evaluation: OnlineEvaluation) -> None:
    due_at = this_minute() - timedelta(minutes=39)
    sampled(rollout, evaluation, 40, target=[1.0], ended_at=due_at + timedelta(minutes=15))
    sampled(rollout, evaluation, 40, baseline=[1.0], ended_at=due_at + timedelta(minutes=15, seconds=1))
    look(rollout)
    assert scores(rollout) == [1.0, None]


def test_score__outside_of_its_scale__missing(rollout: Rollout, evaluation: OnlineEvaluation) -> None:
    sampled(rollout, evaluation, 30, target=[7.0], baseline=[-0.1])
    look(rollout)
    assert scores(rollout) == [None, None]


def test_sample__not_taken_yet__its_minutes_wait(rollout: Rollout, evaluation: OnlineEvaluation) -> None:
    sampled(rollout, evaluation, 30, target=[1.0])
    sampled(rollout, evaluation, 20, target=[1.0])
    OnlineEvaluation.objects.update(sampled_until=this_minute() - timedelta(minutes=25))
    look(rollout)
    assert (taken(rollout), through(rollout)) == ([(30, 1, 1, 0)], this_minute() - timedelta(minutes=25))
    OnlineEvaluation.objects.update(sampled_until=this_minute() - timedelta(minutes=25), state="paused")
    look(rollout)
    assert taken(rollout) == [(30, 1, 1, 0), (20, 1, 1, 0)]


def test_late_answers__of_the_stage_before__a_cell_of_their_own(rollout: Rollout, evaluation: OnlineEvaluation) -> None:
    sampled(rollout, evaluation, 30, target=[1.0], stage=2)
    sampled(rollout, evaluation, 30, target=[1.0], baseline=[1.0], stage=1)
    sampled(rollout, evaluation, 29, target=[1.0], stage=9)
    look(rollout)
    assert taken(rollout) == [(30, 1, 1, 1), (30, 2, 1, 0)]
    replayed(rollout)


def test_answer__due_twice_for_one_version__counts_once(
    rollout: Rollout, evaluation: OnlineEvaluation, project: Project
) -> None:
    other = matched(project, evaluation.evaluator, filter={"language": "de"})
    [task] = sampled(rollout, evaluation, 30, target=[1.0])
    sampled(rollout, other, 30, target=[1.0], request_id=task.request_id, position=task.position)
    look(rollout)
    assert taken(rollout) == [(30, 1, 1, 0)]


def test_answers__of_others_and_of_unmatched_samples__do_not_count(
    rollout: Rollout, evaluation: OnlineEvaluation, project: Project
) -> None:
    sampled(running(project, evaluation), evaluation, 30, target=[1.0])
    sampled(rollout, matched(project), 30, target=[1.0])
    sampled(rollout, matched(project, evaluation.evaluator, matched=False), 30, target=[1.0])
    look(rollout)
    assert taken(rollout) == []
    assert through(rollout) == this_minute()


def test_worker__that_dies_between_reading_and_storing__the_next_one_takes_all(
    rollout: Rollout, evaluation: OnlineEvaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    sampled(rollout, evaluation, 30, target=[1.0], baseline=[1.0])

    def dying(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(evaluate, "store_quality", dying)
        with pytest.raises(KeyboardInterrupt):
            look(rollout)
    assert (taken(rollout), RolloutQuality.objects.get().state) == ([], None)
    look(rollout)
    look(rollout)
    assert taken(rollout) == [(30, 1, 1, 1)]


def test_claim__lost_before_storing__nothing_stored_twice(
    rollout: Rollout, evaluation: OnlineEvaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    sampled(rollout, evaluation, 30, target=[1.0], baseline=[1.0])
    read, looks = reading.read_quality, iter((True,))

    def slow(*args: object, **options: object) -> object:
        found = read(*args, **options)  # type: ignore[arg-type]
        if next(looks, False):
            # The claim runs out, and another worker evaluates in the meantime.
            RolloutEvaluation.objects.update(claim=None, claimed_until=None)
            look(rollout)
        return found

    monkeypatch.setattr(evaluate, "read_quality", slow)
    RolloutEvaluation.objects.filter(rollout=rollout).update(through=this_minute() - MINUTE)
    assert evaluate_rollout(rollout.pk) is None
    assert taken(rollout) == [(30, 1, 1, 1)]
    replayed(rollout)


@pytest.fixture
def buckets(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[UUID, int]]:
    """The users of requests, in place of those of the request log."""
    found: dict[UUID, int] = {}
    monkeypatch.setattr(reading, "buckets_of", lambda _, arrived: {key: found[key] for key in arrived if key in found})
    yield found


def test_sticky_users__five_tasks_of_a_stage__count_once_beside_their_tasks(
    project: Project, evaluation: OnlineEvaluation, buckets: dict[UUID, int]
) -> None:
    rollout = running(project, evaluation, allocation_type=AllocationType.USER_STICKY)
    for ago in (40, 39, 38, 37, 36, 35):
        [own] = sampled(rollout, evaluation, ago, target=[0.5])
        own_again, unknown = sampled(rollout, evaluation, ago, target=[0.25, 1.0], stage=2)
        [theirs] = sampled(rollout, evaluation, ago, baseline=[1.0])
        # Bucket 7 was in the target before the second stage, whose weight is 100.
        buckets |= {own.request_id: 7, own_again.request_id: 7, theirs.request_id: 9_000}
        assert unknown.request_id not in buckets
        OnlineEvaluation.objects.update(sampled_until=this_minute() - timedelta(minutes=ago - 1))
        look(rollout)
    found = minutes(rollout)
    assert [
        (one.stage, [len(arm.users) for tasks in one.evaluators.values() for arm in (tasks.target, tasks.baseline)])
        for one in found
        if any(arm.users for tasks in one.evaluators.values() for arm in (tasks.target, tasks.baseline))
    ] == [(1, [1, 1])]
    [last] = found[-1].evaluators.values()
    assert [task.user for task in last.target.tasks if task.score == 0.25] == [7]
    assert [task.user for task in last.target.tasks if task.score == 1.0] == [None]
    clusters = last.target.clusters
    assert clusters is not None
    # One user of the target with six tasks of 0.5 and six of 0.25.
    assert (clusters.requests, clusters.requests_squared, clusters.total) == (12.0, 144.0, 4.5)
    assert (clusters.total_squared, clusters.cross, clusters.values_squared) == (20.25, 54.0, 1.875)
    state = replayed(rollout)
    [one] = state.evaluators
    assert len(state.of(one.title).open_target_users) + len(state.of(one.title).open_baseline_users) in (0, 2)


def test_two_evaluators__one_clock(project: Project, evaluation: OnlineEvaluation) -> None:
    other = matched(project, make_evaluator(project, "refusal", phrases=["no"]))
    rollout = running(project, evaluation, other)
    sampled(rollout, evaluation, 12, target=[1.0], baseline=[1.0])
    sampled(rollout, other, 12, target=[1.0], baseline=[0.0])
    sampled(rollout, evaluation, 10, target=[1.0])
    sampled(rollout, other, 10, target=[None], state=TaskState.DUE, reason="", ended_at=None)
    look(rollout)
    assert taken(rollout) == [(12, 1, 2, 2)]


def test_rollout__without_evaluators__has_no_rows(project: Project) -> None:
    rollout = running(project)
    look(rollout)
    assert (RolloutQuality.objects.count(), RolloutQualityMinute.objects.count()) == (0, 0)


def test_log__used_by_the_metrics__still_read(rollout: Rollout, log: RequestLog) -> None:
    log.add(rollout, 5, target=(10, 0), baseline=(10, 0))
    RolloutEvaluation.objects.filter(rollout=rollout).update(through=this_minute() - timedelta(minutes=6))
    evaluate_rollout(rollout.pk)
    assert RolloutEvaluation.objects.get(rollout=rollout).verdict["target_requests"] == 10
