"""What the gateway and the management API read of integrations and prices."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from uuid import UUID

from django.db.models import QuerySet

from core.crypto import UndecryptableError
from integrations.credentials import credentials_of
from integrations.models import ModelPrice, ProviderIntegration
from integrations.pricing.cost import Price
from integrations.providers.base import Credentials

logger = logging.getLogger("integrations.credentials")


def enabled_credentials(project_id: UUID) -> list[Credentials]:
    """The project's usable integrations, by provider name. One whose secret cannot be read is left out and logged."""
    found = []
    for row in ProviderIntegration.objects.for_project(project_id).filter(enabled=True).order_by("provider"):
        try:
            found.append(credentials_of(row))
        except UndecryptableError:
            logger.error("integration.undecryptable", extra={"integration_id": row.pk, "provider": row.provider})
    return found


def project_integrations(project_id: UUID) -> QuerySet[ProviderIntegration]:
    return ProviderIntegration.objects.for_project(project_id).order_by("provider")


def price_table() -> Mapping[tuple[str, str], Price]:
    """(provider, model) → price. A row without input or output price is unknown and not in the table."""
    rows = ModelPrice.objects.filter(input_cost_per_1m__isnull=False, output_cost_per_1m__isnull=False).values_list(
        "provider",
        "model",
        "input_cost_per_1m",
        "output_cost_per_1m",
        "cache_read_cost_per_1m",
        "cache_write_cost_per_1m",
    )
    return {(provider, model): Price(*costs) for provider, model, *costs in rows.iterator(chunk_size=2000)}
