"""The outcomes of a rollout: the scores of a name that applications send, each counted in the minute in which it came,
under the stage and for the arm that served it, however late that is.

What is allocated has one outcome, the first: a request of random allocation; with sticky allocation a user or session,
once in each stage of those who were not in the target before. So outcomes are independent of each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import UUID

from analytics.identifiers import gateway_id
from analytics.models import Score, ScoreType
from analytics.online_evaluations.ended import EndedTask
from analytics.online_evaluations.sampling import minute_of, position_of
from analytics.queries.latest_requests import OUTCOME_COMES_WITHIN
from analytics.queries.variants import BASELINE, TARGET
from analytics.queries.variants.scored import OutcomeRequest, requests_of_units, scored_requests
from core.chunks import chunks
from rollouts.allocation import AllocationType
from rollouts.models import Rollout, RolloutStage
from rollouts.quality.entries import RolloutEvaluator
from rollouts.verdicts.quality.users import Users, UsersByTitle

UNIT_COLUMNS: Mapping[str, str] = {
    AllocationType.USER_STICKY.value: "user_id",
    AllocationType.SESSION_STICKY.value: "session_id",
}
# Clocks differ, and a score that is being stored is read a moment later.
_GRACE = timedelta(minutes=1)
# The record of a request may come after a score of it. While the request is not known, later scores wait as well.
_RECORD_COMES_WITHIN = timedelta(minutes=10)
_AT_ONCE = 20_000
_PER_PERCENT = 100


@dataclass(frozen=True, slots=True)
class Votes:
    tasks: Sequence[EndedTask]
    until: datetime
    users: UsersByTitle


def votes_between(
    rollout: Rollout,
    outcomes: Sequence[RolloutEvaluator],
    stages: Mapping[int, RolloutStage],
    users: UsersByTitle,
    after: datetime,
    now: datetime,
) -> Votes:
    """Returns the outcomes of whole minutes from `after` on. Raises the errors of the store."""
    by_name = {one.score_name or "": one for one in outcomes}
    scores, until = _scores(rollout.project_id, list(by_name), after, minute_of(now - _GRACE))
    named = {one for row in scores if (one := gateway_id(row.request_id)) is not None}
    known = scored_requests(rollout.project_id, rollout.pk, UNIT_COLUMNS.get(rollout.allocation_type, ""), named)
    until = min([until, *(minute_of(one.created_at) for one in scores if _is_awaited(one, known, now))])
    if until <= after:
        return Votes((), after, users)
    scores = [one for one in scores if one.created_at < until]
    found = list(_served(rollout, scores, known, until))
    if rollout.allocation_type == AllocationType.RANDOM:
        found = _first_of_request(rollout.project_id, found, after)
    else:
        users, found = _first_of_unit(users, found, by_name, stages)
    tasks = [_task(rollout, by_name[score.score_name], score, request) for score, request in found]
    return Votes([one for one in tasks if one.stage in stages], until, users)


def units_with_outcome(users: Users, weights: Sequence[int]) -> Mapping[str, int]:
    """Returns how many users or sessions of each arm had an outcome, in any stage."""
    found: dict[str, set[int]] = {TARGET: set(), BASELINE: set()}
    for stage, buckets in users.counted.items():
        for bucket in buckets:
            found[TARGET if bucket < _PER_PERCENT * weights[stage - 1] else BASELINE].add(bucket)
    return {arm: len(buckets) for arm, buckets in found.items()}


def _scores(project_id: UUID, names: Sequence[str], after: datetime, until: datetime) -> tuple[list[Score], datetime]:
    rows = Score.objects.for_project(project_id).filter(
        score_name__in=names, score_type__in=[ScoreType.NUMBER, ScoreType.BOOLEAN],
        created_at__gte=after, created_at__lt=until,
    ).order_by("created_at", "pk")  # fmt: skip
    found = list(rows[: _AT_ONCE + 1])
    if len(found) > _AT_ONCE and (end := minute_of(found[-1].created_at)) > minute_of(found[0].created_at):
        return [row for row in found if row.created_at < end], end
    return (list(rows) if len(found) > _AT_ONCE else found), until


def _is_awaited(score: Score, known: Mapping[UUID, OutcomeRequest], now: datetime) -> bool:
    identity = gateway_id(score.request_id)
    return identity is not None and identity not in known and score.created_at > now - _RECORD_COMES_WITHIN


Served = tuple[Score, OutcomeRequest]


def _served(
    rollout: Rollout, scores: Sequence[Score], known: Mapping[UUID, OutcomeRequest], until: datetime
) -> Iterator[Served]:
    """Yields the scores with the request that they count for: their own, or with sticky allocation the latest before
    them of the same user or session, whatever prompt their own is of."""
    ids = [(one, gateway_id(one.request_id)) for one in scores]
    named = [(one, known[request_id]) for one, request_id in ids if request_id is not None and request_id in known]
    column, since = UNIT_COLUMNS.get(rollout.allocation_type), rollout.requests_between(until)[0]
    others = {own.unit for _, own in named if not own.is_compared} - {""}
    of_units = requests_of_units(rollout.project_id, rollout.pk, column, others, since, until) if column else {}
    for score, own in named:
        before = [own] if own.is_compared else of_units.get(own.unit, [])
        request = next((one for one in before if one.ts <= score.created_at or one is own), None)
        if request is not None and score.created_at - request.ts <= OUTCOME_COMES_WITHIN:
            yield score, request


def _first_of_request(project_id: UUID, found: Sequence[Served], after: datetime) -> list[Served]:
    earlier = Score.objects.for_project(project_id).filter(
        score_name__in={score.score_name for score, _ in found}, created_at__lt=after
    )
    seen: set[tuple[str, str]] = set()
    for some in chunks([score.request_id for score, _ in found]):
        seen.update(earlier.filter(request_id__in=some).values_list("score_name", "request_id"))
    first: list[Served] = []
    for score, request in found:
        if (key := (score.score_name, score.request_id)) not in seen:
            seen.add(key)
            first.append((score, request))
    return first


def _first_of_unit(
    users: UsersByTitle,
    found: Iterable[Served],
    by_name: Mapping[str, RolloutEvaluator],
    stages: Mapping[int, RolloutStage],
) -> tuple[UsersByTitle, list[Served]]:
    """A unit counts in a stage if it was not in the target before, and had no outcome in this or a later stage: which
    stages it has outcomes of says nothing of its arm in an earlier one."""
    counted = {
        one.title: {stage: set(units) for stage, units in users.get(one.title, Users()).counted.items()}
        for one in by_name.values()
    }
    first: list[Served] = []
    for score, request in found:
        of_stage = counted[by_name[score.score_name].title]
        if any(request.bucket in units for stage, units in of_stage.items() if stage >= request.stage):
            continue
        of_stage.setdefault(request.stage, set()).add(request.bucket)
        before = stages[request.stage - 1].weight if request.stage - 1 in stages else 0
        if request.bucket >= _PER_PERCENT * before:
            first.append((score, request))
    after = {
        title: replace(
            users.get(title, Users()), counted={stage: tuple(sorted(units)) for stage, units in of_stage.items()}
        )
        for title, of_stage in counted.items()
    }
    return {**users, **after}, first


def _task(rollout: Rollout, outcome: RolloutEvaluator, score: Score, request: OutcomeRequest) -> EndedTask:
    share = (score.score_value - outcome.worst) / (outcome.best - outcome.worst)
    return EndedTask(
        version_id=outcome.version_id,
        request_id=request.request_id,
        requested_at=request.ts,
        minute=minute_of(score.created_at),
        stage=request.stage,
        variant=request.variant,
        position=position_of(rollout.pk, outcome.evaluator_id, request.request_id),
        score=min(1.0, max(0.0, share)),
    )
