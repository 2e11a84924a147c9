from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from uuid import UUID

from django.conf import settings
from django.db.models import QuerySet

from core.encryption.fernet import UndecryptableSecretError
from integrations.access.credentials import credentials_of
from integrations.access.deployments import Deployment, deployment_of
from integrations.models import ModelPrice, ProviderIntegration, called
from integrations.pricing.cost import Price
from integrations.pricing.terms import NO_TERMS
from integrations.providers.base import Credentials
from integrations.transport.ambient import resolved

SANDBOX = "sandbox"

logger = logging.getLogger("integrations.credentials")


def enabled_credentials(project_id: UUID) -> list[Credentials]:
    """Returns the usable integrations by provider and name. One with an undecryptable secret is left out and logged."""
    return [deployment.credentials for deployment in read_deployments(project_id)[0]]


def read_deployments(project_id: UUID) -> tuple[list[Deployment], frozenset[str]]:
    """Returns the enabled integrations, and the providers with no usable one because secrets cannot be decrypted. Each
    such secret is logged."""
    found, unreadable = [], set()
    for row in project_integrations(project_id).filter(enabled=True):
        try:
            found.append(deployment_of(row, resolved(credentials_of(row))))
        except UndecryptableSecretError:
            unreadable.add(row.provider)
            logger.error("integration.undecryptable integration_id=%s provider=%s", row.pk, row.provider)
    providers = {deployment.provider for deployment in found}
    if SANDBOX not in providers:
        found += [Deployment(SANDBOX, credentials) for credentials in running_sandbox(project_id)]
    return found, frozenset(unreadable - providers)


def disabled_providers(project_id: UUID) -> frozenset[str]:
    rows = ProviderIntegration.objects.for_project(project_id).values_list("provider", "enabled")
    return frozenset(provider for provider, _ in rows) - {provider for provider, enabled in rows if enabled}


def deployment_names(project_id: UUID) -> frozenset[str]:
    return frozenset(row.name for row in project_integrations(project_id).only("name", "provider"))


def providers_with_names(project_id: UUID) -> frozenset[str]:
    rows = project_integrations(project_id).only("name", "provider")
    return frozenset(row.provider for row in rows if row.name != row.provider)


def provider_of(project_id: UUID, name: str) -> str:
    row = ProviderIntegration.objects.for_project(project_id).filter(called(name)).only("name", "provider").first()
    return row.provider if row is not None else ""


def running_sandbox(project_id: UUID) -> list[Credentials]:
    """The sandbox of `manage.py serve` serves every project that has no row of its own for it."""
    if not settings.SANDBOX or ProviderIntegration.objects.for_project(project_id).filter(provider=SANDBOX).exists():
        return []
    try:
        base_url = (Path(settings.RUN_DIR) / "sandbox.url").read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return []
    return [Credentials(integration_id=0, provider=SANDBOX, base_url=base_url, secret="")] if base_url else []


def project_integrations(project_id: UUID) -> QuerySet[ProviderIntegration]:
    return ProviderIntegration.objects.for_project(project_id).order_by("provider", "name")


def price_table() -> Mapping[tuple[str, str], Price]:
    return _prices(ModelPrice.objects.filter(project=None))


def price_overrides(project_id: UUID) -> Mapping[tuple[str, str], Price]:
    return _prices(ModelPrice.objects.filter(project_id=project_id))


def _prices(prices: QuerySet[ModelPrice]) -> dict[tuple[str, str], Price]:
    rows = prices.order_by().values_list(
        "provider",
        "model",
        "input_cost_per_1m",
        "output_cost_per_1m",
        "cache_read_cost_per_1m",
        "cache_write_cost_per_1m",
        "terms",
        "source",
    )
    return {
        (provider, model): Price(input_cost, output_cost, cache_read, cache_write, terms or NO_TERMS, source)
        for provider, model, input_cost, output_cost, cache_read, cache_write, terms, source in rows.iterator(
            chunk_size=2000
        )
        if input_cost is not None and output_cost is not None
    }
