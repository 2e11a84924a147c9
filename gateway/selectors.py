"""What the pipeline reads of the gateway's own tables."""

from __future__ import annotations

from uuid import UUID

import msgspec

from gateway.guardrails.settings import GuardrailSettings
from gateway.models import GatewaySettings
from gateway.snapshot.settings import (
    LimitSettings,
    LogSettings,
    ProjectSettings,
    ReasoningSettings,
    RoutingSettings,
)


def project_settings(project_id: UUID) -> ProjectSettings:
    """The project's own, or the defaults when it never set any."""
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
        guardrails=msgspec.convert(row.guardrails, GuardrailSettings),
        cache_ttl_seconds=row.cache_ttl_seconds,
        judge_model=row.judge_model,
    )


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
