from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import starmap
from uuid import UUID

from django.db.models import F, OuterRef, Prefetch, QuerySet, Subquery, prefetch_related_objects
from django_filters import rest_framework as filters

from analytics.models import Dataset
from core.lookup.registry import Kind, Match, as_uuid, finds
from prompts.models import PromptConfig
from rollouts.allocation import AllocationType
from rollouts.errors import RolloutNotFoundError
from rollouts.gate.state import Standing, standings
from rollouts.models import Rollout, RolloutStage, RolloutTransition
from rollouts.states import Status, Transition

_MAX_FOUND = 20


@dataclass(frozen=True, slots=True)
class RolloutRecord:
    """A rollout as the hot path needs it.

    `salt` is the rollout's id as text, which allocation hashes. `status` is running or paused; while paused, its config
    serves no managed prompt. The request log keeps the rollout, `stage`, the arm as `variant` and the allocation's
    `unit` and `fallback`; a forced arm has unit 0, which leaves the request out of every comparison.
    """

    id: UUID
    config_id: UUID
    status: Status
    weight: int
    allocation_type: AllocationType
    salt: str
    stage: int
    baseline_version_id: UUID
    target_version_id: UUID


class RolloutFilter(filters.FilterSet):  # type: ignore[misc]  # the package has no types
    config_id = filters.UUIDFilter(field_name="config_id")
    status = filters.ChoiceFilter(choices=Rollout._meta.get_field("status").choices)
    mode = filters.ChoiceFilter(choices=Rollout._meta.get_field("mode").choices)

    class Meta:
        model = Rollout
        fields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RolledBack:
    rollout_id: UUID
    name: str
    reason: str
    at: datetime


# A rollout that never ran was called off, which says nothing about its target.
_ROLLED_BACK = Prefetch(
    "config__rollouts",
    queryset=Rollout.objects.filter(
        status=Status.ROLLED_BACK.value, started_at__isnull=False, ended_at__isnull=False
    ).only("id", "config_id", "target_version_id", "ended_at"),
    to_attr="rolled_back",
)
_FIRST_MOVE = Prefetch(
    "transitions", queryset=RolloutTransition.objects.filter(from_status=Status.PENDING.value), to_attr="first_moves"
)


def running_rollouts(project_id: UUID) -> Mapping[UUID, RolloutRecord]:
    rows = (
        RolloutStage.objects.filter(
            rollout__project_id=project_id,
            rollout__status__in=[Status.RUNNING.value, Status.PAUSED.value],
            number=F("rollout__current_stage"),
        )
        .order_by()
        .values_list(
            "rollout_id",
            "rollout__config_id",
            "rollout__status",
            "weight",
            "rollout__allocation_type",
            "number",
            "rollout__baseline_version_id",
            "rollout__target_version_id",
        )
    )
    return {
        config_id: RolloutRecord(
            id=rollout_id,
            config_id=config_id,
            status=Status(status),
            weight=weight,
            allocation_type=AllocationType(allocation_type),
            salt=str(rollout_id),
            stage=stage,
            baseline_version_id=baseline,
            target_version_id=target,
        )
        for rollout_id, config_id, status, weight, allocation_type, stage, baseline, target in rows
    }


def list_rollouts(project_id: UUID) -> QuerySet[Rollout]:
    rollouts = Rollout.objects.for_project(project_id).select_related(
        "config", "baseline_version", "target_version", "evaluation", "quality_evaluation"
    )
    # The states of the evaluation are large and are not shown.
    rollouts = rollouts.defer("evaluation__initial", "evaluation__state", "evaluation__counted_open")
    rollouts = rollouts.defer("quality_evaluation__initial", "quality_evaluation__state", "quality_evaluation__users")
    datasets = Dataset.objects.filter(pk=OuterRef("gate_dataset_id"), project=OuterRef("project_id"))
    rollouts = rollouts.annotate(gate_dataset_name=Subquery(datasets.values("name")))
    return rollouts.prefetch_related("stages", _ROLLED_BACK, _FIRST_MOVE).order_by("-created_at", "-id")


def get_rollout(project_id: UUID, rollout_id: UUID) -> Rollout:
    """Raises RolloutNotFoundError, also for a rollout of another project."""
    row = list_rollouts(project_id).prefetch_related("transitions").filter(pk=rollout_id).first()
    if row is None:
        raise RolloutNotFoundError
    return row


def rolled_back_between(project_id: UUID, start: datetime, end: datetime, *, limit: int) -> list[RolledBack]:
    rows = RolloutTransition.objects.filter(
        rollout__project_id=project_id, action=Transition.ROLL_BACK.value, created_at__range=(start, end)
    ).order_by("-created_at", "-id")
    values = rows.values_list("rollout_id", "rollout__name", "reason", "created_at")
    return list(starmap(RolledBack, values[:limit]))


def latest_rollbacks(config: PromptConfig) -> Mapping[UUID, RolledBack]:
    rows = RolloutTransition.objects.filter(
        rollout__config=config, rollout__started_at__isnull=False, action=Transition.ROLL_BACK.value
    ).order_by("created_at", "id")
    values = rows.values_list("rollout__target_version_id", "rollout_id", "rollout__name", "reason", "created_at")
    return {version_id: RolledBack(rollout_id, name, reason, at) for version_id, rollout_id, name, reason, at in values}


def latest_rollouts(config: PromptConfig) -> Mapping[UUID, Rollout]:
    rows = Rollout.objects.filter(config=config).exclude(status=Status.ROLLED_BACK.value)
    return {row.target_version_id: row for row in rows.order_by("created_at", "id").prefetch_related("stages")}


def current_stage(rollout: Rollout) -> RolloutStage | None:
    return next((stage for stage in rollout.stages.all() if stage.number == rollout.current_stage), None)


def earlier_rollbacks(rollout: Rollout) -> list[Rollout]:
    """Returns earlier rollouts to the same target that were rolled back after serving requests, latest first, with ids
    and ends alone. Rows of `list_rollouts` need no query."""
    prefetch_related_objects([rollout], _ROLLED_BACK)
    rows: list[Rollout] = rollout.config.rolled_back  # type: ignore[attr-defined]
    same = [row for row in rows if row.target_version_id == rollout.target_version_id]
    ended = {row: row.ended_at for row in same if row.ended_at and row.ended_at <= rollout.created_at}
    return sorted(ended, key=lambda row: ended[row], reverse=True)


def gates(rollouts: Sequence[Rollout]) -> Mapping[UUID, Standing]:
    """The rows are those of `list_rollouts`; the pending ones among them need one query together."""
    first: dict[UUID, RolloutTransition] = {
        row.pk: move
        for row in rollouts
        for move in row.first_moves  # type: ignore[attr-defined]
    }
    return standings(rollouts, first)


@finds(Kind.ROLLOUT)
def find_rollouts(project_id: UUID, text: str) -> Sequence[Match]:
    own = Rollout.objects.filter(project_id=project_id).order_by("-created_at")
    identity = as_uuid(text)
    rows = own.filter(pk=identity) if identity else own.filter(name=text)
    return [Match(Kind.ROLLOUT, str(row.pk), row.name) for row in rows[:_MAX_FOUND]]
