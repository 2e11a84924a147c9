"""Saves integrations for tests."""

from __future__ import annotations

from uuid import UUID

from integrations.models import ProviderIntegration
from integrations.services import IntegrationChange, add_integration, update_integration


def save_integration(
    *, project_id: UUID, provider: str, change: IntegrationChange, trusted: bool = False
) -> ProviderIntegration:
    """Adds the integration, or updates the project's existing one. `trusted` allows any address."""
    exists = ProviderIntegration.objects.for_project(project_id).filter(provider=provider).exists()
    if exists:
        return update_integration(project_id=project_id, name=provider, change=change, trusted=trusted)
    return add_integration(project_id=project_id, provider=provider, change=change, trusted=trusted)
