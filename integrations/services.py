"""What changes integrations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID

from django.conf import settings
from django.db import transaction

from core.errors import ValidationError
from integrations.addresses import check_base_url, check_form
from integrations.credentials import is_masked, store_extra, store_secret
from integrations.errors import IntegrationExistsError, IntegrationNotFoundError, UnknownProviderError
from integrations.models import ProviderIntegration
from integrations.price_services import load_shipped_prices as load_shipped_prices
from integrations.registry import is_known, traits_of

SECRET_LENGTH = 4096


@dataclass(frozen=True, slots=True)
class IntegrationChange:
    """What to set; None leaves a field as it is. A masked `secret` or secret extra keeps what is stored."""

    secret: str | None = field(default=None, repr=False)
    enabled: bool | None = None
    base_url: str | None = None
    options: Mapping[str, str] | None = None
    secret_extra: Mapping[str, str] | None = field(default=None, repr=False)


def add_integration(
    *, project_id: UUID, provider: str, change: IntegrationChange, trusted: bool = False
) -> ProviderIntegration:
    """Raises UnknownProviderError, IntegrationExistsError, ValidationError."""
    if not is_known(provider):
        raise UnknownProviderError(provider)
    with transaction.atomic():
        if ProviderIntegration.objects.for_project(project_id).filter(provider=provider).exists():
            raise IntegrationExistsError(f"The project has an integration for {provider} already.")
        return _save(ProviderIntegration(project_id=project_id, provider=provider), change, trusted=trusted)


def update_integration(
    *, project_id: UUID, provider: str, change: IntegrationChange, trusted: bool = False
) -> ProviderIntegration:
    """Raises IntegrationNotFoundError, ValidationError."""
    with transaction.atomic():
        return _save(_locked(project_id, provider), change, trusted=trusted)


def save_integration(
    *, project_id: UUID, provider: str, change: IntegrationChange, trusted: bool = False
) -> ProviderIntegration:
    """Adds or updates, whichever it takes. `trusted` is an operator's call: any address is allowed."""
    with transaction.atomic():
        exists = ProviderIntegration.objects.for_project(project_id).filter(provider=provider).exists()
        apply = update_integration if exists else add_integration
        return apply(project_id=project_id, provider=provider, change=change, trusted=trusted)


def apply_change(row: ProviderIntegration, change: IntegrationChange, *, trusted: bool) -> None:
    """Sets the row's fields without saving it. Raises ValidationError."""
    if change.base_url is not None:
        row.base_url = change.base_url.strip().rstrip("/")
    if change.options is not None:
        row.options = {**row.options, **change.options}
    if change.enabled is not None:
        row.enabled = change.enabled
    if change.secret is not None and not is_masked(change.secret):
        store_secret(row, _checked_secret(change.secret, "api_key"))
    fresh = {
        name: _checked_secret(value, name)
        for name, value in (change.secret_extra or {}).items()
        if not is_masked(value)
    }
    if fresh:
        store_extra(row, fresh)
    _check_complete(row, trusted=trusted)


def remove_integration(*, project_id: UUID, provider: str) -> None:
    """Raises IntegrationNotFoundError."""
    with transaction.atomic():
        _locked(project_id, provider).delete()


def _save(row: ProviderIntegration, change: IntegrationChange, *, trusted: bool) -> ProviderIntegration:
    apply_change(row, change, trusted=trusted)
    row.save()
    return row


def _locked(project_id: UUID, provider: str) -> ProviderIntegration:
    row = ProviderIntegration.objects.for_project(project_id).select_for_update().filter(provider=provider).first()
    if row is None:
        raise IntegrationNotFoundError(f"The project has no integration for {provider}.")
    return row


def _checked_secret(secret: str, name: str) -> str:
    """Keys travel in headers: visible ASCII only."""
    secret = secret.strip()
    if len(secret) > SECRET_LENGTH or any(not "!" <= character <= "~" for character in secret):
        problem = f"must be at most {SECRET_LENGTH} visible ASCII characters"
        raise ValidationError(f"{name}: {problem}", details={name: [problem]})
    return secret


def _check_complete(row: ProviderIntegration, *, trusted: bool) -> None:
    traits = traits_of(row.provider)
    base_url = row.base_url or traits.base_url
    if not base_url:
        raise _missing("base_url", f"{row.provider} needs the address of the service")
    if not row.encrypted_secret and not (traits.optional_secret or row.encrypted_extra):
        raise _missing("api_key", f"{row.provider} needs an API key")
    if trusted:
        check_form(base_url)
    else:
        check_base_url(base_url, allow_private=settings.ALLOW_PRIVATE_UPSTREAMS)


def _missing(name: str, problem: str) -> ValidationError:
    return ValidationError(f"{name}: {problem}", code="missing_field", details={name: [problem]})
