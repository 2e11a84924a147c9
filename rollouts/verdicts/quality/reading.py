"""The scores of a rollout: tasks of the minutes that ended since the last look go into the state, once each.

The evaluation of minutes reads and stores them, under its claim. The bases have their own clocks: labels come days
after scores.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TypeVar
from uuid import UUID

from analytics.evaluators.calibration.calibrate import calibrate
from analytics.evaluators.calibration.states import Missing
from analytics.evaluators.calibration.states import State as Calibrated
from analytics.evaluators.errors import EvaluatorNotFoundError, EvaluatorVersionNotFoundError
from analytics.online_evaluations.ended import EndedTask, ended_tasks
from analytics.online_evaluations.matched import sampled_until
from analytics.queries.variants.by_record import buckets_of
from analytics.reviews.comparison import people_agree
from rollouts.allocation import AllocationType
from rollouts.evaluation import from_json, to_json
from rollouts.evaluation.quality import Basis, QualityMinute, QualityState, initial_quality, replay_quality
from rollouts.models import Rollout, RolloutEvaluation, RolloutQuality, RolloutQualityMinute, RolloutStage
from rollouts.quality.entries import RolloutEvaluator, evaluators_of
from rollouts.verdicts.quality.minutes import (
    minutes_of,
    with_all_users,
    with_drifted,
    with_opinions,
    with_other_shares,
)
from rollouts.verdicts.quality.outcomes import votes_between
from rollouts.verdicts.quality.users import Users, UsersByTitle

T = TypeVar("T")

_CALIBRATED_EVERY = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class QualityReading:
    evaluators: tuple[RolloutEvaluator, ...]
    initial: QualityState
    state: QualityState
    minutes: tuple[QualityMinute, ...]
    through: Mapping[Basis, datetime]
    users: UsersByTitle
    calibrated_at: Mapping[Basis, datetime]


def read_quality(
    rollout: Rollout, stages: Mapping[int, RolloutStage], *, began: datetime, now: datetime
) -> QualityReading | None:
    """`began` is the minute in which the rollout began. Returns None without evaluators. Raises
    AnalyticsUnavailableError."""
    evaluators = evaluators_of(rollout)
    if not evaluators:
        return None
    stored = RolloutQuality.objects.get(pk=rollout.pk)
    weights = [stages[number].weight for number in sorted(stages)]
    initial, state = states_of(QualityState, stored, lambda: _initial(rollout, evaluators, weights))
    through, users = _times(stored.through), _users(stored)
    calibrated_at = _times(stored.calibrated_at)
    minutes: list[QualityMinute] = []
    for basis in state.bases:
        own = [one for one in evaluators if one.basis is basis]
        if basis is Basis.OUTCOMES:
            votes = votes_between(rollout, own, stages, users, through.get(basis, began), now)
            minutes += minutes_of(basis, votes.tasks, {one.version_id: one.title for one in own}, None)
            through[basis], users = votes.until, votes.users
            continue
        tasks, until = _ended(rollout, own, basis, stages, through.get(basis, began), now)
        found = minutes_of(basis, tasks, {one.version_id: one.title for one in own}, _buckets(rollout, tasks))
        if basis is Basis.LABELS:
            found = with_other_shares(found, tasks, {one.version_id: (one.title, one.label_share) for one in own})
        if found and now - calibrated_at.get(basis, began) >= _CALIBRATED_EVERY:
            found = with_drifted(found, _drifted(rollout, own, state))
            if basis is Basis.LABELS:
                found = with_opinions(found, _changed_opinions(rollout, own, state))
            calibrated_at[basis] = now
        if state.sticky:
            users, found = with_all_users(users, found, weights)
        minutes += found
        through[basis] = until
    return QualityReading(
        evaluators=evaluators,
        initial=initial,
        state=replay_quality(state, minutes),
        minutes=tuple(minutes),
        through=through,
        users=users,
        calibrated_at=calibrated_at,
    )


def quality_before_any(rollout: Rollout) -> QualityReading | None:
    evaluators = evaluators_of(rollout)
    if not evaluators:
        return None
    weights = list(rollout.stages.order_by("number").values_list("weight", flat=True))
    initial = _initial(rollout, evaluators, weights)
    return QualityReading(evaluators, initial, initial, (), {}, {}, {})


def store_quality(rollout: Rollout, reading: QualityReading) -> None:
    RolloutQualityMinute.objects.bulk_create(
        RolloutQualityMinute(
            rollout=rollout,
            basis=minute.basis.value,
            minute=datetime.fromtimestamp(minute.minute * 60, UTC),
            stage=minute.stage,
            tasks=to_json(minute),
        )
        for minute in reading.minutes
    )
    RolloutQuality.objects.filter(pk=rollout.pk).update(
        initial=to_json(reading.initial),
        state=to_json(reading.state),
        through=times_shown(reading.through),
        users=to_json(reading.users) if reading.state.sticky else None,
        calibrated_at=times_shown(reading.calibrated_at),
    )


def times_shown(times: Mapping[Basis, datetime]) -> dict[str, str]:
    return {basis.value: times[basis].isoformat() for basis in Basis if basis in times}


def states_of(kind: type[T], stored: RolloutEvaluation | RolloutQuality, begin: Callable[[], T]) -> tuple[T, T]:
    if stored.initial is not None:
        return from_json(kind, stored.initial), from_json(kind, stored.state)
    initial = begin()
    return initial, initial


def _initial(rollout: Rollout, evaluators: Sequence[RolloutEvaluator], weights: Sequence[int]) -> QualityState:
    sticky = rollout.allocation_type != AllocationType.RANDOM
    return initial_quality([one.statistics for one in evaluators], weights=weights, sticky=sticky)


def _users(stored: RolloutQuality) -> UsersByTitle:
    return {title: from_json(Users, one) for title, one in (stored.users or {}).items()}


def _times(stored: Mapping[str, str]) -> dict[Basis, datetime]:
    return {Basis(basis): datetime.fromisoformat(time) for basis, time in stored.items()}


def _ended(
    rollout: Rollout,
    evaluators: Sequence[RolloutEvaluator],
    basis: Basis,
    stages: Mapping[int, RolloutStage],
    after: datetime,
    now: datetime,
) -> tuple[list[EndedTask], datetime]:
    # The samples are asked first: all tasks of the minutes before are made then.
    until = sampled_until(rollout.project_id, {one.evaluator_id for one in evaluators}, now)
    versions = [one.version_id for one in evaluators]
    found = ended_tasks(rollout.pk, versions, after, until, with_labels=basis is Basis.LABELS, now=now)
    return [one for one in found.tasks if one.stage in stages], found.until


def _buckets(rollout: Rollout, tasks: Sequence[EndedTask]) -> Mapping[UUID, int] | None:
    if rollout.allocation_type == AllocationType.RANDOM or not tasks:
        return None
    return buckets_of(rollout.project_id, {one.request_id: one.requested_at for one in tasks})


def _changed_opinions(
    rollout: Rollout, evaluators: Sequence[RolloutEvaluator], state: QualityState
) -> Mapping[str, bool]:
    known = {one.title: told.agreed for one in evaluators if (told := state.of(one.title).told) is not None}
    now = {one.title: people_agree(rollout.project_id, one.evaluator_id) for one in evaluators if one.title in known}
    return {title: agreed for title, agreed in now.items() if agreed is not known[title]}


def _drifted(rollout: Rollout, evaluators: Sequence[RolloutEvaluator], state: QualityState) -> set[str]:
    judges = [one for one in evaluators if not one.is_rule and not state.of(one.title).drifted]
    return {one.title for one in judges if _is_another(rollout, one)}


def _is_another(rollout: Rollout, judge: RolloutEvaluator) -> bool:
    try:
        standing = calibrate(rollout.project_id, judge.evaluator_id, judge.version).standing
    except (EvaluatorNotFoundError, EvaluatorVersionNotFoundError):
        return False  # It was deleted: it has no new scores, and those that it gave stay what they were.
    if standing.state is Calibrated.DRIFTED:
        return True
    # How much of a difference a judge shows is known of the model that was calibrated. Labels correct any judge.
    rests_on_calibration = judge.label_share is None and judge.margin_scale is not None
    return rests_on_calibration and Missing.JUDGE_MODEL in standing.missing
