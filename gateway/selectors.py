"""Reads the gateway's own tables for the pipeline and the agent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

import msgspec

from core.caller_limits import CallerLimits
from gateway.models import EndUserLimit, GatewaySettings, ModelGroupRow, all_scopes
from gateway.project_settings.guardrails import GuardrailSettings
from gateway.project_settings.model_groups import ModelGroup, Strategy
from gateway.project_settings.settings import (
    LimitSettings,
    LogSettings,
    ProjectSettings,
    ReasoningSettings,
    RoutingSettings,
)


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """The agent's settings. `model` is the project's model for the agent, else `auto`; empty when the project names no
    model."""

    enabled: bool
    scopes: frozenset[str]
    model: str


def agent_settings(project_id: UUID) -> AgentSettings:
    """Returns the settings from the database, not from a worker's snapshot, so that a withdrawn right ends at once."""
    row = GatewaySettings.objects.for_project(project_id).first()
    if row is None:
        return AgentSettings(True, frozenset(all_scopes()), "")
    return AgentSettings(
        row.agent_enabled, frozenset(row.agent_scopes), row.agent_model or ("auto" if row.preferred_models else "")
    )


def project_settings(project_id: UUID) -> ProjectSettings:
    """Returns the project's settings, or the defaults when it has none."""
    row = GatewaySettings.objects.for_project(project_id).first()
    if row is None:
        return ProjectSettings()
    return ProjectSettings(
        routing=RoutingSettings(
            retry_enabled=row.retry_enabled,
            retry_max_attempts=row.retry_max_attempts,
            fallback_enabled=row.fallback_enabled,
            fallback_order=tuple(row.fallback_order),
            preferred_models=tuple(row.preferred_models),
        ),
        limits=_limits(row),
        logging=LogSettings(content=row.log_content, retention_days=row.retention_days),
        reasoning=ReasoningSettings(row.introspection_enabled, row.thinking_budget_tokens),
        end_users=_end_users(row),
        guardrails=msgspec.convert(row.guardrails, GuardrailSettings),
        cache_ttl_seconds=row.cache_ttl_seconds,
        judge_model=row.judge_model,
        prompt_cache_markers=row.prompt_cache_markers,
    )


def model_groups(project_id: UUID) -> Mapping[str, ModelGroup]:
    """Returns the project's model groups by name."""
    return {
        row.name: ModelGroup(
            row.name, Strategy(row.strategy), {member["model"]: member["weight"] for member in row.members}
        )
        for row in ModelGroupRow.objects.for_project(project_id)
    }


def end_user_limits(project_id: UUID) -> Mapping[str, CallerLimits | None]:
    """Returns the limits of end users by name; None for a user without any limit."""
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


def _end_users(row: GatewaySettings) -> CallerLimits | None:
    limits = CallerLimits(
        requests_per_minute=row.end_user_rpm,
        tokens_per_minute=row.end_user_tpm,
        concurrent_requests=row.end_user_max_concurrent,
        monthly_budget_usd=row.end_user_monthly_budget_usd,
        set_at_us=int(row.updated_at.timestamp() * 1_000_000),
    )
    return limits if limits.is_set else None


def _limits(row: GatewaySettings) -> LimitSettings:
    return LimitSettings(
        requests_per_minute=row.rate_limit_rpm if row.rate_limit_enabled else None,
        tokens_per_minute=row.rate_limit_tpm if row.rate_limit_enabled else None,
        monthly_budget_usd=row.monthly_budget_usd,
        hard_stop=row.budget_hard_stop,
        alerts=row.budget_alert_enabled,
        session_budget_usd=row.session_budget_usd,
        set_at_us=int(row.updated_at.timestamp() * 1_000_000),
    )
