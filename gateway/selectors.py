from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db.models import QuerySet

from core.caller_limits import CallerLimits
from gateway.models import EndUserLimit, GatewaySettings, ModelGroupRow, StoredObject
from gateway.project_settings.model_groups import ModelGroup, Strategy
from gateway.project_settings.settings import ProjectSettings
from gateway.tables.stored_object import ObjectKind


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """`model` is the project's model for the agent, else `auto`; empty without preferred models."""

    enabled: bool
    scopes: frozenset[str]
    model: str


def agent_settings(project_id: UUID) -> AgentSettings:
    """Reads the database, not a worker's snapshot, so that a withdrawn right ends at once."""
    settings = project_settings(project_id)
    model = settings.agent_model or ("auto" if settings.preferred_models else "")
    return AgentSettings(settings.agent_enabled, frozenset(settings.agent_scopes), model)


def current_settings(project_id: UUID) -> GatewaySettings:
    return GatewaySettings.objects.for_project(project_id).first() or GatewaySettings(project_id=project_id)


def project_settings(project_id: UUID) -> ProjectSettings:
    return current_settings(project_id).settings


def rollout_thresholds(project_id: UUID) -> Sequence[str]:
    return project_settings(project_id).rollout_thresholds


def rows_with_budget() -> QuerySet[GatewaySettings]:
    named = GatewaySettings.objects.filter(values__has_key="monthly_budget_usd")
    return named.exclude(values__monthly_budget_usd=None).order_by("project_id")


def model_groups(project_id: UUID) -> Mapping[str, ModelGroup]:
    return {
        row.name: ModelGroup(
            row.name, Strategy(row.strategy), {member["model"]: member["weight"] for member in row.members}
        )
        for row in ModelGroupRow.objects.for_project(project_id)
    }


def keepers_of(project_id: UUID, file_ids: Collection[str]) -> Mapping[str, frozenset[int | None]]:
    rows = StoredObject.objects.for_project(project_id).filter(kind=ObjectKind.FILE, vendor_id__in=file_ids)
    found: dict[str, frozenset[int | None]] = {}
    for vendor_id, integration_id in rows.values_list("vendor_id", "integration_id"):
        found[vendor_id] = found.get(vendor_id, frozenset()) | {integration_id}
    return found


def end_user_limits(project_id: UUID) -> Mapping[str, CallerLimits | None]:
    return {row.user_id: _limits_of_user(row) for row in EndUserLimit.objects.for_project(project_id)}


def _limits_of_user(row: EndUserLimit) -> CallerLimits | None:
    limits = CallerLimits(
        requests_per_minute=row.rate_limit_rpm,
        tokens_per_minute=row.rate_limit_tpm,
        concurrent_requests=row.max_concurrent_requests,
        monthly_budget_usd=row.monthly_budget_usd,
        set_at_us=int(row.updated_at.timestamp() * 1_000_000),
    )
    return limits if limits.is_set else None
