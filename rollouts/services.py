"""The transitions of rollouts. Each locks the config first and the rollout next, and leaves a row that describes it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from analytics.models import Dataset
from prompts.errors import ConfigNotFoundError
from prompts.models import PromptConfig, PromptVersion
from prompts.services import activate_for_rollout, set_rollout_active
from rollouts.allocation import AllocationType
from rollouts.errors import (
    InvalidRolloutError,
    RefusedTransitionError,
    RolloutExistsError,
    RolloutMovedError,
    RolloutNotFoundError,
)
from rollouts.gate.registry import NewShadow, work_of
from rollouts.gate.state import opened
from rollouts.models import Gate, Mode, Rollout, RolloutEvaluation, RolloutQuality, RolloutStage, RolloutTransition
from rollouts.quality.defaults import with_thresholds
from rollouts.quality.entries import QualityEntry, RolloutEvaluator, entries_of, stored_form
from rollouts.quality.start import check_entries, evaluators_at_start
from rollouts.states import ACTIVE, DEFAULT_STAGES, Position, Stage, Status, Transition, TransitionError, after

AUTOMATIC = "auto"
"""The actor of transitions that the evaluation makes."""
OVERRIDE_TAKES_REASON = "Say why the gate is overridden."

_ALL = 100

logger = logging.getLogger("rollouts")


@dataclass(frozen=True, slots=True)
class NewRollout:
    """An empty `name` is made from the target's number. `policy` holds the fields of `evaluation.Policy` that differ
    from its defaults."""

    config_id: UUID
    target_version_id: UUID
    name: str
    mode: Mode = Mode.MANUAL
    allocation_type: AllocationType = AllocationType.RANDOM
    stages: Sequence[Stage] = DEFAULT_STAGES
    policy: Mapping[str, Any] = field(default_factory=dict)
    gate: Gate = Gate.NONE
    gate_dataset_id: UUID | None = None
    quality: Sequence[QualityEntry] = ()
    shadow: NewShadow | None = None


def create_rollout(*, project_id: UUID, new: NewRollout, actor: str) -> Rollout:
    """Creates a pending rollout from the config's active version to the target.

    Raises ConfigNotFoundError, RolloutExistsError while another rollout is active, ValidationError for an impossible
    shadow, and InvalidRolloutError for a target that is active or not a version of the config, an unknown data set of
    its gate, or an evaluator whose scores could not judge it.
    """
    _require_dataset(project_id, new)
    _require_shadow(new)
    check_entries(project_id, new.config_id, new.quality)
    _require_test(new)
    with transaction.atomic():
        config = _locked_config(new.config_id, project_id)
        if Rollout.objects.filter(config=config, status__in=[status.value for status in ACTIVE]).exists():
            raise RolloutExistsError
        if config.active_version_id is None:
            raise InvalidRolloutError("config_id", "The prompt config has no version yet.")
        target = _target(config, new.target_version_id)
        row = Rollout.objects.create(
            project_id=project_id,
            config=config,
            baseline_version_id=config.active_version_id,
            target_version=target,
            name=new.name or f"Version {target.number}",
            mode=new.mode,
            allocation_type=new.allocation_type.value,
            policy=with_thresholds(project_id, new.policy),
            quality=stored_form(new.quality),
            gate=new.gate,
            gate_dataset_id=new.gate_dataset_id,
            created_by=actor,
        )
        stages = [RolloutStage(rollout=row, number=i, **s._asdict()) for i, s in enumerate(new.stages, start=1)]
        RolloutStage.objects.bulk_create(stages)
        RolloutEvaluation.objects.create(rollout=row)
        RolloutTransition.objects.create(
            rollout=row, action=RolloutTransition.CREATE, to_status=row.status, actor=actor
        )
        set_rollout_active(config_id=config.pk, active=True)
        if new.shadow is not None and (work := work_of(row.gate)) is not None:
            work.begin(row, new.shadow)
    logger.info("rollout.created project_id=%s rollout_id=%s actor=%s", project_id, row.pk, actor)
    return row


def start_rollout(
    *, project_id: UUID, rollout_id: UUID, actor: str, reason: str = "", override_gate: bool = False
) -> Rollout:
    """Starts a pending rollout at its first stage, or resumes a paused one.

    Raises RolloutNotFoundError, RefusedTransitionError, GateNotPassedError unless overridden, and InvalidRolloutError
    for an override without a reason or an evaluator whose scores could not judge it. A judge needs its calibration:
    raises the errors of the request log.
    """
    # The calibration is worked out before anything is locked.
    evaluators = _evaluators_at_start(project_id, rollout_id)

    def begin(row: Rollout) -> None:
        if row.quality and row.status == Status.PENDING:
            RolloutQuality.objects.create(rollout=row, evaluators=stored_form(evaluators))

    return _move(project_id, rollout_id, Transition.START, actor, reason, begin, override_gate=override_gate)


def pause_rollout(*, project_id: UUID, rollout_id: UUID, actor: str, reason: str = "") -> Rollout:
    return _move(project_id, rollout_id, Transition.PAUSE, actor, reason)


def promote_rollout(
    *,
    project_id: UUID,
    rollout_id: UUID,
    actor: str,
    reason: str = "",
    from_stage: int | None = None,
    requested_at: datetime | None = None,
) -> Rollout:
    """Promotes a rollout to its next stage, or completes it at the last one. Raises RolloutNotFoundError and
    RefusedTransitionError.

    Raises RolloutMovedError if the rollout is not at `from_stage` or reached its stage after `requested_at`: such a
    caller intended to promote the stage before.
    """

    def check(row: Rollout) -> None:
        if from_stage is not None and row.current_stage != from_stage:
            raise RolloutMovedError
        if requested_at is not None and row.stage_started_at is not None and row.stage_started_at > requested_at:
            raise RolloutMovedError

    return _move(project_id, rollout_id, Transition.PROMOTE, actor, reason, check)


def roll_back_rollout(*, project_id: UUID, rollout_id: UUID, actor: str, reason: str = "") -> Rollout:
    return _move(project_id, rollout_id, Transition.ROLL_BACK, actor, reason)


def complete_rollout(
    *, project_id: UUID, rollout_id: UUID, actor: str, reason: str = "", override_gate: bool = False
) -> Rollout:
    """Completes a rollout without its remaining stages: the target becomes the config's active version. Raises what
    `start_rollout` raises; a rollout that has begun has passed its gate."""
    return _move(project_id, rollout_id, Transition.COMPLETE, actor, reason, override_gate=override_gate)


def locked_rollout(project_id: UUID, rollout_id: UUID) -> Rollout:
    """Locks the rollout's and its config's row until the transaction ends. Raises RolloutNotFoundError.

    The lock order is always config, then rollout: creating a rollout holds the config and waits for the active rollout.
    """
    config_id = Rollout.objects.for_project(project_id).filter(pk=rollout_id).values_list("config_id", flat=True)
    if not PromptConfig.objects.select_for_update().filter(pk__in=list(config_id)).exists():
        raise RolloutNotFoundError
    row = Rollout.objects.select_for_update().filter(pk=rollout_id).first()
    if row is None:
        raise RolloutNotFoundError
    return row


def apply_transition(
    row: Rollout,
    transition: Transition,
    *,
    actor: str,
    reason: str = "",
    figures: Mapping[str, Any] | None = None,
    override_gate: bool = False,
) -> None:
    stages = {stage.number: stage for stage in RolloutStage.objects.filter(rollout=row)}
    before = Position(Status(row.status), row.current_stage)
    try:
        then = after(transition, before, len(stages))
    except TransitionError as error:
        raise RefusedTransitionError(str(error)) from None
    # Whatever gives the target its first traffic passes the gate here.
    begins = before.status is Status.PENDING and then.status is not Status.ROLLED_BACK
    gate = opened(row, reason=reason, override=override_gate) if begins else {}
    if before.status is Status.PENDING and (work := work_of(row.gate)) is not None:
        work.end(row)
    now = timezone.now()
    _set_clock(row, before, then, now)
    row.status, row.current_stage = then.status.value, then.stage
    row.save()
    _mark_stages(stages, before, then, now)
    RolloutTransition.objects.create(
        rollout=row,
        action=transition.value,
        from_status=before.status.value,
        to_status=then.status.value,
        from_stage=before.stage,
        to_stage=then.stage,
        actor=actor,
        reason=reason,
        figures={**(figures or {}), **gate},
    )
    if then.status.is_terminal:
        _release_config(row, then.status, actor)
    logger.info(
        "rollout.%s project_id=%s rollout_id=%s status=%s stage=%d actor=%s",
        transition.value, row.project_id, row.pk, then.status.value, then.stage, actor,
    )  # fmt: skip


def _move(
    project_id: UUID,
    rollout_id: UUID,
    transition: Transition,
    actor: str,
    reason: str,
    check: Callable[[Rollout], None] | None = None,
    *,
    override_gate: bool = False,
) -> Rollout:
    if override_gate and not reason.strip():
        raise InvalidRolloutError("reason", OVERRIDE_TAKES_REASON)
    with transaction.atomic():
        row = locked_rollout(project_id, rollout_id)
        if check is not None:
            check(row)
        latest = RolloutEvaluation.objects.filter(rollout=row).values_list("verdict", flat=True).first()
        apply_transition(row, transition, actor=actor, reason=reason, figures=latest, override_gate=override_gate)
    return row


def _locked_config(config_id: UUID, project_id: UUID) -> PromptConfig:
    row = PromptConfig.objects.for_project(project_id).select_for_update().filter(pk=config_id).first()
    if row is None:
        raise ConfigNotFoundError
    return row


def _evaluators_at_start(project_id: UUID, rollout_id: UUID) -> Sequence[RolloutEvaluator]:
    row = Rollout.objects.for_project(project_id).filter(pk=rollout_id, status=Status.PENDING.value).first()
    if row is None or not row.quality:
        return ()
    return evaluators_at_start(project_id, row.config_id, entries_of(row))


def _require_dataset(project_id: UUID, new: NewRollout) -> None:
    if new.gate_dataset_id is None:
        return
    if new.gate != Gate.EXPERIMENT:
        raise InvalidRolloutError("gate_dataset_id", f"Takes a gate: `{Gate.EXPERIMENT}`.")
    if not Dataset.objects.for_project(project_id).filter(pk=new.gate_dataset_id).exists():
        raise InvalidRolloutError("gate_dataset_id", "The project has no such data set.")


def _require_shadow(new: NewRollout) -> None:
    if new.shadow is None and new.gate == Gate.SHADOW:
        problem = "Must be given with this gate: who compares the answers, how many of them, and what that may cost."
        raise InvalidRolloutError("shadow", problem)
    if new.shadow is not None and new.gate != Gate.SHADOW:
        raise InvalidRolloutError("shadow", f"Takes the gate `{Gate.SHADOW}`.")


def _require_test(new: NewRollout) -> None:
    goals = [number for number, one in enumerate(new.quality) if one.goal]
    if len(goals) > 1:
        raise InvalidRolloutError(f"quality.{goals[1]}.goal", "An A/B test has one goal.")
    if goals and (len(new.stages) > 1 or new.stages[0].weight >= _ALL):
        raise InvalidRolloutError("stages", "An A/B test has one stage, below 100 %: 50 % for a day without `stages`.")


def _target(config: PromptConfig, version_id: UUID) -> PromptVersion:
    version = PromptVersion.objects.filter(config=config, pk=version_id).first()
    if version is None:
        raise InvalidRolloutError("target_version_id", "The prompt config has no such version.")
    if version.pk == config.active_version_id:
        raise InvalidRolloutError("target_version_id", "Is the active version, which is the baseline.")
    return version


def _set_clock(row: Rollout, before: Position, then: Position, now: datetime) -> None:
    if row.running_since is not None:
        row.stage_seconds += (now - row.running_since).total_seconds()
    if then.stage != before.stage:
        row.stage_started_at, row.stage_seconds = now, 0.0
    row.running_since = now if then.status is Status.RUNNING else None
    if row.started_at is None and then.status is Status.RUNNING:
        row.started_at = now
    if then.status.is_terminal:
        row.ended_at = now


def _mark_stages(stages: Mapping[int, RolloutStage], before: Position, then: Position, now: datetime) -> None:
    left = stages.get(before.stage)
    if left is not None and (then.stage != before.stage or then.status.is_terminal):
        left.left_at = now
        left.save(update_fields=["left_at"])
    if then.stage != before.stage:
        stages[then.stage].entered_at = now
        stages[then.stage].save(update_fields=["entered_at"])


def _release_config(row: Rollout, status: Status, actor: str) -> None:
    if status is Status.COMPLETED:
        activate_for_rollout(
            config_id=row.config_id,
            version_id=row.target_version_id,
            actor=actor,
            reason=f"Rollout {row.name} ({row.pk}) completed.",
        )
    set_rollout_active(config_id=row.config_id, active=False)
