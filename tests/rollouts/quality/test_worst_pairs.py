"""The pairs of answers of which the target's has the lower score."""

from __future__ import annotations

import pytest

from analytics.models import EvaluationTask, OnlineEvaluation
from analytics.online_evaluations.selectors import version_of
from analytics.online_evaluations.services import forget_tasks_of
from analytics.online_evaluations.worst_pairs import Pair, worst_pairs
from rollouts.models import Rollout
from tests.factories.rollouts import make_rollout
from tests.rollouts.quality.tasks import matched, sampled

pytestmark = pytest.mark.django_db


@pytest.fixture
def rollout() -> Rollout:
    return make_rollout(started=True)


@pytest.fixture
def evaluation(rollout: Rollout) -> OnlineEvaluation:
    return matched(rollout.project)


def in_order(rows: list[EvaluationTask]) -> None:
    """Gives the tasks of each arm hashes in their order."""
    for place, row in enumerate(rows):
        EvaluationTask.objects.filter(pk=row.pk).update(position=place)


def scores(pairs: list[Pair]) -> list[tuple[float, float]]:
    return [(pair.target.score, pair.baseline.score) for pair in pairs]


def found(rollout: Rollout, evaluation: OnlineEvaluation, limit: int = 5) -> list[Pair]:
    return worst_pairs(rollout.pk, version_of(evaluation).pk, limit=limit)


def test_pairs__in_order_of_hashes_within_a_minute__largest_losses_first(
    rollout: Rollout, evaluation: OnlineEvaluation
) -> None:
    in_order(sampled(rollout, evaluation, 5, target=[0.5, 0.0, 1.0], baseline=[1.0, 0.25, 0.0]))
    in_order(sampled(rollout, evaluation, 4, target=[0.0], baseline=[1.0]))
    in_order(sampled(rollout, evaluation, 3, target=[0.0], baseline=[1.0]))

    pairs = found(rollout, evaluation)

    assert scores(pairs) == [(0.0, 1.0), (0.0, 1.0), (0.5, 1.0), (0.0, 0.25)]
    assert pairs[0].target.requested_at > pairs[1].target.requested_at
    assert scores(found(rollout, evaluation, limit=1)) == [(0.0, 1.0)]


def test_pairs__with_an_answer_that_was_erased__are_not_shown_and_others_stay_as_they_were(
    rollout: Rollout, evaluation: OnlineEvaluation
) -> None:
    rows = sampled(rollout, evaluation, 5, target=[0.5, 0.0], baseline=[1.0, 0.25])
    in_order(rows)
    forget_tasks_of(rollout.project_id, [rows[0].request_id])

    assert scores(found(rollout, evaluation)) == [(0.0, 0.25)]


def test_pairs__without_a_partner_a_score_or_of_another_stage__are_none(
    rollout: Rollout, evaluation: OnlineEvaluation
) -> None:
    in_order(sampled(rollout, evaluation, 5, target=[0.0, None], baseline=[None]))
    in_order(sampled(rollout, evaluation, 4, target=[0.0], stage=1))
    in_order(sampled(rollout, evaluation, 4, baseline=[1.0], stage=2))
    assert found(rollout, evaluation) == []


def test_pairs__two_evaluations_have_one_answer_due__counts_once(
    rollout: Rollout, evaluation: OnlineEvaluation
) -> None:
    first = sampled(rollout, evaluation, 5, target=[0.0, 0.0], baseline=[1.0, 1.0])
    in_order(first)
    other = matched(rollout.project, evaluation.evaluator)
    for place, row in enumerate(first):
        row.pk, row.evaluation, row.position = None, other, place
        row.save(force_insert=True)
    assert scores(found(rollout, evaluation)) == [(0.0, 1.0), (0.0, 1.0)]
