"""The automatic verdict: minutes closed since the last evaluation go into the state, and the state decides.

One process at a time evaluates a rollout. It claims the evaluation's row for a while, reads the request log outside any
transaction, and saves only if the claim is still its own. Each closed minute gets at most one decision, however often
an evaluation is requested.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar
from uuid import UUID, uuid4

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from analytics.clickhouse.visible import visible_until
from analytics.errors import AnalyticsUnavailableError
from rollouts.evaluation import Decision, Reason, State, Verdict, from_json, replay, to_json
from rollouts.evaluation.segments import SegmentState
from rollouts.evaluation.terms import HOLDING
from rollouts.models import Mode, Rollout, RolloutEvaluation, RolloutMinute, RolloutStage
from rollouts.open_requests.still_open import Counted
from rollouts.selectors import earlier_rollbacks
from rollouts.services import AUTOMATIC, apply_transition, locked_rollout
from rollouts.states import Status, Transition
from rollouts.verdicts.figures import check_formula, first_state, verdict_at, verdict_figures
from rollouts.verdicts.minutes import Window, usual_before
from rollouts.verdicts.quality.reading import QualityReading, read_quality, states_of, store_quality
from rollouts.verdicts.recorded import Reading, recorded_window
from rollouts.verdicts.segments import log_named, named_in, segments_after

_CLAIMED_FOR = timedelta(minutes=5)
# One question may be too hard for the request log at that moment. After two in a row each further rollout would wait
# for the same answer.
_MAX_UNANSWERED = 2
# An evaluation that was away for long catches up by windows of this length.
_MAX_WINDOW = timedelta(days=1)
_MOVES = {Decision.PROMOTE: Transition.PROMOTE, Decision.ROLL_BACK: Transition.ROLL_BACK}
_LOGGED_REASONS = HOLDING - {Reason.WORSE_FOR_ALL}

logger = logging.getLogger("rollouts")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class EvaluationResult:
    rollout_id: UUID
    name: str
    stage: int
    through: datetime
    new_minutes: int
    verdict: Verdict
    moved: Transition | None


@dataclass(frozen=True, slots=True)
class _Look:
    rollout: Rollout
    stage: RolloutStage
    window: Window
    initial: State
    reading: Reading
    state: State
    segments: SegmentState
    quality: QualityReading | None
    verdict: Verdict
    elapsed_minutes: float
    caught_up: bool
    earlier_rollbacks: int

    @property
    def move(self) -> Transition | None:
        return _MOVES.get(self.verdict.decision) if self.caught_up and self.rollout.mode == Mode.AUTO else None

    def figures(self) -> dict[str, Any]:
        return verdict_figures(
            self.state,
            self.verdict,
            self.stage,
            elapsed_minutes=self.elapsed_minutes,
            through=self.window.end,
            earlier_rollbacks=self.earlier_rollbacks,
            segments=named_in(self.rollout.project_id, self.segments),
            quality=self.quality,
        )


def evaluate_running_rollouts(*, dry_run: bool = False) -> list[EvaluationResult]:
    """Takes the rollout that was evaluated longest ago first. A failure is logged and does not stop the others, unless
    the request log does not answer twice in a row."""
    looks = each_in_turn(
        _longest_ago_first(), lambda pk: evaluate_rollout(pk, dry_run=dry_run), failed="rollout.evaluation_failed"
    )
    return [judgement for judgement in looks if judgement is not None]


def each_in_turn(rollout_ids: Iterable[UUID], look: Callable[[UUID], T], *, failed: str) -> Iterator[T]:
    """A look that fails is logged as `failed` and does not stop the others, unless the request log does not answer
    twice in a row."""
    unanswered = 0
    for rollout_id in rollout_ids:
        try:
            result = look(rollout_id)
        except AnalyticsUnavailableError:
            logger.error("%s rollout_id=%s error=AnalyticsUnavailableError", failed, rollout_id)
            unanswered += 1
            if unanswered == _MAX_UNANSWERED:
                return
            continue
        except Exception:
            logger.exception("%s rollout_id=%s", failed, rollout_id)
            continue
        unanswered = 0
        yield result


def running_rollouts() -> QuerySet[Rollout]:
    return Rollout.objects.filter(status=Status.RUNNING.value)


def _longest_ago_first() -> list[UUID]:
    in_order = running_rollouts().order_by(F("evaluation__through").asc(nulls_first=True), "pk")
    return list(in_order.values_list("pk", flat=True))


def evaluate_rollout(rollout_id: UUID, *, dry_run: bool = False) -> EvaluationResult | None:
    """Returns None if no minute closed since the last evaluation, the rollout is not running, or another process
    evaluates it.

    Raises AnalyticsUnavailableError, AnalyticsLimitError, and UnknownFormulaError for a rollout that another formula
    judged; the rollout then stays where it is.
    """
    if dry_run:
        look = _look(rollout_id, timezone.now())
        return _result(look, look.move) if look else None
    claim = uuid4()
    if not _claim(rollout_id, claim):
        return None
    try:
        look = _look(rollout_id, timezone.now())
        return _save(look, claim) if look else None
    finally:
        RolloutEvaluation.objects.filter(pk=rollout_id, claim=claim).update(claim=None, claimed_until=None)


def closed_until(now: datetime) -> datetime:
    settled = now.astimezone(UTC) - timedelta(seconds=settings.ROLLOUT_EVALUATION_LAG_SECONDS)
    return settled.replace(second=0, microsecond=0)


def elapsed_minutes(rollout: Rollout, now: datetime) -> float:
    running = (now - rollout.running_since).total_seconds() if rollout.running_since else 0.0
    return (rollout.stage_seconds + running) / 60


def _claim(rollout_id: UUID, claim: UUID) -> bool:
    now = timezone.now()
    free = Q(claimed_until__isnull=True) | Q(claimed_until__lt=now)
    rows = RolloutEvaluation.objects.filter(free, pk=rollout_id, rollout__status=Status.RUNNING.value)
    return rows.update(claim=claim, claimed_until=now + _CLAIMED_FOR) == 1


def _look(rollout_id: UUID, now: datetime) -> _Look | None:
    rollout = (
        Rollout.objects.filter(pk=rollout_id, status=Status.RUNNING.value)
        .select_related("config", "evaluation", "baseline_version")
        .first()
    )
    if rollout is None or rollout.started_at is None:
        return None
    check_formula(rollout)
    began = rollout.started_at.replace(second=0, microsecond=0)
    start, closed = rollout.evaluation.through or began, _readable_until(now)
    window = Window(began, start, min(closed, start + _MAX_WINDOW))
    if window.end <= window.start:
        return None
    stages = {stage.number: stage for stage in rollout.stages.all()}
    initial, state = states_of(State, rollout.evaluation, lambda: first_state(rollout, usual_before(rollout)))
    reading = recorded_window(
        rollout,
        stages,
        window,
        state,
        remembered=[from_json(Counted, one) for one in rollout.evaluation.counted_open],
        now=now if window.end == closed else None,
    )
    state = replay(state, reading.minutes)
    quality = read_quality(rollout, stages, began=began, now=now)
    stage, elapsed = stages[rollout.current_stage], elapsed_minutes(rollout, now)
    return _Look(
        rollout=rollout,
        stage=stage,
        window=window,
        initial=initial,
        reading=reading,
        state=state,
        segments=segments_after(rollout, stages, reading),
        quality=quality,
        verdict=verdict_at(state, stage, elapsed_minutes=elapsed, quality=quality.state if quality else None),
        elapsed_minutes=elapsed,
        caught_up=window.end == closed,
        earlier_rollbacks=len(earlier_rollbacks(rollout)),
    )


def _readable_until(now: datetime) -> datetime:
    return min(closed_until(now), visible_until().replace(second=0, microsecond=0))


def _save(look: _Look, claim: UUID) -> EvaluationResult | None:
    figures = look.figures()
    with transaction.atomic():
        row = locked_rollout(look.rollout.project_id, look.rollout.pk)
        evaluation = RolloutEvaluation.objects.select_for_update().filter(pk=row.pk, claim=claim).first()
        if evaluation is None:
            return None
        RolloutMinute.objects.bulk_create(
            RolloutMinute(
                rollout=row,
                minute=datetime.fromtimestamp(minute.minute * 60, UTC),
                stage=minute.stage,
                counts=to_json(minute),
            )
            for minute in look.reading.minutes
        )
        if look.quality is not None:
            store_quality(row, look.quality)
        _log_changes(look, evaluation)
        evaluation.initial, evaluation.state = to_json(look.initial), to_json(look.state)
        evaluation.through, evaluation.verdict, evaluation.decided_at = look.window.end, figures, timezone.now()
        log_named(row, evaluation.segments, look.segments)
        evaluation.segments = to_json(look.segments)
        evaluation.counted_open = [to_json(one) for one in look.reading.counted_open]
        evaluation.save()
        moved = look.move if _unmoved(row, look.rollout) else None
        if moved is not None:
            apply_transition(row, moved, actor=AUTOMATIC, reason=figures["explanation"], figures=figures)
    return _result(look, moved)


def _unmoved(row: Rollout, seen: Rollout) -> bool:
    return (row.status, row.current_stage) == (seen.status, seen.current_stage)


def _log_changes(look: _Look, evaluation: RolloutEvaluation) -> None:
    verdict, row = look.verdict, look.rollout
    held = verdict.decision is Decision.WAIT and verdict.reason in _LOGGED_REASONS
    if held and evaluation.verdict.get("reason") != verdict.reason.value:
        logger.warning(
            "rollout.held project_id=%s rollout_id=%s reason=%s", row.project_id, row.pk, verdict.reason.value
        )
    if verdict.overdue and evaluation.overdue_stage != row.current_stage:
        evaluation.overdue_stage = row.current_stage
        logger.warning(
            "rollout.overdue project_id=%s rollout_id=%s stage=%d", row.project_id, row.pk, row.current_stage
        )


def _result(look: _Look, moved: Transition | None) -> EvaluationResult:
    return EvaluationResult(
        rollout_id=look.rollout.pk,
        name=look.rollout.name,
        stage=look.stage.number,
        through=look.window.end,
        new_minutes=len(look.reading.minutes),
        verdict=look.verdict,
        moved=moved,
    )
