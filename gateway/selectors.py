"""What the pipeline reads of the gateway's own tables."""

from __future__ import annotations

from uuid import UUID

from gateway.models import GatewaySettings
from gateway.snapshot.project import RoutingSettings


def routing_settings(project_id: UUID) -> RoutingSettings:
    """The project's own, or the defaults when it never set any."""
    row = GatewaySettings.objects.for_project(project_id).first()
    if row is None:
        return RoutingSettings()
    return RoutingSettings(
        retry_enabled=row.retry_enabled,
        retry_max_attempts=row.retry_max_attempts,
        fallback_enabled=row.fallback_enabled,
        fallback_order=tuple(row.fallback_order),
        preferred_models=tuple(row.preferred_models),
    )
